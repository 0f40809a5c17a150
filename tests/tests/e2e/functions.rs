//! Functions as regions: calls are counted as gdb counts them, the program behaves as before, and constructs keep their labels and
//! numbers.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::{command, has, process, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Recursion, tail calls, and jumps out of frames.
const C: &str = r#"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#define KEPT __attribute__((noinline))
static jmp_buf env;
KEPT int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KEPT int is_odd(int n);
KEPT int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
KEPT int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }
KEPT void leap(int n) { if (n == 0) longjmp(env, 1); leap(n - 1); puts("never"); }
KEPT double sum(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
KEPT long double wide(long double x, int n) { for (int i = 0; i < n; i++) x = x * 1.25L + sum((double[]){1, 2}, 2); return x; }
KEPT int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int (*volatile handler)(int) = fib;
KEPT int through(int n) { int m = fib(n % 5); return handler(m + 1); }
struct ops { int (*f)(int); };
KEPT int by_register(struct ops *o, int n) { for (int i = 0; i < 3; i++) n += o->f(i); return o->f(n & 7); }
KEPT double mixed(int a, double b, long c, float d, int e, int f, int g, int h, double i) {
    printf("%d %g %ld %g %d %d %d %d %g\n", a, b, c, (double)d, e, f, g, h, i);
    return b + i;
}
int main(void) {
    double x[64] = {0};
    int order[50];
    printf("%d %d\n", fib(9), is_even(30));
    for (int i = 0; i < 3; i++)
        if (!setjmp(env)) leap(4 + i);
    for (int i = 0; i < 20; i++) { x[i] += sum(x, 64) + i; order[i] = i * 37 % 50; }
    qsort(order, 20, sizeof order[0], compare);
    printf("%d %d\n", through(7), by_register(&(struct ops){through}, 5));
    printf("%g %Lg %d\n", sum(x, 64), wide(1.5L, 30), order[3]);
    printf("%g\n", mixed(1, 2.5, 3, 4.5f, 5, 6, 7, 8, 9.5));
    return 0;
}
"#;

/// Exceptions that pass recorded frames, with and without a handler or a destructor in them.
const CXX: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
#define KEPT __attribute__((noinline))
int guards;
struct Guard { int n; explicit Guard(int c) : n(c) {} KEPT ~Guard() { guards += n; if (guards > 1 << 20) std::puts("many"); } };
namespace mesh {
KEPT int thrower(int n) { Guard g(n); if (n % 3 == 0) throw std::runtime_error("three"); return n; }
KEPT int middle(int n) { Guard g(n); return thrower(n) + 1; }
KEPT int catcher(int n) { try { return middle(n); } catch (const std::exception &e) { return (int)std::string(e.what()).size(); } }
KEPT int deep(int n) { if (n == 0) throw n; Guard g(n); return deep(n - 1) + 1; }
template <class T> KEPT T twice(T x) { std::string s(8, 'x'); return x + x + (T)s.size(); }
}
int main() {
    int s = 0;
    for (int i = 0; i < 30; i++) s += mesh::catcher(i);
    for (int i = 0; i < 3; i++) try { s += mesh::deep(30); } catch (int) { s += mesh::catcher(1); }
    std::printf("%d %d %g\n", s, guards, mesh::twice(1.5) + mesh::twice(2));
}
"#;

const FORTRAN: &str = "
module lattice
contains
  recursive integer function count_down(n) result(r)
    integer, intent(in) :: n
    if (n <= 0) then
      r = 0
    else
      r = 1 + count_down(n - 1) + mod(n, 2)
    end if
  end function
  subroutine sweep(x, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: x(n)
    integer :: i
    do i = 2, n
      x(i) = x(i) + 0.5d0 * x(i - 1)
    end do
  end subroutine
end module
program main
  use lattice
  real(8) :: x(100)
  integer :: i
  x = 1d0
  do i = 1, 7
    call sweep(x, 100)
  end do
  print *, count_down(20), x(100)
end program
";

mod choice;
mod running;

/// The functions that match and get probes: the address of each one's first probe, and its name.
fn patchable(program: &Path, pattern: &str) -> BTreeMap<u64, String> {
    let args = ["scan".as_ref(), program.as_os_str(), "--functions".as_ref()];
    let scan = command::json(
        args.into_iter()
            .chain([pattern, "--format", "json"].map(AsRef::as_ref)),
    );
    let sites = scan["sites"].as_array().expect("a list of sites");
    let begins = sites.iter().filter(|s| {
        (&s["construct"], &s["edge"], &s["outcome"])
            == (&"function".into(), &"begin".into(), &"patchable".into())
    });
    let place = |site: &Value| {
        let text = |key: &str| site[key].as_str().expect("a text").to_owned();
        let address = u64::from_str_radix(text("address").trim_start_matches("0x"), 16);
        (address.expect("an address"), text("function"))
    };
    begins.map(place).collect()
}

/// How often control comes to addresses of a program that is loaded where it was linked, as gdb counts it.
fn by_gdb(program: &Path, addresses: impl Iterator<Item = u64>) -> BTreeMap<u64, u64> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-iex", "set debuginfod enabled off"]);
    for (n, address) in (1..).zip(addresses) {
        gdb.arg("-ex").arg(format!("break *{address:#x}"));
        gdb.arg("-ex").arg(format!("ignore {n} 1000000000"));
    }
    let output = process::run(
        gdb.args(["-ex", "run", "-ex", "info breakpoints"])
            .arg(program),
    );
    let text = output.ok("gdb").text();
    let mut counts = BTreeMap::new();
    let mut last = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(address) = words.iter().find_map(|w| w.strip_prefix("0x")) {
            last = u64::from_str_radix(address, 16).unwrap_or(0);
        }
        if let ["breakpoint", "already", "hit", times, ..] = words[..] {
            counts.insert(last, times.parse().expect("a number of times"));
        }
    }
    counts
}

/// Calls by the function's name, in the report of a run.
fn reported(run: &Path) -> BTreeMap<String, u64> {
    let report = command::report(run);
    let regions = report["regions"].as_array().expect("a list of regions");
    let functions = regions.iter().filter(|r| r["construct"] == "function");
    functions
        .map(|r| {
            let name = r["function"].as_str().expect("a name");
            (name.to_owned(), r["executions"].as_u64().expect("a number"))
        })
        .collect()
}

#[test]
fn calls_are_those_that_gdb_counts() {
    let programs = [
        (C, "gcc -O2 -no-pie"),
        (C, "gcc -O0 -no-pie"),
        (CXX, "g++ -O2 -no-pie"),
        (CXX, "clang++-19 -O1 -no-pie"),
        (FORTRAN, "gfortran -O2 -no-pie"),
    ];
    for (source, command) in programs {
        let Some(program) = ompfuse_tests::compile(source, command) else {
            continue;
        };
        let alone = process::run(process::clean(&mut Command::new(&program.path), 1));
        let out = program.folder.path().join("out");
        let all = ["--functions", "*", "--events", "task-clock"];
        let recorded = table::record(&program.path, &[], 1, &out, &all);
        assert_eq!(recorded.text(), alone.text(), "{command}: {recorded:?}");
        let run = table::runs(&out).pop().expect("a run was recorded");
        let functions = patchable(&program.path, "*");
        assert!(functions.len() >= 4, "{command}: {functions:?}");
        let jumps = command == "gcc -O2 -no-pie";
        let has = |name: &str| functions.values().any(|f| f == name);
        assert!(!jumps || has("through") && has("by_register"));
        if !has("gdb") {
            continue;
        }
        let hits = by_gdb(&program.path, functions.keys().copied());
        let expected: BTreeMap<String, u64> = (hits.iter())
            .map(|(at, times)| (functions[at].clone(), *times))
            .collect();
        assert_eq!(reported(&run), expected, "{command}");
        // Sums tell the same.
        let sums = program.folder.path().join("sums");
        table::record(
            &program.path,
            &[],
            1,
            &sums,
            &[&all[..2], &["--units=sums"]].concat(),
        )
        .ok(command);
        let run = table::runs(&sums).pop().expect("a run was recorded");
        assert_eq!(reported(&run), expected, "{command}, sums");
    }
}

/// What OpenMP constructs are called and how often they are executed does not depend on functions around them.
#[test]
fn constructs_keep_their_labels() {
    let matrix = Matrix::get();
    for (name, compiler) in [
        ("tasking", "gcc"),
        ("shapes", "gcc"),
        ("cholesky", "clang"),
        ("sections", "clang"),
    ] {
        let fixture = Fixture::open(name);
        let (compiler, pie) = (matrix.compiler(compiler), matrix.link("pie"));
        let variant = &fixture.variants()[0].0;
        let Some(build) = fixture.build(variant, compiler, pie, "-O2", false) else {
            continue;
        };
        let folder = tempfile::tempdir().expect("there is room for recordings");
        let record = |flags: &[&str], to: &str| {
            let out = folder.path().join(to);
            let flags = [&table::ONE_EVENT[..], flags].concat();
            let recorded = table::record(&build.path, &[], 2, &out, &flags);
            let run = table::runs(&out).pop().expect("a run was recorded");
            (recorded.ok(&build.to_string()).text(), run)
        };
        let (text, plain) = record(&[], "plain");
        let (same, functions) = record(&["--functions", "*"], "functions");
        assert_eq!(
            ompfuse_tests::fixture::counts(&same),
            ompfuse_tests::fixture::counts(&text),
            "{build}"
        );
        let labels = |run: &Path| -> BTreeSet<(String, String)> {
            let units = table::export(run).into_iter();
            let fixed = units.filter(|x| x.construct != "range");
            fixed.map(|x| (x.label, x.construct)).collect()
        };
        assert_eq!(labels(&functions), labels(&plain), "{build}");
        let mut counted = crate::executions::reported(&functions);
        assert!(counted.remove("function") > Some(0), "{build}: {counted:?}");
        assert_eq!(counted, crate::executions::reported(&plain), "{build}");
        let report = command::report(functions);
        let accounts = report["accounting"].as_array().expect("a list of threads");
        assert!(
            accounts.iter().all(|a| a["balanced"] == true),
            "{build}: {accounts:?}"
        );
    }
}

/// Functions are chosen by name, and left out again; what gets no probe is listed with its reason.
#[test]
fn functions_are_chosen() {
    let Some(program) = ompfuse_tests::compile(CXX, "g++ -O2") else {
        return;
    };
    let calls = |flags: &[&str]| -> BTreeSet<String> {
        let out = tempfile::tempdir().expect("there is room for a recording");
        let flags = [&table::ONE_EVENT[..], flags].concat();
        table::record(&program.path, &[], 1, out.path(), &flags).ok("record");
        let run = table::runs(out.path()).pop().expect("a run was recorded");
        reported(&run).into_keys().collect()
    };
    let some = calls(&["--functions", "mesh::*", "--skip", "fn:mesh::m*"]);
    let named = ["catcher", "deep", "thrower"].map(|n| format!("_ZN4mesh{}{n}Ei", n.len()));
    assert!(named.iter().all(|n| some.contains(n)), "{some:?}");
    let others = |n: &String| n == "main" || n.contains("middle");
    assert!(!some.iter().any(others), "{some:?}");
    let one = calls(&["--functions", "*", "--select", "fn:mesh::deep"]);
    assert_eq!(one, BTreeSet::from([named[1].clone()]));
    let listed = command::ok([
        "scan".as_ref(),
        program.path.as_os_str(),
        "--functions".as_ref(),
        "*".as_ref(),
    ]);
    assert!(listed.text().contains("can be recorded"), "{listed:?}");
}

/// A tool of the system that knows nothing of OpenMP, without symbols.
#[test]
fn a_tool_without_openmp() {
    let gzip = Path::new("/usr/bin/gzip");
    if !has("gzip") || !gzip.exists() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a file");
    let file = folder.path().join("text");
    let text: String = (0..40_000)
        .map(|n| format!("line {}\n", n * 7919 % 1000))
        .collect();
    std::fs::write(&file, &text).expect("a file can be written");
    let file = file.to_str().expect("a path of ours is text");
    let alone = process::run(Command::new(gzip).args(["-nc", file]));
    let out = folder.path().join("out");
    let flags = ["--functions", "*", "--events", "task-clock"];
    let recorded = table::record(gzip, &["-nc", file], 1, &out, &flags);
    assert_eq!(recorded.outcome().0, 0, "{recorded:?}");
    assert_eq!(recorded.stdout, alone.stdout, "gzip");
    let calls = reported(&table::runs(&out)[0]);
    assert!(
        calls.len() > 20 && calls.values().sum::<u64>() > 1000,
        "{calls:?}"
    );
    let patched = folder.path().join("gzip");
    command::ok([
        Path::new("patch"),
        gzip,
        Path::new("--functions"),
        Path::new("*"),
        Path::new("-o"),
        &patched,
    ]);
    command::ok([Path::new("verify"), gzip, &patched]);
}
