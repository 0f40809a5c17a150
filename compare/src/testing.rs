//! Made-up sides, runs and commits, for tests.

use crate::history::{History, Named, Wanted, history};
use crate::series::cells::{Cell, Cells, Measured, RegionCells};
use crate::side::{Origin, SIDE_VERSION};
use crate::{Commit, Pace, Quantity, Sample, Side, SideRegion};
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::model::series::{SeriesCause, SeriesPlace};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

/// A region of a function of its own.
pub fn region(name: &str, share: f64, values: &[(Quantity, &[f64])]) -> SideRegion {
    let sample = |(quantity, values): &(Quantity, &[f64])| {
        let sample = Sample::of(values)?;
        Some((quantity.clone(), sample))
    };
    SideRegion {
        key: RegionKey {
            module: "solve".to_owned(),
            build: String::new(),
            addresses: vec![],
            construct: Construct::Loop,
            function: Some(name.to_owned()),
            file: None,
            line: None,
            name: None,
            schedule: None,
            callers: vec![],
            is_part: false,
        },
        parent: None,
        places: None,
        barriers: None,
        doubt: None,
        share,
        values: values.iter().filter_map(sample).collect(),
        uncounted: None,
        functions: None,
        quantiles: vec![],
        callers: vec![],
        each: BTreeMap::new(),
    }
}

/// A side with so many runs.
pub fn side(runs: u32, total: &[(Quantity, &[f64])], regions: Vec<SideRegion>) -> Side {
    Side {
        version: SIDE_VERSION,
        origin: Origin {
            runs,
            ..Origin::default()
        },
        interfaces: BTreeMap::new(),
        total: region("", 1.0, total).values,
        regions,
        uncounted: None,
        parts: vec![],
        each: BTreeMap::new(),
        begun: vec![],
    }
}

/// A baseline of a commit, which is called by its number.
pub fn baseline(n: usize, total: &[(Quantity, &[f64])]) -> Named {
    let mut side = side(1, total, vec![]);
    side.origin.commit = Some(Commit {
        hash: format!("c{n}"),
        branch: None,
        date: Some(format!(
            "2026-{:02}-{:02}T00:00:00Z",
            9 + n / 28,
            n % 28 + 1
        )),
        is_changed: false,
    });
    Named {
        name: format!("c{n}"),
        side,
    }
}

/// The commits with changes of the first curve.
pub fn changes(history: &History) -> Vec<u32> {
    let curve = &history.series[0].curves[0];
    curve.changes.iter().map(|c| c.at).collect()
}

/// Thirty commits whose time grows by a quarter with the twentieth. `pace`: of each, before and behind.
pub fn slower(pace: impl Fn(usize) -> Option<[f64; 2]>) -> History {
    let commit = |n: usize| {
        let noise = ((n * 7919 % 23) as f64 - 11.0) / 1000.0;
        let wall = if n < 20 { 1.0 } else { 1.25 } * (1.0 + noise);
        let mut named = baseline(n, &[(Quantity::Wall, &[wall])]);
        named.side.origin.pace = pace(n).and_then(Pace::of);
        named
    };
    let all: Vec<Named> = (0..30).map(commit).collect();
    history(&all, &Wanted::default()).expect("a history")
}

/// A place of a name.
pub fn place(name: &str) -> SeriesPlace {
    SeriesPlace {
        name: name.to_owned(),
        ..SeriesPlace::default()
    }
}

/// A run with one parallel region. `inside`: its thread time by place and cause; what is left of `wall_s` is serial.
pub fn run(threads: u32, wall_s: f64, inside: &[(&str, SeriesCause, f64)]) -> Measured {
    let region = place("region");
    let cells: Cells = inside
        .iter()
        .map(|&(at, cause, seconds)| {
            let cell = Cell {
                region: Some(region.clone()),
                place: Some(place(at)),
                cause,
            };
            (cell, seconds)
        })
        .collect();
    let parallel_s = cells.values().sum::<f64>() / f64::from(threads);
    let mut all = cells.clone();
    for (cause, seconds) in [
        (SeriesCause::Serial, wall_s - parallel_s),
        (
            SeriesCause::SerialIdle,
            (wall_s - parallel_s) * f64::from(threads - 1),
        ),
    ] {
        let outside = Cell {
            region: None,
            place: None,
            cause,
        };
        all.insert(outside, seconds);
    }
    let of_region = RegionCells {
        executions: 1,
        team: threads,
        wall_s: parallel_s,
        is_nested: false,
        cells,
    };
    Measured {
        name: format!("run-{threads}"),
        program: "a".to_owned(),
        args: vec![],
        host: "h".to_owned(),
        is_simulated: false,
        threads,
        wall_s: Some(wall_s),
        available_s: wall_s * f64::from(threads),
        cells: Some(all),
        regions: BTreeMap::from([(region, of_region)]),
        units: BTreeMap::new(),
        predicted: vec![],
        processors: Some(4.0),
        starved: None,
        probes: None,
        is_failed: false,
        is_in_part: false,
    }
}
