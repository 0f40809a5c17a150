//! A profile's columns as Arrow arrays, and those as Parquet.

use super::{
    LABEL_LIMIT, ORIGIN_PREFIX, Profile, ProfileError, SOURCE_PREFIX, SUMMARY_KEY, VERSION,
    VERSION_KEY, column_name,
};
use crate::label::write_text;
use crate::names::readable;
use crate::table::Site;
use arrow_array::builder::{FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Int64Array, RecordBatch, StringArray, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{Field, Schema};
use ompfuse_format::Construct;
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
        let columns = columns(piece)?;
        progress.advance(OF_COLUMNS);
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array, nullable)| Field::new(name, array.data_type().clone(), *nullable))
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
        file.append_key_value_metadata(entry(VERSION_KEY, VERSION.to_owned()));
        file.append_key_value_metadata(entry(SUMMARY_KEY, serde_json::to_string(&summary)?));
        file.close()?;
        Ok(())
    }
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
        for number in ["start_ns", "end_ns", "duration_ns"] {
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

type Column = (String, ArrayRef, bool);

fn columns(profile: &Profile) -> Result<Vec<Column>, ProfileError> {
    let xus = &profile.xus;
    let of_site = |text: fn(&Site) -> Option<String>| {
        let texts: Vec<Option<String>> = xus.sites.iter().map(text).collect();
        dictionary(&texts, xus.site.iter().map(|&site| site as usize))
    };
    let constructs: Vec<Option<String>> = Construct::ALL
        .iter()
        .map(|c| Some(c.name().to_owned()))
        .collect();
    let position = |construct: Construct| Construct::ALL.iter().position(|&c| c == construct);
    let construct_keys = xus
        .construct
        .iter()
        .map(|c| c.and_then(position).unwrap_or(usize::MAX));
    let pids = xus
        .process
        .iter()
        .map(|&p| xus.processes.get(p as usize).map_or(0, |p| p.pid));
    let ranks = xus
        .process
        .iter()
        .map(|&p| xus.processes.get(p as usize).and_then(|p| p.mpi_rank));
    let known_cpu = |&cpu: &u16| (cpu != u16::MAX).then_some(cpu);
    let is_range = |construct: &Option<Construct>| *construct == Some(Construct::Range);
    let iterations = xus.construct.iter().zip(&xus.iterations);
    let rank = xus
        .construct
        .iter()
        .zip(&xus.first)
        .map(|(c, &first)| c.map(|_| first));
    let mut columns: Vec<Column> = vec![
        column("label", labels(profile), true),
        column("label_hash", hashes(profile)?, true),
        column("type", of_site(|s| Some(s.name.clone()))?, true),
        column(
            "module",
            of_site(|s| Some(s.module.clone()).filter(|m| !m.is_empty()))?,
            true,
        ),
        column("construct", dictionary(&constructs, construct_keys)?, true),
        column("function", of_site(|s| s.function.clone())?, true),
        column(
            "function_demangled",
            of_site(|s| s.function.as_deref().map(|f| readable(f).into_owned()))?,
            true,
        ),
        column(
            "source",
            of_site(|s| s.source.as_ref().map(|s| format!("{}:{}", s.file, s.line)))?,
            true,
        ),
        column("process", UInt32Array::from_iter_values(pids), false),
        column(
            "process_number",
            UInt16Array::from(xus.process.clone()),
            false,
        ),
        column("mpi_rank", ranks.collect::<UInt32Array>(), true),
        column("thread", UInt32Array::from(xus.thread.clone()), false),
        column(
            "cpu",
            xus.cpu.iter().map(known_cpu).collect::<UInt16Array>(),
            true,
        ),
        column("rank", rank.collect::<Int64Array>(), true),
        column(
            "iterations",
            iterations
                .map(|(c, &n)| (is_range(c) && n > 0).then_some(n))
                .collect::<UInt64Array>(),
            true,
        ),
        column("start_ns", Int64Array::from(xus.t0_ns.clone()), false),
        column("end_ns", Int64Array::from(xus.t1_ns.clone()), false),
        column("duration_ns", UInt64Array::from(xus.own_ns.clone()), false),
        column("parts", UInt32Array::from(xus.parts.clone()), false),
    ];
    if let Some(percent) = &xus.confidence {
        let shares = percent.iter().map(|&p| f32::from(p) / 100.0);
        columns.push(column(
            "confidence",
            Float32Array::from_iter_values(shares),
            true,
        ));
    }
    for (at, (event, &origin)) in xus.events.iter().zip(&profile.origins).enumerate() {
        let nulls = event.present.as_ref().map(|p| NullBuffer::from(p.clone()));
        let values = UInt64Array::new(event.values.clone().into(), nulls);
        columns.push(column(column_name(&event.name), values, true));
        let origin = UInt16Array::from_value(origin, xus.len());
        columns.push(column(
            format!("{ORIGIN_PREFIX}{}", event.name),
            origin,
            false,
        ));
        if let Some(rows) = profile.sources.as_ref().and_then(|s| s.get(at)) {
            let rows = UInt32Array::from(rows.clone());
            columns.push(column(
                format!("{SOURCE_PREFIX}{}", event.name),
                rows,
                false,
            ));
        }
    }
    Ok(columns)
}

fn column(
    name: impl Into<String>,
    array: impl arrow_array::Array + 'static,
    nullable: bool,
) -> Column {
    (name.into(), Arc::new(array), nullable)
}

fn labels(profile: &Profile) -> StringArray {
    let xus = &profile.xus;
    let rows: Vec<usize> = (0..xus.len()).collect();
    let pieces: Vec<StringBuilder> = rows
        .par_chunks(1 << 16)
        .map(|rows| {
            let mut builder = StringBuilder::new();
            let (mut components, mut text) = (vec![], String::new());
            for &row in rows {
                let id = xus.label[row];
                let known = id.is_some() && xus.labels.read(id, LABEL_LIMIT, &mut components);
                if known && !components.is_empty() {
                    write_text(&components, &mut text);
                    builder.append_value(&text);
                } else {
                    builder.append_null();
                }
            }
            builder
        })
        .collect();
    let mut all = StringBuilder::new();
    for mut piece in pieces {
        all.append_array(&piece.finish())
            .expect("labels fit into one column");
    }
    all.finish()
}

fn hashes(profile: &Profile) -> Result<arrow_array::FixedSizeBinaryArray, ProfileError> {
    let xus = &profile.xus;
    let mut builder = FixedSizeBinaryBuilder::with_capacity(xus.len(), 16);
    for row in 0..xus.len() {
        match xus.label_hash(row) {
            Some(hash) => builder.append_value(hash.0.to_be_bytes())?,
            None => builder.append_null(),
        }
    }
    Ok(builder.finish())
}

/// A dictionary column from the texts that `keys` refer to; positions without a text are null. Equal texts are one entry.
fn dictionary(
    texts: &[Option<String>],
    keys: impl Iterator<Item = usize>,
) -> Result<DictionaryArray<Int32Type>, ProfileError> {
    let mut values: Vec<&str> = Vec::new();
    let entries: Vec<Option<i32>> = texts
        .iter()
        .map(|text| {
            let text = text.as_deref()?;
            let at = values.iter().position(|v| *v == text).unwrap_or_else(|| {
                values.push(text);
                values.len() - 1
            });
            Some(at as i32)
        })
        .collect();
    let keys = keys
        .map(|key| entries.get(key).copied().flatten())
        .collect();
    Ok(DictionaryArray::try_new(
        keys,
        Arc::new(StringArray::from(values)),
    )?)
}
