//! A job's report from those of its ranks: each rank leaves a small one, its *summary*, and these are merged one after the other.
//!
//! A summary is a [`Report`] without what grows with threads, call paths and units, so whoever reads reports reads summaries. Merged are
//! sums, extremes, and lists by rank. Times of day are not compared: the ranks' hosts have clocks of their own.

mod account;
mod paths;
mod regions;
mod summary;

pub use summary::{MOST_BYTES, condensed, rows};

use crate::clocks::aligned;
use crate::model::ranks::imbalance;
use crate::model::{Mpi, Note, ProbeTime, Rank, Report, RunInfo, Running, Serial, UnmatchedXus};
use account::Accounts;
use ompfuse_format::run::{Exit, RankState};
use paths::Paths;
use regions::Regions;
use std::collections::BTreeMap;

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
    /// Notes by kind: the ranks, and what is said of the first.
    notes: Vec<(Note, Vec<u32>)>,
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
        self.note(&mut report, &ranks);
        for rank in mpi.ranks {
            let host = (!report.host.is_empty()).then(|| report.host.clone());
            let rank = Rank {
                host: rank.host.or(host),
                exit: rank.exit.or(report.runs.first().and_then(|r| r.exit)),
                ..rank
            };
            self.ranks.insert(rank.rank, (rank, folder.to_owned()));
        }
        let numbers = self.regions.add(std::mem::take(&mut report.regions));
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
        match &mut self.sum {
            None => {
                folder.clone_into(&mut self.first);
                report.mpi = Some(outline);
                self.sum = Some(report);
            }
            Some(sum) => add(sum, report, &outline),
        }
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

    /// Collects what makes a rank's numbers incomplete. That other ranks are missing is no news here.
    fn note(&mut self, report: &mut Report, ranks: &[u32]) {
        let ended = report.runs.first().and_then(|r| r.exit);
        let ended = ended.filter(|exit| *exit != Exit::Code(0));
        if let (Some(exit), [rank]) = (ended, ranks) {
            let state = RankState::Ended(exit);
            self.notes.push((Note::Rank { rank: *rank, state }, vec![]));
        }
        for note in std::mem::take(&mut report.shortcomings) {
            if matches!(note, Note::RanksSilent { .. } | Note::RanksMissing { .. }) {
                continue;
            }
            if matches!(note, Note::Rank { .. }) {
                self.notes.push((note, vec![]));
                continue;
            }
            let same = |(known, _): &&mut (Note, Vec<u32>)| known.is_like(&note);
            match self.notes.iter_mut().find(same) {
                Some((_, known)) => known.extend(ranks),
                None => self.notes.push((note, ranks.to_vec())),
            }
        }
    }

    /// The report of all. `name`: what the user calls the job.
    ///
    /// # Errors
    /// [`JobError`] if no rank was added.
    pub fn finish(self, name: &str) -> Result<Report, JobError> {
        let Some(mut report) = self.sum else {
            let (folder, reason) = self.damaged.into_iter().next().unwrap_or_default();
            return Err(JobError::Nothing(format!("{folder}: {reason}")));
        };
        let size = report.mpi.as_ref().and_then(|m| m.size);
        let missing: Vec<u32> = (0..size.unwrap_or(0))
            .filter(|r| !self.ranks.contains_key(r))
            .collect();
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
        report.shortcomings.extend(at_ranks(self.notes));
        let ranks: Vec<Rank> = self.ranks.into_values().map(|(rank, _)| rank).collect();
        let thread_s = report.thread_time_s;
        let all = ranks.iter().map(|r| r.rank).collect();
        let (regions, numbers) = self.regions.finish(thread_s, &all);
        report.regions = regions;
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
    report.lifetime_s = None;
    report.parallel_s = None;
    report.coverage = None;
    report.serial_share = None;
    report.speedup_limit = None;
    for region in &mut report.regions {
        let known = available.filter(|&s| s > 0.0);
        region.of_available = known.map_or(region.share, |s| region.time_s / s);
    }
}

/// Most notes about single ranks that are told one by one.
const MOST_ENDS: usize = 20;

fn at_ranks(notes: Vec<(Note, Vec<u32>)>) -> Vec<Note> {
    let (ends, others): (Vec<_>, Vec<_>) = notes.into_iter().partition(|(_, r)| r.is_empty());
    let more = ends
        .iter()
        .skip(MOST_ENDS)
        .filter_map(|(note, _)| match note {
            Note::Rank { rank, .. } => Some(*rank),
            _ => None,
        });
    let more: Vec<u32> = more.collect();
    let first = ends.get(MOST_ENDS).map(|(note, _)| note.clone());
    let mut told: Vec<Note> = ends.into_iter().take(MOST_ENDS).map(|(n, _)| n).collect();
    let folded = first.map(|note| (note, more));
    told.extend(
        folded
            .into_iter()
            .chain(others)
            .map(|(note, ranks)| Note::AtRanks {
                ranks,
                note: Box::new(note),
            }),
    );
    told
}

/// Adds what has neither ranks nor regions.
fn add(sum: &mut Report, more: Report, mpi: &Mpi) {
    sum.threads += more.threads;
    sum.duration_s = sum.duration_s.zip(more.duration_s).map(|(a, b)| a.max(b));
    sum.xus += more.xus;
    sum.thread_time_s += more.thread_time_s;
    sum.lost_s = sum.lost_s.zip(more.lost_s).map(|(a, b)| a + b);
    sum.lost_is_least |= more.lost_is_least;
    for (run, other) in sum.runs.iter_mut().zip(&more.runs) {
        add_run(run, other);
    }
    for module in more.modules {
        if !sum.modules.contains(&module) {
            sum.modules.push(module);
        }
    }
    add_serial(&mut sum.serial, &more.serial);
    sum.probes = sum
        .probes
        .take()
        .zip(more.probes)
        .map(|(a, b)| probes(&a, &b));
    sum.running = sum
        .running
        .take()
        .zip(more.running)
        .map(|(a, b)| running(&a, &b));
    for unmatched in more.unmatched {
        let name = |u: &UnmatchedXus| (u.run, u.name.clone(), u.kind, u.because);
        let same = |u: &&mut UnmatchedXus| name(u) == name(&unmatched);
        match sum.unmatched.iter_mut().find(same) {
            Some(known) => known.count += unmatched.count,
            None => sum.unmatched.push(unmatched),
        }
    }
    if let Some(known) = &mut sum.mpi {
        known.serial_s += mpi.serial_s;
        known.parallel_s += mpi.parallel_s;
    }
}

fn add_run(sum: &mut RunInfo, more: &RunInfo) {
    sum.duration_s = sum.duration_s.zip(more.duration_s).map(|(a, b)| a.max(b));
    if sum.exit == Some(Exit::Code(0)) {
        sum.exit = more.exit;
    }
    sum.xus += more.xus;
    sum.lost_records += more.lost_records;
    sum.switches = sum.switches.zip(more.switches).map(|(a, b)| a + b);
    sum.events.retain(|e| more.events.contains(e));
    sum.sums_only |= more.sums_only;
}

fn add_serial(sum: &mut Serial, more: &Serial) {
    sum.program_s += more.program_s;
    sum.idle_s += more.idle_s;
    sum.unknown_s += more.unknown_s;
    sum.events.retain(|name, _| more.events.contains_key(name));
    for (name, count) in &mut sum.events {
        *count += more.events[name];
    }
}

/// Both together: their shares are of what their times are shares of.
fn probes(a: &ProbeTime, b: &ProbeTime) -> ProbeTime {
    let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    let of = |p: &ProbeTime, value: f64| ratio(p.estimated_s, value);
    let estimated_s = a.estimated_s + b.estimated_s;
    ProbeTime {
        estimated_s,
        share: ratio(estimated_s, of(a, a.share) + of(b, b.share)),
        interval_s: ratio(estimated_s, of(a, a.interval_s) + of(b, b.interval_s)),
        most_at: None,
        remedy: None,
    }
}

fn running(a: &Running, b: &Running) -> Running {
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    let wanted_s = a.wanted_s + b.wanted_s;
    let not_running_s = a.not_running_s + b.not_running_s;
    Running {
        threads: a.threads + b.threads,
        processes: a.processes + b.processes,
        processors: None, // how many of these are the same is not known
        limit: None,
        stolen_s: None,
        stolen: None,
        used: None,
        taken: None,
        sharing: a.sharing.filter(|_| a.sharing == b.sharing),
        fewer: None,
        worked_s: sum(a.worked_s, b.worked_s),
        asleep_s: sum(a.asleep_s, b.asleep_s),
        wanted_s,
        not_running_s,
        not_running: if wanted_s > 0.0 {
            not_running_s / wanted_s
        } else {
            0.0
        },
        without_processor_s: sum(a.without_processor_s, b.without_processor_s),
        queued_s: sum(a.queued_s, b.queued_s),
        is_starved: a.is_starved || b.is_starved,
    }
}
