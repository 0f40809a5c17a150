//! Loops of functions that are wanted as regions: a probe where an iteration begins, and one wherever control is when it has left
//! the loop. The probes tell an execution by the stack pointer, which has to be the same at all of them. A loop of which one
//! probe has no room gets none. What a natural loop is: [Loops] section 9.6.

use super::Module;
use super::cfg::{Blocks, Body, Exit};
use super::draft::Draft;
use super::flow::lift;
use super::graph::{Dominators, NaturalLoop, retreating, settle};
use super::relays::Relayed;
use super::{wanted, windows};
use crate::model::ProbeSpec;
use crate::place::Placed;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::Edge;
use std::collections::{BTreeMap, BTreeSet};

/// Why a loop has no probes.
const IRREDUCIBLE: &str = "it is entered in several places (irreducible)";
const STACK: &str = "the stack pointer differs between its iterations and exits";
const RETURNS: &str = "what follows its exit leads into it again";
const DEALT: &str =
    "an OpenMP construct begins or ends in it: its iterations are recorded as that construct's";

/// A natural loop: all cycles through a header that dominates them.
struct Natural {
    header: usize,
    blocks: BTreeSet<usize>,
    /// The block whose execution is an iteration: the header, or the one behind it if the header is a test that may end the loop.
    first: usize,
    /// Address of the last branch back to the header: the line of the `for` or `while`, mostly.
    latch: u64,
    /// Loops that it is in, with itself.
    depth: usize,
}

/// Bytes by block.
type Depths = BTreeMap<usize, i64>;

/// Adds the sites of a function's loops to those that it has already, and their windows.
pub(super) fn add(
    module: &Module<'_>,
    body: &Body,
    (barred, relays): (&BTreeSet<u64>, &[Relayed]),
    drafts: &mut Vec<Draft>,
    windows: &mut Vec<Placed>,
) {
    if body.trouble.is_some() || wanted::untouchable(module, body.function).is_some() {
        return; // which the function itself says
    }
    let graph = Graph::of(body);
    let loops = graph.loops(body);
    let dealt: Vec<bool> = loops
        .iter()
        .map(|l| deals(body, l, &loops, drafts))
        .collect();
    let mut possible = Vec::new();
    for (natural, is_dealt) in loops.into_iter().zip(dealt) {
        let exits = match is_dealt {
            true => Err(DEALT),
            false => exits(body, &graph, &natural, drafts),
        };
        match exits {
            Ok(exits) => possible.push((natural, exits)),
            Err(why) => refuse(body, natural.first, natural.latch, why.into(), drafts),
        }
    }
    for header in graph.irreducible() {
        let at = body.blocks[header].start;
        refuse(body, header, at, IRREDUCIBLE.into(), drafts);
    }
    if possible.is_empty() {
        return;
    }
    let mut place = |loops: &[(Natural, Vec<u64>)], drafts: &mut Vec<Draft>| {
        let mut all = drafts.clone();
        for (natural, exits) in loops {
            draw(body, natural, exits, &mut all);
        }
        let placed = windows::place(module, body, barred, relays, &mut all);
        let mut others = drafts.iter().zip(&all);
        let harms = others.any(|(before, now)| before.action.is_some() && now.action.is_none());
        if !harms {
            (*drafts, *windows) = (all, placed);
        }
        !harms
    };
    if place(&possible, drafts) {
        return;
    }
    // Some take room from what is recorded already: those get none.
    for one in possible {
        if !place(std::slice::from_ref(&one), drafts) {
            let why = "its probes need the room of others";
            refuse(body, one.0.first, one.0.latch, why.into(), drafts);
        }
    }
}

/// The sites of a loop.
fn draw(body: &Body, natural: &Natural, exits: &[u64], drafts: &mut Vec<Draft>) {
    let first = drafts.len();
    let mut draft = begin(body, natural.first, natural.latch);
    draft.inline(ProbeSpec::bare(Probe::LoopIterate));
    if natural.depth > 1 {
        draft.detail = Some(format!("depth {}", natural.depth).into());
    }
    drafts.push(draft);
    for &at in exits {
        let mut draft = Draft::new(at, Construct::NaturalLoop, Edge::End);
        draft.function = Some(body.function as u32);
        draft.region = Some(first);
        draft.inline(ProbeSpec::bare(Probe::LoopLeave));
        drafts.push(draft);
    }
}

fn begin(body: &Body, block: usize, latch: u64) -> Draft {
    let at = body.blocks[block].start;
    let mut draft = Draft::new(at, Construct::NaturalLoop, Edge::Begin);
    draft.function = Some(body.function as u32);
    draft.line_at = latch;
    draft
}

fn refuse(body: &Body, block: usize, latch: u64, why: String, drafts: &mut Vec<Draft>) {
    let mut draft = begin(body, block, latch);
    draft.skip(why);
    drafts.push(draft);
}

/// Where control may be when it has left the loop; or why the loop gets no probes.
fn exits(
    body: &Body,
    graph: &Graph,
    natural: &Natural,
    drafts: &[Draft],
) -> Result<Vec<u64>, &'static str> {
    if is_split(body, natural, drafts) {
        return Err(DEALT);
    }
    let [starts, finals] = depths(body, graph, natural)?;
    if starts.get(&natural.first) != Some(&0) {
        return Err(STACK);
    }
    let mut exits = BTreeSet::new();
    for (&block, &depth) in &finals {
        let leaves = |to: &&usize| !natural.blocks.contains(*to);
        for &to in graph.succs[block].iter().filter(leaves) {
            if ends(body, to) {
                continue;
            }
            if depth != 0 {
                return Err(STACK);
            }
            if leads_back(graph, to, natural) {
                return Err(RETURNS);
            }
            exits.insert(marked(body, to));
        }
    }
    Ok(exits.into_iter().collect())
}

/// Whether control that comes to a block never comes back to this execution of the function.
fn ends(body: &Body, block: usize) -> bool {
    let block = &body.blocks[block];
    block.exit == Exit::Dead && block.succs.is_empty() && block.pads.is_empty()
}

/// Whether a block leads straight into the loop: its probe may stand further behind, where there is more room.
fn leads_back(graph: &Graph, block: usize, natural: &Natural) -> bool {
    let mut at = block;
    for _ in 0..graph.succs.len() {
        match graph.succs[at][..] {
            [next] if natural.blocks.contains(&next) => return true,
            [next] => at = next,
            _ => return false,
        }
    }
    false
}

/// Whether instructions only look at what there is.
fn is_test(insns: &[Instruction]) -> bool {
    insns.iter().all(|insn| {
        let compares = matches!(
            insn.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt | Mnemonic::Nop
        );
        let memory = insn.op0_kind() != OpKind::Register && insn.op_count() > 0;
        let changes = memory && !compares || insn.stack_pointer_increment() != 0;
        match insn.flow_control() {
            FlowControl::Next => !changes,
            FlowControl::ConditionalBranch => true,
            _ => false,
        }
    })
}

/// Where a block's probe stands: behind the mark of where indirect branches may lead.
fn marked(body: &Body, block: usize) -> u64 {
    let insns = body.block_insns(block);
    let is_mark = |i: &&Instruction| matches!(i.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32);
    let mut insns = insns.iter().skip_while(is_mark);
    insns.next().map_or(body.blocks[block].start, |i| i.ip())
}

/// Whether a construct begins outside of the loop and has a part, or its end, in it; or the other way round.
fn is_split(body: &Body, natural: &Natural, drafts: &[Draft]) -> bool {
    let inside = |draft: &Draft| {
        let block = body.block_at(draft.address);
        block.is_some_and(|block| natural.blocks.contains(&block))
    };
    let of_code = |draft: &Draft| draft.construct.is_code();
    drafts.iter().filter(|d| !of_code(d)).any(|draft| {
        let deals = matches!(
            draft.probe(),
            Some(Probe::InlineChunk | Probe::InlineNextChunk | Probe::InlineLoopAgain)
        );
        let is_part = matches!(draft.edge, Edge::Next | Edge::End);
        let begun = draft.region.map(|begin| inside(&drafts[begin]));
        match inside(draft) {
            true => deals || is_part && begun != Some(true),
            false => is_part && begun == Some(true),
        }
    })
}

/// Whether it is a compiler's own loop, each iteration of which is one of the teams that this thread executes. A loop around it is the
/// program's.
fn deals(body: &Body, natural: &Natural, all: &[Natural], drafts: &[Draft]) -> bool {
    let asks = drafts
        .iter()
        .filter(|d| d.record.is_some_and(|e| e.probe == Some(Probe::TeamNext)));
    let mut blocks = asks.filter_map(|d| body.block_at(d.address));
    blocks.any(|block| {
        let inside = all.iter().filter(|l| l.blocks.contains(&block));
        let innermost = inside.map(|l| l.blocks.len()).min();
        natural.blocks.contains(&block) && innermost == Some(natural.blocks.len())
    })
}

/// How much deeper the stack is than at the loop's header: where each of its blocks begins, and where it ends.
fn depths(body: &Body, graph: &Graph, natural: &Natural) -> Result<[Depths; 2], &'static str> {
    let mut ends = BTreeMap::new();
    let through = |block: usize, depth: &mut Option<i64>| {
        for insn in body.block_insns(block) {
            *depth = depth.zip(growth(insn)).map(|(depth, more)| depth + more);
        }
        ends.insert(block, *depth);
        let next = graph.succs[block].iter().copied();
        next.filter(move |to| natural.blocks.contains(to))
    };
    let start = BTreeMap::from([(natural.header, Some(0))]);
    let begins = settle(start, through, |x, y| x.filter(|_| x == y));
    let known = |all: BTreeMap<usize, Option<i64>>| {
        let all = all.into_iter().map(|(block, depth)| Some((block, depth?)));
        all.collect::<Option<Depths>>().ok_or(STACK)
    };
    Ok([known(begins)?, known(ends)?])
}

/// What an instruction adds to the stack's depth in bytes; `None`: that isn't known.
fn growth(insn: &Instruction) -> Option<i64> {
    let is_stack = |register: Register| register.full_register() == Register::RSP;
    let is_first = insn.op0_kind() == OpKind::Register && is_stack(insn.op0_register());
    match (insn.mnemonic(), insn.flow_control()) {
        // What is called leaves the stack as it was.
        (_, FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return) => Some(0),
        (Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push, _) => {
            Some(-i64::from(insn.stack_pointer_increment()))
        }
        (Mnemonic::Leave | Mnemonic::Enter, _) => None,
        (Mnemonic::Xchg, _)
            if insn.op1_kind() == OpKind::Register && is_stack(insn.op1_register()) =>
        {
            None
        }
        _ if is_first && insn.op0_register() == Register::RSP => {
            lift::added_to(insn, Register::RSP).map(|more| -more)
        }
        _ if is_first => None,
        _ => Some(-i64::from(insn.stack_pointer_increment())),
    }
}

/// A function's blocks with what leads from one to the other, landing pads included, and a root that leads to all where control arrives otherwise.
struct Graph {
    succs: Vec<Blocks>,
    over: Dominators,
    /// Branches to a block that is around them: from, to.
    back: Vec<(usize, usize)>,
}

impl Graph {
    fn of(body: &Body) -> Graph {
        let both = |b: &super::cfg::Block| b.succs.iter().chain(&b.pads).copied().collect();
        let mut succs: Vec<Blocks> = body.blocks.iter().map(both).collect();
        let root = succs.len();
        succs.push(body.roots.iter().copied().collect());
        let over = Dominators::compute(&succs, root);
        let back = retreating(&succs, &[root]);
        Graph { succs, over, back }
    }

    /// Natural loops, by the address of their header.
    fn loops(&self, body: &Body) -> Vec<Natural> {
        let all = body.natural_loops(&self.over);
        let depth = |at: usize| all.iter().filter(|l| l.blocks.contains(&at)).count();
        let depths: Vec<usize> = all.iter().map(|l| depth(l.header)).collect();
        let loops = all.into_iter().zip(depths);
        loops
            .map(|(NaturalLoop { header, blocks }, depth)| {
                let own = body.blocks[header].preds.iter();
                let latches = own.filter(|p| blocks.contains(p));
                Natural {
                    header,
                    first: self.first(body, header, &blocks),
                    latch: latches
                        .filter_map(|&p| body.last(p))
                        .map(Instruction::ip)
                        .max()
                        .unwrap_or(0),
                    depth,
                    blocks,
                }
            })
            .collect()
    }

    /// See [`Natural::first`]. `for` and `while` are compiled to either form, and their iterations are those of the body.
    fn first(&self, body: &Body, header: usize, blocks: &BTreeSet<usize>) -> usize {
        let all = self.succs[header].iter().copied();
        let (inside, outside): (Vec<usize>, Vec<usize>) = all.partition(|to| blocks.contains(to));
        match inside[..] {
            [first]
                if !outside.is_empty()
                    && body.blocks[first].preds[..] == [header]
                    && is_test(body.block_insns(header)) =>
            {
                first
            }
            _ => header,
        }
    }

    /// Where cycles are entered that have several entries.
    fn irreducible(&self) -> BTreeSet<usize> {
        let back = self.back.iter();
        let odd = back.filter(|(from, to)| !self.over.dominates(*to, *from));
        odd.map(|&(_, to)| to).collect()
    }
}
