//! Programs that didn't come to their end: what they did last stands in the first sentence.

use super::running::{Going, line};
use super::{is_allowed, lines, program};
use crate::ranks;
use ompfuse_tests::{command, compile, schema};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// The first sentence of a report, and the report in JSON.
fn report(path: &Path) -> (String, Value) {
    let text = command::ok([Path::new("report"), path]).text();
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.join(" "), schema::checked(path))
}

#[test]
fn who_is_killed_is_told_to_have_hung() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    let out = folder.path().join("out");
    let mut record = command::with_threads(2);
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    record.env("OMP_WAIT_POLICY", "passive").arg("--");
    let recorder = record.arg(&program).arg("barrier").spawn();
    let mut recorder = Going(recorder.expect("it starts"));
    std::thread::sleep(Duration::from_millis(2500));
    recorder.kill_children();
    let status = recorder.0.wait().expect("it ends");
    assert_eq!(status.code(), Some(128 + 9));
    let run = out.join("run-0001");
    let json = lines(&run);
    let threads = json["threads"].as_array().expect("threads");
    for mark in ["pause", "barrier"] {
        let place = format!("running.c:{}", line(mark));
        let is_it = |t: &Value| {
            let construct = t["last"]["construct"].as_str().unwrap_or_default();
            t["last"]["line"] == line(mark) || construct.ends_with(&place)
        };
        assert!(threads.iter().any(is_it), "{mark}: {json:#}");
    }
    let (told, json) = report(&run);
    assert!(
        told.starts_with("Nothing is on record of the last "),
        "{told}"
    );
    for mark in ["pause", "barrier"] {
        let place = format!("running.c:{}", line(mark));
        assert!(told.contains(&place), "{mark}: {told}");
    }
    let ending = &json["sampled"]["endings"][0];
    assert!(ending["silent_s"].as_f64() > Some(1.0), "{ending:#}");
}

/// A rank that waits for a message that nobody sends.
pub(super) const SILENT: &str = r#"
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, x;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp parallel
    usleep(1000);
    if (rank == 0)
        MPI_Recv(&x, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        pause();
    MPI_Finalize();
}
"#;

#[test]
fn a_job_that_hung_names_the_call_of_each_rank() {
    if !is_allowed() {
        return;
    }
    let (compiler, launcher) = ranks::IMPLEMENTATIONS[0];
    let build = format!("{compiler} -O1 -g -fopenmp");
    let Some(program) = compile::compile(SILENT, &build) else {
        return;
    };
    let folder = program.folder.path();
    let line = format!(
        "timeout -s TERM 8 {launcher} -n 2 \"$OMPFUSE\" record --events none -o job/%r -- {}; sleep 1",
        program.path.display()
    );
    // A launcher may kill commands before they have said what their ranks did.
    let tries = (0..5).find_map(|_| {
        let _ = std::fs::remove_dir_all(folder.join("job"));
        ranks::run(folder, &line);
        let (told, json) = report(&folder.join("job"));
        let endings = json["sampled"]["endings"].as_array()?.clone();
        (!endings.is_empty()).then_some((told, endings))
    });
    let (told, endings) = tries.expect("of five runs one says what its ranks did");
    for ending in endings {
        let (mark, call) = match ending["rank"].as_u64() {
            Some(0) => ("MPI_Recv(", "rank 0 is in MPI_Recv"),
            _ => ("pause();", "in pause"),
        };
        let at = SILENT.lines().position(|line| line.contains(mark));
        let place = format!(":{}", at.expect("the mark is there") + 1);
        assert!(
            told.contains(&place) && told.contains(call),
            "{mark}: {told}"
        );
    }
}
