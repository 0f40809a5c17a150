//! Functions that are wanted as regions of their own: a probe where each is entered, and one before everything that leaves it. A
//! function of which one probe has no room gets none.

use super::cfg::{Body, Exit};
use super::draft::Draft;
use super::image::u64_at;
use super::relays::Relayed;
use super::{Module, names, windows};
use crate::model::ProbeSpec;
use crate::place::Placed;
use iced_x86::{FlowControl, Instruction, Mnemonic};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::Edge;
use std::collections::BTreeSet;

/// Functions with fewer instructions than this, without call and loop, are recorded only if they are named.
const FEW: usize = 12;

/// Whether a function is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// It isn't.
    #[default]
    No,
    /// A pattern fits several.
    ByPattern,
    /// It is named, so that it is recorded whatever a probe costs beside it.
    ByName,
}

/// Tells whether a function is wanted, by its name in the symbol table, or its address (`0x401136`) where it has none; and by the address
/// of the instruction that its first probe stands before.
pub type Wish<'x> = &'x (dyn Fn(&str, u64) -> Wanted + Sync);

/// Why a small function that isn't named has no probes.
pub(crate) const SMALL: &str =
    "few instructions without call and loop: probes would take longer than it does";
/// Why the body of a construct that isn't named has none.
pub(crate) const BODY: &str = "it is the body of an OpenMP construct, which is recorded";
/// What is said of a function with code that belongs to others, too.
pub(super) const SHARED: &str = "it has code in common with another function";

/// Of each function whether it is wanted.
pub(super) fn wanted(module: &Module<'_>, wish: Wish<'_>) -> Vec<Wanted> {
    let all = 0..module.functions.count();
    all.map(|n| {
        let function = module.functions.get(n);
        if function.fragment || is_linkers(module, function.start) {
            return Wanted::No;
        }
        let entry = entry(module, function.start);
        let wanted = match function.name {
            Some(name) => wish(name, entry),
            None => wish(&format!("{:#x}", function.start), entry),
        };
        match wanted {
            Wanted::ByPattern if is_start(module, function.start, function.name) => Wanted::No,
            wanted => wanted,
        }
    })
    .collect()
}

/// Whether the linker has made the code there.
fn is_linkers(module: &Module<'_>, va: u64) -> bool {
    let holds = |(from, size): (u64, u64)| from <= va && va - from < size;
    let is_it = |name: &str| name.starts_with(".plt") || matches!(name, ".init" | ".fini");
    let mut sections = module.image.sections.iter();
    module.entries.stubs.contains(&va)
        || sections.any(|s| s.va != 0 && is_it(s.name) && holds((s.va, s.size)))
}

/// Where the probe of a function's entry stands: behind the mark of where indirect branches may lead, which stays.
fn entry(module: &Module<'_>, start: u64) -> u64 {
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
        Some(Wanted::ByPattern) => false,
        Some(Wanted::ByName) => true,
        Some(Wanted::No) | None => return,
    };
    let skipped = |why: String| refused(module, body.function, why);
    if is_outlined && !by_name {
        return drafts.push(skipped(BODY.into()));
    }
    let exits = match ways(module, body, by_name) {
        Ok(exits) => exits,
        Err(why) => return drafts.push(skipped(why.into())),
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
fn ways(module: &Module<'_>, body: &Body, by_name: bool) -> Result<Vec<u64>, &'static str> {
    let function = module.functions.get(body.function);
    if is_start(module, function.start, function.name) {
        return Err("it begins or ends the program");
    }
    let name = function.base_name();
    if module.entries.contains_runtime && name.is_some_and(names::is_runtime_internal) {
        return Err("it belongs to the OpenMP runtime");
    }
    if module
        .image
        .sections
        .iter()
        .any(|s| s.name == "xray_instr_map")
    {
        return Err("its code is changed while the program runs (XRay)");
    }
    let at = entry(module, function.start);
    let entry = body.insn_at(at).map(|n| &body.insns[n]);
    let entry = entry.ok_or("its code isn't known")?;
    if entry.mnemonic() == Mnemonic::Nop {
        return Err("its first bytes are kept free for others to write");
    }
    let mut begins = body.blocks.iter().filter(|b| b.start == at);
    if begins.any(|b| at != function.start || !b.preds.is_empty()) {
        return Err("its first instruction is in a loop");
    }
    if !by_name && is_small(body) {
        return Err(SMALL);
    }
    let exits = exits(body)?;
    match exits.contains(&at) {
        true => Err("it has one instruction"),
        false => Ok(exits),
    }
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
fn exits(body: &Body) -> Result<Vec<u64>, &'static str> {
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
            (Exit::Dead, _) => return Err("control runs on behind its end"),
            (
                Exit::Return | Exit::Tail(_) | Exit::TailIndirect,
                FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch,
            ) => out.push(last.ip()),
            (Exit::Tail(_), FlowControl::ConditionalBranch) => {
                return Err("it leaves by a conditional jump");
            }
            _ => return Err("it leaves in an unusual way"),
        }
    }
    Ok(out)
}
