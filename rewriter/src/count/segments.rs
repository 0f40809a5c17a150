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

/// The segments of a function.
#[derive(Debug)]
pub(crate) struct Segments {
    pub list: Vec<Segment>,
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
    /// Divides a function. `cuts`: addresses of instructions before which the sum is to be exact.
    pub(crate) fn of(body: &Body, cuts: &BTreeSet<u64>) -> Segments {
        let (begins, ends) = (|n: usize| 1 + 2 * n, |n: usize| 2 + 2 * n);
        let junctions = 1 + 2 * body.blocks.len();
        let mut joined = Joined((0..junctions).collect());
        for &root in &body.roots {
            joined.join(CUT, begins(root));
        }
        for (n, block) in body.blocks.iter().enumerate() {
            for &to in &block.succs {
                joined.join(ends(n), begins(to));
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
        let often = frequencies(body);
        let mut list = Vec::new();
        for (n, block) in body.blocks.iter().enumerate() {
            let (first, behind) = (block.insns.start, block.insns.end);
            let mut start = first;
            for at in first..behind {
                let is_last = at + 1 == behind;
                let cut = is_call(&body.insns[at])
                    || !is_last && cuts.contains(&body.insns[at + 1].ip());
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
        Segments { list, junctions }
    }
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
