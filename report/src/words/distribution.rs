//! Units that are known by their sums and histograms, in words.

use ompfuse_account::model::{Between, LargestUnit};
use ompfuse_account::units::seconds;

/// A time that is known to lie in a range: the middle of it, or the largest of all times if that is less.
pub(crate) fn about(time_s: &Between, largest_s: Option<f64>) -> String {
    match time_s.to {
        Some(to) => {
            let middle = (time_s.from + to) / 2.0;
            seconds(largest_s.map_or(middle, |largest| middle.min(largest)))
        }
        None => format!("over {}", seconds(time_s.from)),
    }
}

/// What a unit is in its region: `iterations 417..418`, `section 2`, `task 12`.
pub(crate) fn unit(unit: &LargestUnit) -> String {
    match (
        unit.first_iteration,
        unit.iterations,
        unit.section,
        unit.rank,
    ) {
        (Some(first), Some(2..), ..) => {
            let last = first.saturating_add_unsigned(unit.iterations.unwrap_or(1) - 1);
            format!("iterations {first}..{last}")
        }
        (Some(first), ..) => format!("iteration {first}"),
        (_, _, Some(section), _) => format!("section {section}"),
        (.., Some(rank)) => format!("task {rank}"),
        _ => String::new(),
    }
}
