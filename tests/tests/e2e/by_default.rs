//! How inputs are combined when no strategy is named.

use ompfuse_tests::{command, process, table};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    data.join(name)
}

/// Combines with these options; the profile's rows, and what was said.
fn combine(inputs: &[PathBuf], options: &[&str], threads: &str) -> (Vec<table::Xu>, String) {
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let profile = folder.path().join("profile.parquet");
    let mut command = command::with_threads(2);
    command.env("RAYON_NUM_THREADS", threads);
    command.arg("combine").args(inputs).args(options);
    let output = process::run(command.arg("-o").arg(&profile)).ok("combine");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (table::export(&profile), said)
}

fn columns(rows: &[table::Xu]) -> Vec<String> {
    rows.iter().map(|r| format!("{:?}", r.columns)).collect()
}

#[test]
fn labels_decide_where_nothing_is_shared_and_behaviour_helps_where_something_is() {
    let lgl: Vec<PathBuf> = (1..=7)
        .map(|i| data(&format!("a_lgl_in_{i}.csv")))
        .collect();
    let bc: Vec<PathBuf> = (1..=15)
        .map(|i| data(&format!("a_bc_in_{i:02}.csv")))
        .collect();
    for (inputs, strategy) in [(lgl, "lgl"), (bc, "joint")] {
        let (named, _) = combine(&inputs, &["--strategy", strategy], "2");
        for threads in ["1", "3"] {
            let (found, said) = combine(&inputs, &[], threads);
            assert_eq!(columns(&found), columns(&named), "{strategy}");
            assert_eq!(said, "", "{strategy}");
        }
    }
}

#[test]
fn what_is_planned_is_what_is_recorded() {
    let folder = tempfile::tempdir().expect("there is room for tables");
    let events = ["task-clock", "page-faults", "minor-faults", "major-faults"];
    let from: Vec<PathBuf> = (0..2)
        .map(|run| {
            let mut text = format!("type,label,thread,t0_ns,t1_ns,{}\n", events.join(","));
            for row in 0..100 {
                text += &format!(
                    "work,0.{row},0,0,1,{},{row},{row},0\n",
                    100 + row * (5 + run)
                );
            }
            let path = folder.path().join(format!("{run}.csv"));
            std::fs::write(&path, text).expect("there is room");
            path
        })
        .collect();
    let program = ompfuse_tests::repository().join("fixtures/prebuilt/knapsack-gcc");
    // Two sets, and the first one again as often as is allowed: two runs of it would not say which is typical.
    for (most, again) in [("100", 4), ("5", 3), ("4", 2), ("3", 0)] {
        let list = events.join(",");
        let mut options = vec!["--events", &list, "--slots", "2", "--max-runs", most];
        for path in &from {
            options.extend(["--from", path.to_str().expect("an ordinary name")]);
        }
        let planned = command::ok(["plan", "--format", "json"].iter().chain(&options));
        let planned: serde_json::Value =
            serde_json::from_slice(&planned.stdout).expect("JSON was asked for");
        let sets = planned["sets"].as_array().expect("sets");
        assert_eq!(planned["runs"], 2 + again, "{planned}");
        let same = sets[1..].iter().filter(|set| **set == sets[0]).count();
        assert_eq!((sets.len(), same), (2 + again, again), "{planned}");
        if most == "5" {
            let out = folder.path().join("out");
            let mut profile = command::with_threads(2);
            profile.arg("profile").args(&options).arg("-o").arg(&out);
            let output = process::run(profile.arg("--").arg(&program)).ok("profile");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(&format!("{} runs", sets.len())), "{said}");
            let recorded: Vec<serde_json::Value> = table::runs(&out)
                .iter()
                .map(|run| std::fs::read_to_string(run.join("run.json")).expect("a run has it"))
                .map(|text| serde_json::from_str::<serde_json::Value>(&text).expect("JSON"))
                .map(|run| run["events"].clone())
                .collect();
            assert_eq!(&recorded, sets);
        }
    }
    // Of the simulated PMU without starting it.
    let planned = command::ok(["plan", "--simulate", "--slots", "5", "--events", "all"]);
    let said = String::from_utf8_lossy(&planned.stdout).into_owned();
    assert!(
        said.contains("run 4: sim-runtime-instructions,sim-multiplications"),
        "{said}"
    );
    assert!(
        said.contains("sim-indirect-branches") && !said.contains("run 5"),
        "{said}"
    );
}

#[test]
fn the_most_typical_of_three_runs_gives_the_times() {
    let folder = tempfile::tempdir().expect("there is room for tables");
    let write = |name: &str, event: &str, counts: &dyn Fn(u64) -> u64, start: u64| {
        let mut text = format!("type,label,thread,t0_ns,t1_ns,{event}\n");
        for row in 0..200 {
            let t0 = start + 10 * row;
            text += &format!("work,0.{row},0,{t0},{},{}\n", t0 + 5, counts(row));
        }
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        path
    };
    let inputs = [
        write("slow.csv", "cycles", &|row| 900 + 3 * row, 0),
        write("loads.csv", "loads", &|row| 7 * row, 0),
        write("fast.csv", "cycles", &|row| 100 + 3 * row, 0),
        write("usual.csv", "cycles", &|row| 300 + 3 * row, 5000),
    ];
    let (at_once, said) = combine(&inputs, &[], "2");
    assert!(
        said.contains("usual.csv is the most typical of 3 runs that counted cycles"),
        "{said}"
    );
    let (by_type, _) = combine(&inputs, &["--memory", "1"], "2");
    assert_eq!(columns(&by_type), columns(&at_once));
    assert_eq!(at_once.len(), 200);
    for xu in &at_once {
        let row = xu.number("loads") / 7;
        assert_eq!(xu.number("cycles"), 300 + 3 * row);
        assert_eq!(xu.number("start_ns"), 5000 + 10 * row);
    }
    // A named strategy takes what it is given.
    let (named, said) = combine(&inputs, &["--strategy", "lgl"], "2");
    assert!(said.is_empty() && named.iter().all(|xu| xu.number("cycles") >= 900));
}
