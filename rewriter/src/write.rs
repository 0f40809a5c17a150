//! Carries a plan out. Every decision was made by `plan`.

use crate::patch_error::PatchError;
use crate::plan::{Chunk, PatchPlan};

/// At most so many bytes are handed over at once.
const BLOCK: usize = 1 << 20;

/// Stands for holes, which are shorter than a page but for those of large alignment.
static ZEROS: [u8; 1 << 12] = [0; 1 << 12];

fn other(bytes: &[u8], plan: &PatchPlan) -> PatchError {
    PatchError::OtherFile {
        path: plan.path.clone(),
        planned: plan.original_len,
        actual: bytes.len() as u64,
    }
}

/// The patched file's bytes.
pub fn write(bytes: &[u8], plan: &PatchPlan) -> Result<Vec<u8>, PatchError> {
    if bytes.len() as u64 != plan.original_len {
        return Err(other(bytes, plan));
    }
    // Zeroed memory comes from the kernel page by page: a large hole costs nothing.
    let len = usize::try_from(plan.len).map_err(|_| other(bytes, plan))?;
    let mut out = vec![0; len];
    out[..bytes.len()].copy_from_slice(bytes);
    for chunk in plan.edits.iter().chain(&plan.appended) {
        let start = chunk.offset as usize;
        let end = start.checked_add(chunk.bytes.len());
        let to = end
            .and_then(|end| out.get_mut(start..end))
            .ok_or_else(|| other(bytes, plan))?;
        to.copy_from_slice(&chunk.bytes);
    }
    Ok(out)
}

/// Hands the patched file's bytes over, from the first to the last.
pub fn write_to<E: From<PatchError>>(
    bytes: &[u8],
    plan: &PatchPlan,
    mut to: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if bytes.len() as u64 != plan.original_len {
        return Err(other(bytes, plan).into());
    }
    let mut edits = &plan.edits[..];
    let mut buffer = Vec::new();
    for (start, block) in (0u64..).step_by(BLOCK).zip(bytes.chunks(BLOCK)) {
        let end = start + block.len() as u64;
        let here = edits.partition_point(|e| e.offset < end);
        if here == 0 {
            to(block)?;
            continue;
        }
        buffer.clear();
        buffer.extend_from_slice(block);
        for edit in &edits[..here] {
            overlay(&mut buffer, start, edit);
        }
        // The last may go on in the next block.
        let goes_on = edits[here - 1].range().end > end;
        edits = &edits[if goes_on { here - 1 } else { here }..];
        to(&buffer)?;
    }
    let mut at = plan.original_len;
    for chunk in &plan.appended {
        while at < chunk.offset {
            let len = (chunk.offset - at).min(ZEROS.len() as u64);
            to(&ZEROS[..len as usize])?;
            at += len;
        }
        to(&chunk.bytes)?;
        at = chunk.range().end;
    }
    Ok(())
}

/// Writes the part of an edit that lies in a block, which begins at `start`.
fn overlay(block: &mut [u8], start: u64, edit: &Chunk) {
    let end = start + block.len() as u64;
    let (from, to) = (edit.offset.max(start), edit.range().end.min(end));
    if from < to {
        let part = &edit.bytes[(from - edit.offset) as usize..(to - edit.offset) as usize];
        block[(from - start) as usize..(to - start) as usize].copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::HeaderTactic;

    fn chunk(offset: u64, bytes: &[u8]) -> Chunk {
        Chunk {
            what: "test",
            offset,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn both_ways_give_the_same_bytes() {
        let block = BLOCK as u64;
        let bytes: Vec<u8> = (0..3 * BLOCK + 5).map(|i| i as u8 | 1).collect();
        let len = bytes.len() as u64;
        let plan = PatchPlan {
            path: "x".into(),
            original_len: len,
            len: len + 2 * block + 3,
            tactic: HeaderTactic::Anywhere,
            calls: Vec::new(),
            detours: Vec::new(),
            segments: Vec::new(),
            edits: vec![
                chunk(0, &[7]),
                chunk(block - 2, &[1, 2, 3, 4]),
                chunk(block + 2, &[5]),
                chunk(2 * block - 1, &[8]),
                chunk(3 * block, &[9, 9, 9, 9, 9]),
            ],
            appended: vec![chunk(len + 7, &[1]), chunk(len + 2 * block, &[1, 2, 3])],
            description: None,
        };
        let mut out = Vec::new();
        let sink = |part: &[u8]| {
            out.extend_from_slice(part);
            Ok::<_, PatchError>(())
        };
        write_to(&bytes, &plan, sink).unwrap();
        assert!(out == write(&bytes, &plan).unwrap());
        let error = write_to(&bytes[1..], &plan, |_| Ok::<_, PatchError>(()));
        assert!(matches!(error, Err(PatchError::OtherFile { .. })));
    }
}
