//! What instructions mean to those who follow values: one table for all of them.

mod flags;
pub(crate) mod lift;
pub(crate) mod uses;

pub(crate) use flags::{Flags, mask};
