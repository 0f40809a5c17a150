//! `cache`: what is listed, what is removed, and what stays since it is in use.

use crate::control::steady::Steady;
use ompfuse_tests::command;
use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::process::{self, Output};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn run(home: &Path, args: &[&str]) -> Output {
    let mut cache = command::with_threads(2);
    cache.arg("cache").args(args).env("XDG_CACHE_HOME", home);
    process::run(&mut cache)
}

fn json(home: &Path, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.extend(["--format", "json"]);
    serde_json::from_slice(&run(home, &all).ok("cache").stdout).expect("JSON")
}

/// Bytes of all files, as du has them.
fn bytes(folder: &Path) -> u64 {
    let script = format!("find '{}' -type f -printf '%s\\n'", folder.display());
    let output = process::run(Command::new("sh").args(["-c", &script])).ok("find");
    output
        .text()
        .lines()
        .filter_map(|n| n.parse::<u64>().ok())
        .sum()
}

#[test]
fn copies_are_listed_and_removed_unless_they_are_used() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let home = tempfile::tempdir().expect("there is room for a cache");
    let home = home.path();
    let folder = home.join("ompfuse");
    let path = run(home, &["path"]).ok("path").text();
    assert_eq!(path.trim(), folder.display().to_string());
    assert_eq!(json(home, &["list"])["copies"], Value::Array(vec![]));

    let mut record = command::with_threads(2);
    record
        .env("XDG_CACHE_HOME", home)
        .arg("record")
        .arg("-o")
        .arg(steady.out());
    record.arg("--").arg(&steady.program);
    let mut dialogue = Dialogue::start(&mut record);
    assert_eq!(dialogue.hear(), "ready");
    let listing = json(home, &["list"]);
    let copies = listing["copies"].as_array().expect("a list").clone();
    let of_program = copies
        .iter()
        .find(|c| c["file"] == "steady")
        .expect("the program's copy");
    let original = steady.program.display().to_string();
    assert_eq!(of_program["original"], original, "{listing}");
    assert_eq!(of_program["kind"], "patched", "{listing}");
    assert!(copies.iter().all(|c| c["in_use"] == true), "{listing}");
    assert!(copies.iter().any(|c| c["kind"] == "own"), "{listing}");
    assert_eq!(listing["bytes"].as_u64(), Some(bytes(&folder)), "{listing}");
    let cleared = json(home, &["clear"]);
    assert_eq!(cleared["removed"], Value::Array(vec![]), "{cleared}");
    assert_eq!(
        cleared["kept_in_use"].as_array().map(Vec::len),
        Some(copies.len())
    );
    steady.end(dialogue, 2, &[]);

    let listing = json(home, &["list"]);
    let copies = listing["copies"].as_array().expect("a list");
    assert!(copies.iter().all(|c| c["in_use"] == false), "{listing}");
    let text = run(home, &["clear", "--older-than", "1d"])
        .ok("clear")
        .text();
    assert_eq!(text, "removed 0 copies, 0 B\n");
    let cleared = json(home, &["clear"]);
    assert_eq!(cleared["bytes"], listing["bytes"], "{cleared}");
    let left = std::fs::read_dir(&folder).expect("the cache is there");
    assert_eq!(left.count(), 0, "{cleared}");
}

#[test]
fn without_a_folder_of_ones_own_there_is_none() {
    let mut cache = command::with_threads(2);
    cache
        .args(["cache", "path"])
        .env("XDG_CACHE_HOME", "relative")
        .env_remove("HOME");
    let output = process::run(&mut cache);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.errors().contains("set XDG_CACHE_HOME"), "{output:?}");
    let wrong =
        process::run(command::with_threads(2).args(["cache", "clear", "--older-than", "30"]));
    assert_eq!(wrong.status, 2, "{wrong:?}");
}
