//! Made-up sides: what must be matched, and what must not.

use super::*;
use crate::model::key::RegionKey;
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
        doubt: None,
        share: 0.1,
        values: BTreeMap::from([(Quantity::Executions, Sample::Same(1, executions))]),
        quantiles: vec![],
        callers: vec![],
    }
}

fn side(build: &str, mut regions: Vec<SideRegion>) -> Side {
    for region in &mut regions {
        build.clone_into(&mut region.key.build);
        format!("{build}.x").clone_into(&mut region.key.module);
    }
    Side {
        version: 1,
        origin: crate::compare::side::Origin {
            modules: BTreeMap::from([(build.to_owned(), format!("{build}.x"))]),
            team: 2,
            ..Default::default()
        },
        total: BTreeMap::new(),
        regions,
        parts: vec![],
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
