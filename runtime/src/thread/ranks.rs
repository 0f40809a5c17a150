//! Work-sharing constructs that open and close, and the ranks of what is created in a construct.

use super::{Choice, Frame, Place, Thread, Work};
use crate::host;
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
    pub(crate) fn innermost_node(&self) -> u64 {
        match self.work() {
            Some(work) => work.node.get(),
            None => {
                let frame = self.frame();
                if frame.construct.is_code() {
                    self.tell_call(frame);
                }
                frame.node
            }
        }
    }

    /// Something happens in a function: its node is on record from now on. Most calls have none.
    #[inline(always)]
    fn tell_call(&self, frame: &Frame) {
        if !frame.written.replace(true) {
            self.write_here();
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
                if frame.construct.is_code() {
                    self.tell_call(frame);
                }
                (frame.choice(), &frame.written, frame.node)
            }
        };
        if !self.is_plain() && (choice.is_off() || self.may_be_short()) && !written.replace(true) {
            self.write_here();
        }
        node
    }

    #[inline(never)]
    fn write_here(&self) {
        let Some(work) = self.work() else {
            let frame = self.frame();
            return self.write_node(frame.node, frame.construct, frame.site, frame.place);
        };
        // A range's loop is told by its end, which may never be on record: it is off, or the program is killed before.
        let around = core::ptr::from_ref(work).wrapping_sub(1);
        if around >= self.frame().work_base.get() {
            // SAFETY: an open entry, below the innermost one.
            self.tell_around(unsafe { &*around }, work.place.get().parent);
        }
        self.write_work_node(work);
    }

    /// Writes the node of an open construct, if it is this one, and nobody has.
    fn tell_around(&self, work: &Work, node: u64) {
        if work.node.get() == node && !work.written.replace(true) {
            self.write_work_node(work);
        }
    }

    fn write_work_node(&self, w: &Work) {
        let (node, construct) = (w.node.get(), w.construct.get());
        self.write_node(node, construct, w.site.get(), w.place.get());
    }

    /// A further range of a loop begins, and the ones before it are on record: its node is now, since a killed program never
    /// comes to its end.
    #[cold]
    #[inline(never)]
    fn tell_loop(&self, work: &Work) {
        if !work.choice.get().is_off() {
            self.tell_around(work, work.node.get());
        }
    }

    /// Place of a new task or parallel construct created here ([XU] section 4; docs/design/labels.md).
    #[inline(always)]
    pub(crate) fn place_task(&self) -> Place {
        let frame = self.frame();
        if self.work().is_none() && frame.construct.is_part() {
            return self.place_in_part(frame, frame);
        }
        match frame.construct {
            c if c.is_code() => self.place_task_in_call(),
            _ => self.place_ranked(),
        }
    }

    /// The place of the next task or parallel construct that is created directly in a thread's part of a region, or in functions called there:
    /// `frame` is the innermost one's.
    #[inline(always)]
    fn place_in_part(&self, frame: &Frame, part: &Frame) -> Place {
        let calls = part.calls.get();
        part.calls.set(calls + 1);
        let index = part.tid.get() + calls * part.team.get();
        Place {
            parent: frame.node,
            step: Step::TidRanked,
            index,
            path: self.path(&frame.place, frame.site, index),
        }
    }

    #[inline(never)]
    fn place_task_in_call(&self) -> Place {
        let frame = self.frame();
        let part = frame.directly_around_calls();
        match part.filter(|part| self.work().is_none() && part.construct.is_part()) {
            Some(part) => {
                self.tell_call(frame);
                self.place_in_part(frame, part)
            }
            None => self.place_ranked(),
        }
    }

    /// Node and path of what a function that is called here happens in.
    #[inline(always)]
    pub(super) fn parent_of_call(&self) -> (u64, u64) {
        let (node, written, place, site) = match self.work() {
            Some(work) => (
                work.node.get(),
                &work.written,
                work.place.get(),
                work.site.get(),
            ),
            None => {
                let frame = self.frame();
                (frame.node, &frame.written, frame.place, frame.site)
            }
        };
        if !written.replace(true) {
            self.write_here();
        }
        let path = match self.has_lazy_paths() {
            true => self.path_of_child(site, 0),
            false => self.path(&place, site, 0),
        };
        (node, path)
    }

    /// Place of a new construct here that is opened next ([`Thread::open`]).
    #[inline]
    pub(crate) fn place_of_next(&self) -> Place {
        self.place_by(|place, site, index| self.path_of_next(place, site, index))
    }

    /// Place of a new construct here that is not opened on the stack of work-sharing ones, ranked in the order of creation.
    #[inline]
    pub(crate) fn place_ranked(&self) -> Place {
        self.place_by(|place, site, index| match self.has_lazy_paths() {
            true => self.path_of_child(site, index),
            false => self.path(place, site, index),
        })
    }

    #[inline(never)]
    fn path_of_child(&self, site: u32, index: i64) -> u64 {
        let place = match self.work() {
            Some(work) => work.place.get(),
            None => self.frame().place,
        };
        let path = self.path_of_work();
        self.path(&Place { path, ..place }, site, index)
    }

    #[inline(always)]
    fn place_by(&self, path: impl FnOnce(&Place, u32, i64) -> u64) -> Place {
        let (node, written, rank, place, site) = match self.work() {
            Some(work) => (
                work.node.get(),
                &work.written,
                &work.rank,
                work.place.get(),
                work.site.get(),
            ),
            None => {
                let frame = self.frame();
                let (place, site) = (frame.place, frame.site);
                let rank = match frame.construct {
                    c if c.is_code() => frame.rank_around_calls(),
                    _ => &frame.rank,
                };
                (frame.node, &frame.written, rank, place, site)
            }
        };
        if !written.replace(true) {
            self.write_here();
        }
        let index = rank.get() + 1;
        rank.set(index);
        Place {
            parent: node,
            step: Step::Ranked,
            index,
            path: path(&place, site, index),
        }
    }

    /// Opens a work-sharing construct, whose account is current from now on.
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
        let choice = self.choose(site);
        self.open_as(construct, site, place, extent, choice)
    }

    /// Opens a range or section of a loop, which is the innermost construct, as [`Thread::open`].
    #[inline(always)]
    pub(crate) fn open_part(
        &self,
        around: &Work,
        construct: Construct,
        site: u32,
        place: Place,
        extent: u64,
    ) -> Option<&Work> {
        if around.has_parts.replace(true) && !around.written.get() {
            self.tell_loop(around);
        }
        // A loop's ranges share its fate.
        let choice = self.sample(around.choice.get(), construct, site, place.path);
        self.open_as(construct, site, place, extent, choice)
    }

    #[inline(always)]
    fn open_as(
        &self,
        construct: Construct,
        site: u32,
        place: Place,
        extent: u64,
        choice: Choice,
    ) -> Option<&Work> {
        let top = self.here.work_top.get();
        if top == self.work.as_ptr_range().end {
            self.buffer.lose();
            return None;
        }
        // SAFETY: an entry of `self.work`, which is initialised from the beginning.
        let work = unsafe { &*top };
        self.here.work_top.set(top.wrapping_add(1));
        work.construct.set(construct);
        work.site.set(site);
        work.node.set(self.new_node());
        work.place.set(place);
        work.written.set(false);
        work.has_parts.set(false);
        work.rank.set(0);
        work.t0.set(self.charging.last.get());
        work.cost.clear();
        work.fetches.set(0);
        work.extent.set(extent);
        work.choice.set(choice);
        self.begin_account(&work.cost, choice, construct.is_xu());
        Some(work)
    }

    /// Closes the innermost work entry. The caller has charged; the account around it is current afterwards.
    fn close_innermost(&self) {
        if let Some(work) = self.work() {
            self.close_this(work);
        }
    }

    /// As [`Thread::close_innermost`], which is this one. Compiled into each caller.
    #[inline(always)]
    fn close_this(&self, work: &Work) {
        if !self.write_plain(&self.interval_of(work, host::cpu()), work.fetched()) {
            self.write_work(work);
        }
        self.here.work_top.set(work);
        self.turn(self.innermost_cost());
    }

    #[inline(never)]
    fn write_work(&self, work: &Work) {
        if self.keeps_sums_only() && self.add_work(work) {
            return;
        }
        self.write_any_work(work);
    }

    #[inline(never)]
    fn write_any_work(&self, work: &Work) {
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
            t1: self.charging.last.get(),
            own_ticks: work.cost.ticks.get(),
            disturbed: work.cost.disturbed.get(),
        }
    }

    /// Closes the work entries from this position on. The caller has charged.
    #[inline]
    fn close_from(&self, position: *const Work) {
        if self.here.work_top.get() > position {
            self.close_open(position);
        }
    }

    #[inline(never)]
    fn close_open(&self, position: *const Work) {
        if self.keeps_sums_only() {
            while self.here.work_top.get() > position {
                // SAFETY: an open entry.
                let work = unsafe { &*self.here.work_top.get().sub(1) };
                self.write_work(work);
                self.here.work_top.set(work);
                self.turn(self.innermost_cost());
            }
            return;
        }
        while self.here.work_top.get() > position {
            if !self.close_loop_and_range(position) {
                self.close_innermost();
            }
        }
    }

    /// Closes the innermost two, if they are a loop and its only range, and can be told in one record.
    #[inline(always)]
    fn close_loop_and_range(&self, position: *const Work) -> bool {
        let first = self.here.work_top.get().wrapping_sub(2);
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
        self.here.work_top.set(first);
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
    #[inline(always)]
    pub(crate) fn end_to(&self, wanted: impl Fn(&Work) -> bool) {
        self.charge();
        self.close_to(wanted);
    }

    /// Closes work entries up to and including the innermost one that `wanted` accepts; none if there is no such. The caller
    /// has charged.
    #[inline(always)]
    pub(crate) fn close_to(&self, wanted: impl Fn(&Work) -> bool) {
        match self.work() {
            None => {}
            Some(work) if wanted(work) => self.close_this(work),
            Some(_) => self.close_around(wanted),
        }
    }

    /// The same, where it isn't the innermost one.
    #[inline(never)]
    fn close_around(&self, wanted: impl Fn(&Work) -> bool) {
        let base = self.frame().work_base.get();
        let mut at = self.here.work_top.get();
        while at > base {
            at = at.wrapping_sub(1);
            // SAFETY: an open entry.
            if wanted(unsafe { &*at }) {
                return self.close_from(at);
            }
        }
    }
}
