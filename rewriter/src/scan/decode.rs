//! Decoding a function: its branches are followed, in jump tables and exception tables too.

use super::Module;
use super::cfg::{Block, Body, Exit};
use super::jump_table::{self, Indirect};
use super::lsda::{self, Pad};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// A function with more moved parts than this is no function.
const MAX_PARTS: usize = 64;

/// What ends a block.
#[derive(Default)]
struct Flow {
    targets: Vec<u64>,
    falls: bool,
    exit: Option<Exit>,
    pads: Vec<u64>,
}

struct Builder<'m, 'a> {
    module: &'m Module<'a>,
    parts: Vec<usize>,
    ranges: Vec<Range<u64>>,
    pads: Vec<Pad>,
    insns: BTreeMap<u64, Instruction>,
    leaders: BTreeSet<u64>,
    flows: HashMap<u64, Flow>,
    work: Vec<u64>,
    /// Indirect jumps: looked at when everything before them is decoded.
    pending: Vec<Instruction>,
    trouble: Option<&'static str>,
}

impl Body {
    /// Decodes a function. `candidates`: addresses that must be covered, even if no branch leads to them.
    pub(crate) fn build(module: &Module<'_>, function: usize, candidates: &[u64]) -> Body {
        let start = module.functions.get(function).start;
        let mut b = Builder {
            module,
            parts: Vec::new(),
            ranges: Vec::new(),
            pads: Vec::new(),
            insns: BTreeMap::new(),
            leaders: BTreeSet::new(),
            flows: HashMap::new(),
            work: Vec::new(),
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
        b.finish(function, &roots)
    }
}

impl Builder<'_, '_> {
    fn add_part(&mut self, function: usize) {
        let f = self.module.functions.get(function);
        self.parts.push(function);
        self.ranges.push(f.start..f.end);
        match lsda::landing_pads(&self.module.image, f) {
            Some(pads) => {
                for pad in pads {
                    self.pads.push(pad);
                }
            }
            None => {
                self.trouble
                    .get_or_insert("its exception table can't be read");
            }
        }
    }

    fn holds(&self, va: u64) -> bool {
        self.ranges.iter().any(|r| r.contains(&va))
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
        let before = self.insns.range(..=va).next_back();
        let from = match before {
            Some((_, i)) if va < i.next_ip() => return None,
            Some((_, i)) => i.next_ip(),
            None => 0,
        };
        self.ranges
            .iter()
            .find(|r| r.contains(&va))
            .map(|r| r.start.max(from))
    }

    fn follow(&mut self, from: u64) {
        self.leaders.insert(from);
        self.work.push(from);
        loop {
            while let Some(at) = self.work.pop() {
                self.decode_run(at);
            }
            let Some(jump) = self.pending.pop() else {
                return;
            };
            let flow = self.indirect(&jump);
            self.add_flow(&jump, flow);
        }
    }

    fn decode_run(&mut self, start: u64) {
        let Some(end) = self
            .ranges
            .iter()
            .find(|r| r.contains(&start))
            .map(|r| r.end)
        else {
            return;
        };
        let Some(code) = self.module.image.rest(start) else {
            return;
        };
        let len = usize::try_from(end - start)
            .unwrap_or(usize::MAX)
            .min(code.len());
        let mut decoder = Decoder::with_ip(64, &code[..len], start, DecoderOptions::NONE);
        while decoder.can_decode() && !self.insns.contains_key(&decoder.ip()) {
            let insn = decoder.decode();
            if insn.is_invalid() {
                break;
            }
            self.insns.insert(insn.ip(), insn);
            let Some(flow) = self.flow(&insn) else {
                continue;
            };
            let falls = flow.falls;
            self.add_flow(&insn, flow);
            if !falls {
                return;
            }
            self.leaders.insert(insn.next_ip());
        }
    }

    fn add_flow(&mut self, insn: &Instruction, flow: Flow) {
        for &target in flow.targets.iter().chain(&flow.pads) {
            if self.leaders.insert(target) || !self.insns.contains_key(&target) {
                self.work.push(target);
            }
        }
        self.flows.insert(insn.ip(), flow);
    }

    /// What an instruction does to the flow of control, if it ends a block.
    fn flow(&mut self, insn: &Instruction) -> Option<Flow> {
        match insn.flow_control() {
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
                let no_return = self.module.never_returns(target);
                Some(if self.stays(target, false) {
                    Flow {
                        targets: vec![target],
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
        let exit = match jump_table::resolve(self.module, &self.insns, insn, &holds) {
            Indirect::Table(mut targets) => {
                targets.retain(|&t| self.stays(t, true));
                return Flow {
                    targets,
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
            self.module.never_returns(insn.near_branch_target())
        } else {
            insn.is_ip_rel_memory_operand()
                && self
                    .module
                    .entries
                    .no_return_slots
                    .contains(&insn.ip_rel_memory_address())
        };
        let mut pads: Vec<u64> = self
            .pads
            .iter()
            .filter(|p| (p.from..p.to).contains(&insn.ip()))
            .map(|p| p.pad)
            .collect();
        pads.retain(|&pad| self.stays(pad, true));
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

    fn finish(mut self, function: usize, roots: &[u64]) -> Body {
        let insns: Vec<Instruction> = self.insns.values().copied().collect();
        if insns.windows(2).any(|w| w[1].ip() < w[0].next_ip()) {
            self.trouble
                .get_or_insert("it has overlapping instructions");
        }
        let mut blocks: Vec<Block> = Vec::new();
        for (i, insn) in insns.iter().enumerate() {
            let continues = i > 0
                && insns[i - 1].next_ip() == insn.ip()
                && !self.leaders.contains(&insn.ip())
                && !self.flows.contains_key(&insns[i - 1].ip());
            match blocks.last_mut() {
                Some(block) if continues => block.insns.end = i + 1,
                _ => blocks.push(Block {
                    start: insn.ip(),
                    insns: i..i + 1,
                    succs: Vec::new(),
                    preds: Vec::new(),
                    pads: Vec::new(),
                    exit: Exit::None,
                }),
            }
        }
        let number = |va: u64| blocks.binary_search_by_key(&va, |b| b.start).ok();
        let mut links = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let last = &insns[block.insns.end - 1];
            let default = Flow {
                falls: true,
                ..Flow::default()
            };
            let flow = self.flows.get(&last.ip()).unwrap_or(&default);
            let fall = flow.falls.then(|| number(last.next_ip())).flatten();
            let mut exit = flow.exit.unwrap_or(Exit::None);
            if flow.falls && fall.is_none() && exit == Exit::None && flow.targets.is_empty() {
                exit = Exit::Dead;
            }
            let mut succs: Vec<usize> = fall.into_iter().collect();
            succs.extend(flow.targets.iter().filter_map(|&t| number(t)));
            let mut seen = BTreeSet::new();
            succs.retain(|&s| seen.insert(s));
            let pads: Vec<usize> = flow.pads.iter().filter_map(|&p| number(p)).collect();
            links.push((succs, pads, exit));
        }
        let jumps = self
            .flows
            .values()
            .flat_map(|f| f.targets.iter().chain(&f.pads));
        let targets = roots.iter().chain(jumps).copied().collect();
        let roots = roots.iter().filter_map(|&r| number(r)).collect();
        for (i, (succs, pads, exit)) in links.into_iter().enumerate() {
            for &s in succs.iter().chain(&pads) {
                blocks[s].preds.push(i);
            }
            let block = &mut blocks[i];
            (block.succs, block.pads, block.exit) = (succs, pads, exit);
        }
        Body {
            function,
            parts: self.parts,
            insns,
            blocks,
            roots,
            targets,
            trouble: self.trouble,
        }
    }
}
