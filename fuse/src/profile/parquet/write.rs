//! A profile's columns as Parquet.

use super::arrays::arrays;
use super::columns::{MEANING_KEY, VERSIONS, meaning};
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
        let columns = arrays(piece)?;
        progress.advance(OF_COLUMNS);
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array, nullable)| field(name, array, *nullable))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array, _)| array).collect();
        // Says so if columns differ in length.
        RecordBatch::try_new(Arc::clone(&schema), arrays.clone())?;
        if let State::New(into) = &mut self.state {
            let into = into.take().expect("taken only to be opened");
            self.state = State::Open(Box::new(Open::new(into, &schema, piece)?));
        }
        match &mut self.state {
            State::Open(open) if !piece.xus.is_empty() => open.write(arrays, progress),
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
        let summary = crate::Summary {
            sites: open.sites.to_vec(),
            ..summary.clone()
        };
        let Open { mut file, .. } = *open;
        let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        file.append_key_value_metadata(entry(VERSION_KEY, VERSIONS[VERSIONS.len() - 1].to_owned()));
        file.append_key_value_metadata(entry(SUMMARY_KEY, serde_json::to_string(&summary)?));
        file.close()?;
        Ok(())
    }
}

/// Columns in which neighbours differ by little, and values seldom come again.
const DELTAS: [&str; 7] = [
    "start_ns",
    "end_ns",
    "own_ns",
    "duration_ns",
    "first_iteration",
    "ordinal",
    "rank",
];

/// What a file says of a column.
fn field(name: &str, array: &ArrayRef, nullable: bool) -> Field {
    let field = Field::new(name, array.data_type().clone(), nullable);
    let meaning = meaning(name).map(|m| (MEANING_KEY.to_owned(), m.to_owned()));
    field.with_metadata(meaning.into_iter().collect::<HashMap<_, _>>())
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
}
