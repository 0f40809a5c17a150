//! Plan, write, verify: the whole way to a patched file.

use crate::model::Scan;
use crate::patch_error::PatchError;
use crate::plan::{PatchPlan, PlanOptions, plan};
use crate::verify::{VerifyReport, verify};
use crate::write::write;

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

/// Patches a binary. An output that fails its verification is not returned.
pub fn patch(bytes: &[u8], scan: &Scan, options: &PlanOptions) -> Result<Patched, PatchError> {
    let plan = plan(bytes, scan, options)?;
    let out = write(bytes, &plan)?;
    let report = verify(bytes, &out, Some(&plan)).map_err(|source| PatchError::Verify {
        path: plan.path.clone(),
        source,
    })?;
    Ok(Patched {
        bytes: out,
        plan,
        report,
    })
}
