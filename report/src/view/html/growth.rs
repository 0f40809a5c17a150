//! How a run goes on over time.

use super::detail::short;
use super::shares::class_id;
use crate::words::{growth_intervals, growth_verdict, series_place};
use maud::{Markup, html};
use ompfuse_account::model::Class;
use ompfuse_account::model::growth::{GrowthInterval, GrowthReport};
use ompfuse_account::units::{percent, seconds};
use serde_json::{Value, json};

/// Phases that are listed.
const MOST: usize = 40;

/// The section.
pub(super) fn section(growth: &GrowthReport) -> Markup {
    let left = growth.phases.len().saturating_sub(MOST);
    html! {
        div.heading {
            h2 { "Phases" }
            p.sub { (growth_verdict(growth)) " " (growth_intervals(growth)) ". How many threads do what; overheads lie where their regions were executed." }
        }
        div #growth {}
        ul.keys {
            @for [id, name] in parts() { li { span class={ "key " (id) } {} (name) } }
        }
        @if growth.phases.len() > 1 {
            div.scroll tabindex="0" role="region" aria-label="Phases" {
                table {
                    thead { tr {
                        th.name scope="col" { "Phase" } th scope="col" { "Begin" } th scope="col" { "Length" }
                        th.w1 scope="col" { "Work" } th.w1 scope="col" { "Lost" }
                        th.left scope="col" { "Mostly" }
                    } }
                    tbody {
                        @for (phase, n) in growth.phases.iter().zip(1..).take(MOST) {
                            @let all = phase.sums.thread_time_s.max(1e-12);
                            tr {
                                th.name scope="row" { (n) }
                                td { (seconds(phase.begin_s)) } td { (seconds(phase.end_s - phase.begin_s)) }
                                td.w1 { (percent(phase.sums.work_s / all)) } td.w1 { (seconds(phase.sums.overhead.sum())) }
                                td.left {
                                    @match &phase.main {
                                        Some(place) => (series_place(place)),
                                        None => "code outside of constructs",
                                    }
                                    " " span.sub { (percent(phase.main_share)) " of the code" }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if left > 0 { p.note { (left) " more phases" } }
    }
}

/// What an interval's time goes to: the parts' names in style sheets, and for people.
fn parts() -> Vec<[&'static str; 2]> {
    let mut parts = vec![["serial", "Serial code"], ["work", "Work"]];
    parts.extend(Class::ALL.map(|c| [class_id(c), super::terms::class_name(c)]));
    parts.extend([["idle", "Idle workers"], ["unknown", "Not known"]]);
    parts
}

/// Its values for the script that draws them: names of the parts, and for each interval begin, end and seconds of each part.
pub(super) fn values(growth: &GrowthReport) -> Value {
    let one = |i: &GrowthInterval| {
        let mut row = vec![
            short(i.begin_s),
            short(i.end_s),
            short(i.serial_s),
            short(i.work_s),
        ];
        row.extend(Class::ALL.map(|c| short(i.overhead.get(c).unwrap_or(0.0))));
        row.extend([short(i.idle_s), short(i.unknown_s)]);
        row
    };
    json!({
        "parts": parts(),
        "intervals": growth.intervals.iter().map(one).collect::<Vec<_>>(),
    })
}
