//! A profile: the XUs with their counts, and the summary. One run's, a foreign table's, or several combined.

mod parquet;

use crate::combine::{
    BcError, CellOrder, Combined, LglJoin, Relax, Unmatched, combine_bc, combine_ctc,
};
use crate::label::LabelId;
use crate::run::Run;
use crate::summary::{EventOrigin, Matching, ModuleSummary, RegionStat, Summary};
use crate::table::{Site, XuTable};
use ompfuse_format::Construct;
use std::collections::HashMap;

pub use self::parquet::{LABEL_LIMIT, ProfileError};

/// XUs with their counts, and everything else that is known of the execution. Rows are in depth-first order of labels
/// once runs have been combined by label, and in the Parquet file; before, in the order of recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The XUs.
    pub xus: XuTable,
    /// For each event column of `xus` the run (from 0, in [`Summary::runs`]) that its counts come from.
    pub origins: Vec<u16>,
    /// Program, regions, runs.
    pub summary: Summary,
}

/// How runs are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// By label (the default).
    #[default]
    Lgl,
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

    /// Of a foreign table. `name`: what the user calls it.
    pub fn of_table(name: &str, table: XuTable) -> Profile {
        let summary = Summary::of_table(name, &table);
        Profile::new(table, summary)
    }

    fn new(xus: XuTable, summary: Summary) -> Profile {
        let origins = vec![0; xus.events.len()];
        Profile {
            xus,
            origins,
            summary,
        }
    }

    /// With the rows in depth-first order of labels (those without a label last).
    #[must_use]
    pub fn in_label_order(&self) -> Profile {
        let xus = self
            .xus
            .gather(&self.xus.labels.depth_first(&self.xus.label));
        Profile {
            xus,
            origins: self.origins.clone(),
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

/// Combines profiles, one after the other.
#[derive(Debug)]
pub struct Combiner {
    strategy: Strategy,
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
    /// The other strategies need all of them at once.
    All(Vec<XuTable>),
}

impl Combiner {
    /// Nothing yet.
    pub fn new(strategy: Strategy) -> Combiner {
        Combiner {
            strategy,
            first: None,
            state: None,
        }
    }

    /// Adds the next input. The first one gives times, threads and everything else but the counts.
    pub fn add(&mut self, profile: Profile) {
        if let Some(Profile { xus, summary, .. }) = self.first.take() {
            let tables = match self.strategy {
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
            Tables::Lgl(join) => join.add(&profile.xus),
            Tables::All(tables) => tables.push(profile.xus),
        }
    }

    /// The combined profile; `None` if nothing was added. One input alone is handed back as it is.
    ///
    /// # Errors
    /// [`BcError`] if the strategy is BC and the runs don't share events as it needs.
    pub fn finish(self) -> Result<Option<Profile>, BcError> {
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
            unmatched,
            ..
        } = match tables {
            Tables::Lgl(join) => join.finish(),
            Tables::All(tables) => {
                let runs: Vec<&XuTable> = tables.iter().collect();
                match self.strategy {
                    Strategy::Bc(relax) => combine_bc(&runs, relax, CellOrder::Label)?,
                    Strategy::BcUnlabelled { relax, seed } => {
                        combine_bc(&runs, relax, CellOrder::Shuffled(seed))?
                    }
                    Strategy::Lgl | Strategy::Ctc => combine_ctc(&runs),
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
        let run = |input: u16| run_base[input as usize];
        let unmatched = unmatched
            .into_iter()
            .map(|u| Unmatched {
                run: run(u.run),
                reason: u.reason.with_runs(run),
                ..u
            })
            .collect();
        let matched = table.len() as u64;
        summary.matching = Some(Matching {
            strategy: self.strategy.name().to_owned(),
            matched,
            unmatched,
        });
        Ok(Some(Profile {
            xus: table,
            origins,
            summary,
        }))
    }
}

/// What identifies a region's sums in every run.
type RegionKey = (
    Option<(String, String)>,
    Option<Construct>,
    Option<(String, String)>,
);

fn region_key(sites: &[Site], stat: &RegionStat) -> RegionKey {
    let key = |site: Option<u32>| {
        let (module, name) = sites.get(site? as usize)?.key();
        Some((module.to_owned(), name.to_owned()))
    };
    (key(stat.site), stat.construct, key(stat.parallel))
}

impl Summary {
    /// Takes over what another input's summary has beyond this one: events and their totals per region, and its runs,
    /// which get numbers from `base`.
    fn absorb(&mut self, other: Summary, base: u16) {
        for module in other.modules {
            let name = |m: &ModuleSummary| m.build_id.clone().unwrap_or_else(|| m.path.clone());
            let known = |m: &ModuleSummary| name(m) == name(&module);
            if !self.modules.iter().any(known) {
                self.modules.push(module);
            }
        }
        let mut new_events = vec![];
        for (at, event) in other.events.iter().enumerate() {
            let run = event.run.map(|run| run + base);
            match self.events.iter_mut().find(|e| e.name == event.name) {
                Some(known) if known.run.is_none() && run.is_some() => {
                    known.run = run;
                    new_events.push(at);
                }
                Some(_) => {}
                None => {
                    self.events.push(EventOrigin {
                        run,
                        ..event.clone()
                    });
                    new_events.push(at);
                }
            }
        }
        for stat in &mut self.regions {
            stat.counts.resize(self.events.len(), None);
        }
        let theirs: HashMap<RegionKey, &RegionStat> = other
            .regions
            .iter()
            .map(|stat| (region_key(&other.sites, stat), stat))
            .collect();
        for stat in &mut self.regions {
            let Some(their) = theirs.get(&region_key(&self.sites, stat)) else {
                continue;
            };
            for &at in &new_events {
                let name = &other.events[at].name;
                let column = self
                    .events
                    .iter()
                    .position(|e| e.name == *name)
                    .expect("entered above");
                stat.counts[column] = their.counts.get(at).copied().flatten();
            }
        }
        self.runs.extend(other.runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BEGIN, listing, listing_threads};

    fn profile(name: &str, events: &[&str], swap: bool) -> Profile {
        Profile::of_run(name, listing(events, swap).read())
    }

    fn combined() -> Profile {
        let mut combiner = Combiner::new(Strategy::Lgl);
        combiner.add(profile("run-0001", &["cycles"], false));
        combiner.add(profile("run-0002", &["instructions", "cycles"], true));
        combiner.finish().unwrap().unwrap()
    }

    #[test]
    fn one_input_is_handed_back() {
        assert_eq!(Combiner::new(Strategy::Lgl).finish(), Ok(None));
        let mut combiner = Combiner::new(Strategy::Lgl);
        combiner.add(profile("a", &["cycles"], false));
        assert_eq!(
            combiner.finish().unwrap().unwrap(),
            profile("a", &["cycles"], false)
        );
    }

    #[test]
    fn regions_get_the_counts_of_later_runs() {
        let profile = combined();
        assert_eq!(profile.origins, [0, 1]);
        let names: Vec<_> = profile
            .summary
            .events
            .iter()
            .map(|e| (e.name.as_str(), e.run))
            .collect();
        assert_eq!(names, [("cycles", Some(0)), ("instructions", Some(1))]);
        let task = |r: &&RegionStat| r.construct == Some(Construct::Task) && r.count() == 8;
        let region = profile.summary.regions.iter().find(task).unwrap();
        // Two counts per tick for the first counter of each run.
        assert_eq!(
            region.counts,
            [Some(2 * region.own_ns()), Some(2 * region.own_ns())]
        );
        let matching = profile.summary.matching.unwrap();
        assert_eq!(
            (
                matching.strategy.as_str(),
                matching.matched,
                matching.unmatched.len()
            ),
            ("lgl", 16, 0)
        );
        assert_eq!(profile.summary.runs.len(), 2);
    }

    #[test]
    fn combining_a_combined_profile_keeps_the_runs_apart() {
        let mut combiner = Combiner::new(Strategy::Lgl);
        combiner.add(combined());
        let mut third = combined();
        third.xus.events[1].name = "branches".to_owned();
        third.summary.events[1].name = "branches".to_owned();
        combiner.add(third);
        let profile = combiner.finish().unwrap().unwrap();
        assert_eq!(profile.summary.runs.len(), 4);
        assert_eq!(profile.origins, [0, 1, 3]);
    }

    #[test]
    fn parquet_round_trips() {
        let mut fake = listing(&["cycles", "thread", "run:x"], false);
        fake.process(
            78,
            BEGIN + 10_000,
            listing_threads(3, false, BEGIN + 10_000),
            true,
        );
        let mut profile = Profile::of_run("run", fake.read()).in_label_order();
        profile.xus.events[0].present = Some((0..32).map(|row| row % 3 > 0).collect());
        for row in (0..32).filter(|row| row % 3 == 0) {
            profile.xus.events[0].values[row] = 0;
        }
        let bytes = profile.to_parquet().unwrap();
        assert_eq!(bytes, profile.to_parquet().unwrap());
        let again = Profile::from_parquet(bytes.clone()).unwrap();
        assert_eq!(again.summary, profile.summary);
        assert_eq!(again.origins, profile.origins);
        // Labels are kept in another shape; everything else is equal.
        for row in 0..32 {
            assert_eq!(
                again.xus.label_text(row, 99),
                profile.xus.label_text(row, 99)
            );
            assert_eq!(again.xus.key(row), profile.xus.key(row));
        }
        let same = XuTable {
            labels: profile.xus.labels.clone(),
            label: profile.xus.label.clone(),
            ..again.xus
        };
        assert_eq!(same, profile.xus);
        assert_eq!(
            Profile::summary_from_parquet(bytes).unwrap(),
            profile.summary
        );
    }

    #[test]
    fn a_profile_without_xus_is_one_too() {
        let table = XuTable::from_csv(b"type,label,thread,t0_ns,t1_ns,INS\n").unwrap();
        let profile = Profile::of_table("none", table);
        let again = Profile::from_parquet(profile.to_parquet().unwrap()).unwrap();
        assert!(again.xus.is_empty());
        assert_eq!((again.xus.events.len(), again.origins), (1, vec![0]));
    }

    #[test]
    fn other_bytes_are_refused() {
        let text = |bytes: Vec<u8>| Profile::from_parquet(bytes).unwrap_err().to_string();
        assert!(text(b"PAR1 no".to_vec()).starts_with("not a readable Parquet file"));
        let mut bytes = combined().to_parquet().unwrap();
        bytes.truncate(bytes.len() / 2);
        assert!(text(bytes).starts_with("not a readable Parquet file"));
    }
}
