//! Where in a function constants are added.

use super::events::Weights;
use super::live::{Live, Pair};
use super::pieces::{Crossing, Piece, Trip, pieces};
use super::potential::{self, Way};
use super::registers::Registers;
use super::rooms::{Room, Rooms};
use super::segments::Segments;
use super::{Amounts, Increment, Place, Term, trips};
use crate::place::{self, Finder};
use crate::scan::cfg::Body;
use iced_x86::Register;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// The instructions of a segment that are looked at.
const LOOKED_AT: usize = 48;
/// Attempts to find windows that don't overlap.
const ATTEMPTS: usize = 256;

// What things cost, roughly in cycles.
const ADD: u64 = 4;
const SAVE: u64 = 12;
/// A multiplication.
const MULTIPLY: u64 = 3;
/// A register on the stack.
const KEEP: u64 = 3;

/// A place for a constant.
#[derive(Debug, Clone)]
struct Spot {
    at: u64,
    place: Place,
    /// The window, if it is a new one.
    window: Option<Range<u64>>,
    scratch: Option<u8>,
    /// The registers for a multiple of a trip's register, and by how much that is less there than where the piece meets the trip.
    term: Option<(Pair, i64)>,
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

/// A register for a constant, if one is free; and those of a [`Spot::term`].
type Free = (Option<u8>, Option<(Pair, i64)>);

/// What was chosen, before short windows have islands.
#[derive(Debug, Default)]
struct Choice {
    increments: Vec<Increment>,
    /// Begins and ends.
    windows: BTreeMap<u64, u64>,
}

impl Choice {
    /// A window that overlaps a range.
    fn overlapping(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let (&start, &end) = self.windows.range(..range.end).next_back()?;
        (range.start < end).then_some(start..end)
    }
}

/// What a piece has to do with the register of a trip.
#[derive(Clone, Copy)]
enum Use<'t> {
    None,
    /// It leaves it alone.
    Stays(&'t Trip),
    /// It adds a multiple of it, where the piece enters the trip or leaves it.
    Crosses(bool, &'t Trip),
}

impl Use<'_> {
    /// Its number, and that of the register.
    fn key(&self) -> (u8, Option<Register>) {
        match self {
            Use::None => (0, None),
            Use::Stays(trip) => (1, Some(trip.register)),
            Use::Crosses(enters, trip) => (2 + u8::from(*enters), Some(trip.register)),
        }
    }
}

/// The number of a segment or edge, the part of it, and the use.
type Asked = (usize, Option<Range<usize>>, (u8, Option<Register>));

/// Why constants can't be placed.
enum Failure {
    /// This trip has no room.
    Trip(usize),
    Why(String),
}

/// A function in which places are looked for.
struct Search<'x> {
    body: &'x Body,
    live: &'x Live,
    registers: Registers<'x>,
    rooms: Rooms<'x>,
    segments: Segments,
    /// Of blocks, for the jump at their end.
    jumps: Vec<Vec<Room>>,
    /// Of segments: what is executed.
    weights: Vec<Weights>,
    /// Of segments, and edges behind them: where constants can be added.
    spots: Vec<Rc<[Spot]>>,
    /// Of what else was asked for: the piece, and what it has to do with which register.
    known: RefCell<FxHashMap<Asked, Rc<[Spot]>>>,
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
    let search = Search::of((finder, live), cuts, taken, set);
    let cost = |trips: &[Trip]| search.cost(trips);
    let function = (finder.body, &search.registers);
    let mut trips = trips::choose(function, &search.segments, &search.weights, cost);
    loop {
        match search.place(&trips) {
            Ok(placed) => return Ok(placed),
            Err(Failure::Trip(n)) if n < trips.len() => drop(trips.remove(n)),
            Err(_) if !trips.is_empty() => trips.clear(),
            Err(Failure::Why(why)) => return Err(why),
            Err(Failure::Trip(_)) => return Err("no room".into()),
        }
    }
}

impl<'x> Search<'x> {
    fn of(
        (finder, live): (&'x Finder<'x>, &'x Live),
        cuts: &BTreeSet<u64>,
        taken: &'x [place::Placed],
        set: u32,
    ) -> Search<'x> {
        let body = finder.body;
        let rooms = Rooms { finder, taken };
        let jumps: Vec<Vec<Room>> = (0..body.blocks.len()).map(|n| rooms.jump(n)).collect();
        let segments = Segments::of(body, cuts, |block| !jumps[block].is_empty());
        let weights = segments.list.iter();
        let weights = weights.map(|s| Weights::of(&body.insns[s.insns.clone()], set));
        let mut search = Search {
            body,
            live,
            registers: Registers::of(body),
            rooms,
            weights: weights.collect(),
            segments,
            jumps,
            spots: Vec::new(),
            known: RefCell::default(),
        };
        let all = search.segments.list.len() + search.segments.edges.len();
        search.spots = (0..all)
            .map(|n| search.spots_of(n, None, Use::None).into())
            .collect();
        search
    }

    /// What counting costs, if it can be.
    fn cost(&self, trips: &[Trip]) -> Option<u64> {
        let pieces = pieces(&self.registers, &self.segments, &self.weights, trips).ok()?;
        let spots: Vec<_> = pieces.iter().map(|p| self.spots(p, trips)).collect();
        let ways: Vec<Way> = ways(&pieces, &spots);
        let added = potential::increments(junctions(&pieces), &ways).ok()?;
        let costs = ways.iter().zip(&added);
        let costs = costs.filter(|(way, added)| way.adds || !added.is_zero());
        costs
            .map(|(way, _)| way.cost)
            .try_fold(0u64, |sum, cost| Some(sum.saturating_add(cost?)))
    }

    fn place(&self, trips: &[Trip]) -> Result<Placed, Failure> {
        let pieces =
            pieces(&self.registers, &self.segments, &self.weights, trips).map_err(Failure::Trip)?;
        let mut spots: Vec<Vec<Spot>> = pieces
            .iter()
            .map(|piece| self.spots(piece, trips).to_vec())
            .collect();
        for _ in 0..ATTEMPTS {
            let ways = ways(&pieces, &spots);
            let added = potential::increments(junctions(&pieces), &ways);
            let added = added.map_err(|n| self.failure(&pieces[n]))?;
            let choice = match assign((&pieces, trips), &added, &spots) {
                Ok(choice) => choice,
                // Others have taken their room.
                Err(lost) => {
                    lost.into_iter().for_each(|n| spots[n].clear());
                    continue;
                }
            };
            let windows = choice.windows.iter().map(|(&start, &end)| start..end);
            match self.rooms.make(windows.collect()) {
                Ok(windows) => {
                    let increments = choice.increments;
                    return Ok(Placed {
                        increments,
                        windows,
                    });
                }
                Err(narrow) => {
                    let fits = |spot: &Spot| {
                        let mut windows = narrow.iter();
                        windows.all(|w| spot.window.as_ref() != Some(w))
                    };
                    spots.iter_mut().for_each(|spots| spots.retain(fits));
                }
            }
        }
        Err(Failure::Why("its windows would overlap".into()))
    }

    fn failure(&self, piece: &Piece) -> Failure {
        let marked = piece.stays.filter(|_| !piece.mark.is_zero());
        if let Some(trip) = piece.crossing.map(|c| c.trip).or(marked) {
            return Failure::Trip(trip);
        }
        let edge = |n: usize| self.segments.edges[n - self.segments.list.len()].block;
        let block = match self.segments.list.get(piece.number) {
            Some(segment) => segment.block,
            None => edge(piece.number),
        };
        let at = self.body.blocks[block].start;
        Failure::Why(format!("no room to count the instructions at {at:#x}"))
    }

    /// The places that a piece has.
    fn spots(&self, piece: &Piece, trips: &[Trip]) -> Rc<[Spot]> {
        let use_of = match (piece.crossing, piece.stays) {
            (Some(crossing), _) => Use::Crosses(crossing.enters, &trips[crossing.trip]),
            (None, Some(trip)) => Use::Stays(&trips[trip]),
            (None, None) => Use::None,
        };
        if piece.insns.is_none() && matches!(use_of, Use::None) {
            return self.spots[piece.number].clone();
        }
        let asked = (piece.number, piece.insns.clone(), use_of.key());
        if let Some(known) = self.known.borrow().get(&asked) {
            return known.clone();
        }
        let spots: Rc<[Spot]> = self
            .spots_of(piece.number, piece.insns.clone(), use_of)
            .into();
        self.known.borrow_mut().insert(asked, spots.clone());
        spots
    }

    /// The places of a segment, a part of it, or an edge.
    fn spots_of(&self, number: usize, part: Option<Range<usize>>, use_of: Use<'_>) -> Vec<Spot> {
        match number.checked_sub(self.segments.list.len()) {
            Some(edge) => self.edge(edge, use_of),
            None => self.segment(number, part, use_of),
        }
    }

    fn segment(&self, number: usize, part: Option<Range<usize>>, use_of: Use<'_>) -> Vec<Spot> {
        let segment = &self.segments.list[number];
        let insns = part.unwrap_or(segment.insns.clone());
        let spot = |at: usize| {
            let insn = &self.body.insns[at];
            let between = |trip: &Trip, insns| {
                let register = trip.register;
                self.registers.growth(segment.block, insns, register)
            };
            let less = match use_of {
                Use::Crosses(true, trip) => between(trip, at..insns.end)?,
                Use::Crosses(false, trip) => between(trip, insns.start..at)?.wrapping_neg(),
                Use::Stays(_) | Use::None => 0,
            };
            let (scratch, term) = self.free((segment.block, at), use_of, less)?;
            let (window, jumps) = self.rooms.room(insn)?;
            Some(Spot {
                at: insn.ip(),
                place: Place::Before,
                window,
                scratch,
                term,
                add: segment.often * adding(scratch, term),
                jumps: segment.often * jumps,
            })
        };
        // The last ones are those behind which a register has its last value.
        match use_of {
            Use::Crosses(true, _) => {
                let numbers = insns.clone().rev().take(LOOKED_AT);
                numbers.filter_map(spot).collect()
            }
            _ => insns.clone().take(LOOKED_AT).filter_map(spot).collect(),
        }
    }

    fn edge(&self, number: usize, use_of: Use<'_>) -> Vec<Spot> {
        let edge = &self.segments.edges[number];
        let Some(jump) = self.body.last(edge.block) else {
            return Vec::new();
        };
        let first = self.body.blocks[edge.target].insns.start;
        let Some((scratch, term)) = self.free((edge.target, first), use_of, 0) else {
            return Vec::new();
        };
        let spot = |(window, jumps): &Room| Spot {
            at: jump.ip(),
            place: match edge.is_taken {
                true => Place::Taken,
                false => Place::Behind,
            },
            window: window.clone(),
            scratch,
            term,
            add: edge.often * adding(scratch, term),
            jumps: edge.executed * jumps,
        };
        self.jumps[edge.block].iter().map(spot).collect()
    }

    /// Registers that are free before an instruction of a block: for a constant, if there is one, and two for a multiple of a register.
    fn free(&self, (block, insn): (usize, usize), use_of: Use<'_>, less: i64) -> Option<Free> {
        let number = |trip: &Trip| trip.register.number() as u8;
        let at = (self.body, block);
        match use_of {
            Use::None => Some((self.live.scratch(self.body, block, insn), None)),
            Use::Stays(trip) => Some((self.live.scratch_but(at, insn, number(trip)), None)),
            Use::Crosses(_, trip) => {
                let pair = self.live.two(at, insn, number(trip))?;
                Some((Some(pair.scratch), Some((pair, less))))
            }
        }
    }
}

fn junctions(pieces: &[Piece]) -> usize {
    let all = pieces.iter().flat_map(|piece| [piece.from, piece.to]);
    all.max().unwrap_or(0) + 1
}

fn ways(pieces: &[Piece], spots: &[impl AsRef<[Spot]>]) -> Vec<Way> {
    let all = pieces.iter().zip(spots);
    all.map(|(piece, spots)| Way {
        from: piece.from,
        to: piece.to,
        weights: piece.weights,
        cost: spots.as_ref().iter().map(|s| s.add + s.jumps).min(),
        adds: piece.crossing.is_some() || !piece.mark.is_zero(),
        mark: piece.mark,
    })
    .collect()
}

/// Chooses a spot for whatever adds something; or the numbers of those that get none.
fn assign(
    (pieces, trips): (&[Piece], &[Trip]),
    added: &[Weights],
    spots: &[Vec<Spot>],
) -> Result<Choice, Vec<usize>> {
    let (mut placed, mut lost) = (Choice::default(), Vec::new());
    let adds = |n: &usize| pieces[*n].crossing.is_some() || !added[*n].is_zero();
    let mut all: Vec<usize> = (0..added.len()).filter(adds).collect();
    // Those with few choices first.
    all.sort_by_key(|&n| spots[n].len());
    for n in all {
        let choice = |spot: &Spot| {
            let Some(window) = &spot.window else {
                return Some((spot.add, None));
            };
            match placed.overlapping(window) {
                Some(other) if other.contains(&spot.at) => Some((spot.add, None)),
                Some(_) => None,
                None => Some((spot.add + spot.jumps, Some(window.clone()))),
            }
        };
        let choices = spots[n]
            .iter()
            .filter_map(|spot| Some((spot, choice(spot)?)));
        let best = choices.min_by_key(|(spot, (cost, _))| (*cost, spot.at));
        let crossing = pieces[n].crossing.map(|c| (c, &trips[c.trip]));
        let found = best.and_then(|(spot, (_, window))| {
            let increment = increment(added[n], spot, crossing)?;
            Some((increment, window))
        });
        let Some((increment, window)) = found else {
            lost.push(n);
            continue;
        };
        placed.increments.push(increment);
        placed.windows.extend(window.map(|w| (w.start, w.end)));
    }
    if !lost.is_empty() {
        return Err(lost);
    }
    placed.increments.sort_by_key(Increment::order);
    Ok(placed)
}

/// What is added at a spot, if its constants are small enough.
fn increment(
    added: Weights,
    spot: &Spot,
    crossing: Option<(Crossing, &Trip)>,
) -> Option<Increment> {
    let (mut rest, mut term) = (added, None);
    if let Some((Crossing { enters, .. }, trip)) = crossing {
        let (pair, less) = spot.term?;
        let sign = if enters { -1 } else { 1 };
        rest = rest + trip.times(less.wrapping_mul(sign));
        term = Some(Term {
            register: trip.register.number() as u8,
            spare: pair.spare,
            kept: pair.kept,
            factors: trip.factors.map(|factor| factor.wrapping_mul(sign)),
        });
    }
    let mut amounts = Amounts::default();
    for (amount, rest) in amounts.iter_mut().zip(rest.0) {
        *amount = i32::try_from(rest).ok()?;
    }
    Some(Increment {
        at: spot.at,
        place: spot.place,
        amounts,
        scratch: spot.scratch,
        term,
    })
}

/// What adding costs.
fn adding(scratch: Option<u8>, term: Option<(Pair, i64)>) -> u64 {
    match (scratch, term) {
        (_, Some((pair, _))) => ADD + MULTIPLY + KEEP * u64::from(pair.kept),
        (Some(_), None) => ADD,
        (None, None) => ADD + SAVE,
    }
}
