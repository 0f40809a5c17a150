//! What was counted, and the ranks of an MPI program.

use super::Context;
use crate::words::{transfer, uncounted};
use maud::{Markup, html};
use ompfuse_account::model::{Grain, Mpi};
use ompfuse_account::units::{count, percent, seconds};
use std::collections::BTreeMap;

/// Regions of the table of counts.
const MOST: usize = 30;

/// The section of the events; `None`: none was counted.
pub(super) fn section(context: &Context<'_>) -> Option<Markup> {
    let report = context.merged;
    let counted: Vec<_> = report.events.iter().filter(|e| e.run.is_some()).collect();
    let of_units: Vec<&str> = (counted.iter())
        .filter(|e| e.grain == Grain::Unit)
        .map(|e| e.name.as_str())
        .collect();
    let of_regions: Vec<&str> = (counted.iter())
        .filter(|e| e.grain == Grain::Region)
        .map(|e| e.name.as_str())
        .collect();
    if counted.is_empty() {
        return None;
    }
    let mut sums: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for counts in &report.region_counts {
        for name in &of_regions {
            if let Some(c) = counts.events.get(*name) {
                *sums.entry((counts.region, name)).or_default() += c.count;
            }
        }
    }
    let of = |id: u32, name: &str| {
        let region = report.regions.iter().find(|r| r.id == id)?;
        match of_units.contains(&name) {
            true => region.events.get(name).copied(),
            false => sums.get(&(id, name)).copied(),
        }
    };
    let is_seen = |name: &&&str| {
        let outside = report.serial.events.get(**name).is_some_and(|n| *n > 0);
        let inside = |r: &ompfuse_account::Region| of(r.id, name).is_some_and(|n| n > 0);
        outside || report.regions.iter().any(inside)
    };
    let scaled = counted.iter().any(|e| e.scaled);
    let all = || of_units.iter().chain(&of_regions);
    let names: Vec<&str> = all().filter(is_seen).copied().collect();
    let never: Vec<&str> = all().filter(|n| !is_seen(n)).copied().collect();
    let has_any = |id: u32| names.iter().any(|name| of(id, name).is_some_and(|n| n > 0));
    let rows = context
        .rows
        .iter()
        .map(|r| r.region)
        .filter(|r| has_any(r.id));
    Some(html! {
        div.heading {
            h2 { "Events" }
            p.sub {
                @if !of_units.is_empty() { "Counts of each region's own code, all threads" }
                @if !of_regions.is_empty() {
                    @if !of_units.is_empty() { "; " }
                    (of_regions.join(", ")) " for each outermost parallel region, as far as its parts were read"
                }
                @if !never.is_empty() { ". Never: " (never.join(", ")) }
                @if scaled { "; scaled, as events took turns on the processor's counters" }
            }
            @for line in uncounted(report) { p.sub { (line) "." } }
        }
        div.scroll tabindex="0" role="region" aria-label="Counts of events by region" {
            table {
                thead { tr { th.name scope="col" { "Region" } @for name in &names { th scope="col" { (name) } } } }
                tbody {
                    @for region in rows.take(MOST) {
                        tr {
                            th.name scope="row" {
                                @match context.keys.of(region.id) {
                                    Some(key) => a href={ "#region=" (key) } { (super::title(region)) },
                                    None => (super::title(region)),
                                }
                            }
                            @for name in &names { td { (of(region.id, name).map_or_else(|| "–".to_owned(), count)) } }
                        }
                    }
                    @if !of_units.is_empty() {
                        tr {
                            th.name scope="row" { "outside of all regions" }
                            @for name in &names { td { (report.serial.events.get(*name).copied().map_or_else(|| "–".to_owned(), count)) } }
                        }
                    }
                }
            }
        }
    })
}

/// The section of the ranks; `None`: it is no MPI program.
pub(super) fn ranks(context: &Context<'_>) -> Option<Markup> {
    let mpi: &Mpi = context.page.report.mpi.as_ref()?;
    let most = mpi.ranks.iter().map(|r| r.wall_s * f64::from(r.threads));
    let most = most.fold(1e-12, f64::max);
    let has_threads = (context.merged.regions.iter()).any(|r| !r.per_thread.is_empty());
    Some(html! {
        div.heading {
            h2 { "Ranks" }
            p.sub {
                "Imbalance among ranks " (percent(mpi.imbalance_among_ranks)) ", among the threads of a rank "
                (percent(mpi.imbalance_among_threads)) "."
                @if has_threads { " The threads of each rank are in the details of the regions." }
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Ranks" {
            table {
                thead { tr {
                    th.name scope="col" { "Rank" } th.w1 scope="col" { "Threads" } th.w1 scope="col" { "On the clock" }
                    th.wide scope="col" { "Threads' time" }
                    th scope="col" { "Work" } th.w2 scope="col" { "Waiting" } th.w2 scope="col" { "MPI" } th.w2 scope="col" { "Bytes out" } th.w2 scope="col" { "Bytes in" } th.w2 scope="col" { "Runtime" } th.w2 scope="col" { "Serial" }
                    th scope="col" { "Imbalance" }
                } }
                tbody {
                    @for rank in &mpi.ranks {
                        @let parts = [("work", "work", rank.work_s), ("wait", "waiting", rank.wait_s - rank.mpi_s), ("mpi", "MPI", rank.mpi_s), ("runtime", "runtime", rank.runtime_s), ("serial", "serial", rank.serial_s)];
                        tr {
                            th.name scope="row" {
                                (rank.rank)
                                @if let Some(host) = &rank.host { span.sub { " on " (host) } }
                                @if !rank.ended { span.sub { " did not end in an orderly way" } }
                            }
                            td.w1 { (rank.threads) } td.w1 { (seconds(rank.wall_s)) }
                            td.wide { span.track aria-hidden="true" {
                                @for (class, name, s) in parts {
                                    span class=(class) title={ (name) " " (seconds(s)) } style=(format!("width:{:.2}%", 100.0 * s / most)) {}
                                }
                            } }
                            td { (seconds(rank.work_s)) } td.w2 { (seconds(rank.wait_s - rank.mpi_s)) } td.w2 title=(format!("{} outside of parallel regions, {} inside", seconds(rank.mpi_serial_s), seconds(rank.mpi_parallel_s))) { (seconds(rank.mpi_s)) }
                            td.w2 { @if let Some(of) = &rank.transfer { (transfer::left(of)) } }
                            td.w2 { @if let Some(of) = &rank.transfer { (transfer::came(of)) } }
                            td.w2 { (seconds(rank.runtime_s)) } td.w2 { (seconds(rank.serial_s)) }
                            td { (percent(rank.imbalance)) }
                        }
                    }
                }
            }
        }
        (super::transfers::transfers(context).unwrap_or_default())
        @for line in mpi.clocks.iter().flat_map(crate::words::ranks::clocks) {
            p.note { (line) }
        }
        @if !mpi.missing.is_empty() {
            p.note { "Nothing is on record of: " (mpi.missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")) }
        }
    })
}
