//! Loops in the forms of other languages, and those that gcc has moved or made one with others.

use crate::scan_support::{HEADER, begins, compile, complete, ends, programs};
use ompfuse_format::Construct;
use ompfuse_format::site::Outcome;
use ompfuse_rewriter::model::Site;

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
    let levels = ["-O0", "-O2"].map(|level| format!("gfortran -fopenmp {level}"));
    for (level, program) in programs(source, levels) {
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
    for compiler in ["gcc-11", "gcc-12"] {
        let levels = ["-O1", "-O2", "-O3", "-O2 -s"];
        let commands = levels.map(|level| format!("{compiler} -fopenmp {level}"));
        for (command, program) in programs(&source, commands) {
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
                    complete || (hoisted && command.ends_with("-O3")),
                    "{command}: {:?}",
                    begin.info
                );
            }
        }
    }
}

/// gcc 11 keeps a range in the registers of results and arguments while it calls what leaves them alone; its test is in a
/// cycle around the loop.
#[test]
fn ranges_survive_calls_that_leave_them_alone() {
    let source = ".globl main
leaf: pxor %xmm0, %xmm0; ret
.size leaf, .-leaf
.type leaf, @function
main: push %rbp; push %rbx; sub $8, %rsp; mov %edi, %ebp
  call omp_get_num_threads@PLT; mov %eax, %ebx
  call omp_get_thread_num@PLT; mov $3, %r9d; mov %eax, %ecx
  lea 2(%rbp), %eax; cltd; idiv %ebx
  cmp %edx, %ecx; lea 1(%rax), %esi; cmovl %esi, %eax
  mov %eax, %r10d; imul %ecx, %r10d
  cmp %edx, %ecx; lea (%r10,%rdx), %esi; cmovge %esi, %r10d
  add %r10d, %eax; lea 1(%r10), %ebx; lea (%rax,%rax,2), %r11d
1: cmp %r10d, %eax; jg 3f; nop
2: sub $1, %r9d; jne 1b
  add $8, %rsp; pop %rbx; pop %rbp; xor %eax, %eax; ret
3: mov %ebx, %edx
4: add $3, %edx; call leaf; cmp %edx, %r11d; jge 4b
  jmp 2b
.size main, .-main
.type main, @function
.section .note.GNU-stack,\"\",@progbits
";
    let Some(program) = compile(source, "gcc -fopenmp") else {
        return;
    };
    let scan = program.scan();
    assert_eq!(complete(&scan, Construct::Loop), 1, "{:?}", scan.sites);
}

/// Of two loops with the same bounds and no barrier between them gcc makes one, which only source lines tell.
#[test]
fn loops_that_may_be_two_are_said_to_be() {
    let program = "
void two(int n) {
  #pragma omp parallel firstprivate(n)
  {
    #pragma omp for nowait
    for (int i = 0; i < n; i++)
      a[i] = a[i] * 0.5 + b[i];
    #pragma omp for nowait
    for (int i = 0; i < n; i++)
      b[i] += a[i];
  }
}
void one(int n) {
  #pragma omp parallel for firstprivate(n)
  for (int i = 0; i < n; i++)
    a[i] = a[i] * 0.5 + b[i];
}
int main(int argc, char **argv) { two(argc * 100); one(argc * 50); return 0; }
";
    for (flags, said) in [("-O1 -g", 1), ("-O2 -g", 1), ("-O3 -g", 1), ("-O2", 0)] {
        let command = format!("gcc -fopenmp {flags}");
        let Some(program) = compile(&format!("{HEADER}{program}"), &command) else {
            return;
        };
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 2, "{command}");
        let shared = |s: &&&Site| s.info.detail.as_deref() != Some("static");
        let shared: Vec<_> = loops.iter().filter(shared).collect();
        assert_eq!(shared.len(), said, "{command}");
        for site in shared {
            let info = &site.info;
            let detail = Some("static; two loops may share this code");
            assert_eq!(info.detail.as_deref(), detail, "{command}");
            let function = info.function.as_deref();
            assert_eq!(function, Some("two._omp_fn.0"), "{command}");
        }
    }
}
