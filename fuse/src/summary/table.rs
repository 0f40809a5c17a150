//! From a foreign table's units to a [`Summary`].

use super::collect::{names, origins};
use super::groups::{Groups, Key};
use super::sums::Numbers;
use super::sums::length;
use super::tree::Paths;
use super::{RunSummary, Summary};
use crate::run::{EventInfo, Health, NONE};
use crate::table::{EventColumn, XuTable};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

impl Summary {
    /// Of a foreign table: its XUs only. `name`: what the user calls it.
    pub fn of_table(name: &str, table: &XuTable) -> Summary {
        let mut sums = TableSums::default();
        sums.add(table);
        sums.finish(name, table)
    }
}

/// A foreign table's sums, as it is read piece by piece.
#[derive(Debug, Default)]
pub(crate) struct TableSums {
    groups: Groups,
    /// Numbers of threads of all processes together.
    threads: HashMap<(u16, u32), u32>,
    xus: u64,
}

impl TableSums {
    /// The next piece; sites keep their positions.
    pub(crate) fn add(&mut self, table: &XuTable) {
        for row in 0..table.len() {
            let key = Key {
                site: table.site[row],
                construct: table.construct[row],
                parallel: NONE,
                path: Paths::ROOT,
            };
            let numbers = xu_numbers(table, row);
            let thread = self.thread(table, row);
            let group = self
                .groups
                .add(key, thread, numbers, (&table.events, &[]), row);
            group.single += 1;
        }
        self.xus += table.len() as u64;
    }

    /// The number of a row's thread: that of a foreign table, or one among all processes.
    fn thread(&mut self, table: &XuTable, row: usize) -> u32 {
        let thread = (table.process[row], table.thread[row]);
        let next = self.threads.len() as u32;
        match self.threads.entry(thread) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) if table.construct[row].is_none() => *new.insert(thread.1),
            Entry::Vacant(new) => *new.insert(next),
        }
    }

    /// The summary. `last`: the last piece, which has all sites. `name`: what the user calls it.
    pub(crate) fn finish(self, name: &str, last: &XuTable) -> Summary {
        let info = |e: &EventColumn| EventInfo {
            name: e.name.clone(),
            counted: true,
            reason: None,
            scaled: false,
        };
        let infos: Vec<EventInfo> = last.events.iter().map(info).collect();
        let events = origins(&infos);
        Summary {
            program: name.to_owned(),
            threads: self.threads.len() as u32,
            sites: last.sites.to_vec(),
            regions: (self.groups.into_stats(&names(&last.events), &[], &events)).0,
            events,
            runs: vec![RunSummary {
                name: name.to_owned(),
                started: None,
                fixed_addresses: false,
                duration_s: None,
                pace_s: None,
                exit: None,
                events: infos,
                region_events: vec![],
                processes: vec![],
                xus: self.xus,
                health: Health::default(),
                switch_cost_ns: None,
                recorded: None,
                ranks: vec![],
                sums_only: false,
            }],
            ..Summary::default()
        }
    }
}

pub(super) fn xu_numbers(table: &XuTable, row: usize) -> Numbers {
    Numbers {
        own: table.own_ns[row],
        wall: length(table.t0_ns[row], table.t1_ns[row]),
        extent: table.iterations[row],
    }
}
