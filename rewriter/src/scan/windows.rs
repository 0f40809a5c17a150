//! Windows for the inline probes of drafts: what each of them asks for, and what becomes of a construct whose probe gets none.

use super::Module;
use super::cfg::Body;
use super::draft::Draft;
use super::image::Kind;
use super::relays::Relayed;
use crate::model::Action;
use crate::place::{self, Finder, Ground, Placed, Request, too_few};
use crate::unwind::Row;
use iced_x86::{Instruction, OpKind};
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, Outcome};
use std::collections::BTreeSet;
use std::ops::Range;

mod entered;

pub(crate) use entered::branches_into;

impl Ground for Module<'_> {
    fn stays(&self, range: &Range<u64>) -> bool {
        Module::stays(self, range)
    }

    fn bytes_from(&self, va: u64) -> Option<&[u8]> {
        self.image.rest(va)
    }

    fn begins_function(&self, va: u64) -> bool {
        self.functions.starts_at(va)
    }

    fn rows(&self, addresses: &mut dyn Iterator<Item = u64>) -> Option<Vec<Option<Row>>> {
        self.rules.rows(addresses)
    }
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
    // Where loops begin, at divisions by the number of threads: that isn't 0.
    let divides = |d: &&Draft| is_inline(d) && d.edge == Edge::Begin && !d.construct.is_code();
    let finder = Finder {
        ground: module,
        body,
        targets: body
            .targets
            .iter()
            .chain(barred)
            .copied()
            .chain(made(module, body))
            .collect(),
        harmless: drafts.iter().filter(divides).map(|d| d.address).collect(),
        changed: relays.iter().flat_map(Relayed::changed).collect(),
        scarce: module.scarce,
        deep: module.scarce,
    };
    let mut chosen = Vec::new();
    for d in 0..drafts.len() {
        if !is_inline(&drafts[d]) {
            continue;
        }
        match finder.choose(&request(&drafts[d])) {
            Ok(found) => {
                let fallback = drafts[d].rare().fallback;
                drafts[d].address = found.at;
                if let (true, Some((_, register)), Some(Action::Inline(spec))) =
                    (found.is_other, fallback, &mut drafts[d].action)
                {
                    spec.args[0] = register;
                }
                chosen.push((found.range, d));
            }
            Err(reason) => skip_construct(d, &reason, drafts),
        }
    }
    loop {
        chosen.retain(|&(_, d)| drafts[d].action.is_some());
        let mut windows = place::merge(chosen.clone(), |d| drafts[d].address);
        let Some(&narrow) = place::make_room(&finder, &mut windows).first() else {
            tell(&windows, drafts);
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

/// What a draft's probe asks for.
fn request(draft: &Draft) -> Request {
    Request {
        at: draft.address,
        other: draft.rare().fallback.map(|(at, _)| at),
        later: matches!(draft.probe(), Some(Probe::InlineEnd | Probe::LoopLeave)),
        exact: matches!(
            draft.probe(),
            Some(Probe::FunctionEnter | Probe::LoopIterate)
        ),
    }
}

/// Says of the sites how they get their room.
fn tell(windows: &[Placed], drafts: &mut [Draft]) {
    for window in windows {
        let Some(island) = window.island else {
            continue;
        };
        let host = windows.iter().find(|w| w.range.contains(&island));
        let Some(Range { start, end }) = host.map(|h| h.range.clone()) else {
            continue;
        };
        let reason = format!("short jump, {start:#x} to {end:#x} move to make room");
        for &d in &window.members {
            drafts[d].reason = Some(reason.clone().into());
        }
    }
}

/// Addresses of the function's own instructions that instructions of it make: `__builtin_setjmp` and jumps out of nested
/// functions come back there.
pub(super) fn made<'x>(module: &'x Module<'_>, body: &'x Body) -> impl Iterator<Item = u64> + 'x {
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

/// Makes a construct one without probe; nobody counts it behind barriers.
fn forget(begin: usize, why: &str, drafts: &mut [Draft]) {
    for (i, draft) in drafts.iter_mut().enumerate() {
        if let Some(rare) = draft.own_rare() {
            rare.follows.retain(|&f| f != begin);
            rare.begins = rare.begins.filter(|b| b.0 != begin);
        }
        if i == begin || (draft.region == Some(begin) && draft.record.is_none()) {
            draft.skip(why.to_owned());
        }
    }
}

/// Without one of its probes a construct would be recorded wrongly: it gets none.
fn skip_construct(d: usize, reason: &str, drafts: &mut [Draft]) {
    let begin = drafts[d].region.unwrap_or(d);
    if drafts[d].probe() == Some(Probe::InlineNextChunk) {
        // The loop is recorded all the same, with one unit for all chunks of a thread.
        drafts[begin].tell_chunks(false);
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
    forget(begin, &reason, drafts);
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
