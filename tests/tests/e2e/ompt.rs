//! How often every construct was executed, against an OMPT tool on the same source: libomp's own word for it. gcc's
//! runtime has no OMPT, but the source is the same, so its builds have to agree too.

use super::executions;
use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::matrix::{self, Matrix};
use ompfuse_tests::{fixture, process, repository, skip, target};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Number of threads of all runs.
const THREADS: usize = 3;

/// The constructs that both sides count in the same way. OMPT counts loops per thread, the report once per team.
const CONSTRUCTS: [&str; 11] = [
    "parallel",
    "task",
    "single",
    "master",
    "critical",
    "lock",
    "teams",
    "taskwait",
    "taskgroup",
    "taskloop",
    "taskloop-task",
];

/// The tool, compiled; `None` without clang.
static TOOL: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let clang = Matrix::get().compiler("clang");
    let compiler = clang.command("c").expect("clang compiles C");
    if matrix::version(compiler).is_none() {
        skip(&format!("{compiler} is not installed: no OMPT tool"));
        return None;
    }
    let folder = target().0.join("fixtures");
    std::fs::create_dir_all(&folder).expect("the target directory is writable");
    let tool = folder.join(format!("ompt-counts-{}.so", std::process::id()));
    let mut command = Command::new(compiler);
    command
        .args(["-shared", "-fPIC", "-O1"])
        .arg(repository().join("tests/ompt/counts.c"));
    process::run(command.arg("-o").arg(&tool)).ok("compiling the OMPT tool");
    Some(tool)
});

/// What the tool counts in a run of the original.
fn by_ompt(build: &Build, tool: &Path) -> BTreeMap<String, u64> {
    let file = tempfile::NamedTempFile::new().expect("there is room for a file");
    let mut command = Command::new(&build.path);
    process::clean(&mut command, THREADS)
        .env("OMP_TOOL_LIBRARIES", tool)
        .env("COUNTS_FILE", file.path());
    process::run(&mut command).ok(&build.to_string());
    fixture::counts(&std::fs::read_to_string(file.path()).expect("the tool writes text"))
}

#[test]
fn executions_agree() {
    let Some(tool) = TOOL.as_ref() else { return };
    let mut wrong = Vec::new();
    for name in fixture::names() {
        let fixture = Fixture::open(&name);
        for reference in fixture.ordinary_builds("clang") {
            let wanted = by_ompt(&reference, tool);
            assert!(
                wanted.get("parallel").is_some_and(|&n| n > 0),
                "{reference}: the tool counts nothing"
            );
            let builds = ["gcc", "clang"]
                .iter()
                .flat_map(|c| fixture.ordinary_builds(c));
            for build in builds.filter(|b| b.variant == reference.variant) {
                let found = executions::by_ompfuse(&build);
                for construct in CONSTRUCTS.into_iter().filter(|c| build.records(c)) {
                    let [found, wanted] =
                        [&found, &wanted].map(|of| of.get(construct).copied().unwrap_or(0));
                    if found != wanted {
                        wrong.push(format!("{build}: {found} of {construct}, not {wanted}"));
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} complaints:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
