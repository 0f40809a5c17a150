//! Other events than instructions, as assembly and callgrind know them.

use ompfuse_tests::process;
use ompfuse_tests::{compile, has, table};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const ALL: [&str; 6] = [
    "instructions:exact",
    "loads:exact",
    "stores:exact",
    "branches:exact",
    "flops:exact",
    "calls:exact",
];

/// Units whose turns are all alike: unit n has 100 + 10 n of them.
const KNOWN: &str = r#"
#include <stdio.h>
static double sums[64];
__asm__(".text\n.type empty, @function\nempty: lea 8(%rax), %rax\n ret\n.size empty, 5\n");
int main(void) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 64; i++) {
        double v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        long left = 100 + 10 * i;
        __asm__ volatile(
            "sub $256, %%rsp\n"
            "1: movupd (%1), %%xmm1\n"
            "addpd %%xmm1, %%xmm2\n"
            "mulsd 8(%1), %%xmm2\n"
            "movsd %%xmm2, 16(%1)\n"
            "incq 32(%1)\n"
            "push %%rax\n pop %%rax\n"
            "cmovz 40(%1), %%rax\n"
            "call empty\n"
            "add $-1, %0\n jnz 1b\n"
            "add $256, %%rsp"
            : "+r"(left) : "r"(v) : "cc", "memory", "rax", "xmm1", "xmm2");
        sums[i] += v[2];
    }
    printf("%f\n", sums[63]);
}
"#;

/// What a turn has, in the order of [`ALL`]: loads of `movupd`, `mulsd`, `incq`, `pop`, `cmovz`, `ret`; stores of `movsd`, `incq`, `push`,
/// `call`.
const TURN: [u64; 6] = [13, 6, 4, 1, 3, 1];

#[test]
fn turns_count_what_their_instructions_are() {
    for command in ["gcc -O0", "gcc -O2", "clang-19 -O2"] {
        let command = format!("{command} -fopenmp -mno-red-zone");
        let Some(program) = compile(KNOWN, &command) else {
            continue;
        };
        let out = program.folder.path().join("out");
        let flags = ["--events", &ALL.join(",")];
        table::record(&program.path, &[], 2, &out, &flags).ok(&command);
        let run = table::runs(&out).pop().expect("a run was recorded");
        let units = table::export(&run).into_iter();
        let units: Vec<_> = units.filter(|u| u.construct == "range").collect();
        assert_eq!(units.len(), 64, "{command}");
        for (event, turn) in ALL.iter().zip(TURN) {
            let mut counts: Vec<u64> = units.iter().map(|u| u.number(event)).collect();
            counts.sort_unstable();
            let steps = counts.windows(2).map(|w| w[1] - w[0]);
            // Where a thread's first range begins, and what is around each, is the compiler's.
            let odd = steps.filter(|&step| step != 10 * turn).count();
            assert!(odd <= 4, "{command}, {event}: {counts:?}");
            let least = counts[0];
            let around = 100 * turn..100 * turn + 100;
            assert!(around.contains(&least), "{command}, {event}: {counts:?}");
        }
    }
}

/// What callgrind counts in a function: reads and writes of data, and calls that it makes.
fn by_callgrind(program: &Path, function: &str, folder: &Path) -> BTreeMap<&'static str, u64> {
    let out = folder.join("callgrind");
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--cache-sim=yes",
        "--compress-strings=no",
    ]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    process::clean(command.arg(program), 1);
    process::run(&mut command).ok("valgrind");
    let text = std::fs::read_to_string(&out).expect("callgrind writes a file");
    let (mut is_inside, mut is_call) = (false, false);
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            is_inside = name == function;
        } else if let Some(calls) = line.strip_prefix("calls=") {
            is_call = true;
            let times = calls.split(' ').next().and_then(|n| n.parse::<u64>().ok());
            *sums.entry("calls:exact").or_default() += times.filter(|_| is_inside).unwrap_or(0);
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            // What a call costs belongs to the function that was called.
            if is_inside && !is_call {
                let mut numbers = line.split(' ').skip(1).map(|n| n.parse().unwrap_or(0));
                for event in ALL.into_iter().take(3) {
                    *sums.entry(event).or_default() += numbers.next().unwrap_or(0);
                }
            }
            is_call = false;
        }
    }
    sums
}

/// A function that reads, writes and calls. What changes memory in one instruction, as without optimization, is no write for callgrind.
const LEAVES: &str = r#"
#include <stdio.h>
#include <omp.h>
static double v[512], w[512];
__attribute__((noinline)) double leaf(double x) { return x * 0.5 + 1; }
__attribute__((noinline)) void work(int n) {
    for (int i = 0; i < n; i++) {
        v[i % 512] = leaf(w[i % 509]) + v[i % 101];
        if (i % 3) w[i % 511] += v[i % 13];
    }
}
int main(void) {
#pragma omp parallel
    { work(5000); }
    printf("%f\n", v[7] + w[9]);
}
"#;

#[test]
fn callgrind_reads_writes_and_calls_as_often() {
    if !has("valgrind") {
        return;
    }
    for command in ["gcc -O2", "clang-19 -O2"] {
        let command = format!("{command} -g -fopenmp");
        let Some(program) = compile(LEAVES, &command) else {
            continue;
        };
        let folder = program.folder.path();
        let theirs = by_callgrind(&program.path, "work", folder);
        let out = folder.join("out");
        let events = [
            "instructions:exact",
            "loads:exact",
            "stores:exact",
            "calls:exact",
        ];
        let list = events.join(",");
        let flags = ["--count=work", "--functions=work", "--events", &list];
        table::record(&program.path, &[], 1, &out, &flags).ok(&command);
        let run = table::runs(&out).pop().expect("a run was recorded");
        let report = ompfuse_tests::command::report(run);
        let regions = report["regions"].as_array().expect("regions");
        let function = regions.iter().find(|r| r["construct"] == "function");
        let own = &function.expect("the function is a region")["events"];
        for event in events {
            // Its end stands before the return, which reads an address.
            let returns = u64::from(["instructions:exact", "loads:exact"].contains(&event));
            let counted = own[event].as_u64().map(|n| n + returns);
            let same = counted == theirs.get(event).copied();
            assert!(same, "{command}: {event} {counted:?} {theirs:?}");
        }
    }
}
