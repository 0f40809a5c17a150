//! Why some units are slow, where it is known: the program says by an argument what makes them so. "Not known" is allowed, a wrong answer
//! is not. Other programs on the machine may interrupt units; that is told only where nothing else makes them slow.

use super::{is_allowed, lines, record, regions, source};
use ompfuse_tests::compile;
use serde_json::Value;
use std::path::Path;

/// What is right for each argument: the reason's kind, and a word that its text has.
const REASONS: [(&str, &str, &str); 12] = [
    ("trips", "alike", ""),
    ("branch", "code", "slow.c"),
    ("function", "code", "refine"),
    ("input", "code", "refine"),
    ("recursion", "code", "deep"),
    ("memory", "alike", ""),
    ("sleep", "asleep", ""),
    ("pages", "kernel", ""),
    ("calls", "kernel", ""),
    ("lock", "asleep", ""),
    ("allocation", "kernel", ""),
    ("null", "interrupted", ""),
];

/// The reason's kind and all that is said of it; `None`: the units are even.
fn reason(run: &Path) -> Option<(String, Value)> {
    let all = lines(run);
    let units = |r: &&Value| r["uneven"]["units"].as_u64();
    let uneven = regions(&all).iter().max_by_key(units)?;
    let reason = &uneven["uneven"]["reason"];
    if let Some(kind) = reason.as_str() {
        return Some((kind.to_owned(), reason.clone()));
    }
    let (kind, what) = reason.as_object()?.iter().next()?;
    Some((kind.clone(), what.clone()))
}

/// Of some arguments the number that is told, and is right; none may be wrong.
fn told(compiler: &str, wanted: &[&str]) -> usize {
    let folder = tempfile::tempdir().expect("there is room");
    let program = folder.path().join("slow");
    if !compile::files(&[source("slow.c")], &program, &format!("{compiler} -lm")) {
        return wanted.len();
    }
    let mut right = 0;
    for (argument, kind, word) in REASONS.iter().filter(|(a, ..)| wanted.contains(a)) {
        let out = folder.path().join(argument);
        let run = record(&program, &[argument, "6"], 2, &out, &["--sampling=1000"]);
        match reason(&run) {
            None => assert!(*argument == "null", "{argument}: its units aren't even"),
            Some((found, _)) if found == "unknown" => {}
            Some((found, what)) => {
                assert_eq!(found, *kind, "{compiler}, {argument}: {what}");
                assert!(what.to_string().contains(word), "{argument}: {what}");
                right += 1;
            }
        }
    }
    right
}

#[test]
fn slow_iterations_have_their_reason() {
    if !is_allowed() {
        return;
    }
    let all: Vec<&str> = REASONS.iter().map(|(argument, ..)| *argument).collect();
    let right = told("gcc -O1 -g -fopenmp", &all);
    assert!(right >= 8, "{right} of {} are told", all.len());
}

#[test]
fn slow_tasks_have_their_reason() {
    if !is_allowed() {
        return;
    }
    let right = told(
        "clang-19 -DTASKS -O2 -g -fopenmp",
        &["trips", "function", "sleep", "null"],
    );
    assert!(right >= 2, "{right} are told");
}
