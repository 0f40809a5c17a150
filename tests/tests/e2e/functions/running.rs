//! Functions of a program that runs: switched off and on, watched, with event sets in turn, from a dormant copy; and what is exported of
//! them.

use super::reported;
use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::{command, compile, process, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// `ask N`: `other` is called N times, and `step` three times as often.
const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define KEPT __attribute__((noinline))
KEPT long step(long n);
KEPT long other(long n) { return step(n) + step(n + 1); }
int main(void) {
    char line[80];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long sum = 0;
        for (long i = atol(line); i > 0; i--) sum += other(i) + step(-i);
        printf("%ld\n", sum);
        fflush(stdout);
    }
    return 0;
}
KEPT long step(long n) { long s = n; for (long i = 0; i < 50; i++) s += s / 3 ^ i; return s; }
/* Behind the last function nothing is free. */
__attribute__((used)) static int last(int n) { return n; }
"#;

/// Functions in the source's order.
const GCC: &str = "gcc -O2 -g -fno-toplevel-reorder";

fn start(program: &Path, out: &Path, flags: &[&str]) -> Dialogue {
    let mut record = command::with_threads(1);
    record.arg("record").args(flags).arg("-o").arg(out);
    let mut dialogue = Dialogue::start(record.arg("--").arg(program));
    assert_eq!(dialogue.hear(), "ready");
    dialogue
}

fn json(command: &str, out: &Path) -> Value {
    let format = "--format=json".as_ref();
    command::json([command.as_ref(), out.as_os_str(), format])
}

fn counts(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
    list.iter()
        .map(|(name, n)| ((*name).to_owned(), *n))
        .collect()
}

#[test]
fn functions_are_watched_switched_and_exported() {
    let Some(program) = compile(C, GCC) else {
        return;
    };
    let out = program.folder.path().join("out");
    let flags = ["--functions", "*", "--events", "task-clock"];
    let mut dialogue = start(&program.path, &out, &flags);
    dialogue.ask("10");
    let rows = json("watch", &out);
    let rows = rows["regions"].as_array().expect("a list of regions");
    let entered = rows.iter().map(|row| {
        let name = row["function"].as_str().expect("a name").to_owned();
        (name, row["entered"].as_u64().expect("a number"))
    });
    // What goes on is no row yet.
    assert_eq!(
        entered.collect::<BTreeMap<_, _>>(),
        counts(&[("other", 10), ("step", 30)])
    );
    let ctl = |flags: &[&str]| {
        let mut ctl = command::with_threads(1);
        process::run(ctl.arg("ctl").arg(&out).args(flags)).ok("ctl");
    };
    ctl(&["--disable", "fn:st*"]);
    dialogue.ask("10");
    ctl(&["--enable", "fn:step", "--disable", "fn:other"]);
    dialogue.ask("5");
    dialogue.end().ok("record");
    let run = &table::runs(&out)[0];
    let expected = counts(&[("main", 1), ("other", 20), ("step", 45)]);
    assert_eq!(reported(run), expected);

    let export = |to: &str, flags: &[&str]| {
        let mut export = command::with_threads(1);
        export.args(["export", "--to", to]).args(flags).arg(run);
        process::run(&mut export).ok(to).stdout
    };
    // What `other` calls while it is off has its place all the same.
    let stacks = export("collapsed", &["--metric", "visits"]);
    let stacks = String::from_utf8(stacks).expect("stacks are text");
    let stacks = stacks.lines().map(|line| {
        let (stack, visits) = line.rsplit_once(' ').expect("a number behind a stack");
        let frames = stack.split(';').skip(1);
        let names = frames.map(|f| f.trim_start_matches("function ").split(' ').next());
        let names: Vec<&str> = names.flatten().collect();
        (names.join(";"), visits.parse().expect("a number"))
    });
    let tree = [
        ("main", 1),
        ("main;other", 20),
        ("main;other;step", 30),
        ("main;step", 15),
    ];
    let mut found: BTreeMap<String, u64> = stacks.collect();
    found.remove("");
    assert_eq!(found, counts(&tree));
    let names = ["main", "other", "step"];
    let speedscope: Value = serde_json::from_slice(&export("speedscope", &[])).expect("JSON");
    let frames = speedscope["shared"]["frames"].as_array().expect("frames");
    let frames: BTreeSet<&str> = frames.iter().filter_map(|f| f["name"].as_str()).collect();
    let perfetto = export("perfetto", &[]);
    let perfetto = String::from_utf8_lossy(&perfetto);
    for name in names {
        let text = format!("{name} program.c:");
        assert!(frames.iter().any(|f| f.starts_with(&text)), "{frames:?}");
        assert!(perfetto.contains(&text), "{name}");
    }
}

/// Sets take turns after some calls of a function: each call has the counts of one.
#[test]
fn event_sets_take_turns_by_calls() {
    let Some(program) = compile(C, GCC) else {
        return;
    };
    let out = program.folder.path().join("out");
    let sets = ["task-clock", "page-faults"];
    let events = sets.join(",");
    let flags = [
        "--functions",
        "*",
        "--events",
        &events,
        "--slots",
        "1",
        "--rotate",
        "4",
    ];
    let mut dialogue = start(&program.path, &out, &flags);
    dialogue.ask("20");
    dialogue.end().ok("record");
    let run = &table::runs(&out)[0];
    assert_eq!(
        reported(run),
        counts(&[("main", 1), ("other", 20), ("step", 60)])
    );
    let trace = command::json(["export".as_ref(), "--to=chrome".as_ref(), run.as_os_str()]);
    let spans = trace["traceEvents"].as_array().expect("a list");
    for (name, calls) in [("other ", 20), ("step ", 60)] {
        let of_this =
            |e: &&Value| e["ph"] == "X" && e["name"].as_str().is_some_and(|n| n.starts_with(name));
        let mut of_this: Vec<&Value> = spans.iter().filter(of_this).collect();
        assert_eq!(of_this.len(), calls, "{name}");
        let begin = |e: &&Value| e["ts"].as_f64().expect("a time");
        of_this.sort_by(|a, b| begin(a).total_cmp(&begin(b)));
        for (n, call) in of_this.into_iter().enumerate() {
            let counted = sets.iter().filter(|set| call["args"][set].is_u64());
            let counted: Vec<&&str> = counted.collect();
            assert_eq!(counted, [&sets[n / 4 % 2]], "call {n} of {name}: {call}");
        }
    }
}

/// A dormant copy is the program until it is recorded.
#[test]
fn a_dormant_copy_has_functions() {
    let Some(program) = compile(C, GCC) else {
        return;
    };
    let folder = program.folder.path();
    let copy = folder.join("copy");
    let mut patch = command::with_threads(1);
    patch.args(["patch", "--dormant", "--functions", "*", "-o"]);
    process::run(patch.arg(&copy).arg(&program.path)).ok("patch");
    let run = |program: &Path| {
        let mut dialogue = Dialogue::start(&mut Command::new(program));
        dialogue.hear();
        dialogue.ask("7")
    };
    assert_eq!(run(&copy), run(&program.path));
    let out = folder.join("out");
    let mut dialogue = start(&copy, &out, &table::ONE_EVENT);
    dialogue.ask("7");
    dialogue.end().ok("record");
    let expected = counts(&[("main", 1), ("other", 7), ("step", 21)]);
    assert_eq!(reported(&table::runs(&out)[0]), expected);
}
