//! Where a tool is missing, or a loop tries nothing: a test below is run once more where there are no compilers.

use ompfuse_kit::{compile, each, in_ci, repository, some};
use std::path::Path;
use std::process::{Command, Output};

/// Compilers that the tests of this file use.
const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// Set where a test runs once more.
const AGAIN: &str = "KIT_TEST_AGAIN";

/// Runs one of the tests below once more, where programs are looked for in `path` alone.
fn again(test: &str, path: &Path, ci: Option<&str>) -> (Output, String) {
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args([test, "--exact"]).env("PATH", path);
    command.env(AGAIN, "yes");
    command.env_remove("CI").envs(ci.map(|ci| ("CI", ci)));
    let output = command.output().expect("a test can be started");
    let said = [&output.stdout[..], &output.stderr].concat();
    (output, String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_loop_over_compilers() {
    let commands = COMPILERS.map(|compiler| format!("{compiler} -O1"));
    for (command, program) in each(commands, |c| compile("int main(void) { return 3; }", c)) {
        let status = Command::new(&program.path).status();
        assert_eq!(status.expect(&command).code(), Some(3), "{command}");
        println!("ran {command}");
    }
}

#[test]
fn a_missing_compiler_is_named_and_fails_in_continuous_integration() {
    let empty = tempfile::tempdir().expect("there is room for a folder");
    let (output, said) = again("a_loop_over_compilers", empty.path(), None);
    assert!(output.status.success(), "{said}");
    for compiler in COMPILERS {
        let line = format!("SKIPPED: {compiler} is not installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&line), "said past libtest: {said}");
    }
    let (output, said) = again("a_loop_over_compilers", empty.path(), Some("true"));
    assert!(!output.status.success(), "{said}");
    let named = format!("{} is not installed; with CI=true", COMPILERS[0]);
    assert!(said.contains(&named), "{said}");
}

/// Fails in continuous integration, so it is left to the next test there.
#[test]
fn a_loop_over_nothing() {
    let is_outer = std::env::var_os(AGAIN).is_none();
    if is_outer && in_ci() {
        return;
    }
    assert_eq!(some(Vec::<u8>::new()).count(), 0);
}

#[test]
fn a_loop_over_nothing_fails() {
    let path = Path::new("/usr/bin");
    let (output, said) = again("a_loop_over_nothing", path, None);
    assert!(output.status.success(), "{said}");
    let (output, said) = again("a_loop_over_nothing", path, Some("true"));
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("missing.rs") && said.contains("ran none"),
        "{said}"
    );
}

/// A test that asks for tools by itself may pass without testing: all ask the kit.
#[test]
fn all_tests_ask_the_kit() {
    let mut folders = vec![repository().to_owned()];
    let (mut read, mut wrong) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("folders of the repository can be listed") {
            let path = entry
                .expect("folders of the repository can be listed")
                .path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !["target", "kit"].contains(&&*name) && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") && path.components().any(|c| c.as_os_str() == "tests") {
                let text = std::fs::read_to_string(&path).expect("sources are text");
                let own = ["arg(\"--version\")", "SKIPPED"];
                wrong.extend(
                    own.iter()
                        .filter(|w| text.contains(**w))
                        .map(|w| (path.clone(), *w)),
                );
                read += 1;
            }
        }
    }
    assert!(read > 50, "{read} files of tests were read");
    assert!(
        wrong.is_empty(),
        "these ask for tools themselves: {wrong:?}"
    );
}
