//! Processes that run already: where they are stuck, what they spend their time in, and that nothing of them changes.

use super::{is_allowed, number, program, regions, source};
use ompfuse_tests::{command, compile, process, repository, schema};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that is killed in the end.
pub(super) struct Going(pub(super) Child);

impl Going {
    /// Kills what it has started; their numbers, as the kernel lists them.
    pub(super) fn kill_children(&self) -> String {
        let own = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let children = children.expect("the kernel tells");
        let mut kill = Command::new("kill");
        let killed = kill.arg("-KILL").args(children.split_whitespace());
        assert!(killed.status().expect("kill").success(), "{children}");
        children
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn start(program: &Path, how: &str) -> Going {
    let mut command = Command::new(program);
    process::clean(&mut command, 2);
    command.arg(how).stdout(Stdio::piped());
    let started = command.env("OMP_WAIT_POLICY", "passive").spawn();
    let going = Going(started.expect("the program starts"));
    std::thread::sleep(Duration::from_millis(700));
    going
}

/// Looks at it for a while: text, and JSON.
pub(super) fn looked_at(going: &Going, out: &Path, length: &str) -> (String, Value) {
    let pid = going.0.id().to_string();
    let mut profile = command::with_threads(2);
    profile.args(["profile", "-p", &pid, "--for", length, "-o"]);
    process::run(profile.arg(out)).ok("profile");
    let run = out.join("run-0001");
    let text = command::ok([Path::new("report"), &run]).text();
    let json = [Path::new("report"), &run, Path::new("--format=json")];
    let json = command::ok(json).text();
    schema::check_lines("lines", std::slice::from_ref(&json));
    let words: Vec<&str> = text.split_whitespace().collect();
    let json = serde_json::from_str(&json).expect("JSON was asked for");
    (words.join(" "), json)
}

/// The line with this mark.
pub(super) fn line(mark: &str) -> u64 {
    let text = std::fs::read_to_string(source("running.c")).expect("a source");
    let mark = format!("here: {mark} ");
    let at = text.lines().position(|l| l.contains(&mark));
    at.expect("the mark is there") as u64 + 1
}

#[test]
fn what_is_stuck_is_named() {
    if !is_allowed() {
        return;
    }
    // What is to be told of some thread: the call, and the line.
    let cases = [
        ("locks", Some("futex"), "locks"),
        ("barrier", Some("pause"), "pause"),
        ("barrier", Some("futex"), "barrier"),
        ("task", Some("futex"), "task"),
        ("pipe", Some("read"), "pipe"),
        ("spin", None, "spin"),
    ];
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    for (how, call, mark) in cases {
        let going = start(&program, how);
        let out = folder.path().join(format!("{how}-{mark}"));
        let (text, json) = looked_at(&going, &out, "600ms");
        let threads = json["threads"].as_array().expect("threads");
        let is_it = |t: &Value| {
            let last = &t["last"];
            last["line"] == line(mark) && last["call"].as_str() == call
        };
        assert!(threads.iter().any(is_it), "{how}, {mark}: {json:#}");
        match call {
            Some(_) => assert!(text.starts_with("No thread computes: "), "{text}"),
            None => assert!(text.contains("of its processor time is work"), "{text}"),
        }
        let place = format!("running.c:{}", line(mark));
        assert!(text.contains(&place), "{how}, {mark}: {text}");
    }
}

#[test]
fn shares_are_those_of_the_programs_own_clock() {
    if !is_allowed() {
        return;
    }
    for compiler in ["gcc -O1 -g -fopenmp", "clang-19 -O1 -g -fopenmp"] {
        let Some((folder, program)) = program("running", compiler) else {
            continue;
        };
        let mut going = start(&program, "shares");
        let (_, json) = looked_at(&going, &folder.path().join("out"), "2s");
        going.0.kill().expect("it is killed");
        let printed = BufReader::new(going.0.stdout.take().expect("a pipe"));
        let last = printed.lines().map_while(Result::ok).last();
        let last = last.expect("it has printed");
        let times: Vec<f64> = last
            .split(' ')
            .map(|t| t.parse().expect("a time"))
            .collect();
        let truth = times[0] / (times[0] + times[1]);
        let work = |r: &Value| number(r, "work");
        let all = regions(&json)
            .iter()
            .filter(|r| r["construct"] == "parallel");
        let mut works: Vec<u64> = all.map(work).collect();
        works.sort_unstable();
        let [small, large] = works[..] else {
            panic!("{compiler}: {json:#}");
        };
        let n = (small + large) as f64;
        let found = large as f64 / n;
        let error = (truth * (1.0 - truth) / n).sqrt();
        assert!(n >= 100.0, "{compiler}: {n} samples");
        assert!(
            (found - truth).abs() < 4.0 * error + 0.02,
            "{compiler}: {found}, {truth}"
        );
    }
}

/// With `-O2` the last call of a region's code is a jump: workers' stacks don't hold the region, which is told then.
#[test]
fn work_of_a_construct_is_never_outside_of_constructs() {
    if !is_allowed() {
        return;
    }
    for compiler in ["gcc -O2 -g -fopenmp", "clang-19 -O2 -g -fopenmp"] {
        let Some((folder, program)) = program("running", compiler) else {
            continue;
        };
        let going = start(&program, "jumps");
        let (text, json) = looked_at(&going, &folder.path().join("out"), "1s");
        let is_outside = |r: &&Value| r["construct"].is_null() && r["is_unknown"] != true;
        let outside = regions(&json).iter().filter(is_outside);
        let outside: u64 = outside.map(|r| number(r, "work")).sum();
        let all: u64 = regions(&json).iter().map(|r| number(r, "work")).sum();
        assert!(all >= 50 && outside * 20 <= all, "{compiler}: {json:#}");
        assert!(!text.contains("is work outside"), "{compiler}: {text}");
    }
}

/// What `/proc` says of a process that can change without its own doing.
fn state(pid: u32) -> (Vec<String>, BTreeSet<String>, BTreeSet<String>, Vec<u8>) {
    let folder = format!("/proc/{pid}");
    let maps = std::fs::read_to_string(format!("{folder}/maps")).expect("its mappings");
    let names = |of: &str| {
        let listed = std::fs::read_dir(format!("{folder}/{of}")).expect("a folder");
        let names = listed
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned());
        names.collect()
    };
    let environment = std::fs::read(format!("{folder}/environ")).expect("its environment");
    let maps = maps.lines().map(str::to_owned).collect();
    (maps, names("fd"), names("task"), environment)
}

#[test]
fn nothing_of_the_process_changes() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    for (how, threads) in [("spin", 1), ("many", 500)] {
        let going = start(&program, how);
        let before = state(going.0.id());
        assert_eq!(before.2.len(), threads);
        let (_, json) = looked_at(&going, &folder.path().join(how), "300ms");
        assert_eq!(before, state(going.0.id()), "{how}");
        let looked = json["threads"].as_array().expect("threads");
        assert_eq!(looked.len(), threads, "{how}");
    }
}

#[test]
fn what_can_not_be_looked_at_is_one_line() {
    let folder = tempfile::tempdir().expect("there is room");
    let out = folder.path().join("out");
    let mut profile = command::with_threads(2);
    profile
        .args(["profile", "-p", "2147483646", "-o"])
        .arg(&out);
    let answer = process::run(&mut profile);
    assert_eq!(answer.status, 1);
    assert_eq!(answer.errors(), "ompfuse: there is no process 2147483646\n");
    assert!(!out.exists());
}

/// It can't be patched: its regions are known by stacks.
#[test]
fn a_static_program_is_sampled() {
    let folder = tempfile::tempdir().expect("there is room");
    let program = folder.path().join("primes");
    let file = repository().join("examples/tutorial/primes.c");
    if !is_allowed() || !compile::files(&[file], &program, "gcc -O1 -g -fopenmp -static") {
        return;
    }
    let mut profile = command::with_threads(2);
    profile.args(["profile", "--sampling", "1000", "-o"]);
    profile
        .arg(folder.path().join("out"))
        .arg("--")
        .arg(&program);
    let answer = process::run(&mut profile);
    answer.clone().ok("profile");
    let errors = answer.errors();
    let words: Vec<&str> = errors.split_whitespace().collect();
    let told = words.join(" ");
    assert!(
        told.contains("a static executable") && told.contains("sampled only"),
        "{told}"
    );
    assert!(told.contains("is work in parallel primes.c:"), "{told}");
    // What only records can tell is refused.
    let mut events = command::with_threads(2);
    events.args(["record", "--events", "task-clock", "-o"]);
    events
        .arg(folder.path().join("events"))
        .arg("--")
        .arg(&program);
    assert_eq!(process::run(&mut events).status, 1);
}

/// Linkers make no sorted table of a static program's unwind information: it is read one by one.
#[test]
fn stacks_of_static_programs_lead_through_functions_to_the_construct() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("natural", "gcc -O1 -g -fopenmp -static -Wl,-u,sin -lm")
    else {
        return;
    };
    let text = std::fs::read_to_string(source("natural.c")).expect("a source");
    for (name, mark) in [
        ("orphaned", "#pragma omp parallel /* 5 of 7 */"),
        ("recursive", "#pragma omp task /* 32 of 53 */"),
    ] {
        let out = folder.path().join(name);
        let mut record = command::with_threads(2);
        record.args(["record", "--sampled", "-o"]).arg(&out);
        record.arg("--").arg(&program).args([name, "2000"]);
        process::run(&mut record).ok("record");
        let json = super::lines(&out.join("run-0001"));
        let all = || regions(&json).iter();
        let of = |r: &Value| number(r, "work") as f64;
        let work: f64 = all().map(of).sum();
        let inside: f64 = all().filter(|r| r["construct"].is_string()).map(of).sum();
        assert!(work >= 200.0 && inside >= 0.98 * work, "{name}: {json:#}");
        let line = text.lines().position(|l| l.contains(mark));
        let line = line.expect("the mark is there") as u64 + 1;
        let found: f64 = all().filter(|r| r["line"] == line).map(of).sum::<f64>() / work;
        let mut words = mark.split(' ').filter_map(|w| w.parse::<f64>().ok());
        let share = words.next().expect("a number") / words.next().expect("a number");
        let error = (share * (1.0 - share) / work).sqrt();
        assert!(
            (found - share).abs() < 4.0 * error + 0.02,
            "{name}: {found}, {share}"
        );
    }
}

/// What needs records is refused by all commands alike, and nothing is written.
#[test]
fn without_records_nothing_is_made_up() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    let going = start(&program, "spin");
    let out = folder.path().join("out");
    looked_at(&going, &out, "300ms");
    let file = folder.path().join("file");
    let [out, made] = [&out, &file].map(|path| path.to_str().expect("a plain name"));
    let commands: [&[&str]; 4] = [
        &["diff", "--fail-on", "time>5%", out, out],
        &["export", "--to", "csv", "-o", made, out],
        &["combine", "-o", made, out],
        &["baseline", "-o", made, out],
    ];
    for command in commands {
        let answer = command::run(command.iter().map(std::ffi::OsStr::new));
        let said = answer.errors();
        assert_eq!(
            (answer.status, said.lines().count()),
            (1, 1),
            "{command:?}: {said}"
        );
        assert!(said.contains("samples only"), "{command:?}: {said}");
        assert!(!file.exists(), "{command:?}");
    }
}

/// Each process has its regions in the same report, and `doctor` says before that it can be looked at.
#[test]
fn several_processes_are_one_report() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    let (spins, waits) = (start(&program, "spin"), start(&program, "locks"));
    let pids = [&spins, &waits].map(|going| going.0.id());
    let out = folder.path().join("out");
    let list = pids.map(|pid| pid.to_string()).join(",");
    let mut record = command::with_threads(2);
    record.args(["record", "-p", &list, "--for", "600ms", "-o"]);
    process::run(record.arg(&out)).ok("record");
    let run = out.join("run-0001");
    let json = super::lines(&run);
    let mut told = json["process"]["pids"].as_array().expect("a list").clone();
    told.sort_by_key(Value::as_u64);
    let mut expected = pids.map(Value::from).to_vec();
    expected.sort_by_key(Value::as_u64);
    assert_eq!(told, expected);
    let threads = json["threads"].as_array().expect("threads");
    for mark in ["spin", "locks"] {
        let is_it = |t: &Value| t["last"]["line"] == line(mark);
        assert!(threads.iter().any(is_it), "{mark}: {json:#}");
    }
    let one = pids[0].to_string();
    let watched = command::ok(["watch", "-p", &one, "--every", "0.4"]).text();
    let words: Vec<&str> = watched.split_whitespace().collect();
    assert!(
        words.join(" ").contains("of its processor time is work"),
        "{watched}"
    );
    let doctor = command::json(["doctor", "-p", &one, "--format", "json"]);
    assert_eq!(doctor["can_record"], true, "{doctor:#}");
    let gone = process::run(command::with_threads(1).args(["doctor", "-p", "2147483646"]));
    assert_eq!(gone.status, 1);
    assert!(gone.text().contains("there is no process 2147483646"));
}

/// A program is looked at by samples only if its user wants that, and nothing of it is patched.
#[test]
fn a_program_may_be_sampled_by_choice() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = super::program("slow", "gcc -O1 -g -fopenmp -lm") else {
        return;
    };
    let out = folder.path().join("out");
    let mut profile = command::with_threads(2);
    profile.args(["profile", "--sampled", "-o"]).arg(&out);
    let said = process::run(profile.arg("--").arg(&program).args(["trips", "6"]));
    let said = said.ok("profile").errors();
    assert!(said.contains("is work in parallel slow.c:"), "{said}");
    let run = out.join("run-0001");
    let files = std::fs::read_dir(&run).expect("a folder").flatten();
    let is_record = |e: &std::fs::DirEntry| e.file_name().to_string_lossy().ends_with(".rec");
    assert!(
        !files.into_iter().any(|e| is_record(&e)),
        "nothing is recorded"
    );
    for other in ["--events=task-clock", "--threads=1,2", "--sampling=off"] {
        let mut refused = command::with_threads(2);
        refused.args(["record", "--sampled", other, "-o"]);
        refused
            .arg(folder.path().join("none"))
            .arg("--")
            .arg(&program);
        assert_ne!(process::run(&mut refused).status, 0, "{other}");
        assert!(!folder.path().join("none").exists(), "{other}");
    }
}
