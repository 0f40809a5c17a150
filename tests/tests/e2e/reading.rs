//! What a person reads: where output goes, what a command looks at that is given nothing, how wide lines are, what a row stands for.

use ompfuse_tests::{command, compile, process, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A loop in a function that is inlined twice, a template with two instances, tasks, and questions to the runtime.
const PROGRAM: &str = "
#include <omp.h>
#include <cstdio>
static inline __attribute__((always_inline)) double filled(double *a, int n) {
    double sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < n; i++) sum += a[i] += i;
    return sum;
}
template <typename T> __attribute__((noinline)) T scaled(T *a, int n) {
    #pragma omp parallel for
    for (int i = 0; i < n; i++) a[i] *= 3;
    return a[n - 1];
}
static double a[4000], b[4000];
static long c[4000];
__attribute__((noinline)) double one() { return filled(a, 4000); }
__attribute__((noinline)) double two() { return filled(b, 3000); }
int main() {
    double sum = one() + two() + two() + scaled(a, 4000) + scaled(c, 4000);
    #pragma omp parallel
    #pragma omp single
    for (int i = 0; i < 20; i++) {
        #pragma omp task firstprivate(i)
        b[i] += omp_get_thread_num() + omp_get_num_threads() + omp_get_level();
    }
    std::printf(\"%g\\n\", sum);
}
";

fn program() -> Option<compile::Program> {
    compile::compile(PROGRAM, "g++ -O2 -g -fopenmp")
}

fn profile(folder: &Path, options: &[&str], program: &Path) -> Command {
    let mut profile = command::with_threads(2);
    profile.current_dir(folder);
    profile.args(["profile", "--events", "none"]).args(options);
    profile.arg("--").arg(program);
    profile
}

#[test]
fn the_report_stays_out_of_the_programs_output() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("there is room for profiles");
    let alone = process::run(process::clean(&mut Command::new(&program.path), 2)).ok("alone");
    let run = |options: &[&str]| {
        let mut profile = profile(folder.path(), options, &program.path);
        process::run(&mut profile).ok("profile")
    };
    let title = "own time, XUs included:";
    let usual = run(&[]);
    assert_eq!(usual.text(), alone.text());
    assert!(usual.errors().contains(title), "{usual:?}");

    let to_file = run(&["--report", "report.txt"]);
    assert_eq!(to_file.text(), alone.text());
    assert!(!to_file.errors().contains(title), "{to_file:?}");
    let text = std::fs::read_to_string(folder.path().join("report.txt")).expect("it was written");
    assert!(text.contains(title), "{text}");

    let quiet = run(&["-q"]);
    assert_eq!(
        (quiet.text(), quiet.errors()),
        (alone.text(), String::new())
    );
    let quiet = run(&["--quiet", "--report", "quiet.json", "--format", "json"]);
    assert_eq!(
        (quiet.text(), quiet.errors()),
        (alone.text(), String::new())
    );
    let json = std::fs::read(folder.path().join("quiet.json")).expect("it was written");
    let report: Value = serde_json::from_slice(&json).expect("JSON");
    assert!(report["regions"].is_array(), "{report}");

    let json = run(&["--format", "json"]);
    let report: Value = serde_json::from_slice(&json.stdout).expect("nothing but JSON");
    assert!(report["regions"].is_array(), "{report}");
    assert!(json.errors().contains(&alone.text()), "{json:?}");

    // A place where nothing can be written is found before the program runs.
    let nowhere = process::run(&mut profile(
        folder.path(),
        &["--report", "no/such/folder"],
        &program.path,
    ));
    assert_eq!((nowhere.status, nowhere.text()), (1, String::new()));
}

#[test]
fn an_option_with_a_typo_is_no_program() {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let witness = folder.path().join("--event");
    let script = "#!/bin/sh\necho it runs\n";
    std::fs::write(&witness, script).expect("a file can be written");
    for command in ["record", "profile"] {
        for (typo, meant) in [("--event", "--events"), ("--unit", "--units")] {
            let mut recording = command::with_threads(2);
            recording.env("PATH", folder.path());
            recording.args([command, typo, "4", "--", "/bin/true"]);
            let refused = process::run(recording.current_dir(folder.path()));
            assert_eq!(refused.status, 2, "{refused:?}");
            assert!(
                refused.errors().contains(&format!("'{meant}'")),
                "{refused:?}"
            );
            assert!(!refused.errors().contains("-- --"), "{refused:?}");
            assert_eq!(refused.text(), "", "nothing ran");
        }
    }
    // A program's own options are its own.
    let Some(program) = program() else { return };
    let mut recording = profile(folder.path(), &["-q"], &program.path);
    let recorded = process::run(recording.args(["--event", "-q", "--help"])).ok("profile");
    assert_eq!(recorded.errors(), "");
    let mut forgotten = command::with_threads(2);
    let forgotten = process::run(forgotten.arg(&program.path));
    assert_eq!(forgotten.status, 2);
    assert!(
        forgotten.errors().contains("ompfuse profile -- "),
        "{forgotten:?}"
    );
}

#[test]
fn the_newest_folder_is_looked_at() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("there is room for profiles");
    let run = |args: &[&str]| {
        let mut command = command::with_threads(2);
        process::run(command.args(args).current_dir(folder.path()))
    };
    for command in ["report", "combine"] {
        let none = run(&[command]);
        assert_eq!((none.status, none.text()), (2, String::new()), "{command}");
        assert!(none.errors().contains("ompfuse profile --"), "{none:?}");
    }
    for n in ["1", "2"] {
        let mut record = command::with_threads(2);
        record.args(["record", "--events", "none", "--", "/bin/sh", "-c"]);
        record.arg(format!("{} # {n}", program.path.display()));
        process::run(record.current_dir(folder.path())).ok("record");
    }
    let said = run(&["report"]).ok("report");
    assert!(said.errors().contains("ompfuse-out-2"), "{said:?}");
    assert!(said.text().contains("# 2"), "{said:?}");
    run(&["combine"]).ok("combine");
    let profile = folder.path().join("ompfuse-out-2/profile.parquet");
    assert!(!table::export(&profile).is_empty());
    // Where it isn't clear where the profile goes, it has to be said.
    let runs = ["ompfuse-out/run-0001", "ompfuse-out-2/run-0001"];
    assert_eq!(run(&["combine", runs[0], runs[1]]).status, 2);
    assert_eq!(run(&["combine", runs[0]]).status, 2);
}

/// Nothing is cut in a pipe, for whoever searches it.
#[test]
fn no_line_is_longer_than_the_terminal() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let events = "task-clock,page-faults,minor-faults,major-faults";
    for (out, events) in [("out", &["--events", events][..]), ("plain", &[])] {
        let mut recording = command::with_threads(2);
        recording.arg("record").args(events).args(["-o", out, "--"]);
        recording.arg(&program.path).current_dir(folder.path());
        process::run(&mut recording).ok("record");
    }
    let path = program.path.to_str().expect("an ordinary path");
    for args in [
        &["report", "out"][..],
        &["report", "out", "--by", "site"],
        &["report", "plain"],
        &["scan", path],
        &["patch", path, "--dry-run"],
        &["events"],
    ] {
        let text = |columns: Option<&str>| {
            let mut command = command::with_threads(2);
            command.env_remove("COLUMNS").current_dir(folder.path());
            command.envs(columns.map(|n| ("COLUMNS", n)));
            process::run(command.args(args)).ok("a text").text()
        };
        for columns in [60, 80, 100, 132] {
            let text = text(Some(&columns.to_string()));
            let longest = text.lines().map(|l| l.chars().count()).max();
            assert!(longest <= Some(columns), "{args:?}, {columns}: {text}");
        }
        let narrow = text(Some("60"));
        if args[0] == "report" {
            assert!(narrow.contains("no room for: "), "{narrow}");
        }
        let whole = text(None);
        assert!(
            args[0] == "report" || !whole.contains('…'),
            "{args:?}: {whole}"
        );
    }
}

#[test]
fn a_row_is_a_construct_of_a_line() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("there is room for a profile");
    process::run(&mut profile(
        folder.path(),
        &["-q", "-o", "out"],
        &program.path,
    ))
    .ok("profile");
    let report = |options: &[&str]| {
        let mut command = command::with_threads(2);
        command.args(["report", "out"]).args(options);
        process::run(command.env("COLUMNS", "140").current_dir(folder.path())).ok("report")
    };
    let line = 1 + PROGRAM
        .lines()
        .position(|l| l.contains("parallel for reduction"))
        .expect("it is there");
    let json: Value =
        serde_json::from_slice(&report(&["--format", "json"]).stdout).expect("JSON was asked for");
    let regions = json["regions"].as_array().expect("regions");
    let at = |line: usize| {
        let is_it = move |r: &&Value| r["source"]["line"] == line && r["construct"] == "parallel";
        regions.iter().filter(is_it)
    };
    let (sites, executions) = (
        at(line).count(),
        at(line).map(|r| r["executions"].as_u64().expect("a number")),
    );
    assert!(sites > 1, "g++ inlines it: {json:#}");
    assert_eq!(executions.sum::<u64>(), 3);

    /// The rows of a table, by the name of the source line.
    fn rows(text: &str, place: &str, construct: &str) -> Vec<Vec<String>> {
        let (_, table) = (text.split_once("own time, XUs included:")).expect("the first table");
        let table = table.split("\n\n").next().expect("it has an end");
        let words = table
            .lines()
            .map(|l| l.split_whitespace().map(str::to_owned).collect());
        words
            .filter(|w: &Vec<String>| w.iter().any(|w| w == place))
            .filter(|w| w.iter().any(|w| w == construct))
            .collect()
    }
    let place = format!("program.cc:{line}");
    let text = report(&[]).text();
    let merged = rows(&text, &place, "parallel");
    assert_eq!(merged.len(), 1, "{text}");
    let at_place = merged[0].iter().position(|w| *w == place);
    let executions = &merged[0][at_place.expect("it was found by it") + 1];
    assert_eq!(executions, "3", "{text}");
    assert!(text.contains("--by site lists each"), "{text}");
    let each = report(&["--by", "site"]).text();
    assert_eq!(rows(&each, &place, "parallel").len(), sites, "{each}");
    // Instances of a template are not one.
    let instances = format!(
        "program.cc:{}",
        PROGRAM
            .lines()
            .position(|l| l.ends_with("parallel for"))
            .expect("it is there")
            + 1
    );
    assert_eq!(rows(&text, &instances, "parallel").len(), 2, "{text}");
    for name in ["scaled<double>", "scaled<long>"] {
        assert!(text.contains(&format!("{instances} {name}")), "{text}");
    }
    // What all rows of one kind add up to is the same.
    let shares = |text: &str| -> f64 {
        let (_, table) = (text.split_once("own time, XUs included:")).expect("the first table");
        let table = table.split("\n\n").next().expect("it has an end");
        let share = |w: &str| w.strip_suffix('%')?.parse::<f64>().ok();
        let of_line = |l: &str| l.split_whitespace().find_map(share);
        table.lines().skip(2).filter_map(of_line).sum()
    };
    assert!((shares(&text) - shares(&each)).abs() < 2.0, "{text}{each}");
}

/// Questions to the runtime need no probe: they are no failures.
#[test]
fn constructs_are_counted_and_not_calls() {
    let Some(program) = program() else { return };
    let path = program.path.to_str().expect("an ordinary path");
    let scan = command::json(["scan", path, "--format", "json"]);
    let sites = scan["sites"].as_array().expect("sites");
    let is = |key: &'static str, value: &'static str| move |s: &&Value| s[key] == value;
    let services = sites.iter().filter(is("outcome", "service")).count();
    assert!(services >= 3, "{scan}");
    let is_small = |s: &&Value| {
        let reason = s["reason"].as_str().unwrap_or_default();
        reason.ends_with("; listed only")
    };
    let small = sites.iter().filter(is_small).count();
    let regions = sites
        .iter()
        .filter(|s| s["region"] == s["id"] && s["outcome"] != "service" && !is_small(s))
        .count();
    let text = command::ok(["scan", path]).text();
    let said = format!(
        "{regions} constructs in {} sites: ",
        sites.len() - services - small
    );
    assert!(text.contains(&said), "{said}: {text}");
    let dry = command::ok(["patch", path, "--dry-run"]).text();
    let said = format!("{regions} of {regions} constructs would be patched");
    assert!(dry.contains(&said), "{said}: {dry}");
    // What a script starts is patched on the way.
    let folder = tempfile::tempdir().expect("there is room for a run");
    let mut record = command::with_threads(2);
    record.args([
        "record", "--events", "none", "-o", "out", "--", "/bin/sh", "-c",
    ]);
    record.arg(format!("{path}; true"));
    let recorded = process::run(record.current_dir(folder.path())).ok("record");
    let said = format!("patched {path}: {regions} constructs\n");
    assert!(recorded.errors().contains(&said), "{said}: {recorded:?}");
}
