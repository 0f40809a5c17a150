//! Accounts for every byte of the patched file: it is the original's, or it was checked.

use super::error::VerifyError;
use super::view::View;
use std::ops::Range;

/// So many bytes are compared before memory is given back.
const STEP: u64 = 1 << 20;

/// File ranges whose content was checked.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<(Range<u64>, &'static str)>,
}

impl Ledger {
    /// So many will be entered.
    pub(super) fn expect(&mut self, entries: usize) {
        self.entries.reserve_exact(entries);
    }

    pub(super) fn enter(
        &mut self,
        offset: u64,
        len: u64,
        what: &'static str,
    ) -> Result<(), VerifyError> {
        let end = offset
            .checked_add(len)
            .ok_or_else(|| VerifyError::damaged(format!("{what} lies outside the file")))?;
        if len > 0 {
            self.entries.push((offset..end, what));
        }
        Ok(())
    }

    /// Every byte that wasn't entered must be the original's or, behind it, filler: `int3` in the added code, else
    /// zero. Returns the entered ranges in the original.
    pub(super) fn close(
        mut self,
        old: &View<'_>,
        new: &View<'_>,
        code: Range<u64>,
        passed: &(dyn Fn(f64) + Sync),
    ) -> Result<Vec<Range<u64>>, VerifyError> {
        let old_len = old.bytes.len() as u64;
        let new_len = new.bytes.len() as u64;
        self.entries.sort_unstable_by_key(|(r, _)| (r.start, r.end));
        for pair in self.entries.windows(2) {
            let ((a, first), (b, second)) = (&pair[0], &pair[1]);
            if a.end > b.start {
                return Err(VerifyError::Overlap {
                    first,
                    second,
                    offset: b.start,
                });
            }
        }
        let (mut at, mut released) = (0, 0);
        let ends = std::iter::once((new_len..new_len, "end"));
        for (range, what) in self.entries.iter().cloned().chain(ends) {
            if range.end > new_len {
                return Err(VerifyError::damaged(format!(
                    "{what} lies outside the file"
                )));
            }
            if range.start < old_len && range.end > old_len {
                return Err(VerifyError::damaged(format!(
                    "{what} crosses the original's end"
                )));
            }
            while at < range.start {
                let part = at..range.start.min(at + STEP);
                at = part.end;
                unchanged(old, new, part, &code)?;
                if at - released >= STEP {
                    passed((at - released) as f64 / new_len as f64);
                    released = at;
                }
            }
            at = range.end;
        }
        passed((new_len - released) as f64 / new_len as f64);
        Ok(self
            .entries
            .into_iter()
            .map(|(r, _)| r)
            .filter(|r| r.start < old_len)
            .collect())
    }
}

fn unchanged(
    old: &View<'_>,
    new: &View<'_>,
    range: Range<u64>,
    code: &Range<u64>,
) -> Result<(), VerifyError> {
    let old_len = old.bytes.len() as u64;
    let differs = |from: Range<u64>, same: &dyn Fn(usize) -> bool| {
        from.clone()
            .find(|&i| !same(i as usize))
            .map(|offset| VerifyError::Changed { offset })
    };
    let kept = range.start..range.end.min(old_len);
    if kept.start < kept.end {
        let part = kept.start as usize..kept.end as usize;
        // The comparison of slices is fast; the search for the place is only for the message.
        if old.bytes[part.clone()] != new.bytes[part] {
            return Err(differs(kept, &|i| old.bytes[i] == new.bytes[i]).unwrap_or(
                VerifyError::Changed {
                    offset: range.start,
                },
            ));
        }
    }
    let added = range.start.max(old_len)..range.end;
    for part in [
        added.start..added.end.min(code.start),
        added.start.max(code.start)..added.end.min(code.end),
        added.start.max(code.end)..added.end,
    ] {
        let filler = if code.contains(&part.start) {
            crate::stubs::UNREACHABLE
        } else {
            0
        };
        if part.start < part.end
            && let bytes = &new.bytes[part.start as usize..part.end as usize]
            && let Some(i) = first_other(bytes, filler)
        {
            return Err(VerifyError::Changed {
                offset: part.start + i as u64,
            });
        }
    }
    Ok(())
}

/// Position of the first byte that isn't `filler`. Block by block: holes may be gigabytes long.
fn first_other(bytes: &[u8], filler: u8) -> Option<usize> {
    let block = [filler; 4096];
    let (at, part) = (0..)
        .step_by(block.len())
        .zip(bytes.chunks(block.len()))
        .find(|(_, part)| *part != &block[..part.len()])?;
    Some(at + part.iter().position(|&b| b != filler)?)
}
