//! Recording a program, and the table of its XUs that comes out of it.

use crate::command;
use crate::fixture::Build;
use crate::process::{self, Output};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An XU of the exported table.
#[derive(Debug, Clone, PartialEq)]
pub struct Xu {
    /// Its identity.
    pub label: String,
    /// What it is: `task`, `range` or `section`.
    pub construct: String,
    /// All columns by name.
    pub columns: BTreeMap<String, String>,
}

impl Xu {
    /// A column as a number.
    ///
    /// # Panics
    /// If the table has no such column, or no number in it.
    #[track_caller]
    pub fn number(&self, column: &str) -> u64 {
        let text = self
            .columns
            .get(column)
            .unwrap_or_else(|| panic!("no column {column} in {:?}", self.columns));
        text.parse()
            .unwrap_or_else(|e| panic!("{column} is {text:?}: {e}"))
    }
}

/// The run folders in the folder of a recording.
pub fn runs(folder: &Path) -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.join("run.json").is_file())
        .collect();
    runs.sort();
    runs
}

/// Patches a build into a folder.
#[track_caller]
pub fn patch(build: &Build, folder: &Path, flags: &[&str]) -> PathBuf {
    let out = folder.join(build.path.file_name().expect("a build has a name"));
    let output = process::run(
        command::with_threads(2)
            .arg("patch")
            .arg(&build.path)
            .arg("-o")
            .arg(&out)
            .args(flags),
    );
    output.ok(&format!("patching {build}"));
    out
}

/// One event, so that a recording is one run; it can be counted everywhere.
pub const ONE_EVENT: [&str; 2] = ["--events", "task-clock"];

/// Runs a program under `ompfuse record` into a folder.
#[track_caller]
pub fn record(
    program: &Path,
    args: &[&str],
    threads: usize,
    folder: &Path,
    flags: &[&str],
) -> Output {
    let before = if folder.is_dir() {
        runs(folder)
    } else {
        vec![]
    };
    let mut command = command::with_threads(threads);
    command
        .arg("record")
        .args(flags)
        .arg("-o")
        .arg(folder)
        .arg("--")
        .arg(program)
        .args(args);
    let mut output = process::run(&mut command);
    for _ in 1..process::ATTEMPTS {
        if !output.is_libomp_bug() {
            break;
        }
        eprintln!("again, since libomp failed: {command:?}");
        for run in runs(folder).iter().filter(|run| !before.contains(run)) {
            std::fs::remove_dir_all(run).expect("a run is a folder of ours");
        }
        output = process::run(&mut command);
    }
    output
}

/// The table of a run or profile.
#[track_caller]
pub fn export(source: &Path) -> Vec<Xu> {
    export_with(source, &[])
}

/// The same, with more options.
#[track_caller]
pub fn export_with(source: &Path, flags: &[&str]) -> Vec<Xu> {
    let out = tempfile::Builder::new()
        .suffix(".csv")
        .tempfile()
        .expect("there is room for a table");
    process::run(
        command::with_threads(2)
            .arg("export")
            .arg(source)
            .args(["--to", "csv", "-o"])
            .arg(out.path())
            .args(flags),
    )
    .ok("export");
    let text = std::fs::read_to_string(out.path()).expect("an exported table is text");
    parse(&text)
}

fn parse(text: &str) -> Vec<Xu> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize::<BTreeMap<String, String>>();
    rows.map(|row| {
        let columns = row.unwrap_or_else(|e| panic!("malformed table: {e}"));
        let column = |name: &str| {
            columns
                .get(name)
                .unwrap_or_else(|| panic!("no column {name} in {columns:?}"))
                .clone()
        };
        Xu {
            label: column("label"),
            construct: column("kind"),
            columns,
        }
    })
    .collect()
}

/// Records one run of a patched program and exports its table.
#[track_caller]
pub fn xus_of(program: &Path, args: &[&str], threads: usize) -> (Output, Vec<Xu>) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let output = record(program, args, threads, folder.path(), &ONE_EVENT);
    let runs = runs(folder.path());
    assert_eq!(runs.len(), 1, "runs of {}: {output:?}", program.display());
    (output, export(&runs[0]))
}

/// The labels, sorted.
pub fn labels(xus: &[Xu]) -> Vec<String> {
    let mut labels: Vec<String> = xus.iter().map(|x| x.label.clone()).collect();
    labels.sort();
    labels
}

/// A label with source lines for addresses.
pub fn with_lines(label: &str, lines: &BTreeMap<u64, u32>) -> String {
    let component = |text: &str| {
        let line = text
            .parse()
            .ok()
            .and_then(|address: u64| lines.get(&address));
        line.map_or_else(|| text.to_owned(), u32::to_string)
    };
    label
        .split('.')
        .map(component)
        .collect::<Vec<_>>()
        .join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_and_addresses_replaced() {
        let xus = parse("label,type,kind,iterations\n0.1.4660.1.7,0x1234,task,0\n");
        assert_eq!(xus.len(), 1);
        assert_eq!(
            (xus[0].construct.as_str(), xus[0].number("iterations")),
            ("task", 0)
        );
        let lines = BTreeMap::from([(4660, 12)]);
        assert_eq!(with_lines(&xus[0].label, &lines), "0.1.12.1.7");
    }
}
