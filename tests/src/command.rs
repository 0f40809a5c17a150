//! The `ompfuse` command: built once per run of the suite, or named by `OMPFUSE_BIN`.

use crate::process::{self, Output};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

static OMPFUSE: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(given) = std::env::var_os("OMPFUSE_BIN") {
        return given.into();
    }
    let (target, profile) = crate::target();
    let cargo_profile = if profile == "debug" { "dev" } else { &profile };
    let output = Command::new(env!("CARGO"))
        // With the tests, so that its dependencies have the features that they have here, and are compiled once.
        .args(["build", "--workspace", "--bins", "--test", "e2e"])
        .args(["--profile", cargo_profile, "--target-dir"])
        .arg(&target)
        .current_dir(crate::repository())
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(
        output.status.success(),
        "ompfuse does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    target.join(profile).join("ompfuse")
});

/// Path of the command.
pub fn path() -> &'static Path {
    &OMPFUSE
}

/// The command, ready for arguments; programs that it starts have this many threads.
pub fn with_threads(threads: usize) -> Command {
    let mut command = Command::new(path());
    process::clean(&mut command, threads);
    command.env("XDG_CACHE_HOME", crate::target().0.join("fixtures/cache"));
    command
}

/// Runs the command with these arguments.
#[track_caller]
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    process::run(with_threads(2).args(args))
}

/// Runs the command, which has to succeed.
#[track_caller]
pub fn ok<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    let mut command = with_threads(2);
    command.args(args);
    process::run(&mut command).ok(&format!("{command:?}"))
}

/// Runs the command, which has to print JSON.
#[track_caller]
pub fn json<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> serde_json::Value {
    let output = ok(args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {output:?}"))
}

/// The report of a run, a profile or a folder of runs.
#[track_caller]
pub fn report(input: impl AsRef<Path>) -> serde_json::Value {
    let option = OsStr::new("--format=json");
    json([OsStr::new("report"), input.as_ref().as_os_str(), option])
}

/// Patches a program to a file.
#[track_caller]
pub fn patch(program: &Path, to: &Path) {
    ok([
        OsStr::new("patch"),
        program.as_os_str(),
        OsStr::new("-o"),
        to.as_os_str(),
    ]);
}
