//! How long a region's units took, and the longest of them.

use super::super::bars::bar;
use super::super::{TextOptions, laid_out, titled};
use crate::units::{Histogram, Unit, Units};
use crate::view::html::rows::Row;
use crate::view::table::Column;
use crate::words::distribution::{about, unit as unit_of_sums};
use ompfuse_account::units::{count, seconds};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

/// Width of the bars.
const BAR: usize = 30;
/// Rows of a histogram.
const ROWS: usize = 16;
/// Characters of a label that are kept where lines are short.
const LABEL: usize = 12;

/// The section; where only sums are known the percentiles.
pub(super) fn histogram(row: &Row<'_>, options: TextOptions) -> Option<String> {
    let Some(units) = row.units.as_ref().filter(|u| u.histogram.count() > 1) else {
        let of = row.region.distribution.as_ref()?;
        let most = row.region.xu_max_s;
        let [p50, p90, p99] =
            [of.time_s.p50, of.time_s.p90, of.time_s.p99].map(|p| about(&p, most));
        return Some(format!(
            "own times of units: p50 {p50}, p90 {p90}, p99 {p99}\n"
        ));
    };
    let groups = groups(&units.histogram);
    let most = groups.iter().map(|g| g.2).max()?;
    let row = |&(from, to, n): &(u64, u64, u64)| {
        let s = |ns: u64| seconds(ns as f64 * 1e-9);
        let range = format!("{} to {}", s(from), s(to));
        vec![range, count(n), bar(n as f64 / most as f64, 0.0, BAR)]
    };
    let columns = [
        Column::right("own time"),
        Column::right("XUs"),
        Column::left("").leaves(1),
    ];
    let text = titled("Units by own time", "all threads", options);
    Some(text + &laid_out(&columns, groups.iter().map(row).collect(), options))
}

/// The buckets in few groups of powers of two: least, the one behind the largest, how many.
fn groups(histogram: &Histogram) -> Vec<(u64, u64, u64)> {
    let power = |from: u64| from.max(1).ilog2();
    let mut step = 1;
    loop {
        let mut groups: BTreeMap<u32, u64> = BTreeMap::new();
        for (from, _, n) in histogram.buckets() {
            *groups.entry(power(from) / step).or_default() += n;
        }
        if groups.len() <= ROWS {
            let edge = |group: u32| match group {
                0 => 0,
                _ => 1u64.checked_shl(group * step).unwrap_or(u64::MAX),
            };
            let groups = groups.into_iter();
            return groups.map(|(g, n)| (edge(g), edge(g + 1), n)).collect();
        }
        step += 1;
    }
}

/// The longest units, with their labels and counts.
pub(super) fn longest(
    row: &Row<'_>,
    units: Option<&Units>,
    options: TextOptions,
) -> Option<String> {
    let title = titled("Longest units", "by own time", options);
    let Some(of) = &row.units else {
        let of = row.region.distribution.as_ref()?;
        let rows = of.largest.iter();
        let rows = rows.map(|u| vec![seconds(u.time_s), unit_of_sums(u), u.path.clone()]);
        let columns = [
            Column::right("own time"),
            Column::left("unit"),
            Column::left("path").leaves(1),
        ];
        return Some(title + &laid_out(&columns, rows.collect(), options));
    };
    let events: &[String] = units.map_or(&[], |u| &u.events);
    let cells = |u: &&Unit| {
        let thread = match u.rank {
            Some(rank) => format!("{rank}:{}", u.thread),
            None => u.thread.to_string(),
        };
        let label = u.label.clone().unwrap_or_default();
        let mut cells = vec![seconds(u.own_ns as f64 * 1e-9), what(u), thread, label];
        let counts = (0..events.len()).map(|at| u.counts.get(at).copied().flatten());
        cells.extend(counts.map(|n| n.map_or_else(String::new, count)));
        cells
    };
    let mut columns = vec![
        Column::right("own time"),
        Column::left("unit"),
        Column::right("thread"),
        Column::left("label").keeps_end(LABEL),
    ];
    let ranks = (1..=u8::MAX).chain(std::iter::repeat(u8::MAX));
    columns.extend(
        events
            .iter()
            .zip(ranks)
            .map(|(e, rank)| Column::right(e).leaves(rank)),
    );
    let rows = of.longest().iter().map(cells).collect();
    Some(title + &laid_out(&columns, rows, options))
}

fn what(unit: &Unit) -> String {
    let behind = unit.iterations.saturating_sub(1);
    match unit.kind {
        Some(Construct::Range) if unit.iterations > 1 => {
            let last = unit.first.saturating_add_unsigned(behind);
            format!("iterations {}..{last}", unit.first)
        }
        Some(Construct::Range) => format!("iteration {}", unit.first),
        Some(Construct::Section) => format!("section {}", unit.first),
        Some(Construct::Task) => format!("task {}", unit.first),
        _ => String::new(),
    }
}
