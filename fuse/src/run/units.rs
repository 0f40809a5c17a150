//! Rows of execution units under construction.

use super::clock::Clock;
use crate::label::LabelId;
use crate::table::{EventColumn, XuTable};
use ompfuse_format::Construct;
use ompfuse_format::record::Interval;

/// A table of execution units, some of which may get further parts.
#[derive(Debug)]
pub(super) struct Units {
    pub(super) xus: XuTable,
    /// Exclusive ticks of the last rows; nanoseconds are made of the sum over a unit's parts ([`Units::finish`]).
    ticks: Vec<u64>,
}

/// What a unit's interval doesn't say itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose {
    pub(super) label: LabelId,
    /// Position in the run's sites.
    pub(super) site: u32,
    pub(super) process: u16,
    pub(super) thread: u32,
    /// As [`XuTable::disturbed`], of this part.
    pub(super) disturbed: Option<bool>,
}

/// Empty columns with these names, with room for so many rows.
pub(super) fn event_columns(names: &[String], rows: usize) -> Vec<EventColumn> {
    let column = |name: &String| EventColumn {
        name: name.clone(),
        values: Vec::with_capacity(rows),
        present: None,
    };
    names.iter().map(column).collect()
}

impl Units {
    /// With room for so many.
    pub(super) fn new(events: &[String], rows: usize) -> Units {
        let mut units = Units {
            xus: XuTable {
                events: event_columns(events, rows),
                ..XuTable::default()
            },
            ticks: Vec::with_capacity(rows),
        };
        units.xus.reserve(rows);
        units
    }

    /// A unit's first part. Returns its row.
    pub(super) fn push(
        &mut self,
        clock: &Clock,
        whose: Whose,
        i: &Interval<'_>,
        values: impl Iterator<Item = Option<u64>>,
    ) -> usize {
        let xus = &mut self.xus;
        let row = xus.label.len();
        xus.label.push(whose.label);
        xus.site.push(whose.site);
        xus.construct.push(Some(i.construct));
        xus.process.push(whose.process);
        xus.thread.push(whose.thread);
        xus.cpu.push(i.cpu);
        xus.first.push(i.index);
        // A task has iterations if a taskloop made it.
        let iterates = matches!(i.construct, Construct::Range | Construct::Task);
        xus.iterations.push(if iterates { i.extent } else { 0 });
        xus.t0_ns.push(clock.at(i.t0));
        xus.t1_ns.push(clock.at(i.t1));
        xus.parts.push(1);
        xus.disturbed.push(whose.disturbed);
        for (column, value) in xus.events.iter_mut().zip(values) {
            column.push(row, value);
        }
        self.ticks.push(i.own_ticks);
        row
    }

    /// A further part of one of the last rows.
    pub(super) fn merge(
        &mut self,
        row: usize,
        clock: &Clock,
        whose: Whose,
        i: &Interval<'_>,
        values: impl Iterator<Item = Option<u64>>,
    ) {
        let (t0, t1) = (clock.at(i.t0), clock.at(i.t1));
        let xus = &mut self.xus;
        if t0 < xus.t0_ns[row] {
            (xus.t0_ns[row], xus.thread[row], xus.cpu[row]) = (t0, whose.thread, i.cpu);
        }
        xus.t1_ns[row] = xus.t1_ns[row].max(t1);
        let ticks = &mut self.ticks[row - xus.own_ns.len()];
        *ticks = ticks.wrapping_add(i.own_ticks);
        xus.parts[row] += 1;
        let known = &mut xus.disturbed[row];
        *known = match (*known, whose.disturbed) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (known, part) => known.and(part),
        };
        for (column, value) in xus.events.iter_mut().zip(values) {
            column.add(row, value);
        }
    }

    /// Ticks of the rows since the last time become nanoseconds: nothing of that process comes any more.
    pub(super) fn finish(&mut self, clock: &Clock) {
        let lengths = self.ticks.drain(..).map(|ticks| clock.length(ticks));
        self.xus.own_ns.extend(lengths);
    }
}
