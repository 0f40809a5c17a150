//! Decoding a function: its branches are followed, in jump tables and exception tables too.

mod blocks;
mod comeback;
mod control;
mod decoded;
mod entries;
mod guard;
mod jump_table;
mod jumps;
pub(super) mod made;
mod reaching;
mod scratch;

pub(crate) use decoded::{Decoded, Joins};
pub(crate) use scratch::{Pool, Scratch};

use super::Module;
use super::atomics;
use super::cfg::Body;
use super::image::Kind;
use super::lsda::{self, Pad};
use super::no_return::NoReturn;
use decoded::Flow;
use iced_x86::{Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, OpKind};
use jump_table::{Indirect, Table};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An instruction with the prefix EVEX has at least so many bytes.
const MIN_EVEX: usize = 6;

/// Whether an instruction isn't known. Some of APX's forms look like older ones whose registers they extend, by bits that
/// were reserved. These are the fourth one of EVEX's first byte, and the third one of its second where that isn't the
/// operand's.
fn is_unknown(insn: &Instruction, code: &[u8]) -> bool {
    if insn.is_invalid() {
        return true;
    }
    if insn.len() < MIN_EVEX || insn.encoding() != EncodingKind::EVEX {
        return false;
    }
    let prefix = code.iter().position(|&b| b == 0x62);
    let extended = |at: usize| Some(code.get(at + 1)? & 0x08 != 0 || code.get(at + 2)? & 0x04 == 0);
    prefix.and_then(extended).unwrap_or(true)
}

/// A function with more moved parts than this is no function.
const MAX_PARTS: usize = 64;

/// A function that makes more addresses of its own than this is listed only.
const MAX_ROOTS: usize = 256;

/// Why no code of a function may be moved where an indirect jump might lead to any of it.
const UNKNOWN_JUMP: &str = "it has an indirect jump whose targets are unknown";

struct Builder<'m, 'a> {
    module: &'m Module<'a>,
    no_return: NoReturn,
    parts: Vec<usize>,
    /// Sorted and disjoint.
    pads: Vec<Pad>,
    decoded: Decoded,
    /// Where ranges of those pads begin that other instructions than calls lead to.
    thrown: FxHashSet<u64>,
    /// Addresses to decode from, the lowest first: so most functions are decoded from beginning to end.
    work: BinaryHeap<Reverse<u64>>,
    /// Addresses and numbers of indirect jumps: looked at, the lowest first, when everything before them is decoded.
    pending: BinaryHeap<Reverse<(u64, usize)>>,
    /// Indirect jumps in the function, and how many branches were known when they were looked at.
    tables: Vec<(Instruction, Table, usize)>,
    /// Indirect jumps that leave the function, some of them if nothing else holds addresses in it.
    leaving: Vec<(Instruction, Indirect)>,
    /// How many addresses tables hold.
    entries: usize,
    /// Address of the first instruction that the decoder doesn't know.
    unknown: Option<u64>,
    /// A jump table led to where that was found that may be longer than it is.
    unknown_by_table: bool,
    /// Decoding began where no known branch leads to.
    guesses: bool,
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
        let mut roots = Vec::new();
        let mut b = Builder::decode(
            module,
            scratch,
            (function, candidates),
            Vec::new(),
            &mut roots,
        );
        if b.unknown.is_some() && b.has_open_tables() {
            // What was read behind a table's end leads to anywhere. Now it is known what else begins there.
            let bounds = b.named();
            b = Builder::decode(module, scratch, (function, candidates), bounds, &mut roots);
        }
        b.come_back(&mut roots);
        b.check_tables();
        b.check_leaving();
        blocks::finish(b, scratch, function, &roots)
    }
}

impl<'m, 'a> Builder<'m, 'a> {
    /// Follows the function's branches. `bounds`: where no jump table goes on; `roots`: where decoding begins.
    fn decode(
        module: &'m Module<'a>,
        scratch: &mut Scratch,
        (function, candidates): (usize, &[u64]),
        bounds: Vec<u64>,
        roots: &mut Vec<u64>,
    ) -> Self {
        let start = module.functions.get(function).start;
        let mut decoded = Decoded {
            insns: std::mem::take(&mut scratch.insns),
            flows: std::mem::take(&mut scratch.flows),
            bounds,
            ..Decoded::default()
        };
        decoded.insns.clear();
        decoded.grid.reuse(&mut scratch.bytes);
        let mut b = Builder {
            module,
            no_return: std::mem::take(&mut scratch.no_return),
            parts: Vec::new(),
            pads: Vec::new(),
            thrown: FxHashSet::default(),
            decoded,
            work: BinaryHeap::new(),
            pending: BinaryHeap::new(),
            tables: Vec::new(),
            leaving: Vec::new(),
            entries: 0,
            unknown: None,
            unknown_by_table: false,
            guesses: false,
            trouble: None,
        };
        b.add_part(function);
        *roots = vec![start];
        b.follow(start);
        for &candidate in candidates {
            while let Some(from) = b.uncovered(candidate) {
                if b.comes_back_to(from) {
                    b.follow(from);
                    continue;
                }
                b.trouble
                    .get_or_insert("it has code that no known branch leads to");
                roots.push(from);
                b.guesses = true;
                b.follow(from);
                break;
            }
        }
        b
    }

    fn add_part(&mut self, function: usize) {
        let f = self.module.functions.get(function);
        self.parts.push(function);
        self.decoded.grid.add(f.start..f.end);
        match lsda::landing_pads(&self.module.image, f) {
            Some(pads) => {
                self.pads.extend(pads);
                self.pads.sort_by_key(|p| p.from);
                if !self.pads.windows(2).all(|w| w[0].to <= w[1].from) {
                    self.pads.clear();
                    self.trouble
                        .get_or_insert("its exception table can't be read");
                }
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
        self.work.push(Reverse(from));
        loop {
            while let Some(Reverse(at)) = self.work.pop() {
                self.decode_run(at);
            }
            let Some(Reverse((_, number))) = self.pending.pop() else {
                match self.throw() {
                    true => continue,
                    false => return,
                }
            };
            let jump = self.decoded.insns[number];
            let flow = self.indirect(&jump);
            self.add_flow(number, flow);
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
        let Some((place, low)) = self.decoded.grid.place_of(start) else {
            return;
        };
        // Few instructions of files that may be loaded anywhere can make an address.
        let absolute = self.module.image.kind == Kind::Executable;
        let mut decoder = Decoder::with_ip(64, &code[..len], start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let number = self.decoded.insns.len();
            let at = (decoder.ip() - low) as usize;
            if !self.decoded.grid.begin(place, at, number) {
                break;
            }
            // In its place: copying what was just written piece by piece takes as long as decoding it.
            self.decoded.insns.push(Instruction::default());
            let insn = &mut self.decoded.insns[number];
            decoder.decode_out(insn);
            if is_unknown(insn, &code[(insn.ip() - start) as usize..]) {
                // What no branch leads to may be data.
                if !self.guesses {
                    let first = self.unknown.unwrap_or(u64::MAX);
                    self.unknown = Some(first.min(insn.ip()));
                    self.unknown_by_table |= self.tables.iter().any(|(_, table, _)| table.open);
                }
                self.decoded.grid.unset_insn(place, at);
                self.decoded.insns.pop();
                break;
            }
            if insn.has_lock_prefix() || atomics::may_be_one(insn.code()) {
                self.decoded.atomics = true;
            }
            let control = insn.flow_control();
            if control == FlowControl::Next {
                let relative = insn.is_ip_rel_memory_operand();
                if relative || absolute || insn.op1_kind() == OpKind::Immediate64 {
                    let made = made::made(insn, absolute);
                    if let Some(made) = made.or_else(|| self.module.code_from_table(insn)) {
                        let is_load = made::is_table_load(insn);
                        self.decoded.makes.list.push((made, is_load));
                    }
                }
                continue;
            }
            let insn = *insn;
            if self.module.may_lead(&insn) || self.leads_through(&insn) {
                self.decoded.leads.push(number);
            }
            let Some(flow) = self.flow(&insn, number, control) else {
                continue;
            };
            let falls = flow.falls;
            self.add_flow(number, flow);
            if !falls {
                break;
            }
        }
        if first < self.decoded.insns.len() {
            self.decoded.runs.push(first..self.decoded.insns.len());
        }
    }

    fn add_flow(&mut self, number: usize, flow: Flow) {
        let decoded = &mut self.decoded;
        for &target in flow.targets.iter().chain(&flow.pads) {
            if decoded.grid.insn(target).is_none() {
                self.work.push(Reverse(target));
            }
        }
        let insn = number as u32;
        decoded.flows.push(Flow { insn, ..flow });
    }
}
