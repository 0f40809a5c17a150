//! What was recorded against what the program counted itself: tasks, iterations, sections.

mod chunk_entries;
mod repeated;

use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::process::Output;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{compile::files, few, recorded, some};
use std::collections::BTreeSet;
use std::path::Path;

/// Compares one run. Where the scan said of loops that they get no probe, iterations have to be missing.
pub(crate) fn check(build: &Build, patched: &Path, threads: usize, scan: &Scan) {
    let (output, xus) = table::xus_of(patched, &[], threads);
    judge(build, &output, &xus, threads, scan);
}

fn judge(build: &Build, output: &Output, xus: &[Xu], threads: usize, scan: &Scan) {
    let skipped = |s: &ompfuse_tests::scan::Site| {
        s.construct == "loop" && s.edge == "begin" && s.outcome == "skipped"
    };
    let gaps = scan.sites.iter().any(skipped);
    let own = fixture::counts(&output.text());
    let what = format!("{build}, {threads} threads");
    let count = |construct: &str| xus.iter().filter(|x| x.construct == construct).count() as u64;
    if build.records("tasks") {
        assert_eq!(Some(&count("task")), own.get("tasks"), "tasks of {what}");
    }
    if build.records("sections") {
        let wanted = own.get("sections").copied().unwrap_or(0);
        match scan.merges_sections() {
            true => assert!(count("section") <= wanted, "sections of {what}"),
            false => assert_eq!(count("section"), wanted, "sections of {what}"),
        }
    }
    if build.records("iterations") {
        let ranges = xus.iter().filter(|x| x.construct == "range");
        let sum = ranges.map(|x| x.number("iterations")).sum::<u64>();
        let wanted = own
            .get("iterations")
            .copied()
            .expect("a fixture counts its iterations");
        if gaps {
            assert!(
                sum < wanted,
                "iterations of {what}: {sum} of {wanted}, though loops are said to be skipped"
            );
            assert!(
                sum * 2 > wanted,
                "iterations of {what}: {sum} of {wanted}, most loops are skipped"
            );
        } else {
            assert_eq!(sum, wanted, "iterations of {what}");
        }
    }
}

fn nothing_is_missed_or_counted_twice(name: &str, compiler: &str) {
    let fixture = Fixture::open(name);
    let builds = fixture.builds(compiler).into_iter();
    for build in some(builds.filter(|b| !b.stripped && b.link == "pie")) {
        let scan = Scan::of(&build.path);
        for &threads in build.numbers_of_threads() {
            let run = recorded::run(&build, threads);
            judge(&build, &run.output, run.xus(), threads, &scan);
        }
    }
}

for_each_fixture!(super::nothing_is_missed_or_counted_twice);

/// What optimisers leave of clang's `sections` is a cycle where the sections are longer than a few instructions.
#[test]
fn clangs_sections_are_units() {
    let source = r#"#include <stdio.h>
double x[4];
int many, threads;
extern double sin(double), cos(double), exp(double);
extern int omp_get_num_threads(void);
void f(int n) {
  #pragma omp sections
  {
    #pragma omp section
    { for (int i = 0; i < n; i++) x[0] += sin(i); __atomic_fetch_add(&many, 1, 0); }
    #pragma omp section
    { puts("two"); x[1] += exp(n); __atomic_fetch_add(&many, 1, 0); }
    #pragma omp section
    { for (int i = 0; i < n; i++) x[2] += cos(i) * i; __atomic_fetch_add(&many, 1, 0); }
    #pragma omp section
    { for (int i = 0; i < n; i++) x[3] += exp(i) * cos(i); __atomic_fetch_add(&many, 1, 0); }
  }
}
int main(void) {
  #pragma omp parallel
  { f(3); }
  printf("sections %d\n", many);
}
"#;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("s.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("there is room for a source");
    for level in few(&["-O0", "-O1", "-O2", "-Os"], 2) {
        let command = format!("clang-19 -fopenmp {level} -lm");
        if !files(&[&file], &program, &command) {
            return;
        }
        assert!(!Scan::of(&program).merges_sections(), "{level}");
        for threads in [1, 2, 3, 5] {
            let (output, xus) = table::xus_of(&program, &[], threads);
            let sections: Vec<_> = xus.iter().filter(|x| x.construct == "section").collect();
            let numbers: BTreeSet<_> = sections
                .iter()
                .map(|x| x.label.rsplit('.').next())
                .collect();
            let wanted = fixture::counts(&output.text())["sections"] as usize;
            assert_eq!(sections.len(), wanted, "{level}, {threads} threads");
            assert_eq!(numbers.len(), wanted, "{level}, {threads} threads");
        }
    }
}

/// Of loops of two lengths by turns gcc copies tests, so that threads come to one loop by several of them.
#[test]
fn loops_behind_several_tests_are_counted_once() {
    let source = r#"#include <stdio.h>
#include <stdlib.h>
double a[999], b[999];
__attribute__((noinline)) double next(double x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) void turns(long n, long m) {
  #pragma omp parallel
  {
    #pragma omp for
    for (long i = 0; i < n; i++) a[i] = next(a[i]);
    #pragma omp for
    for (long i = 0; i < m; i++) b[i] = next(b[i]);
    #pragma omp for
    for (long i = 0; i < n; i++) a[i] = next(a[i]);
    #pragma omp single
    puts("between");
    #pragma omp for
    for (long i = 0; i < m; i++) b[i] = next(b[i]);
    #pragma omp for
    for (long i = 0; i < n; i++) a[i] = next(a[i]);
    #pragma omp for
    for (long i = 0; i < m; i++) b[i] = next(b[i]);
    #pragma omp single
    puts("behind the loops");
  }
}
int main(int argc, char **argv) {
  long n = atol(argv[1]), m = atol(argv[2]);
  turns(n, m);
  printf("iterations %ld\nlast %ld\n", 3 * n + 2 * m, m);
}
"#;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (file, program) = (folder.path().join("t.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("there is room for a source");
    let mut several = 0;
    for level in few(&["-O0", "-O1", "-O2", "-O3", "-Os"], 3) {
        compile("gcc", level, &file, &program);
        let scan = Scan::of(&program);
        let loops = scan.sites.iter().filter(|s| s.construct == "loop");
        let (skipped, found): (Vec<_>, Vec<_>) = { loops }
            .filter(|s| s.edge == "begin")
            .partition(|s| s.outcome == "skipped");
        assert!(skipped.len() <= 1, "{level}: {skipped:?}");
        several += usize::from(found.len() + skipped.len() > 6);
        let lengths = [
            (100, 2),
            (2, 100),
            (100, 300),
            (2, 3),
            (0, 5),
            (5, 0),
            (0, 0),
        ];
        for (n, m) in few(&lengths, 4) {
            for threads in few(&[1, 2, 5, 3], 2) {
                let what = format!("{level}, {n} and {m} iterations, {threads} threads");
                let args = [n.to_string(), m.to_string()];
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let (output, xus) = table::xus_of(&program, &args, threads);
                let own = fixture::counts(&output.text());
                // The last one may be listed without probe.
                let mut wanted = own["iterations"];
                wanted += if skipped.is_empty() { own["last"] } else { 0 };
                let ranges = xus.iter().filter(|x| x.construct == "range");
                let sum = ranges.clone().map(|x| x.number("iterations")).sum::<u64>();
                assert_eq!(sum, wanted, "{what}");
                // Each thread counts each loop, so all agree in the loops' labels.
                let labels = ranges.filter_map(|x| x.label.rsplit_once('.').map(|l| l.0));
                let labels: BTreeSet<&str> = labels.collect();
                let lengths = [n, m, n, m, n, if skipped.is_empty() { m } else { 0 }];
                let executed = lengths.iter().filter(|&&l| l > 0).count();
                assert_eq!(labels.len(), executed, "{what}: {labels:?}");
            }
        }
    }
    assert!(several > 0, "no loop has several tests");
}

/// Compiles a source with OpenMP.
#[track_caller]
fn compile(compiler: &str, level: &str, source: &Path, program: &Path) {
    let is_compiled = files(&[source], program, &format!("{compiler} -fopenmp {level}"));
    assert!(is_compiled, "{compiler} is not installed");
}
