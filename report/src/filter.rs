//! A filter file that leaves out regions whose probes cost more than they tell.

use crate::words::what;
use ompfuse_account::from_summary::probes::{Price, as_intervals, has_probes, word};
use ompfuse_account::units;
use ompfuse_format::Construct;
use ompfuse_fuse::Summary;
use ompfuse_fuse::summary::RegionStat;
use ompfuse_fuse::table::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A region that costs too much.
struct Costly<'a> {
    site: &'a Site,
    intervals: u64,
    time_ns: u64,
    cost_ns: u64,
}

/// Lines for `--filter`: a `skip` for every region whose probes took more than this share of its time, estimated from its
/// intervals and what the probes of one cost in that run.
///
/// # Errors
/// What probes cost was not measured; the text says what to do.
pub fn suggest(summary: &Summary, share: f64) -> Result<String, String> {
    let Some(price) = Price::of(summary) else {
        return Err(format!(
            "no filter for {}: what a probe costs was not measured in its first run (the program was killed); record it \
             again",
            summary.program
        ));
    };
    let times = Times::of(summary);
    // An implicit barrier's probe ends the constructs before it too.
    let is_own = |c: Option<Construct>| has_probes(c) && c != Some(Construct::ImplicitBarrier);
    let mut counts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for stat in summary.regions.iter().filter(|s| is_own(s.construct)) {
        if let Some(site) = stat.site {
            counts.entry(site).or_default().0 += as_intervals(stat);
        }
    }
    for left_out in &summary.left_out {
        if is_own(Some(left_out.construct)) {
            counts.entry(left_out.site).or_default().1 += left_out.count;
        }
    }
    let mut costly: Vec<Costly<'_>> = counts
        .into_iter()
        .filter_map(|(site, (recorded, left_out))| {
            let cost_ns = price.ns(recorded, left_out);
            let time_ns = times.of_region(summary, site).max(cost_ns);
            let site = summary
                .sites
                .get(site as usize)
                .filter(|s| s.address.is_some())?;
            (cost_ns as f64 > share * time_ns as f64).then_some(Costly {
                site,
                intervals: recorded + left_out,
                time_ns,
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
        "# Estimated: an interval's probes took {:.1} ns as the first run measured it when it began.",
        price.recorded as f64 / 1000.0
    ));
    for c in &costly {
        let part = 100.0 * c.cost_ns as f64 / c.time_ns.max(1) as f64;
        line(format_args!(
            "skip {} # {}: {} intervals, {part:.1} % of {}",
            word(summary, c.site),
            what(
                c.site.construct,
                c.site.function.as_deref(),
                c.site.source.as_ref()
            ),
            c.intervals,
            units::seconds(c.time_ns as f64 / 1e9),
        ));
    }
    if costly.is_empty() {
        line(format_args!("# There are none."));
    }
    Ok(out)
}

/// How long threads were busy in regions, all of them together. The time of what is in each other's inside counts once.
struct Times {
    /// Own time in each parallel region and in those nested in it, by site; outside of all there is [`Times::all`].
    within: BTreeMap<u32, u64>,
    all: u64,
}

impl Times {
    fn of(summary: &Summary) -> Times {
        // A nested region's fork is charged to the one around it.
        let mut inside: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut own: BTreeMap<u32, u64> = BTreeMap::new();
        for stat in &summary.regions {
            let Some(parallel) = stat.parallel else {
                continue;
            };
            *own.entry(parallel).or_default() += busy_ns(stat);
            if let (Some(site), true) = (stat.site, stat.construct.is_some_and(Construct::is_fork))
            {
                inside.entry(parallel).or_default().insert(site);
            }
        }
        let with_nested = |&first: &u32| {
            let (mut seen, mut next) = (BTreeSet::from([first]), vec![first]);
            while let Some(site) = next.pop() {
                let nested = inside.get(&site).into_iter().flatten();
                next.extend(nested.filter(|&&site| seen.insert(site)));
            }
            let ns = seen.iter().filter_map(|site| own.get(site)).sum();
            (first, ns)
        };
        Times {
            within: own.keys().map(with_nested).collect(),
            all: summary.regions.iter().map(busy_ns).sum(),
        }
    }

    /// Of one region: at most that of the parallel regions that it is in, however deep it is in itself.
    fn of_region(&self, summary: &Summary, site: u32) -> u64 {
        let stats = || summary.regions.iter().filter(|r| r.site == Some(site));
        // The kinds of a combined construct are one in the other.
        let mut nested: BTreeMap<Construct, u64> = BTreeMap::new();
        let (mut beside, mut waited) = (0, 0);
        for stat in stats() {
            match stat.construct {
                Some(c) if is_around(c) => *nested.entry(c).or_default() += stat.wall_ns(),
                Some(Construct::Task) => beside += stat.wall_ns(),
                Some(c) if c.is_wait() => waited += stat.own_ns(),
                _ => beside += stat.own_ns(),
            }
        }
        let outermost = nested.values().copied().max().unwrap_or(0);
        let around: BTreeSet<Option<u32>> = stats()
            .map(|s| match s.construct {
                Some(c) if c.is_fork() => Some(site),
                _ => s.parallel,
            })
            .collect();
        let limit: u64 = around
            .iter()
            .map(|parallel| match parallel {
                Some(site) => self.within.get(site).copied().unwrap_or(self.all),
                None => self.all,
            })
            .sum();
        (outermost + beside).min(limit).min(self.all) + waited
    }
}

/// Own time without waiting: how long others keep a thread waiting says nothing of what probes cost.
fn busy_ns(stat: &RegionStat) -> u64 {
    let own = stat.own_ns();
    let waited = stat
        .construct
        .map_or(0, |c| c.split(own, stat.extent()).wait);
    own - waited
}

/// Whether other intervals of the same place are in those of this kind, in combined constructs.
fn is_around(construct: Construct) -> bool {
    construct.is_fork()
        || construct.is_part()
        || construct.is_divided()
        || construct.is_share()
        || construct.is_block()
        || construct == Construct::Dispatch
}
