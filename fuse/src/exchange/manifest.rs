//! What was partitioned: how many units each group has, so that whoever combines it sees that it is whole.

use super::GroupBy;
use crate::evaluate::Sample;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// Version of the manifest, and of the columns.
pub const MANIFEST_VERSION: u32 = 1;

/// The parts that were written into one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// Number of buckets that types are distributed over.
    pub buckets: u32,
    /// The parts, by run and number.
    pub parts: Vec<Part>,
}

/// The units of a run, or of one of its ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// Position of the run among those that are combined, from 0.
    pub run: u16,
    /// Number of the part: the rank whose folder it comes from, else 0.
    pub part: u32,
    /// The folder or file that it comes from.
    pub name: String,
    /// Number of buckets.
    pub buckets: u32,
    /// The events that were counted.
    pub events: Vec<String>,
    /// Number of units of each type and rank.
    pub groups: Vec<Counted>,
}

/// Units of one type on one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Build id or path of the module; null if it is not known.
    pub module: Option<String>,
    /// The type; null if it is not known.
    #[serde(rename = "type")]
    pub name: Option<String>,
    /// MPI rank; null if there is none.
    pub rank: Option<u32>,
    /// Number of units.
    pub units: u64,
}

/// What is known of a part beside its units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartSummary {
    /// As a profile has it.
    pub summary: Summary,
    /// What tells whether its run is typical.
    pub sample: Sample,
}

/// Why parts don't fit together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestError {
    /// Another version of ompfuse has written it.
    #[error(
        "{what} has version {version}, and this ompfuse reads version {MANIFEST_VERSION}: partition again"
    )]
    Version {
        /// The part, or the manifest.
        what: String,
        /// Its version.
        version: u32,
    },
    /// Parts have different numbers of buckets.
    #[error(
        "{one} and {other} have different numbers of buckets: partition all runs with the same --buckets"
    )]
    Buckets {
        /// The first part.
        one: String,
        /// Another part.
        other: String,
    },
    /// Parts of one run count different events.
    #[error("{one} and {other} are parts of run {run} and count different events")]
    Events {
        /// The run.
        run: u16,
        /// The first part.
        one: String,
        /// Another part.
        other: String,
    },
    /// A part of one run is in no other.
    #[error(
        "run {run} has no part {part}, and run {other} has it: partition that rank of run {run}, too"
    )]
    Part {
        /// The run that lacks it.
        run: u16,
        /// Number of the part.
        part: u32,
        /// The run that has it.
        other: u16,
    },
    /// There is a later run, and not this one.
    #[error("run {0} is missing: partition it into the same folder")]
    Missing(u16),
}

/// The bucket of a type: the same for all runs and machines.
pub fn bucket_of(module: &str, name: &str, buckets: u32) -> u32 {
    (xxh3_64(format!("{module}\0{name}").as_bytes()) % u64::from(buckets.max(1))) as u32
}

impl Manifest {
    /// Of parts in any order.
    pub fn of(mut parts: Vec<Part>) -> Manifest {
        parts.sort_by_key(|p| (p.run, p.part));
        Manifest {
            version: MANIFEST_VERSION,
            buckets: parts.first().map_or(0, |p| p.buckets),
            parts,
        }
    }

    /// The events of each run, in order.
    ///
    /// # Errors
    /// [`ManifestError`] if parts don't fit together, or a run is missing.
    pub fn runs(&self) -> Result<Vec<Vec<String>>, ManifestError> {
        let version = |what: &str, version| match version {
            MANIFEST_VERSION => Ok(()),
            version => Err(ManifestError::Version {
                what: what.to_owned(),
                version,
            }),
        };
        version("the manifest", self.version)?;
        let mut runs: BTreeMap<u16, &Part> = BTreeMap::new();
        for part in &self.parts {
            version(&part.name, part.version)?;
            if part.buckets != self.buckets {
                return Err(ManifestError::Buckets {
                    one: self.parts[0].name.clone(),
                    other: part.name.clone(),
                });
            }
            let known = runs.entry(part.run).or_insert(part);
            if known.events != part.events {
                return Err(ManifestError::Events {
                    run: part.run,
                    one: known.name.clone(),
                    other: part.name.clone(),
                });
            }
        }
        self.check_parts()?;
        let last = runs.keys().next_back().copied().unwrap_or(0);
        let run = |at: u16| {
            let part = runs.get(&at).ok_or(ManifestError::Missing(at))?;
            Ok(part.events.clone())
        };
        (0..=last).map(run).collect()
    }

    /// All runs have the same ranks.
    fn check_parts(&self) -> Result<(), ManifestError> {
        let mut of_runs: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
        for part in &self.parts {
            of_runs.entry(part.run).or_default().insert(part.part);
        }
        let largest = of_runs.iter().max_by_key(|(_, parts)| parts.len());
        let Some((&other, most)) = largest.filter(|(_, parts)| parts.len() > 1) else {
            return Ok(());
        };
        for (&run, parts) in &of_runs {
            if let Some(&part) = most.difference(parts).next() {
                return Err(ManifestError::Part { run, part, other });
            }
        }
        Ok(())
    }

    /// Whether each run is one part.
    pub fn is_whole(&self) -> bool {
        let runs: BTreeSet<u16> = self.parts.iter().map(|p| p.run).collect();
        runs.len() == self.parts.len()
    }

    /// For each group the number of its units in each of so many runs.
    pub(super) fn counts(&self, by: GroupBy, runs: usize) -> HashMap<Group, Vec<u64>> {
        let mut counts: HashMap<Group, Vec<u64>> = HashMap::new();
        for part in &self.parts {
            for counted in &part.groups {
                let group = Group {
                    module: counted.module.clone(),
                    name: counted.name.clone(),
                    rank: counted.rank.filter(|_| by == GroupBy::TypeAndRank),
                };
                let sums = counts.entry(group).or_insert_with(|| vec![0; runs]);
                sums[usize::from(part.run)] += counted.units;
            }
        }
        counts
    }
}

/// What the units of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub(super) module: Option<String>,
    pub(super) name: Option<String>,
    pub(super) rank: Option<u32>,
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "type {}", self.name.as_deref().unwrap_or("unknown"))?;
        if let Some(module) = &self.module {
            write!(f, " of module {module}")?;
        }
        match self.rank {
            Some(rank) => write!(f, " on rank {rank}"),
            None => Ok(()),
        }
    }
}
