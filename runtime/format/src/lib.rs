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
//!
//! A run's folder has a file of records for each thread (`*.rec`). How much time the tasks on a thread took themselves:
//!
//! ```
//! use ompfuse_format::Construct;
//! use ompfuse_format::record::{Record, RecordError, ThreadFile};
//!
//! fn ticks_of_tasks(file: &[u8]) -> Result<u64, RecordError> {
//!     let mut ticks = 0;
//!     for record in ThreadFile::parse(file)?.records() {
//!         if let Record::Interval(interval) = record?
//!             && interval.construct == Construct::Task
//!         {
//!             ticks += interval.own_ticks;
//!         }
//!     }
//!     Ok(ticks)
//! }
//! # use ompfuse_format::record::{HEADER_LEN, Interval, IntervalHead, MAGIC, Step, VERSION, encode_interval};
//! # let mut file = vec![0; HEADER_LEN + Interval::LEN];
//! # file[..8].copy_from_slice(&MAGIC);
//! # file[8..12].copy_from_slice(&VERSION.to_le_bytes());
//! # file[12..16].copy_from_slice(&(HEADER_LEN as u32).to_le_bytes());
//! # file[48..56].copy_from_slice(&(Interval::LEN as u64).to_le_bytes());
//! # let head = IntervalHead {
//! #     construct: Construct::Task, site: 0, node: 1, parent: 0, step: Step::Ranked, cpu: 0, index: 0,
//! #     extent: 0, t0: 100, t1: 200, own_ticks: 90, disturbed: false,
//! # };
//! # encode_interval(&head, 0, [].into_iter(), |at, word: u64| {
//! #     file[HEADER_LEN + 8 * at..][..8].copy_from_slice(&word.to_le_bytes());
//! # });
//!
//! assert_eq!(ticks_of_tasks(&file)?, 90);
//! # Ok::<(), RecordError>(())
//! ```
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
