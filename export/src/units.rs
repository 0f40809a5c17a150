//! The table of execution units in Arrow's and Parquet's form, piece by piece.

use crate::table::arrow_error;
use arrow_ipc::writer::FileWriter;
use arrow_schema::Schema;
use ompfuse_fuse::{Profile, ProfileError, ProfileWriter, Summary};
use std::collections::HashMap;
use std::io::{self, Write};

/// What pieces are written into.
pub enum UnitWriter<W: Write + Send> {
    /// A file of Arrow's IPC format.
    Arrow(Arrow<W>),
    /// A profile.
    Parquet(ProfileWriter<W>),
}

/// See [`UnitWriter::Arrow`]: which columns there are is known with the first piece.
pub enum Arrow<W: Write> {
    /// Nothing is written yet.
    New(Option<W>),
    /// The head is written.
    Open(Box<FileWriter<W>>),
}

impl<W: Write + Send> UnitWriter<W> {
    /// For Arrow.
    pub fn arrow(into: W) -> UnitWriter<W> {
        UnitWriter::Arrow(Arrow::New(Some(into)))
    }

    /// For Parquet.
    pub fn parquet(into: W) -> UnitWriter<W> {
        UnitWriter::Parquet(ProfileWriter::new(into))
    }

    /// Writes the next units. All pieces have the same events and sites.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&mut self, piece: &Profile) -> io::Result<()> {
        match self {
            UnitWriter::Arrow(arrow) => arrow.write(piece),
            UnitWriter::Parquet(writer) => writer.write(piece).map_err(profile_error),
        }
    }

    /// Writes the file's end. `summary`: what is known beside the units, if these are all of them; a Parquet file with it is a profile.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(self, summary: Option<&Summary>) -> io::Result<()> {
        match (self, summary) {
            (UnitWriter::Arrow(Arrow::New(_)), _) => Ok(()),
            (UnitWriter::Arrow(Arrow::Open(mut writer)), _) => writer.finish().map_err(arrow_error),
            (UnitWriter::Parquet(writer), Some(summary)) => {
                writer.finish(summary).map_err(profile_error)
            }
            (UnitWriter::Parquet(writer), None) => writer.finish_table().map_err(profile_error),
        }
    }
}

impl<W: Write> Arrow<W> {
    fn write(&mut self, piece: &Profile) -> io::Result<()> {
        let batch = piece.to_batch().map_err(profile_error)?;
        if let Arrow::New(into) = self
            && let Some(into) = into.take()
        {
            let facts = Profile::facts().into_iter();
            let facts = facts.chain([("ompfuse.table", "units")]);
            let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let facts: HashMap<String, String> = facts.collect();
            let schema = Schema::new_with_metadata(batch.schema().fields().clone(), facts);
            let writer = FileWriter::try_new(into, &schema).map_err(arrow_error)?;
            *self = Arrow::Open(Box::new(writer));
        }
        match self {
            Arrow::Open(writer) => writer.write(&batch).map_err(arrow_error),
            Arrow::New(_) => Ok(()),
        }
    }
}

fn profile_error(error: ProfileError) -> io::Error {
    match error {
        ProfileError::Parquet(error) => crate::table::parquet_error(error),
        ProfileError::Arrow(error) => arrow_error(error),
        other => io::Error::other(other),
    }
}
