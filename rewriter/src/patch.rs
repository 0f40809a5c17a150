//! Plan, write, verify: the whole way to a patched file.

use crate::model::{LinkVa, Scan};
use crate::patch_error::PatchError;
use crate::plan::{PatchPlan, PlanOptions, plan};
use crate::verify::{VerifyError, VerifyReport, verify_with};
use crate::write::write;
use std::borrow::Cow;

/// A patched file that was accepted.
#[derive(Debug)]
pub struct Patched {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it was made; [`PatchPlan::holes`] are the parts that needn't be written to disk.
    pub plan: PatchPlan,
    /// What was verified.
    pub report: VerifyReport,
}

/// Patches a binary, in memory. An output that fails its verification is not returned.
pub fn patch<'s>(
    bytes: &[u8],
    scan: impl Into<Cow<'s, Scan>>,
    options: &PlanOptions,
) -> Result<Patched, PatchError> {
    let plan = plan(bytes, scan, options)?;
    let out = write(bytes, &plan)?;
    let report = accept(bytes, &out, &plan, &|_| ())?;
    Ok(Patched {
        bytes: out,
        plan,
        report,
    })
}

/// Verifies what was written according to a plan. `passed`: as [`verify_with`] calls it.
pub fn accept(
    bytes: &[u8],
    written: &[u8],
    plan: &PatchPlan,
    passed: &(dyn Fn(f64) + Sync),
) -> Result<VerifyReport, PatchError> {
    verify_with(bytes, written, Some(plan), None, passed).map_err(|e| rejected(plan, e))
}

/// A relocation in the code is the input's doing, everything else ours.
fn rejected(plan: &PatchPlan, source: VerifyError) -> PatchError {
    let path = plan.path.clone();
    let VerifyError::Relocation { at } = source else {
        return PatchError::Verify { path, source };
    };
    let touches = |start: LinkVa, len: u32| at + 8 > start.0 && at < start.0 + u64::from(len);
    let call = plan
        .calls
        .iter()
        .find(|c| touches(c.at, c.len))
        .map(|c| c.at);
    let window = || {
        plan.detours
            .iter()
            .find(|d| touches(d.start, d.len))
            .map(|d| d.start)
    };
    match call.or_else(window) {
        Some(at) => PatchError::Site {
            path,
            at,
            what: "the dynamic linker writes into its code".into(),
        },
        None => PatchError::Verify { path, source },
    }
}
