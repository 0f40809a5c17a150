//! From what commits measured to curves with their changes.

use super::groups::{self, Commit, Group};
use super::pace;
use super::steps::{self, LEVEL, Steps};
use super::tracks::Track;
use super::{Basis, ChangePoint, Curve, Noise, Series, Wanted};
use crate::diff::Interval;
use crate::statistics::{TESTED_SHARE, is_retried};
use crate::{Quantity, Sample};
use ompfuse_account::paired::LEAST;
use std::collections::{BTreeMap, BTreeSet};

/// Regions that have curves: those with the largest shares.
const REGIONS: usize = 20;

/// What was measured, by the position of the baseline.
type Values<'a> = BTreeMap<usize, &'a BTreeMap<Quantity, Sample>>;

/// The series of a group: one of its counts, and one of times for each machine.
pub(super) fn series(group: &Group<'_>, tracks: &[Track<'_>], wanted: &Wanted) -> Vec<Series> {
    let total: Values<'_> = group
        .sides
        .iter()
        .map(|n| &n.side.total)
        .enumerate()
        .collect();
    let mut regions: Vec<&Track<'_>> = (tracks.iter())
        .filter(|t| t.share >= TESTED_SHARE || wanted.region.is_some())
        .collect();
    regions.sort_by(|a, b| b.share.total_cmp(&a.share));
    regions.truncate(REGIONS);
    let work = Work {
        total: &total,
        regions: &regions,
        wanted,
    };
    let counted = work.series(false, &group.commits(&|_| true));
    let timed = group.machines().into_iter().filter_map(|machine| {
        let is_here =
            |side: &crate::Side| groups::is_timed(side) && side.origin.machine == *machine;
        let commits = group.commits(&is_here);
        let mut made = work.series(true, &commits)?;
        made.machine = Some(machine.clone());
        Some(made)
    });
    timed.chain(counted).collect()
}

struct Work<'a> {
    total: &'a Values<'a>,
    regions: &'a [&'a Track<'a>],
    wanted: &'a Wanted,
}

impl Work<'_> {
    /// `timed`: of what depends on the machine. `None`: nothing was measured.
    fn series(&self, timed: bool, commits: &[Commit<'_>]) -> Option<Series> {
        let mut curves = vec![];
        let of_program = self.quantities(self.total, true, timed);
        let is_efficiency = |q: &&Quantity| q.is_efficiency();
        let efficiencies = of_program.iter().filter(is_efficiency).count().max(1);
        for quantity in of_program.iter().filter(|_| self.wanted.region.is_none()) {
            let level = match quantity.is_efficiency() && self.wanted.quantity.is_none() {
                true => LEVEL / efficiencies as f64,
                false => LEVEL,
            };
            curves.extend(self.curve(quantity, None, commits, level));
        }
        // All regions together have the level of one curve.
        let level = LEVEL / self.regions.len().max(1) as f64;
        for track in self.regions {
            for quantity in self.quantities(&track.values, false, timed) {
                curves.extend(self.curve(&quantity, Some(track), commits, level));
            }
        }
        // Commits without any of these values are none of this series.
        if curves.is_empty() {
            return None;
        }
        let is_measured = |at: &usize| {
            let has_value = curves.iter().any(|c: &Curve| c.values[*at].is_some());
            has_value || (timed && commits[*at].is_unsteady())
        };
        let kept: Vec<usize> = (0..commits.len()).filter(is_measured).collect();
        if kept.len() < commits.len() {
            let commits: Vec<Commit<'_>> = kept.iter().map(|&at| commits[at].clone()).collect();
            return match kept.is_empty() {
                true => None,
                false => self.series(timed, &commits),
            };
        }
        let origin = &commits.last()?.of.last()?.side.origin;
        Some(Series {
            program: origin.program.clone(),
            threads: origin.team,
            arguments: origin.args_hash.clone(),
            machine: None,
            commits: commits.iter().map(Commit::point).collect(),
            curves,
        })
    }

    /// What has a curve.
    fn quantities(&self, values: &Values<'_>, is_program: bool, timed: bool) -> Vec<Quantity> {
        let all: BTreeSet<&Quantity> = values.values().flat_map(|v| v.keys()).collect();
        let is_parallel = all.contains(&Quantity::Wall);
        let is_wanted = |quantity: &Quantity| match &self.wanted.quantity {
            Some(Quantity::Time) if is_program || is_parallel => *quantity == Quantity::Wall,
            Some(Quantity::Event(name)) => {
                matches!(quantity, Quantity::Event(own) if own == name || own.strip_prefix("sim-") == Some(name))
            }
            Some(wanted) => quantity == wanted,
            None => match quantity {
                Quantity::Wall => true,
                Quantity::Time => !is_program && !is_parallel,
                Quantity::Executions | Quantity::Units => true,
                efficiency if efficiency.is_efficiency() => is_program,
                other => other.is_instructions(),
            },
        };
        let fits = |q: &Quantity| q.is_exact() != timed && !q.is_modelled() && is_wanted(q);
        all.into_iter().filter(|q| fits(q)).cloned().collect()
    }

    /// `None`: it was not measured in any of the commits.
    fn curve(
        &self,
        quantity: &Quantity,
        track: Option<&Track<'_>>,
        commits: &[Commit<'_>],
        level: f64,
    ) -> Option<Curve> {
        let values = track.map_or(self.total, |t| &t.values);
        let is_left_out = |c: &Commit<'_>| !quantity.is_exact() && c.is_unsteady();
        let known = |c| value(values, c, quantity).filter(|_| !is_left_out(c));
        let found: Vec<Option<Value>> = commits.iter().map(known).collect();
        if found.iter().all(Option::is_none) {
            return None;
        }
        let typical: Vec<Option<f64>> = found.iter().map(|v| v.map(|v| v.typical)).collect();
        let mut curve = Curve {
            quantity: quantity.clone(),
            region: track.map(|t| t.key.clone()),
            values: typical,
            changes: vec![],
            undecided: vec![],
            basis: Basis::Exact,
            lone: vec![],
        };
        let of_program = |at: usize| commits[at].at.first().map(|side| self.total[side]);
        let changes = match quantity.is_exact() {
            true => Some(differences(quantity, &found, &of_program)),
            false => None,
        };
        match changes.filter(|c| !is_noise(c.len(), commits.len())) {
            Some(changes) => curve.changes = changes,
            None => test(&mut curve, level),
        }
        if quantity.is_time() {
            let paces: Vec<_> = commits.iter().map(Commit::pace).collect();
            pace::part(&mut curve, &paces);
        }
        Some(curve)
    }
}

/// Whether a count differs so often that it depends on timing, as the number of tasks may: no project changes it with every third commit.
fn is_noise(changes: usize, commits: usize) -> bool {
    changes >= 4 && changes * 3 > commits
}

/// A commit's value.
#[derive(Debug, Clone, Copy)]
struct Value {
    typical: f64,
    /// How far apart its runs are.
    apart: f64,
}

/// What a run of a commit typically has, over all its baselines.
fn value(values: &Values<'_>, commit: &Commit<'_>, quantity: &Quantity) -> Option<Value> {
    let samples = commit
        .at
        .iter()
        .filter_map(|side| values.get(side)?.get(quantity));
    let samples: Vec<&Sample> = samples.collect();
    let runs: f64 = samples.iter().map(|s| f64::from(s.runs())).sum();
    let mean = |of: &dyn Fn(f64) -> f64| -> f64 {
        let each = samples
            .iter()
            .map(|s| f64::from(s.runs()) * of(s.typical()));
        each.sum::<f64>() / runs
    };
    let first = samples.first()?.typical();
    let is_same = samples
        .iter()
        .all(|s| matches!(s, Sample::Same(_, v) if *v == first));
    let typical = match samples.iter().all(|s| s.typical() > 0.0) {
        _ if is_same => first,
        true => mean(&f64::ln).exp(),
        false => mean(&|v| v),
    };
    let within = samples.iter().map(|s| match **s {
        Sample::Same(..) => 0.0,
        Sample::Log(_, mean, deviation) => mean.exp() * deviation,
        Sample::Linear(_, _, deviation, _) => deviation,
    });
    let between = samples.iter().map(|s| (s.typical() - typical).abs());
    Some(Value {
        typical,
        apart: within.chain(between).fold(0.0, f64::max),
    })
}

/// So many times as far apart as the runs of one commit must two commits be, where runs differ.
const APART: f64 = 4.0;

/// Where a count differs from the one before. Runs of a commit may differ by a little: more than that is a change.
fn differences<'a>(
    quantity: &Quantity,
    found: &[Option<Value>],
    of_program: &dyn Fn(usize) -> Option<&'a BTreeMap<Quantity, Sample>>,
) -> Vec<ChangePoint> {
    let apart = found.iter().flatten().map(|v| v.apart).fold(0.0, f64::max);
    let mut changes = vec![];
    let mut level: Option<(f64, usize)> = None;
    for (at, value) in found.iter().enumerate() {
        let Some(value) = value else {
            continue;
        };
        let Some((before, seen)) = level else {
            level = Some((value.typical, at));
            continue;
        };
        let is_forgiven = of_program(seen)
            .is_some_and(|total| is_retried(quantity, [before, value.typical], total));
        if (value.typical - before).abs() > APART * apart && !is_forgiven {
            changes.push(ChangePoint {
                at: at as u32,
                // Commits without a value may have it as well.
                earliest: seen as u32 + 1,
                latest: at as u32,
                before,
                after: value.typical,
                change: (before != 0.0).then(|| value.typical / before - 1.0),
                interval: None,
                is_worse: is_worse(quantity, value.typical > before),
            });
            level = Some((value.typical, at));
        } else {
            level = Some((before, at));
        }
    }
    changes
}

/// Whether more of it is worse.
fn is_worse(quantity: &Quantity, is_more: bool) -> Option<bool> {
    match quantity {
        Quantity::Executions
        | Quantity::Units
        | Quantity::Iterations
        | Quantity::DisturbedUnits => None,
        efficiency if efficiency.is_efficiency() => Some(!is_more),
        _ => Some(is_more),
    }
}

/// Looks for changes of the level.
fn test(curve: &mut Curve, level: f64) {
    let known = curve.values.iter().enumerate();
    let known: Vec<(u32, f64)> = known
        .filter_map(|(at, v)| Some((at as u32, (*v)?)))
        .collect();
    // Of what can be 0 or less there are no logarithms. It is tested as it is, in parts of its mean.
    let is_log = known.iter().all(|(_, v)| *v > 0.0);
    let mean = known.iter().map(|(_, v)| v.abs()).sum::<f64>() / known.len().max(1) as f64;
    let scaled = known.iter().map(|(_, v)| match is_log {
        true => v.ln(),
        false => v / mean.max(f64::MIN_POSITIVE),
    });
    let scaled: Vec<f64> = scaled.collect();
    let Some(found) = steps::steps(&scaled, level) else {
        curve.basis = Basis::TooFew;
        return;
    };
    curve.basis = Basis::Tested(Noise {
        deviation: found.deviation,
        correlation: found.correlation,
        smallest: (found.smallest).map(|s| if is_log { s.exp_m1() } else { s }.max(LEAST)),
    });
    curve.lone = found.lone.iter().map(|&at| known[at].0).collect();
    let levels = levels(&scaled, &found);
    let value = |level: f64| if is_log { level.exp() } else { level * mean };
    let position = |at: usize| known[at].0;
    let changes = found
        .steps
        .iter()
        .zip(levels.windows(2))
        .map(|(step, levels)| {
            let [before, after] = [value(levels[0]), value(levels[0] + step.size)];
            let relative = |size: f64| {
                let after = value(levels[0] + size);
                match curve.quantity.is_efficiency() {
                    true => after - before,
                    false => after / before - 1.0,
                }
            };
            ChangePoint {
                at: position(step.at),
                earliest: position(step.earliest),
                latest: position(step.latest),
                before,
                after,
                change: (before != 0.0).then(|| relative(step.size)),
                interval: (before != 0.0).then(|| Interval {
                    level: 0.95,
                    low: relative(step.low),
                    high: relative(step.high),
                }),
                is_worse: is_worse(&curve.quantity, step.size > 0.0),
            }
        });
    // As `diff` does, it says nothing of what no reader would act on.
    let is_told = |c: &ChangePoint| (c.after - c.before).abs() >= LEAST * c.before.abs();
    curve.changes = changes.filter(is_told).collect();
}

/// The mean of each level, without the values that stand alone.
fn levels(values: &[f64], found: &Steps) -> Vec<f64> {
    let begins = std::iter::once(0).chain(found.steps.iter().map(|s| s.at));
    let ends = found.steps.iter().map(|s| s.at).chain([values.len()]);
    let mean = |(begin, end): (usize, usize)| {
        let kept = (begin..end).filter(|at| !found.lone.contains(at));
        let kept: Vec<f64> = kept.map(|at| values[at]).collect();
        kept.iter().sum::<f64>() / kept.len().max(1) as f64
    };
    begins.zip(ends).map(mean).collect()
}
