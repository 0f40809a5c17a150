//! The graph that a region would have with another number of threads.
//!
//! Threads beyond those on record do what these do, but for blocks and tasks. Static loops are dealt anew, and ranges that shrink are made
//! anew; what else asks for its ranges keeps them.

mod anew;

use super::division::Division;
use super::simulate::sum;
use super::{Graph, Kind, Sharing, Step, Strand, Team, Unit};
use crate::run::nodes::NONE;
use crate::span::replay::Schedule;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Another team, and what it rests on.
#[derive(Debug, Clone, Default)]
pub(in crate::span) struct OtherTeam {
    pub(in crate::span) graph: Graph,
    /// Ranges were divided: their iterations are taken to last equally long.
    pub(in crate::span) assumes_equal: bool,
    /// How much longer the divided loops' slowest threads may take, in ticks: where in a range its time was spent isn't on record.
    pub(in crate::span) longer: u64,
    /// How much shorter.
    pub(in crate::span) shorter: u64,
    /// The same, where the code that every thread executes for itself is not as long on each: its work is divided among the threads. `None`
    /// without such code.
    pub(in crate::span) divided: Option<Graph>,
    /// The part of `longer` and `shorter` that comes of how many ranges or tasks there would be, which isn't known.
    pub(in crate::span) by_number: u64,
}

/// What a thread does from one barrier to the next.
type Phase = Vec<Step>;

/// `None`: not all threads come to the same barriers, or there are regions inside.
pub(in crate::span) fn other_team(graph: &Graph, threads: u32) -> Option<OtherTeam> {
    let [team] = &graph.teams[..] else {
        return None;
    };
    let steps = |s: &Strand| &graph.steps[s.first as usize..s.end as usize];
    let members: Vec<Vec<Phase>> = (team.members.iter())
        .map(|&m| phases(steps(&graph.strands[m as usize])))
        .collect();
    let count = members.first()?.len();
    if members.iter().any(|m| m.len() != count) {
        return None;
    }
    let mut other = OtherTeam {
        graph: graph.clone(),
        ..OtherTeam::default()
    };
    for sharing in 0..graph.sharings.len() {
        other.deal(sharing, threads);
    }
    other.count_tasks(count_of(team), threads);
    let mut lists: Vec<Vec<Step>> = vec![vec![]; threads as usize];
    let mut each = 0;
    for phase in 0..count {
        let of: Vec<&Phase> = members.iter().map(|m| &m[phase]).collect();
        let longest = of.iter().map(|p| own_code(p)).max().unwrap_or(0);
        each = u64::saturating_add(each, longest);
        for (thread, list) in lists.iter_mut().enumerate() {
            list.extend(with_blocks(&of, thread));
            if thread == 0 {
                // Nobody else creates them.
                let dropped = of.iter().skip(threads as usize);
                list.extend(dropped.flat_map(|p| p.iter().copied().filter(is_creation)));
            }
            if phase + 1 < count {
                list.push(Step::Barrier);
            }
        }
    }
    if each > 0 {
        let mut divided = other.graph.clone();
        let scaled = lists
            .iter()
            .map(|list| scaled(list, count_of(team), threads));
        put(&mut divided, scaled.collect(), &team.members);
        other.divided = Some(divided);
    }
    put(&mut other.graph, lists, &team.members);
    Some(other)
}

fn count_of(team: &Team) -> u32 {
    team.members.len() as u32
}

/// A thread's steps, where its own code is a share of what all threads had.
fn scaled(list: &[Step], had: u32, threads: u32) -> Vec<Step> {
    let scale = |step: &Step| match *step {
        Step::Code { ticks, rec } => Step::Code {
            ticks: (u128::from(ticks) * u128::from(had) / u128::from(threads))
                .min(u128::from(u64::MAX)) as u64,
            rec,
        },
        step => step,
    };
    list.iter().map(scale).collect()
}

fn phases(steps: &[Step]) -> Vec<Phase> {
    let phases = steps.split(|s| *s == Step::Barrier);
    phases.map(<[Step]>::to_vec).collect()
}

fn own_code(steps: &[Step]) -> u64 {
    let code = steps.iter().map(|s| match s {
        Step::Code { ticks, .. } => *ticks,
        _ => 0,
    });
    sum(code)
}

fn is_creation(step: &Step) -> bool {
    matches!(
        step,
        Step::Create { .. }
            | Step::Inline { .. }
            | Step::Fulfill { .. }
            | Step::Wait
            | Step::WaitAll
            | Step::WaitGroup { .. }
            | Step::WaitFor { .. }
    )
}

/// A thread's phase: that of a thread on record, where blocks of all threads are at their places.
fn with_blocks(of: &[&Phase], thread: usize) -> Phase {
    let is_new = thread >= of.len();
    let own = of[thread % of.len()];
    let mut phase: Phase = match is_new {
        true => (own.iter().copied())
            .filter(|s| !is_creation(s) && !matches!(s, Step::Block { .. }))
            .collect(),
        false => own.clone(),
    };
    let mut blocks = Blocks::default();
    for (_, steps) in of.iter().enumerate().filter(|(at, _)| *at != thread) {
        blocks.add(steps);
    }
    if !blocks.0.is_empty() {
        let own = std::mem::take(&mut phase);
        for step in own {
            if let Step::Share { sharing } = step {
                phase.extend(blocks.0.remove(&Some(sharing)).into_iter().flatten());
            }
            phase.push(step);
        }
        // In front of loops that this thread doesn't come to.
        phase.extend(blocks.rest());
    }
    phase
}

/// Blocks in their order, by the loop that follows them.
#[derive(Debug, Default)]
struct Blocks(BTreeMap<Option<u32>, Vec<Step>>);

impl Blocks {
    /// Those of a thread's phase.
    fn add(&mut self, steps: &[Step]) {
        let mut open: Vec<Step> = vec![];
        for &step in steps {
            match step {
                Step::Block { .. } => open.push(step),
                Step::Share { sharing } if !open.is_empty() => {
                    self.0.entry(Some(sharing)).or_default().append(&mut open);
                }
                _ => {}
            }
        }
        if !open.is_empty() {
            self.0.entry(None).or_default().append(&mut open);
        }
    }

    /// Those that are left, by their loops and then those that no loop follows.
    fn rest(mut self) -> impl Iterator<Item = Step> {
        let last = self.0.remove(&None);
        self.0.into_values().chain(last).flatten()
    }
}

/// Gives a graph these threads, of which some were there.
fn put(graph: &mut Graph, lists: Vec<Vec<Step>>, known: &[u32]) {
    let mut members = vec![];
    for (member, list) in (0..).zip(lists) {
        let first = graph.steps.len() as u32;
        graph.steps.extend(list);
        let end = graph.steps.len() as u32;
        let strand = match known.get(member as usize) {
            Some(&strand) => strand,
            None => {
                let strand = graph.strands.len() as u32;
                graph.strands.push(Strand {
                    kind: Kind::Member(member),
                    task: strand,
                    ..graph.strands[known[0] as usize]
                });
                strand
            }
        };
        let of = &mut graph.strands[strand as usize];
        (of.first, of.end) = (first, end);
        members.push(strand);
    }
    // Whose thread isn't there any more: its tasks are the first thread's.
    if let Some(&first) = members.first() {
        for strand in &mut graph.strands {
            let is_gone = |s: u32| known.contains(&s) && !members.contains(&s);
            if is_gone(strand.creator) {
                strand.creator = first;
            }
            if is_gone(strand.task) {
                strand.task = first;
            }
        }
    }
    graph.teams[0].members = members;
}

impl OtherTeam {
    /// Deals the units of a loop to so many threads, as its schedule would.
    fn deal(&mut self, sharing: usize, threads: u32) {
        let of = Rc::clone(&self.graph.sharings[sharing]);
        match of.division {
            Division::Kept => {}
            Division::Shrinking(rule) => return self.shrink(sharing, rule, threads),
            Division::Unknown => return self.any_ranges(&of.units, threads),
        }
        match of.schedule {
            Schedule::Dynamic(chunk) | Schedule::Guided(chunk) => match of.units[..] {
                // A thread on its own may be given all at once. Such schedules are for iterations that differ.
                [only] if only.iterations > chunk.max(1) => {
                    let divided = self.blocks(&[only], u64::from(threads));
                    self.graph.sharings[sharing] = Rc::new(of.with(divided));
                    self.longer = self.longer.saturating_add(only.ticks);
                }
                _ => {}
            },
            Schedule::StaticChunk(_) => {
                drop(of);
                let units = &mut Rc::make_mut(&mut self.graph.sharings[sharing]).units;
                for (unit, member) in units.iter_mut().zip((0..threads).cycle()) {
                    unit.member = member;
                }
            }
            Schedule::Static => {
                let units = &of.units;
                // Of one range for each thread it isn't known whether it was a chunk. Where ranges wait for each other that makes the time.
                if units.iter().any(|u| self.waits(u)) {
                    self.longer = self
                        .longer
                        .saturating_add(sum(units.iter().map(|u| u.ticks)));
                }
                let divided = self.blocks(units, u64::from(threads));
                self.graph.sharings[sharing] = Rc::new(of.with(divided));
            }
        }
    }

    /// Whether its iterations wait for others.
    fn waits(&self, unit: &Unit) -> bool {
        let Some(strand) = self.graph.strands.get(unit.strand as usize) else {
            return false;
        };
        let steps = &self.graph.steps[strand.first as usize..strand.end as usize];
        let waits = |s: &Step| matches!(s, Step::Turn { .. } | Step::Await { .. });
        steps.iter().any(waits)
    }

    /// As gcc and clang do: the first `total % threads` threads have one iteration more.
    fn blocks(&mut self, units: &[Unit], threads: u64) -> Vec<Unit> {
        let total = sum(units.iter().map(|u| u.iterations));
        let (each, more) = (total / threads, total % threads);
        let mut dealt = vec![];
        let mut is_divided = false;
        let mut block_end = 0;
        let (mut at, mut before) = (0, 0);
        for member in 0..threads {
            let begin = block_end;
            block_end = u64::saturating_add(block_end, each + u64::from(member < more));
            while let Some(unit) = units.get(at) {
                let (from, to) = (
                    begin.max(before),
                    block_end.min(u64::saturating_add(before, unit.iterations)),
                );
                if from < to {
                    is_divided |= to - from < unit.iterations;
                    dealt.push(self.piece(unit, from - before, to - before, member as u32));
                }
                if u64::saturating_add(before, unit.iterations) > block_end {
                    break;
                }
                before = before.saturating_add(unit.iterations);
                at += 1;
            }
        }
        if is_divided {
            self.assumes_equal = true;
            let [shorter, longer] = bounds(units, &dealt, threads);
            self.shorter = self.shorter.saturating_add(shorter);
            self.longer = self.longer.saturating_add(longer);
        }
        dealt
    }

    /// Iterations `from..to` of a unit.
    fn piece(&mut self, unit: &Unit, from: u64, to: u64, member: u32) -> Unit {
        let part = |ticks: u64, n: u64| {
            (u128::from(ticks) * u128::from(n) / u128::from(unit.iterations)) as u64
        };
        let mut piece = Unit {
            first: unit.first.wrapping_add_unsigned(from),
            iterations: to - from,
            ticks: part(unit.ticks, to) - part(unit.ticks, from),
            member,
            ..*unit
        };
        if unit.strand != NONE && to - from < unit.iterations {
            piece.strand = self.slice(unit, from, to);
        }
        piece
    }

    /// The steps of these iterations. What holds a lock or a turn is not divided.
    fn slice(&mut self, unit: &Unit, from: u64, to: u64) -> u32 {
        let graph = &mut self.graph;
        let strand = graph.strands[unit.strand as usize];
        let steps = graph.steps[strand.first as usize..strand.end as usize].to_vec();
        let all = own_code(&steps).max(1);
        let bound = |n: u64| (u128::from(all) * u128::from(n) / u128::from(unit.iterations)) as u64;
        let (begin, end) = (bound(from), bound(to));
        let is_last = to == unit.iterations;
        let (mut passed, mut held, mut is_inside) = (0u64, 0, false);
        let first = graph.steps.len() as u32;
        for step in steps {
            let ticks = own_code(&[step]);
            if held == 0 {
                is_inside = passed.saturating_add(ticks) >= begin && (passed < end || is_last);
            }
            match step {
                Step::Enter { .. } | Step::Turn { .. } => held += 1,
                Step::Leave { .. } | Step::Turned { .. } => held -= 1,
                _ => {}
            }
            let step = match step {
                Step::Code { rec, .. } if held == 0 => Step::Code {
                    ticks: passed
                        .saturating_add(ticks)
                        .min(end)
                        .saturating_sub(passed.max(begin)),
                    rec,
                },
                step => step,
            };
            passed = passed.saturating_add(ticks);
            // Of a boundary only the later slice has what takes no time.
            let is_before = ticks == 0 && passed <= begin && begin > 0 && held == 0;
            if is_inside && !is_before {
                graph.steps.push(step);
            }
        }
        let end = graph.steps.len() as u32;
        graph.strands.push(Strand {
            first,
            end,
            ..strand
        });
        graph.strands.len() as u32 - 1
    }
}

/// So many ranges that hardly differ are taken to be of iterations that don't differ.
const ENOUGH_RANGES: usize = 4;
/// By so much may the slowest of them exceed the mean.
const EVEN: f64 = 1.05;

/// How much shorter and longer the slowest thread may take than if iterations of one range lasted equally long. Of a divided range all of the
/// time may be in one of its pieces, or none.
fn bounds(units: &[Unit], dealt: &[Unit], threads: u64) -> [u64; 2] {
    let all = sum(units.iter().map(|u| u.ticks));
    let iterations = sum(units.iter().map(|u| u.iterations));
    let rate = |u: &Unit| u.ticks as f64 / u.iterations.max(1) as f64;
    let slowest = units.iter().map(rate).fold(0.0, f64::max);
    let block = iterations as f64 / threads as f64;
    let (mean, at_slowest) = (all as f64 / threads as f64, slowest * block);
    if units.len() >= ENOUGH_RANGES && at_slowest <= EVEN * mean {
        return [0, (at_slowest - mean).max(0.0) as u64];
    }
    // By thread: the ranges that it has as a whole, those that it has a part of, and what it was dealt.
    let mut times = vec![[0u64; 3]; threads as usize];
    let mut ranges = units.iter();
    let mut range = ranges.next();
    for piece in dealt {
        while range.is_some_and(|of| of.rec != piece.rec) {
            range = ranges.next();
        }
        let Some(of) = range else {
            break;
        };
        let is_whole = piece.iterations == of.iterations;
        let more = [if is_whole { of.ticks } else { 0 }, of.ticks, piece.ticks];
        let of_thread = &mut times[piece.member as usize];
        for (time, more) in of_thread.iter_mut().zip(more) {
            *time = time.saturating_add(more);
        }
    }
    let most = |column: usize| times.iter().map(|t| t[column]).max().unwrap_or(0);
    let (least, dealt) = (most(0).max(all / threads), most(2));
    [dealt.saturating_sub(least), most(1).saturating_sub(dealt)]
}

impl Sharing {
    /// The same loop with other units.
    fn with(&self, units: Vec<Unit>) -> Sharing {
        Sharing {
            units,
            schedule: self.schedule,
            division: self.division,
            fetch: self.fetch,
            turns: self.turns,
        }
    }
}
