//! Calls of the runtime: each that `objdump` sees is a site, and no other.

use crate::scan_support::{HEADER, compile, programs};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, Mechanism, Outcome, Text};
use ompfuse_rewriter::model::{Action, Scan, Target};
use std::collections::{BTreeMap, BTreeSet};

const PROGRAM: &str = r#"
void leaf(int n) {
  #pragma omp for schedule(dynamic) nowait
  for (int i = 0; i < n; i++) a[i & 1023] += g(i);
}
void tail(void) {
  #pragma omp barrier
}
long fib(long n) {
  long x, y;
  if (n < 2) return n;
  #pragma omp task shared(x)
  x = fib(n - 1);
  #pragma omp task shared(y)
  y = fib(n - 2);
  #pragma omp taskwait
  return x + y;
}
int main(int argc, char **argv) {
  double s = 0;
  long r = 0;
  #pragma omp parallel for reduction(+:s)
  for (int i = 0; i < argc * 100; i++) s += a[i & 1023];
  #pragma omp parallel
  {
    leaf(argc);
    #pragma omp single
    r = fib(10);
    tail();
    #pragma omp critical (name)
    a[1] += 1;
    #pragma omp critical
    {
      #pragma omp critical (inner)
      a[2] += 1;
    }
    #pragma omp sections
    {
      #pragma omp section
      pre();
      #pragma omp section
      post();
    }
    #pragma omp for ordered schedule(static)
    for (int i = 0; i < argc * 7; i++) {
      #pragma omp ordered
      a[i] = i;
    }
    #pragma omp for schedule(runtime)
    for (long i = 0; i < argc * 7; i++) pre();
    #pragma omp taskgroup
    {
      #pragma omp task
      pre();
    }
  }
  #pragma omp parallel for schedule(dynamic, 3)
  for (int i = 0; i < argc * 9; i++) a[i] += g(i);
  return (int)(s + r);
}
"#;

fn source() -> String {
    format!("{HEADER}{PROGRAM}")
}

fn listed(scan: &Scan) -> BTreeMap<u64, String> {
    scan.sites
        .iter()
        .filter_map(|s| Some((s.info.address.0, s.info.entry.as_deref()?.to_owned())))
        .filter(|(_, entry)| !entry.starts_with("omp_"))
        .collect()
}

#[test]
fn every_call_is_a_site() {
    for compiler in ["gcc", "clang-19"] {
        let flags = [
            "-O0",
            "-O1",
            "-O2",
            "-O3",
            "-Os",
            "-O2 -fno-pie -no-pie",
            "-O0 -s",
            "-O2 -s",
            "-O3 -fcf-protection=full",
            "-O2 -fno-pie -no-pie -s -Wl,-z,now",
            "-O2 -shared -fPIC",
        ];
        let commands = flags.map(|flags| format!("{compiler} -fopenmp {flags}"));
        for (command, program) in programs(&source(), commands) {
            let scan = program.scan();
            let theirs: BTreeMap<u64, String> = program
                .objdump()
                .iter()
                .filter_map(|l| Some((l.at, l.entry()?.to_owned())))
                .collect();
            assert!(theirs.len() > 20, "{command}");
            assert_eq!(listed(&scan), theirs, "{command}");
            let stripped = command.split_whitespace().any(|f| f == "-s");
            assert_eq!(scan.binary.stripped, stripped, "{command}");
        }
    }
}

#[test]
fn calls_through_the_offset_table() {
    let Some(program) = compile(&source(), "gcc -fopenmp -O2 -fno-plt") else {
        return;
    };
    let scan = program.scan();
    let theirs: BTreeSet<u64> = program
        .objdump()
        .iter()
        .filter(|l| l.text.contains("(%rip)") && l.text.contains("GOMP_"))
        .filter(|l| l.text.starts_with("call") || l.text.starts_with("jmp"))
        .map(|l| l.at)
        .collect();
    let mine: BTreeSet<u64> = scan
        .sites
        .iter()
        .filter(|s| {
            s.info
                .entry
                .as_deref()
                .is_some_and(|e| e.starts_with("GOMP"))
        })
        .map(|s| s.info.address.0)
        .collect();
    assert!(mine.len() > 20);
    assert_eq!(mine, theirs);
    for site in &scan.sites {
        if let Some(Action::Call { len, target, .. }) = &site.action {
            assert!(*len == 6 && matches!(target, Target::Slot(_)), "{site:?}");
        }
    }
}

#[test]
fn files_without_section_headers() {
    let Some(program) = compile(&source(), "gcc -fopenmp -O2 -s") else {
        return;
    };
    let whole = program.scan();
    let mut bytes = program.bytes.clone();
    bytes[40..48].fill(0); // e_shoff
    bytes[58..64].fill(0); // e_shentsize, e_shnum, e_shstrndx
    let scan = ompfuse_rewriter::scan(&bytes, "program").unwrap();
    assert_eq!(scan.sites, whole.sites);
    assert_eq!(scan.windows, whole.windows);
}

#[test]
fn outlined_functions_regions_and_details() {
    for compiler in ["gcc", "clang-19"] {
        let commands = ["-O0", "-O2"].map(|level| format!("{compiler} -fopenmp -g {level}"));
        for (command, program) in programs(&source(), commands) {
            let scan = program.scan();
            for site in &scan.sites {
                let info = &site.info;
                let creates = matches!(
                    site.action,
                    Some(Action::Call { probe, .. })
                        if matches!(probe.probe, Probe::Parallel | Probe::Fork | Probe::TaskCreate | Probe::TaskAlloc)
                );
                assert_eq!(creates, info.mechanism == Mechanism::Closure, "{command}");
                assert_eq!(creates, info.outlined.is_some(), "{command}: {info:?}");
                assert!(info.function.is_some(), "{command}: {info:?}");
                assert!(
                    info.source
                        .as_ref()
                        .is_some_and(|s| s.file.ends_with("program.c")),
                    "{info:?}"
                );
                if matches!(info.edge, Edge::End | Edge::Next) {
                    let begin = &scan.sites[info.region as usize].info;
                    assert_eq!(begin.edge, Edge::Begin, "{command}: {info:?}");
                    assert_eq!(begin.construct, info.construct, "{command}: {info:?}");
                    assert_eq!(begin.function, info.function, "{command}: {info:?}");
                    if info.construct == Construct::Critical {
                        assert_eq!(begin.detail, info.detail, "{command}: {info:?}");
                    }
                }
            }
            let detail = |d: &str| {
                scan.sites
                    .iter()
                    .any(|s| s.info.detail.as_deref() == Some(d))
            };
            for wanted in ["name", "inner", "dynamic", "runtime"] {
                assert!(detail(wanted), "{command}: no {wanted}");
            }
        }
    }
}

#[test]
fn combined_loops_belong_to_their_parallel_region() {
    let source = "int n; void f(int);
int main(void) {
  #pragma omp parallel for schedule(monotonic:dynamic, 2)
  for (int i = 0; i < n; i++) f(i);
}
void f(int i) { n += i; }";
    let Some(program) = compile(source, "gcc -fopenmp -O2") else {
        return;
    };
    let scan = program.scan();
    let next = scan
        .sites
        .iter()
        .find(|s| s.info.edge == Edge::Next)
        .unwrap();
    let begin = &scan.sites[next.info.region as usize].info;
    assert!(
        begin.edge == Edge::Encloses || begin.edge == Edge::Begin,
        "{begin:?}"
    );
    if begin.construct == Construct::Parallel {
        assert!(begin.outlined.is_some());
    }
}

#[test]
fn sources_without_debug_information_are_kmpcs() {
    let Some(program) = compile(&source(), "clang-19 -fopenmp -O1 -gline-tables-only") else {
        return;
    };
    let with = program.scan();
    let (named, all) = (
        with.sites
            .iter()
            .filter(|s| s.info.source.is_some())
            .count(),
        with.sites.len(),
    );
    assert_eq!(named, all);
    let implicit = with
        .sites
        .iter()
        .filter(|s| s.info.construct == Construct::ImplicitBarrier)
        .count();
    let explicit = with
        .sites
        .iter()
        .filter(|s| s.info.construct == Construct::Barrier)
        .count();
    assert!(implicit >= 3, "{implicit}");
    assert!((1..=2).contains(&explicit), "{explicit}"); // once more where it is inlined
    let sections = with
        .sites
        .iter()
        .filter(|s| s.info.construct == Construct::Sections && s.info.edge == Edge::Begin)
        .count();
    assert_eq!(sections, 1);
}

/// The end of a loop that the program divides itself belongs to the call that prepared the loop's scan or reductions.
#[test]
fn ends_of_prepared_loops() {
    let source = "int x[300], y[300];
int main(void) {
  int s = 0;
  #pragma omp parallel for reduction(inscan, +:s)
  for (int i = 0; i < 300; i++) {
    s += x[i];
    #pragma omp scan inclusive(s)
    y[i] = s;
  }
  return s;
}";
    for level in ["-O0", "-O2"] {
        let Some(program) = compile(source, &format!("gcc -fopenmp {level}")) else {
            return;
        };
        let scan = program.scan();
        let of = |entry: &str| {
            let mut sites = scan.sites.iter().map(|s| &s.info);
            sites.find(|i| i.entry.as_deref() == Some(entry))
        };
        let prepared = of("GOMP_loop_start").expect("gcc calls it").id;
        let end = of("GOMP_loop_end_nowait").expect("gcc calls it");
        assert_eq!(end.region, prepared, "{level}");
    }
}

/// A compiler that doesn't know that a function of another file never returns makes code behind its calls.
#[test]
fn code_behind_calls_that_never_return() {
    let program = r#"
extern void halt(void);
__asm__(".text\n.globl halt\n.type halt, @function\nhalt:\n sub $8, %rsp\n call abort@plt\n.size halt, . - halt\n");
void abort(void);
int main(int argc, char **argv) {
  if (argc > 100) abort();
  #pragma omp parallel
  {
    if (argc > 10) {
      halt();
      #pragma omp master
      { pre(); a[3] = 1; }
    }
    #pragma omp master
    { post(); a[4] = 1; }
    #pragma omp barrier
    g(2);
  }
  return 0;
}
"#;
    let commands = ["-O1", "-O2"].map(|level| format!("gcc -fopenmp {level}"));
    for (command, program) in programs(&format!("{HEADER}{program}"), commands) {
        let scan = program.scan();
        let masters = crate::scan_support::begins(&scan, Construct::Master);
        assert_eq!(masters.len(), 2, "{command}");
        for master in masters {
            let info = &master.info;
            assert_eq!(info.outcome, Outcome::Patchable, "{command}: {info:?}");
        }
    }
}

/// How many of these the others don't have.
fn missing(these: &[Text], others: &[Text]) -> usize {
    let count = |list: &[Text], name: &Text| list.iter().filter(|n| *n == name).count();
    let names: BTreeSet<&Text> = these.iter().collect();
    let lacks = |name| count(these, name).saturating_sub(count(others, name));
    names.into_iter().map(lacks).sum()
}

/// Position-independent code of the large model adds distances to a table's address, in registers or in the call's operand.
#[test]
fn calls_of_the_large_model() {
    for level in ["-O0", "-O1", "-O2"] {
        let entries = |model: &str| {
            let command = format!("clang-19 -fopenmp {level} -fPIC {model}");
            let scan = compile(&source(), &command)?.scan();
            let sites = scan.sites.iter().filter_map(|s| s.info.entry.clone());
            let mut entries: Vec<_> = sites.collect();
            entries.sort();
            Some(entries)
        };
        let Some(small) = entries("-mcmodel=small") else {
            return;
        };
        assert!(small.len() > 20, "{level}");
        let large = entries("-mcmodel=large").unwrap_or_default();
        let found = small.len() - missing(&small, &large);
        // Where the table's address goes through the stack beside variables that others write, nobody knows it afterwards.
        let least = if level == "-O0" {
            small.len()
        } else {
            small.len() * 9 / 10
        };
        assert!(found >= least, "{level}: {found} of {}", small.len());
        assert_eq!(missing(&large, &small), 0, "{level}");
    }
}
