//! What is said of a run over time.

use super::series::series_place;
use ompfuse_account::model::growth::{GrowthReport, GrowthUnit, Phase};
use ompfuse_account::units::{count, percent, seconds};

/// The phases in a sentence or two.
pub fn growth_verdict(report: &GrowthReport) -> String {
    let length = |p: &Phase| p.end_s - p.begin_s;
    let longest = report
        .phases
        .iter()
        .max_by(|a, b| length(a).total_cmp(&length(b)));
    let Some(longest) = longest else {
        return "Nothing was recorded.".to_owned();
    };
    let main = main_of(longest);
    let share = percent(longest.main_share);
    match report.phases.len() {
        1 => format!(
            "The program does the same all the time: the {main} has {share} of its time in code."
        ),
        n => format!(
            "{n} phases. The longest is from {} to {}: the {main} has {share} of its time in code.",
            seconds(longest.begin_s),
            seconds(longest.end_s)
        ),
    }
}

fn main_of(phase: &Phase) -> String {
    match &phase.main {
        Some(place) => series_place(place),
        None => "code outside of constructs".to_owned(),
    }
}

/// What an interval is, and how many there are: `45 intervals of 1.00 s`.
pub fn growth_intervals(report: &GrowthReport) -> String {
    let n = report.intervals.len();
    let intervals = if n == 1 { "interval" } else { "intervals" };
    match &report.by {
        GrowthUnit::Time { wanted_s, length_s } if report.folded > 0 => format!(
            "{n} {intervals} of {} (with {} there would be too many)",
            seconds(*length_s),
            seconds(*wanted_s)
        ),
        GrowthUnit::Time { length_s, .. } => format!("{n} {intervals} of {}", seconds(*length_s)),
        GrowthUnit::Instances { regions, each: 1 } => {
            format!("{n} {intervals}, each up to the end of an execution of {regions}")
        }
        GrowthUnit::Instances { regions, each } => format!(
            "{n} {intervals} of {} executions of {regions} each (with fewer there would be too many)",
            count(*each)
        ),
    }
}
