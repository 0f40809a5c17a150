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
        let step = self.sources.len();
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
        let is_counted = |row: u32| new.iter().all(|e| e.get(row as usize).is_some());
        let prev_types = rows_by_type(&self.first.sites, self.confidence.len(), |p| {
            self.first.site[self.sources[0][p] as usize]
        });
        let cur_types = rows_by_type(&cur.sites, cur.len(), |row| cur.site[row]);
        let cur_keys = keys(cur);
        let mut types: Vec<_> = prev_types.keys().copied().collect();
        types.sort_unstable();
        let matched: Vec<OfType> = types
            .par_iter()
            .map(|key| {
                let theirs = cur_types.get(key).map_or(&[][..], Vec::as_slice);
                let prev = prev_types[key].clone();
                let counted = theirs.iter().copied().filter(|&r| is_counted(r));
                let counted: Vec<u32> = counted.collect();
                // An event that some of them lack says nothing of those: then labels do, for the whole type.
                let has_all = |e: &EventColumn, rows: &[u32]| {
                    e.present.is_none() || rows.iter().all(|&r| e.get(r as usize).is_some())
                };
                let mut common = common.clone();
                common.retain(|(a, b)| has_all(a, &prev) && has_all(b, &counted));
                let is_by_label = common.is_empty();
                let rows = if is_by_label {
                    theirs.to_vec()
                } else {
                    counted
                };
                let of = |e: &EventColumn, rows: &[u32]| -> Vec<f64> {
                    rows.iter().map(|&r| e.values[r as usize] as f64).collect()
                };
                let counts = Counts {
                    common: common
                        .iter()
                        .map(|(ours, theirs)| (of(ours, &prev), of(theirs, &rows)))
                        .collect(),
                    new: new.iter().map(|e| of(e, &rows)).collect(),
                };
                let key = |keys: &[Option<u128>], &row: &u32| keys[row as usize];
                let ours = prev.iter().map(|p| key(&self.keys, p));
                let others = rows.iter().map(|row| key(&cur_keys, row));
                let labels = Partners::new(step as u16, ours.clone(), others.clone());
                let partner: Vec<_> = ours.map(|key| labels.of_first(key)).collect();
                if !is_by_label {
                    return OfType {
                        pairs: match_counts(&prev, &rows, &counts, &partner),
                        is_by_label,
                        alone: [vec![], vec![]],
                    };
                }
                let alone = prev.iter().zip(&partner);
                let alone = alone.filter_map(|(&p, found)| Some((p, found.err()?)));
                let others = others.map(|key| labels.of_further(key));
                OfType {
                    pairs: match_labels(&prev, &rows, &partner, new.len()),
                    is_by_label,
                    alone: [
                        alone.collect(),
                        (rows.iter().zip(others))
                            .filter_map(|(&row, reason)| Some((row, reason?)))
                            .collect(),
                    ],
                }
            })
            .collect();

        let n = self.confidence.len();
        let mut is_matched = vec![false; n];
        let mut of_event = vec![vec![NONE; n]; new.len()];
        let mut is_used = vec![false; cur.len()];
        let mut is_by_label = vec![false; n];
        let mut alone = [HashMap::new(), HashMap::new()];
        for of_type in matched {
            for (all, of_type) in alone.iter_mut().zip(of_type.alone) {
                all.extend(of_type);
            }
            let (by_label, of_type) = (of_type.is_by_label, of_type.pairs);
            for (&p, &confidence) in of_type.prev.iter().zip(&of_type.confidence) {
                is_by_label[p as usize] = by_label;
                is_matched[p as usize] = true;
                let known = &mut self.confidence[p as usize];
                *known = known.min(confidence);
            }
            for (sources, rows) in of_event.iter_mut().zip(&of_type.cur) {
                for (&p, &row) in of_type.prev.iter().zip(rows) {
                    sources[p as usize] = row;
                    is_used[row as usize] = true;
                }
            }
        }
        if is_by_label.contains(&true) {
            // All that is left is what labels say.
            let mut source = vec![NONE; self.first.len()];
            let rows = self.sources[0].iter().zip(&of_event[0]).zip(&is_by_label);
            for ((&row, &from), _) in rows.filter(|(_, by_label)| **by_label) {
                source[row as usize] = from;
            }
            let found = recurrence::of_matches(&self.first, cur, &source);
            let rows = self.confidence.iter_mut().zip(&self.sources[0]);
            for ((known, &row), _) in rows.zip(&is_by_label).filter(|(_, by_label)| **by_label) {
                *known = known.min(found[row as usize]);
            }
        }
        let [alone, others_alone] = alone;
        for row in (0..cur.len() as u32).filter(|&r| !is_used[r as usize]) {
            let reason = match others_alone.get(&row) {
                Some(&reason) => reason,
                None if common.is_empty() => Reason::Absent { run: 0 },
                None if is_counted(row) => Reason::Surplus { run: 0 },
                None => Reason::Uncounted,
            };
            self.tally.add(step as u16, cur, row as usize, reason);
        }
        let (kept, lost): (Vec<u32>, Vec<u32>) =
            (0..n as u32).partition(|&p| is_matched[p as usize]);
        for &p in &lost {
            let surplus = Reason::Surplus { run: step as u16 };
            let reason = alone.get(&p).copied().unwrap_or(surplus);
            let row = self.sources[0][p as usize] as usize;
            self.tally.add(0, &self.first, row, reason);
            for (run, rows) in (1..).zip(&self.sources[1..]) {
                if rows[p as usize] != NONE {
                    self.given_up.add(run, &self.first, row, reason);
                }
            }
        }
        self.sources.push(of_event[0].clone());
        let added: Vec<_> = new
            .into_par_iter()
            .zip(of_event)
            .map(|(event, sources)| (event, gather(&sources, &kept)))
            .map(|(event, sources)| (event.gather(&sources), step as u16, sources))
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

/// What became of the XUs of one type.
struct OfType {
    pairs: Match,
    /// Runs share no event that all of them show.
    is_by_label: bool,
    /// By label: who has no partner, of prev and of cur.
    alone: [Vec<(u32, Reason)>; 2],
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
