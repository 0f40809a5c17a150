//! The composite action of GitHub pipelines: its commands on the example project.

use super::{Project, read};
use ompfuse_tests::{process, repository};

/// The commands of the composite action, in the order of its steps.
fn commands_of_action() -> Vec<String> {
    let text = read(&repository().join("action.yml"));
    let run = |line: &str| {
        let line = line.trim().strip_prefix("run: '")?;
        Some(line.strip_suffix('\'')?.to_owned())
    };
    text.lines().filter_map(run).collect()
}

/// A job of a pipeline has so many seconds for recording and comparing.
const OF_JOB_S: f64 = 20.0;

#[test]
fn a_composite_action_compares_with_the_committed_baseline() {
    let Some(project) = Project::begin() else {
        return;
    };
    let commands = commands_of_action();
    let [key, install, compare] = &commands[..] else {
        panic!("three commands: {commands:?}");
    };
    let action = |command: &str, fail_on: &str| {
        let begin = std::time::Instant::now();
        let mut shell = project.shell(command);
        shell.current_dir(project.root());
        shell.env("GITHUB_ACTION_PATH", repository());
        shell.env("OMPFUSE_FOLDER", project.folder.path().join("kept"));
        shell.env("RUNNER_TEMP", project.folder.path().join("temp"));
        for name in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
            shell.env(name, project.folder.path().join(name));
        }
        shell.env("OMPFUSE_RUN", "./waves 8 '4096'");
        shell.env("OMPFUSE_BASELINE", "perf/baseline.json.gz");
        shell.env("OMPFUSE_FAIL_ON", fail_on);
        (process::run(&mut shell), begin.elapsed().as_secs_f64())
    };
    let output = || read(&project.folder.path().join("GITHUB_OUTPUT"));
    let gates = "region(\"*\").instructions>0.5%\nnew-regions>0\n";
    action(key, gates).0.ok(key);
    assert!(
        output().contains("key=") && output().contains("/kept\n"),
        "{}",
        output()
    );
    // Compiling takes minutes, and is what `cargo install` does.
    assert!(install.ends_with("action.sh\" install"), "{install}");

    project.run("make --silent waves", false).ok("make");
    let (first, _) = action(compare, gates);
    assert!(
        first
            .ok("no baseline")
            .text()
            .contains("There is no perf/baseline.json.gz yet")
    );
    let made = output();
    let made = made.lines().find_map(|l| l.strip_prefix("baseline="));
    let accept = format!(
        "mkdir -p perf && cp {} perf/baseline.json.gz",
        made.expect("an output")
    );
    project.run(&accept, false).ok("accept");
    let (same, seconds) = action(compare, gates);
    same.ok("without a change");
    assert!(seconds < OF_JOB_S, "{seconds}");
    println!("{seconds:.1} s");

    project.change("TERMS 100", "TERMS 101", "TERMS 101");
    project.run("make --silent waves", false).ok("make");
    let (more, _) = action(compare, gates);
    assert_eq!(more.status, 3, "{more:?}");
    assert!(
        more.text().contains("::error file=kernels.c,line="),
        "{more:?}"
    );
    let summary = read(&project.folder.path().join("GITHUB_STEP_SUMMARY"));
    assert!(summary.contains("instructions"), "{summary}");
}
