//! How often every construct was executed, against an OMPT tool on the same source: libomp's own word for it. gcc's
//! runtime has no OMPT, but the source is the same, so its builds have to agree too.

use super::executions;
use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::matrix::{self, Matrix};
use ompfuse_tests::{command, fixture, has, process, recorded, repository, table, target};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Number of threads of all runs: that of the shared ones.
fn threads() -> usize {
    Matrix::get().ordinary_threads()
}

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
    if !has(compiler) {
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
    process::clean(&mut command, threads())
        .env("OMP_TOOL_LIBRARIES", tool)
        .env("COUNTS_FILE", file.path());
    process::run(&mut command).ok(&build.to_string());
    fixture::counts(&std::fs::read_to_string(file.path()).expect("the tool writes text"))
}

/// Programs of gcc that libomp can't run, and why.
const NOT_ON_LIBOMP: [(&str, &str); 9] = [
    ("oldabi", "results of the original are wrong"),
    ("ordered", "it has no symbols of version GOMP_5.1"),
    ("rare", "it has no symbols of version OMP_5.0.1"),
    ("shapes-merged", "it has no scan reductions for gcc"),
    (
        "sync",
        "it doesn't align a task's arguments as asked: results of the original are wrong",
    ),
    ("target", "it has no GOMP_target_ext"),
    ("tasking", "it has no symbols of version OMP_5.0.1"),
    (
        "taskloop",
        "an assertion of its GOMP_taskloop fails in the original",
    ),
    (
        "taskobj",
        "an assertion of its GOMP_taskloop fails in the original",
    ),
];

/// What the tool and ompfuse count in one run of the patched program. libomp runs gcc's programs too: it has their entry
/// points and symbol versions, and takes the place of libgomp under its name. `None`: it can't run even the original.
fn by_both(build: &Build, tool: &Path, libomp: &Path) -> Option<[BTreeMap<String, u64>; 2]> {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let instead = folder.path().join("instead");
    std::fs::create_dir(&instead).expect("there is room for a folder");
    symlink(libomp, instead.join("libgomp.so.1")).expect("there is room for a link");
    let mut original = Command::new(&build.path);
    process::clean(&mut original, threads()).env("LD_LIBRARY_PATH", &instead);
    if process::run(&mut original).status != 0 {
        return None;
    }
    let patched = recorded::patched(build);
    let counts = folder.path().join("counts");
    let out = folder.path().join("runs");
    let mut command = command::with_threads(threads());
    command
        .env("OMP_TOOL_LIBRARIES", tool)
        .env("COUNTS_FILE", &counts)
        .env("LD_LIBRARY_PATH", &instead)
        .arg("record")
        .args(table::ONE_EVENT)
        .arg("-o")
        .arg(&out)
        .arg("--")
        .arg(patched);
    process::run(&mut command).ok(&build.to_string());
    let run = table::runs(&out).pop().expect("a run was recorded");
    let counts = std::fs::read_to_string(&counts).expect("the tool writes text");
    Some([fixture::counts(&counts), executions::reported(&run)])
}

/// Fixtures that clang doesn't build. libomp runs gfortran's (see below), but not the others: of them there is no tool's word.
const WITHOUT_REFERENCE: [&str; 3] = ["oldabi", "stencil", "target"];

fn executions_agree(name: &str, compiler: &str) {
    let Some(tool) = TOOL.as_ref() else { return };
    let fixture = Fixture::open(name);
    let references = fixture.ordinary_builds("clang");
    let is_listed = WITHOUT_REFERENCE.contains(&name);
    assert_eq!(references.is_empty(), is_listed, "{name}");
    let builds = fixture.ordinary_builds(compiler);
    let mut wrong = Vec::new();
    for reference in references {
        let wanted = by_ompt(&reference, tool);
        assert!(
            wanted.get("parallel").is_some_and(|&n| n > 0),
            "{reference}: the tool counts nothing"
        );
        for build in builds.iter().filter(|b| b.variant == reference.variant) {
            let found = executions::by_ompfuse(build);
            for construct in CONSTRUCTS.into_iter().filter(|c| build.records(c)) {
                let [found, wanted] =
                    [&found, &wanted].map(|of| of.get(construct).copied().unwrap_or(0));
                if found != wanted {
                    wrong.push(format!("{build}: {found} of {construct}, not {wanted}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

for_each_fixture!(super::executions_agree);

/// What is compared in one run: of clang's programs libomp is told more.
/// Barriers are counted per thread; implicit ones are parts of other constructs in the report, and of gcc's libomp doesn't
/// know the kind.
const IN_ONE_RUN: [(&str, &[&str]); 2] = [
    (
        "clang",
        &[
            "parallel",
            "task",
            "executed",
            "single",
            "master",
            "critical",
            "ordered",
            "taskwait",
            "taskgroup",
            "loop",
            "sections",
            "barrier",
            "lock",
        ],
    ),
    (
        "gcc",
        &[
            "parallel",
            "task",
            "executed",
            "single",
            "critical",
            "ordered",
            "taskwait",
            "taskgroup",
        ],
    ),
];

/// Where the two don't mean the same: program, compiler, what, and why.
const OTHERWISE: &[(&str, &str, &str, &str)] = &[
    ("taskloop", "clang", "executed", DIVIDERS),
    ("taskobj", "clang", "executed", DIVIDERS),
    ("kmpcalls", "clang", "loop", OWN_CALLS),
    ("kmpcalls", "clang", "barrier", OWN_CALLS),
    ("ordered", "clang", "ordered", DEPENDENCES),
    ("rare", "clang", "ordered", DEPENDENCES),
];

/// Of a taskloop.
const DIVIDERS: &str = "libomp has tasks that only divide the loop";
/// No compiler made them.
const OWN_CALLS: &str = "its calls don't say what they are for";
/// Of `depend(sink)` and `depend(source)`.
const DEPENDENCES: &str = "to OMPT they are dependences";

fn one_run_has_one_count(name: &str, compiler: &str) {
    let Some(tool) = TOOL.as_ref() else { return };
    let Some(libomp) = libomp() else { return };
    let is = |build: &Build, program: &str| build.to_string().starts_with(&format!("{program} ("));
    let not_on_libomp = |build: &Build| NOT_ON_LIBOMP.iter().any(|(program, _)| is(build, program));
    let constructs = IN_ONE_RUN.iter().find(|(by, _)| *by == compiler);
    let (_, constructs) = constructs.expect("both compilers are listed");
    let mut wrong = Vec::new();
    for build in Fixture::open(name).ordinary_builds(compiler) {
        let Some([by_tool, found]) = by_both(&build, tool, libomp) else {
            if !not_on_libomp(&build) {
                wrong.push(format!("{build}: libomp can't run the original"));
            }
            continue;
        };
        if compiler == "gcc" && not_on_libomp(&build) {
            wrong.push(format!("{build}: libomp can run it, though it is listed"));
        }
        assert!(
            by_tool.get("parallel").is_some_and(|&n| n > 0),
            "{build}: {by_tool:?}"
        );
        let of =
            |counts: &BTreeMap<String, u64>, what: &str| counts.get(what).copied().unwrap_or(0);
        for what in constructs.iter().filter(|what| build.records(what)) {
            let (found, wanted) = (of(&found, what), of(&by_tool, what));
            let listed = OTHERWISE.iter().any(|(program, by, kind, _)| {
                is(&build, program) && *by == compiler && kind == what
            });
            if (found != wanted) != listed {
                let listed = if listed { ", though it is listed" } else { "" };
                wrong.push(format!("{build}: {found} of {what}, OMPT {wanted}{listed}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

mod one_run {
    for_each_fixture!(crate::ompt::one_run_has_one_count);
}

/// The library that clang's programs load.
fn libomp() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(find_libomp);
    FOUND.as_deref()
}

fn find_libomp() -> Option<PathBuf> {
    let compiler = Matrix::get().compiler("clang").c.as_ref()?;
    matrix::version(compiler)?;
    let asked =
        process::run(Command::new(compiler).arg("-print-file-name=libomp.so")).ok("asking clang");
    PathBuf::from(asked.text().trim()).canonicalize().ok()
}
