//! Which regions get probes: `--select`, `--skip`, `--filter`, `--dry-run`, and the filter that a report suggests.

mod grammar;

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::scan::{Scan, Site};
use ompfuse_tests::{command, process, table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn ordinary(name: &str) -> Vec<Build> {
    let fixture = Fixture::open(name);
    let compilers = ["gcc", "clang"].iter();
    compilers.flat_map(|c| fixture.ordinary_builds(c)).collect()
}

fn addresses<'a>(sites: impl IntoIterator<Item = &'a Site>) -> BTreeSet<u64> {
    sites.into_iter().map(|s| s.address).collect()
}

/// Addresses of the sites with probes after patching with these options; nothing when that is refused.
fn patched(build: &Build, options: &[&str]) -> Option<BTreeSet<u64>> {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let out = folder.path().join("out");
    let mut command = command::with_threads(2);
    command
        .arg("patch")
        .arg(&build.path)
        .arg("-o")
        .arg(&out)
        .args(options);
    let output = process::run(&mut command);
    if output.status != 0 {
        assert!(!out.exists(), "{output:?}");
        return None;
    }
    let sites = Scan::of(&out).sites;
    Some(addresses(sites.iter().filter(|s| s.outcome == "patched")))
}

#[test]
fn files_lines_and_libraries() {
    for build in ordinary("knapsack") {
        let name = build.path.file_name().expect("a build has a name");
        let name = name.to_str().expect("of letters");
        let all = patched(&build, &[]).expect("everything can be patched");
        assert!(all.len() > 3, "{build}");
        for everything in [
            "knapsack.c".to_owned(),
            "knapsack.c:*".to_owned(),
            "k*.c".to_owned(),
            format!("lib:{name}"),
            "lib:*".to_owned(),
        ] {
            // What has no line isn't in the file.
            let found = patched(&build, &["--select", &everything]).expect("something is selected");
            assert!(found.is_subset(&all), "{build} {everything}");
            assert!(
                everything.starts_with('k') || found == all,
                "{build} {everything}"
            );
            assert!(
                found.len() * 2 > all.len(),
                "{build} {everything}: {found:?} of {all:?}"
            );
        }
        let tasks = patched(&build, &["--select", "task"]).expect("there are tasks");
        let both = format!("lib:{name}:task");
        assert_eq!(
            patched(&build, &["--select", &both]),
            Some(tasks.clone()),
            "{build}"
        );
        assert_eq!(
            patched(&build, &["--select", "task", "--skip", "lib:libother*"]),
            Some(tasks)
        );
        for nothing in ["lib:libother*", "other.c", "knapsack.c:1"] {
            assert_eq!(
                patched(&build, &["--select", nothing]),
                None,
                "{build} {nothing}"
            );
        }
    }
}

#[test]
fn filter_files() {
    let folder = tempfile::tempdir().expect("there is room for a filter");
    let file = folder.path().join("filter");
    let path = file.to_str().expect("temporary folders have plain names");
    for build in ordinary("knapsack") {
        std::fs::write(
            &file,
            "# tasks only\nselect task\n\nskip taskwait # none anyway\n",
        )
        .expect("a filter can be written");
        assert_eq!(
            patched(&build, &["--filter", path]),
            patched(&build, &["--select", "task", "--skip", "taskwait"]),
            "{build}"
        );
        std::fs::write(&file, "select task\nskip nowhere_*\n").expect("a filter can be written");
        let refused = command::run([
            "patch",
            "--filter",
            path,
            "--dry-run",
            &build.path.to_string_lossy(),
        ]);
        let place = format!("`nowhere_*` ({path}:2)");
        assert!(
            refused.status == 1 && refused.errors().contains(&place),
            "{refused:?}"
        );
        std::fs::write(&file, "select task\ndrop task\n").expect("a filter can be written");
        let refused = command::run(["patch", "--filter", path, &build.path.to_string_lossy()]);
        let place = format!("{path}:2: `drop task` is neither");
        assert!(
            refused.status == 1 && refused.errors().contains(&place),
            "{refused:?}"
        );
        assert_eq!(refused.errors().lines().count(), 1, "{refused:?}");
    }
}

/// Addresses and outcomes of the sites in an answer.
fn outcomes(answer: &Value) -> BTreeSet<(String, String)> {
    let sites = answer["sites"].as_array().expect("a list of sites");
    let text = |site: &Value, key: &str| site[key].as_str().expect("a text").to_owned();
    sites
        .iter()
        .map(|s| (text(s, "address"), text(s, "outcome")))
        .collect()
}

#[test]
fn dry_runs_tell_and_write_nothing() {
    for build in ordinary("knapsack") {
        let folder = tempfile::tempdir().expect("there is room for nothing");
        let dry = |command: &[&str], program: &[&str]| {
            let mut run = command::with_threads(2);
            run.current_dir(folder.path())
                .env("XDG_CACHE_HOME", folder.path())
                .args(command);
            let options = ["--dry-run", "--skip", "taskwait"];
            let output = process::run(run.args(options).args(program)).ok(&build.to_string());
            assert_eq!(
                std::fs::read_dir(folder.path()).expect("a folder").count(),
                0,
                "{build}"
            );
            output
        };
        let path = build.path.to_string_lossy();
        let answers = [
            dry(&["patch", "--format", "json"], &[&path, "-o", "out"]),
            dry(&["record", "--format", "json"], &["--", &path, "fail"]),
            dry(&["profile", "--format", "json"], &["--", &path, "fail"]),
        ];
        let elsewhere = tempfile::tempdir().expect("there is room for a patched program");
        let real = table::patch(&build, elsewhere.path(), &["--skip", "taskwait"]);
        let real = outcomes(&command::json([
            Path::new("scan"),
            Path::new("--format"),
            Path::new("json"),
            &real,
        ]));
        assert!(
            real.iter().any(|(_, outcome)| outcome == "patched"),
            "{build}"
        );
        for answer in answers {
            let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
            assert_eq!(outcomes(&answer), real, "{build}");
            assert_eq!(answer["dry_run"], true, "{build}");
        }
        let text = dry(&["patch"], &[&path]).text();
        assert!(
            text.contains("not selected") && text.contains("nothing is written"),
            "{text}"
        );
    }
}

#[test]
fn a_report_suggests_a_filter() {
    for build in ordinary("knapsack") {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let program = table::patch(&build, folder.path(), &[]);
        let out = folder.path().join("runs");
        table::record(&program, &[], 2, &out, &table::ONE_EVENT).ok(&build.to_string());
        let suggest = |share: &str| {
            let share = format!("--suggest-filter={share}");
            command::ok([Path::new("report"), &out, Path::new(&share)]).text()
        };
        let skipped = |text: &str| -> BTreeSet<u64> {
            let lines = text.lines().filter_map(|l| l.strip_prefix("skip 0x"));
            let digits = lines.filter_map(|l| l.split(' ').next());
            digits
                .map(|d| u64::from_str_radix(d, 16).expect("an address"))
                .collect()
        };
        // Nothing costs 10,000 times its own time, and no probe costs nothing.
        assert_eq!(skipped(&suggest("1000000")), BTreeSet::new(), "{build}");
        let text = suggest("0");
        assert!(
            text.contains(" ns as the first run measured it"),
            "{build}: {text}"
        );
        let costly = skipped(&text);
        let regions = command::report(&out);
        let executed = regions["regions"].as_array().expect("regions").iter();
        let wanted: BTreeSet<u64> = executed
            .filter(|r| r["construct"] != "implicit-barrier")
            .filter_map(|r| r["address"].as_str()?.strip_prefix("0x").map(str::to_owned))
            .map(|d| u64::from_str_radix(&d, 16).expect("an address"))
            .collect();
        assert_eq!(costly, wanted, "{build}: {text}");
        // The file that it writes is one that --filter reads.
        let file = folder.path().join("filter");
        let path = file.to_str().expect("temporary folders have plain names");
        command::ok([
            Path::new("report"),
            &out,
            Path::new("--suggest-filter=0"),
            Path::new("-o"),
            &file,
        ]);
        let left = patched(&build, &["--filter", path]).unwrap_or_default();
        assert!(left.is_disjoint(&costly), "{build}: {left:?} {costly:?}");
    }
}
