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

/// How many ranks a program has. More take long where processors are few: ranks that wait don't sleep.
fn ranks_of(source: &str, launcher: &str) -> u32 {
    match (source, launcher) {
        ("messages.c", "mpirun.openmpi") => 3,
        _ => 2,
    }
}

/// Calls, bytes that left, bytes that came, and bytes that may have come.
type Numbers = [u64; 4];

/// By rank and function.
type Counts = BTreeMap<(u32, String), Numbers>;

fn counted(folder: &Path, ranks: u32) -> Counts {
    let mut all = BTreeMap::new();
    for rank in 0..ranks {
        let text = std::fs::read_to_string(folder.join(format!("counts.{rank}"))).expect("counts");
        for line in text.lines() {
            let (name, numbers) = line.split_once(' ').expect("a name");
            let numbers: Vec<u64> = numbers
                .split(' ')
                .map(|n| n.parse().expect("a number"))
                .collect();
            let numbers = numbers.try_into().expect("four of them");
            all.insert((rank, name.to_owned()), numbers);
        }
    }
    all
}

/// Calls by function, all ranks together.
fn calls(counts: &Counts) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for ((_, name), [calls, ..]) in counts {
        *all.entry(name.clone()).or_default() += calls;
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

/// What the calls handed over, of the functions that tell.
fn handed_over(report: &Value) -> Counts {
    let mut all = Counts::new();
    for region in regions(report) {
        let detail = region["detail"].as_str().expect("a function");
        let (function, _) = detail.split_once(", ").expect("a group");
        let ranks = region["ranks"]["per_rank"].as_array().into_iter().flatten();
        for of in ranks.filter(|r| r["transfer"].is_object()) {
            let rank = of["rank"].as_u64().expect("a rank") as u32;
            let numbers = all.entry((rank, function.to_owned())).or_default();
            let names = ["calls", "bytes_out", "bytes_in", "bytes_at_most"];
            for (sum, name) in numbers.iter_mut().zip(names) {
                *sum += of["transfer"][name].as_u64().expect("a number");
            }
            assert_eq!(of["transfer"]["unknown_calls"], 0, "{function}");
        }
    }
    all
}

/// Sums have the same bytes.
fn check_sums(folder: &Path, program: &str, ranks: u32) {
    let line = format!("\"$OMPFUSE\" profile --units sums --events none -o sums -- {program}");
    run(folder, &line).ok(program);
    let expected = counted(folder, ranks);
    let recorded = handed_over(&schema::checked(&folder.join("sums")));
    assert!(recorded.len() > 10, "{recorded:?}");
    for (name, numbers) in recorded {
        assert_eq!(expected.get(&name), Some(&numbers), "{name:?}");
    }
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
        let ranks = ranks_of(source, launcher);
        let original = run(folder, &format!("{launcher} -n {ranks} ./messages"));
        let expected = counted(folder, ranks);
        let line = format!(
            "\"$OMPFUSE\" profile --events none -o out -- {launcher} -n {ranks} ./messages"
        );
        let said = run(folder, &line);
        let output = original.ok(&what).text();
        let said = said.ok(&what).text();
        assert!(said.contains(&output), "{what}: {output} in {said}");
        assert_eq!(counted(folder, ranks), expected, "{what}");
        let report = schema::checked(&folder.join("out"));
        assert_eq!(recorded(&report), calls(&expected), "{what}");
        let mut silent = expected;
        for (name, numbers) in handed_over(&report) {
            assert_eq!(silent.remove(&name), Some(numbers), "{what}: {name:?}");
        }
        let is_silent = |n: &Numbers| n[1..] == [0; 3];
        assert!(silent.values().all(is_silent), "{what}: {silent:?}");
        if (source, launcher) == ("messages.f90", "mpirun.openmpi") {
            check_sums(folder, &format!("{launcher} -n {ranks} ./messages"), ranks);
        }
        // All of it is waiting, outside and inside of parallel regions.
        let number = |v: &Value| v.as_f64().expect("a number");
        let mpi = &report["mpi"];
        let waited: f64 = regions(&report).map(|r| number(&r["wait_s"])).sum();
        let told = number(&mpi["serial_s"]) + number(&mpi["parallel_s"]);
        let each = mpi["ranks"].as_array().expect("ranks").iter();
        let of_ranks: f64 = each
            .map(|r| {
                let [all, outside, inside] =
                    ["mpi_s", "mpi_serial_s", "mpi_parallel_s"].map(|name| number(&r[name]));
                assert!((all - outside - inside).abs() < 1e-6, "{what}: {r}");
                all
            })
            .sum();
        assert!((told - waited).abs() < 1e-6, "{what}: {mpi}");
        assert!((of_ranks - waited).abs() < 1e-6, "{what}: {mpi}");
        let inside = regions(&report).find(|r| r["detail"] == "MPI_Sendrecv, point-to-point");
        if output.contains("multiple") {
            let inside = inside.unwrap_or_else(|| panic!("{what}: {report:#}"));
            let threads = inside["per_thread"].as_array().map(Vec::len);
            assert_eq!(threads, Some(2 * ranks as usize), "{what}: {inside}");
            assert!(number(&mpi["parallel_s"]) > 0.0, "{what}: {mpi}");
            // The calls belong to the parallel region's part that makes them.
            let paths = report["call_paths"].as_array().expect("paths");
            let own = paths.iter().filter(|p| p["region"] == inside["id"]);
            for path in own {
                let around = &paths[path["parent"].as_u64().expect("a parent") as usize];
                let regions = report["regions"].as_array().expect("regions");
                let mut around = regions.iter().filter(|r| r["id"] == around["region"]);
                assert!(
                    around.any(|r| r["construct"] == "parallel"),
                    "{what}: {path}"
                );
            }
        }
        let losses = report["losses"].as_array().expect("losses").iter();
        let waits: Vec<&Value> = losses.filter(|l| l["loss"] == "communication").collect();
        assert!(!waits.is_empty(), "{what}: {report:#}");
        // The program in C sends once 50 ms after the receive has begun.
        if source == "messages.c" {
            let is_receive = |r: &&Value| r["detail"] == "MPI_Recv, point-to-point";
            let receives: Vec<_> = regions(&report).filter(is_receive).collect();
            let is_late = |l: &&&Value| {
                let at = &l["cause"]["at"];
                l["cause"]["kind"] == "late_sender" && receives.iter().any(|r| r["id"] == *at)
            };
            let late = waits.iter().find(is_late);
            let late = late.unwrap_or_else(|| panic!("{what}: {waits:?}"));
            let [number_of, times] = ["receives", "late"].map(|n| late["cause"][n].as_u64());
            assert_eq!(number_of, Some(4), "{what}: {late}"); // those at one place of two
            assert!(times >= Some(1), "{what}: {late}");
            let waited = number(&late["cause"]["late_s"]) * times.unwrap_or(0) as f64;
            let all: f64 = receives.iter().map(|r| number(&r["wait_s"])).sum();
            assert!(
                waited > 0.0 && waited < all + 1e-6,
                "{what}: {late} of {all}"
            );
        }
    }
}

/// Files without OpenMP: a program, a library that it is linked with, and one that it opens; and a program of Fortran's, whose
/// calls go through a library of MPI's own.
#[test]
fn files_without_openmp_have_their_calls_recorded() {
    let made = |&(compiler, _): &(&str, &str)| {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let at = |name: &str| folder.path().join(name);
        let sources = repository().join("tests/sources");
        let [counting, plain] = ["mpicount.c", "plainmpi.c"].map(|n| sources.join(n));
        let shared = format!("{compiler} -O1 -shared -fPIC");
        let library = |name: &str, part: u32| {
            let command = format!("{shared} -DPART={part}");
            compile::files(&[&plain], &at(name), &command)
        };
        let linked = format!("{compiler} -O1 -g -Wl,-rpath,{}", folder.path().display());
        let files = [plain.clone(), at("libmpicount.so"), at("libpart.so")];
        let is_built = compile::files(&[&counting], &at("libmpicount.so"), &shared)
            && library("libpart.so", 1)
            && library("plugin.so", 2)
            && compile::files(&files, &at("plain"), &linked);
        let fortran = linked.replace("mpicc", "mpifort");
        let of_fortran = at("libmpicountf.so");
        let files = [sources.join("messages.f90"), of_fortran.clone()];
        (is_built
            && compile::files(
                &[&counting],
                &of_fortran,
                &format!("{shared} -DWITH_FORTRAN"),
            )
            && compile::files(&files, &at("messages"), &fortran))
        .then_some(folder)
    };
    for ((_, launcher), folder) in each(IMPLEMENTATIONS, made) {
        let folder = folder.path();
        let original = run(folder, &format!("{launcher} -n 2 ./plain ./plugin.so"));
        let output = original.ok(launcher).text();
        let expected = calls(&counted(folder, 2));
        assert_eq!(expected["MPI_Sendrecv"], 10, "{launcher}: {expected:?}");
        let profile = |words: &str| {
            let line =
                format!("\"$OMPFUSE\" profile --events none {words} -o out -- {launcher} -n 2");
            run(folder, &format!("{line} ./plain ./plugin.so"))
        };
        let said = profile("").ok(launcher).text();
        assert!(said.contains(&output), "{launcher}: {output} in {said}");
        let report = schema::checked(&folder.join("out"));
        assert_eq!(recorded(&report), expected, "{launcher}");
        let mpi = &report["mpi"];
        assert_eq!(mpi["parallel_s"], 0.0, "{launcher}: {mpi}");
        let waited: f64 = regions(&report).filter_map(|r| r["wait_s"].as_f64()).sum();
        let told = mpi["serial_s"].as_f64().expect("a number");
        assert!((told - waited).abs() < 1e-6, "{launcher}: {mpi}");

        std::fs::remove_dir_all(folder.join("out")).expect("it was recorded");
        let none = profile("--calls none");
        assert_eq!(none.status, 1, "{launcher}: {none:?}");
        assert!(none.text().contains(&output), "{launcher}: {none:?}");

        let line = format!("profile --events none -o fortran -- {launcher} -n 2 ./messages");
        run(folder, &format!("\"$OMPFUSE\" {line}")).ok(launcher);
        let report = schema::checked(&folder.join("fortran"));
        let expected = calls(&counted(folder, 2));
        assert_eq!(recorded(&report), expected, "{launcher}, Fortran");
    }
}
