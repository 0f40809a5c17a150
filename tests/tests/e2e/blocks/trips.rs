//! Loops that count their turns by a register: as many instructions as callgrind counts, in whatever form a compiler writes them; and what
//! a signal handler leaves has no count.

use super::{EXACT, check_by_callgrind, report};
use ompfuse_tests::process::{self, clean};
use ompfuse_tests::{command, compile, few, has, table};
use std::path::Path;
use std::process::Command;

const LOOPS: &str = include_str!("../../../sources/trips.c");

const COMPILERS: [&str; 10] = [
    "gcc -O0",
    "gcc -O1",
    "gcc -O2",
    "gcc -O3 -mavx2",
    "gcc -Os",
    "gcc -O2 -funroll-loops -no-pie",
    "clang-19 -O0",
    "clang-19 -O1",
    "clang-19 -O2",
    "clang-19 -O3 -mavx2",
];

#[test]
fn loops_count_what_callgrind_counts() {
    if !has("valgrind") {
        return;
    }
    for compiler in few(&COMPILERS, 6) {
        let Some(program) = compile(LOOPS, &format!("{compiler} -fopenmp")) else {
            continue;
        };
        check_by_callgrind(&program.path, compiler, program.folder.path());
        // Without optimization what counts turns is in memory.
        let by_register = multiples(&program.path);
        let is_slow = compiler.contains("-O0");
        assert!(is_slow || by_register >= 10, "{compiler}: {by_register}");
    }
}

/// How many places add a multiple of a register.
fn multiples(program: &Path) -> usize {
    let scan = ["scan", "--count", "--dump", "sites"].map(std::ffi::OsStr::new);
    let scan = command::json(scan.into_iter().chain([program.as_os_str()]));
    let increments = scan["increments"].as_array().expect("a list of increments");
    let multiples = increments.iter().filter(|i| !i["term"].is_null());
    multiples.count()
}

/// Unit n turns 10 + n times, 5 instructions each; but for the sixth, which comes to a page that nobody may read, and whose handler jumps
/// out of the loop.
const FAULTS: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
static __thread sigjmp_buf env;
static long sums[64];
static void jump(int signal) { siglongjmp(env, signal); }
__attribute__((noinline)) static long sum(const char *at, long left) {
    long sum = 0;
    __asm__ volatile("1: movzbl (%1), %%eax\n add %%rax, %0\n add $1, %1\n add $-1, %2\n jnz 1b"
                     : "+r"(sum), "+r"(at), "+r"(left) : : "rax", "cc", "memory");
    __asm__ volatile("lea 1000(%0), %0\n lea -1000(%0), %0" : "+r"(sum)); // room
    return sum;
}
int main(void) {
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    signal(SIGSEGV, jump);
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 64; i++)
        if (!sigsetjmp(env, 1)) sums[i] = sum(pages + 3096, i == 5 ? 2000 : 10 + i);
    printf("%ld\n", sums[63]);
}
"#;

#[test]
fn what_a_handler_leaves_has_no_count() {
    for command in ["gcc -O0", "gcc -O2", "clang-19 -O2"] {
        let Some(program) = compile(FAULTS, &format!("{command} -fopenmp")) else {
            continue;
        };
        assert!(multiples(&program.path) > 0, "{command}");
        let out = program.folder.path().join("out");
        let report = report(&program.path, 2, &["--count"], &out);
        let alone = process::run(clean(&mut Command::new(&program.path), 2)).ok(command);
        assert_eq!(alone.text(), "0\n");
        let run = table::runs(&out).pop().expect("a run was recorded");
        let units = table::export(&run).into_iter();
        let units: Vec<_> = units.filter(|u| u.construct == "range").collect();
        assert_eq!(units.len(), 64, "{command}");
        let counted = units.iter().filter(|u| !u.columns[EXACT].is_empty());
        let mut counts: Vec<u64> = counted.map(|u| u.number(EXACT)).collect();
        counts.sort_unstable();
        // The unit's own, and the one behind it, which begins where nobody knows.
        assert!((60..64).contains(&counts.len()), "{command}: {counts:?}");
        assert!((50..150).contains(&counts[0]), "{command}: {counts:?}");
        let last = counts.len() - 1;
        assert!(counts[last] < 5 * 74 + 150, "{command}: {counts:?}");
        let steps = counts.windows(2).map(|w| w[1] - w[0]);
        assert!(
            steps.filter(|&s| s != 5).count() <= 8,
            "{command}: {counts:?}"
        );
        // Nor is it known what that thread has counted in all.
        let threads = report["accounting"].as_array().expect("threads");
        let known = threads.iter().map(|t| t["total_counts"][EXACT].as_u64());
        assert!(known.clone().any(|n| n.is_none()), "{command}: {report}");
        assert!(
            known.flatten().all(|n| n < 1_000_000),
            "{command}: {report}"
        );
    }
}
