//! Why time is lost: each leaf of the account that is lost is divided by cause, and nothing is added to it.
//!
//! Causes come of single records ([`ompfuse_fuse::span`]). What these don't tell has the cause [`Cause::Unknown`].

pub(crate) mod behind;
pub(crate) mod communication;
mod exclusion;
mod lines;
mod managing;
mod outside;
mod scaling;
mod sums;
mod tasks;
#[cfg(test)]
mod tests;
mod units;
mod waiting;

pub(crate) use outside::starved_s;
pub(crate) use scaling::scaling;

use crate::from_summary::indexed::Indexed;
use crate::from_summary::{NS, Queues, queues, unequal_ns};
use crate::model::{Account, Cause, Loss, LossKind, Report, Scaling, State};
use lines::{Executions, Lines};
use ompfuse_format::Construct;
use ompfuse_fuse::span::RegionAnalysis;
use std::collections::{BTreeMap, HashMap};

/// Smaller shares of the available time are no loss worth telling.
const LEAST_SHARE: f64 = 0.005;

/// Shorter tasks cost more than they do, in seconds.
pub const TINY_S: f64 = 10e-6;

/// From this share of the available time without a processor on, late threads, slow starts and long units say nothing of the program.
const CROWDED: f64 = 0.1;

/// The losses worth telling, largest first. `report`: all else of it; `ids`: the sites' numbers in it.
pub(crate) fn losses(
    report: &Report,
    account: &Account,
    scaling: Option<&Scaling>,
    summary: &Indexed<'_>,
    ids: &[u32],
) -> Vec<Loss> {
    let lines = Lines::new(report, ids);
    let queues = match report.running {
        Some(_) => Found::queues(account, queues(summary)),
        None => Queues::default(), // too little is known to tell a part from the rest
    };
    let joined = lines.summary(summary);
    let joined = joined.as_ref().map(Indexed::new);
    let account = &lines.account(account);
    let mut found = Found {
        report,
        account,
        recorded: summary,
        summary: joined.as_ref().unwrap_or(summary),
        executions: lines.executions(report),
        lines,
        losses: vec![],
        queues,
    };
    outside::add(&mut found, scaling);
    communication::outside(&mut found);
    let mut by_region: BTreeMap<Option<u32>, Vec<Part>> = BTreeMap::new();
    for state in account.states.iter().filter(|s| s.state.class().is_some()) {
        for part in &state.parts {
            by_region.entry(part.parallel).or_default().push(Part {
                state: state.state,
                site: part.region.and_then(|id| found.site(id)),
                what: part.what.clone(),
                seconds: part.ns as f64 * NS,
                count: part.count,
            });
        }
    }
    for (region, parts) in by_region {
        let site = region.and_then(|id| found.site(id));
        let analysis = found.summary.whole().analysis.as_ref();
        let is_it = |r: &&RegionAnalysis| r.site.is_some() && r.site == site;
        let of = OfRegion {
            site,
            region,
            executions: region.and_then(|id| found.executions.get(&id).copied()),
            analysed: analysis.and_then(|a| a.regions.iter().find(is_it)),
            parts,
        };
        waiting::add(&mut found, &of);
        managing::add(&mut found, &of);
    }
    outside::beside_teams(&mut found);
    communication::inside(&mut found);
    let available_s = account.available_ns as f64 * NS;
    let mut losses = joined_unknown(found.losses);
    for loss in &mut losses {
        // What was measured are nanoseconds: sums in another order are the same.
        loss.seconds = (loss.seconds * 1e9).round() / 1e9;
        loss.share = loss.seconds / available_s;
    }
    losses.retain(|l| l.share >= LEAST_SHARE);
    losses.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    losses
}

/// What isn't known of a region is one loss of a kind, however many waits it consists of.
fn joined_unknown(losses: Vec<Loss>) -> Vec<Loss> {
    let mut joined: Vec<Loss> = vec![];
    for loss in losses {
        let same = |l: &&mut Loss| {
            (l.loss, l.region, &l.cause) == (loss.loss, loss.region, &Cause::Unknown)
        };
        match joined
            .iter_mut()
            .find(same)
            .filter(|_| loss.cause == Cause::Unknown)
        {
            Some(known) => known.seconds += loss.seconds,
            None => joined.push(loss),
        }
    }
    joined
}

/// Seconds on the clock outside of parallel regions, and outside of MPI, all processes together. `None`: not known.
fn serial_s(account: &Account) -> Option<f64> {
    let is_known = account.ns(State::Unknown) as f64 <= 0.01 * account.available_ns as f64;
    is_known.then(|| account.ns(State::Serial) as f64 * NS)
}

/// Whether several threads execute code outside of parallel regions. Their times are no time on the clock then, and a function's may be
/// spent beside another's.
fn has_own_threads(summary: &Indexed<'_>) -> bool {
    summary.own.iter().any(|own| own.roots > 1)
}

/// Largest team, at least 1.
fn team(summary: &Indexed<'_>) -> u64 {
    let teams = summary.parallel.iter().map(|p| p.team);
    teams.max().unwrap_or(1).max(1)
}

/// A part of a leaf.
struct Part {
    state: State,
    /// Where.
    site: Option<u32>,
    what: String,
    seconds: f64,
    count: u64,
}

/// What is lost in a parallel region, or outside of all.
struct OfRegion<'a> {
    /// Its site.
    site: Option<u32>,
    /// Its number in the report.
    region: Option<u32>,
    executions: Option<Executions>,
    analysed: Option<&'a RegionAnalysis>,
    parts: Vec<Part>,
}

impl OfRegion<'_> {
    fn executions(&self) -> u64 {
        self.executions.map_or(1, |e| e.executions).max(1)
    }

    fn team(&self) -> u64 {
        self.executions.map_or(1, |e| e.team).max(1)
    }

    fn wall_s(&self) -> f64 {
        self.executions.map_or(0.0, |e| e.wall_s)
    }

    /// Parts with one of these names, by place.
    fn by_site(&self, is: impl Fn(&str) -> bool) -> Sums {
        let these = self.parts.iter().filter(|p| is(&p.what));
        sums(these.map(|part| (part.site, part)))
    }
}

/// Seconds and number by place. They are in the order of the account's parts, as sites' numbers are those of the order in which records
/// were read.
type Sums = Vec<(Option<u32>, (f64, u64))>;

fn sums<'a>(parts: impl Iterator<Item = (Option<u32>, &'a Part)>) -> Sums {
    let mut sums = Sums::new();
    for (site, part) in parts {
        let known = sums.iter().position(|(known, _)| *known == site);
        let at = known.unwrap_or(sums.len());
        if known.is_none() {
            sums.push((site, (0.0, 0)));
        }
        let (_, sum) = &mut sums[at];
        sum.0 += part.seconds;
        sum.1 += part.count;
    }
    sums
}

/// Losses on the way.
struct Found<'a> {
    report: &'a Report,
    account: &'a Account,
    /// As it was recorded, with copies of a line apart.
    recorded: &'a Indexed<'a>,
    /// A line's copies are one site in it.
    summary: &'a Indexed<'a>,
    lines: Lines,
    /// Executions of parallel regions, by number in the report.
    executions: HashMap<u32, Executions>,
    losses: Vec<Loss>,
    /// What comes of threads that lacked a processor, as far as it is not told yet. Nothing if they lacked little.
    queues: Queues,
}

/// How much of a loss comes of threads that had no processor, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lacking {
    /// That certainly does.
    sure_s: f64,
    /// That may do so, or not.
    perhaps_s: f64,
}

impl Lacking {
    /// Of a loss of so many seconds, by what is left of the least and of the most: it is taken from these.
    fn of(seconds: f64, [least, most]: &mut [u64; 2]) -> Lacking {
        let ns = (seconds.max(0.0) / NS) as u64;
        let sure = ns.min(*least);
        let perhaps = (ns - sure).min(most.saturating_sub(sure));
        *least -= sure;
        *most = most.saturating_sub(sure + perhaps);
        Lacking {
            sure_s: sure as f64 * NS,
            perhaps_s: perhaps as f64 * NS,
        }
    }
}

impl Found<'_> {
    /// What threads without a processor cost, if it is a large part of all time: else late threads and slow starts are the program's.
    fn queues(account: &Account, queues: Queues) -> Queues {
        match queues.is_crowded || queues.all as f64 >= CROWDED * account.available_ns as f64 {
            true => queues,
            false => Queues::default(),
        }
    }

    /// Takes from a loss in a region what comes of threads that had no processor, and adds that, as far as it is certain. What may come
    /// of them or not has no known cause. Returns the seconds that have another one.
    fn without_lacking(
        &mut self,
        lacking: Lacking,
        (kind, region): (LossKind, Option<u32>),
        seconds: f64,
    ) -> f64 {
        if let Some(cause) = self.no_processor() {
            self.add(LossKind::Starvation, None, lacking.sure_s, cause);
        }
        self.add(kind, region, lacking.perhaps_s, Cause::Unknown);
        seconds - lacking.sure_s - lacking.perhaps_s
    }

    /// As [`Found::without_lacking`], of what threads waited for a late or slow one.
    fn without_delays(&mut self, may_be_s: f64, of: &OfRegion<'_>, seconds: f64) -> f64 {
        let lacking = Lacking::of(may_be_s, &mut self.queues.delays);
        self.without_lacking(lacking, (LossKind::Waiting, of.region), seconds)
    }

    /// Seconds for which threads wait in a region because others have more to compute there, whoever has the processors.
    fn unequal_s(&self, of: &OfRegion<'_>) -> f64 {
        let copies = of.site.iter().flat_map(|&site| self.lines.copies(site));
        let ns = copies.map(|site| unequal_ns(self.recorded, Some(site)));
        ns.sum::<u64>() as f64 * NS
    }

    fn no_processor(&self) -> Option<Cause> {
        let running = self.report.running.as_ref()?;
        Some(Cause::NoProcessor {
            threads: running.threads,
            processors: running.processors,
            limit: running.limit,
            sharing: running.sharing,
            taken: running.taken,
        })
    }

    fn id(&self, site: u32) -> u32 {
        self.lines.id(site)
    }

    fn site(&self, id: u32) -> Option<u32> {
        self.lines.site(id)
    }

    fn add(&mut self, loss: LossKind, region: Option<u32>, seconds: f64, cause: Cause) {
        if seconds <= 0.0 {
            return;
        }
        let same =
            |l: &&mut Loss| (l.region, &l.cause) == (region, &cause) && cause != Cause::Unknown;
        if let Some(known) = self.losses.iter_mut().find(same) {
            known.seconds += seconds;
            return;
        }
        self.losses.push(Loss {
            loss,
            region,
            seconds,
            share: 0.0,
            cause,
            behind: None,
        });
    }

    /// Adds seconds in a region that are lost because of what its own threads wait for, in the same proportions.
    fn add_alike(&mut self, region: Option<u32>, seconds: f64) {
        let is_its = |l: &&mut Loss| l.region == region && l.loss == LossKind::Waiting;
        let known = self.losses.iter_mut().filter(is_its);
        let all: f64 = known.map(|l| l.seconds).sum();
        if all <= 0.0 {
            return self.add(LossKind::Waiting, region, seconds, Cause::Unknown);
        }
        for loss in self.losses.iter_mut().filter(is_its) {
            loss.seconds += seconds * loss.seconds / all;
        }
    }

    /// Mean own time of the tasks of a place, in seconds, and their number.
    fn tasks(&self, site: u32) -> Option<(f64, u64)> {
        self.mean(site, |c| c == Construct::Task)
    }

    /// Mean own time of the units of a kind at a place, in seconds, and their number.
    fn mean(&self, site: u32, is: fn(ompfuse_format::Construct) -> bool) -> Option<(f64, u64)> {
        let stats = self.summary.at_site(site).iter();
        let stats = stats.filter(|r| r.construct.is_some_and(is));
        let (own, count) = stats.fold((0, 0), |(own, count), r| {
            (own + r.own_ns(), count + r.count())
        });
        (count > 0).then(|| (own as f64 * NS / count as f64, count))
    }
}
