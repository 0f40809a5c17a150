//! Damage to short jumps and to what they lead to.

use super::{Case, add, put};
use crate::patch_support::Lab;
use ompfuse_rewriter::patch::{Patched, patch};
use ompfuse_rewriter::plan::PlanOptions;
use ompfuse_rewriter::scan_scarce;
use ompfuse_rewriter::trampoline::Detour;

/// Loops that gcc inlines, and whose ends are seen.
const PROGRAM: &str = "double a[64], b[64];
void loops(int n, int m) {
#pragma omp parallel
    {
#pragma omp for nowait
        for (int i = 0; i < n; i++) a[i] += i;
#pragma omp for nowait
        for (int i = 0; i < m; i++) b[i] += 2 * i;
#pragma omp barrier
#pragma omp for nowait
        for (int i = 0; i < m; i++) a[i] += b[i];
#pragma omp barrier
    }
}
int main(void) { loops(60, 40); return (int)a[3]; }
";

/// A program whose inline probes have short jumps.
fn case(flags: &str) -> Option<Case> {
    let lab = Lab::new();
    let original = lab.compile("program", PROGRAM, &format!("gcc -fopenmp -O2 {flags}"))?;
    let old = std::fs::read(&original).unwrap();
    let scan = scan_scarce(&old, "program").unwrap();
    let Patched { bytes, plan, .. } = patch(&old, &scan, &PlanOptions::default()).unwrap();
    Some(Case {
        old,
        new: bytes,
        plan,
    })
}

impl Case {
    /// File offset of an address in the original's code.
    fn offset(&self, va: u64) -> usize {
        let detour = &self.plan.detours[0];
        let edit = self.plan.edits.iter().find(|e| e.what == "window").unwrap();
        (va - detour.start.0 + edit.offset) as usize
    }
}

#[test]
fn damaged_islands_are_rejected() {
    for flags in ["-fno-pie -no-pie", "-fPIE -pie"] {
        let Some(case) = case(flags) else { return };
        let all = &case.plan.detours;
        let short: Vec<&Detour> = all.iter().filter(|d| d.island.is_some()).collect();
        let [one, two, ..] = short[..] else {
            panic!("{flags}: too few short jumps: {all:x?}");
        };
        let (here, there) = (one.island.unwrap().0, two.island.unwrap().0);
        let host = all
            .iter()
            .rfind(|d| d.start.0 <= here && d.island.is_none())
            .unwrap();
        let jump = case.offset(one.start.0);
        let island = case.offset(here);
        let other = (two.trampoline.0 as i64 - one.trampoline.0 as i64) as i32;
        let windows = case.window_table();
        let entry = all.iter().position(|d| d == one).unwrap();
        let field = windows + 8 + 32 * entry + 24;
        let nowhere = |b: &mut Vec<u8>| {
            put(b, field, &(one.start.0 + 64 * 1024).to_le_bytes());
        };
        let none = |b: &mut Vec<u8>| put(b, field, &[0; 8]);
        let swapped = |b: &mut Vec<u8>| {
            put(b, field, &there.to_le_bytes());
            b[jump + 1] = b[jump + 1].wrapping_add((there as i64 - here as i64) as u8);
        };
        // The jump of the window itself taken for an island.
        let own = |b: &mut Vec<u8>| {
            put(b, field, &host.start.0.to_le_bytes());
            b[jump + 1] = b[jump + 1].wrapping_sub((here - host.start.0) as u8);
        };
        type Act<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;
        let more = |at: usize, by: i32| -> Act<'_> { Box::new(move |b| add(b, at, by)) };
        let flip = |at: usize, bit: u8| -> Act<'_> { Box::new(move |b| b[at] ^= bit) };
        let damages: Vec<(&str, Act<'_>, &str)> = vec![
            ("short jump: displacement", flip(jump + 1, 1), "expected `"),
            ("short jump: another opcode", flip(jump, 1), "expected `"),
            (
                "island: displacement",
                more(island + 1, 1),
                "expected `jmp 0x",
            ),
            ("island: opcode", flip(island, 1), "expected `"),
            (
                "island: another trampoline",
                more(island + 1, other),
                "expected `jmp 0x",
            ),
            (
                "window table: an island outside",
                Box::new(nowhere),
                "expected `",
            ),
            ("window table: no island", Box::new(none), "expected `"),
            ("both: another's island", Box::new(swapped), ""),
            (
                "both: the jump of a window",
                Box::new(own),
                "an island in another window",
            ),
            (
                "window: its jump",
                flip(case.offset(host.start.0) + 1, 1),
                "expected `jmp 0x",
            ),
        ];
        for (kind, damage, words) in damages {
            match case.damaged(|b| damage(b)) {
                Err(e) => assert!(e.to_string().contains(words), "{kind}: {e}"),
                Ok(()) => panic!("{kind}: accepted"),
            }
        }
        let beyond = case.offset(here + 5);
        if case.offset(host.start.0) + host.len as usize > beyond {
            assert!(case.damaged(|b| b[beyond] ^= 1).is_err(), "filler");
        }
    }
}
