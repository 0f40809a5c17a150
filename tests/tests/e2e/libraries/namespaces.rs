//! Libraries that a program opens in a link namespace of their own (`dlmopen`), with a C library and an OpenMP runtime of their own.

use super::{compile, record, text};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{command, process, table};

/// Threads that call both, and end, do as in the original, which gets by with the numbers that its keys have.
#[test]
fn two_c_libraries() {
    let clang = Matrix::get().compiler("clang").command("c");
    let clang = clang.expect("clang compiles C");
    let shared = ["-fopenmp", "-fPIC", "-shared"];
    let whole = ["-fopenmp", "-DPROGRAM", "-ldl"];
    // libomp twice in a process ends it, and so does libgomp in a namespace beside libomp where threads end.
    for library in ["gcc", clang] {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let at = |name: &str| folder.path().join(name);
        let rpath = "-Wl,-rpath,/usr/lib/llvm-19/lib";
        let (Some(program), Some(library)) = (
            compile("gcc", "namespaces.c", &at("program"), &whole),
            compile(
                library,
                "namespaces.c",
                &at("work.so"),
                &[&shared[..], &[rpath]].concat(),
            ),
        ) else {
            continue;
        };
        let recorded = record(&at("runs"), &[text(&program), text(&library)], &[], 3);
        let said = recorded.errors();
        let apart = said
            .lines()
            .filter(|l| l.contains("work.so was opened by its path in another link namespace"));
        assert_eq!(apart.count(), 1, "{said}");
    }
}

/// What is found by its name is recorded there as well, and threads that both record end.
#[test]
fn two_recordings() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let (Some(program), Some(_)) = (
        compile(
            "gcc",
            "namespaces.c",
            &at("program"),
            &["-fopenmp", "-DPROGRAM", "-ldl"],
        ),
        compile(
            "gcc",
            "namespaces.c",
            &at("work.so"),
            &["-fopenmp", "-fPIC", "-shared"],
        ),
    ) else {
        return;
    };
    let path = [("LD_LIBRARY_PATH", text(folder.path()))];
    let recorded = record(&at("runs"), &[text(&program), "work.so"], &path, 2);
    let said = recorded.errors();
    assert!(said.contains("work.so: 2 constructs"), "{said}");
    assert!(!said.contains("namespace"), "{said}");
    let xus = table::export(&table::runs(&at("runs"))[0]);
    let iterations: u64 = xus.iter().map(|x| x.number("iterations")).sum();
    assert_eq!(iterations, 50 * (1 + 11 * 3), "{xus:#?}");
}

/// Nobody says that nothing calls OpenMP.
#[test]
fn nothing_but_a_library_apart() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let shared = ["-fopenmp", "-fPIC", "-shared"];
    let (Some(program), Some(library)) = (
        compile(
            "gcc",
            "namespaces.c",
            &at("program"),
            &["-DPROGRAM", "-ldl"],
        ),
        compile("gcc", "namespaces.c", &at("work.so"), &shared),
    ) else {
        return;
    };
    let mut recorder = command::with_threads(2);
    recorder.arg("record").arg("-o").arg(at("runs"));
    let recorded = process::run(recorder.arg("--").arg(&program).arg(&library));
    let said = recorded.errors();
    assert_eq!(recorded.status, 1, "{said}");
    assert!(recorded.text().contains("total 41650"), "{recorded:?}");
    assert!(said.contains("work.so was opened by its path"), "{said}");
    assert!(
        said.contains("nothing was recorded") && !said.contains("neither"),
        "{said}"
    );
}
