//! Roads: the chain of constructs around something, as a number. It travels in the upper bits of [`Place::path`], so that a task's is
//! known wherever it is executed.
//!
//! A step that is on the road already leads back to where it was first met: recursion makes neither depth nor size.

use super::table::Key;
use crate::thread::{Place, Thread};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::sums::{self, Kind, MOST_ROADS, ROAD};
use ompfuse_format::record::{IntervalHead, NO_SITE};
use zerocopy::FromZeros;

/// Places for roads, a power of two; a road's place is its number. Place 0 stands for the program's own code.
const PLACES: usize = 1 << 15;

/// The process's roads: the last step in the lower half, the road that it continues above; 0: the place is free. The last step is a site,
/// or ([`CONTEXT`]) the number of the calling context in which the region that comes next is forked.
static ROADS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static USED: AtomicU32 = AtomicU32::new(0);

const TAKEN: u64 = 1 << 63;
const CONTEXT: u64 = 1 << 62;

/// In the child of a fork: what it meets is told in its own files.
pub(super) fn after_fork() {
    ROADS.iter().for_each(|r| r.store(0, Ordering::Relaxed));
    USED.store(0, Ordering::Relaxed);
}

/// What a thread has asked for last, by step.
pub(super) const RECENT: usize = 64;

/// An answer: 0 is none.
#[derive(Debug, FromZeros)]
pub(super) struct Recent {
    asked: Cell<u64>,
    road: Cell<u16>,
}

impl Place {
    /// The road to it.
    #[inline(always)]
    pub(in crate::thread) fn road(&self) -> u16 {
        sums::road(self.path)
    }
}

impl Thread {
    /// The path of a child of the construct at this place, with its road.
    #[inline(never)]
    pub(in crate::thread) fn path_on_road(&self, place: &Place, site: u32, index: i64) -> u64 {
        let hash = |path: u64| path & ((1 << ROAD) - 1);
        // Roads have other numbers in every run, hashes have not.
        let bare = Place {
            path: hash(place.path),
            ..*place
        };
        hash(bare.child(site, index)) | u64::from(self.road_into(place.road(), site)) << ROAD
    }

    /// The road of what happens in a construct at this site, to which this road leads.
    #[inline(always)]
    pub(super) fn road_into(&self, road: u16, site: u32) -> u16 {
        self.road_by(TAKEN | u64::from(road) << 32 | u64::from(site))
    }

    /// The path to a construct that is opened in what is at this place: the road alone, since most are never asked for the rest
    /// ([`Thread::path_of_work`]).
    #[inline(always)]
    pub(in crate::thread) fn path_of_opened(&self, place: &Place, site: u32) -> u64 {
        u64::from(self.road_into(place.road(), site)) << ROAD
    }

    /// The path to the innermost construct that is open, which was opened there.
    #[inline(never)]
    pub(in crate::thread) fn path_of_work(&self) -> u64 {
        let frame = self.frame();
        let (mut place, mut site) = (frame.place, frame.site);
        let mut at = frame.work_base.get();
        while at < self.here.work_top.get() {
            // SAFETY: an open entry.
            let work = unsafe { &*at };
            place.path &= (1 << ROAD) - 1;
            let path = place.child(site, work.place.get().index) & ((1 << ROAD) - 1);
            place.path = path | u64::from(work.place.get().road()) << ROAD;
            site = work.site.get();
            at = at.wrapping_add(1);
        }
        place.path
    }

    /// The path to a region with this path, which is forked in this context.
    #[inline(never)]
    pub(crate) fn path_through(&self, path: u64, context: u32) -> u64 {
        let road = u64::from(sums::road(path));
        let road = self.road_by(TAKEN | CONTEXT | road << 32 | u64::from(context));
        path & ((1 << ROAD) - 1) | u64::from(road) << ROAD
    }

    #[inline(always)]
    fn road_by(&self, asked: u64) -> u16 {
        let mixed = (asked ^ asked >> 30).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let recent = &self.sums.recent[(mixed >> 40) as usize % RECENT];
        if recent.asked.get() == asked {
            return recent.road.get();
        }
        let found = self.find_road(asked);
        recent.asked.set(asked);
        recent.road.set(found);
        found
    }

    #[inline(never)]
    fn find_road(&self, asked: u64) -> u16 {
        let road = (asked >> 32 & 0x7fff) as u16;
        if asked & CONTEXT == 0 {
            if asked as u32 == NO_SITE {
                return road;
            }
            let mut around = road;
            while around != 0 {
                let word = word_of(around);
                if word & CONTEXT == 0 && word as u32 == asked as u32 {
                    return around;
                }
                around = (word >> 32 & 0x7fff) as u16;
            }
        }
        let mut at = (asked.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize & (PLACES - 1);
        loop {
            let word = match at {
                0 => u64::MAX, // nobody takes it
                _ => word_of(at as u16),
            };
            if word == asked {
                return at as u16;
            }
            if word == 0 {
                if USED.load(Ordering::Relaxed) >= MOST_ROADS {
                    return road;
                }
                match self.make_road(at, asked) {
                    Ok(()) => return at as u16,
                    Err(other) if other == asked => return at as u16,
                    Err(_) => {}
                }
            }
            at = (at + 1) & (PLACES - 1);
        }
    }

    /// Takes a place for a road, and tells of it; else what is there.
    #[cold]
    #[inline(never)]
    fn make_road(&self, at: usize, asked: u64) -> Result<(), u64> {
        let Some(place) = ROADS.get(at) else {
            return Err(TAKEN);
        };
        place.compare_exchange(0, asked, Ordering::Relaxed, Ordering::Relaxed)?;
        USED.fetch_add(1, Ordering::Relaxed);
        let key = Key {
            kind: match asked & CONTEXT {
                0 => Kind::Road,
                _ => Kind::Calls,
            },
            construct: Construct::Program,
            site: asked as u32,
            team: (asked >> 32 & 0x7fff) << ROAD,
            member: at as u64,
        };
        let _ = self.entry(key, || sums::ROAD_WORDS); // without space for it the road is not known
        Ok(())
    }

    /// The road to an interval.
    pub(super) fn road_to(&self, head: &IntervalHead) -> u16 {
        if head.construct == Construct::Program {
            return 0;
        }
        if head.construct.is_fork() {
            return self.sums.fork.get();
        }
        if let Some(work) = self.work() {
            let (node, place) = (work.node.get(), work.place.get());
            if node == head.node {
                return place.road();
            }
            if node == head.parent {
                return self.road_into(place.road(), work.site.get());
            }
        }
        let frame = self.frame();
        match frame.node == head.node || head.construct.is_code() {
            true => frame.place.road(),
            false => self.road_into(frame.place.road(), frame.site),
        }
    }
}

#[inline(always)]
fn word_of(road: u16) -> u64 {
    ROADS
        .get(usize::from(road))
        .map_or(0, |place| place.load(Ordering::Relaxed))
}
