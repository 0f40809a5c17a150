//! The Parquet form of a profile: one row per XU, readable by any engine.
//!
//! `docs/reference/columns.md` lists the columns, [`columns`] those that are no events. Names that mislead are there beside better ones for one
//! version of the layout. The file's metadata has the summary as JSON under the key `ompfuse`, and the layout's version under
//! `ompfuse.version`.

mod arrays;
mod columns;
mod read;
mod write;

pub use read::ProfileReader;
pub(crate) use read::ProfileRows;
pub use write::ProfileWriter;

use super::Profile;
use arrow_array::RecordBatch;
use ompfuse_progress::Progress;

/// Longer labels are not written as text, only as hash: the label of the last task in a chain of a hundred thousand would
/// be megabytes, in every row.
pub const LABEL_LIMIT: usize = 1024;

/// Key of the summary in the file's metadata.
const SUMMARY_KEY: &str = "ompfuse";
/// Key of the layout's version in the file's metadata.
const VERSION_KEY: &str = "ompfuse.version";
/// What the order of the rows takes of the time.
const OF_ORDER: f64 = 0.2;
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
    #[error("a Parquet file, but not a profile of ompfuse: it has no metadata {SUMMARY_KEY:?}")]
    NoSummary,
    /// Written by another version.
    #[error(
        "its layout has version {0:?}, and this ompfuse reads version {version}: read it with the ompfuse that wrote it",
        version = columns::VERSION
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

    /// The rows as they are, in the columns of the Parquet file: what other formats of tables are made of. Texts that come again are
    /// dictionaries, which are equal for all pieces of a run.
    ///
    /// # Errors
    /// [`ProfileError`] if the columns don't have equal lengths.
    pub fn to_batch(&self) -> Result<RecordBatch, ProfileError> {
        write::batch(self)
    }

    /// What the file says of itself beside the columns: keys and values.
    pub fn facts() -> [(&'static str, &'static str); 1] {
        [(VERSION_KEY, columns::VERSION)]
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
