//! Bytes of an ELF file in; OpenMP sites, a plan, patched bytes and their verification out. No I/O, nothing is run.
//!
//! What a file has:
//!
//! ```
//! use ompfuse_rewriter::{ScanError, scan};
//!
//! # // A published crate is without the programs of this project.
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/prebuilt/knapsack-gcc");
//! # if !std::path::Path::new(path).exists() {
//! #     return Ok(());
//! # }
//! let bytes = std::fs::read(path)?;
//! match scan(&bytes, path) {
//!     Ok(scan) => assert!(!scan.sites.is_empty(), "{path} has constructs"),
//!     Err(ScanError::NoOpenMp { path }) => println!("{path} has no OpenMP"),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A copy with probes. [`patch`](patch::patch) verifies what it returns; [`verify`](verify::verify) does that for a file that was written:
//!
//! ```
//! use ompfuse_rewriter::patch::patch;
//! use ompfuse_rewriter::plan::PlanOptions;
//! use ompfuse_rewriter::scan;
//! use ompfuse_rewriter::verify::verify;
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/prebuilt/knapsack-gcc");
//! # if !std::path::Path::new(path).exists() {
//! #     return Ok(());
//! # }
//! let bytes = std::fs::read(path)?;
//! let scan = scan(&bytes, path)?;
//! let patched = patch(&bytes, &scan, &PlanOptions::default())?;
//! assert!(!patched.plan.patched().is_empty());
//! verify(&bytes, &patched.bytes, Some(&patched.plan))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod addresses;
mod assemble;
pub mod callers;
mod count;
mod cutoff;
pub mod debug;
mod describe;
mod draft;
mod dynamic;
mod image;
pub mod layout;
mod members;
pub mod model;
pub mod patch;
pub mod patch_error;
mod place;
pub mod plan;
mod relay;
pub mod reproduce;
pub mod scan;
mod sections;
pub mod settings;
mod shadow_stack;
pub mod stubs;
mod thunk;
pub mod trampoline;
mod unwind;
pub mod verify;
pub mod write;

pub use count::Increment;
pub use scan::{ScanError, scan, scan_scarce, self_description};
