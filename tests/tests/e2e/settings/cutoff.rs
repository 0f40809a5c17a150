//! `cutoff=DEPTH`: which tasks libgomp may defer, as a library in front of it counts them, and as the program's own count of depths says.

use super::libraries::in_library;
use super::{line_of, patched_of};
use crate::shares::{programs, reported};
use ompfuse_tests::{command, compile, process, repository, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Constructs of the source: the comment, and whether they can be executed at once.
const CONSTRUCTS: [(&str, bool); 7] = [
    ("left", true),
    ("right", true),
    ("queen", true),
    ("depends", false),
    ("copied", false),
    ("plain", true),
    ("link", true),
];

const BUILDS: [&str; 4] = [
    "-O0",
    "-O2",
    "-O3 -fcf-protection=full",
    "-O2 -no-pie -fno-plt",
];

fn build(folder: &Path, flags: &str) -> PathBuf {
    let program = folder.join("cutoff");
    let source = repository().join("tests/sources/cutoff.c");
    let command = format!("gcc {flags} -g -fopenmp -rdynamic -w");
    assert!(compile::files(&[source], &program, &command), "{flags}");
    program
}

fn shim(folder: &Path) -> PathBuf {
    let shim = folder.join("deferred.so");
    let source = repository().join("tests/sources/deferred.c");
    assert!(compile::files(&[source], &shim, "gcc -shared -fPIC -O1"));
    shim
}

/// What a program prints, and how many tasks libgomp may defer, and must not.
fn run(program: &Path, args: &[&str], threads: usize, shim: &Path) -> (String, Option<[u64; 2]>) {
    let mut command = Command::new(program);
    process::clean(command.args(args), threads);
    command.env("LD_PRELOAD", shim);
    command.env("OMP_WAIT_POLICY", "passive");
    let output = process::run(&mut command).ok("the program");
    (output.text(), counted(&output.errors()))
}

/// What the library in front of the runtime says last.
fn counted(said: &str) -> Option<[u64; 2]> {
    let numbers = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["deferred", deferred, "at", "once", now] => {
                Some([deferred.parse().ok()?, now.parse().ok()?])
            }
            _ => None,
        }
    };
    said.lines().filter_map(numbers).max()
}

/// Tasks by construct and depth, as the program counts them.
fn created(text: &str) -> BTreeMap<(usize, u64), u64> {
    let count = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["construct", c, "depth", d, "tasks", n] => {
                Some(((c.parse().ok()?, d.parse().ok()?), n.parse().ok()?))
            }
            _ => None,
        }
    };
    text.lines().filter_map(count).collect()
}

/// How many tasks are to be deferred and not, by the cutoffs of all constructs.
fn expected(text: &str, cutoffs: &[u64]) -> [u64; 2] {
    let mut all = [0, 0];
    for ((construct, depth), tasks) in created(text) {
        let is_cut = CONSTRUCTS[construct].1 && depth > cutoffs[construct];
        all[usize::from(is_cut)] += tasks;
    }
    all
}

/// Depths that chance chooses, one for each construct.
fn drawn(draw: &mut u64) -> Vec<u64> {
    let mut next = || {
        *draw = draw
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*draw >> 33) % 20 + 1
    };
    CONSTRUCTS.iter().map(|_| next()).collect()
}

fn tuned(program: &Path, cutoffs: &[u64]) -> PathBuf {
    let tuned = program.with_file_name("tuned");
    let values = cutoffs.iter().map(|depth| format!("cutoff={depth}"));
    let values: Vec<String> = values.collect();
    let constructs = CONSTRUCTS.iter().map(|c| c.0);
    let sets = constructs.zip(values.iter().map(String::as_str));
    let sets: Vec<(&str, &str)> = sets.filter(|(c, _)| *c != "copied").collect();
    patched_of("cutoff", program, &tuned, &sets).ok("patch --set");
    tuned
}

const ARGS: [[&str; 2]; 4] = [
    ["fib", "14"],
    ["queens", "6"],
    ["kept", "6"],
    ["chain", "40"],
];

#[test]
fn deeper_tasks_are_executed_at_once_and_programs_do_the_same() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let shim = shim(folder.path());
    let mut draw = 47;
    for flags in BUILDS {
        let program = build(folder.path(), flags);
        for _ in 0..2 {
            let cutoffs = drawn(&mut draw);
            let tuned = tuned(&program, &cutoffs);
            command::ok([Path::new("verify"), &program, &tuned]);
            for (threads, args) in (1..=4).flat_map(|n| ARGS.iter().map(move |a| (n, a))) {
                let told = format!("{flags}, {threads} threads, {args:?}, {cutoffs:?}");
                let before = run(&program, args, threads, &shim);
                let after = run(&tuned, args, threads, &shim);
                assert_eq!(before.0, after.0, "{told}");
                let all = created(&before.0).values().sum();
                assert_eq!(before.1, Some([all, 0]), "{told}");
                assert_eq!(after.1, Some(expected(&after.0, &cutoffs)), "{told}");
            }
            // In the threads of a region in a task, depths begin anew.
            let nested = ["nested", "9"];
            let before = run(&program, &nested, 3, &shim).0;
            assert_eq!(before, run(&tuned, &nested, 3, &shim).0, "{flags}");
            // Unwinders find the way through what was added.
            let traced = run(&tuned, &["trace", "1"], 1, &shim).0;
            assert_eq!(traced.lines().next(), Some("trace 1"), "{flags}");
        }
    }
}

#[test]
fn one_cutoff_counts_all_tasks_of_its_file() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let (program, shim) = (build(folder.path(), "-O2"), shim(folder.path()));
    let tuned = folder.path().join("tuned");
    patched_of("cutoff", &program, &tuned, &[("left", "cutoff=3")]).ok("patch --set");
    for threads in [1, 4] {
        let (text, counted) = run(&tuned, &["fib", "15"], threads, &shim);
        let cutoffs = [3, 99, 99, 99, 99, 99, 99];
        assert_eq!(counted, Some(expected(&text, &cutoffs)), "{threads}");
    }
    // cmp eax, 3; jb: a copy with another number is refused.
    let mut bytes = std::fs::read(&tuned).expect("the copy is there");
    let code = [0x83, 0xf8, 3, 0x72];
    let at = bytes.windows(code.len()).position(|w| w == code);
    bytes[at.expect("the copy compares depths") + 2] = 4;
    let other = folder.path().join("other");
    std::fs::write(&other, bytes).expect("there is room for a copy");
    let refused = command::run([Path::new("verify"), &program, &other]);
    assert_eq!(refused.status, 1, "{}", refused.text());
    let scanned = command::ok([Path::new("scan"), &tuned]).text();
    assert!(scanned.contains("cutoff=3"), "{scanned}");
}

#[test]
fn libraries_have_cutoffs_too() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let folder = folder.path();
    in_library("cutoff", "gcc", folder);
    let (library, shim) = (folder.join("libcutoff.so"), shim(folder));
    let program = folder.join("program");
    let before = run(&program, &["queens", "6"], 3, &shim);
    let tuned = folder.join("tuned.so");
    patched_of("cutoff", &library, &tuned, &[("queen", "cutoff=2")]).ok("patch --set");
    command::ok([Path::new("verify"), &library, &tuned]);
    std::fs::rename(&tuned, &library).expect("the copy takes its place");
    let after = run(&program, &["queens", "6"], 3, &shim);
    assert_eq!(before.0, after.0);
    let cutoffs = [99, 99, 2, 99, 99, 99, 99];
    assert_eq!(after.1, Some(expected(&after.0, &cutoffs)));
}

/// The recorded program has the same cutoffs, and all of its tasks are recorded.
#[test]
fn recorded_programs_have_cutoffs() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let (program, shim) = (build(folder.path(), "-O2"), shim(folder.path()));
    let [left, right] = ["left", "right"].map(|c| line_of("cutoff", c));
    for depth in [1, 4] {
        let out = folder.path().join(format!("out-{depth}"));
        let mut record = command::with_threads(3);
        record.env("LD_PRELOAD", &shim);
        record.env("OMP_WAIT_POLICY", "passive");
        record.args(["record", "--events=none", "-o"]).arg(&out);
        for line in [left, right] {
            record.arg(format!("--set=cutoff.c:{line}: cutoff={depth}"));
        }
        let output = process::run(record.arg("--").arg(&program).args(["fib", "12"]));
        let output = output.ok("record --set");
        let text = output.text();
        let cutoffs = [depth, depth, 99, 99, 99, 99, 99];
        let told = counted(&output.errors());
        assert_eq!(told, Some(expected(&text, &cutoffs)), "{depth}");
        let report = reported(&out);
        let regions = report["regions"].as_array().expect("a list");
        for (construct, line) in [left, right].into_iter().enumerate() {
            let own = regions.iter().filter(|r| {
                r["construct"] == "task" && r["source"]["line"].as_u64() == Some(line as u64)
            });
            let tasks: u64 = own.filter_map(|r| r["xus"].as_u64()).sum();
            let created = created(&text);
            let created = created.iter().filter(|((c, _), _)| *c == construct);
            assert_eq!(tasks, created.map(|(_, n)| n).sum::<u64>(), "{depth}");
        }
    }
    // A tuned file is recorded as any other.
    let tuned = tuned(&program, &[5; 7]);
    let out = folder.path().join("tuned-out");
    table::record(&tuned, &["queens", "5"], 2, &out, &["--events", "none"]).ok("record");
    let all = reported(&out);
    let tasks = all["regions"].as_array().expect("a list").iter();
    let tasks = tasks.filter(|r| r["construct"] == "task");
    let tasks: u64 = tasks.filter_map(|r| r["xus"].as_u64()).sum();
    let text = run(&program, &["queens", "5"], 2, &shim).0;
    assert_eq!(tasks, created(&text).values().sum::<u64>());
}

#[test]
fn what_cannot_be_cut_says_why() {
    for (compiler, folder) in programs("cutoff") {
        let program = folder.path().join("cutoff");
        let tuned = folder.path().join("tuned");
        let is_gcc = compiler.starts_with("gcc");
        let values = if is_gcc { "grainsize=4" } else { "cutoff=4" };
        let output = patched_of("cutoff", &program, &tuned, &[("left", values)]);
        let said = output.errors();
        let reason = match is_gcc {
            true => "no construct there has such a value",
            false => "only gcc's tasks",
        };
        assert!(said.contains(reason), "{said}");
        assert_eq!((output.status, said.lines().count()), (1, 1), "{said}");
        if is_gcc {
            let output = patched_of("cutoff", &program, &tuned, &[("copied", "cutoff=4")]);
            let said = output.errors();
            assert!(said.contains("a function copies"), "{said}");
        }
        let beyond = patched_of("cutoff", &program, &tuned, &[("left", "cutoff=65")]);
        assert_ne!(beyond.status, 0);
        assert!(beyond.errors().contains("from 1 to 64"));
        assert!(!tuned.exists());
    }
}
