//! A profile's columns as Parquet.

use super::arrays::arrays;
use super::columns::{MEANING_KEY, ORIGIN_KEY, UNIT_KEY, VERSION, meaning, of_event};
use super::{Profile, ProfileError, SUMMARY_KEY, VERSION_KEY};
use crate::table::Site;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use ompfuse_progress::Progress;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// What making the columns takes of the time; they are encoded then.
const OF_COLUMNS: f64 = 0.3;

pub(super) fn to_parquet(
    profile: &Profile,
    progress: Progress<'_>,
) -> Result<Vec<u8>, ProfileError> {
    let mut bytes = Vec::new();
    let mut writer = ProfileWriter::new(&mut bytes);
    writer.write_watched(profile, progress)?;
    writer.finish(&profile.summary)?;
    Ok(bytes)
}

/// Writes a profile's XUs piece by piece, each as a row group.
pub struct ProfileWriter<W: Write + Send> {
    state: State<W>,
}

enum State<W: Write + Send> {
    /// What is written into, before it is known which columns there are.
    New(Option<W>),
    Open(Box<Open<W>>),
}

struct Open<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: ArrowRowGroupWriterFactory,
    schema: Arc<Schema>,
    sites: Arc<Vec<Site>>,
    groups: usize,
}

impl<W: Write + Send> ProfileWriter<W> {
    /// A profile without rows.
    pub fn new(into: W) -> ProfileWriter<W> {
        ProfileWriter {
            state: State::New(Some(into)),
        }
    }

    /// Writes the next XUs. All pieces have the same events and sites.
    ///
    /// # Errors
    /// [`ProfileError`] if the columns don't have equal lengths or can't be written.
    pub fn write(&mut self, piece: &Profile) -> Result<(), ProfileError> {
        self.write_watched(piece, Progress::default())
    }

    fn write_watched(
        &mut self,
        piece: &Profile,
        progress: Progress<'_>,
    ) -> Result<(), ProfileError> {
        let batch = batch(piece)?;
        progress.advance(OF_COLUMNS);
        if let State::New(into) = &mut self.state {
            let into = into.take().expect("taken only to be opened");
            self.state = State::Open(Box::new(Open::new(into, &batch.schema(), piece)?));
        }
        match &mut self.state {
            State::Open(open) if !piece.xus.is_empty() => {
                open.write(batch.columns().to_vec(), progress)
            }
            _ => Ok(()),
        }
    }

    /// Writes what stands at the file's end: everything that is known beside the XUs.
    ///
    /// # Errors
    /// [`ProfileError`] if it can't be written.
    pub fn finish(self, summary: &crate::Summary) -> Result<(), ProfileError> {
        let State::Open(open) = self.state else {
            return Ok(());
        };
        // Without any unit the table has no sites.
        let sites = match open.sites.is_empty() {
            true => summary.sites.clone(),
            false => open.sites.to_vec(),
        };
        let summary = crate::Summary {
            sites,
            ..summary.clone()
        };
        open.finish(&[(SUMMARY_KEY, &serde_json::to_string(&summary)?)])
    }

    /// The same of a table that has only some of the units: what is known beside them is that of all, and is left out. Such a file is
    /// no profile.
    ///
    /// # Errors
    /// [`ProfileError`] if it can't be written.
    pub fn finish_table(self) -> Result<(), ProfileError> {
        match self.state {
            State::Open(open) => open.finish(&[]),
            State::New(_) => Ok(()),
        }
    }
}

/// A profile's rows, with what is to be known of each column as metadata of its field.
pub(super) fn batch(profile: &Profile) -> Result<RecordBatch, ProfileError> {
    let columns = arrays(profile)?;
    let origins: HashMap<String, &str> = origins(profile).collect();
    let field = |(name, array, nullable): &(String, ArrayRef, bool)| {
        field(name, array, *nullable, origins.get(name).copied())
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    // Says so if columns differ in length.
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// By column of an event the run that its counts come from.
fn origins(profile: &Profile) -> impl Iterator<Item = (String, &str)> {
    let events = profile.xus.events.iter().zip(&profile.origins);
    events.filter_map(|(event, &run)| {
        let run = profile.summary.runs.get(usize::from(run))?;
        Some((of_event(&event.name), run.name.as_str()))
    })
}

/// Columns in which neighbours differ by little, and values seldom come again.
const DELTAS: [&str; 5] = ["start_ns", "end_ns", "own_ns", "first_iteration", "ordinal"];

/// What a file says of a column. `origin`: of an event's, the run that its counts come from.
fn field(name: &str, array: &ArrayRef, nullable: bool, origin: Option<&str>) -> Field {
    let field = Field::new(name, array.data_type().clone(), nullable);
    let unit = match origin {
        Some(_) => Some("count"),
        None => name.ends_with("_ns").then_some("ns"),
    };
    let entries = [
        (MEANING_KEY, meaning(name)),
        (UNIT_KEY, unit),
        (ORIGIN_KEY, origin),
    ];
    let entries = entries.into_iter();
    let known = entries.filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
    field.with_metadata(known.collect::<HashMap<_, _>>())
}

impl<W: Write + Send> Open<W> {
    fn new(into: W, schema: &Arc<Schema>, piece: &Profile) -> Result<Open<W>, ProfileError> {
        let label = ColumnPath::from("label");
        let hash = ColumnPath::from("label_hash");
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("ompfuse ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            // Neighbours in depth-first order share their prefixes; hashes are neither alike nor compressible.
            .set_column_dictionary_enabled(label.clone(), false)
            .set_column_encoding(label, Encoding::DELTA_BYTE_ARRAY)
            .set_column_dictionary_enabled(hash.clone(), false)
            .set_column_compression(hash, Compression::UNCOMPRESSED);
        for number in DELTAS {
            let path = ColumnPath::from(number);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let writer = ArrowWriter::try_new(into, Arc::clone(schema), Some(properties.build()))?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Open {
            file,
            columns,
            schema: Arc::clone(schema),
            sites: Arc::clone(&piece.xus.sites),
            groups: 0,
        })
    }

    /// A row group, its columns encoded in parallel: each of ours is one leaf.
    fn write(&mut self, arrays: Vec<ArrayRef>, progress: Progress<'_>) -> Result<(), ProfileError> {
        let each = (1.0 - OF_COLUMNS) / arrays.len() as f64;
        let encoders = self.columns.create_column_writers(self.groups)?;
        let chunks: Vec<_> = encoders
            .into_par_iter()
            .zip(self.schema.fields().par_iter().zip(arrays))
            .map(|(mut encoder, (field, array))| {
                for leaf in compute_leaves(field, &array)? {
                    encoder.write(&leaf)?;
                }
                progress.advance(each);
                encoder.close()
            })
            .collect::<Result<_, ParquetError>>()?;
        let mut group = self.file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.groups += 1;
        Ok(())
    }

    /// Writes the layout's version and what else stands at the file's end.
    fn finish(self, facts: &[(&str, &str)]) -> Result<(), ProfileError> {
        let mut file = self.file;
        for (key, value) in [(VERSION_KEY, VERSION)].iter().chain(facts) {
            let entry = KeyValue::new((*key).to_owned(), (*value).to_owned());
            file.append_key_value_metadata(entry);
        }
        file.close()?;
        Ok(())
    }
}
