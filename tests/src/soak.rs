//! Programs drawn at random, built with a compiler, level and flags drawn at random: does the patched one do what the
//! original does, and was recorded what it counted itself?

mod draw;
mod fragments;
mod judge;
mod program;
mod source;

pub use judge::{Case, Verdict};
