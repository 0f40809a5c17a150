//! What `report --format json` and others print, against the schema that `report --schema` prints, by a validator that is not ours.

use crate::{account, command, process, skip, target};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The interpreter with the packages of `tests/foreign`.
static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| target().0.join("foreign/python/bin/python"));

/// Compares reports with the schema. Each is the output of `report --format json`.
///
/// # Panics
/// If one doesn't fit, or has a field that is not described; with `CI=true` without the validator.
#[track_caller]
pub fn check(what: &str, reports: &[String]) {
    check_of("report", what, reports);
}

/// As [`check`], of the command that prints such JSON, and its schema with `--schema`.
#[track_caller]
pub fn check_of(command: &str, what: &str, reports: &[String]) {
    check_with(&[command, "--schema"], what, reports);
}

/// As [`check`], of what `report --lines` prints.
#[track_caller]
pub fn check_lines(what: &str, reports: &[String]) {
    check_with(&["report", "--schema=lines"], what, reports);
}

/// As [`check`], of what `diff` prints where a side has samples only.
#[track_caller]
pub fn check_shares(what: &str, diffs: &[String]) {
    check_with(&["diff", "--schema=shares"], what, diffs);
}

/// `args`: of the command that prints the schema.
#[track_caller]
fn check_with(args: &[&str], what: &str, reports: &[String]) {
    assert!(!reports.is_empty(), "{what}: no report");
    if !PYTHON.is_file() {
        return skip("no validator of JSON is installed (tests/setup.sh)");
    }
    let folder = tempfile::tempdir().expect("there is room for reports");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/validate.py");
    let schema = folder.path().join("schema.json");
    let printed = command::ok(args).stdout;
    std::fs::write(&schema, printed).expect("there is room for a schema");
    let mut validation = Command::new(&*PYTHON);
    validation.arg(script).arg(&schema);
    for (number, report) in reports.iter().enumerate() {
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(&file, report).expect("there is room for a report");
        validation.arg(file);
    }
    process::run(&mut validation).ok(what);
}

/// The report of a run or profile, compared with the schema.
#[track_caller]
pub fn checked(input: &Path) -> serde_json::Value {
    let printed = report(input);
    let value = serde_json::from_str(&printed).expect("JSON was asked for");
    check(&input.display().to_string(), &[printed]);
    value
}

/// The JSON of a run's or profile's report, and that of the report that is read back from it, which has to be the same.
#[track_caller]
pub fn report(input: &Path) -> String {
    let printed = self::printed(input);
    is_read_back(&printed);
    printed
}

/// The JSON of a run's or profile's report, whose account has to add up.
#[track_caller]
pub fn printed(input: &Path) -> String {
    let args = [Path::new("report"), input, Path::new("--format=json")];
    let printed = command::ok(args).text();
    let report = serde_json::from_str(&printed).expect("JSON was asked for");
    account::check(&input.display().to_string(), &report);
    printed
}

/// A report that is read back has to be the same.
#[track_caller]
pub fn is_read_back(report: &str) {
    let folder = tempfile::tempdir().expect("there is room for a report");
    let file = folder.path().join("report.json");
    std::fs::write(&file, report).expect("there is room for a report");
    assert_eq!(printed(&file), report, "read back");
}
