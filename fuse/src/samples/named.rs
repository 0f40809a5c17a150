//! Whose code samples are in, and what had called it.

use super::collected::{Callers, CodeAt, Collected, OfFile, SampleAt};
use crate::run::places::{Code, Mark, SampledObject, SampledPlace, SampledPlaces};
use crate::run::timeline::{Doing, Span};
use std::collections::HashMap;

/// What a thread did at the time of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// The program's code, or that of a library that it uses.
    Work,
    /// It waited, or was in the OpenMP runtime.
    Runtime,
    /// Code that records.
    Recording,
    /// It had nothing to do, outside of constructs.
    Idle,
    /// So near to the begin or end of a construct that it may belong to another one.
    Uncertain,
}

/// Code of samples, with what was found out of it.
#[derive(Debug)]
pub(super) struct Named<'p> {
    pub(super) places: &'p SampledPlaces,
    /// By file and object, what is known of it.
    objects: Vec<Vec<Option<&'p SampledObject>>>,
    /// What had called samples, by file.
    pub(super) callers: Vec<&'p [Callers]>,
}

/// What had called a sample's code.
#[derive(Debug)]
pub(super) struct Calls {
    /// The innermost first: positions in [`SampledPlaces::places`]. `None`: nothing is known of it.
    pub(super) places: Vec<Option<u32>>,
    /// Whether they reach the begin of the region, or of the thread.
    pub(super) are_whole: bool,
}

impl<'p> Named<'p> {
    pub(super) fn new(collected: &'p Collected, places: &'p SampledPlaces) -> Named<'p> {
        let objects = places.objects.iter();
        let known: HashMap<&str, &SampledObject> = objects.map(|o| (o.path.as_str(), o)).collect();
        let of_file = |file: &OfFile| {
            let of_object = |path: &String| known.get(path.as_str()).copied();
            file.objects.iter().map(of_object).collect()
        };
        Named {
            places,
            objects: collected.files.iter().map(of_file).collect(),
            callers: collected.files.iter().map(|f| &f.callers[..]).collect(),
        }
    }

    /// Where code is.
    pub(super) fn place(&self, file: usize, code: &CodeAt) -> Option<u32> {
        let object = self.objects[file].get(code.object? as usize)?.as_ref()?;
        object.offsets.get(&code.offset).copied()
    }

    /// What code in a stack tells of constructs.
    pub(super) fn mark(&self, file: usize, code: &CodeAt) -> Option<Mark> {
        let object = self.objects[file].get(code.object? as usize)?.as_ref()?;
        object.marks.get(&code.offset).copied()
    }

    /// What is known of a place.
    pub(super) fn known(&self, place: Option<u32>) -> Option<&'p SampledPlace> {
        self.places.places.get(place? as usize)
    }

    /// Whose code is at a place.
    pub(super) fn code(&self, place: Option<u32>) -> Code {
        self.known(place).map_or(Code::User, |p| p.code)
    }

    /// What had called a sample's code, up to the begin of its region: below that is what is around the region.
    pub(super) fn calls(&self, file: usize, sample: &SampleAt) -> Calls {
        let callers = self.callers[file].get(sample.callers as usize);
        let calls = callers.map_or(&[][..], |callers| &callers.calls);
        let places = calls.iter().map(|call| self.place(file, call));
        let places: Vec<Option<u32>> = places
            .take_while(|place| self.code(*place) == Code::User)
            .collect();
        let are_whole = places.len() < calls.len() || callers.is_some_and(|c| c.is_whole);
        Calls { places, are_whole }
    }

    /// What a thread did that was at a place, in a span.
    pub(super) fn share(&self, place: Option<u32>, span: &Span<'_>, is_root: bool) -> Share {
        let is_program = self.known(place).is_some_and(|p| p.object.is_none());
        let doing = span.doing(is_root);
        // A wait calls the C library, too.
        let waits = matches!(doing, Doing::Lost(_) | Doing::Idle) && !is_program;
        match self.code(place) {
            Code::User if !waits => Share::Work,
            _ if doing == Doing::Idle => Share::Idle,
            Code::Recording => Share::Recording,
            Code::Runtime | Code::User => Share::Runtime,
        }
    }
}
