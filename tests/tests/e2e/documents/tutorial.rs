//! The tutorial's commands work, and print what the page shows, times aside.

use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, has, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set to `write`: the page is written again, with what the commands print now.
const REWRITE: &str = "OMPFUSE_TUTORIAL";

fn page() -> PathBuf {
    repository().join("docs/tutorial.md")
}

#[test]
fn the_tutorial_shows_what_happens() {
    if !has("gcc") {
        return;
    }
    let text = std::fs::read_to_string(page()).expect("docs/tutorial.md is there");
    let folder = tempfile::tempdir().expect("there is room for a few runs");
    let source = repository().join("examples/tutorial/primes.c");
    std::fs::copy(source, folder.path().join("primes.c")).expect("the example is there");
    let mut again = String::new();
    let mut wrong = vec![];
    let mut commands = 0;
    let mut rest = &*text;
    while let Some((before, block)) = rest.split_once("```console\n$ ") {
        let (block, after) = block.split_once("```").expect("a block ends");
        let (typed, shown) = block.split_once('\n').expect("a command is a line");
        let output = run(typed, folder.path());
        commands += 1;
        let printed = output
            .text()
            .replace(&*folder.path().to_string_lossy(), "/home/me");
        again += &format!("{before}```console\n$ {typed}\n{printed}```");
        if let Err(line) = agrees(typed, shown, &printed) {
            wrong.push(format!("$ {typed}\nno line like `{line}` in\n{printed}"));
        }
        rest = after;
    }
    again += rest;
    assert!(commands > 5, "only {commands} commands were found");
    if std::env::var_os(REWRITE).is_some_and(|v| v == "write") {
        std::fs::write(page(), again).expect("docs/tutorial.md can be written");
        return;
    }
    assert!(
        wrong.is_empty(),
        "docs/tutorial.md shows something else; {REWRITE}=write makes it again:\n{}",
        wrong.join("\n")
    );
}

/// Runs a command as a user types it, in lines of 80 columns. Both of its streams are in the output.
fn run(typed: &str, folder: &Path) -> Output {
    let mut shell = Command::new("sh");
    process::clean(&mut shell, 2);
    let ompfuse = command::path()
        .parent()
        .expect("the command is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    shell
        .args(["-c", &format!("{{ {typed} ; }} 2>&1")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", ompfuse.display()))
        .env("COLUMNS", "80")
        .env("XDG_CACHE_HOME", folder.join("cache"));
    process::run(&mut shell).ok(typed)
}

/// Whether both outputs have the same titles in the same order; else the title that is missing. What changes from machine to machine
/// is left out: numbers, sentences, and columns for which there is no room. What changed between two builds is a matter of times.
fn agrees(typed: &str, shown: &str, printed: &str) -> Result<(), String> {
    if shown.trim().is_empty() != printed.trim().is_empty() {
        return Err("nothing, or something".to_owned());
    }
    if typed.contains(" diff ") {
        return Ok(());
    }
    let printed = titles(printed);
    let mut rest = &printed[..];
    for title in titles(shown) {
        let Some(at) = rest.iter().position(|t| *t == title) else {
            return Err(title);
        };
        rest = &rest[at + 1..];
    }
    Ok(())
}

/// The lines that begin a part of the output or name a table's columns. Of these the first words, since the last columns may have no
/// room.
fn titles(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_title = |(i, line): (usize, &&str)| {
        let begins = i > 0 && lines[i - 1].is_empty();
        let columns = line.starts_with("#  ") || line.starts_with("thread ");
        let is_stable = !line.contains(|c: char| c.is_ascii_digit()) && !line.contains(':');
        (columns || (begins && is_stable)).then(|| {
            let words: Vec<&str> = line.split_whitespace().take(3).collect();
            words.join(" ")
        })
    };
    lines.iter().enumerate().filter_map(is_title).collect()
}
