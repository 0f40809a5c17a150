//! What an execution of a region would take with other numbers of threads, from its graph.

use super::TEAMS;
use super::graph::{Graph, Play, other_team, play};

/// A time, and between which it may be, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Between {
    pub(super) low: u64,
    pub(super) likely: u64,
    pub(super) high: u64,
}

/// See [`outlook`].
#[derive(Debug, Clone, Default)]
pub(super) struct Outlook {
    /// With each of [`TEAMS`].
    pub(super) predicted: Vec<Between>,
    /// With the threads that it had.
    pub(super) modelled: u64,
    pub(super) assumes_equal: bool,
    /// How many ranges or tasks there would be isn't known, and matters.
    pub(super) by_number: bool,
}

/// So large a part of a predicted time matters.
const MATTERS: f64 = 0.05;

/// Larger graphs are not played: it would take longer than all else.
const MOST_STEPS: usize = 4_000_000;
/// Nor are those whose largest team has more steps. Some four lists of them are in memory at once, 16 bytes each.
const MOST_OF_TEAM: usize = 2_000_000;

/// Of a graph with `team` threads. `around`: forking and joining, in ticks. `None`: it can't be told.
pub(super) fn outlook(graph: &Graph, team: u32, around: u64) -> Option<Outlook> {
    if graph.teams.len() > 1
        || graph.steps.len() > MOST_STEPS
        || of_largest_team(graph) > MOST_OF_TEAM
    {
        return None;
    }
    let mut outlook = Outlook {
        modelled: around.saturating_add(play(graph, Play::default())?.ticks),
        ..Outlook::default()
    };
    for threads in TEAMS {
        if threads == team {
            outlook.predicted.push(Between {
                low: outlook.modelled,
                likely: outlook.modelled,
                high: outlook.modelled,
            });
            continue;
        }
        let other = other_team(graph, threads)?;
        let likely = around.saturating_add(play(&other.graph, Play::default())?.ticks);
        // Code that every thread executes is as long on each, or its work is divided among them.
        let divided = match &other.divided {
            None => likely,
            Some(graph) => around.saturating_add(play(graph, Play::default())?.ticks),
        };
        outlook.assumes_equal |= other.assumes_equal;
        outlook.by_number |= other.by_number as f64 > MATTERS * likely as f64;
        outlook.predicted.push(Between {
            low: likely.min(divided).saturating_sub(other.shorter),
            likely,
            high: likely.max(divided).saturating_add(other.longer),
        });
    }
    Some(outlook)
}

/// Steps of the members of the largest team that is looked at.
fn of_largest_team(graph: &Graph) -> usize {
    let members = graph.teams.iter().flat_map(|t| &t.members);
    let steps = |&member: &u32| {
        let strand = &graph.strands[member as usize];
        (strand.end - strand.first) as usize
    };
    let longest = members.map(steps).max().unwrap_or(0);
    longest.saturating_mul(TEAMS[TEAMS.len() - 1] as usize)
}
