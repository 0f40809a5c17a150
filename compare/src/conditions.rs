//! What makes two sides less comparable.

use super::diff::Condition;
use super::side::{Quantity, Sample, Side};
use ompfuse_account::model::UncountedWork;

/// Share of the threads' time from which on probes matter.
const PROBES: f64 = 0.1;

/// Share of the units from which on it is said how many were disturbed.
const DISTURBED: f64 = 0.01;

/// All that speaks against a comparison, what matters most first.
pub fn conditions(a: &Side, b: &Side) -> Vec<Condition> {
    let (x, y) = (&a.origin, &b.origin);
    let mut found = vec![];
    if !x.damage.is_empty() || !y.damage.is_empty() {
        found.push(Condition::Damaged {
            a: x.damage.clone(),
            b: y.damage.clone(),
        });
    }
    if x.team != y.team {
        found.push(Condition::Threads {
            a: x.team,
            b: y.team,
        });
    }
    if x.args_hash != y.args_hash {
        found.push(Condition::Arguments);
    }
    let sampled = x.in_part || y.in_part;
    if sampled {
        found.push(Condition::InPart {
            a: x.in_part,
            b: y.in_part,
        });
    }
    // A side may have both: runs under a simulator, which have no times, and others.
    let is_timed = |side: &Side| side.total.keys().any(Quantity::is_time);
    let only_simulated = |side: &Side| side.origin.simulated && !is_timed(side);
    if only_simulated(a) != only_simulated(b) {
        found.push(Condition::Simulated {
            a: only_simulated(a),
            b: only_simulated(b),
        });
    }
    // Of counts alone it does not matter where they were made.
    let timed = is_timed(a) && is_timed(b);
    if timed && x.host_hash != y.host_hash {
        found.push(Condition::Hosts);
    }
    if let (Some(p), Some(q), true) = (x.processors, y.processors, timed)
        && p != q
    {
        found.push(Condition::Processors { a: p, b: q });
    }
    if timed && (x.starved.is_some() || y.starved.is_some()) {
        found.push(Condition::Starved {
            a: x.starved,
            b: y.starved,
        });
    }
    let disturbed = [a, b].map(|side| {
        let of = |quantity| side.total.get(&quantity).map(Sample::typical);
        let share = of(Quantity::DisturbedUnits)? / of(Quantity::Units)?.max(1.0);
        (share >= DISTURBED).then_some(share)
    });
    if timed && disturbed.iter().any(Option::is_some) {
        let [a, b] = disturbed;
        found.push(Condition::Disturbed { a, b });
    }
    let much = |share: Option<f64>| share.filter(|&s| s >= PROBES);
    if timed && (much(x.probes).is_some() || much(y.probes).is_some()) {
        found.push(Condition::Probes {
            a: much(x.probes),
            b: much(y.probes),
        });
    }
    let is_by_functions = (a.total.keys()).any(|q| q.is_by_functions() && b.total.contains_key(q));
    let [of_a, of_b] = [a, b].map(|side| side.uncounted.clone().filter(UncountedWork::is_much));
    if is_by_functions && (of_a.is_some() || of_b.is_some()) {
        found.push(Condition::Uncounted { a: of_a, b: of_b });
    }
    let only = |these: &Side, those: &Side| -> Vec<String> {
        let events = these.origin.events.keys();
        let only = events.filter(|e| !those.origin.events.contains_key(*e));
        only.cloned().collect()
    };
    let (only_a, only_b) = (only(a, b), only(b, a));
    if !only_a.is_empty() || !only_b.is_empty() {
        found.push(Condition::Events { only_a, only_b });
    }
    // What depends on the executed code alone is told by one run.
    let is_steady = x.is_steady && y.is_steady;
    let varies = |side: &Side| {
        let mut all = side.total.keys();
        all.any(|quantity| !quantity.is_told_by_one_run(is_steady))
    };
    if (x.runs == 1 || y.runs == 1) && varies(a) && varies(b) {
        found.push(Condition::OneRun {
            a: x.runs == 1,
            b: y.runs == 1,
        });
    }
    found
}
