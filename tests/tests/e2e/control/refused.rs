//! What can't be changed, and what is wrong then.

use super::signals::send_usr1;
use super::steady::Steady;
use ompfuse_tests::{command, process, skip, table};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn what_cannot_be_changed_is_said() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let folder = steady.folder.path().to_str().expect("text").to_owned();
    let refused = |args: &[&str]| {
        let output = command::run(std::iter::once("ctl").chain(args.iter().copied()));
        assert_eq!(output.status, 1, "{args:?}: {output:?}");
        output.errors()
    };
    assert!(refused(&[&folder]).contains("nothing is being recorded in"));
    let own = std::process::id().to_string();
    assert!(refused(&[&own]).contains("is not being recorded"));
    let dialogue = steady.record(2, &table::ONE_EVENT, &[]);
    let out = steady.out();
    let out = out.to_str().expect("text");
    let nothing = refused(&[out, "--disable", "nowhere*"]);
    assert!(
        nothing.contains("nothing that is loaded matches `nowhere*`"),
        "{nothing}"
    );
    assert!(refused(&[out, "--events", "cycle"]).contains("there is no event `cycle`"));
    let several = refused(&[out, "--events", "task-clock", "--events", "page-faults"]);
    assert!(several.contains("need --rotate"), "{several}");
    only_what_can_be_counted(&steady, &refused);
    // More sets than there is room for: none of them is there afterwards.
    let many = steady.folder.path().join("many");
    let names = [
        "task-clock",
        "page-faults",
        "minor-faults",
        "major-faults",
        "context-switches",
    ];
    let pairs = names
        .iter()
        .flat_map(|a| names.map(|b| format!("events {a},{b}\n")));
    let lines: String = pairs
        .filter(|l| !names.iter().any(|n| l.matches(n).count() > 1))
        .collect();
    std::fs::write(&many, lines + "rotate 3\n").expect("a file can be written");
    let full = refused(&[out, "--reload", many.to_str().expect("text")]);
    assert!(full.contains("these would be 20 more"), "{full}");
    assert!(refused(&[out, "--rotate", "3"]).contains("one event set only"));
    assert!(refused(&[out, "--reload", "/nonexistent"]).contains("cannot read /nonexistent"));
    // It is read again when a signal comes: what waits for a writer, or never ends, is no such file.
    let pipe = steady.folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo can be run").success());
    let pipe = pipe.to_str().expect("text");
    for file in [pipe, "/dev/zero"] {
        let wanted = format!("cannot read {file}: not a regular file");
        assert!(refused(&[out, "--reload", file]).contains(&wanted));
    }
    let long = steady.folder.path().join("long");
    std::fs::write(&long, "x".repeat(1 << 20)).expect("a file can be written");
    let line = refused(&[out, "--reload", long.to_str().expect("text")]);
    assert!(line.contains("is not one of select") && line.len() < 1000);
    // By its number, and through a file.
    let pid = steady.ctl(&[])["pid"].to_string();
    let file = steady.folder.path().join("f");
    std::fs::write(&file, "skip loop\nevents page-faults on task\n")
        .expect("a file can be written");
    let file = file.to_str().expect("text");
    let output = command::ok(["ctl", &pid, "--reload", file]);
    assert!(output.text().contains("1 of "), "{output:?}");
    drop(dialogue.end());
    assert!(refused(&[out]).contains("nothing is being recorded in"));
}

/// Who is stopped in the middle of a change doesn't hold up others for ever.
#[test]
fn a_change_that_does_not_end_is_named() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let mut dialogue = steady.record(2, &table::ONE_EVENT, &[]);
    let state = steady.ctl(&[]);
    let run = Path::new(state["folder"].as_str().expect("a folder"));
    let control = endings(run, "ctl").pop().expect("a control file");
    let file = std::fs::File::open(&control).expect("it can be read");
    file.lock().expect("nobody is at it");
    let out = steady.out();
    let change = ["--disable", "task"].map(AsRef::as_ref);
    let refused = command::run([Path::new("ctl"), &out, change[0], change[1]]);
    assert_eq!(refused.status, 1, "{refused:?}");
    let told = refused.errors();
    let me = format!("process {} has been changing it for 5s", std::process::id());
    assert!(told.contains(&me) && told.lines().count() == 1, "{told}");
    drop(file);
    assert!(steady.ctl(&["--disable", "task"])["regions_off"].as_u64() > Some(0));
    dialogue.ask("10");
    let (_, xus) = steady.end(dialogue, 2, &["10"]);
    assert!(xus.iter().all(|x| x.construct != "task"));
}

/// A signal that comes meanwhile is seen to later. Where there is no later, that is said.
#[test]
fn a_reload_that_comes_to_nothing_is_told() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let wishes = steady.folder.path().join("wishes");
    std::fs::write(&wishes, "disable task\n").expect("a file can be written");
    let control = ["--control", wishes.to_str().expect("text")];
    let mut dialogue = steady.record(2, &[&table::ONE_EVENT[..], &control].concat(), &[]);
    let state = steady.ctl(&[]);
    let run = Path::new(state["folder"].as_str().expect("a folder"));
    let file = endings(run, "ctl").pop().expect("a control file");
    let file = std::fs::File::open(file).expect("it can be read");
    file.lock().expect("nobody is at it");
    send_usr1(&state["pid"]);
    let asked = || {
        let mut reloads = [0; 4];
        file.read_exact_at(&mut reloads, 48)
            .expect("it can be read");
        u32::from_le_bytes(reloads) > 0
    };
    wait_until(asked);
    // The command has looked since, and more than once; at first it wakes for other things, seven times.
    let looks = || switches(dialogue.pid());
    let before = looks();
    wait_until(|| looks() > before + 12);
    dialogue.ask("10");
    let (output, xus) = steady.end(dialogue, 2, &["10"]);
    let told = output.errors();
    let me = format!(
        "wishes was not read again before process {} ended: process {} was changing its settings",
        state["pid"],
        std::process::id()
    );
    assert_eq!(told.matches(&me).count(), 1, "{told}");
    assert!(!told.contains("is in effect now"), "{told}");
    assert!(xus.iter().any(|x| x.construct == "task"));
}

/// How often a process has waited for something.
fn switches(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = |l: &str| {
        l.strip_prefix("voluntary_ctxt_switches:")?
            .trim()
            .parse()
            .ok()
    };
    status.lines().find_map(line).expect("a number")
}

#[track_caller]
fn wait_until(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < process::LIMIT, "it never comes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Files of a folder with this ending.
fn endings(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder).expect("a folder");
    let paths = listing.map(|e| e.expect("a file").path());
    paths
        .filter(|p| p.extension().is_some_and(|e| e == ending))
        .collect()
}

/// Other processes can be changed and watched beside one whose files are damaged; alone it is what is wrong that is said.
#[test]
fn damaged_files_are_named() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let mut dialogue = steady.record(2, &table::ONE_EVENT, &[]);
    dialogue.ask("10");
    let state = steady.ctl(&[]);
    let run = Path::new(state["folder"].as_str().expect("a folder"));
    let header = endings(run, "json").into_iter().find(|path| {
        let name = path.file_name().and_then(|n| n.to_str());
        name.is_some_and(|n| n.starts_with("process-") && !n.ends_with(".end.json"))
    });
    let header = header.expect("the process has said what it is");
    let text = std::fs::read(&header).expect("it can be read");
    let out = steady.out();
    let tell = |args: &[&str]| {
        let args = args.iter().map(Path::new);
        command::run(
            [Path::new(args.clone().next().expect("a word")), &out]
                .into_iter()
                .chain(args.skip(1)),
        )
    };
    for command in [&["ctl"][..], &["ctl", "--disable", "task"], &["watch"]] {
        std::fs::write(&header, "{").expect("it can be written");
        let damaged = tell(command);
        assert_eq!(damaged.status, 1, "{command:?}: {damaged:?}");
        assert!(damaged.errors().contains("is damaged"), "{damaged:?}");
    }
    // As it is before the process has written it.
    std::fs::write(&header, "").expect("it can be written");
    tell(&["ctl"]).ok("a process that is just beginning");
    let picture = command::json([Path::new("watch"), &out, Path::new("--format=json")]);
    assert!(picture["processes"][0]["seconds"].is_null(), "{picture}");
    // Another one's, of a version that is not ours.
    let mut foreign = vec![0; 4096];
    foreign[..8].copy_from_slice(b"OMPFCTL1");
    foreign[8] = 99;
    std::fs::write(run.join("other-1-0.ctl"), &foreign).expect("it can be written");
    tell(&["ctl"]).ok("beside it is one that can be changed");
    std::fs::write(&header, text).expect("it can be written");
    steady.end(dialogue, 2, &["10"]);
    let alone = steady.folder.path().join("alone");
    std::fs::create_dir(&alone).expect("there is room");
    std::fs::write(alone.join("other-1-0.ctl"), &foreign).expect("it can be written");
    let other = command::run([Path::new("ctl"), &alone]);
    assert_eq!(other.status, 1, "{other:?}");
    assert!(other.errors().contains("has version 99"), "{other:?}");
}

/// What this machine can't count is said and left out; of a set of nothing else nothing changes.
fn only_what_can_be_counted(steady: &Steady, refused: &dyn Fn(&[&str]) -> String) {
    let events = command::json(["events", "--format", "json"]);
    let mut events = events["events"].as_array().expect("a list").iter();
    let missing = events.find(|e| e["available"] == false && e["kind"] == "hardware");
    let Some(missing) = missing.map(|e| e["name"].as_str().expect("a name")) else {
        return skip("every event can be counted here");
    };
    let out = steady.out();
    let out = out.to_str().expect("text");
    let before = steady.ctl(&[]);
    let line = refused(&[out, "--events", missing, "--select", "loop"]);
    assert!(
        line.contains(&format!("can be counted: not counted: {missing} ("))
            && line.lines().count() == 1,
        "{line}"
    );
    assert_eq!(steady.ctl(&[]), before);
    let both = format!("{missing},task-clock");
    let output = command::run(["ctl", out, "--events", &both]);
    assert_eq!(output.status, 0, "{output:?}");
    assert!(
        output
            .errors()
            .contains(&format!("not counted: {missing} (")),
        "{output:?}"
    );
    assert_eq!(steady.ctl(&[]), before, "the rest is the set that there is");
}
