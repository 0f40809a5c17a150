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
    let said = tried(&program, 4, "static", &["--for", "10ms"], &[]);
    assert_eq!(said.status, 1, "{said:?}");
    let errors = said.errors();
    assert!(errors.contains("give it that by --for"), "{errors}");
}

/// A schedule that helps in its first runs only: what was lucky in the search isn't told.
const FLEETING: &str = r#"
#include <omp.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    omp_sched_t kind;
    int chunk, runs = 0;
    char name[64];
    omp_get_schedule(&kind, &chunk);
    snprintf(name, sizeof name, "runs-%x-%d", (int)kind, chunk);
    FILE *file = fopen(name, "a+");
    while (getc(file) != EOF) runs++;
    putc('.', file);
    fclose(file);
    int is_fast = (kind & 15) == omp_sched_dynamic && runs < 5;
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < 4; i++)
        usleep(is_fast ? 1000 : 40000);
    puts("done");
}
"#;

#[test]
fn what_only_the_search_saw_is_not_told() {
    // Beside other programs the search may decide nothing; then it is made again.
    for _ in 0..5 {
        let Some(program) = compile(FLEETING, "gcc -O1 -g -fopenmp") else {
            return;
        };
        let mut ours: Command = command::with_threads(4);
        ours.current_dir(program.folder.path());
        ours.args(["try", "--turns=4", "--format=json", "--"]);
        ours.arg(&program.path).env("OMP_SCHEDULE", "static");
        let said = process::run(&mut ours).ok("try");
        let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON was asked for");
        assert!(answer["best"].is_null(), "{answer:#}");
        let variants = answer["variants"].as_array().expect("a list");
        let fresh: Vec<&Value> = variants.iter().filter(|v| v["is_fresh"] == true).collect();
        for variant in &fresh {
            let most = variant["time"]["high"].as_f64();
            assert!(most > Some(-0.01), "{variant:#}");
        }
        if !fresh.is_empty() {
            return;
        }
    }
    panic!("the search found nothing five times");
}
