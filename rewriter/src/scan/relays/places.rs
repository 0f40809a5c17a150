//! Which addresses may be where at one point of a function.

use crate::scan::flow::slots::Slot;
use std::collections::{BTreeMap, BTreeSet};

/// Instead of an instruction's number: the value may come from elsewhere.
pub(super) const ELSEWHERE: usize = usize::MAX;

/// Numbers of the instructions that a value may come from; empty: from elsewhere only.
pub(super) type Origins = BTreeSet<usize>;

/// An address on the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spilled {
    pub(super) origins: Origins,
    /// Calls since then that may have got it as an argument.
    pub(super) passed: BTreeSet<u64>,
}

/// What may be where at one point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) regs: [Origins; 16],
    pub(super) slots: BTreeMap<Slot, Spilled>,
}

impl Places {
    /// What may be in either.
    pub(super) fn joined(&self, other: &Places) -> Places {
        let mut all = self.clone();
        for (mine, theirs) in all.regs.iter_mut().zip(&other.regs) {
            join(mine, theirs);
        }
        let none = Spilled::default();
        for (at, mine) in &mut all.slots {
            let theirs = other.slots.get(at).unwrap_or(&none);
            join(&mut mine.origins, &theirs.origins);
            mine.passed.extend(&theirs.passed);
        }
        for (at, theirs) in &other.slots {
            if !all.slots.contains_key(at) {
                let mut both = theirs.clone();
                both.origins.insert(ELSEWHERE);
                all.slots.insert(*at, both);
            }
        }
        all
    }

    /// Slots that hold something of these bytes.
    pub(super) fn overlapping(&self, at: Slot, size: i64) -> Vec<Slot> {
        let (from, to) = (at.plus(-7).unwrap_or(at), at.plus(size));
        match to {
            Some(to) => self.slots.range(from..to).map(|s| *s.0).collect(),
            None => self.slots.range(from..).map(|s| *s.0).collect(),
        }
    }
}

/// Adds what the other has, or that it has nothing.
fn join(mine: &mut Origins, theirs: &Origins) {
    match (mine.is_empty(), theirs.is_empty()) {
        (true, true) => {}
        (true, false) => {
            mine.extend(theirs);
            mine.insert(ELSEWHERE);
        }
        (false, true) => {
            mine.insert(ELSEWHERE);
        }
        (false, false) => mine.extend(theirs),
    }
}
