//! Baselines: how large they are, what can't be one, and changes of known size.

use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, has};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of this source in a folder of its own.
fn compiled(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).expect("the folder is ours");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-fopenmp", "-o"])
        .args([&program, &file]);
    process::run(&mut gcc).ok("gcc");
    program
}

fn record(program: &Path, out: &Path, flags: &[&str]) {
    let mut recorder = command::with_threads(2);
    recorder.args(["record", "-q"]).args(flags).arg("-o");
    process::run(recorder.arg(out).arg("--").arg(program)).ok("record");
}

/// Parallel loops: so many, each with so much work.
fn loops(number: usize, terms: usize) -> String {
    let mut source = String::from("static double cells[64];\n");
    for n in 0..number {
        let _ = writeln!(
            source,
            "static void loop_{n}(void)\n{{\n#pragma omp parallel for schedule(static)\nfor (int i = 0; i < 64; i++)\n\
             for (int t = 0; t < {terms}; t++) cells[i] = cells[i] * 0.5 + t;\n}}"
        );
    }
    source.push_str("int main(void)\n{\n");
    for n in 0..number {
        let _ = writeln!(source, "loop_{n}();");
    }
    source.push_str("return 0;\n}\n");
    source
}

/// 500 parallel regions, each with a loop, in 5 runs.
#[test]
#[ignore = "tests/run.sh whole"]
fn five_hundred_regions_are_small_enough_to_commit() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = compiled(folder.path(), "many", &loops(500, 20));
    let (runs, file) = (folder.path().join("runs"), folder.path().join("b.json.gz"));
    record(&program, &runs, &["--events", "none", "--repeat", "5"]);
    command::ok([
        "baseline".as_ref(),
        runs.as_os_str(),
        "-o".as_ref(),
        file.as_os_str(),
    ]);
    let size = file.metadata().expect("it was written").len();
    assert!(size <= 100_000, "{size} bytes");
    let diff = command::json([
        "diff".as_ref(),
        file.as_os_str(),
        runs.as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    let pairs = diff["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 1000, "each parallel region and its loop");
}

fn refused(args: &[&Path], expected: &str) {
    let output: Output = command::run(args);
    assert_eq!(output.status, 1, "{output:?}");
    let errors = output.errors();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn what_is_no_side_is_refused_in_one_line() {
    if !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = |name: &str| folder.path().join(name);
    for (name, terms) in [("one", 20), ("two", 30)] {
        let program = compiled(folder.path(), name, &loops(3, terms));
        record(
            &program,
            &at(&format!("{name}-runs")),
            &["--events", "none"],
        );
    }
    let (one, two, good) = (at("one-runs"), at("two-runs"), at("good.json.gz"));
    let [baseline, diff, a, b, o] = ["baseline", "diff", "--a", "--b", "-o"].map(Path::new);
    command::ok([baseline, &one, o, &good]);

    // Not all of one build.
    let both = "are of different builds";
    refused(&[baseline, &one, &two, o, &at("x.json.gz")], both);
    refused(&[diff, a, &one, &two, b, &one], both);
    // A baseline is a side of its own.
    refused(
        &[diff, a, &good, &one, b, &one],
        "which is a side of its own",
    );

    // Damaged in several ways.
    let bytes = std::fs::read(&good).expect("it was written");
    let cut = at("cut.json.gz");
    for part in [bytes.len() / 4, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&cut, &bytes[..part]).expect("the folder is ours");
        refused(&[diff, &cut, &one], "cannot read the baseline");
    }

    // Written by a later ompfuse.
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&bytes[..]);
    unpacked.read_to_string(&mut text).expect("packed JSON");
    for newer in [
        text.replacen("\"version\":3", "\"version\":99", 1),
        "{\"version\":99}".to_owned(),
    ] {
        assert_ne!(newer, text);
        let file = std::fs::File::create(at("newer.json.gz")).expect("the folder is ours");
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        packed.write_all(newer.as_bytes()).expect("room");
        packed.finish().expect("room");
        refused(&[diff, &at("newer.json.gz"), &one], "version is 99");
    }
}

/// The kernel's length is known: each term more is as many instructions more, in that loop and nowhere else.
#[test]
fn known_differences_are_found_to_the_last_instruction() {
    if !(has("gcc") && has("qemu-x86_64")) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = |name: String| folder.path().join(name);
    let simulate = ["--simulate=libraries=no", "--repeat", "2"];
    let flags = [&simulate[..], &["--events", "sim-instructions"]].concat();
    let source = |terms: usize| {
        let others = loops(3, 1000);
        others.replacen("t < 1000", &format!("t < {terms}"), 1)
    };
    for terms in [1000, 1010, 1030, 1100] {
        let build = at(terms.to_string());
        std::fs::create_dir(&build).expect("the folder is ours");
        let program = compiled(&build, "kernel", &source(terms));
        record(&program, &at(format!("runs-{terms}")), &flags);
    }
    let mut each_term = vec![];
    for (terms, percent) in [(1010, 1.0), (1030, 3.0), (1100, 10.0)] {
        let (a, b) = (at("runs-1000".to_owned()), at(format!("runs-{terms}")));
        let diff = command::json([
            "diff".as_ref(),
            a.as_os_str(),
            b.as_os_str(),
            "--format".as_ref(),
            "json".as_ref(),
        ]);
        let pairs = diff["pairs"].as_array().expect("pairs").iter();
        let changed = pairs.flat_map(|pair| {
            let changes = pair["changes"].as_array().expect("changes").iter();
            let changed = changes.filter(|c| c["finding"] == "changed");
            changed.map(move |change| (&pair["b"][0], change))
        });
        let changed: Vec<_> = changed
            .filter(|(_, c)| c["quantity"] == "sim-instructions")
            .collect();
        let [(region, change)] = &changed[..] else {
            panic!("one region: {changed:?}");
        };
        assert_eq!(region["function"], "loop_0", "{region}");
        assert_eq!(region["construct"], "loop", "{region}");
        let found = 100.0 * change["change"].as_f64().expect("a change");
        assert!((found - percent).abs() < 0.02 * percent, "{found} %");
        let number = |side: &str| change[side].as_f64().expect("instructions");
        each_term.push((number("b") - number("a")) / (terms - 1000) as f64);
    }
    assert!(
        each_term.iter().all(|&n| n == each_term[0] && n > 0.0),
        "{each_term:?}"
    );
}
