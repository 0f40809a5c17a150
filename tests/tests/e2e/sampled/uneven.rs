//! Why some units are slow, where it is known: the program says by an argument what makes them so. "Not known" is allowed, a wrong answer
//! is not. Other programs on the machine may interrupt units; that is told only where nothing else makes them slow.

use super::{is_allowed, lines, record, regions, source};
use ompfuse_tests::{command, compile, process, table};
use serde_json::Value;
use std::path::Path;

/// What is right for each argument: the reason's kind, and a word that names the code. Of what is done in the kernel, the code that
/// asks for it is right, too: how much of a system call is in user code depends on the machine.
const REASONS: [(&str, &str, &str); 13] = [
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
    ("allocation", "kernel", "slow.c"),
    ("null", "interrupted", ""),
    ("short", "interrupted", ""),
];

/// Where units had stopped: the system call, and the line's text.
const STOPS: [(&str, &str, &str); 3] = [
    ("sleep", "nanosleep", "usleep(6000)"),
    ("lock", "futex", "pthread_mutex_lock"),
    ("lock", "nanosleep", "usleep(4000)"), // the one that has it
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
            // Nothing is told where samples were lost, as on a busy machine.
            None => {}
            Some((found, _)) if found == "unknown" => {}
            Some((found, what)) => {
                let is_code = found == "code" && what.to_string().contains(word);
                let is_right = match *kind {
                    "code" => is_code,
                    // Threads wait for each other there, too.
                    "kernel" => is_code || ["kernel", "asleep"].contains(&found.as_str()),
                    kind => found == kind,
                };
                assert!(is_right, "{compiler}, {argument}: {found}, {what}");
                stop_is_right(argument, &what);
                right += 1;
            }
        }
    }
    right
}

/// If a place is told at which slow units had stopped, it is the right one.
fn stop_is_right(argument: &str, what: &Value) {
    let known: Vec<_> = STOPS.iter().filter(|(of, ..)| *of == argument).collect();
    let Some(at) = what["at"].as_object().filter(|_| !known.is_empty()) else {
        return;
    };
    let line = at["line"].as_u64().expect("the program has lines");
    let source = std::fs::read_to_string(source("slow.c")).expect("a source");
    let told = source.lines().nth(line as usize - 1).unwrap_or_default();
    let called = at["call"].as_str().expect("a call");
    let is_it =
        |(_, call, text): &&(&str, &str, &str)| called.contains(call) && told.contains(text);
    assert!(known.into_iter().any(|k| is_it(&k)), "{at:?}");
}

#[test]
fn slow_iterations_have_their_reason() {
    if !is_allowed() {
        return;
    }
    let all: Vec<&str> = REASONS.iter().map(|(argument, ..)| *argument).collect();
    let right = told("gcc -O1 -g -fopenmp", &all);
    assert!(right >= 7, "{right} of {} are told", all.len());
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
    assert!(right >= 1, "{right} are told");
}

/// With counts the same run tells exactly whether slow units execute more.
#[test]
fn counts_confirm_what_slow_units_do() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = super::program("slow", "gcc -O1 -g -fopenmp -lm") else {
        return;
    };
    let cases = [
        ("trips", 5.0, f64::INFINITY, "more rounds of an inner loop"),
        ("memory", 0.9, 1.2, "memory, or a slower processor"),
        ("function", 5.0, f64::INFINITY, "counted exactly"),
    ];
    let mut confirmed = 0;
    for (argument, least, most, words) in cases {
        let out = folder.path().join(argument);
        let mut ours = command::with_threads(2);
        ours.args(["record", "--count", "--sampling=1000", "-o"])
            .arg(&out);
        process::run(ours.arg("--").arg(&program).args([argument, "6"])).ok("record");
        let run = table::runs(&out).pop().expect("a run was recorded");
        let all = lines(&run);
        let uneven = regions(&all).iter().find(|r| r["uneven"].is_object());
        let Some(uneven) = uneven.filter(|r| r["uneven"]["reason"] != "unknown") else {
            continue; // too few samples
        };
        let of = |key: &str| uneven["uneven"]["instructions"][key].as_f64();
        let times = of("slow").expect("a count") / of("fast").expect("a count");
        assert!((least..most).contains(&times), "{argument}: {uneven:#}");
        let text = [Path::new("report"), Path::new("--lines"), &run];
        let text = command::ok(text).text();
        let told: Vec<&str> = text.split_whitespace().collect();
        assert!(told.join(" ").contains(words), "{argument}: {text}");
        confirmed += 1;
    }
    assert!(confirmed >= 1, "all had too few samples");
}

/// Where units differ by what others do only, no line is ever named.
mod whole {
    use super::*;

    #[test]
    #[ignore = "tests/run.sh whole"]
    fn no_line_is_named_without_a_reason() {
        for _ in 0..20 {
            told("gcc -O2 -g -fopenmp", &["null"]);
            told("clang-19 -DTASKS -O1 -g -fopenmp", &["null"]);
        }
    }
}
