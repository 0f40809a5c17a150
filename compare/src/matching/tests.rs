//! Made-up sides: what must be matched, and what must not.

mod moved;

use super::*;
use crate::Sample;
use crate::side::Interface;
use ompfuse_account::model::key::RegionKey;
use ompfuse_format::Construct;
use ompfuse_format::site::HexAddress;
use std::collections::BTreeMap;

fn region(address: u64, line: Option<u32>, executions: f64) -> SideRegion {
    SideRegion {
        key: RegionKey {
            module: String::new(),
            build: String::new(),
            addresses: vec![HexAddress(address)],
            construct: Construct::Loop,
            function: line.map(|_| "solve".to_owned()),
            file: line.map(|_| "/src/solve.c".to_owned()),
            line,
            name: None,
            schedule: None,
            callers: vec![],
            is_part: false,
        },
        parent: None,
        places: None,
        barriers: None,
        doubt: None,
        share: 0.1,
        values: BTreeMap::from([(Quantity::Executions, Sample::Same(1, executions))]),
        uncounted: None,
        functions: None,
        quantiles: vec![],
        callers: vec![],
        each: BTreeMap::new(),
    }
}

fn side(build: &str, mut regions: Vec<SideRegion>) -> Side {
    for region in &mut regions {
        build.clone_into(&mut region.key.build);
        format!("{build}.x").clone_into(&mut region.key.module);
    }
    Side {
        version: 1,
        origin: crate::side::Origin {
            modules: BTreeMap::from([(build.to_owned(), format!("{build}.x"))]),
            team: 2,
            ..Default::default()
        },
        interfaces: BTreeMap::new(),
        total: BTreeMap::new(),
        regions,
        uncounted: None,
        parts: vec![],
        each: BTreeMap::new(),
        begun: vec![],
    }
}

/// Addresses that were matched.
fn addresses(a: &Side, b: &Side) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = (matched(a, b).pairs.iter())
        .filter(|p| !p.is_group)
        .map(|p| (p.a[0].key.addresses[0].0, p.b[0].key.addresses[0].0))
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn lines_that_moved_by_what_lies_between_regions_mislead_nobody() {
    let of = |build, from: u32| {
        let loops = (0..10).map(|n| region(u64::from(n), Some(from + 3 * n), 1.0));
        side(build, loops.collect())
    };
    let straight: Vec<(u64, u64)> = (0..10).map(|n| (n, n)).collect();
    assert_eq!(addresses(&of("a", 20), &of("b", 23)), straight);
    // The first one was removed: without another sign nobody knows which.
    let mut less = of("b", 20);
    less.regions.pop();
    let found = addresses(&of("a", 20), &less);
    assert!(found.is_empty() || found == straight[..9], "{found:?}");
    let mut shifted = of("b", 17);
    shifted.regions.remove(0);
    let found = addresses(&of("a", 20), &shifted);
    assert!(found.iter().all(|(a, b)| a == b), "{found:?}");
    // Counts tell.
    let counted = |mut side: Side| {
        for (n, region) in side.regions.iter_mut().enumerate() {
            let n = Sample::Same(1, n as f64 + 1.0);
            region.values.insert(Quantity::Executions, n);
        }
        side
    };
    let mut less = counted(of("b", 17));
    less.regions.remove(0);
    let found = addresses(&counted(of("a", 20)), &less);
    assert_eq!(found, straight[1..]);
}

#[test]
fn what_has_no_names_is_told_by_behaviour_or_forms_a_group() {
    let a = side(
        "a",
        vec![
            region(1, None, 5.0),
            region(2, None, 7.0),
            region(3, None, 7.0),
        ],
    );
    let b = side(
        "b",
        vec![
            region(13, None, 7.0),
            region(12, None, 7.0),
            region(11, None, 5.0),
        ],
    );
    assert_eq!(addresses(&a, &b), [(1, 11)]);
    let found = matched(&a, &b);
    let group: Vec<_> = found.pairs.iter().filter(|p| p.is_group).collect();
    assert_eq!((group.len(), group[0].a.len(), group[0].b.len()), (1, 2, 2));
    // One more on a side: which of them is new, nobody knows.
    let more = side(
        "b",
        vec![
            region(11, None, 7.0),
            region(12, None, 7.0),
            region(13, None, 7.0),
        ],
    );
    let found = matched(&a, &more);
    assert!(found.pairs.is_empty(), "{:?}", found.pairs);
    assert_eq!((found.only_a.len(), found.only_b.len()), (3, 3));
    // Copies of one together do what it does.
    let copies = side("b", vec![region(12, None, 3.0), region(13, None, 4.0)]);
    let one = side("a", vec![region(2, None, 7.0)]);
    let found = matched(&one, &copies);
    assert_eq!((found.pairs.len(), found.pairs[0].b.len()), (1, 2));
}

#[test]
fn the_same_build_is_matched_by_address_only() {
    let a = side("a", vec![region(1, None, 5.0), region(2, None, 6.0)]);
    let b = side("a", vec![region(2, None, 9.0), region(3, None, 5.0)]);
    let found = matched(&a, &b);
    assert_eq!(addresses(&a, &b), [(2, 2)]);
    assert_eq!(found.pairs[0].confidence, Confidence::Certain);
    assert_eq!((found.only_a.len(), found.only_b.len()), (1, 1));
}

/// A parallel region, a loop and barriers in it at these lines.
fn with_barriers(build: &str, interface: Interface, line: u32, barriers: &[u32]) -> Side {
    let mut regions = vec![region(1, Some(10), 5.0), region(2, Some(line), 5.0)];
    regions[0].key.construct = Construct::Parallel;
    for (address, &line) in (3..).zip(barriers) {
        let mut barrier = region(address, Some(line), 10.0);
        barrier.key.construct = Construct::Barrier;
        barrier.share = 0.0;
        regions.push(barrier);
    }
    for region in &mut regions[1..] {
        region.parent = Some(0);
    }
    let mut side = side(build, regions);
    side.interfaces.insert(format!("{build}.x"), interface);
    side
}

#[test]
fn barriers_are_told_by_the_regions_around_them() {
    let lines = |regions: &[&SideRegion]| -> Vec<Option<u32>> {
        let waits = regions.iter().filter(|r| r.is_wait());
        waits.map(|r| r.key.line).collect()
    };
    let gomp =
        |build, line, barriers: &[u32]| with_barriers(build, Interface::Gomp, line, barriers);
    let (a, b) = (gomp("a", 20, &[22, 30]), gomp("b", 21, &[15, 23, 31]));
    let found = matched(&a, &b);
    assert_eq!(lines(&found.only_b), [Some(15)]);
    assert_eq!(lines(&found.only_a), []);
    assert_eq!(addresses(&a, &b), [(1, 1), (2, 2), (3, 4), (4, 5)]);
    // Nothing tells which of two is the one: the region's threads wait more often.
    let moved = gomp("b", 21, &[16, 17]);
    let one = gomp("a", 20, &[12]);
    let found = matched(&one, &moved);
    let group = found.pairs.iter().find(|p| p.is_group).unwrap();
    assert_eq!((group.a.len(), group.b.len()), (1, 2));
    // More threads come to the same barriers.
    let (few, mut many) = (gomp("a", 20, &[22]), gomp("b", 20, &[22]));
    let kinds = |a: &Side, b: &Side| crate::compare(a, b).pairs.len();
    assert_eq!(kinds(&few, &many), 3);
    many.origin.team = 4;
    assert_eq!(kinds(&few, &many), 2);
    // The end of a loop that was found in one build only.
    let (mut found, mut lost) = (gomp("a", 20, &[]), gomp("b", 20, &[21]));
    found.regions[0].barriers = Some(10);
    lost.regions[0].barriers = Some(10);
    assert_eq!(lines(&matched(&found, &lost).only_b), []);
    lost.regions[0].barriers = Some(20);
    assert_eq!(lines(&matched(&found, &lost).only_b), [Some(21)]);
    // What one compiler tells apart and the other doesn't is no difference, and neither is what a side without interfaces doesn't say.
    let other = with_barriers("b", Interface::Kmpc, 20, &[]);
    assert_eq!(lines(&matched(&a, &other).only_a), []);
    let mut untold = gomp("b", 20, &[]);
    untold.interfaces.clear();
    assert_eq!(lines(&matched(&a, &untold).only_a), []);
    assert_eq!(lines(&matched(&a, &gomp("b", 20, &[])).only_a).len(), 2);
}

#[test]
fn counts_tell_where_nothing_else_does() {
    let counted = |build, counts: &[f64]| {
        let regions = counts.iter().zip(1..).map(|(&n, at)| {
            let mut region = region(at, Some(10 * at as u32), n);
            region.key.function = Some(format!("{build}_{at}"));
            region.key.file = Some(format!("/src/{build}{at}.c"));
            region.share = 1.0 / counts.len() as f64;
            region
        });
        side(build, regions.collect())
    };
    let a = counted("a", &[5000.0, 7000.0, 3.0]);
    let b = counted("b", &[4.0, 7000.0, 5000.0]);
    assert_eq!(addresses(&a, &b), [(1, 3), (2, 2)]);
    let twins = counted("b", &[5000.0, 5000.0, 4.0]);
    assert_eq!(addresses(&a, &twins), []);
}

#[test]
fn thousands_of_regions_are_matched_soon() {
    const REGIONS: u64 = 5_000;
    type Line = fn(u64) -> Option<u32>;
    // Half of them are in parallel regions; counts tell many apart, or none.
    let of = |build, distinct: u64, line: Line| {
        let regions = (0..REGIONS).map(|n| {
            let mut region = region(n, line(n), (n % distinct) as f64 + 1.0);
            if n % 2 == 0 {
                region.key.construct = Construct::Parallel;
            } else {
                region.parent = Some(n as u32 - 1);
            }
            region
        });
        side(build, regions.collect())
    };
    let cases: [(u64, Line, bool); 4] = [
        (REGIONS, |_| None, true),
        (10, |_| None, false),
        (1, |_| None, false),
        (REGIONS, |n| Some(n as u32 * 5 + 1), true),
    ];
    for (distinct, line, is_told) in cases {
        let (a, b) = (of("a", distinct, line), of("b", distinct, line));
        let start = std::time::Instant::now();
        let found = matched(&a, &b);
        let pairs = found.pairs.iter().filter(|p| !p.is_group).count() as u64;
        assert_eq!(pairs == REGIONS, is_told, "{distinct}: {pairs}");
        println!(
            "{distinct} kinds of counts: {:.2} s",
            start.elapsed().as_secs_f64()
        );
        // Not optimised, on a busy machine. What looks at all pairs for each region takes minutes.
        assert!(
            start.elapsed().as_secs() < 20,
            "{distinct}: {:?}",
            start.elapsed()
        );
    }
}
