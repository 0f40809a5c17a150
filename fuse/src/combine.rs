//! Combination strategies: several runs' XUs become one table with every event ([XU] section 5, [Fuse] section 3).
//!
//! Nothing is averaged or interpolated: each count was observed in one run, and an event that several runs hold comes
//! from the first of them. What can't be matched is listed with the reason.

mod bc;
mod ctc;
mod defaults;
mod index;
mod joint;
mod recurrence;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use bc::combine_bc_watched;
pub use bc::{BcError, CellOrder, Relax, combine_bc};
pub use ctc::combine_ctc;
pub use defaults::{Arrangement, arrangement, brought_to_front, combine_default};
pub use joint::{JointJoin, combine_joint};

use crate::label::{HashIsKey, LabelId};
use crate::table::{EventColumn, Site, XuTable, gather, regather};
use index::{AMBIGUOUS, Index};
use ompfuse_format::Construct;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use tally::Tally;
pub(crate) use tally::list as list_unmatched;

/// Name of the strategy that puts one run's event sets together, on the command line and in profiles (`profile/instances.rs`).
pub const INSTANCES: &str = "instances";

const NONE: u32 = u32::MAX;

/// Several runs' XUs, combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// The combined XUs: everything but the counts is the first run's.
    pub table: XuTable,
    /// For each event column the run (from 0) that its counts come from.
    pub origins: Vec<u16>,
    /// Per run, for each combined XU the row in that run's table.
    pub sources: Vec<Vec<u32>>,
    /// Per event column the row in its run's table, for each combined XU; `None` where `sources` says so for all of a run.
    pub column_sources: Option<Vec<Vec<u32>>>,
    /// XUs that are not in the table, by run, type and reason.
    pub unmatched: Vec<Unmatched>,
}

/// XUs of one run and one type that were left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// The run whose XUs they are, from 0.
    pub run: u16,
    /// Their type.
    pub site: Site,
    /// Kind of XU.
    pub construct: Option<Construct>,
    /// Why.
    pub reason: Reason,
    /// How many.
    pub count: u64,
    /// The label of one of them.
    pub example: Option<String>,
}

impl Unmatched {
    /// The same with the runs' numbers changed.
    pub(crate) fn of_runs(self, number: impl Fn(u16) -> u16) -> Unmatched {
        Unmatched {
            run: number(self.run),
            reason: self.reason.with_runs(number),
            ..self
        }
    }
}

/// Why an XU could not be matched. Runs count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// No XU of that run has its label: the ranges of a schedule depend on timing (guided), or the program does not do
    /// the same each time.
    Absent {
        /// The run that does not have it.
        run: u16,
    },
    /// Several XUs of that run have its label (several threads of the program use OpenMP, or several processes).
    Ambiguous {
        /// The run where it is ambiguous.
        run: u16,
    },
    /// It has no label: its chain of parents is broken.
    Unlabelled,
    /// That run has fewer XUs of this type.
    Surplus {
        /// The run with the fewest.
        run: u16,
    },
    /// An event that it is matched by, or that it was to give, was not counted for it.
    Uncounted,
}

impl Reason {
    /// The same with the runs' numbers changed.
    #[must_use]
    pub fn with_runs(self, number: impl Fn(u16) -> u16) -> Reason {
        match self {
            Reason::Absent { run } => Reason::Absent { run: number(run) },
            Reason::Ambiguous { run } => Reason::Ambiguous { run: number(run) },
            Reason::Unlabelled | Reason::Uncounted => self,
            Reason::Surplus { run } => Reason::Surplus { run: number(run) },
        }
    }
}

/// Joins runs by label (LGL, [Fuse] algorithms 1 and 2): an XU of the result has a counterpart of the same label in every
/// run, the result is in depth-first order of the labels. Takes one run after the other, so that not all need to be in
/// memory together.
#[derive(Debug)]
pub struct LglJoin {
    first: XuTable,
    /// Rows of the first run by key.
    index: Index,
    /// What became of each row of the first run.
    fate: Vec<Option<Reason>>,
    /// Columns that later runs brought, with one row per row of the first run.
    added: Vec<(EventColumn, u16)>,
    /// Per later run the row for each row of the first.
    sources: Vec<Vec<u32>>,
    /// The least of all runs, for each row of the first.
    confidence: Vec<f32>,
    tally: Tally,
    /// XUs of later runs whose counterpart in the first was given up: by the first run's sites.
    given_up: Tally,
}

impl LglJoin {
    /// Starts with the first run.
    pub fn new(first: XuTable) -> LglJoin {
        let (index, repeated) = Index::new(first.len(), |row| first.key(row));
        let reason = |id: &LabelId| (!id.is_some()).then_some(Reason::Unlabelled);
        let mut fate: Vec<Option<Reason>> = first.label.iter().map(reason).collect();
        for row in repeated {
            fate[row as usize] = Some(Reason::Ambiguous { run: 0 });
        }
        LglJoin {
            confidence: stated(&first),
            first,
            index,
            fate,
            added: vec![],
            sources: vec![],
            tally: Tally::default(),
            given_up: Tally::default(),
        }
    }

    /// Joins the next run.
    pub fn add(&mut self, mut table: XuTable) {
        let events = std::mem::take(&mut table.events);
        self.join(&table, events);
    }

    /// Whether no run so far has counted this event.
    fn is_new(&self, event: &EventColumn) -> bool {
        let added = self.added.iter().map(|(column, _)| column);
        !self
            .first
            .events
            .iter()
            .chain(added)
            .any(|e| e.name == event.name)
    }

    /// Joins a run of which the events stand beside the table.
    fn join(&mut self, table: &XuTable, mut events: Vec<EventColumn>) {
        let run = (self.sources.len() + 1) as u16;
        let known = |row: usize| {
            let fate = self.fate.get(row)?;
            (*fate != Some(Reason::Ambiguous { run: 0 })).then(|| self.first.key(row))?
        };
        let targets = self.index.find(table.len(), |row| table.key(row), known);
        let mut source = vec![NONE; self.first.len()];
        let mut repeated = vec![];
        for (row, &target) in targets.iter().enumerate() {
            let reason = match target {
                NONE if !table.label[row].is_some() => Reason::Unlabelled,
                NONE => Reason::Absent { run: 0 },
                AMBIGUOUS => Reason::Ambiguous { run: 0 },
                _ => {
                    let source = &mut source[target as usize];
                    if *source == NONE {
                        *source = row as u32;
                    } else {
                        repeated.push((row, target));
                    }
                    continue;
                }
            };
            self.tally.add(run, table, row, reason);
        }
        let ambiguous = Reason::Ambiguous { run };
        for (row, target) in repeated {
            let source = &mut source[target as usize];
            if *source != NONE {
                self.tally.add(run, table, *source as usize, ambiguous);
                *source = NONE;
            }
            self.tally.add(run, table, row, ambiguous);
            self.fate[target as usize].get_or_insert(ambiguous);
        }
        let absent = Reason::Absent { run };
        for (fate, &source) in self.fate.iter_mut().zip(&source) {
            if source == NONE {
                fate.get_or_insert(absent);
            }
        }
        events.retain(|event| self.is_new(event));
        EventColumn::scatter(&mut events, &source);
        if !events.is_empty() {
            let found = recurrence::of_matches(&self.first, table, &source);
            let both = self.confidence.iter_mut().zip(found);
            both.for_each(|(known, found)| *known = known.min(found));
        }
        self.added
            .extend(events.into_iter().map(|column| (column, run)));
        self.sources.push(source);
    }

    /// The result.
    pub fn finish(mut self) -> Combined {
        for (row, fate) in self.fate.iter().enumerate() {
            let Some(reason) = *fate else { continue };
            self.tally.add(0, &self.first, row, reason);
            for (run, source) in (1..).zip(&self.sources) {
                if source[row] != NONE {
                    self.given_up.add(run, &self.first, row, reason);
                }
            }
        }
        let kept: Vec<u32> = (0..self.fate.len() as u32)
            .filter(|&row| self.fate[row as usize].is_none())
            .collect();
        let labels: Vec<LabelId> = gather(&self.first.label, &kept);
        let rows = gather(&kept, &self.first.labels.depth_first(&labels));
        let mut table = self.first.into_gathered(&rows);
        table.confidence = Some(percent(&gather(&self.confidence, &rows)));
        let mut origins = vec![0; table.events.len()];
        origins.extend(self.added.iter().map(|(_, run)| *run));
        let mut added: Vec<_> = self.added.into_iter().map(|(column, _)| column).collect();
        EventColumn::regather(&mut added, &rows);
        table.events.extend(added);
        let mut sources = self.sources;
        regather(&mut sources.iter_mut().collect::<Vec<_>>(), &rows);
        sources.insert(0, rows);
        let unmatched = Tally::list([self.tally, self.given_up]);
        Combined {
            table,
            origins,
            sources,
            column_sources: None,
            unmatched,
        }
    }
}

/// Combines runs by label; see [`LglJoin`]. Without runs the result is empty.
pub fn combine_lgl(runs: &[&XuTable]) -> Combined {
    let mut runs = runs.iter();
    let mut join = LglJoin::new(
        runs.next()
            .map_or_else(XuTable::default, |&first| first.clone()),
    );
    for &table in runs {
        let new = table.events.iter().filter(|event| join.is_new(event));
        let new = new.cloned().collect();
        join.join(table, new);
    }
    join.finish()
}

/// How sure the counts of a first input are that may be several runs combined.
fn stated(first: &XuTable) -> Vec<f32> {
    match &first.confidence {
        Some(percent) => percent.iter().map(|&p| f32::from(p) / 100.0).collect(),
        None => vec![1.0; first.len()],
    }
}

/// As tables have it.
fn percent(confidence: &[f32]) -> Vec<u8> {
    confidence
        .iter()
        .map(|c| (c * 100.0).round() as u8)
        .collect()
}

fn keys(table: &XuTable) -> Vec<Option<u128>> {
    (0..table.len())
        .into_par_iter()
        .with_min_len(4096)
        .map(|row| table.key(row))
        .collect()
}

/// The row of each label, by its key ([`XuTable::key`]); `None` for those that several rows have.
pub fn rows_by_key(table: &XuTable) -> HashMap<u128, Option<usize>, HashIsKey> {
    let mut rows: HashMap<u128, Option<usize>, HashIsKey> = HashMap::default();
    for row in 0..table.len() {
        if let Some(key) = table.key(row) {
            rows.entry(key)
                .and_modify(|r| *r = None)
                .or_insert(Some(row));
        }
    }
    rows
}
