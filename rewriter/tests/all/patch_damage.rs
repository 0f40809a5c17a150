//! `verify` rejects what is not exactly what was planned, with the plan and without.

mod elf;
mod islands;
mod kinds;
mod relays;

use crate::patch_support::{Lab, scan};
use ompfuse_rewriter::patch::{Patched, patch};
use ompfuse_rewriter::plan::{PatchPlan, PlanOptions, plan};
use ompfuse_rewriter::verify::{VerifyError, verify};
use std::collections::BTreeSet;
use std::ops::Range;

const PROGRAM: &str = include_str!("patch_support/program.c");

struct Case {
    old: Vec<u8>,
    new: Vec<u8>,
    plan: PatchPlan,
}

fn case(flags: &str) -> Option<Case> {
    let lab = Lab::new();
    let original = lab.compile("program", PROGRAM, &format!("gcc -fopenmp -O2 {flags}"))?;
    let old = std::fs::read(&original).unwrap();
    let scan = scan(&original, true);
    // Call sites in windows are led elsewhere by the trampoline; keep some windows out, to have both forms.
    let left_out: BTreeSet<u32> = scan
        .windows
        .iter()
        .step_by(2)
        .flat_map(|w| w.sites.clone())
        .collect();
    let selected = (0..scan.sites.len() as u32)
        .filter(|id| !left_out.contains(id))
        .collect();
    let options = PlanOptions {
        selected: Some(selected),
        ..PlanOptions::default()
    };
    let Patched { bytes, plan, .. } = patch(&old, &scan, &options).unwrap();
    Some(Case {
        old,
        new: bytes,
        plan,
    })
}

impl Case {
    fn chunk(&self, what: &str) -> Range<usize> {
        let mut all = self.plan.edits.iter().chain(&self.plan.appended);
        let range = all.find(|c| c.what == what).unwrap().range();
        range.start as usize..range.end as usize
    }

    /// Offset of the table of sites, behind the note.
    fn site_table(&self) -> usize {
        self.chunk("tables").start + 56
    }

    /// Offset of the table of windows, behind the sites and their constants.
    fn window_table(&self) -> usize {
        let sites = self.site_table();
        let all = self.plan.patched().len();
        let with_constants = (0..all)
            .filter(|n| self.new[sites + 32 * n + 28..sites + 32 * n + 32] != [0; 4])
            .count();
        sites + 32 * all + 16 * with_constants
    }

    /// What `verify` says of the damaged file without a plan.
    fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> Result<(), VerifyError> {
        let mut bytes = self.new.clone();
        damage(&mut bytes);
        assert!(bytes != self.new);
        assert!(verify(&self.old, &bytes, Some(&self.plan)).is_err());
        verify(&self.old, &bytes, None).map(|_| ())
    }
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

fn add(bytes: &mut [u8], at: usize, n: i32) {
    let old = i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    put(bytes, at, &(old + n).to_le_bytes());
}

#[test]
fn every_kind_of_damage_is_rejected_by_its_check() {
    for (flags, direct) in [("-no-pie", true), ("-no-pie -fno-plt", false), ("", true)] {
        let Some(case) = case(flags) else { return };
        let mut wrong = Vec::new();
        println!("{:<50} rejected by (gcc {flags})", "damage");
        for (kind, damage, words) in kinds::damages(&case, direct) {
            match case.damaged(|b| damage(b)) {
                Err(e) if e.to_string().contains(words) => println!("{kind:<50} {e}"),
                Err(e) => wrong.push(format!("{kind}: {e}, not {words:?}")),
                Ok(()) => wrong.push(format!("{kind}: accepted")),
            }
        }
        assert!(wrong.is_empty(), "gcc {flags}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn other_files_are_named() {
    let Some(case) = case("-no-pie") else { return };
    let mut other = case.old.clone();
    *other.last_mut().unwrap() ^= 1;
    let error = verify(&other, &case.new, None).unwrap_err();
    assert!(matches!(error, VerifyError::OtherOriginal { .. }));
    assert!(verify(&case.old, b"\x7fELF", None).is_err());
    assert!(verify(&case.new, &case.old, None).is_err());
    let tampered = verify(&case.old, &case.old, Some(&case.plan));
    assert!(tampered.is_err(), "the plan said to patch");
}

/// Bytes whose meaning `verify` can't judge without the plan: texts, and unwind rules that mean the same where it matters.
fn undecidable(case: &Case) -> Vec<Range<usize>> {
    let tables = case.chunk("tables");
    let sites_len = 32 * case.plan.patched().len();
    let windows_len = 8 + 32 * case.plan.detours.len();
    vec![
        case.chunk("description"),
        // The library's name, and the unwind information behind it.
        tables.start + 56 + sites_len + windows_len..tables.end,
        case.chunk("debug frames"),
    ]
}

#[test]
fn every_flipped_bit_counts() {
    for flags in ["", "-no-pie -Wl,-z,noseparate-code -Wl,-z,norelro"] {
        let Some(case) = case(flags) else { return };
        let undecidable = undecidable(&case);
        // Densely where something was changed or added, thinly elsewhere.
        let mut state = 1u32;
        let mut random = move || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as usize
        };
        let mut places: Vec<usize> = (0..80).map(|_| random() % case.new.len()).collect();
        for chunk in case.plan.edits.iter().chain(&case.plan.appended) {
            let range = chunk.range();
            let count = if chunk.bytes.len() > 64 { 30 } else { 2 };
            places.extend((0..count).map(|_| range.start as usize + random() % chunk.bytes.len()));
        }
        let (mut missed, mut wrong) = (0, Vec::new());
        for at in places {
            let bit = 1 << (random() % 8);
            match case.damaged(|b| b[at] ^= bit) {
                Err(_) => {}
                Ok(()) if undecidable.iter().any(|r| r.contains(&at)) => missed += 1,
                Ok(()) => {
                    let mut chunks = case.plan.edits.iter().chain(&case.plan.appended);
                    let chunk = chunks.find(|c| c.range().contains(&(at as u64)));
                    let place = chunk.map(|c| (c.what, at as u64 - c.offset));
                    let around = &case.new[at.saturating_sub(8)..(at + 8).min(case.new.len())];
                    wrong.push(format!(
                        "bit {bit:#x} of byte {at:#x}: {place:?}, {around:02x?}"
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "went unnoticed:\n{}", wrong.join("\n"));
        println!("{missed} flips can't be judged without the plan");
    }
}

#[test]
fn patching_twice_is_refused() {
    let Some(case) = case("") else { return };
    let lab = Lab::new();
    let patched = lab.write("patched", &case.new);
    let error = plan(&case.new, scan(&patched, false), &PlanOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot patch patched: it is patched already; start from the original"
    );
}
