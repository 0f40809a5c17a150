//! Very many units: what a report and a combination need for them, how they end, and how recording ends before it fills the disk.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, compile, process, repository, table};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program of `tests/sources/volume.c`.
fn program(folder: &Path) -> PathBuf {
    let path = folder.join("volume");
    let source = repository().join("tests/sources/volume.c");
    assert!(
        compile::files(&[source], &path, "gcc -O2 -g -fopenmp"),
        "gcc is always there"
    );
    path
}

/// Records `kind` with so many of it by two threads; the run, and what was said.
fn record(folder: &Path, kind: &str, number: &str, options: &[&str]) -> (PathBuf, process::Output) {
    let out = folder.join(format!("{kind}-{number}"));
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none"]).args(options);
    record.arg("-o").args([&out, Path::new("--")]);
    record.arg(program(folder)).args([kind, number]);
    let said = process::run(&mut record).ok("record");
    (out.join("run-0001"), said)
}

/// The report of a run or profile as JSON, made in so much memory (of data, in bytes).
fn report(of: &Path, limit: u64) -> Value {
    let mut report = Command::new("prlimit");
    report.arg(format!("--data={limit}")).arg(command::path());
    process::clean(&mut report, 2).env("RAYON_NUM_THREADS", "2");
    report.args(["report", "--format", "json"]).arg(of);
    let said = process::run(&mut report).ok("report");
    serde_json::from_slice(&said.stdout).expect("JSON")
}

/// Executions of a region's kind in a report.
fn executions(report: &Value, construct: &str, key: &str) -> u64 {
    let regions = report["regions"].as_array().expect("a list of regions");
    let of = regions.iter().filter(|r| r["construct"] == construct);
    of.map(|r| r[key].as_u64().expect("a number")).sum()
}

/// Four times as many units need no more memory: a table of the larger ones would be ten times as large.
#[test]
#[ignore = "tests/run.sh whole"]
fn a_report_needs_no_memory_for_units() {
    const LIMIT: u64 = 256 << 20; // causes are looked for in a million intervals at most
    let folder = tempfile::tempdir().expect("there is room for runs");
    for ranges in [1_000_000, 4_000_000] {
        let (run, _) = record(folder.path(), "loop", &ranges.to_string(), &[]);
        let report = report(&run, LIMIT);
        assert_eq!(executions(&report, "loop", "xus"), ranges);
        assert_eq!(executions(&report, "loop", "executions"), 1);
    }
    // fib(n) makes 2 (fib(n + 1) - 1) tasks.
    for (levels, tasks) in [("22", 57_312), ("25", 242_784)] {
        let (run, _) = record(folder.path(), "tasks", levels, &[]);
        assert_eq!(executions(&report(&run, LIMIT), "task", "xus"), tasks);
    }
    for regions in [20_000, 80_000] {
        let (run, _) = record(folder.path(), "regions", &regions.to_string(), &[]);
        let report = report(&run, LIMIT);
        assert_eq!(executions(&report, "parallel", "executions"), regions);
        assert_eq!(executions(&report, "loop", "xus"), 2 * regions);
    }
}

/// What is summed up while records are read is what a table of all of them adds up to, as the profile has it.
#[test]
fn a_report_of_a_run_is_that_of_its_profile() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    for name in [
        "knapsack", "loops", "tasking", "teams", "taskloop", "ordered",
    ] {
        let fixture = Fixture::open(name);
        for compiler in ["gcc", "clang"] {
            let builds = fixture.ordinary_builds(compiler);
            let Some(build) = builds.last() else { continue };
            let at = folder.path().join(format!("{name}-{compiler}"));
            std::fs::create_dir(&at).expect("a new folder");
            let patched = table::patch(build, &at, &[]);
            for options in [&["--events", "task-clock"][..], &["--events", "none"]] {
                let out = at.join(options[1]);
                table::record(&patched, &[], 3, &out, options).ok("record");
                let run = table::runs(&out).pop().expect("a run was recorded");
                let profile = at.join(format!("{}.parquet", options[1]));
                let mut combine = command::with_threads(2);
                combine.args(["combine", "--memory", "1T", "-o"]);
                process::run(combine.args([&profile, &run])).ok("combine");
                let (streamed, tables) = (report(&run, 1 << 40), report(&profile, 1 << 40));
                let differs = differs(&streamed, &tables, String::new());
                assert!(
                    differs.is_none(),
                    "{name}, {compiler}, {options:?}: {differs:?}"
                );
            }
        }
    }
}

/// The first place where two values differ, and what is there.
fn differs(a: &Value, b: &Value, at: String) -> Option<String> {
    match (a, b) {
        _ if a == b => None,
        (Value::Object(of), Value::Object(other)) if of.keys().eq(other.keys()) => {
            let mut both = of.iter().zip(other.values());
            both.find_map(|((key, a), b)| differs(a, b, format!("{at}/{key}")))
        }
        (Value::Array(of), Value::Array(other)) if of.len() == other.len() => {
            let mut both = of.iter().zip(other).enumerate();
            both.find_map(|(n, (a, b))| differs(a, b, format!("{at}/{n}")))
        }
        _ => Some(format!("{at}: {a} and {b}")),
    }
}

/// A process's state and its processor time, as the kernel tells them: of one that has ended too, until it is waited for.
fn spent(child: &Child) -> (String, u64) {
    let path = format!("/proc/{}/stat", child.id());
    let stat = std::fs::read_to_string(path).expect("a child that is not waited for");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    (fields[0].to_owned(), ticks(11) + ticks(12))
}

fn has_ended(child: &Child) -> bool {
    spent(child).0 == "Z"
}

/// Whether it reads the run.
fn reads(child: &Child) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id()));
    maps.is_ok_and(|maps| maps.contains(".rec"))
}

/// Asks until it is so.
fn wait_until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < process::LIMIT, "it never comes");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// SIGINT ends what takes long long before its end, by the processor time that it has used, and leaves nothing.
#[test]
fn an_interrupt_ends_it_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let (run, _) = record(folder.path(), "loop", "1000000", &[]);
    let profile = folder.path().join("profile.parquet");
    let (report, combine) = ([Path::new("report"), &run], [Path::new("combine"), &run]);
    let output = [Path::new("-o"), &profile];
    let all: [(&[&Path], &[&Path]); 2] = [(&report, &[]), (&combine, &output)];
    let before = std::fs::read_dir(folder.path()).expect("a folder").count();
    for (args, more) in all {
        for memory in ["1T", "40M"] {
            let start = || {
                // Who started the tests in the background may have told all below to ignore it.
                let mut command = Command::new("env");
                command.arg("--default-signal=INT").arg(command::path());
                process::clean(&mut command, 2);
                command.args(args).args(more).args(["--memory", memory]);
                (command.stdout(Stdio::piped()).stderr(Stdio::null()))
                    .spawn()
                    .expect("the command starts")
            };
            let mut child = start();
            wait_until(|| has_ended(&child));
            let (_, whole) = spent(&child);
            assert!(child.wait().expect("it ends").success(), "{args:?}");
            let _ = std::fs::remove_file(&profile);
            let interrupted = |_| {
                let mut child = start();
                wait_until(|| reads(&child) || has_ended(&child));
                let id = child.id().to_string();
                process::run(Command::new("kill").args(["-INT", &id])).ok("kill");
                wait_until(|| has_ended(&child));
                let (_, part) = spent(&child);
                let status = child.wait().expect("it ends");
                let _ = std::fs::remove_file(&profile).map(|()| assert!(status.success()));
                let mut said = String::new();
                let stdout = child.stdout.as_mut().expect("a pipe");
                stdout.read_to_string(&mut said).expect("text");
                assert!(status.success() || said.is_empty(), "{args:?}: {said}");
                (!status.success() && 2 * part < whole).then_some(())
            };
            // On a busy machine the signal may come late.
            let ended = (0..10).find_map(interrupted);
            assert!(ended.is_some(), "{args:?}, {memory}: {whole} ticks");
        }
    }
    let after = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(after, before, "nothing half-written");
}

/// Recording ends at a size, the program goes on, and the report says so first.
#[test]
fn recording_ends_before_the_program_at_a_size() {
    const FIRST: u64 = 100_000;
    let folder = tempfile::tempdir().expect("there is room for runs");
    let number = FIRST.to_string();
    let (run, said) = record(folder.path(), "pause", &number, &["--max-size", "1M"]);
    assert_eq!(
        said.text(),
        format!("{}\n", 31 * FIRST),
        "the program's own"
    );
    let errors = said.errors();
    assert!(
        errors.contains("recording ends and the program goes on"),
        "{errors}"
    );
    let header = std::fs::read(run.join("run.json")).expect("a header");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    let ended_at = header["ended_at_bytes"].as_u64().expect("the mark");
    assert!(ended_at >= 1 << 20, "{ended_at}");
    // A stage of each thread is written after that, at most: some thousand ranges of 3 million.
    let json = report(&run, 1 << 40);
    let ranges = executions(&json, "loop", "xus");
    assert!((FIRST..FIRST + 10_000).contains(&ranges), "{ranges}");
    assert_eq!(executions(&json, "loop", "executions"), 1);
    assert_eq!(executions(&json, "parallel", "executions"), 1);
    assert_eq!(json["runs"][0]["lost_records"], 0);
    for account in json["accounting"].as_array().expect("a list of threads") {
        assert_eq!(account["balanced"], true, "{account}");
    }
    let text = command::ok([Path::new("report"), &run]).text();
    let first = text.find("recording ended").expect("it is said");
    let table = text.find("share").expect("a table of regions");
    assert!(first < table, "said before all numbers: {text}");
    let bytes = json["runs"][0]["recording_ended_bytes"].as_u64();
    assert_eq!(bytes, Some(ended_at));
    // Without that option nothing is said, since the disk has room.
    let (run, said) = record(folder.path(), "loop", &number, &[]);
    assert!(!said.errors().contains("--max-size"), "{said:?}");
    let header = std::fs::read_to_string(run.join("run.json")).expect("a header");
    assert!(!header.contains("ended_at_bytes"));
}
