//! Which threads have executed a parallel region together.

use std::collections::HashMap;

/// A team, by position; 0: nobody.
pub(super) type TeamId = u32;

/// Threads that have a part of one parallel region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// Positions in [`Timeline::lanes`](super::Timeline::lanes), by the number in the team.
    pub members: Vec<usize>,
}

/// Every set of threads that was a team, once. Executions of regions are many, teams are few.
#[derive(Debug, Default)]
pub(super) struct Teams {
    /// A team is one with one member less, and a member: number in the team, and lane.
    list: Vec<(TeamId, (u32, usize))>,
    known: HashMap<(TeamId, (u32, usize)), TeamId>,
}

impl Teams {
    /// A team with one member more.
    pub(super) fn with(&mut self, team: TeamId, member: (u32, usize)) -> TeamId {
        let next = self.list.len() as TeamId + 1;
        let id = *self.known.entry((team, member)).or_insert(next);
        if id == next {
            self.list.push((team, member));
        }
        id
    }

    pub(super) fn get(&self, mut team: TeamId) -> Team {
        let mut members = vec![];
        while let Some(at) = team.checked_sub(1) {
            let (rest, member) = self.list[at as usize];
            members.push(member);
            team = rest;
        }
        members.sort_unstable();
        members.dedup();
        Team {
            members: members.into_iter().map(|(_, lane)| lane).collect(),
        }
    }
}

impl<'a> super::Timeline<'a> {
    /// The team of a parallel region, or of a span that belongs to one (a thread's part, and what is around it), by its position
    /// among the run's. `None`: nobody has executed it, as far as it is on record.
    pub fn team_of(&self, lane: &super::Lane, span: &super::Span<'_>) -> Option<u32> {
        let fork = self.forks[lane.process as usize].get(&span.region()?)?;
        Some(fork.team).filter(|&team| team != 0)
    }

    /// The members of a team.
    ///
    /// # Panics
    /// If there is no such team.
    pub fn team(&self, team: u32) -> Team {
        self.teams.get(team)
    }
}

impl super::Span<'_> {
    /// The node of the parallel region that this is, or is a thread's part of, or is around such a part.
    pub fn region(&self) -> Option<u64> {
        use super::Kind;
        let region = match self.kind {
            Kind::Startup | Kind::End | Kind::Shutdown => self.parent,
            Kind::Interval if self.construct.is_part() => self.parent,
            Kind::Interval if self.construct.is_fork() => self.node,
            _ => 0,
        };
        Some(region).filter(|&region| region != 0)
    }
}
