//! Patched programs with a runtime library: it is found beside the program, and every probe reaches it.

use crate::patch_support::{Lab, assert_same, scan, tool};
use ompfuse_rewriter::patch::patch;
use ompfuse_rewriter::plan::PlanOptions;
use std::process::Command;

const PROGRAM: &str = include_str!("patch_support/program.c");
const RUNTIME: &str = include_str!("patch_support/runtime.c");

/// Calls and probes that the runtime library counted.
fn counts(text: &str) -> (u64, u64) {
    let numbers: Vec<u64> = text
        .split_whitespace()
        .filter_map(|w| w.parse().ok())
        .collect();
    (numbers[0], numbers[1])
}

fn check(source: &str, command: &str, moved: bool) {
    for inline in [false, true] {
        println!("{command} {inline}");
        let lab = Lab::new();
        let Some(original) = lab.compile("program", source, command) else {
            return;
        };
        let library = "gcc -O2 -shared -fPIC";
        lab.compile("libompfuse_runtime.so", RUNTIME, library)
            .unwrap();
        let bytes = std::fs::read(&original).unwrap();
        let patched = patch(&bytes, scan(&original, inline), &PlanOptions::default()).unwrap();
        let out = lab.write("patched", &patched.bytes);
        assert_same(&original, &out);
        let counted = lab.path("counts");
        let run = crate::patch_support::run_with(Command::new(&out).env("COUNTS", &counted));
        assert!(run.stderr.is_empty());
        let (calls, probes) = counts(&std::fs::read_to_string(&counted).unwrap());
        assert!(calls > 20, "{calls}");
        assert_eq!(probes > 20, inline, "{probes}");
        let dynamic = tool("readelf", &["-dW"], &out);
        assert!(
            dynamic.contains("[$ORIGIN/libompfuse_runtime.so]"),
            "{dynamic}"
        );
        let edited = patched.plan.edits.iter().any(|e| e.what == "dynamic table");
        assert_eq!(edited, !moved);
    }
}

#[test]
fn gcc_programs() {
    for flags in ompfuse_kit::few(
        &[
            "-O2",
            "-O2 -no-pie",
            "-O0 -fno-plt",
            "-O3 -s -Wl,-z,now",
            "-O2 -Wl,-z,norelro",
        ],
        3,
    ) {
        check(PROGRAM, &format!("gcc -fopenmp {flags}"), false);
    }
}

#[test]
fn dynamic_table_without_spare_entry() {
    for flags in ["-O2", "-O2 -no-pie -s", "-O2 -Wl,-z,noseparate-code"] {
        check(
            PROGRAM,
            &format!("gcc -fopenmp {flags} -Wl,--spare-dynamic-tags=0"),
            true,
        );
    }
}

#[test]
fn clang_programs() {
    let clang = "clang-19 -fopenmp -L/usr/lib/llvm-19/lib -Wl,-rpath,/usr/lib/llvm-19/lib";
    for flags in ["-O2", "-O2 -no-pie", "-O0"] {
        check(PROGRAM, &format!("{clang} {flags}"), false);
    }
}

#[test]
fn exceptions() {
    let source = include_str!("patch_support/exceptions.cc");
    for flags in ["-O2", "-O0 -no-pie"] {
        check(source, &format!("g++ -fopenmp {flags}"), false);
    }
}

#[test]
fn libraries() {
    let lab = Lab::new();
    let source = PROGRAM.replace("int main(int argc, char **argv)", "int entry(void)");
    let Some(library) = lab.compile("libwork.so", &source, "gcc -fopenmp -O2 -shared -fPIC") else {
        return;
    };
    let main = "int entry(void); int main(void) { return entry(); }";
    let link = "gcc -O2 -L. -lwork -Wl,-rpath,$ORIGIN -Wl,--disable-new-dtags";
    let program = lab.compile("program", main, link).unwrap();
    lab.compile("libompfuse_runtime.so", RUNTIME, "gcc -O2 -shared -fPIC")
        .unwrap();
    let before = crate::patch_support::run(&program);
    let bytes = std::fs::read(&library).unwrap();
    let patched = patch(&bytes, scan(&library, true), &PlanOptions::default()).unwrap();
    lab.write("libwork.so", &patched.bytes);
    let counted = lab.path("counts");
    let mut command = Command::new(&program);
    let after =
        crate::patch_support::run_with(command.env("COUNTS", &counted).env("OMP_NUM_THREADS", "4"));
    assert_eq!((before.status, before.stdout), (after.status, after.stdout));
    let (calls, probes) = counts(&std::fs::read_to_string(&counted).unwrap());
    assert!(calls > 20 && probes > 20);
}

#[test]
fn stacks_are_walked_through_trampolines() {
    let command = "gcc -fopenmp -g -rdynamic";
    for flags in ["-O2", "-O0 -no-pie", "-O3 -fno-omit-frame-pointer"] {
        let lab = Lab::new();
        let Some(original) = lab.compile("program", PROGRAM, &format!("{command} {flags}")) else {
            return;
        };
        lab.compile("libompfuse_runtime.so", RUNTIME, "gcc -O2 -g -shared -fPIC")
            .unwrap();
        let bytes = std::fs::read(&original).unwrap();
        let patched = patch(&bytes, scan(&original, true), &PlanOptions::default()).unwrap();
        let out = lab.write("patched", &patched.bytes);
        let counted = lab.path("counts");
        let mut command = Command::new(&out);
        command
            .env("COUNTS", &counted)
            .env("UNWIND", "1")
            .env("OMP_NUM_THREADS", "4");
        let run = crate::patch_support::run_with(&mut command);
        assert_eq!(run.stdout, crate::patch_support::run(&original).stdout);
        let text = std::fs::read_to_string(&counted).unwrap();
        let numbers: Vec<u64> = text
            .split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect();
        assert!(numbers[2] > 100, "{text}");
        assert_eq!(numbers[3], 0, "{text}");
        if ompfuse_kit::has("gdb") {
            let text = Command::new("gdb")
                .args([
                    "-nx",
                    "-batch",
                    "-ex",
                    "set breakpoint pending on",
                    "-ex",
                    "break check_stack",
                ])
                .args([
                    "-ex",
                    "run",
                    "-ex",
                    "delete",
                    "-ex",
                    "break leaf",
                    "-ex",
                    "continue",
                ])
                .args([
                    "-ex",
                    "delete",
                    "-ex",
                    "break check_stack",
                    "-ex",
                    "continue",
                    "-ex",
                    "bt",
                ])
                .arg(&out)
                .env("UNWIND", "1")
                // Of several threads any may stop there, and only one came from `main`.
                .env("OMP_NUM_THREADS", "1")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&text.stdout);
            assert!(
                text.contains("main (") && !text.contains("corrupt"),
                "{text}"
            );
        }
    }
}
