//! Counting what is unmatched.

use super::{Reason, Unmatched};
use crate::table::{Site, XuTable};
use ompfuse_format::Construct;
use std::collections::HashMap;

/// Labels of more components than this are not shown as examples.
const EXAMPLE_LIMIT: usize = 64;

/// What identifies an entry: run, site, construct, reason.
type TallyKey = (u16, u32, Option<Construct>, Reason);

/// Counts what is unmatched. For one run it is always called with the same table, as sites are told apart by position.
#[derive(Debug, Default)]
pub(super) struct Tally {
    entries: HashMap<TallyKey, Unmatched>,
}

impl Tally {
    pub(super) fn add(&mut self, run: u16, table: &XuTable, row: usize, reason: Reason) {
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
    pub(super) fn list(tallies: impl IntoIterator<Item = Tally>) -> Vec<Unmatched> {
        let entries = tallies.into_iter().flat_map(|t| t.entries.into_values());
        list(entries.collect())
    }
}

/// As [`Tally::list`], of lists.
pub(crate) fn list(mut list: Vec<Unmatched>) -> Vec<Unmatched> {
    let mut merged: Vec<Unmatched> = Vec::new();
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
