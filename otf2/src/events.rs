//! Events of a location, in the order of time.

use crate::api::RawEvents;
use crate::definitions::UINT64;
use crate::{Archive, Error, Paradigm};
use std::ptr::NonNull;

/// Most metrics of a class.
const MOST: usize = u8::MAX as usize;

/// Beside an event's own values: an attribute's identifier with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// A string's identifier.
    Text(u32, u32),
    /// A number.
    Number(u32, u64),
}

/// The events of a location. Times never decrease.
pub struct Events<'a> {
    archive: &'a mut Archive,
    raw: NonNull<RawEvents>,
}

impl std::fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

/// Calls a function that writes an event of OpenMP's.
macro_rules! event {
    ($self:ident.$function:ident($($argument:expr),*)) => {{
        let (api, to, with) = ($self.archive.api, $self.raw.as_ptr(), $self.archive.attributes.as_ptr());
        // SAFETY: the writer is open, and the list is the archive's; both belong to an archive that is open.
        api.check(unsafe { (api.$function)(to, with, $($argument),*) })
    }};
}

const OPENMP: u8 = Paradigm::OpenMp as u8;

/// All of these return the library's errors ([`Error::Refused`]).
#[expect(clippy::missing_errors_doc, reason = "said above")]
impl<'a> Events<'a> {
    pub(crate) fn new(archive: &'a mut Archive, raw: NonNull<RawEvents>) -> Events<'a> {
        Events { archive, raw }
    }

    /// The archive, for definitions that events to come refer to.
    pub fn definitions(&mut self) -> &mut Archive {
        self.archive
    }

    /// A region is entered.
    pub fn enter(&mut self, at: u64, region: u32, with: &[Attribute]) -> Result<(), Error> {
        let (api, list) = (self.archive.api, self.archive.attributes.as_ptr());
        for attribute in with {
            let code = match *attribute {
                // SAFETY: the list is the archive's.
                Attribute::Text(id, text) => unsafe { (api.add_string)(list, id, text) },
                // SAFETY: as above.
                Attribute::Number(id, number) => unsafe { (api.add_number)(list, id, number) },
            };
            api.check(code)?;
        }
        event!(self.enter(at, region))
    }

    /// The region that was entered last is left.
    pub fn leave(&mut self, at: u64, region: u32) -> Result<(), Error> {
        event!(self.leave(at, region))
    }

    /// Values of a metric class, one for each metric.
    pub fn metric(&mut self, at: u64, class: u32, values: &[u64]) -> Result<(), Error> {
        let values = &values[..values.len().min(MOST)];
        let (number, types) = (values.len() as u8, [UINT64; MOST]);
        // The metric's value is a union of 64-bit numbers.
        event!(self.metric(at, class, number, types.as_ptr(), values.as_ptr()))
    }

    /// A team of so many threads is asked for.
    pub fn fork(&mut self, at: u64, threads: u32) -> Result<(), Error> {
        event!(self.fork(at, OPENMP, threads))
    }

    /// Its threads have ended.
    pub fn join(&mut self, at: u64) -> Result<(), Error> {
        event!(self.join(at, OPENMP))
    }

    /// The thread begins to be in a team, which is a communicator.
    pub fn team_begin(&mut self, at: u64, team: u32) -> Result<(), Error> {
        event!(self.team_begin(at, team))
    }

    /// It is in it no longer.
    pub fn team_end(&mut self, at: u64, team: u32) -> Result<(), Error> {
        event!(self.team_end(at, team))
    }

    /// A lock is taken. `order`: greater than that of whoever had it before.
    pub fn acquire(&mut self, at: u64, lock: u32, order: u32) -> Result<(), Error> {
        event!(self.acquire(at, OPENMP, lock, order))
    }

    /// It is given back. `order`: as when it was taken.
    pub fn release(&mut self, at: u64, lock: u32, order: u32) -> Result<(), Error> {
        event!(self.release(at, OPENMP, lock, order))
    }

    /// A task is created.
    pub fn task_create(&mut self, at: u64, task: Task) -> Result<(), Error> {
        event!(self.task_create(at, task.team, task.creator, task.generation))
    }

    /// A task begins or goes on, instead of the one that was executed.
    pub fn task_switch(&mut self, at: u64, task: Task) -> Result<(), Error> {
        event!(self.task_switch(at, task.team, task.creator, task.generation))
    }

    /// A task has ended.
    pub fn task_complete(&mut self, at: u64, task: Task) -> Result<(), Error> {
        event!(self.task_complete(at, task.team, task.creator, task.generation))
    }

    /// Writes what is left. Returns the number of events.
    pub fn finish(self) -> Result<u64, Error> {
        let (api, mut number) = (self.archive.api, 0);
        // SAFETY: the writer is open; the number is stored before the function returns.
        api.check(unsafe { (api.number_of_events)(self.raw.as_ptr(), &raw mut number) })?;
        // SAFETY: it is closed once, since `self` is gone behind this.
        api.check(unsafe { (api.end_events)(self.archive.raw.as_ptr(), self.raw.as_ptr()) })?;
        Ok(number)
    }
}

/// A task. One of generation 0 is a thread's implicit task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The team that executes it, a communicator.
    pub team: u32,
    /// Position in it of the thread that has created the task.
    pub creator: u32,
    /// Number of the task among that thread's, from 1.
    pub generation: u32,
}
