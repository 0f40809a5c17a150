//! The simulated PMU without its simulator: what a piece of code counts ([`code`]), whom it is charged to ([`modules`]), the
//! [`cache`] and [`branch`] models, and a thread's state ([`vcpu`]). The plugin of qemu-user feeds it.
//!
//! State is in [`cell::Cell`]s: each virtual processor's is used by one thread at a time, but handed from thread to thread.
#![forbid(unsafe_code)]

pub mod branch;
pub mod cache;
pub mod cell;
pub mod code;
pub mod modules;
pub mod options;
pub mod vcpu;

pub use options::Options;
