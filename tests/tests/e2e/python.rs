//! Python functions and lines that lead to regions, against what the interpreter itself says in the program (`tests/sources/python_callers.py`).

use crate::shares::reported;
use ompfuse_tests::{command, compile, each, process, repository, tools};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "
__attribute__((noinline)) static double inner(int n) {
    double s = 0;
    _Pragma(\"omp parallel for reduction(+:s)\") for (int i = 0; i < n; i++) s += i;
    return s;
}
double solve(int n) { return inner(n) + 1; }
";

/// Versions whose frames are read.
const VERSIONS: [&str; 3] = ["3.11.", "3.12.", "3.13."];

/// The interpreters that there are, one of a version. `python3` must be there.
fn interpreters() -> Vec<String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for name in [
        "python3",
        "/usr/bin/python3",
        "python3.11",
        "python3.12",
        "python3.13",
        "python3.14",
    ] {
        if let Some(version) = tools::version(name) {
            found.entry(version).or_insert_with(|| name.to_owned());
        }
    }
    assert!(
        tools::version("python3").is_some(),
        "python3 is not installed"
    );
    found.into_values().collect()
}

fn is_read(python: &str) -> bool {
    let version = tools::version(python).unwrap_or_default();
    VERSIONS.iter().any(|known| version.contains(known))
}

fn library(compiler: &&str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let command = format!("{compiler} -O2 -g -shared -fPIC -fopenmp");
    let path = compile::text(folder.path(), "libsolver.so", LIBRARY, &command)?;
    Some((folder, path))
}

fn arguments(library: &Path, what: &str) -> [PathBuf; 3] {
    let script = repository().join("tests/sources/python_callers.py");
    [script, library.to_owned(), what.into()]
}

/// Records the script: what it said, and the run.
fn record(
    python: &str,
    library: &Path,
    what: &str,
    options: &[&str],
) -> (process::Output, PathBuf) {
    let out = library.with_file_name("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    record
        .args(options)
        .arg("--")
        .arg(python)
        .args(arguments(library, what));
    (process::run(&mut record), out)
}

/// By chain of Python's callers, innermost first, the calls that the script has counted.
fn own(said: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (times, chain) = line.strip_prefix("call ")?.split_once(' ')?;
        Some((chain.to_owned(), times.parse::<u64>().ok()?))
    };
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (chain, times) in said.lines().filter_map(line) {
        *all.entry(chain).or_default() += times;
    }
    all
}

/// The same of a report.
fn found(report: &Value) -> BTreeMap<String, u64> {
    let contexts = report["contexts"].as_array().expect("a list");
    let find = |id: &Value| contexts.iter().find(|c| c["id"] == *id);
    let mut all = BTreeMap::new();
    for path in report["call_paths"].as_array().expect("a list") {
        if path["wall_s"].is_null() {
            continue;
        }
        let chain = std::iter::successors(find(&path["context"]), |c| find(&c["caller"]));
        let python = chain.filter(|c| c["language"] == "python").filter_map(|c| {
            let file = c["source"].as_str()?;
            let name = file.rsplit('/').next()?;
            let is_frozen = file.starts_with("<frozen ");
            (!is_frozen).then(|| {
                format!(
                    "{name}:{} {}",
                    c["line"],
                    c["function"].as_str().unwrap_or("?")
                )
            })
        });
        let chain: Vec<String> = python.collect();
        *all.entry(chain.join(" < ")).or_default() +=
            path["executions"].as_u64().expect("a number");
    }
    all
}

#[test]
fn callers_are_those_that_the_interpreter_tells() {
    for (compiler, (_folder, library)) in each(["gcc", "clang-19"], library) {
        for python in interpreters() {
            for what in ["many", "made", "threads", "children"] {
                let (said, out) = record(&python, &library, what, &[]);
                let mut wanted = own(&said.ok("the script").text());
                assert!(!wanted.is_empty());
                if what == "threads" {
                    // Of other threads than the first none is read.
                    wanted = BTreeMap::from([(String::new(), wanted.values().sum())]);
                }
                let found = found(&reported(&out));
                match is_read(&python) {
                    true => assert_eq!(found, wanted, "{compiler}, {python}, {what}"),
                    false => assert_eq!(found.len(), 1, "{compiler}, {python}: {found:?}"),
                }
            }
        }
    }
}

#[test]
fn beside_other_interpreters_there_are_none() {
    for (compiler, (_folder, library)) in each(["gcc"], library) {
        for python in interpreters().iter().filter(|p| is_read(p)) {
            let (said, out) = record(python, &library, "beside", &[]);
            let mut wanted = own(&said.ok("the script").text());
            wanted.insert(String::new(), 1);
            assert_eq!(found(&reported(&out)), wanted, "{compiler}, {python}");
        }
    }
}

/// Sums have the same contexts, as long as there are few.
#[test]
fn callers_are_told_in_sums() {
    for (compiler, (_folder, library)) in each(["gcc", "clang-19"], library) {
        for python in interpreters().iter().filter(|p| is_read(p)) {
            let (said, out) = record(python, &library, "many", &["--units=sums"]);
            let wanted = own(&said.ok("the script").text());
            assert_eq!(found(&reported(&out)), wanted, "{compiler}, {python}");
        }
    }
}

#[test]
fn programs_end_as_they_do() {
    for (compiler, (_folder, library)) in each(["gcc", "clang-19"], library) {
        for python in interpreters() {
            for (what, status) in [("leave", 3), ("raise", 4), ("daemons", 0)] {
                let mut alone = Command::new(&python);
                let alone = process::run(process::clean(alone.args(arguments(&library, what)), 2));
                assert_eq!(alone.status, status);
                for _ in 0..if what == "daemons" { 4 } else { 1 } {
                    let (said, out) = record(&python, &library, what, &[]);
                    let name = format!("{compiler}, {python}, {what}");
                    assert_eq!(said.status, status, "{name}: {}", said.text());
                    assert_eq!(said.text(), alone.text(), "{name}");
                    let found = found(&reported(&out));
                    let fit = found
                        .keys()
                        .filter(|chain| chain.starts_with("python_callers.py:"));
                    assert_eq!(fit.count() > 0, is_read(&python), "{name}: {found:?}");
                }
            }
        }
    }
}

/// The words, the table, and the page.
#[test]
fn lines_of_python_are_named() {
    for (compiler, (folder, library)) in each(["gcc"], library) {
        for python in interpreters().iter().filter(|p| is_read(p)) {
            let (said, out) = record(python, &library, "children", &[]);
            said.ok("the script");
            let report = reported(&out);
            let paths = report["call_paths"].as_array().expect("a list").iter();
            let told: Vec<&str> = paths.filter_map(|p| p["called_from"].as_str()).collect();
            let is_told = |text: &str| told.iter().any(|told| told.contains(text));
            assert!(
                is_told(" fit › libsolver.so: solve"),
                "{compiler}: {told:?}"
            );
            let regions = report["regions"].as_array().expect("a list").iter();
            let callers: Vec<&str> = regions.filter_map(|r| r["called_from"].as_str()).collect();
            let is_line = |text: &&str| text.starts_with("python_callers.py:");
            assert!(
                !callers.is_empty() && callers.iter().all(is_line),
                "{callers:?}"
            );
            let text = command::ok([OsStr::new("report"), out.as_os_str()]).text();
            assert!(text.contains(" python_callers.py:"), "{text}");
            let page = folder.path().join("page.html");
            let html = [OsStr::new("report"), OsStr::new("--html"), page.as_os_str()];
            command::ok(html.into_iter().chain([out.as_os_str()]));
            let page = std::fs::read_to_string(page).expect("a page");
            assert!(page.contains("called from python_callers.py:"));
        }
    }
}

/// A library by the name of one with threads of its own, whose functions have the names of that one's.
const POOL: &str = "
static volatile double sink;
__attribute__((noinline)) static void spin(double seconds) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (int i = 0; i < 1000; i++) sink += i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) * 1e-9 < seconds);
}
__attribute__((noinline)) void *blas_thread_server(void *none) {
    for (int i = 0; i < 100000000; i++) sink += i;
    return none;
}
__attribute__((noinline)) void exec_blas(void) {
    pthread_t thread;
    pthread_create(&thread, 0, blas_thread_server, 0);
    spin(0.4);
    pthread_join(thread, 0);
}
";

/// A program that calls no OpenMP runtime, but a library with threads of its own, is told of it.
#[test]
fn pools_of_threads_are_named() {
    assert!(
        tools::version("python3").is_some(),
        "python3 is not installed"
    );
    let of = |compiler: &&str| {
        let folder = tempfile::tempdir().expect("there is room for a library");
        let source = format!("#include <pthread.h>\n#include <time.h>\n{POOL}");
        let command = format!("{compiler} -O1 -shared -fPIC -pthread");
        let path = compile::text(folder.path(), "libopenblas.so.0", &source, &command)?;
        Some((folder, path))
    };
    for (compiler, (folder, library)) in each(["gcc"], of) {
        let code = format!(
            "import ctypes; ctypes.CDLL('{}').exec_blas()",
            library.display()
        );
        let out = folder.path().join("out");
        let mut record = command::with_threads(2);
        record.args(["record", "--events", "none", "-o"]).arg(&out);
        record.args(["--", "python3", "-c", &code]);
        let said = process::run(&mut record);
        let text = said.errors();
        assert_eq!(said.status, 1, "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in [
            "OpenBLAS (libopenblas.so.0) has threads of its own, which are not recorded: ",
            "its threads' wait for work; OPENBLAS_NUM_THREADS says how many threads",
            "ompfuse profile --functions lib:libopenblas.so.0:exec_blas --functions lib:libopenblas.so.0:exec_threads -- python3",
        ] {
            assert!(flat.contains(wanted), "{compiler}: {text}");
        }
        // The file that starts the interpreter has no functions of interest.
        assert!(!text.contains("--functions '*'"), "{text}");
        let lines = command::json([
            OsStr::new("report"),
            OsStr::new("--lines"),
            OsStr::new("--format=json"),
            out.as_os_str(),
        ]);
        let pool = &lines["pools"][0];
        assert!(pool["samples"].as_u64() >= Some(10), "{pool}");
        assert!(pool["waits"].as_u64() >= Some(10), "{pool}");
    }
}
