//! Pieces of C: what every program begins and ends with, heads of loops, arithmetic.

use super::program::{ANYWHERE, Range};

/// What every program begins with. All that is added up is added in any order with the same result.
pub(super) const PROLOGUE: &str = r#"#include <omp.h>
#include <stdio.h>
#ifdef __cplusplus
#define TRY try
#define THROW(x) throw (int)(x)
#define CATCH(id) catch (int thrown) { add(id, (unsigned long)thrown); }
#else
#define TRY
#define THROW(x) add(0, x)
#define CATCH(id)
#endif
static unsigned long total, tasks, iterations, sections;
static long atomics;
static double exact;
volatile int zero;
#define K(n) ((n) + zero)
#ifdef __clang__
#define UNTIED
#else
#define UNTIED untied
#endif
static inline void add(unsigned long id, unsigned long x) {
  unsigned long mixed = (x + id) * 0x9e3779b97f4a7c15ul;
  __atomic_fetch_add(&total, mixed ^ mixed >> 29, __ATOMIC_RELAXED);
}
static inline void count(unsigned long *what, unsigned long by) { __atomic_fetch_add(what, by, __ATOMIC_RELAXED); }
__attribute__((noinline)) unsigned long leaf(unsigned long x) {
  return x < 3 ? x : leaf(x / 2) * 3 + 1;
}
"#;

/// ... and ends with.
pub(super) const EPILOGUE: &str = r#"  printf("%lx %lx %.1f\n", total, (unsigned long)atomics, exact);
  printf("tasks %lu\niterations %lu\nsections %lu\n", tasks, iterations, sections);
  return (int)(total & 63);
}
"#;

/// Work of a kind, line by line.
pub(super) fn work(id: usize, variant: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let text = match variant {
        0 => format!("add({id}, x);"),
        1 => format!(
            "{{ unsigned long b[8], s = 0; for (int k = 0; k < 8; k++) b[k] = x * k + {id}; for (int k = 0; k < 8; k++) s ^= b[k]; add({id}, s); }}"
        ),
        2 => format!(
            "{{ double d = 1; for (int k = 0; k < 16; k++) d = d * 0.5 + (double)(x & 7); add({id}, (unsigned long)d); }}"
        ),
        3 => format!("add({id}, leaf(x & 1023));"),
        4 => format!(
            "switch ((x + {id}) % 5) {{ case 0: add({id}, 3); break; case 1: add({id}, x); break; case 2: leaf(9); case 3: add({id}, 11); break; default: add({id}, x * x); }}"
        ),
        5 => {
            lines.push("#pragma omp atomic".to_owned());
            "atomics += (long)(x & 255);".to_owned()
        }
        6 => {
            lines.push("#pragma omp atomic".to_owned());
            "exact += 0.5;".to_owned()
        }
        7 => {
            lines.push(format!("{{ unsigned long s{id} = 0;"));
            lines.push(format!("#pragma omp simd reduction(+: s{id})"));
            lines.push(format!(
                "for (int k = 0; k < K(19); k++) s{id} += (unsigned long)k * x;"
            ));
            format!("add({id}, s{id}); }}")
        }
        ANYWHERE => format!("if (omp_get_thread_num() == 0) add({id}, x);"),
        _ => unreachable!("there are no more kinds of work"),
    };
    lines.push(text);
    lines
}

/// The head of a loop with so many iterations.
pub(super) fn head(range: &Range, name: &str, count: usize, style: usize) -> String {
    let of = range.of;
    // A constant, or what the compiler can't know; that no unsigned number is below zero it doesn't let pass.
    let n = match style & 4 {
        0 if count > 0 => count.to_string(),
        _ => format!("K({count})"),
    };
    match style & 3 {
        0 => format!("for ({of} {name} = 0; {name} < ({of}){n}; {name}++)"),
        1 => format!("for ({of} {name} = 3; {name} < ({of})(3 + 2 * {n}); {name} += 2)"),
        // gcc makes loops without iterations of some that count down without a sign.
        2 if !of.starts_with("unsigned") => {
            format!("for ({of} {name} = {n}; {name} > 0; {name}--)")
        }
        _ => format!("for ({of} {name} = 1; {name} <= ({of}){n}; {name} += 1)"),
    }
}
