//! Carries a plan out. Every decision was made by `plan`.

use crate::patch_error::PatchError;
use crate::plan::PatchPlan;

/// The patched file's bytes.
pub fn write(bytes: &[u8], plan: &PatchPlan) -> Result<Vec<u8>, PatchError> {
    let actual = bytes.len() as u64;
    let other = || PatchError::OtherFile {
        path: plan.path.clone(),
        planned: plan.original_len,
        actual,
    };
    if actual != plan.original_len {
        return Err(other());
    }
    // Zeroed memory comes from the kernel page by page: a large hole costs nothing.
    let len = usize::try_from(plan.len).map_err(|_| other())?;
    let mut out = vec![0; len];
    out[..bytes.len()].copy_from_slice(bytes);
    for chunk in plan.edits.iter().chain(&plan.appended) {
        let start = chunk.offset as usize;
        let end = start.checked_add(chunk.bytes.len());
        let to = end
            .and_then(|end| out.get_mut(start..end))
            .ok_or_else(other)?;
        to.copy_from_slice(&chunk.bytes);
    }
    Ok(out)
}
