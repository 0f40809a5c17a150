//! Several OpenMP runtimes in a process: each library's constructs are numbered by the one that executes them.

use super::{compile, record, text};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::table;
use std::collections::BTreeSet;

/// A program with a library that has another runtime. Every iteration and task is on record once, under a label of its own;
/// `lazily`: the loader binds functions when they are called.
fn with_another(program: &str, library: &str, lazily: bool) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let bind = if lazily { "-Wl,-z,lazy" } else { "-Wl,-z,now" };
    let flags = [
        "-fopenmp",
        "-fPIC",
        "-shared",
        bind,
        "-Wl,-rpath,/usr/lib/llvm-19/lib",
    ];
    let (Some(program), Some(library)) = (
        compile(
            program,
            "runtimes.c",
            &at("program"),
            &[
                "-fopenmp",
                "-DPROGRAM",
                "-ldl",
                bind,
                "-Wl,-rpath,/usr/lib/llvm-19/lib",
            ],
        ),
        compile(library, "runtimes.c", &at("work.so"), &flags),
    ) else {
        return;
    };
    let out = at("runs");
    record(&out, &[text(&program), text(&library)], &[], 1);
    let xus = table::export(&table::runs(&out)[0]);
    let labels: BTreeSet<&str> = xus.iter().map(|x| x.label.as_str()).collect();
    assert_eq!(labels.len(), xus.len(), "{xus:#?}");
    let of = |construct| xus.iter().filter(move |x| x.construct == construct);
    let iterations: u64 = of("range").map(|x| x.number("iterations")).sum();
    assert_eq!(iterations, 2 * 3 * 100, "{xus:#?}");
    assert_eq!(of("task").count(), 2 * 3 * 4, "{xus:#?}");
}

#[test]
fn a_library_with_another_runtime() {
    let clang = Matrix::get().compiler("clang").command("c");
    let clang = clang.expect("clang compiles C");
    for lazily in [true, false] {
        with_another("gcc", clang, lazily);
        with_another(clang, "gcc", lazily);
    }
}
