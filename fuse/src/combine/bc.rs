//! By behaviour, in a chain of runs that share events (BC, [Fuse] algorithms 3 and 4).
//!
//! Each run is combined with what the runs before it gave ("prev"). Per type, the common events span a grid; XUs of both
//! sides that fall into the same cell behave alike and are paired, in the order of their labels; what is left goes to the
//! next, coarser grid.

mod grid;
mod nearest;
#[cfg(test)]
mod tests;

use super::tally::Tally;
use super::{Combined, Reason};
use crate::label::{LabelId, Labels, PrefixOrder};
use crate::table::{EventColumn, Site, XuTable, gather};
use grid::{Columns, Level, match_type};
use ompfuse_progress::Progress;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// How the next, coarser grid is found from the last one's number of divisions `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relax {
    /// [Fuse] algorithm 4: by the smallest distance of XUs in the nearest occupied cells of the two sides. Finds the
    /// closest pairs first; its time can grow with the square of the number of XUs of a type.
    Paper,
    /// By the smallest distance of any two XUs of the two sides. Time as for `Paper`.
    Nn,
    /// Half as many divisions. n log n, and for most data as good.
    #[default]
    Halve,
}

/// The order of a cell's XUs in which they are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOrder {
    /// Depth-first order of the labels: BC.
    Label,
    /// A shuffle with this seed: BC unlabelled, which shows what the labels contribute.
    Shuffled(u64),
}

/// What BC can't combine. Runs count from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BcError {
    /// A run shares no event with those before it.
    #[error(
        "run {} shares no event with the runs before it, and bc matches by common events; \
         record overlapping event sets (`ompfuse plan --strategy bc`) or combine with --strategy lgl", .run + 1
    )]
    NoOverlap {
        /// The run.
        run: usize,
    },
}

/// A run's matching with those before it, per type in the order of [`Site::sort_key`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StepTrace {
    pub(crate) levels: Vec<Level>,
}

/// Combines runs by behaviour (BC). Rows are in the first run's order; a combined XU's label is the longest common
/// prefix of its parts' labels.
///
/// # Errors
/// [`BcError::NoOverlap`] if a run has no event in common with those before it.
pub fn combine_bc(runs: &[&XuTable], relax: Relax, order: CellOrder) -> Result<Combined, BcError> {
    combine_bc_watched(runs, relax, order, Progress::default())
}

/// As [`combine_bc`], for somebody who waits.
pub(crate) fn combine_bc_watched(
    runs: &[&XuTable],
    relax: Relax,
    order: CellOrder,
    progress: Progress<'_>,
) -> Result<Combined, BcError> {
    combine_traced(runs, relax, order, progress).map(|(combined, _)| combined)
}

/// As [`combine_bc`], with every step's levels.
pub(crate) fn combine_traced(
    runs: &[&XuTable],
    relax: Relax,
    order: CellOrder,
    progress: Progress<'_>,
) -> Result<(Combined, Vec<StepTrace>), BcError> {
    let Some(&first) = runs.first() else {
        return Ok((super::combine_lgl(runs), vec![]));
    };
    let mut chain = Chain::new(first);
    let mut traces = vec![];
    for (at, cur) in runs.iter().enumerate().skip(1) {
        traces.push(chain.add(&runs[..at], cur, relax, order)?);
        progress.steps(1, runs.len());
    }
    Ok((chain.finish(runs), traces))
}

/// What belongs together: positions or rows of prev and of cur.
type Pairs = Vec<(u32, u32)>;

/// A combined XU without a partner.
const NONE: u32 = u32::MAX;

/// An event that both sides counted.
struct Common<'a> {
    ours: &'a EventColumn,
    /// Of each combined XU the row of `ours`.
    rows: &'a [u32],
    theirs: &'a EventColumn,
}

impl Common<'_> {
    fn has_ours(&self, p: u32) -> bool {
        let row = self.rows[p as usize];
        self.ours.get(row as usize).is_some()
    }

    fn has_theirs(&self, row: u32) -> bool {
        self.theirs.get(row as usize).is_some()
    }
}

/// Pairs the XUs of one type whose common events were counted.
fn pairs_of_type(
    common: &[Common<'_>],
    prev: &[u32],
    cur: &[u32],
    relax: Relax,
) -> (Pairs, Vec<Level>) {
    let is_counted = |&&p: &&u32| common.iter().all(|c| c.has_ours(p));
    let prev: Vec<u32> = prev.iter().filter(is_counted).copied().collect();
    let is_counted = |&&row: &&u32| common.iter().all(|c| c.has_theirs(row));
    let cur: Vec<u32> = cur.iter().filter(is_counted).copied().collect();
    let columns = common.iter().map(|c| {
        let ours = |&p: &u32| c.ours.values[c.rows[p as usize] as usize];
        Columns::new(
            prev.iter().map(ours).collect(),
            gather(&c.theirs.values, &cur),
        )
    });
    let columns: Vec<Columns> = columns.collect();
    let (pairs, levels) = match_type(prev.len(), cur.len(), &columns, relax);
    let rows = |(p, c): (u32, u32)| (prev[p as usize], cur[c as usize]);
    (pairs.into_iter().map(rows).collect(), levels)
}

/// What is combined so far.
struct Chain {
    /// Per run the row of each combined XU; the first run's are ascending.
    sources: Vec<Vec<u32>>,
    /// For each event its run and its column there.
    events: Vec<(usize, usize)>,
    /// Names of `events`.
    names: Vec<String>,
    /// Per combined XU how many components of the first run's label all its parts have in common.
    shared: Vec<u32>,
    /// The order of beginnings of the first run's labels, once it was needed.
    prefixes: Option<PrefixOrder>,
    tally: Tally,
}

impl Chain {
    fn new(first: &XuTable) -> Chain {
        Chain {
            sources: vec![(0..first.len() as u32).collect()],
            events: (0..first.events.len()).map(|c| (0, c)).collect(),
            names: first.events.iter().map(|e| e.name.clone()).collect(),
            shared: vec![u32::MAX; first.len()],
            prefixes: None,
            tally: Tally::default(),
        }
    }

    /// Combines with the next run.
    fn add(
        &mut self,
        before: &[&XuTable],
        cur: &XuTable,
        relax: Relax,
        order: CellOrder,
    ) -> Result<StepTrace, BcError> {
        let step = before.len();
        let first = before[0];
        let prev_order = match order {
            CellOrder::Label => self.label_order(first),
            CellOrder::Shuffled(seed) => shuffled(self.shared.len(), seed, step, false),
        };
        let common: Vec<Common<'_>> = cur
            .events
            .iter()
            .filter_map(|theirs| {
                let at = self.names.iter().position(|n| *n == theirs.name)?;
                let (run, column) = self.events[at];
                Some(Common {
                    ours: &before[run].events[column],
                    rows: &self.sources[run],
                    theirs,
                })
            })
            .collect();
        if common.is_empty() {
            return Err(BcError::NoOverlap { run: step });
        }
        let cur_order = match order {
            CellOrder::Label => cur.labels.depth_first(&cur.label),
            CellOrder::Shuffled(seed) => shuffled(cur.len(), seed, step, true),
        };
        let prev_types = by_type(&first.sites, &prev_order, |p| {
            first.site[self.sources[0][p] as usize]
        });
        let cur_types = by_type(&cur.sites, &cur_order, |row| cur.site[row]);
        let mut types: Vec<_> = prev_types.into_iter().collect();
        types.sort_unstable_by_key(|(key, _)| *key);
        let matched: Vec<(Pairs, Vec<Level>)> = types
            .par_iter()
            .filter_map(|(key, prev)| {
                Some(pairs_of_type(&common, prev, cur_types.get(key)?, relax))
            })
            .collect();

        let mut partner = vec![NONE; self.shared.len()];
        let mut trace = StepTrace::default();
        for (pairs, levels) in matched {
            for (p, row) in pairs {
                partner[p as usize] = row;
            }
            trace.levels.extend(levels);
        }
        let counted = |p: u32| common.iter().all(|c| c.has_ours(p));
        let counted_cur = |row: u32| common.iter().all(|c| c.has_theirs(row));
        let mut tally = std::mem::take(&mut self.tally);
        self.add_unmatched(&mut tally, before, cur, &partner, [&counted, &counted_cur]);
        self.tally = tally;
        self.keep(first, cur, &partner);
        for (column, event) in cur.events.iter().enumerate() {
            if !self.names.contains(&event.name) {
                self.names.push(event.name.clone());
                self.events.push((step, column));
            }
        }
        Ok(trace)
    }

    /// Counts what is left out, and why. `partner`: of each combined XU the row of the next run, or [`NONE`]; `counted`: whether all
    /// common events of an XU were counted, of prev and of cur.
    fn add_unmatched(
        &self,
        tally: &mut Tally,
        before: &[&XuTable],
        cur: &XuTable,
        partner: &[u32],
        counted: [&dyn Fn(u32) -> bool; 2],
    ) {
        let step = before.len() as u16;
        let why = |is_counted: bool, run: u16| match is_counted {
            true => Reason::Surplus { run },
            false => Reason::Uncounted,
        };
        let [counted, counted_cur] = counted;
        let mut is_used = vec![false; cur.len()];
        for &row in partner.iter().filter(|&&row| row != NONE) {
            is_used[row as usize] = true;
        }
        for row in (0..cur.len() as u32).filter(|&r| !is_used[r as usize]) {
            // Too many for what is left of the runs before, whose last one took the most away.
            tally.add(step, cur, row as usize, why(counted_cur(row), step - 1));
        }
        for p in (0..partner.len()).filter(|&p| partner[p] == NONE) {
            let reason = why(counted(p as u32), step);
            for (run, table) in (0..).zip(before) {
                tally.add(run, table, self.sources[run as usize][p] as usize, reason);
            }
        }
    }

    /// Keeps the XUs that have a partner in the next run.
    fn keep(&mut self, first: &XuTable, cur: &XuTable, partner: &[u32]) {
        let all = 0..partner.len() as u32;
        let kept: Vec<u32> = all.filter(|&p| partner[p as usize] != NONE).collect();
        for rows in &mut self.sources {
            *rows = gather(rows, &kept);
        }
        let added = gather(partner, &kept);
        let shared = gather(&self.shared, &kept);
        self.shared = (&self.sources[0], &added)
            .into_par_iter()
            .zip(&shared)
            .with_min_len(4096)
            .map_init(
                || (vec![], vec![]),
                |(a, b), ((&ours, &theirs), &limit)| {
                    let (ours, theirs) = (first.label[ours as usize], cur.label[theirs as usize]);
                    if limit == 0 || !ours.is_some() || !theirs.is_some() {
                        return 0;
                    }
                    first.labels.read(ours, usize::MAX, a);
                    cur.labels.read(theirs, usize::MAX, b);
                    let common = a.iter().zip(b.iter()).take_while(|(x, y)| x == y).count();
                    limit.min(common as u32)
                },
            )
            .collect();
        self.sources.push(added);
    }

    /// The combined XUs' labels.
    fn labels(&self, first: &XuTable) -> (Labels, Vec<LabelId>) {
        let mut labels = Labels::default();
        let mut components = vec![];
        let ids = self.sources[0]
            .iter()
            .zip(&self.shared)
            .map(|(&row, &shared)| {
                let id = first.label[row as usize];
                if !id.is_some() || shared == 0 {
                    return LabelId::NONE;
                }
                first.labels.read(id, usize::MAX, &mut components);
                components.truncate(shared as usize);
                labels.push(LabelId::NONE, &components)
            })
            .collect();
        (labels, ids)
    }

    /// The combined XUs in depth-first order of their labels.
    fn label_order(&mut self, first: &XuTable) -> Vec<u32> {
        let prefixes = self
            .prefixes
            .get_or_insert_with(|| PrefixOrder::new(&first.labels, &first.label));
        let mut shared = vec![None; first.len()];
        for (&row, &length) in self.sources[0].iter().zip(&self.shared) {
            shared[row as usize] = Some(length);
        }
        let keys = prefixes.keys(|row| shared[row]);
        in_order(self.sources[0].iter().map(|&row| keys[row as usize]))
    }

    fn finish(self, runs: &[&XuTable]) -> Combined {
        let first = runs[0];
        let mut table = first.gather(&self.sources[0]);
        if self.shared.iter().any(|&s| s != u32::MAX) {
            let (labels, ids) = self.labels(first);
            table.labels = Arc::new(labels);
            table.label = ids;
        }
        table.events = self
            .events
            .par_iter()
            .map(|&(run, column)| runs[run].events[column].gather(&self.sources[run]))
            .collect();
        Combined {
            table,
            origins: self.events.iter().map(|&(run, _)| run as u16).collect(),
            sources: self.sources,
            column_sources: None,
            unmatched: Tally::list([self.tally]),
        }
    }
}

/// Positions in the order of their keys; ties keep theirs.
fn in_order(keys: impl Iterator<Item = u64>) -> Vec<u32> {
    let mut order: Vec<(u64, u32)> = keys.zip(0..).collect();
    order.par_sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// What identifies a type: [`Site::sort_key`].
type TypeKey<'a> = (&'a str, u64, &'a str);

/// Rows of each type, ascending.
pub(super) fn rows_by_type(
    sites: &[Site],
    len: usize,
    site: impl Fn(usize) -> u32,
) -> HashMap<TypeKey<'_>, Vec<u32>> {
    let rows: Vec<u32> = (0..len as u32).collect();
    by_type(sites, &rows, site)
}

/// The rows of each type, in the order that they are given in.
fn by_type<'a>(
    sites: &'a [Site],
    rows: &[u32],
    site: impl Fn(usize) -> u32,
) -> HashMap<TypeKey<'a>, Vec<u32>> {
    let mut number: HashMap<TypeKey<'_>, usize> = HashMap::new();
    let unknown = ("", u64::MAX, "");
    let keys = sites.iter().map(Site::sort_key).chain([unknown]);
    // Several sites can be one type.
    let type_of: Vec<usize> = keys
        .map(|key| {
            let next = number.len();
            *number.entry(key).or_insert(next)
        })
        .collect();
    let mut types: Vec<Vec<u32>> = vec![vec![]; number.len()];
    for &row in rows {
        let site = (site(row as usize) as usize).min(sites.len());
        types[type_of[site]].push(row);
    }
    let of_type = |(key, at): (TypeKey<'a>, usize)| (key, std::mem::take(&mut types[at]));
    let types = number.into_iter().map(of_type);
    types.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// The generator SplitMix64's output function.
fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The rows, shuffled: in another way for each seed, step and side.
fn shuffled(len: usize, seed: u64, step: usize, is_cur: bool) -> Vec<u32> {
    let stream = seed.wrapping_mul(1_000_003).wrapping_add(step as u64);
    let stream = splitmix64(stream ^ (u64::from(is_cur) << 63));
    in_order((0..len as u64).map(|row| splitmix64(stream ^ row) >> 1))
}
