//! Ranges and tasks whose number depends on the number of threads.

use super::{Kind, OtherTeam, Step, Strand, Unit, own_code, sum};
use crate::run::nodes::NONE;
use crate::span::graph::division::Shrinking;
use crate::span::replay::greedily;
use std::rc::Rc;

/// So many divided ranges that hardly differ are taken to be of iterations that don't differ.
const ENOUGH_RANGES: usize = 4;
/// By so much may the slowest of them exceed the mean.
const EVEN: f64 = 1.05;

/// So many tasks a thread makes a taskloop without a clause: libgomp, and libomp (`KMP_TASKLOOP_MIN_TASKS` apart).
const TASKS_A_THREAD: [usize; 2] = [1, 10];

impl OtherTeam {
    /// Makes a loop's ranges anew, by the rule of those that shrink.
    pub(super) fn shrink(&mut self, sharing: usize, rule: Shrinking, threads: u32) {
        let of = Rc::clone(&self.graph.sharings[sharing]);
        let iterations = sum(of.units.iter().map(|u| u.iterations));
        let Some(ranges) = rule.ranges(iterations, threads) else {
            return self.any_ranges(&of.units, threads);
        };
        // Of each range on record, whether it was divided; of each new one, the time of those that it has a part of, and as a whole.
        let mut is_divided = vec![false; of.units.len()];
        let (mut dealt, mut most, mut whole) = (vec![], vec![], vec![]);
        let (mut at, mut from) = (0, 0);
        for range in ranges {
            let mut parts = vec![];
            let (mut left, mut touched, mut complete) = (range, 0u64, 0u64);
            while let Some(unit) = of.units.get(at).filter(|_| left > 0) {
                let to = unit.iterations.min(u64::saturating_add(from, left));
                left -= to - from;
                touched = touched.saturating_add(unit.ticks);
                match to - from == unit.iterations {
                    true => complete = complete.saturating_add(unit.ticks),
                    false => is_divided[at] = true,
                }
                parts.push(self.piece(unit, from, to, 0));
                (at, from) = match to == unit.iterations {
                    true => (at + 1, 0),
                    false => (at, to),
                };
            }
            most.push(touched);
            whole.push(complete);
            dealt.extend(self.joined(&parts));
        }
        let cut: Vec<&Unit> = (of.units.iter().zip(is_divided))
            .filter_map(|(unit, is_divided)| is_divided.then_some(unit))
            .collect();
        if !cut.is_empty() {
            self.assumes_equal = true;
            let all = sum(of.units.iter().map(|u| u.ticks));
            let likely = greedily(dealt.iter().map(|u| u.ticks), threads.into());
            let share = all / u64::from(threads);
            let [low, high] = match unevenness(&cut) {
                Some(uneven) => [likely, likely + (uneven * share as f64) as u64],
                None => {
                    let longest = |times: &[u64]| times.iter().copied().max().unwrap_or(0);
                    // Graham's bound: the longest range may begin when all else has been done.
                    let rest = all.saturating_sub(longest(&most)) / u64::from(threads);
                    [
                        share.max(longest(&whole)),
                        rest.saturating_add(longest(&most)),
                    ]
                }
            };
            self.shorter = self.shorter.saturating_add(likely.saturating_sub(low));
            self.longer = self.longer.saturating_add(high.saturating_sub(likely));
        }
        self.graph.sharings[sharing] = Rc::new(of.with(dealt));
    }

    /// It isn't known which ranges there would be: a thread may have all, or each the same.
    pub(super) fn any_ranges(&mut self, units: &[Unit], threads: u32) {
        let all = sum(units.iter().map(|u| u.ticks));
        let kept = greedily(units.iter().map(|u| u.ticks), threads.into());
        self.unsure(all / u64::from(threads), kept, all);
    }

    /// How long taskloops may take that have as many tasks as they have by default: then there are others in another team. A clause may say
    /// that number, too, so these bounds are wide.
    pub(super) fn count_tasks(&mut self, had: u32, threads: u32) {
        for tasks in std::mem::take(&mut self.graph.taskloops) {
            let by_default = |each: &usize| tasks.len() == each * had as usize;
            let Some(each) = TASKS_A_THREAD.iter().find(|each| by_default(each)) else {
                continue;
            };
            let times: Vec<(u64, u64)> = tasks.iter().map(|&t| self.task(t)).collect();
            let all = sum(times.iter().map(|t| t.0));
            let kept = greedily(times.iter().map(|t| t.0), threads.into());
            let iterations = sum(times.iter().map(|t| t.1));
            let number = (each * threads as usize) as u64;
            if iterations <= tasks.len() as u64 && number >= tasks.len() as u64 {
                continue; // an iteration a task
            }
            // The slowest new task has at most all of those that it has a part of.
            let longest = times.iter().map(|t| t.0).max().unwrap_or(0);
            let parts = (tasks.len() as u64).div_ceil(number.max(1));
            let slowest = all / u64::from(threads);
            let high = match number < tasks.len() as u64 {
                true => slowest.max(longest.saturating_mul(parts)).min(all),
                false => kept,
            };
            self.unsure(slowest, kept, high.max(kept));
        }
    }

    /// A task's code, in ticks, and its iterations.
    fn task(&self, strand: u32) -> (u64, u64) {
        let Some(of) = self.graph.strands.get(strand as usize) else {
            return (0, 1);
        };
        let steps = &self.graph.steps[of.first as usize..of.end as usize];
        (own_code(steps), of.iterations)
    }

    fn unsure(&mut self, low: u64, likely: u64, high: u64) {
        let (shorter, longer) = (likely.saturating_sub(low), high.saturating_sub(likely));
        self.shorter = self.shorter.saturating_add(shorter);
        self.longer = self.longer.saturating_add(longer);
        self.by_number = self.by_number.saturating_add(shorter.max(longer));
    }

    /// Parts of ranges as one range.
    fn joined(&mut self, parts: &[Unit]) -> Option<Unit> {
        let first = *parts.first()?;
        if parts.len() == 1 {
            return Some(first);
        }
        let mut unit = Unit {
            iterations: sum(parts.iter().map(|u| u.iterations)),
            ticks: sum(parts.iter().map(|u| u.ticks)),
            ..first
        };
        let strands = parts.iter().map(|u| u.strand);
        let Some(known) = strands.clone().find(|&s| s != NONE) else {
            return Some(unit);
        };
        let graph = &mut self.graph;
        let begin = graph.steps.len();
        for part in parts {
            match graph.strands.get(part.strand as usize) {
                Some(&Strand { first, end, .. }) => {
                    graph.steps.extend_from_within(first as usize..end as usize);
                }
                None => graph.steps.push(Step::Code {
                    ticks: part.ticks,
                    rec: part.rec,
                }),
            }
        }
        unit.strand = graph.strands.len() as u32;
        graph.strands.push(Strand {
            kind: Kind::Inner,
            first: begin as u32,
            end: graph.steps.len() as u32,
            ..graph.strands[known as usize]
        });
        Some(unit)
    }
}

/// By how much an iteration of the slowest of these ranges takes longer than the mean; `None`: they differ, or are few.
fn unevenness(units: &[&Unit]) -> Option<f64> {
    let rate = |ticks: u64, iterations: u64| ticks as f64 / iterations.max(1) as f64;
    let mean = rate(
        sum(units.iter().map(|u| u.ticks)),
        sum(units.iter().map(|u| u.iterations)),
    );
    let slowest = units.iter().map(|u| rate(u.ticks, u.iterations));
    let slowest = slowest.fold(0.0, f64::max) / mean.max(f64::MIN_POSITIVE);
    (units.len() >= ENOUGH_RANGES && slowest <= EVEN).then_some((slowest - 1.0).max(0.0))
}
