//! Why a region changed.

use super::{both, changed, instructions, is_told, quantity, signed};
use ompfuse_account::units::{count, percent, seconds};
use ompfuse_compare::diff::FunctionChange;
use ompfuse_compare::side::Unit;
use ompfuse_compare::{Change, Finding, Pair, Quantity};

/// Why a region changed, from what was compared: the nearest causes first. Parts of a sentence.
pub(crate) fn causes(pair: &Pair) -> Vec<String> {
    let mut causes = vec![];
    let get = |quantity: &Quantity| pair.get(quantity).filter(|c| is_told(c));
    let counts = |change: &Change| {
        let side = |v: Option<f64>| v.map_or_else(|| "none".to_owned(), |v| count(v as u64));
        (side(change.a), side(change.b))
    };
    if let Some([a, b]) = &pair.schedules {
        let named = |s: &Option<String>| s.clone().unwrap_or_else(|| "unknown".to_owned());
        causes.push(format!("its schedule is {}, was {}", named(b), named(a)));
    }
    let headline = pair.headline().map(|c| &c.quantity);
    if let Some(change) = get(&Quantity::Executions).filter(|c| headline != Some(&c.quantity)) {
        let (a, b) = counts(change);
        causes.push(format!("it is executed {b} times, was {a}"));
    }
    if let Some(change) = get(&Quantity::Iterations) {
        let (a, b) = counts(change);
        causes.push(format!("it has {b} iterations, had {a}"));
    }
    if let Some(change) = get(&Quantity::Units) {
        let (a, b) = counts(change);
        causes.push(format!("its work is in {b} units, was in {a}"));
    }
    let all = pair.time_change().map_or(0.0, f64::abs);
    let size = |c: &Change| c.difference().map_or(0.0, f64::abs);
    let mut timed: Vec<(f64, String)> = CLASSES
        .iter()
        .filter_map(&get)
        .map(|c| (size(c), format!("{} {}", quantity(&c.quantity), both(c))))
        .collect();
    timed.extend(of_code(pair));
    let function = |f: &FunctionChange| {
        let [a, b] = f.time_s;
        let told = format!(
            "`{}` takes {}, was {} (by samples)",
            f.name,
            seconds(b),
            seconds(a)
        );
        ((b - a).abs(), told)
    };
    timed.extend(pair.functions.iter().take(2).map(function));
    timed.sort_by(|x, y| y.0.total_cmp(&x.0));
    let timed = timed.into_iter().filter(|(s, _)| *s >= PART * all);
    causes.extend(timed.map(|(_, text)| text));
    let median = get(&Quantity::MedianUnit).filter(|c| c.finding == Finding::Changed);
    match median {
        Some(_) if headline == Some(&Quantity::MedianUnit) => {
            let is_told = |quantity| get(&quantity).is_some_and(|c| c.finding == Finding::Changed);
            // A time that changed too says the same, less exactly.
            if !is_told(Quantity::Time) && !is_told(Quantity::Work) {
                causes.push("its time as a whole varies too much to be compared".to_owned());
            }
        }
        Some(change)
            if !pair
                .headline()
                .is_some_and(|time| may_be_equal(time, change)) =>
        {
            causes.push(format!("its units take {} (median)", both(change)));
        }
        _ => {}
    }
    if let Some(change) = get(&Quantity::Imbalance) {
        causes.push(format!("imbalance {}", both(change)));
    }
    if let Some(unit) = pair.unit.as_ref().filter(|u| u.is_certain) {
        let [a, b] = unit.time_s;
        let all = match unit.disturbed.iter().sum() {
            0 => "slower in every run".to_owned(),
            1 => "slower in all but a disturbed run".to_owned(),
            n => format!("slower in all but {n} disturbed runs"),
        };
        let told = format!(
            "its unit ({}) takes {}, was {} (medians; {all})",
            unit.what,
            seconds(b),
            seconds(a)
        );
        // Where all units are slower one of them is no cause.
        let region = pair.get(&Quantity::Time).and_then(|c| c.change);
        match b > STANDS_OUT * a * (1.0 + region.unwrap_or(0.0).max(0.0)) {
            true => causes.insert(0, told),
            false => causes.push(told),
        }
    }
    causes
}

/// Whether two certain changes may be of one size: then the second one is no news.
fn may_be_equal(one: &Change, other: &Change) -> bool {
    match (one.finding, one.interval, other.interval) {
        (Finding::Changed, Some(a), Some(b)) => a.low <= b.high && b.low <= a.high,
        _ => false,
    }
}

/// A unit that grew by this much more than its region stands out.
const STANDS_OUT: f64 = 2.0;

/// Parts of a region's change below this share of it are no cause.
const PART: f64 = 0.1;

/// Classes of overhead.
const CLASSES: [Quantity; 4] = [
    Quantity::Synchronization,
    Quantity::ImbalanceTime,
    Quantity::LimitedParallelism,
    Quantity::Management,
];

/// The share of a certain change in time that a change of what is executed makes if the rate is what it was: both as ratios, since they
/// multiply. More than all of it is all, within the interval of the change in time. `None` where they go apart, or more changed than the
/// time shows.
fn explained(work: Option<&Change>, executed: &Change) -> Option<f64> {
    let work = work.filter(|w| w.finding == Finding::Changed)?;
    let executed = executed.change?;
    let of = |change: f64| executed.ln_1p() / change.ln_1p();
    let share = of(work.change?);
    let ends = work.interval.map(|i| [of(i.low), of(i.high)]);
    let is_all = ends.is_some_and(|ends| ends.iter().any(|share| (0.0..=1.0).contains(share)));
    match share {
        _ if share > 1.0 && is_all => Some(1.0),
        _ => (share > 0.0 && share <= 1.0).then_some(share),
    }
}

/// What is said of the program's own code in a region, and how many seconds that is about.
fn of_code(pair: &Pair) -> Option<(f64, String)> {
    let work = pair.get(&Quantity::Work).filter(|c| is_told(c));
    let seconds = work.and_then(Change::difference).map(f64::abs);
    let counted = instructions(&pair.changes);
    let counted = counted.filter(|c| !(pair.is_hidden && c.quantity.is_by_functions()));
    match counted.filter(|c| is_told(c)) {
        Some(change) => {
            let by = change.change.unwrap_or(0.0);
            let more = if by < 0.0 { "fewer" } else { "more" };
            let by = signed(by.abs(), Unit::Count);
            let by = by.trim_start_matches('+');
            // Where no time was compared it is all that there is.
            let size = seconds.unwrap_or(f64::INFINITY);
            let share = explained(work, change).map_or_else(String::new, |share| {
                let share = match share {
                    1.0 => "all".to_owned(),
                    _ => percent(share),
                };
                format!(" ({share} of its change in time, if each takes as long as before)")
            });
            Some((
                size,
                format!("its code executes {by} {more} instructions{share}"),
            ))
        }
        None => {
            let work = work?;
            // What takes all of the time says nothing new of it.
            let is_same = |c: &Change| c.quantity != Quantity::Wall && may_be_equal(c, work);
            if counted.is_none() && pair.headline().is_some_and(is_same) {
                return None;
            }
            let text = match counted {
                Some(_) => format!("the same instructions take {} time", changed(work)),
                None => format!("its own code takes {} time", changed(work)),
            };
            Some((seconds?, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_compare::Interval;

    fn change(change: f64, around: f64) -> Change {
        let interval = (around > 0.0).then_some(Interval {
            low: change - around,
            high: change + around,
            level: 0.95,
        });
        Change {
            quantity: Quantity::Work,
            a: Some(1.0),
            b: Some(1.0 + change),
            change: Some(change),
            interval,
            p: None,
            finding: Finding::Changed,
            runs_needed: None,
            is_modelled: false,
        }
    }

    #[test]
    fn more_than_all_is_all_within_the_interval() {
        let share = |time: f64, around: f64, executed: f64| {
            explained(Some(&change(time, around)), &change(executed, 0.0))
        };
        assert_eq!(share(3.0, 0.1, 1.0), Some(0.5));
        assert_eq!(share(1.0, 0.2, 1.1), Some(1.0));
        assert_eq!(share(-0.5, 0.1, -0.55), Some(1.0));
        assert_eq!(share(1.0, 0.2, 2.0), None);
        assert_eq!(share(1.0, 0.0, 1.1), None);
        assert_eq!(share(1.0, 0.2, -0.1), None);
    }
}
