//! How often every construct was executed, against the counters of the fixtures that keep them.

use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{recorded, schema, some};
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
