//! What can be damaged in a patched file, and the words of the check that sees it.

/// A line a kind of damage: its name, what does it, and the words of the check that rejects it.
macro_rules! kinds {
    ($($what:literal $act:expr => $seen:expr;)*) => {
        vec![$(($what, $act, $seen)),*]
    };
}

mod code;
mod file;
mod tables;

use super::{Case, add};
use ompfuse_rewriter::stubs::Redirect;

/// Does the damage.
pub(crate) type Act<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;

/// A kind of damage, with the words of the check that rejects it.
pub(crate) type Damage<'a> = (&'static str, Act<'a>, &'static str);

/// Nothing of the plan explains a change there.
const CHANGED: &str = "outside every planned range";

fn flip(at: usize) -> Act<'static> {
    Box::new(move |b| b[at] ^= 1)
}

fn flip_high(at: usize) -> Act<'static> {
    Box::new(move |b| b[at] ^= 0x40)
}

fn more(at: usize, n: i32) -> Act<'static> {
    Box::new(move |b| add(b, at, n))
}

fn zero(at: usize, len: usize) -> Act<'static> {
    Box::new(move |b| b[at..at + len].fill(0))
}

/// What can be damaged in a patched file whose calls go through the PLT (`direct`), or through the GOT.
pub(crate) fn damages(case: &Case, direct: bool) -> Vec<Damage<'_>> {
    let mut all = code::damages(case, direct);
    all.extend(tables::damages(case, direct));
    all.extend(file::damages(case));
    all
}

/// A patched call of that form.
fn call(case: &Case, direct: bool) -> &Redirect {
    let len = if direct { 5 } else { 6 };
    let mut calls = case.plan.calls.iter();
    let call = calls.find(|c| !c.tail && c.len == len);
    call.expect("a call of that form")
}
