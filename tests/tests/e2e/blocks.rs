//! Instructions that programs count themselves (`--count`): as many as callgrind counts in the same functions, as many per unit as qemu
//! does, and as many as assembly says. Counted programs behave as before.

mod addresses;
mod events;
mod same;
mod trips;
mod uncounted;

use crate::natural::by_callgrind;
use ompfuse_tests::counted::{EXACT, counted, total};
use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::process::{self, clean};
use ompfuse_tests::{command, compile, few, has, matrix, some, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Fixtures that execute no string instruction with a repeat prefix, each round of which callgrind counts.
const FIXTURES: [&str; 7] = [
    "cg",
    "loops",
    "mandelbrot",
    "mg",
    "nqueens",
    "sections",
    "stencil",
];

/// What a program's functions are to have counted of the code: at least, in percent.
const COVERED: f64 = 95.0;

/// Builds at several levels, of both compilers.
pub(crate) fn builds(name: &str) -> Vec<Build> {
    let fixture = Fixture::open(name);
    let all = ["gcc", "clang"].into_iter().flat_map(|compiler| {
        let compiler = matrix::Matrix::get().compiler(compiler);
        let pie = matrix::Matrix::get().link("pie");
        let fixture = fixture.clone();
        ["-O0", "-O2", "-O3"].into_iter().filter_map(move |level| {
            let (variant, _) = fixture.variants().into_iter().next()?;
            fixture.build(&variant, compiler, pie, level, false)
        })
    });
    all.collect()
}

/// Records a program that counts itself; what the report says.
#[track_caller]
pub(crate) fn report(program: &Path, threads: usize, flags: &[&str], out: &Path) -> Value {
    let recorded = table::record(program, &[], threads, out, flags);
    let recorded = recorded.ok(&format!("{} {flags:?}", program.display()));
    let run = table::runs(out).pop();
    let run = run.unwrap_or_else(|| panic!("no run of {}: {recorded:?}", program.display()));
    command::report(run)
}

#[test]
fn functions_count_what_callgrind_counts() {
    if !has("valgrind") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for runs");
    let builds: Vec<Build> = FIXTURES.iter().flat_map(|name| builds(name)).collect();
    for build in some(few(&builds, 14)) {
        let program = std::fs::canonicalize(&build.path).expect("a build is a file");
        check_by_callgrind(&program, &build.to_string(), folder.path());
    }
}

/// A program's functions count what callgrind counts at their addresses, and nearly all of them count.
#[track_caller]
fn check_by_callgrind(program: &Path, what: &str, folder: &Path) {
    let out = folder.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let exact = total(&report(program, 1, &["--count"], &out));
    let [own, refused] = counted(program);
    let mut sums = [0u64; 2];
    for (address, count) in by_callgrind(program, &[], folder) {
        let in_any = |ranges: &[Range<u64>]| ranges.iter().any(|r| r.contains(&address));
        sums[0] += if in_any(&own) { count } else { 0 };
        sums[1] += if in_any(&refused) { count } else { 0 };
    }
    let [truth, lost] = sums;
    assert_eq!(exact, truth, "{what}");
    assert!(exact > 0, "{what}");
    let covered = 100.0 * truth as f64 / (truth + lost) as f64;
    assert!(covered >= COVERED, "{what}: {covered} %");
}

/// Ranges of one iteration each, whose loops have three instructions: unit n turns 100 + 10 n times.
const ASSEMBLY: &str = r#"
#include <stdio.h>
static long sums[64];
int main(void) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 64; i++) {
        long left = 100 + 10 * i, sum = 0;
        __asm__ volatile("1: add $2, %0\n add $-1, %1\n jnz 1b" : "+r"(sum), "+r"(left) : : "cc");
        sums[i] += sum;
    }
    printf("%ld\n", sums[63]);
}
"#;

#[test]
fn loops_that_count_themselves() {
    for command in ["gcc -O0", "gcc -O2", "clang-19 -O0", "clang-19 -O2"] {
        let command = format!("{command} -fopenmp");
        let Some(program) = compile(ASSEMBLY, &command) else {
            continue;
        };
        // With one thread libomp hands out everything at once.
        for threads in [2, 3] {
            let out = program.folder.path().join(format!("out-{threads}"));
            table::record(&program.path, &[], threads, &out, &["--count"]).ok(&command);
            let run = table::runs(&out).pop().expect("a run was recorded");
            let units = table::export(&run).into_iter();
            let units = units.filter(|u| u.construct == "range");
            let mut counts: Vec<u64> = units.map(|u| u.number(EXACT)).collect();
            counts.sort_unstable();
            assert_eq!(counts.len(), 64, "{command}");
            let steps = counts.windows(2).map(|w| w[1] - w[0]);
            // Where a thread's first range begins, and what is around each, is the compiler's.
            let odd = steps.filter(|&step| step != 30).count();
            assert!(odd <= 2 * threads, "{command}: {counts:?}");
            let least = counts[0];
            assert!((300..400).contains(&least), "{command}: {counts:?}");
        }
    }
}

/// Units without calls, each of which executes something else.
const UNITS: &str = r#"
#include <stdio.h>
static int v[4096];
int main(void) {
    for (int k = 0; k < 4; k++)
#pragma omp parallel for schedule(dynamic, 64)
        for (int i = 0; i < 4096; i++)
            for (int j = 0; j < i % 37; j++) v[i] += j % 3 ? i ^ j : v[i] % 5 + k;
    long sum = 0;
    for (int i = 0; i < 4096; i++) sum += v[i];
    printf("%ld\n", sum);
}
"#;

#[test]
fn units_count_what_qemu_counts() {
    if !crate::simulated::can_simulate() {
        return;
    }
    for command in ["gcc -O0", "gcc -O2", "clang-19 -O2", "clang-19 -O3 -mavx2"] {
        let command = format!("{command} -fopenmp");
        let Some(program) = compile(UNITS, &command) else {
            continue;
        };
        let counts = |flags: &[&str], event: &str| -> BTreeMap<String, u64> {
            let out = program.folder.path().join(event);
            table::record(&program.path, &[], 2, &out, flags).ok(&command);
            let run = table::runs(&out).pop().expect("a run was recorded");
            let units = table::export(&run).into_iter();
            let units = units.filter(|u| u.construct == "range");
            units.map(|u| (u.label.clone(), u.number(event))).collect()
        };
        let own = counts(&["--count"], EXACT);
        let event = "sim-instructions";
        let simulated = ["--simulate=libraries=no", "--events", event];
        let theirs = counts(&simulated, event);
        assert_eq!(own.len(), 256, "{command}");
        // A thread's first range in a loop has code in front of it that others don't have.
        let same = own
            .iter()
            .filter(|(label, n)| theirs.get(*label) == Some(n));
        assert!(same.count() >= 256 - 4 * 2, "{command}: {own:?} {theirs:?}");
    }
}

#[test]
fn two_runs_count_the_same() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    for build in some(
        ["mandelbrot", "stencil"]
            .iter()
            .flat_map(|name| builds(name)),
    ) {
        let counts = |to: &str| -> BTreeMap<String, u64> {
            let out = folder.path().join(to);
            let _ = std::fs::remove_dir_all(&out);
            table::record(&build.path, &[], 3, &out, &["--count"]).ok(&build.to_string());
            let run = table::runs(&out).pop().expect("a run was recorded");
            let units = table::export(&run).into_iter();
            let units = units.filter(|u| u.construct == "range");
            units.map(|u| (u.label.clone(), u.number(EXACT))).collect()
        };
        let (first, second) = (counts("first"), counts("second"));
        let common = first.keys().filter(|label| second.contains_key(*label));
        let (mut same, mut all) = (0, 0);
        for label in common {
            all += 1;
            same += usize::from(first[label] == second[label]);
        }
        // Only ranges of dynamic schedules may have other code in front of them.
        assert!(all > 0 && same * 10 >= all * 9, "{build}: {same} of {all}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(program) = compile(UNITS, "gcc -O2 -fopenmp") else {
        return;
    };
    let path = program.path.as_os_str();
    let refused = command::run([
        "patch".as_ref(),
        "--count".as_ref(),
        "--dormant".as_ref(),
        path,
    ]);
    assert_eq!(refused.outcome().0, 2, "{refused:?}");
    let patched = program.folder.path().join("patched");
    command::ok(["patch".as_ref(), path, "-o".as_ref(), patched.as_os_str()]);
    let out = program.folder.path().join("out");
    let refused = table::record(&patched, &[], 1, &out, &["--count"]);
    assert_eq!(refused.outcome().0, 1, "{refused:?}");
    let errors = refused.errors();
    assert!(
        errors.contains("patch the original with --count"),
        "{errors}"
    );
    // A copy that counts is accepted, and told by its name in the list of events.
    command::ok([
        "patch".as_ref(),
        "--count".as_ref(),
        path,
        "-o".as_ref(),
        patched.as_os_str(),
    ]);
    command::ok(["verify".as_ref(), path, patched.as_os_str()]);
    let alone = process::run(clean(&mut Command::new(&patched), 2)).ok("a counted copy");
    let original = process::run(clean(&mut Command::new(&program.path), 2));
    assert_eq!(alone.text(), original.text());
    let report = report(&patched, 2, &["--events", EXACT], &out);
    assert!(total(&report) > 100_000, "{report}");
}
