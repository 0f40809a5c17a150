//! From Parquet bytes back to a profile.

use super::columns::{ORIGIN_PREFIX, SOURCE_PREFIX, VERSIONS, event_of, is_fixed};
use super::{Profile, ProfileError, SUMMARY_KEY, VERSION_KEY};
use crate::label::{LabelHash, LabelId, Labels, parse_into};
use crate::summary::Summary;
use crate::table::{EventColumn, ProcessId, XuTable};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use ompfuse_format::Construct;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::FileMetaData;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn summary_from_parquet(bytes: bytes::Bytes) -> Result<Summary, ProfileError> {
    let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
    Ok(summary(metadata.metadata().file_metadata())?.0)
}

/// The summary, and the layout's version.
fn summary(metadata: &FileMetaData) -> Result<(Summary, u8), ProfileError> {
    let entries = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let get = |key: &str| {
        entries
            .iter()
            .find(|e| e.key == key)
            .and_then(|e| e.value.as_deref())
    };
    let json = get(SUMMARY_KEY).ok_or(ProfileError::NoSummary)?;
    let version = get(VERSION_KEY).unwrap_or("none");
    match (1..).zip(VERSIONS).find(|(_, known)| *known == version) {
        Some((number, _)) => Ok((serde_json::from_str(json)?, number)),
        None => Err(ProfileError::Version(version.to_owned())),
    }
}

pub(super) fn from_parquet(bytes: bytes::Bytes) -> Result<Profile, ProfileError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let (summary, version) = summary(builder.metadata().file_metadata())?;
    let schema = Arc::clone(builder.schema());
    let batches = builder
        .with_batch_size(1 << 20)
        .build()?
        .collect::<Result<Vec<_>, _>>()?;
    let batch = concat_batches(&schema, &batches)?;
    let (xus, origins) = table(&batch, &summary, version)?;
    Ok(Profile {
        sources: sources(&batch, &xus)?,
        xus,
        origins,
        summary,
    })
}

/// A profile that is read piece by piece.
pub struct ProfileReader(ProfileRows);

/// Rows of a piece.
const PIECE: usize = 1 << 16;

impl ProfileReader {
    /// Of a Parquet file's bytes.
    ///
    /// # Errors
    /// [`ProfileError`] says what it is instead.
    pub fn new(bytes: bytes::Bytes) -> Result<ProfileReader, ProfileError> {
        ProfileRows::new(bytes, PIECE).map(ProfileReader)
    }

    /// The next rows, in their order; `None` at the end. A profile without rows is one piece. What is known beside the rows is in
    /// [`ProfileReader::summary`], and sums are only there.
    ///
    /// # Errors
    /// [`ProfileError`] says where it is broken.
    pub fn read(&mut self) -> Result<Option<Profile>, ProfileError> {
        let rows = &mut self.0;
        let batch = match rows.reader.next() {
            Some(batch) => batch?,
            None if rows.is_begun => return Ok(None),
            None => RecordBatch::new_empty(Arc::clone(&rows.schema)),
        };
        rows.is_begun = true;
        let (xus, origins) = table(&batch, &rows.summary, rows.version)?;
        Ok(Some(Profile {
            sources: sources(&batch, &xus)?,
            xus,
            origins,
            summary: Summary {
                runs: rows.summary.runs.clone(),
                modules: rows.summary.modules.clone(),
                program: rows.summary.program.clone(),
                ..Summary::default()
            },
        }))
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    /// What is known beside the rows.
    pub fn summary(&self) -> &Summary {
        &self.0.summary
    }
}

/// A profile's rows, read piece by piece.
pub(crate) struct ProfileRows {
    reader: ParquetRecordBatchReader,
    schema: SchemaRef,
    summary: Summary,
    version: u8,
    rows: usize,
    is_begun: bool,
}

impl ProfileRows {
    /// `limit`: rows in a piece.
    pub(crate) fn new(bytes: bytes::Bytes, limit: usize) -> Result<ProfileRows, ProfileError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
        let (summary, version) = summary(builder.metadata().file_metadata())?;
        Ok(ProfileRows {
            summary,
            version,
            schema: Arc::clone(builder.schema()),
            rows: builder.metadata().file_metadata().num_rows().max(0) as usize,
            reader: builder.with_batch_size(limit).build()?,
            is_begun: false,
        })
    }

    /// The next rows, and the origins of the events; no rows at the end.
    pub(crate) fn read(&mut self) -> Result<(XuTable, Vec<u16>), ProfileError> {
        let batch = match self.reader.next() {
            Some(batch) => batch?,
            None => RecordBatch::new_empty(Arc::clone(&self.schema)),
        };
        table(&batch, &self.summary, self.version)
    }

    pub(crate) fn into_summary(self) -> Summary {
        self.summary
    }
}

/// A column of the type that it should have, without its dictionary.
fn get(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<ArrayRef, ProfileError> {
    let wrong = || ProfileError::Column(name.to_owned());
    let column = batch.column_by_name(name).ok_or_else(wrong)?;
    let plain = match column.as_dictionary_opt::<Int32Type>() {
        Some(dictionary) => {
            take(dictionary.values(), dictionary.keys(), None).map_err(|_| wrong())?
        }
        None => Arc::clone(column),
    };
    if plain.data_type() == data_type {
        Ok(plain)
    } else {
        Err(wrong())
    }
}

/// Which XUs the counts come from, where that is not a matter of labels alone.
fn sources(batch: &RecordBatch, xus: &XuTable) -> Result<Option<Vec<Vec<u32>>>, ProfileError> {
    let name = |event: &EventColumn| format!("{SOURCE_PREFIX}{}", event.name);
    let has = |event: &EventColumn| batch.column_by_name(&name(event)).is_some();
    if !xus.events.iter().any(has) {
        return Ok(None);
    }
    let rows = |event| -> Result<Vec<u32>, ProfileError> {
        let rows = get(batch, &name(event), &DataType::UInt32)?;
        Ok(rows.as_primitive::<UInt32Type>().values().to_vec())
    };
    xus.events
        .iter()
        .map(rows)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// What ranges, sections and tasks are numbered by.
fn first(batch: &RecordBatch, version: u8) -> Result<Vec<i64>, ProfileError> {
    let read = |name| get(batch, name, &DataType::Int64);
    if version == 1 {
        let both = read("rank")?;
        let both = both.as_primitive::<Int64Type>().iter();
        return Ok(both.map(Option::unwrap_or_default).collect());
    }
    let (ranges, others) = (read("first_iteration")?, read("ordinal")?);
    let ranges = ranges.as_primitive::<Int64Type>().iter();
    let both = ranges.zip(others.as_primitive::<Int64Type>());
    Ok(both.map(|(a, b)| a.or(b).unwrap_or_default()).collect())
}

fn table(
    batch: &RecordBatch,
    summary: &Summary,
    version: u8,
) -> Result<(XuTable, Vec<u16>), ProfileError> {
    let by_version = |names: [&'static str; 2]| names[usize::from(version > 1)];
    let rows = batch.num_rows();
    let u32s = |name: &str| get(batch, name, &DataType::UInt32);
    let u64s = |name: &str| get(batch, name, &DataType::UInt64);
    let i64s = |name: &str| get(batch, name, &DataType::Int64);
    let utf8 = |name: &str| get(batch, name, &DataType::Utf8);

    let mut xus = XuTable {
        sites: Arc::new(summary.sites.clone()),
        ..XuTable::default()
    };
    xus.thread = u32s("thread")?
        .as_primitive::<UInt32Type>()
        .values()
        .to_vec();
    xus.parts = u32s("parts")?
        .as_primitive::<UInt32Type>()
        .values()
        .to_vec();
    xus.own_ns = u64s(by_version(["duration_ns", "own_ns"]))?
        .as_primitive::<UInt64Type>()
        .values()
        .to_vec();
    xus.t0_ns = i64s("start_ns")?
        .as_primitive::<Int64Type>()
        .values()
        .to_vec();
    xus.t1_ns = i64s("end_ns")?
        .as_primitive::<Int64Type>()
        .values()
        .to_vec();
    xus.disturbed = match batch.column_by_name("disturbed") {
        Some(_) => {
            let marks = get(batch, "disturbed", &DataType::Boolean)?;
            marks.as_boolean().iter().collect()
        }
        None => vec![None; rows],
    };
    if batch.column_by_name("confidence").is_some() {
        let shares = get(batch, "confidence", &DataType::Float32)?;
        let shares = shares.as_primitive::<Float32Type>();
        let percent = |share: Option<f32>| (share.unwrap_or(0.0) * 100.0).round() as u8;
        xus.confidence = Some(shares.iter().map(percent).collect());
    }
    let iterations = u64s("iterations")?;
    xus.iterations = iterations
        .as_primitive::<UInt64Type>()
        .iter()
        .map(Option::unwrap_or_default)
        .collect();
    xus.first = first(batch, version)?;
    let cpu = get(batch, "cpu", &DataType::UInt16)?;
    xus.cpu = cpu
        .as_primitive::<UInt16Type>()
        .iter()
        .map(|c| c.unwrap_or(u16::MAX))
        .collect();
    let kind = utf8(by_version(["construct", "kind"]))?;
    let by_name = |name: &str| Construct::ALL.iter().copied().find(|c| c.name() == name);
    xus.construct = kind
        .as_string::<i32>()
        .iter()
        .map(|c| c.and_then(by_name))
        .collect();

    // The summary of a run has all its processes; a foreign table's has none.
    let (pid, number) = (
        u32s("process")?,
        get(batch, "process_number", &DataType::UInt16)?,
    );
    xus.process = number.as_primitive::<UInt16Type>().values().to_vec();
    xus.processes = summary.processes.clone();
    for (&pid, &number) in pid
        .as_primitive::<UInt32Type>()
        .values()
        .iter()
        .zip(&xus.process)
    {
        while xus.processes.len() <= number as usize {
            xus.processes.push(ProcessId {
                pid,
                mpi_rank: None,
                ordinal: 0,
            });
        }
    }

    let (name, module) = (utf8("type")?, utf8("module")?);
    let known: HashMap<(&str, &str), u32> = summary
        .sites
        .iter()
        .enumerate()
        .map(|(at, site)| (site.key(), at as u32))
        .collect();
    let (name, module) = (name.as_string::<i32>(), module.as_string::<i32>());
    for row in 0..rows {
        let key = (
            if module.is_null(row) {
                ""
            } else {
                module.value(row)
            },
            name.value(row),
        );
        let site = if name.is_null(row) {
            None
        } else {
            known.get(&key).copied()
        };
        xus.site.push(site.unwrap_or(u32::MAX));
    }

    let (label, hash) = (
        utf8("label")?,
        get(batch, "label_hash", &DataType::FixedSizeBinary(16))?,
    );
    let (label, hash) = (label.as_string::<i32>(), hash.as_fixed_size_binary());
    let (mut labels, mut components) = (Labels::default(), vec![]);
    for row in 0..rows {
        xus.label.push(if hash.is_null(row) {
            LabelId::NONE
        } else if label.is_null(row) {
            let hash: [u8; 16] = hash.value(row).try_into().expect("16 bytes by its type");
            labels.push_opaque(LabelHash(u128::from_be_bytes(hash)))
        } else {
            parse_into(label.value(row), &mut components)
                .map_err(|_| ProfileError::Column("label".to_owned()))?;
            labels.push(LabelId::NONE, &components)
        });
    }
    xus.labels = Arc::new(labels);

    let mut origins = Vec::new();
    for field in batch.schema().fields() {
        let column = field.name();
        if is_fixed(column, version) {
            continue;
        }
        let event = event_of(column, version);
        let values = u64s(column)?;
        let values = values.as_primitive::<UInt64Type>();
        xus.events.push(EventColumn {
            name: event.to_owned(),
            present: values.nulls().map(|n| n.iter().collect()),
            values: values.iter().map(Option::unwrap_or_default).collect(),
        });
        let origin = get(batch, &format!("{ORIGIN_PREFIX}{event}"), &DataType::UInt16)?;
        // Without rows only the summary knows.
        let known = summary
            .events
            .iter()
            .find(|e| e.name == event)
            .and_then(|e| e.run);
        origins.push(
            origin
                .as_primitive::<UInt16Type>()
                .values()
                .first()
                .copied()
                .or(known)
                .unwrap_or(0),
        );
    }
    Ok((xus, origins))
}
