//! The search for displacements that lead into some ranges, at memory speed: most bytes of a program are looked at
//! here only.

use super::bytes::u32_at;
use rayon::prelude::*;

/// Bytes that are compared at once; the compiler makes vector instructions of it.
const BLOCK: usize = 64;
/// Bytes that a thread searches at a time.
const SHARE: usize = 1 << 20;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub low: u64,
    pub high: u64,
}

impl Span {
    /// The least range that holds these addresses; empty without any.
    pub(crate) fn of(addresses: impl Iterator<Item = u64>) -> Option<Span> {
        addresses.fold(None, |span: Option<Span>, va| {
            let (low, high) = span.map_or((va, va), |s| (s.low.min(va), s.high.max(va)));
            Some(Span { low, high })
        })
    }

    pub(crate) fn holds(self, va: u64) -> bool {
        (self.low..=self.high).contains(&va)
    }
}

/// A 4-byte displacement in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Its offset in the code.
    pub at: usize,
    /// Where it leads, if it ends its instruction.
    pub to: u64,
}

/// Every offset of `code`, which lies at `va`, that may be the displacement of a direct call, jump or conditional jump, and
/// that `wanted` wants; with the length of the opcode before it. For targets that lie all over the code, where their range
/// tells nothing.
pub(crate) fn branches<T: Send>(
    code: &[u8],
    va: u64,
    wanted: impl Fn(usize, Hit) -> Option<T> + Sync,
) -> Vec<T> {
    let leads = |opcode: usize, at: usize| {
        let displacement = u32_at(code, at)?.cast_signed();
        let end = va.wrapping_add(at as u64 + 4);
        let to = end.wrapping_add_signed(i64::from(displacement));
        wanted(opcode, Hit { at, to })
    };
    let shares: Vec<Vec<T>> = (0..code.len().div_ceil(SHARE))
        .into_par_iter()
        .map(|n| {
            let start = n * SHARE;
            let here = &code[start..(start + SHARE).min(code.len())];
            let short = memchr::memchr2_iter(0xe8, 0xe9, here).map(|at| (1, start + at + 1));
            let long = memchr::memchr_iter(0x0f, here)
                .map(|at| (2, start + at + 2))
                .filter(|&(_, at)| code.get(at - 1).is_some_and(|b| b & 0xf0 == 0x80));
            short
                .chain(long)
                .filter_map(|(opcode, at)| leads(opcode, at))
                .collect()
        })
        .collect();
    shares.into_iter().flatten().collect()
}

/// Addresses that instructions in `code`, which lies at `va`, may make, and that `wanted` wants: those that `lea` makes relative to
/// its own, and with `absolute` all that four bytes hold.
pub(crate) fn made<T: Send>(
    code: &[u8],
    va: u64,
    absolute: bool,
    wanted: impl Fn(u64) -> Option<T> + Sync,
) -> Vec<T> {
    const LEA: u8 = 0x8d;
    let relative = |at: usize| {
        // mod 0, r/m 5: relative to the next instruction.
        code.get(at + 1).filter(|b| **b & 0xc7 == 5)?;
        let displacement = u32_at(code, at + 2)?.cast_signed();
        let end = va.wrapping_add(at as u64 + 6);
        wanted(end.wrapping_add_signed(i64::from(displacement)))
    };
    let shares: Vec<Vec<T>> = (0..code.len().div_ceil(SHARE))
        .into_par_iter()
        .map(|n| {
            let here = n * SHARE..((n + 1) * SHARE).min(code.len());
            let all = memchr::memchr_iter(LEA, &code[here.clone()]);
            let mut found: Vec<T> = all.filter_map(|at| relative(here.start + at)).collect();
            if absolute {
                let words = here.filter_map(|at| u32_at(code, at));
                found.extend(words.filter_map(|word| wanted(u64::from(word))));
            }
            found
        })
        .collect();
    shares.into_iter().flatten().collect()
}

/// Every offset of `code`, which lies at `va`, whose four bytes would lead into one of the ranges as the last of an
/// instruction, and that `wanted` wants; ascending.
pub(crate) fn displacements<T: Send>(
    code: &[u8],
    va: u64,
    spans: &[Span],
    wanted: impl Fn(Hit) -> Option<T> + Sync,
) -> Vec<T> {
    let shares: Vec<Vec<T>> = (0..code.len().div_ceil(SHARE))
        .into_par_iter()
        .map(|n| {
            let start = n * SHARE;
            // Displacements that begin in the share may end behind it.
            let end = (start + SHARE + 3).min(code.len());
            let mut out = Vec::new();
            share(
                &code[start..end],
                va.wrapping_add(start as u64),
                spans,
                |hit| {
                    let at = start + hit.at;
                    out.extend(wanted(Hit { at, ..hit }));
                },
            );
            out
        })
        .collect();
    shares.into_iter().flatten().collect()
}

fn share(code: &[u8], va: u64, spans: &[Span], mut found: impl FnMut(Hit)) {
    let mut look = |at: usize| {
        let Some(displacement) = u32_at(code, at) else {
            return;
        };
        let to = va
            .wrapping_add(at as u64 + 4)
            .wrapping_add_signed(i64::from(displacement.cast_signed()));
        if spans.iter().any(|s| s.holds(to)) {
            found(Hit { at, to });
        }
    };
    // In 32 bits: a range that is too long for them is looked at address by address.
    let narrow: Option<Vec<(u32, u32)>> = spans
        .iter()
        .map(|s| {
            let len = u32::try_from(s.high - s.low).ok()?;
            Some((s.low.wrapping_sub(va).wrapping_sub(4) as u32, len))
        })
        .collect();
    let mut at = 0;
    if let Some(narrow) = narrow {
        while at + BLOCK + 3 <= code.len() {
            let block = &code[at..at + BLOCK + 3];
            let mut shifts = [false; 4];
            for &(low, len) in &narrow {
                may_hold(block, at as u32, low, len, &mut shifts);
            }
            if shifts.contains(&true) {
                let here = (0..BLOCK).filter(|n| shifts[n % 4]);
                here.for_each(|n| look(at + n));
            }
            at += BLOCK;
        }
    }
    (at..code.len()).for_each(look);
}

/// Which displacements in the block, which lies at offset `at`, lead to `low..=low + len` modulo 2^32: by their offsets
/// modulo 4.
fn may_hold(block: &[u8], at: u32, low: u32, len: u32, shifts: &mut [bool; 4]) {
    for (shift, found) in shifts.iter_mut().enumerate() {
        let mut any = 0u32;
        let words = block[shift..shift + BLOCK].as_chunks::<4>().0;
        let first = at.wrapping_add(shift as u32).wrapping_sub(low);
        for (n, word) in (0u32..).zip(words) {
            let distance = u32::from_le_bytes(*word).wrapping_add(first.wrapping_add(4 * n));
            any |= u32::from(distance <= len);
        }
        *found |= any != 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every displacement into the ranges, one address at a time.
    fn slowly(code: &[u8], va: u64, spans: &[Span]) -> Vec<Hit> {
        let at = |at: usize| {
            let displacement = i32::from_le_bytes(code[at..at + 4].try_into().unwrap());
            let to = va
                .wrapping_add(at as u64 + 4)
                .wrapping_add_signed(displacement.into());
            let hit = spans.iter().any(|s| s.low <= to && to <= s.high);
            hit.then_some(Hit { at, to })
        };
        (0..code.len().saturating_sub(3)).filter_map(at).collect()
    }

    #[test]
    fn blocks_find_what_bytes_find() {
        // A fixed pseudo-random sequence, with small displacements in every position of a block.
        let mut state = 1u32;
        let mut code: Vec<u8> = (0..SHARE + 777)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        for n in 0..2000 {
            let at = n * 523 % (code.len() - 4);
            code[at..at + 4].copy_from_slice(&(n as i32 * 97 - 90_000).to_le_bytes());
        }
        let va = 0x40_1000;
        let span = |low, high| Span { low, high };
        for spans in [
            vec![span(va + 0x100, va + 0x8000)],
            vec![
                span(va - 0x2000, va - 0x1000),
                span(va + 0x9_0000, va + 0x9_0008),
            ],
            vec![span(0, u64::MAX)],
            vec![],
        ] {
            let found = displacements(&code, va, &spans, Some);
            assert_eq!(found, slowly(&code, va, &spans));
        }
        let near = displacements(&code, va, &[span(va + 0x100, va + 0x8000)], Some);
        assert!(near.len() > 10, "{}", near.len());
        assert_eq!(
            displacements(&code[..3], va, &[span(0, u64::MAX)], Some),
            []
        );
    }

    #[test]
    fn branches_on_the_borders_of_shares() {
        let mut code = vec![0x90u8; SHARE + 64];
        let mut expected = Vec::new();
        for (at, opcode) in [
            (0, &[0xe8][..]),
            (100, &[0x0f, 0x84]),
            (SHARE - 1, &[0x0f, 0x8f]),
            (SHARE + 8, &[0xe9]),
        ] {
            let field = at + opcode.len();
            code[at..field].copy_from_slice(opcode);
            code[field..field + 4].copy_from_slice(&(-8i32).to_le_bytes());
            expected.push((opcode.len(), field, 0x1000 + field as u64 - 4));
        }
        // No opcode; and one without room for its displacement.
        code[200..202].copy_from_slice(&[0x0f, 0x94]);
        code[SHARE + 62] = 0xe8;
        let mut found = branches(&code, 0x1000, |n, hit| Some((n, hit.at, hit.to)));
        found.sort_unstable_by_key(|f| f.1);
        assert_eq!(found, expected);
    }

    #[test]
    fn spans_of_addresses() {
        assert_eq!(Span::of([].into_iter()), None);
        assert_eq!(
            Span::of([7, 3, 5].into_iter()),
            Some(Span { low: 3, high: 7 })
        );
    }
}
