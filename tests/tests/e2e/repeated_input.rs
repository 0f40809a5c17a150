//! Programs that read standard input get the same in every run.

use ompfuse_tests::command;
use ompfuse_tests::compile;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::table;
use std::path::Path;
use std::process::Command;

/// Adds up the numbers that it reads: all of them, or as many as it is told. What it is, is said.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
int main(int argc, char **argv) {
    struct stat s;
    fstat(0, &s);
    long most = argc > 1 ? atol(argv[1]) : -1, n = 0, value, sum = 0, loops = 0;
    while (n != most && scanf("%ld", &value) == 1) sum += value, n++;
#pragma omp parallel for reduction(+:loops)
    for (int i = 0; i < 100; i++) loops++;
    printf("%s: %ld numbers, sum %ld\n", S_ISFIFO(s.st_mode) ? "pipe" : S_ISREG(s.st_mode) ? "file" : "other", n, sum);
    return loops != 100;
}
"#;

fn shell(folder: &Path, line: &str) -> Output {
    let mut shell = Command::new("bash");
    process::clean(&mut shell, 2)
        .env(
            "XDG_CACHE_HOME",
            ompfuse_tests::target().0.join("fixtures/cache"),
        )
        .env("OMPFUSE", command::path())
        .current_dir(folder)
        .args(["-c", line]);
    process::run(&mut shell)
}

#[test]
fn a_pipe_is_read_in_every_run() {
    let folder = tempfile::tempdir().expect("there is room");
    if compile::text(folder.path(), "adds", SOURCE, "gcc -O1 -g -fopenmp").is_none() {
        return;
    }
    let record = "\"$OMPFUSE\" record --events none --repeat 3 -o";
    // Larger than a pipe, and than what is read at once.
    for (out, input, args, said) in [
        (
            "all",
            "seq 1 100000 |",
            "",
            "pipe: 100000 numbers, sum 5000050000\n",
        ),
        ("little", "echo 5000 |", "", "pipe: 1 numbers, sum 5000\n"),
        ("none", "true |", "", "pipe: 0 numbers, sum 0\n"),
        // It doesn't read all of it.
        ("part", "seq 1 1000000 |", "3", "pipe: 3 numbers, sum 6\n"),
        // The writer is slow, and stays for longer than a process of this suite may take (`process::LIMIT`).
        (
            "slow",
            "(exec 2>&-; echo 1; sleep 1; echo 2; echo 3; sleep 150) |",
            "3",
            "pipe: 3 numbers, sum 6\n",
        ),
        (
            "endless",
            "yes 7 |",
            "10000",
            "pipe: 10000 numbers, sum 70000\n",
        ),
    ] {
        let line = format!("{input} {record} {out} -- ./adds {args}");
        // Nobody waits for a writer that has nothing to say any more: the shell would.
        let line = if out == "slow" {
            format!(
                "{record} {out} -- ./adds {args} < <{}",
                &input[..input.len() - 2]
            )
        } else {
            line
        };
        let output = shell(folder.path(), &line).ok(&line);
        assert_eq!(output.text(), said.repeat(3), "{line}: {output:?}");
        assert_eq!(table::runs(&folder.path().join(out)).len(), 3);
    }
    // Files are read from where they were, as ever, and devices are left alone.
    std::fs::write(folder.path().join("numbers"), "1\n2\n3\n").expect("there is room");
    let file = format!("{record} file -- ./adds < numbers");
    assert_eq!(
        shell(folder.path(), &file).text(),
        "file: 3 numbers, sum 6\n".repeat(3)
    );
    let device = format!("{record} device -- ./adds < /dev/null");
    assert_eq!(
        shell(folder.path(), &device).text(),
        "other: 0 numbers, sum 0\n".repeat(3)
    );
}
