//! What probes cost: `cargo bench -p ompfuse-tests --bench probes [-- pairs | tools | sets | sums | loops | instructions]`.
//!
//! Everything is a ratio of what was measured in the same round, one after the other; the tables show the medians of the
//! rounds. Times are processor time (user and system), which others on the machine disturb least, and of a construct the least of
//! many repetitions in a process.
//!
//! - `pairs`: a probe that enters and one that leaves, against two reads of the time stamp counter and a store of 64 bytes
//!   (aim: at most 2 x), nanoseconds per task of a fib without cut-off, of a task with four dependences times one without (aim: at most
//!   1.5), and bytes of records per execution unit;
//! - `tools`: cost per construct, recorded against original, beside the cost of a tool that does nothing but store a time
//!   stamp per event: for libomp an OMPT tool, for libgomp functions in front of it by LD_PRELOAD (aim: at most half). The tool
//!   takes its time stamps from `clock_gettime`, as tools do, or (as ours) from the processor's counter;
//! - `sets`: what it costs that a construct has another event set than what is around it, and so changes twice;
//! - `sums`: what it costs to add a construct to a thread's sums (`record --units sums`), against recording it (aim: at most as much);
//! - `instructions`: how many each construct executes more when it is recorded, counted by valgrind: the same on every machine and
//!   however busy it is. Only if it is asked for by name, since it takes some minutes;
//! - `loops`: programs made of loops (aim: at most 1 % slower), with the 95 % confidence interval of the median ratio.
//!
//! The sources of the tools are in `tests/benches/tools`, the constructs in `fixtures/probecost`. Environment:
//! `OMPFUSE_BENCH_ROUNDS` (default 7; of programs of loops three times as many).

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::{process, repository, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a record file says how many bytes of records there are (`ThreadHeader::committed`).
const COMMITTED: usize = 48;
/// Threads of the programs of loops.
const THREADS: usize = 2;
/// Programs of loops, with sizes that take long enough for processor time, which is told in steps of some milliseconds.
const LOOPS: [(&str, &str); 3] = [("cg", "1000"), ("mg", "11"), ("mandelbrot", "800")];
/// Rounds of these for each of the others: their differences are smaller than what the machine does besides.
const LOOP_ROUNDS: usize = 3;
/// The aims: times the base for a pair, part of a tool's cost, and times the original for a program of loops.
const AIMS: [f64; 3] = [2.0, 0.5, 1.01];
/// And of a task with four dependences, times one without.
const DEPENDENT: f64 = 1.5;
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
    if is_wanted("sets") {
        for build in Fixture::open("probecost").ordinary_builds("gcc") {
            sets(&build, rounds);
        }
    }
    if is_wanted("sums") {
        for compiler in ["gcc", "clang"] {
            for build in Fixture::open("probecost").ordinary_builds(compiler) {
                sums(&build, rounds);
            }
        }
    }
    if is_wanted("loops") {
        loops(rounds);
    }
    if wanted.iter().any(|w| w == "instructions") {
        for compiler in ["gcc", "clang"] {
            for build in Fixture::open("probecost").ordinary_builds(compiler) {
                instructions(&build);
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Whether an aim is met.
fn verdict(ratio: f64, aim: f64) -> &'static str {
    if ratio <= aim { "met" } else { "missed" }
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

/// One round: the original, recorded, and under the tool with either time stamp.
fn round(build: &Build, patched: &Path, tools: &[PathBuf; 2]) -> Times {
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
    let variable = match build.compiler {
        "gcc" => "LD_PRELOAD",
        _ => "OMP_TOOL_LIBRARIES",
    };
    let [first, second] = tools
        .each_ref()
        .map(|tool| measured(start(&build.path).env(variable, tool)));
    [original, recorded, first, second]
}

fn constructs(build: &Build, rounds: usize, pairs: bool, with_tools: bool) {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    let tools = [false, true].map(|clock| tool(build.compiler, folder.path(), clock));
    let rounds: Vec<_> = (0..rounds)
        .map(|_| round(build, &patched, &tools))
        .collect();
    let of = |value: &dyn Fn(&Times) -> f64| median(rounds.iter().map(value).collect());
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
                "{name:<14}{:>9.1} {:>9.1} {pairs:>6} {ratio:>12.2} {}",
                ns(0, name),
                ns(1, name),
                verdict(ratio, AIMS[0])
            );
        }
        let cost = of(&|t| t[1]["fib-task"] - t[0]["fib-task"]);
        println!(
            "fib without cut-off: {:.0} ns per task, recorded {:.0}: {cost:.0} ns for the records of a task",
            ns(0, "fib-task"),
            ns(1, "fib-task")
        );
        let dependent = of(&|t| {
            let cost = |name: &str| t[1][name] - t[0][name];
            cost("task-depend") / cost("task")
        });
        println!(
            "a task with four dependences: {dependent:.2} times what one without costs {}",
            verdict(dependent, DEPENDENT)
        );
        bytes_per_unit(&patched, folder.path());
    }
    if with_tools {
        println!("\n{build}: cost of recording against a tool that stores a time stamp per event");
        println!(
            "{:<14}{:>9} {:>9} {:>9} {:>9} {:>17} {:>17}",
            "", "original", "ours", "clock", "rdtsc", "x clock", "x rdtsc"
        );
        for (name, _) in PAIRS
            .into_iter()
            .chain([("fib-task", 0.0), ("parallel-2", 0.0)])
        {
            let cost = |which: usize| of(&|t| t[which][name] - t[0][name]);
            let ratio = |which: usize| {
                let ratio = of(&|t| (t[1][name] - t[0][name]) / (t[which][name] - t[0][name]));
                match name {
                    // Two threads wake each other: that varies by more than anybody's probes.
                    "parallel-2" => format!("{ratio:.2}"),
                    // gcc makes no call of it that a tool could see.
                    _ if cost(which) < 1.0 => "-".to_owned(),
                    _ => format!("{ratio:.2} {}", verdict(ratio, AIMS[1])),
                }
            };
            println!(
                "{name:<14}{:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>17} {:>17}",
                ns(0, name),
                cost(1),
                cost(3),
                cost(2),
                ratio(3),
                ratio(2),
            );
        }
    }
}

/// How often `probecost` repeats a construct, and by what it divides the number of repetitions that it is told.
const PARTS: [(&str, i64); 8] = [
    ("barrier", 4),
    ("single", 4),
    ("critical", 4),
    ("loop-static", 4),
    ("parallel", 16),
    ("task-if0", 8),
    ("task", 16),
    ("loop-dynamic", 4),
];
const REPEATED: i64 = 15;

/// Instructions of user code that a construct executes more when it is recorded, without those of the start: by the difference
/// between two numbers of repetitions.
fn instructions(build: &Build) {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    let count = |program: &Path, name: &str, times: i64, recorded: bool| -> i64 {
        let run = tempfile::tempdir().expect("there is room for a recording");
        let log = run.path().join("log");
        let mut command = Command::new("valgrind");
        process::clean(&mut command, THREADS);
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(format!("--log-file={}", log.display()));
        if recorded {
            command.env("OMPFUSE_DIR", run.path());
        }
        let command = command.arg(program).args([&times.to_string(), name, "12"]);
        process::run(command).ok("valgrind");
        let log = std::fs::read_to_string(log).expect("valgrind tells something");
        let number = log.lines().find_map(|l| l.split_once("Collected : "));
        number
            .and_then(|(_, n)| n.trim().parse().ok())
            .expect("callgrind tells how many it has counted")
    };
    println!("\n{build}: instructions of a construct");
    println!("{:<14}{:>9} {:>9}", "", "original", "more");
    for (name, part) in PARTS {
        let (few, many) = (1600, 16000);
        let each = |program: &Path, recorded| {
            let more = count(program, name, many, recorded) - count(program, name, few, recorded);
            more * part / (many - few) / REPEATED
        };
        let (original, recorded) = (each(&build.path, false), each(&patched, true));
        println!("{name:<14}{original:>9} {:>9}", recorded - original);
    }
}

/// Bytes of records per execution unit, everything included, of each kind that a run has nothing but.
fn bytes_per_unit(patched: &Path, folder: &Path) {
    for (name, units) in [
        (
            "fib-task",
            "tasks, each of which waits for two others, or none",
        ),
        ("loop-dynamic", "ranges of dynamic loops of one range each"),
        ("loop-static", "ranges of static loops"),
    ] {
        let run = folder.join(name);
        let args = ["2000", name, "15"];
        table::record(patched, &args, THREADS, &run, &["--events", "none"]).ok("a recording");
        let run = table::runs(&run).pop().expect("one run was recorded");
        let files = std::fs::read_dir(&run)
            .expect("a run is a folder")
            .flatten();
        let records = files.filter(|f| f.path().extension().is_some_and(|e| e == "rec"));
        let bytes: u64 = records
            .filter_map(|f| std::fs::read(f.path()).ok())
            .filter_map(|file| Some(u64::from_le_bytes(*file.get(COMMITTED..)?.first_chunk()?)))
            .sum();
        let xus = table::export(&run).len();
        println!(
            "{:.0} bytes per execution unit: {units} ({xus})",
            bytes as f64 / xus as f64
        );
    }
}

/// Pairs of event sets: of the kernel's events, and of the processor's.
const SETS: [&str; 2] = ["page-faults;minor-faults", "instructions;branches"];

/// Constructs that are counted with another set than what they are in, against the same with one set.
fn sets(build: &Build, rounds: usize) {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    println!(
        "\n{build}: nanoseconds for two changes of the event set, if a construct has one of its own"
    );
    for pair in SETS {
        let cost = |name: &str| {
            let run = |events: &str, rotate: &str| {
                let run = tempfile::tempdir().expect("there is room for a recording");
                let mut command = Command::new(&patched);
                process::clean(&mut command, THREADS)
                    .args(["1600", name])
                    .env("OMPFUSE_DIR", run.path())
                    .env("OMPFUSE_EVENTS", events)
                    .env("OMPFUSE_ROTATE", rotate);
                measured(&mut command)[name]
            };
            let (first, _) = pair.split_once(';').expect("two sets");
            // With every instance another set: every second one differs from what is around it.
            let rotated = || 2.0 * (run(pair, "1") - run(first, "0"));
            median((0..rounds).map(|_| rotated()).collect())
        };
        println!(
            "{pair:<26} loop-static {:>8.0}  task-if0 {:>8.0}",
            cost("loop-static"),
            cost("task-if0")
        );
    }
}

/// Constructs that are added to sums, against the same that are recorded.
fn sums(build: &Build, rounds: usize) {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    let round = || {
        let run = |program: &Path, mode: Option<&str>| {
            let run = tempfile::tempdir().expect("there is room for a recording");
            let mut command = Command::new(program);
            process::clean(&mut command, THREADS);
            if let Some(mode) = mode {
                command.env("OMPFUSE_DIR", run.path());
                command.env("OMPFUSE_SUMS", mode);
            }
            measured(&mut command)
        };
        [None, Some("0"), Some("1")].map(|mode| match mode {
            None => run(&build.path, None),
            mode => run(&patched, mode),
        })
    };
    let rounds: Vec<_> = (0..rounds).map(|_| round()).collect();
    println!("\n{build}: nanoseconds that a construct takes longer");
    println!(
        "{:<14}{:>9} {:>9} {:>9}",
        "", "recorded", "in sums", "ratio"
    );
    let names = PAIRS.into_iter().map(|(name, _)| name);
    for name in names.chain(["fib-task", "parallel-2"]) {
        let more = |of: usize| rounds.iter().map(move |t| t[of][name] - t[0][name]);
        let cost = |of: usize| median(more(of).collect());
        let ratio = median(
            more(2)
                .zip(more(1))
                .map(|(sums, records)| sums / records)
                .collect(),
        );
        println!(
            "{name:<14}{:>9.1} {:>9.1} {ratio:>9.2} {}",
            cost(1),
            cost(2),
            verdict(ratio, 1.0)
        );
    }
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

/// The 95 % confidence interval of a median: ranks between which it lies by the binomial distribution, whatever the values'
/// own distribution is. With less than six values: all of them.
fn interval(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    // So many values, or less, below the median: their probability.
    let (mut below, mut term, mut rank) = (0.0, 0.5f64.powi(n as i32), 0);
    while below + term <= 0.025 {
        below += term;
        term *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    let first = rank.saturating_sub(1);
    [values[first], values[n - 1 - first]]
}

fn loops(rounds: usize) {
    println!(
        "\n{:<26}{:>12} {:>12} {:>9} {:>17}",
        "", "original ms", "recorded ms", "x", "95 %"
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
            let one = |round: usize| {
                let run = tempfile::tempdir().expect("there is room for a recording");
                let original = || processor_time(&mut start(&build.path));
                let recorded = || processor_time(start(&patched).env("OMPFUSE_DIR", run.path()));
                // By turns the first one: what the machine does changes slowly.
                if round.is_multiple_of(2) {
                    (original(), recorded())
                } else {
                    let recorded = recorded();
                    (original(), recorded)
                }
            };
            let times: Vec<(f64, f64)> = (0..rounds * LOOP_ROUNDS).map(one).collect();
            let of = |value: &dyn Fn(&(f64, f64)) -> f64| median(times.iter().map(value).collect());
            let [low, high] = interval(times.iter().map(|t| t.1 / t.0).collect());
            let verdict = match AIMS[2] {
                aim if high <= aim => "met",
                aim if low > aim => "missed",
                _ => "not shown",
            };
            println!(
                "{:<26}{:>12.1} {:>12.1} {:>9.4} {low:>8.4} {high:>8.4} {verdict}",
                build.to_string(),
                of(&|t| t.0),
                of(&|t| t.1),
                of(&|t| t.1 / t.0)
            );
        }
    }
}
