//! Where a thread is: in the program, and in its team.

use super::called::Called;
use super::recover::Stack;
use super::{Frame, Work};
use core::cell::Cell;
use zerocopy::FromZeros;

/// What is open on a thread, and its stack. Every probe looks at it.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub(super) struct Here {
    pub(super) frame: Cell<*const Frame>,
    /// Behind the innermost open entry of [`super::Thread::work`].
    pub(super) work_top: Cell<*const Work>,
    /// See [`super::Thread::set_floor`].
    pub(super) floor: Cell<usize>,
    /// The innermost call or loop, which may be over.
    pub(super) innermost: Cell<*const Called>,
    pub(super) stack: Stack,
}

/// A thread as a member of teams.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub(super) struct Membership {
    /// Where in which parallel region it is ([`TeamPlace::word`](ompfuse_format::record::TeamPlace::word)).
    pub(super) team: Cell<u64>,
    /// Clock at the end of the last synchronisation with the team: a barrier's end, or the begin of the thread's part.
    pub(super) synchronised: Cell<u64>,
}
