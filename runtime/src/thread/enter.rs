//! Entering and leaving task regions.

use super::{Choice, Frame, Thread, special};
use crate::host;
use ompfuse_format::Construct;
use ompfuse_format::record::{IntervalHead, Step, TeamPlace};

/// A thread that waits so many times as long as it has done something before has done nothing worth the name.
const IDLE: u64 = 10;

impl Thread {
    /// A boundary, at which a frame on the stack is entered: its account is charged from now on.
    #[inline(always)]
    pub(crate) fn enter(&self, frame: &Frame) {
        self.charge();
        self.enter_above(frame, core::ptr::from_ref(frame) as usize);
    }

    /// Enters a frame that is not on the stack: its account is charged from now on. The caller has charged.
    #[inline(always)]
    pub(crate) fn enter_here(&self, frame: &Frame) {
        self.enter_above(frame, usize::MAX);
        if frame.construct.is_part() {
            self.be_in_team(frame, false);
        }
    }

    /// The thread is in its part of a region, which it has entered, or behind it.
    #[inline(always)]
    pub(crate) fn be_in_team(&self, frame: &Frame, behind: bool) {
        let site = frame.site;
        // What is executed in a region that is off is compared with no region's time.
        let place = match frame.choice.get().is_off() {
            true => TeamPlace::OUTSIDE,
            false => TeamPlace { site, behind },
        };
        let inside = match frame.construct {
            Construct::Team => TeamPlace::IN_TEAMS,
            _ => TeamPlace::IN_PARALLEL,
        };
        self.membership.team.set(place.word() | inside);
        self.membership.synchronised.set(self.charging.last.get());
    }

    /// A barrier ends, at which the thread has waited so many ticks: whether it has done next to nothing else since the last one,
    /// neither before nor by executing tasks meanwhile.
    #[inline(always)]
    pub(crate) fn was_idle(&self, waited: u64) -> bool {
        let now = self.charging.last.get();
        let since = now.saturating_sub(self.membership.synchronised.replace(now));
        since.saturating_sub(waited).saturating_mul(IDLE) <= waited
    }

    /// Where in which parallel region the thread is ([`TeamPlace::word`]); who forks a region keeps it until the join.
    #[inline(always)]
    pub(crate) fn team_word(&self) -> u64 {
        self.membership.team.get()
    }

    /// Is again where it was.
    #[inline(always)]
    pub(crate) fn be_back_in_team(&self, word: u64) {
        self.membership.team.set(word);
    }

    #[inline(always)]
    fn enter_above(&self, frame: &Frame, floor: usize) {
        self.begin_frame(frame, floor);
        self.remember(frame);
    }

    /// A frame is the current one from the last boundary on.
    #[inline(always)]
    pub(super) fn begin_frame(&self, frame: &Frame, floor: usize) {
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
        frame.floor.set(self.set_floor(floor));
        frame.before.set(self.account());
        let is_unit = frame.construct.is_xu();
        self.begin_account(&frame.cost, frame.choice.get(), is_unit);
        frame.t0.set(self.charging.last.get());
        frame.up.set(self.here.frame.replace(frame));
        frame.work_base.set(self.here.work_top.get());
        frame.mutex_base.set(self.mutex_top.get());
    }

    /// Leaves the current frame, closing what its end implies, and writes its interval. `extent`: see
    /// [`record::Interval::extent`].
    pub(crate) fn leave(&self, frame: &Frame, extent: u64) {
        self.leave_as(frame, extent, frame.construct.is_part());
    }

    /// As [`Thread::leave`], of which it is known whether it is a thread's part of a region. Compiled into each caller.
    #[inline(always)]
    pub(crate) fn leave_as(&self, frame: &Frame, extent: u64, is_part: bool) {
        if !core::ptr::eq(self.here.frame.get(), frame) {
            if self.is_gone() {
                return; // forked away in between, or finished
            }
            self.return_to(frame);
        }
        self.depth.set(self.depth.get().saturating_sub(1));
        if is_part {
            self.be_in_team(frame, true);
        }
        if self.is_gone() {
            // Nothing is written, but the frame's memory goes.
            self.here.work_top.set(frame.work_base.get());
            self.mutex_top.set(frame.mutex_base.get());
            self.here.frame.set(frame.up.get());
            self.charging.account.set(frame.before.get());
            self.set_floor(frame.floor.get());
            return;
        }
        self.charge();
        self.leave_charged(frame, extent, is_part);
    }

    /// Leaves the current frame at the last boundary.
    #[inline(always)]
    pub(super) fn leave_charged(&self, frame: &Frame, extent: u64, is_part: bool) {
        self.close_all();
        self.drain_mutexes(frame);
        if !self.write_plain(&self.interval_of_frame(frame, extent, is_part), None) {
            self.write_frame(frame, extent);
        }
        self.here.frame.set(frame.up.get());
        self.set_floor(frame.floor.get());
        self.turn(frame.before.get());
    }

    /// Mutexes that were entered in a frame, and are held at its end, are its own business.
    #[inline(always)]
    pub(super) fn drain_mutexes(&self, frame: &Frame) {
        while self.mutex_top.get() > frame.mutex_base.get() {
            self.mutex_top.set(self.mutex_top.get() - 1);
            if let Some(held) = self.mutexes.get(self.mutex_top.get()) {
                self.drain(&held.cost, &frame.cost);
            }
        }
    }

    /// Writes the interval of a frame that is no part of a region, and ends at the last boundary.
    #[inline(always)]
    pub(super) fn write_ended(&self, frame: &Frame, extent: u64) {
        if !self.write_plain(&self.interval_of_frame(frame, extent, false), None) {
            self.write_frame(frame, extent);
        }
    }

    #[inline(never)]
    fn write_frame(&self, frame: &Frame, extent: u64) {
        if !(self.keeps_sums_only() && self.add_task(frame, extent)) {
            self.write_any_frame(frame, extent);
        }
    }

    #[inline(never)]
    fn write_any_frame(&self, frame: &Frame, extent: u64) {
        let head = self.interval_of_frame(frame, extent, frame.construct.is_part());
        let (choice, is_untied) = (frame.choice.get(), frame.is_untied.get());
        self.write_chosen(choice, &head, &frame.cost, is_untied, None);
    }

    /// Its interval, if it ends at the last boundary.
    #[inline(always)]
    fn interval_of_frame(&self, frame: &Frame, extent: u64, is_part: bool) -> IntervalHead {
        let place = &frame.place;
        let is_lone = frame.construct.is_code() && !frame.written.get();
        let (node, parent, step, index) = if is_part {
            (0, frame.node, Step::None, frame.tid.get())
        } else if is_lone {
            (0, place.parent, Step::None, 0)
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
            t1: self.charging.last.get(),
            own_ticks: frame.cost.ticks.get(),
            disturbed: frame.cost.disturbed.get(),
        }
    }
}
