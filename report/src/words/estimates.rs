//! What would have been seen, and how many runs it takes: as far as a number helps.

use super::compare::signed;
use ompfuse_compare::side::Unit;

/// From this size on, ten times as much, an estimate helps nobody who asks what would have been seen.
const LARGEST_SEEN: f64 = 9.0;

/// Nobody records more runs.
pub(super) const MOST_RUNS: u32 = 100;

/// A size that is nothing to a reader.
pub(super) const NOTHING: &str = "0.00%";

/// The size of a change that would be seen, without a sign; `None`: none that is worth a number.
pub(super) fn visible(size: Option<f64>, unit: Unit) -> Option<String> {
    let size = size.filter(|s| s.is_finite() && *s < LARGEST_SEEN)?;
    Some(signed(size, unit).trim_start_matches('+').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{causes, compare, gates, history};
    use ompfuse_account::units;
    use ompfuse_compare::diff::Interval;
    use ompfuse_compare::gate::{Doubt, Outcome, Verdict};
    use ompfuse_compare::history::{Basis, ChangePoint, Curve, Noise, Series};
    use ompfuse_compare::{Change, Finding, Quantity};
    use proptest::prelude::*;

    /// Numbers in a sentence that are estimates: at most three digits that tell, and none above 1,000.
    fn is_readable(sentence: &str) -> bool {
        let numbers = sentence.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        numbers
            .filter(|n| n.chars().any(|c| c.is_ascii_digit()))
            .all(|number| {
                let number = number.trim_end_matches('.');
                let digits: String = number.chars().filter(char::is_ascii_digit).collect();
                let telling = digits.trim_start_matches('0');
                let whole = number.parse::<f64>().is_ok_and(|n| n <= 1000.0);
                // Zeros behind three digits tell nothing.
                whole && (telling.len() <= 3 || telling == "1000")
            })
    }

    /// From far below anything that is shown to far above.
    fn sizes() -> impl Strategy<Value = f64> {
        (-12.0..12.0f64).prop_map(|power| 10f64.powf(power))
    }

    /// A history's curve of one change, with no commits.
    fn series(size: f64) -> (Series, Curve) {
        let curve = Curve {
            quantity: Quantity::Wall,
            region: None,
            values: vec![],
            changes: vec![ChangePoint {
                at: 0,
                earliest: 0,
                latest: 0,
                before: 1.0,
                after: 1.0 + size,
                change: Some(size),
                interval: Some(Interval {
                    low: -size.min(0.9999),
                    high: size,
                    level: 0.95,
                }),
                is_worse: Some(true),
            }],
            undecided: vec![],
            basis: Basis::Tested(Noise {
                deviation: size,
                correlation: 0.3,
                smallest: Some(size),
            }),
            lone: vec![],
        };
        let series = Series {
            program: String::new(),
            threads: 1,
            arguments: String::new(),
            machine: None,
            commits: vec![],
            curves: vec![],
        };
        (series, curve)
    }

    proptest! {
        #[test]
        fn estimates_have_three_digits_and_no_absurd_factor(
            size in sizes(),
            runs in 2u32..70_000,
            is_less in any::<bool>(),
            quantity in prop_oneof![Just(Quantity::Wall), Just(Quantity::Imbalance), Just(Quantity::Units)],
        ) {
            let could_see = Some(if is_less { -size.min(0.9999) } else { size });
            let doubt = Doubt {
                region: None,
                quantity: quantity.clone(),
                change: None,
                could_see,
                runs_needed: Some(runs),
                uncounted: None,
            };
            let outcome = Outcome {
                expression: String::new(),
                verdict: Verdict::Undecided { doubts: vec![doubt] },
            };
            let mut sentences = vec![gates::outcome(&outcome)];
            let change = |finding, change| Change {
                quantity: quantity.clone(),
                a: None,
                b: None,
                change: Some(change),
                interval: None,
                p: None,
                finding,
                runs_needed: None,
                is_modelled: false,
            };
            let unseen = change(Finding::NotSeen { could_see: Some(size) }, 0.0);
            sentences.push(compare::of_program(&unseen, None).replace("(- -> -)", ""));
            sentences.push(compare::changed(&change(Finding::Changed, size)));
            sentences.push(compare::certainty(&Change {
                interval: Some(Interval { low: -size.min(0.9999), high: size, level: 0.95 }),
                ..change(Finding::Changed, size)
            }));
            let (series, curve) = series(size);
            sentences.push(history::curve_verdict(&series, &curve));
            sentences.push(history::change_size(&curve, &curve.changes[0]));
            sentences.push(history::change_interval(&curve, &curve.changes[0]));
            let unchanged = Curve { changes: vec![], ..curve };
            sentences.push(history::curve_verdict(&series, &unchanged));
            sentences.extend(history::curve_noise(&unchanged));
            sentences.push(units::factor(size.max(1.0)));
            sentences.push(units::percent(size));
            sentences.push(units::times(size.max(1.0)));
            sentences.push(causes::times(size.max(1.0)));
            for sentence in sentences {
                prop_assert!(is_readable(&sentence), "{sentence}");
                prop_assert!(!sentence.contains("of 0.00%"), "{sentence}");
            }
        }
    }

    #[test]
    fn what_cannot_be_seen_has_no_number() {
        assert_eq!(visible(Some(0.25), Unit::Count).as_deref(), Some("25.0%"));
        for size in [
            None,
            Some(392_183_524.0),
            Some(f64::INFINITY),
            Some(f64::NAN),
        ] {
            assert_eq!(visible(size, Unit::Count), None);
        }
        assert_eq!(units::percent(503.63), "×504");
        assert_eq!(units::percent(0.5), "50.0%");
        assert!(!is_readable("one of 1788 runs") && is_readable("over 1000 times, 0.01%"));
    }
}
