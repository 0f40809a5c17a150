//! Numbers that lie: programs and run folders of which some were replaced. Each command ends soon, in little memory, with a result or
//! with one line. Work that grows with a number in a file, and not with the file, fails here.
//!
//! `OMPFUSE_LIES=3600 cargo test --profile tests -p ompfuse-tests --test e2e damage::lies` goes on for so many seconds.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, hostile, process, recorded};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a case may take: seconds of processor time, and KiB of address space.
const LIMITS: [&str; 2] = ["10", "8000000"];

/// Runs the command within the limits.
#[track_caller]
fn ends_well(what: &str, args: &[&Path], folder: &Path) -> bool {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -t $1 -v $2; shift 2; exec \"$@\"", "sh"]);
    limited.args(LIMITS).arg(command::path()).args(args);
    let output = process::run(process::clean(&mut limited, 2).current_dir(folder));
    let done = output.status == 0;
    let said = output.status == 1 && output.errors().trim_end().lines().count() >= 1;
    let is_panic = output.errors().contains("panicked");
    assert!((done || said) && !is_panic, "{what}, {args:?}: {output:?}");
    done
}

/// The seeds to try: a few, or as many as there is time for.
fn seeds(few: u64) -> impl Iterator<Item = u64> {
    let seconds = std::env::var("OMPFUSE_LIES").ok();
    let seconds: Option<u64> = seconds.and_then(|s| s.parse().ok());
    let until = seconds.map(|s| Instant::now() + Duration::from_secs(s));
    (0..).take_while(move |&seed| until.map_or(seed < few, |until| Instant::now() < until))
}

/// Whether there was harm and no harm.
fn is_telling(done: usize, tried: usize) {
    assert!(done > 0 && done < tried, "{done} of {tried} were read");
}

#[test]
fn run_folders() {
    let builds = ["loops", "tasking", "locks"];
    let builds = builds.map(|name| Fixture::open(name).ordinary_builds("gcc").pop());
    let mut runs: Vec<PathBuf> = vec![];
    for build in builds.iter().flatten() {
        runs.push(recorded::run(build, 2).folder.clone());
        runs.push(recorded::run_with_sums(build, 2).folder.clone());
    }
    if runs.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a run");
    let (mut done, mut tried) = (0, 0);
    for seed in seeds(40) {
        let of = &runs[seed as usize % runs.len()];
        let copy = folder.path().join("run-0001");
        std::fs::create_dir(&copy).expect("a folder can be made");
        let files = std::fs::read_dir(of).expect("a run can be listed");
        let mut files: Vec<PathBuf> = files.map(|f| f.expect("a file").path()).collect();
        files.sort();
        files.retain(|f| f.is_file());
        let (records, texts): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|f| f.extension().is_some_and(|e| e == "rec"));
        let chosen = match seed / runs.len() as u64 % 4 {
            3 => texts,
            _ => records,
        };
        let victim = chosen[hostile::Random::new(seed).below(chosen.len())];
        for file in &files {
            let bytes = std::fs::read(file).expect("a file can be read");
            let bytes = match (file == victim, std::str::from_utf8(&bytes)) {
                (false, _) => bytes,
                (true, Ok(text)) => hostile::mutated_text(text, seed).into_bytes(),
                (true, Err(_)) => hostile::mutated_records(&bytes, seed),
            };
            let to = copy.join(file.file_name().expect("a file has a name"));
            std::fs::write(to, bytes).expect("a file can be written");
        }
        let what = format!(
            "{} with mutation {seed} of {}",
            of.display(),
            victim.display()
        );
        let commands: [&[&str]; 6] = [
            &["report", "run-0001"],
            &["combine", "run-0001", "-o", "profile.parquet"],
            &["export", "run-0001", "--to", "chrome", "-o", "trace.json"],
            &["report", "run-0001", "--html", "page.html"],
            &["report", "run-0001", "--interval", "1ms"],
            &["export", "run-0001", "--to", "csv", "-o", "table.csv"],
        ];
        // The usual one always, another one in turn.
        for args in [commands[0], commands[1 + seed as usize % 5]] {
            let args: Vec<&Path> = args.iter().map(Path::new).collect();
            tried += 1;
            done += usize::from(ends_well(&what, &args, folder.path()));
        }
        std::fs::remove_dir_all(&copy).expect("a folder can be removed");
        for left in ["profile.parquet", "trace.json", "page.html", "table.csv"] {
            let _ = std::fs::remove_file(folder.path().join(left));
        }
    }
    is_telling(done, tried);
}

#[test]
fn programs() {
    let builds = ["gcc", "clang"].map(|c| Fixture::open("sync").ordinary_builds(c).pop());
    let programs: Vec<Vec<u8>> = (builds.iter().flatten())
        .map(|build| std::fs::read(&build.path).expect("a build can be read"))
        .collect();
    if programs.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let (input, copy) = (folder.path().join("input"), folder.path().join("copy"));
    let (mut done, mut tried) = (0, 0);
    for seed in seeds(16) {
        // Others than those of `errors::headers_that_lie`.
        let seed = seed + 1000;
        let program = &programs[seed as usize % programs.len()];
        std::fs::write(&input, hostile::mutated(program, seed)).expect("a file can be written");
        let what = format!("mutation {seed}");
        let patch = [Path::new("patch"), &input, Path::new("-o"), &copy];
        for args in [&[Path::new("scan"), &input][..], &patch] {
            tried += 1;
            done += usize::from(ends_well(&what, args, folder.path()));
        }
        let _ = std::fs::remove_file(&copy);
    }
    is_telling(done, tried);
}
