//! Static loops whose iterations are executed again without passing what begins the loop: where a loop is in a cycle, and nobody
//! waits behind it, gcc may divide and test once, in front of all rounds.

use super::why::Lost;
use super::{Analysis, NaturalLoop, again};
use crate::scan::flow::lazy::{Def, Edge, Lazy, Visit, Width};
use crate::scan::flow::uses::{Place, of_operand};
use iced_x86::InstructionInfoFactory;
use std::collections::BTreeSet;

/// Whether one of a loop's cycles, over the results of division `id`, is executed once more on a way that passes none of the blocks
/// `begins`: its counter begins anew there, with values that are the same in every round. In a loop's own outer cycle it
/// begins with others, or what is counted there isn't the share.
pub(super) fn passes_by(
    a: &Analysis<'_, '_>,
    id: u64,
    cycles: &[&NaturalLoop],
    begins: &[usize],
) -> Option<Lost> {
    NaturalLoop::outermost(cycles).iter().find_map(|c| {
        let around = a.body.around(c.header, |b| !begins.contains(&b));
        let is_repeated = !around.is_subset(&c.blocks);
        is_repeated.then(|| Round::of(a, c, &around).begins_anew(c, id))?
    })
}

/// The same of the loop whose diverging branch is that of block `first`, for the cycles behind that.
pub(super) fn passes_by_test(
    a: &Analysis<'_, '_>,
    id: u64,
    first: usize,
    begins: &[usize],
) -> Option<Lost> {
    let extent = a.extent(first);
    let own = |c: &&NaturalLoop| {
        let begins = begins.iter().any(|b| c.blocks.contains(b));
        extent.contains(&c.header) && !begins && again::iterates(a, c, id)
    };
    let own: Vec<&NaturalLoop> = a.cycles().iter().filter(own).collect();
    passes_by(a, id, &own, begins)
}

/// One way around, from a cycle's beginning to its next beginning.
struct Round<'x, 'm, 'a> {
    a: &'x Analysis<'m, 'a>,
    values: Lazy<'x>,
}

impl<'x, 'm, 'a> Round<'x, 'm, 'a> {
    fn of(a: &'x Analysis<'m, 'a>, cycle: &NaturalLoop, around: &BTreeSet<usize>) -> Self {
        let edge = |from: usize, to: usize| match to == cycle.header {
            true if !cycle.blocks.contains(&from) => Edge::End,
            true => Edge::Inside,
            false if around.contains(&to) || cycle.blocks.contains(&to) => Edge::Inside,
            false => Edge::Outside,
        };
        let values = Lazy::within(a, (cycle.header, 0), edge);
        Round { a, values }
    }

    /// Whether what the cycle compares where it is left, a share's part, begins with what it began with the last time.
    fn begins_anew(&mut self, cycle: &NaturalLoop, id: u64) -> Option<Lost> {
        let a = self.a;
        let leaving = a
            .decisions
            .iter()
            .filter(|(b, d)| cycle.blocks.contains(b) && a.leaves(**b, cycle) && d.is_of(id));
        let mut found = None;
        let mut info = InstructionInfoFactory::new();
        for (&block, decision) in leaving {
            a.visit(block, |i, insn, state| {
                if i == decision.compare {
                    let places = (0..insn.op_count().min(2))
                        .filter_map(|op| of_operand(&mut info, insn, op, state));
                    let mut all = places.map(|place| self.is_same(place));
                    let known = all.try_fold(Lost::Repeated, |lost, is_same| match is_same {
                        Some(true) => Some(lost),
                        Some(false) => None,
                        None => Some(Lost::Effort),
                    });
                    found = found.or(known);
                }
            });
        }
        found
    }

    /// Whether a place has the value again that it had at the cycle's last beginning: it comes from what stays the same only. Others
    /// may write what others know. `None`: that isn't known.
    fn is_same(&mut self, place: Place) -> Option<bool> {
        let a = self.a;
        let changes = |values: &mut Lazy<'x>, def: Def| {
            Some(match def.place() {
                Place::Flags => Visit::Past,
                Place::Frame | Place::Memory => Visit::Found,
                Place::Stack(at) if a.flow.is_exposed(at) => Visit::Found,
                place => match def {
                    Def::Start(_) if values.recurrence(place, Width::Half)? == Some((place, 0)) => {
                        Visit::Past
                    }
                    Def::Start(_) => Visit::Found,
                    _ if values.call(def).is_some() => Visit::Found,
                    _ => Visit::On,
                },
            })
        };
        let end = self.values.at_end(place)?;
        Some(!self.values.depends(end, changes)?)
    }
}
