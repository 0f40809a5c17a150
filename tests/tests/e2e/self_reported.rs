//! Labels and sizes of all execution units, against a program that says of each what it is (`fixtures/behaviour/kin.c`):
//! nested and serialised regions, tasks in loops in tasks, loops of tasks, sections, teams, undeferred, final, untied and
//! cancelled tasks, cancelled loops and sections.

use ompfuse_tests::scan::Scan;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, has, process, repository};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What a unit is: `task`, `range` or `section`, label with lines for addresses, and iterations.
type Unit = (String, String, u64);

/// Units that the program has for certain, whatever is cancelled.
const CERTAIN: usize = 100;

/// Lines by address. What gcc optimises has others for blocks and sections, and for loops that of the
/// `for` behind their pragma.
fn lines(scan: &Scan, compiler: &str) -> BTreeMap<u64, u32> {
    let line = |construct: &str, line: u32| match construct {
        "sections" | "single" => 0,
        "loop" if compiler == "gcc" => line - 1,
        _ => line,
    };
    let sites = scan.sites.iter();
    sites
        .filter_map(|s| Some((s.address, line(&s.construct, s.source.as_ref()?.line))))
        .collect()
}

fn unit(xu: &Xu, lines: &BTreeMap<u64, u32>) -> Unit {
    let iterations = match xu.construct.as_str() {
        "range" => xu.number("iterations"),
        _ => 0,
    };
    let label = table::with_lines(&xu.label, lines);
    (xu.construct.clone(), label, iterations)
}

/// What the program says of itself.
fn own(text: &str) -> Vec<Unit> {
    let unit = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (kind, label) = (words.next()?, words.next()?);
        Some((kind, label, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(unit).collect()
}

#[test]
fn units_are_what_the_program_says_that_they_are() {
    for (compiler, level) in [
        ("gcc", "-O1"),
        ("gcc", "-O3"),
        ("clang-19", "-O0"),
        ("clang-19", "-O2"),
    ] {
        if !has(compiler) {
            continue;
        }
        let folder = tempfile::tempdir().expect("there is room for a program");
        let (program, patched) = (folder.path().join("kin"), folder.path().join("patched"));
        let mut compile = Command::new(compiler);
        compile
            .args([level, "-g", "-fopenmp"])
            .arg(repository().join("fixtures/behaviour/kin.c"));
        process::run(compile.arg("-o").arg(&program)).ok("the compiler");
        let lines = lines(&Scan::of(&program), compiler);
        command::ok([Path::new("patch"), &program, Path::new("-o"), &patched]);
        for (threads, cancels) in [(1, "false"), (2, "true"), (4, "true")] {
            let what = format!("{compiler} {level}, {threads} threads");
            let out = folder.path().join(format!("out-{threads}"));
            let mut record = command::with_threads(threads);
            record.env("OMP_CANCELLATION", cancels);
            record.env("OMP_WAIT_POLICY", "passive");
            record.args(["record", "--events", "none", "-o"]).arg(&out);
            let output = process::run(record.arg("--").arg(&patched)).ok(&what);
            let mut own = own(&output.text());
            let xus = table::export(&table::runs(&out)[0]);
            let mut recorded: Vec<Unit> = xus.iter().map(|xu| unit(xu, &lines)).collect();
            own.sort();
            recorded.sort();
            assert!(own.len() >= CERTAIN, "{what}: {own:?}");
            let (said, found): (BTreeSet<_>, BTreeSet<_>) =
                (own.iter().collect(), recorded.iter().collect());
            let missing: Vec<_> = said.difference(&found).collect();
            let strange: Vec<_> = found.difference(&said).collect();
            assert!(
                own == recorded,
                "{what}: missing {missing:?}, strange {strange:?}"
            );
            assert_eq!(said.len(), own.len(), "{what}: a label is there twice");
        }
    }
}
