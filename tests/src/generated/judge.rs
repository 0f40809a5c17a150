//! Compares what a generated program knows of itself with the first block of a report on it.
//!
//! Right: the first cause is the largest loss or one within 2 points of it, by kind, place and size (as `planted::judge` has it), and no number
//! in the first block is false. Not known: the report says that it doesn't know the first cause. Wrong: everything else.

use super::model::{Known, Lost};
use super::writer::Writer;
use crate::planted::judge::{Said, Truth, Verdict, judge as judged};
use serde_json::Value;

/// A report beside what is true.
#[derive(Debug)]
pub struct Judged {
    /// What the program knows.
    pub known: Known,
    /// What the report says first.
    pub said: Said,
    /// Whether that is right.
    pub verdict: Verdict,
}

impl Judged {
    /// Adds what else is wrong.
    pub(super) fn add(&mut self, wrong: impl IntoIterator<Item = String>) {
        for reason in wrong {
            match &mut self.verdict {
                Verdict::Wrong(reasons) => reasons.push(reason),
                other => *other = Verdict::Wrong(vec![reason]),
            }
        }
    }
}

/// Losses whose shares differ by less are equally large.
const POINTS: f64 = 0.02;

/// Judges a report, in JSON and as a text.
pub fn judge(program: &Writer, known: Known, report: &Value, text: &str) -> Judged {
    let said = Said::read(report, |_| None);
    let available = known.available();
    let first = known.losses.first().map_or(0.0, |l| l.seconds);
    let near = |l: &&Lost| l.seconds >= first - POINTS * available;
    let truths = known.losses.iter().filter(near);
    let verdicts = truths.flat_map(|lost| {
        let together = Said {
            share: told_there(lost, report).max(said.share),
            ..said.clone()
        };
        let truth = truth(&known, lost, &said);
        let hidden = Truth {
            lost: (lost.seconds + known.hidden) / available,
            ..truth.clone()
        };
        [
            judged(&truth, &said, false),
            judged(&truth, &together, false),
            judged(&hidden, &said, false),
        ]
    });
    let verdicts: Vec<Verdict> = verdicts.collect();
    let best = [Verdict::Right, Verdict::NotKnown];
    let verdict = best.into_iter().find(|v| verdicts.contains(v));
    let verdict = verdict.unwrap_or_else(|| verdicts.into_iter().next().unwrap_or(Verdict::Right));
    let mut wrong = match &verdict {
        Verdict::Wrong(reasons) => reasons.clone(),
        _ => vec![],
    };
    wrong.extend(false_words(program, text));
    wrong.extend(numbers(program, &known, report));
    Judged {
        verdict: match wrong.is_empty() {
            true => verdict,
            false => Verdict::Wrong(wrong),
        },
        known,
        said,
    }
}

/// Constructs that others wait in, beside what is planted: libomp's threads sleep while tasks are ready, and inner teams are started.
const BESIDE: [&str; 4] = ["untaken_tasks", "short_regions", "late", "smaller_team"];

/// The share of all losses at the lines of one that is lost in a whole phase.
fn told_there(lost: &Lost, report: &Value) -> f64 {
    if lost.place.is_some() || lost.lines.is_empty() {
        return 0.0;
    }
    let losses = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
    let regions = report["regions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_there = |id: &Value| {
        let region = regions.iter().find(|r| !id.is_null() && r["id"] == *id);
        let line = region.and_then(|r| r["source"]["line"].as_u64());
        line.is_some_and(|line| lost.lines.iter().any(|l| u64::from(*l).abs_diff(line) <= 1))
    };
    let first = losses.first().map(|l| &l["cause"]["kind"]);
    let is_it = |l: &&Value| {
        let kind = &l["cause"]["kind"];
        let is_same = Some(kind) == first || kind.as_str().is_some_and(|k| BESIDE.contains(&k));
        is_same && (is_there(&l["region"]) || is_there(&l["cause"]["at"]))
    };
    losses
        .iter()
        .filter(is_it)
        .filter_map(|l| l["share"].as_f64())
        .sum()
}

fn truth(known: &Known, lost: &Lost, said: &Said) -> Truth {
    let available = known.available();
    // Less isn't told.
    let is_none = lost.seconds < POINTS * available;
    let causes = match is_none {
        true => vec!["none".to_owned()],
        false => lost.words.iter().map(|w| (*w).to_owned()).collect(),
    };
    Truth {
        causes,
        // It has one source.
        file: said.file.clone().unwrap_or_default(),
        lines: lost.lines.clone(),
        function: String::new(),
        own: known.own,
        threads: known.threads,
        lost: lost.seconds / available,
        all: (known.unused + known.hidden) / available,
    }
}

/// The first block: what is above the line that names the program.
pub(super) fn first_block(text: &str) -> String {
    let lines = text.lines().take_while(|l| !l.is_empty());
    lines.collect::<Vec<_>>().join(" ").replace("   ", " ")
}

/// What must not be said of the program.
fn false_words(program: &Writer, text: &str) -> Vec<String> {
    let block = first_block(text);
    let said = program.never.iter().filter(|words| block.contains(**words));
    said.map(|words| format!("it says \"{words}\"")).collect()
}

/// Whether a number is what it should be, within a tenth and what a late wake-up makes.
fn is_near(said: f64, truth: f64, least: f64) -> bool {
    (said - truth).abs() <= (0.15 * truth.abs()).max(least)
}

/// Numbers of the causes in the first block that aren't true.
fn numbers(program: &Writer, known: &Known, report: &Value) -> Vec<String> {
    let losses = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
    let told = losses
        .iter()
        .filter(|l| l["share"].as_f64().unwrap_or(0.0) >= 0.02)
        .take(3);
    told.flat_map(|loss| numbers_of(program, known, report, loss))
        .collect()
}

fn numbers_of(program: &Writer, known: &Known, report: &Value, loss: &Value) -> Vec<String> {
    let cause = &loss["cause"];
    let number = |name: &str| cause[name].as_f64();
    let regions = report["regions"].as_array().map_or(&[][..], Vec::as_slice);
    let at = regions
        .iter()
        .find(|r| !cause["at"].is_null() && r["id"] == cause["at"]);
    let line = at
        .and_then(|r| r["source"]["line"].as_u64())
        .map(|l| l as u32);
    // Compilers may be off by a line.
    let is_here = |lines: &[u32]| line.is_some_and(|l| lines.iter().any(|k| k.abs_diff(l) <= 1));
    let here: Vec<usize> = (0..program.places.len())
        .filter(|&p| is_here(&program.places[p].lines))
        .collect();
    let count: u64 = here.iter().map(|&p| known.units[p].count).sum();
    let seconds: f64 = here.iter().map(|&p| known.units[p].seconds).sum();
    let mut wrong = vec![];
    let mut check = |what: &str, said: Option<f64>, truth: f64, least: f64| {
        if let Some(said) = said.filter(|&said| !is_near(said, truth, least)) {
            wrong.push(format!("{what} {said:.4}, not {truth:.4}"));
        }
    };
    match cause["kind"].as_str().unwrap_or_default() {
        "held" if !here.is_empty() => {
            check("entries", number("entries"), count as f64, 0.5);
            check("held_s", number("held_s"), seconds, 0.01);
            let phase = program.places[here[0]].phase;
            let share = seconds / known.phases[phase].seconds;
            check("of_wall", number("of_wall"), share, 0.05);
        }
        "serial_part" => {
            let inside: f64 = (0..program.phases.len())
                .filter(|&p| program.phases[p].team.is_some())
                .map(|p| known.phases[p].seconds)
                .sum();
            check("wall_s", number("wall_s"), known.own - inside, 0.01);
        }
        "smaller_team" => {
            let is_it = |p: &&super::writer::Phase| is_here(&[p.line]);
            if let Some(phase) = program.phases.iter().find(is_it) {
                check("team", number("team"), phase.team.unwrap_or(1) as f64, 0.1);
            }
            check("threads", number("threads"), known.threads as f64, 0.1);
        }
        "dependences" | "waits_for_tasks" | "costly_tasks" if here.len() == 1 => {
            check("count", number("count"), count as f64, 0.5);
            let mean = seconds / count.max(1) as f64;
            check("task_s", number("task_s"), mean, 0.003);
        }
        _ => {}
    }
    wrong
}
