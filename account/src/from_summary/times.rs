//! ompP's columns of a region, thread by thread (docs/reference/ompp.md#columns).
//!
//! All of them follow from sums of begins and ends, so that they add up to the nanosecond.

use super::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::Times;
use ompfuse_format::Construct;
use ompfuse_fuse::summary::{ParallelStat, RegionStat};
use std::collections::{BTreeMap, BTreeSet};

/// Of one kind and thread, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    count: u64,
    own: u64,
    wall: u64,
    extent: u64,
}

impl Cell {
    /// Its own time. Each interval's two times are rounded for themselves: what that makes of them is no time in which something was
    /// executed meanwhile.
    fn of_own(self) -> u64 {
        match self.wall.abs_diff(self.own) <= self.count {
            true => self.wall,
            false => self.own.min(self.wall),
        }
    }

    /// What was executed meanwhile.
    fn inside(self) -> u64 {
        self.wall - self.of_own()
    }

    /// Waiting to get in.
    fn entering(self) -> u64 {
        self.extent.min(self.of_own())
    }
}

/// Sums of a region by kind and thread.
struct Kinds {
    cells: BTreeMap<Construct, BTreeMap<u32, Cell>>,
    /// Kinds that are on record in part.
    in_part: BTreeSet<Construct>,
}

impl Kinds {
    fn of(summary: &Indexed<'_>, site: u32) -> Kinds {
        let mut cells: BTreeMap<Construct, BTreeMap<u32, Cell>> = BTreeMap::new();
        for stat in summary.at_site(site) {
            let Some(construct) = stat.construct else {
                continue;
            };
            let columns = &stat.threads;
            let of_kind = cells.entry(construct).or_default();
            for (row, &thread) in columns.thread.iter().enumerate() {
                let cell = of_kind.entry(thread).or_default();
                cell.count += columns.count[row];
                cell.own += columns.own_ns[row];
                cell.wall += columns.wall_ns[row];
                cell.extent += columns.extent[row];
            }
        }
        let left_out = summary.left_out_at(site).iter();
        let in_part = left_out.filter(|l| l.count > 0).map(|l| l.construct);
        Kinds {
            cells,
            in_part: in_part.collect(),
        }
    }

    fn has(&self, construct: Construct) -> bool {
        self.cells.contains_key(&construct)
    }

    fn cell(&self, construct: Construct, thread: u32) -> Cell {
        let of_kind = self.cells.get(&construct);
        of_kind
            .and_then(|k| k.get(&thread))
            .copied()
            .unwrap_or_default()
    }

    fn threads(&self) -> BTreeSet<u32> {
        self.cells
            .values()
            .flat_map(|k| k.keys().copied())
            .collect()
    }

    /// Something of a kind, if there is any of that kind in the region, and all of it is on record.
    fn of_kind(&self, construct: Construct, thread: u32, of: fn(Cell) -> u64) -> Option<u64> {
        let is_known = self.has(construct) && !self.in_part.contains(&construct);
        is_known.then(|| of(self.cell(construct, thread)))
    }

    /// Whether a kind, if it is there, is known as a whole.
    fn is_whole(&self, construct: Construct) -> bool {
        !self.in_part.contains(&construct)
    }
}

fn seconds(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 * NS)
}

/// By thread, as far as there is a column for this kind of region.
pub(super) fn by_thread(
    summary: &Indexed<'_>,
    site: u32,
    construct: Option<Construct>,
) -> BTreeMap<u32, Times> {
    let Some(construct) = construct else {
        return BTreeMap::new();
    };
    let kinds = Kinds::of(summary, site);
    if construct.is_fork() {
        let mut all: BTreeMap<u32, Times> = BTreeMap::new();
        for stat in summary.parallel_at(site) {
            all.extend(parallel(stat, &kinds));
        }
        return all;
    }
    let is_released = is_released(summary.at_site(site));
    let threads = kinds.threads().into_iter();
    threads
        .map(|thread| (thread, of_kind(&kinds, construct, thread, is_released)))
        .collect()
}

/// All threads together.
pub(super) fn sum(by_thread: &BTreeMap<u32, Times>) -> Option<Times> {
    by_thread.values().copied().reduce(|a, b| a.plus(&b))
}

/// A parallel region's threads. Where parts are missing nobody knows when the last one ended.
fn parallel(stat: &ParallelStat, kinds: &Kinds) -> Vec<(u32, Times)> {
    let columns = &stat.team_parts;
    let has_sections = kinds.has(Construct::Sections) || kinds.has(Construct::Section);
    let rows = columns.thread.iter().enumerate();
    let of_row = |(row, &thread): (usize, &u32)| {
        let is_measured = columns.measured[row] == columns.count[row];
        // What was left out at the region's end is in the wait, or in the shutdown.
        let is_end_known = is_measured && stat.left_behind_ns == 0;
        let end = |ns: u64| is_end_known.then_some(ns);
        let (startup, body) = (columns.startup_ns[row], columns.body_ns[row]);
        let ends = [&columns.barrier_ns, &columns.task_ns, &columns.shutdown_ns];
        let [barrier, task, shutdown] = ends.map(|column| column[row]);
        let section = match has_sections {
            true => kinds.of_kind(Construct::Section, thread, |c| c.wall),
            false => None,
        };
        let section = section.map(|ns| ns.min(body));
        let times = Times {
            exec_count: columns.count[row],
            exec_s: seconds(is_measured.then_some(startup + body + barrier + task + shutdown)),
            startup_s: seconds(Some(startup)),
            body_s: seconds((!has_sections).then_some(body)),
            section_s: seconds(section),
            section_count: section.map(|_| kinds.cell(Construct::Section, thread).count),
            management_s: seconds(section.map(|ns| body - ns)),
            exit_barrier_s: seconds(end(barrier)),
            task_s: seconds(end(task)),
            shutdown_s: seconds(end(shutdown)),
            ..Times::default()
        };
        (thread, times)
    };
    rows.map(of_row).collect()
}

/// Who has only waited to enter was in it for as long as that took: then no release is on record.
fn is_released(stats: &[&RegionStat]) -> bool {
    let exclusive = |s: &&&RegionStat| s.construct.is_some_and(Construct::is_exclusive);
    let mut stats = stats.iter().filter(exclusive);
    stats.any(|s| s.wall_ns() > s.own_ns() || s.own_ns() > s.extent())
}

fn of_kind(kinds: &Kinds, construct: Construct, thread: u32, is_released: bool) -> Times {
    let end = Construct::ImplicitBarrier;
    let barrier = kinds.of_kind(end, thread, Cell::of_own);
    let task = kinds.of_kind(end, thread, Cell::inside);
    let at_end = kinds.cell(end, thread);
    // The end belongs to the whole: where it is on record in part, that isn't known.
    let with_end = |body: Option<u64>| match kinds.is_whole(end) {
        true => body.map(|ns| ns + at_end.wall),
        false => None,
    };
    let ended = Times {
        exit_barrier_s: seconds(barrier),
        task_s: seconds(task),
        ..Times::default()
    };
    let own = kinds.cell(construct, thread);
    let wall = kinds.of_kind(construct, thread, |c| c.wall);
    match construct {
        c if c.is_loop() => {
            let ranges = kinds.of_kind(Construct::Range, thread, |c| c.wall);
            let body = match kinds.has(construct) {
                true => wall,
                false => ranges,
            };
            Times {
                exec_count: own.count.max(at_end.count),
                exec_s: seconds(with_end(body)),
                body_s: seconds(body),
                ..ended
            }
        }
        Construct::Sections => {
            let section = kinds.cell(Construct::Section, thread);
            let is_known = kinds.is_whole(Construct::Section);
            let in_sections = is_known.then_some(section.wall);
            let body = match kinds.has(construct) {
                true => wall,
                false => in_sections,
            };
            let in_sections = in_sections.map(|ns| body.map_or(ns, |body| ns.min(body)));
            let rest = body.zip(in_sections);
            Times {
                exec_count: own.count.max(at_end.count),
                exec_s: seconds(with_end(body)),
                section_s: seconds(in_sections),
                section_count: is_known.then_some(section.count),
                management_s: seconds(rest.map(|(all, part)| all - part)),
                ..ended
            }
        }
        Construct::Single => Times {
            exec_count: at_end.count.max(own.count),
            exec_s: seconds(with_end(wall)),
            single_s: seconds(wall),
            single_count: kinds.of_kind(construct, thread, |c| c.count),
            ..ended
        },
        c if c.is_exclusive() && c != Construct::Reduction => {
            let enter = kinds.of_kind(c, thread, Cell::entering);
            let known = |ns: Option<u64>| ns.filter(|_| is_released);
            Times {
                exec_count: own.count,
                exec_s: seconds(wall),
                enter_s: seconds(enter),
                body_s: seconds(known(wall.map(|_| own.inside()))),
                exit_s: seconds(known(wall.map(|_| own.of_own() - own.entering()))),
                ..Times::default()
            }
        }
        c if c.is_wait() => Times {
            exec_count: own.count,
            exec_s: seconds(wall),
            waiting_s: seconds(kinds.of_kind(c, thread, Cell::of_own)),
            task_s: seconds(wall.map(|_| own.inside())),
            ..Times::default()
        },
        Construct::Task => Times {
            exec_count: own.count,
            exec_s: seconds(wall),
            body_s: seconds(wall),
            create_s: seconds(kinds.of_kind(Construct::TaskCreate, thread, |c| c.wall)),
            create_count: kinds.of_kind(Construct::TaskCreate, thread, |c| c.count),
            ..Times::default()
        },
        Construct::Taskloop => Times {
            exec_count: own.count,
            body_s: seconds(kinds.of_kind(Construct::Task, thread, |c| c.wall)),
            create_s: seconds(wall),
            create_count: kinds.of_kind(Construct::Taskloop, thread, |c| c.count),
            ..Times::default()
        },
        _ => Times {
            exec_count: own.count,
            exec_s: seconds(wall),
            body_s: seconds(wall),
            ..Times::default()
        },
    }
}
