//! Which windows something elsewhere in the file leads into.

use crate::scan::image::Kind;
use crate::scan::search::{self, Span};
use crate::scan::{Module, madvise, traced};
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
    let mut branches: Vec<(u64, u64)> = Vec::new();
    for window in windows {
        branches.extend(short(module, window));
    }
    for (va, code) in module.image.code() {
        for start in (0..code.len()).step_by(PIECE) {
            // A branch may begin in one piece and end in the next.
            let piece = &code[start..code.len().min(start + PIECE + LONGEST)];
            let va = va.wrapping_add(start as u64);
            branches.extend(search::branches(piece, va, |opcode, hit| {
                let here = va.wrapping_add((hit.at - opcode) as u64);
                let leads = map.may_hold(hit.to) && inside(hit.to);
                leads.then_some((here, hit.to))
            }));
            out.extend(search::made(piece, va, absolute, |to| {
                (map.may_hold(to) && inside(to)).then_some(to)
            }));
            module.madvise.read(piece.len() as u64);
        }
    }
    branches.sort_unstable();
    branches.dedup();
    let same =
        |a: &(u64, u64), b: &(u64, u64)| module.functions.at(a.0) == module.functions.at(b.0);
    for branches in branches.chunk_by(same) {
        confirm(module, branches, &mut out);
    }
    // Entries that are no functions of their own have symbols, too.
    let symbols = module.symbols.iter().chain(&module.dynamic.symbols);
    let symbols = symbols.filter(|s| s.defined).map(|s| s.va);
    let pointers = module.dynamic.addresses().chain(symbols);
    let pointers = pointers.chain(module.pointers().iter().copied());
    let pointers = pointers.chain(traced::places(&module.image));
    out.extend(pointers.filter(|&to| map.may_hold(to) && inside(to)));
    out
}

/// Bytes that are searched before memory is given back.
const PIECE: usize = madvise::STEP as usize;
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

/// Bytes around a window that may be short branches into it, and where those lead: of code that no known branch leads to.
fn short(module: &Module<'_>, window: &Range<u64>) -> Vec<(u64, u64)> {
    /// So far does a short branch lead, from its beginning.
    const REACH: u64 = 130;
    let Some(load) = module.image.load_at(window.start) else {
        return Vec::new();
    };
    let from = window.start.saturating_sub(REACH).max(load.va);
    let code = module.image.rest(from).unwrap_or_default();
    let len = (window.end + REACH - from) as usize;
    let code = &code[..len.min(code.len())];
    let pairs = (from..).zip(code.windows(2));
    let leads = pairs.filter_map(|(here, pair)| {
        let is_branch = matches!(pair[0], 0xeb | 0x70..=0x7f | 0xe0..=0xe3);
        let distance = i64::from(pair[1].cast_signed());
        let to = here.wrapping_add(2).wrapping_add_signed(distance);
        let inside = to > window.start && to < window.end;
        (is_branch && inside).then_some((here, to))
    });
    leads.collect()
}

/// Adds where those of a function's branches lead that are instructions, not parts of some that look so. `branches`: ascending.
fn confirm(module: &Module<'_>, branches: &[(u64, u64)], out: &mut BTreeSet<u64>) {
    let Some(&(first, _)) = branches.first() else {
        return;
    };
    let function = module.functions.at(first).map(|i| module.functions.get(i));
    let code = function.and_then(|f| Some((f.start, module.image.rest(f.start)?)));
    let mut rest = branches.iter().peekable();
    if let Some((start, code)) = code {
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        while rest.peek().is_some() && decoder.can_decode() {
            let insn = decoder.decode();
            let is_it = |to: u64| insn.is_invalid() || insn.near_branch_target() == to;
            while let Some((_, to)) = rest.next_if(|(here, _)| *here < insn.next_ip()) {
                out.extend(Some(*to).filter(|to| is_it(*to)));
            }
        }
    }
    out.extend(rest.map(|(_, to)| *to));
}
