//! Exact counts of the instructions that a thread executes, as a running sum that the code itself keeps.
//!
//! A function's code is divided into *segments* at its *cuts*: the places where a unit may begin or end, which are the entry, the
//! exits, calls, and probes. At each cut the sum must be what was executed. Between cuts it may be ahead or behind by a
//! *potential*: constants are added on few segments only (Knuth 1973; Ball and Larus 1994). In a loop the potential may be a multiple of
//! a register (`pieces`).
//!
//! Nothing here knows OpenMP or the file; `scan/counted.rs` brings both together.

mod events;
pub(crate) mod live;
mod pieces;
mod potential;
mod registers;
mod rooms;
pub(crate) mod segments;
pub(crate) mod spots;
mod trips;

use ompfuse_format::event::exact;
use serde::Serialize;

/// A number for each event of [`exact::EVENTS`], in parts ([`exact::PARTS`]).
pub(crate) type Amounts = [i32; exact::COUNT];

/// A constant that is added to the thread's sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Increment {
    /// Address of the instruction that it belongs to.
    pub at: u64,
    /// Where.
    pub place: Place,
    /// What is added to each event's sum.
    pub amounts: Amounts,
    /// x86 number of a general register that nobody reads there; the arithmetic flags are as free. `None`: both are saved.
    pub scratch: Option<u8>,
    /// What is added besides, where `scratch` is given.
    pub term: Option<Term>,
}

/// Multiples of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Term {
    /// x86 number of the register.
    pub register: u8,
    /// That of another one, beside the scratch register.
    pub spare: u8,
    /// How many of these two somebody reads there, so that they are kept on the stack: none, the spare one, or both. Nobody reads the flags.
    pub kept: u8,
    /// What it is multiplied with, for each event.
    pub factors: [i64; exact::COUNT],
}

impl Increment {
    /// Registers that are kept on the stack meanwhile, if there is a scratch register.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let (term, scratch) = (self.term.iter(), self.scratch);
        let both = |term: &Term| [Some(term.spare), scratch];
        let kept = term.flat_map(|term| both(term).into_iter().take(usize::from(term.kept)));
        kept.flatten().collect()
    }
}

/// Where a constant is added, in the order of its numbers in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before the instruction, behind the probes there.
    Before = 0,
    /// Behind it, a conditional jump, if it doesn't jump.
    Behind = 1,
    /// If it does.
    Taken = 2,
}

impl Increment {
    /// What they are sorted by.
    pub(crate) fn order(&self) -> (u64, Place) {
        (self.at, self.place)
    }
}
