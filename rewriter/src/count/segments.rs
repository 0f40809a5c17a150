//! A function's code between its cuts, and the junctions where segments meet.

use super::live::is_call;
use crate::scan::cfg::{Body, Exit};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use std::collections::BTreeSet;
use std::ops::Range;

/// The junction of all cuts: the sum is exact there.
pub(crate) const CUT: usize = 0;

/// Code that control enters at its first instruction and leaves at its last.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub block: usize,
    /// Numbers of its instructions.
    pub insns: Range<usize>,
    /// Junctions where it begins and ends.
    pub from: usize,
    pub to: usize,
    /// How often it is executed, roughly.
    pub often: u64,
}

/// One of the two ways from a conditional jump that ends a block.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    /// The block that it comes from.
    pub block: usize,
    /// The block that it leads to.
    pub target: usize,
    pub is_taken: bool,
    /// Junctions that it leads from and to.
    pub from: usize,
    pub to: usize,
    /// How often control goes there, roughly, and how often the jump is executed.
    pub often: u64,
    pub executed: u64,
}

/// The segments of a function.
#[derive(Debug)]
pub(crate) struct Segments {
    pub list: Vec<Segment>,
    /// Where constants can be added between blocks.
    pub edges: Vec<Edge>,
    pub junctions: usize,
}

/// Why the flow of control isn't known well enough.
pub(crate) fn trouble(body: &Body) -> Option<String> {
    if let Some(at) = body.unknown {
        return Some(format!("the instruction at {at:#x} is unknown"));
    }
    if let Some(trouble) = body.trouble {
        return Some(trouble.into());
    }
    if !body.throwers.is_empty() {
        return Some("it catches what instructions throw that are no calls".into());
    }
    let transacts = |i: &&Instruction| i.flow_control() == FlowControl::XbeginXabortXend;
    if body.insns.iter().any(|i| transacts(&i)) {
        return Some("it has transactions".into());
    }
    (0..body.blocks.len()).find_map(|n| runs_on(body, n))
}

/// Whether a block ends where nobody knows how control goes on.
fn runs_on(body: &Body, number: usize) -> Option<String> {
    let block = &body.blocks[number];
    let last = body.last(number)?;
    let is_end = match last.flow_control() {
        FlowControl::IndirectBranch => {
            let why = "it has an indirect jump whose targets are unknown";
            return (block.exit == Exit::Dead).then(|| why.into());
        }
        FlowControl::Call
        | FlowControl::IndirectCall
        | FlowControl::UnconditionalBranch
        | FlowControl::Interrupt
        | FlowControl::Exception
        | FlowControl::Return => true,
        _ => last.mnemonic() == Mnemonic::Hlt,
    };
    let is_open = block.exit == Exit::Dead || block.exit == Exit::None && block.succs.is_empty();
    let end = last.next_ip();
    let why = format!("control runs on behind {end:#x}, where its code ends");
    (is_open && !is_end).then_some(why)
}

/// Joined junctions.
struct Joined(Vec<usize>);

impl Joined {
    fn root(&self, mut at: usize) -> usize {
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }

    /// The cut is the root of its own.
    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}

impl Segments {
    /// Divides a function. `cuts`: addresses of instructions before which the sum is to be exact; `divides`: whether constants can be
    /// added behind the jump that ends a block.
    pub(crate) fn of(
        body: &Body,
        cuts: &BTreeSet<u64>,
        divides: impl Fn(usize) -> bool,
    ) -> Segments {
        let (begins, ends) = (|n: usize| 1 + 2 * n, |n: usize| 2 + 2 * n);
        let junctions = 1 + 2 * body.blocks.len();
        let mut joined = Joined((0..junctions).collect());
        for &root in &body.roots {
            joined.join(CUT, begins(root));
        }
        let mut edges = Vec::new();
        let often = frequencies(body);
        for (n, block) in body.blocks.iter().enumerate() {
            let ways = ways(body, n).filter(|_| divides(n));
            for &to in &block.succs {
                let Some((taken, other)) = ways else {
                    joined.join(ends(n), begins(to));
                    continue;
                };
                let is_taken = Some(to) == taken;
                debug_assert!(is_taken || Some(to) == other);
                edges.push(Edge {
                    block: n,
                    target: to,
                    is_taken,
                    from: ends(n),
                    to: begins(to),
                    often: often[to].min(often[n]),
                    executed: often[n],
                });
            }
            for &pad in &block.pads {
                joined.join(CUT, begins(pad));
            }
            let leaves = matches!(
                block.exit,
                Exit::Return | Exit::Tail(_) | Exit::TailIndirect
            );
            if leaves || body.last(n).is_some_and(is_call) {
                joined.join(CUT, ends(n));
            }
            if block.preds.is_empty() || cuts.contains(&block.start) {
                joined.join(CUT, begins(n));
            }
        }
        for edge in &mut edges {
            (edge.from, edge.to) = (joined.root(edge.from), joined.root(edge.to));
        }
        let mut list = Vec::new();
        for (n, block) in body.blocks.iter().enumerate() {
            let (first, behind) = (block.insns.start, block.insns.end);
            let mut start = first;
            for at in first..behind {
                let is_last = at + 1 == behind;
                let cut =
                    is_call(&body.insns[at]) || !is_last && cuts.contains(&body.insns[at + 1].ip());
                if !cut && !is_last {
                    continue;
                }
                let junction = |at_end, own| if at_end { joined.root(own) } else { CUT };
                list.push(Segment {
                    block: n,
                    insns: start..at + 1,
                    from: junction(start == first, begins(n)),
                    to: junction(is_last, ends(n)),
                    often: often[n],
                });
                start = at + 1;
            }
        }
        Segments {
            list,
            edges,
            junctions,
        }
    }
}

/// Where the conditional jump at a block's end leads if it jumps, and if it doesn't; `None`: there is none, or both are the same.
fn ways(body: &Body, number: usize) -> Option<(Option<usize>, Option<usize>)> {
    let last = body.last(number)?;
    if !last.is_jcc_short_or_near() || last.near_branch_target() == last.next_ip() {
        return None;
    }
    let succs = &body.blocks[number].succs;
    let at = |va| {
        succs
            .iter()
            .copied()
            .find(|&to| body.blocks[to].start == va)
    };
    let (taken, other) = (at(last.near_branch_target()), at(last.next_ip()));
    let all = usize::from(taken.is_some()) + usize::from(other.is_some());
    (all == succs.len()).then_some((taken, other))
}

/// How often each block is executed, roughly: ten times in a loop, half of that if not in each iteration.
fn frequencies(body: &Body) -> Vec<u64> {
    const MOST: usize = 6;
    let over = body.dominators();
    let loops = body.natural_loops(&over);
    let mut depth = vec![0usize; body.blocks.len()];
    let mut innermost: Vec<Option<usize>> = vec![None; body.blocks.len()];
    for (n, natural) in loops.iter().enumerate() {
        for &block in &natural.blocks {
            depth[block] += 1;
            let known = innermost[block].map(|l| loops[l].blocks.len());
            if known.is_none_or(|len| natural.blocks.len() < len) {
                innermost[block] = Some(n);
            }
        }
    }
    let always = |block: usize| {
        let Some(natural) = innermost[block].map(|n| &loops[n]) else {
            return true;
        };
        let latches = body.blocks[natural.header].preds.iter();
        let mut latches = latches.filter(|p| natural.blocks.contains(p));
        latches.all(|&latch| over.dominates(block, latch))
    };
    let often = |block: usize| {
        let in_each = 2 * 10u64.pow(depth[block].min(MOST) as u32);
        if always(block) { in_each } else { in_each / 2 }
    };
    (0..body.blocks.len()).map(often).collect()
}
