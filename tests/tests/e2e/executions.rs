//! How often every construct was executed, against the counters of the fixtures that keep them.

use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::{command, process, some, table};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Number of threads of all runs.
pub(crate) const THREADS: usize = 3;

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
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let patched = table::patch(build, folder.path(), &[]);
    let out = folder.path().join("runs");
    table::record(&patched, &[], THREADS, &out, &table::ONE_EVENT).ok(&build.to_string());
    reported(&table::runs(&out).pop().expect("a run was recorded"))
}

/// Executions by construct, and executed tasks, in the report of a run.
pub(crate) fn reported(run: &Path) -> BTreeMap<String, u64> {
    let report = command::json([
        Path::new("report"),
        run,
        Path::new("--format"),
        Path::new("json"),
    ]);
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
        let output = process::run(process::clean(&mut Command::new(&build.path), THREADS));
        let own = fixture::counts(&output.ok(&build.to_string()).text());
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
