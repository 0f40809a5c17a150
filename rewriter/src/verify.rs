//! The second opinion on a patched file: goblin and capstone, which had no part in writing it, read it again.
//!
//! Nothing is taken from the plan: what should have changed follows from the tables in the patched file, and these
//! from the original's instructions. The plan, where there is one, is compared at the end.

mod code;
mod cursor;
mod disassembler;
mod dynamic;
mod error;
mod ledger;
mod moves;
mod overlay;
mod relay;
mod sections;
mod segments;
mod tables;
mod unwind;
mod view;

pub use error::VerifyError;

use crate::plan::PatchPlan;
use ledger::Ledger;
use tables::Tables;
use view::View;

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
    let tables = Tables::read(&old, &new)?;
    let mut ledger = Ledger::default();
    tables.enter(&mut ledger)?;
    let mut moves = dynamic::check(&old, &new, &tables, &mut ledger)?;
    moves.frames = unwind::place(&old, &new, &tables, &moves, &mut ledger)?;
    segments::check(&old, &new, &tables, &moves, &mut ledger)?;
    let debug = sections::check(&old, &new, &tables, &moves, &mut ledger)?;
    let code = code::check(&old, &new, &tables, &mut ledger)?;
    unwind::check(&old, &new, &tables, &moves, debug, &code)?;
    overlay::check(&old, &new, &mut ledger)?;
    let changed = ledger.close(&old, &new, tables.code())?;
    dynamic::check_relocations(&old, &changed)?;
    if let Some(plan) = plan {
        compare(plan, &new, &tables)?;
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

/// The file is what was planned.
fn compare(plan: &PatchPlan, new: &View<'_>, tables: &Tables) -> Result<(), VerifyError> {
    let error = |what, offset| Err(VerifyError::NotThePlan { what, offset });
    if plan.len != new.bytes.len() as u64 {
        return error("the length", plan.len);
    }
    for chunk in plan.edits.iter().chain(&plan.appended) {
        if new.at_offset(chunk.offset, chunk.bytes.len() as u64) != Some(&chunk.bytes) {
            return error(chunk.what, chunk.offset);
        }
    }
    if plan.description.as_ref() != Some(&tables.description) {
        return error("the description", 0);
    }
    let patched = tables
        .sites
        .iter()
        .filter(|s| s.probe.is_some())
        .map(|s| s.id);
    if !patched.eq(plan.patched()) {
        return error("the set of patched sites", 0);
    }
    Ok(())
}
