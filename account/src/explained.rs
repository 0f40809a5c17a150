//! A whole report: what a summary says, and why.

use crate::causes;
use crate::from_summary::indexed::Indexed;
use crate::from_summary::{NS, facts, region_ids};
use crate::model::{Report, State};
use ompfuse_fuse::summary::Summary;

/// From this estimate of the probes' share on they make work look longer. The estimate is of the least that they cost: in caches that
/// the program needs it is several times that.
const LEAST_PROBES: f64 = 0.015;

/// From this share of the available time on, what is not known makes losses lower bounds.
const LEAST_UNKNOWN: f64 = 0.02;

impl Report {
    /// The report of a run's or profile's summary.
    pub fn new(summary: &Summary) -> Report {
        let summary = &Indexed::new(summary);
        let ids = region_ids(summary);
        let mut report = facts(summary, &ids);
        report.scaling = causes::scaling(&report, summary, &ids);
        report.conclude(summary, &ids);
        report
    }

    /// Says what is lost.
    fn conclude(&mut self, summary: &Indexed<'_>, ids: &[u32]) {
        let report = self;
        if let Some(account) = &report.account {
            let scaling = report.scaling.as_ref();
            report.losses = causes::losses(report, account, scaling, summary, ids);
            report.losses_of_s = Some(account.available_ns as f64 * NS);
            // What the useful time lacks is no state of its own.
            let starved_s = causes::starved_s(report, account);
            let of_probes = report.probes.as_ref().map_or(0.0, |p| p.share);
            let unknown = account.ns(State::Unknown) as f64 / account.available_ns.max(1) as f64;
            report.lost_is_least =
                of_probes >= LEAST_PROBES || unknown >= LEAST_UNKNOWN || starved_s > 0.0;
            report.lost_s = Some(account.lost_ns() as f64 * NS + starved_s);
            if let Some(sampled) = &report.sampled {
                causes::behind::add(&mut report.losses, sampled, &report.regions);
            }
        }
    }
}
