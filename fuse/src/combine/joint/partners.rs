//! Which XU of a further run has the label of one of the first, within a type, and why one has none.

use super::super::Reason;
use crate::label::HashIsKey;
use std::collections::HashMap;

/// Several XUs have the label.
const SEVERAL: u32 = u32::MAX;

/// The labels of one type's XUs in the first run and a further one.
pub(super) struct Partners {
    /// Number of the further run.
    run: u16,
    /// Where the label is in the further run, or [`SEVERAL`].
    places: HashMap<u128, u32, HashIsKey>,
    /// How often the first run has it.
    times: HashMap<u128, u32, HashIsKey>,
}

impl Partners {
    /// `first`, `further`: the keys of the type's XUs; `run`: the further one's number.
    pub(super) fn new(
        run: u16,
        first: impl Iterator<Item = Option<u128>>,
        further: impl ExactSizeIterator<Item = Option<u128>>,
    ) -> Partners {
        let mut places = HashMap::with_capacity_and_hasher(further.len(), HashIsKey);
        for (key, at) in further.zip(0u32..) {
            if let Some(key) = key {
                // Of several with one label none is the one.
                places.entry(key).and_modify(|e| *e = SEVERAL).or_insert(at);
            }
        }
        let mut times: HashMap<u128, u32, HashIsKey> = HashMap::default();
        for key in first.flatten() {
            *times.entry(key).or_default() += 1;
        }
        Partners { run, places, times }
    }

    /// Position of the further run's XU that has a label of the first run's.
    pub(super) fn of_first(&self, key: Option<u128>) -> Result<u32, Reason> {
        let key = key.ok_or(Reason::Unlabelled)?;
        match (self.times.get(&key), self.places.get(&key)) {
            (Some(2..), _) => Err(Reason::Ambiguous { run: 0 }),
            (_, None) => Err(Reason::Absent { run: self.run }),
            (_, Some(&SEVERAL)) => Err(Reason::Ambiguous { run: self.run }),
            (_, Some(&at)) => Ok(at),
        }
    }

    /// Why no XU of the first run is the partner of a further run's with this label.
    pub(super) fn of_further(&self, key: Option<u128>) -> Option<Reason> {
        let Some(key) = key else {
            return Some(Reason::Unlabelled);
        };
        match (self.times.get(&key), self.places.get(&key)) {
            (None, _) => Some(Reason::Absent { run: 0 }),
            (Some(2..), _) => Some(Reason::Ambiguous { run: 0 }),
            (_, Some(&SEVERAL)) => Some(Reason::Ambiguous { run: self.run }),
            _ => None,
        }
    }
}
