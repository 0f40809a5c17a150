//! Installed software, as distributions build it.

use super::{compile, executions, record, text};
use ompfuse_tests::counted::total;
use ompfuse_tests::{command, process, skip};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The path of an installed program or library.
fn installed(path: &str) -> bool {
    let found = Path::new(path).exists();
    if !found {
        skip(&format!("{path} is not installed"));
    }
    found
}

/// Installed software, profiled as it is. Returns the report.
#[track_caller]
fn real(command: &[&str], env: &[(&str, &str)], module: &str) -> Value {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    record(folder.path(), command, env, 2);
    let report = command::report(text(folder.path()));
    assert!(executions(&report, module, "parallel") > 0, "{report:#}");
    for thread in report["accounting"].as_array().expect("a list") {
        assert_eq!(thread["balanced"], true, "{thread}");
    }
    report
}

#[test]
fn graphicsmagick() {
    if !installed("/usr/bin/gm") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a picture");
    let picture = folder.path().join("picture.ppm");
    let lines = format!(
        "gm convert -size 200x150 gradient:red-blue -blur 0x3 {0} && sha256sum {0}",
        text(&picture)
    );
    let report = real(
        &["/bin/sh", "-c", &lines],
        &[],
        "libGraphicsMagick-Q16.so.3",
    );
    let xus = report["xus"].as_u64().expect("a number");
    assert!(xus > 0, "{report:#}");
}

#[test]
fn fftw() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    if !installed("/usr/include/fftw3.h") {
        return;
    }
    let out = folder.path().join("fft");
    let Some(fft) = compile("gcc", "fft.c", &out, &["-lfftw3_omp", "-lfftw3"]) else {
        return;
    };
    let report = real(&[text(&fft)], &[], "libfftw3_omp.so.3");
    // Three executions of a plan; every region divides its loop among two threads.
    let parallel = executions(&report, "libfftw3_omp.so.3", "parallel");
    assert!(parallel.is_multiple_of(3), "{report:#}");
    assert_eq!(report["xus"], 2 * parallel);
    assert_eq!(report["unmatched"], Value::Array(Vec::new()), "{report:#}");
}

#[test]
fn numpy_with_openblas() {
    let openblas = "/usr/lib/x86_64-linux-gnu/openblas-openmp";
    if !installed(openblas) || !installed("/usr/lib/python3/dist-packages/numpy") {
        return;
    }
    let lines = "import numpy as n\n\
                 a = n.arange(90000.0).reshape(300, 300) % 7 + n.eye(300)\n\
                 for i in range(5): b = a @ a\n\
                 print(b.sum(), abs(n.linalg.inv(a) @ a - n.eye(300)).max() < 1e-6)";
    let command = ["/usr/bin/python3", "-c", lines];
    let env = [("LD_LIBRARY_PATH", openblas)];
    let report = real(&command, &env, "libopenblas.so.0");
    assert_eq!(report["unmatched"], Value::Array(Vec::new()), "{report:#}");
}

/// Installed software on one thread, with its instructions counted: twice the same, and the output is the original's. More such programs
/// are in `tests/programs.py`.
#[track_caller]
fn counted(line: &str) {
    let one = |command: &mut Command| {
        process::clean(command, 1).env("OMP_THREAD_LIMIT", "1");
        process::run(command)
    };
    let alone = one(Command::new("/bin/sh").args(["-c", line]));
    let folder = tempfile::tempdir().expect("there is room for runs");
    let count = |name: &str| {
        let out = folder.path().join(name);
        let mut record = command::with_threads(1);
        record.args(["record", "-q", "--count", "--events", "none", "-o"]);
        record.arg(&out).args(["--", "/bin/sh", "-c", line]);
        let said = one(&mut record);
        let of = |output: &process::Output| (output.status, output.text());
        assert_eq!(of(&said), of(&alone), "{line}: {said:?}");
        total(&command::report(&out))
    };
    let counts = [count("first"), count("second")];
    assert!(counts[0] > 0, "{line}");
    assert_eq!(counts[0], counts[1], "{line}");
}

#[test]
fn a_picture_is_counted() {
    if !installed("/usr/bin/gm") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a picture");
    let picture = folder.path().join("picture.ppm");
    counted(&format!(
        "gm convert -size 200x150 gradient:red-blue -blur 0x3 {0} && sha256sum {0}",
        text(&picture)
    ));
}

#[test]
fn a_fourier_transform_is_counted() {
    if !installed("/usr/include/fftw3.h") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let out = folder.path().join("fft");
    if let Some(fft) = compile("gcc", "fft.c", &out, &["-lfftw3_omp", "-lfftw3"]) {
        counted(text(&fft));
    }
}
