//! Every tick and every count of a thread is in exactly one interval, and the report's JSON has what scripts rely on.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{command, process, recorded, schema};
use serde_json::Value;
use std::collections::BTreeMap;

#[track_caller]
fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

fn adds_up(name: &str, compiler: &str) {
    let mut reports = Vec::new();
    for build in Fixture::open(name).ordinary_builds(compiler) {
        for threads in Matrix::get().ends() {
            let run = recorded::run(&build, threads).ok();
            schema::is_read_back(run.json());
            let report = run.report();
            reports.push(run.json().to_owned());
            let accounts = report["accounting"].as_array().expect("a list of threads");
            assert!(!accounts.is_empty(), "{build}: no threads");
            let mut ticks: BTreeMap<u64, u64> = BTreeMap::new();
            for account in accounts {
                let what = format!("{build}, {threads} threads: {account}");
                assert_eq!(
                    number(account, "own_ticks"),
                    number(account, "total_ticks"),
                    "{what}"
                );
                assert_eq!(account["own_counts"], account["total_counts"], "{what}");
                assert!(account["own_counts"]["task-clock"].is_u64(), "{what}");
                assert_eq!(account["balanced"], Value::Bool(true), "{what}");
                ticks.insert(number(account, "thread"), number(account, "own_ticks"));
            }
            // The XUs are a part of it, told by another command.
            let mut in_xus: BTreeMap<u64, u64> = BTreeMap::new();
            let mut counts = 0;
            for xu in run.xus() {
                *in_xus.entry(xu.number("thread")).or_default() += xu.number("own_ns");
                counts += xu.number("task-clock");
            }
            for thread in in_xus.keys() {
                assert!(
                    ticks.contains_key(thread),
                    "{build}: thread {thread} has XUs and no account"
                );
            }
            let total: u64 = accounts
                .iter()
                .map(|a| number(&a["own_counts"], "task-clock"))
                .sum();
            assert!(
                counts <= total,
                "{build}: {counts} ns of task-clock in XUs, {total} in all"
            );
        }
    }
    schema::check(name, &reports);
}

for_each_fixture!(super::adds_up);

#[test]
fn the_report_has_what_scripts_rely_on() {
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| Fixture::open("knapsack").ordinary_builds(c))
    {
        let report = recorded::run(&build, Matrix::get().ordinary_threads())
            .ok()
            .report();
        for key in [
            "program",
            "threads",
            "duration_s",
            "coverage",
            "regions",
            "overheads",
            "accounting",
        ] {
            assert!(!report[key].is_null(), "{build}: {key} is missing");
        }
        let regions = report["regions"].as_array().expect("a list of regions");
        for region in regions {
            for key in [
                "id",
                "address",
                "construct",
                "function",
                "source",
                "executions",
                "xus",
            ] {
                assert!(
                    !region[key].is_null(),
                    "{build}: {key} is missing in {region}"
                );
            }
        }
        let of = |construct: &str| {
            let regions = regions.iter().filter(|r| r["construct"] == construct);
            regions
                .map(|r| (number(r, "executions"), number(r, "xus")))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("parallel").iter().map(|r| r.0).sum::<u64>(),
            1,
            "{build}: {regions:?}"
        );
        assert_eq!(
            of("task").iter().map(|r| r.1).sum::<u64>(),
            510,
            "{build}: {regions:?}"
        );
    }
}

/// The status of the program is handed on, and the report still comes.
#[test]
fn profile_hands_on_the_programs_failure() {
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| Fixture::open("nqueens").ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a profile");
        let mut command = command::with_threads(2);
        command
            .args(["profile", "--events", "task-clock", "-o"])
            .arg(folder.path().join("out"));
        let output = process::run(command.arg("--").arg(&build.path).arg("fail"));
        assert_eq!(output.status, 3, "{build}: {output:?}");
        assert!(
            output.errors().contains("failing, as told"),
            "{build}: {output:?}"
        );
        assert!(
            output.errors().contains("nqueens.c"),
            "{build}: the report, {output:?}"
        );
    }
}
