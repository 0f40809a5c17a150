//! The documents: their links lead somewhere, their sentences are short, and what is generated is current.

mod book;
mod commands;
mod links;
mod names;
mod pages;
mod prose;
mod tutorial;
