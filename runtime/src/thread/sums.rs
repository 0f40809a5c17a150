//! Sums in place of records: each thread adds what it would record to an entry of a table in its record file
//! ([`ompfuse_format::record::sums`]). What an interval costs is a look into a hash table and some additions; the table grows by an
//! entry for each kind of interval, site and parallel region, however long the run.

pub(in crate::thread) mod calls;
mod roads;
mod table;
pub(crate) mod team;

use super::{Cost, FIRST_SET, Frame, Thread, Work, special};
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::construct::trips;
use ompfuse_format::record::sums::{self, BESIDE, Kind, LARGEST, UNIT, interval};
use ompfuse_format::record::{IntervalHead, NOT_COUNTED, PartSum, Step, TeamPlace, short};
use table::Key;
pub(super) use table::Table;

/// Whether threads keep sums: 0, [`sums::INSTEAD`] or [`sums::BESIDE`].
static MODE: AtomicU64 = AtomicU64::new(0);

/// What a process starts with.
pub(crate) fn prepare(mode: u32) {
    let known = [sums::INSTEAD, BESIDE];
    let mode = known.into_iter().find(|&known| known == u64::from(mode));
    MODE.store(mode.unwrap_or(0), Ordering::Relaxed);
}

/// Whether all threads of a team meet it.
#[inline(always)]
fn is_of_team(construct: Construct) -> bool {
    use Construct::{Distribute, Loop, Scope, Sections};
    matches!(construct, Loop | Sections | Distribute | Scope)
}

/// What is added of an interval, besides counts.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    own: u64,
    extent: u64,
    t0: u64,
    t1: u64,
}

impl Thread {
    /// The thread keeps sums from now on, if that is wanted at all.
    pub(crate) fn look_for_sums(&self) {
        let mode = MODE.load(Ordering::Relaxed);
        if mode != 0 && !self.keeps_sums() {
            self.begin_table(mode);
            self.be_special(match mode {
                sums::INSTEAD => special::SUMS | special::SUMS_ONLY,
                _ => special::SUMS,
            });
        }
    }

    /// Whether the thread keeps sums.
    #[inline(always)]
    pub(crate) fn keeps_sums(&self) -> bool {
        self.special.get() & special::SUMS != 0
    }

    /// Where the innermost construct is, for what is told later ([`Thread::add_on_road`]).
    #[inline(always)]
    pub(super) fn road_here(&self) -> u16 {
        if !self.keeps_sums() {
            return 0;
        }
        self.road_inside()
    }

    #[inline(always)]
    fn road_inside(&self) -> u16 {
        let (place, site) = match self.work() {
            Some(work) => (work.place.get(), work.site.get()),
            None => (self.frame().place, self.frame().site),
        };
        self.road_into(place.road(), site)
    }

    /// Has what `write` writes added where a thread was ([`Thread::team_word`]), on this road.
    #[inline(always)]
    pub(super) fn add_on_road(&self, (team, road): (u64, u16), write: impl FnOnce()) {
        if !self.keeps_sums() {
            return write();
        }
        let now = self.membership.team.replace(team);
        self.sums.road.set(Some(road));
        write();
        self.sums.road.set(None);
        self.membership.team.set(now);
    }

    /// Whether nothing is recorded one by one.
    #[inline(always)]
    pub(super) fn keeps_sums_only(&self) -> bool {
        self.special.get() & special::SUMS_ONLY != 0
    }

    /// Adds an interval, and what it has fetched, as in [`Thread::write`].
    #[inline(never)]
    pub(super) fn add_up(&self, head: &IntervalHead, cost: &Cost, fetched: Option<(u64, &Cost)>) {
        if self.is_gone() {
            return; // the mapping belongs to the process before the fork
        }
        self.add_interval(head, cost);
        if let Some((times, fetching)) = fetched {
            let head = short::dispatch(head, (times, fetching.ticks.get()));
            self.add_interval(&head, fetching);
        }
    }

    fn add_interval(&self, head: &IntervalHead, cost: &Cost) {
        let is_xu = head.construct.is_xu();
        let road = self.sums.road.get().unwrap_or_else(|| self.road_to(head));
        let Some(entry) = self.entry_of(head.construct, head.site, road) else {
            return;
        };
        let is_first = !is_xu || self.is_first_part(head);
        // What an outer call of the same function has is not counted again.
        let (is_inner, extent) = match head.construct {
            Construct::Function => (head.extent != 0, 0),
            Construct::NaturalLoop => {
                let iterations = trips::iterations(head.extent);
                entry.most(interval::LARGEST_EXTENT, iterations);
                (trips::is_inner(head.extent), iterations)
            }
            _ => (false, head.extent),
        };
        let numbers = Numbers {
            own: head.own_ticks,
            extent,
            t0: if is_inner { head.t1 } else { head.t0 },
            t1: head.t1,
        };
        self.count_disturbed(entry, head.construct, head.disturbed);
        self.add_numbers(
            entry,
            numbers,
            is_first,
            is_first && self.is_new_instance(head),
        );
        if is_xu {
            self.add_unit(entry, numbers, (head.construct, head.step, head.index));
        }
        self.hide_uncounted((head.construct, head.site), cost, FIRST_SET);
        self.add_counts(cost, entry, is_xu);
        match head.construct {
            c if c.is_part() => self.end_of_part(head),
            Construct::Program | Construct::Range | Construct::Section => {}
            c if c.is_fork() => {}
            _ => self.add_behind(head.t0, head.t1, head.own_ticks),
        }
    }

    /// As [`Thread::add_up`], of a construct on the stack of open ones that ends at the last boundary, in fewer instructions: false if something
    /// else has to be asked first.
    #[inline(always)]
    pub(super) fn add_work(&self, work: &Work) -> bool {
        if work.choice.get().is_off() || self.has_ended() || self.is_gone() {
            return false;
        }
        let (construct, place) = (work.construct.get(), work.place.get());
        let Some(entry) = self.entry_of(construct, work.site.get(), place.road()) else {
            return true;
        };
        let numbers = Numbers {
            own: work.cost.ticks.get(),
            extent: work.extent.get(),
            t0: work.t0.get(),
            t1: self.charging.last.get(),
        };
        let is_xu = construct.is_xu();
        let frame = self.frame();
        let is_other =
            is_of_team(construct) && frame.node == place.parent && self.is_other_member(frame);
        self.add_numbers(entry, numbers, true, !is_other);
        if is_xu {
            self.add_unit(entry, numbers, (construct, place.step, place.index));
        } else {
            self.add_behind(numbers.t0, numbers.t1, numbers.own);
        }
        self.hide_uncounted((construct, work.site.get()), &work.cost, FIRST_SET);
        self.add_counts(&work.cost, entry, is_xu);
        self.count_disturbed(entry, construct, work.cost.disturbed.get());
        if let Some((times, fetching)) = work.fetched() {
            // As `short::dispatch` has it.
            let numbers = Numbers {
                own: fetching.ticks.get(),
                extent: times,
                ..numbers
            };
            let road = self.road_into(place.road(), work.site.get());
            self.add_service(
                Construct::Dispatch,
                work.site.get(),
                road,
                numbers,
                fetching,
            );
        }
        true
    }

    /// Whether a frame is a part of a region, or a function that is called there, of another thread than the first one.
    #[inline(always)]
    fn is_other_member(&self, frame: &Frame) -> bool {
        let part = match frame.construct {
            c if c.is_code() => frame.directly_around_calls(),
            _ => Some(frame),
        };
        part.is_some_and(|part| part.construct.is_part() && part.tid.get() != 0)
    }

    /// The same of a task.
    #[inline(always)]
    pub(super) fn add_task(&self, frame: &Frame, extent: u64) -> bool {
        let is_off = frame.choice.get().is_off() || self.has_ended() || self.is_gone();
        if is_off || frame.construct != Construct::Task {
            return false;
        }
        let Some(entry) = self.entry_of(Construct::Task, frame.site, frame.place.road()) else {
            return true;
        };
        let numbers = Numbers {
            own: frame.cost.ticks.get(),
            extent,
            t0: frame.t0.get(),
            t1: self.charging.last.get(),
        };
        let is_first = !frame.is_resumed.get();
        self.add_numbers(entry, numbers, is_first, is_first);
        let what = (Construct::Task, frame.place.step, frame.place.index);
        self.add_unit(entry, numbers, what);
        self.add_behind(numbers.t0, numbers.t1, numbers.own);
        self.hide_uncounted((Construct::Task, frame.site), &frame.cost, FIRST_SET);
        self.add_counts(&frame.cost, entry, true);
        self.count_disturbed(entry, Construct::Task, frame.cost.disturbed.get());
        true
    }

    /// The same of a wait or a service, which is on record.
    #[inline(never)]
    pub(super) fn add_wait(
        &self,
        construct: Construct,
        site: u32,
        t0: u64,
        extent: u64,
        cost: &Cost,
    ) {
        if self.is_gone() {
            return;
        }
        let road = self.sums.road.get().unwrap_or_else(|| self.road_inside());
        let numbers = Numbers {
            own: cost.ticks.get(),
            extent,
            t0,
            t1: self.charging.last.get(),
        };
        self.add_service(construct, site, road, numbers, cost);
    }

    /// What has no instances but its intervals.
    #[inline(always)]
    fn add_service(&self, construct: Construct, site: u32, road: u16, n: Numbers, cost: &Cost) {
        if let Some(entry) = self.entry_of(construct, site, road) {
            self.add_numbers(entry, n, true, true);
            self.add_behind(n.t0, n.t1, n.own);
            self.add_counts(cost, entry, false);
            self.count_disturbed(entry, construct, cost.disturbed.get());
        }
    }

    /// Counts an interval (or a part of a unit) that was disturbed.
    #[inline(always)]
    fn count_disturbed(&self, entry: table::Entry, construct: Construct, is_so: bool) {
        if is_so {
            let at = sums::disturbed_at(construct.is_xu(), self.counters.len());
            entry.add(at, 1);
        }
    }

    #[inline(always)]
    fn entry_of(&self, construct: Construct, site: u32, road: u16) -> Option<table::Entry> {
        let counters = self.counters.len();
        let team = match construct {
            Construct::Program => TeamPlace::OUTSIDE.word(),
            _ => self.membership.team.get() & !TeamPlace::BEHIND,
        };
        let key = Key {
            kind: Kind::Intervals,
            construct,
            site,
            team: team | u64::from(road) << sums::ROAD,
            member: (counters as u64) << 32,
        };
        self.entry(key, || sums::interval_words(construct.is_xu(), counters))
    }

    /// `is_first`: no other part of it has ended before. `is_new`: no other thread counts it.
    #[inline(always)]
    fn add_numbers(&self, entry: table::Entry, n: Numbers, is_first: bool, is_new: bool) {
        if is_first {
            entry.add(interval::COUNT, 1);
            // All parts of a unit have the extent of the whole.
            entry.saturating_add(interval::EXTENT, n.extent);
        } else {
            entry.add(interval::FURTHER, 1);
        }
        entry.add(interval::OWN, n.own);
        entry.add(interval::WALL, n.t1.wrapping_sub(n.t0));
        entry.least(interval::MIN, n.own);
        entry.most(interval::MAX, n.own);
        entry.set(interval::LAST, n.t1);
        entry.add(interval::INSTANCES, u64::from(is_new));
    }

    /// What only units have.
    #[inline(always)]
    fn add_unit(&self, entry: table::Entry, n: Numbers, what: (Construct, Step, i64)) {
        let counters = self.counters.len();
        entry.add(sums::histogram_at(counters, 0) + sums::bucket_of(n.own), 1);
        let at = sums::largest_at(counters);
        if n.own > entry.get(at) {
            self.keep_unit(entry, at, n, what);
        }
    }

    #[inline(always)]
    fn add_counts(&self, cost: &Cost, entry: table::Entry, is_xu: bool) {
        let counters = self.counters.len();
        if counters > 0 {
            self.add_all_counts(cost, entry, is_xu, counters);
        }
    }

    #[inline(never)]
    fn add_all_counts(&self, cost: &Cost, entry: table::Entry, is_xu: bool, counters: usize) {
        // What was counted with another set is not known of these events.
        let is_known = cost.bound(self.choices.set()) == FIRST_SET;
        for (at, count) in cost.counts().iter().enumerate().take(counters) {
            let count = if is_known { count.get() } else { NOT_COUNTED };
            entry.saturating_add(interval::COUNTS + at, count);
            if is_xu && count != NOT_COUNTED {
                let histogram = sums::histogram_at(counters, 1 + at);
                entry.add(histogram + sums::bucket_of(count), 1);
            }
        }
    }

    /// Keeps a unit that is larger than the least of the largest ones, which comes first.
    #[cold]
    #[inline(never)]
    fn keep_unit(
        &self,
        entry: table::Entry,
        at: usize,
        n: Numbers,
        (construct, step, index): (Construct, Step, i64),
    ) {
        let path = match construct {
            Construct::Task => self.frame().place.path,
            _ => self.path_of_work(),
        };
        let path = path & ((1 << sums::ROAD) - 1);
        let unit = [n.own, step as u64, index as u64, n.extent, path];
        // Nothing in its place tells of another unit meanwhile.
        entry.set(at, 0);
        for word in (0..UNIT).rev() {
            if let Some(&value) = unit.get(word) {
                entry.set(at + word, value);
            }
        }
        let own = |nth: usize| entry.get(at + nth * UNIT);
        let least = (1..LARGEST).fold(0, |least, nth| match own(nth) < own(least) {
            true => nth,
            false => least,
        });
        if least > 0 {
            let other =
                core::array::from_fn::<u64, UNIT, _>(|word| entry.get(at + least * UNIT + word));
            entry.set(at, 0);
            for word in (0..UNIT).rev() {
                if let (Some(&value), Some(&other)) = (unit.get(word), other.get(word)) {
                    entry.set(at + least * UNIT + word, value);
                    entry.set(at + word, other);
                }
            }
        }
    }

    /// Of a unit's interval: whether no other part of it has ended before.
    fn is_first_part(&self, head: &IntervalHead) -> bool {
        head.construct != Construct::Task || !self.frame().is_resumed.get()
    }

    /// Whether it is the interval that tells of its instance, which others of the team may meet as well, each in its part of the region.
    /// All of them meet a work-sharing construct, so the first one counts it, whatever number it has there: threads that take different ways
    /// before it (an inlined `master`) number it differently. What else there may be (a named region) has the same rank in all of them.
    #[inline(always)]
    fn is_new_instance(&self, head: &IntervalHead) -> bool {
        if head.node == 0 || head.step != Step::Ranked {
            return true;
        }
        match head.construct {
            Construct::Single | Construct::Master | Construct::Task => true, // one thread each
            _ => self.is_first_of_team(head),
        }
    }

    #[inline(never)]
    fn is_first_of_team(&self, head: &IntervalHead) -> bool {
        let mut frame = self.frame();
        if frame.node == head.node {
            // SAFETY: a frame that was entered has one around it, which lasts longer.
            frame = unsafe { &*frame.up.get() };
        }
        if frame.node != head.parent {
            return true;
        }
        let Some(frame) = frame.directly_around_calls() else {
            return true;
        };
        if !frame.construct.is_part() {
            return true;
        }
        if is_of_team(head.construct) {
            return frame.tid.get() == 0;
        }
        // SAFETY: of the region that the frame is a part of, which ends later.
        let team = unsafe { frame.team_sums.get().as_ref() };
        team.is_none_or(|team| team.is_new_rank(head.index))
    }

    /// Adds what the thread's parts of an outermost region took, as it is told in records.
    #[cold]
    #[inline(never)]
    pub(super) fn add_parts(&self, sum: &PartSum<'_>, counts: impl ExactSizeIterator<Item = u64>) {
        let key = Key {
            kind: Kind::Parts,
            construct: sum.construct,
            site: sum.site,
            team: 0,
            member: u64::from(sum.member),
        };
        let words = || sums::PARTS_WORDS + counts.len();
        let Some(entry) = self.entry(key, words) else {
            return;
        };
        if entry.get(sums::FIRST) == 0 {
            entry.set(sums::FIRST, sum.t0);
        }
        entry.set(sums::FIRST + 1, sum.t1);
        let more = [
            sum.parts,
            sum.read,
            sum.ticks,
            sum.read_ticks,
            sum.processor_ns,
            sum.wait_ticks,
        ];
        for (at, value) in more.into_iter().chain(counts).enumerate() {
            entry.saturating_add(sums::FIRST + 2 + at, value);
        }
    }
}
