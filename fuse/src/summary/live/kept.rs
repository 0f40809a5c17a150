//! The same from the sums that a program's threads keep themselves (`record --units sums`).

use super::{Live, LiveRegion, process_of};
use crate::summary::sums::Totals;
use ompfuse_format::Construct;
use ompfuse_format::record::sums::{Entry, Intervals, entries, interval};
use ompfuse_format::record::{NO_SITE, NOT_COUNTED, ThreadHeader, USER_MODULE, split_site};

impl Live {
    /// Forgets the sums of a process, which are told as a whole each time.
    pub fn begin_sums(&mut self, process: usize) {
        self.regions.retain(|(of, _), _| *of != process);
    }

    /// Adds a thread's sums: all of its table. `names`: of the first event set's counters. `region`: the site where the construct of a
    /// record's site begins.
    pub fn add_sums(
        &mut self,
        process: usize,
        header: &ThreadHeader,
        table: &[u8],
        names: &[Option<String>],
        region: impl Fn(u32) -> u32,
    ) {
        let thread = self.tail(process, header).0;
        let columns = self.columns(names);
        for entry in entries(table) {
            let Entry::Intervals(i) = entry else { continue };
            let site = match split_site(i.site) {
                _ if i.site == NO_SITE => continue,
                (USER_MODULE, _) => i.site,
                _ => region(i.site),
            };
            let of_process = process_of(&mut self.processes, process);
            if i.construct.is_part() {
                of_process.teams.entry(site).or_default().insert(thread);
            }
            of_process.around.add(site, i.parallel().map(&region));
            let sums = self.regions.entry((process, site)).or_default();
            sums.add_sums(thread, &i, &columns);
        }
    }
}

impl LiveRegion {
    fn add_sums(&mut self, thread: u32, i: &Intervals<'_>, columns: &[Option<usize>]) {
        let of_kind = self.kinds.entry(i.construct).or_default();
        of_kind.entry(thread).or_default().merge(&Totals {
            count: i.sum(interval::COUNT),
            own: i.sum(interval::OWN),
            wall: i.sum(interval::WALL),
            extent: match i.construct {
                Construct::Section => 0,
                _ => i.sum(interval::EXTENT),
            },
        });
        for (column, count) in columns.iter().zip(i.counts()) {
            if let Some(at) = *column
                && count != NOT_COUNTED
            {
                self.add_count(at, count);
            }
        }
    }
}
