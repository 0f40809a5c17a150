//! A task whose creation is given up by an exception: `tests/sources/thrower.cpp`. The time after that is the program's own.

use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{command, has, process, repository, table};
use std::path::Path;
use std::process::Command;

#[test]
fn what_follows_a_creation_that_fails_is_no_part_of_it() {
    let clang = Matrix::get().compiler("clang");
    let compiler = clang.command("cpp").expect("clang compiles C++");
    if !has(compiler) {
        return;
    }
    for optimisation in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let [program, patched, out] = ["thrower", "patched", "runs"].map(|n| folder.path().join(n));
        let mut compile = Command::new(compiler);
        compile
            .args(["-fopenmp", "-g", optimisation])
            .arg(repository().join("tests/sources/thrower.cpp"));
        process::run(compile.arg("-o").arg(&program)).ok("compiling thrower.cpp");
        command::ok([Path::new("patch"), &program, Path::new("-o"), &patched]);
        let recorded = table::record(&patched, &[], 1, &out, &table::ONE_EVENT);
        assert_eq!((recorded.status, recorded.text().trim()), (0, "tasks 100"));
        let run = table::runs(&out).pop().expect("a run was recorded");
        assert_eq!(table::export(&run).len(), 100);
        let report = command::report(run.as_path());
        let regions = report["regions"].as_array().expect("a list of regions");
        let of = |construct: &str, field: &str| {
            let region = regions.iter().find(|r| r["construct"] == construct);
            let region = region.unwrap_or_else(|| panic!("no {construct} in {regions:?}"));
            region[field].as_f64().expect("a time")
        };
        // It computes for tens of milliseconds, of which a creation that was never given up would have most.
        let (created, computed) = (of("task", "runtime_s"), of("parallel", "work_s"));
        assert!(
            created < computed,
            "{optimisation}: {created} s of creation, {computed} s of work"
        );
    }
}
