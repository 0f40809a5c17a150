//! Clocks of several hosts. There is one machine here: other clocks are written into the records of some ranks.

use super::super::ranks::{self, IMPLEMENTATIONS};
use super::{list, number};
use ompfuse_tests::{command, compile, schema};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// All ranks meet 2 * ROUNDS times. One after the other comes two milliseconds late, and
/// rank 3 comes late to half of the meetings. Other operations are
/// no meetings: they are of some ranks only, hand over nothing, or let ranks go before the others have come.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <unistd.h>
enum { ROUNDS = 40 };
int main(int argc, char **argv) {
    int rank, ranks, one = 1, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
#pragma omp parallel
    all += 0 * rank;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(half);
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, half);
        MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep((rank + round) % ranks == 0 ? 2000 : 0);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&one, &all, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(rank == 3 ? 100000 : 0);
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return all != ranks;
}
"#;

/// Calls `change` for each pair of readings of both clocks.
fn each_reading(value: &mut Value, change: &dyn Fn(u64) -> u64) {
    if let (Some(_), Some(ns)) = (value["tsc"].as_u64(), value["ns"].as_u64()) {
        value["ns"] = change(ns).into();
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|v| each_reading(v, change)),
        Value::Array(list) => list.iter_mut().for_each(|v| each_reading(v, change)),
        _ => {}
    }
}

/// A copy of the job in which these ranks are on another host, whose clock `change` gives.
fn moved(job: &Path, name: &str, ranks: &[u32], change: &dyn Fn(u64) -> u64) -> PathBuf {
    let to = job.with_file_name(name);
    super::copy(job, &to);
    for rank in ranks {
        let folder = to.join(rank.to_string());
        std::fs::remove_file(folder.join("summary.json")).expect("it was left");
        let run = folder.join("run-0001");
        for file in std::fs::read_dir(&run).expect("a run can be listed") {
            let path = file.expect("a run can be listed").path();
            if path.extension().is_some_and(|e| e == "json") {
                let text = std::fs::read(&path).expect("it can be read");
                let mut value: Value = serde_json::from_slice(&text).expect("it is JSON");
                if path.ends_with("run.json") {
                    value["host"] = "elsewhere".into();
                } else if value.is_object() {
                    each_reading(&mut value, change);
                }
                std::fs::write(&path, value.to_string()).expect("there is room");
            }
        }
    }
    to
}

fn clocks(job: &Path) -> (Value, Value) {
    let report = schema::checked(job);
    (
        report["mpi"]["clocks"].clone(),
        report["mpi"]["ranks"].clone(),
    )
}

#[test]
fn clocks_of_hosts_are_aligned_to_the_error_that_is_stated() {
    for (compiler, launcher) in IMPLEMENTATIONS {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let how = format!("{compiler} -O1 -g -fopenmp");
        if compile::text(folder.path(), "meet", PROGRAM, &how).is_none() {
            continue;
        }
        let line = format!("{launcher} -n 4 \"$OMPFUSE\" record --events none -o job/%r -- ./meet");
        ranks::run(folder.path(), &line).ok(&line);
        let job = folder.path().join("job");
        let alone = schema::checked(&job.join("0"));
        assert_eq!(alone["mpi"]["ranks"][0]["meetings"]["all"], 80, "{alone}");
        assert_eq!(alone["mpi"]["clocks"], Value::Null);
        let (here, of_here) = clocks(&job);
        assert_eq!(
            (&here["meetings"], &here["used"]),
            (&80.into(), &64.into()),
            "{here}"
        );
        assert_eq!(
            (list(&here, "hosts").len(), number(&here, "error_s")),
            (1, 0.0),
            "{here}"
        );
        assert_eq!(here["latest"]["rank"], 3, "{here}");
        let begin = {
            let name = std::fs::read_dir(job.join("2/run-0001")).expect("a run can be listed");
            let is_it = |p: &PathBuf| {
                p.to_string_lossy().contains("process-") && !p.to_string_lossy().contains(".end.")
            };
            let mut files = name.filter_map(|e| Some(e.ok()?.path())).filter(is_it);
            let text =
                std::fs::read(files.next().expect("it has a process")).expect("it can be read");
            let header: Value = serde_json::from_slice(&text).expect("it is JSON");
            header["begin"]["ns"].as_u64().expect("a time")
        };
        // The same clock, one that is 100 s ahead, and one that is behind and runs faster by 300 parts of a million.
        let ahead = |ns: u64| ns + 100_000_000_000;
        let faster = |ns: u64| {
            let since = ns.cast_signed() - begin.cast_signed();
            (ns - 1_500_000).saturating_add_signed(since * 3 / 10_000)
        };
        let all: [(&str, &dyn Fn(u64) -> u64); 3] =
            [("same", &|ns| ns), ("ahead", &ahead), ("faster", &faster)];
        for (name, change) in all {
            let (found, ranks) = clocks(&moved(&job, name, &[2, 3], change));
            let hosts = list(&found, "hosts");
            assert_eq!(
                (hosts.len(), &found["left_out"]),
                (2, &Value::Null),
                "{name}: {found}"
            );
            let other = &hosts[1];
            assert_eq!(
                (&other["host"], &other["ranks"]),
                (&"elsewhere".into(), &2.into()),
                "{name}"
            );
            let error = number(other, "error_s");
            assert_eq!(error, number(&found, "error_s"));
            // The run takes less than a minute, in which the clock gains less than 18 ms.
            let gained = if name == "faster" { 0.018 } else { 0.0 };
            let injected = (change(begin) as f64 - begin as f64) * 1e-9;
            for key in ["offset_s", "offset_at_end_s"] {
                let wrong = number(other, key) - injected;
                assert!(
                    wrong >= -error - 1e-9 && wrong <= gained + error + 1e-9,
                    "{name}: {key}: {found}"
                );
            }
            assert!(error > 0.0 && error < 1.0, "{found}");
            if name == "faster" {
                let rate = number(other, "offset_at_end_s") - number(other, "offset_s");
                assert!(rate > -2.0 * error, "{found}");
            }
            assert_eq!(found["latest"]["rank"], 3, "{found}");
            for rank in 0..4 {
                let (a, b) = (
                    number(&of_here[rank], "late_s"),
                    number(&ranks[rank], "late_s"),
                );
                assert!(
                    (a - b).abs() <= 4.0 * error,
                    "{name}: {rank}: {a}, {b}, {found}"
                );
            }
        }
        // A clock that is set while the program runs fits no line.
        let text = command::ok([Path::new("report"), &folder.path().join("ahead")]).text();
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            plain.contains(
                "the clocks of 2 hosts, aligned by 64 of 80 collective calls of all ranks, agree to"
            ),
            "{text}"
        );
    }
}
