//! The Parquet form of a profile: one row per XU, readable by any engine.
//!
//! | column | type | |
//! |---|---|---|
//! | `label` | string, null if longer than [`LABEL_LIMIT`] components or unknown | identity of the XU |
//! | `label_hash` | 16 bytes, big-endian | XXH3_128 chain over the label (see [`crate::label`]) |
//! | `type` | string | address of the construct (`0x4011a6`) or a foreign table's type |
//! | `module` | string, null if unknown | build id (or path) of the module that the address is in |
//! | `construct` | string | `range`, `section`, `task` |
//! | `function`, `source` | string | where the construct is; `file:line` |
//! | `function_demangled` | string | the function as the source has it: C++ and Fortran names demangled, without parameters |
//! | `process`, `thread`, `cpu` | integer | pid, number of the thread in it, logical processor at the end |
//! | `process_number` | integer | position of the process among those of the run, by their begin (pids can come again) |
//! | `rank` | integer | rank among the siblings; a range's first iteration |
//! | `iterations` | integer | of a range |
//! | `start_ns`, `end_ns` | integer | since the run's begin |
//! | `duration_ns` | integer | exclusive: the XU's own code |
//! | `parts` | integer | stretches that it was executed in |
//! | `confidence` | number from 0 to 1; there after lgl and joint | how sure the counts of further runs are this XU's own, the least of all runs. Of runs that share events with those before: the share of the variance that label and behaviour explain, at most. Of others: the share of its type's labels that both runs have, times the share of its iterations that both did |
//! | *event* | unsigned integer, null if not counted | exclusive count |
//! | `run:`*event* | integer | run that the counts come from, from 0 |
//! | `xu:`*event* | integer, missing where it is the XU of the same label (lgl) | row of the XU that the count comes from, from 0, in that input as `ompfuse export` lists it |
//!
//! An event with the name of another column is called `event:`*name*. The file's metadata has the summary as JSON under
//! the key `ompfuse`, and the version of this layout under `ompfuse.version`.

mod read;
mod write;

pub(crate) use read::ProfileRows;
pub use write::ProfileWriter;

use super::Profile;
use ompfuse_progress::Progress;

/// Longer labels are not written as text, only as hash: the label of the last task in a chain of a hundred thousand would
/// be megabytes, in every row.
pub const LABEL_LIMIT: usize = 1024;

/// Key of the summary in the file's metadata.
const SUMMARY_KEY: &str = "ompfuse";
/// Key of the layout's version in the file's metadata.
const VERSION_KEY: &str = "ompfuse.version";
/// Version of the layout.
const VERSION: &str = "1";
/// Prefix of the columns that say which run an event comes from.
const ORIGIN_PREFIX: &str = "run:";
/// Prefix of the columns that say which XU of it.
const SOURCE_PREFIX: &str = "xu:";
/// Prefix of events that are called as another column is.
const EVENT_PREFIX: &str = "event:";
/// What the order of the rows takes of the time.
const OF_ORDER: f64 = 0.2;
/// Columns that are no events.
const FIXED: &[&str] = &[
    "label",
    "label_hash",
    "type",
    "module",
    "construct",
    "function",
    "function_demangled",
    "source",
    "process",
    "process_number",
    "mpi_rank",
    "thread",
    "cpu",
    "rank",
    "iterations",
    "start_ns",
    "end_ns",
    "duration_ns",
    "parts",
    "confidence",
];

/// What is wrong with a profile's bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No Parquet file, or a broken one.
    #[error("not a readable Parquet file: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The columns could not be put together.
    #[error("columns don't fit together: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A Parquet file of something else.
    #[error("a Parquet file, but no profile of ompfuse: it has no metadata {SUMMARY_KEY:?}")]
    NoSummary,
    /// Written by another version.
    #[error(
        "profile layout {0:?} is not supported (this is {VERSION:?}): read it with the ompfuse that wrote it"
    )]
    Version(String),
    /// The summary can't be read.
    #[error("the profile's summary can't be read: {0}")]
    Summary(#[from] serde_json::Error),
    /// A column is missing or of another type.
    #[error("column {0:?} is missing or not of its type")]
    Column(String),
}

impl Profile {
    /// The Parquet file's bytes.
    ///
    /// # Errors
    /// [`ProfileError`] if the columns don't have equal lengths.
    pub fn to_parquet(&self) -> Result<Vec<u8>, ProfileError> {
        self.to_parquet_watched(Progress::default())
    }

    /// As [`Profile::to_parquet`], for somebody who waits.
    ///
    /// # Errors
    /// As [`Profile::to_parquet`].
    pub fn to_parquet_watched(&self, progress: Progress<'_>) -> Result<Vec<u8>, ProfileError> {
        if self.is_in_label_order() {
            write::to_parquet(self, progress)
        } else {
            let ordered = self.in_label_order();
            progress.advance(OF_ORDER);
            write::to_parquet(&ordered, progress.part(1.0 - OF_ORDER))
        }
    }

    /// Reads a Parquet file that [`Profile::to_parquet`] made.
    ///
    /// # Errors
    /// [`ProfileError`] says what it is instead.
    pub fn from_parquet(bytes: impl Into<bytes::Bytes>) -> Result<Profile, ProfileError> {
        read::from_parquet(bytes.into())
    }

    /// Reads only the summary, which is all that a report needs.
    ///
    /// # Errors
    /// [`ProfileError`] says what it is instead.
    pub fn summary_from_parquet(
        bytes: impl Into<bytes::Bytes>,
    ) -> Result<crate::Summary, ProfileError> {
        read::summary_from_parquet(bytes.into())
    }
}

/// Name of an event's column.
fn column_name(event: &str) -> String {
    let is_prefixed = |prefix: &&str| event.starts_with(*prefix);
    let prefixes = [ORIGIN_PREFIX, SOURCE_PREFIX, EVENT_PREFIX];
    if FIXED.contains(&event) || prefixes.iter().any(is_prefixed) {
        format!("{EVENT_PREFIX}{event}")
    } else {
        event.to_owned()
    }
}
