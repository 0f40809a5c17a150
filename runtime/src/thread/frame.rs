//! Where in the program a thread is: task regions, open work-sharing constructs, held mutexes.

use super::sums::team::TeamSums;
use super::{Choice, Cost};
use core::cell::Cell;
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use zerocopy::FromZeros;

/// Where something stands in the tree of labels.
#[derive(Debug, Clone, Copy, FromZeros)]
pub(crate) struct Place {
    pub(crate) parent: u64,
    pub(crate) step: Step,
    pub(crate) index: i64,
    /// See [`Thread::path`].
    pub(crate) path: u64,
}

/// A task region; a team's part of a `teams` region is one too.
#[derive(Debug, FromZeros)]
pub(crate) struct Frame {
    pub(crate) up: Cell<*const Frame>,
    pub(crate) construct: Construct,
    pub(crate) site: u32,
    /// The node that children name as their parent: for an implicit task that of the parallel construct.
    pub(crate) node: u64,
    pub(crate) place: Place,
    /// Whether the node's record exists.
    pub(super) written: Cell<bool>,
    /// Rank of the last child (work-sharing constructs; tasks too, except directly in a parallel construct).
    pub(super) rank: Cell<i64>,
    /// Tasks and parallel constructs created directly in this implicit task.
    pub(super) calls: Cell<i64>,
    /// Thread number in the team (of a team: its number).
    pub(crate) tid: Cell<i64>,
    /// Team size (of a team: number of teams).
    pub(crate) team: Cell<i64>,
    pub(crate) t0: Cell<u64>,
    pub(crate) cost: Cost,
    /// [`Thread::set_floor`] before.
    pub(super) floor: Cell<usize>,
    /// The account that was charged before.
    pub(super) before: Cell<*const Cost>,
    pub(super) work_base: Cell<*const Work>,
    pub(super) mutex_base: Cell<usize>,
    /// It may be executed in several parts.
    pub(super) is_untied: Cell<bool>,
    /// A part of it was executed before.
    pub(super) is_resumed: Cell<bool>,
    /// Of a thread's part of a region: where the region's parts are added up; null where they aren't.
    pub(crate) team_sums: Cell<*const TeamSums>,
    /// Whether it is recorded, and how it is counted; a task region keeps that over its parts.
    pub(super) choice: Cell<Choice>,
}

impl Frame {
    /// A frame that is not entered yet.
    pub(crate) fn new(
        construct: Construct,
        site: u32,
        node: u64,
        place: Place,
        tid: i64,
        team: i64,
    ) -> Frame {
        Frame {
            up: Cell::new(core::ptr::null()),
            construct,
            site,
            node,
            place,
            // A parallel construct's node is written where it forks.
            written: Cell::new(construct.is_part()),
            rank: Cell::new(0),
            calls: Cell::new(0),
            tid: Cell::new(tid),
            team: Cell::new(team),
            t0: Cell::new(0),
            cost: Cost::new(),
            floor: Cell::new(0),
            before: Cell::new(core::ptr::null()),
            work_base: Cell::new(core::ptr::null()),
            mutex_base: Cell::new(0),
            is_untied: Cell::new(false),
            is_resumed: Cell::new(false),
            team_sums: Cell::new(core::ptr::null()),
            choice: Cell::new(Choice::NONE),
        }
    }

    /// Becomes the frame of the next team, after the one before was left.
    pub(crate) fn turn_to_next(&self) {
        self.tid.set(self.tid.get() + 1);
        self.rank.set(0);
        self.calls.set(0);
        self.cost.clear();
        self.choice.set(Choice::NONE);
    }

    /// Continues a task region that has `rank` children from its earlier parts. `is_untied`: it may have such.
    pub(crate) fn resume(&self, rank: i64, choice: Choice, is_untied: bool) {
        self.is_untied.set(is_untied);
        self.is_resumed.set(choice != Choice::NONE);
        self.rank.set(rank);
        self.choice.set(choice);
        // The first child has written the node.
        self.written.set(rank > 0);
    }

    /// Counts its children as those of `before`.
    pub(super) fn follow(&self, before: &Frame) {
        self.rank.set(before.rank.get());
        self.calls.set(before.calls.get());
    }

    /// What was chosen when it began.
    pub(crate) fn choice(&self) -> Choice {
        self.choice.get()
    }

    /// Rank of its last child.
    pub(crate) fn rank(&self) -> i64 {
        self.rank.get()
    }
}

/// Chunks that are dealt round the team, in logical iterations.
#[derive(Debug, Clone, Copy, FromZeros)]
pub(crate) struct Chunks {
    /// First iteration of this thread's next chunk.
    pub(crate) next: i64,
    /// From one of its chunks to the next.
    pub(crate) round: i64,
    /// Iterations of a chunk.
    pub(crate) size: i64,
    /// Iterations of the loop.
    pub(crate) total: i64,
}

/// An open work-sharing construct, or a range of one.
#[derive(Debug, FromZeros)]
pub(crate) struct Work {
    pub(crate) construct: Cell<Construct>,
    pub(crate) site: Cell<u32>,
    pub(crate) node: Cell<u64>,
    pub(super) place: Cell<Place>,
    pub(super) written: Cell<bool>,
    /// Of a loop: a range of it has begun.
    pub(super) has_parts: Cell<bool>,
    pub(super) choice: Cell<Choice>,
    pub(super) rank: Cell<i64>,
    pub(super) t0: Cell<u64>,
    pub(crate) cost: Cost,
    /// Ticks and counts spent fetching ranges.
    pub(crate) dispatch: Cost,
    /// How often.
    pub(crate) fetches: Cell<u64>,
    /// Loop: value of the first iteration. Range: unused.
    pub(crate) first: Cell<i64>,
    /// Loop: increment.
    pub(crate) step: Cell<i64>,
    /// Loop with chunks that the program deals itself.
    pub(crate) chunks: Cell<Chunks>,
    /// Range: iterations.
    pub(crate) extent: Cell<u64>,
}

/// A mutex that is held.
#[derive(Debug, FromZeros)]
pub(super) struct Held {
    pub(super) construct: Cell<Construct>,
    pub(super) site: Cell<u32>,
    /// Its number ([`crate::locks`]).
    pub(super) lock: Cell<u32>,
    pub(super) t0: Cell<u64>,
    pub(super) wait: Cell<u64>,
    pub(super) cost: Cost,
}

impl Work {
    /// How often it has fetched ranges, if it has, and what that has cost.
    pub(super) fn fetched(&self) -> Option<(u64, &Cost)> {
        let fetches = self.fetches.get();
        (fetches > 0).then_some((fetches, &self.dispatch))
    }

    /// Where it stands.
    pub(crate) fn place(&self) -> Place {
        self.place.get()
    }

    /// Range: its first iteration.
    pub(crate) fn index(&self) -> i64 {
        self.place.get().index
    }
}
