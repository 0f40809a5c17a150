//! A run while it goes on: sums per region of what its threads have recorded by now.
//!
//! [`Live::read`] takes what has come in a thread's file since the last time ([`Live::offset`]), so that every record is
//! looked at once. The sums are those of a [`super::Summary`], in ticks. What needs all records of a region's execution in the order
//! of time isn't there: how often a team together executed something, and the waits of its workers before and after their parts.

mod enclosing;
mod kept;

use super::sums::{Numbers, Totals, is_first_part};
use crate::run::nodes::NodeSet;
use crate::spread;
use enclosing::Around;
use ompfuse_format::Construct;
use ompfuse_format::construct::{Charge, OverheadClass, Split};
use ompfuse_format::record::{
    Interval, NO_SITE, NOT_COUNTED, Record, RecordError, Records, ThreadHeader, USER_MODULE,
    split_site,
};
use std::collections::{BTreeMap, BTreeSet};

/// A region in the records: number of its process, and the record's site (that where its construct begins).
pub type LiveSite = (usize, u32);

/// Sums of a region, in ticks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveRegion {
    /// By kind of interval and thread.
    kinds: BTreeMap<Construct, BTreeMap<u32, Totals>>,
    /// By the event's place in [`Live`]: own counts of the intervals that have one.
    counts: Vec<Option<u64>>,
}

impl LiveRegion {
    /// `column`: by counter the event's place.
    fn add(&mut self, thread: u32, i: &Interval<'_>, is_first: bool, columns: &[Option<usize>]) {
        let numbers = Numbers::of(i, i.t1.saturating_sub(i.t0), |ticks| ticks);
        let of_kind = self.kinds.entry(i.construct).or_default();
        of_kind.entry(thread).or_default().add(&numbers, is_first);
        for (column, count) in columns.iter().zip(i.counts.iter()) {
            if let Some(at) = *column
                && count != NOT_COUNTED
            {
                self.add_count(at, count);
            }
        }
    }

    fn add_count(&mut self, at: usize, count: u64) {
        if self.counts.len() <= at {
            self.counts.resize(at + 1, None);
        }
        let total = self.counts[at].get_or_insert(0);
        *total = total.wrapping_add(count);
    }

    /// By kind and thread: count, own ticks and extent.
    #[cfg(test)]
    pub(crate) fn totals(&self) -> impl Iterator<Item = (Construct, u32, [u64; 3])> {
        let kinds = self.kinds.iter();
        kinds.flat_map(|(&construct, threads)| {
            let threads = threads.iter();
            threads.map(move |(&thread, t)| (construct, thread, [t.count, t.own, t.extent]))
        })
    }

    /// Intervals of some kinds.
    fn count(&self, wanted: impl Fn(Construct) -> bool) -> u64 {
        let kinds = self.kinds.iter().filter(|(c, _)| wanted(**c));
        kinds.flat_map(|(_, t)| t.values()).map(|t| t.count).sum()
    }

    /// How often it was entered, by all threads together; a parallel region by whom it was forked.
    pub fn entered(&self) -> u64 {
        // A thread's part of a region is not another entry, nor is what goes on inside of one.
        let is_inside = |c| matches!(c, Construct::Dispatch | Construct::TaskCreate);
        self.count(|c| !(c.is_xu() || c.is_part() || c.is_wait() || is_inside(c)))
    }

    /// Execution units.
    pub fn xus(&self) -> u64 {
        self.count(Construct::is_xu)
    }

    /// Its own ticks by thread ([`Live::thread_places`]), and by what that does: as [`Construct::split`] has it of sums.
    pub fn by_thread(&self) -> BTreeMap<u32, Split> {
        let mut threads: BTreeMap<u32, Split> = BTreeMap::new();
        for (construct, of_kind) in &self.kinds {
            for (&thread, totals) in of_kind {
                *threads.entry(thread).or_default() += construct.split(totals.own, totals.extent);
            }
        }
        threads
    }

    /// Its own ticks by thread, by what that does, and by the class of overhead that this is by the construct alone: whom a thread waited
    /// for isn't known yet. `None`: work.
    pub fn by_class(&self) -> BTreeMap<(u32, Option<OverheadClass>), Split> {
        let mut parts: BTreeMap<_, Split> = BTreeMap::new();
        for (construct, of_kind) in &self.kinds {
            for (&thread, totals) in of_kind {
                let Split {
                    work,
                    wait,
                    runtime,
                } = construct.split(totals.own, totals.extent);
                let none = Split::default();
                let class = construct.overhead_class();
                let of_runtime = match construct.charges_to() {
                    Charge::Entry => Some(Construct::AFTER_ENTRY),
                    _ => class,
                };
                *parts.entry((thread, None)).or_default() += Split { work, ..none };
                *parts.entry((thread, class)).or_default() += Split { wait, ..none };
                *parts.entry((thread, of_runtime)).or_default() += Split { runtime, ..none };
            }
        }
        parts
    }

    /// Its own ticks by what its threads do.
    pub fn split(&self) -> Split {
        let mut all = Split::default();
        self.by_thread().into_values().for_each(|part| all += part);
        all
    }

    /// All of its own ticks.
    pub fn ticks(&self) -> u64 {
        let Split {
            work,
            wait,
            runtime,
        } = self.split();
        work + wait + runtime
    }

    /// Threads that worked in it.
    pub fn workers(&self) -> usize {
        let threads = self.by_thread();
        threads.values().filter(|part| part.work > 0).count()
    }

    /// What came since an earlier state.
    #[must_use]
    pub fn since(&self, before: &LiveRegion) -> LiveRegion {
        let mut kinds = self.kinds.clone();
        for (construct, of_kind) in &mut kinds {
            for (thread, totals) in of_kind {
                let earlier = before.kinds.get(construct).and_then(|k| k.get(thread));
                *totals = totals.since(&earlier.copied().unwrap_or_default());
            }
        }
        let earlier = |at: usize| before.counts.get(at).copied().flatten().unwrap_or(0);
        let counts = self.counts.iter().enumerate();
        LiveRegion {
            kinds,
            counts: counts
                .map(|(at, n)| Some((*n)?.saturating_sub(earlier(at))))
                .collect(),
        }
    }
}

/// A thread's file, as far as it has been read.
#[derive(Debug, Clone, Default)]
struct Tail {
    offset: u64,
    lost: u64,
    unrecorded: u64,
}

/// What is known of a process beside its sums.
#[derive(Debug)]
struct Process {
    /// Units whose first part was met.
    met: NodeSet,
    around: Around,
    /// By site of a parallel region the threads that had a part of it.
    teams: BTreeMap<u32, BTreeSet<u32>>,
}

/// Sums over everything that has been read.
#[derive(Debug, Default)]
pub struct Live {
    /// The sums.
    pub regions: BTreeMap<LiveSite, LiveRegion>,
    /// What the program calls regions of its own.
    pub names: BTreeMap<LiveSite, String>,
    events: Vec<String>,
    tails: BTreeMap<(usize, u32), (u32, Tail)>,
    processes: BTreeMap<usize, Process>,
}

impl Live {
    /// Bytes of a thread's records that have been read.
    pub fn offset(&self, process: usize, header: &ThreadHeader) -> u64 {
        let tail = self.tails.get(&(process, header.index));
        tail.map_or(0, |(_, tail)| tail.offset)
    }

    /// Goes on with a thread's records: `fresh` are those behind [`Live::offset`], all of them. `sets`: by event set, the names
    /// of its counters. `region`: the site where the construct of a record's site begins.
    ///
    /// # Errors
    /// [`RecordError`] if they are damaged: what came before that is in the sums.
    pub fn read(
        &mut self,
        process: usize,
        header: &ThreadHeader,
        fresh: &[u8],
        sets: &BTreeMap<u8, Vec<Option<String>>>,
        region: impl Fn(u32) -> u32,
    ) -> Result<(), RecordError> {
        let (thread, tail) = self.tail(process, header);
        tail.offset += fresh.len() as u64;
        let thread = *thread;
        let columns: BTreeMap<u8, Vec<Option<usize>>> = sets
            .iter()
            .map(|(&set, names)| (set, self.columns(names)))
            .collect();
        let of_process = process_of(&mut self.processes, process);
        of_process.met.expect(fresh.len() / 24);
        for record in Records::of(header, fresh) {
            match record? {
                Record::Interval(i) => {
                    let site = match split_site(i.site) {
                        _ if i.site == NO_SITE => NO_SITE,
                        (USER_MODULE, _) => i.site,
                        _ => region(i.site),
                    };
                    of_process.note(thread, site, &i);
                    if site != NO_SITE {
                        let is_first =
                            !i.construct.is_xu() || is_first_part(&mut of_process.met, i.node);
                        let columns = columns.get(&i.set).map_or(&[][..], Vec::as_slice);
                        let sums = self.regions.entry((process, site)).or_default();
                        sums.add(thread, &i, is_first, columns);
                    }
                }
                Record::Node(n) => of_process.around.enter(n.construct, n.node, n.parent),
                Record::Name(n) => {
                    let text = String::from_utf8_lossy(n.text).into_owned();
                    self.names.insert((process, n.site), text);
                }
                Record::LeftOut(_) | Record::Parts(_) => {}
                Record::Object(_) | Record::Context(_) | Record::Calls(_) | Record::Lock(_) => {}
                Record::Message(_) | Record::Depend(_) | Record::Point(_) => {}
            }
        }
        of_process.around.settle();
        Ok(())
    }

    /// A thread's number, and how far its file has been read.
    fn tail(&mut self, process: usize, header: &ThreadHeader) -> &mut (u32, Tail) {
        let number = self.tails.len() as u32;
        let key = (process, header.index);
        let known = self.tails.entry(key).or_insert((number, Tail::default()));
        (known.1.lost, known.1.unrecorded) = (header.lost, header.unrecorded_ticks);
        known
    }

    /// By counter the place of its event.
    fn columns(&mut self, names: &[Option<String>]) -> Vec<Option<usize>> {
        let mut place = |name: &String| {
            let known = self.events.iter().position(|e| e == name);
            known.unwrap_or_else(|| {
                self.events.push(name.clone());
                self.events.len() - 1
            })
        };
        let places = names.iter().map(|name| name.as_ref().map(&mut place));
        places.collect()
    }

    /// Own counts by event, of the intervals that have one.
    pub fn counts(&self, region: &LiveRegion) -> BTreeMap<String, u64> {
        let counts = self.events.iter().zip(&region.counts);
        counts
            .filter_map(|(event, count)| Some((event.clone(), (*count)?)))
            .collect()
    }

    /// The [`spread::imbalance`] of work in a region, or of the work since some time. It is taken over the threads that were there or
    /// took part in the parallel regions around, as far as these have ended.
    pub fn imbalance(&self, site: LiveSite, region: &LiveRegion) -> f64 {
        let mut threads = region.by_thread();
        if let Some(process) = self.processes.get(&site.0) {
            for thread in process.team(site.1) {
                threads.entry(thread).or_default();
            }
        }
        let work: Vec<u64> = threads.into_values().map(|part| part.work).collect();
        spread::imbalance(&work)
    }

    /// The threads that have recorded, by the number that they have here: the process, and the thread's number in it.
    pub fn thread_places(&self) -> BTreeMap<u32, (usize, u32)> {
        let tails = self.tails.iter();
        tails
            .map(|(&place, (number, _))| (*number, place))
            .collect()
    }

    /// Threads that have recorded.
    pub fn threads(&self) -> usize {
        self.tails.len()
    }

    /// Records that could not be written.
    pub fn lost(&self) -> u64 {
        self.tails.values().map(|(_, t)| t.lost).sum()
    }

    /// Ticks in intervals that are not on record, because they were switched off.
    pub fn unrecorded_ticks(&self) -> u64 {
        self.tails.values().map(|(_, t)| t.unrecorded).sum()
    }
}

fn process_of(processes: &mut BTreeMap<usize, Process>, number: usize) -> &mut Process {
    processes.entry(number).or_insert_with(|| Process {
        met: NodeSet::new(0),
        around: Around::default(),
        teams: BTreeMap::new(),
    })
}

impl Process {
    /// Takes in where an interval is.
    fn note(&mut self, thread: u32, site: u32, i: &Interval<'_>) {
        if i.construct.is_part() {
            self.teams.entry(site).or_default().insert(thread);
        }
        match i.construct.is_fork() {
            true => self.around.enter_fork(i.node, site),
            false => {
                self.around.enter(i.construct, i.node, i.parent);
                self.around.note(i.parent, site);
            }
        }
    }

    /// The threads that took part in a region, if it is a parallel one, or in those around.
    fn team(&self, site: u32) -> BTreeSet<u32> {
        let around = self.around.of(site).chain([site]);
        let teams = around.filter_map(|site| self.teams.get(&site));
        teams.flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests;
