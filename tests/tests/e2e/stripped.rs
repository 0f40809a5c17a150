//! Programs without symbols whose functions have little unwind information, as flang's: what calls lead to, and what is
//! handed to the runtime, is found all the same. objdump's calls in the program with symbols are the oracle.

use ompfuse_tests::{
    command, compile, each, few, objdump, process, repository, skip, table, tools,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sites by address: construct and whether they have, or could have, a probe.
fn sites(path: &Path) -> BTreeMap<u64, (String, bool)> {
    let path = path.to_str().expect("letters");
    let scan = command::json(["scan", "--format", "json", path]);
    let sites = scan["sites"].as_array().expect("a list");
    let site = |s: &Value| {
        let text = |name: &str| s[name].as_str().unwrap_or_default().to_owned();
        let at = text("address");
        let at = u64::from_str_radix(at.trim_start_matches("0x"), 16).expect("hexadecimal");
        (at, (text("construct"), text("outcome") == "patchable"))
    };
    sites.iter().map(site).collect()
}

/// A fixture as it is compiled, and stripped.
fn both(compiler: &&str) -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room");
    let source = repository().join("fixtures/stencil/stencil.f90");
    let whole = folder.path().join("whole");
    if !tools::has("strip") || !compile::files(&[&source], &whole, compiler) {
        return None;
    }
    let stripped = folder.path().join("stripped");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(&whole);
    process::run(&mut strip).ok("strip");
    Some((folder, whole, stripped))
}

#[test]
fn certain_functions_are_found() {
    let compilers = [
        "flang-new-19 -O0 -fopenmp",
        "flang-new-19 -O1 -fopenmp",
        "flang-new-19 -O2 -fopenmp",
        "flang-new-19 -O3 -fopenmp",
        "gfortran-12 -O2 -fopenmp -fno-asynchronous-unwind-tables",
    ];
    for (compiler, (folder, whole, stripped)) in each(few(&compilers, 3), both) {
        let (with, without) = (sites(&whole), sites(&stripped));
        let called: BTreeSet<u64> = objdump::calls(&whole).direct.into_keys().collect();
        assert!(called.len() > 15, "{compiler}");
        let listed: BTreeSet<u64> = without.keys().copied().collect();
        assert!(
            called.is_subset(&listed),
            "{compiler}: {called:x?} {listed:x?}"
        );
        // What could be recorded can be.
        for (at, site) in with.iter().filter(|(at, _)| called.contains(at)) {
            assert_eq!(without.get(at), Some(site), "{compiler} {at:#x}");
        }
        // And it is: the same constructs are executed as often.
        let executed = |program: &Path, name: &str| {
            let out = folder.path().join(name);
            let (out, program) = (
                out.to_str().expect("letters"),
                program.to_str().expect("letters"),
            );
            command::ok(["record", "--events", "none", "-o", out, "--", program]);
            let report = command::report(out);
            let regions = report["regions"].as_array().expect("a list");
            let region = |r: &Value| {
                let text = |name: &str| r[name].as_str().unwrap_or_default().to_owned();
                (
                    (text("construct"), text("address")),
                    r["executions"].clone(),
                )
            };
            regions.iter().map(region).collect::<BTreeMap<_, _>>()
        };
        let (with, without) = (executed(&whole, "with"), executed(&stripped, "without"));
        assert!(with.len() > 5, "{compiler}: {with:?}");
        assert_eq!(with, without, "{compiler}");
    }
}

const HOT: &str = r#"
#include <stdio.h>
__attribute__((noinline)) double work(long n) {
    volatile double s = 0;
    for (long i = 0; i < n; i++) s += i;
    return s;
}
__attribute__((noinline)) double outer(long n) {
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (long i = 0; i < n; i++) all += work(200000);
    return all;
}
int main(void) { printf("%g\n", outer(2000)); }
"#;

/// Without symbols functions are told by where they begin, which unwind information tells; nm, before, is the oracle.
#[test]
fn functions_are_told_by_their_begin() {
    let Some(program) = compile::compile(HOT, "gcc -O1 -fopenmp") else {
        return;
    };
    let nm = process::run(Command::new("nm").arg(&program.path))
        .ok("nm")
        .text();
    let begin = |name: &str| {
        let line = nm.lines().find(|l| l.ends_with(&format!(" {name}")));
        let address = line.and_then(|l| l.split(' ').next()).expect("an address");
        format!("0x{}", address.trim_start_matches('0'))
    };
    process::run(Command::new("strip").arg(&program.path)).ok("strip");
    let out = program.folder.path().join("out");
    table::record(&program.path, &[], 2, &out, &["--events", "none"]).ok("record");
    let report = command::report(&out);
    let mut regions = report["regions"].as_array().expect("a list").iter();
    let parallel = regions.find(|r| r["construct"] == "parallel");
    let id = parallel.expect("a parallel region")["id"].to_string();
    let out = out.to_str().expect("letters");
    let text = command::ok(["report", out, "--region", &id]).text();
    let caller = format!("program:{}+0x", begin("outer"));
    assert!(text.contains(&caller), "{caller}: {text}");
    let lines = command::run(["report", out, "--lines", "--format", "json"]);
    if lines.errors().contains("there are no samples") {
        return skip("the kernel gives no samples here");
    }
    let lines: Value = serde_json::from_str(&lines.ok("lines").text()).expect("JSON");
    let work = begin("work");
    let named = |line: &Value| line["function"] == work.as_str();
    let mut regions = lines["regions"].as_array().expect("a list").iter();
    let is_told = regions.any(|r| r["lines"].as_array().is_some_and(|l| l.iter().any(named)));
    assert!(is_told, "{work}: {lines}");
}
