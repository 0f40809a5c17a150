//! What ompfuse writes and reads, in one crate for the writer and every reader; no I/O.
//!
//! * [`abi`]: the interface between a patched module and the runtime library in its process.
//! * [`record`]: the bytes of a thread's record file.
//! * [`control`]: what is changed while the program runs.
//! * [`construct`]: the OpenMP constructs, by their numbers and names.
//! * [`coverage`]: what of a file's constructs is recorded.
//! * [`description`]: what a patched file says of itself, as it is written.
//! * [`detail`]: what a site's detail tells.
//! * [`site`]: the description of a place in machine code (JSON of `scan`, kept in patched files and runs).
//! * [`event`]: perf's events, and work that causes them.
//! * [`glob`]: patterns for names.
//! * [`refused`]: why the kernel lets nobody count.
//! * [`run`]: the JSON headers of a run folder.
//! * [`samples`]: the bytes of a program's samples.
//! * [`simulated`]: the events of the simulated PMU, and where their counts are.
#![deny(unsafe_code)]

pub mod abi;
pub mod construct;
pub mod control;
pub mod coverage;
pub mod description;
pub mod detail;
pub mod event;
pub mod glob;
pub mod record;
pub mod refused;
pub mod run;
pub mod samples;
pub mod simulated;
pub mod site;

pub use construct::Construct;
pub use detail::Detail;
