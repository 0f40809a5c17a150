//! What every made-up run is held to: read as one that goes on, it has the same sums.

use crate::run::{Run, RunFiles};
use crate::spread;
use crate::summary::Summary;
use crate::summary::live::{Live, LiveSite};
use ompfuse_format::Construct;
use ompfuse_format::record::{HEADER_LEN, ThreadFile, USER_MODULE, site_ref, split_site};
use ompfuse_format::run::{EventStatus, RunModule};
use std::collections::{BTreeMap, BTreeSet};

/// Module and name of a place.
type Place = (String, String);

/// By place, kind and thread: count, own time and extent.
type All = BTreeMap<(Place, Construct), BTreeMap<u32, [u64; 3]>>;

/// Counters without those whose counts have to be scaled.
fn names(events: &[EventStatus]) -> Vec<Option<String>> {
    let mut names = vec![None; 64];
    for event in events.iter().filter(|e| e.shared.is_none()) {
        if let Some(column) = event.column {
            names[column as usize] = Some(event.name.clone());
        }
    }
    names
}

/// A process's modules, by number.
type Modules<'r> = BTreeMap<u32, &'r RunModule>;

/// Reads all threads, each in two pieces where its records allow it.
fn read<'r>(files: &'r RunFiles<'_>) -> (Live, Vec<Modules<'r>>) {
    let mut live = Live::default();
    let mut processes: Vec<_> = files.processes.iter().collect();
    processes.sort_by_key(|p| (p.header.begin.ns, p.header.pid));
    let mut modules_of = vec![];
    for (number, process) in processes.into_iter().enumerate() {
        let modules: Modules<'r> = (process.header.modules.iter())
            .filter_map(|status| {
                let found = files.header.modules.iter();
                let mut found = found.filter(|m| m.patched == status.path);
                Some((status.module, found.next()?))
            })
            .collect();
        let region = |site: u32| {
            let (module, index) = split_site(site);
            let sites = modules.get(&module).map(|m| &m.sites);
            let info = sites.and_then(|s| s.get(index as usize));
            info.map_or(site, |info| site_ref(module, info.region))
        };
        let further = process.header.sets.iter();
        let sets = further.map(|s| (s.set as u8, names(&s.events)));
        let sets = sets.chain([(0, names(&process.header.events))]).collect();
        let mut threads: Vec<(ThreadFile<'_>, &[u8])> = (process.threads.iter())
            .filter_map(|t| Some((ThreadFile::parse(t.bytes).ok()?, t.bytes)))
            .collect();
        threads.sort_by_key(|(file, _)| file.header.index);
        for (file, bytes) in &threads {
            let all = file.records().left();
            let records = &bytes[HEADER_LEN..][..all];
            let mut some = file.records();
            some.by_ref().take(5).for_each(drop);
            let (first, rest) = records.split_at(all - some.left());
            for fresh in [first, rest] {
                assert_eq!(
                    live.offset(number, &file.header),
                    (fresh.as_ptr() as u64).wrapping_sub(records.as_ptr() as u64)
                );
                let _ = live.read(number, &file.header, fresh, &sets, region);
            }
        }
        modules_of.push(modules);
    }
    (live, modules_of)
}

fn place_of(live: &Live, modules: &[Modules<'_>], site: LiveSite) -> Option<Place> {
    let (module, index) = split_site(site.1);
    if module == USER_MODULE {
        return Some((String::new(), live.names.get(&site)?.clone()));
    }
    let module = modules[site.0].get(&module)?;
    let address = module.sites.get(index as usize)?.address;
    let name = module.binary.build_id.as_ref();
    let name = name.unwrap_or(&module.binary.path);
    Some((name.clone(), address.to_string()))
}

fn place(summary: &Summary, site: Option<u32>) -> Option<Place> {
    let (module, name) = summary.sites.get(site? as usize)?.key();
    Some((module.to_owned(), name.to_owned()))
}

fn add(sums: &mut BTreeMap<u32, [u64; 3]>, thread: u32, more: [u64; 3]) {
    let sums = sums.entry(thread).or_default();
    sums.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
}

/// # Panics
/// If the run that is read as one that goes on has other sums.
pub(super) fn agrees(files: &RunFiles<'_>, run: &Run, summary: &Summary) {
    let (live, modules) = read(files);
    let mut ours = All::new();
    let mut counts: BTreeMap<(Place, String), u64> = BTreeMap::new();
    for (&site, region) in &live.regions {
        let Some(place) = place_of(&live, &modules, site) else {
            continue;
        };
        for (construct, thread, totals) in region.totals() {
            let sums = ours.entry((place.clone(), construct)).or_default();
            add(sums, thread, totals);
        }
        for (event, n) in live.counts(region) {
            *counts.entry((place.clone(), event)).or_default() += n;
        }
    }
    let theirs = of_summary(summary);
    // A unit in several parts is the thread's that began it; here each part is its own thread's.
    let is_in_parts = run.xus.parts.iter().any(|&parts| parts > 1);
    let is_exact = compare(&ours, &theirs, summary, is_in_parts);
    for (place, event, wanted) in counts_of(summary) {
        let found = counts.get(&(place.clone(), event.clone()));
        assert_eq!(found.copied().unwrap_or(0), wanted, "{event} of {place:?}");
    }
    if is_exact && modules.len() == 1 {
        for (&site, region) in &live.regions {
            if let Some(place) = place_of(&live, &modules, site) {
                let found = live.imbalance(site, region);
                assert_eq!(found, imbalance(summary, &place), "imbalance of {place:?}");
            }
        }
    }
}

/// The sums of a finished run.
fn of_summary(summary: &Summary) -> All {
    let mut all = All::new();
    for stat in &summary.regions {
        let (Some(place), Some(construct)) = (place(summary, stat.site), stat.construct) else {
            continue;
        };
        let sums = all.entry((place, construct)).or_default();
        let columns = &stat.threads;
        for (row, &thread) in columns.thread.iter().enumerate() {
            let more = [columns.count[row], columns.own_ns[row], columns.extent[row]];
            add(sums, thread, more);
        }
    }
    all
}

/// Nanoseconds per tick of each process, as all of its own times together tell.
fn rates(ours: &All, theirs: &All, process: impl Fn(u32) -> u16) -> BTreeMap<u16, f64> {
    let own = |all: &All| {
        let mut sums: BTreeMap<u16, u64> = BTreeMap::new();
        for (&thread, totals) in all.values().flatten() {
            *sums.entry(process(thread)).or_default() += totals[1];
        }
        sums
    };
    let theirs = own(theirs);
    let rate =
        |(process, ticks): (u16, u64)| (process, theirs[&process] as f64 / ticks.max(1) as f64);
    own(ours).into_iter().map(rate).collect()
}

/// Ticks become nanoseconds one interval at a time there: each may be half a one too many or too few. Returns whether none was.
fn compare(ours: &All, theirs: &All, summary: &Summary, is_in_parts: bool) -> bool {
    let keys = |all: &All| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(ours), keys(theirs));
    let process = |thread: u32| summary.accounts[thread as usize].process;
    let rates = rates(ours, theirs, process);
    let mut is_exact = rates.values().all(|&rate| rate == 1.0);
    for ((key, ours), theirs) in ours.iter().zip(theirs.values()) {
        let counts = |sums: &BTreeMap<u32, [u64; 3]>| -> Vec<(u32, u64)> {
            sums.iter()
                .map(|(&thread, totals)| (thread, totals[0]))
                .collect()
        };
        // By process, where a unit went on in another thread.
        let is_by_thread = !is_in_parts || counts(ours) == counts(theirs);
        is_exact &= is_by_thread;
        let grouped = |sums: &BTreeMap<u32, [u64; 3]>| {
            let mut groups: BTreeMap<(u16, u32), [u64; 3]> = BTreeMap::new();
            for (&thread, totals) in sums {
                let thread_or_all = if is_by_thread { thread } else { 0 };
                let group = groups.entry((process(thread), thread_or_all)).or_default();
                group.iter_mut().zip(totals).for_each(|(sum, n)| *sum += n);
            }
            groups
        };
        let (ours, theirs) = (grouped(ours), grouped(theirs));
        assert!(
            ours.keys().eq(theirs.keys()),
            "{key:?}: {ours:?} {theirs:?}"
        );
        for ((&(process, _), ours), theirs) in ours.iter().zip(theirs.values()) {
            let count = ours[0];
            assert_eq!(count, theirs[0], "count of {key:?}");
            let ns = |ticks: u64| (ticks as f64 * rates[&process]).round() as u64;
            let extent = if key.1.is_exclusive() {
                ns(ours[2])
            } else {
                ours[2]
            };
            let apart = [ns(ours[1]).abs_diff(theirs[1]), extent.abs_diff(theirs[2])];
            is_exact &= apart == [0, 0];
            let allowed = [count, count * u64::from(key.1.is_exclusive())];
            assert!(
                apart[0] <= allowed[0] && apart[1] <= allowed[1],
                "{key:?}: {ours:?} {theirs:?}"
            );
        }
    }
    is_exact
}

/// What is known of whole places, of events whose counts are as they were counted.
fn counts_of(summary: &Summary) -> Vec<(Place, String, u64)> {
    let mut all: BTreeMap<(Place, String), Option<u64>> = BTreeMap::new();
    for stat in &summary.regions {
        let Some(place) = place(summary, stat.site) else {
            continue;
        };
        for (event, &count) in summary.events.iter().zip(&stat.counts) {
            if event.scaled || event.run.is_none() {
                continue;
            }
            let sum = all.entry((place.clone(), event.name.clone()));
            let sum = sum.or_insert(Some(0));
            *sum = sum.and_then(|sum| Some(sum.wrapping_add(count?)));
        }
    }
    let known = all.into_iter();
    known
        .filter_map(|((place, event), n)| Some((place, event, n?)))
        .collect()
}

/// As a report has it: over the threads that took part in the parallel regions around.
fn imbalance(summary: &Summary, wanted: &Place) -> f64 {
    let is_it = |site: Option<u32>| place(summary, site).as_ref() == Some(wanted);
    let stats: Vec<_> = (summary.regions.iter()).filter(|s| is_it(s.site)).collect();
    let around: BTreeSet<Option<u32>> = (stats.iter())
        .filter(|s| !s.construct.is_some_and(Construct::is_fork))
        .map(|s| s.parallel)
        .chain(stats.iter().map(|s| s.site))
        .filter(Option::is_some)
        .collect();
    let mut work: BTreeMap<u32, u64> = BTreeMap::new();
    for stat in &summary.regions {
        if stat.construct.is_some_and(Construct::is_part) && around.contains(&stat.site) {
            for &thread in &stat.threads.thread {
                work.entry(thread).or_default();
            }
        }
    }
    for stat in stats {
        let columns = &stat.threads;
        for (row, &thread) in columns.thread.iter().enumerate() {
            let (own, extent) = (columns.own_ns[row], columns.extent[row]);
            let split = stat.construct.map(|c| c.split(own, extent));
            *work.entry(thread).or_default() += split.unwrap_or_default().work;
        }
    }
    spread::imbalance(&work.into_values().collect::<Vec<_>>())
}
