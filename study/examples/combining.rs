//! How long combining and evaluating takes beside the aims: `cargo run --release -p ompfuse-study
//! --example combining [-- XUS [RUNS [FOLDER [PYTHON]]]]`. Default: 1,000,000 XUs, 15 runs, 33 events.
//!
//! The runs are a made-up program's, in memory; each shows the event set that the strategy wants. Times are wall-clock
//! seconds, and processor seconds of all threads, of the combination alone. With a folder the tables are also written there
//! as Parquet, for `combining.py`, which does the same with NumPy, SciPy, pyemd and POT; with the name of a Python that has
//! them, that is started too, and what it takes stands beside. From a million XUs on the time is also measured by the number
//! of XUs; `-- sizes 10000000` does only that, up to so many, and with another
//! number after it, from so many on. `-- only bc 1000000 15` measures one of lgl, joint, bc, epd, emd.

use ompfuse_fuse::evaluate::transport::{Mass, Transport};
use ompfuse_fuse::plan::Correlations;
use ompfuse_fuse::testing::programs::{EVENTS, Shape, execute};
use ompfuse_fuse::{
    CellOrder, JointJoin, LglJoin, Profile, References, Relax, XuTable, combine_bc, plan_bc,
    plan_joint, plan_lgl,
};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SEED: u64 = 1;

/// Processor time of this process, all threads together.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Largest resident set so far, in MB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

/// Adds up what is measured.
#[derive(Default)]
struct Clock {
    wall: Duration,
    processor: Duration,
}

impl Clock {
    fn time<T>(&mut self, what: impl FnOnce() -> T) -> T {
        let (wall, busy) = (Instant::now(), processor());
        let result = what();
        self.wall += wall.elapsed();
        self.processor += processor() - busy;
        result
    }

    fn tell(&self, what: &str, detail: &str) {
        let (wall, busy) = (self.wall.as_secs_f64(), self.processor.as_secs_f64());
        let cores = busy / wall.max(1e-3);
        println!(
            "{what:28} {wall:8.2} s  {busy:8.2} s of processors, {cores:.2} at a time  {detail}"
        );
    }

    /// Whether the wall-clock time is within the aim.
    fn judge(&self, aim: f64) {
        judge(self.wall.as_secs_f64(), aim, "s");
    }
}

fn judge(value: f64, aim: f64, unit: &str) {
    let word = if value <= aim { "met" } else { "MISSED" };
    println!("    aim: at most {aim:.1} {unit}: {word}");
}

/// Run `number`, with only `events`.
fn shown(xus: usize, number: usize, events: &[String]) -> XuTable {
    execute(Shape::Bushes, xus, SEED, number as u64).only(events)
}

fn write(table: &XuTable, folder: Option<&Path>, name: &str) {
    if let Some(folder) = folder {
        let bytes = Profile::of_table(name, table.clone())
            .to_parquet()
            .expect("equal columns");
        std::fs::create_dir_all(folder).expect("a folder can be made");
        std::fs::write(folder.join(format!("{name}.parquet")), bytes).expect("a writable folder");
    }
}

/// What is measured.
struct Bench {
    xus: usize,
    runs: usize,
    folder: Option<PathBuf>,
    names: Vec<String>,
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let only = (args.first().is_some_and(|a| a == "only") && args.len() > 1)
        .then(|| args.drain(..2).nth(1))
        .flatten();
    let number = |at: usize, default: usize| {
        args.get(at)
            .map_or(default, |a| a.parse().expect("a number"))
    };
    if args.first().is_some_and(|a| a == "sizes") {
        return by_size(number(2, 10_000), number(1, 1_000_000));
    }
    let bench = Bench {
        xus: number(0, 1_000_000),
        runs: number(1, 15),
        folder: args.get(2).map(PathBuf::from),
        names: EVENTS.iter().map(|&e| e.to_owned()).collect(),
    };
    let is_wanted = |what: &str| only.as_ref().is_none_or(|only| only == what);
    let lgl: fn(&Bench) = Bench::lgl;
    let parts = [
        ("lgl", lgl),
        ("joint", Bench::joint),
        ("bc", Bench::bc),
        ("epd", Bench::epd),
    ];
    for (what, measure) in parts {
        if is_wanted(what) {
            measure(&bench);
        }
    }
    if only.is_some_and(|only| only != "emd") {
        return;
    }
    let mut ours = vec![];
    for is_inside in [false, true] {
        let (time, distance) = earth_movers(is_inside);
        println!(
            "emd of two full 10 x 10 histograms, {}: {:.1} us (median of 200), {distance:.12}",
            PLACES[usize::from(is_inside)],
            time.as_secs_f64() * 1e6
        );
        ours.push(time.as_secs_f64() * 1e6);
    }
    if bench.xus >= 1_000_000 {
        by_size(10_000, bench.xus);
    }
    if let (Some(folder), Some(python)) = (&bench.folder, args.get(3)) {
        beside_python(folder, python, &ours);
    }
}

impl Bench {
    fn write(&self, table: &XuTable, name: &str) {
        write(table, self.folder.as_deref(), name);
    }

    fn known(&self) -> Correlations {
        Correlations::of(&execute(Shape::Bushes, 20_000, SEED, 99))
    }

    fn lgl(&self) {
        // As many sets as runs: the smallest that do, as in the papers' tables.
        let slots = EVENTS.len().div_ceil(self.runs).max(2);
        let sets = plan_lgl(&self.names, slots, |_| true);
        let mut clock = Clock::default();
        let mut join: Option<LglJoin> = None;
        for at in 0..self.runs {
            let table = shown(self.xus, at, sets.get(at).map_or(&[][..], Vec::as_slice));
            self.write(&table, &format!("lgl-{at:02}"));
            join = Some(clock.time(|| match join.take() {
                None => LglJoin::new(table),
                Some(mut join) => {
                    join.add(table);
                    join
                }
            }));
        }
        let combined = clock.time(|| join.expect("runs").finish());
        clock.tell("lgl", &size(self.runs, &combined.table));
        clock.judge(5.0);
    }

    fn joint(&self) {
        let known = self.known();
        let correlation = |a: &str, b: &str| known.get(a, b);
        let sets = plan_joint(&self.names, 5, 2, |_| true, correlation, |_| 1.0);
        let mut clock = Clock::default();
        let mut join: Option<JointJoin> = None;
        for (at, set) in sets.iter().enumerate() {
            let table = shown(self.xus, at, set);
            self.write(&table, &format!("joint-{at:02}"));
            join = Some(clock.time(|| match join.take() {
                None => JointJoin::new(table),
                Some(mut join) => {
                    join.add(&table);
                    join
                }
            }));
        }
        let combined = clock.time(|| join.expect("runs").finish());
        clock.tell("joint", &size(sets.len(), &combined.table));
        clock.judge(20.0);
        println!("memory so far: {} MB", memory());
    }

    fn bc(&self) {
        let known = self.known();
        let sets = plan_bc(&self.names, 5, |_| true, |a, b| known.get(a, b));
        let tables: Vec<XuTable> = (0..self.runs)
            .map(|at| {
                // More runs than sets: the last sets again.
                let table = shown(self.xus, at, &sets[at.min(sets.len() - 1)]);
                self.write(&table, &format!("bc-{at:02}"));
                table
            })
            .collect();
        let tables: Vec<&XuTable> = tables.iter().collect();
        let mut clock = Clock::default();
        let combined = clock
            .time(|| combine_bc(&tables, Relax::Halve, CellOrder::Label))
            .expect("a chain of events");
        clock.tell("bc (halve)", &size(self.runs, &combined.table));
        clock.judge(20.0);
        println!("memory so far: {} MB", memory());
    }

    fn epd(&self) {
        let xus = 60_000.min(self.xus);
        let references: Vec<XuTable> = (0..5).map(|at| shown(xus, 100 + at, &self.names)).collect();
        for (at, table) in references.iter().enumerate() {
            self.write(table, &format!("reference-{at}"));
        }
        let target = shown(xus, 200, &self.names);
        self.write(&target, "target");
        let mut clock = Clock::default();
        let epd = clock.time(|| {
            let runs: Vec<&XuTable> = references.iter().collect();
            let references = References::new(&runs, &target).expect("five runs");
            references.evaluate(&target).expect("all events").0.epd
        });
        let xus = references[0].len();
        clock.tell(
            "epd",
            &format!("528 pairs, 5 references of {xus} XUs: {epd:.12}"),
        );
        clock.judge(30.0);
    }
}

fn size(runs: usize, table: &XuTable) -> String {
    format!(
        "{runs} runs, {} XUs, {} events",
        table.len(),
        table.events.len()
    )
}

/// Where the histograms' masses are, as `combining.py` says it.
const PLACES: [&str; 2] = ["at the bins' corners", "anywhere in their bins"];

/// Starts the script, and compares the earth mover's distances.
fn beside_python(folder: &Path, python: &str, ours: &[f64]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/combining.py");
    let output = std::process::Command::new(python)
        .arg(script)
        .arg(folder)
        .output()
        .expect("the Python that was named");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{python} {script}: {errors}");
    println!("with NumPy, SciPy, POT and pyemd:\n{text}");
    for (place, ours) in PLACES.iter().zip(ours) {
        let pot = text.lines().find_map(|l| {
            let rest = l.split_once(&format!("{place}: POT "))?.1;
            rest.split_once(" us")?.0.parse::<f64>().ok()
        });
        if let Some(pot) = pot {
            println!("emd {place}: {:.3} of POT's time", ours / pot);
            judge(*ours, pot / 10.0, "us");
        }
    }
}

/// Processor time by the number of XUs: three runs with four events each.
fn by_size(least: usize, most: usize) {
    let names: Vec<String> = EVENTS.iter().map(|&e| e.to_owned()).collect();
    let sets: [&[String]; 3] = [&names[..4], &names[2..6], &names[4..8]];
    println!("processor time per XU and log2(XUs), 3 runs, 4 events each (ns; lgl, bc)");
    let mut first: Option<[f64; 2]> = None;
    let sizes = [10_000, 100_000, 1_000_000, 10_000_000];
    for xus in sizes.into_iter().filter(|xus| (least..=most).contains(xus)) {
        let tables: Vec<XuTable> = (0..3).map(|at| shown(xus, at, sets[at])).collect();
        let tables: Vec<&XuTable> = tables.iter().collect();
        let rounds = (2_000_000 / xus).max(1);
        let (mut lgl, mut bc) = (Clock::default(), Clock::default());
        let unit = tables[0].len() as f64 * (tables[0].len() as f64).log2() * rounds as f64;
        let per = |clock: &Clock| clock.processor.as_secs_f64() * 1e9 / unit;
        for _ in 0..rounds {
            // As in the command, each run's table belongs to who joins it.
            let owned = tables.iter().map(|&table| table.clone());
            let mut join: Option<LglJoin> = None;
            for table in owned {
                join = Some(lgl.time(|| match join.take() {
                    None => LglJoin::new(table),
                    Some(mut join) => {
                        join.add(table);
                        join
                    }
                }));
            }
            drop(lgl.time(|| join.expect("runs").finish()));
        }
        let a = per(&lgl);
        // At once: the other takes long, and much memory.
        print!("{xus:10} {a:8.2}");
        std::io::stdout().flush().expect("an open output");
        for _ in 0..rounds {
            drop(bc.time(|| combine_bc(&tables, Relax::Halve, CellOrder::Label)));
        }
        let b = per(&bc);
        let [x, y] = first.get_or_insert([a, b]).map(f64::recip);
        println!(" {b:8.2}   x {:.2}, x {:.2}", a * x, b * y);
    }
}

/// How long the distance of two full histograms of 10 x 10 bins takes, and what it is; the same numbers are drawn in
/// `combining.py`.
fn earth_movers(is_inside: bool) -> (Duration, f64) {
    let mut state = 7u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 1000 + 1
    };
    let mut amounts = || (0..100).map(|_| draw()).collect::<Vec<u64>>();
    let (a, b) = (amounts(), amounts());
    let (total_a, total_b) = (a.iter().sum::<u64>(), b.iter().sum::<u64>());
    let mut offset = || {
        if is_inside {
            draw() as f64 / 1001.0
        } else {
            0.0
        }
    };
    let mut masses = |amounts: &[u64], factor: u64| -> Vec<Mass> {
        (0..)
            .zip(amounts)
            .map(|(bin, amount)| Mass {
                bin,
                x: f64::from(bin / 10) + offset(),
                y: f64::from(bin % 10) + offset(),
                amount: amount * factor,
            })
            .collect()
    };
    let (supply, demand) = (masses(&a, total_b), masses(&b, total_a));
    let mut transport = Transport::default();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let begin = Instant::now();
            std::hint::black_box(transport.minimum_cost(&supply, &demand));
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    let distance = transport.minimum_cost(&supply, &demand) / (total_a as f64 * total_b as f64);
    (times[100], distance)
}
