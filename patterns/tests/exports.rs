//! Every function that the installed runtimes export for programs is known to the tables.

use ompfuse_patterns::lookup;
use std::path::PathBuf;
use std::process::Command;

/// What runtimes export for tools, for each other and for debuggers.
const OTHERS: [&str; 5] = ["___kmp_", "__kmp_", "ompt_", "ompd", "acc_"];

/// The file that a compiler finds for a library's name; `None`, and said so, without one.
fn library(compiler: &str, name: &str) -> Option<PathBuf> {
    let output = Command::new(compiler)
        .arg(format!("-print-file-name={name}"))
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

fn exports(library: &PathBuf) -> Vec<String> {
    let mut command = Command::new("nm");
    let output = command
        .args(["-D", "--defined-only"])
        .arg(library)
        .output()
        .expect("nm is installed with the compiler");
    assert!(output.status.success(), "nm fails on {}", library.display());
    let text = String::from_utf8(output.stdout).expect("symbols are text");
    // Absolute symbols are names of versions.
    let name = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, kind, name] if kind != "A" => Some(name.split('@').next()?.to_owned()),
        _ => None,
    };
    text.lines().filter_map(name).collect()
}

fn all_known(compiler: &str, name: &str, some: &[&str]) {
    let Some(library) = library(compiler, name) else {
        let ci = std::env::var("CI").is_ok_and(|v| v == "true");
        assert!(!ci, "no {name} by {compiler}");
        return eprintln!("skipped: no {name} by {compiler}");
    };
    let exports = exports(&library);
    for symbol in some {
        assert!(
            exports.iter().any(|e| e == symbol),
            "{symbol} is not seen in {}: the test is broken",
            library.display()
        );
    }
    let is_other = |e: &&String| OTHERS.iter().any(|o| e.starts_with(o));
    let unknown: Vec<&String> = exports
        .iter()
        .filter(|e| !is_other(e) && lookup(e).is_none())
        .collect();
    assert!(
        unknown.is_empty(),
        "{} has unknown entry points: {unknown:?}",
        library.display()
    );
}

#[test]
fn of_libgomp() {
    let some = ["GOMP_parallel", "omp_set_lock_", "GOACC_parallel_keyed"];
    all_known("gcc", "libgomp.so.1", &some);
}

#[test]
fn of_libomp() {
    let some = ["__kmpc_fork_call", "omp_set_num_threads_", "kmpc_malloc"];
    all_known("clang-19", "libomp.so", &some);
}

/// With a probe, or with the reason why there needs to be none: what has neither is listed by `scan` as skipped.
#[test]
fn entries_without_probe_have_a_reason() {
    let silent: Vec<&str> = ompfuse_patterns::entries()
        .iter()
        .filter(|e| e.probe.is_none() && e.no_probe.is_none())
        .map(|e| e.symbol.as_str())
        .collect();
    let new: Vec<&&str> = silent.iter().filter(|s| !NOT_YET.contains(s)).collect();
    assert!(
        new.is_empty(),
        "entry points without probe or reason: {new:?}"
    );
}

/// What has no probe yet, though it would tell something.
const NOT_YET: [&str; 5] = [
    "GOMP_teams",
    "GOMP_teams4",
    "__kmpc_for_collapsed_init",
    "__kmpc_omp_target_task_alloc",
    "__tgt_target*",
];
