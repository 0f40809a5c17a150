//! Values by need: what a place holds is a definition, and what that is computed from is looked for backwards when somebody asks
//! (M. Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", 2013).
//!
//! Places are registers and stack slots. A slot that others may know changes with calls and with writes to unknown addresses. A region
//! of the function's graph is looked at, from its beginning to its end. The effort is limited; `None` says that it was spent.

use super::changes::{Change, Step, Sum};
use super::slots::Slot;
use super::uses::Place;
use ompfuse_patterns::Query;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;
use std::ops::Range;

/// Instructions that are looked at in one region.
const MAX_STEPS: usize = 1 << 19;

/// The block behind a region.
const END: usize = usize::MAX;

/// Code whose values are asked for.
pub(crate) trait Code {
    /// The blocks that follow a block.
    fn following(&self, block: usize) -> Vec<usize>;
    /// What a block's instructions do.
    fn steps(&self, block: usize) -> Vec<Step>;
    /// Whether others may know a slot's address.
    fn is_exposed(&self, at: Slot) -> bool;
}

/// Where a place got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Def {
    /// It had it where the region begins.
    Start(Place),
    /// From this instruction of the block.
    Written {
        block: usize,
        step: usize,
        place: Place,
    },
    /// From one of the ways to this block.
    Joined { block: usize, place: Place },
}

impl Def {
    pub(crate) fn place(self) -> Place {
        match self {
            Def::Start(place) | Def::Written { place, .. } | Def::Joined { place, .. } => place,
        }
    }
}

/// What follows an edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// More of the region.
    Inside,
    /// The region's end.
    End,
    Outside,
}

/// What visitors make of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    Found,
    /// What it is computed from is to be visited too.
    On,
    Past,
}

/// How much of a place is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// 4 bytes: extensions of them are copies.
    Half,
    /// 8 bytes. What is added to half of them may begin again at 0, and then the sum is another.
    Whole,
}

/// The value that another is a constant more than, and the constant; that alone without a value.
type Affine = (Option<Def>, i64);

/// A definition, and what it is made of.
struct Node {
    def: Def,
    made: Made,
}

enum Made {
    /// The value of one other, or of each way one, and a constant; it stands for itself without any.
    Sum(SmallVec<[Def; 4]>, i64),
    Constant(i64),
}

/// The values of a region.
pub(crate) struct Lazy<'x> {
    code: &'x dyn Code,
    /// What leads to each block; `None`: the region begins there.
    preds: FxHashMap<usize, SmallVec<[Option<usize>; 2]>>,
    steps: FxHashMap<usize, Vec<Step>>,
    /// Effort that is left.
    left: usize,
}

impl<'x> Lazy<'x> {
    /// From the beginning of a block, or this many instructions behind it; then no edge leads there. `edge`: what an edge leads to.
    pub(crate) fn within(
        code: &'x dyn Code,
        (start, skipped): (usize, usize),
        edge: impl Fn(usize, usize) -> Edge,
    ) -> Lazy<'x> {
        let mut lazy = Lazy::from(code, [start]);
        let mut seen = FxHashSet::from_iter([start]);
        let mut work = vec![start];
        while let Some(block) = work.pop() {
            for to in code.following(block) {
                let to = match edge(block, to) {
                    Edge::Inside => to,
                    Edge::End => END,
                    Edge::Outside => continue,
                };
                let preds = lazy.preds.entry(to).or_default();
                if !preds.contains(&Some(block)) {
                    preds.push(Some(block));
                }
                if to != END && seen.insert(to) {
                    work.push(to);
                }
            }
        }
        if skipped > 0 {
            let steps = code.steps(start).into_iter().skip(skipped);
            lazy.steps.insert(start, steps.collect());
        }
        lazy
    }

    /// Of a function with so many blocks, which begins with these.
    pub(crate) fn of_all(code: &'x dyn Code, blocks: usize, roots: &[usize]) -> Lazy<'x> {
        let mut lazy = Lazy::from(code, roots.iter().copied());
        for block in 0..blocks {
            for to in code.following(block) {
                lazy.preds.entry(to).or_default().push(Some(block));
            }
        }
        lazy
    }

    /// Of so many blocks, each of which is a region of its own. No question takes longer than a block is.
    pub(crate) fn of_each(code: &'x dyn Code, blocks: usize) -> Lazy<'x> {
        let mut lazy = Lazy::from(code, 0..blocks);
        lazy.left = usize::MAX;
        lazy
    }

    fn from(code: &'x dyn Code, starts: impl IntoIterator<Item = usize>) -> Lazy<'x> {
        let starts = starts.into_iter().map(|start| (start, smallvec![None]));
        Lazy {
            code,
            preds: starts.collect(),
            steps: FxHashMap::from_iter([(END, Vec::new())]),
            left: MAX_STEPS,
        }
    }

    /// What a place holds at the region's end.
    pub(crate) fn at_end(&mut self, place: Place) -> Option<Def> {
        self.before(END, 0, place)
    }

    /// What a place holds before an instruction of a block.
    pub(crate) fn before(&mut self, block: usize, step: usize, place: Place) -> Option<Def> {
        let is_exposed = matches!(place, Place::Stack(at) if self.code.is_exposed(at));
        let (mut block, mut end) = (block, step);
        if place == Place::Memory {
            return Some(Def::Start(place)); // nothing that is written elsewhere is followed
        }
        for _ in 0..=self.preds.len() {
            let steps = self.steps.entry(block);
            let steps = steps.or_insert_with(|| self.code.steps(block));
            let steps = &steps[..end.min(steps.len())];
            self.left = self.left.checked_sub(steps.len() + 1)?;
            let by = |step: &Step| step.change(place, is_exposed).is_some();
            if let Some(step) = steps.iter().rposition(by) {
                return Some(Def::Written { block, step, place });
            }
            match self.preds.get(&block).map_or(&[][..], |preds| preds) {
                [Some(before)] => (block, end) = (*before, usize::MAX),
                [] | [None] => break,
                _ => return Some(Def::Joined { block, place }),
            }
        }
        Some(Def::Start(place))
    }

    /// What a value is computed from.
    fn parts(&mut self, def: Def) -> Option<SmallVec<[Def; 4]>> {
        match def {
            Def::Start(_) => Some(SmallVec::new()),
            Def::Joined { block, place } => {
                let preds = self.preds[&block].clone().into_iter();
                preds
                    .map(|before| match before {
                        Some(before) => self.before(before, usize::MAX, place),
                        None => Some(Def::Start(place)),
                    })
                    .collect()
            }
            Def::Written { block, step, place } => {
                let is_exposed = matches!(place, Place::Stack(at) if self.code.is_exposed(at));
                let written = &self.steps[&block][step];
                let change = written.change(place, is_exposed);
                let mut places = match change {
                    Some(Change::Sets | Change::Mixes) => written.reads.clone(),
                    Some(Change::Clobbers) | None => SmallVec::new(),
                };
                if change != Some(Change::Sets) {
                    places.push(place);
                }
                let mut places = places.into_iter();
                places.try_fold(SmallVec::new(), |mut all, place| {
                    all.push(self.before(block, step, place)?);
                    Some(all)
                })
            }
        }
    }

    /// The call that a value comes from, and what it asks for.
    pub(crate) fn call(&self, def: Def) -> Option<Option<Query>> {
        match def {
            Def::Written { block, step, .. } => self.steps[&block][step].call,
            _ => None,
        }
    }

    /// Visits a value and what it is computed from, until something is found.
    pub(crate) fn depends(
        &mut self,
        on: Def,
        mut visit: impl FnMut(&mut Self, Def) -> Option<Visit>,
    ) -> Option<bool> {
        let mut seen = FxHashSet::from_iter([on]);
        let mut work = vec![on];
        while let Some(def) = work.pop() {
            match visit(self, def)? {
                Visit::Found => return Some(true),
                Visit::Past => {}
                Visit::On => work.extend(self.parts(def)?.into_iter().filter(|d| seen.insert(*d))),
            }
        }
        Some(false)
    }

    /// The value that this one is a constant more than, and that constant; no value where it is a constant itself. Where all ways bring
    /// the same, it is that; else what is joined stands for itself.
    fn affine(&mut self, def: Def, width: Width) -> Option<Affine> {
        let graph = self.sums(def, width)?;
        let mut apart: FxHashSet<Def> = FxHashSet::default();
        loop {
            let mut known: FxHashMap<Def, Affine> = FxHashMap::default();
            loop {
                self.left = self.left.checked_sub(graph.len())?;
                let before = known.len();
                for node in graph.iter().rev() {
                    let value = match &node.made {
                        Made::Constant(value) => Some((None, *value)),
                        Made::Sum(from, _) if from.is_empty() || apart.contains(&node.def) => {
                            Some((Some(node.def), 0))
                        }
                        Made::Sum(from, more) => from.iter().find_map(|from| {
                            let (base, by) = known.get(from)?;
                            Some((*base, by.wrapping_add(*more)))
                        }),
                    };
                    if let Some(value) = value {
                        known.entry(node.def).or_insert(value);
                    }
                }
                if known.len() == before {
                    break;
                }
            }
            let differ = |node: &&Node| {
                let Made::Sum(from, _) = &node.made else {
                    return false;
                };
                let mut all = from.iter().filter_map(|from| known.get(from));
                let first = all.next();
                all.any(|other| Some(other) != first)
            };
            let odd = graph.iter().filter(differ).map(|node| node.def);
            let before = apart.len();
            apart.extend(odd);
            if apart.len() == before {
                return known.get(&def).copied();
            }
        }
    }

    /// The sums and joins that a value is made of.
    fn sums(&mut self, def: Def, width: Width) -> Option<Vec<Node>> {
        let mut graph: Vec<Node> = Vec::new();
        let mut seen = FxHashSet::from_iter([def]);
        let mut work = vec![def];
        while let Some(def) = work.pop() {
            let made = match def {
                Def::Start(_) => Made::Sum(SmallVec::new(), 0),
                Def::Joined { .. } => Made::Sum(self.parts(def)?, 0),
                Def::Written { block, step, place } => {
                    let sum = self.steps[&block][step].sum;
                    let fits = |sum: &Sum| sum.to == place && (sum.whole || width == Width::Half);
                    match sum.filter(fits) {
                        Some(Sum { from, more, .. }) => match from {
                            Some(from) => {
                                Made::Sum(smallvec![self.before(block, step, from)?], more)
                            }
                            None => Made::Constant(more),
                        },
                        None => Made::Sum(SmallVec::new(), 0),
                    }
                }
            };
            if let Made::Sum(from, _) = &made {
                work.extend(from.iter().copied().filter(|d| seen.insert(*d)));
            }
            graph.push(Node { def, made });
        }
        Some(graph)
    }

    /// What a place holds at the region's end, if that is a constant more than what one held at its beginning: an induction variable's
    /// step, where the region is a round of a cycle.
    pub(crate) fn recurrence(
        &mut self,
        place: Place,
        width: Width,
    ) -> Option<Option<(Place, i64)>> {
        let end = self.at_end(place)?;
        Some(match self.affine(end, width)? {
            (Some(Def::Start(from)), more) => Some((from, more)),
            _ => None,
        })
    }

    /// By how much a place's 8 bytes grow from an instruction of a block to another, if that is known.
    pub(crate) fn growth(
        &mut self,
        block: usize,
        steps: Range<usize>,
        place: Place,
    ) -> Option<i64> {
        let [before, after] = [steps.start, steps.end].map(|step| {
            let def = self.before(block, step, place)?;
            self.affine(def, Width::Whole)
        });
        let ((base, before), (same, after)) = (before?, after?);
        (base == same).then_some(after.wrapping_sub(before))
    }

    /// The constant that a place's 8 bytes are before an instruction of a block, if they are one.
    pub(crate) fn constant(&mut self, block: usize, step: usize, place: Place) -> Option<i64> {
        let def = self.before(block, step, place)?;
        match self.affine(def, Width::Whole)? {
            (None, value) => Some(value),
            _ => None,
        }
    }

    /// The places that instructions of the region write.
    pub(crate) fn written(&mut self) -> BTreeSet<Place> {
        let mut places = BTreeSet::new();
        for &block in self.preds.keys() {
            let steps = self.steps.entry(block);
            let steps = steps.or_insert_with(|| self.code.steps(block)).iter();
            places.extend(steps.flat_map(|step| step.writes.iter().map(|write| write.place)));
        }
        places
    }
}

#[cfg(test)]
mod tests;
