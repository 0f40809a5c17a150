//! Where the kernel, or a container's filter, forbids to count, that is said, with what helps; nothing is promised that isn't counted.

use ompfuse_tests::{command, compile, process, repository, table};
use serde_json::Value;
use std::process::Command;

/// perf_event_open(2).
const CALL: &str = "298";

#[test]
fn a_container_may_forbid_to_count() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let refuse = folder.path().join("refuse");
    let source = repository().join("tests/sources/refuse.c");
    if !compile::files(&[source], &refuse, "gcc -O1") {
        return;
    }
    let program = repository().join("fixtures/prebuilt/knapsack-gcc");
    for (name, errno) in [("EPERM", "1"), ("EACCES", "13"), ("ENOSYS", "38")] {
        let run = |args: &[&str]| {
            let ours = command::with_threads(2);
            let mut boxed = Command::new(&refuse);
            boxed.args([errno, CALL, "--"]).arg(ours.get_program());
            for (key, value) in ours.get_envs() {
                match value {
                    Some(value) => boxed.env(key, value),
                    None => boxed.env_remove(key),
                };
            }
            process::run(boxed.args(args).current_dir(folder.path())).ok(name)
        };
        let json = |args: &[&str]| -> Value {
            let output = run(&[args, &["--format", "json"]].concat());
            serde_json::from_slice(&output.stdout).expect("JSON was asked for")
        };
        let events = json(&["events"]);
        let events = events["events"].as_array().expect("a list");
        // Those of the simulator, and of programs that count themselves, are not the kernel's.
        let others = ["simulated", "code"];
        let real = events
            .iter()
            .filter(|e| others.iter().all(|kind| e["kind"] != *kind));
        for event in real {
            assert_eq!(event["available"], false, "{name}: {event}");
            let reason = event["reason"].as_str().expect("a reason");
            assert!(
                reason.contains(name) && reason.contains("seccomp filter"),
                "{event}"
            );
            let remedy = event["remedy"].as_str().expect("a remedy");
            assert!(remedy.contains("--cap-add PERFMON"), "{event}");
        }
        let plan = json(&["plan"]);
        assert_eq!(
            (&plan["runs"], &plan["sets"]),
            (&1.into(), &serde_json::json!([[]])),
            "{name}"
        );
        let out = folder.path().join(name);
        let path = out.to_str().expect("an ordinary path");
        let program = program.to_str().expect("an ordinary path");
        let profile = run(&["profile", "-o", path, "--", program]);
        let said = profile.errors();
        assert!(said.contains(name) && said.contains("seccomp"), "{said}");
        assert!(said.contains("no event can be counted here"), "{said}");
        assert!(!said.contains("software events only"), "{said}");
        let xus = table::export(&table::runs(&out)[0]);
        assert_eq!(xus.len(), 510, "they have times and labels");
        // Who names an event is told the same, and it isn't counted.
        let out = folder.path().join(format!("{name}-named"));
        let path = out.to_str().expect("an ordinary path");
        let named = run(&[
            "profile",
            "--events",
            "task-clock",
            "-o",
            path,
            "--",
            program,
        ]);
        assert!(
            named.errors().contains("not counted: task-clock") && named.errors().contains(name),
            "{named:?}"
        );
        assert!(!named.errors().contains("own counts"), "{named:?}");
    }
}
