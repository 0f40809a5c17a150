//! Loops with chunks that threads come to on several ways: behind a `master` gcc's first thread has one without a comparison.

use super::compile;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{few, table};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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

/// Hands over what gcc's versions make of a source at these levels.
fn built(source: &str, levels: &[&str], check: impl Fn(&str, &str, &Path)) {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("there is room for a source");
    for compiler in ["gcc", "gcc-11"] {
        for level in few(levels, 3) {
            compile(compiler, level, &file, &program);
            check(compiler, level, &program);
        }
    }
}

/// A loop is listed, or every iteration is counted, in the chunk that OpenMP puts it into: each is as long as it should be, and one thread
/// has those whose numbers leave the same remainder.
#[test]
fn loops_behind_a_master_are_counted_or_listed() {
    let levels = [
        "-O0",
        "-O1",
        "-O2",
        "-O3",
        "-Os",
        "-O0 -fsanitize=undefined",
        "-O2 -fsanitize=undefined",
    ];
    let (counted, listed) = (Cell::new(0), Cell::new(0));
    built(SOURCE, &levels, |compiler, level, program| {
        let scan = Scan::of(program);
        let skipped = scan.sites.iter().filter(|s| s.outcome == "skipped");
        let skipped = skipped.filter(|s| s.construct == "loop");
        let skipped: BTreeSet<_> = skipped.filter_map(|s| s.function.as_deref()).collect();
        counted.set(counted.get() + FUNCTIONS.len() - skipped.len());
        listed.set(listed.get() + skipped.len());
        for threads in few(&[1, 3, 5], 2) {
            let (_, xus) = table::xus_of(program, &[], threads);
            let known = FUNCTIONS.iter().filter(|(name, _)| !skipped.contains(name));
            for &(function, (iterations, rounds, chunk)) in known {
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
    });
    let (counted, listed) = (counted.get(), listed.get());
    assert!(counted > 0, "{counted} counted, {listed} only listed");
}

/// Loops of each function, and whether they are what OpenMP dealt.
const OTHERS: [(&str, usize, bool); 4] = [
    ("equal", 2, true),
    ("pair", 2, true),
    ("repeated", 2, true),
    ("elsewhere", 1, false),
];

/// A bound that was compared with the number of threads; loops that share what decides about their first chunks; and somebody who deals
/// by hand, and lets the first thread begin elsewhere.
const SHARED: &str = r"#include <omp.h>
double w[400], v[400];
int touched;
__attribute__((noipa)) int give(int k) { return k; }
__attribute__((noipa)) void more(double *at) { *at += 1; }
__attribute__((noinline)) void touch(void) { touched++; }
__attribute__((noinline)) void equal(int n) {
  if (omp_get_num_threads() != n) return;
  #pragma omp for schedule(static, 2)
  for (int i = 0; i < n; i++) more(&w[i]);
  #pragma omp master
  more(&w[9]);
  #pragma omp for schedule(static, 1)
  for (unsigned i = 0; i < n; i++) more(&w[i]);
}
__attribute__((noinline)) void pair(int n, int c) {
  if (omp_get_thread_num() == 0) { more(&v[3]); } else { v[9] = 3; touch(); }
  #pragma omp for schedule(static, c) nowait
  for (int i = 1; i < 24; i++) w[i] += 1;
  if (omp_get_thread_num() == 0 && give(n) > 3) touch();
  #pragma omp for schedule(static, c)
  for (int i = 1; i < 24; i++) { if (n > 3) w[i] += 1; else v[i] = 2; }
}
__attribute__((noinline)) void repeated(int n, int c, int rounds) {
  long last = 0;
  #pragma omp parallel
  for (int r = 0; r < rounds; r++) {
    #pragma omp for schedule(static, c) lastprivate(last) nowait
    for (long i = 1; i < 53; i++) { last = i; if (n > 3) w[i] += 1; else v[i] = 2; }
    #pragma omp for schedule(static, c) collapse(2) nowait
    for (long i = 5; i < n * 3 + 5; i += 3)
      for (int j = 0; j < 3; j++) w[i] = v[i] * 2 + 1;
  }
  touched += last != 52;
}
__attribute__((noinline)) void elsewhere(void) {
  int thread = omp_get_thread_num(), threads = omp_get_num_threads(), start;
  if (thread == 0) { touch(); start = 50; } else start = thread * 3;
  for (; start < 161; start += threads * 3) {
    int end = start + 3 < 161 ? start + 3 : 161;
    for (int i = start; i < end; i++) w[i] += 1;
  }
}
int main(int argc, char **argv) {
  #pragma omp parallel
  { equal(argc); pair(argc, 3); elsewhere(); }
  repeated(argc, 3, 3);
  return 0;
}
";

#[test]
fn loops_with_shared_comparisons_are_recorded_or_listed() {
    let levels = [
        "-O0",
        "-O1",
        "-O2",
        "-O3",
        "-Os",
        "-O0 -fsanitize=undefined",
    ];
    built(SHARED, &levels, |compiler, level, program| {
        let scan = Scan::of(program);
        for (function, loops, is_openmp) in OTHERS {
            let own = |f: &str| f.split('.').next() == Some(function);
            let begins = scan.sites.iter().filter(|s| {
                s.construct == "loop" && s.edge == "begin" && s.function.as_deref().is_some_and(own)
            });
            let recorded = begins.clone().filter(|s| s.outcome != "skipped").count();
            let what = format!("{function}, {compiler} {level}");
            assert!(
                !is_openmp || begins.count() >= loops,
                "{what}: one is missing"
            );
            // Where the first thread isn't told by a way of its own, all begin by the same comparison.
            let ways = ["-O1", "-O2", "-O3"].contains(&level);
            assert!(
                is_openmp || !ways || recorded == 0,
                "{what}: {recorded} recorded"
            );
        }
    });
}
