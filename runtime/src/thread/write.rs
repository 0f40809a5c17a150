//! Records, and the mutexes whose records come when they are released.

use super::{Choice, Cost, FIRST_SET, Place, Thread, special};
use crate::{host, modules};
use core::cell::Cell;
use ompfuse_format::Construct;
use ompfuse_format::record::lock::{self, Lock};
use ompfuse_format::record::short::{self, Origin};
use ompfuse_format::record::{self, IntervalHead, NOT_COUNTED, Node, Step};

impl Thread {
    /// As [`Thread::write_node`], compiled into its caller.
    #[inline(always)]
    pub(crate) fn write_node_at_once(
        &self,
        node: u64,
        construct: Construct,
        site: u32,
        place: Place,
    ) {
        let words = short::node(&node_of(node, construct, site, place), self.origin());
        match (self.quick_room(), words) {
            (Some(out), Some(words)) => {
                // SAFETY: there is room for any short record, which nothing else refers to.
                unsafe { out.cast::<[u64; short::NODE_WORDS]>().write(words) };
                if !self.buffer.commit(out, short::NODE_WORDS) {
                    self.write_node(node, construct, site, place);
                }
            }
            _ => self.write_node(node, construct, site, place),
        }
    }

    /// Writes the identity of a node.
    #[inline(never)]
    pub(crate) fn write_node(&self, node: u64, construct: Construct, site: u32, place: Place) {
        if self.is_gone() || self.keeps_sums_only() {
            return;
        }
        let node = node_of(node, construct, site, place);
        // Others refer to it, so it is stored again where a signal handler came between.
        while let Some(out) = self.buffer.room(Node::LEN) {
            // SAFETY: the buffer gives Node::LEN bytes, more than a short node has, which nothing else refers to.
            let words = unsafe {
                match short::node(&node, self.origin()) {
                    Some(words) => {
                        out.cast::<[u64; short::NODE_WORDS]>().write(words);
                        short::NODE_WORDS
                    }
                    None => {
                        record::encode_node(&mut *out.cast::<[u8; Node::LEN]>(), &node);
                        Node::LEN / 8
                    }
                }
            };
            if self.buffer.commit(out, words) {
                return;
            }
        }
    }

    /// Writes what the program calls a region.
    pub(crate) fn write_name(&self, site: u32, name: &[u8]) {
        if self.is_gone() {
            return;
        }
        let len = record::Name::len_of(name.len());
        let Some(out) = self.buffer.room(len) else {
            return;
        };
        record::encode_name(site, name, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        let _ = self.buffer.commit(out, len / 8); // a lost record is counted
    }

    /// Writes where a lock is, once the file that it is in is on record.
    #[cold]
    pub(crate) fn tell_lock(&self, lock: &Lock) {
        if self.is_gone() || self.keeps_sums_only() {
            return;
        }
        self.tell_object_of(lock.address);
        let Some(out) = self.buffer.room(Lock::LEN) else {
            return;
        };
        lock::encode_lock(lock, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        let _ = self.buffer.commit(out, Lock::LEN / 8); // a lost record is counted
    }

    /// Writes an interval, if its region is recorded at its end.
    #[inline]
    pub(crate) fn write_interval(&self, head: &IntervalHead, cost: &Cost) {
        let is_off = !self.is_on_record(head);
        if is_off || !self.write_plain(head, None) {
            self.write_any_interval(*head, cost, is_off);
        }
    }

    /// Whether an interval that is told as a whole, and ends now, is on record.
    #[inline]
    pub(super) fn is_on_record(&self, head: &IntervalHead) -> bool {
        !self.is_off(head.site) || self.began_before_end(head.site, head.t0)
    }

    #[inline(never)]
    fn write_any_interval(&self, head: IntervalHead, cost: &Cost, is_off: bool) {
        if is_off {
            return self.leave_out(cost);
        }
        self.write(&head, cost, None);
    }

    /// Writes an interval, where nothing has been chosen: false if something has, or it has to be written otherwise. Compiled into
    /// each of its callers, who know much of the record.
    #[inline(always)]
    pub(super) fn write_plain(&self, head: &IntervalHead, fetched: Option<(u64, &Cost)>) -> bool {
        let Some(out) = self.quick_room() else {
            return false;
        };
        let fetches = fetched.map(|(times, fetching)| (times, fetching.ticks.get()));
        let words = short::plain(head, self.origin(), fetches, |at, word| {
            // SAFETY: the encoder writes at most the words that the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        words != 0 && self.buffer.commit(out, words)
    }

    /// Writes an interval, if that was chosen when it began. `is_part`: it may be a part of a unit only, whose length tells
    /// nothing of the whole. `fetched`: of a loop, as in [`Thread::write`].
    #[inline(always)]
    pub(super) fn write_chosen(
        &self,
        choice: Choice,
        head: &IntervalHead,
        cost: &Cost,
        is_part: bool,
        fetched: Option<(u64, &Cost)>,
    ) {
        if choice.is_off() {
            return self.write_nothing(choice, (head.construct, head.site), cost, fetched);
        }
        if head.construct.is_xu() {
            if self.has_ended() {
                return self.leave_out(cost);
            }
            if !is_part && self.is_short(head.construct, head.site, cost) {
                return;
            }
            self.judge(head.construct, head.site, head.own_ticks);
        }
        self.write(head, cost, fetched);
    }

    #[cold]
    #[inline(never)]
    fn write_nothing(
        &self,
        choice: Choice,
        (construct, site): (Construct, u32),
        cost: &Cost,
        fetched: Option<(u64, &Cost)>,
    ) {
        let dispatch = fetched.map(|(_, fetching)| (Construct::Dispatch, fetching));
        for (construct, cost) in [(construct, cost)].into_iter().chain(dispatch) {
            if choice.is_left_out() {
                self.add_left_out(construct, site, cost);
            } else {
                self.leave_out(cost);
            }
        }
    }

    /// Counts the time of an interval that is not recorded: a thread's intervals add up to its time.
    #[cold]
    fn leave_out(&self, cost: &Cost) {
        if !self.is_gone() {
            self.buffer.leave_out(cost.ticks.get());
            self.add_off_behind(cost);
        }
    }

    /// Writes an interval; of a loop with how often it fetched ranges, and what that cost. Compiled into each of its callers,
    /// who know much of the record.
    #[inline(always)]
    fn write(&self, head: &IntervalHead, cost: &Cost, fetched: Option<(u64, &Cost)>) {
        if self.keeps_sums_only() {
            return self.add_up(head, cost, fetched); // without a copy of the head
        }
        if self.special.get() & (special::SETS | special::SUMS) == 0 && !self.is_gone() {
            let fetches = fetched.map(|(times, fetching)| (times, fetching.ticks.get()));
            let Some(out) = self.buffer.room(8 * short::INTERVAL_WORDS) else {
                return;
            };
            let none = [].into_iter();
            let put = |at: usize, word| {
                // SAFETY: the encoder writes at most the words that the buffer gives.
                unsafe { out.add(at).write(word) };
            };
            match short::interval(head, self.origin(), FIRST_SET - 1, fetches, none, put) {
                0 => {}
                words if self.buffer.commit(out, words) => return,
                _ => {}
            }
        }
        // A copy: so the caller keeps the numbers in registers.
        self.write_both(*head, cost, fetched);
    }

    #[inline(never)]
    fn write_both(&self, head: IntervalHead, cost: &Cost, fetched: Option<(u64, &Cost)>) {
        if self.keeps_sums() {
            self.add_up(&head, cost, fetched);
        }
        self.write_any(&head, cost);
        if let Some((times, fetching)) = fetched {
            let head = short::dispatch(&head, (times, fetching.ticks.get()));
            self.write_any(&head, fetching);
        }
    }

    /// Writes a loop and its only range, which has ended with it, in one record; false if that can't be.
    #[inline(always)]
    pub(super) fn write_with_range(
        &self,
        head: &IntervalHead,
        range: &IntervalHead,
        fetched: Option<(u64, &Cost)>,
    ) -> bool {
        let Some(out) = self.quick_room() else {
            return false;
        };
        let fetches = fetched.map(|(times, fetching)| (times, fetching.ticks.get()));
        let origin = self.origin();
        let words = short::with_range(head, range, origin, FIRST_SET - 1, fetches, |at, word| {
            // SAFETY: the encoder writes at most the words that the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        words > 0 && self.buffer.commit(out, words)
    }

    /// Writes an interval of any numbers, with counts.
    #[inline(never)]
    fn write_any(&self, head: &IntervalHead, cost: &Cost) {
        if self.is_gone() {
            return; // the mapping belongs to the process before the fork
        }
        let set = cost.bound(self.choices.set()); // it may never have been charged
        let k = self.choices.len(set);
        if self.reads_for_units() {
            self.settle();
        }
        let is_known = self.are_known(cost);
        if !is_known {
            self.unattribute(cost); // of before counters were read in that way
        }
        self.hide_uncounted((head.construct, head.site), cost, set);
        let count = |count: &Cell<u64>| if is_known { count.get() } else { NOT_COUNTED };
        let counts = || cost.counts().iter().take(k).map(count);
        // Once more where a signal handler came between.
        while let Some(out) = self.buffer.room(record::Interval::LEN + 8 * k) {
            let put = |at: usize, word| {
                // SAFETY: a short record has fewer words than a full one, which has the 9 + k that the buffer gives.
                unsafe { out.add(at).write(word) };
            };
            let words = match short::interval(head, self.origin(), set - 1, None, counts(), put) {
                0 => record::encode_interval(head, set - 1, counts(), put),
                words => words,
            };
            if self.buffer.commit(out, words) {
                return;
            }
        }
    }

    /// Takes back what patched code has counted of a construct whose own code it doesn't count: that is what others executed for it. A wait and
    /// a fork have no code of their own.
    pub(super) fn hide_uncounted(&self, (construct, site): (Construct, u32), cost: &Cost, set: u8) {
        if construct.is_wait() || construct.is_fork() {
            return;
        }
        let uncounted = modules::uncounted(site);
        if uncounted == 0 {
            return;
        }
        for (at, event) in self.choices.group(set).iter().flat_map(|c| c.exact()) {
            if let Some(count) = cost
                .counts()
                .get(at)
                .filter(|_| uncounted >> event & 1 != 0)
            {
                count.set(NOT_COUNTED);
            }
        }
    }

    /// What short records leave out.
    #[inline(always)]
    fn origin(&self) -> Origin {
        self.origin.get()
    }

    /// Writes a wait or a service of the runtime that began at `t0` and ends at the last boundary.
    #[inline(always)]
    pub(crate) fn write_wait(
        &self,
        construct: Construct,
        site: u32,
        t0: u64,
        extent: u64,
        cost: &Cost,
    ) {
        self.write_wait_for((construct, site, 0), t0, extent, cost);
    }

    /// As [`Thread::write_wait`], for the lock with this number.
    #[inline(always)]
    fn write_wait_for(
        &self,
        (construct, site, lock): (Construct, u32, u32),
        t0: u64,
        extent: u64,
        cost: &Cost,
    ) {
        let head = IntervalHead {
            construct,
            site,
            node: 0,
            parent: self.innermost_node(),
            step: Step::None,
            cpu: host::cpu(),
            index: i64::from(lock),
            extent,
            t0,
            t1: self.charging.last.get(),
            own_ticks: cost.ticks.get(),
            disturbed: cost.disturbed.get(),
        };
        self.count_wait(construct, cost);
        if self.is_off(site) || !self.write_plain(&head, None) {
            self.write_any_wait((construct, site, lock), t0, extent, cost);
        }
    }

    #[inline(never)]
    fn write_any_wait(
        &self,
        (construct, site, lock): (Construct, u32, u32),
        t0: u64,
        extent: u64,
        cost: &Cost,
    ) {
        if self.leaves_out(construct, site, cost) {
            return;
        }
        if self.keeps_sums_only() {
            return self.add_wait(construct, site, t0, extent, cost);
        }
        let span = (t0, self.charging.last.get());
        self.write_kept((construct, site, lock), self.here(), span, extent, cost);
    }

    /// Writes a wait that happened in `parent`, from when to when, for the lock with this number.
    pub(crate) fn write_span(
        &self,
        (construct, site, lock): (Construct, u32, u32),
        parent: u64,
        span: (u64, u64),
        extent: u64,
        cost: &Cost,
    ) {
        if !self.leaves_out(construct, site, cost) {
            self.write_kept((construct, site, lock), parent, span, extent, cost);
        }
    }

    /// Whether a wait is not recorded, in which case it is counted.
    #[inline]
    fn leaves_out(&self, construct: Construct, site: u32, cost: &Cost) -> bool {
        if self.is_off(site) {
            self.leave_out(cost);
            return true;
        }
        self.skips(construct, site, cost)
    }

    #[inline(always)]
    fn write_kept(
        &self,
        (construct, site, lock): (Construct, u32, u32),
        parent: u64,
        (t0, t1): (u64, u64),
        extent: u64,
        cost: &Cost,
    ) {
        self.judge(construct, site, cost.ticks.get());
        let head = IntervalHead {
            construct,
            site,
            node: 0,
            parent,
            step: Step::None,
            cpu: host::cpu(),
            index: i64::from(lock),
            extent,
            t0,
            t1,
            own_ticks: cost.ticks.get(),
            disturbed: cost.disturbed.get(),
        };
        self.write(&head, cost, None);
    }

    /// Charges the innermost construct with what has no interval of its own.
    pub(crate) fn absorb(&self, cost: &Cost) {
        // SAFETY: as in charge.
        self.drain(cost, unsafe { &*self.innermost_cost() });
    }

    /// A mutex was entered, the one with this number; `cost` is what that took, since `t0`.
    #[inline(always)]
    pub(crate) fn hold(&self, construct: Construct, site: u32, lock: u32, t0: u64, cost: &Cost) {
        let Some(held) = self.mutexes.get(self.mutex_top.get()) else {
            self.mutex_lost.set(self.mutex_lost.get() + 1);
            self.absorb(cost);
            return;
        };
        self.mutex_top.set(self.mutex_top.get() + 1);
        held.construct.set(construct);
        held.site.set(site);
        held.lock.set(lock);
        held.t0.set(t0);
        held.wait.set(cost.ticks.get());
        held.cost.clear();
        self.drain(cost, &held.cost);
    }

    /// A mutex of this construct was released; `cost` is what that took. They are released in reverse order, but what was
    /// entered may have had no probe.
    #[inline(always)]
    pub(crate) fn unhold(&self, construct: Construct, cost: &Cost) {
        if self.mutex_lost.get() > 0 {
            self.mutex_lost.set(self.mutex_lost.get() - 1);
            return self.absorb(cost);
        }
        let top = self.mutex_top.get();
        let Some(held) = top
            .checked_sub(1)
            .filter(|&at| at >= self.frame().mutex_base.get())
            .and_then(|at| self.mutexes.get(at))
            .filter(|held| held.construct.get() == construct)
        else {
            return self.absorb(cost);
        };
        self.mutex_top.set(top - 1);
        self.drain(cost, &held.cost);
        self.write_wait_for(
            (construct, held.site.get(), held.lock.get()),
            held.t0.get(),
            held.wait.get(),
            &held.cost,
        );
    }
}

#[inline(always)]
fn node_of(node: u64, construct: Construct, site: u32, place: Place) -> Node {
    let Place {
        parent,
        step,
        index,
        ..
    } = place;
    Node {
        construct,
        site,
        node,
        parent,
        step,
        index,
    }
}
