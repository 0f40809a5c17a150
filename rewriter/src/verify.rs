//! The second opinion on a patched file: goblin and capstone, which had no part in writing it, read it again.
//!
//! Nothing is taken from the plan: what should have changed follows from the tables in the patched file, and these
//! from the original's instructions. The plan, where there is one, is compared at the end.

mod code;
mod counts;
mod cursor;
mod cutoff;
mod disassembler;
mod dynamic;
mod error;
mod ledger;
mod moves;
mod overlay;
mod relay;
mod sections;
mod segments;
mod settings;
mod shadow_stack;
mod tables;
mod unwind;
mod view;
mod windows;

pub use error::VerifyError;

use crate::plan::PatchPlan;
use ledger::Ledger;
use ompfuse_format::site::SelfDescription;
use tables::Tables;
use view::View;

// Shares of the time: the original's hash, the code, the comparison of everything else.
const OF_HASH: f64 = 0.3;
const OF_CODE: f64 = 0.5;
const OF_REST: f64 = 0.2;

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Sites in the table.
    pub sites: usize,
    /// Calls that lead to a stub.
    pub calls: usize,
    /// Inline probes.
    pub probes: usize,
    /// Windows that lead to a trampoline.
    pub windows: usize,
    /// Instructions that were displaced.
    pub displaced: usize,
    /// Bytes of the original that may differ.
    pub changed: u64,
    /// Bytes behind the original, holes included.
    pub added: u64,
}

/// Verifies that `new` is `old`, patched as it says of itself, and as planned if a plan is given.
pub fn verify(
    old: &[u8],
    new: &[u8],
    plan: Option<&PatchPlan>,
) -> Result<VerifyReport, VerifyError> {
    verify_with(old, new, plan, None, &|_| ())
}

/// As [`verify`]. `described`: the patched file's description, if it was read already. `passed` is called with a further share of the work that is done, whenever much of the two files was read that
/// isn't read again soon. Memory that holds pages of them can be given back then.
pub fn verify_with(
    old: &[u8],
    new: &[u8],
    plan: Option<&PatchPlan>,
    described: Option<&SelfDescription>,
    passed: &(dyn Fn(f64) + Sync),
) -> Result<VerifyReport, VerifyError> {
    if plan.is_some_and(PatchPlan::is_empty) || plan.is_none() && old == new {
        return match old == new {
            true => Ok(VerifyReport::default()),
            false => Err(VerifyError::NotThePlan {
                what: "no change",
                offset: 0,
            }),
        };
    }
    if new.len() < old.len() {
        return Err(VerifyError::Damaged {
            what: "the file is shorter than the original".into(),
        });
    }
    let old = View::parse(old, "original")?;
    let new = View::parse(new, "patched file")?;
    let described = plan.and_then(|p| p.description.as_ref()).or(described);
    let tables = Tables::read(&old, &new, described, &|share| passed(OF_HASH * share))?;
    let mut ledger = Ledger::default();
    tables.enter(&mut ledger)?;
    let mut moves = dynamic::check(&old, &new, &tables, &mut ledger)?;
    moves.frames = unwind::place(&old, &new, &tables, &moves, &mut ledger)?;
    segments::check(&old, &new, &tables, &moves, &mut ledger)?;
    let debug = sections::check(&old, &new, &tables, &moves, &mut ledger)?;
    let code = code::check(&old, &new, &tables, &mut ledger, &|share| {
        passed(OF_CODE * share);
    })?;
    shadow_stack::check(&old, &new, code.displaced_calls, &mut ledger)?;
    unwind::check(&old, &new, &tables, &moves, debug, &code)?;
    overlay::check(&old, &new, &mut ledger)?;
    let changed = ledger.close(&old, &new, tables.code(), &|share| passed(OF_REST * share))?;
    dynamic::check_relocations(&old, &changed)?;
    tables.check_identity(&new)?;
    if let Some(plan) = plan {
        compare(plan, &new, &tables, passed)?;
    }
    Ok(VerifyReport {
        sites: tables.sites.len(),
        calls: code.calls,
        probes: code.probes,
        windows: tables.windows.len(),
        displaced: code.displaced,
        changed: changed.iter().map(|r| r.end - r.start).sum(),
        added: (new.bytes.len() - old.bytes.len()) as u64,
    })
}

/// What is planned stands everywhere in the file: so many bytes are passed before memory is given back.
const BETWEEN_RELEASES: u64 = 2 << 20;

/// The file is what was planned.
fn compare(
    plan: &PatchPlan,
    new: &View<'_>,
    tables: &Tables<'_>,
    passed: &(dyn Fn(f64) + Sync),
) -> Result<(), VerifyError> {
    let error = |what, offset| Err(VerifyError::NotThePlan { what, offset });
    if plan.len != new.bytes.len() as u64 {
        return error("the length", plan.len);
    }
    let mut released = 0;
    for chunk in plan.edits.iter().chain(&plan.appended) {
        if chunk.offset.saturating_sub(released) >= BETWEEN_RELEASES {
            passed(0.0);
            released = chunk.offset;
        }
        if new.at_offset(chunk.offset, chunk.bytes.len() as u64) != Some(&chunk.bytes) {
            return error(chunk.what, chunk.offset);
        }
    }
    if !tables.sites.iter().map(|s| s.id).eq(plan.patched()) {
        return error("the set of patched sites", 0);
    }
    Ok(())
}
