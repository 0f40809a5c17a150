//! The files of a job's ranks in a run's folder.

use crate::{input, process};
use ompfuse_format::run::{RankEnd, RankState};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// A rank on another host that has not touched its file for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// A process on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) host: String,
    pid: u32,
    /// When it started, as the kernel tells it.
    start: u64,
}

impl Who {
    pub(crate) fn this() -> Who {
        let pid = std::process::id();
        Who {
            host: host(),
            pid,
            start: process::start_time(pid).unwrap_or(0),
        }
    }

    /// Whether it is still there; `None`: it is on another host.
    pub(crate) fn is_there(&self) -> Option<bool> {
        (self.host == host()).then(|| process::start_time(self.pid) == Some(self.start))
    }
}

pub(crate) fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

/// A rank's file in the run folder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Rank {
    pub(crate) who: Who,
    #[serde(flatten)]
    pub(crate) end: RankEnd,
}

/// What a rank's file says, and whether who has written it is still there; `None` if there is none.
pub(crate) fn known(path: &Path) -> Option<RankEnd> {
    let read = || {
        let text = input::lasting_text(path).ok()?;
        serde_json::from_str::<Rank>(&text).ok()
    };
    let goes_on = |rank: &Rank| rank.end.state == RankState::GoesOn;
    let mut rank = read()?;
    if goes_on(&rank) {
        let is_there = rank.who.is_there().unwrap_or_else(|| {
            let touched = path.metadata().and_then(|m| m.modified()).ok();
            let silence = touched.and_then(|t| t.elapsed().ok());
            silence.is_none_or(|s| s < SILENCE)
        });
        if !is_there {
            rank = read()?; // it may have said how it ended just before it was gone
            if goes_on(&rank) {
                rank.end.state = RankState::Killed;
            }
        }
    }
    Some(rank.end)
}

/// The ranks whose files are in a run's folder: of a run whose leader was killed, or that goes on.
pub(crate) fn ranks_in(run: &Path) -> Vec<RankEnd> {
    let listing = std::fs::read_dir(run).into_iter().flatten().flatten();
    let is_rank = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let number = name
            .strip_prefix("rank-")
            .and_then(|n| n.strip_suffix(".json"));
        number.is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let mut ranks: Vec<RankEnd> = listing
        .filter(is_rank)
        .filter_map(|entry| known(&entry.path()))
        .collect();
    ranks.sort_by_key(|r| r.rank);
    ranks
}
