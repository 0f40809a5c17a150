//! Windows: whole instructions that a jump to a trampoline may replace.

use super::Module;
use super::cfg::Body;
use super::draft::Draft;
use super::relays::Relayed;
use super::search::{self, Span};
use super::shapes::{again, dealt};
use crate::model::Action;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, Outcome};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of the jump.
const NEEDED: u64 = 5;
/// How far an end may move behind its place when there is no room, in instructions.
const MAX_SLIP: usize = 12;
/// How far a window may begin before its probe, in instructions.
const MAX_BACK: usize = 8;

/// A window, and the drafts whose probes it holds.
pub(crate) type Placed = (Range<u64>, Vec<usize>);

/// Chooses windows for the inline probes of a function. Where there is none, the whole construct loses its probes.
/// `barred`: addresses that something outside of the function leads to; `relays`: what must stay where it is.
pub(crate) fn place(
    module: &Module<'_>,
    body: &Body,
    barred: &BTreeSet<u64>,
    relays: &[Relayed],
    drafts: &mut [Draft],
) -> Vec<Placed> {
    let is_inline = |d: &Draft| matches!(d.action, Some(Action::Inline(_)));
    if !drafts.iter().any(is_inline) {
        return Vec::new();
    }
    let finder = Finder {
        module,
        body,
        targets: body.targets.iter().chain(barred).copied().collect(),
        loads: relays.iter().flat_map(|r| &r.loads).copied().collect(),
    };
    let mut chosen = Vec::new();
    for d in 0..drafts.len() {
        if !is_inline(&drafts[d]) {
            continue;
        }
        match finder.choose(&mut drafts[d]) {
            Ok(window) => chosen.push((window, d)),
            Err(reason) => skip_construct(d, &reason, drafts),
        }
    }
    chosen.retain(|&(_, d)| drafts[d].action.is_some());
    merge(chosen, drafts)
}

/// Without one of its probes a construct would be recorded wrongly: it gets none.
fn skip_construct(d: usize, reason: &str, drafts: &mut [Draft]) {
    let begin = drafts[d].region.unwrap_or(d);
    if drafts[d].probe() == Some(Probe::InlineNextChunk) {
        // The loop is recorded all the same, with one unit for all chunks of a thread.
        dealt::tell(&mut drafts[begin], false);
        return drafts[d].skip(reason);
    }
    let reason = if begin == d {
        reason.to_owned()
    } else {
        let what = match drafts[d].edge {
            Edge::End => "end",
            _ => "other part",
        };
        format!("no probe at its {what} {:#x}: {reason}", drafts[d].address)
    };
    again::forget(begin, &reason, drafts);
    for follower in drafts[begin].follows.clone() {
        skip_construct(
            follower,
            "the loop whose bounds it has has no probe",
            drafts,
        );
    }
    // A loop with its bounds doesn't know them.
    let again: Vec<usize> = (0..drafts.len())
        .filter(|&i| match &drafts[i].action {
            Some(Action::Inline(spec)) if spec.probe == Probe::InlineLoopAgain => {
                spec.param == begin as i64
            }
            _ => false,
        })
        .collect();
    for i in again {
        skip_construct(i, "the loop whose bounds it has has no probe", drafts);
    }
    // What it would have ended doesn't end either.
    let implied: Vec<usize> = (0..drafts.len())
        .filter(|&i| drafts[i].implied_by.contains(&begin))
        .filter(|&i| drafts[i].outcome != Outcome::Skipped)
        .collect();
    for i in implied {
        skip_construct(i, "what ends it has no probe", drafts);
    }
}

/// Looks for windows in one function.
struct Finder<'x, 'a> {
    module: &'x Module<'a>,
    body: &'x Body,
    /// Addresses that something else than the instruction before leads to.
    targets: FxHashSet<u64>,
    /// Addresses of instructions that are changed in place.
    loads: FxHashSet<u64>,
}

impl Finder<'_, '_> {
    /// The window of a probe. An end without room may move to a later instruction.
    fn choose(&self, draft: &mut Draft) -> Result<Range<u64>, String> {
        if let Some(trouble) = self.body.trouble {
            return Err(format!("the function can't be changed: {trouble}"));
        }
        let first = self.window(draft.address);
        if let (Err(_), Some((at, register)), Some(Action::Inline(spec))) =
            (&first, draft.fallback, &mut draft.action)
            && let Ok(window) = self.window(at)
        {
            draft.address = at;
            spec.args[0] = register;
            return Ok(window);
        }
        if first.is_ok() || draft.probe() != Some(Probe::InlineEnd) {
            return first.map_err(too_few);
        }
        for at in self.later(draft.address) {
            if let Ok(window) = self.window(at) {
                draft.address = at;
                return Ok(window);
            }
        }
        first.map_err(too_few)
    }

    /// The window for a probe before the instruction at `at`, or the number of bytes that are free.
    fn window(&self, at: u64) -> Result<Range<u64>, u64> {
        let Some(probe) = self.body.insn_at(at) else {
            return Err(0);
        };
        let mut start = probe;
        let mut free = 0;
        for _ in 0..=MAX_BACK {
            let from = self.body.insns[start].ip();
            let end = self.extend(start, at);
            free = free.max(end - from);
            if end - from >= NEEDED {
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
    fn extend(&self, start: usize, at: u64) -> u64 {
        let from = self.body.insns[start].ip();
        let mut end = from;
        for insn in &self.body.insns[start..] {
            let inner = insn.ip() != from;
            if insn.ip() != end
                || (inner && self.is_target(insn.ip()))
                || (end > at && end - from >= NEEDED)
                || !can_move(insn)
                || self.loads.contains(&insn.ip())
            {
                break;
            }
            end = insn.next_ip();
            if !passes(insn) {
                if !falls_through(insn) {
                    end = self.padding(from, end);
                }
                break;
            }
        }
        if end > at { end } else { from }
    }

    /// Takes padding behind an unconditional jump into the window, as far as needed.
    fn padding(&self, from: u64, mut end: u64) -> u64 {
        let Some(code) = self.module.image.rest(end) else {
            return end;
        };
        let mut decoder = Decoder::with_ip(64, code, end, DecoderOptions::NONE);
        while end - from < NEEDED && decoder.can_decode() {
            let insn = decoder.decode();
            let taken = self.is_target(end)
                || self.body.insn_at(end).is_some()
                || self.module.functions.starts_at(end)
                || !matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if taken {
                break;
            }
            end = insn.next_ip();
        }
        end
    }

    fn is_target(&self, va: u64) -> bool {
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

fn too_few(free: u64) -> String {
    format!("{free} bytes free, {NEEDED} needed")
}

/// Whether control goes on to the next instruction, and the window may too.
fn passes(insn: &Instruction) -> bool {
    matches!(insn.flow_control(), FlowControl::Next)
        || (insn.flow_control() == FlowControl::ConditionalBranch && insn.is_jcc_short_or_near())
}

/// Whether a trampoline can hold the instruction.
fn can_move(insn: &Instruction) -> bool {
    match insn.flow_control() {
        FlowControl::Next | FlowControl::Return | FlowControl::Call | FlowControl::IndirectCall => {
            true
        }
        FlowControl::ConditionalBranch => insn.is_jcc_short_or_near(),
        FlowControl::UnconditionalBranch => insn.is_jmp_short_or_near(),
        _ => false,
    }
}

fn falls_through(insn: &Instruction) -> bool {
    !matches!(
        insn.flow_control(),
        FlowControl::Return | FlowControl::UnconditionalBranch
    )
}

/// Joins windows that overlap.
fn merge(mut chosen: Vec<(Range<u64>, usize)>, drafts: &[Draft]) -> Vec<Placed> {
    chosen.sort_by_key(|(w, d)| (w.start, w.end, *d));
    let mut out: Vec<Placed> = Vec::new();
    for (window, d) in chosen {
        match out.last_mut() {
            Some((last, members)) if window.start < last.end => {
                last.end = last.end.max(window.end);
                members.push(d);
            }
            _ => out.push((window, vec![d])),
        }
    }
    for (_, members) in &mut out {
        members.sort_by_key(|&d| drafts[d].address);
    }
    out
}

/// Addresses inside of windows that direct branches elsewhere in the file, or pointers, lead to. `windows`: disjoint,
/// ascending.
pub(crate) fn branches_into(module: &Module<'_>, windows: &[Range<u64>]) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return out;
    };
    let span = Span {
        low: first.start,
        high: last.end,
    };
    let map = Map::of(span, windows);
    let inside = |va: u64| {
        let before = windows.partition_point(|w| w.start < va);
        before > 0 && va < windows[before - 1].end
    };
    for (va, code) in module.image.code() {
        out.extend(search::branches(code, va, |opcode, hit| {
            let here = va.wrapping_add((hit.at - opcode) as u64);
            let leads = map.may_hold(hit.to) && inside(hit.to);
            (leads && confirmed(module, here, hit.to)).then_some(hit.to)
        }));
    }
    let pointers = module.dynamic.relative.iter().map(|r| r.1);
    out.extend(pointers.filter(|&to| map.may_hold(to) && inside(to)));
    out
}

/// Which parts of a span hold windows: most addresses need no search for theirs.
struct Map {
    span: Span,
    parts: Vec<u64>,
}

impl Map {
    /// Bytes to a part.
    const PART: u64 = 16;

    fn of(span: Span, windows: &[Range<u64>]) -> Map {
        let len = (span.high - span.low) / Map::PART / 64 + 1;
        let mut parts = vec![0u64; usize::try_from(len).unwrap_or(0)];
        for window in windows {
            let at = |va: u64| (va - span.low) / Map::PART;
            for at in at(window.start)..=at(window.end) {
                if let Some(word) = parts.get_mut((at / 64) as usize) {
                    *word |= 1 << (at % 64);
                }
            }
        }
        Map { span, parts }
    }

    fn may_hold(&self, va: u64) -> bool {
        let Some(at) = va.checked_sub(self.span.low) else {
            return false;
        };
        let at = at / Map::PART;
        let word = self
            .parts
            .get(usize::try_from(at / 64).unwrap_or(usize::MAX));
        word.is_some_and(|w| w >> (at % 64) & 1 == 1)
    }
}

/// Whether the bytes at `here` are an instruction that leads to `to`, not a part of one that looks so.
fn confirmed(module: &Module<'_>, here: u64, to: u64) -> bool {
    let Some(function) = module.functions.at(here).map(|i| module.functions.get(i)) else {
        return true;
    };
    let Some(code) = module.image.rest(function.start) else {
        return true;
    };
    let mut decoder = Decoder::with_ip(64, code, function.start, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() <= here {
        let insn = decoder.decode();
        if (insn.ip()..insn.next_ip()).contains(&here) {
            return insn.is_invalid() || insn.near_branch_target() == to;
        }
    }
    true
}
