//! Whether a division by the number of threads is gcc's: what is computed from its results is followed with numbers.
//!
//! gcc changes both results before it multiplies, in branches or without: `if (thread < r) { r = 0; q += 1; }
//! s0 = q * thread + r`. So one multiplication is by `q + 1` for the first threads and by `q` for the others. Code written by
//! hand comes to the same ranges by other ways: `thread * q + min(thread, r)` multiplies by `q` always.

mod execute;

use super::Analysis;
use crate::scan::flow::mask;
use execute::Machine;
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a division is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A static loop, or code that computes its range with the same steps.
    Loop,
    /// Code that divides work in another way.
    ByHand,
    /// No multiplication with the thread's number was seen.
    Unclear,
}

/// How often a block is executed, by different paths.
const VISITS: u8 = 4;

/// Numbers that stand for what is not known.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// Of threads or teams.
    threads: u64,
    /// The own one.
    thread: u64,
    quotient: u64,
    /// Two remainders: the thread is one of the first, or not.
    more: u64,
    less: u64,
}

/// Of a size that products don't overflow, for types of 4, 2 and 1 bytes. No small numbers, which code has as constants
/// too; but gcc knows the quotient of a single iteration to be 0, and doesn't take it from the division.
const NUMBERS: [Numbers; 4] = [
    numbers(2029, 1013, 100_003, 1721, 379),
    numbers(101, 53, 499, 97, 29),
    numbers(13, 5, 17, 11, 3),
    numbers(2029, 1013, 0, 1721, 379),
];

const fn numbers(threads: u64, thread: u64, quotient: u64, more: u64, less: u64) -> Numbers {
    Numbers {
        threads,
        thread,
        quotient,
        more,
        less,
    }
}

/// Finds out what a division by `by`, with operands of `size` bytes, at address `at` in `block` is for.
pub(super) fn origin(
    a: &Analysis<'_, '_>,
    at: u64,
    block: usize,
    by: Query,
    size: usize,
) -> Origin {
    let mut out = Origin::Unclear;
    for numbers in NUMBERS {
        let run = |remainder, enough: fn(&Run<'_, '_, '_>) -> bool| {
            Run::of(a, at, block, by, size, (numbers, remainder), enough)
        };
        // Where it is a loop's, few blocks tell; what is asked then has the same answer after all of them.
        let mut first = run(numbers.more, |run| run.has_larger());
        if first.has_larger() {
            if run(numbers.less, |run| run.has_smaller()).has_smaller() {
                return Origin::Loop;
            }
            first = run(numbers.more, |_| false);
        }
        // Of one iteration no thread has a larger share but the first: gcc computes with that, and little else is left.
        if first.single {
            return Origin::Loop;
        }
        if first.multiplies && out == Origin::Unclear && run(numbers.less, |_| false).multiplies {
            out = Origin::ByHand;
        }
    }
    out
}

/// One execution of what follows a division; where a branch depends on something unknown, on both ways.
struct Run<'x, 'm, 'a> {
    a: &'x Analysis<'m, 'a>,
    id: u64,
    by: Query,
    rank: Query,
    numbers: Numbers,
    remainder: u64,
    /// Of the division's operands, in bytes.
    size: usize,
    /// What the thread's number is multiplied by.
    by_thread: BTreeSet<u64>,
    /// Shares are multiplied with something that is known.
    multiplies: bool,
    /// The start of a range without a larger share was computed.
    starts: bool,
    /// The constant 1 is divided.
    single: bool,
}

impl<'x, 'm, 'a> Run<'x, 'm, 'a> {
    fn of(
        a: &'x Analysis<'m, 'a>,
        at: u64,
        block: usize,
        by: Query,
        size: usize,
        (numbers, remainder): (Numbers, u64),
        enough: fn(&Self) -> bool,
    ) -> Self {
        let mut run = Run {
            a,
            id: a.flow.name(at),
            by,
            rank: super::division::rank(by),
            numbers,
            remainder,
            size,
            by_thread: BTreeSet::new(),
            multiplies: false,
            starts: false,
            single: false,
        };
        run.all(block, enough);
        run
    }

    /// The thread's number is multiplied by a larger share.
    fn has_larger(&self) -> bool {
        self.by_thread.contains(&(self.numbers.quotient + 1))
    }

    /// It is multiplied by a smaller one, and a range begins there.
    fn has_smaller(&self) -> bool {
        self.by_thread.contains(&self.numbers.quotient) && self.starts
    }

    /// With what the data flow knows of registers at a block's beginning: behind it other paths may bring others.
    fn machine(&self, block: usize) -> Machine {
        let mut machine = Machine::default();
        let first = self.a.body.blocks[block].insns.start;
        self.a.visit(block, |i, _, state| {
            if i == first {
                for (n, known) in machine.regs.iter_mut().enumerate() {
                    *known = self.number(state.reg(n)).map(|v| (v, 8));
                }
            }
        });
        machine
    }

    /// Executes from the division's block on, until it is `enough`.
    fn all(&mut self, block: usize, enough: fn(&Self) -> bool) {
        let a = self.a;
        let mut visits: BTreeMap<usize, u8> = BTreeMap::new();
        let mut work = VecDeque::from([(block, self.machine(block))]);
        while let Some((block, mut machine)) = work.pop_front() {
            let visited = visits.entry(block).or_default();
            if *visited == VISITS {
                continue;
            }
            *visited += 1;
            a.visit(block, |_, insn, state| {
                self.execute(&mut machine, insn, state);
            });
            if enough(self) {
                return;
            }
            let decided = a.body.last(block).and_then(|last| {
                let taken = last
                    .is_jcc_short_or_near()
                    .then(|| machine.flags?.holds(last.condition_code()))??;
                Some(match taken {
                    true => last.near_branch_target(),
                    false => last.next_ip(),
                })
            });
            let succs = a.body.blocks[block].succs.iter().copied();
            let is_next = |&s: &usize| decided.is_none_or(|to| a.body.blocks[s].start == to);
            let is_known = succs.clone().any(|s| is_next(&s));
            let follows = succs.filter(|s| !is_known || is_next(s));
            let follows = follows.filter(|s| visits.get(s) != Some(&VISITS));
            work.extend(follows.map(|s| (s, machine.clone())));
        }
    }

    /// Remembers a multiplication of shares: with the thread's number, or with another that isn't that of all threads.
    fn note(&mut self, x: u64, y: u64) {
        let n = self.numbers;
        // After a division of bytes another one stands above.
        let (x, y) = (x & mask(self.size), y & mask(self.size));
        for (x, y) in [(x, y), (y, x)] {
            if x == n.thread {
                self.by_thread.insert(y);
            }
            let shares = x == n.quotient || x == n.quotient + 1;
            self.multiplies |= x == n.thread || shares && y != n.threads;
        }
    }
}
