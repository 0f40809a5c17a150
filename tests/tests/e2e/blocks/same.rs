//! Programs behave as before when they count: with exceptions, jumps out of frames, signals, forks, and odd code.

use super::{EXACT, report, total};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process::{self, clean};
use ompfuse_tests::{compile, few, some, table};
use std::path::Path;
use std::process::Command;

/// Runs a program alone and counted.
#[track_caller]
fn compare(program: &Path, threads: usize, out: &Path, what: &str) {
    let alone = process::run(clean(&mut Command::new(program), threads));
    let _ = std::fs::remove_dir_all(out);
    let counted = table::record(program, &[], threads, out, &["--count"]);
    assert_eq!(counted.text(), alone.text(), "{what}: {counted:?}");
    assert_eq!(
        counted.outcome().0,
        alone.outcome().0,
        "{what}: {counted:?}"
    );
}

#[test]
fn fixtures_behave_as_before() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let names = [
        "cancel",
        "cholesky",
        "counted",
        "listing11",
        "locks",
        "sections",
        "shapes",
        "sync",
        "tasking",
        "taskloop",
        "teams",
    ];
    let builds = names.iter().flat_map(|name| {
        let fixture = Fixture::open(name);
        let of = |compiler: &str| fixture.builds(compiler);
        [of("gcc"), of("clang")].concat()
    });
    let builds: Vec<_> = builds.collect();
    for build in some(few(&builds, 24)) {
        let out = folder.path().join("out");
        compare(&build.path, 3, &out, &build.to_string());
    }
}

/// Exceptions from loops, `longjmp` past counted code, signals at any moment, and a fork.
const ODD: &str = r#"
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define KEPT __attribute__((noinline))
static volatile sig_atomic_t ticks;
static volatile long noise;
static void tick(int) { ticks = ticks + 1; for (int i = 0; i < 50; i++) noise = noise + i; }
static jmp_buf env;
KEPT static long collatz(long n) { long steps = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; } return steps; }
KEPT static int thrower(int n) { if (n % 5 == 4) throw std::runtime_error(std::string(n, 'x')); return n; }
KEPT static void jump(int n) { for (int i = 0;; i++) if (i == n) longjmp(env, 1); }
KEPT static void both(long &steps, long &caught) {
    long s = 0, c = 0;
#pragma omp parallel for schedule(static) reduction(+ : s, c)
    for (int i = 1; i < 60000; i++) {
        s += collatz(i);
        try { c += thrower(i); } catch (const std::exception &e) { c += e.what()[0]; }
    }
    steps = s, caught = c;
}
KEPT static int forked() {
    pid_t child = fork();
    if (!child) { long own = 0; for (int i = 1; i < 1000; i++) own += collatz(i); _exit(own % 100); }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
KEPT static int jumps() { volatile int jumped = 0; for (volatile int i = 0; i < 100; i = i + 1) if (setjmp(env)) jumped = jumped + 1; else jump(i); return jumped; }
int main() {
    struct sigaction action = {};
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    itimerval timer = {{0, 500}, {0, 500}}, none = {};
    setitimer(ITIMER_REAL, &timer, nullptr);
    long steps = 0, caught = 0;
    both(steps, caught);
    int jumped = jumps();
    setitimer(ITIMER_REAL, &none, nullptr);
    std::fflush(stdout);
    std::printf("%ld %ld %d %d\n", steps, caught, jumped, forked());
}
"#;

#[test]
fn odd_programs_behave_as_before() {
    for command in [
        "g++ -O0",
        "g++ -O2",
        "g++ -O3 -mavx2",
        "clang++-19 -O0",
        "clang++-19 -O2",
    ] {
        let command = format!("{command} -fopenmp");
        let Some(program) = compile(ODD, &command) else {
            continue;
        };
        let out = program.folder.path().join("out");
        compare(&program.path, 2, &out, &command);
        let reported = report(
            &program.path,
            2,
            &["--count"],
            &program.folder.path().join("more"),
        );
        assert!(
            total(&reported) > 10_000_000,
            "{command}: {EXACT} {reported}"
        );
    }
}

/// What functions of the same file keep for each other against the calling convention, and flags that stay over a call.
const KEPT: &str = r#".globl main
.text
kept:
    add $1, %rdi
    add $0, %rdi
    nopl 0(%rax)
    ret
flags:
    mov %rsi, %rax
    mov %rax, %rsi
    cmp $3, %rdi
    ret
.type kept, @function
.size kept, 12
.type flags, @function
.size flags, 11
.type work, @function
work:
    push %rbx
    mov $7, %r8
    mov $9, %r9
    mov $11, %r11
    mov $1, %ecx
    mov $0, %ebx
again:
    mov %rcx, %rdi
    call kept
    add %r8, %rbx
    add %r9, %rbx
    add %r11, %rbx
    call flags
    jb below
    add $100, %rbx
below:
    inc %rcx
    cmp $1000, %rcx
    jb again
    mov %rbx, %rax
    pop %rbx
    ret
.size work, .-work
.type main, @function
main:
    push %rbx
    call omp_get_num_threads@plt
    call GOMP_barrier@plt
    call work
    mov %rax, %rbx
    call work
    cmp %rax, %rbx
    setne %al
    movzbl %al, %eax
    mov $0, %ecx
    cmp $126600, %rbx
    setb %cl
    or %ecx, %eax
    pop %rbx
    ret
.size main, .-main
.section .note.GNU-stack,"",@progbits
"#;

#[test]
fn registers_and_flags_that_functions_keep_stay() {
    let Some(program) = compile(KEPT, "gcc -fopenmp") else {
        return;
    };
    let alone = process::run(clean(&mut Command::new(&program.path), 1));
    assert_eq!(alone.outcome().0, 0, "{alone:?}");
    let out = program.folder.path().join("out");
    compare(&program.path, 1, &out, "assembly");
    let reported = report(
        &program.path,
        1,
        &["--count"],
        &program.folder.path().join("more"),
    );
    // Each turn of `work` executes 10 of its own, 11 if it isn't below, and 4 each of the two that it calls.
    let work = 6 + 999 * (10 + 4 + 4) + 998 + 3;
    assert_eq!(total(&reported), 2 * work + 15, "{reported}");
}
