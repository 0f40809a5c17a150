//! Comparisons as people and programs read them. What is matched: `matching`; what fails a pipeline: `pipeline`.

mod explained;
mod kinship;
mod moved;
mod repetitions;
mod turns;
mod waits;

use ompfuse_tests::{command, compile, has, process, schema};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// A loop whose work depends on `WORK`, one that doesn't, and a critical section; all in one region or in three.
const PROGRAM: &str = "
#include <stdio.h>
#ifndef WORK
#define WORK 1
#endif
static double a[4000];
static long inside;
__attribute__((noinline)) static void heavy(void) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < 4000; i++)
        for (int k = 0; k < 20 * WORK; k++) a[i] = a[i] * 0.5 + i;
}
__attribute__((noinline)) static void steady(void) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < 4000; i++) a[i] += i;
}
int main(void) {
    for (int r = 0; r < 2; r++) { heavy(); steady(); }
    #pragma omp parallel
    {
        #pragma omp critical (counting)
        inside++;
    }
    printf(\"%g %ld\\n\", a[17], inside);
}
";

/// Records a program under the simulator, or as it is; the folder of its runs.
fn recorded(folder: &Path, name: &str, program: &Path, options: &[&str]) -> PathBuf {
    recorded_by(2, folder, name, program, options)
}

fn recorded_by(
    threads: usize,
    folder: &Path,
    name: &str,
    program: &Path,
    options: &[&str],
) -> PathBuf {
    let runs = folder.join(name);
    let mut record = command::with_threads(threads);
    record
        .args(["record", "-q"])
        .args(options)
        .arg("-o")
        .arg(&runs);
    process::run(record.arg("--").arg(program)).ok(name);
    runs
}

fn diff(sides: [&Path; 2], options: &[&str]) -> process::Output {
    let mut diff = command::with_threads(2);
    process::run(diff.arg("diff").args(sides).args(options))
}

fn text(output: &process::Output) -> String {
    output.text()
}

/// Both builds, recorded with exact instructions once for all tests; `None` without a compiler.
fn sides() -> Option<&'static [PathBuf; 2]> {
    static SIDES: LazyLock<Option<(tempfile::TempDir, [PathBuf; 2])>> = LazyLock::new(|| {
        if !has("qemu-x86_64") {
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room for runs");
        let a = compile::compile(PROGRAM, "gcc -O1 -g -fopenmp")?;
        let b = compile::compile(PROGRAM, "gcc -O1 -g -fopenmp -DWORK=2")?;
        let simulate = ["--simulate", "--events", "sim-instructions"];
        let record = |(name, program): (&str, compile::Program)| {
            // Counts of one thread are told by one run.
            recorded_by(1, folder.path(), name, &program.path, &simulate)
        };
        let sides = [("a", a), ("b", b)].map(record);
        Some((folder, sides))
    });
    SIDES.as_ref().map(|(_, sides)| sides)
}

#[test]
fn a_comparison_names_what_changed_in_every_format() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some([a, b]) = sides() else { return };
    let sides = [a.as_path(), b.as_path()];
    let line = 1 + PROGRAM
        .lines()
        .position(|l| l.contains("4000; i++)"))
        .expect("the loop");
    // The loop's own instructions double, nothing else changes.
    let json = diff(sides, &["--format", "json"]);
    assert!(json.status == 0, "{json:?}");
    schema::check_of("diff", "a comparison", &[text(&json)]);
    let json: Value = serde_json::from_str(&text(&json)).expect("JSON was asked for");
    let pairs = json["pairs"].as_array().expect("pairs are a list");
    let is_changed = |pair: &&Value| {
        let changes = pair["changes"].as_array().expect("changes are a list");
        changes.iter().any(|c| c["finding"] == "changed")
    };
    let changed: Vec<&Value> = pairs.iter().filter(is_changed).collect();
    assert_eq!(changed.len(), 1, "{changed:#?}");
    assert_eq!(changed[0]["b"][0]["construct"], "loop");
    let told = changed[0]["b"][0]["line"].as_u64().expect("it has a line");
    assert!(told.abs_diff(line as u64) <= 1, "{told} {line}");
    let change = (changed[0]["changes"].as_array().expect("a list").iter())
        .find(|c| c["quantity"] == "sim-instructions")
        .and_then(|c| c["change"].as_f64())
        .expect("instructions were counted");
    assert!((0.9..1.05).contains(&change), "{change}");
    assert_eq!(json["matched"], serde_json::json!([1.0, 1.0]));

    // No line is broken by the terminal.
    for width in ["60", "80", "100", "132"] {
        let mut command = command::with_threads(2);
        command.env("COLUMNS", width).arg("diff").args(sides);
        let output = process::run(&mut command).ok("diff");
        let text = text(&output);
        let longest = text.lines().map(|l| l.chars().count()).max();
        assert!(longest <= width.parse().ok(), "{width}: {text}");
        assert!(text.contains("more instructions in its regions"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    // Formats for others, read by others.
    let beside = folder.path().join("junit.xml");
    let gates = ["--fail-on", "instructions>1%", "--fail-on", "executions!="];
    let junit = format!("junit={}", beside.display());
    let with_file = [&gates[..], &["--format", "github", "--format", &junit]].concat();
    let mut github = command::with_threads(2);
    github.arg("diff").args(sides).args(with_file);
    let github = process::run(github.arg("--source-root").arg("/"));
    assert_eq!(github.status, 3, "{github:?}");
    let annotations = text(&github);
    let warning = annotations
        .lines()
        .find(|l| l.starts_with("::warning "))
        .expect("a warning");
    assert!(warning.contains(&format!(",line={told},")), "{annotations}");
    assert!(annotations.starts_with("::error "), "{annotations}");
    let script = "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); \
                  print(len(r.findall('.//testcase')), len(r.findall('.//failure')))";
    let mut reader = Command::new("python3");
    let read = process::run(reader.args(["-c", script]).arg(&beside)).ok("a reader of XML");
    assert_eq!(text(&read).trim(), "2 1");
    let gitlab: Value = serde_json::from_str(&text(&diff(sides, &["--format", "gitlab"])))
        .expect("GitLab reads JSON");
    assert_eq!(gitlab[0]["location"]["lines"]["begin"], told);
    let markdown = text(&diff(sides, &["--format", "markdown"]));
    assert!(markdown.contains(&format!(":{told}` | ")), "{markdown}");
}

#[test]
fn a_side_that_is_no_other_build_is_refused_and_the_same_build_is_equal() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some([a, b]) = sides() else { return };
    let same = text(&diff([a, a], &[]));
    assert!(
        same.starts_with("Instructions are equal on both sides."),
        "{same}"
    );
    assert!(!same.contains("What changed"), "{same}");
    let other = compile::compile(
        "int main(void) { long n = 0;
         #pragma omp parallel
         #pragma omp single
         for (int i = 0; i < 9; i++)
             #pragma omp task
             { __atomic_fetch_add(&n, i, 0); }
         return n != 36; }",
        "gcc -O1 -fopenmp",
    );
    let Some(other) = other else { return };
    let other = recorded(folder.path(), "other", &other.path, &["--events", "none"]);
    let refused = diff([a, &other], &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status, 1, "{said}");
    assert!(
        said.contains("--anyway") && said.lines().count() == 1,
        "{said}"
    );
    assert!(diff([a, &other], &["--anyway"]).status == 0);
    // An expression with an error is a wrong usage, and points at the character.
    let wrong = diff([a, b], &["--fail-on", "time> x%"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status, 2, "{said}");
    assert!(said.contains("character 7"), "{said}");
    // What wasn't measured is no pass: a simulator has no time.
    let unknown = diff([a, b], &["--fail-on", "time>5%"]);
    assert_eq!(unknown.status, 1, "{unknown:?}");
    let nothing = diff(
        [a, b],
        &["--fail-on", "region(\"nowhere\").instructions>1%"],
    );
    assert_eq!(nothing.status, 1, "{nothing:?}");
    let named = diff([a, b], &["--fail-on", "region(\"heavy\").instructions>90%"]);
    assert_eq!(named.status, 3, "{named:?}");
    let steady = diff([a, b], &["--fail-on", "region(\"steady\").instructions!="]);
    assert_eq!(steady.status, 0, "{steady:?}");
}

#[test]
fn a_killed_run_passes_no_gate() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some(program) = compile::compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let killed = compile::compile(
        &PROGRAM.replace("printf(", "__builtin_trap(); printf("),
        "gcc -O1 -g -fopenmp",
    );
    let Some(killed) = killed else { return };
    let a = recorded(folder.path(), "a", &program.path, &["--events", "none"]);
    let b = folder.path().join("b");
    let mut record = command::with_threads(2);
    record
        .args(["record", "-q", "--events", "none", "-o"])
        .arg(&b);
    process::run(record.arg("--").arg(&killed.path));
    let output = diff([&a, &b], &["--fail-on", "executions!="]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status, 1, "{said}");
    assert!(said.contains("damaged"), "{said}");
    assert!(text(&output).contains("something is missing"), "{output:?}");
}

/// Each run takes 10, 60 or 30 ms, in turn: the file says which.
const VARYING: &str = "
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const int ms[] = {10, 60, 30};
    int nth = 0;
    FILE *file = fopen(argv[1], \"r\");
    if (file) { fscanf(file, \"%d\", &nth); fclose(file); }
    file = fopen(argv[1], \"w\");
    fprintf(file, \"%d\", nth + 1);
    fclose(file);
    #pragma omp parallel
    usleep(1000 * ms[nth % 3]);
}
";

#[test]
fn a_condition_that_noise_hides_is_undecided() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some(program) = compile::compile(VARYING, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let [a, b] = ["a", "b"].map(|name| {
        let runs = folder.path().join(name);
        let mut record = command::with_threads(2);
        record.args(["record", "-q", "--events", "none", "--repeat", "3", "-o"]);
        record.arg(&runs).arg("--").arg(&program.path);
        process::run(record.arg(folder.path().join("nth"))).ok(name);
        runs
    });
    let gate = ["--fail-on", "time>10%"];
    let with = |more: &[&str]| diff([&a, &b], &[&gate, more].concat());
    let said = with(&[]);
    assert_eq!(said.status, 0, "{said:?}");
    let line = text(&said).replace("\n  ", " ");
    assert!(
        line.starts_with(
            "undecided time>10%: the program: a change of wall time can't be seen with this noise"
        ),
        "{line}"
    );
    assert!(line.contains("runs on each side would not do"), "{line}");
    assert_eq!(with(&["--undecided", "fail"]).status, 3);
    assert!(text(&with(&["--format", "github"])).starts_with("::warning "));
    assert!(text(&with(&["--format", "junit"])).contains("<skipped "));
    let json: Value = serde_json::from_str(&text(&with(&["--format", "json"]))).expect("JSON");
    let verdict = &json["gates"][0]["verdict"];
    assert_eq!(verdict["is"], "undecided", "{json}");
    // Runs that differ by a factor of six show no change of 10 %.
    let visible = verdict["doubts"][0]["could_see"].as_f64();
    assert!(visible > Some(1.0), "{verdict}");
    // A name that nothing has.
    let misspelt = diff([&a, &b], &["--fail-on", "tmie>1%"]);
    assert_eq!(misspelt.status, 1, "{misspelt:?}");
    assert!(
        misspelt
            .errors()
            .contains("has no tmie (did you mean time?)"),
        "{misspelt:?}"
    );
    // A limit that is far away is seen.
    let far = diff([&a, &b], &["--fail-on", "time>90000%"]);
    assert!(
        text(&far).contains("passed time>90000%: nothing is beyond it"),
        "{far:?}"
    );
}

/// Its first thread sleeps a third as long as the second one: the mean is two thirds of the longest.
const UNEVEN: &str = "
#include <unistd.h>
int main(void) {
    for (int r = 0; r < 5; r++) {
        #pragma omp parallel for schedule(static, 1)
        for (int i = 0; i < 2; i++) usleep(i ? 150000 : 50000);
    }
}
";

#[test]
fn efficiencies_of_the_account_are_compared_and_judged() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some(program) = compile::compile(UNEVEN, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let side = recorded(
        folder.path(),
        "out",
        &program.path,
        &["--events", "none", "--repeat", "2"],
    );
    let sides = [side.as_path(), side.as_path()];
    let json: Value =
        serde_json::from_str(&text(&diff(sides, &["--format", "json"]))).expect("JSON");
    let of = |changes: &Value, quantity: &str| -> f64 {
        let mut list = changes.as_array().expect("a list").iter();
        let found = list.find(|c| c["quantity"] == quantity);
        found.unwrap_or_else(|| panic!("no {quantity}"))["b"]
            .as_f64()
            .expect("a number")
    };
    let mut values = vec![of(&json["total"], "parallel-efficiency")];
    let pairs = json["pairs"].as_array().expect("a list");
    for kind in ["parallel", "loop"] {
        let pair = pairs.iter().find(|p| p["b"][0]["construct"] == kind);
        values.push(of(&pair.expect("it is matched")["changes"], "load-balance"));
    }
    for value in &values {
        assert!((0.6..0.7).contains(value), "{values:?}");
    }
    for (condition, holds) in [
        ("parallel-efficiency<0.8", true),
        ("parallel-efficiency<0.5", false),
        ("region(\"main\").load-balance<80%", true),
        ("region(\"main\").load-balance<0.5", false),
        ("load-balance<-5%", false),
    ] {
        let judged = diff(sides, &["--fail-on", condition]);
        assert_eq!(
            judged.status,
            if holds { 3 } else { 0 },
            "{condition}: {judged:?}"
        );
    }
}
