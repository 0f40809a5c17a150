//! What the available time went to: one partition, of which all other views are cuts (docs/reference/classes.md).
//!
//! The efficiencies are those of the POP centre of excellence's model for MPI and OpenMP, in the documented order of TALP
//! (docs/references.md#pop).

use super::overhead::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The partition of the available time. The states' times add up to `available_ns`, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Own time of all processes together, in nanoseconds: from when recording was prepared to when the process began to exit.
    pub own_ns: u64,
    /// What recording took before and behind the own times, in nanoseconds; null if not known. It is in no share.
    pub recording_ns: Option<u64>,
    /// The most threads that were in teams, or started teams, at once in a process.
    pub threads: u64,
    /// Own time times threads, the sum of all processes, in nanoseconds.
    pub available_ns: u64,
    /// The states with any time.
    pub states: Vec<StateTime>,
    /// Efficiencies; null if more than a hundredth of the time is unknown.
    pub efficiencies: Option<Efficiencies>,
    /// The same by process, where there are several, and of ranks of an MPI program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessTime>,
}

/// Time in a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateTime {
    /// The state.
    pub state: State,
    /// Nanoseconds, the sum of all threads.
    pub ns: u64,
    /// Share of the available time, from 0 to 1.
    pub share: f64,
    /// The same by place, the largest first.
    pub parts: Vec<StatePart>,
}

/// A state's time at a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatePart {
    /// `id` of the region; null if it has no place.
    pub region: Option<u32>,
    /// `id` of the innermost parallel region around it; null outside.
    pub parallel: Option<u32>,
    /// The construct or the part of it, or the reason why it is unknown.
    pub what: String,
    /// Nanoseconds.
    pub ns: u64,
    /// Number of occurrences; 0 if they can't be counted.
    pub count: u64,
}

/// A process's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessTime {
    /// Its number in the operating system.
    pub process: u32,
    /// Its MPI rank; null if it has none.
    pub mpi_rank: Option<u32>,
    /// Own time in nanoseconds.
    pub own_ns: u64,
    /// The most threads at once.
    pub threads: u64,
    /// Own time times threads, in nanoseconds.
    pub available_ns: u64,
    /// Nanoseconds in each state with any time.
    pub states: Vec<(State, u64)>,
    /// Its efficiencies, without those that compare processes; null if more than a hundredth of its time is unknown.
    pub efficiencies: Option<Efficiencies>,
}

/// What a thread is doing. At each moment it is in one state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The program's code in parallel regions.
    Useful,
    /// The program's code outside of parallel regions, recorded functions included.
    Serial,
    /// Recorded calls that read or write.
    Io,
    /// Recorded calls of MPI.
    Communication,
    /// Recorded calls that wait for other threads or devices.
    Call,
    /// Waiting at barriers, for tasks, for locks.
    Synchronization,
    /// Waiting for slower threads at the end of regions and work-sharing.
    Imbalance,
    /// Waiting because there was too little to do.
    LimitedParallelism,
    /// In the OpenMP runtime otherwise.
    Management,
    /// Nothing to do outside of parallel regions.
    IdleSerial,
    /// Nothing to do outside of parallel regions, while the first thread is in MPI.
    IdleCommunication,
    /// Left out by a team that is smaller than others.
    IdleTeam,
    /// Not known.
    Unknown,
}

impl State {
    /// All of them, in the order of tables.
    pub const ALL: [State; 13] = [
        State::Useful,
        State::Serial,
        State::Io,
        State::Communication,
        State::Call,
        State::Synchronization,
        State::Imbalance,
        State::LimitedParallelism,
        State::Management,
        State::IdleSerial,
        State::IdleCommunication,
        State::IdleTeam,
        State::Unknown,
    ];

    /// Of a class of overhead.
    pub fn of_class(class: Class) -> State {
        match class {
            Class::Synchronization => State::Synchronization,
            Class::Imbalance => State::Imbalance,
            Class::LimitedParallelism => State::LimitedParallelism,
            Class::Management => State::Management,
        }
    }

    /// Its class of overhead, after ompP; `None`: it has none.
    pub fn class(self) -> Option<Class> {
        Class::ALL.into_iter().find(|&c| State::of_class(c) == self)
    }

    /// Whether threads could do more for the program meanwhile: it is neither its own code, nor unknown.
    pub fn is_lost(self) -> bool {
        !matches!(self, State::Useful | State::Serial | State::Unknown)
    }
}

/// Efficiencies, from 0 to 1. `openmp` is the product of its parts; with MPI `parallel` is no product of `openmp` and `mpi`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Efficiencies {
    /// Useful time divided by available time. Code that is blocked or waits for a processor counts as useful.
    pub parallel: f64,
    /// Available time without what OpenMP loses, divided by available time.
    pub openmp: f64,
    /// Part of `openmp`: what is left when threads idle outside of parallel regions.
    pub serialization: f64,
    /// Part of `openmp`: what is left when threads of a team idle longer than the least idle one. Null if it is not known,
    /// as with nested regions or with sums only.
    pub load_balance: Option<f64>,
    /// Part of `openmp`: what is left when all threads of a team idle alike, in the runtime or for a lock. Null as
    /// `load_balance`.
    pub scheduling: Option<f64>,
    /// Time outside of MPI, threads that idle meanwhile included, divided by available time. Null without MPI.
    pub mpi: Option<f64>,
    /// Part of `mpi`: the longest time of a process outside of MPI, divided by the longest own time. Null without MPI.
    pub mpi_communication: Option<f64>,
    /// Part of `mpi`: mean time of the processes outside of MPI, divided by the longest. Null without MPI.
    pub mpi_load_balance: Option<f64>,
    /// Part of `mpi_load_balance`: the largest mean of a host's processes outside of MPI, divided by the longest of a process. Null
    /// if the processes are not known to be on several hosts.
    pub mpi_load_balance_inside_nodes: Option<f64>,
    /// Part of `mpi_load_balance`: mean time of the processes outside of MPI, divided by the largest mean of a host. Null as
    /// `mpi_load_balance_inside_nodes`.
    pub mpi_load_balance_between_nodes: Option<f64>,
}

impl Account {
    /// Nanoseconds in a state.
    pub fn ns(&self, state: State) -> u64 {
        let found = self.states.iter().find(|s| s.state == state);
        found.map_or(0, |s| s.ns)
    }

    /// Nanoseconds that are lost.
    pub fn lost_ns(&self) -> u64 {
        let lost = self.states.iter().filter(|s| s.state.is_lost());
        lost.map(|s| s.ns).sum()
    }

    /// A state's parts.
    pub fn parts(&self, state: State) -> &[StatePart] {
        let found = self.states.iter().find(|s| s.state == state);
        found.map_or(&[], |s| &s.parts)
    }
}
