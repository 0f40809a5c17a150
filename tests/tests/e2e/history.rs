//! A program over its commits: what a baseline says of its commit, what is found in many of them, and what is refused.

mod resampled;

use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, has};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "static double cells[64];
int main(void)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 64; i++)
        for (int t = 0; t < 2000; t++)
            cells[i] = cells[i] * 0.5 + t;
    return 0;
}
";

/// Three runs of a program, in a repository with one commit.
fn recorded() -> Option<tempfile::TempDir> {
    if !(has("gcc") && has("git")) {
        return None;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("one.c"), SOURCE).expect("the folder is ours");
    let script = "gcc -O1 -g -fopenmp one.c -o one && git init -q -b main . && git add one.c && \
                  GIT_COMMITTER_DATE=2026-11-12T10:30:00+01:00 git -c user.name=test -c user.email=test@localhost commit -q -m One";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder.path());
    process::run(&mut shell).ok(script);
    let record = [
        "record", "-q", "--events", "none", "--repeat", "3", "-o", "runs", "--", "./one",
    ];
    run(&folder, &record).ok("record");
    Some(folder)
}

fn run<S: AsRef<OsStr>>(folder: &tempfile::TempDir, args: &[S]) -> Output {
    let mut ompfuse = command::with_threads(2);
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
    ] {
        ompfuse.env_remove(name);
    }
    process::run(ompfuse.args(args).current_dir(folder.path()))
}

pub(crate) fn unpacked(file: &Path) -> Value {
    let bytes = std::fs::read(file).expect("it was written");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("packed text");
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn packed(file: &Path, value: &Value) {
    let file = std::fs::File::create(file).expect("the folder is ours");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed
        .write_all(value.to_string().as_bytes())
        .expect("room");
    packed.finish().expect("room");
}

#[test]
fn a_baseline_says_of_which_commit_it_is() {
    let Some(folder) = recorded() else { return };
    let origin = |args: &[&str]| {
        let args = [&["baseline", "runs", "-o", "b.json.gz"], args].concat();
        run(&folder, &args).ok("baseline");
        unpacked(&folder.path().join("b.json.gz"))["origin"].clone()
    };
    let found = origin(&[]);
    let commit = &found["commit"];
    assert_eq!(commit["hash"].as_str().map(str::len), Some(40), "{found}");
    assert_eq!(commit["branch"], "main", "{found}");
    assert_eq!(commit["date"], "2026-11-12T10:30:00+01:00", "{found}");
    let machine = &found["machine"];
    assert!(machine["processors"].as_u64() > Some(0), "{found}");
    assert!(
        machine["kernel"].as_str().is_some_and(|k| !k.is_empty()),
        "{found}"
    );
    let given = origin(&[
        "--commit",
        "abc",
        "--branch",
        "x",
        "--date",
        "2026-01-02T03:04:05Z",
    ]);
    let expected = json!({"hash": "abc", "branch": "x", "date": "2026-01-02T03:04:05Z"});
    assert_eq!(given["commit"], expected);
    // Of another commit than the one here git says nothing.
    assert_eq!(
        origin(&["--commit", "abc"])["commit"],
        json!({"hash": "abc"})
    );

    let wrong = run(
        &folder,
        &["baseline", "runs", "-o", "b.json.gz", "--date", "yesterday"],
    );
    assert_eq!(wrong.status, 2, "{wrong:?}");
    assert!(
        wrong
            .errors()
            .contains("write it as 2026-11-12T10:30:00+01:00"),
        "{wrong:?}"
    );

    std::fs::remove_dir_all(folder.path().join(".git")).expect("the folder is ours");
    assert_eq!(origin(&[])["commit"], Value::Null);
}

/// Noise from -1 to 1 that is the same in each run of the test.
fn noise(n: usize) -> f64 {
    let mixed = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 32)) as u32) as f64 / f64::from(u32::MAX) * 2.0 - 1.0
}

/// A folder with a baseline for each commit, made of a recorded one. `wall`: the program's time by commit.
fn commits(
    folder: &tempfile::TempDir,
    name: &str,
    number: usize,
    wall: &dyn Fn(usize) -> f64,
) -> PathBuf {
    let at = folder.path().join(name);
    std::fs::create_dir(&at).expect("the folder is ours");
    let one = folder.path().join("b.json.gz");
    run(folder, &["baseline", "runs", "-o", "b.json.gz"]).ok("baseline");
    let mut side = unpacked(&one);
    // How fast this machine is while others test, too, is another matter.
    let origin = side["origin"].as_object_mut().expect("an object");
    let pace = origin.remove("pace").expect("it was measured");
    assert!(
        pace["least_s"].as_f64() > Some(0.0) && pace["most_s"].as_f64() >= pace["least_s"].as_f64()
    );
    for n in 0..number {
        let commit = json!({
            "hash": format!("{n:02}aaaaaaaaaa"),
            "branch": "main",
            "date": format!("2026-10-{:02}T12:00:00Z", n + 1),
        });
        side["origin"]["commit"] = commit;
        side["total"]["wall"] = json!([3, wall(n).ln(), 0.01]);
        packed(&at.join(format!("{}.json.gz", 100 - n)), &side);
    }
    at
}

#[test]
fn a_step_is_found_and_noise_is_not() {
    let Some(folder) = recorded() else { return };
    commits(&folder, "step", 30, &|n| {
        (1.0 + 0.01 * noise(n)) * if n < 20 { 1.0 } else { 1.08 }
    });
    commits(&folder, "calm", 30, &|n| 1.0 + 0.01 * noise(n));
    commits(&folder, "few", 9, &|_| 1.0);

    let args = [
        "history",
        "step",
        "--html",
        "page.html",
        "--badge",
        "badge.svg",
        "--fail-within",
        "10",
    ];
    let shown = run(&folder, &args);
    assert_eq!(shown.status, 3, "{shown:?}");
    let text = shown.text();
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("wall time: +") && first.contains("since 20aaaaa (21 Oct 2026)"),
        "{text}"
    );
    assert!(
        text.lines().count() <= 40 && text.lines().all(|l| l.chars().count() <= 110),
        "{text}"
    );
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(
        page.contains("20aaaaa") && !page.contains("http-equiv"),
        "a page"
    );
    let badge = std::fs::read_to_string(folder.path().join("badge.svg")).expect("a badge");
    assert!(badge.contains("since 20aaaaa"), "{badge}");
    // Five commits ago there was nothing.
    assert_eq!(
        run(&folder, &["history", "step", "--fail-within", "5"]).status,
        0
    );

    let calm = run(&folder, &["history", "calm", "--fail-within", "30"]).ok("calm");
    let first = calm.text();
    assert!(
        first.starts_with("wall time: no change in 30 commits; a step of "),
        "{first}"
    );
    let few = run(&folder, &["history", "few"]).ok("few").text();
    assert!(
        few.starts_with("wall time: not known: 9 commits with a value, 10 are needed"),
        "{few}"
    );

    let args = ["history", "step", "--format", "json", "--metric", "time"];
    let found: Value =
        serde_json::from_slice(&run(&folder, &args).ok("json").stdout).expect("JSON");
    assert_eq!(found["commits"], 30);
    let curve = &found["series"][0]["curves"][0];
    assert_eq!(curve["quantity"], "wall");
    assert_eq!(
        curve["changes"].as_array().map(Vec::len),
        Some(1),
        "{curve}"
    );
    let change = &curve["changes"][0];
    assert_eq!(change["at"], 20);
    let size = change["change"].as_f64().expect("a size");
    assert!((0.06..0.1).contains(&size), "{change}");
}

#[test]
fn machines_and_inputs_are_kept_apart() {
    let Some(folder) = recorded() else { return };
    let at = commits(
        &folder,
        "mixed",
        24,
        &|n| if n % 2 == 0 { 1.0 } else { 2.0 } + 0.001 * noise(n),
    );
    for n in (1..24).step_by(2) {
        let file = at.join(format!("{}.json.gz", 100 - n));
        let mut side = unpacked(&file);
        side["origin"]["machine"]["processor"] = "Another One".into();
        packed(&file, &side);
    }
    let text = run(&folder, &["history", "mixed"]).ok("history").text();
    let calm = text
        .lines()
        .filter(|l| l.starts_with("wall time: no change in 12 commits"))
        .count();
    assert_eq!(calm, 2, "{text}");
    assert!(
        text.contains("2 machines: times of different machines can't be compared"),
        "{text}"
    );
}

/// Changes the baseline of a commit.
fn edit(at: &Path, n: usize, change: &dyn Fn(&mut Value)) {
    let file = at.join(format!("{}.json.gz", 100 - n));
    let mut side = unpacked(&file);
    change(&mut side);
    packed(&file, &side);
}

#[test]
fn branches_are_not_mixed() {
    let Some(folder) = recorded() else { return };
    let at = commits(&folder, "two", 24, &|n| 1.0 + (n % 2) as f64);
    for n in (1..24).step_by(2) {
        edit(&at, n, &|side| {
            side["origin"]["commit"]["branch"] = "next".into();
        });
    }
    let own = run(&folder, &["history", "two"]).ok("history");
    assert!(own.text().contains("no change in 12 commits"), "{own:?}");
    let said =
        "only baselines of the current branch, main; --branch takes another one of main, next";
    assert!(own.errors().contains(said), "{own:?}");
    let next = run(&folder, &["history", "two", "--branch", "next"]).ok("history");
    assert!(next.text().contains("no change in 12 commits"), "{next:?}");
    assert_eq!(next.errors(), "");
    std::fs::remove_dir_all(folder.path().join(".git")).expect("the folder is ours");
    let mixed = run(&folder, &["history", "two"]).ok("history");
    let said = "baselines of the branches main, next are mixed; --branch takes one";
    assert!(mixed.errors().contains(said), "{mixed:?}");
}

#[test]
fn what_is_damaged_or_foreign_is_named_and_left_out() {
    let Some(folder) = recorded() else { return };
    let at = commits(&folder, "some", 12, &|n| 1.0 + 0.01 * noise(n));
    let whole = std::fs::read(at.join("90.json.gz")).expect("it was written");
    std::fs::write(at.join("damaged.json.gz"), &whole[..whole.len() / 2]).expect("room");
    packed(&at.join("foreign.json.gz"), &json!({"what": "else"}));
    let shown = run(&folder, &["history", "some"]);
    assert_eq!(shown.status, 1, "{shown:?}");
    assert!(
        shown.text().contains("no change in 12 commits"),
        "{shown:?}"
    );
    let errors = shown.errors();
    for name in ["some/damaged.json.gz", "some/foreign.json.gz"] {
        assert!(
            errors
                .lines()
                .any(|l| l.contains("left out: ") && l.contains(name)),
            "{errors}"
        );
    }
    assert_eq!(errors.lines().count(), 2, "{errors}");
}

#[test]
fn the_badge_tells_what_the_list_tells() {
    let Some(folder) = recorded() else { return };
    let at = commits(&folder, "inside", 30, &|n| 1.0 + 0.01 * noise(n));
    for n in 0..30 {
        edit(&at, n, &|side| {
            let regions = side["regions"].as_array_mut().expect("a list");
            let parallel = regions
                .iter_mut()
                .find(|r| r["key"]["construct"] == "parallel");
            let wall = (0.5 + 0.005 * noise(n + 100)) * if n < 20 { 1.0 } else { 1.27 };
            let parallel = parallel.expect("a parallel region");
            parallel["values"]["wall"] = json!([3, wall.ln(), 0.01]);
            parallel["share"] = json!(0.5);
        });
    }
    let shown = run(&folder, &["history", "inside", "--badge", "badge.svg"]).ok("history");
    assert!(shown.text().contains("parallel one.c:"), "{shown:?}");
    let badge = std::fs::read_to_string(folder.path().join("badge.svg")).expect("a badge");
    assert!(
        badge.contains("since 20aaaaa") && badge.contains("parallel one.c:"),
        "{badge}"
    );
}

#[test]
fn uncommitted_changes_are_marked() {
    let Some(folder) = recorded() else { return };
    std::fs::write(folder.path().join("one.c"), format!("{SOURCE}\n")).expect("room");
    let made = run(&folder, &["baseline", "runs", "-o", "h/b.json.gz"]);
    assert_ne!(made.status, 0, "{made:?}");
    std::fs::create_dir(folder.path().join("h")).expect("the folder is ours");
    let made = run(&folder, &["baseline", "runs", "-o", "h/b.json.gz"]).ok("baseline");
    assert!(
        made.errors().contains("changes that are in no commit"),
        "{made:?}"
    );
    let file = unpacked(&folder.path().join("h/b.json.gz"));
    assert_eq!(file["origin"]["commit"]["is_changed"], true);
    let found = run(&folder, &["history", "h", "--format", "json"]).ok("history");
    let found: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    assert_eq!(
        found["series"][0]["commits"][0]["is_changed"], true,
        "{found}"
    );
}

#[test]
fn what_is_no_history_is_refused_in_one_line() {
    let Some(folder) = recorded() else { return };
    commits(&folder, "good", 3, &|_| 1.0);
    std::fs::create_dir(folder.path().join("empty")).expect("the folder is ours");
    std::fs::create_dir(folder.path().join("bad")).expect("the folder is ours");
    std::fs::write(folder.path().join("bad/x.json.gz"), "no gzip").expect("the folder is ours");
    for (args, expected) in [
        (
            &["missing"][..],
            "cannot read missing: there is no such folder",
        ),
        (&["empty"], "has no baseline, that is no *.json.gz"),
        (
            &["bad"],
            "cannot read the baseline bad/x.json.gz: it is not packed by gzip",
        ),
        (
            &["one.c"],
            "cannot read one.c as a history: it is no folder",
        ),
        (&["nowhere:perf"], "cannot read nowhere:perf: git: "),
        (&["good", "--region", "nothing"], "no region is `nothing`"),
        (
            &["good", "--metric", "nonsense"],
            "the baselines have no 'nonsense'",
        ),
        (
            &["good", "--metric", "load-balanc"],
            "(did you mean load-balance?)",
        ),
        (
            &["good", "--branch", "x"],
            "cannot show branch x: the baselines are of main",
        ),
        (
            &["good", "--html", "nowhere/x.html"],
            "cannot write nowhere/x.html",
        ),
    ] {
        let output = run(&folder, &[&["history"], args].concat());
        assert_eq!(output.status, 1, "{output:?}");
        let errors = output.errors();
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}
