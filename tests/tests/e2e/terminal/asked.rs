//! What is asked, refused or hinted at while somebody types commands.

use ompfuse_tests::tmux::Tmux;
use ompfuse_tests::{command, compile, process, repository, skip};
use std::process::Command;

fn knapsack() -> String {
    let path = repository().join("fixtures/prebuilt/knapsack-gcc");
    path.display().to_string()
}

#[test]
fn no_terminal_gets_bytes_that_are_no_text() {
    let folder = tempfile::tempdir().expect("there is room for a run");
    let out = folder.path().join("out");
    let mut record = command::with_threads(2);
    record
        .args(["record", "-q", "--events", "none", "-o"])
        .arg(&out);
    process::run(record.args(["--", &knapsack()])).ok("record");
    let ompfuse = command::path().display().to_string();
    let out = out.display().to_string();
    for to in ["parquet", "arrow", "cube", "pprof", "perfetto"] {
        let line = format!("{ompfuse} export {out} --to {to}");
        let Some(tmux) = Tmux::start(100, 20, &[], &line) else {
            return;
        };
        let screen = tmux.wait("ended: 2");
        assert!(screen.contains("name a file with -o"), "{to}: {screen}");
        // A pipe gets them.
        let piped = process::run(Command::new(&ompfuse).args(["export", &out, "--to", to]));
        assert!(piped.ok(to).stdout.len() > 100, "{to}");
    }
    let line = format!(
        "{ompfuse} export {out} --to csv | head -c 300; {ompfuse} export {out} --to collapsed"
    );
    let tmux = Tmux::start(100, 40, &[], &line).expect("tmux is there");
    let screen = tmux.wait("ended: 0");
    assert!(!screen.contains("no text"), "{screen}");
}

#[test]
fn an_option_behind_the_program_is_asked_about() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let said = |words: &[&str]| {
        let mut record = command::with_threads(2);
        record.current_dir(folder.path());
        record.args(["record", "--events", "none"]).args(words);
        process::run(&mut record).ok("record").errors()
    };
    let program = knapsack();
    let asked = |errors: &str| {
        errors
            .lines()
            .filter(|l| l.contains("meant for ompfuse?"))
            .count()
    };
    let errors = said(&[&program, "20", "--threads", "1"]);
    assert_eq!(asked(&errors), 1, "{errors}");
    assert!(errors.contains("is --threads meant"), "{errors}");
    assert_eq!(asked(&said(&[&program, "20", "--threads=2"])), 1);
    // Whose it is is said, or it is nobody's here.
    assert_eq!(asked(&said(&["--", &program, "20", "--threads", "1"])), 0);
    assert_eq!(asked(&said(&[&program, "20", "--thread", "-q"])), 0);
}

const PLAIN: &str = r#"
#include <stdio.h>
__attribute__((noinline)) double work(int n) { volatile double s = 0; for (int i = 0; i < n; i++) s += i; return s; }
int main(void) { double all = 0; for (int i = 0; i < 2000; i++) all += work(100000); printf("%g\n", all); }
"#;

#[test]
fn a_program_without_openmp_shows_its_samples() {
    let Some(program) = compile::compile(PLAIN, "gcc -O1 -g") else {
        return;
    };
    let out = program.folder.path().join("out");
    let mut profile = command::with_threads(2);
    profile.args(["profile", "-o"]).arg(&out).arg("--");
    let said = process::run(profile.arg(&program.path));
    assert_eq!(said.status, 1, "{said:?}");
    let errors = said.errors();
    for wanted in ["--functions '*'", "--calls pthread,io"] {
        assert!(errors.contains(wanted), "{wanted}: {errors}");
    }
    let sampled = command::run(["report".as_ref(), out.as_os_str(), "--lines".as_ref()]);
    if sampled.errors().contains("there are no samples") {
        return skip("the kernel gives no samples here");
    }
    let text = sampled.ok("report --lines").text();
    for text in [&errors, &text] {
        let row = text.lines().find(|l| l.contains("program.c:3"));
        let row = row.unwrap_or_else(|| panic!("{text}"));
        assert!(row.contains("work"), "{row}");
        let share = row.split_whitespace().nth(1).expect("a share");
        let share: f64 = share.trim_end_matches('%').parse().expect("a number");
        assert!(share > 80.0, "{row}");
    }
    // Only errors are wanted.
    let mut quiet = command::with_threads(2);
    quiet
        .args(["profile", "-q", "-o"])
        .arg(program.folder.path().join("quiet"));
    let said = process::run(quiet.arg("--").arg(&program.path));
    assert!(said.errors().contains("nothing was recorded"), "{said:?}");
    assert!(!said.errors().contains("Samples of"), "{said:?}");
}

/// Two libraries with a loop each.
#[test]
fn patched_files_are_one_line() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = |name: &str| folder.path().join(name);
    for name in ["one", "two", "three"] {
        let text = format!(
            "int {name}(int n) {{ int s = 0;\n#pragma omp parallel for reduction(+ : s)\nfor (int i = 0; i < n; i++) s += i; return s; }}\n"
        );
        std::fs::write(at(&format!("{name}.c")), text).expect("there is room");
        let out = at(&format!("lib{name}.so"));
        if !compile::files(
            &[at(&format!("{name}.c"))],
            &out,
            "gcc -O1 -fopenmp -shared -fPIC",
        ) {
            return;
        }
    }
    let text = "int one(int), two(int), three(int);\nint main(void) { return one(9) + two(9) + three(9) != 108; }\n";
    std::fs::write(at("main.c"), text).expect("there is room");
    let rest = format!(
        "gcc -O1 -Wl,-rpath,{0} -L{0} -lone -ltwo -lthree",
        folder.path().display()
    );
    assert!(compile::files(&[at("main.c")], &at("main"), &rest));
    let mut record = command::with_threads(2);
    record
        .args(["record", "--events", "none", "-o"])
        .arg(at("out"));
    let said = process::run(record.arg("--").arg(at("main"))).ok("record");
    let errors = said.errors();
    let patched: Vec<&str> = errors.lines().filter(|l| l.contains("patched ")).collect();
    assert_eq!(patched.len(), 1, "{errors}");
    assert!(patched[0].contains("and 2 more files: "), "{errors}");
    assert!(patched[0].ends_with(" constructs"), "{errors}");
}
