//! Code that is none of the constructs that compilers inline, and code that must stay where it is.

use super::{levels, windows_are_sound};
use crate::scan_support::{self, HEADER, begins, complete, programs};
use ompfuse_format::Construct;
use ompfuse_format::site::{Mechanism, Outcome};
use ompfuse_rewriter::model::Site;

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
    // With numbers of fewer bytes too.
    let of = |t: &str| NEGATIVES.replace("int ", &format!("{t} "));
    let sources = ["int", "short", "signed char"].map(of);
    for (level, negatives) in levels()
        .iter()
        .flat_map(|l| sources.iter().map(move |s| (l, s)))
    {
        let source = format!("{HEADER}{negatives} int main(void) {{}}");
        let compilers = ["gcc-11", "gcc-12", "clang-19"];
        let commands = compilers.map(|c| format!("{c} -fopenmp {level}"));
        for (command, program) in programs(&source, commands) {
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
    let commands =
        ["-O0", "-O1", "-O2", "-O3", "-O2 -s"].map(|level| format!("g++ -fopenmp {level}"));
    for (command, program) in programs(source, commands) {
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), 1, "{command}");
        assert_eq!(complete(&scan, Construct::Master), 1, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// Vectorised code compares the length of a chunk, which begins no loop. Chunks that are dealt to teams are a loop too.
#[test]
fn chunks_that_are_vectorised() {
    let source = "
double x[2000];
long c;
int main(int n, char **v) {
#pragma omp teams num_teams(3) thread_limit(2) reduction(+:c)
  {
#pragma omp distribute parallel for simd schedule(static, 4) dist_schedule(static, 16) reduction(+:c)
    for (int i = 0; i < 2000; i++) { x[i] = i * 0.5; c += i; }
  }
  return 0;
}
";
    let commands = ["-O1", "-O2", "-O3"].map(|level| format!("gcc -fopenmp {level}"));
    for (command, program) in programs(source, commands) {
        let scan = program.scan();
        assert_eq!(begins(&scan, Construct::Loop).len(), 1, "{command}");
        let dealt = begins(&scan, Construct::Distribute);
        assert_eq!(dealt.len(), 1, "{command}");
        assert_eq!(dealt[0].info.detail.as_deref(), Some("static, chunk"));
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
    let commands = [
        "gcc -fopenmp -O0",
        "gcc -fopenmp -O2",
        "gcc -fopenmp -O2 -s",
    ];
    for (command, program) in programs(source, commands) {
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

/// Code of one thread alone, with steps of the number of threads: a loop of OpenMP's is met by all threads of a team.
#[test]
fn strides_of_one_thread_alone_are_no_loops() {
    let source = "
double first(T n) {
  double s = 0;
  if (omp_get_thread_num() == 0) for (T i = 0; i < n; i += omp_get_num_threads()) s += g(i);
  return s;
}
double named(T n) {
  double s = 0;
  T tid = omp_get_thread_num(), nt = omp_get_num_threads();
  if (tid == 0) for (T i = 0; i < n; i += nt) s += g(i);
  post();
  return s;
}
double from_own(T n) {
  double s = 0;
  T nt = omp_get_num_threads(), tid = omp_get_thread_num();
  if (tid == 0) for (T i = tid; i < n; i += nt) s += g(i);
  return s;
}
double others_return(T n) {
  double s = 0;
  T tid = omp_get_thread_num(), nt = omp_get_num_threads();
  if (tid != 0) return 0;
  pre();
  for (T i = 0; i < n; i += nt) s += g(i);
  return s;
}
double third(T n) {
  double s = 0;
  T tid = omp_get_thread_num(), nt = omp_get_num_threads();
  if (tid == 3) for (T i = 0; i < n; i += nt) s += g(i);
  return s;
}
double no_later_ones(T n) {
  double s = 0;
  int tid = omp_get_thread_num(); T nt = omp_get_num_threads();
  if (tid > 0) return 0;
  pre();
  for (T i = tid; i < n; i += nt) s += g(i);
  return s;
}
double not_from_own(T n) {
  double s = 0;
  int tid = omp_get_thread_num(); T nt = omp_get_num_threads();
  if (tid > 0) return 0;
  for (T i = 0; i < n; i += nt) s += g(i);
  return s;
}
double of_a_known_number(T n) {
  double s = 0;
  if (omp_get_thread_num() <= 0) for (T i = 1; i < 100; i += omp_get_num_threads()) s += g(i);
  post();
  return s;
}
double first_two(T n) {
  double s = 0;
  int tid = omp_get_thread_num();
  if (tid < 2) for (T i = 1; i < n; i += omp_get_num_threads()) s += g(i);
  post();
  return s;
}
double later_ones(T n) {
  double s = 0;
  int tid = omp_get_thread_num(); T nt = omp_get_num_threads();
  if (tid >= 1) for (T i = tid; i < n; i += nt) s += g(i);
  return s;
}
double all_but_the_first(T n) {
  double s = 0;
  T tid = omp_get_thread_num(), nt = omp_get_num_threads();
  if (tid != 0) for (T i = tid; i < n; i += nt) s += g(i);
  return s;
}
int main(void) {}
";
    for (level, of) in levels()
        .iter()
        .flat_map(|l| ["int", "unsigned", "long", "unsigned long", "short"].map(|of| (l, of)))
    {
        let of = of.replace(' ', "_");
        let commands = ["gcc-11", "gcc-12"].map(|c| format!("{c} -fopenmp {level} -DT={of}"));
        let types = "typedef unsigned long unsigned_long;";
        for (command, program) in programs(&format!("{types}{HEADER}{source}"), commands) {
            let scan = program.scan();
            let loops = begins(&scan, Construct::Loop);
            let named: Vec<_> = loops.iter().map(|s| &s.info).collect();
            assert!(named.is_empty(), "{command}: {named:?}");
        }
    }
}

/// No loop is found in what these compilers make of a source.
#[track_caller]
fn have_no_loop(source: &str) {
    for level in levels() {
        let commands = ["gcc-11", "gcc-12"].map(|compiler| format!("{compiler} -fopenmp {level}"));
        for (command, program) in programs(&format!("{HEADER}{source}"), commands) {
            let scan = program.scan();
            let loops = begins(&scan, Construct::Loop);
            let named: Vec<_> = loops.iter().map(|s| &s.info).collect();
            assert!(named.is_empty(), "{command}: {named:?}");
        }
    }
}

/// Questions for the first thread around, in and behind cycles with steps of the number of threads.
#[test]
fn strides_of_the_first_thread_are_no_loops() {
    let source = "
double own(unsigned n) {
  double s = 0;
  unsigned tid = omp_get_thread_num(), i = tid;
  if (tid == 0) do { s += g(i); i += omp_get_num_threads(); } while (i != n);
  return s;
}
double twice(unsigned n) {
  double s = 0;
  unsigned nt = omp_get_num_threads();
  for (unsigned i = omp_get_thread_num(); s < n; i += nt) { if (i == 0) pre(); s += g(i); }
  return s;
}
void behind(unsigned n) {
  unsigned i = omp_get_thread_num();
  while (n--) { pre(); i += omp_get_num_threads(); }
  if (i == 0) post();
#pragma omp barrier
}
int main(void) {}
";
    have_no_loop(source);
}

/// The first thread repeats something until a number that is computed from that of threads isn't 0. What it is computed from besides is
/// read in each round: nobody's chunks.
#[test]
fn waiting_of_the_first_thread_is_no_loop() {
    let source = "
volatile int busy;
__attribute__((noinline)) int idle(void) { __asm__ volatile(\"\"); return busy; }
__attribute__((noinline)) void tell(int *to) { *to = busy; }
void asks_each_time(void) {
  int left;
  if (omp_get_thread_num() == 0) do left = omp_get_num_threads() - busy; while (left == 0);
}
void reads(void) {
  int left, nt = omp_get_num_threads();
  if (omp_get_thread_num() == 0) do { pre(); left = nt - busy; } while (left == 0);
  post();
}
void reads_more(unsigned n) {
  unsigned nt = omp_get_num_threads(), left;
  if (omp_get_thread_num() == 0) do { pre(); left = busy + nt * n; } while (left == 0);
}
void sums(void) {
  long left = 0, nt = omp_get_num_threads();
  if (omp_get_thread_num() == 0) do { pre(); left = left * 3 + busy + nt; } while (left == 0);
}
void calls(void) {
  int left, nt = omp_get_num_threads(), tid = omp_get_thread_num();
  if (tid == 0) do { left = idle() + nt; } while (left == 0);
  post();
}
void is_told(void) {
  int left, done, nt = omp_get_num_threads();
  if (omp_get_thread_num() == 0) do { tell(&done); left = done + nt; } while (left == 0);
}
void follows(int **list) {
  int left, nt = omp_get_num_threads();
  if (omp_get_thread_num() == 0) do { list = (int **)*list; left = *(int *)list + nt; } while (left == 0);
}
void others_return(void) {
  unsigned nt = omp_get_num_threads(), tid = omp_get_thread_num(), left;
  if (tid > 0) return;
  do { pre(); left = nt + busy; } while (left == 0);
}
void all_of_them(void) {
  int nt = omp_get_num_threads(), left;
  do { left = nt - busy; } while (left == 0);
  if (omp_get_thread_num() == 0) pre();
}
int main(void) {}
";
    have_no_loop(source);
}

/// The same where nothing is read: a sum of something and the number of threads is no chunk's start.
#[test]
fn sums_of_the_first_thread_are_no_loop() {
    let source = "
void sums(unsigned n) {
  unsigned sum, nt = omp_get_num_threads();
  if (omp_get_thread_num() == 0) { sum = n + nt; do { pre(); sum += n + nt; } while (sum == 0); }
}
void the_same(unsigned n) {
  unsigned nt = omp_get_num_threads(), sum;
  if (omp_get_thread_num() == 0) { sum = n + nt; do pre(); while (sum == 0); }
  post();
}
void constants(void) {
  unsigned nt = omp_get_num_threads(), sum;
  if (omp_get_thread_num() == 0) { sum = nt + 7; do { pre(); sum += 3; } while (sum == 0); }
}
int main(void) {}
";
    have_no_loop(source);
}

/// What is compared with an end of the thread's own is no chunk's start.
#[test]
fn ends_of_the_threads_own_are_no_bounds() {
    let source = "
void of_a_table(const int *ends) {
  int tid = omp_get_thread_num(), nt = omp_get_num_threads(), end = ends[tid];
  for (int i = tid * 4; i < end; i += nt * 4) {
    int last = i + 4 < end ? i + 4 : end;
    for (int k = i; k < last; k++) pre();
  }
  post();
}
void computed(int n, int block) {
  int tid = omp_get_thread_num(), nt = omp_get_num_threads(), end = n;
  if ((tid + 1) * block < n) end = (tid + 1) * block;
  for (int i = tid; i < end; i += nt) pre();
  post();
}
int main(void) {}
";
    for level in levels() {
        let commands = ["gcc-11", "gcc-12"].map(|compiler| format!("{compiler} -fopenmp {level}"));
        for (command, program) in programs(&format!("{HEADER}{source}"), commands) {
            let scan = program.scan();
            for site in begins(&scan, Construct::Loop) {
                assert!(site.action.is_none(), "{command}: {:?}", site.info);
            }
        }
    }
}
