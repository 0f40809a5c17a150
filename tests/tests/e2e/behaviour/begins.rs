//! What threads have to expect while they compute for the first time: `fixtures/behaviour/begins.c`; and clocks of others.

use super::Pair;
use ompfuse_tests::process;
use ompfuse_tests::repository;
use std::process::Command;

/// A thread that is to be cancelled ends where it would without us, and with all that it has computed; so too if it opens a library.
/// One that a signal handler takes out of its first construct is recorded from the next one on.
#[test]
fn threads_that_are_not_left_alone() {
    for pair in Pair::all("begins", &[]) {
        for how in ["cancelled", "jumps", "opens"] {
            pair.same_and_counted(&["10", how], 1);
        }
    }
}

/// Times are the kernel's, whatever clock the program is given.
#[test]
fn a_clock_that_stands_still() {
    let Some(pair) = Pair::new("odd", "gcc", &[]) else {
        return;
    };
    let clock = pair.folder.path().join("stillclock.so");
    let mut compile = Command::new("gcc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&clock);
    compile.arg(repository().join("tests/sources/stillclock.c"));
    process::run(&mut compile).ok("compiling stillclock.c");
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let mut program = Command::new(&pair.patched);
    process::clean(&mut program, 2).env("LD_PRELOAD", clock);
    program.env("OMPFUSE_DIR", folder.path());
    process::run(program.env("OMPFUSE_MIN_DURATION", "1000")).ok("the program");
    let clocks = |kind: &str, field: &str| {
        let files = std::fs::read_dir(folder.path()).expect("a folder can be listed");
        let mut paths = files.map(|f| f.expect("a folder can be listed").path());
        let is_it = |name: &str| {
            let process = name.strip_prefix("process-");
            let number = process.and_then(|rest| rest.strip_suffix(kind));
            number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        let path = paths.find(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(is_it));
        let text = std::fs::read(path.expect("a process is told of")).expect("it can be read");
        let read: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
        read[field]["ns"].as_u64().expect("it has a time")
    };
    let (begin, end) = (clocks(".json", "begin"), clocks(".end.json", "end"));
    assert!(begin < end && begin != 7_000_000_000, "{begin} {end}");
}
