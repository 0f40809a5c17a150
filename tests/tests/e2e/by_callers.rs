//! Regions of two builds that only their callers tell apart: one wrapper forks for all functions of a library without symbols.

use ompfuse_tests::{command, compile, each, process};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Four exported functions, whose regions are executed equally often, and two that have no name without symbols. In one build a second
/// wrapper is inlined.
const LIBRARY: &str = r#"
#include <omp.h>
#ifdef __clang__
#define BETWEEN __attribute__((noinline))
#else
#define BETWEEN __attribute__((always_inline)) inline
#endif
namespace ops {
static double cells[4096];
template <class F> [[gnu::noinline, gnu::noclone]] void parallel(F body) {
#pragma omp parallel
    body(omp_get_thread_num());
}
template <class F> BETWEEN void parallel_nd(F body) {
    parallel(body);
    asm volatile("" ::: "memory");
}
template <int N> void work(int thread) {
    for (int i = 0; i < N * 1000; i++) cells[64 * thread + i % 64] += i;
}
#define CALLER(name, wrapper, n) \
    __attribute__((noinline)) void name() { wrapper(work<n>); asm volatile("" ::: "memory"); }
CALLER(product, parallel, 1)
CALLER(sum, parallel, 2)
CALLER(pool, parallel_nd, 3)
CALLER(scale, parallel, 4)
static CALLER(left, parallel, 5)
static CALLER(right, parallel, 6)
void both() { left(); right(); asm volatile("" ::: "memory"); }
}
"#;

const PROGRAM: &str = "
namespace ops { void product(); void sum(); void pool(); void scale(); void both(); }
int main() {
    for (int i = 0; i < 5; i++) { ops::product(); ops::sum(); ops::pool(); ops::scale(); ops::both(); }
}
";

/// The library and a program by a compiler, without symbols, recorded.
fn recorded(compiler: &&str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = folder.path();
    let shared = format!("{compiler} -O2 -shared -fPIC -s -fopenmp");
    let linked = format!(
        "{compiler} -O2 -s -fopenmp -Wl,-rpath,{0} -L{0} -lops",
        at.display()
    );
    compile::text(at, "libops.so", LIBRARY, &shared)?;
    let caller = compile::text(at, "caller", PROGRAM, &linked)?;
    let run = at.join("run");
    let mut record = command::with_threads(2);
    record
        .args(["record", "-q", "--events", "none", "-o"])
        .arg(&run);
    process::run(record.arg("--").arg(caller)).ok("record");
    Some((folder, run))
}

/// The exported functions of the library that led to regions of a side.
fn exported(keys: &Value) -> Vec<&str> {
    const EXPORTED: [&str; 5] = [
        "ops::product",
        "ops::sum",
        "ops::pool",
        "ops::scale",
        "ops::both",
    ];
    let callers = keys.as_array().expect("a list").iter();
    let callers = callers
        .filter_map(|key| key["callers"].as_array())
        .flatten();
    let names = callers.filter_map(|c| c["function"].as_str());
    names.filter(|name| EXPORTED.contains(name)).collect()
}

fn diff(a: &Path, b: &Path, format: &str) -> process::Output {
    let mut diff = command::with_threads(2);
    process::run(diff.arg("diff").args([a, b]).args(["--format", format])).ok("diff")
}

#[test]
fn regions_of_one_wrapper_are_paired_by_their_callers() {
    let sides: Vec<_> = each(["g++", "clang++-19"], recorded).collect();
    let [(_, (_a, a)), (_, (_b, b))] = &sides[..] else {
        return; // each() has said what is missing
    };
    let compared: Value = serde_json::from_slice(&diff(a, b, "json").stdout).expect("JSON");
    let pairs = compared["pairs"].as_array().expect("a list").iter();
    let pairs: Vec<&Value> = pairs
        .filter(|p| p["a"][0]["construct"] == "parallel")
        .collect();
    let alone = pairs.iter().filter(|p| p["is_group"] == false);
    let mut paired: Vec<[Vec<&str>; 2]> = alone
        .inspect(|p| assert_eq!(p["basis"], "callers", "{p}"))
        .map(|p| [exported(&p["a"]), exported(&p["b"])])
        .collect();
    paired.sort_unstable();
    let wanted = ["ops::pool", "ops::product", "ops::scale", "ops::sum"];
    assert_eq!(paired, wanted.map(|name| [vec![name], vec![name]]));
    // Nothing tells one of these two from the other: they are compared as a sum.
    let groups = pairs.iter().filter(|p| p["is_group"] == true);
    let groups: Vec<[Vec<&str>; 2]> = groups
        .map(|p| [exported(&p["a"]), exported(&p["b"])])
        .collect();
    assert_eq!(groups, [[vec!["ops::both"; 2], vec!["ops::both"; 2]]]);
    assert_eq!(compared["matched"], serde_json::json!([1.0, 1.0]));

    let text = diff(a, b, "markdown").text();
    let place = "libops.so: ops::product › ops::parallel";
    assert!(text.contains(place), "{text}");
}
