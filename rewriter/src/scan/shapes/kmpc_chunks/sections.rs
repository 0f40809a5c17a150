//! Sections one by one: clang's `sections` are a loop over their numbers, from the first one that the runtime gives a thread to the
//! last. What the optimiser leaves of it is one section per round of a cycle if something in it begins with that first number, and
//! grows by one in each round. Rounds that were peeled off or unrolled would leave another number, or grow it by more.

use super::super::def_use::changed;
use super::super::{Analysis, NaturalLoop};
use crate::scan::flow::dataflow::{self, number};
use crate::scan::flow::lift::{self, Effect, Part};
use crate::scan::flow::slots::Slot;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::uses::{self, is_write, slot};
use crate::scan::flow::value::{State, Value};
use crate::scan::graph::settle;
use iced_x86::{Instruction, InstructionInfoFactory, Register};
use std::collections::{BTreeMap, BTreeSet};

/// The register with the fifth argument: where the first number's variable is.
const LOWER: usize = 8;

/// A general register, or a variable on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(usize),
    Slot(Slot),
}

/// What is this much more than the number that is followed.
type Numbers = BTreeMap<Place, u64>;

/// Whether every round of the cycle is one section; `begin`: the call that gives the thread its sections.
pub(super) fn are_counted(a: &Analysis<'_, '_>, begin: u64, cycle: &NaturalLoop) -> bool {
    let mut follower = Follower {
        a,
        info: InstructionInfoFactory::new(),
    };
    let first = follower.entered(begin, cycle);
    let mut counters: BTreeSet<Place> = first
        .filter_map(|(place, more)| (more == 0).then_some(place))
        .collect();
    // A copy of the number that stays what it is proves nothing: what grows must do so by itself.
    loop {
        let round = follower.round(&counters, cycle);
        let grown = |place: &&Place| round.get(place) == Some(&1);
        let left: BTreeSet<Place> = counters.iter().filter(grown).copied().collect();
        if left == counters {
            return !counters.is_empty();
        }
        counters = left;
    }
}

/// Keeps what both know.
fn meet(known: &Numbers, other: &Numbers) -> Numbers {
    let both = known
        .iter()
        .filter(|(place, more)| other.get(place) == Some(more));
    both.map(|(&place, &more)| (place, more)).collect()
}

/// Follows a number through a function's code.
struct Follower<'x, 'm, 'a> {
    a: &'x Analysis<'m, 'a>,
    info: InstructionInfoFactory,
}

impl Follower<'_, '_, '_> {
    /// What holds the first number, and something more than it, where the cycle is entered.
    fn entered(&mut self, begin: u64, cycle: &NaturalLoop) -> impl Iterator<Item = (Place, u64)> {
        let init = self.a.body.block_at(begin);
        let from = init.map(|b| (b, Numbers::new()));
        let known = from.and_then(|from| {
            self.flow(
                from,
                Some(begin),
                |b| !cycle.blocks.contains(&b),
                cycle.header,
            )
        });
        known.unwrap_or_default().into_iter()
    }

    /// What the counters have become at the end of a round.
    fn round(&mut self, counters: &BTreeSet<Place>, cycle: &NaturalLoop) -> Numbers {
        let start = counters.iter().map(|&place| (place, 0)).collect();
        let end = self.flow(
            (cycle.header, start),
            None,
            |b| cycle.blocks.contains(&b),
            cycle.header,
        );
        end.unwrap_or_default()
    }

    /// What is known on every way from a block's beginning, or from behind the call at `begin` in it, through blocks that are
    /// `inside`, to the beginning of the block `to`.
    fn flow(
        &mut self,
        (from, known): (usize, Numbers),
        begin: Option<u64>,
        inside: impl Fn(usize) -> bool,
        to: usize,
    ) -> Option<Numbers> {
        let leading = self.a.leading_to([to], |b| *b == from || !inside(*b));
        // What each block brings to the end.
        let mut ends: BTreeMap<usize, Numbers> = BTreeMap::new();
        let a = self.a;
        let step = |block: usize, numbers: &mut Numbers| {
            a.visit(block, |_, insn, state| match begin {
                Some(begin) if block == from && insn.ip() < begin => {}
                Some(begin) if insn.ip() == begin => {
                    if let Value::Stack(at) = state.reg(LOWER) {
                        numbers.insert(Place::Slot(at), 0);
                    }
                }
                _ => self.step(numbers, insn, state),
            });
            let next = a.body.following(block);
            if next.clone().any(|next| next == to) {
                ends.insert(block, numbers.clone());
            }
            next.filter(|next| *next != to && *next != from && leading.contains(next))
        };
        settle(BTreeMap::from([(from, known)]), step, meet);
        ends.into_values().reduce(|x, y| meet(&x, &y))
    }

    /// Executes an instruction.
    fn step(&mut self, numbers: &mut Numbers, insn: &Instruction, state: &State) {
        let found = result(numbers, insn, state);
        let info = self.info.info(insn);
        for used in info.used_memory().iter().filter(|m| is_write(m.access())) {
            let size = i64::try_from(used.memory_size().size().max(1)).unwrap_or(64);
            let at = slot(used, state);
            numbers.retain(|place, _| match (place, at) {
                (Place::Slot(of), Some(at)) => (1 - size..8).all(|by| at.plus(-by) != Some(*of)),
                (Place::Slot(of), None) => !self.a.flow.is_exposed(*of),
                _ => true,
            });
        }
        let changed = match is_call(insn) {
            true => changed(self.a.module, insn),
            false => uses::written(&mut self.info, insn),
        };
        numbers.retain(|place, _| match place {
            Place::Register(n) => changed >> n & 1 == 0,
            Place::Slot(at) => !is_call(insn) || !self.a.flow.is_exposed(*at),
        });
        numbers.extend(found);
    }
}

/// The place that an instruction gives a known number.
fn result(numbers: &Numbers, insn: &Instruction, state: &State) -> Option<(Place, u64)> {
    let effect = Effect::of(insn)?;
    let wide = |r: Register| (r.is_gpr32() || r.is_gpr64()).then(|| number(r)).flatten();
    let place = |part: Part| match lift::register(insn, part) {
        Some(register) => wide(register).map(Place::Register),
        None if lift::size(insn, part) >= 4 => dataflow::slot(state, insn).map(Place::Slot),
        None => None,
    };
    let (from, more) = effect.sum(insn)?;
    let more = u64::try_from(more).ok().filter(|&more| more <= 1)?;
    let known = numbers.get(&place(from)?)?;
    Some((place(effect.to)?, known + more))
}
