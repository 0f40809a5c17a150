//! What is executed in functions that don't count has no count: not 0, and not what others execute for them.

use super::{EXACT, report};
use ompfuse_tests::process::{self, Output, clean};
use ompfuse_tests::{command, compile, table};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Two loops in two functions. The second one, if `UNKNOWN` is defined, with a jump whose target nobody can tell; if `INSIDE` is, with a
/// call of code in the same function.
const TWO: &str = r#"
#include <stdio.h>
static double a[4096], b[4096];
static __attribute__((noinline)) double half(double x) { return x * 0.5 + 1; }
__attribute__((noinline)) void first(void) {
#pragma omp parallel for schedule(dynamic, 512)
    for (int i = 0; i < 4096; i++) a[i] = half(a[i]) + i;
}
__attribute__((noinline)) void second(void) {
#pragma omp parallel for schedule(dynamic, 512)
    for (int i = 0; i < 4096; i++) {
#ifdef UNKNOWN
        __asm__ volatile("sub $256, %%rsp\n lea 1f(%%rip), %%rax\n push %%rax\n pop %%rdx\n xor $1, %%rdx\n xor $1, %%rdx\n"
                         "jmp *%%rdx\n 1: add $256, %%rsp" : : : "rax", "rdx", "cc", "memory");
#endif
#ifdef INSIDE
        __asm__ volatile("sub $256, %%rsp\n call 1f\n jmp 2f\n 1: ret\n 2: add $256, %%rsp" : : : "cc", "memory");
#endif
        b[i] = half(b[i]) - i;
    }
}
int main(void) {
    for (int k = 0; k < 10; k++) first(), second();
    printf("%f\n", a[10] + b[20]);
}
"#;

/// A region's count by the name of the function that it is in, and whether a region without count has one.
fn of(report: &Value, function: &str) -> Vec<Option<u64>> {
    let regions = report["regions"].as_array().expect("regions");
    let inside = regions.iter().filter(|r| {
        let name = r["function"].as_str().unwrap_or_default();
        name.starts_with(function) && r["xus"].as_u64() > Some(0)
    });
    inside.map(|r| r["events"][EXACT].as_u64()).collect()
}

/// The second function's loop has no count anywhere, the first one's has.
#[track_caller]
fn check(program: &Path, count: &str, folder: &Path) -> Value {
    let whole = report(program, 2, &[count], &folder.join("whole"));
    let sums = report(program, 2, &[count, "--units=sums"], &folder.join("sums"));
    for report in [&whole, &sums] {
        let [Some(counted)] = of(report, "first")[..] else {
            panic!("one loop with a count: {report:#}");
        };
        assert!(counted > 10 * 4096 * 5, "{counted}");
        assert_eq!(of(report, "second"), [None], "{report:#}");
        let threads = report["accounting"].as_array().expect("threads");
        assert!(!threads.is_empty(), "{report:#}");
    }
    let run = table::runs(&folder.join("whole")).pop().expect("a run");
    let units = table::export(&run).into_iter();
    let units: Vec<_> = units.filter(|u| u.construct == "range").collect();
    let without = units.iter().filter(|u| u.columns[EXACT].is_empty()).count();
    assert_eq!(
        (units.len() - without, without),
        (80, 80),
        "ranges with and without a count"
    );
    whole
}

#[test]
fn functions_that_are_left_out_have_no_count() {
    for command in ["gcc -O2", "clang-19 -O2", "clang-19 -O0"] {
        let Some(program) = compile(TWO, &format!("{command} -fopenmp -g")) else {
            continue;
        };
        let whole = check(&program.path, "--count=first*", program.folder.path());
        // Nobody has refused them.
        assert!(whole.get("uncounted").is_none(), "{whole:#}");
    }
}

#[test]
fn functions_that_cannot_count_are_named_with_their_share() {
    let compilers = ["gcc -O2", "clang-19 -O2"].into_iter();
    let all = compilers.flat_map(|c| ["UNKNOWN", "INSIDE"].map(|why| (c, why)));
    for (compiler, why) in all {
        let command = format!("{compiler} -fopenmp -g -D{why}");
        let Some(program) = compile(TWO, &command) else {
            continue;
        };
        let folder = program.folder.path();
        let whole = check(&program.path, "--count", folder);
        let [refused] = &whole["uncounted"].as_array().expect("a list")[..] else {
            panic!("{command}: one function: {whole:#}");
        };
        let name = refused["function"].as_str().unwrap_or_default();
        assert!(name.starts_with("second"), "{refused}");
        let regions = refused["regions"].as_array().expect("a list").iter();
        let time = |id: &Value| {
            let regions = whole["regions"].as_array().expect("regions");
            let region = regions.iter().find(|r| r["id"] == *id);
            region.and_then(|r| r["work_s"].as_f64()).expect("a time")
        };
        let own: f64 = regions.map(time).sum();
        let all = whole["regions"].as_array().expect("regions").iter();
        let all: f64 = all.filter_map(|r| r["work_s"].as_f64()).sum();
        let share = refused["share"].as_f64().expect("a share");
        assert!((share - own / all).abs() < 1e-9 && share > 0.0, "{refused}");

        let run = table::runs(&folder.join("whole")).pop().expect("a run");
        let text = command::ok(["report".as_ref(), run.as_os_str()]).text();
        let line = format!("instructions in {name} are not counted");
        assert!(text.contains(&line), "{text}");
        let page = folder.join("page.html");
        let html = ["report".as_ref(), run.as_os_str(), "--html".as_ref()];
        command::ok(html.into_iter().chain([page.as_os_str()]));
        let page = std::fs::read_to_string(&page).expect("a page");
        assert!(page.contains(&line), "{command}");
    }
}

#[test]
fn a_name_that_fits_nothing_is_an_error() {
    let Some(program) = compile(TWO, "gcc -O2 -fopenmp") else {
        return;
    };
    let path = program.path.as_os_str();
    for mode in ["scan", "patch"] {
        let refused = command::run([mode.as_ref(), "--count=frist".as_ref(), path]);
        is_refused(&refused);
    }
    let out = program.folder.path().join("out");
    let refused = table::record(&program.path, &[], 1, &out, &["--count=frist"]);
    is_refused(&refused);
}

/// A function that only code calls which isn't named.
const LEAF: &str = r#"
#include <stdio.h>
__attribute__((noinline)) long leaf(long x) { long s = 0; for (long i = 0; i < x; i++) s += i ^ x; return s; }
int main(void) {
    long s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 1000; i++) s += leaf(i);
    printf("%ld\n", s);
}
"#;

#[test]
fn what_no_unit_counts_is_said() {
    let Some(program) = compile(LEAF, "gcc -O2 -fopenmp") else {
        return;
    };
    let record = |name: &str, flags: &[&str]| {
        let out = program.folder.path().join(name);
        let recorded = table::record(&program.path, &[], 1, &out, flags).ok(name);
        recorded.errors()
    };
    let advice = "--count=leaf is executed by code that isn't counted, so no unit has its count; make it a region, too: --functions=leaf";
    let told = record("alone", &["--count=leaf"]);
    assert!(told.contains(advice), "{told}");
    let told = record("both", &["--count=leaf", "--functions=leaf"]);
    assert!(!told.contains("isn't counted"), "{told}");
    let report = command::report(program.folder.path().join("both"));
    let regions = report["regions"].as_array().expect("regions");
    let leaf = regions.iter().find(|r| r["construct"] == "function");
    let counted = leaf.expect("the function")["events"][EXACT].as_u64();
    assert!(counted > Some(3 * 499_500), "{report:#}");
}

/// A library without OpenMP, and a program that calls it 100 times.
const LIBRARY: &str =
    "int twice(int x) { volatile int y = 0; for (int i = 0; i < x; i++) y += 2; return y; }";
const CALLER: &str = r#"
#include <stdio.h>
int twice(int);
int main(void) {
    int sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 100; i++) sum += twice(i);
    printf("%d\n", sum);
}
"#;

#[test]
fn a_library_of_which_nothing_is_recorded_is_told_how_it_counts() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let shared = "gcc -O1 -g -shared -fPIC";
    if compile::text(folder.path(), "libplain.so", LIBRARY, shared).is_none() {
        return;
    }
    let here = folder.path().to_str().expect("text");
    let how = format!("gcc -O1 -g -fopenmp -L{here} -Wl,-rpath,{here} -Wl,--no-as-needed -lplain");
    let caller = compile::text(folder.path(), "caller", CALLER, &how).expect("gcc is there");
    let record = |name: &str, more: &[&str]| {
        let flags = [&["--count=lib:libplain*:*", "--events", "none"], more].concat();
        let out = folder.path().join(name);
        let output = table::record(&caller, &[], 2, &out, &flags).ok(name);
        assert_eq!(output.text(), "9900\n");
        (output.errors(), out)
    };
    let (told, _) = record("refused", &[]);
    let advice = "can't count, because nothing of it is recorded; name functions of it, too: --functions=lib:libplain.so:NAME";
    assert!(told.lines().any(|l| l.ends_with(advice)), "{told}");
    let (told, out) = record("counted", &["--functions", "lib:libplain*:twice"]);
    assert!(!told.contains("can't"), "{told}");
    let report = command::report(&out);
    let regions = report["regions"].as_array().expect("regions");
    let twice = regions.iter().find(|r| r["construct"] == "function");
    let counted = twice.expect("the function")["events"][EXACT].as_u64();
    // 4950 turns of its loop.
    assert!(counted > Some(3 * 4950), "{report:#}");
}

#[track_caller]
fn is_refused(output: &Output) {
    let errors = output.errors();
    assert_eq!(output.status, 1, "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(
        errors.contains("matches `frist` (did you mean first?)"),
        "{errors}"
    );
}

/// A function whose frame is made behind its first branch, so that unwinders know different frames of neighbouring instructions, and hardly
/// any of them has room for a jump.
const NARROW: &str = r#"
#include <stdio.h>
long walk(long n);
__asm__(".globl walk\n.type walk, @function\nwalk: .cfi_startproc\n xor %eax, %eax\n test %rdi, %rdi\n je 9f\n push %rbp\n"
        ".cfi_def_cfa_offset 16\n push %rbx\n .cfi_def_cfa_offset 24\n mov %rdi, %rbx\n sub $8, %rsp\n .cfi_def_cfa_offset 32\n"
        "1: mov %rbx, %rbp\n mov %rbp, %rdi\n call inner\n2: mov %ebp, %eax\n3: cmp $4, %eax\n je 6f\n cmp $3, %eax\n je 5f\n"
        "4: dec %rbx\n jne 1b\n jmp 7f\n5: mov %rbp, %rdi\n6: call inner\n mov $9, %eax\n jmp 3b\n"
        "7: add $8, %rsp\n pop %rbx\n pop %rbp\n9: ret\n.cfi_endproc\n.size walk, .-walk\n"
        ".type inner, @function\n.p2align 4\ninner: lea 1(%rdi), %rax\n ret\n.size inner, .-inner\n");
int main(void) {
    long s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 100; i++) s += walk(i);
    printf("%ld\n", s);
}
"#;

/// An instruction that capstone doesn't know, alone behind a branch. No processor needs to have it.
const NEW: &str = r#"
#include <stdio.h>
long dot(long n);
__asm__(".globl dot\n.type dot, @function\ndot: .cfi_startproc\n mov %rdi, %rax\n test $1, %dil\n je 1f\n"
        " vdpbf16ps %zmm3, %zmm1, %zmm0\n1: ret\n.cfi_endproc\n.size dot, .-dot\n");
int main(int argc, char **argv) {
    long s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 100; i++) s += argc > 1 ? dot(i) : i;
    printf("%ld\n", s);
}
"#;

/// A tree that is removed in a loop that calls itself.
const TREE: &str = r#"
#include <cstdio>
#include <cstdlib>
struct Leaf { Leaf *left, *right; char *text, own[16]; };
__attribute__((noinline)) void drop(Leaf *at) {
    while (at) {
        drop(at->right);
        Leaf *next = at->left;
        if (at->text != at->own) std::free(at->text);
        std::free(at);
        at = next;
    }
}
static Leaf *grow(int depth) {
    if (depth <= 0) return nullptr;
    Leaf *leaf = static_cast<Leaf *>(std::malloc(sizeof(Leaf)));
    *leaf = {grow(depth - 1), grow(depth - 2), leaf->own, {}};
    return leaf;
}
int main() {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 9; i++) drop(grow(i)), sum += i;
    std::printf("%ld\n", sum);
}
"#;

/// A container that grows: two calls may throw, and what is between them can't.
const GROWS: &str = r#"
#include <cstdio>
#include <vector>
__attribute__((noinline)) int fill(int n) {
    std::vector<int> all;
    for (int i = 0; i < n; i++) all.push_back(i);
    int sum = 0;
    for (int x : all) sum += x;
    return sum;
}
int main() {
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 50; i++) sum += fill(i);
    std::printf("%d\n", sum);
}
"#;

#[test]
fn ordinary_functions_count() {
    let c = ["gcc -O2", "clang-19 -O2"];
    let c = [(NARROW, "walk"), (NEW, "main")].map(|(text, name)| c.map(|c| (text, c, name)));
    let cc = ["g++ -O2", "g++ -O3", "clang++-14 -O2", "clang++-19 -O2"];
    let cc = [(TREE, "drop"), (GROWS, "fill")].map(|(text, name)| cc.map(|c| (text, c, name)));
    for (text, command, name) in c.concat().into_iter().chain(cc.concat()) {
        let Some(program) = compile(text, &format!("{command} -fopenmp")) else {
            continue;
        };
        let path = program.path.as_os_str();
        let told = command::json(
            ["patch", "--dry-run", "--count", "--format", "json"]
                .map(OsStr::new)
                .into_iter()
                .chain([path]),
        );
        let refused = told["counted"]["refused"].as_array().expect("a list");
        let of_it = refused.iter().any(|r| r.to_string().contains(name));
        assert!(!of_it, "{command}, {name}: {refused:?}");
        let out = program.folder.path().join("out");
        let recorded = table::record(
            &program.path,
            &[],
            1,
            &out,
            &["--count", "--events", "none"],
        );
        let alone = process::run(clean(&mut Command::new(path), 1));
        assert_eq!(
            recorded.ok(command).text(),
            alone.text(),
            "{command}, {name}"
        );
    }
}
