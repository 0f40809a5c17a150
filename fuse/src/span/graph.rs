//! The graph of an execution of a parallel region: strands of code, and what orders them.
//!
//! A *strand* is a thread's part, a task, a block that one thread executes, or a range with something in it. It is a list of *steps*: code,
//! creations, waits, and whatever else one strand does to another. Edges are in the steps. So one mechanism ([`simulate`]) plays a graph
//! with any number of threads, or with one for each strand: that is its span.

mod build;
mod division;
mod other_team;
mod path;
mod siblings;
mod simulate;

pub(super) use build::Builder;
pub(super) use other_team::other_team;
pub(super) use path::critical;
pub(super) use simulate::{Play, play};

use super::replay::Schedule;
use division::Division;
use std::rc::Rc;

/// What a strand does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Code of this interval, in ticks.
    Code { ticks: u64, rec: u32 },
    /// Creates a task, which takes so long.
    Create { ticks: u64, task: u32 },
    /// Executes a task, or a block, before it goes on.
    Inline { strand: u32 },
    /// Waits for the children.
    Wait,
    /// Waits for the children and all that comes of them.
    WaitAll,
    /// Waits for these tasks and all that comes of them: a range of [`Graph::preds`].
    WaitGroup { first: u32, end: u32 },
    /// Waits for these tasks: a range of [`Graph::preds`]. `only`: it executes no others meanwhile.
    WaitFor { first: u32, end: u32, only: bool },
    /// Waits for the team and its tasks.
    Barrier,
    /// Takes units of a loop as long as there are some.
    Share { sharing: u32 },
    /// The first of the team that comes here executes it.
    Block { strand: u32 },
    /// Takes a lock.
    Enter { lock: u32 },
    /// Releases it.
    Leave { lock: u32 },
    /// Waits for its turn among a loop's ordered blocks.
    Turn { sharing: u32, turn: u32 },
    /// Ends it.
    Turned { sharing: u32, turn: u32 },
    /// Has come so far in a doacross loop.
    Post { vector: u64 },
    /// Waits until another one has.
    Await { vector: u64 },
    /// Fulfils the event of a task.
    Fulfill { task: u32 },
    /// Starts a team and waits for it.
    Fork { team: u32 },
}

/// What a strand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A thread's part, by its number in the team.
    Member(u32),
    /// A task.
    Task,
    /// A block or a range: a part of another strand.
    Inner,
}

/// See [`Graph`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Strand {
    pub(super) kind: Kind,
    /// Its steps.
    pub(super) first: u32,
    pub(super) end: u32,
    /// Whose children it creates: itself, or the strand around.
    pub(super) task: u32,
    /// Of a task, who has created it.
    pub(super) creator: u32,
    /// Of a task, when its creation began.
    pub(super) since: u64,
    pub(super) team: u32,
    /// Of a task, what it depends on: a range of [`Graph::preds`].
    pub(super) preds: (u32, u32),
    /// Of a task: it has ended when an event is fulfilled, too.
    pub(super) is_detached: bool,
    /// Its first interval, if one is on record.
    pub(super) rec: u32,
    /// Its iterations, if it is a task of a taskloop or a range; else 1.
    pub(super) iterations: u64,
}

/// A unit of a loop, or a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) first: i64,
    pub(super) iterations: u64,
    pub(super) ticks: u64,
    pub(super) rec: u32,
    /// Its strand, or [`crate::run::nodes::NONE`] if it is nothing but code.
    pub(super) strand: u32,
    /// The team's thread that has executed it.
    pub(super) member: u32,
}

/// One execution of a loop by a team.
#[derive(Debug, Clone)]
pub(super) struct Sharing {
    pub(super) units: Vec<Unit>,
    pub(super) schedule: Schedule,
    /// What another number of threads would make of its ranges.
    pub(super) division: Division,
    /// What fetching a unit costs, in ticks.
    pub(super) fetch: u64,
    /// Ordered blocks.
    pub(super) turns: u32,
}

/// Threads that execute a region.
#[derive(Debug, Clone, Default)]
pub(super) struct Team {
    /// Threads on record.
    pub(super) size: usize,
    /// Strands of its threads, by number.
    pub(super) members: Vec<u32>,
}

/// An execution of a region, with those inside it.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub(super) steps: Vec<Step>,
    pub(super) strands: Vec<Strand>,
    pub(super) preds: Vec<u32>,
    /// Shared with the graphs of other teams: loops may have as many units as there are records.
    pub(super) sharings: Vec<Rc<Sharing>>,
    /// The outermost one comes first.
    pub(super) teams: Vec<Team>,
    /// The tasks of each taskloop.
    pub(super) taskloops: Vec<Vec<u32>>,
    pub(super) locks: u32,
    /// Who waits in a `taskwait` executes only children meanwhile, as in libgomp.
    pub(super) children_only: bool,
    /// Tasks that exclude each other (`mutexinoutset`).
    pub(super) excludes: bool,
    /// A task ends when an event is fulfilled, by none of these strands.
    pub(super) detached: bool,
    /// Not everything that orders strands is known.
    pub(super) is_open: bool,
    /// Something is missing.
    pub(super) has_gaps: bool,
}

impl Graph {
    /// The graph if no task were executed at its creation; `None`: none is.
    pub(super) fn deferred(&self) -> Option<Graph> {
        let is_task = |strand: u32| self.strands[strand as usize].kind == Kind::Task;
        let is_inline = |s: &Step| matches!(s, Step::Inline { strand } if is_task(*strand));
        self.steps.iter().any(is_inline).then(|| {
            let mut graph = self.clone();
            for step in &mut graph.steps {
                if let Step::Inline { strand: task } = *step
                    && is_task(task)
                {
                    *step = Step::Create { ticks: 0, task };
                }
            }
            graph
        })
    }
}
