//! Static loops whose iterations are executed again without passing what begins the loop: where a loop is in a cycle, and nobody
//! waits behind it, gcc may divide and test once, in front of all rounds.

use super::def_use::changed;
use super::{Analysis, NaturalLoop, again};
use crate::scan::flow::dataflow;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::uses::{Place, Uses, slot};
use crate::scan::flow::value::State;
use crate::scan::graph::settle;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

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

/// What a place's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    /// The values that places had when the cycle was begun the last time; `None`: from others too.
    from: Option<BTreeSet<Place>>,
    /// It is one of these values.
    is_copy: bool,
}

impl Origin {
    fn own(place: Place) -> Origin {
        Origin {
            from: Some(BTreeSet::from([place])),
            is_copy: true,
        }
    }

    const UNKNOWN: Origin = Origin {
        from: None,
        is_copy: false,
    };
}

/// The places that were written since then; the others have their values still.
type Written = BTreeMap<Place, Origin>;

/// One way around, from a cycle's beginning to its next beginning.
struct Round<'x, 'm, 'a> {
    a: &'x Analysis<'m, 'a>,
    info: InstructionInfoFactory,
    /// At the cycle's next beginning.
    end: Written,
}

impl<'x, 'm, 'a> Round<'x, 'm, 'a> {
    fn of(a: &'x Analysis<'m, 'a>, cycle: &NaturalLoop, around: &BTreeSet<usize>) -> Self {
        let mut round = Round {
            a,
            info: InstructionInfoFactory::new(),
            end: Written::new(),
        };
        let mut end: Option<Written> = None;
        let step = |at: usize, written: &mut Written| {
            a.visit(at, |_, insn, state| round.step(written, insn, state));
            let succs = a.body.blocks[at].succs.iter().copied();
            let outside = !cycle.blocks.contains(&at);
            if outside && succs.clone().any(|to| to == cycle.header) {
                let known = end.take();
                end = Some(known.map_or_else(|| written.clone(), |end| joined(&end, written)));
            }
            succs.filter(move |to| match *to == cycle.header {
                true => !outside,
                false => around.contains(to) || cycle.blocks.contains(to),
            })
        };
        settle(
            BTreeMap::from([(cycle.header, Written::new())]),
            step,
            joined,
        );
        round.end = end.unwrap_or_default();
        round
    }

    /// Whether what the cycle compares where it is left, a share's part, begins with what it began with the last time.
    fn begins_anew(&mut self, cycle: &NaturalLoop, id: u64) -> bool {
        let a = self.a;
        let leaving = a
            .decisions
            .iter()
            .filter(|(b, d)| cycle.blocks.contains(b) && a.leaves(**b, cycle) && d.is_of(id));
        let mut found = false;
        for (&block, decision) in leaving {
            a.visit(block, |i, insn, state| {
                if i == decision.compare {
                    found |= (0..insn.op_count().min(2)).all(|op| self.is_same(insn, op, state));
                }
            });
        }
        found
    }

    /// Whether an operand has the value again that it had at the cycle's last beginning.
    fn is_same(&mut self, insn: &Instruction, operand: u32, state: &State) -> bool {
        let place = match insn.op_kind(operand) {
            OpKind::Register => Place::Register(insn.op_register(operand).full_register()),
            OpKind::Memory => {
                let memory = self.info.info(insn).used_memory();
                match memory.iter().find_map(|m| slot(m, state)) {
                    Some(slot) if !self.a.flow.is_exposed(slot) => Place::Stack(slot),
                    _ => return false,
                }
            }
            _ => return true,
        };
        match self.end.get(&place) {
            None => true,
            Some(origin) => origin
                .from
                .as_ref()
                .is_some_and(|from| from.iter().all(|p| !self.end.contains_key(p))),
        }
    }

    /// Executes an instruction.
    fn step(&mut self, written: &mut Written, insn: &Instruction, state: &State) {
        let a = self.a;
        if is_call(insn) {
            let changed = changed(a.module, insn);
            for n in (0..16).filter(|n| changed & 1 << n != 0) {
                written.insert(Place::Register(Register::RAX + n), Origin::UNKNOWN);
            }
            for n in 0..16 {
                written.insert(Place::Register(Register::ZMM0 + n), Origin::UNKNOWN);
            }
            return;
        }
        let uses = Uses::of(&mut self.info, insn, state);
        // Others may write what others know.
        let is_own = |place: Place| match place {
            Place::Register(_) => true,
            Place::Stack(at) => !a.flow.is_exposed(at),
            Place::Frame | Place::Memory | Place::Flags => false,
        };
        let mut origin = Origin {
            from: Some(BTreeSet::new()),
            is_copy: insn.mnemonic() == Mnemonic::Mov,
        };
        for place in uses.reads {
            let is_frame = |r| dataflow::number(r).is_some_and(|n| state.regs.slot(n).is_some());
            let read = match place {
                Place::Flags => continue,
                Place::Register(register) if is_frame(register) => continue,
                _ if !is_own(place) => Origin::UNKNOWN,
                _ => written.get(&place).cloned().unwrap_or(Origin::own(place)),
            };
            origin.from = origin.from.take().zip(read.from).map(|(x, y)| &x | &y);
            origin.is_copy &= read.is_copy;
        }
        for (place, _) in uses.writes.into_iter().filter(|(place, _)| is_own(*place)) {
            // What is saved in front of a call, say, and restored behind it.
            if origin == Origin::own(place) {
                written.remove(&place);
            } else {
                written.insert(place, origin.clone());
            }
        }
    }
}

/// What one of two ways brings: a place that only one of them writes may have its value still.
fn joined(x: &Written, y: &Written) -> Written {
    let origin = |written: &Written, place: Place| {
        let known = written.get(&place).cloned();
        known.unwrap_or(Origin::own(place))
    };
    let all: BTreeSet<Place> = x.keys().chain(y.keys()).copied().collect();
    let both = all.into_iter().map(|place| {
        let (x, y) = (origin(x, place), origin(y, place));
        let origin = match x == y {
            true => x,
            false => Origin {
                from: x.from.zip(y.from).map(|(x, y)| &x | &y),
                is_copy: false,
            },
        };
        (place, origin)
    });
    both.collect()
}
