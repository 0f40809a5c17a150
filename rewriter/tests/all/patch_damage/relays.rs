//! Damage to what leads calls through registers to probes.

use super::{Case, PROGRAM, add};
use crate::patch_support::Lab;
use ompfuse_rewriter::patch::{Patched, patch};
use ompfuse_rewriter::plan::PlanOptions;
use ompfuse_rewriter::scan;
use ompfuse_rewriter::verify::verify;

/// A program of the large model: all its calls go through registers.
fn case(command: &str) -> Option<Case> {
    let lab = Lab::new();
    let command = format!("{command} -fopenmp -mcmodel=large");
    let original = lab.compile("program", PROGRAM, &command)?;
    let old = std::fs::read(&original).unwrap();
    let scan = scan(&old, "program").unwrap();
    assert!(!scan.relays.is_empty());
    let Patched { bytes, plan, .. } = patch(&old, &scan, &PlanOptions::default()).unwrap();
    Some(Case {
        old,
        new: bytes,
        plan,
    })
}

#[test]
fn damaged_relays_are_rejected() {
    for flags in ["-fno-pie -no-pie", "-fPIE -pie"] {
        let Some(case) = case(&format!("gcc -O2 {flags}")) else {
            return;
        };
        let load = case.chunk("load");
        let code = case.chunk("code");
        let relay = case.new[code.clone()]
            .windows(7)
            .position(|w| w == [0xf3, 0x0f, 0x1e, 0xfa, 0x4c, 0x8d, 0x1d]);
        let relay = code.start + relay.expect("a relay");
        let patched = case.plan.patched();
        // Note, sites and their constants, windows; the first of them is relayed.
        let (sites, windows) = (case.site_table(), case.window_table());
        let table = windows + 8 + 32 * case.plan.detours.len();
        let first = case.plan.calls.iter().find(|c| c.relayed).unwrap().site;
        let first = patched.iter().position(|&id| id == first).unwrap();
        let damages: &[(&str, usize, i32, &str)] = &[
            ("load: number", load.start + 2, 1, "instead of"),
            ("load: opcode", load.start + 1, 1, "instead of"),
            ("relay: landing pad", relay, 1, "expected `endbr64`"),
            ("relay: return address", relay + 7, 1, "the end of a site"),
            ("relay: comparison", relay + 12, 8, "expected `cmp"),
            ("relay: condition", relay + 16, 1, "a jump to a stub"),
            ("relay: another stub", relay + 17, 12, "expected `"),
            ("relay table: count", table, -1, ""),
            ("relay table: address", table + 8, 16, ""),
            ("relay table: length", table + 16, 1, ""),
            ("relay table: loads", table + 20, 1, ""),
            ("relay table: a load", table + 24, 1, ""),
            ("site: not relayed", sites + 32 * first + 18, -16, ""),
        ];
        for (kind, at, by, words) in damages {
            match case.damaged(|b| add(b, *at, *by)) {
                Err(e) => assert!(e.to_string().contains(words), "{kind}: {e}"),
                Ok(()) => panic!("{kind}: accepted"),
            }
        }
    }
}

/// A direct call leads to a relay only by way of code that goes on to what the register holds.
#[test]
fn thunks_that_are_none_are_rejected() {
    let lab = Lab::new();
    let command = "gcc -O2 -fPIE -pie -fopenmp -fno-plt -fcf-protection=none";
    let command = format!("{command} -mindirect-branch=thunk");
    let Some(original) = lab.compile("program", PROGRAM, &command) else {
        return;
    };
    let mut old = std::fs::read(&original).unwrap();
    let scan = scan(&old, "program").unwrap();
    let options = PlanOptions::default();
    let Patched { bytes, .. } = patch(&old, &scan, &options).unwrap();
    assert!(verify(&old, &bytes, None).is_ok());
    let returns: Vec<usize> = (old.windows(5).enumerate())
        .filter(|(_, w)| matches!(w, [0x48 | 0x4c, 0x89, r, 0x24, 0xc3] if r & 0xc7 == 0x04))
        .map(|(at, _)| at + 4)
        .collect();
    assert!(!returns.is_empty());
    returns.into_iter().for_each(|at| old[at] = 0x90);
    let error = patch(&old, &scan, &options).unwrap_err().to_string();
    assert!(error.contains("is not the call that was found"), "{error}");
}

/// Where addresses are read from a table, the code that read them is changed too.
#[test]
fn damaged_reads_of_tables_are_rejected() {
    for level in ["-O0", "-O2"] {
        let command = format!("clang-19 -L/usr/lib/llvm-19/lib {level} -fPIE -pie");
        let Some(case) = case(&command) else { return };
        let loads = case.plan.edits.iter().filter(|e| e.what == "load");
        let (mut numbers, mut calls, mut moves) = (0, 0, 0);
        for edit in loads {
            let at = edit.offset as usize;
            let bytes = &edit.bytes;
            let end = at + bytes.len();
            let damages: &[(&str, usize, i32)] = match bytes[..] {
                [_, 0x8d, .., 0x0f, 0x1f, 0x00] if bytes.len() == 10 => {
                    numbers += 1;
                    &[
                        ("register", at + 2, 8),
                        ("half of the registers", at, 4),
                        ("address", at + 3, 1),
                        ("opcode", at + 1, -2),
                        ("what does nothing", end - 2, 1),
                    ]
                }
                [.., 0xff, 0xd0..=0xd7] => {
                    calls += 1;
                    &[
                        ("what does nothing", at, 1),
                        ("another register", end - 1, 1),
                        ("a jump", end - 1, 16),
                    ]
                }
                _ => {
                    moves += 1;
                    &[("operands", end - 1, 1), ("opcode", end - 2, 2)]
                }
            };
            for &(kind, at, by) in damages {
                let damaged = case.damaged(|b| add(b, at, by));
                assert!(damaged.is_err(), "{level}: {kind} at {at:#x}: {bytes:02x?}");
            }
        }
        assert!(
            numbers > 0 && calls + moves > 0,
            "{level}: {numbers} {calls} {moves}"
        );
    }
}
