//! The strategies on made-up programs: `cargo run --release -p ompfuse-study --example strategies
//! [XUS] [SEED] [REPETITIONS] [few] [NAME...]`; `few`: only lgl, bc, joint, default and the complete run. A NAME that is a folder holds complete runs as Parquet
//! profiles, which take the place of the made-up ones.

use ompfuse_fuse::testing::programs::{Shape, execute};
use ompfuse_fuse::{Profile, XuTable};
use ompfuse_progress::Progress;
use ompfuse_study::{Estimate, Method, Setting, experiment};
use std::path::{Path, PathBuf};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (few, names): (Vec<&String>, Vec<&String>) = args
        .iter()
        .filter(|a| a.parse::<u64>().is_err())
        .partition(|n| *n == "few");
    let mut numbers = args.iter().filter_map(|a| a.parse::<u64>().ok());
    let xus = numbers.next().unwrap_or(2000) as usize;
    let seed = numbers.next().unwrap_or(1);
    let repetitions = numbers.next().unwrap_or(3) as usize;
    let setting = Setting {
        slots: 5,
        period_ns: 100_000,
        references: 5,
        repetitions,
        methods: if few.is_empty() {
            Method::ALL.to_vec()
        } else {
            vec![
                Method::Lgl,
                Method::Bc,
                Method::Joint,
                Method::Default,
                Method::Complete,
            ]
        },
    };
    let (folders, names): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|n| Path::new(n).is_dir());
    for folder in &folders {
        show(folder, &read(folder), &setting);
    }
    let is_wanted = |name: &str| match (names.is_empty(), folders.is_empty()) {
        (true, is_alone) => is_alone,
        (false, _) => names.iter().any(|n| *n == name),
    };
    for shape in Shape::ALL.into_iter().filter(|s| is_wanted(s.name())) {
        let runs: Vec<XuTable> = (0..20).map(|run| execute(shape, xus, seed, run)).collect();
        show(shape.name(), &runs, &setting);
    }
}

/// The runs of a folder, in the order of their names.
fn read(folder: &str) -> Vec<XuTable> {
    let listing = std::fs::read_dir(folder).expect("it is a folder");
    let mut files: Vec<PathBuf> = listing
        .map(|e| e.expect("it can be listed").path())
        .collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "parquet"));
    files.sort();
    let read = |p: &PathBuf| {
        let bytes = std::fs::read(p).expect("it can be read");
        Profile::from_parquet(bytes).expect("a profile").xus
    };
    files.iter().map(read).collect()
}

fn show(name: &str, runs: &[XuTable], setting: &Setting) {
    let runs: Vec<&XuTable> = runs.iter().collect();
    let result = experiment(&runs, setting, Progress::default()).expect("enough runs");
    let show = |e: Option<Estimate>| e.map_or("-".to_owned(), |e| format!("{:.4}", e.mean));
    println!("{name} ({} XUs; fresh {})", result.xus, show(result.fresh));
    for m in &result.methods {
        println!(
            "  {:14} {:2} runs  epd {:>8}  ce {:>7}  hidden {:>7}  by event {:>7}  shared {:>7}  all {:>7}  matched {:>6}",
            m.method.name(),
            m.runs,
            show(m.epd),
            show(m.correlation_error),
            show(m.hidden_error),
            show(m.hidden_error_by_event),
            show(m.shared_error_by_event),
            show(m.error_by_event),
            show(m.matched)
        );
    }
}
