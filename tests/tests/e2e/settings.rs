//! `--set`: what the runtime is handed over, as a library in front of it says; nothing else changes.

use crate::shares::{programs, reported};
use ompfuse_tests::{command, compile, process, repository, table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

mod cutoff;
mod environment;
mod libraries;
mod limits;
pub(crate) mod random;
mod recommended;
mod variables;

/// The line of a source with this comment.
fn line_of(source: &str, comment: &str) -> usize {
    let path = repository().join(format!("tests/sources/{source}.c"));
    let text = std::fs::read_to_string(path).expect("the source is there");
    let wanted = format!("/* {comment} */");
    let found = text.lines().position(|l| l.contains(&wanted));
    found.expect("a line has this comment") + 1
}

fn line(comment: &str) -> usize {
    line_of("settings", comment)
}

fn patched(program: &Path, to: &Path, sets: &[(&str, &str)]) -> process::Output {
    patched_of("settings", program, to, sets)
}

/// Patches with settings, each a comment of this source and values.
fn patched_of(source: &str, program: &Path, to: &Path, sets: &[(&str, &str)]) -> process::Output {
    let mut patch = command::with_threads(2);
    patch
        .args(["patch", "--dormant", "-o"])
        .arg(to)
        .arg(program);
    for (comment, values) in sets {
        let line = line_of(source, comment);
        patch.arg(format!("--set={source}.c:{line}: {values}"));
    }
    process::run(&mut patch)
}

/// What the program prints, and the calls that the library in front of the runtime has seen, with the program's own words.
fn run(program: &Path, shim: &Path) -> (String, BTreeSet<String>) {
    let mut run = Command::new(program);
    process::clean(&mut run, 4).env("LD_PRELOAD", shim);
    let output = process::run(&mut run).ok("the program");
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.text(), lines.lines().map(str::to_owned).collect())
}

fn shim(folder: &Path) -> PathBuf {
    let shim = folder.join("arguments.so");
    let source = repository().join("tests/sources/arguments.c");
    let command = "gcc -shared -fPIC -O1 -w";
    assert!(compile::files(&[source], &shim, command), "gcc is there");
    shim
}

const SETS: [(&str, &str); 5] = [
    ("combined", "chunk=64"),
    ("guided", "chunk=500"),
    ("sized", "num_tasks=7"),
    ("counted", "grainsize=100"),
    ("serial", "threads=3"),
];

#[test]
fn the_runtime_gets_other_values() {
    for (compiler, folder) in programs("settings") {
        let program = folder.path().join("settings");
        let tuned = folder.path().join("tuned");
        let shim = shim(folder.path());
        let is_gcc = compiler.starts_with("gcc");
        // clang's regions take the number of threads from elsewhere.
        let mut sets = SETS[..if is_gcc { 5 } else { 4 }].to_vec();
        if is_gcc {
            sets.push(("team", "threads=3"));
        } else {
            sets.push(("guided", "schedule=dynamic, chunk=500"));
        }
        patched(&program, &tuned, &sets).ok("patch --set");
        let before = run(&program, &shim);
        let after = run(&tuned, &shim);
        assert_eq!(before.0, after.0, "{compiler}");
        let all: BTreeSet<&str> = after.1.difference(&before.1).map(String::as_str).collect();
        let expected: &[&str] = match is_gcc {
            true => &[
                "GOMP_parallel threads 3",
                "GOMP_parallel_loop_nonmonotonic_dynamic threads 0 chunk 64",
                "GOMP_loop_ull_nonmonotonic_guided_start chunk 500",
                "GOMP_taskloop sized 0 grain 7",
                "GOMP_taskloop sized 1 grain 100",
                // A false `if` clause asks for one thread, and stays so.
                "team 3, alone 1",
            ],
            false => &[
                "__kmpc_dispatch_init_4 schedule 35 modifiers 2 chunk 64",
                "__kmpc_dispatch_init_8u schedule 35 modifiers 2 chunk 500",
                "__kmpc_taskloop sized 0 grain 7",
                "__kmpc_taskloop sized 1 grain 100",
            ],
        };
        assert_eq!(all, expected.iter().copied().collect(), "{compiler}");
        // The copy is what its description says, tells of it, and is recorded as any other.
        let verified = command::ok([Path::new("verify"), &program, &tuned]);
        assert!(verified.text().contains("gives the same bytes"));
        // mov qword ptr [rsp + 8], 64: a copy with another number is refused.
        let mut bytes = std::fs::read(&tuned).expect("the copy is there");
        let code = [0x48, 0xc7, 0x44, 0x24, 8, 64, 0, 0, 0];
        let at = bytes.windows(code.len()).position(|w| w == code);
        bytes[at.expect("the copy sets the chunk") + 5] = 65;
        let other = folder.path().join("other");
        std::fs::write(&other, bytes).expect("there is room for a copy");
        let refused = command::run([Path::new("verify"), &program, &other]);
        assert_eq!(refused.status, 1, "{}", refused.text());
        let scanned = command::ok([Path::new("scan"), &tuned]).text();
        assert!(scanned.contains("chunk=64"), "{scanned}");
        let out = folder.path().join("out");
        table::record(&tuned, &[], 2, &out, &["--events", "none"]).ok("record");
        let report = reported(&out);
        let regions = report["regions"].as_array().expect("a list").iter();
        let of_loop = regions.filter(|r| r["source"]["line"] == line("combined"));
        let ranges = of_loop.filter_map(|r| r["xus"].as_u64()).max();
        assert_eq!(ranges, Some(1000u64.div_ceil(64)), "{compiler}");
    }
}

#[test]
fn what_cannot_be_set_says_why() {
    for (compiler, folder) in programs("settings") {
        let program = folder.path().join("settings");
        let tuned = folder.path().join("tuned");
        let is_static = match compiler {
            "gcc" => "it is dealt out without a call",
            _ => "programs may rely on which thread gets what",
        };
        let mut all = vec![
            ("static", "chunk=4", is_static),
            ("static", "schedule=dynamic", is_static),
            (
                "combined",
                "grainsize=4",
                "no construct there has such a value",
            ),
        ];
        if compiler.starts_with("gcc") {
            all.extend([
                ("combined", "threads=2", "OMP_NUM_THREADS decides"),
                ("team", "threads=4", "asks for no more threads"),
                ("combined", "schedule=guided", "libgomp has other functions"),
            ]);
            // Where something else of the file can be set, it is said beside it.
            let mut patch = command::with_threads(2);
            patch.args(["patch", "--dormant", "--set=settings.c: threads=3", "-o"]);
            let said = process::run(patch.arg(&tuned).arg(&program)).ok("patch --set");
            let said = said.errors();
            assert!(said.contains("stays at some places"), "{said}");
            let _ = std::fs::remove_file(&tuned);
        }
        for (comment, values, reason) in all {
            let output = patched(&program, &tuned, &[(comment, values)]);
            let said = output.errors();
            assert_eq!(output.status, 1, "{said}");
            assert!(said.contains(reason), "{compiler}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(!tuned.exists());
        }
    }
}

/// Tries settings, each a comment of the source and values, with at most four turns.
fn tried(program: &Path, options: &[&str], sets: &[(&str, &str)], args: &[&str]) -> Value {
    let mut command = command::with_threads(4);
    command.env("OMP_WAIT_POLICY", "passive");
    command
        .args(["try", "--format=json", "--turns=4"])
        .args(options);
    for (comment, values) in sets {
        command.arg(format!("--set=settings.c:{}: {values}", line(comment)));
    }
    let out = program.with_file_name("tried");
    let _ = std::fs::remove_dir_all(&out);
    command
        .arg("-o")
        .arg(&out)
        .arg("--")
        .arg(program)
        .args(args);
    let output = process::run(&mut command).ok("try");
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

#[test]
fn what_is_tried_does_the_same_or_is_not_recommended() {
    for (compiler, folder) in programs("settings") {
        let program = folder.path().join("settings");
        let sets = [("combined", "chunk=64"), ("sized", "grainsize=100")];
        let tuned = folder.path().join("tuned");
        let patch = ["--patch", tuned.to_str().expect("a plain name")];
        let answer = tried(&program, &patch, &sets, &["20000"]);
        let variants = answer["variants"].as_array().expect("a list");
        for variant in &variants[..2] {
            assert_eq!(variant["output"], "equal", "{compiler}: {answer:#}");
            assert!(
                variant["turns"].as_u64() >= Some(1),
                "{compiler}: {answer:#}"
            );
        }
        // Which is faster, the machine decides; what is written is what is said.
        assert_eq!(tuned.exists(), !answer["best"].is_null(), "{answer:#}");
        if tuned.exists() {
            command::ok([Path::new("verify"), &program, &tuned]);
        }
        // It prints the sizes of teams.
        let is_gcc = compiler.starts_with("gcc");
        let other = [("team", "threads=3")];
        if is_gcc {
            let answer = tried(&program, &[], &other, &["1000", "sizes"]);
            assert_eq!(
                answer["variants"][0]["output"], "digits_differ",
                "{answer:#}"
            );
            assert!(answer["best"].is_null());
            let check = ["--check", "grep -q 'team 4'"];
            let answer = tried(&program, &check, &other, &["1000", "sizes"]);
            assert_eq!(answer["variants"][0]["output"], "differs", "{answer:#}");
            assert!(answer["best"].is_null());
        }
        // Times differ in any case; that allows no other number to differ.
        let timed = ["1000", "sizes", "time"];
        let answer = tried(&program, &[], &sets[..1], &timed);
        let judged = &answer["variants"][0]["output"];
        assert_eq!(judged, "equal_but_digits", "{answer:#}");
        if is_gcc {
            let answer = tried(&program, &[], &other, &timed);
            let judged = &answer["variants"][0]["output"];
            assert_eq!(judged, "digits_differ", "{answer:#}");
        }
        let check = ["--check", "grep -q sum"];
        let answer = tried(&program, &check, &sets[..1], &["1000"]);
        assert_eq!(answer["variants"][0]["output"], "checked", "{answer:#}");
    }
}

/// The loop's iterations sleep, so what helps doesn't depend on the machine.
#[test]
fn what_a_region_gains_is_measured() {
    for (compiler, folder) in programs("asleep") {
        let program = folder.path().join("asleep");
        let mut command = command::with_threads(4);
        let chunk = format!("--set=asleep.c:{}: chunk=1", line_of("asleep", "chunk"));
        command.args(["try", "--format=json", &chunk, "-o"]);
        command
            .arg(folder.path().join("out"))
            .arg("--")
            .arg(&program);
        let output = process::run(&mut command).ok("try");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let variant = &answer["variants"][0];
        assert_eq!(answer["best"], 0, "{compiler}: {answer:#}");
        let change = variant["region_time"]["change"].as_f64();
        assert!(
            change.is_some_and(|c| (-0.9..-0.5).contains(&c)),
            "{answer:#}"
        );
        // So says the replay of what was recorded.
        let predicted = variant["predicted"].as_f64();
        assert!(
            predicted.is_some_and(|c| (-0.9..-0.5).contains(&c)),
            "{answer:#}"
        );
        // Three of four threads wait all the time.
        let lost = variant["lost"].as_f64();
        assert!(lost.is_some_and(|l| l > 0.4), "{answer:#}");
        let report = command::ok([Path::new("report"), &folder.path().join("out")]).text();
        let told = report
            .lines()
            .next()
            .is_some_and(|line| line.starts_with("tried: asleep.c"));
        assert!(told, "{report}");
        let told = &reported(&folder.path().join("out"))["tried"];
        let begin = told["told"]
            .as_str()
            .map(|text| text.starts_with("asleep.c"));
        assert_eq!(begin, Some(true), "{told:#}");
        assert_eq!(told["variants"], answer["variants"], "{told:#}");
        let page = folder.path().join("page.html");
        let mut html = command::with_threads(2);
        html.arg("report").arg(folder.path().join("out"));
        process::run(html.arg("--html").arg(&page)).ok("report --html");
        let page = std::fs::read_to_string(page).expect("the page is there");
        assert!(page.contains("Tried: asleep.c"), "the page tells it");
    }
}

#[test]
fn what_cannot_be_tried_is_said_before_anything_runs() {
    for (_, folder) in programs("settings") {
        let program = folder.path().join("settings");
        let mut command = command::with_threads(2);
        command.current_dir(folder.path()).arg("try");
        command.arg(format!(
            "--set=settings.c:{}: grainsize=4",
            line("combined")
        ));
        let output = process::run(command.arg("--").arg(&program));
        let said = output.errors();
        assert_eq!((output.status, said.lines().count()), (1, 1), "{said}");
        assert!(!folder.path().join("ompfuse-out").exists());
    }
}
