//! Static loops whose chunks gcc deals itself, of few iterations: their comparisons are merged, or look like others.

use super::{levels, windows_are_sound};
use crate::scan_support::{HEADER, Program, begins, compile};
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Outcome};
use std::fmt::Write;

/// The program as both versions of gcc make it at every level, each with the command that made it.
fn by_gcc(source: &str, flags: &str) -> impl Iterator<Item = (String, Program)> {
    let compilers = ["gcc-11", "gcc-12"].into_iter();
    let commands = compilers.flat_map(|c| levels().into_iter().map(move |l| (c, l)));
    commands.filter_map(move |(compiler, level)| {
        let command = format!("{compiler} -fopenmp {flags} {level}");
        let program = compile(source, &command)?;
        Some((command, program))
    })
}

/// Of a single iteration gcc compares a chunk's start with 0 instead of 1.
#[test]
fn chunks_of_a_single_iteration() {
    let mut source = HEADER.to_owned();
    let mut count = 0;
    for t in ["int", "long", "short"] {
        for head in ["i = 0; i < 1; i++", "i = 3; i < 5; i += 2"] {
            for chunk in [1, 3] {
                writeln!(
                    source,
                    "void f{count}(void) {{
#pragma omp for schedule(static, {chunk})
for ({t} {head}) {{ a[i & 1023] += g(i); }}
if (omp_get_thread_num() == 0) post(); }}"
                )
                .unwrap();
                count += 1;
            }
        }
    }
    source.push_str("int main(void) {}");
    for (command, program) in by_gcc(&source, "-fno-ipa-icf") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), count, "{command}");
        for site in &loops {
            assert_eq!(
                site.info.detail.as_deref(),
                Some("static, chunk"),
                "{command}"
            );
            let known = site.info.outcome == Outcome::Patchable || site.info.reason.is_some();
            assert!(known, "{command}: {:?}", site.info);
        }
        let masters = begins(&scan, Construct::Master).len();
        assert!(masters <= count, "{command}: {masters}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// In a cycle, a loop's first chunk may be compared in the first round only.
#[test]
fn chunks_that_are_compared_in_the_first_round() {
    let source = format!(
        "{HEADER}
void f(int n) {{
  for (int k = 0; k < n; k++) {{
#pragma omp for schedule(static, 5) nowait
    for (unsigned i = 2; i < 96; i += 3) if (b[i] > 0) post(); else a[i] += 1;
  }}
}}
void g2(void) {{
  for (int k = 0; k < 2; k++) {{
#pragma omp for schedule(static, 5) nowait
    for (unsigned i = 2; i < 96; i += 3) if (b[i] > 0) post(); else a[i] += 1;
  }}
}}
int main(void) {{}}"
    );
    let mut listed = 0;
    for (command, program) in by_gcc(&source, "") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 2, "{command}");
        for site in &loops {
            let info = &site.info;
            let known = info.outcome == Outcome::Patchable || info.reason.is_some();
            assert!(known, "{command}: {info:?}");
            listed += usize::from(info.outcome != Outcome::Patchable);
        }
    }
    assert!(listed > 0, "all of them are compared in every round");
}

/// Cycles of chunks that are entered in several places: each is listed.
#[test]
fn chunks_in_other_cycles_are_listed() {
    let source = format!(
        "{HEADER}
double c[104][104], d[104][104], e[104][104];
void repeated(int m) {{
#pragma omp parallel
  for (int k = 0; k < 2; k++) {{
#pragma omp master
    pre();
#pragma omp barrier
#pragma omp for schedule(static, 1) nowait
    for (long i = 0; i < 96; i += 2) {{
      for (unsigned j = 0; j < m; j++)
        for (unsigned l = 0; l < m; l++) e[i][j] += c[i][l] * d[l][j];
    }}
  }}
}}
void twice(int m, unsigned n) {{
  if (omp_get_thread_num() == 0) pre();
#pragma omp for schedule(static, 4)
  for (unsigned i = 2; i < n; i += 3)
    for (unsigned j = 0; j < m; j++)
      for (unsigned l = 0; l < m; l++) e[i][j] += c[i][l] * d[l][j];
}}
int main(void) {{}}"
    );
    for (command, program) in by_gcc(&source, "") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 2, "{command}");
        for site in &loops {
            let known = site.info.outcome == Outcome::Patchable || site.info.reason.is_some();
            assert!(known, "{command}: {:?}", site.info);
        }
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// A `master` before it makes the first thread come to the chunks on a way of its own, and what the body ends with may be copied to each
/// of its branches: chunks then end in several places.
#[test]
fn chunks_that_end_in_several_places() {
    let source = format!(
        "{HEADER}
unsigned long total, rounds;
void add(unsigned long, unsigned long) __attribute__((always_inline));
inline void add(unsigned long id, unsigned long x) {{
  unsigned long mixed = (x + id) * 0x9e3779b97f4a7c15ul;
  __atomic_fetch_add(&total, mixed ^ mixed >> 29, __ATOMIC_RELAXED);
}}
void f(unsigned long x) {{
#pragma omp master
  add(10, x);
#pragma omp for schedule(static, 1) nowait
  for (unsigned i = 1; i <= 4; i += 1) {{
    __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    unsigned long y = x * 31 + i;
    switch ((y + 13) % 5) {{
    case 0: add(13, 3); break;
    case 1: add(13, y); break;
    case 2: g(9);
    case 3: add(13, 11); break;
    default: add(13, y * y);
    }}
  }}
#pragma omp barrier
}}
int main(void) {{}}"
    );
    for (command, program) in by_gcc(&source, "-mavx2") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 1, "{command}");
        let info = &loops[0].info;
        let known = info.outcome == Outcome::Patchable || info.reason.is_some();
        assert!(known, "{command}: {info:?}");
    }
}

/// Behind a `master`, what is compared at the end of a round decides about the next chunk, not about the first one.
#[test]
fn chunks_that_are_compared_behind_them() {
    let source = format!(
        "{HEADER}
void f(int c) {{
#pragma omp master
  pre();
#pragma omp for schedule(static, c) nowait
  for (unsigned i = 0; i < 4; i++) if (b[i & 1] > 2) a[2] += g(3); else a[3] = i;
  post();
}}
int main(void) {{}}"
    );
    for (command, program) in by_gcc(&source, "") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 1, "{command}");
        let (begin, info) = (loops[0].info.id, &loops[0].info);
        let mut parts = scan.sites.iter().filter(|s| s.info.region == begin);
        let in_order = parts.any(|s| s.info.edge == Edge::Next);
        // Others compare before the iterations in each round.
        let behind = ["-O2", "-O3"].iter().any(|l| command.ends_with(l));
        let known = info.reason.is_some() || in_order || !behind;
        assert!(known, "{command}: {info:?}");
    }
}

/// Loops of few iterations in a row: who has a chunk of one has one of the other, so gcc asks once. Each is listed, and
/// none takes the comparison of another for its own.
#[test]
fn chunks_that_are_compared_elsewhere() {
    let source = format!(
        "{HEADER}
void f(void) {{
#pragma omp for schedule(static, 1)
for (int i = 0; i < 5; i++) a[i] += g(i);
#pragma omp for schedule(static, 1)
for (int i = 0; i < 5; i++) b[i] += g(i);
}}
int main(void) {{}}"
    );
    for (command, program) in by_gcc(&source, "") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 2, "{command}");
        for site in &loops {
            let known = site.info.outcome == Outcome::Patchable || site.info.reason.is_some();
            assert!(known, "{command}: {:?}", site.info);
        }
        let barriers = scan
            .sites
            .iter()
            .filter(|s| s.info.entry.as_deref() == Some("GOMP_barrier"));
        let first_barrier = barriers.map(|s| s.info.address.0).min();
        let parts = scan
            .sites
            .iter()
            .filter(|s| s.info.region == loops[0].info.id);
        for site in parts.filter(|s| s.info.edge == Edge::Next) {
            assert!(
                Some(site.info.address.0) < first_barrier,
                "{command}: {:?}",
                site.info
            );
        }
    }
}
