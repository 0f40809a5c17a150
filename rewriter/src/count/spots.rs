//! Where in a function constants are added: windows by `place`, or those that are there already.

use super::events::Weights;
use super::live::{Live, is_call};
use super::potential::{self, Way};
use super::segments::{Edge, Segment, Segments};
use super::{Amounts, Increment, Place};
use crate::place::{self, Finder, Request};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of the jump to a trampoline.
const JUMP: u64 = 5;
/// The instructions of a segment that are looked at.
const LOOKED_AT: usize = 48;
/// The instructions before a conditional jump that a window for it may begin with.
const BEFORE_JUMP: usize = 8;
/// Attempts to find windows that don't overlap.
const ATTEMPTS: usize = 256;

// What things cost, roughly in cycles.
const ADD: u64 = 4;
const SAVE: u64 = 12;
const JUMPS: u64 = 2;
const BACK: u64 = 1;
/// A short jump to a long one elsewhere.
const ISLAND: u64 = 3;
/// A call that pushes its return address by other means: the processor doesn't foresee the return.
const CALL: u64 = 30;

/// A place for a constant.
#[derive(Debug, Clone)]
struct Spot {
    at: u64,
    place: Place,
    /// The window, if it is a new one.
    window: Option<Range<u64>>,
    scratch: Option<u8>,
    /// What adding costs, and what a new window's jumps do.
    add: u64,
    jumps: u64,
}

/// What is added to a function.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    pub increments: Vec<Increment>,
    /// New windows.
    pub windows: Vec<place::Placed>,
}

/// What was chosen, before short windows have islands.
#[derive(Debug, Default)]
struct Choice {
    increments: Vec<Increment>,
    windows: Vec<Range<u64>>,
}

/// A window that begins with an instruction, or is there, and what its jumps cost.
type Room = (Option<Range<u64>>, u64);

/// A function in which places are looked for.
struct Search<'x> {
    finder: &'x Finder<'x>,
    live: &'x Live,
    /// Windows that are there, ascending and disjoint.
    taken: &'x [place::Placed],
}

/// Places increments so that the sums are exact at all cuts. `taken`: windows that are there, ascending and disjoint; `set`: of events.
///
/// # Errors
/// Why they can't be placed.
pub(crate) fn place(
    finder: &Finder<'_>,
    live: &Live,
    cuts: &BTreeSet<u64>,
    taken: &[place::Placed],
    set: u32,
) -> Result<Placed, String> {
    let search = Search {
        finder,
        live,
        taken,
    };
    let body = finder.body;
    let jumps: Vec<Vec<Room>> = (0..body.blocks.len()).map(|n| search.jump(n)).collect();
    let segments = Segments::of(body, cuts, |block| !jumps[block].is_empty());
    let of_segments = segments.list.iter().map(|s| search.segment(s));
    let of_edges = segments
        .edges
        .iter()
        .map(|e| search.edge(e, &jumps[e.block]));
    let mut spots: Vec<Vec<Spot>> = of_segments.chain(of_edges).collect();
    for _ in 0..ATTEMPTS {
        let added = divide(finder, &segments, &spots, set)?;
        let choice = match assign(&added, &spots) {
            Ok(choice) => choice,
            // Others have taken its room.
            Err(lost) => {
                spots[lost].clear();
                continue;
            }
        };
        match search.make_room(choice.windows) {
            Ok(windows) => {
                let increments = choice.increments;
                return Ok(Placed {
                    increments,
                    windows,
                });
            }
            Err(narrow) => {
                let fits = |spot: &Spot| spot.window.as_ref() != Some(&narrow);
                spots.iter_mut().for_each(|spots| spots.retain(fits));
            }
        }
    }
    Err("its windows would overlap".into())
}

/// What each segment adds, and each edge behind them.
fn divide(
    finder: &Finder<'_>,
    segments: &Segments,
    spots: &[Vec<Spot>],
    set: u32,
) -> Result<Vec<Weights>, String> {
    let of_segments = segments.list.iter().map(|s| {
        let insns = &finder.body.insns[s.insns.clone()];
        (s.from, s.to, Weights::of(insns, set))
    });
    let none = Weights::default();
    let of_edges = segments.edges.iter().map(|e| (e.from, e.to, none));
    let all = of_segments.chain(of_edges).zip(spots);
    let ways: Vec<Way> = all
        .map(|((from, to, weights), spots)| Way {
            from,
            to,
            weights,
            cost: spots.iter().map(|s| s.add + s.jumps).min(),
        })
        .collect();
    potential::increments(segments.junctions, &ways).map_err(|n| {
        let block = match segments.list.get(n) {
            Some(segment) => segment.block,
            None => segments.edges[n - segments.list.len()].block,
        };
        let at = finder.body.blocks[block].start;
        format!("no room to count the instructions at {at:#x}")
    })
}

/// Chooses a spot for whatever adds something; or the number of one that gets none.
fn assign(added: &[Weights], spots: &[Vec<Spot>]) -> Result<Choice, usize> {
    let mut placed = Choice::default();
    let mut all: Vec<usize> = (0..added.len()).filter(|&n| !added[n].is_zero()).collect();
    // Those with few choices first.
    all.sort_by_key(|&n| spots[n].len());
    for n in all {
        let choice = |spot: &Spot| {
            let Some(window) = &spot.window else {
                return Some((spot.add, None));
            };
            let mut others = placed.windows.iter();
            match others.find(|w| w.start < window.end && window.start < w.end) {
                Some(other) if other.contains(&spot.at) => Some((spot.add, None)),
                Some(_) => None,
                None => Some((spot.add + spot.jumps, Some(window.clone()))),
            }
        };
        let choices = spots[n]
            .iter()
            .filter_map(|spot| Some((spot, choice(spot)?)));
        let best = choices.min_by_key(|(spot, (cost, _))| (*cost, spot.at));
        let (spot, (_, window)) = best.ok_or(n)?;
        let mut amounts = Amounts::default();
        for (amount, added) in amounts.iter_mut().zip(added[n].0) {
            *amount = i32::try_from(added).map_err(|_| n)?;
        }
        placed.increments.push(Increment {
            at: spot.at,
            place: spot.place,
            amounts,
            scratch: spot.scratch,
        });
        placed.windows.extend(window);
    }
    placed.increments.sort_by_key(Increment::order);
    Ok(placed)
}

impl Search<'_> {
    /// The places that a segment has.
    fn segment(&self, segment: &Segment) -> Vec<Spot> {
        let body = self.finder.body;
        let numbers = segment.insns.clone().take(LOOKED_AT);
        let spot = |number: usize| {
            let (window, jumps) = self.room(&body.insns[number])?;
            let scratch = self.live.scratch(body, segment.block, number);
            Some(Spot {
                at: body.insns[number].ip(),
                place: Place::Before,
                window,
                scratch,
                add: segment.often * adding(scratch),
                jumps: segment.often * jumps,
            })
        };
        numbers.filter_map(spot).collect()
    }

    /// The places that an edge has. `rooms`: for the jump that it leads from.
    fn edge(&self, edge: &Edge, rooms: &[Room]) -> Vec<Spot> {
        let body = self.finder.body;
        let Some(jump) = body.last(edge.block) else {
            return Vec::new();
        };
        let scratch = self.live.scratch_to(body, edge.target);
        let spot = |(window, jumps): &Room| Spot {
            at: jump.ip(),
            place: if edge.is_taken {
                Place::Taken
            } else {
                Place::Behind
            },
            window: window.clone(),
            scratch,
            add: edge.often * adding(scratch),
            jumps: edge.executed * jumps,
        };
        rooms.iter().map(spot).collect()
    }

    /// Windows that hold the conditional jump at a block's end.
    fn jump(&self, block: usize) -> Vec<Room> {
        let body = self.finder.body;
        let Some(jump) = body.last(block).filter(|i| i.is_jcc_short_or_near()) else {
            return Vec::new();
        };
        let insns = body.blocks[block].insns.clone().rev().take(BEFORE_JUMP);
        let rooms = insns.filter_map(|n| self.room(&body.insns[n]).map(|room| (n, room)));
        let holds = |(n, (window, _)): &(usize, Room)| match window {
            Some(window) => window.end > jump.ip(),
            None => body.insns[*n].ip() == jump.ip(),
        };
        rooms.filter(holds).map(|(_, room)| room).collect()
    }

    /// Islands for new windows that are too short, and the windows that hold these; or one that gets none.
    fn make_room(&self, windows: Vec<Range<u64>>) -> Result<Vec<place::Placed>, Range<u64>> {
        let new = windows.into_iter().map(|range| place::Placed {
            range,
            members: Vec::new(),
            island: None,
        });
        let mut all: Vec<place::Placed> = self.taken.iter().cloned().chain(new).collect();
        all.sort_by_key(|w| w.range.start);
        if let Some(narrow) = place::make_room(self.finder, &mut all) {
            return Err(all[narrow].range.clone());
        }
        let is_new = |w: &place::Placed| {
            let known = self
                .taken
                .binary_search_by_key(&w.range.start, |t| t.range.start);
            known.is_err()
        };
        all.retain(is_new);
        Ok(all)
    }

    /// The window that an instruction is in, or a new one that begins with it.
    fn room(&self, insn: &Instruction) -> Option<Room> {
        let at = insn.ip();
        if is_mark(insn) {
            return None;
        }
        let next = self.taken.partition_point(|w| w.range.end <= at);
        let next = self.taken.get(next).map(|w| &w.range);
        match next.is_some_and(|w| w.start <= at) {
            true => Some((None, 0)),
            false => {
                let (window, cost) = self.window(at, next)?;
                Some((Some(window), cost))
            }
        }
    }

    /// A new window that begins with an instruction, and what its jumps cost.
    fn window(&self, at: u64, next: Option<&Range<u64>>) -> Option<(Range<u64>, u64)> {
        let request = Request {
            at,
            exact: true,
            ..Request::default()
        };
        let range = self.finder.choose(&request).ok()?.range;
        let is_free = next.is_none_or(|w| range.end <= w.start);
        if range.start != at || !is_free {
            return None;
        }
        let is_entry = self.finder.body.roots.first() == self.finder.body.block_at(at).as_ref();
        let insns = &self.finder.body.insns;
        let first = self.finder.body.insn_at(at)?;
        let inside = insns[first..].iter().take_while(|i| i.ip() < range.end);
        let mut cost = JUMPS + BACK;
        if range.end - range.start < JUMP {
            cost += ISLAND;
        }
        for insn in inside {
            // Where indirect branches may lead, what is kept free for others to write, and where tracers put breakpoints.
            let is_nop = insn.mnemonic() == Mnemonic::Nop;
            if is_mark(insn) || is_nop && (is_entry || insn.len() == 1) {
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
}

/// What adding costs.
fn adding(scratch: Option<u8>) -> u64 {
    match scratch {
        Some(_) => ADD,
        None => ADD + SAVE,
    }
}

fn is_mark(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32)
}
