//! What `--set` and `try` must not do: give a program more threads than it has room for, hang, or begin what can't end.

use super::{line_of, patched_of};
use crate::shares::programs;
use ompfuse_tests::{command, process};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn line(comment: &str) -> usize {
    line_of("limits", comment)
}

fn patched(program: &Path, to: &Path, sets: &[(&str, &str)]) -> process::Output {
    patched_of("limits", program, to, sets)
}

/// libgomp multiplies steps by chunks, and keeps tasks with copied data on the stack. Programs rely on strict grains. None of that changes.
#[test]
fn settings_stay_within_what_programs_rely_on() {
    for (compiler, folder) in programs("limits") {
        let program = folder.path().join("limits");
        let tuned = folder.path().join("tuned");
        let mut sets = vec![("steps", "chunk=512"), ("copied", "grainsize=10")];
        if compiler.starts_with("gcc") {
            sets.push(("strict", "grainsize=7"));
        }
        patched(&program, &tuned, &sets).ok("patch --set");
        let run = |program: &Path| {
            let mut command = Command::new(program);
            process::run(process::clean(&mut command, 3)).outcome()
        };
        let before = run(&program);
        assert!(before.1.contains("steps 255\nbeyond 0\n"), "{before:?}");
        assert_eq!(before, run(&tuned), "{compiler}");
        command::ok([Path::new("verify"), &program, &tuned]);
    }
}

#[test]
fn the_last_value_of_a_taskloop_counts() {
    for (_, folder) in programs("limits") {
        let program = folder.path().join("limits");
        let tuned = folder.path().join("tuned");
        let sets = [("copied", "num_tasks=3"), ("copied", "grainsize=4000")];
        patched(&program, &tuned, &sets).ok("patch --set");
        let scanned = command::ok([Path::new("scan"), &tuned]).text();
        assert!(scanned.contains("grainsize=4000"), "{scanned}");
        assert!(!scanned.contains("num_tasks=3"), "{scanned}");
    }
}

/// `try` with these options in the program's folder.
fn tried(program: &Path, options: &[&str], args: &[&str]) -> process::Output {
    let mut command = command::with_threads(2);
    command.current_dir(program.parent().expect("it is in a folder"));
    command
        .args(["try", "--turns=4", "--format=json"])
        .args(options);
    process::run(command.arg("--").arg(program).args(args))
}

#[test]
fn a_variant_that_hangs_is_ended() {
    for (compiler, folder) in programs("limits") {
        if !compiler.starts_with("gcc") {
            continue; // its regions hand over no number of threads
        }
        let program = folder.path().join("limits");
        let alone = format!("--set=limits.c:{}: serial", line("pair"));
        // Beside other programs the variant may fail before it is late.
        let is_ended = |_| {
            let output = tried(&program, &[&alone], &["pair"]).ok("try");
            let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert!(answer["best"].is_null(), "{answer:#}");
            let reason = answer["variants"][0]["reason"].as_str();
            reason.is_some_and(|r| r.starts_with("ended after"))
        };
        assert!((0..5).any(is_ended), "it was never ended");
    }
}

#[test]
fn what_cannot_be_judged_or_written_is_refused_in_one_line() {
    for (_, folder) in programs("limits") {
        let program = folder.path().join("limits");
        let set = format!("--set=limits.c:{}: chunk=4", line("steps"));
        let out = folder.path().join("ompfuse-out");
        let refused = |output: process::Output, reason: &str| {
            let said = output.errors();
            assert!(said.contains(reason), "{said}");
            assert_eq!((output.status, said.lines().count()), (1, 1), "{said}");
        };
        let onto = ["--patch", program.to_str().expect("a plain name")];
        let replaced = tried(&program, &[&set, onto[0], onto[1]], &[]);
        refused(replaced, "would replace");
        let mut piped = Command::new("sh");
        let script = "echo 1 | \"$0\" try \"$1\" -- \"$2\"";
        piped.args(["-c", script]).arg(command::path());
        piped.arg(&set).arg(&program).current_dir(folder.path());
        refused(process::run(&mut piped), "standard input is a pipe");
        assert!(!out.exists(), "nothing was run");
        let checked = tried(&program, &[&set, "--check=false"], &[]);
        refused(checked, "refuses the original's own output");
        assert!(!out.exists(), "nothing was tried");
    }
}

/// SIGINT from a terminal, while the program is recorded: one line says so, and nothing is left.
#[test]
fn an_interrupt_is_one_line_and_leaves_nothing() {
    for (_, folder) in programs("limits") {
        let program = folder.path().join("limits");
        let temporary = folder.path().join("temporary");
        std::fs::create_dir_all(&temporary).expect("there is room for a folder");
        // Who started the tests in the background may have told all below to ignore it.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(command::path());
        process::clean(&mut command, 2).process_group(0);
        command.current_dir(folder.path()).env("TMPDIR", &temporary);
        command.env("OMP_THREAD_LIMIT", "1"); // one thread waits for the other
        command.args(["try", "--"]).arg(&program).arg("pair");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("the command starts");
        let out = folder.path().join("ompfuse-out");
        let begun = out.join("run-0001/begun.json");
        let begin = Instant::now();
        while !begun.exists() {
            assert!(begin.elapsed() < process::LIMIT, "nothing is recorded");
            std::thread::sleep(Duration::from_millis(10));
        }
        let group = format!("-{}", child.id());
        process::run(Command::new("kill").args(["-INT", "--", &group])).ok("kill");
        let ended = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        // The program's runtime may have warned of the limit before.
        let ours = said.lines().filter(|l| !l.starts_with("OMP: "));
        let lines: Vec<&str> = ours.filter(|l| !l.contains("patched ")).collect();
        assert_eq!(lines, ["ompfuse: interrupted by signal 2"]);
        assert_eq!(ended.status.code(), Some(130));
        assert!(!out.exists());
        let left = std::fs::read_dir(&temporary).expect("a folder").count();
        assert_eq!(left, 0, "temporary files");
    }
}
