//! Where threads were while a run was recorded: samples, by region, function and line.
//!
//! ```text
//! files of samples ──Collected::read──> samples of threads, each in a file at an offset
//!                                          │ names: SampledPlaces, a file of the run
//!            Timeline ──by time────────────┴──> Lines: sums by region and place
//! ```
//! A sample belongs to what its thread did at that time, as the records tell. Nothing is guessed: what lies so near to a boundary that the
//! clocks can't tell on which side is counted apart.

mod attribute;
mod collected;
mod summed;
mod sums;
#[cfg(test)]
mod tests;

pub use crate::run::places::{Code, PLACES_FILE, SampledObject, SampledPlace, SampledPlaces};
pub use attribute::{LineSum, Lines, RegionLines, lines};
pub use collected::{Collected, OfFile, SampleAt, UnreadableSamples};
pub use summed::sampled_sums;
pub use sums::{SampledSum, SampledSums};
