//! What `scan` finds is patched; without the runtime library, and with one that only hands calls on, programs behave
//! as before.

use crate::patch_support::{Lab, assert_same};
use ompfuse_format::site::{Mechanism, Outcome};
use ompfuse_rewriter::model::Scan;
use ompfuse_rewriter::patch::patch;
use ompfuse_rewriter::plan::PlanOptions;
use ompfuse_rewriter::{scan, scan_scarce, self_description};
use std::path::Path;

const PROGRAM: &str = include_str!("patch_support/program.c");
const EXCEPTIONS: &str = include_str!("patch_support/exceptions.cc");
/// Code whose calls go through registers.
const LARGE: &str = "-O2 -mcmodel=large -no-pie -fno-pie";
const RUNTIME: &str = include_str!("patch_support/runtime.c");

fn check(source: &str, command: &str) {
    println!("{command}");
    let lab = Lab::new();
    let Some(original) = lab.compile("program", source, command) else {
        return;
    };
    let bytes = std::fs::read(&original).unwrap();
    for found in [scan(&bytes, "program"), scan_scarce(&bytes, "program")] {
        patched_as_found(&lab, &original, &bytes, &found.unwrap());
    }
}

fn patched_as_found(lab: &Lab, original: &Path, bytes: &[u8], found: &Scan) {
    let placed = found.sites.iter().filter(|s| s.action.is_some()).count();
    assert!(placed > 0, "nothing to patch");
    for dormant in [true, false] {
        if !dormant {
            lab.compile("libompfuse_runtime.so", RUNTIME, "gcc -O2 -shared -fPIC")
                .unwrap();
        }
        let options = PlanOptions {
            dormant,
            ..PlanOptions::default()
        };
        let patched = patch(bytes, found, &options).unwrap();
        assert_eq!(patched.plan.patched().len(), placed);
        assert_same(original, &lab.write("patched", &patched.bytes));
        let described = self_description(&patched.bytes, "x").unwrap().unwrap();
        let count = described
            .sites
            .iter()
            .filter(|s| s.outcome == Outcome::Patched && s.mechanism != Mechanism::Implied)
            .count();
        assert_eq!(count, placed);
        assert!(
            scan(&patched.bytes, "patched").is_err(),
            "patched files aren't scanned"
        );
    }
}

#[test]
fn gcc_programs() {
    for flags in ompfuse_kit::few(
        &[
            "-O0",
            "-O2",
            "-O3 -no-pie -s",
            "-O2 -fno-plt",
            "-O2 -fcf-protection=full",
            // Calls through registers.
            "-O0 -mcmodel=large -fPIE -pie",
            "-O2 -mcmodel=large -no-pie -fno-pie",
        ],
        3,
    ) {
        check(PROGRAM, &format!("gcc -fopenmp {flags}"));
        check(EXCEPTIONS, &format!("g++ -fopenmp {flags}"));
    }
}

#[test]
fn clang_programs() {
    let clang = "-fopenmp -L/usr/lib/llvm-19/lib -Wl,-rpath,/usr/lib/llvm-19/lib";
    for flags in ompfuse_kit::few(
        &[
            "-O0",
            "-O2",
            "-O3 -no-pie -s",
            "-O2 -fno-plt",
            LARGE,
            // Addresses from a table, by distances.
            "-O0 -mcmodel=large -fPIE -pie",
            "-O2 -mcmodel=large -fPIE -pie",
            "-O3 -mcmodel=large -fPIC -pie -fcf-protection=full",
        ],
        3,
    ) {
        check(PROGRAM, &format!("clang-19 {clang} {flags}"));
        check(EXCEPTIONS, &format!("clang++-19 {clang} {flags}"));
    }
}
