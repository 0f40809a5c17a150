//! What a program does to its own process: `fixtures/behaviour/odd.c`.

use super::{COMPILERS, Pair};
use ompfuse_tests::scan::{Scan, Site};
use ompfuse_tests::{few, fixture, process, table, tools};
use std::process::Command;

/// Descriptors that the program closes and uses again are its own: nothing is read from them, and they stay open.
#[test]
fn descriptors_are_used_again() {
    let (mut programs, mut of_first) = (0, 0);
    for pair in Pair::all("odd", &[]) {
        let (output, folder) = pair.same(&["reuses"], 2);
        let own = fixture::counts(&output.text());
        let xus = table::export(&table::runs(folder.path())[0]);
        let iterations: u64 = xus.iter().map(|x| x.number("iterations")).sum();
        assert_eq!(iterations, own["iterations"], "{}", pair.what);
        // The first thread's counters are closed before it computes; all others begin, and open theirs, after that. What isn't
        // counted isn't shown as 0.
        let first: Vec<_> = xus.iter().filter(|x| x.number("thread") == 0).collect();
        let counted = first.iter().filter(|x| !x.columns["task-clock"].is_empty());
        assert_eq!(counted.count(), 0, "{}", pair.what);
        programs += 1;
        of_first += first.len();
    }
    // On a busy machine the other thread may have computed everything, but not in each of the programs.
    assert!(programs == 0 || of_first > 0);
}

/// Likewise where no probe comes by while they are closed, so that the program's files are found under the counters' numbers.
#[test]
fn descriptors_are_replaced() {
    for pair in Pair::all("odd", &[]) {
        pair.same_and_counted(&["replaces"], 2);
    }
}

/// As the library does that clang links where it instruments for profiles, without which there is no such section.
#[test]
fn programs_that_read_their_own_notes() {
    for pair in Pair::all("notes", &[]) {
        pair.same_and_counted(&[], 2);
    }
}

/// What a program writes over at its functions' entries is no room for islands.
#[test]
fn programs_that_change_their_functions_entries() {
    let flags = ["-O1", "-fpatchable-function-entry=16"];
    let scarce = Pair::patched_with(&["--scarce"], "entries", "gcc", &flags);
    let usual = Pair::new("entries", "gcc", &flags);
    for pair in usual.into_iter().chain(scarce) {
        pair.same_and_counted(&[], 2);
    }
}

/// Where a tracer puts a breakpoint (`sys/sdt.h`) an instruction begins: the original's `nop`, or a jump of ours.
#[test]
fn places_of_tracers_stay() {
    let scarce = Pair::scarce("entries");
    for pair in Pair::all("entries", &[]).into_iter().chain(scarce) {
        let notes = process::run(Command::new("readelf").arg("-n").arg(&pair.original)).text();
        let places = notes
            .lines()
            .filter_map(|l| l.trim().strip_prefix("Location: "));
        let places: Vec<&str> = places.filter_map(|l| l.split(',').next()).collect();
        assert!(!places.is_empty(), "{}: {notes}", pair.what);
        for place in places {
            let mut objdump = Command::new("objdump");
            objdump.args(["-d", "--start-address", place, "--stop-address"]);
            let va = u64::from_str_radix(place.trim_start_matches("0x"), 16);
            let behind = va.expect("readelf writes numbers") + 1;
            objdump.arg(behind.to_string()).arg(&pair.patched);
            let text = process::run(&mut objdump).text();
            let line = text.lines().last().unwrap_or_default();
            let byte = line.split('\t').nth(1).unwrap_or_default().trim();
            assert!(["90", "e9", "eb"].contains(&byte), "{}: {text}", pair.what);
        }
    }
}

/// What the kernel knows by its address (`rseq`) is where it was, instruction by instruction.
#[test]
fn restartable_sequences_stay() {
    let scarce = Pair::scarce("restarts");
    for pair in Pair::all("restarts", &[]).into_iter().chain(scarce) {
        pair.same_and_counted(&[], 2);
    }
    // Without a section that tells of them they are known by what stands before the code for interruptions.
    for options in [&[][..], &["--scarce"]] {
        if let Some(pair) = Pair::without_sections(options, "restarts", "gcc", &[]) {
            pair.same_and_counted(&[], 2);
        }
    }
}

/// Where such code is found and no descriptor that names it, nothing moves.
#[test]
fn restartable_sequences_of_unknown_extent() {
    for compiler in COMPILERS {
        let Some(pair) = Pair::without_sections(&[], "restarts", compiler, &["-DUNNAMED"]) else {
            continue;
        };
        pair.same(&[], 2);
        let moved = |s: &&Site| s.mechanism == "inline" && s.outcome == "patched";
        let scan = Scan::of(&pair.patched);
        let moved: Vec<_> = scan.sites.iter().filter(moved).collect();
        assert!(moved.is_empty(), "{}: {moved:?}", pair.what);
    }
}

/// Callers that don't align the stack get as far as in the original.
#[test]
fn stacks_that_are_not_aligned() {
    for flags in [&["-O0"][..], &["-O2"]] {
        let Some(pair) = Pair::new("crooked", "clang-19", flags) else {
            continue;
        };
        // Some versions of the runtime need what these callers don't keep.
        match process::run(process::clean(&mut Command::new(&pair.original), 2)).status {
            139 => tools::mention(&format!("{} crashes as it is", pair.what)),
            _ => pair.same_and_counted(&[], 2),
        }
    }
}

#[test]
fn limits_memory_and_paths() {
    for pair in Pair::all("odd", &[]) {
        for how in ["limits", "memory", "paths", "namespaces"] {
            pair.same_and_counted(&[how], 2);
        }
    }
}

/// Threads that are there go on recording; of one that comes when the folder is out of reach that is said.
#[test]
fn another_root() {
    for pair in Pair::all("odd", &[]) {
        let (output, folder) = pair.same(&["chroot"], 2);
        let own = fixture::counts(&output.text());
        let xus = table::export(&table::runs(folder.path())[0]);
        let iterations: u64 = xus.iter().map(|x| x.number("iterations")).sum();
        let missing = own["iterations"] - iterations;
        assert!(missing <= 64, "{}: {missing} missing", pair.what);
    }
}

/// A loop whose share was computed before the function took memory from its stack.
#[test]
fn a_stack_that_moves_between_two_loops() {
    for level in ["-O0", "-O1"] {
        let Some(pair) = Pair::new("inscan", "gcc", &[level]) else {
            return;
        };
        for threads in [1, 3] {
            pair.same_and_counted(&[], threads);
        }
    }
}

/// Nothing of a probe lies where a computed jump leads, wherever its address is.
#[test]
fn computed_jumps() {
    const MODELS: [&[&str]; 4] = [
        &["-fPIE", "-pie"],
        &["-fno-pie", "-no-pie"],
        &["-fPIC", "-no-pie"],
        &["-fno-pie", "-no-pie", "-mcmodel=large"],
    ];
    for compiler in ["gcc-11", "gcc-12", "clang-19"] {
        for level in few(&["-O0", "-O1", "-Os", "-O2"], 2) {
            for model in MODELS {
                let flags = [&[level], model].concat();
                if let Some(pair) = Pair::new("gotos", compiler, &flags) {
                    pair.same(&[], 1);
                }
            }
        }
    }
}

/// Computed jumps through code that no processor predicts, as `-mindirect-branch` makes of each.
#[test]
fn jumps_through_thunks() {
    for compiler in ["gcc-11", "gcc-12"] {
        for level in few(&["-O0", "-O1", "-Os", "-O2"], 2) {
            for thunk in ["thunk", "thunk-inline"] {
                for model in [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]] {
                    let thunk = format!("-mindirect-branch={thunk}");
                    let flags = [level, &thunk, "-fjump-tables", model[0], model[1]];
                    if let Some(pair) = Pair::new("gotos", compiler, &flags) {
                        pair.same(&[], 1);
                    }
                }
            }
        }
    }
}

/// With `-fnon-call-exceptions` a load or a division throws (out of a signal handler): it stays where the function's exception
/// table has it.
#[test]
fn instructions_that_throw() {
    for compiler in ["g++-11", "g++-12"] {
        for level in few(&["-O0", "-O1", "-O2", "-O3", "-Os"], 3) {
            let flags = [level, "-fnon-call-exceptions"];
            if let Some(pair) = Pair::new("faults", compiler, &flags) {
                pair.same(&[], 1);
            }
        }
    }
}

/// Branches that only such code has which control comes back to from far away lead into no window.
#[test]
fn jumps_back() {
    const MODELS: [&[&str]; 3] = [
        &["-fPIE", "-pie"],
        &["-fno-pie", "-no-pie"],
        &["-fPIE", "-pie", "-mcmodel=large"],
    ];
    for compiler in ["gcc-11", "gcc-12"] {
        for level in few(&["-O1", "-O3", "-Os", "-O2"], 2) {
            for model in MODELS {
                let flags = [&[level], model].concat();
                if let Some(pair) = Pair::new("back", compiler, &flags) {
                    pair.same(&[], 1);
                }
            }
        }
    }
}
