//! Constructs that one thread at a time is in: entering, what is executed inside, and leaving (ompP's enterT, bodyT, exitT).
//!
//! All three follow from what is recorded of each execution: when it began and ended, the own time of the probes' two calls
//! into the runtime library, and the part of it that was spent entering. No further reading of the clock is needed.

use super::indexed::Indexed;
use super::{NS, pid};
use crate::model::{Lock, LockKind, Mutex};
use ompfuse_format::Construct;
use ompfuse_fuse::run::{LockPlace, LockStat};
use ompfuse_fuse::summary::RegionStat;

/// In nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    entries: u64,
    own: u64,
    wall: u64,
    enter: u64,
}

impl Sums {
    fn of_row(stat: &RegionStat, row: usize) -> Sums {
        let columns = &stat.threads;
        Sums {
            entries: columns.count[row],
            own: columns.own_ns[row],
            wall: columns.wall_ns[row],
            enter: columns.extent[row].min(columns.own_ns[row]),
        }
    }

    fn add(&mut self, other: Sums) {
        let Sums {
            entries,
            own,
            wall,
            enter,
        } = other;
        self.entries += entries;
        self.own += own;
        self.wall += wall;
        self.enter += enter;
    }

    /// `is_released`: whether the region's releases are on record.
    fn mutex(self, is_released: bool) -> Mutex {
        let seconds = |ns: u64| is_released.then_some(ns as f64 * NS);
        Mutex {
            entries: self.entries,
            enter_s: self.enter as f64 * NS,
            held_s: seconds(self.wall.saturating_sub(self.own)),
            exit_s: seconds(self.own - self.enter),
        }
    }
}

/// Whether a construct's intervals have the three times. A reduction's lock is the runtime library's own business.
fn is_mutex(stat: &RegionStat) -> bool {
    let is_own = |c: Construct| c.is_exclusive() && c != Construct::Reduction;
    stat.construct.is_some_and(is_own)
}

/// The times of a region of which these are the sums; `None` if it is no such construct.
pub(crate) fn of_region(stats: &[&RegionStat]) -> Option<Mutex> {
    sum(stats, None)
}

/// The same of one thread.
pub(super) fn of_thread(stats: &[&RegionStat], thread: u32) -> Option<Mutex> {
    sum(stats, Some(thread))
}

fn sum(stats: &[&RegionStat], of: Option<u32>) -> Option<Mutex> {
    let (mut all, mut wanted) = (Sums::default(), Sums::default());
    for stat in stats.iter().filter(|stat| is_mutex(stat)) {
        for (row, &thread) in stat.threads.thread.iter().enumerate() {
            let sums = Sums::of_row(stat, row);
            all.add(sums);
            if of.is_none_or(|t| t == thread) {
                wanted.add(sums);
            }
        }
    }
    // Who has only waited was in it for as long as that took, to the tick.
    let is_released = all.wall > all.own || all.own > all.enter;
    (wanted.entries > 0).then(|| wanted.mutex(is_released))
}

/// Most locks that a report lists.
const MOST_LOCKS: usize = 100;

/// The locks, those first with which threads spent the most time. `ids`: the regions' ids by site.
pub(super) fn locks(summary: &Indexed<'_>, ids: &[u32]) -> Vec<Lock> {
    let mut all: Vec<&LockStat> = summary.locks.iter().collect();
    all.sort_by_key(|l| (std::cmp::Reverse(l.wall_ns), l.process, &l.place));
    let listed = all.into_iter().take(MOST_LOCKS);
    listed.map(|stat| lock(summary, stat, ids)).collect()
}

fn lock(summary: &Indexed<'_>, stat: &LockStat, ids: &[u32]) -> Lock {
    let (mut symbol, mut offset, mut module, mut address) = (None, None, None, None);
    let mut member = None;
    match &stat.place {
        LockPlace::Variable {
            object,
            address: at,
            name,
        } => {
            module = Some(object.path.clone());
            address = Some(*at);
            symbol = name.as_ref().map(|n| n.symbol.clone());
            offset = name.as_ref().map(|n| n.offset);
            member = name.as_ref().and_then(|n| n.member.clone());
        }
        LockPlace::Memory(at) => address = Some(*at),
        LockPlace::Unnamed | LockPlace::Unknown => {}
    }
    let is_unnamed = stat.place == LockPlace::Unnamed
        || symbol
            .as_deref()
            .is_some_and(|s| critical_name(s) == Some(""));
    let sums = Sums {
        entries: stat.entries,
        own: stat.own_ns,
        wall: stat.wall_ns,
        enter: stat.enter_ns,
    };
    Lock {
        kind: match stat.construct {
            Construct::Critical if is_unnamed => LockKind::UnnamedCritical,
            Construct::Critical => LockKind::Critical,
            _ => LockKind::Lock,
        },
        symbol,
        offset,
        member,
        module,
        address,
        process: pid(summary, stat.process),
        regions: stat.sites.iter().map(|&s| ids[s as usize]).collect(),
        threads: stat.threads,
        times: sums.mutex(sums.wall > sums.own || sums.own > sums.enter),
    }
}

/// The name of the critical sections whose lock has this symbol, as gcc and clang make it.
pub fn critical_name(symbol: &str) -> Option<&str> {
    let name = symbol.strip_prefix(".gomp_critical_user_")?;
    Some(name.strip_suffix(".var").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_fuse::summary::ThreadColumns;

    fn stat(construct: Construct, rows: &[(u64, u64, u64, u64)]) -> RegionStat {
        let column = |pick: fn(&(u64, u64, u64, u64)) -> u64| rows.iter().map(pick).collect();
        RegionStat {
            construct: Some(construct),
            threads: ThreadColumns {
                thread: (0..rows.len() as u32).collect(),
                count: column(|r| r.0),
                own_ns: column(|r| r.1),
                wall_ns: column(|r| r.2),
                extent: column(|r| r.3),
                ..ThreadColumns::default()
            },
            ..RegionStat::default()
        }
    }

    #[test]
    fn three_times_are_told_apart() {
        let critical = stat(Construct::Critical, &[(2, 300, 1300, 200), (1, 50, 50, 40)]);
        let all = of_region(&[&critical]).unwrap();
        assert_eq!((all.entries, all.enter_s), (3, 240.0 * NS));
        assert_eq!(all.held_s, Some(1000.0 * NS));
        assert_eq!(all.exit_s, Some(110.0 * NS));
        let second = of_thread(&[&critical], 1).unwrap();
        assert_eq!((second.held_s, second.exit_s), (Some(0.0), Some(10.0 * NS)));
        assert_eq!(of_thread(&[&critical], 2), None);
    }

    #[test]
    fn what_was_never_released_was_not_held_for_a_known_time() {
        let lock = stat(Construct::Lock, &[(1, 70, 70, 70)]);
        let lock = of_region(&[&lock]).unwrap();
        assert_eq!((lock.held_s, lock.exit_s), (None, None));
        let reduction = stat(Construct::Reduction, &[(1, 70, 90, 70)]);
        assert_eq!(of_region(&[&reduction]), None);
    }
}
