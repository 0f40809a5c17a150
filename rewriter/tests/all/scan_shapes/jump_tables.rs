//! Loops with a `switch` in them: where its jump leads is known from the table, so that probes find their place.

use super::{levels, windows_are_sound};
use crate::scan_support::{compile, complete};
use ompfuse_format::Construct;

/// With every level of these compilers; what isn't installed is passed over.
fn one_loop(source: &str, compilers: &[&str]) {
    for compiler in compilers {
        levels()
            .iter()
            .for_each(|level| is_recorded(source, compiler, level));
    }
}

/// The program's loop has all its probes, and nothing jumps into their windows.
fn is_recorded(source: &str, compiler: &str, level: &str) {
    let command = format!("{compiler} -fopenmp {level}");
    let Some(program) = compile(source, &command) else {
        return;
    };
    let scan = program.scan();
    assert_eq!(complete(&scan, Construct::Loop), 1, "{command}");
    windows_are_sound(&scan, &program.objdump(), &command);
}

/// Where several tables' addresses are in one register in turn, a jump leads to the targets of any of them.
#[test]
fn several_jump_tables_in_one_register() {
    let source = "
static long tot;
static int op(int k, int v) {
  switch (k % 9) { case 0: return v+1; case 1: return v*3; case 2: return v^5; case 3: return v-7; case 4: return v<<1;
    case 5: return -v; case 6: return v%11; case 7: return v/3; default: return v; }
}
int main(int n, char **v) {
  long s = 0;
#pragma omp parallel for reduction(+:s) num_threads(2) schedule(static)
  for (int i = 0; i < 300; i++)
    switch (i % 7) { case 0: s += op(i, n); break; case 1: s += 1; break; case 2: s -= 2; break; case 3: s += i; break;
      case 4: s ^= 0; break; case 5: if (i > 200) continue; s += 3; break; case 6: s += op(n, i); }
  tot += s;
  return 0;
}
";
    for (compiler, level) in [("gcc-11", "-O3"), ("gcc", "-O2"), ("gcc", "-O3")] {
        is_recorded(source, compiler, level);
    }
}

/// gcc compares a number, and indexes the table with what it is shifted to.
#[test]
fn jump_tables_of_shifted_numbers() {
    let source = "
int may(int n) { __asm__ volatile(\"\" ::: \"memory\"); return n + 1; }
int main(int n, char **v) {
  unsigned long s = 0;
#pragma omp parallel for reduction(+:s) num_threads(2) schedule(static)
  for (unsigned long i = 0; i < 300; i++) {
    unsigned long k = i * 7 % 101;
    switch (k >> 4) { case 0: s += may(1); break; case 1: s += 2 * k; break; case 2: s ^= may(3); break;
      case 3: s += may(k) * 3; break; case 4: s -= may(9); break; }
  }
  return s == n;
}
";
    one_loop(source, &["gcc-11", "gcc-12"]);
}

/// A register holds a table's address from before the loop on, another function's table is in the same one elsewhere, and
/// the index was widened before the loop in which the narrow number is compared.
#[test]
fn jump_tables_in_front_of_loops() {
    let source = "
struct array { unsigned char type; int n; void *data; };
static inline double at(const struct array *a, int i) {
  switch (a->type) { case 0: return ((char *)a->data)[i]; case 1: return ((short *)a->data)[i]; case 2: return ((int *)a->data)[i];
    case 3: return ((long *)a->data)[i]; case 4: return ((float *)a->data)[i]; case 5: return ((double *)a->data)[i];
    case 6: return i; default: __builtin_trap(); }
}
double sum(const struct array *a, const struct array *b, int m) {
  double s = 0;
#pragma omp parallel for reduction(+:s) num_threads(2) schedule(static)
  for (int j = 0; j < m; j++) {
    for (int i = 0; i < a->n; i++) { s += at(a, i); s -= at(b, i) * 2; }
    for (int i = 0; i < a->n; i++) { s *= at(b, i); s += at(a, j) * 2; }
  }
  return s;
}
int main(void) { return 0; }
";
    one_loop(source, &["gcc-11", "gcc-12", "clang-19"]);
}
