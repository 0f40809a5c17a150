//! What a report predicts and advises is tried: by the same program with other threads, another environment or another clause.

use super::Program;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A predicted speed-up is the most that is possible. By so much it may be above the measured one, relative to it.
const ABOVE: f64 = 0.25;
/// And by so much below it.
const BELOW: f64 = 0.07;

/// Runs of the program on each side of a comparison: in turns.
pub const PAIRS: usize = 10;

/// Advice that can be followed without asking anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// A variable of the environment.
    Variable(String, String),
    /// A schedule of the loop at this line.
    Schedule(u32, String),
}

/// What following it brought.
#[derive(Debug, Clone)]
pub struct Followed {
    /// The advice.
    pub advice: Advice,
    /// Own times as the program is, in seconds.
    pub before_s: Vec<f64>,
    /// Own times with the advice.
    pub after_s: Vec<f64>,
}

impl Followed {
    /// Whether the program became slower by more than its own times are apart.
    pub fn is_harmful(&self) -> bool {
        let sorted = |of: &[f64]| {
            let mut sorted = of.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let (before, after) = (sorted(&self.before_s), sorted(&self.after_s));
        let (Some(least), Some(most)) = (before.first(), before.last()) else {
            return false;
        };
        after[after.len() / 2] > before[before.len() / 2] + (most - least).max(0.02 * least)
    }
}

impl Program {
    /// What is wrong with the speed-up that a report predicts for more threads; nothing also if it predicts none.
    pub(super) fn false_prediction(
        &self,
        program: &Path,
        report: &Value,
        block: &str,
    ) -> Option<String> {
        if !block.contains(" threads it would be at most ") || !self.drawn.scales {
            return None;
        }
        let told = report["scaling"]["predicted"].as_array()?;
        let threads = |p: &&Value| p["threads"].as_u64().unwrap_or(0);
        let more = |p: &&Value| threads(p) >= 4 && threads(p) > self.drawn.threads as u64;
        let next = told.iter().find(more)?;
        let (with, said) = (threads(&next), next["speedup"].as_f64()?);
        let most = said * next["seconds"].as_f64()? / next["between_s"][0].as_f64()?;
        let own = |threads: u64| {
            let runs = (0..2).filter_map(|_| self.alone(program, threads as usize));
            runs.map(|known| known.own).fold(f64::INFINITY, f64::min)
        };
        let measured = own(1) / own(with);
        // libomp's threads sleep while tasks are ready, as long as they like.
        let may_sleep = self.by_clang() && self.drawn.phases.iter().any(|p| p.whole.is_some());
        let is_above = said > (1.0 + ABOVE) * measured && !may_sleep;
        let is_off = is_above || most < (1.0 - BELOW) * measured;
        is_off.then(|| format!("with {with} threads {said:.2} times, not {measured:.2}"))
    }

    /// Tries what the first block of the report of a judged program advises.
    pub fn follow(&self) -> Vec<Followed> {
        let report = crate::command::report(self.folder.join("out"));
        let program = self.folder.join("program");
        let try_it = |advice: Advice| {
            let (changed, variable) = match &advice {
                Advice::Variable(name, value) => (program.clone(), Some((name, value))),
                Advice::Schedule(line, schedule) => (self.with_schedule(*line, schedule)?, None),
            };
            let (mut before_s, mut after_s) = (vec![], vec![]);
            for _ in 0..PAIRS {
                before_s.push(self.alone(&program, self.drawn.threads)?.own);
                let known = self.alone_with(&changed, self.drawn.threads, variable)?;
                after_s.push(known.own);
            }
            Some(Followed {
                advice,
                before_s,
                after_s,
            })
        };
        advice(&report).into_iter().filter_map(try_it).collect()
    }

    /// The program with another schedule of the loop at a line, or behind it.
    fn with_schedule(&self, line: u32, schedule: &str) -> Option<PathBuf> {
        let source = self.drawn.source();
        let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let is_loop = |at: &usize| {
            let words: Vec<&str> = lines
                .get(*at)
                .map_or(vec![], |l| l.split_whitespace().collect());
            words.starts_with(&["#pragma", "omp"]) && words.contains(&"for")
        };
        let first = (line as usize).saturating_sub(1);
        let at = (first..first + 3)
            .chain([first.wrapping_sub(1)])
            .find(is_loop)?;
        let without = match lines[at].split_once("schedule(") {
            Some((head, rest)) => head.to_owned() + rest.split_once(')')?.1,
            None => lines[at].clone(),
        };
        lines[at] = format!("{without} schedule({schedule})");
        self.build_as("followed", &(lines.join("\n") + "\n"))
    }
}

/// What the three causes in the first block advise.
fn advice(report: &Value) -> Vec<Advice> {
    let losses = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
    let told = losses
        .iter()
        .filter(|l| l["share"].as_f64().unwrap_or(0.0) >= 0.02)
        .take(3);
    let mut all = vec![];
    for loss in told {
        let Some(remedy) = loss["remedy"].as_str() else {
            continue;
        };
        let words = remedy.split(|c: char| c.is_whitespace() || c == ';');
        let variables = words.filter_map(|w| w.split_once('='));
        let is_variable = |(name, _): &(&str, &str)| {
            ["OMP_", "GOMP_", "KMP_"]
                .iter()
                .any(|p| name.trim_start_matches('(').starts_with(p))
        };
        for (name, value) in variables.filter(is_variable) {
            let value = value.trim_end_matches([',', '.', ')']);
            let name = name.trim_start_matches('(');
            all.push(Advice::Variable(name.to_owned(), value.to_owned()));
        }
        let Some((before, _)) = remedy.split_once(" would take ") else {
            continue;
        };
        let schedule = before.rsplit(' ').next().unwrap_or_default();
        let regions = report["regions"].as_array().map_or(&[][..], Vec::as_slice);
        let region = regions.iter().find(|r| r["id"] == loss["cause"]["at"]);
        let line = region.and_then(|r| r["source"]["line"].as_u64());
        if let (Some(line), false) = (line, schedule.contains('=')) {
            all.push(Advice::Schedule(line as u32, schedule.to_owned()));
        }
    }
    all
}
