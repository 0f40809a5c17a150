//! Fortran of gfortran and flang: procedures have the names of the source, and constructs their lines.

use ompfuse_tests::{command, compile, each, process, table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Procedures of a module, in a procedure, and in the main program. The comments are the oracle: each is behind a directive, and names the
/// procedure that it is in.
const SOURCE: &str = "
module mesh
  implicit none
  real(8) :: total = 0
contains
  subroutine refine(a, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n)
    integer :: i
    !$omp parallel do schedule(dynamic, 10) ! mesh::refine
    do i = 1, n
      a(i) = a(i) + i
    end do
    !$omp end parallel do
    !$omp parallel do schedule(dynamic, 20) ! mesh::refine
    do i = 1, n
      a(i) = a(i) * 1.5d0
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static, 7) ! mesh::refine
    do i = 1, n
      a(i) = a(i) - 1
    end do
    !$omp end parallel do
    call smooth(3)
  contains
    subroutine smooth(k)
      integer, intent(in) :: k
      integer :: j
      !$omp parallel do schedule(dynamic, 20) reduction(+:total) ! smooth
      do j = 1, n
        total = total + a(j) * k
      end do
      !$omp end parallel do
    end subroutine
  end subroutine
end module
program run
  use mesh
  implicit none
  real(8) :: a(1000)
  a = 0
  call refine(a, 1000)
  call inner()
  print *, total
contains
  subroutine inner()
    integer :: i
    !$omp parallel do schedule(dynamic, 30) ! inner
    do i = 1, 1000
      a(i) = 2 * a(i)
    end do
    !$omp end parallel do
  end subroutine
end program
";

/// Lines with a directive, and the procedures.
fn directives() -> BTreeSet<(u64, &'static str)> {
    let lines = SOURCE.lines().enumerate();
    let directive = |(n, line): (usize, &'static str)| {
        let (_, procedure) = line.split_once(") ! ")?;
        Some((n as u64 + 1, procedure))
    };
    lines.filter_map(directive).collect()
}

fn recorded(program: &Path, out: &Path) -> Value {
    table::record(program, &[], 2, out, &["--events", "none"]).ok("record");
    command::report(out)
}

fn program(compiler: &&str) -> Option<compile::Program> {
    compile::compile(SOURCE, compiler)
}

#[test]
fn procedures_have_the_names_of_the_source() {
    let compilers = [
        "gfortran -O0 -fopenmp",
        "gfortran -O2 -fopenmp -fno-inline",
        "flang-new-19 -O0 -fopenmp",
    ];
    for (compiler, program) in each(compilers, program) {
        let report = recorded(&program.path, &program.folder.path().join("out"));
        let regions = report["regions"].as_array().expect("a list");
        let parallel = regions.iter().filter(|r| r["construct"] == "parallel");
        let names: BTreeSet<String> = parallel
            .map(|r| r["function_demangled"].as_str().expect("a name").to_owned())
            .collect();
        let is_named = |wanted: &str| {
            let end = format!("::{wanted}");
            // gcc may make a copy of it (`.constprop.0`).
            let mut names = names.iter().map(|n| n.split('.').next().unwrap_or(n));
            names.any(|n| n == wanted || n.ends_with(&end))
        };
        for (_, procedure) in directives() {
            assert!(is_named(procedure), "{compiler}: {procedure}: {names:?}");
        }
        assert!(names.contains("mesh::refine"), "{compiler}: {names:?}");
        let text = command::ok([
            "report".as_ref(),
            program.folder.path().join("out").as_os_str(),
        ]);
        for made in ["_MOD_", "_QM", "smooth.0", "smooth.1", "inner.0", "inner.1"] {
            assert!(!text.text().contains(made), "{compiler}: {}", text.text());
        }
        // Selectors have the same names.
        let out = program.folder.path().join("patched");
        let patch = |name: &str| {
            let mut patch = Command::new(command::path());
            patch.args(["patch", "--format", "json", "--select", name, "-o"]);
            let said = process::run(patch.arg(&out).arg(&program.path)).ok(name);
            let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON");
            answer["totals"]["patched"].as_u64().expect("a number")
        };
        let [of_module, all] = ["mesh::refine", "*"].map(patch);
        assert!(
            0 < of_module && of_module < all,
            "{compiler}: {of_module} of {all}"
        );
    }
}

#[test]
fn constructs_have_their_lines() {
    let compilers = [
        "gfortran -O2 -g -fopenmp",
        "flang-new-19 -O0 -g -fopenmp",
        "flang-new-19 -O2 -g -fopenmp",
    ];
    for (compiler, program) in each(compilers, program) {
        let report = recorded(&program.path, &program.folder.path().join("out"));
        let regions = report["regions"].as_array().expect("a list");
        let mut lines = BTreeSet::new();
        for region in regions.iter().filter(|r| r["construct"] == "parallel") {
            let file = region["source"]["file"].as_str().unwrap_or_default();
            assert!(file.ends_with("/program.f90"), "{compiler}: {region:#}");
            lines.insert(region["source"]["line"].as_u64().expect("a line"));
        }
        let wanted: BTreeSet<u64> = directives().into_iter().map(|d| d.0).collect();
        assert_eq!(lines, wanted, "{compiler}");
    }
}
