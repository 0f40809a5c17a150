//! Several runs, each with events of its own, become one profile in which every XU has all counts.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process;
use ompfuse_tests::{command, table};

/// Events that can be counted everywhere.
const EVENTS: [&str; 3] = ["task-clock", "page-faults", "minor-faults"];

#[test]
fn runs_with_one_event_each_are_fused_by_label() {
    for (name, variant) in [("knapsack", ""), ("cg", "dynamic"), ("listing11", "")] {
        let fixture = Fixture::open(name);
        let builds = ["gcc", "clang"]
            .iter()
            .flat_map(|c| fixture.ordinary_builds(c));
        for build in builds.filter(|b| b.variant == variant) {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let patched = table::patch(&build, folder.path(), &[]);
            let out = folder.path().join("runs");
            let events = EVENTS.join(",");
            table::record(
                &patched,
                &[],
                2,
                &out,
                &["--events", &events, "--slots", "1"],
            )
            .ok("record");
            let runs = table::runs(&out);
            assert_eq!(runs.len(), EVENTS.len(), "{build}: one run per event");

            let profile = folder.path().join("profile.parquet");
            let mut command = command::with_threads(2);
            command
                .arg("combine")
                .args(&runs)
                .args(["--strategy", "lgl", "-o"])
                .arg(&profile);
            process::run(&mut command).ok("combine");
            let fused = table::export(&profile);
            assert_eq!(by_type(&runs), sorted(&fused), "{build}");
            let single = table::export(&runs[0]);
            assert_eq!(
                table::labels(&fused),
                table::labels(&single),
                "{build}: nothing is left out"
            );
            for xu in &fused {
                for event in EVENTS {
                    assert!(
                        !xu.columns[event].is_empty(),
                        "{build}: no {event} for {}",
                        xu.label
                    );
                }
            }
            // Each count is one that was counted, for the XU of that label.
            for (run, event) in runs.iter().zip(EVENTS) {
                let counted = |xus: &[table::Xu]| {
                    let mut pairs: Vec<_> = xus
                        .iter()
                        .map(|x| (x.label.clone(), x.columns[event].clone()))
                        .collect();
                    pairs.sort();
                    pairs
                };
                let of_run = table::export(run);
                if of_run.iter().all(|x| x.columns.contains_key(event)) {
                    assert_eq!(counted(&fused), counted(&of_run), "{build}: {event}");
                }
            }
        }
    }
}

/// The runs, combined as if there were no memory.
fn by_type(runs: &[std::path::PathBuf]) -> Vec<table::Xu> {
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let profile = folder.path().join("profile.parquet");
    let mut command = command::with_threads(2);
    command.arg("combine").args(runs);
    command.args(["--memory", "1", "-o"]).arg(&profile);
    process::run(&mut command).ok("combine");
    sorted(&table::export(&profile))
}

fn sorted(xus: &[table::Xu]) -> Vec<table::Xu> {
    let mut xus = xus.to_vec();
    xus.sort_by(|a, b| a.label.cmp(&b.label).then(a.columns.cmp(&b.columns)));
    xus
}

#[test]
fn repeated_runs_are_told_apart() {
    let Some(build) = Fixture::open("nqueens").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let patched = table::patch(&build, folder.path(), &[]);
    let out = folder.path().join("runs");
    let flags = ["--events", "task-clock", "--repeat", "3"];
    table::record(&patched, &[], 2, &out, &flags).ok("record");
    let names: Vec<_> = table::runs(&out)
        .iter()
        .filter_map(|r| r.file_name().map(ToOwned::to_owned))
        .collect();
    assert_eq!(names, ["run-0001", "run-0002", "run-0003"]);
}

/// The counts that XUs of one type have, per event.
fn counts(xus: &[table::Xu], event: &str) -> Vec<(String, String)> {
    let mut counts: Vec<_> = xus
        .iter()
        .map(|x| (x.columns["type"].clone(), x.columns[event].clone()))
        .collect();
    counts.sort();
    counts
}

#[test]
fn runs_that_share_an_event_are_fused_by_behaviour() {
    let Some(build) = Fixture::open("knapsack").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let patched = table::patch(&build, folder.path(), &[]);
    let sets = ["task-clock,page-faults", "page-faults,minor-faults"];
    let runs: Vec<_> = sets
        .iter()
        .enumerate()
        .map(|(at, set)| {
            let out = folder.path().join(at.to_string());
            table::record(&patched, &[], 2, &out, &["--events", set]).ok("record");
            table::runs(&out).remove(0)
        })
        .collect();
    let of_run: Vec<_> = runs.iter().map(|run| table::export(run)).collect();
    for strategy in ["bc", "bc-unlabelled"] {
        for relax in ["paper", "nn", "halve"] {
            let profile = folder.path().join("profile.parquet");
            let mut command = command::with_threads(2);
            command
                .arg("combine")
                .args(&runs)
                .args(["--strategy", strategy, "--relax", relax, "-o"])
                .arg(&profile);
            process::run(&mut command).ok("combine");
            let fused = table::export(&profile);
            // The program does the same each time, so every XU of both runs has a partner, once.
            for (run, event) in [(0, "task-clock"), (0, "page-faults"), (1, "minor-faults")] {
                assert_eq!(
                    counts(&fused, event),
                    counts(&of_run[run], event),
                    "{strategy} {relax}: {event}"
                );
            }
        }
    }
    let mut command = command::with_threads(2);
    command
        .args(["combine", "--strategy", "bc", "-o"])
        .arg(folder.path().join("none.parquet"))
        .arg(&runs[0]);
    let other = folder.path().join("other");
    table::record(&patched, &[], 2, &other, &["--events", "minor-faults"]).ok("record");
    let failed = process::run(command.arg(other));
    assert_eq!(failed.status, 1);
    let line = failed.errors();
    assert!(
        line.starts_with("ompfuse: run 2 shares no event with the runs before it")
            && line.lines().count() == 1,
        "{line}"
    );
    assert!(!folder.path().join("none.parquet").exists());
}

/// Tables of another recorder, with the values that another program computed for them.
#[test]
fn foreign_tables_are_combined_and_evaluated() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let inputs = |prefix: &str, n: usize, width: usize| -> Vec<std::path::PathBuf> {
        (1..=n)
            .map(|i| data.join(format!("{prefix}{i:0width$}.csv")))
            .collect()
    };
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let profile = folder.path().join("profile.parquet");
    for (strategy, runs, epd) in [
        ("lgl", inputs("a_lgl_in_", 7, 1), 1.106_610_120_636_56),
        ("bc", inputs("a_bc_in_", 15, 2), 1.212_112_917_234_831_7),
    ] {
        let mut combine = command::with_threads(2);
        combine
            .arg("combine")
            .args(runs)
            .args(["--strategy", strategy, "-o"])
            .arg(&profile);
        process::run(&mut combine).ok("combine");
        let mut evaluate = command::with_threads(2);
        evaluate
            .args(["evaluate", "--format", "json"])
            .arg(&profile)
            .arg("--reference")
            .args(inputs("a_ref_", 5, 1));
        let answer = process::run(&mut evaluate);
        let answer = answer.ok("evaluate");
        let answer: serde_json::Value =
            serde_json::from_slice(&answer.stdout).expect("JSON was asked for");
        let found = answer["epd"].as_f64().expect("a number");
        assert!((found - epd).abs() < 1e-9, "{strategy}: {found}");
        assert_eq!(answer["pairs"].as_array().map(Vec::len), Some(33 * 32 / 2));
        assert_eq!(answer["reference_epds"].as_array().map(Vec::len), Some(5));
    }
}

/// Complete runs pose as incomplete ones, and the strategies are compared.
#[test]
fn strategies_are_compared_on_complete_runs() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let references = (1..=5).map(|i| data.join(format!("a_ref_{i}.csv")));
    let folder = tempfile::tempdir().expect("there is room for a page");
    let page = folder.path().join("p.html");
    let mut evaluate = command::with_threads(2);
    evaluate
        .args(["evaluate", "--mask", "6", "--keep", "3", "--repeat", "2"])
        .arg("--html")
        .arg(&page)
        .args([
            "--methods",
            "lgl,joint,hem",
            "--format",
            "json",
            "--reference",
        ])
        .args(references);
    let answer = process::run(&mut evaluate).ok("evaluate");
    let answer: serde_json::Value =
        serde_json::from_slice(&answer.stdout).expect("JSON was asked for");
    let drawn = std::fs::read_to_string(&page).expect("it was asked for");
    assert!(drawn.contains("lgl: TMD") && drawn.contains("joint: TMD"));
    let methods = answer["methods"].as_array().expect("a list");
    let error = |at: usize| {
        methods[at]["hidden_error"]["mean"]
            .as_f64()
            .expect("a number")
    };
    assert_eq!(methods.len(), 3);
    assert!(methods[1]["method"] == "joint" && answer["reused"] == true);
    assert_eq!(methods[0]["scores"].as_array().map(Vec::len), Some(2));
    assert!(error(1) <= error(0) && error(0) < error(2), "{answer}");
}

/// The joint strategy uses what runs share, and the pictures of an evaluation are one page.
#[test]
fn overlapping_tables_are_combined_with_confidence_and_pictures() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let (profile, page) = (
        folder.path().join("p.parquet"),
        folder.path().join("p.html"),
    );
    let mut combine = command::with_threads(2);
    combine
        .args(["combine", "--strategy", "joint"])
        .args((1..=15).map(|i| data.join(format!("a_bc_in_{i:02}.csv"))))
        .arg("-o")
        .arg(&profile);
    process::run(&mut combine).ok("combine");
    let mut evaluate = command::with_threads(2);
    evaluate
        .args(["evaluate", "--format", "json", "--top", "3", "--html"])
        .arg(&page)
        .arg(&profile)
        .arg("--reference")
        .args((1..=5).map(|i| data.join(format!("a_ref_{i}.csv"))));
    let answer = process::run(&mut evaluate).ok("evaluate");
    let answer: serde_json::Value =
        serde_json::from_slice(&answer.stdout).expect("JSON was asked for");
    let epd = answer["epd"].as_f64().expect("a number");
    // The golden outputs of bc have 1.18 to 1.21.
    assert!(epd < 1.19, "{epd}");
    let page = std::fs::read_to_string(page).expect("it was written");
    assert_eq!(page.matches("<svg").count(), 9);
}

/// An interrupted command leaves a whole profile or none, and nothing else.
#[test]
fn interruption_leaves_no_half_profile() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuse/tests/data");
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let profile = folder.path().join("p.parquet");
    let delays = [0, 2, 5, 10, 20, 40, 80];
    for (delay, memory) in delays.into_iter().zip(["1G", "1"].into_iter().cycle()) {
        let mut combine = command::with_threads(2);
        combine
            .args(["combine", "--strategy", "bc", "--memory", memory])
            .args((1..=15).map(|i| data.join(format!("a_bc_in_{i:02}.csv"))))
            .arg("-o")
            .arg(&profile);
        let mut child = combine
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let pid = child.id().to_string();
        let _ = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        child.wait().expect("it ends");
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .filter_map(|e| Some(e.ok()?.file_name()))
            .collect();
        assert!(left.is_empty() || left == ["p.parquet"], "{left:?}");
        if profile.exists() {
            assert_eq!(table::export(&profile).len(), 600);
            std::fs::remove_file(&profile).expect("it is there");
        }
    }
}
