//! What `ompfuse try` recommends, measured again by runs that it didn't see.

use crate::{command, process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Pairs that a recommendation is measured in.
pub const PAIRS: usize = 10;

/// An answer of `try`.
pub struct Answer {
    /// As it was printed.
    pub json: Value,
    /// The file that `--patch` has written, if one was.
    patched: Option<PathBuf>,
    program: PathBuf,
    threads: usize,
}

/// A change of the time by pairs of runs: its mean as a share, and where it is but for one time in twenty.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Geometric mean of the quotients, less 1.
    pub mean: f64,
    /// From here ...
    pub low: f64,
    /// ... to here.
    pub high: f64,
    /// The share of all processors that other programs had meanwhile.
    pub others: f64,
}

/// Processor time in ticks: of all programs and of idle processors, and of the processes that this one has waited for (proc(5)).
fn used() -> [f64; 3] {
    let numbers = |file: &str, from: usize, count: usize| -> Vec<f64> {
        let text = std::fs::read_to_string(file).expect("the kernel tells");
        let line = text.lines().next().unwrap_or_default();
        let words = line.rsplit(')').next().unwrap_or_default();
        let words = words.split_ascii_whitespace().skip(from).take(count);
        words.map(|word| word.parse().expect("a number")).collect()
    };
    // User, nice, system, idle, waiting; and of `/proc/self/stat`, behind the name, those of children.
    let all = numbers("/proc/stat", 1, 5);
    let own: f64 = numbers("/proc/self/stat", 13, 2).iter().sum();
    [all[..3].iter().sum(), all[3..].iter().sum(), own]
}

/// Lets `try` look for what helps a program. `variables`: what the environment has beside.
///
/// # Panics
/// If it refuses.
pub fn tried(
    program: &Path,
    threads: usize,
    options: &[&str],
    variables: &[(&str, &str)],
) -> Answer {
    let answer = asked(program, threads, options, variables);
    answer.unwrap_or_else(|error| panic!("{error}"))
}

/// The same.
///
/// # Errors
/// Why it refuses, as where the budget decides nothing.
pub fn asked(
    program: &Path,
    threads: usize,
    options: &[&str],
    variables: &[(&str, &str)],
) -> Result<Answer, String> {
    let folder = program.parent().expect("it is in a folder");
    let out = folder.join("tried");
    let tuned = folder.join("tuned");
    let _ = std::fs::remove_dir_all(&out);
    let _ = std::fs::remove_file(&tuned);
    let mut ours = command::with_threads(threads);
    ours.current_dir(folder).envs(variables.iter().copied());
    ours.args(["try", "--format=json", "--patch"]).arg(&tuned);
    ours.args(options).arg("-o").arg(&out);
    let said = process::run(ours.arg("--").arg(program));
    if said.status == 1 {
        return Err(said.errors());
    }
    let said = said.ok("try");
    Ok(Answer {
        json: serde_json::from_slice(&said.stdout).expect("JSON and nothing else"),
        patched: tuned.exists().then_some(tuned),
        program: program.to_owned(),
        threads,
    })
}

impl Answer {
    /// The recommended variant.
    pub fn best(&self) -> Option<&Value> {
        let best = self.json["best"].as_u64()?;
        Some(&self.json["variants"][best as usize])
    }

    /// The interval that is told of it.
    pub fn told(&self) -> Option<[f64; 2]> {
        let time = &self.best()?["time"];
        Some([time["low"].as_f64()?, time["high"].as_f64()?])
    }

    /// How the recommended program runs beside the original, in pairs of its own.
    pub fn measured(&self, variables: &[(&str, &str)]) -> Option<Change> {
        let best = self.best()?;
        let file = match best["set"].as_array().is_some_and(|sets| !sets.is_empty()) {
            true => self.patched.as_deref().expect("settings are written"),
            false => &self.program,
        };
        let env = best["env"].as_array().into_iter().flatten();
        let env = env.filter_map(|line| line.as_str()?.split_once('='));
        let env: Vec<(&str, &str)> = variables.iter().copied().chain(env).collect();
        let original = (&*self.program, variables);
        Some(change(original, (file, &env), self.threads))
    }
}

/// A program, and what its environment has beside.
pub type Run<'a> = (&'a Path, &'a [(&'a str, &'a str)]);

/// How much longer one run takes than another, in pairs.
pub fn change(original: Run<'_>, other: Run<'_>, threads: usize) -> Change {
    let seconds = |(program, variables): Run<'_>| {
        let mut run = Command::new(program);
        process::clean(&mut run, threads).envs(variables.iter().copied());
        run.current_dir(program.parent().expect("it is in a folder"));
        let begin = Instant::now();
        process::run(&mut run).ok("a program");
        begin.elapsed().as_secs_f64()
    };
    let pair = |number: usize| match number % 2 {
        0 => {
            let before = seconds(original);
            (seconds(other) / before).ln()
        }
        _ => {
            let after = seconds(other);
            (after / seconds(original)).ln()
        }
    };
    let before = used();
    let logs: Vec<f64> = (0..PAIRS).map(pair).collect();
    let after = used();
    let [busy, idle, own] = [0, 1, 2].map(|at| after[at] - before[at]);
    let n = PAIRS as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|l| (l - mean) * (l - mean)).sum();
    // Student's t of nine degrees of freedom, 2.5 % on each side.
    let reach = 2.262 * (squares / (n - 1.0) / n).sqrt();
    Change {
        mean: mean.exp_m1(),
        low: (mean - reach).exp_m1(),
        high: (mean + reach).exp_m1(),
        others: ((busy - own) / (busy + idle).max(1.0)).clamp(0.0, 1.0),
    }
}
