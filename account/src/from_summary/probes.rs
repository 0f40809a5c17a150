//! What probes took, estimated: the number of intervals, times what the probes of one cost when the run began.

use super::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{FewerProbes, MostProbes, ProbeTime};
use ompfuse_format::Construct;
use ompfuse_fuse::run::ProcessInfo;
use ompfuse_fuse::summary::RegionStat;
use ompfuse_fuse::{Site, Summary};

/// Share of the threads' time from which on a report begins with what the probes took.
pub const WORTH_SAYING: f64 = 0.1;

/// What the probes of one interval cost in the run that the times are from, in picoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    /// Of one that is on record.
    pub recorded: u64,
    /// Of one that is left out: it reads the clock, and writes nothing.
    left_out: u64,
    /// Most of it is reading counters.
    pub by_counters: bool,
}

/// An interval begins and ends with a boundary.
const BOUNDARIES: u64 = 2;

impl Price {
    /// Of an interval that costs so much, a boundary with counters, and a reading of the clock.
    pub fn new(all: u64, boundary: u64, clock: u64) -> Price {
        let (boundaries, clock) = (BOUNDARIES * boundary, BOUNDARIES * clock);
        Price {
            recorded: all,
            left_out: all.saturating_sub(boundaries) / 2 + clock,
            by_counters: boundaries.saturating_sub(clock) > all / 2,
        }
    }

    /// Whether leaving an interval out saves much of what it costs.
    pub fn saves(self) -> bool {
        3 * self.left_out < 2 * self.recorded
    }

    /// The lowest that a process of the first run has measured: whatever came between made others higher. `None`: nobody has.
    pub fn of(summary: &Summary) -> Option<Price> {
        let processes = &summary.runs.first()?.processes;
        let of_process = |p: &ProcessInfo| {
            let interval = p.interval?;
            Some(Price::new(interval.all, p.boundary_ps?, interval.clock))
        };
        processes
            .iter()
            .filter_map(of_process)
            .min_by_key(|p| p.recorded)
    }

    /// Nanoseconds of so many intervals on record, and so many others.
    pub fn ns(self, recorded: u64, left_out: u64) -> u64 {
        let ps = u128::from(recorded) * u128::from(self.recorded)
            + u128::from(left_out) * u128::from(self.left_out);
        u64::try_from(ps / 1000).unwrap_or(u64::MAX)
    }
}

/// Whether an interval of this kind has probes of its own.
pub fn has_probes(construct: Option<Construct>) -> bool {
    // Fetching ranges is what is between them, the program what is between everything.
    !matches!(
        construct,
        None | Some(Construct::Dispatch | Construct::Program)
    )
}

/// Iterations of natural loops that cost as much as an interval: their probe counts, and writes nothing (docs/measurements/probes.md).
const ITERATIONS: u64 = 12;

/// Intervals whose probes cost as much as those of a region.
pub fn as_intervals(stat: &RegionStat) -> u64 {
    match stat.construct {
        Some(Construct::NaturalLoop) => stat.count() + stat.extent() / ITERATIONS,
        _ => stat.count(),
    }
}

/// Intervals at a site: on record, and left out.
pub(crate) fn intervals(summary: &Indexed<'_>, site: u32) -> (u64, u64) {
    let recorded = (summary.at_site(site).iter())
        .filter(|r| has_probes(r.construct))
        .map(|r| as_intervals(r));
    let left_out = (summary.left_out_at(site).iter())
        .filter(|l| has_probes(Some(l.construct)))
        .map(|l| l.count);
    (recorded.sum(), left_out.sum())
}

/// What all probes took, as a share of the processor time. `time_s` stands for it where it isn't known: what the threads did, but
/// for waiting between regions. `id_of`: a site's number in the report.
pub(super) fn probe_time(
    summary: &Indexed<'_>,
    time_s: f64,
    id_of: impl Fn(u32) -> u32,
) -> Option<ProbeTime> {
    let price = Price::of(summary)?;
    let mut costs: Vec<(u64, u32)> = (0..summary.sites.len() as u32)
        .map(|site| {
            let (recorded, left_out) = intervals(summary, site);
            (price.ns(recorded, left_out), site)
        })
        .collect();
    costs.sort_unstable_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    let seconds = costs.iter().map(|&(ns, _)| ns as f64 * NS).sum::<f64>();
    let all = processor_s(summary).unwrap_or_else(|| {
        let left_out_s = summary.left_out.iter().map(|l| l.own_ns as f64 * NS);
        time_s + left_out_s.sum::<f64>()
    });
    let share = if all > 0.0 {
        (seconds / all).min(1.0)
    } else {
        0.0
    };
    let most = costs.first().filter(|_| share > WORTH_SAYING);
    Some(ProbeTime {
        estimated_s: seconds,
        of_s: all,
        share,
        interval_s: price.recorded as f64 * 1e-12,
        most_at: most.map(|&(_, site)| {
            let at = &summary.sites[site as usize];
            MostProbes {
                region: id_of(site),
                construct: at.construct,
                function: at.function.clone(),
                source: at.source.clone(),
            }
        }),
        remedy: most.and_then(|&(_, site)| fewer(summary, price, site)),
    })
}

/// The processor time of the first run, if all of its processes have told it.
fn processor_s(summary: &Summary) -> Option<f64> {
    let processes = summary.runs.first()?.processes.iter();
    let ns = processes.map(|p| p.cpu_ns).sum::<Option<u64>>()?;
    (ns > 0).then_some(ns as f64 * NS)
}

/// How to record with fewer probes; `None`: it was recorded so already.
fn fewer(summary: &Summary, price: Price, site: u32) -> Option<FewerProbes> {
    let at = &summary.sites[site as usize];
    let is_throttled = summary.left_out.iter().any(|l| l.throttled);
    let is_short = (summary.regions.iter())
        .any(|r| r.site == Some(site) && r.construct.is_some_and(|c| c.is_xu() || c.is_wait()));
    let is_fork = at.construct.is_some_and(Construct::is_fork);
    Some(match at.address {
        _ if price.by_counters => FewerProbes::NoEvents,
        // Without a combined region its parallel region would be gone.
        Some(_) if !is_fork && (is_throttled || !is_short || !price.saves()) => FewerProbes::Skip {
            region: word(summary, at),
        },
        _ if is_throttled || !price.saves() => return None,
        _ => FewerProbes::Throttle { percent: 5 },
    })
}

/// The word that selects a region: with its module's name where there are several.
pub fn word(summary: &Summary, site: &Site) -> String {
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
