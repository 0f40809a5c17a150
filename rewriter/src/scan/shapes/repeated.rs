//! Static loops whose iterations are executed again without passing what begins the loop: where a loop is in a cycle, and nobody
//! waits behind it, gcc may divide and test once, in front of all rounds.

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
) -> bool {
    NaturalLoop::outermost(cycles).iter().any(|c| {
        let around = a.body.around(c.header, |b| !begins.contains(&b));
        !around.is_subset(&c.blocks) && Round::of(a, c, &around).begins_anew(c, id)
    })
}

/// The same of the loop whose diverging branch is that of block `first`, for the cycles behind that.
pub(super) fn passes_by_test(
    a: &Analysis<'_, '_>,
    id: u64,
    first: usize,
    begins: &[usize],
) -> bool {
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
    fn begins_anew(&mut self, cycle: &NaturalLoop, id: u64) -> bool {
        let a = self.a;
        let leaving = a
            .decisions
            .iter()
            .filter(|(b, d)| cycle.blocks.contains(b) && a.leaves(**b, cycle) && d.is_of(id));
        let mut found = false;
        let mut info = InstructionInfoFactory::new();
        for (&block, decision) in leaving {
            a.visit(block, |i, insn, state| {
                if i == decision.compare {
                    let mut places = (0..insn.op_count().min(2))
                        .map(|op| of_operand(&mut info, insn, op, state));
                    found |= places.all(|place| place.is_none_or(|place| self.is_same(place)));
                }
            });
        }
        found
    }

    /// Whether a place has the value again that it had at the cycle's last beginning: it comes from what stays the same only. Others
    /// may write what others know.
    fn is_same(&mut self, place: Place) -> bool {
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
        let end = self.values.at_end(place);
        let changed = end.and_then(|end| self.values.depends(end, changes));
        // Without an answer it may be.
        changed != Some(true)
    }
}
