//! What is not recorded, and why: each reason is told for what it is.

use ompfuse_tests::{command, compile, has, process, table};
use std::path::Path;
use std::process::Command;

/// A parallel region, and time to be seen in.
const WORKER: &str = "
#include <stdio.h>
#include <unistd.h>
int main(void) {
    int n = 0;
    #pragma omp parallel for reduction(+:n)
    for (int i = 0; i < 100; i++) n += i;
    printf(\"%d\\n\", n);
    fflush(stdout);
    usleep(400000);
    return 0;
}
";

/// Starts a program twice: `plain` or with an environment of its own.
const STARTER: &str = "
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *own[] = {\"A=1\", NULL};
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            if (strcmp(argv[1], \"own\") == 0) execve(argv[2], argv + 2, own);
            else execv(argv[2], argv + 2);
            _exit(9);
        }
    while (wait(NULL) > 0) ;
    return 0;
}
";

/// Processes of a fork that end without the C library: by `_exit`, or killed in the midst of a task.
const FORKS: &str = "
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int n;
int main(int argc, char **argv) {
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            #pragma omp parallel
            #pragma omp single
            for (int i = 0; i < 10; i++) {
                #pragma omp task
                {
                    #pragma omp task
                    __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED);
                    #pragma omp taskwait
                    if (argc > 1 && i == 5) kill(getpid(), SIGKILL);
                }
            }
            _exit(0);
        }
    while (wait(NULL) > 0) ;
    #pragma omp parallel
    __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED);
    return n == 0;
}
";

fn record(folder: &Path, out: &str, options: &[&str], program: &[&str]) -> process::Output {
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o", out]);
    record.args(options).arg("--").args(program);
    process::run(record.current_dir(folder))
}

#[test]
fn processes_that_do_not_get_the_variables() {
    let Some(worker) = compile::compile(WORKER, "gcc -O2 -fopenmp") else {
        return;
    };
    let folder = worker.folder.path();
    let path = worker.path.to_str().expect("an ordinary path");
    let starter = compile::text(folder, "starter", STARTER, "gcc -O1").expect("as above");
    let starter = starter.to_str().expect("an ordinary path");
    let without = "was started without OMPFUSE_DIR";
    for (name, program, why) in [
        ("emptied", &["env", "-i", path][..], without),
        (
            "changed",
            &["env", "-u", "LD_AUDIT", path],
            "without LD_AUDIT",
        ),
        ("own", &[starter, "own", path], without),
        (
            "shell",
            &["/bin/sh", "-c", &format!("env -i {path}; true")],
            without,
        ),
    ] {
        let recorded = record(folder, name, &[], program);
        let said = recorded.errors();
        assert_eq!(recorded.status, 1, "{name}: {recorded:?}");
        assert!(said.contains(path) && said.contains(why), "{name}: {said}");
        assert!(!said.contains("neither"), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
    }
    // Who hands them on is recorded, and nothing is said.
    let recorded = record(folder, "plain", &[], &[starter, "plain", path]).ok("workers");
    assert!(!recorded.errors().contains("without"), "{recorded:?}");
    assert_eq!(table::export(&folder.join("plain/run-0001")).len(), 4);
    // What is recorded beside it doesn't hide it.
    let both = format!("{path}; env -i {path}");
    let recorded = record(folder, "both", &[], &["/bin/sh", "-c", &both]).ok("both");
    assert!(recorded.errors().contains(without), "{recorded:?}");
    // A program that ends at once isn't seen, but is named.
    let brief = WORKER.replace("usleep(400000);", "");
    let brief = compile::text(folder, "brief", &brief, "gcc -O2 -fopenmp").expect("as above");
    let brief = brief.to_str().expect("an ordinary path");
    let recorded = record(folder, "brief-runs", &[], &["env", "-i", brief]);
    let said = recorded.errors();
    assert!(said.contains(brief) && said.contains("env -i"), "{said}");
}

#[test]
fn processes_of_another_user() {
    let id = process::run(Command::new("id").arg("-u")).ok("id").text();
    if id.trim() != "0" || !has("setpriv") {
        return; // only root can become somebody else
    }
    let Some(worker) = compile::compile(WORKER, "gcc -O2 -fopenmp") else {
        return;
    };
    let folder = worker.folder.path();
    let path = worker.path.to_str().expect("an ordinary path");
    process::run(Command::new("chmod").arg("755").arg(folder)).ok("chmod");
    let program = ["setpriv", "--reuid", "65534", path];
    let recorded = record(folder, "runs", &[], &program);
    let said = recorded.errors();
    assert!(said.contains("ran as user 65534"), "{said}");
    assert!(!said.contains("neither"), "{said}");
}

#[test]
fn a_selection_that_matches_nothing() {
    let Some(worker) = compile::compile(WORKER, "gcc -O2 -fopenmp") else {
        return;
    };
    let folder = worker.folder.path();
    let path = worker.path.to_str().expect("an ordinary path");
    let shell = ["/bin/sh", "-c", path];
    // The program's own code: an error before it runs.
    for select in ["nosuch", "lib:program:task", "program.c:1"] {
        let refused = record(folder, "refused", &["--select", select], &[path]);
        assert_eq!((refused.status, refused.text()), (1, String::new()));
        let said = refused.errors();
        assert!(said.contains(select) && said.lines().count() == 1, "{said}");
    }
    let refused = record(
        folder,
        "refused",
        &["--select", "lib:env:task"],
        &["env", path],
    );
    assert_eq!((refused.status, refused.text()), (1, String::new()));
    assert!(!folder.join("refused").exists());
    // What comes later: told when it has come.
    for (name, select) in [("late", "nosuch"), ("other", "lib:other*")] {
        let recorded = record(folder, name, &["--select", select], &shell);
        let said = recorded.errors();
        assert_eq!(recorded.status, 1, "{said}");
        assert!(!recorded.text().is_empty(), "it ran");
        assert!(said.contains("--select") && said.contains(path), "{said}");
        assert!(!said.contains("neither"), "{said}");
    }
    let options = ["--select", "parallel", "--select", "nosuch"];
    let recorded = record(folder, "partly", &options, &shell).ok("a part");
    let said = recorded.errors();
    assert!(said.contains("`nosuch` matched nothing"), "{said}");
    assert!(!said.contains("`parallel`"), "{said}");
}

#[test]
fn workers_that_end_by_exit_are_not_called_killed() {
    let Some(program) = compile::compile(FORKS, "gcc -O2 -fopenmp") else {
        return;
    };
    let folder = program.folder.path();
    let path = program.path.to_str().expect("an ordinary path");
    let notes = |name: &str, program: &[&str]| -> String {
        record(folder, name, &[], program).ok(name);
        let out = folder.join(name);
        let report = command::report(&out);
        report["notes"].to_string()
    };
    let ended = notes("exit", &[path]);
    assert_eq!(table::export(&folder.join("exit/run-0001")).len(), 2 * 20);
    assert!(!ended.contains("orderly"), "{ended}");
    assert!(ended.contains("no construct is missing"), "{ended}");
    let killed = notes("killed", &[path, "kill"]);
    assert!(killed.contains("did not end in an orderly way"), "{killed}");
}
