//! What `ompfuse ctl` and the program have chosen for a construct that begins: whether it is recorded, and with which
//! event set. It holds until the construct's end, whatever is changed meanwhile. What is not recorded is followed all the
//! same: it has its place among its siblings, and its time is nobody else's.

use super::{Choice, Cost, FIRST_SET, Thread, special};
use crate::control::{self, Settings};
use crate::counters::Counters;
use crate::entry::protected;
use crate::process::open_set;
use crate::syscall;
use core::cell::Cell;
use ompfuse_format::control::MAX_SETS;
use zerocopy::FromZeros;

/// Places for the regions of a thread whose sets rotate; a power of two.
const ROTATIONS: usize = 4096;
/// How many places are tried for a region; then it shares the last one with another.
const TRIES: usize = 8;

/// Where a region is in the rotation of event sets, on one thread.
struct Rotation {
    /// Its site plus 1; 0: the place is free.
    site: Cell<u32>,
    /// Instances until the next set.
    left: Cell<u32>,
    set: Cell<u8>,
}

/// What a thread has taken over of the settings, and its groups of counters.
#[derive(Debug, FromZeros)]
pub(super) struct Choices {
    /// The generation in which nothing is special; otherwise no generation that there is.
    plain: Cell<u64>,
    adopted: Cell<u64>,
    settings: Cell<Settings>,
    /// When this thread has seen that recording has ended.
    ended_at: Cell<u64>,
    /// What holds for every region, where nothing is special.
    usual: Cell<Choice>,
    /// The event set that is counted, plus 1.
    set: Cell<u8>,
    active: Cell<*const Counters>,
    /// By number; null: not opened.
    groups: [Cell<*const Counters>; MAX_SETS],
    rotations: Cell<*mut Rotation>,
}

/// An even number, but not even 2^63 changes get there.
const NEVER: u64 = u64::MAX - 1;

impl Choices {
    /// With the first set's counters, which stay where they are as long as this.
    pub(super) fn begin(&self, counters: *const Counters) {
        self.set.set(FIRST_SET);
        self.usual.set(Choice::FIRST);
        self.active.set(counters);
        self.groups[0].set(counters);
    }

    /// The counters of the set that is counted.
    #[inline(always)]
    pub(super) fn counters(&self) -> &Counters {
        // SAFETY: set by `begin` or `change_set`; groups live as long as the thread.
        unsafe { &*self.active.get() }
    }

    /// The set that is counted, as [`Cost::set`].
    #[inline(always)]
    pub(super) fn set(&self) -> u8 {
        self.set.get()
    }

    /// The groups that have been opened.
    fn groups(&self) -> impl Iterator<Item = &Counters> {
        // SAFETY: as in `counters`.
        self.groups
            .iter()
            .filter_map(|g| unsafe { g.get().as_ref() })
    }

    /// Number of counters of a set.
    pub(super) fn len(&self, set: u8) -> usize {
        self.group(set).map_or(0, Counters::len)
    }

    /// The counters of a set.
    pub(super) fn group(&self, set: u8) -> Option<&Counters> {
        let group = self.groups.get(usize::from(set.wrapping_sub(1)))?;
        // SAFETY: as in `counters`.
        unsafe { group.get().as_ref() }
    }
}

impl Thread {
    /// What holds for an instance of a region that begins now.
    #[inline(always)]
    pub(super) fn choose(&self, site: u32) -> Choice {
        if control::generation() == self.choices.plain.get() {
            return self.choices.usual.get();
        }
        self.choose_specially(site)
    }

    #[cold]
    #[inline(never)]
    fn choose_specially(&self, site: u32) -> Choice {
        self.adopt();
        let settings = self.choices.settings.get();
        let (off, own) = of(settings, site);
        let set = match own {
            Some(set) => set,
            None if settings.rotate > 0 => self.rotate(site, settings),
            None => settings.set,
        };
        Choice::new(set, off)
    }

    /// Whether what ends now, and is told as a whole, is left out.
    #[inline]
    pub(super) fn is_off(&self, site: u32) -> bool {
        if control::generation() == self.choices.plain.get() {
            return false;
        }
        self.is_off_specially(site)
    }

    /// Whether recording has ended: no execution unit is on record, however it began. Who writes in the short way asks when the
    /// next stage begins, and no more comes that way then.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        if control::generation() == self.choices.plain.get() {
            return false;
        }
        self.adopt();
        self.choices.settings.get().ended
    }

    /// Whether something that is told as a whole at its end began before recording ended: then it is told.
    #[cold]
    #[inline(never)]
    pub(super) fn began_before_end(&self, site: u32, t0: u64) -> bool {
        let settings = self.choices.settings.get();
        let is_off = settings.special && control::of_site(site).0;
        settings.ended && !is_off && t0 < self.choices.ended_at.get()
    }

    #[cold]
    #[inline(never)]
    fn is_off_specially(&self, site: u32) -> bool {
        self.adopt();
        of(self.choices.settings.get(), site).0
    }

    /// Takes over what has changed.
    #[cold]
    #[inline(never)]
    fn adopt(&self) {
        if control::generation() == self.choices.adopted.get() {
            return;
        }
        let Some((generation, settings)) = control::settings() else {
            return; // somebody is at it: what was still holds
        };
        self.be_special(special::SETS);
        let before = self.choices.settings.replace(settings);
        if settings.ended && !before.ended {
            self.choices.ended_at.set(self.last());
        }
        self.choices.usual.set(Choice::new(settings.set, false));
        self.choices.adopted.set(generation);
        let plain = !settings.special && !settings.paused && settings.rotate == 0;
        self.choices
            .plain
            .set(if plain { generation } else { NEVER });
        if (before.rotate, before.rotating) != (settings.rotate, settings.rotating) {
            let table = self.choices.rotations.replace(core::ptr::null_mut());
            if !table.is_null() {
                // SAFETY: nobody else knows it.
                unsafe { syscall::unmap(table.cast(), ROTATIONS * size_of::<Rotation>()) };
            }
        }
    }

    /// The set of the next instance of a region.
    fn rotate(&self, site: u32, settings: Settings) -> usize {
        let first = settings.rotating.trailing_zeros() as u8;
        if usize::from(first) >= MAX_SETS {
            return settings.set;
        }
        let Some(place) = self.rotation(site) else {
            return settings.set; // no memory
        };
        if place.site.get() == 0 {
            place.site.set(site.wrapping_add(1));
            place.left.set(settings.rotate);
            place.set.set(first);
        } else if place.left.get() == 0 {
            place.left.set(settings.rotate);
            let later = settings.rotating >> (place.set.get() + 1);
            place.set.set(match later {
                0 => first,
                _ => place.set.get() + 1 + later.trailing_zeros() as u8,
            });
        }
        place.left.set(place.left.get() - 1);
        usize::from(place.set.get())
    }

    /// A region's place in the rotation; a free one, if it has none yet.
    fn rotation(&self, site: u32) -> Option<&Rotation> {
        if self.choices.rotations.get().is_null() {
            let table = syscall::map_present_memory(ROTATIONS * size_of::<Rotation>())?;
            self.choices.rotations.set(table.cast());
        }
        let hash = site.wrapping_mul(0x9e37_79b9) >> 20;
        let places = (0..TRIES).map(|nth| {
            let at = (hash as usize + nth) % ROTATIONS;
            // SAFETY: inside the table, whose zeroed bytes are free places; only this thread has it.
            unsafe { &*self.choices.rotations.get().add(at) }
        });
        let own = |place: &&Rotation| {
            let taken = place.site.get();
            taken == 0 || taken == site.wrapping_add(1)
        };
        places.clone().find(own).or(places.last())
    }

    /// Has the set of an account counted, which is current from now on and was charged under it before, or is to be.
    #[cold]
    #[inline(never)]
    pub(super) fn change_set(&self, account: &Cost) {
        let wanted = account.set.get();
        let set = usize::from(wanted.wrapping_sub(1));
        let Some(group) = self.choices.groups.get(set) else {
            return;
        };
        if group.get().is_null() {
            let wanted = Wanted {
                set,
                first: &self.counters,
            };
            let opened = protected(open_group, &raw const wanted as u64) as *const Counters;
            if opened.is_null() {
                // Nobody knows the set yet: the one that is counted will do. Nothing was charged under the other.
                account.set.set(self.choices.set.get());
                return;
            }
            group.set(opened);
        }
        self.choices.counters().stop();
        self.choices.active.set(group.get());
        self.choices.set.set(wanted);
        self.choices.counters().start();
        self.count_most();
        // What was counted before is nobody's.
        self.read_counters(|_, _| ());
        self.lazily.behind.set(false);
        self.decide_on_reading();
    }

    /// Number of the event set that is counted.
    pub(crate) fn event_set(&self) -> Option<usize> {
        usize::from(self.choices.set.get()).checked_sub(1)
    }

    /// How many events are counted.
    pub(crate) fn counted(&self) -> usize {
        self.choices.counters().len()
    }

    /// As [`Counters::hand_over`], of all sets.
    pub(super) fn hand_over_counters(&self) {
        self.choices.groups().for_each(Counters::hand_over);
    }

    /// Closes the counters' descriptors.
    pub(crate) fn close_counters(&self) {
        self.release_tallies();
        self.release_contexts();
        self.release_sums();
        self.close_meter();
        self.choices.groups().for_each(Counters::close);
        for group in self.choices.groups.iter().skip(1) {
            let memory = group.replace(core::ptr::null());
            if !memory.is_null() {
                // SAFETY: from `change_set`; the thread is ending.
                unsafe { syscall::unmap(memory.cast_mut().cast(), size_of::<Counters>()) };
            }
        }
        let table = self.choices.rotations.replace(core::ptr::null_mut());
        if !table.is_null() {
            // SAFETY: as in `adopt`.
            unsafe { syscall::unmap(table.cast(), ROTATIONS * size_of::<Rotation>()) };
        }
    }
}

/// What [`open_group`] is to open.
struct Wanted<'t> {
    set: usize,
    /// The thread's counters of the first set.
    first: &'t Counters,
}

/// Opens an event set's counters for the calling thread, in pages of their own; 0 if that can't be, or not yet.
extern "C" fn open_group(wanted: u64) -> u64 {
    // SAFETY: from `change_set`, which waits.
    let Wanted { set, first } = unsafe { &*(wanted as *const Wanted<'_>) };
    let opened = open_set(*set, first).and_then(|counters| {
        let memory = syscall::map_memory(size_of::<Counters>())?.cast::<Counters>();
        // SAFETY: fresh pages, large and aligned enough.
        unsafe { memory.write(counters) };
        Some(memory as u64)
    });
    opened.unwrap_or(0)
}

/// Whether a region is off, and its own event set.
fn of(settings: Settings, site: u32) -> (bool, Option<usize>) {
    if !settings.special {
        return (settings.paused, None);
    }
    let (off, own) = control::of_site(site);
    (off || settings.paused, own)
}
