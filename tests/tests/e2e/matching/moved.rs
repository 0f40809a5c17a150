//! Functions of natural sources that moved into other files and changed their order there. `#line` moves them, so the code is what it was:
//! each region belongs to the one at its own address, and no other tool is needed to know it.
//!
//! All fixtures: `cargo test --profile tests -p ompfuse-tests --test e2e matching::moved::all -- --ignored --nocapture`

use super::{SELECTION, Spec, diff};
use ompfuse_tests::fixture::{self, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{few, has, process, table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const BUILDS: [Spec; 3] = [("gcc-12", "-O2"), ("clang-19", "-O2"), ("gcc-12", "-O0")];

/// Share of the regions that must be matched right; of all fixtures, of their time. Of a few programs a region that is not matched
/// may have any share of it on a busy machine.
const WANTED: f64 = 0.95;

/// A function takes so many lines at most.
const LONGEST: usize = 2000;

/// The source with its functions in several files, the last one first.
fn moved(source: &str, files: usize) -> String {
    let mut functions: Vec<Vec<&str>> = vec![vec![]];
    for line in source.lines() {
        let last = functions.last_mut().expect("there is one");
        last.push(line);
        if line.starts_with('}') {
            functions.push(vec![]);
        }
    }
    let mut text = String::new();
    let all = functions.len();
    for (at, function) in functions.iter().enumerate() {
        assert!(function.len() < LONGEST);
        text += &format!("#line {} \"part{}.c\"\n", (all - at) * LONGEST, at % files);
        for line in function {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Records a source as a fixture's variant; `None`: this compiler doesn't make it.
fn recorded(
    fixture: &Fixture,
    variant: &str,
    spec: Spec,
    source: &str,
    folder: &Path,
) -> Option<()> {
    let compiler = (Matrix::get().versions.iter()).find(|v| v.name == spec.0)?;
    let command = compiler.command("c").filter(|command| has(command))?;
    if !fixture.is_for(compiler.family()) || !fixture.has_compiler(compiler) {
        return None;
    }
    std::fs::create_dir(folder).expect("the folder is ours");
    let own = folder.join(fixture.source.file_name().expect("a file"));
    std::fs::write(&own, source).expect("the folder is ours");
    let program = folder.join("program");
    let mut build = Command::new(command);
    build.args(["-fopenmp", "-g", spec.1, "-iquote"]);
    build.arg(fixture.source.parent().expect("a source is in a folder"));
    for arg in fixture.arguments(variant, compiler)? {
        match Path::new(&arg) == fixture.source {
            true => build.arg(&own),
            false => build.arg(arg),
        };
    }
    process::run(build.arg("-o").arg(&program)).ok(&format!("{build:?}"));
    table::record(
        &program,
        &[],
        2,
        &folder.join("runs"),
        &["--events", "none"],
    )
    .ok("recording");
    Some(())
}

/// Kinds and addresses of the regions on one side of a pair.
fn places(keys: &Value) -> BTreeSet<(String, String)> {
    let of = |key: &Value| -> Vec<(String, String)> {
        let kind = key["construct"].as_str().expect("a text");
        let addresses = key["addresses"].as_array().expect("a list");
        let text = |a: &Value| (kind.to_owned(), a.as_str().expect("a text").to_owned());
        addresses.iter().map(text).collect()
    };
    keys.as_array()
        .expect("a list")
        .iter()
        .flat_map(of)
        .collect()
}

/// What became of the regions.
#[derive(Default)]
struct Found {
    programs: usize,
    regions: usize,
    /// Of these: matched right.
    right_regions: usize,
    /// Shares of the time, summed over programs.
    right: f64,
    grouped: f64,
    wrong: Vec<String>,
    unmatched: Vec<String>,
}

impl Found {
    fn add(&mut self, what: &str, diff: &Value) {
        self.programs += 1;
        let all = ["a", "b"].map(|side| super::tally::regions(diff, side));
        for pair in diff["pairs"].as_array().expect("a list") {
            let (a, b) = (places(&pair["a"]), places(&pair["b"]));
            let share = pair["share"][0].as_f64().expect("a number");
            self.regions += a.len();
            // A place that was not reached in one run is in no region there.
            let is_in = |of: &BTreeSet<_>, all: &BTreeSet<_>, other: &BTreeSet<_>| {
                of.iter()
                    .all(|place| other.contains(place) || !all.contains(place))
            };
            let is_right = !a.is_disjoint(&b) && is_in(&a, &all[1], &b) && is_in(&b, &all[0], &a);
            match (pair["is_group"] == true, is_right || a == b) {
                (_, false) => self.wrong.push(format!("{what}: {a:?} is not {b:?}")),
                (true, true) => self.grouped += share,
                (false, true) => {
                    self.right += share;
                    self.right_regions += a.len();
                }
            }
        }
        let lone = diff["only_a"].as_array().expect("a list");
        self.regions += lone.len();
        for lone in lone {
            self.unmatched
                .push(format!("{what}: {} {}", lone["key"], lone["share"]));
        }
    }
}

fn judge(names: &[String], is_whole: bool) {
    let folder = tempfile::tempdir().expect("there is room for runs");
    println!("| build | comparisons | regions | right % | in groups % | unmatched % | wrong |");
    for spec in BUILDS {
        let mut found = Found::default();
        for name in names {
            let fixture = Fixture::open(name);
            if fixture.source.extension().is_none_or(|e| e != "c") {
                continue;
            }
            let source = std::fs::read_to_string(&fixture.source).expect("text");
            let most = if is_whole { usize::MAX } else { 1 };
            for (variant, _) in fixture.variants().into_iter().take(most) {
                let of = |side: &str| {
                    folder
                        .path()
                        .join(format!("{}{}-{name}-{variant}-{side}", spec.0, spec.1))
                };
                let (a, b) = (of("before"), of("after"));
                let made = recorded(&fixture, &variant, spec, &source, &a)
                    .and_then(|()| recorded(&fixture, &variant, spec, &moved(&source, 3), &b));
                if made.is_some() {
                    let diff = diff(&a.join("runs"), &b.join("runs"));
                    found.add(&format!("{name} {variant} {} {}", spec.0, spec.1), &diff);
                }
            }
        }
        let of_all = |share: f64| 100.0 * share / found.programs.max(1) as f64;
        let (right, grouped) = (of_all(found.right), of_all(found.grouped));
        let unmatched = 100.0 - right - grouped;
        println!(
            "| {} {} | {} | {} | {right:.1} | {grouped:.1} | {unmatched:.1} | {} |",
            spec.0,
            spec.1,
            found.programs,
            found.regions,
            found.wrong.len()
        );
        found
            .unmatched
            .iter()
            .for_each(|lone| println!("unmatched {lone}"));
        assert!(found.wrong.is_empty(), "{:#?}", found.wrong);
        let judged = match is_whole {
            true => right,
            false => 100.0 * found.right_regions as f64 / found.regions.max(1) as f64,
        };
        assert!(
            found.programs == 0 || judged >= 100.0 * WANTED,
            "{spec:?}: {judged:.1} %"
        );
    }
}

#[test]
fn a_selection_is_matched_in_other_files() {
    let names: Vec<String> = (few(&SELECTION, 3).into_iter())
        .map(str::to_owned)
        .collect();
    judge(&names, false);
}

#[test]
#[ignore = "all fixtures by three compilers take some minutes"]
fn all_are_matched_in_other_files() {
    judge(&fixture::names(), true);
}
