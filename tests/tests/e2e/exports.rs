//! Exported call-path profiles, read back by software that isn't ours: values by path, rank and thread are the report's.

mod stacks;
mod values;

use ompfuse_tests::{command, compile, has, process, repository, schema, skip, table, target};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use values::{Pair, compare, expected};

/// What `tests/setup.sh` installs: an interpreter with the packages of `tests/foreign`, and a reader of pprof's files.
struct Foreign {
    python: PathBuf,
    pprof: PathBuf,
}

fn foreign() -> Option<Foreign> {
    let folder = target().0.join("foreign");
    let found = Foreign {
        python: folder.join("python/bin/python"),
        pprof: folder.join("node_modules/pprof-format/dist/esm/index.js"),
    };
    if !found.python.is_file() || !found.pprof.is_file() || !has("node") {
        skip("readers of profiles are not installed (tests/setup.sh)");
        return None;
    }
    Some(found)
}

/// A folder with the program of `sources/profiles.c`.
fn program() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = folder.path().join("profiles");
    let source = repository().join("tests/sources/profiles.c");
    let include = repository().join("include");
    let how = format!("gcc -O0 -g -fopenmp -I {}", include.display());
    compile::files(&[source], &program, &how).then_some((folder, program))
}

/// Exports an input to all formats, in a folder of this name beside it.
fn export(input: &Path, folder: &Path) {
    std::fs::create_dir(folder).expect("there is room for profiles");
    for format in ["cube", "pprof", "collapsed", "tau", "caliper"] {
        let to = [
            "export".as_ref(),
            input.as_os_str(),
            "--to".as_ref(),
            format.as_ref(),
        ];
        // Hatchet wants an ending.
        let file = match format {
            "caliper" => folder.join("caliper.cali"),
            _ => folder.join(format),
        };
        command::ok(to.into_iter().chain(["-o".as_ref(), file.as_os_str()]));
    }
}

/// Reads such folders, and compares them with the reports.
fn check(foreign: &Foreign, inputs: &[(PathBuf, Value)]) {
    let folders: Vec<PathBuf> = inputs
        .iter()
        .map(|(input, _)| input.with_extension("exported"))
        .collect();
    for ((input, _), folder) in inputs.iter().zip(&folders) {
        export(input, folder);
    }
    let mut reader = Command::new("node");
    reader
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/pprof.mjs"))
        .arg(&foreign.pprof);
    reader.args(folders.iter().map(|folder| folder.join("pprof")));
    process::run(&mut reader).ok("reading pprof's files");
    let read = python(foreign, &["values"], &folders);
    for (at, (input, report)) in inputs.iter().enumerate() {
        let expected = expected(report);
        let depth = expected.keys().map(|path| path.matches('>').count()).max();
        assert!(depth >= Some(1), "{expected:?}");
        for format in ["cube", "pprof.json", "tau", "collapsed", "caliper.cali"] {
            let what = format!("{format} of {}", input.display());
            compare(&what, format, &read[at][format], &expected);
        }
    }
}

fn python(foreign: &Foreign, before: &[&str], paths: &[PathBuf]) -> Value {
    let mut reader = Command::new(&foreign.python);
    reader.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/profiles.py"));
    reader.args(before).args(paths);
    let read = process::run(&mut reader).ok("reading profiles");
    serde_json::from_slice(&read.stdout).expect("JSON")
}

#[test]
fn values_are_those_of_the_report() {
    let Some(foreign) = foreign() else { return };
    let Some((folder, program)) = program() else {
        return;
    };
    let at = |name: &str| folder.path().join(name);
    let record = |name: &str, args: &[&str], options: &[&str], status: i32| {
        let options: Vec<&str> = table::ONE_EVENT.iter().chain(options).copied().collect();
        let ended = table::record(&program, args, 2, &at(name), &options);
        assert_eq!(ended.status, status, "{name}: {ended:?}");
        (at(name), schema::checked(&at(name)))
    };
    let whole = record("whole", &[], &[], 0);
    let depths = expected(&whole.1);
    let deepest = depths.keys().map(|path| path.matches('>').count()).max();
    assert_eq!(
        deepest,
        Some(5),
        "user region, parallel, single, task, task: {depths:?}"
    );
    // Classes are those of the parallel regions. How these divide waits at their ends is not known by thread.
    for classes in [
        &["synchronization"][..],
        &["imbalance", "limited_parallelism"],
    ] {
        let of_thread = |m: &BTreeMap<String, Pair>| -> f64 {
            classes
                .iter()
                .filter_map(|&c| m.get(c))
                .map(|pair| pair.0)
                .sum()
        };
        let of_paths: f64 = depths
            .values()
            .flat_map(BTreeMap::values)
            .map(of_thread)
            .sum();
        let overheads = whole.1["overheads"].as_array().expect("a list").iter();
        let seconds = overheads.flat_map(|o| classes.iter().map(move |c| &o[format!("{c}_s")]));
        let of_regions: f64 = seconds.filter_map(Value::as_f64).sum();
        assert!(
            (of_paths - of_regions).abs() < 1e-6,
            "{classes:?}: {of_paths} of {of_regions}"
        );
    }
    let sums = record("sums", &[], &["--units=sums"], 0);
    let some = record("some", &[], &["--units", "every=4"], 0);
    let killed = record("killed", &["kill"], &[], 128 + 9);
    let profile = at("profile.parquet");
    command::ok([
        "combine".as_ref(),
        whole.0.as_os_str(),
        "-o".as_ref(),
        profile.as_os_str(),
    ]);
    let profile = (profile.clone(), schema::checked(&profile));
    check(
        &foreign,
        &[whole.clone(), sums.clone(), some, killed, profile],
    );
    // Side by side.
    let both =
        [&whole, &sums].map(|(input, _)| input.with_extension("exported").join("caliper.cali"));
    let times = python(&foreign, &["together"], &both);
    let mut of_program: Vec<f64> = [&whole, &sums]
        .iter()
        .map(|(_, report)| {
            expected(report)["program"]
                .values()
                .map(|m| m["time"].0)
                .sum()
        })
        .collect();
    let mut read: Vec<f64> = serde_json::from_value(times["program"].clone()).expect("two times");
    assert_eq!(read.len(), 2, "{times}");
    // Thicket's order is that of its own numbers.
    read.sort_by(f64::total_cmp);
    of_program.sort_by(f64::total_cmp);
    for (read, of_report) in read.iter().zip(of_program) {
        let of_both = (read - of_report).abs();
        assert!(of_both < 1e-9, "{read}, in the report {of_report}");
    }
}

/// Two ranks of an MPI program.
#[test]
fn ranks_stand_apart() {
    let Some(foreign) = foreign() else { return };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = folder.path().join("ranks");
    let source = repository().join("tests/sources/ranks.c");
    if !compile::files(&[source], &program, "mpicc.mpich -O1 -g -fopenmp") {
        return;
    }
    let out = folder.path().join("out");
    let mut launched = command::with_threads(2);
    launched
        .args(["record", "--events", "none", "-o"])
        .arg(&out);
    launched
        .args(["--", "mpirun.mpich", "-n", "2"])
        .arg(&program);
    process::run(&mut launched).ok("two ranks");
    let report = schema::checked(&out);
    assert_eq!(report["mpi"]["size"], 2, "{}", report["mpi"]);
    check(&foreign, &[(out, report)]);
}

/// The program's visits are known: one for each thread, or as many as there are iterations and tasks.
#[test]
fn models_are_those_of_the_program() {
    let Some(foreign) = foreign() else { return };
    let Some((folder, program)) = program() else {
        return;
    };
    let out = folder.path().join("out");
    let mut recorded = command::with_threads(2);
    recorded.args([
        "profile",
        "--threads",
        "1,2,3,4,5",
        "--events",
        "none",
        "-q",
        "-o",
    ]);
    process::run(recorded.arg(&out).arg("--").arg(&program)).ok("five numbers of threads");
    let lines = folder.path().join("lines");
    command::ok([
        "export".as_ref(),
        out.as_os_str(),
        "--to".as_ref(),
        "extra-p".as_ref(),
        "-o".as_ref(),
        lines.as_os_str(),
    ]);
    let cubes = folder.path().join("cubes");
    for threads in 1..=5 {
        let cube = cubes.join(format!("profiles.p{threads}.r1/profile.cubex"));
        std::fs::create_dir_all(cube.parent().expect("a folder"))
            .expect("there is room for profiles");
        let run = out.join(format!("threads-{threads}"));
        command::ok([
            "export".as_ref(),
            run.as_os_str(),
            "--to".as_ref(),
            "cube".as_ref(),
            "-o".as_ref(),
            cube.as_os_str(),
        ]);
    }
    let refused = command::run([
        "export".as_ref(),
        out.as_os_str(),
        "--to".as_ref(),
        "cube".as_ref(),
    ]);
    assert!(
        refused.errors().contains("several numbers of threads"),
        "{refused:?}"
    );
    let models = python(&foreign, &["models"], &[lines, cubes, "16".into()]);
    let of = |format: &str, line: u32| -> f64 {
        let found = models[format][format!("profiles.c:{line}")].as_array();
        found.into_iter().flatten().filter_map(Value::as_f64).sum()
    };
    let line = |text: &str| -> u32 {
        let source = std::fs::read_to_string(repository().join("tests/sources/profiles.c"));
        let source = source.expect("the source is there");
        let mut lines = (1..).zip(source.lines());
        lines
            .find(|(_, l)| l.contains(text))
            .expect("it is in the source")
            .0
    };
    for format in ["lines", "cube"] {
        // Twice, by 16 threads, or for each of 32 iterations. Extra-P's cube files have a mean over the threads or a sum.
        let parallel = of(format, line("#pragma omp parallel"));
        let critical = of(format, line("#pragma omp critical"));
        assert!((parallel - 32.0).abs() < 1e-6, "{format}: {models}");
        assert!((critical - 64.0).abs() < 1e-6, "{format}: {models}");
    }
}

#[test]
fn what_is_not_possible_is_said_in_a_line() {
    let Some((folder, program)) = program() else {
        return;
    };
    let out = folder.path().join("out");
    table::record(&program, &[], 2, &out, &["--events", "none"]).ok("a recording");
    let to = |format: &str, more: &[&str]| -> Vec<std::ffi::OsString> {
        let args = [
            "export".into(),
            out.clone().into(),
            "--to".into(),
            format.into(),
        ];
        args.into_iter()
            .chain(more.iter().map(|s| s.into()))
            .collect()
    };
    for (args, status, why) in [
        (
            to("tau", &[]),
            2,
            "a TAU profile is a folder: name it with -o",
        ),
        (
            to(
                "tau",
                &["-o", folder.path().to_str().expect("a plain name")],
            ),
            1,
            "the folder is not empty",
        ),
        (
            to("cube", &["--metric", "time"]),
            2,
            "--metric is of use with --to collapsed only",
        ),
        (
            to("collapsed", &["--metric", "cycles"]),
            1,
            "it has no such metric; it has time, synchronization",
        ),
        (
            to("cube", &["elsewhere"]),
            2,
            "only --to extra-p takes more",
        ),
        (
            to("pprof", &["--select", "taskloop"]),
            1,
            "is `taskloop`; `ompfuse report` lists them",
        ),
    ] {
        let said = process::run(command::with_threads(1).args(&args));
        let errors = said.errors();
        assert_eq!(said.status, status, "{args:?}: {said:?}");
        assert!(errors.contains(why), "{args:?}: {errors}");
    }
    // What is selected, with what is inside; what is around has no values.
    let stacks = command::ok(to("collapsed", &["--select", "single"]));
    let stacks = stacks.text();
    let of = |what: &str| stacks.lines().filter(|line| line.contains(what)).count();
    assert!(
        of("single profiles.c") > 0 && of("task profiles.c") > 0,
        "{stacks}"
    );
    assert_eq!(of("single profiles.c"), stacks.lines().count(), "{stacks}");
    let critical = command::ok(to("collapsed", &["--metric", "visits"]));
    let last = |line: &str| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
    let visits = critical.text();
    let visits = visits
        .lines()
        .filter(|line| line.contains("critical"))
        .filter_map(last);
    assert_eq!(visits.sum::<u64>(), 64, "two times 32 iterations");
}
