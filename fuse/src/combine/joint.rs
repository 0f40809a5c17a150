//! By label and behaviour together: our own strategy.
//!
//! Every XU of the first run gets, of each further run, counts that are most likely to be what it would have shown itself.
//! What is likely is learnt from the further run and from the events that both counted (see [`model`]): where labels fix what
//! an XU does, labels decide; where it depends on the schedule, behaviour does; where runs share no event, labels are all
//! there is. Each count is given to one XU, so that the counts keep their distribution; an XU can get those of one run from
//! several XUs of its type. The confidence is stated for each XU.

mod alike;
mod model;
mod pairs;
mod partners;
mod regression;
#[cfg(test)]
mod tests;

use super::bc::rows_by_type;
use super::tally::Tally;
use super::{Combined, Reason, keys, percent, recurrence, stated};
use crate::table::{EventColumn, XuTable, gather};
use model::{Counts, Match};
use partners::Partners;
use rayon::prelude::*;
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// Combines runs by label and behaviour. Rows are in the first run's order and keep its labels.
pub fn combine_joint(runs: &[&XuTable]) -> Combined {
    let mut runs = runs.iter();
    let mut join = JointJoin::new(
        runs.next()
            .map_or_else(XuTable::default, |&first| first.clone()),
    );
    runs.for_each(|table| join.add(table));
    join.finish()
}

/// See [`combine_joint`]. Takes one run after the other, so that not all need to be in memory together.
#[derive(Debug)]
pub struct JointJoin {
    first: XuTable,
    /// Per run the row of each combined XU; [`NONE`] in runs that had nothing to add.
    sources: Vec<Vec<u32>>,
    /// The counts of each event, a row per combined XU, the run, and the row there.
    columns: Vec<(EventColumn, u16, Vec<u32>)>,
    confidence: Vec<f32>,
    /// What identifies the first run's XU in every run.
    keys: Vec<Option<u128>>,
    tally: Tally,
    /// XUs of later runs whose counterpart in the first was given up: by the first run's sites.
    given_up: Tally,
}

impl JointJoin {
    /// Starts with the first run.
    pub fn new(mut first: XuTable) -> JointJoin {
        let rows: Vec<u32> = (0..first.len() as u32).collect();
        JointJoin {
            columns: std::mem::take(&mut first.events)
                .into_iter()
                .map(|column| (column, 0, rows.clone()))
                .collect(),
            sources: vec![rows],
            confidence: stated(&first),
            keys: keys(&first),
            first,
            tally: Tally::default(),
            given_up: Tally::default(),
        }
    }

    /// Joins the next run.
    pub fn add(&mut self, cur: &XuTable) {
        let step = self.sources.len() as u16;
        let (mut common, mut new) = (vec![], vec![]);
        for theirs in &cur.events {
            match self.columns.iter().find(|(c, ..)| c.name == theirs.name) {
                Some((ours, ..)) => common.push((ours, theirs)),
                None => new.push(theirs),
            }
        }
        if new.is_empty() {
            // It has nothing to add.
            self.sources.push(vec![NONE; self.confidence.len()]);
            return;
        }
        let added = new.clone();
        let next = Next {
            step,
            cur,
            keys: keys(cur),
            common,
            new,
        };
        let matched = next.matched(self);
        let found = Found::new(&next, matched, self.confidence.len());
        let by_recurrence = found.by_recurrence(&next, self);
        let surplus = found.unused(&next);
        for (p, confidence) in found.confidence.iter().chain(&by_recurrence) {
            let known = &mut self.confidence[*p as usize];
            *known = known.min(*confidence);
        }
        for (row, reason) in surplus {
            self.tally.add(step, cur, row as usize, reason);
        }
        self.keep(step, found, added);
    }

    /// Adds the counts of the next run, `added`, and leaves out what had no counterpart in it.
    fn keep(&mut self, step: u16, found: Found, added: Vec<&EventColumn>) {
        let all = 0..self.confidence.len() as u32;
        let (kept, lost): (Vec<u32>, Vec<u32>) = all.partition(|&p| found.is_matched[p as usize]);
        for &p in &lost {
            let reason = found.alone.get(&p).copied();
            let reason = reason.unwrap_or(Reason::Surplus { run: step });
            let row = self.sources[0][p as usize] as usize;
            self.tally.add(0, &self.first, row, reason);
            for (run, rows) in (1..).zip(&self.sources[1..]) {
                if rows[p as usize] != NONE {
                    self.given_up.add(run, &self.first, row, reason);
                }
            }
        }
        self.sources.push(found.of_event[0].clone());
        let added: Vec<_> = added
            .into_par_iter()
            .zip(found.of_event)
            .map(|(event, sources)| (event, gather(&sources, &kept)))
            .map(|(event, sources)| (event.gather(&sources), step, sources))
            .collect();
        if !lost.is_empty() {
            for rows in &mut self.sources {
                *rows = gather(rows, &kept);
            }
            for (column, _, sources) in &mut self.columns {
                *column = column.gather(&kept);
                *sources = gather(sources, &kept);
            }
            self.confidence = gather(&self.confidence, &kept);
            self.keys = gather(&self.keys, &kept);
        }
        self.columns.extend(added);
    }

    /// The result.
    pub fn finish(self) -> Combined {
        let mut table = self.first.into_gathered(&self.sources[0]);
        table.confidence = Some(percent(&self.confidence));
        let (mut origins, mut of_column) = (vec![], vec![]);
        for (column, run, sources) in self.columns {
            table.events.push(column);
            origins.push(run);
            of_column.push(sources);
        }
        Combined {
            table,
            origins,
            sources: self.sources,
            column_sources: Some(of_column),
            unmatched: Tally::list([self.tally, self.given_up]),
        }
    }
}

/// A further run on its way into the join.
struct Next<'a> {
    step: u16,
    cur: &'a XuTable,
    /// What identifies its XUs in every run.
    keys: Vec<Option<u128>>,
    /// Events that are known already: ours, and the run's.
    common: Vec<(&'a EventColumn, &'a EventColumn)>,
    new: Vec<&'a EventColumn>,
}

impl Next<'_> {
    /// Whether all new events of an XU were counted.
    fn is_counted(&self, row: u32) -> bool {
        let mut new = self.new.iter();
        new.all(|event| event.get(row as usize).is_some())
    }

    /// The pairs of each type, in the order of types.
    fn matched(&self, join: &JointJoin) -> Vec<OfType> {
        let rows = join.confidence.len();
        let prev_types = rows_by_type(&join.first.sites, rows, |p| {
            join.first.site[join.sources[0][p] as usize]
        });
        let cur_types = rows_by_type(&self.cur.sites, self.cur.len(), |row| self.cur.site[row]);
        let mut types: Vec<_> = prev_types.into_iter().collect();
        types.sort_unstable_by_key(|(key, _)| *key);
        let of_type = |(key, prev): &(_, Vec<u32>)| {
            let theirs = cur_types.get(key).map_or(&[][..], Vec::as_slice);
            self.of_type(&join.keys, prev, theirs)
        };
        types.par_iter().map(of_type).collect()
    }

    /// `prev`, `theirs`: the XUs of one type; `keys`: what identifies those of prev.
    fn of_type(&self, keys: &[Option<u128>], prev: &[u32], theirs: &[u32]) -> OfType {
        let counted = theirs.iter().copied().filter(|&r| self.is_counted(r));
        let counted: Vec<u32> = counted.collect();
        // An event that some of them lack says nothing of those: then labels do, for the whole type.
        let has_all = |e: &EventColumn, rows: &[u32]| {
            e.present.is_none() || rows.iter().all(|&r| e.get(r as usize).is_some())
        };
        let mut common = self.common.clone();
        common.retain(|(a, b)| has_all(a, prev) && has_all(b, &counted));
        let is_by_label = common.is_empty();
        let rows = if is_by_label {
            theirs.to_vec()
        } else {
            counted
        };
        let key = |keys: &[Option<u128>], &row: &u32| keys[row as usize];
        let ours = prev.iter().map(|p| key(keys, p));
        let others = rows.iter().map(|row| key(&self.keys, row));
        let labels = Partners::new(self.step, ours.clone(), others.clone());
        let partner: Vec<_> = ours.map(|key| labels.of_first(key)).collect();
        if is_by_label {
            let alone = prev.iter().zip(&partner);
            let others = rows.iter().zip(others.map(|key| labels.of_further(key)));
            return OfType {
                pairs: match_labels(prev, &rows, &partner, self.new.len()),
                is_by_label,
                alone: alone.filter_map(|(&p, of)| Some((p, of.err()?))).collect(),
                others: others.filter_map(|(&r, why)| Some((r, why?))).collect(),
            };
        }
        let of = |e: &EventColumn, rows: &[u32]| -> Vec<f64> {
            rows.iter().map(|&r| e.values[r as usize] as f64).collect()
        };
        let both = common.iter();
        let counts = Counts {
            common: both
                .map(|(ours, theirs)| (of(ours, prev), of(theirs, &rows)))
                .collect(),
            new: self.new.iter().map(|e| of(e, &rows)).collect(),
        };
        OfType {
            pairs: match_counts(prev, &rows, &counts, &partner),
            is_by_label,
            alone: vec![],
            others: vec![],
        }
    }
}

/// What the types' pairs say together.
struct Found {
    is_matched: Vec<bool>,
    /// Matched by labels alone.
    is_by_label: Vec<bool>,
    /// Of each new event, the row that it comes from.
    of_event: Vec<Vec<u32>>,
    /// Of the matched XUs.
    confidence: Vec<(u32, f32)>,
    /// Rows of the further run that something came from.
    is_used: Vec<bool>,
    /// By label: who has no partner, of prev.
    alone: HashMap<u32, Reason>,
    /// The same, of the further run.
    others: HashMap<u32, Reason>,
}

impl Found {
    /// `n`: how many XUs there are so far.
    fn new(next: &Next<'_>, matched: Vec<OfType>, n: usize) -> Found {
        let mut found = Found {
            is_matched: vec![false; n],
            is_by_label: vec![false; n],
            of_event: vec![vec![NONE; n]; next.new.len()],
            confidence: vec![],
            is_used: vec![false; next.cur.len()],
            alone: HashMap::new(),
            others: HashMap::new(),
        };
        for of_type in matched {
            found.alone.extend(of_type.alone);
            found.others.extend(of_type.others);
            let pairs = of_type.pairs;
            for &p in &pairs.prev {
                found.is_by_label[p as usize] = of_type.is_by_label;
                found.is_matched[p as usize] = true;
            }
            let stated = pairs.prev.iter().copied().zip(pairs.confidence);
            found.confidence.extend(stated);
            for (sources, rows) in found.of_event.iter_mut().zip(&pairs.cur) {
                for (&p, &row) in pairs.prev.iter().zip(rows) {
                    sources[p as usize] = row;
                    found.is_used[row as usize] = true;
                }
            }
        }
        found
    }

    /// The confidence of XUs that only labels tell something of.
    fn by_recurrence(&self, next: &Next<'_>, join: &JointJoin) -> Vec<(u32, f32)> {
        if !self.is_by_label.contains(&true) {
            return vec![];
        }
        let first_rows = &join.sources[0];
        let by_label = || (0..).zip(&self.is_by_label).filter(|(_, is)| **is);
        let mut source = vec![NONE; join.first.len()];
        for (p, _) in by_label() {
            source[first_rows[p] as usize] = self.of_event[0][p];
        }
        let recurs = recurrence::of_matches(&join.first, next.cur, &source);
        let stated = by_label().map(|(p, _)| (p as u32, recurs[first_rows[p] as usize]));
        stated.collect()
    }

    /// Rows of the further run that nothing came from.
    fn unused(&self, next: &Next<'_>) -> Vec<(u32, Reason)> {
        let why = |row: u32| match self.others.get(&row) {
            Some(&reason) => reason,
            None if next.common.is_empty() => Reason::Absent { run: 0 },
            None if next.is_counted(row) => Reason::Surplus { run: 0 },
            None => Reason::Uncounted,
        };
        let rows = (0..).zip(&self.is_used).filter(|(_, is_used)| !**is_used);
        rows.map(|(row, _)| (row, why(row))).collect()
    }
}

/// What became of the XUs of one type.
struct OfType {
    pairs: Match,
    /// Runs share no event that all of them show.
    is_by_label: bool,
    /// By label: who has no partner, of prev.
    alone: Vec<(u32, Reason)>,
    /// The same, of cur.
    others: Vec<(u32, Reason)>,
}

/// Pairs the XUs of one type by label and behaviour: positions in prev, rows of cur.
fn match_counts(
    prev: &[u32],
    cur: &[u32],
    counts: &Counts,
    partner: &[Result<u32, Reason>],
) -> Match {
    if prev.is_empty() || cur.is_empty() {
        return Match::default();
    }
    let partner: Vec<Option<u32>> = partner.iter().map(|found| found.ok()).collect();
    let found = model::matched(counts, &partner, cur.len());
    Match {
        prev: gather(prev, &found.prev),
        cur: found.cur.iter().map(|rows| gather(cur, rows)).collect(),
        confidence: found.confidence,
    }
}

/// The same where labels are all that there is, for so many new events.
fn match_labels(
    prev: &[u32],
    cur: &[u32],
    partner: &[Result<u32, Reason>],
    events: usize,
) -> Match {
    let pairs = prev.iter().zip(partner);
    let pairs = pairs.filter_map(|(&p, found)| Some((p, cur[found.ok()? as usize])));
    let (prev, rows): (Vec<u32>, Vec<u32>) = pairs.unzip();
    Match {
        confidence: vec![1.0; prev.len()],
        prev,
        cur: vec![rows; events],
    }
}
