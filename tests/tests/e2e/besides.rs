//! Functions, loops and calls that are recorded besides constructs take nothing away from these: whatever a plain recording has is
//! there, executed as often, and times add up.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{account, command, process, recorded, some, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What is recorded besides.
const BESIDES: [&[&str]; 4] = [
    &["--functions", "*"],
    &["--loops", "*"],
    &["--calls", "pthread,io"],
    &["--functions", "*", "--loops", "*", "--calls", "pthread,io"],
];

/// Every construct whose end may be a function's last instruction, in a function of its own that ends there. It prints nothing that
/// depends on time.
const TAILS: &str = r#"
#include <stdio.h>
#define KEPT __attribute__((noinline))
static int sum, added, last[8];
static volatile int few = 1, many = 40;
KEPT void in_critical(int k) {
#pragma omp critical
  sum += k;
}
KEPT void in_named(int k) {
#pragma omp critical(named)
  { in_critical(k); sum += 0; }
}
KEPT void in_task(int k) {
#pragma omp task if (0)
  last[k & 7] = k;
}
KEPT void in_region(int k) {
#pragma omp parallel if (few > 1)
  last[k & 7] = k;
}
KEPT void in_group(int k) {
#pragma omp taskgroup
  last[k & 7] = k;
}
KEPT void in_loop(int n) {
#pragma omp for schedule(dynamic)
  for (int i = 0; i < n; i++) last[i & 7] = i;
}
KEPT void in_single(int k) {
#pragma omp single
  last[k & 7] = k;
}
KEPT void in_master(int k) {
#pragma omp master
  last[k & 7] = k;
}
KEPT void in_reduction(int n) {
#pragma omp for reduction(+ : added)
  for (int i = 0; i < n; i++) added += i;
}
KEPT void in_ordered(int k) {
#pragma omp ordered
  sum += k;
}
KEPT void in_atomic(long double *x) {
#pragma omp atomic
  *x += 1.25L;
}
KEPT void in_teams(void) {
#pragma omp target teams distribute simd map(tofrom : last)
  for (int i = 0; i < 8; i++) last[i] += 2;
}
int main(void) {
  long double x = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp for ordered
    for (int i = 0; i < many; i++) { in_critical(i); in_named(i); in_task(i); in_atomic(&x); in_ordered(i); }
    for (int i = 0; i < few + 3; i++) { in_loop(few + 6); in_single(i); in_master(i); in_reduction(few + 9); }
  }
  for (int i = 0; i < few + 5; i++) { in_region(i); in_group(i); in_teams(); }
  printf("%d %Lg\n", sum, x);
  return 0;
}
"#;

/// Executions of constructs by what they are and where their code is.
fn constructs(report: &Value) -> BTreeMap<(String, String), u64> {
    let mut found = BTreeMap::new();
    let text = |r: &Value, key: &str| r[key].as_str().unwrap_or_default().to_owned();
    for region in report["regions"].as_array().expect("a list of regions") {
        let construct = text(region, "construct");
        let is_besides = matches!(&*construct, "function" | "natural-loop");
        if let (Some(times), false) = (region["executions"].as_u64(), is_besides) {
            *found
                .entry((construct, text(region, "address")))
                .or_default() += times;
        }
    }
    found
}

/// Records a program with each of these, and compares with its plain recording. `output`: what it prints.
#[track_caller]
fn compare(
    what: &str,
    (program, threads): (&Path, usize),
    output: &str,
    plain: &Value,
    all_besides: &[&[&str]],
) {
    let wanted = constructs(plain);
    assert!(wanted.len() > 1, "{what}: {plain:#}");
    for &besides in all_besides {
        let what = format!("{what} {besides:?}");
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let flags = [&table::ONE_EVENT[..], besides].concat();
        let run = table::record(program, &[], threads, folder.path(), &flags);
        assert_eq!((run.status, &*run.text()), (0, output), "{what}: {run:?}");
        let args = ["report".as_ref(), folder.path().as_os_str()];
        let report = command::json(
            args.into_iter()
                .chain(["--format", "json"].map(AsRef::as_ref)),
        );
        account::check(&what, &report);
        assert_eq!(report["notes"], plain["notes"], "{what}");
        let all = constructs(&report);
        for (place, times) in &wanted {
            assert_eq!(all.get(place), Some(times), "{what}: {place:?}");
        }
    }
}

fn of_fixture(name: &str, compiler: &str) {
    let threads = 2;
    for build in some(Fixture::open(name).ordinary_builds(compiler)) {
        let original = recorded::original(&build, threads);
        let plain = recorded::run(&build, threads).ok().report();
        compare(
            &build.to_string(),
            (&build.path, threads),
            &original.text(),
            &plain,
            &BESIDES,
        );
    }
}

mod fixtures {
    for_some_fixtures!(crate::besides::of_fixture;
        kmpcalls by clang, oldabi by gcc, ordered by gcc, teams by clang);
}

fn of_source(source: &str, compiler: &str, besides: &[&[&str]]) {
    let Some(program) = ompfuse_tests::compile(source, compiler) else {
        return;
    };
    let original = process::run(process::clean(&mut Command::new(&program.path), 2));
    let out = program.folder.path().join("plain");
    table::record(&program.path, &[], 2, &out, &table::ONE_EVENT).ok(compiler);
    let plain = command::report(&out);
    compare(
        compiler,
        (&program.path, 2),
        &original.text(),
        &plain,
        besides,
    );
}

#[test]
fn tails_gcc() {
    of_source(TAILS, "gcc -O2 -fopenmp", &BESIDES);
}

#[test]
fn tails_clang() {
    of_source(TAILS, "clang-19 -O2 -fopenmp -latomic", &BESIDES);
}

/// The program's own regions may begin and end in functions that only do that.
#[test]
fn regions_of_the_program() {
    let source = r#"
#include <stdio.h>
#include "ompfuse.h"
#define KEPT __attribute__((noinline))
static int x[64];
KEPT void spend(int n) { for (volatile int i = 0; i < n; i++) ; }
KEPT void begin(void) { ompfuse_region_begin("outer"); ompfuse_region_begin("inner"); spend(100); }
KEPT void end(void) { spend(100); ompfuse_region_end(); spend(100); ompfuse_region_end(); spend(10); }
KEPT void both(void) { begin(); spend(1000); end(); spend(1000); }
int main(void) {
  for (int k = 0; k < 3; k++) {
    both();
    begin();
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < 64; i++) x[i] += i;
    end();
  }
  printf("%d\n", x[63]);
  return 0;
}
"#;
    let include = ompfuse_tests::repository().join("include");
    let compiler = format!("gcc -O1 -fopenmp -I{}", include.display());
    of_source(source, &compiler, &BESIDES[..1]);
}
