//! Rows of a table, in another order.

use super::{EventColumn, XuTable};
use rayon::prelude::*;
use std::sync::Arc;

impl EventColumn {
    /// The column with the rows at `rows`, in their order.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> EventColumn {
        EventColumn {
            name: self.name.clone(),
            values: gather(&self.values, rows),
            present: self.present.as_ref().map(|p| gather(p, rows)),
        }
    }

    /// As [`EventColumn::gather`] of each, in their own memory.
    pub(crate) fn regather(columns: &mut [EventColumn], rows: &[u32]) {
        EventColumn::for_chunks(columns, |values, present| {
            regather(values, rows);
            regather(present, rows);
        });
    }

    /// The same, with rows that aren't there: those have no count. Columns without gaps get no mark of it, since whoever asks leaves
    /// these rows out in the end.
    pub(crate) fn scatter(columns: &mut [EventColumn], rows: &[u32]) {
        EventColumn::for_chunks(columns, |values, present| {
            let at = |column: &Vec<u64>, row: u32| column.get(row as usize).copied();
            refill(values, rows, |column, row| at(column, row).unwrap_or(0));
            refill(present, rows, |column, row| {
                column.get(row as usize).copied().unwrap_or(false)
            });
        });
    }

    /// Several threads at once, each with some of the columns.
    fn for_chunks(
        columns: &mut [EventColumn],
        refill: impl Fn(&mut [&mut Vec<u64>], &mut [&mut Vec<bool>]) + Sync,
    ) {
        let at_once = columns.len().div_ceil(rayon::current_num_threads()).max(1);
        columns.par_chunks_mut(at_once).for_each(|columns| {
            let columns = columns.iter_mut();
            let (mut values, present): (Vec<_>, Vec<_>) =
                columns.map(|c| (&mut c.values, &mut c.present)).unzip();
            let mut present: Vec<_> = present.into_iter().filter_map(Option::as_mut).collect();
            refill(&mut values, &mut present);
        });
    }
}

impl XuTable {
    /// The table with the rows at `rows`, in their order; it shares labels and sites with this one.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> XuTable {
        XuTable {
            labels: Arc::clone(&self.labels),
            sites: Arc::clone(&self.sites),
            processes: self.processes.clone(),
            label: gather(&self.label, rows),
            site: gather(&self.site, rows),
            construct: gather(&self.construct, rows),
            process: gather(&self.process, rows),
            thread: gather(&self.thread, rows),
            cpu: gather(&self.cpu, rows),
            first: gather(&self.first, rows),
            iterations: gather(&self.iterations, rows),
            t0_ns: gather(&self.t0_ns, rows),
            t1_ns: gather(&self.t1_ns, rows),
            own_ns: gather(&self.own_ns, rows),
            parts: gather(&self.parts, rows),
            disturbed: gather(&self.disturbed, rows),
            confidence: self.confidence.as_ref().map(|c| gather(c, rows)),
            events: self.events.par_iter().map(|e| e.gather(rows)).collect(),
        }
    }

    /// As [`XuTable::gather`], of a table that nobody needs any more. Its own columns are used in place of new ones, column after column,
    /// since memory that the kernel hands out anew takes longer than what is done with it.
    pub(crate) fn into_gathered(mut self, rows: &[u32]) -> XuTable {
        regather(&mut [&mut self.label], rows);
        regather(
            &mut [&mut self.site, &mut self.thread, &mut self.parts],
            rows,
        );
        regather(&mut [&mut self.construct], rows);
        regather(&mut [&mut self.disturbed], rows);
        regather(&mut [&mut self.process, &mut self.cpu], rows);
        regather(
            &mut [&mut self.first, &mut self.t0_ns, &mut self.t1_ns],
            rows,
        );
        regather(&mut [&mut self.iterations, &mut self.own_ns], rows);
        regather(&mut self.confidence.iter_mut().collect::<Vec<_>>(), rows);
        EventColumn::regather(&mut self.events, rows);
        self
    }
}

/// The elements at `rows` in place of each column's own.
pub(crate) fn regather<T: Copy>(columns: &mut [&mut Vec<T>], rows: &[u32]) {
    refill(columns, rows, |column, row| column[row as usize]);
}

/// Makes columns anew, each where the one before was.
fn refill<T>(columns: &mut [&mut Vec<T>], rows: &[u32], at: impl Fn(&Vec<T>, u32) -> T) {
    let mut spare = Vec::new();
    for column in columns {
        spare.clear();
        spare.extend(rows.iter().map(|&row| at(column, row)));
        std::mem::swap(*column, &mut spare);
    }
}

/// The elements at `rows`.
pub(crate) fn gather<T: Copy + Send + Sync>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| column[row as usize]).collect()
}
