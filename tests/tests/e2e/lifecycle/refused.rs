//! System calls that the kernel refuses, as it does on some file systems and in sandboxes: `tests/sources/refuse.c`.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, repository, skip, table};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the launcher says where there are no filters.
const NO_FILTER: i32 = 99;
/// Numbers of system calls.
const FALLOCATE: &str = "285";
/// ENOSYS of sandboxes, EPERM of filters, EOPNOTSUPP of file systems.
const ERRORS: [&str; 3] = ["38", "1", "95"];

fn launcher(folder: &Path) -> PathBuf {
    let launcher = folder.join("refuse");
    let mut compile = Command::new("gcc");
    compile.args(["-O1", "-o"]).arg(&launcher);
    compile.arg(repository().join("tests/sources/refuse.c"));
    process::run(&mut compile).ok("compiling refuse.c");
    launcher
}

/// `before`: a command that starts the launcher.
fn refused(before: &[&Path], launcher: &Path, calls: [&str; 2], program: &[&Path]) -> Output {
    let mut all = before.to_vec();
    let [error, call] = calls.map(Path::new);
    all.extend([launcher, error, call, Path::new("--")]);
    all.extend(program);
    let mut command = Command::new(all[0]);
    process::run(process::clean(&mut command, 2).args(&all[1..]))
}

/// NFS, and file systems that came with Linux 2, can't reserve blocks: files are written instead.
#[test]
fn files_without_reserved_blocks() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let launcher = launcher(folder.path());
    for error in ERRORS {
        for (way, wanted) in [("return", 10), ("fork", 30), ("drops", 5010)] {
            let program = [build.path.as_path(), Path::new("10"), Path::new(way)];
            let original = refused(&[], &launcher, [error, FALLOCATE], &program);
            if original.status == NO_FILTER {
                return skip("refused system calls: there are no filters here");
            }
            let out = folder.path().join(format!("{error}-{way}"));
            let record = ["record", "--events", "none", "-o"].map(Path::new);
            let mut before = vec![command::path()];
            before.extend(record);
            before.extend([out.as_path(), Path::new("--")]);
            let recorded = refused(&before, &launcher, [error, FALLOCATE], &program);
            let what = format!("error {error}, {way}: {recorded:?}");
            assert_eq!(recorded.status, original.status, "{what}");
            assert_eq!(recorded.text(), original.text(), "{what}");
            assert!(!recorded.errors().contains("could not"), "{what}");
            let xus = table::export(&table::runs(&out)[0]).len();
            assert!(xus >= wanted, "{xus} XUs, {what}");
        }
    }
}
