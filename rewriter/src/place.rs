//! Places for probes in a function's code, by request: windows, which are whole instructions that a jump to a trampoline may
//! replace, and islands where a window has room for a short jump only. What the probes are for is not known here.

mod room;
mod window;

#[cfg(test)]
pub(crate) use window::UNREAD;
pub(crate) use window::{Finder, too_few};

use crate::unwind::Row;
use std::ops::Range;

/// What the file says of the code around a function.
pub(crate) trait Ground {
    /// Whether these bytes must stay what and where they are: others write there, or know the place.
    fn stays(&self, range: &Range<u64>) -> bool;
    /// The file's bytes from an address on.
    fn bytes_from(&self, va: u64) -> Option<&[u8]>;
    /// Whether a function, or a part of one, begins at an address.
    fn begins_function(&self, va: u64) -> bool;
    /// The unwind rules at some addresses, where there are some; `None` when it isn't known how the file is unwound.
    fn rows(&self, addresses: &mut dyn Iterator<Item = u64>) -> Option<Vec<Option<Row>>>;
}

/// A probe that wants a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request {
    /// Address of the instruction that it is to stand before.
    pub at: u64,
    /// Address of another instruction that it may stand before, if the first has no room.
    pub other: Option<u64>,
    /// It may also stand before a later instruction, which is always executed after the first with no call between.
    pub later: bool,
    /// The window may not begin before the instruction itself: what stands there is where control arrives.
    pub exact: bool,
}

/// A window that was chosen.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub range: Range<u64>,
    /// The numbers of the requests whose probes it holds; none if it makes room for islands.
    pub members: Vec<usize>,
    /// Where its long jump stands, if there is no room for it in the window.
    pub island: Option<u64>,
    /// It may become longer, to make room for islands.
    pub may_grow: bool,
}

/// Joins windows that overlap. `chosen`: with the number of their request; `address`: where its probe stands.
pub(crate) fn merge(
    mut chosen: Vec<(Range<u64>, usize)>,
    address: impl Fn(usize) -> u64,
) -> Vec<Placed> {
    chosen.sort_by_key(|(w, d)| (w.start, w.end, *d));
    let mut out: Vec<Placed> = Vec::new();
    for (range, d) in chosen {
        match out.last_mut() {
            Some(last) if range.start < last.range.end => {
                last.range.end = last.range.end.max(range.end);
                last.members.push(d);
            }
            _ => out.push(Placed {
                range,
                members: vec![d],
                island: None,
                may_grow: false,
            }),
        }
    }
    for window in &mut out {
        window.members.sort_by_key(|&d| address(d));
    }
    out
}

/// Gives each window that is too short for a long jump and has none an island, and adds the windows that hold them. Otherwise the numbers
/// of windows for which there is none.
pub(crate) fn make_room(finder: &Finder<'_>, windows: &mut Vec<Placed>) -> Vec<usize> {
    room::make(finder, windows)
}
