//! The report as a page: what a browser makes of it. The browser's part is `tests/page/check.mjs`.

use crate::history::{packed, unpacked};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, compile, has, repository, table, target};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most that the page of an ordinary program takes, in bytes.
const LARGEST: u64 = 3 << 20;

/// Something that wants to be markup, a script's end, or an address.
const HOSTILE: &str =
    "</script><script>window.injected=1</script>\"'><img src=x onerror='window.injected=2'>&lt;b>";

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut ompfuse = command::with_threads(2);
    process::run(ompfuse.args(args).current_dir(folder)).ok(&format!("{args:?}"))
}

/// The folder with the modules that drive a browser, as the lock file has them; `None`: a tool is missing.
pub(crate) fn driver() -> Option<PathBuf> {
    if !(has("chromium") && has("node") && has("npm")) {
        return None;
    }
    let from = repository().join("tests/page");
    let folder = target().0.join("page");
    let lock = fs::read(from.join("package-lock.json")).expect("the lock file is there");
    let is_current = fs::read(folder.join("package-lock.json")).is_ok_and(|known| known == lock)
        && folder.join("node_modules/axe-core").is_dir();
    fs::create_dir_all(&folder).expect("the target folder can be written");
    if !is_current {
        fs::copy(from.join("package.json"), folder.join("package.json")).expect("it can be copied");
        let lock_file = folder.join("package-lock.json");
        fs::write(&lock_file, lock).expect("it can be written");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        let output = process::run(npm.current_dir(&folder));
        if output.status != 0 {
            // Not to be taken for whole the next time.
            let _ = fs::remove_file(lock_file);
            panic!("npm ci: {output:?}");
        }
    }
    fs::copy(from.join("check.mjs"), folder.join("check.mjs")).expect("it can be copied");
    Some(folder)
}

/// The report's JSON with hostile names.
fn hostile(report: &mut Value) {
    report["program"] = format!("/tmp/{HOSTILE}").into();
    report["args"] = vec![HOSTILE; 2].into();
    report["host"] = HOSTILE.into();
    for region in report["regions"].as_array_mut().expect("regions") {
        for field in ["function", "function_demangled", "detail", "name"] {
            region[field] = HOSTILE.into();
        }
        region["source"]["file"] = format!("/tmp/{HOSTILE}.c").into();
    }
    for call in report["contexts"].as_array_mut().expect("contexts") {
        call["function_demangled"] = HOSTILE.into();
        call["file"] = HOSTILE.into();
    }
    for event in report["events"].as_array_mut().expect("events") {
        event["reason"] = HOSTILE.into();
        event["run"] = Value::Null;
    }
}

/// Pages of three commits: on a steady machine, and on one whose speed changed, so that there are no curves of times.
fn histories(folder: &Path) {
    for (name, most_s) in [("history", 1e-3), ("unsteady", 2e-3)] {
        fs::create_dir(folder.join(name)).expect("the folder is ours");
        for n in 1..=3 {
            let file = format!("{name}/{n}.json.gz");
            let (commit, date) = (n.to_string().repeat(40), format!("2026-11-0{n}T00:00:00Z"));
            let of = ["--commit", &commit, "--date", &date, "-o", &file];
            run(folder, &[&["baseline", "out"], &of[..]].concat());
            let mut baseline = unpacked(&folder.join(&file));
            baseline["origin"]["pace"] = json!({ "least_s": 1e-3, "most_s": most_s });
            packed(&folder.join(&file), &baseline);
        }
        run(
            folder,
            &["history", name, "--html", &format!("{name}.html")],
        );
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

#[test]
fn a_browser_shows_the_report() {
    let Some(driver) = driver() else { return };
    let folder = tempfile::tempdir().expect("there is room for pages");
    let folder = folder.path();
    let program = folder.join("page");
    let source = repository().join("tests/sources/page.c");
    if !compile::files(&[source], &program, "gcc -O1 -g -fopenmp") {
        return;
    }
    let profile = "profile -q -o out --html run.html -- ./page some-argument";
    run(folder, &words(profile));
    let length = fs::metadata(folder.join("run.html")).expect("a page").len();
    assert!(length < LARGEST, "{length} bytes");
    let json = run(folder, &["report", "out", "--format", "json"]).stdout;
    fs::write(folder.join("model.json"), &json).expect("it can be written");
    let mut report: Value = serde_json::from_slice(&json).expect("JSON");
    let host = report["host"].as_str().expect("a host").to_owned();

    let redact = "report out --redact=names,sources --html redacted.html";
    run(folder, &words(redact));
    let page = fs::read_to_string(folder.join("redacted.html")).expect("a page");
    let here = repository().to_string_lossy();
    for secret in [
        "some-argument",
        &here,
        "#pragma omp parallel",
        &format!(">{host}<"),
    ] {
        assert!(!page.contains(secret), "{secret} is on the redacted page");
    }

    hostile(&mut report);
    fs::write(folder.join("hostile.json"), report.to_string()).expect("it can be written");
    run(
        folder,
        &["report", "hostile.json", "--html", "hostile.html"],
    );

    let threads = [
        "profile",
        "-q",
        "--events",
        "none",
        "--threads",
        "1,2",
        "-o",
        "series",
    ];
    run(
        folder,
        &[&threads[..], &["--html", "series.html", "--", "./page"]].concat(),
    );
    let first = table::runs(&folder.join("out")).remove(0);
    let first = first.to_string_lossy();
    run(
        folder,
        &["diff", &first, "series/threads-2", "--html", "diff.html"],
    );
    let second = folder.join("series/threads-2");
    let second = second.to_string_lossy();
    histories(folder);
    let redact = ["--redact", "--html", "redacted-diff.html"];
    run(folder, &[&["diff", &first, &second], &redact[..]].concat());
    let page = fs::read_to_string(folder.join("redacted-diff.html")).expect("a page");
    for secret in [&*here, &*folder.to_string_lossy(), "some-argument"] {
        assert!(!page.contains(secret), "{secret} is on the redacted page");
    }

    let mut node = Command::new("node");
    let chromium = process::run(Command::new("sh").args(["-c", "command -v chromium"]));
    node.env("CHROMIUM", chromium.text().trim());
    node.arg("check.mjs").arg(folder).current_dir(driver);
    process::run(&mut node).ok("check.mjs");
}

#[test]
fn what_cannot_be_written_is_told_first() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut profile = command::with_threads(2);
    profile.args(["profile", "--html", "missing/page.html", "--", "true"]);
    let output = process::run(profile.current_dir(folder.path()));
    assert_eq!(output.status, 1, "{output:?}");
    let expected = "ompfuse: cannot write missing/page.html: there is no folder missing";
    assert_eq!(output.errors().trim(), expected);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}
