//! Decoding a function: its branches are followed, in jump tables and exception tables too.

use super::Module;
use super::atomics;
use super::cfg::{Block, Blocks, Body, Exit};
use super::grid::Grid;
use super::jump_table::{self, Indirect};
use super::lsda::{self, Pad};
use super::no_return::NoReturn;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A function with more moved parts than this is no function.
const MAX_PARTS: usize = 64;

/// Addresses that a branch leads to: seldom more than one.
type Targets = SmallVec<[u64; 1]>;

/// What ends a block.
#[derive(Default)]
struct Flow {
    targets: Targets,
    falls: bool,
    exit: Option<Exit>,
    pads: Targets,
}

/// What a thread keeps from function to function: answers, and memory to use again.
#[derive(Default)]
pub(crate) struct Scratch {
    no_return: NoReturn,
    insns: Vec<Instruction>,
    flow_of: Vec<u32>,
    bytes: Vec<Vec<u32>>,
}

impl Scratch {
    /// Takes the memory of a function that nobody needs any more.
    pub(crate) fn recycle(&mut self, body: Body) {
        self.insns = body.insns;
        if self.insns.capacity() > MAX_KEPT {
            self.insns = Vec::new();
        }
    }
}

/// The most instructions that memory is kept for.
const MAX_KEPT: usize = 1 << 14;

/// The instructions decoded so far, in the order in which they were.
#[derive(Default)]
pub(crate) struct Decoded {
    insns: Vec<Instruction>,
    grid: Grid,
    /// Of each instruction, the number of its [`Flow`] plus 1.
    flow_of: Vec<u32>,
    flows: Vec<Flow>,
    /// Numbers of instructions that were decoded one behind the other.
    runs: Vec<Range<usize>>,
    /// Instructions that may lead to the runtime.
    leads: Vec<usize>,
    /// Addresses where blocks begin, if there are instructions.
    leaders: Vec<u64>,
    /// See [`Body::addresses`].
    addresses: bool,
    /// An address where a global offset table begins is made.
    tables: bool,
    /// See [`Body::atomics`].
    atomics: bool,
}

impl Decoded {
    /// The instructions before an address, the nearest first.
    pub(crate) fn before(&self, va: u64) -> impl Iterator<Item = &Instruction> {
        let mut at = va;
        std::iter::from_fn(move || {
            let insn = &self.insns[self.grid.insn_before(at.checked_sub(1)?)?];
            at = insn.ip();
            Some(insn)
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Instruction] {
        &self.insns
    }

    /// Says that a block begins at an address; tells whether that is new.
    fn lead(&mut self, va: u64) -> bool {
        let new = self.grid.lead(va);
        if new {
            self.leaders.push(va);
        }
        new
    }

    /// Whether the instructions are in order, and none overlaps another: each run begins behind the one before.
    fn in_order(&self) -> bool {
        self.runs.windows(2).all(|pair| {
            let [before, behind] = pair else { return true };
            self.insns[before.end - 1].next_ip() <= self.insns[behind.start].ip()
        })
    }

    /// Numbers of the instructions that begin blocks, if the instructions are in order.
    fn starts(&mut self) -> Vec<usize> {
        let grid = &self.grid;
        let insns = self.leaders.iter().filter_map(|&va| grid.insn(va));
        let mut out: Vec<usize> = insns.collect();
        out.sort_unstable();
        out
    }

    /// As `starts`, for any order; the instructions are sorted then.
    fn starts_slowly(&self) -> Vec<usize> {
        let begins = |i: usize| {
            i == 0
                || self.flow_of[i - 1] != 0
                || self.insns[i - 1].next_ip() != self.insns[i].ip()
                || self.grid.leads(self.insns[i].ip())
        };
        (0..self.insns.len()).filter(|&i| begins(i)).collect()
    }

    /// Sorts by address. Runs don't interleave but where instructions overlap.
    fn sort(&mut self) {
        self.runs.sort_unstable_by_key(|r| self.insns[r.start].ip());
        let mut order: Vec<usize> = self.runs.iter().cloned().flatten().collect();
        if !order.is_sorted_by_key(|&i| self.insns[i].ip()) {
            order.sort_by_key(|&i| self.insns[i].ip());
        }
        if self.runs.len() > 1 {
            self.insns = order.iter().map(|&i| self.insns[i]).collect();
            self.flow_of = order.iter().map(|&i| self.flow_of[i]).collect();
            let mut place = vec![0; order.len()];
            for (to, &from) in order.iter().enumerate() {
                place[from] = to;
            }
            self.leads.iter_mut().for_each(|i| *i = place[*i]);
            self.leads.sort_unstable();
        }
    }
}

struct Builder<'m, 'a> {
    module: &'m Module<'a>,
    no_return: &'m mut NoReturn,
    parts: Vec<usize>,
    /// Sorted and disjoint, where the exception tables are as they should be.
    pads: Vec<Pad>,
    pads_sorted: bool,
    decoded: Decoded,
    /// Addresses to decode from, the lowest first: so most functions are decoded from beginning to end.
    work: BinaryHeap<Reverse<u64>>,
    /// Indirect jumps: looked at when everything before them is decoded.
    pending: Vec<Instruction>,
    trouble: Option<&'static str>,
}

impl Body {
    /// Decodes a function. `candidates`: addresses that must be covered, even if no branch leads to them.
    pub(crate) fn build(
        module: &Module<'_>,
        scratch: &mut Scratch,
        function: usize,
        candidates: &[u64],
    ) -> Body {
        let start = module.functions.get(function).start;
        let mut decoded = Decoded {
            insns: std::mem::take(&mut scratch.insns),
            flow_of: std::mem::take(&mut scratch.flow_of),
            ..Decoded::default()
        };
        decoded.insns.clear();
        decoded.flow_of.clear();
        decoded.grid.reuse(&mut scratch.bytes);
        let mut b = Builder {
            module,
            no_return: &mut scratch.no_return,
            parts: Vec::new(),
            pads: Vec::new(),
            pads_sorted: true,
            decoded,
            work: BinaryHeap::new(),
            pending: Vec::new(),
            trouble: None,
        };
        b.add_part(function);
        let mut roots = vec![start];
        b.follow(start);
        for &candidate in candidates {
            if let Some(from) = b.uncovered(candidate) {
                b.trouble
                    .get_or_insert("it has code that no known branch leads to");
                roots.push(from);
                b.follow(from);
            }
        }
        let (body, mut grid, flow_of) = b.finish(function, &roots);
        scratch.flow_of = flow_of;
        grid.give_back(&mut scratch.bytes);
        body
    }
}

impl Builder<'_, '_> {
    fn add_part(&mut self, function: usize) {
        let f = self.module.functions.get(function);
        self.parts.push(function);
        self.decoded.grid.add(f.start..f.end);
        match lsda::landing_pads(&self.module.image, f) {
            Some(pads) => {
                self.pads.extend(pads);
                self.pads.sort_by_key(|p| p.from);
                self.pads_sorted = self.pads.windows(2).all(|w| w[0].to <= w[1].from);
            }
            None => {
                self.trouble
                    .get_or_insert("its exception table can't be read");
            }
        }
    }

    fn holds(&self, va: u64) -> bool {
        self.decoded.grid.range_of(va).is_some()
    }

    /// Whether a branch to this address stays in the function; takes moved parts in.
    fn stays(&mut self, target: u64, conditional: bool) -> bool {
        if self.holds(target) {
            return true;
        }
        let Some(index) = self.module.functions.at(target) else {
            return false;
        };
        let f = self.module.functions.get(index);
        let part = f.fragment || target != f.start || (conditional && f.name.is_none());
        if part && self.parts.len() < MAX_PARTS && !self.module.entries.stubs.contains(&target) {
            self.add_part(index);
        }
        self.holds(target)
    }

    /// Where to start decoding for an address that no instruction covers yet.
    fn uncovered(&self, va: u64) -> Option<u64> {
        let range = self.decoded.grid.range_of(va)?;
        let before = self.decoded.grid.insn_before(va);
        match before.map(|i| self.decoded.insns[i].next_ip()) {
            Some(end) if va < end => None,
            Some(end) => Some(end),
            None => Some(range.start),
        }
    }

    fn follow(&mut self, from: u64) {
        self.decoded.lead(from);
        self.work.push(Reverse(from));
        loop {
            while let Some(Reverse(at)) = self.work.pop() {
                self.decode_run(at);
            }
            let lowest = (0..self.pending.len()).min_by_key(|&i| self.pending[i].ip());
            let Some(jump) = lowest.map(|i| self.pending.swap_remove(i)) else {
                return;
            };
            let flow = self.indirect(&jump);
            self.add_flow(&jump, flow);
        }
    }

    fn decode_run(&mut self, start: u64) {
        let Some(end) = self.decoded.grid.range_of(start).map(|r| r.end) else {
            return;
        };
        let Some(code) = self.module.image.rest(start) else {
            return;
        };
        let len = usize::try_from(end - start)
            .unwrap_or(usize::MAX)
            .min(code.len());
        let first = self.decoded.insns.len();
        if self.decoded.grid.insn(start).is_some() {
            return;
        }
        let mut decoder = Decoder::with_ip(64, &code[..len], start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let number = self.decoded.insns.len();
            if !self.decoded.grid.begin(decoder.ip(), number) {
                break;
            }
            // In its place: copying what was just written piece by piece takes as long as decoding it.
            self.decoded.insns.push(Instruction::default());
            let insn = &mut self.decoded.insns[number];
            decoder.decode_out(insn);
            if insn.is_invalid() {
                self.decoded.grid.unset_insn(insn.ip());
                self.decoded.insns.pop();
                break;
            }
            self.decoded.flow_of.push(0);
            if insn.has_lock_prefix() || atomics::may_be_one(insn.code()) {
                self.decoded.atomics = true;
            }
            let control = insn.flow_control();
            if control == FlowControl::Next {
                self.decoded.addresses |= self.module.may_make_address(insn);
                self.decoded.tables |= insn.is_ip_rel_memory_operand()
                    && self.module.entries.is_table(insn.ip_rel_memory_address());
                continue;
            }
            let insn = *insn;
            if self.module.may_lead(&insn) {
                self.decoded.leads.push(number);
            }
            let Some(flow) = self.flow(&insn, control) else {
                continue;
            };
            let falls = flow.falls;
            self.add_flow(&insn, flow);
            if !falls {
                break;
            }
            self.decoded.lead(insn.next_ip());
        }
        if first < self.decoded.insns.len() {
            self.decoded.runs.push(first..self.decoded.insns.len());
        }
    }

    fn add_flow(&mut self, insn: &Instruction, flow: Flow) {
        let decoded = &mut self.decoded;
        for &target in flow.targets.iter().chain(&flow.pads) {
            decoded.lead(target);
            if decoded.grid.insn(target).is_none() {
                self.work.push(Reverse(target));
            }
        }
        decoded.flows.push(flow);
        if let Some(number) = decoded.grid.insn(insn.ip()) {
            decoded.flow_of[number] = decoded.flows.len() as u32;
        }
    }

    /// What an instruction does to the flow of control, if it ends a block.
    fn flow(&mut self, insn: &Instruction, control: FlowControl) -> Option<Flow> {
        match control {
            FlowControl::Next | FlowControl::XbeginXabortXend => None,
            FlowControl::ConditionalBranch => {
                let target = insn.near_branch_target();
                let mut flow = Flow {
                    falls: true,
                    ..Flow::default()
                };
                if self.stays(target, true) {
                    flow.targets.push(target);
                } else {
                    flow.exit = Some(Exit::Tail(target));
                }
                Some(flow)
            }
            FlowControl::UnconditionalBranch => {
                let target = insn.near_branch_target();
                let no_return = self.no_return.check(self.module, target);
                Some(if self.stays(target, false) {
                    Flow {
                        targets: Targets::from_buf([target]),
                        ..Flow::default()
                    }
                } else if no_return {
                    Flow {
                        exit: Some(Exit::Dead),
                        ..Flow::default()
                    }
                } else {
                    Flow {
                        exit: Some(Exit::Tail(target)),
                        ..Flow::default()
                    }
                })
            }
            FlowControl::IndirectBranch => {
                self.pending.push(*insn);
                Some(Flow::default())
            }
            FlowControl::Return => Some(Flow {
                exit: Some(Exit::Return),
                ..Flow::default()
            }),
            FlowControl::Call | FlowControl::IndirectCall => self.call(insn),
            FlowControl::Interrupt | FlowControl::Exception => {
                let traps = insn.op_count() == 0;
                traps.then(|| Flow {
                    exit: Some(Exit::Dead),
                    ..Flow::default()
                })
            }
        }
    }

    fn indirect(&mut self, insn: &Instruction) -> Flow {
        let holds = |va| {
            let functions = &self.module.functions;
            self.holds(va) || functions.at(va).is_some_and(|i| functions.get(i).fragment)
        };
        let exit = match jump_table::resolve(self.module, &self.decoded, insn, &holds) {
            Indirect::Table(mut targets) => {
                targets.retain(|&t| self.stays(t, true));
                return Flow {
                    targets: targets.into(),
                    ..Flow::default()
                };
            }
            Indirect::Tail => Exit::TailIndirect,
            Indirect::Unknown => {
                self.trouble
                    .get_or_insert("it has an indirect jump whose targets are unknown");
                Exit::Dead
            }
        };
        Flow {
            exit: Some(exit),
            ..Flow::default()
        }
    }

    fn call(&mut self, insn: &Instruction) -> Option<Flow> {
        let direct = insn.op0_kind() == OpKind::NearBranch64;
        let no_return = if direct {
            self.no_return.check(self.module, insn.near_branch_target())
        } else {
            insn.is_ip_rel_memory_operand()
                && self
                    .module
                    .entries
                    .no_return_slots
                    .contains(&insn.ip_rel_memory_address())
        };
        let before = self.pads.partition_point(|p| p.from <= insn.ip());
        let last = match self.pads_sorted {
            true => before.saturating_sub(1),
            false => 0,
        };
        let mut pads: Targets = self.pads[last..before]
            .iter()
            .filter(|p| insn.ip() < p.to)
            .map(|p| p.pad)
            .collect();
        pads.retain(|&mut pad| self.stays(pad, true));
        if no_return {
            return Some(Flow {
                exit: Some(Exit::Dead),
                pads,
                ..Flow::default()
            });
        }
        (!pads.is_empty()).then(|| Flow {
            falls: true,
            pads,
            ..Flow::default()
        })
    }

    fn finish(mut self, function: usize, roots: &[u64]) -> (Body, Grid, Vec<u32>) {
        let starts = if self.decoded.in_order() {
            self.decoded.starts()
        } else {
            self.decoded.sort();
            let mut pairs = self.decoded.insns.windows(2);
            if pairs.any(|w| w[1].ip() < w[0].next_ip()) {
                self.trouble
                    .get_or_insert("it has overlapping instructions");
            }
            self.decoded.starts_slowly()
        };
        let Decoded {
            insns,
            mut grid,
            flow_of,
            flows,
            leads,
            mut addresses,
            tables,
            atomics,
            ..
        } = self.decoded;
        let entries = &self.module.entries;
        addresses |= tables && insns.iter().any(|insn| entries.is_in_table(insn));
        let ends = starts.iter().skip(1).copied().chain([insns.len()]);
        let mut blocks: Vec<Block> = starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| Block {
                start: insns[start].ip(),
                insns: start..end,
                succs: Blocks::new(),
                preds: Blocks::new(),
                pads: Blocks::new(),
                exit: Exit::None,
            })
            .collect();
        grid.set_blocks(blocks.iter().map(|b| b.start));
        let falls_on = Flow {
            falls: true,
            ..Flow::default()
        };
        for i in 0..blocks.len() {
            let last = blocks[i].insns.end - 1;
            let flow = match flow_of[last] {
                0 => &falls_on,
                n => &flows[n as usize - 1],
            };
            let fall = flow
                .falls
                .then(|| grid.block(insns[last].next_ip()))
                .flatten();
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
            let pads: Blocks = flow.pads.iter().filter_map(|&p| grid.block(p)).collect();
            for &to in succs.iter().chain(&pads) {
                blocks[to].preds.push(i);
            }
            let block = &mut blocks[i];
            (block.succs, block.pads, block.exit) = (succs, pads, exit);
        }
        let jumps = flows.iter().flat_map(|f| f.targets.iter().chain(&f.pads));
        let targets = roots.iter().chain(jumps).copied().collect();
        let roots = roots.iter().filter_map(|&r| grid.block(r)).collect();
        let body = Body {
            function,
            parts: self.parts,
            insns,
            blocks,
            roots,
            targets,
            leads,
            addresses,
            atomics,
            trouble: self.trouble,
        };
        (body, grid, flow_of)
    }
}
