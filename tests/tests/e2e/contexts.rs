//! Where regions are called from, against what the C library's `backtrace` tells in the program itself (`tests/sources/backtraces.c`).

use crate::shares::reported;
use ompfuse_tests::{command, compile, each, process, repository, tools};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A call: file, and link-time address that it returns to.
type Call = (String, u64);

/// The program by a compiler, in a folder of its own.
fn program(compiler: &str, flags: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let source = repository().join("tests/sources/backtraces.c");
    let command = format!("{compiler} -O2 -g {flags} -fopenmp -ldl");
    compile::files(&[source], &folder.path().join("backtraces"), &command).then_some(folder)
}

/// Records a program: what it said, and its report.
fn record(program: &Path, options: &[&str], args: &[&str]) -> (String, Value) {
    let out = program.with_file_name("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    record.args(options).arg("--").arg(program).args(args);
    let said = process::run(&mut record).ok("record").text();
    (said, reported(&out))
}

/// The calls of a context, innermost first, and why they end.
fn calls<'r>(report: &'r Value, context: &Value) -> Vec<&'r Value> {
    let all = report["contexts"].as_array().expect("a list");
    let find = |id: &Value| all.iter().find(|c| c["id"] == *id);
    let next = |call: &&'r Value| find(&call["caller"]);
    std::iter::successors(find(context), next).collect()
}

fn call(call: &Value) -> Call {
    let file = call["file"].as_str().expect("the call is in a file");
    let address = call["address"].as_str().expect("an address");
    let address = address.strip_prefix("0x").expect("hexadecimal");
    let name = file.rsplit('/').next().unwrap_or(file);
    let address = u64::from_str_radix(address, 16).expect("hexadecimal");
    (name.to_owned(), address)
}

/// The call paths of parallel regions.
fn regions(report: &Value) -> Vec<&Value> {
    let all = report["call_paths"].as_array().expect("a list");
    all.iter().filter(|p| !p["wall_s"].is_null()).collect()
}

/// What the program says of the callers of its function `work`, by number of executions.
fn own(said: &str) -> BTreeMap<Vec<Call>, u64> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("call ")?.split(' ');
        let times = words.next()?.parse().ok()?;
        let call = |word: &str| {
            let (file, address) = word.rsplit_once(':')?;
            Some((file.to_owned(), u64::from_str_radix(address, 16).ok()?))
        };
        Some((words.map_while(call).collect(), times))
    };
    said.lines().filter_map(line).collect()
}

const COMPILERS: [&str; 3] = ["gcc", "clang-14", "clang-19"];

#[test]
fn callers_are_those_that_the_c_library_finds() {
    let of = |compiler: &&str| program(compiler, "-fomit-frame-pointer");
    for (compiler, folder) in each(COMPILERS, of) {
        let path = folder.path().join("backtraces");
        let (said, report) = record(&path, &[], &["calls"]);
        let wanted = own(&said);
        assert_eq!(wanted.len(), 8, "{compiler}: {said}");
        let mut found: BTreeMap<Vec<Call>, u64> = BTreeMap::new();
        for path in regions(&report) {
            let chain = calls(&report, &path["context"]);
            assert!(chain.iter().all(|c| c["cut"].is_null()), "{compiler}");
            assert_eq!(chain[0]["function"], "work", "{compiler}: {chain:?}");
            let callers = chain.iter().skip(1).map(|c| call(c)).collect();
            *found.entry(callers).or_default() += path["executions"].as_u64().expect("a number");
        }
        assert_eq!(found, wanted, "{compiler}");
        // The region is one all the same, where nobody asks who has called it.
        let flat = report["regions"].as_array().expect("a list");
        let flat: Vec<&Value> = flat
            .iter()
            .filter(|r| r["construct"] == "parallel")
            .collect();
        assert_eq!(flat.len(), 1, "{compiler}");
        assert_eq!(flat[0]["executions"], wanted.values().sum::<u64>());
        let told: Vec<&str> = regions(&report)
            .iter()
            .filter_map(|p| p["called_from"].as_str())
            .collect();
        for text in [
            "main › one › work",
            "main › two › work",
            "main › sized › work",
        ] {
            assert!(told.contains(&text), "{compiler}: {told:?}");
        }
        let lines = report["contexts"].as_array().expect("a list").iter();
        let in_program = lines.filter(|c| c["function"] == "one");
        for call in in_program {
            let source = call["source"].as_str().unwrap_or_default();
            assert!(source.ends_with("backtraces.c"), "{compiler}: {call}");
            assert!(call["line"].as_u64().is_some_and(|l| l > 0), "{compiler}");
        }
    }
}

#[test]
fn chains_are_no_longer_than_wanted() {
    for (compiler, folder) in each(COMPILERS, |c: &&str| program(c, "")) {
        let path = folder.path().join("backtraces");
        for (depth, len) in [("10", 10), ("32", 32), ("128", 0), ("none", 0)] {
            let (said, report) = record(&path, &["--context-depth", depth], &["deep"]);
            let wanted = own(&said).into_keys().next().expect("it has called");
            assert!(wanted.len() > 100, "{compiler}");
            let paths = regions(&report);
            assert_eq!(paths.len(), 1, "{compiler}");
            let chain = calls(&report, &paths[0]["context"]);
            if depth == "none" {
                assert!(chain.is_empty() && paths[0]["called_from"].is_null());
                continue;
            }
            let callers: Vec<Call> = chain.iter().skip(1).map(|c| call(c)).collect();
            let len = if len == 0 { wanted.len() } else { len - 1 };
            assert_eq!(callers, wanted[..len], "{compiler}, {depth}");
            let outermost = chain.last().expect("there are calls");
            let is_cut = if len < wanted.len() {
                "depth".into()
            } else {
                Value::Null
            };
            assert_eq!(outermost["cut"], is_cut, "{compiler}, {depth}");
        }
    }
}

/// In a handler, on the program's stack or another one, and where nothing tells where frames are: the program does what it did.
#[test]
fn stacks_that_cannot_be_read_end_a_chain() {
    let without = "-fno-asynchronous-unwind-tables -fno-exceptions -fno-unwind-tables";
    let of = |(compiler, flags): &(&str, &str)| program(compiler, flags);
    let gcc = [("gcc", ""), ("gcc", without), ("clang-19", "")];
    for ((compiler, flags), folder) in each(gcc, of) {
        let path = folder.path().join("backtraces");
        for mode in ["here", "elsewhere", "calls"] {
            let alone = process::run(process::clean(Command::new(&path).arg(mode), 2));
            let (said, report) = record(&path, &[], &[mode]);
            let what = format!("{compiler} {flags} {mode}: {said}");
            let last = |text: &str| text.lines().last().map(str::to_owned);
            assert_eq!(last(&said), last(&alone.text()), "{what}");
            let paths = regions(&report);
            assert!(!paths.is_empty(), "{what}");
            for region in paths {
                let chain = calls(&report, &region["context"]);
                let is_cut = chain.last().is_some_and(|c| c["cut"] == "unknown");
                let is_readable = mode == "calls" && flags.is_empty();
                assert_eq!(is_cut, !is_readable, "{what}: {chain:?}");
                // On another stack nothing is read.
                let is_one = mode == "elsewhere" || (!is_readable && !flags.is_empty());
                assert!(!is_one || chain.len() == 1, "{what}: {chain:?}");
            }
        }
    }
}

/// A program that calls `solve` of a library, whose only exported function that is.
const LIBRARY: &str = "
__attribute__((noinline)) static double inner(int n) {
    double s = 0;
    _Pragma(\"omp parallel for reduction(+:s)\") for (int i = 0; i < n; i++) s += i;
    return s;
}
double solve(int n) { return inner(n) + 1; }
";
const CALLER: &str = "
double solve(int);
__attribute__((noinline)) double coarse(void) { return solve(10) + 1; }
__attribute__((noinline)) double fine(void) { return solve(100) + 1; }
int main(void) { return coarse() + fine() != 4999; }
";

fn with_library(compiler: &&str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = folder.path();
    let shared = format!("{compiler} -O2 -shared -fPIC -s -fopenmp");
    let linked = format!(
        "{compiler} -O2 -fopenmp -Wl,-rpath,{0} -L{0} -lsolver",
        at.display()
    );
    compile::text(at, "libsolver.so", LIBRARY, &shared)?;
    let program = compile::text(at, "caller", CALLER, &linked)?;
    Some((folder, program))
}

#[test]
fn regions_of_stripped_libraries_are_named_after_exported_functions() {
    for (compiler, (_folder, program)) in each(["gcc", "clang-19"], with_library) {
        let (_, report) = record(&program, &[], &[]);
        let mut told: Vec<String> = regions(&report)
            .iter()
            .filter_map(|p| Some(p["called_from"].as_str()?.to_owned()))
            .collect();
        told.sort_unstable();
        let expected = ["coarse", "fine"].map(|f| format!("main › {f} › libsolver.so: solve"));
        assert_eq!(told, expected, "{compiler}");
        for path in regions(&report) {
            let chain = calls(&report, &path["context"]);
            let in_library = |c: &&&Value| call(c).0 == "libsolver.so";
            let named: Vec<&Value> = chain
                .iter()
                .filter(in_library)
                .map(|c| &c["function"])
                .collect();
            assert_eq!(named, [&Value::Null, &"solve".into()], "{compiler}");
        }
    }
}

/// Exceptions that pass several regions' callers are caught where they were.
#[test]
fn exceptions_pass() {
    let source = r#"
#include <cstdio>
__attribute__((noinline)) int work(int n) {
    int s = 0;
#pragma omp parallel for reduction(+:s)
    for (int i = 0; i < n; i++) s += i;
    if (s > 100) throw s;
    return s;
}
__attribute__((noinline)) int outer(int n) { return work(n) + 1; }
int main() {
    int all = 0;
    for (int n = 1; n < 40; n++) {
        try { all += outer(n); } catch (int s) { all += 1000 + s; }
    }
    std::printf("%d\n", all);
}
"#;
    let of = |command: &&str| compile::compile(source, command);
    for (command, program) in each(["g++ -O2 -fopenmp", "clang++-19 -O2 -fopenmp"], of) {
        let alone = process::run(process::clean(&mut Command::new(&program.path), 2));
        let (said, report) = record(&program.path, &[], &[]);
        assert_eq!(said, alone.text(), "{command}");
        let told = regions(&report);
        assert_eq!(told.len(), 1, "{command}");
        assert_eq!(told[0]["called_from"], "main › outer › work", "{command}");
    }
}

/// What calls an OpenMP library of numpy's from Python.
#[test]
fn python_modules_are_named() {
    if !tools::has("python3") {
        return;
    }
    for (compiler, (folder, _)) in each(["gcc"], with_library) {
        let library = folder.path().join("libsolver.so");
        let code = format!(
            "import ctypes; f = ctypes.CDLL('{}').solve; f.restype = ctypes.c_double; print(f(10))",
            library.display()
        );
        let out = folder.path().join("out");
        let mut record = command::with_threads(2);
        record.args(["record", "--events", "none", "-o"]).arg(&out);
        record.args(["--", "python3", "-c", &code]);
        let said = process::run(&mut record).ok("python").text();
        assert_eq!(said.trim(), "46.0", "{compiler}");
        let report = reported(&out);
        let paths = regions(&report);
        assert_eq!(paths.len(), 1);
        let told = paths[0]["called_from"].as_str().unwrap_or_default();
        assert!(told.ends_with("libsolver.so: solve"), "{told}");
        let files: Vec<String> = calls(&report, &paths[0]["context"])
            .iter()
            .filter_map(|c| c["file"].as_str().map(str::to_owned))
            .collect();
        assert!(files.iter().any(|f| f.contains("_ctypes")), "{files:?}");
        assert!(files.iter().any(|f| f.contains("python3")), "{files:?}");
    }
}
