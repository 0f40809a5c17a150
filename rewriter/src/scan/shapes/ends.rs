//! Where an inlined construct ends: at the post-dominator of the branch that enters it, or implied by what follows.

use super::{Analysis, NaturalLoop, master};
use crate::scan::cfg::Exit;
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use std::collections::BTreeSet;

/// Instructions that are looked at behind a construct for something that implies its end.
const LEAD: usize = 24;

/// The construct whose end is looked for.
pub(super) struct Own {
    pub construct: Construct,
    /// Address of the division that computes its bounds, for loops.
    pub division: Option<u64>,
}

/// How a construct ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The runtime sees it by itself, at one of these addresses, for this reason.
    Implied(Vec<u64>, String),
    /// Probes before these instructions.
    Probes(Vec<u64>),
    /// There is no such place.
    Nowhere(&'static str),
}

/// What paths behind a branch come to first.
#[derive(Default)]
pub(super) struct Ways {
    closings: BTreeSet<u64>,
    pub(super) returns: BTreeSet<usize>,
    joins: bool,
    /// Blocks whose exit implies nothing.
    pub(super) open: BTreeSet<usize>,
}

impl Analysis<'_, '_> {
    /// The end of the construct that everything behind the branch of `block` belongs to; `fork`: the branch that
    /// passes it by.
    pub(super) fn end_of(&self, block: usize, fork: usize, own: &Own, drafts: &[Draft]) -> End {
        let join = self
            .post
            .parent(block)
            .filter(|&j| j < self.body.blocks.len());
        let ways = self.ways(block, join, drafts);
        let mut extent = self.extent(fork, drafts);
        extent.remove(&fork);
        if self.holds_others(&extent, own) {
            return End::Nowhere("other constructs follow before its paths meet again");
        }
        if ways.joins {
            let Some(join) = join else {
                return End::Nowhere(NEVER);
            };
            return self
                .implied_behind(join, drafts)
                .unwrap_or_else(|| End::Probes(vec![self.body.blocks[join].start]));
        }
        if ways.open.is_empty() && ways.returns.is_empty() {
            return self.closed(&ways.closings, drafts);
        }
        // Paths don't join: what follows the construct, if anything, exists once for each.
        if self.repeats_code(fork, &ways) {
            return self.before_copies(fork).map_or(
                End::Nowhere("the code behind it exists several times"),
                End::Probes,
            );
        }
        if ways.open.is_empty() {
            let places = ways.returns.iter().map(|&b| self.exit_address(b)).collect();
            return End::Implied(places, RETURN.to_owned());
        }
        let leaves = |&b: &usize| self.body.blocks[b].exit != Exit::Return;
        if ways
            .open
            .iter()
            .any(|b| leaves(b) && !self.is_shared(block, *b))
        {
            return End::Nowhere("its last action is a jump to another function");
        }
        End::Probes(ways.open.iter().map(|&b| self.epilogue(b)).collect())
    }

    /// What ends a construct whose paths all lead to these.
    fn closed(&self, closings: &BTreeSet<u64>, drafts: &[Draft]) -> End {
        match closings.first() {
            Some(at) => End::Implied(
                closings.iter().copied().collect(),
                self.calls
                    .get(at)
                    .map_or_else(String::new, |&d| closing_reason(&drafts[d])),
            ),
            None => End::Nowhere(NEVER),
        }
    }

    /// Whether other constructs, which it can't contain, stand between a construct and its end: its end is earlier then,
    /// in several copies.
    fn holds_others(&self, extent: &BTreeSet<usize>, own: &Own) -> bool {
        let is_loop = |v: Value| v.division().is_some() && v.division() != own.division;
        extent.iter().any(|b| {
            let Some(decision) = self.decisions.get(b) else {
                return false;
            };
            let in_cycle = || {
                self.cycles()
                    .iter()
                    .any(|c| c.blocks.contains(b) && c.blocks.is_subset(extent))
            };
            let asks_number =
                own.construct != Construct::Master && master::filter(decision).is_some();
            is_loop(decision.values.0) || is_loop(decision.values.1) || (asks_number && !in_cycle())
        })
    }

    /// Follows every path behind the branch until it joins, meets a barrier or leaves the function.
    fn ways(&self, block: usize, join: Option<usize>, drafts: &[Draft]) -> Ways {
        let mut ways = Ways::default();
        let succs = self.body.blocks[block].succs.iter().copied();
        self.body.forwards(succs, |b| {
            if Some(b) == join {
                ways.joins = true;
                return false;
            }
            if let Some(at) = self.closing_in(b, drafts) {
                ways.closings.insert(at);
                return false;
            }
            match self.body.blocks[b].exit {
                Exit::Return if self.is_outlined() => {
                    ways.returns.insert(b);
                }
                Exit::Tail(_) | Exit::TailIndirect
                    if self.is_outlined() && !self.is_shared(block, b) =>
                {
                    ways.returns.insert(b);
                }
                Exit::Return | Exit::Tail(_) | Exit::TailIndirect => {
                    ways.open.insert(b);
                }
                Exit::None | Exit::Dead => {}
            }
            true
        });
        ways
    }

    /// Blocks between the branch of `block` and what ends the construct.
    pub(crate) fn extent(&self, block: usize, drafts: &[Draft]) -> BTreeSet<usize> {
        let join = self.post.parent(block);
        let succs = self.body.blocks[block].succs.iter().copied();
        let inside = |b| Some(b) != join && self.closing_in(b, drafts).is_none();
        self.body.forwards(succs, inside).iter().collect()
    }

    /// The call in a block that ends every open work-sharing construct.
    pub(crate) fn closing_in(&self, block: usize, drafts: &[Draft]) -> Option<u64> {
        let insns = self.body.block_insns(block);
        let (first, last) = (insns.first()?.ip(), insns.last()?.ip());
        self.calls
            .range(first..=last)
            .find(|&(_, &d)| closes(&drafts[d]))
            .map(|(&ip, _)| ip)
    }

    /// The blocks with such a call or begin.
    pub(super) fn closing_blocks(&self, drafts: &[Draft]) -> BTreeSet<usize> {
        let closing = self.calls.iter().filter(|&(_, &d)| closes(&drafts[d]));
        let blocks = closing.filter_map(|(&ip, _)| self.body.block_at(ip));
        blocks.collect()
    }

    /// Whether the call or begin at an address ends every open work-sharing construct.
    pub(super) fn closes_at(&self, ip: u64, drafts: &[Draft]) -> bool {
        self.calls.get(&ip).is_some_and(|&d| closes(&drafts[d]))
    }

    /// What the code behind a join leads to, if nothing but moves stands before it.
    fn implied_behind(&self, join: usize, drafts: &[Draft]) -> Option<End> {
        let mut block = join;
        let mut left = LEAD;
        loop {
            for insn in self.body.block_insns(block) {
                left = left.checked_sub(1)?;
                if let Some(&d) = self.calls.get(&insn.ip()) {
                    return closes(&drafts[d])
                        .then(|| End::Implied(vec![insn.ip()], closing_reason(&drafts[d])));
                }
                if insn.flow_control() == FlowControl::Return {
                    return self
                        .is_outlined()
                        .then(|| End::Implied(vec![insn.ip()], RETURN.to_owned()));
                }
                if !is_plain_move(insn) {
                    return None;
                }
            }
            match self.body.blocks[block].succs[..] {
                [next] if self.body.blocks[block].exit == Exit::None => block = next,
                _ => return None,
            }
        }
    }

    fn exit_address(&self, block: usize) -> u64 {
        self.body
            .last(block)
            .map_or(self.body.blocks[block].start, Instruction::ip)
    }

    /// The beginning of what restores registers before a block's exit.
    fn epilogue(&self, block: usize) -> u64 {
        let insns = self.body.block_insns(block);
        let Some((last, before)) = insns.split_last() else {
            return self.body.blocks[block].start;
        };
        before
            .iter()
            .rev()
            .take_while(|i| is_epilogue(i))
            .last()
            .map_or(last.ip(), Instruction::ip)
    }

    pub(super) fn end_behind(
        &self,
        places: &[u64],
        headers: &[usize],
        own: &Own,
        drafts: &[Draft],
    ) -> End {
        let reach = self.reach(places, drafts);
        // Of some blocks only the beginning, in front of what ends the loop.
        let mut whole = reach.blocks.clone();
        whole.retain(|&b| {
            self.body
                .last(b)
                .is_some_and(|i| reach.insns.contains(&i.ip()))
        });
        if self.holds_others(&whole, own) {
            return End::Nowhere("other constructs follow before its paths meet again");
        }
        // The first block behind all of its cycles.
        let blocks: Vec<usize> = places
            .iter()
            .filter_map(|&p| self.body.block_at(p))
            .collect();
        let mut join = blocks.first().and_then(|&b| self.post.parent(b));
        while let Some(block) = join.filter(|&j| j < self.body.blocks.len()) {
            let on = self.reach(&[self.body.blocks[block].start], drafts);
            let leads_back = headers.iter().chain(&blocks).any(|b| on.blocks.contains(b));
            if blocks.iter().all(|&b| self.post.dominates(block, b))
                && reach.blocks.contains(&block)
                && !leads_back
            {
                return self
                    .implied_behind(block, drafts)
                    .unwrap_or_else(|| End::Probes(vec![self.body.blocks[block].start]));
            }
            join = self.post.parent(block);
        }
        // Else nothing but the loop's own calls may stand between its begin and what ends it.
        let in_body = |&ip: &u64| {
            let block = self.body.block_at(ip);
            let in_cycle = |c: &NaturalLoop| {
                headers.contains(&c.header) && block.is_some_and(|b| c.blocks.contains(&b))
            };
            self.cycles().iter().any(in_cycle)
        };
        if reach.calls.iter().all(in_body) {
            let returns =
                |&b: &usize| self.is_outlined() && self.body.blocks[b].exit == Exit::Return;
            if reach.exits.is_empty() {
                return self.closed(&reach.closings, drafts);
            }
            if reach.exits.iter().all(returns) && reach.closings.is_empty() {
                let places = reach.exits.iter().map(|&b| self.exit_address(b)).collect();
                return End::Implied(places, RETURN.to_owned());
            }
        }
        End::Nowhere("its paths don't meet again")
    }
}

/// Why an outlined function's return implies an end.
const RETURN: &str = "implied by the return of the outlined function";

/// Whether a call ends every work-sharing construct that is open: they can't contain it.
fn closes(draft: &Draft) -> bool {
    matches!(
        draft.probe(),
        Some(
            Probe::Barrier
                | Probe::LoopStart
                | Probe::SectionsStart
                | Probe::SingleStart
                | Probe::SingleCopyStart
                | Probe::InlineLoopBegin
                | Probe::InlineLoopAgain
        )
    )
}

fn closing_reason(draft: &Draft) -> String {
    let what = match draft.probe() {
        Some(Probe::Barrier) => "barrier",
        _ => "work-sharing construct",
    };
    format!("implied by the {what} at {:#x}", draft.address)
}

/// A path that never ends.
const NEVER: &str = "control never leaves it";

/// Whether it restores the caller's registers.
fn is_epilogue(insn: &Instruction) -> bool {
    match insn.mnemonic() {
        Mnemonic::Pop | Mnemonic::Leave | Mnemonic::Vzeroupper => true,
        Mnemonic::Add | Mnemonic::Lea => insn.op0_register() == Register::RSP,
        _ => false,
    }
}

/// Whether an instruction only moves data.
pub(super) fn is_plain_move(insn: &Instruction) -> bool {
    is_epilogue(insn)
        || matches!(
            insn.mnemonic(),
            Mnemonic::Nop
                | Mnemonic::Endbr64
                | Mnemonic::Mov
                | Mnemonic::Movsxd
                | Mnemonic::Movzx
                | Mnemonic::Movsx
                | Mnemonic::Lea
                | Mnemonic::Cdqe
                | Mnemonic::Movd
                | Mnemonic::Movq
                | Mnemonic::Movss
                | Mnemonic::Movsd
                | Mnemonic::Movaps
                | Mnemonic::Movups
                | Mnemonic::Movapd
                | Mnemonic::Movupd
                | Mnemonic::Movdqa
                | Mnemonic::Movdqu
                | Mnemonic::Jmp
        ) && insn.flow_control() != FlowControl::IndirectBranch
}
