//! Barriers and `taskwait` that one side has.

use super::{diff, recorded};
use ompfuse_tests::compile;
use serde_json::Value;
use std::path::Path;

/// Two loops with a barrier behind the first one, tasks that are waited for, and a barrier of the source.
const PROGRAM: &str = "
#include <stdio.h>
static double a[400];
static long n;
__attribute__((noinline)) static void work(void) {
    #pragma omp parallel
    {
        #pragma omp for schedule(static)
        for (int i = 0; i < 400; i++) a[i] += i;
        #pragma omp for schedule(static) nowait
        for (int i = 0; i < 400; i++) a[i] *= 2;
        #pragma omp single
        {
            for (int t = 0; t < 4; t++) {
                #pragma omp task
                __atomic_fetch_add(&n, 1, 0);
            }
            #pragma omp taskwait
            n++;
        }
        #pragma omp master
        n++;
        #pragma omp barrier
        a[1] += n;
    }
}
int main(void) {
    for (int r = 0; r < 5; r++) work();
    printf(\"%g\\n\", a[7]);
}
";

/// The same with text put before the first line that has `before`, or without that line.
fn changed(before: &str, added: Option<&str>) -> String {
    let mut lines: Vec<&str> = PROGRAM.lines().collect();
    let at = lines.iter().position(|l| l.contains(before));
    let at = at.expect("the program has it");
    match added {
        Some(added) => lines.insert(at, added),
        None => drop(lines.remove(at)),
    }
    lines.join("\n")
}

fn json(sides: [&Path; 2], gates: &[&str]) -> (i32, Value) {
    let mut options = vec!["--format", "json"];
    for gate in gates {
        options.extend(["--fail-on", gate]);
    }
    let output = diff(sides, &options);
    let json = serde_json::from_str(&output.text());
    let json = json.unwrap_or_else(|e| panic!("{e}: {output:?}"));
    (output.status, json)
}

/// What a comparison tells of waits: those of one side, and those that are executed more or less often.
fn told(diff: &Value) -> Vec<String> {
    let of = |region: &Value| {
        format!(
            "{} {}",
            region["construct"].as_str().unwrap_or(""),
            region["line"]
        )
    };
    let is_wait = |region: &Value| {
        ["\"barrier\"", "\"taskwait\""].contains(&&*region["construct"].to_string())
    };
    let mut told = vec![];
    for side in ["only_a", "only_b"] {
        let lone = diff[side].as_array().expect("a list").iter();
        let lone = lone.filter(|l| is_wait(&l["key"]));
        told.extend(lone.map(|l| {
            format!(
                "{side} {} {}",
                of(&l["key"]),
                l["executions"].as_f64().unwrap_or(0.0)
            )
        }));
    }
    for pair in diff["pairs"].as_array().expect("a list") {
        let mut changes = pair["changes"].as_array().expect("a list").iter();
        if is_wait(&pair["b"][0]) && changes.any(|c| c["finding"] == "changed") {
            told.push(format!("pair {}", of(&pair["b"][0])));
        }
    }
    told
}

const GATES: [&str; 2] = ["executions!=", "new-regions>0"];

fn added_and_removed(compiler: &str, flags: &str) {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let record = |name: &str, source: &str| {
        let program = compile::compile(source, &format!("{compiler} {flags} -fopenmp"))?;
        Some(recorded(
            folder.path(),
            name,
            &program.path,
            &["--events", "none"],
        ))
    };
    let Some(before) = record("before", PROGRAM) else {
        return;
    };
    let second = "#pragma omp for schedule(static) nowait";
    let barrier =
        record("barrier", &changed(second, Some("#pragma omp barrier"))).expect("it compiles");
    let none = record("none", &changed("taskwait", None)).expect("it compiles");
    let again = record("again", PROGRAM).expect("it compiles");
    let has_lines = flags.contains("-g");
    let at = |line: usize| {
        if has_lines {
            Value::from(line)
        } else {
            Value::Null
        }
    };

    // Five times, two threads.
    let (status, diff) = json([&before, &barrier], &GATES);
    let expected = match has_lines {
        true => "only_b barrier 10 10".to_owned(),
        false => "pair barrier null".to_owned(),
    };
    assert_eq!(told(&diff), [expected], "{compiler} {flags}: {diff:#}");
    let holds = |diff: &Value| -> Vec<bool> {
        let gates = diff["gates"].as_array().expect("a list").iter();
        gates.map(|g| g["verdict"]["is"] == "holds").collect()
    };
    assert_eq!(status, 3);
    assert_eq!(
        holds(&diff),
        [true, has_lines],
        "{compiler} {flags}: {diff:#}"
    );

    let (status, diff) = json([&before, &none], &GATES);
    assert_eq!(
        told(&diff),
        [format!("only_a taskwait {} 5", at(18))],
        "{compiler} {flags}: {diff:#}"
    );
    assert_eq!((status, holds(&diff)), (3, vec![true, false]));

    let (status, diff) = json([&before, &again], &GATES);
    assert_eq!(told(&diff), [""; 0], "{compiler} {flags}");
    assert_eq!(status, 0, "{compiler} {flags}: {diff:#}");
}

#[test]
fn barriers_and_taskwaits_that_one_side_has_are_told() {
    for (compiler, flags) in [
        ("gcc", "-O1 -g"),
        ("clang-19", "-O1 -g"),
        ("gcc", "-O1 -s"),
        ("clang-19", "-O1 -s"),
    ] {
        added_and_removed(compiler, flags);
    }
}

#[test]
fn compilers_that_tell_other_barriers_apart_show_none() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let record = |name: &str, command: &str| {
        let program = compile::compile(PROGRAM, command)?;
        Some(recorded(
            folder.path(),
            name,
            &program.path,
            &["--events", "none"],
        ))
    };
    let gcc = record("gcc", "gcc -O1 -g -fopenmp");
    let clang = record("clang", "clang-19 -O1 -g -fopenmp");
    let (Some(gcc), Some(clang)) = (gcc, clang) else {
        return;
    };
    for sides in [[gcc.as_path(), clang.as_path()], [&clang, &gcc]] {
        let (status, diff) = json(sides, &GATES);
        assert_eq!(told(&diff), [""; 0], "{diff:#}");
        assert_eq!(status, 0, "{diff:#}");
        let text = super::text(&super::diff(sides, &[]));
        assert!(!text.contains("Only in"), "{text}");
    }
    // One compiler at two levels.
    let slow = record("slow", "gcc -O0 -g -fopenmp").expect("it was there before");
    let (status, diff) = json([&slow, &gcc], &GATES);
    assert_eq!((status, told(&diff)), (0, vec![]), "{diff:#}");
}

#[test]
fn text_names_what_one_side_has() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let sources = [
        PROGRAM.to_owned(),
        changed("#pragma omp master", Some("#pragma omp barrier")),
    ];
    let programs = sources.map(|source| compile::compile(&source, "gcc -O1 -g -fopenmp"));
    let [Some(a), Some(b)] = programs else { return };
    let simulate = ["--simulate", "--events", "sim-instructions"];
    if !ompfuse_tests::has("qemu-x86_64") {
        return;
    }
    let a = recorded(folder.path(), "a", &a.path, &simulate);
    let b = recorded(folder.path(), "b", &b.path, &simulate);
    let text = super::text(&super::diff([&a, &b], &[]));
    assert!(text.contains("Only in B: 1 region"), "{text}");
    assert!(
        text.contains("barrier program.c:21 (executed 10 times)"),
        "{text}"
    );
}
