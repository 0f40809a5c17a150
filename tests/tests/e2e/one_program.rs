//! Runs of different programs or builds are not combined, and what is no profile is told.

use ompfuse_tests::command;
use ompfuse_tests::compile;
use ompfuse_tests::process::Output;
use ompfuse_tests::table;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn build(folder: &Path, name: &str, iterations: u32) -> Option<PathBuf> {
    let source = format!(
        "int main(void) {{ int n = 0;\n#pragma omp parallel for reduction(+:n)\nfor (int i = 0; i < {iterations}; i++) n++;\n\
         return n != {iterations}; }}\n"
    );
    compile::text(folder, name, &source, "gcc -O1 -g -fopenmp -Wl,--build-id")
}

fn refused(said: &Output, words: &[&str]) {
    let errors = said.errors();
    assert_eq!((said.status, errors.lines().count()), (1, 1), "{said:?}");
    for word in words {
        assert!(errors.contains(word), "{word}: {errors}");
    }
}

const NONE: [&str; 2] = ["--events", "none"];

#[test]
fn different_programs_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = |name: &str| folder.path().join(name);
    let (Some(one), Some(two)) = (
        build(folder.path(), "one", 100),
        build(folder.path(), "two", 200),
    ) else {
        return;
    };
    let (of_one, of_two) = (path("of-one"), path("of-two"));
    table::record(&one, &[], 2, &of_one, &NONE).ok("record");
    table::record(&two, &[], 2, &of_two, &NONE).ok("record");
    refused(
        &table::record(&two, &[], 2, &of_one, &NONE),
        &["another program", "/one (build ", "/two (build "],
    );
    assert_eq!(table::runs(&of_one).len(), 1);
    let combine = |inputs: [&Path; 2]| {
        let out = path("both.parquet");
        let args = [
            OsStr::new("combine"),
            inputs[0].as_os_str(),
            inputs[1].as_os_str(),
        ];
        let said = command::run(args.into_iter().chain([OsStr::new("-o"), out.as_os_str()]));
        (said, out.exists())
    };
    let (said, made) = combine([&of_one, &of_two]);
    refused(
        &said,
        &["different programs", "/one (build ", "/two (build "],
    );
    assert!(!made);
    // A profile tells it too.
    let profile = path("two.parquet");
    command::ok([
        OsStr::new("combine"),
        of_two.as_os_str(),
        OsStr::new("-o"),
        profile.as_os_str(),
    ]);
    refused(&combine([&of_one, &profile]).0, &["different programs"]);
    // As a folder of runs that somebody has put together.
    std::fs::rename(table::runs(&of_two)[0].clone(), of_one.join("run-0002")).expect("it is ours");
    refused(
        &command::run([OsStr::new("report"), of_one.as_os_str()]),
        &["different programs"],
    );
}

#[test]
fn different_builds_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let Some(program) = build(folder.path(), "program", 100) else {
        return;
    };
    table::record(&program, &[], 2, &first, &NONE).ok("record");
    // The same build elsewhere is the same program.
    let copy = folder.path().join("copy");
    std::fs::copy(&program, &copy).expect("there is room");
    table::record(&copy, &[], 2, &first, &NONE).ok("record");
    let both = folder.path().join("both.parquet");
    command::ok([
        OsStr::new("combine"),
        first.as_os_str(),
        OsStr::new("-o"),
        both.as_os_str(),
    ]);
    build(folder.path(), "program", 300).expect("it was built before");
    std::fs::remove_dir_all(&table::runs(&first)[1]).expect("it is ours");
    refused(
        &table::record(&program, &[], 2, &first, &NONE),
        &["another build", "/program into"],
    );
    table::record(&program, &[], 2, &second, &NONE).ok("record");
    let args = [
        OsStr::new("combine"),
        first.as_os_str(),
        second.as_os_str(),
        OsStr::new("-o"),
        both.as_os_str(),
    ];
    refused(&command::run(args), &["/program was rebuilt"]);
}

#[test]
fn what_is_no_profile_is_told() {
    let folder = tempfile::tempdir().expect("there is room");
    let Some(program) = build(folder.path(), "program", 100) else {
        return;
    };
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        path
    };
    let report = |path: &Path| command::run([OsStr::new("report"), path.as_os_str()]);
    refused(
        &report(&program),
        &["is a program or library", "ompfuse profile -- "],
    );
    refused(
        &report(&write("job.sh", "#!/bin/sh\n")),
        &["is a script", "ompfuse profile -- "],
    );
    let table = write("prices.csv", "date,price,volume\n2026-01-01,3,4\n");
    refused(
        &report(&table),
        &[
            "nor a table of execution units",
            "type, label, thread, t0_ns, t1_ns",
        ],
    );
    let own = write(
        "own.csv",
        "type,label,thread,t0_ns,t1_ns,A\n7,0.1,0,0,5,3\n",
    );
    report(&own).ok("another recorder's table");
    let out = folder.path().join("out");
    table::record(&program, &[], 2, &out, &NONE).ok("record");
    let run = &table::runs(&out)[0];
    refused(
        &report(&run.join("run.json")),
        &["a file of a recorded run", "run-0001"],
    );
}
