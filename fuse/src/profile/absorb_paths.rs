//! A summary's paths take over another one's counts.

use crate::summary::{PathKind, Summary};
use crate::table::Site;
use std::collections::HashMap;

/// A process and one of its threads, by their numbers.
type Thread = (Option<u32>, u32);

impl Summary {
    /// Takes over counts by path and thread. `new`: of each event, its places in the other summary and in this one. What the other one's
    /// threads have executed and this one's have not has no place here: then nothing is known of the event on that path.
    pub(super) fn absorb_paths(&mut self, other: &Summary, new: &[(usize, usize)]) {
        let len = self.events.len();
        let kinds = |summary: &mut Summary| {
            for kind in summary.paths.iter_mut().flat_map(|p| &mut p.kinds) {
                if !kind.counts.is_empty() || !new.is_empty() {
                    kind.counts.resize(len, vec![]);
                }
            }
        };
        kinds(self);
        if new.is_empty() || self.paths.is_empty() {
            return;
        }
        let ours = self.threads_by_row();
        let theirs = other.threads_by_row();
        let at: HashMap<Thread, usize> = theirs
            .iter()
            .enumerate()
            .map(|(at, &thread)| (thread, at))
            .collect();
        let same_path = other.found_in(self);
        for (path, stat) in self.paths.iter_mut().enumerate() {
            let Some(their) = same_path.get(&(path as u32)) else {
                continue;
            };
            let their = &other.paths[*their as usize];
            for kind in &mut stat.kinds {
                let of_kind = their.kinds.iter().find(|k| k.construct == kind.construct);
                let Some(of_kind) = of_kind else { continue };
                let rows: HashMap<usize, usize> = (of_kind.threads.thread.iter())
                    .enumerate()
                    .map(|(row, &thread)| (thread as usize, row))
                    .collect();
                let row_of = |thread: &u32| -> Option<usize> {
                    let thread = ours.get(*thread as usize)?;
                    rows.get(at.get(thread)?).copied()
                };
                let same: Vec<Option<usize>> = kind.threads.thread.iter().map(row_of).collect();
                if same.iter().flatten().count() < rows.len() {
                    continue;
                }
                for &(from, to) in new {
                    kind.counts[to] = counts(of_kind, from, &same);
                }
            }
        }
        for kind in self.paths.iter_mut().flat_map(|p| &mut p.kinds) {
            if kind.counts.iter().all(Vec::is_empty) {
                kind.counts.clear();
            }
        }
    }

    /// What tells the threads apart in every run.
    fn threads_by_row(&self) -> Vec<Thread> {
        let ordinal = |process: u16| Some(self.processes.get(usize::from(process))?.ordinal);
        let accounts = self.accounts.iter();
        accounts.map(|a| (ordinal(a.process), a.index)).collect()
    }

    /// By path of another summary the same path of this one.
    fn found_in(&self, other: &Summary) -> HashMap<u32, u32> {
        type Step<'a> = (Option<u32>, Option<(&'a str, &'a str)>, u32);
        fn place(sites: &[Site], site: Option<u32>) -> Option<(&str, &str)> {
            Some(sites.get(site? as usize)?.key())
        }
        let theirs: HashMap<Step<'_>, u32> = (0..)
            .zip(&other.paths)
            .map(|(at, p)| ((p.parent, place(&other.sites, p.site), p.context), at))
            .collect();
        let contexts = other.contexts.numbers_of(&self.contexts);
        let context = |number: u32| match number {
            0 => Some(0),
            number => (contexts.get(number as usize - 1).copied()).filter(|&n| n != 0),
        };
        let mut found: Vec<Option<u32>> = vec![];
        for path in &self.paths {
            let parent = match path.parent {
                None => Some(None),
                Some(parent) => found[parent as usize].map(Some),
            };
            let step = parent
                .zip(context(path.context))
                .map(|(parent, context)| (parent, place(&self.sites, path.site), context));
            found.push(step.and_then(|step| theirs.get(&step).copied()));
        }
        let found = (0..).zip(found);
        found
            .filter_map(|(ours, theirs)| Some((theirs?, ours)))
            .collect()
    }
}

/// The counts of an event by row. A thread without a row has counted nothing.
fn counts(kind: &PathKind, event: usize, rows: &[Option<usize>]) -> Vec<Option<u64>> {
    let Some(counts) = kind.counts.get(event).filter(|c| !c.is_empty()) else {
        return vec![];
    };
    let count = |row: &Option<usize>| row.map_or(Some(0), |row| counts.get(row).copied().flatten());
    rows.iter().map(count).collect()
}
