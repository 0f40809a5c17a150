//! Stubs: the linker's code through which functions of other files are called.

use super::Entries;
use crate::scan::bytes::u32_at;
use crate::scan::image::Image;
use crate::thunk::is_pushing_stub;
use rustc_hash::FxHashSet;
use std::ops::Range;

impl<'a> Entries<'a> {
    /// Finds the stubs: `jmp [rip + slot]`, or `mov r11, [rip + slot]` and a branch to code that jumps to `r11`
    /// without prediction (retpolines).
    pub(super) fn find_stubs(&mut self, image: &Image<'a>, all: &FxHashSet<u64>) {
        let sections: Vec<(u64, u64)> = image
            .sections
            .iter()
            .filter(|s| s.name.starts_with(".plt") && s.va != 0)
            .map(|s| (s.va, s.va.saturating_add(s.size)))
            .collect();
        for (va, code) in image.code() {
            let offset = |at: u64| (at.saturating_sub(va) as usize).min(code.len());
            let ranges = match sections.is_empty() {
                true => &[(0, u64::MAX)][..],
                false => &sections,
            };
            let uses = |s: &(u64, u64)| slot_uses(code, offset(s.0)..offset(s.1));
            for (at, field) in ranges.iter().flat_map(uses) {
                let here = va.wrapping_add(at as u64);
                let Some(disp) = u32_at(code, field) else {
                    continue;
                };
                let slot = va
                    .wrapping_add(field as u64 + 4)
                    .wrapping_add_signed(i64::from(disp as i32));
                if !all.contains(&slot) {
                    continue;
                }
                let callee = self.slots.get(&slot).copied();
                let no_return = self.no_return_slots.contains(&slot);
                let start = stub_start(code, at);
                let start_va = va.wrapping_add(start as u64);
                let is_stub = !sections.is_empty()
                    || looks_like_stub(code, start_va, field + 4)
                    || has_number(code, at) && start_va.is_multiple_of(16);
                if !is_stub {
                    continue;
                }
                // The byte before the displacement's is what a load's candidate is found by.
                self.stubs.extend([start_va, here, here + 1]);
                if let Some(number) = callee {
                    self.targets.insert(start_va, number);
                }
                if no_return {
                    self.no_return.insert(start_va);
                }
            }
        }
    }

    /// Finds the stubs that gcc puts before each call: see [`is_pushing_stub`].
    pub(super) fn find_pushing_stubs(&mut self, image: &Image<'a>, all: &FxHashSet<u64>) {
        for (va, code) in image.code() {
            for at in memchr::memmem::find_iter(code, &[0xff, 0x35]) {
                let here = va.wrapping_add(at as u64);
                let slot = u32_at(code, at + 2).map(|disp| {
                    here.wrapping_add(6)
                        .wrapping_add_signed(i64::from(disp as i32))
                });
                let Some(slot) = slot.filter(|slot| all.contains(slot)) else {
                    continue;
                };
                if is_pushing_stub(image, here) {
                    self.stubs.insert(here);
                    if let Some(&number) = self.slots.get(&slot) {
                        self.targets.insert(here, number);
                    }
                    if self.no_return_slots.contains(&slot) {
                        self.no_return.insert(here);
                    }
                }
            }
        }
    }
}

/// Offsets of `jmp [rip + disp32]` and of a retpoline's `mov r11, [rip + disp32]` in a range of code, each with that of its displacement.
fn slot_uses(code: &[u8], range: Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
    const LONGEST: usize = 3;
    let here = &code[range.start..(range.end + LONGEST - 1).min(code.len())];
    let jumps = memchr::memmem::find_iter(here, &[0xff, 0x25]).map(|at| (at, at + 2));
    let loads = memchr::memmem::find_iter(here, &[0x4c, 0x8b, 0x1d]).map(|at| (at, at + 3));
    let loads = loads.filter(move |&(at, _)| {
        let next = code.get(range.start + at + 7);
        matches!(next, Some(0xe8 | 0xe9))
    });
    let uses = jumps
        .chain(loads)
        .filter(move |&(at, _)| range.start + at < range.end);
    uses.map(move |(at, field)| (range.start + at, range.start + field))
}

/// Where the stub with this jump begins: before `bnd`, mold's number of the slot (`mov r11d, 5`) and `endbr64`.
fn stub_start(code: &[u8], jump: usize) -> usize {
    let mut start = jump;
    if has_number(code, start) {
        start -= 6;
    }
    if start >= 1 && code[start - 1] == 0xf2 {
        start -= 1;
    }
    if start >= 4 && code[start - 4..start] == [0xf3, 0x0f, 0x1e, 0xfa] {
        start -= 4;
    }
    start
}

/// Whether `mov r11d, constant` stands before a stub's jump, where mold's code that asks the loader looks for the number.
fn has_number(code: &[u8], jump: usize) -> bool {
    jump >= 6 && code[jump - 6..].starts_with(&[0x41, 0xbb])
}

/// Without section headers: a stub is aligned and filled with a push, a jump or a nop. `end`: offset behind the
/// instruction that uses the slot.
fn looks_like_stub(code: &[u8], start_va: u64, end: usize) -> bool {
    let after = code.get(end..).unwrap_or(&[]);
    start_va.is_multiple_of(8)
        && match after {
            [0x68, _, _, _, _, 0xe9, ..] => start_va.is_multiple_of(16),
            [0x66, 0x90, ..] | [0x0f, 0x1f, ..] | [0x66, 0x0f, 0x1f, ..] => true,
            [0xcc, 0xcc, ..] => true,
            // A retpoline: `jmp` or `call` to it; the lazy form goes on with a jump, and a push for the resolver.
            [0xe9, _, _, _, _, 0xcc, ..] => start_va.is_multiple_of(16),
            [0xe8, _, _, _, _, 0xe9, _, _, _, _, 0x68, ..] => start_va.is_multiple_of(16),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All uses, of which the same are found in a range that is a part.
    fn uses(code: &[u8]) -> Vec<(usize, usize)> {
        let all: Vec<_> = slot_uses(code, 0..code.len()).collect();
        for &(at, field) in &all {
            let mut here = slot_uses(code, at..at + 1);
            assert_eq!((here.next(), here.next()), (Some((at, field)), None));
            assert_eq!(slot_uses(code, at + 1..code.len()).next(), None);
            assert_eq!(slot_uses(code, 0..at).next(), None);
        }
        all
    }

    #[test]
    fn stubs_begin_before_their_prefixes() {
        let code = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x44, 0, 0,
        ];
        assert_eq!(uses(&code), [(5, 7)]);
        assert_eq!(stub_start(&code, 5), 0);
        assert!(looks_like_stub(&code, 0x1000, 11));
        assert!(!looks_like_stub(&code, 0x1004, 11));
    }

    #[test]
    fn stubs_of_mold_begin_before_their_number() {
        let code = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 5, 0, 0, 0, 0xff, 0x25, 1, 2, 3, 4,
        ];
        assert_eq!(uses(&code), [(10, 12)]);
        assert_eq!(stub_start(&code, 10), 0);
        assert!(has_number(&code, 10) && !has_number(&code, 4));
    }

    #[test]
    fn retpolines_are_stubs() {
        let now = [
            0x4c, 0x8b, 0x1d, 1, 2, 3, 4, 0xe9, 1, 2, 3, 4, 0xcc, 0xcc, 0xcc, 0xcc,
        ];
        assert_eq!(uses(&now), [(0, 3)]);
        assert!(looks_like_stub(&now, 0x1000, 7));
        let lazy = [
            0x4c, 0x8b, 0x1d, 1, 2, 3, 4, 0xe8, 1, 2, 3, 4, 0xe9, 1, 2, 3, 4, 0x68, 0, 0, 0, 0,
        ];
        assert!(looks_like_stub(&lazy, 0x1000, 7) && !looks_like_stub(&lazy, 0x1008, 7));
        // A program's own load of the slot.
        assert_eq!(uses(&[0x4c, 0x8b, 0x1d, 1, 2, 3, 4, 0x41]), []);
    }
}
