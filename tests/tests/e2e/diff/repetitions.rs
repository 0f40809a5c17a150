//! A folder of folders of runs: what each of them holds says whether they are a job's ranks or repetitions.

use super::{PROGRAM, diff, recorded, text};
use ompfuse_tests::{command, compile, process};
use serde_json::Value;
use std::path::Path;

#[test]
fn folders_of_runs_are_repetitions_and_those_of_ranks_a_job() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some(program) = compile::compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let at = |name: &str| folder.path().join(name);
    for side in ["a", "b"] {
        std::fs::create_dir(at(side)).expect("the folder is ours");
        for n in ["1", "2", "3"] {
            recorded(&at(side), n, &program.path, &["--events", "none"]);
        }
    }
    let found = diff([&at("a"), &at("b")], &["--format", "json"]).ok("diff");
    let json: Value = serde_json::from_str(&text(&found)).expect("JSON");
    assert_eq!(
        (&json["a"]["runs"], &json["b"]["runs"]),
        (&3.into(), &3.into())
    );
    for side in ["a", "b"] {
        let said = format!(
            "{}: 3 folders of runs, taken for repetitions",
            at(side).display()
        );
        assert!(found.errors().contains(&said), "{found:?}");
        // Whoever reports on them, or combines them, takes them for the same.
        let mut report = command::with_threads(2);
        let page = folder.path().join("page.html");
        let report = report.args(["report", "--html"]).arg(&page).arg(at(side));
        assert_eq!(
            process::run(report)
                .ok("report")
                .errors()
                .matches(&said)
                .count(),
            1
        );
        let mut report = command::with_threads(2);
        let report = report.args(["report", "--format", "json"]).arg(at(side));
        let found = process::run(report).ok("report");
        let json: Value = serde_json::from_str(&text(&found)).expect("JSON");
        assert_eq!(json["runs"].as_array().map(Vec::len), Some(3), "{json:#}");
        assert_eq!(found.errors().matches(&said).count(), 1, "{found:?}");
    }
    // Two ranks of a job, and once more without their summaries.
    std::fs::create_dir(at("job")).expect("the folder is ours");
    for rank in ["0", "1"] {
        let mut record = command::with_threads(2);
        record.args(["record", "-q", "--events", "none", "-o"]);
        record.arg(at("job").join(rank));
        record
            .env("OMPI_COMM_WORLD_RANK", rank)
            .env("OMPI_COMM_WORLD_SIZE", "2");
        record.env("OMPI_COMM_WORLD_LOCAL_RANK", rank);
        process::run(record.arg("--").arg(&program.path)).ok(rank);
    }
    let job: &Path = &at("job");
    for round in 0..2 {
        let found = diff([job, job], &["--format", "json"]).ok("diff");
        let json: Value = serde_json::from_str(&text(&found)).expect("JSON");
        assert_eq!(json["a"]["runs"], 1, "{round}: {json:#}");
        assert!(
            found
                .errors()
                .contains("2 folders of ranks, taken for a job"),
            "{found:?}"
        );
        for rank in ["0", "1"] {
            let _ = std::fs::remove_file(job.join(rank).join("summary.json"));
        }
    }
}
