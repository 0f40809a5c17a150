//! What control reaches from a place before it meets something that ends open constructs.

use super::ends::Closing;
use super::{Analysis, master};
use crate::scan::cfg::Exit;
use crate::scan::flow::uses::is_call;
use crate::scan::graph::BlockSet;
use std::collections::BTreeSet;

/// What is reached.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// Blocks, those of the places included.
    pub blocks: BTreeSet<usize>,
    /// Addresses of the instructions.
    pub insns: BTreeSet<u64>,
    /// Calls and begins that end what is open.
    pub closings: BTreeSet<u64>,
    /// Other calls.
    pub calls: BTreeSet<u64>,
    /// Blocks in which control leaves the function.
    pub exits: BTreeSet<usize>,
    /// The thread's number is compared with a constant.
    pub asks: bool,
}

impl Analysis<'_, '_> {
    /// What control reaches from before these instructions.
    pub(super) fn reach(&self, places: &[u64]) -> Reach {
        let mut reach = Reach::default();
        let mut behind = Vec::new();
        for &at in places {
            let block = self.body.block_at(at);
            if let Some(block) = block.filter(|&b| self.passes(b, at, places, &mut reach)) {
                behind.extend_from_slice(&self.body.blocks[block].succs);
            }
        }
        self.body.forwards(behind, |block| {
            let start = self.body.blocks[block].start;
            self.passes(block, start, places, &mut reach)
        });
        reach
    }

    /// Adds what control reaches in a block from an address on. Whether that is the block's end.
    fn passes(&self, block: usize, from: u64, places: &[u64], reach: &mut Reach) -> bool {
        reach.blocks.insert(block);
        for insn in self.body.block_insns(block) {
            let at = insn.ip();
            if at < from {
                continue;
            }
            if self.closing_at(at).is_some() && !places.contains(&at) {
                reach.closings.insert(at);
                return false;
            }
            reach.insns.insert(at);
            if is_call(insn) {
                reach.calls.insert(at);
            }
        }
        let decision = self.decisions.get(&block);
        reach.asks |= decision.is_some_and(|d| master::filter(d).is_some());
        if !matches!(self.body.blocks[block].exit, Exit::None | Exit::Dead) {
            reach.exits.insert(block);
        }
        true
    }

    /// Whether control comes from a block to another without passing one of `others` in between.
    pub(super) fn leads_to(&self, from: usize, to: usize, others: &BTreeSet<usize>) -> bool {
        self.body.reaches(from, to, |b| others.contains(&b))
    }

    /// The blocks from which control comes to one of `targets` without passing one that `ends` is true of in between.
    pub(super) fn leading_to(
        &self,
        targets: impl IntoIterator<Item = usize>,
        ends: impl Fn(&usize) -> bool,
    ) -> BlockSet {
        let targets: BTreeSet<usize> = targets.into_iter().collect();
        let is_target = |b: &usize| targets.contains(b);
        self.body
            .backwards(targets.iter().copied(), |b| is_target(&b) || !ends(&b))
    }

    /// What control reaches from these places, which may be what ends something themselves.
    pub(super) fn reach_at(&self, places: &[u64]) -> Reach {
        let ends = |place: &&u64| self.closing_at(**place).is_some();
        let (closings, others): (Vec<u64>, Vec<u64>) = places.iter().partition(ends);
        let mut reach = self.reach(&others);
        reach.closings.extend(closings);
        reach
    }

    /// The barriers that everything reached comes to, and the places behind them; `None` if control goes elsewhere too.
    pub(super) fn behind_barriers(&self, reach: &Reach) -> Option<(Vec<u64>, Vec<u64>)> {
        let barrier = |ip: &u64| self.closing_at(*ip) == Some(Closing::Barrier);
        let all = reach.closings.iter().all(barrier) && reach.exits.is_empty();
        let barriers: Vec<u64> = reach.closings.iter().copied().filter(|_| all).collect();
        let behind: Vec<u64> = barriers.iter().filter_map(|&ip| self.behind(ip)).collect();
        (behind.len() == barriers.len() && !behind.is_empty()).then_some((barriers, behind))
    }

    /// The place behind a call that only the call leads to.
    pub(super) fn behind(&self, call: u64) -> Option<u64> {
        let at = self.body.insns[self.body.insn_at(call)?].next_ip();
        let (from, to) = (self.body.block_at(call)?, self.body.block_at(at)?);
        let only = self.body.blocks[to].preds[..] == [from];
        let follows = self.body.blocks[from].succs[..] == [to];
        let apart = only && follows && !self.body.blocks[from].exit.is_direct_tail();
        (from == to || apart).then_some(at)
    }
}
