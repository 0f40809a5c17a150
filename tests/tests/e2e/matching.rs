//! Regions of two builds that `ompfuse diff` takes for the same: held against the sources.
//!
//! All builds: `cargo test --profile tests -p ompfuse-tests --test e2e matching::all -- --ignored --nocapture`, some minutes on two
//! cores. It prints the table of `docs/measurements/matching.md`.

mod cases;
mod constructs;
mod directives;
mod moved;
mod tally;

use constructs::Places;
use directives::Directives;
use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::matrix::{Compiler, Link, Matrix};
use ompfuse_tests::{command, few, has, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use tally::Tally;

/// Share of what is in no group that must be matched right.
const WANTED: f64 = 0.9;

/// A compiler and its level.
type Spec = (&'static str, &'static str);

/// What is compared with what.
const PAIRS: [(Spec, Spec); 5] = [
    (("gcc-12", "-O2"), ("clang-19", "-O2")),
    (("gcc-11", "-O2"), ("gcc-12", "-O2")),
    (("gcc-12", "-O0"), ("gcc-12", "-O3")),
    (("clang-19", "-O0"), ("clang-19", "-O3")),
    (("clang-16", "-O2"), ("clang-19", "-O2")),
];

/// What is compared where time is short.
const SELECTION: [&str; 6] = ["cg", "knapsack", "loops", "mg", "sync", "taskloop"];

/// What `ompfuse diff` says of two sides, as JSON.
fn diff(a: &Path, b: &Path) -> Value {
    let mut command = command::with_threads(2);
    command.args(["diff", "--anyway", "--format", "json"]);
    command.arg(a).arg(b);
    let said = ompfuse_tests::process::run(&mut command).ok(&format!("{command:?}"));
    serde_json::from_slice(&said.stdout).expect("JSON")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A recorded build.
struct Recorded {
    build: Build,
    folder: tempfile::TempDir,
}

/// A fixture's variant as a compiler makes it, recorded; `None`: that can't be had.
fn recorded(fixture: &Fixture, variant: &str, spec: Spec, stripped: bool) -> Option<Recorded> {
    let matrix = Matrix::get();
    let compiler: &'static Compiler = matrix.versions.iter().find(|v| v.name == spec.0)?;
    let link: &'static Link = matrix.sets.iter().find(|l| l.name == "plain")?;
    let build = fixture.build(variant, compiler, link, spec.1, stripped)?;
    let folder = tempfile::tempdir().expect("there is room for a run");
    let flags = ["--events", "none"];
    table::record(&build.path, &[], 2, folder.path(), &flags).ok(&format!("recording {build}"));
    Some(Recorded { build, folder })
}

/// Tallies by pair of compilers, and whether symbols are gone.
type Tallies = BTreeMap<(usize, bool), Tally>;

/// All comparisons of a fixture's variant.
fn compare(name: &str, variant: &str, pairs: &[(Spec, Spec)], tallies: &Mutex<Tallies>) {
    let fixture = Fixture::open(name);
    for stripped in [false, true] {
        let mut known: BTreeMap<Spec, Option<Recorded>> = BTreeMap::new();
        for (number, pair) in pairs.iter().enumerate() {
            for spec in [pair.0, pair.1] {
                known
                    .entry(spec)
                    .or_insert_with(|| recorded(&fixture, variant, spec, stripped));
            }
            let (Some(a), Some(b)) = (&known[&pair.0], &known[&pair.1]) else {
                continue;
            };
            let diff = diff(a.folder.path(), b.folder.path());
            let truth = |recorded: &Recorded, side: &str| {
                let build = &recorded.build;
                // A stripped copy has its code where it was.
                let whole = build.path.with_extension("");
                let directives = Directives::of_build(build);
                let is_gcc = build.compiler == "gcc";
                Places::of(&whole, is_gcc, &directives, &tally::regions(&diff, side))
            };
            let what = format!("{} / {}", a.build, b.build);
            let sides = [truth(a, "a"), truth(b, "b")];
            let mut tallies = tallies.lock().expect("no comparison failed");
            let tally = tallies.entry((number, stripped)).or_default();
            tally.add(&what, &diff, [&sides[0], &sides[1]]);
        }
    }
}

/// Compares everything on two threads, prints the table and holds it against what is wanted.
fn judge(names: &[String], pairs: &[(Spec, Spec)]) {
    if !has("addr2line") || !has("strip") {
        return;
    }
    let variants = |name: &String| {
        let variants = Fixture::open(name).variants().into_iter();
        variants
            .map(|(variant, _)| (name.clone(), variant))
            .collect::<Vec<_>>()
    };
    let work: Mutex<Vec<(String, String)>> = Mutex::new(names.iter().flat_map(variants).collect());
    let tallies = Mutex::new(Tallies::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("nobody panics with it").pop();
                    let Some((name, variant)) = next else { break };
                    compare(&name, &variant, pairs, &tallies);
                }
            });
        }
    });
    let tallies = tallies.into_inner().expect("no comparison failed");
    println!(
        "| builds | symbols | comparisons | regions | right % | in groups % | unmatched % | no partner % | truth unknown % | wrong | right by time % | right by number % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let (mut failures, mut waits) = (vec![], 0);
    for ((number, stripped), tally) in &tallies {
        let ((a, x), (b, y)) = pairs[*number];
        let symbols = if *stripped { "stripped" } else { "-g" };
        println!("| {a} {x} / {b} {y} | {symbols} | {tally} |");
        for wrong in tally.wrong.iter().chain(&tally.waits) {
            failures.push(format!("wrong: {wrong}"));
        }
        waits += tally.n_waits;
        if tally.quality().iter().any(|&q| q < WANTED) {
            failures.push(format!(
                "{a} {x} / {b} {y}, {symbols}: too little is matched"
            ));
        }
    }
    for tally in tallies.values() {
        for unmatched in &tally.unmatched {
            println!("unmatched {unmatched}");
        }
        for unknown in &tally.unknown {
            println!("unknown {unknown}");
        }
    }
    println!("{waits} pairs of barriers and taskwaits");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_selection_of_builds_is_matched_right() {
    let names: Vec<String> = (few(&SELECTION, 3).into_iter())
        .map(str::to_owned)
        .collect();
    judge(&names, &PAIRS[..3]);
}

#[test]
#[ignore = "all fixtures by all compilers take some minutes"]
fn all_builds_are_matched_right() {
    judge(&fixture::names(), &PAIRS);
}
