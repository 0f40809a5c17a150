//! A filter file that leaves out regions whose probes cost more than they tell.

use crate::units;
use ompfuse_format::Construct;
use ompfuse_fuse::Summary;
use ompfuse_fuse::names::readable;
use ompfuse_fuse::table::Site;
use std::collections::BTreeMap;
use std::fmt::Write;

/// An interval begins and ends with a boundary.
const BOUNDARIES: u64 = 2;

/// A region that costs too much.
struct Costly<'a> {
    site: &'a Site,
    intervals: u64,
    wall_ns: u64,
    cost_ns: u64,
}

/// What a boundary cost in the run that the times are from, in picoseconds; `None` if nobody measured it.
fn boundary_ps(summary: &Summary) -> Option<u64> {
    let processes = &summary.runs.first()?.processes;
    processes.iter().filter_map(|p| p.boundary_ps).max()
}

/// Lines for `--filter`: a `skip` for every region whose probes took more than this share of its time, estimated from its
/// intervals and what a boundary cost in that run.
///
/// # Errors
/// What a boundary costs was not measured; the text says what to do.
pub fn suggest(summary: &Summary, share: f64) -> Result<String, String> {
    let Some(boundary_ps) = boundary_ps(summary) else {
        return Err(format!(
            "no filter for {}: what a probe costs was not measured in its first run (the program was killed, or the run is an \
             older version's); record it again",
            summary.program
        ));
    };
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for stat in &summary.regions {
        // An implicit barrier's probe ends the constructs before it too.
        if let Some(site) = stat
            .site
            .filter(|_| stat.construct != Some(Construct::ImplicitBarrier))
        {
            let sum = sums.entry(site).or_default();
            sum.0 += stat.count();
            sum.1 += stat.wall_ns();
        }
    }
    let mut costly: Vec<Costly<'_>> = sums
        .into_iter()
        .filter_map(|(site, (intervals, wall_ns))| {
            let cost_ns = intervals * BOUNDARIES * boundary_ps / 1000;
            let site = summary
                .sites
                .get(site as usize)
                .filter(|s| s.address.is_some())?;
            (cost_ns as f64 > share * wall_ns as f64).then_some(Costly {
                site,
                intervals,
                wall_ns,
                cost_ns,
            })
        })
        .collect();
    costly.sort_by_key(|c| std::cmp::Reverse(c.cost_ns));
    let mut out = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| {
        out.write_fmt(text)
            .and_then(|()| out.write_char('\n'))
            .expect("strings take everything");
    };
    line(format_args!(
        "# {}: regions whose probes take more than {:.4} % of their time",
        summary.program,
        share * 100.0
    ));
    line(format_args!(
        "# Estimated: an interval has {BOUNDARIES} boundaries, and one (reading clock and counters) took {:.1} ns as the first \
         run measured it when it began.",
        boundary_ps as f64 / 1000.0
    ));
    for c in &costly {
        let part = 100.0 * c.cost_ns as f64 / c.wall_ns.max(1) as f64;
        line(format_args!(
            "skip {} # {}: {} intervals, {part:.1} % of {}",
            word(summary, c.site),
            what(c.site),
            c.intervals,
            units::seconds(c.wall_ns as f64 / 1e9),
        ));
    }
    if costly.is_empty() {
        line(format_args!("# There are none."));
    }
    Ok(out)
}

/// The word that selects a region: with its module's name where there are several.
fn word(summary: &Summary, site: &Site) -> String {
    let address = site.address.map(|a| a.to_string()).unwrap_or_default();
    let of_site = |m: &&ompfuse_fuse::summary::ModuleSummary| {
        m.build_id.as_ref() == Some(&site.module) || m.path == site.module
    };
    match summary.modules.iter().find(of_site) {
        Some(module) if summary.modules.len() > 1 => {
            let name = module.path.rsplit('/').next().unwrap_or(&module.path);
            format!("lib:{name}:{address}")
        }
        _ => address,
    }
}

/// What a region is, for people.
fn what(site: &Site) -> String {
    let mut text = site.construct.map_or("region", |c| c.name()).to_owned();
    if let Some(function) = &site.function {
        text += &format!(" in {}", readable(function));
    }
    if let Some(source) = &site.source {
        let file = source.file.rsplit('/').next().unwrap_or(&source.file);
        text += &format!(", {file}:{}", source.line);
    }
    text.replace('\n', " ")
}
