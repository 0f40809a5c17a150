//! What may add something, and what is executed there, where the potential may depend on registers.
//!
//! A *trip* is a region of junctions, around a loop, whose potential is a constant and a multiple of an induction variable. Such a loop adds
//! nothing as long as it turns: what it has executed is the difference of two values of the register. Whatever way leads into the region
//! subtracts the multiple, and whatever leads out of it adds it. That holds for any loop, and for any value of the register: it is
//! algebra, modulo 2^64.

use super::events::Weights;
use super::registers::Registers;
use super::segments::{Segment, Segments};
use iced_x86::Register;
use ompfuse_format::event::exact;
use std::ops::Range;

const SMALL: u64 = 1 << 24;

/// Junctions whose potential depends on a register.
#[derive(Debug, Clone)]
pub(super) struct Trip {
    pub register: Register,
    /// What the register is multiplied with, for each event.
    pub factors: [i64; exact::COUNT],
    pub junctions: Vec<usize>,
}

impl Trip {
    /// What so much of the register is.
    pub(super) fn times(&self, value: i64) -> Weights {
        Weights(self.factors.map(|factor| factor.wrapping_mul(value)))
    }

    /// What sums in the region are more, which are never whole numbers with it: who looks at one there knows.
    fn mark(&self) -> Weights {
        Weights(self.factors.map(|factor| i64::from(factor != 0)))
    }
}

/// A way into a trip's region, or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crossing {
    pub trip: usize,
    pub enters: bool,
}

/// A segment, a part of one, or an edge.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Its number among segments, and edges behind them.
    pub number: usize,
    /// Numbers of its instructions, if it is a part of a segment.
    pub insns: Option<Range<usize>>,
    pub from: usize,
    pub to: usize,
    pub weights: Weights,
    pub crossing: Option<Crossing>,
    /// What it adds besides, so that sums are no whole numbers in a trip's region.
    pub mark: Weights,
    /// The trip whose register must stay, though nobody else may read it any more.
    pub stays: Option<usize>,
}

/// Takes a function apart. `weights`: of its segments.
///
/// # Errors
/// The number of a trip that can't be.
pub(super) fn pieces(
    registers: &Registers<'_>,
    segments: &Segments,
    weights: &[Weights],
    trips: &[Trip],
) -> Result<Vec<Piece>, usize> {
    let mut of_junction = vec![None; segments.junctions];
    for (n, trip) in trips.iter().enumerate() {
        for &junction in &trip.junctions {
            of_junction[junction] = Some(n);
        }
    }
    let mut out = Vec::with_capacity(segments.list.len() + segments.edges.len());
    let mut junctions = segments.junctions;
    for (number, segment) in segments.list.iter().enumerate() {
        let piece = Piece {
            number,
            insns: None,
            from: segment.from,
            to: segment.to,
            weights: weights[number],
            crossing: None,
            mark: Weights::default(),
            stays: None,
        };
        let (from, to) = (of_junction[segment.from], of_junction[segment.to]);
        let growth = |trip: usize| {
            let insns = segment.insns.clone();
            registers.growth(segment.block, insns, trips[trip].register)
        };
        let known = |trip: usize| {
            let end = segment.insns.end;
            registers.constant(segment.block, end, trips[trip].register)
        };
        match (from, to) {
            (None, None) => out.push(piece),
            (Some(trip), None) => out.push(leaving(piece, trips, trip)),
            (None, Some(trip)) => out.push(entering(piece, trips, trip, known(trip))),
            (Some(a), Some(b)) => match growth(a) {
                Some(more) if a == b => out.push(Piece {
                    weights: piece.weights - trips[a].times(more),
                    stays: Some(a),
                    ..piece
                }),
                _ => {
                    let both = [a, b].map(|trip| trips[trip].register);
                    let at = split(registers, segment, both).ok_or(b)?;
                    let first = Piece {
                        insns: Some(segment.insns.start..at),
                        to: junctions,
                        weights: Weights::default(),
                        ..piece.clone()
                    };
                    // What is executed is known behind the first part as well as anywhere.
                    let rest = Piece {
                        insns: Some(at..segment.insns.end),
                        from: junctions,
                        ..piece
                    };
                    junctions += 1;
                    out.push(leaving(first, trips, a));
                    out.push(entering(rest, trips, b, known(b)));
                }
            },
        }
    }
    for (n, edge) in segments.edges.iter().enumerate() {
        let piece = Piece {
            number: segments.list.len() + n,
            insns: None,
            from: edge.from,
            to: edge.to,
            weights: Weights::default(),
            crossing: None,
            mark: Weights::default(),
            stays: None,
        };
        out.push(match (of_junction[edge.from], of_junction[edge.to]) {
            (Some(a), Some(b)) if a != b => return Err(b),
            (Some(trip), None) => leaving(piece, trips, trip),
            (None, Some(trip)) => entering(piece, trips, trip, None),
            (stays, _) => Piece { stays, ..piece },
        });
    }
    Ok(out)
}

fn leaving(piece: Piece, trips: &[Trip], trip: usize) -> Piece {
    let enters = false;
    Piece {
        mark: Weights::default() - trips[trip].mark(),
        crossing: Some(Crossing { trip, enters }),
        ..piece
    }
}

/// `known`: what the register is at the piece's end.
fn entering(piece: Piece, trips: &[Trip], trip: usize, known: Option<i64>) -> Piece {
    let of = &trips[trip];
    let enters = true;
    let mark = of.mark();
    let known = known.map(|value| of.times(value));
    // Small enough to be a part of constants.
    match known.filter(|known| known.0.iter().all(|n| n.unsigned_abs() < SMALL)) {
        Some(known) => Piece {
            weights: piece.weights - known,
            mark,
            stays: Some(trip),
            ..piece
        },
        None => Piece {
            mark,
            crossing: Some(Crossing { trip, enters }),
            ..piece
        },
    }
}

/// Where a segment is divided that leads from a region that depends on the first register to one that depends on the second: before that
/// the first is still what it was, and behind it the second gets its last value.
fn split(of: &Registers<'_>, segment: &Segment, registers: [Register; 2]) -> Option<usize> {
    let insns = &segment.insns;
    let writes = |n: &usize, register| {
        let growth = of.growth(segment.block, *n..*n + 1, register);
        growth.is_none()
    };
    let first = insns.clone().find(|n| writes(n, registers[0]));
    let last = insns.clone().rev().find(|n| writes(n, registers[1]));
    let at = match (first, last) {
        (Some(first), _) if first > insns.start => first,
        (Some(first), _) => first + 1,
        (None, Some(last)) => last + 1,
        (None, None) => insns.start + insns.len() / 2,
    };
    let at = at.min(insns.end - 1);
    (insns.start < at).then_some(at)
}
