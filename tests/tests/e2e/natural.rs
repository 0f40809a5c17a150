//! Natural loops as regions: iterations are those that callgrind counts, executions and most iterations those that programs count themselves,
//! and the programs behave as before.

use ompfuse_tests::{command, has, process, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Counts its own loops: each prints `name executions iterations most`.
const OWN: &str = r#"
#include <setjmp.h>
#include <stdio.h>
#define KEPT __attribute__((noinline))
#define HERE(x) __asm__ volatile("" : "+r"(x))
static struct { const char *name; long execs, all, most, now; } loops[8];
static void enter(int l) { loops[l].execs++; loops[l].now = 0; }
static void turn(int l) { loops[l].all++; if (++loops[l].now > loops[l].most) loops[l].most = loops[l].now; }
static int data[100];
KEPT int flat(int n) { int s = 0; if (n > 0) enter(0); for (int i = 0; i < n; i++) { turn(0); s += i; HERE(s); } return s; }
KEPT int inner(int n) {
    int s = 0;
    if (n > 0) enter(1);
    for (int i = 0; i < n; i++) {
        turn(1);
        enter(2);
        int j = 0;
        do { turn(2); s += j; HERE(s); } while (++j <= i);
    }
    return s;
}
KEPT int early(int x) { enter(3); for (int i = 0;; i++) { turn(3); if (data[i] == x) return i; HERE(i); } }
KEPT int again(int depth) {
    int s = 0, k = 0;
    long kept;
    enter(4);
    do { turn(4); kept = loops[4].now; s += depth ? again(depth - 1) : 1; loops[4].now = kept; HERE(s); } while (++k < 3);
    return s;
}
static jmp_buf env;
KEPT void jump(int n) { int i = 0; enter(5); do { turn(5); if (i == n) longjmp(env, 1); HERE(i); } while (++i < 50); }
int main(void) {
    int s = 0;
    const char *names[] = {"flat", "outer", "inner", "early", "again", "jump"};
    for (int i = 0; i < 100; i++) data[i] = i * 7 % 100;
    for (int n = 0; n < 30; n++) s += flat(n) + inner(n % 9) + early(n);
    s += again(4);
    for (volatile int n = 0; n < 6; n++) if (!setjmp(env)) jump(n * 10);
    for (int l = 0; l < 6; l++) printf("%s %ld %ld %ld\n", names[l], loops[l].execs, loops[l].all, loops[l].most);
    printf("%d\n", s);
}
"#;

/// Loops left by exceptions, and those with a handler in them.
const CXX: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
#define KEPT __attribute__((noinline))
KEPT int thrower(int n) { if (n % 5 == 4) throw std::runtime_error(std::string(n, 'x')); return n; }
KEPT int caught_inside(int n) { int s = 0; for (int i = 0; i < n; i++) try { s += thrower(i); } catch (const std::exception &e) { s += e.what()[0]; } return s; }
KEPT int caught_outside(int n) { std::vector<int> v; try { for (int i = 0; i < n; i++) v.push_back(thrower(i)); } catch (const std::exception &) { v.push_back(7); } int s = 0; for (int x : v) s += x; return s; }
KEPT int not_caught(int n) { int s = 0; for (int i = 0; i < n; i++) { std::string t(i, 'a'); s += thrower(i) + (int)t.size(); } return s; }
int main() {
    int s = 0;
    for (int n = 0; n < 12; n++) { s += caught_inside(n) + caught_outside(n); try { s += not_caught(n); } catch (const std::exception &) { s++; } }
    std::printf("%d\n", s);
}
"#;

/// Loops in and around constructs, whose iterations stay what they are.
const OPENMP: &str = r#"
#include <stdio.h>
static double x[64][64];
int main(void) {
    double s = 0;
    for (int k = 0; k < 5; k++) {
#pragma omp parallel for schedule(dynamic, 3) reduction(+ : s)
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 64; j++) s += x[i][j] += i ^ j ^ k;
#pragma omp parallel reduction(+ : s)
        for (int r = 0; r < 4; r++) {
#pragma omp for schedule(static)
            for (int i = 0; i < 60; i++) s += x[i][r];
#pragma omp single
            for (int i = 0; i < 10; i++) {
#pragma omp task firstprivate(i)
                x[i][0] += 1;
            }
        }
    }
    printf("%.0f\n", s);
}
"#;

/// The natural loops of a run: place of the first probe, function, executions, iterations, most of an execution.
fn reported(run: &Path) -> Vec<(u64, String, [u64; 3])> {
    let report = command::report(run);
    let regions = report["regions"].as_array().expect("a list of regions");
    let loops = regions.iter().filter(|r| r["construct"] == "natural-loop");
    let of = |r: &Value| {
        let text = |key: &str| r[key].as_str().expect("a text").to_owned();
        let address = u64::from_str_radix(text("address").trim_start_matches("0x"), 16);
        let number = |key: &str| r[key].as_u64().expect("a number");
        let numbers = ["executions", "iterations", "iterations_max"].map(number);
        let function = r["function"].as_str().unwrap_or_default();
        (address.expect("an address"), function.to_owned(), numbers)
    };
    let mut loops: Vec<_> = loops.map(of).collect();
    loops.sort();
    loops
}

/// How often the instructions at addresses are executed, as callgrind counts them.
pub(crate) fn by_callgrind(
    program: &Path,
    arguments: &[&str],
    folder: &Path,
) -> BTreeMap<u64, u64> {
    let out = folder.join("callgrind");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no"]);
    // What stubs cost would be the instruction's that calls them.
    valgrind.arg("--skip-plt=no");
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    process::run(process::clean(valgrind.arg(program).args(arguments), 1)).ok("callgrind");
    let text = std::fs::read_to_string(out).expect("callgrind has written its counts");
    let (mut counts, mut is_call) = (BTreeMap::new(), false);
    // Objects have their names once, and numbers later. Addresses are those of the file.
    let own = text.lines().find_map(|line| {
        let (number, name) = line.split_once("ob=")?.1.split_once(' ')?;
        (Path::new(name) == program).then_some(number)
    });
    let mut is_own = false;
    for line in text.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = object.split(' ').next() == own;
        }
        // What a call costs stands on the line behind.
        let is_cost = !std::mem::replace(&mut is_call, line.starts_with("calls="));
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, count] = words[..] else {
            continue;
        };
        let address = address.strip_prefix("0x");
        let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if let (Some(address), Ok(count), true) = (address, count.parse::<u64>(), is_own && is_cost)
        {
            *counts.entry(address).or_insert(0u64) += count;
        }
    }
    counts
}

/// Records the loops of a program of ours, as records and as sums, which say the same.
fn loops_of(
    program: &ompfuse_tests::compile::Program,
    what: &str,
) -> (String, Vec<(u64, String, [u64; 3])>) {
    let alone = process::run(process::clean(&mut Command::new(&program.path), 2));
    let mut all = Vec::new();
    for flags in [&["--events", "task-clock"][..], &["--units=sums"]] {
        let out = program.folder.path().join(flags[0]);
        let flags = [&["--loops", "*"], flags].concat();
        let recorded = table::record(&program.path, &[], 2, &out, &flags);
        assert_eq!(recorded.text(), alone.text(), "{what}: {recorded:?}");
        let run = table::runs(&out).pop().expect("a run was recorded");
        all.push(reported(&run));
    }
    assert_eq!(all[0], all[1], "{what}: records and sums");
    (alone.text(), all.remove(0))
}

#[test]
fn iterations_are_those_that_programs_and_callgrind_count() {
    for command in [
        "gcc -O0",
        "gcc -O2",
        "gcc -Os",
        "clang-19 -O2 -fno-unroll-loops",
    ] {
        let command = format!("{command} -no-pie");
        let Some(program) = ompfuse_tests::compile(OWN, &command) else {
            continue;
        };
        let (text, loops) = loops_of(&program, &command);
        for line in text.lines().take(6) {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, numbers @ ..] = &words[..] else {
                panic!("{command}: {line}");
            };
            let numbers: Vec<u64> = numbers
                .iter()
                .map(|n| n.parse().expect("a number"))
                .collect();
            let function = if *name == "outer" { "inner" } else { name };
            let mut own = loops.iter().filter(|(_, f, _)| f == function);
            assert!(
                own.any(|(.., found)| found[..] == numbers),
                "{command}: {line}: {loops:?}"
            );
        }
        if has("valgrind") {
            let counts = by_callgrind(&program.path, &[], program.folder.path());
            for (address, function, [_, iterations, _]) in &loops {
                assert_eq!(
                    counts.get(address),
                    Some(iterations),
                    "{command}: {function} {address:#x}"
                );
            }
        }
    }
}

#[test]
fn loops_are_left_by_exceptions() {
    for command in ["g++ -O2 -no-pie", "clang++-19 -O1 -no-pie"] {
        let Some(program) = ompfuse_tests::compile(CXX, command) else {
            continue;
        };
        let (_, loops) = loops_of(&program, command);
        let of = |function: &str| -> Vec<[u64; 3]> {
            let own = loops.iter().filter(|(_, f, _)| f.contains(function));
            own.map(|(.., numbers)| *numbers).collect()
        };
        // n = 0 doesn't come in; n > 4 leaves in the fifth iteration.
        assert!(
            of("caught_inside").contains(&[11, 66, 11]),
            "{command}: {loops:?}"
        );
        let some_left = [11, 45, 5];
        assert!(
            of("caught_outside").contains(&some_left),
            "{command}: {loops:?}"
        );
        assert!(
            of("not_caught").contains(&some_left),
            "{command}: {loops:?}"
        );
    }
}

#[test]
fn constructs_around_and_inside_stay_what_they_are() {
    for command in [
        "gcc -O2 -fopenmp",
        "gcc -O0 -fopenmp",
        "clang-19 -O1 -fopenmp",
    ] {
        let Some(program) = ompfuse_tests::compile(OPENMP, command) else {
            continue;
        };
        let record = |flags: &[&str], to: &str| {
            let out = program.folder.path().join(to);
            let flags = [&table::ONE_EVENT[..], flags].concat();
            let recorded = table::record(&program.path, &[], 2, &out, &flags);
            let run = table::runs(&out).pop().expect("a run was recorded");
            (recorded.ok(command).text(), run)
        };
        let (text, plain) = record(&[], "plain");
        let (same, looped) = record(&["--loops", "*"], "looped");
        assert_eq!(text, same, "{command}");
        let units = |run: &Path| -> Vec<(String, String)> {
            let units = table::export(run)
                .into_iter()
                .filter(|x| x.construct != "range");
            let mut units: Vec<_> = units.map(|x| (x.label, x.construct)).collect();
            units.sort();
            units
        };
        assert_eq!(units(&looped), units(&plain), "{command}");
        let iterations = |run: &Path| -> u64 {
            let ranges = table::export(run)
                .into_iter()
                .filter(|x| x.construct == "range");
            ranges.map(|x| x.number("iterations")).sum()
        };
        assert_eq!(iterations(&looped), 5 * (64 + 4 * 60), "{command}");
        let mut counted = crate::executions::reported(&looped);
        assert!(
            counted.remove("natural-loop") > Some(0),
            "{command}: {counted:?}"
        );
        counted.remove("function");
        assert_eq!(counted, crate::executions::reported(&plain), "{command}");
    }
}

/// A program of others, of which nothing is left out.
#[test]
fn loops_of_gzip_are_those_that_callgrind_counts() {
    let folder = tempfile::tempdir().expect("there is room for a run");
    let file = folder.path().join("file");
    let text: String = (0..3000u32)
        .map(|n| format!("{} {:x}\n", n * n % 977, n * 7919))
        .collect();
    std::fs::write(&file, text).expect("there is room for a file");
    let gzip = Path::new("/usr/bin/gzip");
    let arguments = ["-c", "-n", file.to_str().expect("a plain path")];
    let alone = process::run(Command::new(gzip).args(arguments));
    let out = folder.path().join("out");
    let recorded = table::record(gzip, &arguments, 1, &out, &["--units=sums", "--loops", "*"]);
    assert_eq!(recorded.stdout, alone.stdout, "{:?}", recorded.stderr);
    let run = table::runs(&out).pop().expect("a run was recorded");
    let loops = reported(&run);
    assert!(loops.len() > 20, "{loops:?}");
    if has("valgrind") {
        let counts = by_callgrind(gzip, &arguments, folder.path());
        for (address, function, [_, iterations, _]) in loops {
            assert_eq!(
                counts.get(&address),
                Some(&iterations),
                "{function} {address:#x}"
            );
        }
    }
}
