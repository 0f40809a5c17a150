//! One grammar for all options that choose code: each takes the same selectors, and says which ones it can't take.

use ompfuse_tests::{command, compile, each, process, table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const SOURCE: &str = "\
#include <stdio.h>
#define KEPT __attribute__((noinline)) int
KEPT solve(int n) {
    #pragma omp parallel
    if (n < 0) puts(\"!\");
    return n;
}
KEPT other(int n) {
    #pragma omp parallel
    {
        #pragma omp critical(guard)
        n++;
    }
    return n;
}
KEPT loop(int n) { for (int i = 0; i < 9; i++) n += n ^ i; return n; }
int main(void) { printf(\"%d\\n\", loop(solve(100) + other(1))); }
";

const SOLVE: u32 = 4;
const OTHER: u32 = 9;
const GUARD: u32 = 11;
/// So many of them there are.
const ALL: usize = 3;

/// What selectors mean in the source: lines with a `parallel` or `critical`.
const MEANT: [(&str, &[u32]); 12] = [
    ("solve", &[SOLVE]),
    ("oth?r", &[OTHER, GUARD]),
    ("parallel", &[SOLVE, OTHER]),
    ("guard", &[GUARD]),
    ("program.c", &[SOLVE, OTHER, GUARD]),
    ("program.c:4", &[SOLVE]),
    ("program.c:?1", &[GUARD]),
    ("file:pro*:solve", &[SOLVE]),
    ("file:program.c:critical", &[GUARD]),
    ("lib:program", &[SOLVE, OTHER, GUARD]),
    ("lib:pro*:other", &[OTHER, GUARD]),
    ("lib:program:file:program.c:parallel", &[SOLVE, OTHER]),
];

/// Lines of the regions that a dry run would patch.
fn patched(program: &Path, option: &str) -> BTreeSet<u32> {
    let mut run = command::with_threads(2);
    run.arg("patch").arg(program).arg(option);
    run.args(["--dry-run", "--format", "json", "-o", "nowhere"]);
    let answer = process::run(&mut run).ok(option).stdout;
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let sites = answer["sites"].as_array().expect("a list").iter();
    let of = sites.filter(|s| s["outcome"] == "patched" && s["id"] == s["region"]);
    of.map(|s| s["source"]["line"].as_u64().expect("a line") as u32)
        .collect()
}

/// Lines of the regions that a table of a recording has.
fn exported(runs: &Path, selector: &str) -> BTreeSet<u32> {
    let table = runs.with_file_name("regions.csv");
    let arguments = ["export", "--to", "csv", "--table", "regions", "--select"];
    let arguments = arguments.into_iter().chain([selector, "-o"]);
    let arguments = arguments.map(Path::new);
    command::ok(arguments.chain([&*table, runs]));
    let text = std::fs::read_to_string(&table).expect("it was written");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let at = head.iter().position(|name| *name == "source_line");
    let at = at.expect("a column with lines");
    lines.filter_map(|line| line[at].parse().ok()).collect()
}

/// Whether a comparison of a recording with itself knows a region that is chosen.
fn compared(runs: &Path, selector: &str) -> bool {
    let condition = format!("region('{selector}').executions!=");
    let arguments = ["diff", "--fail-on", &condition].map(Path::new);
    let output = command::run(arguments.into_iter().chain([runs, runs]));
    let errors = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_unknown = errors.contains("no region matches");
    assert_eq!(output.status, if is_unknown { 1 } else { 0 }, "{output:?}");
    !is_unknown
}

#[test]
fn a_selector_means_the_same_everywhere() {
    let compilers = ["gcc -O1 -g -fopenmp", "clang-19 -O1 -g -fopenmp"];
    for (how, program) in each(compilers, |how| compile::compile(SOURCE, how)) {
        let runs = program.folder.path().join("runs");
        let nothing = ["--events", "none"];
        table::record(&program.path, &[], 2, &runs, &nothing).ok(how);
        for (selector, meant) in MEANT {
            let meant: BTreeSet<u32> = meant.iter().copied().collect();
            let what = format!("{how}: {selector}");
            let selected = patched(&program.path, &format!("--select={selector}"));
            assert_eq!(selected, meant, "{what}");
            // A copy without any probe is refused.
            if meant.len() < ALL {
                let rest = patched(&program.path, &format!("--skip={selector}"));
                assert!(rest.is_disjoint(&meant), "{what}: {rest:?}");
                assert_eq!(rest.len() + meant.len(), ALL, "{what}: {rest:?}");
            }
            assert_eq!(exported(&runs, selector), meant, "{what}");
            assert!(compared(&runs, selector), "{what}");
        }
        assert!(!compared(&runs, "solv") && !compared(&runs, "program.c:8"));
    }
}

/// Names of functions that a scan finds.
fn functions(program: &Path, selector: &str) -> BTreeSet<String> {
    let option = format!("--functions={selector}");
    let arguments = ["scan", "--format", "json", &option].map(Path::new);
    let answer = command::json(arguments.into_iter().chain([program]));
    let sites = answer["sites"].as_array().expect("a list").iter();
    let of = sites.filter(|s| s["construct"] == "function" && s["outcome"] != "skipped");
    of.map(|s| s["function"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn functions_are_chosen_by_the_same_grammar() {
    let Some(program) = compile::compile(SOURCE, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&n| n.into()).collect() };
    let path = &program.path;
    // A function may be called as a construct.
    for one in ["loop", "fn:loop", "lib:program:loop", "file:program.c:loop"] {
        assert_eq!(functions(path, one), set(&["loop"]), "{one}");
    }
    let all = functions(path, "program.c");
    assert!(
        all.is_superset(&set(&["loop", "solve", "other"])),
        "{all:?}"
    );
    assert_eq!(functions(path, "lib:pro*"), functions(path, "*"));
    let task = command::run([Path::new("scan"), path, "--functions=task".as_ref()]);
    let said = String::from_utf8_lossy(&task.stderr).into_owned();
    assert!(
        task.status == 1 && said.contains("use --select task"),
        "{said}"
    );
}

#[test]
fn what_an_option_cannot_choose_is_said() {
    for arguments in [
        "patch x -o y --select size:200..",
        "patch x -o y --skip lib:x:from:main",
        "patch x -o y --set from:main:serial",
        "ctl x --disable size:..9:solve",
        "report x --interval region:size:9..",
        "report x --region from:main",
        "export x --to csv --select from:main",
        "scan x --functions lu.c:12",
        "scan x --loops user:step",
        "scan x --count=lu.c:12",
        "scan x --calls MPI_Wait*",
        "history x --region 0x4011a6",
        "history x --region size:9..",
        "diff x y --fail-on region('0x12').time>1%",
        "diff x y --fail-on region('from:f').time>1%",
    ] {
        let output = command::run(arguments.split(' '));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = errors.lines().take_while(|line| !line.is_empty());
        assert_eq!(said.count(), 1, "{arguments}: {errors}");
        assert_eq!(output.status, 2, "{arguments}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}
