//! Groups that come one after the other are combined one after the other.

use super::manifest::{Group, Manifest, ManifestError};
use super::read::{Columns, Processes, Rows};
use super::rows::{Origins, of_rows};
use crate::combine::{
    BcError, CellOrder, Combined, Unmatched, brought_to_front, combine_bc, combine_ctc,
    combine_joint, combine_lgl, list_unmatched,
};
use crate::profile::Strategy;
use crate::table::XuTable;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// What the units of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Their type.
    Type,
    /// Type and MPI rank. Only labels tell ranks apart, so it is for the strategy by label.
    TypeAndRank,
}

/// Why groups can't be combined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A column is missing.
    #[error("the input has no column {0}")]
    Column(String),
    /// A column has another type.
    #[error(
        "column {column} is {found}; numbers are int64 or int32, texts are utf8, marks are boolean"
    )]
    Type {
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },
    /// A value that can't be.
    #[error("{value} can't be in column {column}")]
    Value {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
    /// A text that is no label, or whose hash is another one.
    #[error("{0} is no label, or has another hash than the one beside it")]
    Label(String),
    /// A group has too many processes.
    #[error("a group has units of more than 65536 processes: group by type and rank")]
    Processes,
    /// A group's rows don't stand together.
    #[error("{0} came back: the rows of a group must stand together, and in one input")]
    Back(String),
    /// A group has more or fewer rows than were partitioned.
    #[error("{group} has {found} units of run {run}, and the manifest has {expected}")]
    Count {
        /// The group.
        group: String,
        /// The run.
        run: usize,
        /// Number of rows that came.
        found: u64,
        /// As the manifest says.
        expected: u64,
    },
    /// A group that was not partitioned.
    #[error("the manifest has no {0}")]
    Unknown(String),
    /// There is no such run.
    #[error("the input has units of run {0}, which the manifest doesn't have")]
    Run(u16),
    /// The strategy wants whole types.
    #[error("{0} matches units of all ranks: group by type")]
    Ranks(&'static str),
    /// The strategy needs more than a group.
    #[error("{0} can't go by groups: use lgl, joint, ctc or bc")]
    Strategy(&'static str),
    /// The manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The runs don't share events as the strategy needs.
    #[error(transparent)]
    Events(#[from] BcError),
    /// Columns don't fit together.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// Entries of what is unmatched that are kept before they are put together.
const MANY: usize = 1 << 14;

/// What was combined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Units that came, of all runs.
    pub units: u64,
    /// Units that were combined.
    pub combined: u64,
    /// The others. Runs count from the one that gives the times.
    pub unmatched: Vec<Unmatched>,
}

impl Done {
    /// Takes over what was combined elsewhere.
    pub fn add(&mut self, other: Done) {
        let Done {
            units,
            combined,
            unmatched,
        } = other;
        self.units += units;
        self.combined += combined;
        self.unmatched.extend(unmatched);
        // Groups are many, types and reasons are few.
        if self.unmatched.len() > MANY {
            self.unmatched = list_unmatched(std::mem::take(&mut self.unmatched));
        }
    }

    /// With one entry for each run, type and reason.
    #[must_use]
    pub fn listed(self) -> Done {
        Done {
            unmatched: list_unmatched(self.unmatched),
            ..self
        }
    }
}

/// Combines groups.
#[derive(Debug)]
pub struct Groups {
    strategy: Strategy,
    by: GroupBy,
    /// The run that gives the times.
    first: u16,
    /// The events of each run.
    runs: Vec<Vec<String>>,
    /// Number of units in each run.
    expected: HashMap<Group, Vec<u64>>,
    done: HashSet<Group>,
    /// The group that goes on, and its units by run.
    open: Option<(Group, Vec<Rows>)>,
    combined: Done,
}

impl Groups {
    /// Of what was partitioned. `first`: the run that gives the times.
    ///
    /// # Errors
    /// [`GroupError`] if parts don't fit together, or the strategy can't go by such groups.
    pub fn new(
        manifest: &Manifest,
        strategy: Strategy,
        by: GroupBy,
        first: u16,
    ) -> Result<Groups, GroupError> {
        match strategy {
            Strategy::BcUnlabelled { .. } => return Err(GroupError::Strategy(strategy.name())),
            Strategy::Lgl => {}
            _ if by == GroupBy::TypeAndRank => return Err(GroupError::Ranks(strategy.name())),
            _ => {}
        }
        let mut runs = manifest.runs()?;
        if usize::from(first) >= runs.len() {
            return Err(GroupError::Run(first));
        }
        let mut expected = manifest.counts(by, runs.len());
        for counts in expected.values_mut() {
            brought_to_front(counts, first.into());
        }
        brought_to_front(&mut runs, first.into());
        Ok(Groups {
            strategy,
            by,
            first,
            expected,
            runs,
            done: HashSet::new(),
            open: None,
            combined: Done::default(),
        })
    }

    /// The columns of the result.
    ///
    /// # Errors
    /// [`GroupError`] if the runs don't share events as the strategy needs.
    pub fn schema(&self) -> Result<SchemaRef, GroupError> {
        let group = Group {
            module: None,
            name: None,
            rank: None,
        };
        Ok(self.combine(&group, self.nothing())?.0.schema())
    }

    fn nothing(&self) -> Vec<Rows> {
        self.runs
            .iter()
            .map(|events| Rows::new(events, Processes::default()))
            .collect()
    }

    /// Takes in rows, and hands out the groups that end with them.
    ///
    /// # Errors
    /// [`GroupError`] says what is wrong with the input.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<Vec<RecordBatch>, GroupError> {
        let columns = Columns::new(batch, &self.runs.concat(), true)?;
        let mut ended = vec![];
        for row in 0..columns.rows() {
            let is_open = |(group, _): &(Group, Vec<Rows>)| columns.is_of(row, group, self.by);
            if !self.open.as_ref().is_some_and(is_open) {
                ended.extend(self.end()?);
                self.begin(columns.group(row, self.by))?;
            }
            let run = self.place(columns.run(row)?);
            if let Some((_, rows)) = &mut self.open {
                let rows = rows.get_mut(usize::from(run)).ok_or(GroupError::Run(run))?;
                rows.push(&columns, row, 0)?;
            }
        }
        Ok(ended)
    }

    /// Where a run is when the first one was brought to the front.
    fn place(&self, run: u16) -> u16 {
        match run.cmp(&self.first) {
            Ordering::Less => run + 1,
            Ordering::Equal => 0,
            Ordering::Greater => run,
        }
    }

    /// The run at a place.
    fn run_at(&self, place: usize) -> usize {
        let first = usize::from(self.first);
        match place {
            0 => first,
            place if place <= first => place - 1,
            place => place,
        }
    }

    fn begin(&mut self, group: Group) -> Result<(), GroupError> {
        if self.done.contains(&group) {
            return Err(GroupError::Back(group.to_string()));
        }
        if !self.expected.contains_key(&group) {
            return Err(GroupError::Unknown(group.to_string()));
        }
        self.open = Some((group, self.nothing()));
        Ok(())
    }

    /// Ends the group that goes on, if one does: at the end of the input.
    ///
    /// # Errors
    /// As [`Groups::add`].
    pub fn end(&mut self) -> Result<Option<RecordBatch>, GroupError> {
        let Some((group, rows)) = self.open.take() else {
            return Ok(None);
        };
        let mut units = 0;
        for (place, (rows, &expected)) in rows.iter().zip(&self.expected[&group]).enumerate() {
            let found = rows.len() as u64;
            units += found;
            if found != expected {
                return Err(GroupError::Count {
                    group: group.to_string(),
                    run: self.run_at(place),
                    found,
                    expected,
                });
            }
        }
        let (batch, unmatched) = self.combine(&group, rows)?;
        let combined = batch.num_rows() as u64;
        self.combined.add(Done {
            units,
            combined,
            unmatched,
        });
        self.done.insert(group);
        Ok((combined > 0).then_some(batch))
    }

    /// What was combined.
    pub fn into_done(self) -> Done {
        self.combined.listed()
    }

    /// The combined units of a group.
    fn combine(
        &self,
        group: &Group,
        rows: Vec<Rows>,
    ) -> Result<(RecordBatch, Vec<Unmatched>), GroupError> {
        let tables = rows.into_iter().map(|rows| rows.finish(group));
        let (tables, units): (Vec<XuTable>, Vec<Vec<i64>>) = tables.unzip();
        let refs: Vec<&XuTable> = tables.iter().collect();
        let combined = match (&refs[..], self.strategy) {
            ([only], _) => alone(only),
            (_, Strategy::Lgl) => combine_lgl(&refs),
            (_, Strategy::Joint) => combine_joint(&refs),
            (_, Strategy::Ctc) => combine_ctc(&refs),
            (_, Strategy::Bc(relax)) => combine_bc(&refs, relax, CellOrder::Label)?,
            (_, other) => return Err(GroupError::Strategy(other.name())),
        };
        let of_run = |run: usize, rows: &[u32]| -> Vec<i64> {
            rows.iter().map(|&row| units[run][row as usize]).collect()
        };
        let has_units = refs.len() > 1 && self.strategy != Strategy::Lgl;
        let of_events = has_units.then(|| {
            let runs = combined.origins.iter().map(|&run| usize::from(run));
            let of_event = |(event, run): (usize, usize)| match &combined.column_sources {
                Some(columns) => of_run(run, &columns[event]),
                None => of_run(run, &combined.sources[run]),
            };
            runs.enumerate().map(of_event).collect()
        });
        let first = of_run(0, &combined.sources[0]);
        let all: Vec<u32> = (0..combined.table.len() as u32).collect();
        let origins = Origins {
            runs: combined.origins,
            units: of_events,
        };
        let batch = of_rows(&combined.table, &all, &first, Some(&origins))?;
        Ok((batch, combined.unmatched))
    }
}

/// One run is handed on as it is.
fn alone(table: &XuTable) -> Combined {
    Combined {
        table: table.clone(),
        origins: vec![0; table.events.len()],
        sources: vec![(0..table.len() as u32).collect()],
        column_sources: None,
        unmatched: vec![],
    }
}
