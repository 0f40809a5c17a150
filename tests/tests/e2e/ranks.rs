//! MPI programs: the launcher is recorded, or starts a recording for each rank; either way there is one run.

use ompfuse_tests::compile;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, repository, schema};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Both implementations, as Debian names their compilers and launchers.
pub(crate) const IMPLEMENTATIONS: [(&str, &str); 2] = [
    ("mpicc.openmpi", "mpirun.openmpi"),
    ("mpicc.mpich", "mpirun.mpich"),
];

/// What Open MPI wants of root, and of machines with few processors.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
];

/// Of the source: what a rank executes.
fn iterations(rank: u64) -> u64 {
    8 * 1000 * (1 + 3 * rank)
}

/// A folder with the program.
pub(crate) fn build(compiler: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = folder.path().join("ranks");
    let source = repository().join("tests/sources/ranks.c");
    compile::files(&[source], &program, &format!("{compiler} -O1 -g -fopenmp"))
        .then_some((folder, program))
}

/// A command in the folder, with everything that launchers want.
pub(crate) fn run(folder: &Path, line: &str) -> Output {
    let mut shell = Command::new("sh");
    process::clean(&mut shell, 2)
        .env(
            "XDG_CACHE_HOME",
            ompfuse_tests::target().0.join("fixtures/cache"),
        )
        .env("OMPFUSE", command::path())
        .envs(ENVIRONMENT)
        .current_dir(folder)
        .args(["-c", line]);
    process::run(&mut shell)
}

fn report(input: &Path) -> Value {
    schema::checked(input)
}

/// The iterations on record, by rank.
fn of_rank(xus: &[Xu], rank: u64) -> u64 {
    let own = xus
        .iter()
        .filter(|x| x.columns["mpi_rank"] == rank.to_string());
    own.map(|x| x.number("iterations")).sum()
}

/// Everything in a folder, hidden files too.
fn names(folder: &Path) -> Vec<String> {
    let listing = std::fs::read_dir(folder)
        .expect("a folder can be listed")
        .flatten();
    let mut names: Vec<String> = listing
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn check_one_run(out: &Path, said: &Output) -> Vec<String> {
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(
        said.text().matches("2 ranks, 40000 iterations\n").count(),
        1,
        "{said:?}"
    );
    let everything = said.text() + &said.errors();
    assert_eq!(everything.matches("2 MPI ranks").count(), 1, "{said:?}");
    assert_eq!(names(out), ["profile.parquet", "run-0001"], "{said:?}");
    let run = &table::runs(out)[0];
    let left = names(run);
    let is_left = |name: &&String| name.starts_with("rank-") || name.as_str() == "held";
    assert_eq!(left.iter().find(is_left), None, "{left:?}");
    let xus = table::export(run);
    for rank in 0..2 {
        assert_eq!(
            of_rank(&xus, rank),
            iterations(rank),
            "rank {rank}: {said:?}"
        );
    }
    let mpi = &report(out)["mpi"];
    assert_eq!(mpi["size"], 2, "{mpi}");
    assert_eq!(mpi["missing"], Value::Array(vec![]), "{mpi}");
    assert_eq!(mpi["ranks"].as_array().map(Vec::len), Some(2), "{mpi}");
    let text = command::ok([Path::new("report"), out]).text();
    assert!(text.lines().count() <= 40, "{text}");
    table::labels(&xus)
}

#[test]
fn one_job_is_one_run() {
    for (compiler, launcher) in IMPLEMENTATIONS {
        let Some((folder, _program)) = build(compiler) else {
            continue;
        };
        let inside = format!("{launcher} -n 2 \"$OMPFUSE\" profile --events none -o in -- ./ranks");
        let of_inside = check_one_run(&folder.path().join("in"), &run(folder.path(), &inside));
        let outside =
            format!("\"$OMPFUSE\" profile --events none -o out -- {launcher} -n 2 ./ranks");
        let of_outside = check_one_run(&folder.path().join("out"), &run(folder.path(), &outside));
        assert_eq!(of_inside, of_outside, "{launcher}");
        assert_eq!(
            names(folder.path()),
            ["in", "out", "ranks"],
            "nothing else is left"
        );

        // How much work a rank has is told by its iterations (`check_one_run`), not by its time.
        let report = report(&folder.path().join("in"));
        let work = |of: &Value| of["work_s"].as_f64().expect("a number");
        let regions = report["regions"].as_array().expect("a list");
        let loops = regions.iter().filter(|r| r["xus"].as_u64() > Some(0));
        let region = loops.max_by(|a, b| work(a).total_cmp(&work(b)));
        let ranks = &region.expect("there is a region")["ranks"];
        let per_rank = ranks["per_rank"].as_array().expect("a list");
        let (zero, one) = (work(&per_rank[0]), work(&per_rank[1]));
        let among = ranks["imbalance_among_ranks"].as_f64().expect("a number");
        assert!(
            (among - (2.0 * one.max(zero) / (zero + one) - 1.0)).abs() < 1e-6,
            "{ranks}"
        );
        let xus = |rank: usize| per_rank[rank]["xus"].as_u64();
        assert_eq!((xus(0), xus(1)), (Some(16), Some(16)), "{ranks}");
        check_exports(&folder.path().join("in"), (zero, one));
    }
}

/// Tables and metrics tell the ranks apart. `work_s`: of the region with most work, by rank.
fn check_exports(out: &Path, work_s: (f64, f64)) {
    let export = |args: &[&str]| {
        let args = args.iter().map(Path::new);
        command::ok([Path::new("export"), out].into_iter().chain(args)).text()
    };
    let table = export(&["--to", "csv", "--table", "regions"]);
    let mut sums: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in csv::Reader::from_reader(table.as_bytes()).deserialize() {
        let row: BTreeMap<String, String> = row.expect("a table");
        let place = (row["region"].clone(), row["mpi_rank"].clone());
        let work: f64 = row["work_s"].parse().expect("a number");
        *sums.entry(place).or_default() += work;
    }
    let has = |rank: &str, work: f64| {
        let mut of_rank = sums.iter().filter(|((_, r), _)| r == rank);
        of_rank.any(|(_, sum)| (sum - work).abs() <= 1e-9 * work)
    };
    assert!(
        has("0", work_s.0) && has("1", work_s.1),
        "{work_s:?} in {table}"
    );
    let metrics = export(&["--to", "openmetrics", "--select", "loop"]);
    for rank in ["module=\"ranks\"", "rank=\"0\"", "rank=\"1\""] {
        let mut lines = metrics.lines();
        let is_it = |l: &str| l.starts_with("ompfuse_region_units_total{") && l.contains(rank);
        assert!(lines.any(is_it), "no {rank} in {metrics}");
    }
}

/// Ranks that are started in the same folder again are repetitions, as all ranks together; one rank is none of another.
#[test]
fn launches_are_repetitions_and_ranks_are_not() {
    for (compiler, launcher) in IMPLEMENTATIONS {
        let Some((folder, _program)) = build(compiler) else {
            continue;
        };
        // Without a folder's name the ranks agree on one.
        let record = format!("{launcher} -n 2 \"$OMPFUSE\" record --events none -- ./ranks");
        let again = record.replace("record", "record -o ompfuse-out");
        for line in [&record, &again] {
            let said = run(folder.path(), line).ok(line);
            assert_eq!(said.errors().matches("1 run in").count(), 1, "{said:?}");
        }
        let out = folder.path().join("ompfuse-out");
        assert_eq!(names(folder.path()), ["ompfuse-out", "ranks"]);
        assert_eq!(table::runs(&out).len(), 2);
        let both = folder.path().join("both.parquet");
        command::ok([Path::new("combine"), &out, Path::new("-o"), &both]);
        let xus = table::export(&both);
        assert_eq!(
            (of_rank(&xus, 0), of_rank(&xus, 1)),
            (iterations(0), iterations(1))
        );
        assert_eq!(report(&both)["unmatched"], Value::Array(vec![]));

        // A folder for each rank, by wish.
        let apart = format!(
            "{launcher} -n 2 \"$OMPFUSE\" record --events none -o 'of-%q{{RANK}}' -- ./ranks"
        );
        let variable = if launcher.ends_with("mpich") {
            "PMI_RANK"
        } else {
            "OMPI_COMM_WORLD_RANK"
        };
        run(folder.path(), &apart.replace("RANK", variable)).ok("ranks apart");
        let ranks = ["of-0", "of-1"].map(|name| folder.path().join(name));
        for (rank, of) in (0..).zip(&ranks) {
            let runs = table::runs(of);
            assert_eq!(runs.len(), 1);
            let xus = table::export(&runs[0]);
            assert_eq!((xus.len(), of_rank(&xus, rank)), (16, iterations(rank)));
        }
        let refused = command::run([
            Path::new("combine"),
            &ranks[0],
            &ranks[1],
            Path::new("-o"),
            &both,
        ]);
        assert_eq!(refused.status, 1, "{refused:?}");
        assert!(
            refused
                .errors()
                .contains("different ranks of an MPI program"),
            "{refused:?}"
        );
    }
}

/// MPI_Init works once in a launch: who wants several runs has the launcher started several times, which is said before anything
/// is started.
#[test]
fn several_runs_in_one_launch_are_refused() {
    for (compiler, launcher) in IMPLEMENTATIONS {
        let Some((folder, _program)) = build(compiler) else {
            continue;
        };
        let record = "profile --events none --repeat 2 -o out -- ";
        let refused = run(
            folder.path(),
            &format!("{launcher} -n 2 \"$OMPFUSE\" {record}./ranks"),
        );
        assert_ne!(refused.status, 0, "{refused:?}");
        assert!(!refused.text().contains("iterations"), "{refused:?}");
        let instead = format!("`ompfuse {record}mpirun -n 2 ./ranks`");
        assert!(refused.errors().contains(&instead), "{refused:?}");
        assert_eq!(names(folder.path()), ["ranks"], "nothing was made");
        let line = format!("\"$OMPFUSE\" {record}{launcher} -n 2 ./ranks");
        let done = run(folder.path(), &line).ok(&line);
        let out = folder.path().join("out");
        assert_eq!(table::runs(&out).len(), 2, "{done:?}");
        assert_eq!(report(&out)["unmatched"], Value::Array(vec![]));
    }
}

/// A killed rank ends the launch; what is left names it.
#[test]
fn a_killed_rank_is_named() {
    for (compiler, launcher) in IMPLEMENTATIONS {
        let Some((folder, _program)) = build(compiler) else {
            continue;
        };
        let lines = [
            format!("{launcher} -n 2 \"$OMPFUSE\" record --events none -o in -- ./ranks 1"),
            format!("\"$OMPFUSE\" record --events none -o out -- {launcher} -n 2 ./ranks 1"),
        ];
        for (out, line) in ["in", "out"].into_iter().zip(lines) {
            let killed = run(folder.path(), &line);
            assert_ne!(killed.status, 0, "{line}: {killed:?}");
            let run = folder.path().join(out).join("run-0001");
            let report = report(&run);
            let ranks = report["mpi"]["ranks"].as_array().expect("a list");
            assert_eq!(ranks.len(), 2, "{line}: {report}");
            assert_eq!(ranks[1]["ended"], false, "{line}: {ranks:?}");
            if out == "in" {
                let notes = report["notes"].to_string();
                assert!(notes.contains("rank 1 was ended by signal 9"), "{notes}");
            }
        }
    }
}

/// Slurm can't be installed here: its variables are what is known of it. Ranks come in any order; one is killed, and one never
/// comes.
#[test]
fn ranks_of_slurm() {
    let Some((folder, _program)) = build("mpicc.openmpi") else {
        return;
    };
    let source = "#include <omp.h>\nint main(void) { int n = 0;\n#pragma omp parallel for reduction(+:n)\n\
                  for (int i = 0; i < 100; i++) n++;\nreturn n != 100; }\n";
    let built = compile::text(folder.path(), "loop", source, "gcc -O1 -g -fopenmp");
    built.expect("MPI's compiler is there, so is this one");
    let script = r#"
        export SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=4
        rank() { r=$1; shift; SLURM_PROCID=$r "$OMPFUSE" record --events none -o out -- "$@"; }
        rank 2 sh -c './loop; kill -9 $PPID' &
        rank 1 sh -c 'sleep 1; ./loop; exit 5' & one=$!
        rank 0 ./loop & zero=$!
        wait $zero; echo "rank 0 $?"
        wait $one; echo "rank 1 $?"
        wait
    "#;
    let said = run(folder.path(), script);
    let text = said.text();
    assert!(
        text.contains("rank 0 0\n") && text.contains("rank 1 5\n"),
        "{said:?}"
    );
    assert_eq!(names(&folder.path().join("out")), ["run-0001"], "{said:?}");
    let run = folder.path().join("out/run-0001");
    let report = report(&run);
    let xus = table::export(&run);
    for rank in 0..3 {
        assert_eq!(of_rank(&xus, rank), 100, "rank {rank}: {report}");
    }
    let mpi = &report["mpi"];
    assert_eq!(mpi["size"], 4, "{mpi}");
    assert_eq!(mpi["missing"], serde_json::json!([3]), "{mpi}");
    let notes = report["notes"].to_string();
    for note in [
        "rank 1 ended with status 5",
        "rank 2: the command that recorded it was killed",
        "not recorded: rank 3, since",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
        assert!(said.errors().contains(note), "{note}: {said:?}");
    }
    // A batch script has a rank as well, and is no rank of several.
    let alone = "SLURM_JOB_ID=8 SLURM_PROCID=0 SLURM_NTASKS=4 \"$OMPFUSE\" record --events none --repeat 2 -o alone -- ./loop";
    self::run(folder.path(), alone).ok("a batch script");
    assert_eq!(table::runs(&folder.path().join("alone")).len(), 2);
}
