//! libomp's task functions that clang doesn't call: `tests/sources/taskcalls.c` calls them as other compilers do.

use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, fixture, has, process, repository, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn compile(folder: &Path, optimisation: &str) -> Option<PathBuf> {
    let clang = Matrix::get().compiler("clang");
    let compiler = clang.command("c").expect("clang compiles C");
    if !has(compiler) {
        return None;
    }
    let program = folder.join("taskcalls");
    let mut command = Command::new(compiler);
    command
        .args(["-fopenmp", "-g", optimisation])
        .arg(repository().join("tests/sources/taskcalls.c"));
    process::run(command.arg("-o").arg(&program)).ok("compiling taskcalls.c");
    Some(program)
}

/// What the report says: executions by construct.
fn executions(run: &Path) -> BTreeMap<String, u64> {
    let report = command::report(run);
    let mut counts = BTreeMap::new();
    for region in report["regions"].as_array().expect("a list of regions") {
        let construct = region["construct"].as_str().expect("a construct");
        *counts.entry(construct.to_owned()).or_default() +=
            region["executions"].as_u64().expect("a number");
    }
    counts
}

#[test]
fn every_call_is_patched_and_every_task_recorded() {
    for optimisation in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let Some(program) = compile(folder.path(), optimisation) else {
            return;
        };
        let scan = Scan::of(&program);
        let skipped: Vec<_> = scan
            .sites
            .iter()
            // Locked instructions are listed only.
            .filter(|s| s.outcome == "skipped" && s.construct != "atomic")
            .collect();
        assert!(skipped.is_empty(), "{optimisation}: {skipped:?}");
        let patched = folder.path().join("patched");
        command::ok([Path::new("patch"), &program, Path::new("-o"), &patched]);
        let mut first: Option<Vec<String>> = None;
        for threads in [1, 2, 4] {
            let what = format!("{optimisation}, {threads} threads");
            let run =
                |program: &Path| process::run(process::clean(&mut Command::new(program), threads));
            let original = run(&program).ok(&what);
            assert_eq!(run(&patched).outcome(), original.outcome(), "{what}");
            let out = folder.path().join(format!("runs-{threads}"));
            let recorded = table::record(&patched, &[], threads, &out, &table::ONE_EVENT);
            assert_eq!(
                (recorded.status, recorded.text()),
                (0, original.text()),
                "{what}"
            );
            let run = table::runs(&out).pop().expect("a run was recorded");
            let xus = table::export(&run);
            let own = fixture::counts(&original.text());
            assert_eq!(Some(&(xus.len() as u64)), own.get("tasks"), "{what}");
            let iterations: u64 = xus.iter().map(|x| x.number("iterations")).sum();
            assert_eq!(iterations, 100 + 20 + 9, "{what}");
            let labels = table::labels(&xus);
            let twice = labels.windows(2).find(|w| w[0] == w[1]);
            assert_eq!(twice, None, "{what}");
            let first = first.get_or_insert_with(|| labels.clone());
            // At -O0 all come from one place in a function of their own; ranks tell them apart.
            assert_eq!(labels, *first, "{what}");
            let counts = executions(&run);
            let of = |construct: &str| counts.get(construct).copied().unwrap_or(0);
            assert_eq!((of("taskloop"), of("taskwait")), (3, 2), "{what}");
        }
    }
}
