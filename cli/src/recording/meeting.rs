//! How the ranks of a job meet in one run folder.
//!
//! The first one that comes makes a file in the folder of the runs (without `-o` in the current one), which is the job's alone: it
//! *leads*. It makes the run folder and writes its path into that file, from which the others have it. Each rank has a file in the run
//! folder (`RankEnd` in `ompfuse_format::run`), which it touches now and then, and in which it says how its program ended. The
//! leader waits for the others if its program did well; else the last one that ends sums up and reports.

use crate::atomic;
use crate::input;
use crate::interrupt;
use crate::output::note;
use crate::rank::Job;
use crate::run_dir::ranks::{Rank, Who, host, known, ranks_in};
use anyhow::{Context, Result, bail};
use ompfuse_format::run::{Exit, RUN_FILE, RankEnd, RankState, rank_file};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Begin of the name of a job's file; behind it stands the job.
const PREFIX: &str = ".ompfuse-job-";
/// The file of the rank that sums up.
const CLAIM: &str = "summing-up";
/// How long a rank waits for the run folder.
const FOR_FOLDER: Duration = Duration::from_secs(60);
/// How long after the leader's start a rank may come.
const FOR_OTHERS: Duration = Duration::from_secs(10);
/// How often a file is touched.
const TOUCH: Duration = Duration::from_secs(5);
/// How often the others are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// After this time it is said who is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The job's file.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    leader: Who,
    /// The run folder, when it is there.
    run: Option<PathBuf>,
}

/// What a rank is to the others.
pub(crate) enum Role {
    /// It makes the run folder, and waits for the others.
    Leader,
    /// It records into this folder.
    Member(PathBuf),
}

/// A rank that has met the others.
pub(crate) struct Meeting {
    job: Job,
    place: PathBuf,
    pub(crate) role: Role,
    began: Instant,
    touched: Cell<Instant>,
    /// The others know the run folder, or all of it is over.
    is_told: Cell<bool>,
}

impl Meeting {
    /// Meets the other ranks in a folder that all of them share.
    pub(crate) fn join(job: Job, folder: &Path) -> Result<Meeting> {
        let place = folder.join(format!("{PREFIX}{}", job.key()));
        let began = Instant::now();
        let role = loop {
            if make(&place)? {
                tidy(folder);
                break Role::Leader;
            }
            if let Some(run) = found(&job, &place)? {
                break Role::Member(run);
            }
            interrupt::hold().check()?;
            if began.elapsed() > FOR_FOLDER {
                bail!(
                    "rank {} has waited {} s for another rank of its job to make a folder; if none is running, remove {}",
                    job.rank,
                    FOR_FOLDER.as_secs(),
                    place.display()
                );
            }
            std::thread::sleep(LOOK);
        };
        Ok(Meeting {
            job,
            place,
            role,
            began,
            touched: Cell::new(Instant::now()),
            is_told: Cell::new(false),
        })
    }

    /// The rank of this command.
    pub(crate) fn rank(&self) -> u32 {
        self.job.rank
    }

    pub(crate) fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader)
    }

    /// Tells the others the run folder that the leader has made.
    pub(crate) fn tell(&self, run: &Path) -> Result<()> {
        take(run, &self.job, &Who::this())?;
        let place = Place {
            leader: Who::this(),
            run: Some(run.to_owned()),
        };
        write(&self.place, &place)?;
        self.is_told.set(true);
        Ok(())
    }

    /// Shows now and then that this rank goes on.
    pub(crate) fn touch(&self, run: &Path) {
        if self.touched.get().elapsed() > TOUCH {
            self.touched.set(Instant::now());
            let file = File::options()
                .write(true)
                .open(run.join(rank_file(self.job.rank)));
            // Once missed does no harm.
            let _ = file.and_then(|f| f.set_modified(SystemTime::now()));
        }
    }

    /// Says how this rank's program ended.
    pub(crate) fn ended(&self, run: &Path, exit: Exit, duration_s: f64) -> Result<()> {
        let rank = Rank {
            who: Who::this(),
            end: RankEnd {
                rank: self.job.rank,
                host: Some(host()),
                state: RankState::Ended(exit),
                duration_s: Some(duration_s),
            },
        };
        write(&run.join(rank_file(self.job.rank)), &rank)
    }

    /// How all ranks ended, for the one that sums up: `None` leaves it to another. A leader that `is_patient` waits for all that go
    /// on. Who isn't may not wait, since a launcher ends a job only when a rank that failed is gone; the last rank that ends sums
    /// up then. Nobody waits for ranks that are gone.
    pub(crate) fn finish(&self, run: &Path, is_patient: bool) -> Option<Vec<RankEnd>> {
        let hold = interrupt::hold();
        let waits = Instant::now();
        let mut told = false;
        loop {
            let mut ranks: Vec<RankEnd> = (0..self.job.size)
                .map(|rank| self.look_at(run, rank))
                .collect();
            let is_interrupted = hold.pending().is_some();
            let goes_on = |r: &&RankEnd| r.state == RankState::GoesOn;
            let came = |r: &&RankEnd| goes_on(r) && r.host.is_some();
            if let Some(first) = ranks.iter().find(came) {
                if !is_patient || is_interrupted {
                    return None;
                }
                if !told && waits.elapsed() > PATIENCE {
                    told = true;
                    let others = match ranks.iter().filter(came).count() - 1 {
                        0 => String::new(),
                        n => format!(" and {n} others"),
                    };
                    note(format_args!(
                        "waiting for the end of rank {}{others}",
                        first.rank
                    ));
                }
            } else if is_interrupted || !ranks.iter().any(|r| goes_on(&r)) {
                for rank in ranks.iter_mut().filter(|r| r.state == RankState::GoesOn) {
                    rank.state = RankState::Missing;
                }
                return claim(run).then_some(ranks);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What is known of a rank.
    fn look_at(&self, run: &Path, rank: u32) -> RankEnd {
        known(&run.join(rank_file(rank))).unwrap_or_else(|| RankEnd {
            rank,
            host: None,
            state: match self.began.elapsed() < FOR_OTHERS {
                true => RankState::GoesOn,
                false => RankState::Missing,
            },
            duration_s: None,
        })
    }

    /// The job's run is over: nobody else comes.
    pub(crate) fn end(&self, run: &Path) {
        let _ = std::fs::remove_file(&self.place);
        for rank in 0..self.job.size {
            let _ = std::fs::remove_file(run.join(rank_file(rank)));
        }
        let _ = std::fs::remove_file(run.join(CLAIM));
    }
}

/// Whether this rank is the one that sums up: the first that finds all at their end.
fn claim(run: &Path) -> bool {
    let file = run.join(CLAIM);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file);
    if made.is_err() {
        return false;
    }
    // Another one may have done all of it by now.
    let is_done = run.join(RUN_FILE).exists();
    if is_done {
        let _ = std::fs::remove_file(&file);
    }
    !is_done
}

/// A leader that could make no run folder leaves the place to others.
impl Drop for Meeting {
    fn drop(&mut self) {
        if self.is_leader() && !self.is_told.get() {
            let _ = std::fs::remove_file(&self.place);
        }
    }
}

/// Makes the job's file, whole at once. False if there is one.
fn make(place: &Path) -> Result<bool> {
    let mut name = place.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let own = PathBuf::from(name);
    write(
        &own,
        &Place {
            leader: Who::this(),
            run: None,
        },
    )?;
    let linked = std::fs::hard_link(&own, place);
    let _ = std::fs::remove_file(&own);
    match linked {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e).with_context(|| format!("cannot make {}", place.display())),
    }
}

/// The run folder of the job's file, once it is there and this rank has a place in it. Its leader may have ended by then: the
/// run is the other ranks' too. A file that nobody needs any more is removed.
fn found(job: &Job, place: &Path) -> Result<Option<PathBuf>> {
    let Ok(text) = input::lasting_text(place) else {
        return Ok(None); // removed just now
    };
    let Ok(found) = serde_json::from_str::<Place>(&text) else {
        return Ok(None);
    };
    let is_gone = found.leader.is_there() == Some(false);
    let Some(run) = found.run else {
        if is_gone {
            remove(place, &found.leader);
        }
        return Ok(None);
    };
    let is_done = run.join(RUN_FILE).exists();
    if !is_done && take(&run, job, &Who::this())? {
        return Ok(Some(run));
    }
    // An earlier launch in the same job is about to end, or was killed.
    let goes_on = |ranks: Vec<RankEnd>| ranks.iter().any(|r| r.state == RankState::GoesOn);
    if is_gone && (is_done || !goes_on(ranks_in(&run))) {
        remove(place, &found.leader);
    }
    Ok(None)
}

/// Removes what leaders of other jobs have left that were killed.
fn tidy(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_place = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let text = is_place.then(|| input::lasting_text(&entry.path()).ok());
        let found = text
            .flatten()
            .and_then(|t| serde_json::from_str::<Place>(&t).ok());
        let goes_on = |run: &PathBuf| ranks_in(run).iter().any(|r| r.state == RankState::GoesOn);
        let is_over =
            |f: &Place| f.leader.is_there() == Some(false) && !f.run.as_ref().is_some_and(goes_on);
        if let Some(found) = found.filter(is_over) {
            remove(&entry.path(), &found.leader);
        }
    }
}

/// Removes the file of a leader that is no more. Another rank may have done so by now, and lead.
fn remove(place: &Path, gone: &Who) {
    let mut name = place.as_os_str().to_owned();
    name.push(format!(".gone-{}", std::process::id()));
    let aside = PathBuf::from(name);
    if std::fs::rename(place, &aside).is_err() {
        return;
    }
    let text = input::lasting_text(&aside).unwrap_or_default();
    let is_it = serde_json::from_str::<Place>(&text).is_ok_and(|found| found.leader == *gone);
    if !is_it {
        let _ = std::fs::hard_link(&aside, place);
    }
    let _ = std::fs::remove_file(&aside);
}

/// Takes a rank's place in the run folder; false if it was taken: by an earlier launch in the same job, which is about to end.
fn take(run: &Path, job: &Job, who: &Who) -> Result<bool> {
    let path = run.join(rank_file(job.rank));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    match file {
        Ok(_) => {}
        Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            return Ok(false);
        }
        Err(e) => return Err(e).with_context(|| format!("cannot make {}", path.display())),
    }
    let rank = Rank {
        who: who.clone(),
        end: RankEnd {
            rank: job.rank,
            host: Some(who.host.clone()),
            state: RankState::GoesOn,
            duration_s: None,
        },
    };
    write(&path, &rank).map(|()| true)
}

fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_vec(value).context("cannot encode a rank's state")?;
    atomic::write(path, &json, 0o600)
}
