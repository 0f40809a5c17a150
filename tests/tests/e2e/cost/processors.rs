//! Processors that threads lack.

use super::{COMPILERS, list};
use ompfuse_tests::{command, compile, each, few, process, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Each thread computes the same; the program tells the wall time of its threads' parts, and their processor time.
const COMPUTE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    double wall = 0, processor = 0;
    #pragma omp parallel reduction(+ : wall, processor)
    {
        double w = now(CLOCK_MONOTONIC), p = now(CLOCK_THREAD_CPUTIME_ID);
        volatile double x = 1;
        for (long i = 0; i < rounds; i++)
            x = x * 0.999 + 1;
        processor += now(CLOCK_THREAD_CPUTIME_ID) - p;
        wall += now(CLOCK_MONOTONIC) - w;
    }
    printf("%.9f %.9f\n", wall, processor);
}
"#;

/// A text's words, wherever its lines end.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What part of the time in which threads work in regions they don't run is what the program itself finds.
const STARVED: &str = "threads had no processor for at least";

/// Records the program with so many threads, these variables, and behind this command; what part of the time its threads didn't run,
/// as it says itself, and the report. That agrees with it.
fn run(
    program: &Path,
    out: &Path,
    (threads, set, on): (&str, &[(&str, &str)], &[&str]),
    rounds: &str,
) -> (f64, Value, String) {
    let mut record = command::with_threads(2);
    record.env("OMP_NUM_THREADS", threads).envs(set.to_vec());
    record.args(["record", "--events", "none", "-o"]).arg(out);
    record.arg("--").args(on).arg(program).arg(rounds);
    let text = process::run(&mut record).ok("record").text();
    let times: Vec<f64> = (text.split_whitespace())
        .map(|t| t.parse().expect("a number"))
        .collect();
    let run = table::runs(out).pop().expect("a run was recorded");
    let report = command::report(&run);
    let text = command::ok([Path::new("report"), &run]).text();
    let own = 1.0 - times[1] / times[0];
    let said = report["running"]["not_running"].as_f64();
    let said = said.unwrap_or_else(|| panic!("nothing is known: {report}"));
    // A short part may be over before the program's own clock is read on a busy machine.
    assert!(
        times[0] < 0.05 || (said - own).abs() < 0.1,
        "{said} and {own}: {report}"
    );
    // Computing threads don't sleep: who was not running had no processor.
    let without = report["running"]["without_processor_s"].as_f64();
    let without = without.expect("the kernel tells it, and no thread ended before");
    let share = without / report["running"]["worked_s"].as_f64().expect("seconds");
    // It is the least, since who waits may lack a processor, too.
    assert!(
        times[0] < 0.05 || share <= said + 0.1,
        "{share} of {said}: {report}"
    );
    assert_eq!(report["running"]["is_starved"], share >= 0.05, "{report}");
    assert_eq!(text.contains(STARVED), share >= 0.05, "{text}");
    (own, report, text)
}

/// No test can make a quota or a hypervisor that takes time. Here the run's header tells of both.
fn check_stolen(folder: &Path) {
    let header = folder.join("run.json");
    let text = std::fs::read_to_string(&header).expect("a header");
    let mut edited: Value = serde_json::from_str(&text).expect("JSON");
    edited["quota"] = 1.0.into();
    std::fs::write(&header, edited.to_string()).expect("a header can be written");
    // A quota that never stopped the program isn't why it waited.
    let text = command::ok([Path::new("report"), folder]).text();
    assert!(!text.contains("quota"), "{text}");
    edited["throttled_s"] = 0.1.into();
    let seconds = edited["duration_s"].as_f64().expect("it ended");
    edited["stolen_s"] = (seconds * edited["cpus"].as_f64().expect("a number") / 4.0).into();
    std::fs::write(&header, edited.to_string()).expect("a header can be written");
    let text = command::ok([Path::new("report"), folder]).text();
    for said in [
        "4 threads share 1 processor, the quota of the control group",
        "raise the quota",
        "the hypervisor took 25",
    ] {
        assert!(words(&text).contains(said), "{said}: {text}");
    }
}

/// The variable is named only where nobody else had the processors: fewer threads would get less of them.
fn check_advice(report: &Value, text: &str) {
    let running = &report["running"];
    let is_alone = running["sharing"] == "own" && running["taken"].as_f64() <= Some(0.05);
    let is_advised = text.contains("OMP_NUM_THREADS=1");
    assert!(!is_advised || is_alone, "{running}: {text}");
}

/// Threads that compute with a `num_threads` of the source, in teams inside teams, or that sleep. It says how long threads worked, and
/// how much of that they slept as they were asked to.
const KINDS: &str = r#"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void compute(long rounds) {
    volatile double x = 1;
    for (long i = 0; i < rounds; i++)
        x = x * 0.999 + 1;
}
int main(int argc, char **argv) {
    double worked = 0, slept = 0;
    omp_set_max_active_levels(2);
    switch (argv[1][0]) {
    case 'c':
        #pragma omp parallel num_threads(4)
        compute(20000000);
        break;
    case 'n':
        #pragma omp parallel num_threads(4)
        {
            #pragma omp parallel num_threads(4)
            compute(5000000);
        }
        break;
    default:
        for (int step = 0; step < 20; step++) {
            #pragma omp parallel reduction(+ : worked, slept)
            {
                double begin = now();
                struct timespec nap = {0, 5000000};
                nanosleep(&nap, 0);
                slept += 0.005;
                worked += now() - begin;
            }
        }
    }
    printf("%.9f %.9f\n", worked, slept);
}
"#;

/// Records one of [`KINDS`] on one processor: what it says, the report and its text.
fn on_one(program: &Path, out: &Path, kind: &str) -> ([f64; 2], Value, String) {
    let mut record = command::with_threads(4);
    record.args(["record", "--events", "none", "-o"]).arg(out);
    record
        .args(["--", "taskset", "-c", "0"])
        .arg(program)
        .arg(kind);
    let text = process::run(&mut record).ok("record").text();
    let times: Vec<f64> = (text.split_whitespace())
        .map(|t| t.parse().expect("a number"))
        .collect();
    let run = table::runs(out).pop().expect("a run was recorded");
    let report = command::report(&run);
    let text = command::ok([Path::new("report"), &run]).text();
    ([times[0], times[1]], report, text)
}

/// What is told is no more than what is lost.
fn check_sum(report: &Value) {
    let losses = list(report, "losses");
    let told: f64 = losses.iter().filter_map(|l| l["seconds"].as_f64()).sum();
    let lost = report["lost_s"].as_f64().expect("it is known");
    assert!(told <= 1.001 * lost + 1e-6, "{told} of {lost}: {report}");
}

#[test]
fn the_variable_is_not_blamed_for_what_it_does_not_decide() {
    if !ompfuse_tests::has("taskset") {
        return;
    }
    for (_, program) in each(few(&COMPILERS, 2), |how| compile::compile(KINDS, how)) {
        let out = program.folder.path().join("runs");
        for (kind, threads) in [("clause", 4), ("nested", 16)] {
            let (_, report, text) = on_one(&program.path, &out, kind);
            assert_eq!(report["running"]["threads"], threads, "{report}");
            let losses = list(&report, "losses");
            let lacking = losses.iter().find(|l| l["cause"]["kind"] == "no_processor");
            let lacking = lacking.unwrap_or_else(|| panic!("{kind}: {text}"));
            assert!(lacking["share"].as_f64() > Some(0.2), "{kind}: {text}");
            assert!(!text.contains("OMP_NUM_THREADS="), "{kind}: {text}");
            assert!(
                !text.contains("more threads (num_threads"),
                "{kind}: {text}"
            );
            check_sum(&report);
        }
    }
}

#[test]
fn who_sleeps_beside_others_keeps_its_threads() {
    if !ompfuse_tests::has("taskset") {
        return;
    }
    for (_, program) in each(few(&COMPILERS, 2), |how| compile::compile(KINDS, how)) {
        let out = program.folder.path().join("runs");
        let spin = ["-c", "0", "sh", "-c", "while :; do :; done"];
        let mut beside =
            [0; 2].map(|_| Command::new("taskset").args(spin).spawn().expect("it runs"));
        let ([worked, slept], report, text) = on_one(&program.path, &out, "sleep");
        for process in &mut beside {
            process
                .kill()
                .and_then(|()| process.wait())
                .expect("it runs");
        }
        assert!(!text.contains("OMP_NUM_THREADS="), "{text}");
        assert!(!text.contains("OMP_THREAD_LIMIT="), "{text}");
        let running = &report["running"];
        let share = |what: &str| {
            let seconds = |what: &str| running[what].as_f64().expect("it is known");
            seconds(what) / seconds("worked_s")
        };
        // Longer than asked for it was asleep, or woken and without a processor.
        let late = 1.0 - slept / worked;
        let without = share("without_processor_s");
        assert!(without <= late + 0.15, "{without} of {late}: {running}");
        assert!(text.lines().count() <= 40, "{text}");
        check_sum(&report);
    }
}

#[test]
fn missing_processors_are_said_and_others_are_not() {
    if !ompfuse_tests::has("taskset") {
        return;
    }
    for (_, program) in each(few(&COMPILERS, 1), |how| compile::compile(COMPUTE, how)) {
        let out = program.folder.path().join("runs");
        let run = |threads: &str, set: &[(&str, &str)], on: &[&str], rounds: &str| {
            run(&program.path, &out, (threads, set, on), rounds)
        };
        let (own, report, text) = run("4", &[], &["taskset", "-c", "0"], "20000000");
        assert!(own > 0.5, "four threads on a processor: {own}");
        assert_eq!(
            report["running"]["processors"], 1.0,
            "{}",
            report["running"]
        );
        assert_eq!(report["running"]["threads"], 4, "{}", report["running"]);
        assert_eq!(
            report["running"]["limit"], "affinity",
            "{}",
            report["running"]
        );
        // In front of all tables.
        let first = text.split_once(STARVED).expect("it is said");
        assert!(!first.0.contains("threads went"), "{text}");
        check_advice(&report, &text);
        let first = &list(&report, "losses")[0];
        assert_eq!(first["cause"]["kind"], "no_processor", "{first}");
        assert!(first["share"].as_f64() > Some(0.4), "{first}");
        check_stolen(&table::runs(&out).pop().expect("it was recorded"));
        let beside = ["-c", "0", "sh", "-c", "while :; do :; done"];
        let beside = Command::new("taskset").args(beside).spawn();
        let mut beside = beside.expect("taskset is there");
        let (_, _, text) = run("1", &[], &["taskset", "-c", "0"], "20000000");
        beside.kill().and_then(|()| beside.wait()).expect("it runs");
        assert!(
            words(&text).contains("1 thread may use 1 processor, and other programs used it too"),
            "{text}"
        );
        assert!(
            !text.contains("=1 "),
            "one thread has nothing to share: {text}"
        );
        let bound = [("OMP_PROC_BIND", "true"), ("OMP_PLACES", "{0}")];
        let (_, report, text) = run("2", &bound, &[], "20000000");
        assert_eq!(
            report["running"]["limit"], "binding",
            "{}",
            report["running"]
        );
        // On a busy machine others may have been there.
        let is_own = report["running"]["sharing"] == "own";
        assert!(
            !is_own || text.contains("2 threads are bound to 1 processor"),
            "{text}"
        );
        // On a busy machine it takes a while until two threads have their processors for so long.
        let undisturbed = (0..40).find_map(|_| {
            let (own, report, text) = run("2", &[], &[], "4000000");
            (own < 0.03 && report["running"]["not_running"].as_f64() < Some(0.03))
                .then_some((report, text))
        });
        let Some((report, text)) = undisturbed else {
            ompfuse_tests::tools::mention("this machine is too busy for two threads at once");
            continue;
        };
        assert_eq!(report["running"]["is_starved"], false);
        assert!(!text.contains(STARVED), "{text}");
    }
}
