//! Series of made-up runs, whose numbers are known.

use super::cells::Measured;
use super::{SeriesError, over_threads};
use crate::testing::{place, run};
use ompfuse_account::model::Class;
use ompfuse_account::model::series::{Scaling, Series, SeriesCause, SeriesNote, Stack};

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
