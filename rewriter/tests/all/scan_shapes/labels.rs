//! Loops in functions whose labels something else than a branch leads to: what memory holds may be any of them.

use super::windows_are_sound;
use crate::scan_support::{HEADER, Program, begins, compile, complete};
use ompfuse_format::Construct;

/// A loop, and instructions of few bytes behind it, before and behind a label.
const LOOP: &str = "
#define LOOP _Pragma(\"omp for nowait\") for (int i = 0; i < n; i++) { post(); }
";

/// Compiles it in several ways, of which those that aren't installed are passed over.
fn programs(source: &str, flags: &[&str]) -> Vec<(Program, String)> {
    let source = format!("{HEADER}{LOOP}{source} int main(void) {{ return 0; }}");
    let mut all = Vec::new();
    for compiler in ["gcc-11", "gcc-12"] {
        for level in ["-O1", "-O2", "-Os"] {
            for flags in flags {
                let command = format!("{compiler} -fopenmp {level} {flags}");
                all.extend(compile(&source, &command).map(|program| (program, command)));
            }
        }
    }
    all
}

const KINDS: [&str; 2] = ["-fPIE -pie", "-fno-pie -no-pie"];

/// Which of its labels such a jump takes isn't seen: the loops are listed, and no code is moved.
#[test]
fn tables_that_something_else_reads() {
    // Copied, and read there; one of labels beside another that is made while the program runs; in structures.
    let sources = [
        "int f(unsigned at, int n, int a, int way, void **mem) {
  static void *const A[] = {&&first, &&second, &&third, &&fourth};
  if (way == 0) { __builtin_memcpy(mem, A, sizeof A); goto *A[at]; }
  if (way == 1) goto *mem[2];
  a += g(9);
first: a += g(1);
second: a += g(2) * 3;
third: a -= 9;
  LOOP
  a = ~a;
fourth: a ^= 5;
  return a * 3; }",
        "int f(unsigned at, int n, int a, int way, void **mem) {
  static void *const A[] = {&&first, &&second};
  if (!mem[0]) { mem[0] = &&third; mem[1] = &&fourth; }
  if (way == 0) goto *A[at & 1];
  if (way == 1) goto *mem[at & 1];
  a += g(9);
first: a += g(1);
second: a += g(2) * 3;
third: a -= 9;
  LOOP
  a = ~a;
fourth: a ^= 5;
  return a * 3; }",
        "int f(unsigned at, int n, int a, int way) {
  static const struct { void *to; long x; } A[] = {{&&first, 1}, {&&second, 2}, {&&third, 3}, {&&fourth, 4}};
  if (way == 0) goto *A[at].to;
  a += g(9);
first: a += g(1);
second: a += g(2) * 3;
third: a -= 9;
  LOOP
  a = ~a;
fourth: a ^= 5;
  return a * A[at].x; }",
    ];
    for source in sources {
        for (program, command) in programs(source, &KINDS) {
            let scan = program.scan();
            assert_eq!(begins(&scan, Construct::Loop).len(), 1, "{command}");
            assert_eq!(complete(&scan, Construct::Loop), 0, "{command}\n{source}");
            assert_eq!(scan.windows, [], "{command}");
        }
    }
}

/// The table of a `switch` is nobody else's: a call through a variable at the function's end leads out of it.
#[test]
fn tables_that_nothing_else_reads() {
    let source = "
struct object { int (**calls)(struct object *); };
int f(unsigned at, int n, int a, struct object *o) {
  switch (at) { case 0: a += g(1); case 1: a += g(2) * 3; case 2: a -= g(7); case 3: a ^= (int)g(8); LOOP case 4: a = ~a;
    case 5: a ^= (int)g(5); case 6: b[0] += a; }
  return o->calls[2](o); }";
    for (program, command) in programs(source, &KINDS) {
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), 1, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// Two jumps through tables that the compiler makes one of lead to what is in either.
#[test]
fn jumps_that_became_one() {
    let source = "
int f(unsigned at, int n, int a, int way) {
  static void *const A[] = {&&first, &&second, &&third};
  static void *const B[] = {&&third, &&fourth, &&fifth};
  if (way == 0) goto *A[at];
  if (way == 1) goto *B[at];
  return a;
first: a += g(1); return a;
second: a += g(2) * 3; return a;
third: a -= 9;
  LOOP
  a = ~a;
  return a;
fourth: a ^= 5;
  LOOP
  a -= 3;
fifth: a += n;
  return a * 3; }";
    for (program, command) in programs(source, &KINDS) {
        // Both loops are seen, since both tables are.
        let scan = program.scan();
        assert_eq!(begins(&scan, Construct::Loop).len(), 2, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// What is done when a transaction fails begins in the midst of a window's bytes.
#[test]
fn transactions() {
    let source = "
int f(int n, int a) {
  __asm__ goto(\"xbegin %l[out]\" : : : \"eax\" : out);
  LOOP
  a = ~a;
out:
  a ^= 5;
  return (a + n) * 3; }";
    for (program, command) in programs(source, &KINDS) {
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), 1, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// Another module may know an entry by its symbol, which needn't be a function's.
#[test]
fn entries_with_symbols() {
    let source = "
int f(int n, int a) {
  LOOP
  a = ~a;
  __asm__ volatile(\".globl entry\\nentry:\");
  a ^= 5;
  return (a + n) * 3; }";
    for (program, command) in programs(source, &["-fPIC -shared", "-fPIC -shared -s"]) {
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), 1, "{command}");
        let table = std::process::Command::new("nm")
            .arg("-D")
            .arg(&program.path)
            .output()
            .unwrap();
        let table = String::from_utf8(table.stdout).unwrap();
        let line = table.lines().find(|line| line.ends_with(" entry")).unwrap();
        let entry = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        let covers = scan.windows.iter().find(|w| {
            let end = w.start.0 + u64::from(w.len);
            (w.start.0 + 1..end).contains(&entry)
        });
        assert_eq!(covers, None, "{command}: {entry:#x}");
    }
}
