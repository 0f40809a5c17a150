//! Entering and leaving constructs, and the ranks of what is created in them.

use super::{Choice, Frame, Place, Thread, Work, special};
use crate::probes::started::Detached;
use crate::{host, syscall};
use ompfuse_format::Construct;
use ompfuse_format::record::short;
use ompfuse_format::record::{IntervalHead, Step};

impl Thread {
    /// A new node number.
    #[inline(always)]
    pub(crate) fn new_node(&self) -> u64 {
        let node = self.next_node.get();
        self.next_node.set(node + 1);
        node
    }

    /// Node of the innermost construct.
    #[inline(always)]
    pub(super) fn innermost_node(&self) -> u64 {
        match self.work() {
            Some(work) => work.node.get(),
            None => self.frame().node,
        }
    }

    /// Node of the innermost construct, whose record need not exist yet: for what is told by its parent only. Where there may
    /// never be one, the node's is written.
    #[inline]
    pub(crate) fn here(&self) -> u64 {
        let (choice, written, node) = match self.work() {
            Some(work) => (work.choice.get(), &work.written, work.node.get()),
            None => {
                let frame = self.frame();
                (frame.choice(), &frame.written, frame.node)
            }
        };
        if !self.is_plain() && (choice.is_off() || self.may_be_short()) && !written.replace(true) {
            self.write_here();
        }
        node
    }

    #[cold]
    #[inline(never)]
    fn write_here(&self) {
        let frame = self.frame();
        let (node, construct, site, place) = match self.work() {
            Some(w) => (w.node.get(), w.construct.get(), w.site.get(), w.place.get()),
            None => (frame.node, frame.construct, frame.site, frame.place),
        };
        self.write_node(node, construct, site, place);
    }

    /// Place of a new task or parallel construct created here ([XU] section 4, combination.md section 1).
    #[inline(always)]
    pub(crate) fn place_task(&self) -> Place {
        if self.work().is_none() && self.frame().construct.is_part() {
            let frame = self.frame();
            let calls = frame.calls.get();
            frame.calls.set(calls + 1);
            let index = frame.tid + calls * frame.team.get();
            return Place {
                parent: frame.node,
                step: Step::TidRanked,
                index,
                path: self.path(&frame.place, frame.site, index),
            };
        }
        self.place_ranked()
    }

    /// Place of a new work-sharing construct here, or of a task where tasks are ranked in the order of creation.
    #[inline]
    pub(crate) fn place_ranked(&self) -> Place {
        let (node, written, rank, place, site) = match self.work() {
            Some(work) => {
                if !work.written.replace(true) {
                    self.write_node(
                        work.node.get(),
                        work.construct.get(),
                        work.site.get(),
                        work.place.get(),
                    );
                }
                let (place, site) = (work.place.get(), work.site.get());
                (work.node.get(), true, &work.rank, place, site)
            }
            None => (
                self.frame().node,
                self.frame().written.replace(true),
                &self.frame().rank,
                self.frame().place,
                self.frame().site,
            ),
        };
        if !written {
            let frame = self.frame();
            self.write_node(node, frame.construct, frame.site, frame.place);
        }
        rank.set(rank.get() + 1);
        Place {
            parent: node,
            step: Step::Ranked,
            index: rank.get(),
            path: self.path(&place, site, rank.get()),
        }
    }

    /// Opens a work-sharing construct, or a range or section of the innermost one, whose account is current from now on.
    /// The caller has charged what came before. `None` where the stack is full. Compiled into each caller: places are numbers in
    /// registers there.
    #[inline(always)]
    pub(crate) fn open(
        &self,
        construct: Construct,
        site: u32,
        place: Place,
        extent: u64,
    ) -> Option<&Work> {
        // A loop's ranges share its fate.
        let choice = match (construct, self.work()) {
            (Construct::Range | Construct::Section, Some(around)) => {
                self.sample(around.choice.get(), construct, site, place.path)
            }
            _ => self.choose(site),
        };
        let top = self.work_top.get();
        if top == self.work.as_ptr_range().end {
            self.buffer.lose();
            return None;
        }
        // SAFETY: an entry of `self.work`, which is initialised from the beginning.
        let work = unsafe { &*top };
        self.work_top.set(top.wrapping_add(1));
        work.construct.set(construct);
        work.site.set(site);
        work.node.set(self.new_node());
        work.place.set(place);
        work.written.set(false);
        work.rank.set(0);
        work.t0.set(self.last.get());
        work.cost.clear(self.k());
        work.fetches.set(0);
        work.extent.set(extent);
        work.choice.set(choice);
        work.cost.set.set(choice.set());
        self.turn(&raw const work.cost);
        Some(work)
    }

    /// Closes the innermost work entry. The caller has charged; the account around it is current afterwards.
    fn close_innermost(&self) {
        let Some(work) = self.work() else { return };
        if !self.write_plain(&self.interval_of(work, host::cpu()), work.fetched()) {
            self.write_work(work);
        }
        self.work_top.set(work);
        self.turn(self.innermost_cost());
    }

    #[inline(never)]
    fn write_work(&self, work: &Work) {
        let head = self.interval_of(work, host::cpu());
        self.write_chosen(work.choice.get(), &head, &work.cost, false, work.fetched());
    }

    /// Its interval, if it ends at the last boundary.
    #[inline(always)]
    fn interval_of(&self, work: &Work, cpu: u16) -> IntervalHead {
        let Place {
            parent,
            step,
            index,
            ..
        } = work.place.get();
        IntervalHead {
            construct: work.construct.get(),
            site: work.site.get(),
            node: work.node.get(),
            parent,
            step,
            cpu,
            index,
            extent: work.extent.get(),
            t0: work.t0.get(),
            t1: self.last.get(),
            own_ticks: work.cost.ticks.get(),
        }
    }

    /// Closes the work entries from this position on. The caller has charged.
    #[inline]
    fn close_from(&self, position: *const Work) {
        if self.work_top.get() > position {
            self.close_open(position);
        }
    }

    #[inline(never)]
    fn close_open(&self, position: *const Work) {
        while self.work_top.get() > position {
            if !self.close_loop_and_range(position) {
                self.close_innermost();
            }
        }
    }

    /// Closes the innermost two, if they are a loop and its only range, and can be told in one record.
    #[inline(always)]
    fn close_loop_and_range(&self, position: *const Work) -> bool {
        let first = self.work_top.get().wrapping_sub(2);
        if first < position {
            return false;
        }
        // SAFETY: both are open: they lie between an open entry's beginning and the innermost one's end.
        let (around, range) = unsafe { (&*first, &*first.add(1)) };
        let is_part = range.construct.get() == short::part_of(around.construct.get())
            && range.place.get().step == Step::Range
            && range.fetches.get() == 0;
        if !is_part || !self.write_loop(around, range) {
            return false;
        }
        self.work_top.set(first);
        self.turn(self.innermost_cost());
        true
    }

    #[inline(always)]
    fn write_loop(&self, around: &Work, range: &Work) -> bool {
        let cpu = host::cpu();
        let (outer, inner) = (self.interval_of(around, cpu), self.interval_of(range, cpu));
        self.write_with_range(&outer, &inner, around.fetched())
    }

    /// A boundary, which closes every work entry of the current frame: what a barrier, the next work-sharing construct or
    /// the end of the body imply.
    #[inline]
    pub(crate) fn end_all(&self) {
        self.charge();
        self.close_all();
    }

    /// Closes every work entry of the current frame. The caller has charged.
    #[inline]
    pub(crate) fn close_all(&self) {
        self.close_from(self.frame().work_base.get());
    }

    /// A boundary, which closes work entries as [`Thread::close_to`] says.
    #[inline]
    pub(crate) fn end_to(&self, wanted: impl Fn(&Work) -> bool) {
        self.charge();
        self.close_to(wanted);
    }

    /// Closes work entries up to and including the innermost one that `wanted` accepts; none if there is no such. The caller
    /// has charged.
    #[inline]
    pub(crate) fn close_to(&self, wanted: impl Fn(&Work) -> bool) {
        let base = self.frame().work_base.get();
        let mut at = self.work_top.get();
        while at > base {
            at = at.wrapping_sub(1);
            // SAFETY: an open entry.
            if wanted(unsafe { &*at }) {
                return self.close_from(at);
            }
        }
    }

    /// A boundary, at which a frame is entered: its account is charged from now on.
    #[inline]
    pub(crate) fn enter(&self, frame: &Frame) {
        self.charge();
        self.enter_here(frame);
    }

    /// Enters a frame: its account is charged from now on. The caller has charged.
    #[inline(always)]
    pub(crate) fn enter_here(&self, frame: &Frame) {
        if frame.choice.get() == Choice::NONE {
            let choice = self.choose(frame.site);
            frame.choice.set(match frame.construct {
                Construct::Task => {
                    self.sample(choice, Construct::Task, frame.site, frame.place.path)
                }
                _ => choice,
            });
        } else if frame.choice.get() != Choice::FIRST {
            self.be_special(special::SETS); // as another thread has chosen
        }
        frame.cost.set.set(frame.choice.get().set());
        frame.before.set(self.turn(&raw const frame.cost));
        frame.t0.set(self.last.get());
        frame.up.set(self.frame.replace(frame));
        frame.work_base.set(self.work_top.get());
        frame.mutex_base.set(self.mutex_top.get());
        self.remember(frame);
    }

    /// Leaves the current frame, closing what its end implies, and writes its interval. `extent`: see
    /// [`record::Interval::extent`].
    pub(crate) fn leave(&self, frame: &Frame, extent: u64) {
        if !core::ptr::eq(self.frame.get(), frame) {
            if self.is_gone() {
                return; // forked away in between, or finished
            }
            self.return_to(frame);
        }
        self.depth.set(self.depth.get().saturating_sub(1));
        if self.is_gone() {
            // Nothing is written, but the frame's memory goes.
            self.work_top.set(frame.work_base.get());
            self.mutex_top.set(frame.mutex_base.get());
            self.frame.set(frame.up.get());
            self.account.set(frame.before.get());
            return;
        }
        self.end_all();
        while self.mutex_top.get() > frame.mutex_base.get() {
            self.mutex_top.set(self.mutex_top.get() - 1);
            if let Some(held) = self.mutexes.get(self.mutex_top.get()) {
                self.drain(&held.cost, &frame.cost);
            }
        }
        if !self.write_plain(&self.interval_of_frame(frame, extent), None) {
            self.write_frame(frame, extent);
        }
        self.frame.set(frame.up.get());
        self.turn(frame.before.get());
    }

    #[inline(never)]
    fn write_frame(&self, frame: &Frame, extent: u64) {
        let head = self.interval_of_frame(frame, extent);
        let (choice, is_untied) = (frame.choice.get(), frame.is_untied.get());
        self.write_chosen(choice, &head, &frame.cost, is_untied, None);
    }

    /// Its interval, if it ends at the last boundary.
    #[inline(always)]
    fn interval_of_frame(&self, frame: &Frame, extent: u64) -> IntervalHead {
        let place = &frame.place;
        let (node, parent, step, index) = if frame.construct.is_part() {
            (0, frame.node, Step::None, frame.tid)
        } else {
            (frame.node, place.parent, place.step, place.index)
        };
        IntervalHead {
            construct: frame.construct,
            site: frame.site,
            node,
            parent,
            step,
            cpu: host::cpu(),
            index,
            extent,
            t0: frame.t0.get(),
            t1: self.last.get(),
            own_ticks: frame.cost.ticks.get(),
        }
    }

    /// Keeps a frame whose body the program runs between two calls. `None` without memory for it.
    pub(crate) fn detach(&self, detached: Detached) -> Option<&Detached> {
        let mut at = self.detached_free.get();
        if at.is_null() {
            at = new_detached();
            if at.is_null() {
                self.detached_lost.set(self.detached_lost.get() + 1);
                return None;
            }
        } else {
            // SAFETY: on the free list, so initialised and used by nobody.
            self.detached_free.set(unsafe { (*at).next.get() });
        }
        // SAFETY: room for one, from the free list or fresh pages; the list keeps it until `reattach`.
        let kept = unsafe {
            at.write(detached);
            &*at
        };
        kept.next.set(self.detached.replace(at));
        Some(kept)
    }

    /// The innermost detached frame, if it is of this construct and still the current task region.
    pub(crate) fn detached(&self, construct: Construct) -> Option<&Detached> {
        if self.detached_lost.get() > 0 {
            self.detached_lost.set(self.detached_lost.get() - 1);
            return None;
        }
        // SAFETY: on the list of detached frames, hence alive.
        let detached = unsafe { self.detached.get().as_ref()? };
        let current = core::ptr::eq(self.frame.get(), &raw const detached.frame);
        (current && detached.frame.construct == construct).then_some(detached)
    }

    /// Gives up the innermost detached frame, which has been left.
    pub(crate) fn reattach(&self, detached: &Detached) {
        let at = self.detached.get();
        self.detached.set(detached.next.get());
        detached.next.set(self.detached_free.replace(at));
    }
}

/// Memory for one more frame that is kept; null if there is none.
#[cold]
#[inline(never)]
fn new_detached() -> *mut Detached {
    syscall::map_memory(size_of::<Detached>()).map_or(core::ptr::null_mut(), <*mut u8>::cast)
}
