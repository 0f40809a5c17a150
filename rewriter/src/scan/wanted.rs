//! Functions that are wanted as regions of their own: a probe where each is entered, and one before everything that leaves it. A
//! function of which one probe has no room gets none.

use super::bytes::u64_at;
use super::cfg::{Body, Exit};
use super::decode::Scratch;
use super::draft::Draft;
use super::relays::Relayed;
use super::source::Lines;
use super::wish::{Known, Wanted, Wish};
use super::{Module, names, windows};
use crate::model::ProbeSpec;
use crate::place::Placed;
use iced_x86::{FlowControl, Instruction, Mnemonic};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, HexAddress};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Functions with fewer instructions than this, without call and loop, are recorded only if they are named.
const FEW: usize = 12;

/// Why a small function that isn't named has no probes.
pub(crate) const SMALL: &str =
    "few instructions without call and loop: probes would take longer than it does";
/// Why the body of a construct that isn't named has none.
pub(crate) const BODY: &str = "it is the body of an OpenMP construct, which is recorded";
/// What is said of a function with code that belongs to others, too.
pub(super) const SHARED: &str = "it has code in common with another function";

/// Of each function whether it is wanted. `lines`: of the file, if the wish needs them.
pub(super) fn wanted(
    module: &Module<'_>,
    wish: &dyn Wish,
    lines: Option<&Lines<'_>>,
) -> Vec<Wanted> {
    let all = 0..module.functions.count();
    let callers = callers(module, wish);
    let none = Vec::new();
    all.map(|n| {
        let function = module.functions.get(n);
        if function.fragment || is_linkers(module, function.start) {
            return Wanted::No;
        }
        let frames = lines.map(|lines| lines.frames(function.start));
        let outermost = frames
            .as_ref()
            .and_then(|frames| frames.last()?.source.as_ref());
        let callers = callers.get(&n).unwrap_or(&none);
        let callers: Vec<&str> = callers.iter().map(AsRef::as_ref).collect();
        let wanted = wish.wanted(&Known {
            name: &name(module, n),
            start: function.start,
            entry: entry(module, function.start),
            size: function.end - function.start,
            file: outermost.map(|source| &*source.file),
            callers: &callers,
        });
        match wanted {
            Wanted::ByPattern if is_start(module, function.start, function.name) => Wanted::No,
            wanted => wanted,
        }
    })
    .collect()
}

/// What a function is called: by its address where it has no name.
pub(super) fn name<'x>(module: &'x Module<'_>, function: usize) -> Cow<'x, str> {
    let function = module.functions.get(function);
    let address = || format!("{:#x}", function.start).into();
    function.name.map_or_else(address, Cow::Borrowed)
}

/// For each function the names of those that call it directly, or jump to it at their ends, of those that the wish asks for.
fn callers<'x>(module: &'x Module<'_>, wish: &dyn Wish) -> FxHashMap<usize, Vec<Cow<'x, str>>> {
    let mut callers: FxHashMap<usize, Vec<Cow<'_, str>>> = FxHashMap::default();
    let mut scratch = Scratch::default();
    for n in 0..module.functions.count() {
        let name = name(module, n);
        if module.functions.get(n).fragment || !wish.asks_for_callees(&name) {
            continue;
        }
        let body = Body::build(module, &mut scratch, n, &[]);
        let is_call = |i: &&Instruction| i.flow_control() == FlowControl::Call;
        let calls = body
            .insns
            .iter()
            .filter(is_call)
            .map(Instruction::near_branch_target);
        let tails = body.blocks.iter().filter_map(|block| match block.exit {
            Exit::Tail(to) => Some(to),
            _ => None,
        });
        let begins = |to: &u64| module.functions.begins_at(*to);
        let called = calls.chain(tails).filter(begins);
        let called: BTreeSet<usize> = called.filter_map(|to| module.functions.at(to)).collect();
        scratch.recycle(body);
        for callee in called {
            callers.entry(callee).or_default().push(name.clone());
        }
    }
    callers
}

/// The functions whose loops are wanted, by the places of their first probes, as [`ScanOptions::loops`](super::ScanOptions::loops) tells them again.
pub(super) fn entries(module: &Module<'_>, wanted: &[Wanted]) -> Vec<HexAddress> {
    let all = (0..wanted.len()).filter(|&n| wanted[n] != Wanted::No);
    all.map(|n| HexAddress(entry(module, module.functions.get(n).start)))
        .collect()
}

/// Whether the linker has made the code there.
pub(super) fn is_linkers(module: &Module<'_>, va: u64) -> bool {
    let holds = |(from, size): (u64, u64)| from <= va && va - from < size;
    let is_it = |name: &str| name.starts_with(".plt") || matches!(name, ".init" | ".fini");
    let mut sections = module.image.sections.iter();
    module.entries.stubs.contains(&va)
        || sections.any(|s| s.va != 0 && is_it(s.name) && holds((s.va, s.size)))
}

/// Where the probe of a function's entry stands: behind the mark of where indirect branches may lead, which stays.
pub(super) fn entry(module: &Module<'_>, start: u64) -> u64 {
    const MARKS: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfb]];
    let code = module.image.rest(start).unwrap_or_default();
    match MARKS.iter().any(|mark| code.starts_with(mark)) {
        true => start + 4,
        false => start,
    }
}

/// The one site of a function that gets no probes.
pub(super) fn refused(module: &Module<'_>, function: usize, why: String) -> Draft {
    let mut draft = begin(module, function);
    draft.skip(why);
    draft
}

fn begin(module: &Module<'_>, function: usize) -> Draft {
    let known = module.functions.get(function);
    let at = entry(module, known.start);
    let mut draft = Draft::new(at, Construct::Function, Edge::Begin);
    draft.function = Some(function as u32);
    if known.name.is_none() {
        draft.debug_name = Some(format!("{:#x}", known.start).into());
    }
    draft
}

/// Adds the sites of a function to those that it has already, and their windows. `is_outlined`: it is the body of a construct.
pub(super) fn add(
    module: &Module<'_>,
    body: &Body,
    (barred, relays): (&BTreeSet<u64>, &[Relayed]),
    is_outlined: bool,
    drafts: &mut Vec<Draft>,
    windows: &mut Vec<Placed>,
) {
    let by_name = match module.wanted.get(body.function) {
        Some(Wanted::ByName) => true,
        Some(Wanted::ByPattern) => false,
        // What its loops are executed in is recorded with them.
        Some(Wanted::No) | None if module.is_looped(body.function) => false,
        Some(Wanted::No) | None => return,
    };
    let skipped = |why: String| refused(module, body.function, why);
    if is_outlined && !by_name {
        return drafts.push(skipped(BODY.into()));
    }
    let exits = match ways(module, body, by_name) {
        Ok(exits) => exits,
        Err(why) => return drafts.push(skipped(why)),
    };
    let first = drafts.len();
    let mut all = drafts.clone();
    let mut draft = begin(module, body.function);
    draft.inline(ProbeSpec::bare(Probe::FunctionEnter));
    all.push(draft);
    for at in exits {
        let mut draft = Draft::new(at, Construct::Function, Edge::End);
        draft.function = Some(body.function as u32);
        draft.region = Some(first);
        draft.inline(ProbeSpec::bare(Probe::FunctionLeave));
        all.push(draft);
    }
    let placed = windows::place(module, body, barred, relays, &mut all);
    let mut others = drafts.iter().zip(&all);
    if others.any(|(before, now)| before.action.is_some() && now.action.is_none()) {
        let why = "its probes need the room of an OpenMP construct's";
        return drafts.push(skipped(why.into()));
    }
    if all[first].action.is_none() {
        let why = all[first].reason.as_deref().unwrap_or_default();
        return drafts.push(skipped(why.to_owned()));
    }
    (*drafts, *windows) = (all, placed);
}

/// The instructions that leave a function; or why it gets no probes.
fn ways(module: &Module<'_>, body: &Body, by_name: bool) -> Result<Vec<u64>, String> {
    if let Some(why) = untouchable(module, body.function) {
        return Err(why.into());
    }
    let function = module.functions.get(body.function);
    let at = entry(module, function.start);
    let entry = body.insn_at(at).map(|n| &body.insns[n]);
    let entry = entry.ok_or("its code isn't known")?;
    if entry.mnemonic() == Mnemonic::Nop {
        return Err("its first bytes are kept free for others to write".into());
    }
    let mut begins = body.blocks.iter().filter(|b| b.start == at);
    if begins.any(|b| at != function.start || !b.preds.is_empty()) {
        return Err("its first instruction is in a loop".into());
    }
    if !by_name && is_small(body) {
        return Err(SMALL.into());
    }
    let exits = exits(body)?;
    match exits.contains(&at) {
        true => Err("it has one instruction".into()),
        false => Ok(exits),
    }
}

/// Why no probe may be in a function that isn't a construct's, whatever its code is.
pub(super) fn untouchable(module: &Module<'_>, function: usize) -> Option<&'static str> {
    let function = module.functions.get(function);
    let name = function.base_name();
    if is_start(module, function.start, function.name) {
        return Some("it begins or ends the program");
    }
    if module.entries.contains_runtime && name.is_some_and(names::is_runtime_internal) {
        return Some("it belongs to the OpenMP runtime");
    }
    let mut sections = module.image.sections.iter();
    let is_written = sections.any(|s| s.name == "xray_instr_map");
    is_written.then_some("its code is changed while the program runs (XRay)")
}

/// Whether it is a part of what compilers add to a program to begin and to end it.
fn is_start(module: &Module<'_>, va: u64, name: Option<&str>) -> bool {
    const STARTS: [&str; 10] = [
        "_start",
        "_init",
        "_fini",
        "_dl_relocate_static_pie",
        "__do_global_dtors_aux",
        "__libc_csu_fini",
        "__libc_csu_init",
        "deregister_tm_clones",
        "frame_dummy",
        "register_tm_clones",
    ];
    u64_at(module.image.bytes, 24) == Some(va) || name.is_some_and(|n| STARTS.contains(&n))
}

/// Whether it takes less time than its probes would.
fn is_small(body: &Body) -> bool {
    let idle = |i: &&Instruction| {
        matches!(
            i.mnemonic(),
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Int3
        )
    };
    let goes_on = |i: &Instruction| {
        let back = |i: &Instruction| {
            let to = i.near_branch_target();
            to <= i.ip() && body.insn_at(to).is_some()
        };
        match i.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => true,
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => back(i),
            _ => false,
        }
    };
    let len = body.insns.len() - body.insns.iter().filter(idle).count();
    len < FEW && !body.insns.iter().any(goes_on)
}

/// The instructions that leave a function.
fn exits(body: &Body) -> Result<Vec<u64>, String> {
    let mut out = Vec::new();
    for (number, block) in body.blocks.iter().enumerate() {
        let Some(last) = body.last(number) else {
            continue;
        };
        match (block.exit, last.flow_control()) {
            (Exit::None, _) => {}
            // Behind these control doesn't go on, or nobody knows how it comes back.
            (
                Exit::Dead,
                FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::UnconditionalBranch
                | FlowControl::Interrupt
                | FlowControl::Exception,
            ) => {}
            (Exit::Dead, _) if last.mnemonic() == Mnemonic::Hlt => {}
            (Exit::Dead, FlowControl::IndirectBranch) => {
                return Err("it has an indirect jump whose targets are unknown".into());
            }
            (Exit::Dead, _) => {
                let end = last.next_ip();
                return Err(format!(
                    "control runs on behind {end:#x}, where its code ends"
                ));
            }
            (
                Exit::Return | Exit::Tail(_) | Exit::TailIndirect,
                FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch,
            ) => out.push(last.ip()),
            (Exit::Tail(_), FlowControl::ConditionalBranch) => {
                return Err("it leaves by a conditional jump".into());
            }
            _ => return Err("it leaves in an unusual way".into()),
        }
    }
    Ok(out)
}
