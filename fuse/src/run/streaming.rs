//! A run whose records are read once, in the order of time, and kept nowhere. It has what there is to begin with, and what
//! is known at the end; [`crate::summary`] makes sums of what comes in between.

use super::account::{Account, with_a_root};
use super::clock::Clock;
use super::contexts::AllContexts;
use super::files::{RunFiles, ThreadBytes};
use super::health::Problem;
use super::order::{Counters, clocks, counters, events, in_order, needs_last};
use super::read::RunReader;
use super::rows::Places;
use super::shared;
use super::sites::module_map;
use super::survey::{Surveyed, is_met, usable};
use super::{Health, Run, ThreadAccount};
use ompfuse_format::record::sums::{Entry, Intervals, interval};
use ompfuse_format::record::{Interval, Record, RecordError, USER_MODULE, split_site};
use ompfuse_format::run::RunModule;
use ompfuse_format::site::SiteInfo;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A run that is about to be read.
pub(crate) struct Streaming<'f, 'a> {
    files: &'f RunFiles<'a>,
    /// The events that have a column.
    counted: Vec<String>,
    /// Those of them that took turns on the processor's counters, by position.
    shared: Vec<usize>,
    pub(crate) processes: Vec<StreamingProcess<'f, 'a>>,
    damaged: Vec<Problem>,
}

/// A process of it.
pub(crate) struct StreamingProcess<'f, 'a> {
    pub(crate) clock: Clock,
    /// By event set: per column the counter in the records.
    counters: Counters,
    pub(crate) threads: Vec<StreamingThread<'a>>,
    pub(crate) sites: Regions<'f>,
    /// Bytes of records.
    pub(crate) bytes: usize,
}

/// A thread of it.
pub(crate) struct StreamingThread<'a> {
    pub(crate) found: Surveyed<'a>,
    account: Account,
    /// It forks where no parallel region is around it.
    pub(crate) forks_outermost: bool,
}

/// The region that a record's site belongs to.
pub(crate) struct Regions<'f> {
    modules: BTreeMap<u32, &'f RunModule>,
    known: FxHashMap<u32, Region>,
    /// By a region's own site the first of its sites that was met.
    first: FxHashMap<u32, u32>,
    last: Option<(u32, Region)>,
}

/// See [`Regions`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    /// The site that stands for all of the region's: one that records have.
    pub(crate) site: u32,
    /// It has a place, so that what is in it has a label.
    pub(crate) is_known: bool,
}

impl Regions<'_> {
    /// A record's site, with its module.
    pub(crate) fn info(&self, site: u32) -> Option<(&RunModule, &SiteInfo)> {
        let (module, index) = split_site(site);
        let module = self.modules.get(&module)?;
        Some((module, module.sites.get(index as usize)?))
    }

    #[inline]
    pub(crate) fn of(&mut self, site: u32) -> Region {
        match self.last {
            Some((last, region)) if last == site => return region,
            _ => {}
        }
        let modules = &self.modules;
        let region = *(self.known.entry(site)).or_insert_with(|| {
            let (module, index) = split_site(site);
            let sites = modules
                .get(&module)
                .map(|m| &m.sites[..])
                .unwrap_or_default();
            let info = sites.get(index as usize);
            let region = info.map_or(index, |i| i.region);
            let whole = match (region as usize) < sites.len() {
                true => module << 24 | region,
                false => site,
            };
            Region {
                site: *self.first.entry(whole).or_insert(site),
                // Names of the program's own are there when all is read ([`StreamingProcess::has_names`]).
                is_known: info.is_some() || module == USER_MODULE,
            }
        });
        self.last = Some((site, region));
        region
    }
}

impl<'f> Regions<'f> {
    /// Module and name of a site's region, as [`Site::key`](crate::table::Site::key) has them; `None`: it isn't known.
    pub(crate) fn key(&self, site: u32) -> Option<(&'f str, String)> {
        let (module, index) = split_site(site);
        let module = *self.modules.get(&module)?;
        let info = module.sites.get(index as usize)?;
        let region = module.sites.get(info.region as usize).unwrap_or(info);
        Some((
            super::sites::module_name(module),
            region.address.to_string(),
        ))
    }
}

impl<'f, 'a> Streaming<'f, 'a> {
    /// Looks at the files' headers.
    pub(crate) fn new(files: &'f RunFiles<'a>) -> Streaming<'f, 'a> {
        let in_order = in_order(files);
        let (_, counted, shared) = events(files, &in_order);
        let needs_last = needs_last(&in_order);
        let (mut damaged, mut processes, mut last) = (vec![], vec![], vec![]);
        for process in &in_order {
            let open = |thread: &'f ThreadBytes<'a>| (thread, Surveyed::new(thread.bytes));
            let opened: Vec<(&ThreadBytes<'a>, Result<Surveyed<'a>, RecordError>)> =
                process.threads.iter().map(open).collect();
            let (threads, problems) = usable(process, opened);
            damaged.extend(problems);
            let ends = threads.iter().map(|t| last_tick(t, needs_last));
            last.push(ends.max().unwrap_or(0));
            let modules = module_map(process, &files.header.modules, &mut Health::default());
            let modules = modules.into_iter();
            let modules = modules.map(|(number, at)| (number, &files.header.modules[at]));
            processes.push((process, threads, modules.collect()));
        }
        let clocks = clocks(&in_order, &last, files.header.duration_s);
        let processes = processes.into_iter().zip(clocks);
        let processes = processes.map(|((files, threads, modules), (clock, _))| {
            let thread = |found: Surveyed<'a>| StreamingThread {
                account: Account::new(&found.file.header),
                found,
                forks_outermost: false,
            };
            let threads: Vec<StreamingThread<'a>> = threads.into_iter().map(thread).collect();
            StreamingProcess {
                clock,
                counters: counters(files, &counted, &shared),
                bytes: threads.iter().map(|t| t.found.file.records().left()).sum(),
                threads,
                sites: Regions {
                    modules,
                    known: FxHashMap::default(),
                    first: FxHashMap::default(),
                    last: None,
                },
            }
        });
        Streaming {
            files,
            processes: processes.collect(),
            counted,
            shared,
            damaged,
        }
    }

    /// Columns of counts: those of the events, then what scales some of them ([`shared::with_times`]).
    pub(crate) fn columns(&self) -> usize {
        shared::with_times(&self.counted, &self.shared).len()
    }

    /// A column of sums as those of a table: the events, and what scaled ones are made of.
    pub(crate) fn parted(&self, sums: &[Option<u64>]) -> Vec<Option<u64>> {
        let events = self.counted.len();
        let mut parted = sums[..events].to_vec();
        for (times, &at) in sums[events..].chunks(shared::COLUMNS - 1).zip(&self.shared) {
            parted.push(sums[at]);
            parted.extend_from_slice(times);
        }
        parted
    }

    /// Names of the events, and for each of those that are scaled its own as often as it has columns.
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>) {
        let of = |&at: &usize| [&self.counted[at]; shared::COLUMNS];
        let made_of = self.shared.iter().flat_map(of).cloned();
        (self.counted.clone(), made_of.collect())
    }

    /// What is known of the run, without any rows; by process and record's site the position in its sites; and the run's contexts.
    pub(crate) fn finish(self, unlabelled: u64) -> (Run, Vec<Places>, AllContexts) {
        let Streaming {
            files,
            counted,
            processes,
            damaged,
            ..
        } = self;
        let (mut surveyed, mut accounts, mut problems) = (vec![], vec![], damaged);
        for (number, process) in (0..).zip(processes) {
            let nothing = vec![None; counted.len()];
            let first = process.counters.get(&0).unwrap_or(&nothing);
            let of_threads: Vec<ThreadAccount> = (process.threads.iter())
                .map(|t| ThreadAccount {
                    process: number,
                    root: t.is_root(),
                    ..(t.account).finish(&t.found.file.header, &process.clock, &counted, first)
                })
                .collect();
            accounts.push(with_a_root(of_threads));
            let threads = process.threads.into_iter().map(|t| t.found);
            surveyed.push(threads.collect::<Vec<Surveyed<'a>>>());
        }
        for thread in surveyed.iter().flatten() {
            problems.extend(thread.error.as_ref().map(|error| Problem::Malformed {
                file: thread.name.clone(),
                error: error.to_string(),
            }));
        }
        let reader = RunReader::of_surveyed(files, surveyed, problems);
        reader.without_rows(accounts, unlabelled)
    }
}

impl StreamingProcess<'_, '_> {
    /// Its records are about to be read, for the first time or again.
    pub(crate) fn begin(&mut self) {
        for thread in &mut self.threads {
            thread.found.begin();
            thread.account = Account::new(&thread.found.file.header);
            thread.forks_outermost = false;
        }
    }

    /// Counters of an event set's columns.
    pub(crate) fn counters(&self, set: u8) -> Option<&[Option<usize>]> {
        self.counters.get(&set).map(Vec::as_slice)
    }

    /// Whether all names of the program's own regions are known.
    pub(crate) fn has_names(&self) -> bool {
        let is_named = |site: u32| {
            let mut names = self.threads.iter().flat_map(|t| &t.found.names);
            names.any(|(named, _)| *named == site)
        };
        let mut user = (self.sites.known.keys()).filter(|&&s| split_site(s).0 == USER_MODULE);
        user.all(|&site| is_named(site))
    }
}

impl StreamingThread<'_> {
    /// Whether its code outside of constructs is the program's, as far as it has been read: a worker only waits there.
    pub(crate) fn is_root(&self) -> bool {
        (!self.found.in_team || self.forks_outermost) && self.found.has_met
    }

    /// Takes in an interval, but for its node.
    #[inline]
    pub(crate) fn add(&mut self, i: &Interval<'_>) {
        self.found.add(i);
        self.account.add(i);
    }

    /// Takes in intervals of which the thread has kept sums.
    pub(crate) fn add_sums(&mut self, i: &Intervals<'_>) {
        let (found, count) = (&mut self.found, i.sum(interval::COUNT) as usize);
        found.last_tsc = found.last_tsc.max(i.sum(interval::LAST));
        found.in_team |= i.construct.is_part();
        found.has_met |= is_met(i.construct);
        found.sites.add_many(i.site, i.construct.is_xu(), count);
        found
            .sites
            .add_many(i.parallel().unwrap_or(i.site), false, 0);
        self.forks_outermost |= i.construct.is_fork() && i.is_outside();
        self.account.add_sums(i);
    }
}

/// The last tick that is known of a thread's, as far as it is wanted.
fn last_tick(thread: &Surveyed<'_>, is_wanted: bool) -> u64 {
    let end = |record| match record {
        Ok(Record::Interval(i)) => i.t1,
        _ => 0,
    };
    let records = is_wanted.then(|| thread.file.records());
    let ends = records.into_iter().flatten().map(end);
    let of_sums = is_wanted.then(|| thread.file.sums()).into_iter().flatten();
    let of_sums = of_sums.map(|entry| match entry {
        Entry::Intervals(i) => i.sum(interval::LAST),
        _ => 0,
    });
    ends.chain(of_sums).fold(thread.last_tsc, u64::max)
}
