//! Programs that gcc has compiled, with libomp in place of libgomp: it has the same entry points, and its own ways behind them.

use ompfuse_tests::fixture::{self, Fixture};
use ompfuse_tests::{command, process, skip, table};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `tests/setup.sh` puts it.
const LIBOMP: &str = "/usr/lib/llvm-19/lib/libomp.so";

/// A folder in which libgomp is libomp.
fn folder() -> Option<tempfile::TempDir> {
    if !Path::new(LIBOMP).exists() {
        skip(&format!("{LIBOMP} is not installed"));
        return None;
    }
    let folder = tempfile::tempdir().expect("there is room for a link");
    std::os::unix::fs::symlink(LIBOMP, folder.path().join("libgomp.so.1")).expect("a new link");
    Some(folder)
}

fn run(program: &Path, libraries: &Path, threads: usize) -> process::Output {
    let mut command = Command::new(program);
    process::run(process::clean(&mut command, threads).env("LD_LIBRARY_PATH", libraries))
}

fn record(
    program: &Path,
    libraries: &Path,
    threads: usize,
    out: &Path,
) -> (process::Output, PathBuf) {
    let mut command = command::with_threads(threads);
    command
        .env("LD_LIBRARY_PATH", libraries)
        .arg("record")
        .args(table::ONE_EVENT);
    let output = process::run(command.arg("-o").arg(out).arg("--").arg(program));
    let run = table::runs(out).pop().expect("a run was recorded");
    (output, run)
}

/// libomp doesn't do everything right that libgomp does: what counts is that the patched program does the same.
#[test]
fn gcc_programs_behave_as_before() {
    let Some(libraries) = folder() else { return };
    for name in ["cancel", "nqueens", "sync"] {
        for build in Fixture::open(name).ordinary_builds("gcc") {
            let patches = tempfile::tempdir().expect("there is room for a patched program");
            let patched = table::patch(&build, patches.path(), &[]);
            for threads in [1, 3] {
                let what = format!("{build} on libomp, {threads} threads");
                let original = run(&build.path, libraries.path(), threads);
                let now = run(&patched, libraries.path(), threads);
                assert_eq!(now.outcome(), original.outcome(), "{what}");
                let out = patches.path().join(format!("runs-{threads}"));
                let (recorded, run) = record(&patched, libraries.path(), threads, &out);
                assert_eq!(
                    (recorded.status, recorded.text()),
                    (original.status, original.text()),
                    "{what}"
                );
                let xus = table::export(&run);
                let tasks = xus.iter().filter(|x| x.construct == "task").count() as u64;
                let own = fixture::counts(&recorded.text());
                assert_eq!(Some(&tasks), own.get("tasks"), "{what}");
            }
        }
    }
}
