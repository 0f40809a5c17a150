//! Functions of places.

use crate::run::places::SampledPlaces;
use std::collections::HashMap;

/// Samples in a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSum {
    /// A place in it: position in [`SampledPlaces::places`].
    pub place: u32,
    /// Whether it is the function that this place is inlined into.
    pub is_outer: bool,
    /// Samples in it.
    pub own: u64,
    /// Samples in it, and in what it calls inside of the region. Stacks that aren't whole may hide some.
    pub total: u64,
}

/// The functions of a run's places, numbered.
pub(super) struct Functions<'p> {
    numbers: HashMap<(&'p str, Option<&'p str>), u32>,
    /// By number: a place, and whether it is the function that this one is inlined into.
    first: Vec<(u32, bool)>,
    /// By place: the function itself, and the one that it is inlined into.
    of_places: Vec<[Option<u32>; 2]>,
}

impl<'p> Functions<'p> {
    pub(super) fn of(places: &'p SampledPlaces) -> Functions<'p> {
        let mut functions = Functions {
            numbers: HashMap::new(),
            first: vec![],
            of_places: vec![],
        };
        for (at, place) in (0..).zip(&places.places) {
            let object = place.object.as_deref();
            let names = [&place.function, &place.inlined_into];
            let mut number = |which: usize| {
                let name = names[which].as_deref()?;
                let next = functions.first.len() as u32;
                let number = *functions.numbers.entry((name, object)).or_insert(next);
                if number == next {
                    functions.first.push((at, which == 1));
                }
                Some(number)
            };
            let numbers = [number(0), number(1)];
            functions.of_places.push(numbers);
        }
        functions
    }

    /// Adds the functions of a place.
    pub(super) fn add(&self, place: u32, to: &mut Vec<u32>) {
        let numbers = self.of_places.get(place as usize);
        to.extend(numbers.into_iter().flatten().flatten());
    }

    /// The innermost function of a place.
    pub(super) fn innermost(&self, place: u32) -> Option<u32> {
        self.of_places.get(place as usize)?[0]
    }

    /// All of them by number, without samples.
    pub(super) fn all(&self) -> Vec<FunctionSum> {
        let numbers = 0..self.first.len() as u32;
        numbers.map(|number| self.sum(number, [0, 0])).collect()
    }

    pub(super) fn sum(&self, number: u32, [own, total]: [u64; 2]) -> FunctionSum {
        let (place, is_outer) = self.first[number as usize];
        FunctionSum {
            place,
            is_outer,
            own,
            total,
        }
    }
}
