//! What `try` proposes without a copy of the program, and where it doesn't begin at all.

use ompfuse_tests::compile::{Program, compile};
use ompfuse_tests::{command, process};
use serde_json::Value;
use std::process::Command;

/// A loop of the schedule that a variable tells, whose first iterations take long; and teams that are started for nothing.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int small[12];
int main(int argc, char **argv)
{
    long sum = 0;
    if (argc > 1)
        for (int k = 0; k < atoi(argv[1]); k++) {
#pragma omp parallel for
            for (int i = 0; i < 12; i++) small[i] += i ^ k;
        }
    else {
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
        for (int i = 0; i < 32; i++) {
            usleep(i < 8 ? 10000 : 100);
            sum += i;
        }
    }
    printf("%ld %d\n", sum, small[3]);
}
"#;

/// The answer's variants, and the best one's name.
fn tried(
    program: &Program,
    threads: usize,
    schedule: &str,
    options: &[&str],
    args: &[&str],
) -> process::Output {
    let out = program.folder.path().join("tried");
    let _ = std::fs::remove_dir_all(&out);
    let mut ours: Command = command::with_threads(threads);
    ours.arg("try").args(options).arg("-o").arg(&out);
    ours.args(["--format", "json", "--"])
        .arg(&program.path)
        .args(args);
    process::run(ours.env("OMP_SCHEDULE", schedule))
}

#[test]
fn a_schedule_that_a_variable_tells_is_tried() {
    let Some(program) = compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let said = tried(&program, 4, "static", &[], &[]).ok("try");
    let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON was asked for");
    let best = answer["best"].as_u64().expect("one is faster") as usize;
    let env = &answer["variants"][best]["env"];
    let is_dynamic = env.to_string().contains("OMP_SCHEDULE=dynamic,1");
    let is_guided = env.to_string().contains("OMP_SCHEDULE=guided");
    assert!(is_dynamic || is_guided, "{answer:#}");
    // 8 of 80 ms are on one thread of four before.
    let time = answer["variants"][best]["time"]["change"].as_f64();
    assert!(time < Some(-0.4), "{answer:#}");
}

#[test]
fn teams_that_cost_more_than_their_work_are_tried_without() {
    let Some(program) = compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let said = tried(&program, 4, "static", &[], &["2000"]).ok("try");
    let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON was asked for");
    // A variable that says the same may be the best.
    assert!(answer["best"].is_u64(), "{answer:#}");
    let mut variants = answer["variants"].as_array().expect("a list").iter();
    let serial = variants.find(|v| v["set"].to_string().contains(": serial"));
    let change = serial.and_then(|v| v["time"]["change"].as_f64());
    assert!(change < Some(-0.5), "{answer:#}");
}

#[test]
fn a_budget_that_decides_nothing_is_not_spent() {
    let Some(program) = compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let said = tried(&program, 4, "static", &["--budget", "10ms"], &[]);
    assert_eq!(said.status, 1, "{said:?}");
    let errors = said.errors();
    assert!(errors.contains("give such a --budget"), "{errors}");
}
