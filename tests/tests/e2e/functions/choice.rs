//! Functions are chosen by their source files, sizes and callers, as `nm` and `objdump` tell them; and what `--functions` doesn't find
//! is said.

use super::patchable;
use ompfuse_tests::{command, compile, has, process, table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Calls in several ways; with OpenMP it is a program of its own, without it starts one.
const C: &str = r#"
#include <stdio.h>
#include <unistd.h>
#define KEPT __attribute__((noinline))
KEPT int tiny(int n) { return n ^ 5; }
KEPT int last(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ n; return s; }
KEPT int step(int n) { return last(n) + last(n + 1); }
KEPT int hands_over(int n) { for (int i = 0; i < n; i++) n += step(i) & 1; return last(n); }
KEPT int (*volatile chosen)(int) = last;
KEPT int indirect(int n) { return chosen(n) + step(n) + 1; }
int main(int argc, char **argv) {
#ifdef _OPENMP
    #pragma omp parallel
    printf("%d\n", step(tiny(3)));
#else
    if (argc > 1) execv(argv[1], argv + 1);
    printf("%d\n", hands_over(30) + indirect(argc) + tiny(argc));
#endif
    return 0;
}
"#;

fn names(program: &Path, pattern: &str) -> BTreeSet<String> {
    patchable(program, pattern).into_values().collect()
}

fn text(command: &mut Command) -> String {
    process::run(command).ok("a tool of binutils").text()
}

/// Sizes of the functions, as `nm` tells them.
fn sizes(program: &Path) -> BTreeMap<String, u64> {
    let text = text(Command::new("nm").arg("-S").arg(program));
    let lines = text.lines().filter_map(|line| {
        let [_, size, "t" | "T", name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let size = u64::from_str_radix(size, 16).expect("a number");
        Some((name.to_owned(), size))
    });
    lines.collect()
}

/// What a function calls or jumps to, as `objdump` tells it.
fn callees(program: &Path, caller: &str) -> BTreeSet<String> {
    let function = format!("--disassemble={caller}");
    let text = text(Command::new("objdump").args(["-d", &function]).arg(program));
    let lines = text.lines().filter_map(|line| {
        let (_, called) = line.split_once(" <")?;
        let is_branch = line.contains("\tcall ") || line.contains("\tjmp ");
        let name = called.strip_suffix('>')?;
        (is_branch && !name.contains(['+', '@'])).then(|| name.to_owned())
    });
    lines.collect()
}

#[test]
fn conditions_hold_as_other_tools_tell() {
    let Some(program) = compile(C, "gcc -O2 -g -no-pie") else {
        return;
    };
    let path = &program.path;
    let all = names(path, "*");
    assert!(all.len() >= 5, "{all:?}");
    assert_eq!(names(path, "file:program.c"), all);
    assert_eq!(names(path, "file:*/pro?ram.*"), all);
    assert!(command::run(scan(path, "file:rogram.c")).status != 0);
    let one = names(path, "from:main:file:program.c:hands_*");
    assert_eq!(one, BTreeSet::from(["hands_over".to_owned()]));
    if !has("nm") || !has("objdump") {
        return;
    }
    let sizes = sizes(path);
    for least in [20, 40, 60] {
        let big = all.iter().filter(|name| sizes[*name] >= least);
        let big: BTreeSet<String> = big.cloned().collect();
        assert_eq!(names(path, &format!("size:{least}..")), big, "{least}");
        let rest = names(path, &format!("size:..{}", least - 1));
        assert_eq!(&all - &big, rest, "{least}");
    }
    for caller in ["main", "step", "hands_over", "indirect"] {
        let called = &callees(path, caller) & &all;
        assert!(!called.is_empty(), "{caller}");
        assert_eq!(names(path, &format!("from:{caller}")), called, "{caller}");
    }
}

fn scan<'x>(program: &'x Path, pattern: &'x str) -> [&'x std::ffi::OsStr; 4] {
    let option = "--functions";
    [
        "scan".as_ref(),
        program.as_ref(),
        option.as_ref(),
        pattern.as_ref(),
    ]
}

/// A program without OpenMP of which no function can be recorded runs all the same: it may start others. A pattern that matches
/// nothing in it is an error.
#[test]
fn programs_without_a_function_go_on() {
    let Some(starter) = compile(C, "gcc -O2") else {
        return;
    };
    let Some(started) = compile(C, "gcc -O2 -fopenmp") else {
        return;
    };
    let program = started.path.to_str().expect("a path of ours is text");
    let out = tempfile::tempdir().expect("there is room for a recording");
    let record = |out: &Path, pattern: &str| {
        let flags = [&table::ONE_EVENT[..], &["--functions", pattern]].concat();
        table::record(&starter.path, &[program], 2, out, &flags)
    };
    let recorded = record(out.path(), "tin*").ok("tin*");
    assert_eq!(recorded.text().lines().count(), 2, "{recorded:?}");
    let notes = recorded.errors();
    assert!(
        notes.contains("can be recorded: few instructions"),
        "{notes}"
    );
    assert_eq!(table::runs(out.path()).len(), 1, "{notes}");
    for pattern in ["nosuch", "size:..1"] {
        let nowhere = out.path().join("nowhere");
        let refused = record(&nowhere, pattern);
        is_refused(&refused, &format!("matches `{pattern}`"));
        assert!(refused.text().is_empty() && !nowhere.exists());
    }
    let none = command::run(scan(&starter.path, "file:program.c"));
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status, 1, "{said}");
    assert!(
        said.contains("it has no debug information; compile with -g"),
        "{said}"
    );
}

/// One line says what was not found, and nothing is written.
#[track_caller]
fn is_refused(output: &process::Output, said: &str) {
    let errors = output.errors();
    assert_eq!(output.status, 1, "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(said), "{errors}");
}

#[test]
fn a_pattern_that_matches_nothing_is_an_error() {
    let Some(program) = compile(C, "gcc -O2 -fopenmp") else {
        return;
    };
    let path = program.path.as_os_str();
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let out = folder.path().join("out");
    for option in ["--functions", "--loops"] {
        let said = format!("{option}: no function in {}", program.path.display());
        let pattern = format!("{option}=stpe");
        let wanted = |command: &str| {
            let mut all = vec![command.into(), pattern.clone().into()];
            all.extend(["-o".into(), out.as_os_str().to_owned()]);
            if command != "patch" {
                all.extend(["--events", "none", "--"].map(Into::into));
            }
            all.push(path.to_owned());
            all
        };
        for command in ["patch", "record", "profile"] {
            let refused = command::run::<std::ffi::OsString>(wanted(command));
            is_refused(&refused, &said);
            is_refused(&refused, "matches `stpe` (did you mean step?)");
            assert!(!out.exists(), "{command}");
        }
    }
}
