//! What somebody meets first: a folder that can't be written, a recording that has yet to begin, a program without OpenMP, a misspelt
//! name, threads with names.

use ompfuse_tests::{command, compile, process};
use serde_json::Value;
use std::process::Command;

const NAMES: &str = r#"
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *work(void *name) {
    pthread_setname_np(pthread_self(), name);
    #pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num()) pthread_setname_np(pthread_self(), "helper");
        usleep(3000);
    }
    return 0;
}
int main(void) {
    pthread_t threads[2];
    #pragma omp parallel num_threads(2)
    usleep(1000);
    pthread_create(&threads[0], 0, work, "decoder");
    pthread_create(&threads[1], 0, work, "encoder");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    puts("done");
}
"#;

#[test]
fn threads_have_their_names() {
    let Some(program) = compile::compile(NAMES, "gcc -O1 -g -fopenmp -pthread") else {
        return;
    };
    let out = program.folder.path().join("out");
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    process::run(record.arg("--").arg(&program.path)).ok("record");
    let report = command::report(&out);
    let regions = report["regions"].as_array().expect("regions");
    let threads = regions.iter().filter(|r| r["construct"] == "parallel");
    let threads = threads.flat_map(|r| r["per_thread"].as_array().expect("threads"));
    let mut names: Vec<&str> = threads.filter_map(|t| t["thread_name"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["decoder", "encoder", "helper"], "{report:#}");
    let trace = program.folder.path().join("trace.json");
    command::ok([
        "export".as_ref(),
        out.as_os_str(),
        "--to".as_ref(),
        "chrome".as_ref(),
        "-o".as_ref(),
        trace.as_os_str(),
    ]);
    let trace = std::fs::read_to_string(trace).expect("it was written");
    for name in names {
        assert!(trace.contains(&format!("{name} (thread ")), "{trace}");
    }
    let text = command::ok([
        "report".as_ref(),
        out.as_os_str(),
        "--show".as_ref(),
        "per-thread".as_ref(),
    ])
    .text();
    assert!(
        text.lines().any(|l| l.trim_start().starts_with("decoder ")),
        "{text}"
    );
}

const PLAIN: &str = r#"
#include <stdio.h>
__attribute__((noinline)) double work(int n) { volatile double s = 0; for (int i = 0; i < n; i++) s += i; return s; }
int main(void) { double all = 0; for (int i = 0; i < 20; i++) all += work(100000); printf("%g\n", all); }
"#;

#[test]
fn a_program_without_openmp_has_a_verdict() {
    let Some(program) = compile::compile(PLAIN, "gcc -O1 -g") else {
        return;
    };
    let first = |out: &str, options: &[&str]| {
        let out = program.folder.path().join(out);
        let mut record = command::with_threads(2);
        record.args(["record", "--events", "none", "-o"]).arg(&out);
        let recorded = process::run(record.args(options).arg("--").arg(&program.path));
        assert_eq!(
            recorded.status,
            i32::from(options.is_empty()),
            "{recorded:?}"
        );
        command::ok(["report".as_ref(), out.as_os_str()]).text()
    };
    let nothing = first("nothing", &[]);
    assert!(nothing.starts_with("Nothing was recorded"), "{nothing}");
    assert!(nothing.contains("--functions '*'"), "{nothing}");
    let functions = first("functions", &["--functions", "work"]);
    let verdict = functions.lines().take(2).collect::<Vec<_>>().join(" ");
    assert!(verdict.contains("the most work is in work"), "{functions}");
    assert!(!functions.contains("parallel coverage"), "{functions}");
    assert!(!functions.contains("efficiency"), "{functions}");
    // What is misspelt is named.
    let mut typo = command::with_threads(2);
    typo.args(["record", "-o"])
        .arg(program.folder.path().join("typo"));
    let typo = process::run(typo.args(["--functions", "wrok", "--"]).arg(&program.path));
    assert!(typo.errors().contains("(did you mean work?)"), "{typo:?}");
    let out = program.folder.path().join("functions");
    let region = command::run([
        "report".as_ref(),
        out.as_os_str(),
        "--region".as_ref(),
        "wrok".as_ref(),
    ]);
    assert_eq!(region.status, 1, "{region:?}");
    assert!(
        region.errors().contains("(did you mean work?)"),
        "{region:?}"
    );
}

/// Neither a home nor a folder for temporary files, for a program and for a dormant copy.
#[test]
fn no_other_folder_is_needed() {
    let source = "int main(void) {\n#pragma omp parallel\n__asm__(\"\");\nreturn 0; }\n";
    let Some(program) = compile::compile(source, "gcc -O1 -fopenmp") else {
        return;
    };
    let folder = program.folder.path();
    let copy = folder.join("dormant");
    command::ok([
        "patch".as_ref(),
        program.path.as_os_str(),
        "--dormant".as_ref(),
        "-o".as_ref(),
        copy.as_os_str(),
    ]);
    let without = |folder: &std::path::Path| {
        let mut command = command::with_threads(2);
        command
            .env("XDG_CACHE_HOME", "/proc/self/none")
            .env("TMPDIR", "/proc/self/none");
        command.current_dir(folder);
        command
    };
    for (out, program) in [("a", &program.path), ("b", &copy)] {
        let mut record = without(folder);
        record.args(["record", "--events", "none", "-o", out, "--"]);
        process::run(record.arg(program)).ok("record");
        command::ok(["report".as_ref(), folder.join(out).as_os_str()]);
    }
    let left = std::fs::read_dir(folder).expect("it can be listed");
    let mut left = left.map(|f| f.expect("a file").file_name());
    assert!(!left.any(|name| name.to_string_lossy().starts_with('.')));
    // Where nothing can be written at all, the remedy is in the line.
    let mut record = without("/proc".as_ref());
    record
        .args(["record", "--events", "none", "--"])
        .arg(&program.path);
    let refused = process::run(&mut record);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.errors().contains("set XDG_CACHE_HOME"),
        "{refused:?}"
    );
}

#[test]
fn watch_waits_for_a_recording() {
    let source = "#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n#pragma omp parallel\nusleep(1);\nputs(\"go\"); fflush(stdout); sleep(3); return 0; }\n";
    let Some(program) = compile::compile(source, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let out = program.folder.path().join("out");
    let mut record = command::with_threads(2);
    record
        .args(["record", "--events", "none", "-o"])
        .arg(&out)
        .arg("--")
        .arg(&program.path);
    let watching = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            command::run([
                "watch".as_ref(),
                out.as_os_str(),
                "--serve".as_ref(),
                "127.0.0.1:0".as_ref(),
            ])
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        process::run(&mut record).ok("record");
        watch.join().expect("it ends")
    });
    let said = watching.errors();
    assert_eq!(watching.status, 0, "{watching:?}");
    assert!(said.contains("waiting for a recording in "), "{said}");
    assert!(said.contains(" has ended"), "{said}");
    assert!(watching.text().contains("parallel"), "{watching:?}");
}

/// Both ways to ask for JSON, and a metric that no baseline has.
#[test]
fn doctor_has_the_option_that_others_have() {
    let mut doctor = Command::new(command::path());
    let answer = process::run(process::clean(&mut doctor, 2).args(["doctor", "--format", "json"]));
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    assert!(answer["checks"].is_array(), "{answer}");
}
