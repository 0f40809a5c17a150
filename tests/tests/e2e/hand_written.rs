//! Machine code that compilers of other versions than those here make, written by hand.

use ompfuse_tests::scan::Scan;
use ompfuse_tests::{compile, process, table};
use std::process::Command;

/// A static loop as gcc 14 compiles one with `lastprivate`: what is done behind it exists on either side of the test for iterations, and
/// both copies return. `n` is at the argument's begin, then the last iteration, then how many were executed.
const COPIED_TAIL: &str = r#"
#include <stdio.h>
void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
void copied(void *);
__asm__(
    ".text\n.globl copied\n.type copied, @function\ncopied:\n.cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\npush %rbp\n.cfi_adjust_cfa_offset 8\npush %r12\n.cfi_adjust_cfa_offset 8\n"
    "mov %rdi, %r12\nmov (%rdi), %ebp\ncall omp_get_num_threads@PLT\nmov %eax, %ebx\ncall omp_get_thread_num@PLT\n"
    "mov %eax, %ecx\nmov %ebp, %eax\ncltd\nidiv %ebx\ncmp %edx, %ecx\njl 5f\n"
    "1: imul %eax, %ecx\nadd %edx, %ecx\nadd %ecx, %eax\ncmp %eax, %ecx\njge 4f\n"
    "2: lock addl $1, 8(%r12)\nadd $1, %ecx\ncmp %eax, %ecx\njl 2b\n"
    "lea -1(%rax), %ebx\ncmp %ebp, %eax\nje 6f\n"
    "3: pop %r12\npop %rbp\npop %rbx\nret\n"
    "4: xor %eax, %eax\ncmp %ebp, %eax\njne 3b\n"
    "6: mov %ebx, 4(%r12)\npop %r12\npop %rbp\npop %rbx\nret\n"
    "5: add $1, %eax\nxor %edx, %edx\njmp 1b\n"
    ".cfi_endproc\n.size copied, .-copied\n");
int main(void) {
  int d[3] = {1000, 0, 0};
  for (int i = 0; i < 5; i++) GOMP_parallel(copied, d, 2, 0);
  d[0] = 1; /* one of the threads has no iteration */
  GOMP_parallel(copied, d, 2, 0);
  printf("%d %d\n", d[1], d[2]);
  return 0;
}
"#;

#[test]
fn a_tail_that_exists_twice() {
    let Some(program) = compile(COPIED_TAIL, "gcc -O1 -fopenmp") else {
        return;
    };
    let out = program.folder.path().join("out");
    let recorded = table::record(&program.path, &[], 2, &out, &table::ONE_EVENT);
    assert_eq!(recorded.ok("recording").text(), "0 5001\n");
    let xus = table::export(&out);
    assert_eq!(xus.len(), 5 * 2 + 1, "{xus:?}");
    assert!(xus.iter().all(|x| x.construct == "range"), "{xus:?}");
    let iterations = xus.iter().map(|x| x.number("iterations"));
    assert_eq!(iterations.sum::<u64>(), 5001);
}

/// Two jump tables, one behind the other, and nothing that tells how long the first one is. What stands in the second one, taken as
/// the first one's, leads to bytes that are no instruction.
const TABLES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int count, ends[2];
void chosen(int *);
__asm__(
    ".text\n.globl chosen\n.type chosen, @function\nchosen:\n.cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\nmov (%rdi), %ebx\n"
    "lea first(%rip), %rcx\nmovslq (%rcx,%rbx,4), %rax\nadd %rcx, %rax\njmp *%rax\n"
    "one: call GOMP_critical_start@PLT\naddl $1, count(%rip)\ncall GOMP_critical_end@PLT\njmp behind\n"
    "two: call GOMP_critical_start@PLT\naddl $2, count(%rip)\ncall GOMP_critical_end@PLT\n"
    "behind: SECOND\n"
    ".fill 8, 1, 0x06\n"
    "three: lock addl $1, ends(%rip)\npop %rbx\n.cfi_remember_state\n.cfi_adjust_cfa_offset -8\nret\n.cfi_restore_state\n"
    ".fill 8, 1, 0x06\n"
    "four: lock addl $1, 4+ends(%rip)\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
    ".cfi_endproc\n.size chosen, .-chosen\n"
    ".section .rodata\n.balign 4\nfirst: .long one-first, two-first\nsecond: .long three-second, four-second\n.text\n");
int main(void) {
#pragma omp parallel for
  for (int i = 0; i < 40; i++) {
    int which = i & 1;
    chosen(&which);
  }
  printf("%d %d\n", count, ends[0] + ends[1]);
  return 0;
}
"#;

#[test]
fn tables_behind_each_other() {
    let by_table = r"lea second(%rip), %rcx\nmovslq (%rcx,%rbx,4), %rax\nadd %rcx, %rax\njmp *%rax";
    // Nothing names the words behind the first table: they may belong to it.
    for (second, is_known) in [(by_table, true), ("jmp four", false)] {
        let Some(program) = compile(
            &TABLES.replace("SECOND", second),
            "gcc -O1 -no-pie -fopenmp",
        ) else {
            return;
        };
        let original = process::run(process::clean(&mut Command::new(&program.path), 2));
        assert_eq!(original.text(), "60 40\n", "{original:?}");
        let scan = Scan::of(&program.path);
        let critical = scan.sites.iter().filter(|s| s.construct == "critical");
        let reasons: Vec<&str> = critical
            .clone()
            .filter_map(|s| s.reason.as_deref())
            .collect();
        match is_known {
            true => assert!(
                critical.clone().all(|s| s.outcome == "patchable"),
                "{reasons:?}"
            ),
            false => assert!(
                reasons
                    .iter()
                    .all(|r| r.contains("jump table of unknown length")),
                "{reasons:?}"
            ),
        }
        assert_eq!(critical.count(), 4, "{:?}", scan.sites);
        let out = program.folder.path().join("out");
        let recorded = table::record(&program.path, &[], 2, &out, &table::ONE_EVENT);
        assert_eq!(recorded.ok("recording").text(), "60 40\n");
    }
}
