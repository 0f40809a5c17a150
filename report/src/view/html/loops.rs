//! Natural loops: how often they are executed, and how many iterations they have.

use super::Context;
use maud::{Markup, html};
use ompfuse_account::model::Region;
use ompfuse_account::units::{self, count, seconds};
use ompfuse_format::Construct;
use ompfuse_fuse::names::readable;

/// Loops of the table.
const MOST: usize = 30;

/// The section of the loops; `None`: none was recorded.
pub(super) fn section(context: &Context<'_>) -> Option<Markup> {
    let all = context.rows.iter().map(|row| row.region);
    let loops: Vec<&Region> = all
        .filter(|region| region.construct == Some(Construct::NaturalLoop))
        .collect();
    if loops.is_empty() {
        return None;
    }
    Some(html! {
        div.heading {
            h2 { "Loops" }
            p.sub {
                "Loops of the machine code that were chosen by name: vectorised and unrolled ones have fewer iterations than the source"
                @if loops.len() > MOST { ". The first " (MOST) " of " (loops.len()) }
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Iterations of loops" {
            table {
                thead { tr {
                    th.name scope="col" { "Loop" }
                    @for name in ["Own time", "Entries", "Iterations", "Mean", "Max", "Own time of one"] { th scope="col" { (name) } }
                } }
                tbody { @for region in loops.iter().take(MOST) { (row(context, region)) } }
            }
        }
    })
}

fn row(context: &Context<'_>, region: &Region) -> Markup {
    let iterations = region.iterations.unwrap_or(0);
    let none = || "–".to_owned();
    let each = (iterations > 0).then(|| seconds(region.time_s / iterations as f64));
    html! {
        tr {
            th.name scope="row" {
                @match context.keys.of(region.id) {
                    Some(key) => a href={ "#region=" (key) } { (super::title(region)) },
                    None => (super::title(region)),
                }
                @if let Some(function) = &region.function { " " small { (readable(function)) } }
            }
            td { (seconds(region.time_s)) }
            td { (count(region.executions)) }
            td { (count(iterations)) }
            td { (region.mean_iterations().map_or_else(none, units::mean)) }
            td { (region.iterations_max.map_or_else(none, count)) }
            td { (each.unwrap_or_else(none)) }
        }
    }
}
