//! A run's timeline against its tables.

use crate::run::timeline::{Kind, Step, Timeline};
use crate::run::{NONE, Run, RunFiles};
use ompfuse_format::Construct;
use ompfuse_progress::Progress;
use std::collections::BTreeMap;

/// Everything on record is there once, with its times and counts; spans are nested, and in the order of time.
pub(super) fn agree(files: &RunFiles<'_>, run: &Run) {
    let Ok(timeline) = Timeline::new(files, Progress::default()) else {
        return;
    };
    let mut sums: BTreeMap<(Construct, u32), [u64; 3]> = BTreeMap::new();
    let (mut labels, mut counts) = (vec![], vec![]);
    for (number, lane) in timeline.lanes().iter().enumerate() {
        let (mut open, mut now) = (vec![], i64::MIN);
        for step in timeline.steps(number) {
            let at = match &step {
                Step::Enter(span) => span.begin_ns,
                Step::Leave(_, at) => *at,
            };
            assert!(at >= now, "time goes back");
            now = at;
            let span = match step {
                Step::Enter(span) => span,
                Step::Leave(span, at) => {
                    assert!(at <= span.end_ns);
                    assert_eq!(open.pop(), Some((span.kind, span.node, span.begin_ns)));
                    continue;
                }
            };
            open.push((span.kind, span.node, span.begin_ns));
            let Some(own_ns) = span.own_ns else { continue };
            let sum = sums
                .entry((span.construct, span.site.unwrap_or(NONE)))
                .or_default();
            sum[0] += u64::from(span.kind != Kind::Exit);
            sum[1] += own_ns;
            timeline.counts(lane, &span, &mut counts);
            sum[2] += counts.first().copied().flatten().unwrap_or(0);
            if span.is_unit()
                && let Some(label) = timeline.label(lane, &span, 100)
            {
                labels.push(label.to_string());
            }
        }
        assert!(open.is_empty(), "something is left open");
    }
    let mut expected: BTreeMap<(Construct, u32), [u64; 3]> = BTreeMap::new();
    let rows = &run.intervals;
    for row in 0..rows.len() {
        let key = (rows.construct[row], rows.site[row]);
        let sum = expected.entry(key).or_default();
        sum[0] += 1;
        sum[1] += rows.own_ns[row];
        sum[2] += rows.events.first().and_then(|e| e.get(row)).unwrap_or(0);
    }
    let mut in_parts = false;
    for row in 0..run.xus.len() {
        let construct = run.xus.construct[row].unwrap_or(Construct::Program);
        let sum = expected.entry((construct, run.xus.site[row])).or_default();
        sum[0] += u64::from(run.xus.parts[row]);
        sum[1] += run.xus.own_ns[row];
        let event = run.xus.events.first();
        sum[2] += event.and_then(|e| e.get(row)).unwrap_or(0);
        in_parts |= run.xus.parts[row] > 1;
    }
    for (key, [number, own, count]) in &expected {
        let found = sums.get(key).copied().unwrap_or_default();
        assert_eq!(found[0], *number, "{key:?}");
        let is_near = found[1].abs_diff(*own) <= number / 2 + 1;
        assert!(is_near, "{key:?}: {} ns, expected {own}", found[1]);
        // A part's count is known where the unit's isn't.
        assert!(
            found[2] == *count || in_parts,
            "{key:?}: count {}",
            found[2]
        );
    }
    assert_eq!(sums.len(), expected.len());
    labels.sort_unstable();
    labels.dedup();
    let of_run = (0..run.xus.len()).filter_map(|row| run.xus.label_text(row, 100));
    let mut of_run: Vec<String> = of_run.collect();
    of_run.sort_unstable();
    of_run.dedup();
    assert_eq!(labels, of_run);
}

/// Reads damaged files.
pub(super) fn read_all(files: &RunFiles<'_>) {
    if let Ok(timeline) = Timeline::new(files, Progress::default()) {
        let mut counts = vec![];
        for (number, lane) in timeline.lanes().iter().enumerate() {
            let mut depth = 0u32;
            for step in timeline.steps(number) {
                match step {
                    Step::Enter(span) => {
                        depth += 1;
                        timeline.counts(lane, &span, &mut counts);
                        timeline.label(lane, &span, 100);
                        timeline.region_of(lane, &span);
                    }
                    Step::Leave(..) => depth -= 1,
                }
            }
            assert_eq!(depth, 0);
        }
    }
}
