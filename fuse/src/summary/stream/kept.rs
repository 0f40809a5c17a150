//! A run whose threads kept sums themselves: their tables become the same sums as records do.

use super::super::collect::step;
use super::super::distribution::{Distribution, Histogram, LargeUnit};
use super::super::parallel::Executions;
use super::super::sums::{Sums, Totals};
use super::super::tree::{Paths, Step};
use super::coverage::Coverage;
use super::in_region::{Key, What, Whole};
use super::process::{Collected, of_column};
use crate::account::Peak;
use crate::run::clock::Clock;
use crate::run::contexts::ProcessContexts;
use crate::run::streaming::StreamingProcess;
use ompfuse_format::Construct;
use ompfuse_format::record::Record;
use ompfuse_format::record::sums::{Entry, Intervals, MOST_ROADS, interval};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The sums of a process. `columns`: of counts.
pub(super) fn collect(process: &mut StreamingProcess<'_, '_>, columns: usize) -> Option<Collected> {
    process.begin();
    note_others(process);
    let mut contexts = ProcessContexts::default();
    let found = process.threads.iter().map(|t| &t.found);
    let numbers = contexts.of_sums(found.map(|found| (&found.contexts, found.file)));
    let mut paths = Paths::default();
    let roads = roads(process, &mut paths, &numbers);
    let on = |paths: &mut Paths, road: u16, construct: Construct, site: u32| {
        let around = roads.get(&road).copied().unwrap_or(Road::ROOT);
        let context = match construct.is_fork() {
            true => around.context,
            false => 0,
        };
        step(paths, around.path, (construct, site, context))
    };
    let mut collected = Collected {
        sums: vec![],
        parallel: BTreeMap::new(),
        paths: Paths::default(),
        contexts,
        grower: None,
        coverage: Coverage::default(),
        threads: 1,
        xus: 0,
        unlabelled: 0,
        in_parts: vec![],
    };
    let mut index: HashMap<Key, usize> = HashMap::new();
    let positions: HashMap<u32, u32> = (0..)
        .zip(&process.threads)
        .map(|(at, t)| (t.found.file.header.index, at))
        .collect();
    for thread in 0..process.threads.len() {
        let file = process.threads[thread].found.file;
        for entry in file.sums() {
            let clock = process.clock;
            let ns = |ticks: u64| clock.length(ticks);
            match entry {
                Entry::Intervals(i) => {
                    process.threads[thread].add_sums(&i);
                    let site = process.sites.of(i.site).site;
                    let what = What {
                        site,
                        construct: i.construct,
                        path: on(&mut paths, i.road(), i.construct, site),
                    };
                    let parallel = i.parallel().map(|site| process.sites.of(site).site);
                    let key = (what, parallel);
                    let at = *index.entry(key).or_insert_with(|| {
                        collected.sums.push((key, Whole::default()));
                        collected.sums.len() - 1
                    });
                    if i.construct.is_xu() {
                        collected.xus += i.sum(interval::COUNT);
                    }
                    let counters = process.counters(0);
                    add(
                        &mut collected.sums[at].1,
                        thread,
                        &i,
                        &clock,
                        (columns, counters),
                    );
                }
                Entry::Executions(e) => {
                    let site = process.sites.of(e.site).site;
                    process.threads[thread].found.node_sites.add(e.site, false);
                    let path = on(&mut paths, e.road(), e.construct, site);
                    let of_path: &mut Executions = collected.parallel.entry(path).or_default();
                    of_path.add_sums(&e, ns);
                }
                Entry::Member(m) => {
                    let site = process.sites.of(m.site).site;
                    let path = on(&mut paths, m.road(), m.construct, site);
                    let of_path = collected.parallel.entry(path).or_default();
                    if let Some(&at) = positions.get(&m.thread) {
                        let header = &process.threads[at as usize].found.file.header;
                        of_path.add_member(at, &m, header.tsc_end, ns);
                    }
                }
                Entry::Parts(parts) => process.threads[thread].found.note(Ok(Record::Parts(parts))),
                Entry::Covered { ticks, begin, end } => {
                    let (begin, end) = (clock.at(begin), clock.at(end));
                    collected.coverage.add_part(begin, end, ns(ticks));
                }
                Entry::Road { .. } | Entry::Calls { .. } | Entry::Context(_) => {}
            }
        }
    }
    collected.paths = paths;
    collected.threads = threads_at_once(process, &collected.parallel);
    count_instances(&mut collected.sums);
    process.has_names().then_some(collected)
}

/// Notes what is not in the sums: what was left out, and names. Parts of regions are in the sums.
fn note_others(process: &mut StreamingProcess<'_, '_>) {
    for thread in &mut process.threads {
        let file = thread.found.file;
        for record in file.records() {
            if !matches!(
                record,
                Ok(Record::Node(_) | Record::Interval(_) | Record::Parts(_))
            ) {
                thread.found.note(record);
            }
        }
        thread.found.contexts.note_sums(&file);
    }
}

/// Completes the numbers of instances.
fn count_instances(sums: &mut [(Key, Whole)]) {
    for ((what, _), whole) in sums {
        if what.construct == Construct::Program {
            whole.instances = 1; // the code outside of everything is one, of all threads
        }
        if whole.instances == 0 {
            // A copy of a construct's code that the team's first thread never comes to: the others come to it each time.
            let counts = whole.threads.iter().map(|sums| sums.totals.count);
            whole.instances = counts.max().unwrap_or(0);
        }
    }
}

/// The most threads in teams and roots at once. Sums don't tell when a region was executed: with several roots or nested regions it
/// is the number of threads that were there at once.
fn threads_at_once(
    process: &StreamingProcess<'_, '_>,
    parallel: &BTreeMap<u32, Executions>,
) -> u64 {
    let roots = process.threads.iter().filter(|t| t.is_root()).count();
    let is_nested = parallel.values().any(|e| e.stat().nested > 0);
    if roots <= 1 && !is_nested {
        let teams = parallel.values().map(|e| e.stat().team);
        return teams.max().unwrap_or(1);
    }
    let threads = process.threads.iter().filter(|t| t.found.has_met);
    let headers = threads.map(|t| &t.found.file.header);
    let last = headers.clone().map(|h| h.tsc_end).max().unwrap_or(0);
    let mut spans: Vec<(i64, i64)> = headers
        .map(|h| match h.tsc_end {
            0 => (last.max(h.tsc_start + 1), h.tsc_start),
            end => (end, h.tsc_start),
        })
        .map(|(end, begin)| (process.clock.at(end), process.clock.at(begin)))
        .collect();
    spans.sort_unstable();
    let mut peak = Peak::default();
    spans
        .iter()
        .for_each(|&(end, begin)| peak.add(begin, end, 1));
    peak.most()
}

fn add(
    whole: &mut Whole,
    thread: usize,
    i: &Intervals<'_>,
    clock: &Clock,
    (columns, counters): (usize, Option<&[Option<usize>]>),
) {
    let length = |at: usize| clock.length(i.sum(at));
    let extent = match i.construct {
        c if c.is_exclusive() => length(interval::EXTENT),
        // A task has iterations if a taskloop made it.
        Construct::Section => 0,
        _ => i.sum(interval::EXTENT),
    };
    let sums = Sums {
        totals: Totals {
            count: i.sum(interval::COUNT),
            own: length(interval::OWN),
            wall: length(interval::WALL),
            extent,
        },
        min: length(interval::MIN),
        max: length(interval::MAX),
        largest: match i.construct {
            Construct::NaturalLoop => i.sum(interval::LARGEST_EXTENT),
            _ => 0,
        },
    };
    if whole.threads.len() <= thread {
        whole.threads.resize(thread + 1, Sums::NONE);
        whole.counts.resize((thread + 1) * columns, Some(0));
    }
    whole.threads[thread].merge(&sums);
    whole.instances += i.sum(interval::INSTANCES);
    let counts: Vec<u64> = i.counts().collect();
    let totals = &mut whole.counts[thread * columns..][..columns];
    for (column, total) in totals.iter_mut().enumerate() {
        let count = of_column(&counts, counters, column);
        *total = total.and_then(|t| Some(t.wrapping_add(count?)));
    }
    if !i.construct.is_xu() {
        return;
    }
    let events = (0..columns).map(|column| {
        let at = counters?.get(column).copied().flatten()?;
        (at < counts.len()).then(|| Histogram::of_numbers(&i.histogram(1 + at)))
    });
    let new = Distribution {
        own_ns: Histogram::of_ticks(&i.histogram(0), clock),
        events: events.collect(),
        largest: (i.largest().iter())
            .map(|unit| LargeUnit::new(unit, clock))
            .collect(),
        further_parts: i.sum(interval::FURTHER),
    };
    match &mut whole.distribution {
        Some(known) => known.merge(new),
        none => *none = Some(Box::new(new)),
    }
}

/// Where a road leads to.
#[derive(Debug, Clone, Copy)]
struct Road {
    path: u32,
    /// The calling context of the region that is forked there; 0: not known.
    context: u32,
}

impl Road {
    /// To the program's own code.
    const ROOT: Road = Road {
        path: Paths::ROOT,
        context: 0,
    };
}

/// The last step of a road.
#[derive(Debug, Clone, Copy)]
enum Last {
    Site(u32),
    Context(u32),
}

/// The roads of a process. `contexts`: by number in the sums that in the process.
fn roads(
    process: &mut StreamingProcess<'_, '_>,
    paths: &mut Paths,
    contexts: &HashMap<u32, u32>,
) -> HashMap<u16, Road> {
    let entries = || process.threads.iter().flat_map(|t| t.found.file.sums());
    let mut steps: HashMap<u16, (u16, Last)> = HashMap::new();
    let mut forks: HashSet<u32> = HashSet::new();
    for entry in entries() {
        match entry {
            Entry::Road { road, parent, site } => {
                steps.insert(road, (parent, Last::Site(site)));
            }
            Entry::Calls {
                road,
                parent,
                context,
            } => {
                steps.insert(road, (parent, Last::Context(context)));
            }
            Entry::Intervals(i) if i.construct.is_fork() || i.construct.is_part() => {
                forks.insert(i.site);
            }
            _ => {}
        }
    }
    let mut known = HashMap::from([(0, Road::ROOT)]);
    let mut all: Vec<u16> = steps.keys().copied().collect();
    all.sort_unstable();
    for road in all {
        // From where it is known inwards. Damaged roads may lead to themselves.
        let mut missing = vec![];
        let mut at = road;
        while !known.contains_key(&at) && missing.len() <= steps.len() {
            missing.push(at);
            at = steps.get(&at).map_or(0, |(parent, _)| *parent);
        }
        for at in missing.into_iter().rev() {
            let Some(&(parent, last)) = steps.get(&at) else {
                known.insert(at, Road::ROOT); // nobody had space to tell of it
                continue;
            };
            let around = known.get(&parent).copied().unwrap_or(Road::ROOT);
            let road = match last {
                Last::Context(number) => Road {
                    context: contexts.get(&number).copied().unwrap_or(0),
                    ..around
                },
                Last::Site(site) => {
                    let (construct, context) = match forks.contains(&site) {
                        true => (Construct::Parallel, around.context),
                        false => (Construct::Task, 0),
                    };
                    let site = process.sites.of(site).site;
                    Road {
                        path: paths.step(around.path, Step::of(construct, site, context)),
                        context: 0,
                    }
                }
            };
            known.insert(at, road);
        }
    }
    paths.folded += u64::from(steps.len() >= MOST_ROADS as usize);
    known
}
