//! Which windows something elsewhere in the file leads into.

use crate::scan::image::Kind;
use crate::scan::search::{self, Span};
use crate::scan::{Module, release};
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeSet;
use std::ops::Range;

/// Addresses inside of windows that direct branches elsewhere in the file, or pointers, lead to, or that instructions make. `windows`: disjoint,
/// ascending.
pub(crate) fn branches_into(module: &Module<'_>, windows: &[Range<u64>]) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return out;
    };
    let span = Span {
        low: first.start,
        high: last.end,
    };
    let map = Map::of(span, windows);
    let inside = |va: u64| {
        let before = windows.partition_point(|w| w.start < va);
        before > 0 && va < windows[before - 1].end
    };
    let absolute = module.image.kind == Kind::Executable;
    for (va, code) in module.image.code() {
        for start in (0..code.len()).step_by(PIECE) {
            // A branch may begin in one piece and end in the next.
            let piece = &code[start..code.len().min(start + PIECE + LONGEST)];
            let va = va.wrapping_add(start as u64);
            out.extend(search::branches(piece, va, |opcode, hit| {
                let here = va.wrapping_add((hit.at - opcode) as u64);
                let leads = map.may_hold(hit.to) && inside(hit.to);
                (leads && confirmed(module, here, hit.to)).then_some(hit.to)
            }));
            out.extend(search::made(piece, va, absolute, |to| {
                (map.may_hold(to) && inside(to)).then_some(to)
            }));
            module.release.read(piece.len() as u64);
        }
    }
    // Entries that are no functions of their own have symbols, too.
    let symbols = module.symbols.iter().chain(&module.dynamic.symbols);
    let symbols = symbols.filter(|s| s.defined).map(|s| s.va);
    let pointers = module.dynamic.addresses().chain(symbols);
    let pointers = pointers.chain(module.pointers().iter().copied());
    out.extend(pointers.filter(|&to| map.may_hold(to) && inside(to)));
    out
}

/// Bytes that are searched before memory is given back.
const PIECE: usize = release::STEP as usize;
/// Bytes of the longest branch that is searched for.
const LONGEST: usize = 6;

/// Which parts of a span hold windows: most addresses need no search for theirs.
struct Map {
    span: Span,
    parts: Vec<u64>,
}

impl Map {
    /// Bytes to a part.
    const PART: u64 = 16;

    fn of(span: Span, windows: &[Range<u64>]) -> Map {
        let len = (span.high - span.low) / Map::PART / 64 + 1;
        let mut parts = vec![0u64; usize::try_from(len).unwrap_or(0)];
        for window in windows {
            let at = |va: u64| (va - span.low) / Map::PART;
            for at in at(window.start)..=at(window.end) {
                if let Some(word) = parts.get_mut((at / 64) as usize) {
                    *word |= 1 << (at % 64);
                }
            }
        }
        Map { span, parts }
    }

    fn may_hold(&self, va: u64) -> bool {
        let Some(at) = va.checked_sub(self.span.low) else {
            return false;
        };
        let at = at / Map::PART;
        let word = self
            .parts
            .get(usize::try_from(at / 64).unwrap_or(usize::MAX));
        word.is_some_and(|w| w >> (at % 64) & 1 == 1)
    }
}

/// Whether the bytes at `here` are an instruction that leads to `to`, not a part of one that looks so.
fn confirmed(module: &Module<'_>, here: u64, to: u64) -> bool {
    let Some(function) = module.functions.at(here).map(|i| module.functions.get(i)) else {
        return true;
    };
    let Some(code) = module.image.rest(function.start) else {
        return true;
    };
    let mut decoder = Decoder::with_ip(64, code, function.start, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() <= here {
        let insn = decoder.decode();
        if (insn.ip()..insn.next_ip()).contains(&here) {
            return insn.is_invalid() || insn.near_branch_target() == to;
        }
    }
    true
}
