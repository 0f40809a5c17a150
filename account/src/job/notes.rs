//! What makes ranks' numbers incomplete.

use super::listed::Listed;
use crate::model::{Note, Report};
use ompfuse_format::run::{Exit, RankState};
use std::collections::{BTreeMap, BTreeSet};

/// Most notes about single ranks that are told one by one.
const MOST_ENDS: usize = 20;

/// Notes of ranks.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Of single ranks: how they ended.
    ends: BTreeMap<u32, RankState>,
    /// The others by kind: what is said of the first rank, and all ranks.
    kinds: Listed<(Note, BTreeSet<u32>)>,
}

impl Notes {
    /// Takes those of a report. That other ranks are missing is no news here.
    pub(super) fn add(&mut self, report: &mut Report, ranks: &[u32]) {
        let ended = report.runs.first().and_then(|r| r.exit);
        if let (Some(exit), [rank]) = (ended.filter(|e| *e != Exit::Code(0)), ranks) {
            self.ends.insert(*rank, RankState::Ended(exit));
        }
        let lowest = ranks.iter().copied().min().unwrap_or(0);
        let mut others = vec![];
        for note in std::mem::take(&mut report.shortcomings) {
            match note {
                Note::RanksSilent { .. } | Note::RanksMissing { .. } => {}
                Note::Rank { rank, state } => drop(self.ends.insert(rank, state)),
                note => others.push((note, ranks.iter().copied().collect())),
            }
        }
        let same = |a: &(Note, BTreeSet<u32>), b: &(Note, BTreeSet<u32>)| a.0.is_like(&b.0);
        let join = |a: &mut (Note, BTreeSet<u32>), b: (Note, BTreeSet<u32>)| a.1.extend(b.1);
        self.kinds.add(lowest, others, same, join);
    }

    /// All of them. Of many ranks that ended badly only the first are told one by one.
    pub(super) fn finish(self) -> Vec<Note> {
        let ends = self.ends.into_iter();
        let mut ends: Vec<Note> = ends
            .map(|(rank, state)| Note::Rank { rank, state })
            .collect();
        let more = ends.split_off(ends.len().min(MOST_ENDS));
        let rank = |note: &Note| match note {
            Note::Rank { rank, .. } => Some(*rank),
            _ => None,
        };
        let ranks = more.iter().filter_map(rank).collect();
        let folded = more.first().map(|note| (note.clone(), ranks));
        let others = folded.into_iter().chain(self.kinds.finish());
        ends.extend(others.map(|(note, ranks)| Note::AtRanks {
            ranks: ranks.into_iter().collect(),
            note: Box::new(note),
        }));
        ends
    }
}
