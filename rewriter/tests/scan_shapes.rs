//! Constructs that gcc compiles without a call: loops, masters and singles, each with its end; and code that is none.

mod scan_support;

use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::{Edge, Mechanism, Outcome};
use ompfuse_rewriter::model::{Action, ProbeSpec, Scan, Site};
use scan_support::{HEADER, begins, compile, complete, ends};
use std::collections::BTreeSet;
use std::fmt::Write;

const LEVELS: [&str; 9] = [
    "-O0",
    "-O1",
    "-Og",
    "-O2",
    "-O3",
    "-Os",
    "-O2 -fno-plt",
    "-O3 -fno-pie -no-pie -march=x86-64-v3",
    "-O2 -s",
];

/// Loops in many types, directions and surroundings; one in each function.
fn loops() -> (String, usize) {
    let mut source = HEADER.to_owned();
    let mut count = 0;
    for t in ["int", "unsigned", "long", "unsigned long"] {
        for head in [
            format!("{t} i = 0; i < n; i++"),
            format!("{t} i = 1; i <= n; i += 3"),
            format!("{t} i = n; i > 0; i--"),
            format!("{t} i = lo; i < n; i += st"),
        ] {
            let body = "a[i & 1023] += g(i);";
            for form in [
                format!("#pragma omp parallel for\nfor ({head}) {{ {body} }}"),
                format!(
                    "#pragma omp parallel\n{{ pre();\n#pragma omp for\nfor ({head}) {{ {body} }}\npost(); }}"
                ),
                format!(
                    "#pragma omp parallel\n{{ pre();\n#pragma omp for nowait\nfor ({head}) {{ {body} }}\npost(); }}"
                ),
                format!("#pragma omp for\nfor ({head}) {{ {body} }}"),
                format!("#pragma omp for nowait\nfor ({head}) {{ {body} }}"),
                format!(
                    "double s = 0;\n#pragma omp parallel for reduction(+:s)\nfor ({head}) {{ {body} s += i; }}\nreturn s;"
                ),
                format!(
                    "{t} q = 0;\n#pragma omp parallel for lastprivate(q)\nfor ({head}) {{ {body} q = i; }}\nreturn q;"
                ),
            ] {
                writeln!(
                    source,
                    "double f{count}({t} n, {t} lo, {t} st) {{\n{form}\nreturn 0; }}"
                )
                .unwrap();
                count += 1;
            }
        }
    }
    source.push_str("int main(void) {}");
    (source, count)
}

#[test]
fn static_loops_have_begin_and_end() {
    let (source, count) = loops();
    for level in LEVELS {
        let command = format!("gcc -fopenmp -fno-ipa-icf {level}");
        let Some(program) = compile(&source, &command) else {
            continue;
        };
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), count, "{command}");
        let lines = program.objdump();
        for site in begins(&scan, Construct::Loop) {
            let Some(Action::Inline(spec)) = &site.action else {
                panic!("{:?}", site.info)
            };
            assert_eq!(spec.probe, Probe::InlineLoopBegin);
            let line = lines.iter().find(|l| l.at == site.info.address.0).unwrap();
            let unsigned = line.text.starts_with("div");
            assert!(unsigned || line.text.starts_with("idiv"), "{}", line.text);
            assert_eq!(spec.unsigned, unsigned);
            assert!(spec.width == 4 || spec.width == 8);
            assert!(spec.args[0] < 16 || spec.args[0] == NO_ARG);
        }
        windows_are_sound(&scan, &lines, &command);
    }
}

/// Windows begin and end at instructions, and nothing branches into them.
fn windows_are_sound(scan: &Scan, lines: &[scan_support::Line], command: &str) {
    let starts: BTreeSet<u64> = lines.iter().map(|l| l.at).collect();
    let targets: BTreeSet<u64> = lines
        .iter()
        .filter_map(scan_support::Line::target)
        .collect();
    for window in &scan.windows {
        let (from, to) = (window.start.0, window.start.0 + u64::from(window.len));
        assert!(
            starts.contains(&from) && starts.contains(&to),
            "{command}: {window:?}"
        );
        assert_eq!(
            targets.range(from + 1..to).next(),
            None,
            "{command}: {window:?}"
        );
        let mut inside: Vec<_> = lines
            .iter()
            .filter(|l| (from..to).contains(&l.at))
            .collect();
        let last = inside.pop().unwrap();
        assert!(
            inside.iter().all(|l| !l.text.contains("call")),
            "{command}: {}",
            last.text
        );
        for &site in &window.sites {
            assert!(starts.contains(&scan.sites[site as usize].info.address.0));
        }
    }
}

#[test]
fn masters_and_singles_have_begin_and_end() {
    let mut source = HEADER.to_owned();
    let (mut masters, mut singles) = (0, 0);
    for body in [
        "a[0] = 1;",
        "pre();",
        "for (int i = 0; i < n; i++) a[i] += 1;",
    ] {
        for after in ["", "post();", "a[3] += 2;", "\n#pragma omp barrier\n"] {
            for before in ["", "pre();"] {
                for (construct, master) in [
                    ("#pragma omp master\n", true),
                    ("#pragma omp masked filter(2)\n", true),
                    ("if (omp_get_thread_num() == 1)", true),
                    ("#pragma omp single\n", false),
                    ("#pragma omp single nowait\n", false),
                ] {
                    writeln!(
                        source,
                        "void f{}(int n) {{\n#pragma omp parallel\n{{ {before}\n{construct} {{ {body} }}\n{after} }} }}",
                        masters + singles
                    )
                    .unwrap();
                    if master {
                        masters += 1;
                    } else {
                        singles += 1;
                    }
                }
            }
        }
    }
    source.push_str("int main(void) {}");
    for level in LEVELS {
        let command = format!("gcc -fopenmp -fno-ipa-icf -fno-partial-inlining {level}");
        let Some(program) = compile(&source, &command) else {
            continue;
        };
        let scan = program.scan();
        // The smallest code has no room for a jump at some ends.
        let crowded = begins(&scan, Construct::Master)
            .iter()
            .filter(|b| {
                b.info
                    .reason
                    .as_deref()
                    .is_some_and(|r| r.contains("bytes free"))
            })
            .count();
        assert!(crowded == 0 || (crowded < 4 && level == "-Os"), "{command}");
        assert_eq!(
            complete(&scan, Construct::Master) + crowded,
            masters,
            "{command}"
        );
        assert_eq!(complete(&scan, Construct::Single), singles, "{command}");
        assert_eq!(complete(&scan, Construct::Loop), 0, "{command}");
        for site in begins(&scan, Construct::Master) {
            if site.action.is_none() {
                continue;
            }
            let (Some(Action::Call { probe, .. }) | Some(Action::Inline(probe))) = &site.action
            else {
                panic!("{:?}", site.info)
            };
            assert!((0..=2).contains(&probe.param), "{command}");
            assert_eq!(site.info.detail.as_deref(), Some("or equivalent"));
        }
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// One function's sites, in short.
fn outline(scan: &Scan, function: &str) -> Vec<(Construct, Edge, Mechanism)> {
    scan.sites
        .iter()
        .filter(|s| {
            s.info
                .function
                .as_deref()
                .is_some_and(|f| f.starts_with(function))
        })
        .filter(|s| s.info.construct != Construct::Service)
        .map(|s| (s.info.construct, s.info.edge, s.info.mechanism))
        .collect()
}

#[test]
fn constructs_in_a_row_end_before_the_next_begins() {
    let source = format!(
        "{HEADER} void row(int n, long m) {{
#pragma omp parallel
  {{
#pragma omp for nowait
    for (long i = 0; i < m; i++) a[i & 1023] += i;
#pragma omp master
    a[0] = 3;
#pragma omp for
    for (int i = 10; i < n; i += 3) a[i & 1023] += i * 2;
#pragma omp single nowait
    a[1] = 5;
  }}
}}
int main(void) {{}}"
    );
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let Some(program) = compile(&source, &format!("gcc -fopenmp {level}")) else {
            continue;
        };
        let scan = program.scan();
        let sites = outline(&scan, "row._omp_fn");
        let constructs: Vec<_> = sites.iter().map(|s| (s.0, s.1)).collect();
        use Construct::{ImplicitBarrier, Loop, Master, Single};
        use Edge::{Begin, Encloses, End};
        assert_eq!(
            constructs,
            [
                (Loop, Begin),
                (Loop, End),
                (Master, Begin),
                (Master, End),
                (Loop, Begin),
                (Loop, End),
                (ImplicitBarrier, Encloses),
                (Single, Begin),
                (Single, End),
            ],
            "{level}"
        );
        assert_eq!(sites[5].2, Mechanism::Implied, "{level}");
    }
}

#[test]
fn loops_that_share_their_bounds() {
    let source = format!(
        "{HEADER} void f(int n) {{
#pragma omp parallel
  {{
#pragma omp for
    for (int i = 0; i < n; i++) a[i] *= 2;
#pragma omp for
    for (int i = 0; i < n; i++) b[i] += a[n - 1 - i];
  }}
}}
int main(void) {{}}"
    );
    for level in ["-O1", "-O2", "-O3"] {
        let Some(program) = compile(&source, &format!("gcc -fopenmp {level}")) else {
            continue;
        };
        let scan = program.scan();
        let found = begins(&scan, Construct::Loop);
        assert!(found.len() >= 2, "{level}: the second loop is not listed");
        assert_eq!(found[0].info.outcome, Outcome::Patchable, "{level}");
        let end = ends(&scan, found[0]);
        assert_eq!(end.len(), 1, "{level}");
        assert_eq!(end[0].info.mechanism, Mechanism::Implied, "{level}");
        assert!(
            end[0].info.address < found[1].info.address,
            "{level}: the first loop ends behind the second's begin"
        );
    }
}

fn spec(site: &Site) -> Option<&ProbeSpec> {
    match &site.action {
        Some(Action::Inline(spec)) => Some(spec),
        _ => None,
    }
}

#[test]
fn unoptimised_loops_divide_twice_and_begin_once() {
    let source = format!(
        "{HEADER} int main(int n, char **v) {{
#pragma omp parallel for
  for (int i = 0; i < n; i++) a[i & 1023] = i;
}}"
    );
    let program = compile(&source, "gcc -fopenmp -O0").unwrap();
    let scan = program.scan();
    let found = begins(&scan, Construct::Loop);
    assert_eq!(found.len(), 1);
    let divisions: Vec<u64> = program
        .objdump()
        .iter()
        .filter(|l| l.text.starts_with("idiv"))
        .map(|l| l.at)
        .collect();
    assert_eq!(divisions.len(), 2);
    assert_eq!(found[0].info.address.0, divisions[0]);
    assert_eq!(
        spec(found[0]).map(|s| (s.width, s.unsigned)),
        Some((4, false))
    );
}

#[test]
fn source_lines_of_inlined_constructs() {
    let source = "double a[100];
int omp_get_thread_num(void);
int main(int n, char **v) {
#pragma omp parallel
  {
#pragma omp for nowait
    for (int i = 0; i < n; i++) a[i] = i;
#pragma omp master
    a[0] = 1;
  }
}";
    let program = compile(source, "gcc -fopenmp -O1 -g").unwrap();
    let scan = program.scan();
    let line = |c| {
        begins(&scan, c)[0]
            .info
            .source
            .as_ref()
            .map(|s| s.line)
            .unwrap()
    };
    assert!((6..=7).contains(&line(Construct::Loop)));
    assert!((8..=9).contains(&line(Construct::Master)));
}

/// Ordinary code that uses the same functions and instructions.
const NEGATIVES: &str = r"
int block(int n, int *lo, int *hi) {
  int nt = omp_get_num_threads(), tid = omp_get_thread_num();
  *lo = n / nt * tid;
  *hi = tid == nt - 1 ? n : n / nt * (tid + 1);
  return *hi - *lo;
}
double slice(int n) {
  double s = 0;
  int chunk = (n + omp_get_num_threads() - 1) / omp_get_num_threads();
  int from = chunk * omp_get_thread_num(), to = from + chunk;
  if (to > n) to = n;
  for (int i = from; i < to; i++) s += g(i);
  return s;
}
int average(int n) { return n / omp_get_num_threads(); }
int rest(int n) { return n % omp_get_num_threads(); }
int less(int n) { return omp_get_thread_num() < n; }
int both(int n) {
  int q = n / omp_get_num_threads(), r = n % omp_get_num_threads();
  if (q < r) return q;
  for (int i = 0; i < r; i++) pre();
  return r;
}
int any(int n, int m) { return n / m + n % m; }
void ranges(int n, int *from, int *to) {
  int nt = omp_get_num_threads(), tid = omp_get_thread_num();
  *from = (int)((long)n * tid / nt);
  *to = (int)((long)n * (tid + 1) / nt);
}
double remainders(int n) {
  int nt = omp_get_num_threads(), tid = omp_get_thread_num();
  int base = n / nt, extra = n % nt;
  int from = tid * base + (tid < extra ? tid : extra), to = from + base + (tid < extra);
  double s = 0;
  for (int i = from; i < to; i++) s += g(i);
  return s;
}
double first_extra(int n) {
  int nt = omp_get_num_threads(), tid = omp_get_thread_num();
  int base = n / nt, extra = n % nt;
  double s = 0;
  if (tid < extra) s += g(nt * base + tid);
  for (int i = tid * base; i < (tid + 1) * base; i++) s += g(i);
  return s;
}
unsigned long larger_first(unsigned long n, unsigned long *from) {
  unsigned long nt = omp_get_num_threads(), tid = omp_get_thread_num();
  unsigned long base = n / nt, extra = n % nt, to;
  if (tid < extra) *from = tid * (base + 1), to = *from + base + 1;
  else *from = extra * (base + 1) + (tid - extra) * base, to = *from + base;
  for (unsigned long i = *from; i < to; i++) a[i & 1023] += g(i);
  return to;
}
double extras(int n) {
  int nt = omp_get_num_threads(), tid = omp_get_thread_num();
  int base = n / nt, extra = n % nt;
  double s = 0;
  for (int i = tid * base; i < (tid + 1) * base; i++) s += g(i);
  if (tid < extra) s += g(nt * base + tid);
  return s;
}
int neighbour(int n) { return (omp_get_thread_num() + 1) % omp_get_num_threads() + n; }
int halves(int n) {
  int tid = omp_get_thread_num();
  if (tid < omp_get_num_threads() / 2) pre(); else post();
  return n / (tid + 1);
}
int last(void) { return omp_get_thread_num() == omp_get_num_threads() - 1 ? 3 : 4; }
void grid(int n, int rows, int *r, int *c) {
  int tid = omp_get_thread_num(), columns = omp_get_num_threads() / rows;
  *r = tid / columns;
  *c = tid % columns;
  for (int i = *r; i < n / columns; i++) pre();
}
int blocks(int n) {
  int nt = omp_get_num_threads(), size = (n + nt - 1) / nt, done = 0;
  for (int b = 0; b < nt; b++)
    for (int i = b * size; i < (b + 1) * size && i < n; i++) done++;
  return done;
}
void main_thread_waits(void) {
#pragma omp barrier
}
";

#[test]
fn ordinary_code_has_no_inlined_loops() {
    let source = format!("{HEADER}{NEGATIVES} int main(void) {{}}");
    for level in LEVELS {
        let compilers = ["gcc-11", "gcc-12", "clang-19"];
        for command in compilers.map(|c| format!("{c} -fopenmp {level}")) {
            let Some(program) = compile(&source, &command) else {
                continue;
            };
            let scan = program.scan();
            let loops: Vec<_> = begins(&scan, Construct::Loop)
                .iter()
                .map(|s| &s.info)
                .collect();
            assert!(loops.is_empty(), "{command}: {loops:?}");
            assert!(begins(&scan, Construct::Single).is_empty(), "{command}");
            assert!(begins(&scan, Construct::Distribute).is_empty(), "{command}");
            assert!(begins(&scan, Construct::Master).is_empty(), "{command}");
        }
    }
}

#[test]
fn exceptions_and_jump_tables_keep_their_targets() {
    let source = r"
double a[1024];
void may(int);
int main(int n, char **v) {
#pragma omp parallel
  {
#pragma omp for nowait
    for (int i = 0; i < n; i++) {
      try { may(i); } catch (int e) { a[e & 7] += 1; }
      switch (i) { case 0: a[1]=2; break; case 1: may(3); break; case 2: may(4); break; case 3: may(9); break;
        case 4: may(11); break; case 5: a[6]=7; break; case 6: may(2); }
    }
#pragma omp master
    { try { may(7); } catch (...) { a[0] = 0; } }
  }
}
void may(int i) { if (i & 1) throw i; a[i & 7] += i; }
";
    for level in ["-O0", "-O1", "-O2", "-O3", "-O2 -s"] {
        let command = format!("g++ -fopenmp {level}");
        let Some(program) = compile(source, &command) else {
            continue;
        };
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), 1, "{command}");
        assert_eq!(complete(&scan, Construct::Master), 1, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

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

#[test]
fn atomics_and_fences_are_listed() {
    let source = "
int x; double d; long y[4];
int main(int n, char **v) {
#pragma omp parallel
  {
#pragma omp atomic
    x++;
#pragma omp atomic
    d *= 1.5;
#pragma omp atomic capture
    y[0] = y[1]++;
  }
#pragma omp parallel
  {
    x = n;
#pragma omp flush
    n = x;
  }
}
__attribute__((noinline)) int elsewhere(int *p) { return __atomic_fetch_add(p, 3, __ATOMIC_SEQ_CST); }
";
    for command in [
        "gcc -fopenmp -O0",
        "gcc -fopenmp -O2",
        "gcc -fopenmp -O2 -s",
    ] {
        let Some(program) = compile(source, command) else {
            continue;
        };
        let scan = program.scan();
        let of = |c: Construct| -> Vec<&Site> {
            scan.sites
                .iter()
                .filter(|s| s.info.construct == c)
                .collect()
        };
        // The function that no construct hands over isn't looked at.
        let locked = |l: &scan_support::Line| l.text.starts_with("lock");
        let all = program.objdump().iter().filter(|l| locked(l)).count();
        let (atomics, flushes) = (of(Construct::Atomic), of(Construct::Flush));
        assert_eq!(atomics.len(), 3, "{command}");
        assert_eq!(atomics.len() + flushes.len() + 1, all, "{command}");
        assert_eq!(flushes.len(), 1, "{command}");
        for site in atomics.into_iter().chain(flushes) {
            assert_eq!(site.info.outcome, Outcome::Skipped, "{command}");
            assert_eq!(site.info.mechanism, Mechanism::Inline, "{command}");
            assert_eq!(
                site.info.detail.as_deref(),
                Some("or equivalent"),
                "{command}"
            );
        }
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
