//! Variables of the environment that a run asks for.

use ompfuse_tests::compile::compile;
use ompfuse_tests::{command, process, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Computes for a while on teams of the size that a clause says; with an argument in teams inside of teams.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
static double work(int n)
{
    volatile double x = 1;
    for (int i = 0; i < n; i++) x = x * 0.5 + i;
    return x;
}
int main(int argc, char **argv)
{
    double sum = 0;
    if (argc > 1) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
        for (int k = 0; k < 20; k++) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
            { usleep(2000); sum += work(1000); }
        }
    } else {
#pragma omp parallel num_threads(64) reduction(+ : sum)
        sum += work(2000000);
    }
    printf("%d\n", sum > 0);
    return 0;
}
"#;

/// What is to be tried of a run with a variable.
fn to_try(program: &Path, args: &[&str], variable: (&str, &str)) -> Value {
    let out = program.with_file_name("recorded");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(2);
    record.env(variable.0, variable.1).args(["record", "-o"]);
    process::run(record.arg(&out).arg("--").arg(program).args(args)).ok("record");
    let run = table::runs(&out).pop().expect("a run was recorded");
    command::report(run)["to_try"].clone()
}

#[test]
fn clauses_ask_for_a_limit_and_nested_regions_for_one_level() {
    let Some(program) = compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(processors < 64, "the program has more threads");
    let names = to_try(&program.path, &[], ("OMP_DYNAMIC", "false")).to_string();
    assert!(names.contains("OMP_THREAD_LIMIT="), "{names}");
    assert!(!names.contains("OMP_NUM_THREADS"), "{names}");
    let nested = ("OMP_MAX_ACTIVE_LEVELS", "2");
    let names = to_try(&program.path, &["nested"], nested).to_string();
    assert!(names.contains("OMP_MAX_ACTIVE_LEVELS=1"), "{names}");
    let flat = ("OMP_MAX_ACTIVE_LEVELS", "1");
    let names = to_try(&program.path, &["nested"], flat).to_string();
    assert!(!names.contains("OMP_MAX_ACTIVE_LEVELS"), "{names}");
}

/// Runtimes warn of values that they don't know.
#[test]
fn both_runtimes_accept_the_values() {
    let values = [
        ("OMP_PROC_BIND", "close"),
        ("OMP_PROC_BIND", "spread"),
        ("OMP_PLACES", "cores"),
        ("OMP_MAX_ACTIVE_LEVELS", "1"),
        ("OMP_THREAD_LIMIT", "2"),
        ("OMP_WAIT_POLICY", "passive"),
        ("OMP_SCHEDULE", "dynamic,16"),
        ("OMP_SCHEDULE", "guided"),
    ];
    let source =
        "static volatile int n;\nint main(void) {\n#pragma omp parallel\n n = 1;\n return 0; }";
    for compiler in ["gcc", "clang-19"] {
        let Some(program) = compile(source, &format!("{compiler} -O1 -fopenmp")) else {
            continue;
        };
        for (name, value) in values {
            let mut run = Command::new(&program.path);
            let said = process::run(process::clean(&mut run, 2).env(name, value)).ok("it");
            assert_eq!(said.errors(), "", "{compiler}: {name}={value}");
        }
        let mut run = Command::new(&program.path);
        run.env("OMP_SCHEDULE", "nonsense");
        let said = process::run(&mut run).errors();
        assert!(!said.is_empty(), "{compiler} says what it doesn't know");
    }
}
