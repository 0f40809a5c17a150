//! A profile: the XUs with their counts, and the summary. One run's, a foreign table's, or several combined.

mod absorb;
mod absorb_paths;
pub mod by_type;
mod combiner;
mod instances;
mod parquet;
#[cfg(test)]
mod tests;

use crate::combine::Relax;
use crate::label::LabelId;
use crate::run::{Run, RunFiles};
use crate::summary::Summary;
use crate::table::{COUNT, ROW, XuTable, gather};
use ompfuse_progress::Progress;

pub use self::combiner::Combiner;
pub use self::instances::combine_instances;
pub use self::parquet::{LABEL_LIMIT, ProfileError, ProfileReader, ProfileWriter};

/// XUs with their counts, and everything else that is known of the execution. Rows are in depth-first order of labels once runs
/// have been combined by label, and in the Parquet file. Its row groups are in this order each, and have different types if runs
/// were combined. Before that rows are in the order of recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The XUs.
    pub xus: XuTable,
    /// For each event column of `xus` the run (from 0, in [`Summary::runs`]) that its counts come from.
    pub origins: Vec<u16>,
    /// For each event column the row, in its input, of the XU that the counts come from: where they need not come from the XU with
    /// this row's label (see [`Combiner::with_sources`]).
    pub sources: Option<Vec<Vec<u32>>>,
    /// Program, regions, runs.
    pub summary: Summary,
}

/// How many units of a run, at most, can be made a piece of a profile in so many bytes.
pub fn piece_rows(summary: &Summary, memory: u64) -> usize {
    let columns = summary.events.iter().filter(|e| e.run.is_some()).count() as u64;
    let row = ROW + COUNT * columns;
    (memory / row).clamp(FEW_ROWS, MOST_ROWS) as usize
}

/// Rows of a piece, so that its columns are worth their beginnings; and so that more wouldn't make it faster.
const FEW_ROWS: u64 = 1 << 10;
const MOST_ROWS: u64 = 1 << 20;

/// How runs are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// By label.
    #[default]
    Lgl,
    /// By label and behaviour together.
    Joint,
    /// By type and time.
    Ctc,
    /// By behaviour and label, in a chain of runs that share events.
    Bc(Relax),
    /// By behaviour alone.
    BcUnlabelled {
        /// From a grid to the next one.
        relax: Relax,
        /// Seed of the shuffle that takes the labels' place.
        seed: u64,
    },
}

impl Strategy {
    /// Name on the command line and in profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Joint => "joint",
            Strategy::Lgl => "lgl",
            Strategy::Ctc => "ctc",
            Strategy::Bc(_) => "bc",
            Strategy::BcUnlabelled { .. } => "bc-unlabelled",
        }
    }
}

impl Profile {
    /// Of one run. `name`: what the user calls it.
    pub fn of_run(name: &str, run: Run) -> Profile {
        let summary = Summary::of_run(name, &run);
        Profile::new(run.xus, summary)
    }

    /// As [`Profile::of_run`], of a run's files, also where its threads kept sums only: then there is no unit. `None`: such sums
    /// can't be read.
    pub fn of_files(name: &str, files: &RunFiles<'_>, progress: Progress<'_>) -> Option<Profile> {
        let run = Run::read_watched(files, progress);
        if !files.has_sums_only() {
            return Some(Profile::of_run(name, run));
        }
        Some(Profile::new(run.xus, Summary::of_sums(name, files)?))
    }

    /// Of a foreign table. `name`: what the user calls it.
    pub fn of_table(name: &str, table: XuTable) -> Profile {
        let summary = Summary::of_table(name, &table);
        Profile::new(table, summary)
    }

    /// Some of a run's units, in label order; `summary`: of the whole run.
    pub fn of_units(units: XuTable, summary: &Summary) -> Profile {
        let order = units.labels.depth_first(&units.label);
        let is_in_order = order.iter().zip(0..).all(|(&row, at)| row == at);
        let units = match is_in_order {
            true => units,
            false => units.into_gathered(&order),
        };
        Profile::new(
            units,
            Summary {
                regions: vec![],
                parallel: vec![],
                ..summary.clone()
            },
        )
    }

    fn new(xus: XuTable, summary: Summary) -> Profile {
        let origins = vec![0; xus.events.len()];
        Profile {
            xus,
            origins,
            sources: None,
            summary,
        }
    }

    /// What was combined by label is in order.
    fn is_in_label_order(&self) -> bool {
        let matching = self.summary.matching.as_ref();
        matching.is_some_and(|m| m.strategy == Strategy::Lgl.name())
    }

    /// With the rows in depth-first order of labels (those without a label last).
    #[must_use]
    pub fn in_label_order(&self) -> Profile {
        self.gather(&self.xus.labels.depth_first(&self.xus.label))
    }

    /// With these rows only, in their order.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Profile {
        let sources = self.sources.as_ref();
        let of_rows = |column: &Vec<u32>| gather(column, rows);
        Profile {
            xus: self.xus.gather(rows),
            origins: self.origins.clone(),
            sources: sources.map(|columns| columns.iter().map(of_rows).collect()),
            summary: self.summary.clone(),
        }
    }

    /// Number of XUs without a label.
    pub fn unlabelled(&self) -> usize {
        self.xus
            .label
            .iter()
            .filter(|&&l| l == LabelId::NONE)
            .count()
    }
}
