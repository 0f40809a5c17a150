//! Where in a function's segments constants are added: windows by `place`, or in those that are there already.

use super::Increment;
use super::live::{Live, is_call};
use super::potential::{self, Way};
use super::segments::{Segment, Segments};
use crate::place::{Finder, Request};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of the jump to a trampoline.
const JUMP: u64 = 5;
/// The instructions of a segment that are looked at.
const LOOKED_AT: usize = 48;
/// Attempts to find windows that don't overlap.
const ATTEMPTS: usize = 64;

// What things cost, roughly in cycles.
const ADD: u64 = 4;
const SAVE: u64 = 12;
const JUMPS: u64 = 2;
const BACK: u64 = 1;
/// A call that pushes its return address by other means: the processor doesn't foresee the return.
const CALL: u64 = 30;

/// A place for a constant.
#[derive(Debug, Clone)]
struct Spot {
    at: u64,
    /// The window, if it is a new one.
    window: Option<Range<u64>>,
    scratch: Option<u8>,
    cost: u64,
}

/// What is added to a function.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    pub increments: Vec<Increment>,
    /// New windows.
    pub windows: Vec<Range<u64>>,
}

/// Places increments so that the sum is exact at all cuts. `taken`: windows that are there, ascending and disjoint.
///
/// # Errors
/// Why they can't be placed.
pub(crate) fn place(
    finder: &Finder<'_>,
    live: &Live,
    cuts: &BTreeSet<u64>,
    taken: &[Range<u64>],
) -> Result<Placed, String> {
    let segments = Segments::of(finder.body, cuts);
    let mut spots: Vec<Vec<Spot>> = segments
        .list
        .iter()
        .map(|segment| find(finder, live, segment, taken))
        .collect();
    for _ in 0..ATTEMPTS {
        let added = divide(finder, &segments, &spots)?;
        match assign(&added, &spots) {
            Ok(placed) => return Ok(placed),
            // Others have taken its room.
            Err(segment) => spots[segment].clear(),
        }
    }
    Err("its windows would overlap".into())
}

/// What each segment adds.
fn divide(
    finder: &Finder<'_>,
    segments: &Segments,
    spots: &[Vec<Spot>],
) -> Result<Vec<i64>, String> {
    let way = |(segment, spots): (&Segment, &Vec<Spot>)| {
        let cheapest = spots.iter().map(|s| s.cost).min();
        Way {
            from: segment.from,
            to: segment.to,
            weight: segment.insns.len() as i64,
            cost: cheapest.map(|cost| cost.saturating_mul(segment.often)),
        }
    };
    let ways: Vec<Way> = segments.list.iter().zip(spots).map(way).collect();
    potential::increments(segments.junctions, &ways).map_err(|n| {
        let at = finder.body.insns[segments.list[n].insns.start].ip();
        format!("no room to count the instructions at {at:#x}")
    })
}

/// Chooses a spot for each segment that adds something; or the number of one that gets none.
fn assign(added: &[i64], spots: &[Vec<Spot>]) -> Result<Placed, usize> {
    let mut placed = Placed::default();
    let mut all: Vec<usize> = (0..added.len()).filter(|&n| added[n] != 0).collect();
    // Those with few choices first.
    all.sort_by_key(|&n| spots[n].len());
    for n in all {
        let overlaps = |window: &Range<u64>| {
            let mut others = placed.windows.iter();
            others.any(|w| w.start < window.end && window.start < w.end)
        };
        let own = spots[n].iter().filter_map(|spot| {
            let window = spot.window.clone()?;
            let within = placed.windows.iter().any(|w| w.contains(&spot.at));
            match within {
                true => Some((spot.cost.saturating_sub(JUMPS), spot, None)),
                false if overlaps(&window) => None,
                false => Some((spot.cost, spot, Some(window))),
            }
        });
        let there = spots[n].iter().filter(|spot| spot.window.is_none());
        let there = there.map(|spot| (spot.cost, spot, None));
        let best = there.chain(own).min_by_key(|(cost, spot, _)| (*cost, spot.at));
        let (_, spot, window) = best.ok_or(n)?;
        placed.windows.extend(window);
        placed.increments.push(Increment {
            at: spot.at,
            amount: i32::try_from(added[n]).map_err(|_| n)?,
            scratch: spot.scratch,
        });
    }
    placed.windows.sort_by_key(|w| w.start);
    placed.increments.sort_by_key(|i| i.at);
    Ok(placed)
}

/// The places that a segment has.
fn find(
    finder: &Finder<'_>,
    live: &Live,
    segment: &Segment,
    taken: &[Range<u64>],
) -> Vec<Spot> {
    let body = finder.body;
    let mut out = Vec::new();
    for number in segment.insns.clone().take(LOOKED_AT) {
        let insn = &body.insns[number];
        let at = insn.ip();
        if is_mark(insn) {
            continue;
        }
        let next = taken.partition_point(|w| w.end <= at);
        let around = taken.get(next).filter(|w| w.start <= at);
        let (window, jumps) = match around {
            Some(_) => (None, 0),
            None => match window(finder, at, taken.get(next)) {
                Some((window, cost)) => (Some(window), cost),
                None => continue,
            },
        };
        let scratch = live.scratch(body, segment.block, number);
        let save = if scratch.is_some() { 0 } else { SAVE };
        out.push(Spot {
            at,
            window,
            scratch,
            cost: ADD + save + jumps,
        });
    }
    out
}

fn is_mark(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32)
}

/// A new window that begins with an instruction, and what its jumps cost.
fn window(finder: &Finder<'_>, at: u64, next: Option<&Range<u64>>) -> Option<(Range<u64>, u64)> {
    let request = Request {
        at,
        exact: true,
        ..Request::default()
    };
    let range = finder.choose(&request).ok()?.range;
    let is_free = next.is_none_or(|w| range.end <= w.start);
    if range.end - range.start < JUMP || range.start != at || !is_free {
        return None;
    }
    let insns = &finder.body.insns;
    let first = finder.body.insn_at(at)?;
    let inside = insns[first..].iter().take_while(|i| i.ip() < range.end);
    let mut cost = JUMPS + BACK;
    for insn in inside {
        // Where indirect branches may lead, and what is kept free for others to write.
        if is_mark(insn) || insn.mnemonic() == Mnemonic::Nop {
            return None;
        }
        match insn.flow_control() {
            _ if is_call(insn) => cost += CALL,
            FlowControl::ConditionalBranch if insn.near_branch_target() <= at => cost -= BACK,
            FlowControl::UnconditionalBranch
            | FlowControl::Return
            | FlowControl::IndirectBranch => cost -= BACK,
            _ => {}
        }
    }
    Some((range, cost))
}
