//! Loops in the forms of other languages, and those that gcc has moved or made one with others.

use super::scan_support::{HEADER, begins, compile, complete, ends};
use ompfuse_format::Construct;
use ompfuse_format::site::Outcome;

#[test]
fn fortran_loops() {
    let source = "
program p
  use omp_lib
  integer :: i
  real(8) :: a(1000), s
  s = 0
  !$omp parallel do reduction(+:s)
  do i = 1, 1000
    a(i) = i
    s = s + a(i)
  end do
  !$omp parallel
  if (omp_get_thread_num() == 0) print *, s
  !$omp single
  print *, a(3)
  !$omp end single
  !$omp end parallel
end program
";
    for level in ["-O0", "-O2"] {
        let Some(program) = compile(source, &format!("gfortran -fopenmp {level}")) else {
            continue;
        };
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), 1, "{level}");
        assert_eq!(complete(&scan, Construct::Master), 1, "{level}");
        // Optimised, the path through the master has its own copy.
        assert!(
            (1..=2).contains(&complete(&scan, Construct::Single)),
            "{level}"
        );
    }
}

/// gcc threads the second loop's test into the first one's, or hoists the division out of a cycle.
#[test]
fn loops_without_a_division_of_their_own_have_probes() {
    let source = format!(
        "{HEADER}
void two(int n) {{
#pragma omp parallel
  {{
#pragma omp for
    for (int i = 0; i < n; i++) a[i] *= 2;
#pragma omp for
    for (int i = 0; i < n; i++) b[i] += a[n - 1 - i];
  }}
}}
void cycle(int n, int m) {{
#pragma omp parallel
  for (int k = 0; k < m; k++) {{
#pragma omp for
    for (int i = 0; i < n; i++) a[i] += g(i);
  }}
}}
int main(void) {{}}"
    );
    for command in ["gcc-11", "gcc-12"] {
        for level in ["-O1", "-O2", "-O3", "-O2 -s"] {
            let command = format!("{command} -fopenmp {level}");
            let Some(program) = compile(&source, &command) else {
                continue;
            };
            let scan = program.scan();
            let found = begins(&scan, Construct::Loop);
            assert_eq!(found.len(), 3, "{command}");
            for begin in found {
                let complete =
                    begin.info.outcome == Outcome::Patchable && !ends(&scan, begin).is_empty();
                let hoisted = begin
                    .info
                    .reason
                    .as_deref()
                    .is_some_and(|r| r.contains("hoisted"));
                assert!(
                    complete || (hoisted && level == "-O3"),
                    "{command}: {:?}",
                    begin.info
                );
            }
        }
    }
}
