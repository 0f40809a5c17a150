//! The instructions of a function while it is decoded, and what its branches say of where blocks begin.

use super::reaching::Ways;
use crate::scan::cfg::Exit;
use crate::scan::grid::Grid;
use iced_x86::Instruction;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

/// Addresses that a branch leads to: seldom more than one.
pub(super) type Targets = SmallVec<[u64; 1]>;

/// What ends a block.
#[derive(Default)]
pub(super) struct Flow {
    /// The number of the instruction that does.
    pub insn: u32,
    pub targets: Targets,
    pub falls: bool,
    pub exit: Option<Exit>,
    pub pads: Targets,
}

/// Where known branches lead to in a range of addresses.
pub(crate) struct Joins {
    pub range: Range<u64>,
    pub all: SmallVec<[u64; 4]>,
    /// Something outside of the range was asked for too.
    pub left: Cell<bool>,
}

/// The instructions decoded so far, in the order in which they were.
#[derive(Default)]
pub(crate) struct Decoded {
    pub(super) insns: Vec<Instruction>,
    pub(super) grid: Grid,
    /// Of an indirect jump there are two: the second one counts. In the order of their instructions once [`Decoded::starts`] was asked.
    pub(super) flows: Vec<Flow>,
    /// Numbers of instructions that were decoded one behind the other.
    pub(super) runs: Vec<Range<usize>>,
    /// Instructions that may lead to the runtime.
    pub(super) leads: Vec<usize>,
    /// See [`crate::scan::cfg::Body::atomics`].
    pub(super) atomics: bool,
    /// Where branches lead, as far as [`Decoded::learn`] was told.
    pub(super) ways: Ways,
    pub(super) makes: Makes,
    /// Addresses where something else begins, ascending: no table goes on there.
    pub(super) bounds: Vec<u64>,
    /// Steps that questions about indirect jumps have taken.
    pub(super) steps: Cell<usize>,
}

/// Addresses that instructions make.
#[derive(Default)]
pub(super) struct Makes {
    /// As they were decoded, and whether `lea` makes them.
    pub(super) list: Vec<(u64, bool)>,
    /// So many of these are in the sets.
    known: usize,
    /// Those that `lea` makes.
    loaded: BTreeSet<u64>,
    /// With those that may be numbers.
    all: BTreeSet<u64>,
}

/// A function whose indirect jumps take more steps than this to look at is listed only: it is no compiler's, and would take
/// for ever.
const MAX_STEPS: usize = 1 << 24;

impl Decoded {
    /// Whether a table that begins before this address has ended there.
    pub(crate) fn is_bound(&self, va: u64) -> bool {
        self.bounds.binary_search(&va).is_ok()
    }

    /// Takes in what was decoded since it was called before.
    pub(super) fn learn(&mut self) {
        self.ways.learn(&self.flows);
        let makes = &mut self.makes;
        for &(made, is_load) in &makes.list[makes.known..] {
            makes.all.insert(made);
            makes.loaded.extend(is_load.then_some(made));
        }
        makes.known = makes.list.len();
    }

    /// The addresses that instructions load, ascending.
    pub(crate) fn loaded(&self) -> Vec<u64> {
        self.spend(self.makes.loaded.len());
        self.makes.loaded.iter().copied().collect()
    }

    /// The addresses that instructions make, ascending.
    pub(crate) fn made(&self) -> &BTreeSet<u64> {
        self.spend(self.makes.all.len());
        &self.makes.all
    }

    /// Counts steps.
    pub(crate) fn spend(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Whether no more questions are answered.
    pub(crate) fn is_spent(&self) -> bool {
        self.steps.get() > MAX_STEPS
    }

    /// The instructions before an address, the nearest first.
    pub(crate) fn before(&self, va: u64) -> impl Iterator<Item = &Instruction> {
        let mut at = va;
        std::iter::from_fn(move || {
            let insn = &self.insns[self.grid.insn_before(at.checked_sub(1)?)?];
            at = insn.ip();
            Some(insn)
        })
    }

    /// Where known branches lead to in a range of addresses.
    pub(crate) fn joins(&self, range: Range<u64>) -> Joins {
        Joins {
            all: self.ways.to.range(range.clone()).map(|to| *to.0).collect(),
            range,
            left: Cell::new(false),
        }
    }

    /// Where branches lead, ascending, and the branches' numbers in the order in which they were found.
    pub(super) fn targets(&self) -> Vec<(u64, usize)> {
        let mut all = Vec::with_capacity(self.flows.len());
        for (number, flow) in self.flows.iter().enumerate() {
            let targets = flow.targets.iter().chain(&flow.pads);
            all.extend(targets.map(|&va| (va, number)));
        }
        all.sort_unstable();
        all
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Instruction] {
        &self.insns
    }

    /// Numbers of the instructions that begin blocks, ascending; `roots`: addresses that control comes to in ways that no
    /// branch shows. The instructions are sorted by address then. Also whether some overlap.
    pub(super) fn starts(&mut self, roots: &[u64], room: &mut Room) -> (Vec<usize>, bool) {
        let overlap = !self.in_order() && self.sort(room);
        if !self.flows.is_sorted_by_key(|f| f.insn) {
            self.flows.sort_by_key(|f| f.insn);
        }
        let place = |n: usize| room.place.get(n).map_or(n, |&to| to as usize);
        let mut begins = vec![0u64; self.insns.len() / 64 + 1];
        let mut begin = |n: usize| begins[n / 64] |= 1 << (n % 64);
        let jumps = self
            .flows
            .iter()
            .flat_map(|f| f.targets.iter().chain(&f.pads));
        for number in roots
            .iter()
            .chain(jumps)
            .filter_map(|&va| self.grid.insn(va))
        {
            begin(place(number));
        }
        // Nothing but branches, and what is behind them, begins blocks within a run.
        self.flows.iter().for_each(|f| begin(f.insn as usize + 1));
        let insns = &self.insns;
        let behind = |i: usize| i > 0 && insns[i - 1].next_ip() == insns[i].ip();
        match overlap {
            true => (0..insns.len()).filter(|&i| !behind(i)).for_each(begin),
            false => {
                let starts = self.runs.iter().map(|run| run.start);
                starts.filter(|&i| !behind(i)).for_each(begin);
            }
        }
        room.place.clear();
        let mut out = Vec::with_capacity(self.flows.len() + 1);
        for (n, &word) in begins.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                out.push(64 * n + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        if out.last() == Some(&self.insns.len()) {
            out.pop();
        }
        (out, overlap)
    }

    /// Whether the instructions are in order, and none overlaps another: each run begins behind the one before.
    fn in_order(&self) -> bool {
        self.runs.windows(2).all(|pair| {
            let [before, behind] = pair else { return true };
            self.insns[before.end - 1].next_ip() <= self.insns[behind.start].ip()
        })
    }

    /// Sorts by address; where the instructions are now is in [`Room::place`]. Tells whether some overlap.
    fn sort(&mut self, room: &mut Room) -> bool {
        let mut order: Vec<u32> = (0..self.runs.len() as u32).collect();
        order.sort_unstable_by_key(|&r| self.insns[self.runs[r as usize].start].ip());
        room.place.clear();
        room.place.extend(0..self.insns.len() as u32);
        let mut sorted = Vec::with_capacity(self.runs.len());
        // Most runs stay where they are: only those are copied that others have to let in.
        let mut first = 0;
        let mut last = 0;
        for (n, &r) in order.iter().enumerate() {
            last = last.max(r as usize);
            if last == n {
                self.permute(&order[first..=n], first, room, &mut sorted);
                first = n + 1;
            }
        }
        self.runs = sorted;
        let overlap = !self.in_order();
        if overlap {
            // Runs interleave.
            let mut order: Vec<u32> = (0..self.insns.len() as u32).collect();
            order.sort_by_key(|&i| self.insns[i as usize].ip());
            let mut place = vec![0; order.len()];
            for (to, &from) in (0..).zip(&order) {
                place[from as usize] = to;
            }
            self.insns = order.iter().map(|&i| self.insns[i as usize]).collect();
            room.place
                .iter_mut()
                .for_each(|to| *to = place[*to as usize]);
        }
        for lead in &mut self.leads {
            *lead = room.place[*lead] as usize;
        }
        self.leads.sort_unstable();
        for flow in &mut self.flows {
            flow.insn = room.place[flow.insn as usize];
        }
        overlap
    }
}

impl Decoded {
    /// Puts some runs, of which `first` is the lowest number, into this order: they take the place that they have together.
    fn permute(
        &mut self,
        order: &[u32],
        first: usize,
        room: &mut Room,
        sorted: &mut Vec<Range<usize>>,
    ) {
        if let &[_] = order {
            return sorted.push(self.runs[first].clone());
        }
        let begin = self.runs[first].start;
        room.insns.clear();
        for &r in order {
            let run = self.runs[r as usize].clone();
            let start = begin + room.insns.len();
            room.insns.extend_from_slice(&self.insns[run.clone()]);
            for (to, place) in (start as u32..).zip(&mut room.place[run]) {
                *place = to;
            }
            sorted.push(start..begin + room.insns.len());
        }
        self.insns[begin..begin + room.insns.len()].copy_from_slice(&room.insns);
    }
}

/// Memory to sort in.
#[derive(Default)]
pub(super) struct Room {
    pub(super) insns: Vec<Instruction>,
    /// Of each instruction that was sorted, its new number.
    place: Vec<u32>,
}
