//! Calls of MPI as regions, against a library that counts them through MPI's profiling interface (`tests/sources/mpicount.c`).

use crate::ranks::{IMPLEMENTATIONS, run};
use ompfuse_tests::{compile, each, repository, schema};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The program with the counting library, in a folder. `None`: a compiler is missing.
fn build(source: &str, compilers: [&str; 2]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let [library, program] = ["libmpicount.so", "messages"].map(|n| folder.path().join(n));
    let sources = repository().join("tests/sources");
    let [for_c, for_it] = compilers;
    let is_fortran = source.ends_with(".f90");
    let with = if is_fortran { " -DWITH_FORTRAN" } else { "" };
    let shared = format!("{for_c} -O1 -shared -fPIC{with}");
    let linked = format!(
        "{for_it} -O1 -g -fopenmp -Wl,-rpath,{}",
        folder.path().display()
    );
    let is_built = compile::files(&[sources.join("mpicount.c")], &library, &shared)
        && compile::files(&[sources.join(source), library], &program, &linked);
    is_built.then_some(folder)
}

/// Calls by function, all ranks together.
fn counted(folder: &Path) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for rank in 0..2 {
        let text = std::fs::read_to_string(folder.join(format!("counts.{rank}"))).expect("counts");
        for (name, calls) in text.lines().filter_map(|l| l.split_once(' ')) {
            *all.entry(name.to_owned()).or_insert(0) += calls.parse::<u64>().expect("a number");
        }
    }
    all
}

fn regions(report: &Value) -> impl Iterator<Item = &Value> {
    let regions = report["regions"].as_array().expect("regions").iter();
    regions.filter(|r| r["construct"] == "mpi")
}

/// The same on record; initialisation apart, which the library doesn't count.
fn recorded(report: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for region in regions(report) {
        let detail = region["detail"].as_str().expect("a function");
        let (function, _) = detail.split_once(", ").expect("a group");
        let executions = region["executions"].as_u64().expect("a number");
        *all.entry(function.to_owned()).or_insert(0) += executions;
    }
    all.retain(|name, _| !name.starts_with("MPI_Init"));
    all
}

#[test]
fn calls_are_those_that_the_profiling_interface_counts() {
    let mut tried = vec![];
    for (compiler, launcher) in IMPLEMENTATIONS {
        tried.push(("messages.c", [compiler, compiler], launcher));
        let fortran = compiler.replace("mpicc", "mpifort");
        tried.push(("messages.f90", [compiler, fortran.leak()], launcher));
    }
    let made = |&(source, compilers, _): &(&str, [&str; 2], &str)| build(source, compilers);
    for ((source, _, launcher), folder) in each(tried, made) {
        let folder = folder.path();
        let what = format!("{source}, {launcher}");
        let original = run(folder, &format!("{launcher} -n 2 ./messages"));
        let expected = counted(folder);
        let line =
            format!("\"$OMPFUSE\" profile --events none -o out -- {launcher} -n 2 ./messages");
        let said = run(folder, &line);
        let output = original.ok(&what).text();
        let said = said.ok(&what).text();
        assert!(said.contains(&output), "{what}: {output} in {said}");
        assert_eq!(counted(folder), expected, "{what}");
        let report = schema::checked(&folder.join("out"));
        assert_eq!(recorded(&report), expected, "{what}");
        // All of it is waiting, outside and inside of parallel regions.
        let number = |v: &Value| v.as_f64().expect("a number");
        let mpi = &report["mpi"];
        let waited: f64 = regions(&report).map(|r| number(&r["wait_s"])).sum();
        let told = number(&mpi["serial_s"]) + number(&mpi["parallel_s"]);
        let ranks = mpi["ranks"].as_array().expect("ranks").iter();
        let of_ranks: f64 = ranks.map(|r| number(&r["mpi_s"])).sum();
        assert!((told - waited).abs() < 1e-6, "{what}: {mpi}");
        assert!((of_ranks - waited).abs() < 1e-6, "{what}: {mpi}");
        let inside = regions(&report).find(|r| r["detail"] == "MPI_Sendrecv, point-to-point");
        if output.contains("multiple") {
            let inside = inside.unwrap_or_else(|| panic!("{what}: {report:#}"));
            let threads = inside["per_thread"].as_array().map(Vec::len);
            assert_eq!(threads, Some(4), "{what}: {inside}");
            assert!(number(&mpi["parallel_s"]) > 0.0, "{what}: {mpi}");
        }
        let losses = report["losses"].as_array().expect("losses").iter();
        let mut waits = losses.filter(|l| l["loss"] == "communication");
        assert!(waits.next().is_some(), "{what}: {report:#}");
    }
}
