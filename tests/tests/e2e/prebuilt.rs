//! The binaries of the first command in README.md, and what that command prints.

use ompfuse_tests::process;
use ompfuse_tests::{command, repository, skip};
use std::path::PathBuf;
use std::process::Command;

/// The prebuilt programs that run here: one needs libomp.
fn prebuilt() -> Vec<PathBuf> {
    let all = ["knapsack-gcc", "knapsack-clang"]
        .map(|name| repository().join("fixtures/prebuilt").join(name));
    all.into_iter()
        .filter(|path| {
            let output = process::run(process::clean(&mut Command::new(path), 2));
            if output.status == 127 {
                skip(&format!("{}: {}", path.display(), output.errors().trim()));
                return false;
            }
            output.ok("a prebuilt program");
            true
        })
        .collect()
}

#[test]
fn they_are_small() {
    for path in prebuilt() {
        let length = std::fs::metadata(&path)
            .expect("the program is there")
            .len();
        assert!(length < 60 * 1024, "{}: {length} bytes", path.display());
    }
}

#[test]
fn the_first_command_of_the_readme_works() {
    for path in prebuilt() {
        let folder = tempfile::tempdir().expect("there is room for a profile");
        let mut command = command::with_threads(2);
        command
            .args(["profile", "-o"])
            .arg(folder.path().join("out"))
            .arg("--")
            .args([path.as_os_str(), "28".as_ref()]);
        let output = process::run(&mut command).ok("profile");
        assert!(
            output.text().ends_with("\nright\n"),
            "the program's own output: {output:?}"
        );
        let text = output.errors();
        for wanted in ["parallel", "task", "knapsack.c"] {
            assert!(
                text.contains(wanted),
                "{wanted} is in the report: {output:?}"
            );
        }
    }
}
