//! Where threads were while a run was recorded: samples, by region, function and line.
//!
//! ```text
//! files of samples ──Collected::read──> samples of threads, each in a file at an offset
//!                                          │ names: SampledPlaces, a file of the run
//!            Timeline ──by time────────────┼──> Lines: sums by region and place
//!                                          └──> Stacks: each by itself
//! ```
//! A sample belongs to what its thread did at that time, as the records tell. Nothing is guessed: what lies so near to a boundary that the
//! clocks can't tell on which side is counted apart.

mod asleep;
mod attribute;
mod by_stack;
mod collected;
mod ending;
mod functions;
mod memory;
mod named;
mod region;
mod stacks;
mod summed;
mod sums;
#[cfg(test)]
mod tests;
mod uneven;
mod units;
mod walk;

pub use crate::run::places::{Code, Mark, PLACES_FILE, SampledObject, SampledPlace, SampledPlaces};
pub use asleep::{Asleep, AsleepAt, StopPlace};
pub use attribute::{Lines, lines};
pub use by_stack::{LastSeen, ThreadLines};
pub use collected::{
    Away, Callers, CodeAt, Collected, OfFile, SampleAt, StopAt, UnreadableSamples,
};
pub use ending::{EndedThread, Ending, last_of, without_end};
pub use functions::FunctionSum;
pub use memory::{Memory, maker};
pub use named::Share;
pub use region::{LineSum, RegionLines, UNKNOWN};
pub use stacks::{Along, Stack, Stacks};
pub use summed::sampled_sums;
pub use sums::{IMPORT, SampledSum, SampledSums};
pub use uneven::{AtLine, Difference, Executed, InFunction, Pair, Reason, Uneven, UnitsAsleep};
pub use units::{SiteUnits, UnitSample, UnitStop, UnitSum};
