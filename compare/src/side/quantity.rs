//! What is measured of a region or of the whole program.

use ompfuse_format::event::exact;
use ompfuse_format::simulated::{EVENTS, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What is measured of a region or of the whole program, once per run. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quantity {
    /// Wall-clock time: of the program; of a parallel region fork to join, all executions.
    Wall,
    /// Own time of all threads: of the program what all regions' and the serial code's add up to.
    Time,
    /// The part of `Time` in the program's code.
    Work,
    /// Class of overhead, after ompP; of parallel regions and the program.
    Synchronization,
    /// Likewise: time that threads wait for slower ones.
    ImbalanceTime,
    /// Likewise.
    LimitedParallelism,
    /// Likewise.
    Management,
    /// Largest part of a thread over the mean, less 1; see `Spread::imbalance`.
    Imbalance,
    /// Executions of the construct.
    Executions,
    /// Execution units: ranges, sections, tasks.
    Units,
    /// Iterations of loops.
    Iterations,
    /// The longest unit.
    MaxUnit,
    /// Mean time of a unit.
    MeanUnit,
    /// Median time of the units that nothing disturbed: what noise of the machine changes least.
    MedianUnit,
    /// Units from whose threads the kernel took the processor meanwhile, that it moved, or that a signal came to.
    DisturbedUnits,
    /// Useful time over available time: of the program, as its account has it; of a parallel region, of its team's time.
    ParallelEfficiency,
    /// Efficiency of the program, see `Efficiencies`.
    OpenmpEfficiency,
    /// Likewise: what is left when threads idle outside of parallel regions.
    Serialization,
    /// Likewise; of a region the mean work of a thread over the largest.
    LoadBalance,
    /// Likewise: what is left when all threads of a team idle alike, in the runtime or for a lock.
    Scheduling,
    /// Likewise: time outside of MPI.
    MpiEfficiency,
    /// An event's count in the program's own code: not while threads wait, nor in the OpenMP runtime.
    Event(String),
    /// The same, per unit.
    EventPerUnit(String),
}

/// Names of the quantities that are no events.
const NAMES: [(Quantity, &str); 21] = [
    (Quantity::Wall, "wall"),
    (Quantity::Time, "time"),
    (Quantity::Work, "work"),
    (Quantity::Synchronization, "synchronization"),
    (Quantity::ImbalanceTime, "imbalance-time"),
    (Quantity::LimitedParallelism, "limited-parallelism"),
    (Quantity::Management, "management"),
    (Quantity::Imbalance, "imbalance"),
    (Quantity::Executions, "executions"),
    (Quantity::Units, "units"),
    (Quantity::Iterations, "iterations"),
    (Quantity::MaxUnit, "max-unit"),
    (Quantity::MeanUnit, "mean-unit"),
    (Quantity::MedianUnit, "median-unit"),
    (Quantity::DisturbedUnits, "disturbed-units"),
    (Quantity::ParallelEfficiency, "parallel-efficiency"),
    (Quantity::OpenmpEfficiency, "openmp-efficiency"),
    (Quantity::Serialization, "serialization"),
    (Quantity::LoadBalance, "load-balance"),
    (Quantity::Scheduling, "scheduling"),
    (Quantity::MpiEfficiency, "mpi-efficiency"),
];

/// What a quantity's name ends with that is an event's count per unit.
const PER_UNIT: &str = "/unit";

/// How values of a quantity are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// A whole number.
    Count,
    /// A share: 1 is 100 %.
    Share,
}

impl Quantity {
    /// Names of those that are no events.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, name)| *name)
    }

    /// What its values are in.
    pub fn unit(&self) -> Unit {
        match self {
            Quantity::Imbalance => Unit::Share,
            efficiency if efficiency.is_efficiency() => Unit::Share,
            Quantity::Executions
            | Quantity::Units
            | Quantity::DisturbedUnits
            | Quantity::Iterations
            | Quantity::Event(_)
            | Quantity::EventPerUnit(_) => Unit::Count,
            _ => Unit::Seconds,
        }
    }

    /// Whether it is a number of units, or of one of them.
    pub(crate) fn is_of_units(&self) -> bool {
        matches!(
            self,
            Quantity::Units
                | Quantity::MaxUnit
                | Quantity::MeanUnit
                | Quantity::MedianUnit
                | Quantity::DisturbedUnits
                | Quantity::EventPerUnit(_)
        )
    }

    /// Whether it is one of the account's efficiencies, from 0 to 1.
    pub fn is_efficiency(&self) -> bool {
        matches!(
            self,
            Quantity::ParallelEfficiency
                | Quantity::OpenmpEfficiency
                | Quantity::Serialization
                | Quantity::LoadBalance
                | Quantity::Scheduling
                | Quantity::MpiEfficiency
        )
    }

    /// Whether a model estimates it, as simulated caches do: of no use to tell that a build got slower.
    pub fn is_modelled(&self) -> bool {
        let (Quantity::Event(name) | Quantity::EventPerUnit(name)) = self else {
            return false;
        };
        let event = EVENTS.iter().find(|e| e.name == name);
        event.is_some_and(|e| e.source != Source::Code)
    }

    /// Whether one run tells it: of runs that are steady ([`Origin::is_steady`](super::Origin::is_steady)), or others.
    pub fn is_told_by_one_run(&self, is_steady: bool) -> bool {
        let is_event = matches!(self, Quantity::Event(_) | Quantity::EventPerUnit(_));
        self.is_exact() && (is_steady || !is_event)
    }

    /// Whether it depends on the executed code alone.
    pub fn is_exact(&self) -> bool {
        match self {
            Quantity::Executions | Quantity::Units | Quantity::Iterations => true,
            Quantity::Event(name) | Quantity::EventPerUnit(name) => {
                let event = EVENTS.iter().find(|e| e.name == name);
                exact::is(name) || event.is_some_and(|e| e.source == Source::Code)
            }
            _ => false,
        }
    }

    /// Whether functions of the program count it themselves (`--count`), and others don't.
    pub fn is_by_functions(&self) -> bool {
        let (Quantity::Event(name) | Quantity::EventPerUnit(name)) = self else {
            return false;
        };
        exact::is(name)
    }

    /// Whether it counts instructions, by a processor, a simulator, or the program itself.
    pub fn is_instructions(&self) -> bool {
        let names = ["instructions", "sim-instructions", exact::NAME];
        matches!(self, Quantity::Event(name) if names.contains(&name.as_str()))
    }
    /// How a change is that makes it larger: better (`Some(true)`), worse, or neither.
    pub fn is_better_if_larger(&self) -> Option<bool> {
        match self {
            Quantity::ParallelEfficiency
            | Quantity::OpenmpEfficiency
            | Quantity::Serialization
            | Quantity::LoadBalance
            | Quantity::Scheduling
            | Quantity::MpiEfficiency => Some(true),
            Quantity::Executions | Quantity::Units | Quantity::Iterations => None,
            _ => Some(false),
        }
    }

    /// Whether it tells by itself, as the time does, that a region changed. Other quantities are details.
    pub fn is_headline(&self) -> bool {
        let is_count = matches!(
            self,
            Quantity::Executions | Quantity::Units | Quantity::Iterations
        );
        is_count || self.is_instructions()
    }

    /// Whether it depends on the time that a processor took: meaningless where a simulator ran the program.
    pub fn is_time(&self) -> bool {
        matches!(self.unit(), Unit::Seconds | Unit::Share) || *self == Quantity::DisturbedUnits
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        let description = format!(
            "The compared quantity: {}, or an event. `{PER_UNIT}` behind an event means: per execution unit.",
            names.join(", ")
        );
        schemars::json_schema!({"type": "string", "description": description})
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Event(name) => f.write_str(name),
            Quantity::EventPerUnit(name) => write!(f, "{name}{PER_UNIT}"),
            other => {
                let known = NAMES.iter().find(|(q, _)| q == other);
                f.write_str(known.map_or("", |(_, name)| name))
            }
        }
    }
}

impl FromStr for Quantity {
    type Err = std::convert::Infallible;

    /// Any name that is none of the quantities' is an event's.
    fn from_str(text: &str) -> Result<Quantity, Self::Err> {
        let known = NAMES.iter().find(|(_, name)| *name == text);
        Ok(match (known, text.strip_suffix(PER_UNIT)) {
            (Some((quantity, _)), _) => quantity.clone(),
            (None, Some(event)) => Quantity::EventPerUnit(event.to_owned()),
            (None, None) => Quantity::Event(text.to_owned()),
        })
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Quantity, D::Error> {
        let text = String::deserialize(d)?;
        Ok(text.parse().unwrap_or(Quantity::Event(text)))
    }
}
