//! Sums over time of made-up intervals.

use super::*;

const RANGE: (u32, Construct, Option<u32>) = (7, Construct::Range, None);
const PROGRAM: (u32, Construct, Option<u32>) = (0, Construct::Program, Some(0));

fn row(grower: &Grower, key: (u32, Construct, Option<u32>)) -> Vec<u64> {
    let mut found = grower.own().filter(|(k, _)| *k == key);
    found
        .next()
        .map(|(_, row)| row.to_vec())
        .unwrap_or_default()
}

#[test]
fn own_time_is_where_nothing_else_was() {
    let mut grower = Grower::new(Some(100), 1);
    grower.interval(0, RANGE, (50, 150), (100, None));
    grower.interval(0, RANGE, (300, 400), (100, None));
    // From 0 to 500 it had itself 50 at the begin, then from 150 to 300, and 100 at the end.
    grower.interval(0, PROGRAM, (0, 500), (300, None));
    assert_eq!(row(&grower, RANGE), [50, 50, 0, 100]);
    assert_eq!(row(&grower, PROGRAM), [50, 50, 100, 0, 100]);
    assert_eq!(grower.edges(500), [0, 100, 200, 300, 400, 500]);
}

#[test]
fn what_can_not_be_placed_is_spread_evenly_and_nothing_is_lost() {
    let mut grower = Grower::new(Some(10), 1);
    // Something as long as all of it was executed inside, and still it says that it had own time.
    grower.interval(0, RANGE, (0, 30), (30, None));
    grower.interval(0, PROGRAM, (0, 30), (7, None));
    let spread = row(&grower, PROGRAM);
    assert_eq!((spread.len(), spread.iter().sum::<u64>()), (3, 7));
    assert!(spread.iter().all(|&ns| ns == 2 || ns == 3), "{spread:?}");
    // Without length.
    grower.interval(0, RANGE, (25, 25), (1, None));
    assert_eq!(row(&grower, RANGE), [10, 10, 11]);
}

#[test]
fn a_long_run_needs_no_more_memory() {
    let mut grower = Grower::new(Some(1), 2);
    let (mut sums, mut most) = ([0u64; 2], 0);
    let executions = 300_000i64;
    for n in 0..executions {
        for thread in 0..2 {
            let begin = 1000 * n + 100 * thread as i64;
            grower.interval(thread, RANGE, (begin, begin + 700), (650, None));
            sums[0] += 650;
        }
        let around = Around {
            site: 7,
            kind: AroundKind::Imbalance,
            span: (1000 * n + 700, 1000 * n + 800),
            ns: 90,
        };
        grower.around(around);
        sums[1] += 90;
        most = most.max(grower.kept());
    }
    assert!(most < 2 * (4096 + 2 * MOST), "{most}");
    assert_eq!(
        grower.own().next().map(|(_, row)| row.iter().sum()),
        Some(sums[0])
    );
    assert_eq!(
        grower.arounds().next().map(|(_, row)| row.iter().sum()),
        Some(sums[1])
    );
    let edges = grower.edges(1000 * executions);
    assert!(
        (MOST / 2..=MOST + 1).contains(&edges.len()),
        "{}",
        edges.len()
    );
    assert_eq!(grower.each(), 1 << grower.folded);
    // Each of them has its share: threads were equally busy all the time.
    let (_, row) = grower.own().next().unwrap();
    let mean = sums[0] as f64 / (1000 * executions) as f64 * grower.each() as f64;
    let whole = &row[..row.len() - 1];
    assert!(
        whole
            .iter()
            .all(|&ns| (ns as f64 / mean - 1.0).abs() < 0.01),
        "{row:?}"
    );
}

#[test]
fn executions_of_a_region_end_intervals() {
    let mut grower = Grower::new(None, 1);
    let executions = 1000;
    for n in 0..executions {
        let begin = 10 * n;
        grower.interval(0, RANGE, (begin, begin + 8), (8, None));
        grower.instance(begin + 8);
    }
    assert_eq!(grower.instances(), Some(1000));
    let each = grower.each() as usize;
    assert_eq!(each, 8);
    let counts = row(&grower, RANGE);
    assert_eq!(counts.iter().sum::<u64>(), 8000);
    let full = counts.iter().filter(|&&ns| ns == 8 * each as u64).count();
    assert!(full >= counts.len() - 1, "{counts:?}");
    assert_eq!(grower.edges(9998)[..3], [0, 78, 158]);
}

#[test]
fn processes_become_one() {
    let mut long = Grower::new(Some(1), 1);
    long.interval(0, RANGE, (0, 1000), (1000, None));
    let mut short = Grower::new(Some(1), 1);
    short.interval(0, RANGE, (0, 4), (4, None));
    short.align(&mut long);
    assert_eq!((short.each(), long.each()), (8, 8));
    assert_eq!(row(&short, RANGE), [4]);
}

/// What is executed in a critical section is work of what is around it, also where it takes longer than an interval.
#[test]
fn the_inside_of_a_critical_section_is_what_is_around_it() {
    const CRITICAL: (u32, Construct, Option<u32>) = (3, Construct::Critical, None);
    let mut grower = Grower::new(Some(100), 1);
    grower.interval(0, CRITICAL, (0, 300), (40, Some(30)));
    grower.interval(0, PROGRAM, (0, 400), (360, None));
    let all = |key: (u32, Construct, Option<u32>)| {
        let found = grower.own().find(|(k, _)| *k == key);
        found.map(|(_, row)| row.to_vec()).expect("it was met")
    };
    assert_eq!(all(CRITICAL), [30, 0, 10]);
    assert_eq!(all(PROGRAM), [70, 100, 90, 100]);
}
