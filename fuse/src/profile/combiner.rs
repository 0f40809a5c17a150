//! Several profiles become one.

use super::{Profile, Strategy};
use crate::combine::{
    BcError, CellOrder, Combined, JointJoin, LglJoin, combine_bc_watched, combine_ctc,
    list_unmatched,
};
use crate::summary::{Matching, Summary};
use crate::table::XuTable;
use ompfuse_progress::Progress;

/// Combines profiles, one after the other.
#[derive(Debug)]
pub struct Combiner {
    strategy: Strategy,
    keeps_sources: bool,
    /// Of inputs of which only some rows were added: the rows' positions in the whole.
    positions: Vec<Option<Vec<u32>>>,
    /// The only input so far.
    first: Option<Profile>,
    state: Option<State>,
}

/// With two inputs or more.
#[derive(Debug)]
struct State {
    summary: Summary,
    /// Position in the result's runs of each input's first run.
    run_base: Vec<u16>,
    tables: Tables,
}

#[derive(Debug)]
enum Tables {
    Lgl(Box<LglJoin>),
    Joint(Box<JointJoin>),
    /// The other strategies need all of them at once.
    All(Vec<XuTable>),
}

impl Combiner {
    /// Nothing yet.
    pub fn new(strategy: Strategy) -> Combiner {
        Combiner {
            strategy,
            keeps_sources: false,
            positions: vec![],
            first: None,
            state: None,
        }
    }

    /// Notes for each count which XU it comes from, if the strategy does not go by label alone: see [`Profile::sources`].
    #[must_use]
    pub fn with_sources(self) -> Combiner {
        Combiner {
            keeps_sources: self.strategy != Strategy::Lgl,
            ..self
        }
    }

    /// As [`Combiner::add`], with some rows of an input only. `positions`: where they are in the whole.
    pub(crate) fn add_rows(&mut self, profile: Profile, positions: Vec<u32>) {
        self.add(profile);
        if let Some(last) = self.positions.last_mut() {
            *last = Some(positions);
        }
    }

    /// Adds the next input. The first one gives times, threads and everything else but the counts.
    pub fn add(&mut self, profile: Profile) {
        self.positions.push(None);
        if let Some(Profile { xus, summary, .. }) = self.first.take() {
            let tables = match self.strategy {
                Strategy::Joint => Tables::Joint(Box::new(JointJoin::new(xus))),
                Strategy::Lgl => Tables::Lgl(Box::new(LglJoin::new(xus))),
                _ => Tables::All(vec![xus]),
            };
            self.state = Some(State {
                summary,
                run_base: vec![0],
                tables,
            });
        }
        let Some(state) = &mut self.state else {
            self.first = Some(profile);
            return;
        };
        let base = state.summary.runs.len() as u16;
        state.run_base.push(base);
        state.summary.absorb(profile.summary, base);
        match &mut state.tables {
            Tables::Lgl(join) => join.add(profile.xus),
            Tables::Joint(join) => join.add(&profile.xus),
            Tables::All(tables) => tables.push(profile.xus),
        }
    }

    /// The combined profile; `None` if nothing was added. One input alone is handed back as it is.
    ///
    /// # Errors
    /// [`BcError`] if the strategy is BC and the runs don't share events as it needs.
    pub fn finish(self) -> Result<Option<Profile>, BcError> {
        self.finish_watched(Progress::default())
    }

    /// Which share of its time a strategy takes when it has everything.
    pub fn of_finish(strategy: Strategy) -> f64 {
        match strategy {
            Strategy::Bc(_) | Strategy::BcUnlabelled { .. } => 0.7,
            Strategy::Ctc => 0.3,
            Strategy::Lgl | Strategy::Joint => 0.1,
        }
    }

    /// As [`Combiner::finish`], for somebody who waits.
    ///
    /// # Errors
    /// As [`Combiner::finish`].
    pub fn finish_watched(self, progress: Progress<'_>) -> Result<Option<Profile>, BcError> {
        let Some(State {
            mut summary,
            run_base,
            tables,
        }) = self.state
        else {
            return Ok(self.first);
        };
        let Combined {
            table,
            origins: inputs,
            sources,
            column_sources,
            unmatched,
        } = match tables {
            Tables::Lgl(join) => join.finish(),
            Tables::Joint(join) => join.finish(),
            Tables::All(tables) => {
                let runs: Vec<&XuTable> = tables.iter().collect();
                match self.strategy {
                    Strategy::Bc(relax) => {
                        combine_bc_watched(&runs, relax, CellOrder::Label, progress)?
                    }
                    Strategy::BcUnlabelled { relax, seed } => {
                        combine_bc_watched(&runs, relax, CellOrder::Shuffled(seed), progress)?
                    }
                    _ => combine_ctc(&runs),
                }
            }
        };
        // An input may itself be several runs combined: the summary knows which of them an event comes from.
        let origin = |name: &str, input: u16| {
            let known = summary
                .events
                .iter()
                .find(|e| e.name == name)
                .and_then(|e| e.run);
            known.unwrap_or(run_base[input as usize])
        };
        let origins = inputs
            .iter()
            .zip(&table.events)
            .map(|(&input, e)| origin(&e.name, input))
            .collect();
        let of_input = |&input: &u16| sources[input as usize].clone();
        let sources = self.keeps_sources.then(|| {
            let mut of_columns: Vec<Vec<u32>> =
                column_sources.unwrap_or_else(|| inputs.iter().map(of_input).collect());
            for (rows, &input) in of_columns.iter_mut().zip(&inputs) {
                if let Some(positions) = &self.positions[input as usize] {
                    rows.iter_mut()
                        .for_each(|row| *row = positions[*row as usize]);
                }
            }
            of_columns
        });
        let run = |input: u16| run_base[input as usize];
        // Inputs that were combined before have left out some already.
        let before = summary
            .matching
            .take()
            .map_or_else(Vec::new, |m| m.unmatched);
        let unmatched = unmatched.into_iter().map(|u| u.of_runs(run));
        let unmatched = list_unmatched(before.into_iter().chain(unmatched).collect());
        let matched = table.len() as u64;
        summary.matching = Some(Matching {
            strategy: self.strategy.name().to_owned(),
            matched,
            unmatched,
        });
        Ok(Some(Profile {
            xus: table,
            origins,
            sources,
            summary,
        }))
    }
}
