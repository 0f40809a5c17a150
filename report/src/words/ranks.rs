//! Ranks of MPI programs: those that did not end as they should, and those that come late.

use super::notes;
use ompfuse_account::from_summary::ranks::ends;
use ompfuse_account::model::{Clocks, Latest};
use ompfuse_account::units::seconds;
use ompfuse_format::run::{Exit, RankEnd, RankState};

/// What is said of ranks that did not end as they should: a line each, and one for all that never came.
pub fn rank_ends(ranks: &[RankEnd]) -> Vec<String> {
    ends(ranks).iter().filter_map(notes::one).collect()
}

/// Numbers in ascending order, with a dash for what follows each other.
fn listed(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, .., last] if run.len() > 2 => parts.push(format!("{first}-{last}")),
            few => parts.extend(few.iter().map(u32::to_string)),
        }
    }
    parts.join(", ")
}

/// How clocks of several hosts were aligned, and who comes late by them.
pub(crate) fn clocks(clocks: &Clocks) -> Vec<String> {
    let mut told = vec![];
    let used = match clocks.meetings > u64::from(clocks.used) {
        true => format!("{} of {}", clocks.used, clocks.meetings),
        false => clocks.used.to_string(),
    };
    if clocks.hosts.len() > 1 {
        told.push(format!(
            "the clocks of {} hosts, aligned by {used} collective calls of all ranks, agree to {}",
            clocks.hosts.len(),
            seconds(clocks.error_s)
        ));
    }
    if !clocks.left_out.is_empty() {
        told.push(format!(
            "not compared by clock, since its calls or its clock contradict the others': rank {}",
            listed(&clocks.left_out)
        ));
    }
    let is_sure = |l: &Latest| l.late_s > 2.0 * clocks.error_s && 2 * l.last >= clocks.used;
    if let Some(latest) = clocks.latest.filter(is_sure) {
        told.push(format!(
            "rank {} comes to collective calls {} after the first rank in the mean, and last to {} of {}",
            latest.rank,
            seconds(latest.late_s),
            latest.last,
            clocks.used
        ));
    }
    told
}

/// How a rank ended; `None` if there is nothing to say.
pub(super) fn end(number: u32, state: RankState) -> Option<String> {
    match state {
        RankState::Ended(Exit::Code(0)) | RankState::Missing => None,
        RankState::Ended(exit) => Some(match ended(exit) {
            Some(ended) => format!("rank {number} {ended}"),
            None => killed(number),
        }),
        RankState::Killed => Some(killed(number)),
        RankState::GoesOn => Some(format!("rank {number}: its end was not waited for")),
    }
}

fn killed(number: u32) -> String {
    format!("rank {number}: the command that recorded it was killed")
}

/// How a program ended, as what follows its name; `None` if nobody has seen it.
pub(crate) fn ended(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(code) => Some(format!("ended with status {code}")),
        Exit::Signal(signal) => Some(format!("was ended by signal {signal}")),
        Exit::Unknown => None,
    }
}

/// Of ranks that never came.
pub(super) fn missing(ranks: &[u32]) -> String {
    let (word, it) = match ranks.len() {
        1 => ("rank", "it"),
        _ => ("ranks", "them"),
    };
    format!(
        "not recorded: {word} {}, since the launcher has started no ompfuse for {it} in this folder",
        listed(ranks)
    )
}

/// What is said of several ranks.
pub(super) fn at(ranks: &[u32], what: &str) -> String {
    match ranks {
        [] => what.to_owned(),
        [rank] => format!("rank {rank}: {what}"),
        [first, others @ ..] => format!("rank {first}: {what}; likewise rank {}", listed(others)),
    }
}

/// Of ranks that left no records.
pub(super) fn silent(ranks: &[u32], of: u32) -> String {
    let word = match ranks.len() {
        1 => "rank",
        _ => "ranks",
    };
    format!("nothing was recorded of {word} {} of {of}", listed(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_did_not_end_well_are_named() {
        assert_eq!(end(3, RankState::Ended(Exit::Code(0))), None);
        for (state, text) in [
            (
                RankState::Ended(Exit::Signal(9)),
                "rank 3 was ended by signal 9",
            ),
            (
                RankState::Ended(Exit::Code(7)),
                "rank 3 ended with status 7",
            ),
            (RankState::Killed, "rank 3: the command"),
        ] {
            assert!(
                end(3, state).is_some_and(|s| s.starts_with(text)),
                "{state:?}"
            );
        }
    }

    #[test]
    fn ranks_that_never_came_share_a_line() {
        let missing = |rank| RankEnd {
            rank,
            host: None,
            state: RankState::Missing,
            duration_s: None,
        };
        let lines = rank_ends(&[1, 2, 3, 4, 7, 9, 10].map(missing));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("not recorded: ranks 1-4, 7, 9, 10, "));
        assert!(rank_ends(&[missing(3)])[0].starts_with("not recorded: rank 3, "));
        assert!(rank_ends(&[]).is_empty());
    }
}
