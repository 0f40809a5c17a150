//! Sums per lock, by its address: several critical sections and lock calls may be about one lock.

use super::contexts::{ContextObject, DataName, NamedObject, ThreadContexts};
use ompfuse_format::Construct;
use ompfuse_format::record::Interval;
use ompfuse_format::record::lock::{Lock, UNNAMED_CRITICAL};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The time that threads spent with one lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockStat {
    /// Position in the processes.
    pub process: u16,
    /// Critical or lock.
    pub construct: Construct,
    /// Where it is.
    pub place: LockPlace,
    /// Positions in the sites: where it is taken, in their order.
    pub sites: Vec<u32>,
    /// Threads that have taken it.
    pub threads: u32,
    /// Times that it was taken.
    pub entries: u64,
    /// Waiting for it, in nanoseconds: a part of `own_ns`.
    pub enter_ns: u64,
    /// Waiting for it and releasing it.
    pub own_ns: u64,
    /// From beginning to wait to having released it.
    pub wall_ns: u64,
}

/// Where a lock is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockPlace {
    /// libgomp's lock of all `critical` without a name.
    Unnamed,
    /// A variable of a file.
    Variable {
        /// The file.
        object: ContextObject,
        /// Its link-time address.
        address: u64,
        /// Its symbol, where the file has one.
        name: Option<DataName>,
    },
    /// Memory that the program allocated, or a stack: the address in the process.
    Memory(u64),
    /// The record with its address is lost.
    Unknown,
}

/// A thread's intervals, summed up by lock and site.
#[derive(Debug, Default)]
pub(crate) struct LockSums {
    sums: HashMap<(u32, u32), Sum>,
    /// Where locks are, as this thread tells it.
    told: Vec<(u32, LockPlace)>,
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    construct: Construct,
    entries: u64,
    enter: u64,
    own: u64,
    wall: u64,
}

impl LockSums {
    /// Takes in an interval, if it is a lock's with a number.
    #[inline]
    pub(super) fn add(&mut self, i: &Interval<'_>) {
        if i.index != 0 && i.construct.is_mutex() {
            self.add_up(i);
        }
    }

    fn add_up(&mut self, i: &Interval<'_>) {
        let Ok(number) = u32::try_from(i.index) else {
            return;
        };
        let sum = self.sums.entry((number, i.site)).or_insert(Sum {
            construct: i.construct,
            entries: 0,
            enter: 0,
            own: 0,
            wall: 0,
        });
        sum.entries += 1;
        sum.enter += i.extent.min(i.own_ticks);
        sum.own += i.own_ticks;
        sum.wall += i.t1.saturating_sub(i.t0);
    }

    /// Takes in where a lock is; `contexts`: what the thread has told of files before.
    pub(super) fn note(&mut self, lock: &Lock, contexts: &ThreadContexts) {
        let place = match (lock.address, contexts.file_of(lock.address)) {
            (UNNAMED_CRITICAL, _) => LockPlace::Unnamed,
            (_, Some((object, address))) => LockPlace::Variable {
                object: ContextObject::clone(object),
                address,
                name: None,
            },
            (address, None) => LockPlace::Memory(address),
        };
        self.told.push((lock.number, place));
    }

    /// The variables that locks are.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&ContextObject, u64)> {
        self.told.iter().filter_map(|(_, place)| match place {
            LockPlace::Variable {
                object, address, ..
            } => Some((object, *address)),
            _ => None,
        })
    }
}

/// A process's locks. `ns`: of ticks; `place`: of a record's site; `names`: what is known of files.
pub(super) fn of_process<'t>(
    process: u16,
    threads: impl Iterator<Item = &'t LockSums> + Clone,
    ns: impl Fn(u64) -> u64,
    place: impl Fn(u32) -> Option<u32>,
    names: &HashMap<&str, &NamedObject>,
) -> Vec<LockStat> {
    let told = threads.clone().flat_map(|t| &t.told);
    let told: HashMap<u32, &LockPlace> = told.map(|(number, place)| (*number, place)).collect();
    let mut all: BTreeMap<u32, (LockStat, BTreeSet<u32>)> = BTreeMap::new();
    for thread in threads {
        let mut met = BTreeSet::new();
        for (&(number, site), sum) in &thread.sums {
            let (stat, sites) = all.entry(number).or_insert_with(|| {
                let place = told.get(&number).copied();
                let place = place.map_or(LockPlace::Unknown, |p| p.clone().named(names));
                let stat = LockStat {
                    process,
                    construct: sum.construct,
                    place,
                    sites: vec![],
                    threads: 0,
                    entries: 0,
                    enter_ns: 0,
                    own_ns: 0,
                    wall_ns: 0,
                };
                (stat, BTreeSet::new())
            });
            stat.threads += u32::from(met.insert(number));
            stat.entries += sum.entries;
            stat.enter_ns += ns(sum.enter);
            stat.own_ns += ns(sum.own);
            stat.wall_ns += ns(sum.wall);
            sites.extend(place(site));
        }
    }
    let with_sites = |(mut stat, sites): (LockStat, BTreeSet<u32>)| {
        stat.sites = sites.into_iter().collect();
        stat
    };
    all.into_values().map(with_sites).collect()
}

impl LockPlace {
    /// With the symbol, and the original's path where a patched copy was loaded.
    fn named(self, names: &HashMap<&str, &NamedObject>) -> LockPlace {
        match self {
            LockPlace::Variable {
                object,
                address,
                name,
            } => {
                let known = names.get(object.path.as_str());
                LockPlace::Variable {
                    name: known.and_then(|k| k.data.get(&address).cloned()).or(name),
                    object: known.map_or(object, |k| k.object.clone()),
                    address,
                }
            }
            place => place,
        }
    }
}
