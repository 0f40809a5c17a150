//! Loops with chunks that threads come to on several ways: behind a `master` gcc's first thread has one without a comparison.

use super::compile;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::table;
use std::collections::{BTreeMap, BTreeSet};

/// Iterations, rounds and chunk of each function.
const FUNCTIONS: [(&str, (u64, u64, u64)); 4] = [
    ("constant", (52, 1, 3)),
    ("lengths", (51, 1, 4)),
    ("rounds", (23, 4, 2)),
    ("single", (40, 1, 1)),
];

const SOURCE: &str = r"#include <omp.h>
double w[200];
int touched;
__attribute__((noipa)) void more(double *at) { *at += 1; }
__attribute__((noinline)) void touch(void) { touched++; }
__attribute__((noinline)) void constant(void) {
  #pragma omp master
  touch();
  #pragma omp for schedule(static, 3)
  for (unsigned i = 5; i < 161; i += 3) w[i] += 1;
}
__attribute__((noinline)) void lengths(int size) {
  #pragma omp master
  touch();
  #pragma omp for schedule(static, size)
  for (int i = 0; i < 153; i += 3) w[i] += 1;
}
__attribute__((noinline)) void rounds(unsigned n, int count) {
  for (int r = 0; r < count; r++) {
    #pragma omp master
    touch();
    #pragma omp for schedule(static, 2)
    for (unsigned i = 0; i < n; i++) w[i] += 1;
  }
}
__attribute__((noinline)) void single(void) {
  if (omp_get_thread_num() == 0) touch();
  #pragma omp for schedule(static, 1) nowait
  for (int i = 0; i < 40; i++) more(&w[i]);
}
int main(int argc, char **argv) {
  #pragma omp parallel
  {
    constant();
    lengths(3 + argc);
    rounds(22 + argc, 3 + argc);
    single();
  }
  return touched != 7;
}
";

/// Every iteration is counted, in the chunk that OpenMP puts it into: each is as long as it should be, and one thread has those whose
/// numbers leave the same remainder.
#[test]
fn the_first_threads_own_chunks_are_counted() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.c"), folder.path().join("program"));
    std::fs::write(&file, SOURCE).expect("there is room for a source");
    let levels = [
        "-O0",
        "-O1",
        "-O2",
        "-O3",
        "-Os",
        "-O0 -fsanitize=undefined",
        "-O2 -fsanitize=undefined",
    ];
    for compiler in ["gcc", "gcc-11"] {
        for level in levels {
            compile(compiler, level, &file, &program);
            let scan = Scan::of(&program);
            let skipped = scan.sites.iter().filter(|s| s.outcome == "skipped");
            let skipped: Vec<_> = skipped.filter(|s| s.construct == "loop").collect();
            assert!(skipped.is_empty(), "{compiler} {level}: {skipped:?}");
            for threads in [1, 3, 5] {
                let (_, xus) = table::xus_of(&program, &[], threads);
                for (function, (iterations, rounds, chunk)) in FUNCTIONS {
                    let what = format!("{function}, {compiler} {level}, {threads} threads");
                    let ranges = xus.iter().filter(|x| x.construct == "range");
                    let ranges = ranges.filter(|x| x.columns["function"] == function);
                    let (mut sum, mut count) = (0, 0);
                    let mut turns: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
                    for range in ranges {
                        let label = &range.columns["label"];
                        let first = label.rsplit('.').next().and_then(|f| f.parse::<u64>().ok());
                        let first = first.expect("a range's label ends with its first iteration");
                        let length = range.number("iterations");
                        let wanted = chunk.min(iterations - first);
                        assert_eq!((first % chunk, length), (0, wanted), "{what}: {label}");
                        let thread = &range.columns["thread"];
                        let turn = first / chunk % threads as u64;
                        turns.entry(thread).or_default().insert(turn);
                        (sum, count) = (sum + length, count + 1);
                    }
                    let all = (rounds * iterations, rounds * iterations.div_ceil(chunk));
                    assert_eq!((sum, count), all, "{what}");
                    let alone = turns.values().all(|t| t.len() == 1);
                    assert!(alone && turns.len() == threads, "{what}: {turns:?}");
                }
            }
        }
    }
}
