//! How long units took, where only their sums and histograms are known.

use super::{TextOptions, laid_out, titled};
use crate::view::table::Column;
use crate::words::distribution::{about, unit};
use crate::words::location;
use ompfuse_account::model::{Distribution, Region, Report};
use ompfuse_account::units::seconds;

/// The longest units that are named.
const NAMED: usize = 2;

/// Percentiles of the units' own times by region, and the longest units.
pub(super) fn distribution(report: &Report, options: TextOptions) -> Option<String> {
    let known = report.regions.iter().take(options.top);
    let known = known.filter_map(|region| Some((region, region.distribution.as_ref()?)));
    let rows: Vec<Vec<String>> = known.map(|(region, of)| row(region, of)).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = [
        Column::right("#"),
        Column::left("location").keeps_place(18),
        Column::right("p50"),
        Column::right("p90"),
        Column::right("p99"),
        Column::right("max"),
        Column::left("the longest are").leaves(1),
    ];
    let explanation =
        "own times from histograms: percentiles are right within 6 %, the largest is exact";
    let text = titled("How long XUs took", explanation, options);
    Some(text + &laid_out(&columns, rows, options))
}

fn row(region: &Region, of: &Distribution) -> Vec<String> {
    let longest = of.largest.iter().take(NAMED);
    let longest: Vec<String> = longest
        .map(|longest| format!("{} {}", unit(longest), seconds(longest.time_s)))
        .collect();
    vec![
        region.id.to_string(),
        location(region),
        about(&of.time_s.p50, region.xu_max_s),
        about(&of.time_s.p90, region.xu_max_s),
        about(&of.time_s.p99, region.xu_max_s),
        region.xu_max_s.map(seconds).unwrap_or_default(),
        longest.join(", "),
    ]
}
