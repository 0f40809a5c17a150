//! From decoded instructions to basic blocks.

use super::decoded::{Decoded, Flow};
use super::{Builder, Scratch};
use crate::scan::cfg::{Block, Blocks, Body, Exit};
use crate::scan::grid::Grid;

/// Makes blocks of what was decoded; `roots`: where control arrives in ways that no branch shows.
pub(super) fn finish(
    builder: Builder<'_, '_>,
    scratch: &mut Scratch,
    function: usize,
    roots: &[u64],
) -> Body {
    let Builder {
        no_return,
        parts,
        pads,
        thrown,
        mut decoded,
        unknown,
        unknown_by_table,
        mut trouble,
        ..
    } = builder;
    // One such range tells how the function was compiled.
    let mut throwers = pads;
    throwers.retain(|p| !thrown.is_empty() && p.pad.is_some());
    scratch.no_return = no_return;
    let (starts, overlaps) = decoded.starts(roots, &mut scratch.room);
    if overlaps {
        trouble.get_or_insert("it has overlapping instructions");
    }
    let Decoded {
        insns,
        mut grid,
        mut flows,
        leads,
        atomics,
        ..
    } = decoded;
    let mut blocks = std::mem::take(&mut scratch.blocks);
    blocks.reserve(starts.len());
    for (n, &start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(insns.len());
        blocks.push(Block {
            start: insns[start].ip(),
            insns: start..end,
            succs: Blocks::new(),
            preds: Blocks::new(),
            pads: Blocks::new(),
            exit: Exit::None,
        });
    }
    grid.set_blocks(blocks.iter().map(|b| b.start));
    let falls_on = Flow {
        falls: true,
        ..Flow::default()
    };
    let mut targets = roots.to_vec();
    targets.reserve(flows.len());
    let mut rest = &flows[..];
    for i in 0..blocks.len() {
        let last = blocks[i].insns.end - 1;
        let mut flow = &falls_on;
        while let Some((first, others)) = rest.split_first()
            && first.insn as usize <= last
        {
            targets.extend(first.targets.iter().chain(&first.pads));
            if first.insn as usize == last {
                flow = first;
            }
            rest = others;
        }
        connect(&mut blocks, i, flow, insns[last].next_ip(), &grid);
    }
    let roots = roots.iter().filter_map(|&r| grid.block(r)).collect();
    grid.give_back(&mut scratch.bytes);
    flows.clear();
    scratch.flows = flows;
    Body {
        function,
        parts,
        insns,
        blocks,
        roots,
        targets,
        leads,
        atomics,
        unknown,
        unknown_by_table,
        throwers: throwers.into_iter().map(|p| p.from..p.to).collect(),
        trouble,
    }
}

/// The next block, if it begins at this address.
fn following(blocks: &[Block], block: usize, va: u64) -> Option<usize> {
    let next = blocks.get(block + 1)?;
    (next.start == va).then_some(block + 1)
}

/// Gives a block what follows it; `behind`: the address behind its last instruction.
fn connect(blocks: &mut [Block], i: usize, flow: &Flow, behind: u64, grid: &Grid) {
    let fall = match flow.falls {
        true => following(blocks, i, behind).or_else(|| grid.block(behind)),
        false => None,
    };
    let mut exit = flow.exit.unwrap_or(Exit::None);
    if flow.falls && fall.is_none() && exit == Exit::None && flow.targets.is_empty() {
        exit = Exit::Dead;
    }
    let mut succs: Blocks = fall.into_iter().collect();
    let mut before = None; // lists come from jump tables, which are sorted
    for to in flow.targets.iter().filter_map(|&t| grid.block(t)) {
        if Some(to) != fall && before != Some(to) {
            succs.push(to);
        }
        before = Some(to);
    }
    for &to in &succs {
        blocks[to].preds.push(i);
    }
    if !flow.pads.is_empty() {
        let pads: Blocks = flow.pads.iter().filter_map(|&p| grid.block(p)).collect();
        for &to in &pads {
            blocks[to].preds.push(i);
        }
        blocks[i].pads = pads;
    }
    let block = &mut blocks[i];
    (block.succs, block.exit) = (succs, exit);
}
