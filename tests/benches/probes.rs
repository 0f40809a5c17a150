//! What probes cost: `cargo bench -p ompfuse-tests --bench probes [-- pairs | tools | loops]`.
//!
//! Everything is a ratio of what was measured in the same round, one after the other; the tables show the medians of the
//! rounds. Times are processor time (user and system), which others on the machine disturb least.
//!
//! - `pairs`: a probe that enters and one that leaves, against two reads of the time stamp counter and a store of 64 bytes
//!   (aim: at most 2 x), and bytes and nanoseconds per task of a fib without cut-off;
//! - `tools`: cost per construct, recorded against original, beside the cost of a tool that does nothing but store a time
//!   stamp per event: for libomp an OMPT tool, for libgomp functions in front of it by LD_PRELOAD (aim: at most half);
//! - `loops`: programs made of loops (aim: at most 1 % slower).
//!
//! The sources of the tools are in `tests/benches/tools`, the constructs in `fixtures/probecost`. Environment:
//! `OMPFUSE_BENCH_ROUNDS` (default 7).

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::{process, repository, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Threads of the programs of loops.
const THREADS: usize = 2;
/// Programs of loops, with sizes that take long enough for processor time, which is told in steps of some milliseconds.
const LOOPS: [(&str, &str); 3] = [("cg", "1000"), ("mg", "11"), ("mandelbrot", "800")];
/// The measure of all: `fixtures/probecost`.
const BASE: &str = "rdtsc2+store64";
/// Constructs whose probes are one pair (`barrier`, `single`), or two (`critical`, `parallel`, `task`), or three.
const PAIRS: [(&str, f64); 8] = [
    ("barrier", 1.0),
    ("single", 1.0),
    ("critical", 2.0),
    ("loop-static", 2.0),
    ("parallel", 2.0),
    ("task-if0", 2.0),
    ("task", 3.0),
    ("loop-dynamic", 3.0),
];

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(7);
    println!("{rounds} rounds, medians; ns of processor time");
    if is_wanted("pairs") || is_wanted("tools") {
        for compiler in ["gcc", "clang"] {
            for build in Fixture::open("probecost").ordinary_builds(compiler) {
                constructs(&build, rounds, is_wanted("pairs"), is_wanted("tools"));
            }
        }
    }
    if is_wanted("loops") {
        loops(rounds);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Compiles a tool; `clock`: with `clock_gettime` for the time stamp.
fn tool(compiler: &str, folder: &Path, clock: bool) -> PathBuf {
    let (name, command) = match compiler {
        "gcc" => ("preload", "gcc"),
        _ => ("ompt", "clang-19"),
    };
    let out = folder.join(format!("{name}-{clock}.so"));
    let mut compile = Command::new(command);
    compile
        .args(["-O2", "-shared", "-fPIC"])
        .args(clock.then_some("-DCLOCK"))
        .arg(repository().join(format!("tests/benches/tools/{name}.c")));
    process::run(compile.arg("-o").arg(&out).arg("-ldl")).ok("compiling a tool");
    out
}

/// What `probecost` says: nanoseconds by construct.
fn measured(command: &mut Command) -> BTreeMap<String, f64> {
    let output = process::run(command).ok("probecost").text();
    let number = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    output.lines().filter_map(number).collect()
}

/// Nanoseconds by construct: of the original, recorded, with the tool and its two time stamps.
type Times = [BTreeMap<String, f64>; 4];

/// One round: the original, recorded, and under the tool with either time stamp. The last number: bytes of records.
fn round(build: &Build, patched: &Path, tools: &[PathBuf; 2]) -> (Times, u64) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let start = |program: &Path| {
        let mut command = Command::new(program);
        process::clean(&mut command, THREADS).env("STAMPS_DIR", folder.path());
        command
    };
    let original = measured(&mut start(&build.path));
    let run = folder.path().join("run");
    std::fs::create_dir(&run).expect("there is room for a folder");
    let recorded = measured(start(patched).env("OMPFUSE_DIR", &run));
    let files = std::fs::read_dir(&run)
        .expect("the folder is there")
        .flatten();
    let bytes = files.filter_map(|f| Some(f.metadata().ok()?.len())).sum();
    let variable = match build.compiler {
        "gcc" => "LD_PRELOAD",
        _ => "OMP_TOOL_LIBRARIES",
    };
    let [first, second] = tools
        .each_ref()
        .map(|tool| measured(start(&build.path).env(variable, tool)));
    ([original, recorded, first, second], bytes)
}

fn constructs(build: &Build, rounds: usize, pairs: bool, with_tools: bool) {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    let tools = [false, true].map(|clock| tool(build.compiler, folder.path(), clock));
    let rounds: Vec<_> = (0..rounds)
        .map(|_| round(build, &patched, &tools))
        .collect();
    let of = |value: &dyn Fn(&Times) -> f64| {
        median(rounds.iter().map(|(times, _)| value(times)).collect())
    };
    let ns = |which: usize, name: &str| of(&|times| times[which][name]);
    if pairs {
        println!("\n{build}: {BASE} {:.1} ns", ns(0, BASE));
        println!(
            "{:<14}{:>9} {:>9} {:>6} {:>12}",
            "", "original", "recorded", "pairs", "x per pair"
        );
        for (name, pairs) in PAIRS {
            let ratio = of(&|t| (t[1][name] - t[0][name]) / pairs / t[1][BASE]);
            println!(
                "{name:<14}{:>9.1} {:>9.1} {pairs:>6} {ratio:>12.2}",
                ns(0, name),
                ns(1, name)
            );
        }
        let cost = of(&|t| t[1]["fib-task"] - t[0]["fib-task"]);
        println!(
            "fib without cut-off: {:.0} ns per task, recorded {:.0}: {cost:.0} ns for the records of a task",
            ns(0, "fib-task"),
            ns(1, "fib-task")
        );
    }
    if with_tools {
        println!("\n{build}: cost of recording against a tool that stores a time stamp per event");
        println!(
            "{:<14}{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "", "original", "ours", "rdtsc", "clock", "x rdtsc", "x clock"
        );
        let names = PAIRS
            .map(|(name, _)| name)
            .into_iter()
            .chain(["parallel-2", "fib-task"]);
        for name in names {
            let cost = |which: usize| of(&|t| t[which][name] - t[0][name]);
            let ratio =
                |which: usize| of(&|t| (t[1][name] - t[0][name]) / (t[which][name] - t[0][name]));
            println!(
                "{name:<14}{:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.2} {:>9.2}",
                ns(0, name),
                cost(1),
                cost(2),
                cost(3),
                ratio(2),
                ratio(3)
            );
        }
    }
    let (_, bytes) = rounds[0];
    println!("{:.1} MB of records in a run", bytes as f64 / 1e6);
}

/// Processor time of a command in milliseconds.
fn processor_time(command: &mut Command) -> f64 {
    let mut timed = Command::new("/usr/bin/env");
    let script = "\"$@\" >/dev/null; times";
    timed
        .args(["bash", "-c", script, "bash"])
        .arg(command.get_program())
        .args(command.get_args());
    timed
        .env_clear()
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let text = process::run(&mut timed).ok("a benchmark").text();
    let seconds = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let children = text.lines().last().unwrap_or_default();
    let sum: Option<f64> = children.split_whitespace().map(seconds).sum();
    sum.expect("bash tells the times of its children") * 1e3
}

fn loops(rounds: usize) {
    println!(
        "\n{:<26}{:>12} {:>12} {:>9}",
        "", "original ms", "recorded ms", "x"
    );
    for (name, size) in LOOPS {
        let fixture = Fixture::open(name);
        for build in ["gcc", "clang"]
            .iter()
            .flat_map(|c| fixture.ordinary_builds(c))
        {
            let folder = tempfile::tempdir().expect("there is room for a patched program");
            let patched = table::patch(&build, folder.path(), &[]);
            let start = |program: &Path| {
                let mut command = Command::new(program);
                process::clean(&mut command, THREADS).arg(size);
                command
            };
            let one = |_| {
                let run = tempfile::tempdir().expect("there is room for a recording");
                let original = processor_time(&mut start(&build.path));
                let recorded = processor_time(start(&patched).env("OMPFUSE_DIR", run.path()));
                (original, recorded)
            };
            let times: Vec<(f64, f64)> = (0..rounds).map(one).collect();
            let of = |value: &dyn Fn(&(f64, f64)) -> f64| median(times.iter().map(value).collect());
            println!(
                "{:<26}{:>12.1} {:>12.1} {:>9.4}",
                build.to_string(),
                of(&|t| t.0),
                of(&|t| t.1),
                of(&|t| t.1 / t.0)
            );
        }
    }
}
