//! Places on a function's stack, and what is known of them.

use super::value::{Threads, Value};
use std::rc::Rc;

/// Where offsets begin within a [`Slot`].
const ZERO: u64 = 1 << 47;
/// Bits of an offset.
const OFFSET: u64 = (1 << 48) - 1;

/// A place on the stack: the stack pointer at the function's beginning (base 0), or behind one of its realignments (other
/// bases), plus an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u64);

impl Slot {
    /// Where the stack pointer is with this number.
    pub(crate) fn base(number: u16) -> Slot {
        Slot(u64::from(number) << 48 | ZERO)
    }

    /// The place this many bytes higher; none that far away is a stack's.
    pub(crate) fn plus(self, bytes: i64) -> Option<Slot> {
        let offset = (self.0 & OFFSET).checked_add_signed(bytes)?;
        (offset <= OFFSET).then_some(Slot(self.0 & !OFFSET | offset))
    }

    /// Whether so many bytes from here on are a part of the 8 bytes of another slot.
    pub(super) fn overlaps(self, size: u64, other: Slot) -> bool {
        let by = self.0.wrapping_sub(other.0).cast_signed();
        by < 8 && by > -(size.cast_signed())
    }

    /// Whether it lies in the caller's frame: where the stack pointer is at the function's beginning, or higher.
    pub(crate) fn is_callers(self) -> bool {
        self.0 & !OFFSET == 0 && self.0 >= ZERO
    }
}

/// A place whose value is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    at: Slot,
    value: Value,
    size: u8,
}

impl Known {
    /// What holds of it here and there.
    fn meet(&self, their: &Known, threads: Threads) -> Option<Known> {
        let value = self.value.meet_of(threads.0, their.value, threads.1);
        let (at, size) = (self.at, self.size.min(their.size));
        (value != Value::Unknown).then_some(Known { at, value, size })
    }
}

/// What is known of places of 1 to 8 bytes on the stack. Copies share memory until one of them changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Slots(Rc<Vec<Known>>);

impl Slots {
    fn find(&self, at: Slot) -> Result<usize, usize> {
        self.0.binary_search_by_key(&at, |s| s.at)
    }

    /// The value that begins exactly here, and its size.
    pub(crate) fn get(&self, at: Slot) -> Option<(Value, usize)> {
        let known = &self.0[self.find(at).ok()?];
        Some((known.value, usize::from(known.size)))
    }

    /// Its values.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> {
        self.0.iter().map(|known| known.value)
    }

    /// Remembers a value of 1 to 8 bytes.
    pub(crate) fn insert(&mut self, at: Slot, value: Value, size: u8) {
        let new = Known { at, value, size };
        match self.find(at) {
            Ok(i) if self.0[i] == new => {}
            Ok(i) => Rc::make_mut(&mut self.0)[i] = new,
            Err(i) => Rc::make_mut(&mut self.0).insert(i, new),
        }
    }

    /// Forgets what begins exactly at some places; tells whether anything did.
    pub(super) fn remove(&mut self, places: &[Slot]) -> bool {
        let any = !self.0.is_empty() && places.iter().any(|&at| self.find(at).is_ok());
        if any {
            Rc::make_mut(&mut self.0).retain(|known| !places.contains(&known.at));
        }
        any
    }

    /// Forgets what a store of `size` bytes may change.
    pub(crate) fn forget(&mut self, at: Slot, size: u64) {
        if self.0.is_empty() {
            return;
        }
        // Nothing is longer than 8 bytes.
        let first = self.0.partition_point(|s| s.at.0 < at.0.saturating_sub(7));
        let end = self.0[first..]
            .iter()
            .take_while(|s| s.at.0 < at.0.saturating_add(size))
            .count()
            + first;
        let changed = |s: &Known| s.at.0 + u64::from(s.size) > at.0;
        if self.0[first..end].iter().any(changed) {
            let slots = Rc::make_mut(&mut self.0);
            let mut n = 0;
            slots.retain(|s| {
                let inside = (first..end).contains(&n);
                n += 1;
                !(inside && changed(s))
            });
        }
    }

    /// Keeps what holds in both; tells whether that is less than before.
    pub(super) fn meet(&mut self, other: &Slots, threads: Threads) -> bool {
        if Rc::ptr_eq(&self.0, &other.0) {
            return false;
        }
        // Both are ascending.
        let mut theirs = &other.0[..];
        let mut less: Option<Vec<Known>> = None;
        for (i, mine) in self.0.iter().enumerate() {
            let their = loop {
                match theirs.split_first() {
                    Some((their, rest)) if their.at <= mine.at => {
                        theirs = rest;
                        if their.at == mine.at {
                            break Some(their);
                        }
                    }
                    _ => break None,
                }
            };
            let met = match their {
                Some(their) if their == mine => Some(*mine),
                their => their.and_then(|their| mine.meet(their, threads)),
            };
            match &mut less {
                Some(less) => less.extend(met),
                None if met.as_ref() == Some(mine) => {}
                None => {
                    let mut kept = Vec::with_capacity(self.0.len());
                    kept.extend_from_slice(&self.0[..i]);
                    kept.extend(met);
                    less = Some(kept);
                }
            }
        }
        less.map(|less| self.0 = Rc::new(less)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_forgotten_where_they_begin() {
        let at = |bytes| Slot::base(0).plus(bytes).unwrap();
        let mut slots = Slots::default();
        slots.insert(at(-16), Value::Const(1), 8);
        slots.insert(at(-8), Value::Const(2), 4);
        let before = slots.clone();
        assert!(!slots.remove(&[at(-12), at(0)]));
        assert_eq!(slots, before);
        assert!(slots.remove(&[at(-12), at(-8)]));
        assert_eq!(slots.get(at(-16)), Some((Value::Const(1), 8)));
        assert_eq!(
            (slots.get(at(-8)), before.get(at(-8)).is_some()),
            (None, true)
        );
    }
}
