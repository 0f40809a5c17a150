//! What speaks against a comparison.

use crate::words::uncounted::uncounted_work;
use ompfuse_account::model::UncountedWork;
use ompfuse_account::units::percent;
use ompfuse_compare::Condition;

/// What makes sides less comparable.
pub(crate) fn condition(condition: &Condition) -> String {
    let sides = |a: bool, b: bool| match (a, b) {
        (true, true) => "both sides",
        (true, false) => "A",
        _ => "B",
    };
    match condition {
        Condition::Unmatched { a, b } => format!(
            "{} of A's time and {} of B's is in regions without a partner: these are not compared",
            percent(*a),
            percent(*b)
        ),
        Condition::Threads { a, b } => {
            format!("teams have {a} threads in A and {b} in B: that alone changes times and units")
        }
        Condition::Arguments => "the program was given other arguments".to_owned(),
        Condition::Hosts => "the sides were recorded on different hosts".to_owned(),
        Condition::Processors { a, b } => {
            format!("the program could use {a} processors in A and {b} in B")
        }
        Condition::Uncounted { a, b } => {
            let of = |work: &Option<UncountedWork>, side: &str| {
                Some(uncounted_work(&format!("{side}'s work"), work.as_ref()?))
            };
            let both = [of(a, "A"), of(b, "B")];
            let both: Vec<String> = both.into_iter().flatten().collect();
            format!("{}; what changed there is in no count", both.join("; "))
        }
        Condition::Events { only_a, only_b } => {
            let only = |side: &str, names: &[String]| match names {
                [] => None,
                names => Some(format!("only {side} has {}", names.join(", "))),
            };
            let both = [only("A", only_a), only("B", only_b)];
            let both: Vec<String> = both.into_iter().flatten().collect();
            format!("events differ: {}", both.join("; "))
        }
        Condition::InPart { a, b } => format!(
            "not all units of {} were recorded (sampling, a filter, a part of the run): their numbers are not compared",
            sides(*a, *b)
        ),
        Condition::Simulated { a, b } => format!(
            "a simulator ran {}: its times mean nothing and are not compared",
            sides(*a, *b)
        ),
        Condition::Starved { a, b } => {
            let share = a.unwrap_or(0.0).max(b.unwrap_or(0.0));
            format!(
                "threads of {} had no processor for at least {} of the time that they worked: times depend on the machine's \
                     load",
                sides(a.is_some(), b.is_some()),
                percent(share)
            )
        }
        Condition::Disturbed { a, b } => {
            let of = |share: &Option<f64>, side: &str| {
                Some(format!("{} of {side}'s", percent((*share)?)))
            };
            let both: Vec<String> = [of(a, "A"), of(b, "B")].into_iter().flatten().collect();
            format!(
                "{} units were disturbed by other programs or the kernel: medians of units leave them out",
                both.join(" and ")
            )
        }
        Condition::Probes { a, b } => {
            let share = a.unwrap_or(0.0).max(b.unwrap_or(0.0));
            format!(
                "probes took about {} of the time of {}: record with --units or --filter to compare times",
                percent(share),
                sides(a.is_some(), b.is_some())
            )
        }
        Condition::Damaged { a, b } => {
            let all: Vec<&str> = a.iter().chain(b).map(String::as_str).collect();
            format!("something is missing: {}", all.join("; "))
        }
        Condition::OneRun { a, b } => format!(
            "{} has one run, so noise is unknown; record it again with --repeat 5",
            match (a, b) {
                (true, true) => "each side",
                (true, false) => "A",
                _ => "B",
            }
        ),
    }
}
