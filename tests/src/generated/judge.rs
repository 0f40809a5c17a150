//! Compares what a generated program knows of itself with the first block of a report on it.
//!
//! Right: the first cause is the largest loss or one within 2 points of it, by kind, place and size (as `planted::judge` has it), and no number
//! in the first block is false. Not known: the report says that it doesn't know the first cause. Wrong: everything else.

use super::model::{Known, Lost};
use super::writer::Writer;
use crate::planted::judge::{Said, Truth, Verdict, cause_of, is_near as is_size, judge as judged};
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
    // What the report divides among several causes, all of it, may be larger than what it tells first.
    let is_divided = |l: &&Lost| {
        let there = told_there(program, l, report);
        there > 0.0 && there != said.share && is_size(there, l.seconds / available)
    };
    let whole = known.losses.iter().find(|l| !is_divided(l));
    let first = whole.map_or(0.0, |l| l.seconds);
    let near = |l: &&Lost| l.seconds >= first - POINTS * available;
    let truths = known.losses.iter().filter(near);
    let verdicts = truths.flat_map(|lost| {
        let together = Said {
            share: told_there(program, lost, report).max(said.share),
            ..said.clone()
        };
        let mut truth = truth(&known, lost, &said);
        if said.told.contains("or the one behind it") {
            // What two loops lose that the compiler made one of is told of both.
            let same = |l: &&Lost| l.words == lost.words && l.lines.first() == lost.lines.first();
            let both = known.losses.iter().filter(same).map(|l| l.seconds);
            truth.lost = both.sum::<f64>() / available;
        }
        let hidden = Truth {
            lost: truth.lost + known.hidden / available,
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

/// Causes that may be told of a part of what is lost in a phase: a model of whole phases doesn't tell them from what was planted.
const BESIDE: [&str; 5] = ["tasks", "fork", "late", "smaller-team", "unknown"];

/// Losses of the report, with the program's words for their causes.
fn told(report: &Value) -> Vec<(&Value, String, Vec<u32>)> {
    let losses = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
    let regions = report["regions"].as_array().map_or(&[][..], Vec::as_slice);
    let region = |id: &Value| {
        let found = regions.iter().find(|r| !id.is_null() && r["id"] == *id);
        found.unwrap_or(&Value::Null)
    };
    let of = |loss| {
        let loss: &Value = loss;
        let places = [region(&loss["region"]), region(&loss["cause"]["at"])];
        let line = |r: &&Value| r["source"]["line"].as_u64().map(|l| l as u32);
        let lines = places.iter().filter_map(line).collect();
        let [of, at] = places;
        let word = cause_of(loss, if at.is_null() { of } else { at });
        (loss, word, lines)
    };
    losses.iter().map(of).collect()
}

/// The share of all losses in a whole phase that are told with its causes, or with what a model of whole phases doesn't tell from
/// them.
fn told_there(program: &Writer, lost: &Lost, report: &Value) -> f64 {
    if lost.place.is_some() || lost.lines.is_empty() {
        return 0.0;
    }
    let its = |p: &&super::writer::Phase| p.whole.as_ref().is_some_and(|w| w.1 == lost.lines);
    let region = program.phases.iter().filter(its).map(|p| p.line);
    let lines: Vec<u32> = lost.lines.iter().copied().chain(region).collect();
    let all = told(report);
    let there = all.iter().filter(|(_, word, at)| {
        let word = word.as_str();
        (lost.words.contains(&word) || BESIDE.contains(&word))
            && at.iter().any(|l| lines.iter().any(|k| k.abs_diff(*l) <= 1))
    });
    there.filter_map(|(loss, ..)| loss["share"].as_f64()).sum()
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
    // Who waits for a critical may well be told to use a reduction.
    let excludes = program.places.iter().any(|p| p.mutex.is_some());
    let is_apt = |words: &&&str| excludes && words.contains("reduction");
    let never = program.never.iter().filter(|words| !is_apt(words));
    let said = never.filter(|words| block.contains(**words));
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
            let beside = program.places.iter().zip(&known.units);
            let beside = beside.filter(|(p, _)| p.words == [super::writer::BESIDE]);
            let alone = known.own - inside - beside.map(|(_, u)| u.seconds).sum::<f64>();
            check("wall_s", number("wall_s"), alone, 0.01);
        }
        "smaller_team" => {
            let is_it = |p: &&super::writer::Phase| is_here(&[p.line]);
            if let Some(phase) = program.phases.iter().find(is_it) {
                check("team", number("team"), phase.team.unwrap_or(1) as f64, 0.1);
            }
            check("threads", number("threads"), known.threads as f64, 0.1);
        }
        // A recursion's inner tasks have no units.
        "dependences" | "waits_for_tasks" | "costly_tasks"
            if here.len() == 1 && program.places[here[0]].lines.len() != 2 =>
        {
            check("count", number("count"), count as f64, 0.5);
            let mean = seconds / count.max(1) as f64;
            check("task_s", number("task_s"), mean, 0.003);
        }
        _ => {}
    }
    wrong
}
