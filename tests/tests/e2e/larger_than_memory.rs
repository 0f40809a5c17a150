//! Profiles that don't fit into memory are combined type by type.

use ompfuse_tests::{command, process, repository};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// XUs of one type in one table.
const OF_A_TYPE: u64 = 8000;

/// A table of another recorder's, with XUs of all types in turn: two events that all have, six of its own.
fn write(path: &Path, run: u64, types: u64) {
    let mut text = "type,label,thread,t0_ns,t1_ns,A,B".to_owned();
    (0..6).for_each(|e| write!(text, ",E{run}{e}").expect("a string"));
    text.push('\n');
    for at in 0..OF_A_TYPE * types {
        let (of_type, rank) = (at % types, at / types);
        let mixed = (at + run).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let begin = 100 * at + mixed % 90;
        let (a, b) = (1000 + rank * 3, mixed % 5000);
        write!(
            text,
            "{of_type},0.{rank}.{of_type},0,{begin},{},{a},{b}",
            begin + 5
        )
        .expect("a string");
        (0..6).for_each(|e| write!(text, ",{}", mixed >> e).expect("a string"));
        text.push('\n');
    }
    std::fs::write(path, text).expect("there is room for a table");
}

fn combine(
    inputs: &[PathBuf],
    output: &Path,
    strategy: &str,
    memory: &str,
    limit: Option<u64>,
) -> i32 {
    let mut command = match limit {
        Some(bytes) => {
            // One that waits for itself is ended. That happened where a panic's backtrace found no memory.
            let mut command = Command::new("timeout");
            command.env("RUST_BACKTRACE", "1");
            command.args(["--signal=KILL", "300", "prlimit"]);
            command.arg(format!("--data={bytes}")).arg(command::path());
            process::clean(&mut command, 2);
            command
        }
        None => command::with_threads(2),
    };
    command.env("RAYON_NUM_THREADS", "2");
    command.args(["combine", "--strategy", strategy, "--memory", memory, "-o"]);
    process::run(command.arg(output).args(inputs)).status
}

/// A table's lines, its head included, in an order of their own.
fn rows(profile: &Path) -> Vec<String> {
    let table = tempfile::NamedTempFile::new().expect("there is room for a table");
    let mut export = command::with_threads(2);
    export
        .args(["export", "--to", "csv", "-o"])
        .arg(table.path());
    process::run(export.arg(profile)).ok("export");
    let text = std::fs::read_to_string(table.path()).expect("an exported table is text");
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

/// Runs that don't fit are read in parts, by all who read them, with the same result.
#[test]
fn memory_follows_the_largest_region_and_not_the_run() {
    /// Of data, to combine two runs and to report one: causes are looked for in the first million of its records.
    const LIMITS: [u64; 2] = [40 << 20, 48 << 20];
    /// Sixteen loops with so many ranges each.
    const RANGES: &str = "8000";
    let folder = tempfile::tempdir().expect("there is room for runs");
    let path = |name: &str| folder.path().join(name);
    let mut compile = Command::new("gcc");
    compile
        .args(["-O1", "-fopenmp", "-o"])
        .arg(path("many"))
        .arg(repository().join("fixtures/behaviour/many.c"));
    process::run(&mut compile).ok("the compiler");
    let mut record = command::with_threads(2);
    record
        .args(["record", "--repeat", "2", "--events", "task-clock", "-o"])
        .args([&path("runs"), &PathBuf::from("--"), &path("many")]);
    process::run(record.arg(RANGES)).ok("record");
    let (by_type, at_once) = (path("by-type.parquet"), path("at-once.parquet"));
    for strategy in ["lgl", "bc"] {
        let runs = [path("runs")];
        let status = combine(&runs, &by_type, strategy, "3M", Some(LIMITS[0]));
        assert_eq!(status, 0, "{strategy}");
        assert_eq!(combine(&runs, &at_once, strategy, "1T", None), 0);
        assert!(rows(&by_type) == rows(&at_once), "{strategy}");
    }
    let status = combine(&[path("runs")], &at_once, "lgl", "1T", Some(LIMITS[0]));
    assert_eq!(status, 1, "the test is too small");
    let report = |memory: &str, limit: u64| {
        let mut report = Command::new("prlimit");
        report.arg(format!("--data={limit}")).arg(command::path());
        process::clean(&mut report, 2).env("RAYON_NUM_THREADS", "2");
        report.args(["report", "--format", "json", "--memory", memory]);
        process::run(report.arg(path("runs/run-0001")))
    };
    let in_parts = report("2M", LIMITS[1]).ok("report in parts").stdout;
    assert!(in_parts == report("1T", 1 << 40).ok("report").stdout);
    // One run's records are read once and not kept, whatever memory there is.
    assert!(in_parts == report("1T", LIMITS[1]).ok("report in little memory").stdout);
    // So are those of a table, which is written meanwhile.
    let run = path("runs/run-0001");
    for (form, input) in [("parquet", &run), ("arrow", &path("table.parquet"))] {
        let mut export = Command::new("prlimit");
        export.arg(format!("--data={}", LIMITS[1]));
        export.arg(command::path());
        process::clean(&mut export, 2).env("RAYON_NUM_THREADS", "2");
        export.args(["export", "--to", form, "--memory", "2M", "-o"]);
        export.arg(path(&format!("table.{form}"))).arg(input);
        process::run(&mut export).ok(form);
    }
    assert!(rows(&path("table.parquet")) == rows(&run));
}

mod whole {
    use super::*;

    #[test]
    #[ignore = "tests/run.sh whole"]
    fn memory_follows_the_largest_type_and_not_the_profile() {
        /// Of data; much of it is taken by one piece of a table.
        const LIMIT: u64 = 48 << 20;
        let folder = tempfile::tempdir().expect("there is room for tables");
        let path = |name: &str| folder.path().join(name);
        let (by_type, at_once) = (path("by-type.parquet"), path("at-once.parquet"));
        for types in [8, 16] {
            let inputs: Vec<PathBuf> = (1..=3)
                .map(|run| {
                    let input = path(&format!("run-{run}.csv"));
                    write(&input, run, types);
                    input
                })
                .collect();
            let status = combine(&inputs, &by_type, "lgl", "24M", Some(LIMIT));
            assert_eq!(status, 0, "{types} types");
            if types == 8 {
                assert_eq!(combine(&inputs, &at_once, "lgl", "1T", None), 0);
                assert!(rows(&by_type) == rows(&at_once), "{types} types");
            } else {
                // Twice the profile needed no more; all of it at once needs several times as much.
                let status = combine(&inputs, &at_once, "lgl", "1T", Some(LIMIT));
                assert_eq!(status, 1, "the test is too small, or it was killed");
            }
            let _ = std::fs::remove_file(&at_once);
        }
        // Wherever memory ends: status 1, and nothing is left. (Less than the command's own data, and the kernel ends it.)
        let inputs = [path("run-1.csv"), path("run-2.csv")];
        for limit in [5, 11, 30] {
            let status = combine(&inputs, &at_once, "lgl", "1T", Some(limit << 20));
            assert_eq!(status, 1, "{limit} MiB");
        }
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 4, "tables and one profile, nothing temporary");
    }
}
