//! Combination strategies: several runs' XUs become one table with every event ([XU] section 5, [Fuse] section 3).
//!
//! Nothing is averaged or interpolated: each count was observed in one run, and an event that several runs hold comes
//! from the first of them. What can't be matched is listed with the reason.

use crate::label::{HashIsKey, LabelId};
use crate::table::{EventColumn, Site, XuTable, gather};
use ompfuse_format::Construct;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

const NONE: u32 = u32::MAX;
/// Labels of more components than this are not shown as examples.
const EXAMPLE_LIMIT: usize = 64;

/// Several runs' XUs, combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// The combined XUs: everything but the counts is the first run's.
    pub table: XuTable,
    /// For each event column the run (from 0) that its counts come from.
    pub origins: Vec<u16>,
    /// Per run, for each combined XU the row in that run's table.
    pub sources: Vec<Vec<u32>>,
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
}

impl Reason {
    /// The same with the runs' numbers changed.
    #[must_use]
    pub fn with_runs(self, number: impl Fn(u16) -> u16) -> Reason {
        match self {
            Reason::Absent { run } => Reason::Absent { run: number(run) },
            Reason::Ambiguous { run } => Reason::Ambiguous { run: number(run) },
            Reason::Unlabelled => Reason::Unlabelled,
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
    /// Row of the first run by key; with [`AMBIGUOUS`] if several have it.
    index: HashMap<u128, u32, HashIsKey>,
    /// What became of each row of the first run.
    fate: Vec<Option<Reason>>,
    /// Columns that later runs brought, with one row per row of the first run.
    added: Vec<(EventColumn, u16)>,
    /// Per later run the row for each row of the first.
    sources: Vec<Vec<u32>>,
    tally: Tally,
    /// XUs of later runs whose counterpart in the first was given up: by the first run's sites.
    given_up: Tally,
}

/// In [`LglJoin::index`]: several rows have the key.
const AMBIGUOUS: u32 = u32::MAX - 1;

impl LglJoin {
    /// Starts with the first run.
    pub fn new(first: XuTable) -> LglJoin {
        let keys = keys(&first);
        let mut index = HashMap::with_capacity_and_hasher(keys.len(), HashIsKey);
        let mut fate = vec![None; keys.len()];
        for (row, key) in keys.into_iter().enumerate() {
            match key {
                None => fate[row] = Some(Reason::Unlabelled),
                Some(key) => {
                    let entry = index.entry(key).or_insert(row as u32);
                    if *entry != row as u32 {
                        fate[row] = Some(Reason::Ambiguous { run: 0 });
                        if *entry != AMBIGUOUS {
                            fate[*entry as usize] = Some(Reason::Ambiguous { run: 0 });
                        }
                        *entry = AMBIGUOUS;
                    }
                }
            }
        }
        LglJoin {
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
    pub fn add(&mut self, table: &XuTable) {
        let run = (self.sources.len() + 1) as u16;
        let targets: Vec<u32> = (0..table.len())
            .into_par_iter()
            .with_min_len(4096)
            .map(|row| {
                table
                    .key(row)
                    .map_or(NONE, |key| self.index.get(&key).copied().unwrap_or(NONE))
            })
            .collect();
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
        let is_new = |e: &&EventColumn| {
            self.first.event(&e.name).is_none() && self.added.iter().all(|(a, _)| a.name != e.name)
        };
        let added: Vec<_> = table
            .events
            .iter()
            .filter(is_new)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|column| (scatter(column, &source), run))
            .collect();
        self.added.extend(added);
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
        let mut table = self.first.gather(&rows);
        let mut origins = vec![0; table.events.len()];
        origins.extend(self.added.iter().map(|(_, run)| *run));
        table.events.par_extend(
            self.added
                .par_iter()
                .map(|(column, _)| column.gather(&rows)),
        );
        let mut sources: Vec<Vec<u32>> = self
            .sources
            .par_iter()
            .map(|source| gather(source, &rows))
            .collect();
        sources.insert(0, rows);
        let unmatched = Tally::list([self.tally, self.given_up]);
        Combined {
            table,
            origins,
            sources,
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
    runs.for_each(|table| join.add(table));
    join.finish()
}

/// Combines runs by type and time (CTC, [XU] section 5): per type, XUs are paired by their order of begin (ties: thread,
/// then row). The result is in the order of types, then of begin in the first run.
pub fn combine_ctc(runs: &[&XuTable]) -> Combined {
    let Some(&first) = runs.first() else {
        return combine_lgl(runs);
    };
    let orders: Vec<BTreeMap<TypeKey<'_>, Vec<u32>>> = runs
        .par_iter()
        .map(|table| by_type_and_time(table))
        .collect();
    let mut types: Vec<&TypeKey<'_>> = orders.iter().flat_map(BTreeMap::keys).collect();
    types.sort_unstable();
    types.dedup();
    let mut sources = vec![vec![]; runs.len()];
    let mut tally = Tally::default();
    for key in types {
        let rows: Vec<&[u32]> = orders
            .iter()
            .map(|o| o.get(key).map_or(&[][..], Vec::as_slice))
            .collect();
        let (shortest, length) = rows
            .iter()
            .map(|r| r.len())
            .enumerate()
            .min_by_key(|&(_, n)| n)
            .expect("runs");
        for (run, rows) in rows.iter().enumerate() {
            sources[run].extend_from_slice(&rows[..length]);
            for &row in &rows[length..] {
                tally.add(
                    run as u16,
                    runs[run],
                    row as usize,
                    Reason::Surplus {
                        run: shortest as u16,
                    },
                );
            }
        }
    }
    let mut table = first.gather(&sources[0]);
    let mut origins = vec![0; table.events.len()];
    for (run, other) in runs.iter().enumerate().skip(1) {
        for column in &other.events {
            if table.event(&column.name).is_none() {
                table.events.push(column.gather(&sources[run]));
                origins.push(run as u16);
            }
        }
    }
    Combined {
        table,
        origins,
        sources,
        unmatched: Tally::list([tally]),
    }
}

/// Order and identity of types over runs.
type TypeKey<'a> = (&'a str, u64, &'a str);

fn by_type_and_time(table: &XuTable) -> BTreeMap<TypeKey<'_>, Vec<u32>> {
    let mut rows_of_site: Vec<Vec<u32>> = vec![vec![]; table.sites.len()];
    let mut unknown = vec![];
    for (row, &site) in table.site.iter().enumerate() {
        rows_of_site
            .get_mut(site as usize)
            .unwrap_or(&mut unknown)
            .push(row as u32);
    }
    let mut types: BTreeMap<TypeKey<'_>, Vec<u32>> = BTreeMap::new();
    for (site, rows) in table.sites.iter().zip(rows_of_site) {
        types.entry(site.sort_key()).or_default().extend(rows);
    }
    types.entry(("", u64::MAX, "")).or_default().extend(unknown);
    types.retain(|_, rows| !rows.is_empty());
    for rows in types.values_mut() {
        rows.par_sort_unstable_by_key(|&row| {
            (table.t0_ns[row as usize], table.thread[row as usize], row)
        });
    }
    types
}

fn keys(table: &XuTable) -> Vec<Option<u128>> {
    (0..table.len())
        .into_par_iter()
        .with_min_len(4096)
        .map(|row| table.key(row))
        .collect()
}

/// A column with a row per element of `source`; no count where that is [`NONE`].
fn scatter(column: &EventColumn, source: &[u32]) -> EventColumn {
    let values = source
        .iter()
        .map(|&row| column.values.get(row as usize).copied().unwrap_or(0))
        .collect();
    // Rows without a counterpart are left out of the result in the end, so they need no mark of absence.
    let present = column.present.as_ref();
    let present = present.map(|p| {
        source
            .iter()
            .map(|&row| p.get(row as usize).copied().unwrap_or(false))
            .collect()
    });
    EventColumn {
        name: column.name.clone(),
        values,
        present,
    }
}

/// What identifies an entry: run, site, construct, reason.
type TallyKey = (u16, u32, Option<Construct>, Reason);

/// Counts what is unmatched. For one run it is always called with the same table, as sites are told apart by position.
#[derive(Debug, Default)]
struct Tally {
    entries: HashMap<TallyKey, Unmatched>,
}

impl Tally {
    fn add(&mut self, run: u16, table: &XuTable, row: usize, reason: Reason) {
        let (site, construct) = (table.site[row], table.construct[row]);
        let entry = self
            .entries
            .entry((run, site, construct, reason))
            .or_insert_with(|| Unmatched {
                run,
                site: table
                    .sites
                    .get(site as usize)
                    .cloned()
                    .unwrap_or_else(|| Site::named("unknown")),
                construct,
                reason,
                count: 0,
                example: table.label_text(row, EXAMPLE_LIMIT),
            });
        entry.count += 1;
    }

    /// In the order of runs, then the most numerous first.
    fn list(tallies: impl IntoIterator<Item = Tally>) -> Vec<Unmatched> {
        let mut merged: Vec<Unmatched> = Vec::new();
        let mut list: Vec<Unmatched> = tallies
            .into_iter()
            .flat_map(|t| t.entries.into_values())
            .collect();
        let order = |u: &Unmatched| {
            (
                u.run,
                u.site.module.clone(),
                u.site.name.clone(),
                u.construct,
                u.reason,
            )
        };
        list.sort_by(|a, b| order(a).cmp(&order(b)).then(a.example.cmp(&b.example)));
        for entry in list {
            // The same type can have different positions in two runs' lists of sites.
            match merged
                .last_mut()
                .filter(|last| order(last) == order(&entry))
            {
                Some(last) => last.count += entry.count,
                None => merged.push(entry),
            }
        }
        merged.sort_by_key(|u| (u.run, std::cmp::Reverse(u.count)));
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BEGIN, FakeRun, LISTING_SITES, listing, listing_threads};
    use proptest::prelude::*;
    use std::fmt::Write as _;

    /// A table with one event; each row is (label, count), type = length of the label.
    fn table_of(event: &str, rows: &[(Vec<u64>, u64)]) -> XuTable {
        let mut csv = format!("type,label,thread,t0_ns,t1_ns,{event}\n");
        for (row, (label, count)) in rows.iter().enumerate() {
            let text = crate::Label(label.clone()).to_string();
            writeln!(csv, "{},{text},0,{row},{row},{count}", label.len()).unwrap();
        }
        XuTable::from_csv(csv.as_bytes()).unwrap()
    }

    #[test]
    fn whatever_thread_executes_them_xus_match() {
        let a = listing(&["cycles", "branches"], false).read().xus;
        let b = listing(&["instructions", "branches"], true).read().xus;
        let combined = combine_lgl(&[&a, &b]);
        assert_eq!((combined.table.len(), combined.unmatched.len()), (16, 0));
        let names: Vec<&str> = combined
            .table
            .events
            .iter()
            .map(|e| e.name.as_str())
            .collect();
        assert_eq!(
            (names, combined.origins),
            (vec!["cycles", "branches", "instructions"], vec![0, 0, 1])
        );
        assert_ne!(combined.sources[0], combined.sources[1]);
    }

    #[test]
    fn what_does_not_match_is_listed_with_the_reason() {
        let a = table_of(
            "A",
            &[
                (vec![0, 1], 1),
                (vec![0, 2], 2),
                (vec![0, 3], 3),
                (vec![0, 3], 4),
                (vec![0, 4], 5),
            ],
        );
        let b = table_of(
            "B",
            &[
                (vec![0, 9], 1),
                (vec![0, 2], 2),
                (vec![0, 2], 3),
                (vec![0, 3], 4),
                (vec![0, 1], 5),
                (vec![0, 4], 6),
            ],
        );
        let c = table_of("C", &[(vec![0, 4], 1)]);
        let combined = combine_lgl(&[&a, &b, &c]);
        assert_eq!(combined.sources, [[4], [5], [0]]);
        let list: Vec<(u16, u64, Reason)> = combined
            .unmatched
            .iter()
            .map(|u| (u.run, u.count, u.reason))
            .collect();
        let (absent, ambiguous) = (
            |run| Reason::Absent { run },
            |run| Reason::Ambiguous { run },
        );
        let expected = [
            (0, 2, ambiguous(0)),
            (0, 1, absent(2)),
            (0, 1, ambiguous(1)),
            (1, 2, ambiguous(1)),
            (1, 1, absent(0)),
            (1, 1, absent(2)),
            (1, 1, ambiguous(0)),
        ];
        assert_eq!(list, expected);
        assert_eq!(combined.unmatched[1].example.as_deref(), Some("0.1"));
    }

    #[test]
    fn overlapping_processes_are_ambiguous() {
        let mut fake = FakeRun::new(LISTING_SITES, &[]);
        for pid in [1, 2] {
            fake.process(pid, BEGIN, listing_threads(0, false, BEGIN), true);
        }
        let xus = fake.read().xus;
        let combined = combine_lgl(&[&xus, &xus]);
        assert_eq!(combined.table.len(), 0);
        assert!(
            combined
                .unmatched
                .iter()
                .all(|u| u.reason == Reason::Ambiguous { run: 0 })
        );
        assert_eq!(combined.unmatched.iter().map(|u| u.count).sum::<u64>(), 64);
    }

    #[test]
    fn no_runs_give_nothing() {
        assert!(combine_lgl(&[]).table.is_empty());
        assert!(combine_ctc(&[]).table.is_empty());
    }

    #[test]
    fn ctc_stops_at_the_shortest_run_per_type() {
        let a = table_of("A", &[(vec![0], 1), (vec![1, 2], 2), (vec![1, 3], 3)]);
        let b = table_of("B", &[(vec![1, 9], 4), (vec![2, 2, 2], 5)]);
        let combined = combine_ctc(&[&a, &b]);
        assert_eq!(combined.sources, [[1], [0]]);
        assert_eq!(combined.table.event("B").unwrap().get(0), Some(4));
        let list: Vec<(u16, &str, u64)> = combined
            .unmatched
            .iter()
            .map(|u| (u.run, u.site.name.as_str(), u.count))
            .collect();
        assert_eq!(list, [(0, "1", 1), (0, "2", 1), (1, "3", 1)]);
    }

    proptest! {
        /// Against a join written with maps, straight from the definition.
        #[test]
        fn join_is_the_naive_one(runs in proptest::collection::vec(
            proptest::collection::vec((proptest::collection::vec(0u64..4, 1..4), 0u64..1000), 0..40), 1..5,
        )) {
            let tables: Vec<XuTable> =
                runs.iter().enumerate().map(|(run, rows)| table_of(&format!("E{}", run % 3), rows)).collect();
            let combined = combine_lgl(&tables.iter().collect::<Vec<_>>());

            let once: Vec<BTreeMap<&Vec<u64>, Option<usize>>> = runs
                .iter()
                .map(|rows| {
                    let mut map = BTreeMap::new();
                    for (row, (label, _)) in rows.iter().enumerate() {
                        map.entry(label).and_modify(|r| *r = None).or_insert(Some(row));
                    }
                    map
                })
                .collect();
            let in_all = |label: &&&Vec<u64>| once.iter().all(|m| matches!(m.get(**label), Some(Some(_))));
            let labels: Vec<&&Vec<u64>> = once[0].keys().filter(in_all).collect();
            for (run, source) in combined.sources.iter().enumerate() {
                let expected: Vec<u32> = labels.iter().map(|l| once[run][*l].unwrap() as u32).collect();
                prop_assert_eq!(source, &expected);
            }
            for (event, &run) in combined.table.events.iter().zip(&combined.origins) {
                prop_assert_eq!(&event.name, &format!("E{}", run % 3));
                prop_assert!(run < 3);
                let expected: Vec<u64> =
                    labels.iter().map(|l| runs[run as usize][once[run as usize][*l].unwrap()].1).collect();
                prop_assert_eq!(&event.values, &expected);
            }
            // Every XU of every run is either matched or listed.
            for (run, rows) in runs.iter().enumerate() {
                let listed: u64 =
                    combined.unmatched.iter().filter(|u| u.run as usize == run).map(|u| u.count).sum();
                prop_assert_eq!(listed as usize + labels.len(), rows.len());
            }
        }
    }
}
