//! What makes a run's numbers less than complete or exact.

use super::{NS, switches};
use crate::model::{Note, UnattributedShare};
use ompfuse_fuse::combine::INSTANCES;
use ompfuse_fuse::run::{Problem, ThreadAccount};
use ompfuse_fuse::summary::{RunSummary, Summary};

/// Share of the threads' time from which on it is said what counting costs at switches.
const WORTH_SAYING: f64 = 0.01;

/// All but what concerns MPI ranks: of each run, then of the whole.
pub(super) fn notes(summary: &Summary) -> Vec<Note> {
    let mut notes = Vec::new();
    for (run, of_run) in (1..).zip(&summary.runs) {
        notes.extend(health(run, of_run));
        notes.extend(of_run.sums_only.then_some(Note::SumsOnly { run }));
        notes.extend(window(run, of_run));
        notes.extend(switching(summary, run, of_run));
    }
    let sum = |ticks: fn(&ThreadAccount) -> u64| summary.accounts.iter().map(ticks).sum::<u64>();
    let (own, off) = (sum(|a| a.own_ticks), sum(|a| a.unrecorded_ticks));
    if off > 0 {
        notes.push(Note::Unrecorded {
            share: off as f64 / (own + off) as f64,
            in_part: !summary.left_out.is_empty(),
        });
    }
    notes.extend(unattributed(summary));
    let strategy = summary.matching.as_ref().map(|m| m.strategy.as_str());
    notes.extend((strategy == Some(INSTANCES)).then_some(Note::Instances));
    let folded = Note::PathsFolded {
        most: ompfuse_fuse::summary::MOST_PATHS as u64,
    };
    notes.extend(summary.paths_folded.then_some(folded));
    let accounts = summary.accounts.iter();
    let unbalanced = accounts.filter(|a| a.balanced() == Some(false)).count() as u32;
    if unbalanced > 0 {
        notes.push(Note::Unbalanced {
            threads: unbalanced,
            of: summary.accounts.len() as u32,
        });
    }
    notes
}

/// What was lost or broken. That the recording ended early comes first: everything else may follow from it.
fn health(run: u16, of_run: &RunSummary) -> Vec<Note> {
    let health = &of_run.health;
    let note = |problem: &Problem| Note::Problem {
        run,
        problem: problem.clone(),
    };
    let ended = |p: &&Problem| matches!(p, Problem::EndedAtSize { .. });
    let (first, others): (Vec<&Problem>, Vec<&Problem>) = health.problems.iter().partition(ended);
    let mut notes: Vec<Note> = first.into_iter().map(note).collect();
    if health.lost_records > 0 {
        notes.push(Note::LostRecords {
            run,
            records: health.lost_records,
        });
    }
    if health.unlabelled_xus > 0 {
        notes.push(Note::UnlabelledXus {
            run,
            xus: health.unlabelled_xus,
        });
    }
    if health.unknown_sites > 0 {
        notes.push(Note::UnknownSites {
            run,
            intervals: health.unknown_sites,
        });
    }
    notes.extend(others.into_iter().map(note));
    notes
}

/// Which part of the run's time was recorded, where that was not all of it, by wish.
fn window(run: u16, of_run: &RunSummary) -> Option<Note> {
    Some(Note::Window {
        run,
        spans_s: of_run.recorded.clone()?,
        of_s: of_run.duration_s,
    })
}

/// What the processor's counters cost where threads were switched, if that is much of a run.
fn switching(summary: &Summary, run: u16, of_run: &RunSummary) -> Option<Note> {
    let each_s = of_run.switch_cost_ns? as f64 * NS;
    let Some(switches) = switches(of_run) else {
        let killed = of_run.processes.iter().filter(|p| p.switches.is_none());
        let unknown = killed.count() as u32;
        return (unknown > 0).then_some(Note::SwitchingUnknown {
            run,
            each_s,
            unknown,
            processes: of_run.processes.len() as u32,
        });
    };
    let of_s = of_run.duration_s? * f64::from(summary.threads.max(1));
    let cost_s = each_s * switches as f64;
    (cost_s > WORTH_SAYING * of_s).then_some(Note::Switching {
        run,
        each_s,
        switches,
        cost_s,
        of_s,
    })
}

/// What of the threads' counts is in no interval, since counters were read for units on record only.
fn unattributed(summary: &Summary) -> Option<Note> {
    let of = |event: &str| -> Option<(u64, u64)> {
        let accounts = summary.accounts.iter().flat_map(|a| &a.counts);
        let counts = accounts.filter(|c| c.event == event && c.unattributed.is_some());
        counts
            .map(|c| (c.unattributed.unwrap_or(0), c.own))
            .reduce(|(a, b), (c, d)| (a + c, b + d))
    };
    let share = |e: &ompfuse_fuse::summary::EventOrigin| {
        let (nobodys, own) = of(&e.name)?;
        Some(UnattributedShare {
            event: e.name.clone(),
            share: nobodys as f64 / (nobodys + own).max(1) as f64,
        })
    };
    let events: Vec<UnattributedShare> = summary.events.iter().filter_map(share).collect();
    (!events.is_empty()).then_some(Note::Unattributed { events })
}
