//! A job's report from those of its ranks: each rank leaves a small one, its *summary*, and these are merged one after the other.
//!
//! A summary is a [`Report`] without what grows with threads, call paths and units, so whoever reads reports reads summaries. Merged are
//! sums, extremes, and lists by rank. Times of day are not compared: the ranks' hosts have clocks of their own.

mod account;
mod listed;
mod notes;
mod paths;
mod regions;
mod sum;
mod summary;
#[cfg(test)]
mod tests;

pub use sum::worse;
pub use summary::small;

use crate::clocks::aligned;
use crate::model::ranks::imbalance;
use crate::model::{Mpi, Note, Rank, Report};
use account::Accounts;
use notes::Notes;
use paths::Paths;
use regions::Regions;
use std::collections::BTreeMap;
use sum::Common;

/// Why reports are not of one job.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// There is no rank in it.
    #[error("{0} is of no rank of an MPI program")]
    NoRank(String),
    /// A rank has two folders.
    #[error(
        "rank {rank} is in {one} and in {other}: they are of two launches; give each launch a folder of its own"
    )]
    Twice {
        /// The rank.
        rank: u32,
        /// The folder that came first.
        one: String,
        /// The other one.
        other: String,
    },
    /// Programs or numbers of ranks differ.
    #[error("{one} and {other} are of different jobs: {what}")]
    Differs {
        /// The folder that came first.
        one: String,
        /// The other one.
        other: String,
        /// What differs.
        what: String,
    },
    /// No rank could be read.
    #[error("no rank can be read; {0}")]
    Nothing(String),
}

/// Ranks of a job, merged.
#[derive(Debug, Default)]
pub struct Job {
    /// What is no list by rank or region.
    sum: Option<Report>,
    /// What the first one is called.
    first: String,
    accounts: Accounts,
    regions: Regions,
    ranks: BTreeMap<u32, (Rank, String)>,
    /// The lowest rank of `sum`, which gives what can't be added.
    lowest: u32,
    common: Common,
    notes: Notes,
    /// Folders that can't be read, and why.
    damaged: Vec<(String, String)>,
    /// The call paths, if they are wanted and all ranks have them.
    paths: Option<Paths>,
}

impl Job {
    /// A job of which all ranks of each region are wanted, and the call paths. Memory grows with both.
    pub fn in_detail() -> Job {
        Job {
            paths: Some(Paths::default()),
            regions: Regions::of_all_ranks(),
            ..Job::default()
        }
    }

    /// Notes a rank's folder that can't be read.
    pub fn add_damaged(&mut self, folder: &str, reason: &str) {
        self.damaged.push((folder.to_owned(), reason.to_owned()));
    }

    /// Takes in a rank's report, or that of several. `folder`: what it is called.
    ///
    /// # Errors
    /// [`JobError`] if it is of no rank, or of another job.
    pub fn add(&mut self, folder: &str, mut report: Report) -> Result<(), JobError> {
        let Some(mpi) = report.mpi.take().filter(|m| !m.ranks.is_empty()) else {
            return Err(JobError::NoRank(folder.to_owned()));
        };
        self.check(folder, &report, &mpi)?;
        let ranks: Vec<u32> = mpi.ranks.iter().map(|r| r.rank).collect();
        let lowest = ranks.iter().copied().min().unwrap_or(0);
        let endings = report.sampled.iter_mut().flat_map(|s| &mut s.endings);
        endings.for_each(|ending| ending.rank = Some(lowest));
        self.notes.add(&mut report, &ranks);
        for rank in mpi.ranks {
            let host = (!report.host.is_empty()).then(|| report.host.clone());
            let rank = Rank {
                host: rank.host.or(host),
                exit: rank.exit.or(report.runs.first().and_then(|r| r.exit)),
                ..rank
            };
            self.ranks.insert(rank.rank, (rank, folder.to_owned()));
        }
        let numbers = self
            .regions
            .add(lowest, std::mem::take(&mut report.regions));
        self.common.take(lowest, ranks.len(), &mut report, &numbers);
        let paths = std::mem::take(&mut report.call_paths);
        self.paths = self.paths.take().filter(|_| !paths.is_empty());
        if let Some(all) = &mut self.paths {
            all.add(&paths, |id| numbers.get(&id).copied());
        }
        let losses = std::mem::take(&mut report.losses);
        self.accounts.add_losses(losses, &numbers, &ranks);
        if let Some(account) = report.account.take() {
            self.accounts.add(account, &numbers);
        } else {
            self.accounts.is_known = false;
        }
        let outline = Mpi {
            ranks: vec![],
            missing: vec![],
            ..mpi
        };
        report.mpi = Some(outline);
        without_details(&mut report);
        self.sum = Some(match self.sum.take() {
            Some(mut sum) if self.lowest < lowest => {
                sum::add(&mut sum, report);
                sum
            }
            other => {
                folder.clone_into(&mut self.first);
                self.lowest = lowest;
                other.into_iter().for_each(|sum| sum::add(&mut report, sum));
                report
            }
        });
        Ok(())
    }

    fn check(&self, folder: &str, report: &Report, mpi: &Mpi) -> Result<(), JobError> {
        for rank in &mpi.ranks {
            if let Some((_, known)) = self.ranks.get(&rank.rank) {
                return Err(JobError::Twice {
                    rank: rank.rank,
                    one: known.clone(),
                    other: folder.to_owned(),
                });
            }
        }
        let Some(sum) = &self.sum else { return Ok(()) };
        let size = sum.mpi.as_ref().and_then(|m| m.size);
        let shown = |size: Option<u32>| size.map_or("unknown".to_owned(), |n| n.to_string());
        let what = if sum.program != report.program {
            format!("the programs are {} and {}", sum.program, report.program)
        } else if size != mpi.size {
            let (one, other) = (shown(size), shown(mpi.size));
            format!("the numbers of ranks are {one} and {other}")
        } else {
            return Ok(());
        };
        Err(JobError::Differs {
            one: self.first.clone(),
            other: folder.to_owned(),
            what,
        })
    }

    /// The report of all. `name`: what the user calls the job.
    ///
    /// # Errors
    /// [`JobError`] if no rank was added.
    pub fn finish(mut self, name: &str) -> Result<Report, JobError> {
        let Some(mut report) = self.sum else {
            let (folder, reason) = self.damaged.into_iter().next().unwrap_or_default();
            return Err(JobError::Nothing(format!("{folder}: {reason}")));
        };
        let size = report.mpi.as_ref().and_then(|m| m.size);
        let missing: Vec<u32> = (0..size.unwrap_or(0))
            .filter(|r| !self.ranks.contains_key(r))
            .collect();
        self.damaged.sort();
        for (folder, reason) in self.damaged {
            let note = Note::RankUnreadable { folder, reason };
            report.shortcomings.push(note);
        }
        if !missing.is_empty() {
            report.shortcomings.push(Note::RanksSilent {
                ranks: missing.clone(),
                of: size.unwrap_or(0),
            });
        }
        report.shortcomings.extend(self.notes.finish());
        let ranks: Vec<Rank> = self.ranks.into_values().map(|(rank, _)| rank).collect();
        let thread_s = report.thread_time_s;
        let all = ranks.iter().map(|r| r.rank).collect();
        let (regions, numbers) = self.regions.finish(thread_s, &all);
        report.regions = regions;
        self.common.give(&mut report, &numbers, ranks.len());
        let paths = self.paths.map(|p| p.finish(|id| numbers.get(&id).copied()));
        report.call_paths = paths.unwrap_or_default();
        let host = |rank: Option<u32>| {
            let at = ranks.binary_search_by_key(&rank?, |r| r.rank).ok()?;
            ranks[at].host.as_deref()
        };
        let (account, losses) = self.accounts.finish(&numbers, &report.regions, &host);
        report.losses = losses;
        report.account = account;
        set_times(&mut report);
        let hosts: std::collections::BTreeSet<_> = ranks.iter().map(|r| &r.host).collect();
        if hosts.len() > 1 {
            report.host.clear();
        }
        if let Some(run) = report.runs.first_mut() {
            name.clone_into(&mut run.name);
        }
        if let Some(mpi) = &mut report.mpi {
            mpi.missing = missing;
            mpi.is_apart = true;
            mpi.imbalance_among_ranks = imbalance(ranks.iter().map(|r| r.work_s));
            let mean = |r: &Rank| r.work_s / f64::from(r.threads.max(1));
            let sum: f64 = ranks.iter().map(mean).sum();
            let slowest: f64 = ranks.iter().map(|r| mean(r) * (1.0 + r.imbalance)).sum();
            mpi.imbalance_among_threads = if sum > 0.0 { slowest / sum - 1.0 } else { 0.0 };
            let mut ranks = ranks;
            mpi.clocks = aligned(&mut ranks);
            mpi.ranks = ranks;
        }
        Ok(report)
    }
}

/// What follows from the account. Coverage is not known: which times of ranks are the same only a common clock could tell.
fn set_times(report: &mut Report) {
    let available = report
        .account
        .as_ref()
        .map(|a| a.available_ns as f64 * 1e-9);
    report.available_s = available;
    report.losses_of_s = available;
    report.lost_s = report.lost_s.filter(|_| available.is_some());
    report.parallel_s = None;
    report.coverage = None;
    report.serial_share = None;
    report.speedup_limit = None;
    for region in &mut report.regions {
        let known = available.filter(|&s| s > 0.0);
        region.of_available = known.map_or(region.share, |s| region.time_s / s);
        let probes = report.probes.as_ref().zip(region.probes_estimated_s);
        region.probes_share = probes.and_then(|(all, estimated_s)| all.share_of(estimated_s));
    }
}

/// Leaves out what grows with threads, call paths and units: no summary has it.
pub(crate) fn without_details(report: &mut Report) {
    report.contexts.clear();
    report.locks.clear();
    report.region_counts.clear();
    report.overheads.clear();
    report.properties.clear();
    report.accounting.clear();
    report.scaling = None;
    report.tried = None;
    report.to_try.clear();
}
