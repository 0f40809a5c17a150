//! Which compiler made a function decides what is looked for in it.

use super::{levels, windows_are_sound};
use crate::scan_support::{HEADER, begins, compile, complete, programs};
use ompfuse_format::Construct;
use ompfuse_format::site::Outcome;

/// A parallel region in which the first thread does something of its own, and that calls code of another file.
const REGION: &str = r"
extern void piece(int);
int main(int n, char **v) {
#pragma omp parallel
  {
    if (omp_get_thread_num() == 0) pre();
    a[omp_get_thread_num()] = omp_get_num_threads();
    piece(n);
  }
}
";

/// A loop and a `master` that belong to whatever region they are executed in; gcc calls nothing for either.
const PIECE: &str = r"
extern int omp_get_thread_num(void);
extern double a[1024];
void piece(int n) {
#pragma omp for nowait
  for (int i = 0; i < n; i++) a[i & 1023] += i;
#pragma omp master
  a[7] = n;
}
";

#[test]
fn in_gccs_code_a_test_of_the_threads_number_may_be_a_master() {
    let commands = levels()
        .into_iter()
        .map(|level| format!("gcc-12 -fopenmp {level}"));
    let source = format!("{HEADER}{REGION} void piece(int n) {{ post(); }}");
    for (command, program) in programs(&source, commands) {
        let masters = complete(&program.scan(), Construct::Master);
        assert_eq!(masters, 1, "{command}");
    }
}

#[test]
fn files_of_two_compilers_in_one_program() {
    for level in levels() {
        let Some(object) = compile(PIECE, &format!("gcc-12 -c -fopenmp {level}")) else {
            continue;
        };
        let command = format!("clang-19 -fopenmp {level} {}", object.path.display());
        let Some(program) = compile(&format!("{HEADER}{REGION}"), &command) else {
            continue;
        };
        let scan = program.scan();
        // clang calls the runtime for a `master`: its comparison is the program's own. gcc's is found.
        let masters = begins(&scan, Construct::Master).len();
        let loops = complete(&scan, Construct::Loop);
        assert_eq!((loops, masters), (1, 1), "{command}");
        let asked = scan.sites.iter().filter(|s| {
            s.info.entry.as_deref() == Some("omp_get_thread_num")
                && s.info.outcome == Outcome::Service
        });
        assert!(asked.count() >= 1, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}
