//! A program whose work depends on addresses counts the same in each run; where it may not, nobody calls its counts exact.

use super::{report, total};
use ompfuse_tests::{command, compile, process, repository, table};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// A table whose keys are hashed addresses of the heap and of the stack.
const HASHED: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct entry { struct entry *next; uintptr_t key; };
static struct entry *table[64];
static unsigned place(uintptr_t key) { return key * 0x9E3779B97F4A7C15ull >> 58; }
static __attribute__((noinline)) void add(void *p)
{
    struct entry *e = malloc(sizeof *e);
    uintptr_t key = (uintptr_t)p;
    *e = (struct entry){table[place(key)], key};
    table[place(key)] = e;
}
static __attribute__((noinline)) int find(void *p)
{
    int steps = 0;
    for (struct entry *e = table[place((uintptr_t)p)]; e; e = e->next, steps++)
        if (e->key == (uintptr_t)p) return steps;
    return steps;
}
int main(int argc, char **argv)
{
    void *all[500];
    long found = 0;
    for (int i = 0; i < 500; i++) add(all[i] = i % 5 ? malloc(16 + i % 7 * 16) : (void *)&all[i]);
#pragma omp parallel for reduction(+ : found)
    for (int i = 0; i < 20000; i++) found += find(all[i % 500]) >= 0;
    printf("%ld\n", found);
}
"#;

/// personality(2).
const CALL: &str = "135";

fn gate(a: &Path, b: &Path) -> process::Output {
    let sides = ["diff".as_ref(), a.as_os_str(), b.as_os_str()];
    let gate = ["--fail-on", "instructions:exact!="].map(OsStr::new);
    command::run(sides.into_iter().chain(gate))
}

#[test]
fn counts_do_not_depend_on_random_addresses() {
    let Some(program) = compile(HASHED, "gcc -O2 -fopenmp") else {
        return;
    };
    let folder = program.folder.path();
    // Names of folders are variables of the program.
    let names = ["a", "a-folder-with-a-long-name"].map(|name| folder.join(name));
    let flags = ["--count", "--events", "none"];
    let counts = names
        .each_ref()
        .map(|out| total(&report(&program.path, 1, &flags, out)));
    assert!(counts[0] > 100_000, "{counts:?}");
    assert_eq!(counts[0], counts[1]);
    let judged = gate(&names[0], &names[1]);
    assert_eq!(judged.status, 0, "{judged:?}");

    // Two threads take what they get: one run tells nothing.
    let two = folder.join("two");
    report(&program.path, 2, &flags, &two);
    let header = |out: &Path| {
        let run = table::runs(out).pop().expect("a run");
        std::fs::read_to_string(run.join("run.json")).expect("a header")
    };
    assert!(header(&two).contains("\"fixed_addresses\":true"));

    let refuse = folder.join("refuse");
    let source = repository().join("tests/sources/refuse.c");
    assert!(compile::files(&[source], &refuse, "gcc -O1"));
    let refused = ["c", "d"].map(|name| {
        let out = folder.join(name);
        let ours = command::with_threads(1);
        let mut boxed = Command::new(&refuse);
        boxed.args(["1", CALL, "--"]).arg(ours.get_program());
        for (key, value) in ours.get_envs() {
            boxed.envs(value.map(|value| (key, value)));
        }
        boxed.arg("record").args(flags).arg("-o").arg(&out);
        boxed.arg("--").arg(&program.path);
        process::run(&mut boxed).ok("personality is refused");
        assert!(!header(&out).contains("fixed_addresses"));
        out
    });
    let judged = gate(&refused[0], &refused[1]);
    assert_eq!(judged.status, 1, "{judged:?}");
    let told = judged.text() + &judged.errors();
    assert!(
        told.contains("where personality(2) is allowed, or with --repeat 5"),
        "{told}"
    );
}
