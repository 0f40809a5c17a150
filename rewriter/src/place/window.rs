//! The window of a probe: found in one function, whose branches are all known.

use super::{Ground, Request};
use crate::scan::cfg::Body;
use crate::trampoline::can_move_call;
use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register,
};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Bytes of the jump.
const NEEDED: u64 = 5;
/// Bytes of a short jump.
const SHORT: u64 = 2;
/// How far a probe may move behind its place when there is no room, in instructions.
const MAX_SLIP: usize = 12;
/// How far a window may begin before its probe, in instructions.
pub(super) const MAX_BACK: usize = 8;

/// Instructions of these extensions stay where they are: the disassembler of `verify` doesn't know them, and what it doesn't know it can't
/// find moved.
pub(crate) const UNREAD: [CpuidFeature; 23] = [
    CpuidFeature::AESKLE,
    CpuidFeature::AMX_BF16,
    CpuidFeature::AMX_COMPLEX,
    CpuidFeature::AMX_FP16,
    CpuidFeature::AMX_INT8,
    CpuidFeature::AMX_TILE,
    CpuidFeature::AVX512_BF16,
    CpuidFeature::AVX512_FP16,
    CpuidFeature::AVX512_VP2INTERSECT,
    CpuidFeature::AVX_IFMA,
    CpuidFeature::AVX_NE_CONVERT,
    CpuidFeature::AVX_VNNI,
    CpuidFeature::AVX_VNNI_INT8,
    CpuidFeature::AVX_VNNI_INT16,
    CpuidFeature::CMPCCXADD,
    CpuidFeature::ENQCMD,
    CpuidFeature::LKGS,
    CpuidFeature::PADLOCK_GMI,
    CpuidFeature::RAO_INT,
    CpuidFeature::SHA512,
    CpuidFeature::SM3,
    CpuidFeature::SM4,
    CpuidFeature::TSXLDTRK,
];

/// A window for one request.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// Address of the instruction that the probe stands before.
    pub at: u64,
    /// Whether that is [`Request::other`].
    pub is_other: bool,
    pub range: Range<u64>,
}

/// Looks for windows in one function.
pub(crate) struct Finder<'x> {
    pub(crate) ground: &'x dyn Ground,
    pub(crate) body: &'x Body,
    /// Addresses that something else than the instruction before leads to.
    pub(crate) targets: FxHashSet<u64>,
    /// Addresses of instructions that may move although a function catches what such instructions throw: these don't.
    pub(crate) harmless: FxHashSet<u64>,
    /// Addresses of instructions that are changed in place.
    pub(crate) changed: FxHashSet<u64>,
    /// Every window is to be as short as can be: for tests.
    pub(crate) scarce: bool,
    /// Islands may stand in loops that their windows aren't in.
    pub(crate) deep: bool,
}

impl Finder<'_> {
    /// The window of a probe, or why there is none. Where no window has room for a jump, one for a short jump will do.
    pub(crate) fn choose(&self, request: &Request) -> Result<Chosen, String> {
        if let Some(trouble) = self.body.trouble {
            return Err(format!("the function can't be changed: {trouble}"));
        }
        let order = if self.scarce {
            [SHORT, NEEDED]
        } else {
            [NEEDED, SHORT]
        };
        let mut free = 0;
        for needed in order {
            match self.choose_of(request, needed) {
                Ok(chosen) => return Ok(chosen),
                Err(bytes) => free = free.max(bytes),
            }
        }
        Err(too_few(free))
    }

    /// The window of a probe with so many bytes, or how many there are.
    fn choose_of(&self, request: &Request, needed: u64) -> Result<Chosen, u64> {
        let chosen = |at, is_other, range| Chosen {
            at,
            is_other,
            range,
        };
        let at = request.at;
        let free = match self.window(at, needed, request.exact) {
            Ok(range) => return Ok(chosen(at, false, range)),
            Err(free) => free,
        };
        if let Some(other) = request.other
            && let Ok(range) = self.window(other, needed, request.exact)
        {
            return Ok(chosen(other, true, range));
        }
        let later = if request.later {
            self.later(at)
        } else {
            Vec::new()
        };
        for at in later {
            if let Ok(range) = self.window(at, needed, request.exact) {
                return Ok(chosen(at, false, range));
            }
        }
        Err(free)
    }

    /// The window for a probe before the instruction at `at` with so many bytes, or the number of bytes that are free.
    fn window(&self, at: u64, needed: u64, exact: bool) -> Result<Range<u64>, u64> {
        let Some(probe) = self.body.insn_at(at) else {
            return Err(0);
        };
        let mut start = probe;
        let mut free = 0;
        for _ in 0..=if exact { 0 } else { MAX_BACK } {
            let from = self.body.insns[start].ip();
            let end = self.extend(start, at, needed);
            free = free.max(end - from);
            if end - from >= needed {
                return Ok(from..end);
            }
            let Some(before) = start.checked_sub(1) else {
                break;
            };
            let insn = &self.body.insns[before];
            if insn.next_ip() != from || !passes(insn) || self.is_target(from) {
                break;
            }
            start = before;
        }
        Err(free)
    }

    /// The end of the window that begins with this instruction: no longer than needed, and holding `at`.
    fn extend(&self, start: usize, at: u64, needed: u64) -> u64 {
        let from = self.body.insns[start].ip();
        let mut end = from;
        for insn in &self.body.insns[start..] {
            let inner = insn.ip() != from;
            if insn.ip() != end
                || (inner && self.is_target(insn.ip()))
                || (end > at && end - from >= needed)
                || !self.may_move(insn)
            {
                break;
            }
            end = insn.next_ip();
            if !passes(insn) {
                if !falls_through(insn) {
                    end = self.padding(from, end, needed);
                }
                break;
            }
        }
        if end > at { end } else { from }
    }

    /// Whether a window may hold an instruction.
    fn may_move(&self, insn: &Instruction) -> bool {
        can_move(insn)
            && !self.ground.stays(&(insn.ip()..insn.next_ip()))
            && !self.changed.contains(&insn.ip())
            && (!self.body.throws(insn) || self.harmless.contains(&insn.ip()))
    }

    /// The same window with the instruction before it, if that may be in it and isn't what marks where control arrives.
    pub(super) fn longer(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let before = self.body.insn_at(range.start)?.checked_sub(1)?;
        let insn = &self.body.insns[before];
        let leads = insn.next_ip() == range.start && passes(insn) && !self.is_target(range.start);
        let is_mark = matches!(insn.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32);
        (leads && !is_mark && self.may_move(insn)).then(|| insn.ip()..range.end)
    }

    /// Takes padding behind an unconditional jump into the window, as far as needed. What a `nop` of XRay keeps free (told by its
    /// displacement, which padding hasn't) a program may write calls into.
    pub(super) fn padding(&self, from: u64, mut end: u64, needed: u64) -> u64 {
        let Some(code) = self.ground.bytes_from(end) else {
            return end;
        };
        let mut decoder = Decoder::with_ip(64, code, end, DecoderOptions::NONE);
        while end - from < needed && decoder.can_decode() {
            let insn = decoder.decode();
            let taken = self.is_target(end)
                || self.body.insn_at(end).is_some()
                || self.ground.begins_function(end)
                || insn.memory_displacement64() != 0
                || !matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if taken {
                break;
            }
            end = insn.next_ip();
        }
        end
    }

    pub(super) fn is_target(&self, va: u64) -> bool {
        self.targets.contains(&va)
    }

    /// Instructions that are always executed after the one at `at`, with no call between.
    fn later(&self, at: u64) -> Vec<u64> {
        let mut out = Vec::new();
        let Some(mut block) = self.body.block_at(at) else {
            return out;
        };
        let post = self.body.post_dominators();
        let mut from = at;
        while out.len() < MAX_SLIP {
            for insn in self
                .body
                .block_insns(block)
                .iter()
                .filter(|i| i.ip() >= from)
            {
                if insn.ip() != at {
                    out.push(insn.ip());
                }
                let is_call = matches!(
                    insn.flow_control(),
                    FlowControl::Call | FlowControl::IndirectCall
                );
                if is_call || out.len() >= MAX_SLIP {
                    return out;
                }
            }
            let Some(next) = post.parent(block).filter(|&b| b < self.body.blocks.len()) else {
                return out;
            };
            // What lies between is passed over: it must not call anything.
            let direct = self.body.blocks[block].succs.contains(&next);
            if !direct {
                return out;
            }
            block = next;
            from = self.body.blocks[block].start;
        }
        out
    }
}

/// What is said where there is no room.
pub(crate) fn too_few(free: u64) -> String {
    format!("{free} bytes free, {NEEDED} needed")
}

/// Whether control goes on to the next instruction, and the window may too.
pub(super) fn passes(insn: &Instruction) -> bool {
    matches!(insn.flow_control(), FlowControl::Next)
        || (insn.flow_control() == FlowControl::ConditionalBranch && insn.is_jcc_short_or_near())
}

/// Whether a trampoline can hold the instruction.
pub(super) fn can_move(insn: &Instruction) -> bool {
    match insn.flow_control() {
        FlowControl::Next => !insn.cpuid_features().iter().any(|f| UNREAD.contains(f)),
        FlowControl::Return | FlowControl::Call => true,
        FlowControl::IndirectCall => can_move_call(insn),
        FlowControl::ConditionalBranch => insn.is_jcc_short_or_near(),
        FlowControl::UnconditionalBranch => insn.is_jmp_short_or_near(),
        // A prefix (`notrack`, `bnd`) changes what the jump means to the processor.
        FlowControl::IndirectBranch => {
            insn.is_jmp_near_indirect()
                && insn.segment_prefix() == Register::None
                && !insn.has_repne_prefix()
        }
        _ => false,
    }
}

pub(super) fn falls_through(insn: &Instruction) -> bool {
    !matches!(
        insn.flow_control(),
        FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
    )
}
