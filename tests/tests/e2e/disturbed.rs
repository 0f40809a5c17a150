//! Units in whose midst the kernel took the processor away have a mark, others have none, and where that can't be seen it isn't known.

use ompfuse_format::Construct;
use ompfuse_format::record::{Record, ThreadFile};
use ompfuse_tests::{command, compile, table};
use std::path::Path;

/// A team of one thread executes tasks that last so many microseconds each. `beside`: on one processor with a process that never
/// sleeps, so that whatever lasts much longer than the scheduler's slices is interrupted. `without`: glibc is told not to register.
/// `own`: the program puts a sequence of its own where ours is, and says whether it is left alone.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
static double us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
static void region(long count, double length) {
    #pragma omp parallel num_threads(1)
    #pragma omp single
    for (long i = 0; i < count; i++) {
        #pragma omp task
        for (double end = us() + length; us() < end;) ;
    }
}
static struct { uint32_t version, flags; uint64_t start, len, abort; } __attribute__((aligned(32))) sequence;
extern char sequence_begin[], sequence_aborted[];
__asm__(".pushsection .text\nsequence_begin: nop\nud2\n.long 0x53053053\nsequence_aborted: ud2\n.popsection");
int main(int argc, char **argv) {
    const char *how = argv[1];
    int registers = &__rseq_size && __rseq_size > 0;
    if (!strcmp(how, "without") && !getenv("GLIBC_TUNABLES")) {
        setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
        execv("/proc/self/exe", argv);
    }
    if (!strcmp(how, "beside")) {
        cpu_set_t set;
        sched_getaffinity(0, sizeof set, &set);
        int cpu = 0;
        while (!CPU_ISSET(cpu, &set)) cpu++;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
        pid_t other = fork();
        if (other == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (double end = us() + 60e6; us() < end;) ;
            _exit(0);
        }
        region(20, 30e3);
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    } else if (!strcmp(how, "own") && registers) {
        volatile uint64_t *at = (volatile uint64_t *)((char *)__builtin_thread_pointer() + __rseq_offset + 8);
        sequence.start = (uint64_t)sequence_begin;
        sequence.len = 1;
        sequence.abort = (uint64_t)sequence_aborted;
        uint64_t found = 0;
        /* The kernel may empty it before anybody looks. */
        for (int i = 0; i < 5; i++) {
            *at = (uint64_t)&sequence;
            region(100, 1);
            found = *at;
        }
        *at = 0;
        registers = found == 0 || found == (uint64_t)&sequence;
    } else {
        region(20000, 1);
    }
    printf("%d\n", registers);
    return 0;
}
"#;

/// What a run has of the threads that executed something: whether marks are known, tasks, and those with a mark.
fn marks(run: &Path) -> (bool, usize, usize) {
    let mut found = vec![];
    for entry in std::fs::read_dir(run).expect("a run is a folder") {
        let path = entry.expect("a folder can be listed").path();
        if path.extension().is_none_or(|e| e != "rec") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file of records");
        let file = ThreadFile::parse(&bytes).expect("records");
        let tasks = file.records().filter_map(|r| match r.expect("a record") {
            Record::Interval(i) if i.construct == Construct::Task => Some(i.disturbed),
            _ => None,
        });
        let tasks: Vec<bool> = tasks.collect();
        if !tasks.is_empty() {
            let marked = tasks.iter().filter(|&&m| m).count();
            found.push((file.header.has_marks != 0, tasks.len(), marked));
        }
    }
    let [found] = found[..] else {
        panic!("{found:?}: one thread executes all");
    };
    found
}

/// Records the program. Returns what it says, and what is on record.
fn run(patched: &Path, how: &str, flags: &[&str]) -> (bool, (bool, usize, usize)) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let output = table::record(patched, &[how], 1, folder.path(), flags).ok(how);
    let says = output.text().trim() == "1";
    (says, marks(&table::runs(folder.path())[0]))
}

#[test]
fn units_in_which_the_processor_was_taken_away_have_a_mark() {
    let programs = ["gcc -O2 -fopenmp", "clang-19 -O2 -fopenmp"];
    let compiled = |command: &&str| compile::compile(SOURCE, command);
    for (compiler, program) in ompfuse_tests::each(programs, compiled) {
        let patched = program.folder.path().join("patched");
        command::patch(&program.path, &patched);
        // Records with counts and without have forms of their own.
        for flags in [["--events", "none"], table::ONE_EVENT] {
            let (can, (known, units, marked)) = run(&patched, "beside", &flags);
            assert_eq!((known, units), (can, 20), "{compiler}");
            assert!(!can || marked >= 18, "{compiler}: {marked} of {units}");
            let (can, (known, units, marked)) = run(&patched, "alone", &flags);
            assert_eq!((known, units), (can, 20_000), "{compiler}");
            assert!(marked < units / 20, "{compiler}: {marked} of {units}");
            let (_, (known, units, marked)) = run(&patched, "without", &flags);
            assert_eq!((known, units, marked), (false, 20_000, 0), "{compiler}");
            let (is_left, (known, units, _)) = run(&patched, "own", &flags);
            if can {
                assert_eq!((is_left, known, units), (true, false, 500), "{compiler}");
            }
        }
    }
}
