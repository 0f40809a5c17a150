//! Loops that count their turns by a register (`pieces`): which ones, by which register, and which junctions belong to each.

use super::events::Weights;
use super::pieces::Trip;
use super::registers::{Recurrence, Registers};
use super::segments::{CUT, Segments};
use crate::scan::cfg::Body;
use ompfuse_format::event::exact;
use std::collections::BTreeSet;

/// Loops of which it is tried what they would cost, times pieces of the function: what takes longer is not worth it.
const TRIED: usize = 1 << 18;

/// A loop that may count by a register.
struct Candidate {
    /// How often it turns, roughly.
    often: u64,
    /// In each of several ways.
    trips: Vec<Trip>,
}

/// Chooses them, so that `cost` becomes least.
pub(super) fn choose(
    (body, registers): (&Body, &Registers<'_>),
    segments: &Segments,
    weights: &[Weights],
    cost: impl Fn(&[Trip]) -> Option<u64>,
) -> Vec<Trip> {
    let mut candidates = candidates((body, registers), segments, weights);
    candidates.sort_by_key(|c| std::cmp::Reverse(c.often));
    let each = segments.list.len() + segments.edges.len();
    let mut left = TRIED / each.max(1);
    let mut chosen: Vec<Trip> = Vec::new();
    let mut least = cost(&chosen).unwrap_or(u64::MAX);
    for candidate in candidates {
        let mut best = None;
        for trip in candidate.trips {
            let is_taken = |junction| chosen.iter().any(|t| t.junctions.contains(junction));
            if left == 0 || trip.junctions.iter().any(is_taken) {
                continue;
            }
            left -= 1;
            chosen.push(trip);
            if let Some(cost) = cost(&chosen).filter(|&cost| cost < least) {
                least = cost;
                best = chosen.last().cloned();
            }
            chosen.pop();
        }
        chosen.extend(best);
    }
    chosen
}

fn candidates(
    (body, registers): (&Body, &Registers<'_>),
    segments: &Segments,
    weights: &[Weights],
) -> Vec<Candidate> {
    let loops = body.natural_loops(&body.dominators());
    let headers: BTreeSet<usize> = loops.iter().map(|l| l.header).collect();
    let is_innermost = |blocks: &BTreeSet<usize>| {
        let mut inside = blocks.iter().filter(|block| headers.contains(block));
        inside.nth(1).is_none()
    };
    // The segments of each block.
    let first = |block| segments.list.partition_point(|s| s.block < block);
    let innermost = loops.iter().filter(|l| is_innermost(&l.blocks));
    let of = |header: usize, blocks: &BTreeSet<usize>| {
        let own = blocks.iter();
        let own: Vec<usize> = own.flat_map(|&b| first(b)..first(b + 1)).collect();
        let junctions = own.iter().map(|&n| &segments.list[n]);
        let junctions: BTreeSet<usize> = junctions.flat_map(|s| [s.from, s.to]).collect();
        if junctions.contains(&CUT) {
            return None; // something in it has to be exact
        }
        let turn = turn(body, header, blocks, |block| {
            segments.list[first(block)].often
        })?;
        let executed = turn.iter().flat_map(|&b| first(b)..first(b + 1));
        let executed = executed.fold(Weights::default(), |sum, n| sum + weights[n]);
        let exits = segments.edges.iter().filter(|edge| {
            blocks.contains(&edge.block) && !blocks.contains(&edge.target) && edge.to != CUT
        });
        // What leaves the loop is better counted behind it than at its jump.
        let mut wide = junctions.clone();
        wide.extend(exits.map(|edge| edge.to));
        let regions = match wide == junctions {
            true => vec![wide],
            false => vec![wide, junctions],
        };
        let recurrences = registers.recurrences(blocks, &turn);
        let trips = recurrences.iter().flat_map(|recurrence| {
            let factors = factors(executed, recurrence);
            let trip = |junctions: &BTreeSet<usize>| {
                Some(Trip {
                    register: recurrence.register,
                    factors: factors?,
                    junctions: junctions.iter().copied().collect(),
                })
            };
            regions.iter().filter_map(trip).collect::<Vec<Trip>>()
        });
        Some(Candidate {
            often: segments.list[first(header)].often,
            trips: trips.collect(),
        })
    };
    innermost.filter_map(|l| of(l.header, &l.blocks)).collect()
}

/// The blocks of a turn: on the way that is taken most often.
fn turn(
    body: &Body,
    header: usize,
    blocks: &BTreeSet<usize>,
    often: impl Fn(usize) -> u64,
) -> Option<Vec<usize>> {
    let mut turn = vec![header];
    loop {
        let all = body.blocks[*turn.last()?].succs.iter().copied();
        let next = all
            .filter(|to| blocks.contains(to))
            .max_by_key(|&to| often(to))?;
        if next == header {
            return Some(turn);
        }
        if turn.contains(&next) {
            return None;
        }
        turn.push(next);
    }
}

/// What a register is multiplied with, so that a turn's step gives what the turn executes. Their products with any value leave a sum's
/// last bits alone.
fn factors(executed: Weights, recurrence: &Recurrence) -> Option<[i64; exact::COUNT]> {
    let step = recurrence.step;
    let zeros = step.trailing_zeros();
    let odd = inverse(step >> zeros);
    let mut out = [0; exact::COUNT];
    for (factor, all) in out.iter_mut().zip(executed.0) {
        *factor = (all >> zeros).wrapping_mul(odd);
        let is_whole = all.trailing_zeros() >= zeros;
        if all != 0 && !(is_whole && *factor & exact::TORN == 0) {
            return None;
        }
    }
    Some(out)
}

/// The number that gives 1, multiplied with an odd one, modulo 2^64 (Newton's method: each step doubles the bits that are right).
fn inverse(odd: i64) -> i64 {
    (0..5).fold(odd, |x, _| {
        x.wrapping_mul(2i64.wrapping_sub(odd.wrapping_mul(x)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Register;

    #[test]
    fn steps_times_factors_are_what_a_turn_executes() {
        let of = |executed: i64, step: i64| {
            let mut all = Weights::default();
            all.0[0] = executed * exact::PARTS;
            let register = Register::RAX;
            factors(all, &Recurrence { register, step }).map(|factors| factors[0])
        };
        let all = [1, -1, 2, 3, 8, -8, 24, 40, 64, -96, 128, 4096 + 1];
        for (executed, step) in [1, 6, 7, 100].into_iter().flat_map(|n| all.map(|s| (n, s))) {
            let factor = of(executed, step).unwrap();
            assert_eq!(factor.wrapping_mul(step), executed * exact::PARTS);
            assert_eq!(factor & exact::TORN, 0);
        }
        // Less than what is left to tell a sum that is no whole number.
        assert_eq!(of(1, 256), None);
        assert!(of(2, 256).is_some());
        assert_eq!(of(1, i64::MIN), None);
    }
}
