//! Reports for people and programs: [`words`] has the sentences, units and names, and [`view`] puts them beside the numbers of an account
//! (`ompfuse_account`) or a comparison (`ompfuse_compare`): [`view::text`] for a terminal, [`view::json`] for programs. Pure: nothing is
//! measured, read or printed here.
#![forbid(unsafe_code)]

pub mod filter;
#[cfg(test)]
mod tests;
pub mod units;
pub mod view;
pub mod words;

pub use view::text::{By, Sort, TextOptions};
