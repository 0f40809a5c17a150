//! `try` where the constructs are in a library: what the runtime gets there, as a library in front of it says.

use super::{line, line_of, shim};
use crate::shares::programs;
use ompfuse_tests::{command, compile, process, repository};
use serde_json::Value;
use std::path::Path;

/// Builds a source as a library, and a program without OpenMP that calls its `main`.
pub(super) fn in_library(source: &str, compiler: &str, folder: &Path) {
    let path = repository().join(format!("tests/sources/{source}.c"));
    let library = folder.join(format!("lib{source}.so"));
    let command = format!("{compiler} -shared -fPIC -O2 -g -fopenmp -Dmain=part");
    assert!(compile::files(&[path], &library, &command), "{compiler}");
    let main = folder.join("main.c");
    let text = "int part(int, char **);\nint main(int n, char **all) { return part(n, all); }\n";
    std::fs::write(&main, text).expect("there is room for a source");
    let program = folder.join("program");
    let command = format!(
        "{compiler} -O2 -L{} -Wl,-rpath,{}",
        folder.display(),
        folder.display()
    );
    let all = [main, library];
    assert!(compile::files(&all, &program, &command), "{compiler}");
}

#[test]
fn the_runtime_gets_other_values_from_a_library() {
    for (compiler, folder) in programs("settings") {
        let folder = folder.path();
        in_library("settings", compiler, folder);
        let place = format!("lib:libsettings.so:settings.c:{}", line("combined"));
        let mut command = command::with_threads(2);
        command.args(["try", "--format=json", "--turns=4", "--set"]);
        command.arg(format!("{place}: chunk=64"));
        command.arg(format!("--set={place}: grainsize=64"));
        command.arg("--set=lib:libelsewhere.so:loop: chunk=64");
        command.arg("-o").arg(folder.join("out"));
        let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
        preload.push(shim(folder));
        command
            .arg("--")
            .arg("env")
            .arg(preload)
            .arg(folder.join("program"));
        let output = process::run(&mut command).ok("try");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        for chunk in ["chunk 1", "chunk 64"] {
            let is_it = |line: &str| line.contains("dynamic") || line.contains("dispatch_init_4");
            let found = said.lines().any(|l| is_it(l) && l.ends_with(chunk));
            assert!(found, "{compiler}: {chunk}: {said}");
        }
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let reason = |at: usize| answer["variants"][at]["reason"].as_str().unwrap_or("");
        assert_eq!(answer["variants"][0]["output"], "equal", "{answer:#}");
        assert!(reason(1).starts_with("cannot set grainsize"), "{answer:#}");
        assert_eq!(reason(2), "no file with such a region was loaded");
    }
}

/// Its iterations sleep, so what helps doesn't depend on the machine.
#[test]
fn what_a_library_gains_is_found_without_a_setting() {
    for (compiler, folder) in programs("asleep") {
        let folder = folder.path();
        in_library("asleep", compiler, folder);
        let mut command = command::with_threads(4);
        command.args(["try", "--format=json", "--turns=6", "-o"]);
        command.arg(folder.join("out")).arg("--");
        let output = process::run(command.arg(folder.join("program"))).ok("try");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let begin = format!(
            "lib:libasleep.so:asleep.c:{}: chunk=",
            line_of("asleep", "chunk")
        );
        let best = answer["best"]
            .as_u64()
            .map(|at| &answer["variants"][at as usize]);
        let best = best.unwrap_or_else(|| panic!("{compiler}: {answer:#}"));
        let set = best["set"][0].as_str();
        assert!(set.is_some_and(|s| s.starts_with(&begin)), "{answer:#}");
        assert!(best["lost"].as_f64().is_some(), "{answer:#}");
        // A library isn't what --patch writes.
        let mut refused = command::with_threads(2);
        refused.args(["try", "--patch"]).arg(folder.join("tuned"));
        refused.arg(format!("--set={begin}1"));
        let refused = process::run(refused.arg("--").arg(folder.join("program")));
        let said = refused.errors();
        assert!(said.contains("about another one"), "{said}");
        assert_eq!((refused.status, said.lines().count()), (1, 1), "{said}");
    }
}
