//! Windows: whole instructions that a jump to a trampoline may replace.

use super::Module;
use super::cfg::Body;
use super::draft::Draft;
use super::image::Kind;
use super::relays::Relayed;
use super::shapes::{again, dealt};
use crate::model::Action;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, Outcome};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ops::Range;

mod entered;
mod room;

pub(crate) use entered::branches_into;

/// Bytes of the jump.
const NEEDED: u64 = 5;
/// Bytes of a short jump.
const SHORT: u64 = 2;
/// How far an end may move behind its place when there is no room, in instructions.
const MAX_SLIP: usize = 12;
/// How far a window may begin before its probe, in instructions.
const MAX_BACK: usize = 8;

/// A window.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub range: Range<u64>,
    /// The drafts whose probes it holds; none if it makes room for islands.
    pub members: Vec<usize>,
    /// Where its long jump stands, if there is no room for it in the window.
    pub island: Option<u64>,
}

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
        targets: body
            .targets
            .iter()
            .chain(barred)
            .copied()
            .chain(made(module, body))
            .collect(),
        divisions: drafts
            .iter()
            .filter(|d| is_inline(d) && d.edge == Edge::Begin)
            .map(|d| d.address)
            .collect(),
        loads: relays.iter().flat_map(Relayed::changed).collect(),
        scarce: module.scarce,
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
    loop {
        chosen.retain(|&(_, d)| drafts[d].action.is_some());
        let mut windows = merge(chosen.clone(), drafts);
        let Some(narrow) = room::make(&finder, &mut windows) else {
            room::tell(&windows, drafts);
            return windows;
        };
        // What a short jump can't be led on from has no probe.
        let window = &windows[narrow];
        let free = window.range.end - window.range.start;
        let reason = format!("{}, and nothing near can make room", too_few(free));
        for d in window.members.clone() {
            if drafts[d].action.is_some() {
                skip_construct(d, &reason, drafts);
            }
        }
    }
}

/// Addresses of the function's own instructions that instructions of it make: `__builtin_setjmp` and jumps out of nested
/// functions come back there.
fn made<'x>(module: &'x Module<'_>, body: &'x Body) -> impl Iterator<Item = u64> + 'x {
    let absolute = module.image.kind == Kind::Executable;
    let made = move |insn: &Instruction| {
        let number = (0..insn.op_count()).find(|&op| {
            let kind = insn.op_kind(op);
            matches!(
                kind,
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
            )
        });
        match number {
            Some(op) if absolute => Some(insn.immediate(op)),
            _ if insn.is_ip_rel_memory_operand() => Some(insn.ip_rel_memory_address()),
            _ => module.code_from_table(insn),
        }
    };
    let own = |&va: &u64| body.insn_at(va).is_some();
    body.insns.iter().filter_map(made).filter(own)
}

/// Without one of its probes a construct would be recorded wrongly: it gets none.
fn skip_construct(d: usize, reason: &str, drafts: &mut [Draft]) {
    let begin = drafts[d].region.unwrap_or(d);
    if drafts[d].probe() == Some(Probe::InlineNextChunk) {
        // The loop is recorded all the same, with one unit for all chunks of a thread.
        dealt::tell(&mut drafts[begin], false);
        return drafts[d].skip(reason.to_owned());
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
    for follower in drafts[begin].rare().follows.clone() {
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
        .filter(|&i| drafts[i].rare().implied_by.contains(&begin))
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
    /// Where constructs begin: at divisions by the number of threads, which isn't 0.
    divisions: FxHashSet<u64>,
    /// Addresses of instructions that are changed in place.
    loads: FxHashSet<u64>,
    /// Every window is to be as short as can be: for tests.
    scarce: bool,
}

impl Finder<'_, '_> {
    /// The window of a probe. An end without room may move to a later instruction. Where no window has room for a jump,
    /// one for a short jump will do.
    fn choose(&self, draft: &mut Draft) -> Result<Range<u64>, String> {
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
            match self.choose_of(draft, needed) {
                Ok(window) => return Ok(window),
                Err(bytes) => free = free.max(bytes),
            }
        }
        Err(too_few(free))
    }

    /// The window of a probe with so many bytes, or how many there are.
    fn choose_of(&self, draft: &mut Draft, needed: u64) -> Result<Range<u64>, u64> {
        let first = self.window(draft.address, needed);
        if let (Err(_), Some((at, register)), Some(Action::Inline(spec))) =
            (&first, draft.rare().fallback, &mut draft.action)
            && let Ok(window) = self.window(at, needed)
        {
            draft.address = at;
            spec.args[0] = register;
            return Ok(window);
        }
        if first.is_ok() || draft.probe() != Some(Probe::InlineEnd) {
            return first;
        }
        for at in self.later(draft.address) {
            if let Ok(window) = self.window(at, needed) {
                draft.address = at;
                return Ok(window);
            }
        }
        first
    }

    /// The window for a probe before the instruction at `at` with so many bytes, or the number of bytes that are free.
    fn window(&self, at: u64, needed: u64) -> Result<Range<u64>, u64> {
        let Some(probe) = self.body.insn_at(at) else {
            return Err(0);
        };
        let mut start = probe;
        let mut free = 0;
        for _ in 0..=MAX_BACK {
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
                || !can_move(insn)
                || self.module.stays(&(insn.ip()..insn.next_ip()))
                || self.loads.contains(&insn.ip())
                || (self.body.throws(insn) && !self.divisions.contains(&insn.ip()))
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

    /// Takes padding behind an unconditional jump into the window, as far as needed. What a `nop` of XRay keeps free (told by its
    /// displacement, which padding hasn't) a program may write calls into.
    fn padding(&self, from: u64, mut end: u64, needed: u64) -> u64 {
        let Some(code) = self.module.image.rest(end) else {
            return end;
        };
        let mut decoder = Decoder::with_ip(64, code, end, DecoderOptions::NONE);
        while end - from < needed && decoder.can_decode() {
            let insn = decoder.decode();
            let taken = self.is_target(end)
                || self.body.insn_at(end).is_some()
                || self.module.functions.starts_at(end)
                || insn.memory_displacement64() != 0
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
    for (range, d) in chosen {
        match out.last_mut() {
            Some(last) if range.start < last.range.end => {
                last.range.end = last.range.end.max(range.end);
                last.members.push(d);
            }
            _ => out.push(Placed {
                range,
                members: vec![d],
                island: None,
            }),
        }
    }
    for window in &mut out {
        window.members.sort_by_key(|&d| drafts[d].address);
    }
    out
}
