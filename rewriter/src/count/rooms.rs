//! Windows in which something can be added: new ones by `place`, or those that are there already.

use super::live::is_call;
use crate::place::{self, Finder, Request};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use std::ops::Range;

/// Bytes of the jump to a trampoline.
const JUMP: u64 = 5;
/// The instructions before a conditional jump that a window for it may begin with.
const BEFORE_JUMP: usize = 8;

// What things cost, roughly in cycles.
const JUMPS: u64 = 2;
const BACK: u64 = 1;
/// A short jump to a long one elsewhere.
const ISLAND: u64 = 3;
/// A call that pushes its return address by other means: the processor doesn't foresee the return.
const CALL: u64 = 30;

/// A window that begins with an instruction, or is there, and what its jumps cost.
pub(super) type Room = (Option<Range<u64>>, u64);

/// A function in which windows are looked for.
pub(super) struct Rooms<'x> {
    pub finder: &'x Finder<'x>,
    /// Windows that are there, ascending and disjoint.
    pub taken: &'x [place::Placed],
}

impl Rooms<'_> {
    /// Windows that hold the conditional jump at a block's end.
    pub(super) fn jump(&self, block: usize) -> Vec<Room> {
        let body = self.finder.body;
        let Some(jump) = body.last(block).filter(|i| i.is_jcc_short_or_near()) else {
            return Vec::new();
        };
        let insns = body.blocks[block].insns.clone().rev().take(BEFORE_JUMP);
        let rooms = insns.filter_map(|n| self.room(&body.insns[n]).map(|room| (n, room)));
        let holds = |(n, (window, _)): &(usize, Room)| match window {
            Some(window) => window.end > jump.ip(),
            None => body.insns[*n].ip() == jump.ip(),
        };
        rooms.filter(holds).map(|(_, room)| room).collect()
    }

    /// Islands for new windows that are too short, and the windows that hold these; or those that get none.
    pub(super) fn make(
        &self,
        windows: Vec<Range<u64>>,
    ) -> Result<Vec<place::Placed>, Vec<Range<u64>>> {
        let new = windows.into_iter().map(|range| place::Placed {
            range,
            members: Vec::new(),
            island: None,
            may_grow: true,
        });
        let mut all: Vec<place::Placed> = self.taken.iter().cloned().chain(new).collect();
        all.sort_by_key(|w| w.range.start);
        let narrow = place::make_room(self.finder, &mut all);
        if !narrow.is_empty() {
            return Err(narrow.into_iter().map(|n| all[n].range.clone()).collect());
        }
        let is_new = |w: &place::Placed| {
            let known = self
                .taken
                .binary_search_by_key(&w.range.start, |t| t.range.start);
            known.is_err()
        };
        all.retain(is_new);
        Ok(all)
    }

    /// The window that an instruction is in, or a new one that begins with it.
    pub(super) fn room(&self, insn: &Instruction) -> Option<Room> {
        let at = insn.ip();
        if is_mark(insn) {
            return None;
        }
        let next = self.taken.partition_point(|w| w.range.end <= at);
        let next = self.taken.get(next).map(|w| &w.range);
        match next.is_some_and(|w| w.start <= at) {
            true => Some((None, 0)),
            false => {
                let (window, cost) = self.window(at, next)?;
                Some((Some(window), cost))
            }
        }
    }

    /// A new window that begins with an instruction, and what its jumps cost.
    fn window(&self, at: u64, next: Option<&Range<u64>>) -> Option<(Range<u64>, u64)> {
        let request = Request {
            at,
            exact: true,
            ..Request::default()
        };
        let range = self.finder.choose(&request).ok()?.range;
        let is_free = next.is_none_or(|w| range.end <= w.start);
        if range.start != at || !is_free {
            return None;
        }
        let is_entry = self.finder.body.roots.first() == self.finder.body.block_at(at).as_ref();
        let insns = &self.finder.body.insns;
        let first = self.finder.body.insn_at(at)?;
        let inside = insns[first..].iter().take_while(|i| i.ip() < range.end);
        let mut cost = JUMPS + BACK;
        if range.end - range.start < JUMP {
            cost += ISLAND;
        }
        for insn in inside {
            // Where indirect branches may lead, what is kept free for others to write, and where tracers put breakpoints.
            let is_nop = insn.mnemonic() == Mnemonic::Nop;
            if is_mark(insn) || is_nop && (is_entry || insn.len() == 1) {
                return None;
            }
            match insn.flow_control() {
                _ if is_call(insn) => cost += CALL,
                FlowControl::ConditionalBranch if insn.near_branch_target() <= at => cost -= BACK,
                FlowControl::UnconditionalBranch
                | FlowControl::Return
                | FlowControl::IndirectBranch => cost -= BACK,
                _ => {}
            }
        }
        Some((range, cost))
    }
}

fn is_mark(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32)
}
