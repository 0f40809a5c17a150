//! How often every construct was executed, against the counters of the fixtures that keep them.

use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{command, compile, recorded, schema, some, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The constructs whose executions fixtures count, in lines `NAME N` of their output.
const CONSTRUCTS: [&str; 9] = [
    "atomic",
    "critical",
    "lock",
    "ordered",
    "parallel",
    "reduction",
    "scope",
    "target",
    "teams",
];

/// What ompfuse counts, from the regions of its report.
pub(crate) fn by_ompfuse(build: &Build) -> BTreeMap<String, u64> {
    let threads = Matrix::get().ordinary_threads();
    counted(&recorded::run(build, threads).ok().report())
}

/// Executions by construct, and executed tasks, in the report of a run.
pub(crate) fn reported(run: &Path) -> BTreeMap<String, u64> {
    let printed = schema::printed(run);
    counted(&serde_json::from_str(&printed).expect("JSON was asked for"))
}

fn counted(report: &Value) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for region in report["regions"].as_array().expect("a list of regions") {
        let construct = region["construct"]
            .as_str()
            .expect("a region has a construct");
        let number = |key: &str| region[key].as_u64().expect("a region has numbers");
        *counts.entry(construct.to_owned()).or_default() += number("executions");
        let tasks: &[&str] = match construct {
            "task" => &["executed"],
            "taskloop" => &["task", "executed", "taskloop-task"],
            _ => &[],
        };
        for tasks in tasks {
            *counts.entry((*tasks).to_owned()).or_default() += number("xus");
        }
    }
    counts
}

fn agree_with_the_programs_own_counts(name: &str, compiler: &str) {
    let mut wrong = Vec::new();
    let builds = Fixture::open(name).builds(compiler).into_iter();
    for build in some(builds.filter(|b| !b.stripped && b.link == "pie")) {
        let output = recorded::original(&build, Matrix::get().ordinary_threads());
        let own = fixture::counts(&output.clone().ok(&build.to_string()).text());
        if CONSTRUCTS.iter().all(|&c| !own.contains_key(c)) {
            return;
        }
        let found = by_ompfuse(&build);
        for construct in CONSTRUCTS {
            let Some(&wanted) = own.get(construct) else {
                continue;
            };
            let found = found.get(construct).copied().unwrap_or(0);
            if found != wanted {
                wrong.push(format!("{build}: {found} of {construct}, not {wanted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

for_each_fixture!(super::agree_with_the_programs_own_counts);

/// What programs are compiled by.
const COMPILERS: [&str; 2] = ["gcc -O2 -g -fopenmp", "clang-19 -O2 -g -fopenmp"];

/// The report of a program on four threads; `None`: the compiler is missing.
fn report_of(source: &str, compiler: &str) -> Option<Value> {
    let program = compile::compile(source, compiler)?;
    let out = program.folder.path().join("out");
    table::record(&program.path, &[], 4, &out, &[]).ok(compiler);
    let run = table::runs(&out).pop().expect("a run was recorded");
    Some(command::report(&run))
}

/// Executions of the regions of a construct.
fn of(report: &Value, construct: &str) -> Vec<u64> {
    let regions = report["regions"].as_array().expect("a list of regions");
    let of_it = regions.iter().filter(|r| r["construct"] == construct);
    of_it.filter_map(|r| r["executions"].as_u64()).collect()
}

/// Each thread of the region is in a target region of its own on the host, whose team has one thread: each executes the block.
#[test]
fn each_block_that_a_thread_executes_counts() {
    let target = "#include <unistd.h>\nint main(void) {\n#pragma omp parallel num_threads(4)\n\
                  #pragma omp target if (0)\n#pragma omp single\nusleep(1000);\nreturn 0; }";
    let report = report_of(target, COMPILERS[0]).expect("gcc is there");
    assert_eq!(of(&report, "single"), [4], "{report:#}");
    // Of a team's block there is one execution, whoever has it.
    let team = "#include <unistd.h>\nint main(void) {\n#pragma omp parallel num_threads(4)\n\
                for (int i = 0; i < 7; i++) {\n#pragma omp single\nusleep(100);\n}\nreturn 0; }";
    for (_, report) in ompfuse_tests::each(COMPILERS, |c| report_of(team, c)) {
        // A compiler may have made several of one.
        let singles: u64 = of(&report, "single").iter().sum();
        assert_eq!(singles, 7, "{report:#}");
        assert_eq!(of(&report, "parallel"), [1], "{report:#}");
    }
}

/// A region that the program exits in has no join on record.
#[test]
fn a_region_in_which_the_program_exits_was_executed_once() {
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n\
                  #pragma omp parallel num_threads(2)\n{ usleep(2000);\n#pragma omp barrier\n\
                  #pragma omp master\nexit(0); }\nreturn 1; }";
    for (_, report) in ompfuse_tests::each(COMPILERS, |c| report_of(source, c)) {
        assert_eq!(of(&report, "parallel"), [1], "{report:#}");
        assert_eq!(of(&report, "master"), [1], "{report:#}");
    }
}
