//! Samples in exported files, read back by software that isn't ours: as many as `report --lines` tells, and apart from exact times.

use super::super::traces;
use crate::sampled::{is_allowed, lines, number, program, record, regions, tasks};
use ompfuse_tests::{command, process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each format has.
const FORMATS: [&str; 5] = ["perfetto", "speedscope", "firefox", "pprof", "collapsed"];

/// Constructs, functions with lines, samples: what the reader prints.
type Read = (Vec<String>, Vec<(String, Option<u64>)>, u64);

/// Samples with one stack.
#[derive(Debug, Clone)]
struct Stack {
    constructs: Vec<String>,
    functions: Vec<(String, Option<u64>)>,
    samples: u64,
}

impl Stack {
    /// Where the construct is in the source: `lines.c:19`.
    fn place(&self) -> &str {
        let last = self.constructs.last().expect("a construct");
        last.rsplit(' ')
            .next()
            .filter(|p| p.contains(':'))
            .unwrap_or_default()
    }

    /// What stands for time without functions.
    fn instead(&self) -> Option<&str> {
        let first = self.functions[0].0.as_str();
        let all = [
            "[OpenMP runtime or waiting]",
            "[recording]",
            "[idle]",
            "[uncertain]",
        ];
        all.into_iter().find(|name| *name == first)
    }
}

fn export(run: &Path, format: &str, options: &[&str], to: &Path) {
    let mut args = vec![OsStr::new("export"), run.as_os_str(), OsStr::new("--to")];
    args.push(OsStr::new(format));
    args.extend(options.iter().map(OsStr::new));
    command::ok(args.into_iter().chain([OsStr::new("-o"), to.as_os_str()]));
}

/// Exports a run to all formats with stacks. Returns what is exact in pprof's file.
fn export_all(run: &Path, folder: &Path, readers: &Readers) -> BTreeSet<String> {
    std::fs::create_dir(folder).expect("there is room");
    for format in FORMATS {
        export(run, format, &[], &folder.join(format));
    }
    let pprof = folder.join("pprof");
    let mut reader = Command::new("node");
    reader.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/pprof.mjs"));
    process::run(reader.arg(&readers.pprof).arg(&pprof)).ok("reading pprof's file");
    let read = std::fs::read(folder.join("pprof.json")).expect("it was written");
    let read: Vec<Value> = serde_json::from_slice(&read).expect("JSON");
    let exact = read.into_iter().filter_map(|mut sample| {
        let values = sample["values"].as_object_mut().expect("by metric");
        let samples = values.remove("samples");
        values.remove("cpu");
        let is_exact = samples.is_none_or(|n| n == 0);
        is_exact.then(|| sample.to_string())
    });
    exact.collect()
}

struct Readers {
    traces: traces::Foreign,
    pprof: PathBuf,
}

fn readers() -> Option<Readers> {
    Some(Readers {
        traces: traces::foreign()?,
        pprof: super::foreign()?.pprof,
    })
}

/// The stacks of a run's samples, by format.
fn stacks(run: &Path, folder: &Path, readers: &Readers) -> BTreeMap<String, Vec<Stack>> {
    export(
        run,
        "collapsed",
        &["--metric=samples"],
        &folder.join("samples"),
    );
    let mut reader = Command::new(&readers.traces.python);
    reader.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/stacks.py"));
    let read = process::run(reader.arg(&readers.traces.schema).arg(folder)).ok("reading stacks");
    let read: BTreeMap<String, Vec<Read>> = serde_json::from_slice(&read.stdout).expect("JSON");
    let stack = |(constructs, functions, samples)| Stack {
        constructs,
        functions,
        samples,
    };
    read.into_iter()
        .map(|(format, all)| (format, all.into_iter().map(stack).collect()))
        .collect()
}

/// Sums of samples, by place of the construct and what they are.
fn by_place(stacks: &[Stack]) -> BTreeMap<(String, &'static str), u64> {
    let mut sums = BTreeMap::new();
    for stack in stacks {
        let what = match stack.instead() {
            None => "work",
            Some("[OpenMP runtime or waiting]") => "runtime",
            Some("[recording]") => "recording",
            Some("[uncertain]") => "uncertain",
            _ => continue, // of no region
        };
        *sums.entry((stack.place().to_owned(), what)).or_default() += stack.samples;
    }
    sums
}

/// The same of a report of lines.
fn told(lines: &Value) -> BTreeMap<(String, &'static str), u64> {
    let mut sums = BTreeMap::new();
    for region in regions(lines) {
        let place = region["file"].as_str().map_or(String::new(), |file| {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{file}:{}", region["line"])
        });
        for what in ["work", "runtime", "recording", "uncertain"] {
            let samples = number(region, what);
            if samples > 0 {
                *sums.entry((place.clone(), what)).or_default() += samples;
            }
        }
    }
    sums
}

#[test]
fn samples_are_below_their_constructs() {
    let Some(readers) = readers().filter(|_| is_allowed()) else {
        return;
    };
    let programs = [
        ("lines", program("lines", "gcc -O1 -g -fopenmp"), vec![]),
        (
            "stacks",
            program("stacks", "gcc -O2 -g -fopenmp -Wl,--no-as-needed -lm"),
            vec![],
        ),
        (
            "tasks",
            tasks("gcc -O1 -g -fopenmp"),
            vec!["4000", "200000"],
        ),
    ];
    for (name, program, args) in programs {
        let Some((folder, program)) = program else {
            continue;
        };
        let at = |name: &str| folder.path().join(name);
        let run = record(&program, &args, 2, &at("out"), &["--sampling=1000"]);
        let exact = export_all(&run, &at("with"), &readers);
        let found = stacks(&run, &at("with"), &readers);
        let lines = lines(&run);
        let expected = told(&lines);
        for format in FORMATS {
            let stacks = &found[format];
            assert_eq!(by_place(stacks), expected, "{name}: {format}");
            if name == "stacks" {
                inner_functions(format, stacks, &lines);
            }
            if name == "lines" && format != "collapsed" {
                hot_lines(format, stacks, &lines);
            }
        }
        // Without samples all that is exact is the same.
        let of_traces = traces::exported(&run, &folder.path().join("with"), &[], &readers.traces);
        remove_samples(&run);
        let without = export_all(&run, &at("without"), &readers);
        assert_eq!(exact, without, "{name}: pprof");
        let of_without = traces::exported(&run, &at("without"), &[], &readers.traces);
        assert_eq!(of_traces, of_without, "{name}");
        let refused = ["export".as_ref(), run.as_os_str(), "--to".as_ref()];
        let refused = refused
            .into_iter()
            .chain(["collapsed", "--metric=samples"].map(OsStr::new));
        let refused = process::run(command::with_threads(2).args(refused));
        assert_eq!(refused.status, 1);
        assert!(refused.errors().contains("it has none"), "{refused:?}");
    }
}

fn remove_samples(run: &Path) {
    for entry in std::fs::read_dir(run).expect("the run's folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|e| e == "samples") {
            std::fs::remove_file(path).expect("it is ours");
        }
    }
}

/// Functions with what they call have as many samples as the report says; inlined ones, too.
fn inner_functions(format: &str, stacks: &[Stack], lines: &Value) {
    let of_loop = regions(lines).iter().max_by_key(|r| number(r, "work"));
    let of_loop = of_loop.expect("a region");
    let place = format!("stacks.c:{}", of_loop["line"]);
    let functions = of_loop["functions"].as_array().expect("a list");
    let mut compared = 0;
    for function in functions.iter().filter(|f| f["callee"].is_null()) {
        let Some(name) = function["function"].as_str() else {
            continue;
        };
        let is_in = |s: &&Stack| s.place() == place && s.functions.iter().any(|(n, _)| n == name);
        let n: u64 = stacks.iter().filter(is_in).map(|s| s.samples).sum();
        assert_eq!(n, number(function, "total"), "{format}: {name}");
        compared += usize::from(["both", "often", "sometimes"].contains(&name));
    }
    assert!(compared >= 2, "{format}: {functions:?}");
    // What is not whole is marked, and nothing else is.
    let is_work = |s: &&Stack| s.place() == place && s.instead().is_none();
    let work = stacks.iter().filter(is_work);
    let is_marked = |s: &&Stack| s.functions[0].0 != "[callers not known]";
    let whole: u64 = work.filter(is_marked).map(|s| s.samples).sum();
    assert_eq!(whole, number(of_loop, "whole"), "{format}");
}

/// Lines of the innermost function.
fn hot_lines(format: &str, stacks: &[Stack], lines: &Value) {
    let region = regions(lines).iter().find(|r| !r["construct"].is_null());
    let region = region.expect("a region");
    let place = format!("lines.c:{}", region["line"]);
    let hot = region["lines"].as_array().expect("a list");
    for line in hot {
        let at = line["line"].as_u64();
        let is_at = |s: &&Stack| {
            s.place() == place && s.instead().is_none() && s.functions.last().unwrap().1 == at
        };
        let n: u64 = stacks.iter().filter(is_at).map(|s| s.samples).sum();
        assert_eq!(n, number(line, "samples"), "{format}: {line}");
    }
    assert!(hot.len() >= 3, "{format}: {hot:?}");
}
