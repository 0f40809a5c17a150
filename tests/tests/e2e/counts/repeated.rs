//! Static loops that are repeated inside parallel regions: compilers keep in later rounds what they know of the first one.

use super::compile;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{few, fixture, table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const COMPILERS: [&str; 2] = ["gcc", "gcc-11"];

const LEVELS: [&str; 8] = [
    "-O0",
    "-O1",
    "-O2",
    "-O2 -fno-tree-vectorize -funroll-loops",
    "-O2 -mfunction-return=thunk",
    "-O3",
    "-Ofast",
    "-Os",
];

/// In each function every iteration is counted, or one of its loops is listed without probe.
#[test]
fn repeated_loops_are_all_counted_or_listed() {
    let (counted, listed) = counted_or_listed("repeated", &LEVELS);
    assert!(counted > listed, "{counted} counted, {listed} listed");
}

/// The same of loops over bytes, and where overflow is asked for. With `-ftrapv`, bounds are computed by calls, and some loops aren't seen.
#[test]
fn loops_over_bytes_are_all_counted_or_listed() {
    let levels = [
        "-O0",
        "-O1",
        "-O2",
        "-O2 -fsanitize=undefined",
        "-O3 -fsanitize=undefined",
        "-O0 -ftrapv",
        "-O2 -ftrapv",
        "-O3 -ftrapv",
        "-O3",
        "-O3 -funroll-loops",
        "-Os",
    ];
    let (counted, listed) = counted_or_listed("bytes", &levels);
    assert!(counted > 4 * listed, "{counted} counted, {listed} listed");
}

/// Builds and records a program of `fixtures/behaviour` with all compilers. How many functions' iterations are all counted, and of how
/// many a loop is listed.
fn counted_or_listed(name: &str, levels: &[&str]) -> (usize, usize) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/behaviour");
    let source = source.join(name).with_extension("c");
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = folder.path().join("program");
    let (mut counted, mut listed) = (0, 0);
    for compiler in COMPILERS {
        for level in few(levels, 3) {
            compile(compiler, level, &source, &program);
            let scan = Scan::of(&program);
            let loops = scan.sites.iter().filter(|s| s.construct == "loop");
            let unseen = level.contains("-ftrapv");
            let of = |name: &Option<String>| {
                let name = name.as_deref().unwrap_or_default();
                name.split('.').next().unwrap_or_default().to_owned()
            };
            let skipped = loops.filter(|s| s.outcome == "skipped");
            let skipped: BTreeSet<String> = skipped.map(|s| of(&s.function)).collect();
            for (args, threads) in few(&[(&[][..], 1), (&[], 3), (&[], 5), (&["few"], 3)], 3) {
                let (output, xus) = table::xus_of(&program, args, threads);
                let mut sums: BTreeMap<String, u64> = BTreeMap::new();
                for range in xus.iter().filter(|x| x.construct == "range") {
                    let function = of(&range.columns.get("function").cloned());
                    *sums.entry(function).or_default() += range.number("iterations");
                }
                for (function, wanted) in fixture::counts(&output.text()) {
                    let what =
                        format!("{function}, {compiler} {level}, {args:?}, {threads} threads");
                    let sum = sums.get(&function).copied().unwrap_or(0);
                    match unseen || skipped.contains(&function) {
                        true => assert!(sum <= wanted, "{what}: {sum} of {wanted}"),
                        false => assert_eq!(sum, wanted, "{what}"),
                    }
                    listed += usize::from(skipped.contains(&function));
                    counted += usize::from(sum == wanted);
                }
            }
        }
    }
    (counted, listed)
}

/// A loop with chunks and constant bounds that is repeated: compilers compare its first chunk once, in front of all repetitions.
#[test]
fn repeated_chunks_are_all_counted_or_listed() {
    let source = r#"#include <stdio.h>
double v[200], w[200], b[200][200];
int main(int argc, char **argv) {
  int m = argc + 3;
  #pragma omp parallel
  for (int round = 0; round < 2; round++) {
    #pragma omp for schedule(static, 2) nowait
    for (short i = 2; i < 97; i += 3) {
      double sum = 0;
      for (int j = 0; j < m; j++) sum += b[i][j] * w[j];
      v[i] = sum;
    }
  }
  printf("%g\n", v[3]);
}
"#;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("there is room for a source");
    let mut counted = 0;
    for compiler in COMPILERS {
        for level in few(&LEVELS, 3) {
            let what = format!("{compiler} {level}");
            compile(compiler, level, &file, &program);
            let scan = Scan::of(&program);
            let loops = scan.sites.iter().filter(|s| s.construct == "loop");
            let begins: Vec<_> = loops.filter(|s| s.edge == "begin").collect();
            assert_eq!(begins.len(), 1, "{what}: {begins:?}");
            let is_counted = begins[0].outcome != "skipped";
            for threads in few(&[1, 3, 5], 2) {
                let (_, xus) = table::xus_of(&program, &[], threads);
                let ranges = xus.iter().filter(|x| x.construct == "range");
                let sum = ranges.map(|x| x.number("iterations")).sum::<u64>();
                let wanted = if is_counted { 64 } else { 0 };
                assert_eq!(sum, wanted, "{what}, {threads} threads");
            }
            counted += usize::from(is_counted);
        }
    }
    assert!(counted > 0, "all are listed without probe");
}

/// Whether a loop is repeated without its test is told by values that are followed. What would take too long is listed with that reason.
#[test]
fn loops_in_functions_that_are_too_large_to_follow_are_listed() {
    let source = r#"double a[200][24], v[400], w[400];
__attribute__((noinline)) void touch(int k) { w[k] += 1; }
__attribute__((noinline)) void repeat(long n, int m, int reps) {
  #pragma omp parallel
  for (int r = 0; r < reps; r++) {
    #pragma omp for schedule(static) nowait
    for (long i = 2; i < n; i += 3) {
      double s = 0;
      for (int j = 0; j < m; j++) s += a[i][j] * w[j];
      v[i] = s;
    }
    if (m > 100) touch(7);
    __asm__ volatile(".rept BRANCHES\n test %%eax, %%eax\n je 7f\n inc %%ecx\n 7:\n .endr" ::: "rax", "rcx");
    #pragma omp for
    for (long i = 2; i < n; i += 2) {
      double s = 0;
      for (int j = 0; j < m; j++) s += a[i][j] * w[j];
      v[i] = s;
    }
    if (m > 100) touch(7);
    #pragma omp for nowait
    for (long i = 1; i < n - 1; i += 2) v[i] = w[i] * 2 + 1;
  }
}
int main(int argc, char **argv) { repeat(argc * 100, argc * 10, 2); }
"#;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.c"), folder.path().join("program"));
    let repeated = "it is repeated without its test";
    let unknown = "its function is too large to tell whether it is repeated without its test";
    for (branches, wanted) in [("10", repeated), ("60000", unknown)] {
        let source = source.replace("BRANCHES", branches);
        std::fs::write(&file, source).expect("there is room for a source");
        compile("gcc", "-O2", &file, &program);
        let scan = Scan::of(&program);
        let loops = scan.sites.iter().filter(|s| s.construct == "loop");
        let reasons: BTreeSet<&str> = loops.filter_map(|s| s.reason.as_deref()).collect();
        let both = [repeated, unknown].map(|why| reasons.contains(why));
        let expected = [repeated, unknown].map(|why| why == wanted);
        assert_eq!(both, expected, "{branches} branches: {reasons:?}");
    }
}

/// Loops of one length whose cycles are unrolled: gcc tests once for all of them, and what is left over stands in front of the cycles.
#[test]
fn unrolled_loops_with_one_test_are_all_counted() {
    let source = r#"#include <stdio.h>
enum { N = 64 };
double a[N], b[N];
__attribute__((noipa)) void copy(double *to, const double *from) { *to = *from; }
int main(int argc, char **argv) {
  int n = N - 3 * argc;
  #pragma omp parallel
  {
    #pragma omp for
    for (int i = 0; i < n; i++) copy(&a[i], &b[n - 1 - i]);
    #pragma omp for
    for (int i = 0; i < n; i++) copy(&b[i], &a[i]);
    #pragma omp for
    for (int i = 0; i < n; i++) copy(&a[i], &b[n - 1 - i]);
  }
}
"#;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("there is room for a source");
    for compiler in COMPILERS {
        compile(compiler, "-O3 -funroll-loops", &file, &program);
        for (args, threads) in [(&[][..], 1), (&[], 3), (&["x"; 20], 3)] {
            let (_, xus) = table::xus_of(&program, args, threads);
            let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
            for range in xus.iter().filter(|x| x.construct == "range") {
                *sums.entry(&range.columns["type"]).or_default() += range.number("iterations");
            }
            let wanted = 64 - 3 * (args.len() as u64 + 1);
            let what = format!("{compiler}, {args:?}, {threads} threads");
            assert!(
                sums.len() == 3 && sums.values().all(|&s| s == wanted),
                "{what}: {sums:?}"
            );
        }
    }
}

/// Where the distance of an array's elements is known at run time only, gcc at -O3 has a form of the loop for neighbours: behind one
/// comparison of the first chunk there are two cycles.
#[test]
fn chunks_in_several_forms_are_all_counted() {
    let source = r#"subroutine add(n, s, a, x)
  integer :: n
  integer(8) :: s, k
  real(8) :: a(:, :), x
  !$omp parallel do schedule(static, 5)
  do k = 2, n, s
    a(1, k) = a(1, k) + x
  end do
end subroutine
program p
  interface
    subroutine add(n, s, a, x)
      integer :: n
      integer(8) :: s
      real(8) :: a(:, :), x
    end subroutine
  end interface
  real(8) :: a(10, 80)
  a = 1
  call add(37, 3_8, a, 2d0)
  call add(37, 3_8, a(1:9:2, :), 2d0)
  print *, sum(a)
end program
"#;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.f90"), folder.path().join("program"));
    std::fs::write(&file, source).expect("there is room for a source");
    for compiler in ["gfortran", "gfortran-11"] {
        for level in ["-O2", "-O3", "-Ofast"] {
            compile(compiler, level, &file, &program);
            let scan = Scan::of(&program);
            let skipped = scan.sites.iter().filter(|s| s.outcome == "skipped");
            let skipped: Vec<_> = skipped.filter(|s| s.construct == "loop").collect();
            assert!(skipped.is_empty(), "{compiler} {level}: {skipped:?}");
            for threads in [1, 3] {
                let (_, xus) = table::xus_of(&program, &[], threads);
                let ranges = xus.iter().filter(|x| x.construct == "range");
                let sum = ranges.map(|x| x.number("iterations")).sum::<u64>();
                assert_eq!(sum, 2 * 12, "{compiler} {level}, {threads} threads");
            }
        }
    }
}
