//! Short jumps everywhere: windows of two bytes lead to islands in windows of ten, nearly every instruction of small
//! programs moves, and they behave as before.

use crate::patch_support::{Lab, assert_same, scan_as};
use ompfuse_rewriter::model::{LinkVa, Scan};
use ompfuse_rewriter::patch::patch;
use ompfuse_rewriter::plan::PlanOptions;
use std::collections::BTreeSet;

const PROGRAM: &str = include_str!("patch_support/program.c");
const EXCEPTIONS: &str = include_str!("patch_support/exceptions.cc");

/// Every other window needs ten bytes, to hold the island of the one before or behind.
fn least(window: usize) -> u32 {
    [10, 2][window % 2]
}

/// The options for these windows, each with all of its sites.
fn options(scan: &Scan, windows: impl Iterator<Item = usize>) -> PlanOptions {
    PlanOptions {
        dormant: true,
        selected: Some(
            windows
                .flat_map(|n| scan.windows[n].sites.clone())
                .collect(),
        ),
        ..PlanOptions::default()
    }
}

fn check(source: &str, command: &str) {
    println!("{command}");
    let lab = Lab::new();
    let Some(original) = lab.compile("program", source, command) else {
        return;
    };
    let bytes = std::fs::read(&original).unwrap();
    let mut scan = scan_as(&original, true, least);
    let (mut islands, mut refused) = (0, 0);
    let mut chosen: BTreeSet<usize> = (0..scan.windows.len())
        .filter(|&n| scan.windows[n].len >= 10)
        .collect();
    let mut taken = BTreeSet::new();
    for n in 0..scan.windows.len() {
        if chosen.contains(&n) || scan.windows[n].len < 2 {
            continue;
        }
        let start = scan.windows[n].start.0;
        for host in [n.checked_sub(1), Some(n + 1)].into_iter().flatten() {
            let Some(room) = scan.windows.get(host).filter(|_| chosen.contains(&host)) else {
                continue;
            };
            let island = room.start.0 + 5;
            if taken.contains(&host) || island.abs_diff(start + 2) > 120 {
                continue;
            }
            scan.windows[n].island = Some(LinkVa(island));
            // Alone: whether the unwinder finds its way through the island tells `verify`, and nobody else.
            match patch(&bytes, &scan, &options(&scan, std::iter::once(n))) {
                Ok(_) => {
                    islands += 1;
                    chosen.insert(n);
                    taken.insert(host);
                    break;
                }
                Err(e) => {
                    assert!(e.to_string().contains("unwind information"), "{e}");
                    refused += 1;
                    scan.windows[n].island = None;
                }
            }
        }
    }
    println!("{islands} islands, {refused} refused");
    assert!(islands > 20 && refused > 0, "{islands}, {refused}");
    let patched = patch(&bytes, &scan, &options(&scan, chosen.iter().copied())).unwrap();
    assert_same(&original, &lab.write("patched", &patched.bytes));
}

#[test]
fn gcc_programs() {
    for flags in ompfuse_kit::few(
        &["-O0", "-O2", "-O2 -no-pie", "-O3 -fcf-protection=full"],
        3,
    ) {
        check(PROGRAM, &format!("gcc -fopenmp {flags}"));
        check(EXCEPTIONS, &format!("g++ -fopenmp {flags}"));
    }
}

#[test]
fn clang_programs() {
    let clang = "-fopenmp -L/usr/lib/llvm-19/lib -Wl,-rpath,/usr/lib/llvm-19/lib";
    check(PROGRAM, &format!("clang-19 {clang} -O2"));
    check(EXCEPTIONS, &format!("clang++-19 {clang} -O2"));
}

/// Islands where none can be: an error, and no file.
#[test]
fn islands_in_the_wrong_place() {
    let lab = Lab::new();
    let Some(original) = lab.compile("program", PROGRAM, "gcc -fopenmp -O2") else {
        return;
    };
    let bytes = std::fs::read(&original).unwrap();
    let scan = scan_as(&original, true, least);
    let host = scan.windows.iter().position(|w| w.len >= 10).unwrap();
    let n = host + 1;
    let start = scan.windows[host].start.0;
    let all = || options(&scan, [host, n].into_iter());
    for (island, words) in [
        (start, "its island lies in no window"),
        (start + 4, "its island lies in no window"),
        (
            start + u64::from(scan.windows[host].len) - 4,
            "its island lies in no window",
        ),
        (scan.windows[0].start.0 - 64, "its island lies in no window"),
    ] {
        let mut scan = scan.clone();
        scan.windows[n].island = Some(LinkVa(island));
        let error = patch(&bytes, &scan, &all()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // Two in one place, and one that a short jump doesn't reach.
    let mut twice = scan.clone();
    twice.windows[n].island = Some(LinkVa(start + 5));
    let next = (n + 1..).find(|&n| twice.windows[n].len < 10).unwrap();
    twice.windows[next].island = Some(LinkVa(start + 5));
    let error = patch(&bytes, &twice, &options(&scan, [host, n, next].into_iter()));
    assert!(error.unwrap_err().to_string().contains("overlaps another"));
    let mut far = scan.clone();
    let last = far.windows.len() - 1;
    let last = (0..=last).rfind(|&n| far.windows[n].len < 10).unwrap();
    far.windows[last].island = Some(LinkVa(start + 5));
    let error = patch(&bytes, &far, &options(&scan, [host, last].into_iter()));
    assert!(error.unwrap_err().to_string().contains("out of reach"));
}
