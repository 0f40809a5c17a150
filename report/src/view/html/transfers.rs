//! The table of calls of MPI that hand over bytes.

use super::Context;
use crate::words::{kind, location, transfer};
use maud::{Markup, html};
use ompfuse_account::model::{Region, Transfer};
use ompfuse_account::units::{count, seconds};

/// Regions that are listed.
const MOST: usize = 50;

/// The regions that handed over bytes, those with the most time first; `None` if there are none.
pub(super) fn transfers(context: &Context<'_>) -> Option<Markup> {
    let all = context.merged.regions.iter();
    let all: Vec<(&Region, &Transfer)> = all
        .filter_map(|r| Some((r, r.transfer.as_ref()?)))
        .take(MOST)
        .collect();
    if all.is_empty() {
        return None;
    }
    Some(html! {
        div.heading {
            h3 { "Bytes of MPI calls" }
            p.sub { "≤ is the room of receives that don't tell how much came. Late sender: receives that began before their message was sent, of those whose message was found." }
        }
        div.scroll tabindex="0" role="region" aria-label="Bytes of MPI calls" {
            table {
                thead { tr {
                    th.name scope="col" { "Call" } th scope="col" { "Calls" } th.w1 scope="col" { "Time" }
                    th scope="col" { "Bytes out" } th.w2 scope="col" { "Mean" } th scope="col" { "Bytes in" } th.w2 scope="col" { "Mean" }
                    th.w2 scope="col" { "Late sender" }
                } }
                tbody {
                    @for (region, of) in &all {
                        tr {
                            th.name scope="row" { (kind(region)) span.sub { " " (location(region)) } }
                            td { (count(of.calls)) } td.w1 { (seconds(region.time_s)) }
                            td { (transfer::left(of)) } td.w2 { (transfer::mean(of.mean_out)) }
                            td { (transfer::came(of)) } td.w2 { (transfer::mean(of.mean_in)) }
                            td.w2 { (transfer::late_sender(of).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    })
}
