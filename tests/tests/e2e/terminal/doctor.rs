//! `doctor` against what other tools say of this machine.

use super::widest;
use ompfuse_tests::{command, process, skip};
use serde_json::Value;
use std::process::Command;

/// The output of a command, empty where there is none.
fn told(command: &str, args: &[&str]) -> String {
    let output = Command::new(command).args(args).output();
    output.map_or_else(
        |_| String::new(),
        |o| String::from_utf8_lossy(&o.stdout).into_owned(),
    )
}

#[test]
fn it_agrees_with_the_system() {
    let answer = command::json(["doctor", "--format", "json"]);
    assert_eq!(answer["can_record"], true, "{answer}");
    let checks = answer["checks"].as_array().expect("a list of checks");
    let named = |name: &str| -> Vec<&Value> {
        let found: Vec<_> = checks.iter().filter(|c| c["name"] == name).collect();
        assert!(!found.is_empty(), "{name}: {answer}");
        found
    };
    let found = |name: &str| named(name)[0]["found"].as_str().expect("a text").to_owned();
    let glibc = told("getconf", &["GNU_LIBC_VERSION"]);
    assert_eq!(found("C library"), glibc.trim(), "{answer}");
    if let Ok(paranoid) = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
        let setting = format!("kernel.perf_event_paranoid is {}", paranoid.trim());
        assert!(found("perf settings").starts_with(&setting), "{answer}");
    }
    let limit = told("sh", &["-c", "ulimit -n"]);
    assert_eq!(
        found("open files"),
        format!("at most {}", limit.trim()),
        "{answer}"
    );
    // The loader's own list has all that it may load.
    let runtimes: Vec<String> = named("OpenMP runtime")
        .iter()
        .filter_map(|c| Some(c["found"].as_str()?.split(',').next()?.to_owned()))
        .collect();
    for line in told("/sbin/ldconfig", &["-p"]).lines() {
        let Some((name, path)) = line.split_once(" => ") else {
            continue;
        };
        let name = name.trim_start();
        if ["libgomp.so", "libomp.so", "libiomp5.so"]
            .iter()
            .any(|n| name.starts_with(n))
        {
            let file = std::fs::canonicalize(path).expect("a library is there");
            assert!(
                runtimes.contains(&file.display().to_string()),
                "{path}: {runtimes:?}"
            );
        }
    }
    // Events are what `events` says.
    let events = command::json(["events", "--format", "json"]);
    let list = events["events"].as_array().expect("a list of events");
    for kind in ["software", "hardware"] {
        let of = list.iter().filter(|e| e["kind"] == kind);
        let (all, open) = of.fold((0, 0), |(all, open), e| {
            (all + 1, open + i32::from(e["available"] == true))
        });
        let state = named(&format!("{kind} events"))[0]["state"].clone();
        let wanted = match open {
            0 => "missing",
            n if n == all => "ok",
            _ => "limited",
        };
        assert_eq!(state, wanted, "{answer}");
    }
    for check in checks {
        let (state, meaning) = (&check["state"], check["meaning"].as_str());
        assert!(
            state == "ok" || meaning.is_some_and(|m| !m.is_empty()),
            "{check}"
        );
    }
}

#[test]
fn what_is_wrong_is_named_with_its_remedy() {
    for columns in [60, 80] {
        let mut doctor = command::with_threads(2);
        doctor.arg("doctor").env("COLUMNS", columns.to_string());
        doctor
            .env_remove("XDG_CACHE_HOME")
            .env_remove("HOME")
            .env("PATH", "/nowhere");
        let output = process::run(&mut doctor).ok("doctor");
        let text = output.text();
        assert!(widest(&text) <= columns, "{columns}: {text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in [
            "limited cache",
            "→ set XDG_CACHE_HOME to a folder of your own",
            "missing simulated events",
            "→ apt-get install qemu-user",
            "Programs can be recorded here",
        ] {
            assert!(words.contains(wanted), "{wanted}: {text}");
        }
    }
}

/// A control group's quota, as a container has one: the file that says so is another one in a namespace of mounts.
#[test]
fn a_quota_is_told() {
    let checks = |answer: &Value| {
        let checks = answer["checks"]
            .as_array()
            .expect("a list of checks")
            .clone();
        let named = checks.into_iter().find(|c| c["name"] == "processors");
        named.expect("a check of processors")
    };
    let folder = tempfile::tempdir().expect("there is room for a file");
    let max = folder.path().join("cpu.max");
    for (text, wanted) in [("50000 100000\n", Some("0.50 of ")), ("max 100000\n", None)] {
        std::fs::write(&max, text).expect("there is room");
        let mut inside = Command::new("unshare");
        inside.args(["-rm", "sh", "-c"]);
        inside.arg("mount --bind \"$0\" /sys/fs/cgroup && exec \"$1\" doctor --format json");
        let said = process::run(inside.arg(folder.path()).arg(command::path()));
        if said.status != 0 {
            return skip(&format!("no namespace of mounts: {}", said.errors()));
        }
        let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON");
        let check = checks(&answer);
        let found = check["found"].as_str().expect("a text");
        assert_eq!(check["state"] == "limited", wanted.is_some(), "{check}");
        let nproc = told(
            "env",
            &["-u", "OMP_NUM_THREADS", "-u", "OMP_THREAD_LIMIT", "nproc"],
        );
        let rest = format!("{}{}", wanted.unwrap_or_default(), nproc.trim());
        assert!(found.contains(&rest), "{rest}: {check}");
        if wanted.is_some() {
            assert!(
                check["remedy"]
                    .as_str()
                    .expect("a remedy")
                    .contains("OMP_NUM_THREADS=1"),
                "{check}"
            );
        }
    }
}
