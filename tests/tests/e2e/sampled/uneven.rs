//! Why some units are slow, where it is known: the program says by an argument what makes them so. "Not known" is allowed, a wrong answer
//! is not. Other programs on the machine may interrupt units; that is told only where nothing else makes them slow.

use super::{is_allowed, lines, record, regions, source};
use ompfuse_tests::compile;
use serde_json::Value;
use std::path::Path;

/// What is right for each argument: the reason's kind, and a word that names the code. Of what is done in the kernel, the code that
/// asks for it is right, too: how much of a system call is in user code depends on the machine.
const REASONS: [(&str, &str, &str); 11] = [
    ("trips", "alike", ""),
    ("branch", "code", "slow.c"),
    ("function", "code", "refine"),
    ("input", "code", "refine"),
    ("recursion", "code", "deep"),
    ("memory", "alike", ""),
    ("sleep", "asleep", ""),
    ("pages", "kernel", "pages"),
    ("calls", "kernel", "getppid"),
    ("lock", "asleep", ""),
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
                let is_code = found == "code" && what.to_string().contains(word);
                let is_right = match *kind {
                    "code" => is_code,
                    "kernel" => is_code || found == "kernel",
                    kind => found == kind,
                };
                assert!(is_right, "{compiler}, {argument}: {found}, {what}");
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
