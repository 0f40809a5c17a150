//! Where an inlined construct ends: at the post-dominator of the branch that enters it, or implied by what follows.

use super::why::Endless;
use super::{Analysis, NaturalLoop, master};
use crate::scan::cfg::Exit;
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use std::borrow::Cow;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The runtime sees it by itself, at one of these addresses.
    Implied(Vec<u64>, By),
    /// Probes before these instructions.
    Probes(Vec<u64>),
    /// There is no such place.
    Nowhere(Endless),
}

/// What implies an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The return of the outlined function.
    Return,
    /// What ends every open construct, at this address.
    Closing(Closing, u64),
}

impl By {
    /// The same in words.
    pub(super) fn told(self) -> Cow<'static, str> {
        let (what, at) = match self {
            By::Return => return "implied by the return of the outlined function".into(),
            By::Closing(Closing::Barrier, at) => ("barrier", at),
            By::Closing(Closing::Begin, at) => ("work-sharing construct", at),
        };
        format!("implied by the {what} at {at:#x}").into()
    }
}

/// A call, or the begin of a loop, that ends every work-sharing construct that is open: they can't contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    Barrier,
    /// Of another one.
    Begin,
}

impl Closing {
    /// What a draft is.
    pub(super) fn of(draft: &Draft) -> Option<Closing> {
        match draft.probe()? {
            Probe::Barrier => Some(Closing::Barrier),
            Probe::LoopStart
            | Probe::SectionsStart
            | Probe::SingleStart
            | Probe::SingleCopyStart => Some(Closing::Begin),
            _ => None,
        }
    }
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
    pub(super) fn end_of(&self, block: usize, fork: usize, own: &Own) -> End {
        let join = self
            .post
            .parent(block)
            .filter(|&j| j < self.body.blocks.len());
        let ways = self.ways(block, join);
        let mut extent = self.extent(fork);
        extent.remove(&fork);
        if self.holds_others(&extent, own) {
            return End::Nowhere(Endless::OthersFollow);
        }
        if ways.joins {
            let Some(join) = join else {
                return End::Nowhere(Endless::Never);
            };
            return self
                .implied_behind(join)
                .unwrap_or_else(|| End::Probes(vec![self.body.blocks[join].start]));
        }
        if ways.open.is_empty() && ways.returns.is_empty() {
            return self.closed(&ways.closings);
        }
        // Paths don't join: what follows the construct, if anything, exists once for each.
        if self.repeats_code(fork, &ways) {
            return End::Nowhere(Endless::Copies);
        }
        if ways.open.is_empty() {
            let places = ways.returns.iter().map(|&b| self.exit_address(b)).collect();
            return End::Implied(places, By::Return);
        }
        let leaves = |&b: &usize| self.body.blocks[b].exit != Exit::Return;
        if ways
            .open
            .iter()
            .any(|b| leaves(b) && !self.is_shared(block, *b))
        {
            return End::Nowhere(Endless::JumpsAway);
        }
        End::Probes(ways.open.iter().map(|&b| self.epilogue(b)).collect())
    }

    /// What ends a construct whose paths all lead to these.
    fn closed(&self, closings: &BTreeSet<u64>) -> End {
        let first = closings.first();
        match first.and_then(|&at| Some(By::Closing(self.closing_at(at)?, at))) {
            Some(by) => End::Implied(closings.iter().copied().collect(), by),
            None => End::Nowhere(Endless::Never),
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
    fn ways(&self, block: usize, join: Option<usize>) -> Ways {
        let mut ways = Ways::default();
        let succs = self.body.blocks[block].succs.iter().copied();
        self.body.forwards(succs, |b| {
            if Some(b) == join {
                ways.joins = true;
                return false;
            }
            if let Some(at) = self.closing_in(b) {
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
    pub(crate) fn extent(&self, block: usize) -> BTreeSet<usize> {
        let join = self.post.parent(block);
        let succs = self.body.blocks[block].succs.iter().copied();
        let inside = |b| Some(b) != join && self.closing_in(b).is_none();
        self.body.forwards(succs, inside).iter().collect()
    }

    /// The call in a block that ends every open work-sharing construct.
    pub(crate) fn closing_in(&self, block: usize) -> Option<u64> {
        let insns = self.body.block_insns(block);
        let (first, last) = (insns.first()?.ip(), insns.last()?.ip());
        self.calls
            .range(first..=last)
            .find(|(_, mark)| mark.closing.get().is_some())
            .map(|(&ip, _)| ip)
    }

    /// The blocks with such a call or begin.
    pub(super) fn closing_blocks(&self) -> BTreeSet<usize> {
        let all = self.calls.iter();
        let closing = all.filter(|(_, mark)| mark.closing.get().is_some());
        let blocks = closing.filter_map(|(&ip, _)| self.body.block_at(ip));
        blocks.collect()
    }

    /// The call or begin at an address, if it ends every open work-sharing construct.
    pub(super) fn closing_at(&self, ip: u64) -> Option<Closing> {
        self.calls.get(&ip)?.closing.get()
    }

    /// What the code behind a join leads to, if nothing but moves stands before it.
    fn implied_behind(&self, join: usize) -> Option<End> {
        let mut block = join;
        let mut left = LEAD;
        loop {
            for insn in self.body.block_insns(block) {
                left = left.checked_sub(1)?;
                let at = insn.ip();
                if let Some(mark) = self.calls.get(&at) {
                    let by = By::Closing(mark.closing.get()?, at);
                    return Some(End::Implied(vec![at], by));
                }
                if insn.flow_control() == FlowControl::Return {
                    return self
                        .is_outlined()
                        .then(|| End::Implied(vec![at], By::Return));
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

    pub(super) fn end_behind(&self, places: &[u64], headers: &[usize], own: &Own) -> End {
        let reach = self.reach(places);
        // Of some blocks only the beginning, in front of what ends the loop.
        let mut whole = reach.blocks.clone();
        whole.retain(|&b| {
            self.body
                .last(b)
                .is_some_and(|i| reach.insns.contains(&i.ip()))
        });
        if self.holds_others(&whole, own) {
            return End::Nowhere(Endless::OthersFollow);
        }
        // The first block behind all of its cycles.
        let blocks: Vec<usize> = places
            .iter()
            .filter_map(|&p| self.body.block_at(p))
            .collect();
        let mut join = blocks.first().and_then(|&b| self.post.parent(b));
        while let Some(block) = join.filter(|&j| j < self.body.blocks.len()) {
            let on = self.reach(&[self.body.blocks[block].start]);
            let leads_back = headers.iter().chain(&blocks).any(|b| on.blocks.contains(b));
            if blocks.iter().all(|&b| self.post.dominates(block, b))
                && reach.blocks.contains(&block)
                && !leads_back
            {
                return self
                    .implied_behind(block)
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
                return self.closed(&reach.closings);
            }
            if reach.exits.iter().all(returns) && reach.closings.is_empty() {
                let places = reach.exits.iter().map(|&b| self.exit_address(b)).collect();
                return End::Implied(places, By::Return);
            }
        }
        End::Nowhere(Endless::Apart)
    }
}

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
