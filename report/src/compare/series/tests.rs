//! Series of made-up runs, whose numbers are known.

use super::cells::{Cell, Cells, Measured, RegionCells};
use super::{SeriesError, over_threads};
use crate::model::Class;
use crate::model::series::{Scaling, Series, SeriesCause, SeriesNote, SeriesPlace, Stack};
use std::collections::BTreeMap;

fn place(name: &str) -> SeriesPlace {
    SeriesPlace {
        name: name.to_owned(),
        ..SeriesPlace::default()
    }
}

/// A run with one parallel region. `inside`: its thread time by place and cause; what is left of `wall_s` is serial.
fn run(threads: u32, wall_s: f64, inside: &[(&str, SeriesCause, f64)]) -> Measured {
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

fn sum(stack: &Stack) -> f64 {
    let classes: f64 = Class::ALL
        .iter()
        .filter_map(|&c| stack.overhead.get(c))
        .sum();
    stack.work_s + classes + stack.serial_s + stack.serial_idle_s + stack.unused_s + stack.unknown_s
}

/// What holds in every series.
fn check(series: &Series) {
    for point in &series.points {
        let stack = point.stack.expect("it is known");
        assert!((sum(&stack) - point.available_s).abs() < 1e-12, "{point:?}");
        let lost: f64 = point.losses.iter().map(|l| l.seconds).sum();
        let lost = lost + point.other_losses_s;
        assert!(
            (lost - (point.available_s - point.ideal_s)).abs() < 1e-12,
            "{point:?}"
        );
    }
    for point in series.regions.iter().flat_map(|r| &r.points) {
        assert!(
            (sum(&point.stack) - point.available_s).abs() < 1e-12,
            "{point:?}"
        );
    }
}

const WORK: SeriesCause = SeriesCause::Work;

#[test]
fn a_serial_part_limits_as_amdahl_says() {
    let runs = [1u32, 2, 4, 9].map(|n| run(n, 1.0 + 9.0 / f64::from(n), &[("loop", WORK, 9.0)]));
    let series = over_threads(&runs, Scaling::Strong).unwrap();
    check(&series);
    let last = &series.points[3];
    assert!((last.speedup - 5.0).abs() < 1e-12 && (last.efficiency - 5.0 / 9.0).abs() < 1e-12);
    let limit = series.limit.as_ref().unwrap();
    assert_eq!(
        (limit.place.clone(), limit.cause),
        (None, SeriesCause::SerialIdle)
    );
    assert!((limit.seconds - 8.0).abs() < 1e-12 && (limit.share.unwrap() - 1.0).abs() < 1e-12);
    let region = &series.regions[0];
    assert!(
        region
            .points
            .iter()
            .all(|p| (p.efficiency.unwrap() - 1.0).abs() < 1e-12)
    );
    assert_eq!((region.lost_s, region.mostly), (Some(0.0), None));
    // From 4 to 9 threads it goes from 3.1 to 5 times as fast.
    assert_eq!((series.fastest, series.pays_off_until), (9, None));
    let many = SeriesNote::MoreThreadsThanProcessors {
        threads: 9,
        processors: 4.0,
    };
    assert_eq!(series.notes, [many, SeriesNote::Single]);
}

/// A program pays off that gets faster all the time, however far it is from perfect.
#[test]
fn more_threads_pay_off_as_long_as_it_gets_faster() {
    let of = |points: &[(u32, f64)]| {
        let runs: Vec<Measured> = points.iter().map(|&(n, s)| run(n, 1.0 / s, &[])).collect();
        let series = over_threads(&runs, Scaling::Strong).unwrap();
        let said = crate::words::series_verdict(&series);
        let said = said.into_iter().find(|s| s.contains("not pay off"));
        assert_eq!(said.is_some(), series.pays_off_until.is_some(), "{said:?}");
        (series.pays_off_until, said.unwrap_or_default())
    };
    assert_eq!(of(&[(1, 1.0), (2, 1.33), (4, 2.29), (8, 4.25)]).0, None);
    assert_eq!(of(&[(1, 1.0), (8, 7.5), (9, 8.4)]).0, None);
    let (until, said) = of(&[(1, 1.0), (2, 1.9), (4, 2.0), (8, 2.1)]);
    assert_eq!(until, Some(2));
    assert!(said.ends_with("at most 1.11 times as fast."), "{said}");
    let (until, said) = of(&[(1, 1.0), (2, 0.7)]);
    assert_eq!(until, Some(1));
    assert!(said.ends_with("no faster."), "{said}");
}

#[test]
fn what_grows_limits_and_repetitions_are_means() {
    let sync = SeriesCause::Synchronization;
    let runs = [
        run(1, 4.0, &[("loop", WORK, 4.0)]),
        run(2, 3.0, &[("loop", WORK, 4.5), ("critical", sync, 1.5)]),
        run(2, 5.0, &[("loop", WORK, 5.5), ("critical", sync, 4.5)]),
    ];
    let series = over_threads(&runs, Scaling::Strong).unwrap();
    check(&series);
    let last = &series.points[1];
    assert_eq!(
        (
            last.wall.runs,
            last.wall.mean_s,
            last.wall.min_s,
            last.wall.max_s
        ),
        (2, 4.0, 3.0, 5.0)
    );
    assert!((last.wall.deviation_s.unwrap() - 2f64.sqrt()).abs() < 1e-12);
    assert_eq!(last.efficiency, 0.5);
    let limit = series.limit.as_ref().unwrap();
    assert_eq!(limit.place, Some(place("critical")));
    assert_eq!((limit.cause, limit.seconds, limit.all_s), (sync, 3.0, 3.0));
    assert_eq!(
        (series.regions[0].lost_s, series.regions[0].mostly),
        (Some(4.0), Some(sync))
    );
    assert_eq!(series.pays_off_until, Some(1));
}

#[test]
fn work_may_grow_with_the_threads() {
    let runs = [1u32, 3].map(|n| run(n, 2.0, &[("loop", WORK, 2.0 * f64::from(n))]));
    let series = over_threads(&runs, Scaling::Weak).unwrap();
    check(&series);
    let last = &series.points[1];
    assert_eq!(
        (last.efficiency, last.speedup, last.work_per_thread_s),
        (1.0, 3.0, Some(2.0))
    );
    assert!(last.losses.is_empty() && series.limit.is_none_or(|l| l.seconds <= 0.0));
    let strong = over_threads(&runs, Scaling::Strong).unwrap();
    check(&strong);
    assert_eq!(strong.limit.unwrap().cause, WORK);
}

#[test]
fn what_is_no_series_is_refused() {
    assert_eq!(over_threads(&[], Scaling::Strong), Err(SeriesError::Empty));
    let one = run(2, 1.0, &[]);
    let of = |runs: &[Measured]| over_threads(runs, Scaling::Strong).unwrap_err();
    assert_eq!(of(&[one.clone(), one.clone()]), SeriesError::OneNumber(2));
    let simulated = Measured {
        is_simulated: true,
        ..run(1, 1.0, &[])
    };
    assert_eq!(
        of(&[one.clone(), simulated]),
        SeriesError::Simulated("run-1".to_owned())
    );
    let timeless = Measured {
        wall_s: None,
        ..run(1, 1.0, &[])
    };
    assert_eq!(
        of(&[one, timeless]),
        SeriesError::NoTime("run-1".to_owned())
    );
}
