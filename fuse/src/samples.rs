//! Where threads were while a run was recorded: samples, by region, function and line.
//!
//! ```text
//! files of samples ──Collected::read──> samples of threads, each in a file at an offset
//!                                          │ names: SampledPlaces, a file of the run
//!            Timeline ──by time────────────┴──> Lines: sums by region and place
//! ```
//! A sample belongs to what its thread did at that time, as the records tell. Nothing is guessed: samples near the begin of a span are
//! told apart, since the kernel looks at its clock some time after it has stopped a thread.

mod attribute;
mod collected;
mod places;
#[cfg(test)]
mod tests;

pub use attribute::{LineSum, Lines, RegionLines, lines};
pub use collected::{Collected, OfFile, SampleAt, UnreadableSamples};
pub use places::{Code, PLACES_FILE, SampledObject, SampledPlace, SampledPlaces};
