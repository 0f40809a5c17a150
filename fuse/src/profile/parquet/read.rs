//! From Parquet bytes back to a profile.

use super::columns::{ORIGIN_PREFIX, SOURCE_PREFIX, VERSION, event_of, is_fixed};
use super::{Profile, ProfileError, SUMMARY_KEY, VERSION_KEY};
use crate::label::{LabelHash, LabelId, Labels, parse_into};
use crate::summary::Summary;
use crate::table::{EventColumn, ProcessId, XuTable};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
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
    summary(metadata.metadata().file_metadata())
}

/// What is known beside the rows, of a file of this version.
fn summary(metadata: &FileMetaData) -> Result<Summary, ProfileError> {
    let entries = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let get = |key: &str| {
        entries
            .iter()
            .find(|e| e.key == key)
            .and_then(|e| e.value.as_deref())
    };
    let json = get(SUMMARY_KEY).ok_or(ProfileError::NoSummary)?;
    let version = get(VERSION_KEY).unwrap_or("none");
    match version {
        VERSION => Ok(serde_json::from_str(json)?),
        _ => Err(ProfileError::Version(version.to_owned())),
    }
}

pub(super) fn from_parquet(bytes: bytes::Bytes) -> Result<Profile, ProfileError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    let summary = summary(builder.metadata().file_metadata())?;
    let schema = Arc::clone(builder.schema());
    let batches = builder
        .with_batch_size(1 << 20)
        .build()?
        .collect::<Result<Vec<_>, _>>()?;
    let batch = concat_batches(&schema, &batches)?;
    let (xus, origins) = table(&batch, &summary)?;
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
        let (xus, origins) = table(&batch, &rows.summary)?;
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
    rows: usize,
    is_begun: bool,
}

impl ProfileRows {
    /// `limit`: rows in a piece.
    pub(crate) fn new(bytes: bytes::Bytes, limit: usize) -> Result<ProfileRows, ProfileError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
        let summary = summary(builder.metadata().file_metadata())?;
        Ok(ProfileRows {
            summary,
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
        table(&batch, &self.summary)
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
fn first(batch: &RecordBatch) -> Result<Vec<i64>, ProfileError> {
    let read = |name| get(batch, name, &DataType::Int64);
    let (ranges, others) = (read("first_iteration")?, read("ordinal")?);
    let ranges = ranges.as_primitive::<Int64Type>().iter();
    let both = ranges.zip(others.as_primitive::<Int64Type>());
    Ok(both.map(|(a, b)| a.or(b).unwrap_or_default()).collect())
}

/// One piece of a profile's table, read column by column.
struct Piece<'a> {
    batch: &'a RecordBatch,
    summary: &'a Summary,
}

fn table(batch: &RecordBatch, summary: &Summary) -> Result<(XuTable, Vec<u16>), ProfileError> {
    let piece = Piece { batch, summary };
    let (process, processes) = piece.processes()?;
    let (label, labels) = piece.labels()?;
    let (events, origins) = piece.events()?;
    let xus = XuTable {
        sites: Arc::new(summary.sites.clone()),
        site: piece.sites()?,
        construct: piece.constructs()?,
        label,
        labels: Arc::new(labels),
        process,
        processes,
        thread: piece.numbers::<UInt32Type>("thread")?,
        parts: piece.numbers::<UInt32Type>("parts")?,
        own_ns: piece.numbers::<UInt64Type>("own_ns")?,
        t0_ns: piece.numbers::<Int64Type>("start_ns")?,
        t1_ns: piece.numbers::<Int64Type>("end_ns")?,
        first: first(batch)?,
        iterations: piece.numbers_or::<UInt64Type>("iterations", 0)?,
        cpu: piece.numbers_or::<UInt16Type>("cpu", u16::MAX)?,
        disturbed: piece.disturbed()?,
        confidence: piece.confidence()?,
        events,
    };
    Ok((xus, origins))
}

impl Piece<'_> {
    fn strings(&self, name: &str) -> Result<ArrayRef, ProfileError> {
        get(self.batch, name, &DataType::Utf8)
    }

    /// A column without missing values.
    fn numbers<T: ArrowPrimitiveType>(&self, name: &str) -> Result<Vec<T::Native>, ProfileError> {
        let column = get(self.batch, name, &T::DATA_TYPE)?;
        Ok(column.as_primitive::<T>().values().to_vec())
    }

    /// A column with missing values.
    fn numbers_or<T: ArrowPrimitiveType>(
        &self,
        name: &str,
        missing: T::Native,
    ) -> Result<Vec<T::Native>, ProfileError> {
        let column = get(self.batch, name, &T::DATA_TYPE)?;
        let values = column.as_primitive::<T>().iter();
        Ok(values.map(|value| value.unwrap_or(missing)).collect())
    }

    fn disturbed(&self) -> Result<Vec<Option<bool>>, ProfileError> {
        let marks = get(self.batch, "disturbed", &DataType::Boolean)?;
        Ok(marks.as_boolean().iter().collect())
    }

    /// In percent; `None`: the rows are not combined by behaviour.
    fn confidence(&self) -> Result<Option<Vec<u8>>, ProfileError> {
        if self.batch.column_by_name("confidence").is_none() {
            return Ok(None);
        }
        let shares = get(self.batch, "confidence", &DataType::Float32)?;
        let shares = shares.as_primitive::<Float32Type>();
        let percent = |share: Option<f32>| (share.unwrap_or(0.0) * 100.0).round() as u8;
        Ok(Some(shares.iter().map(percent).collect()))
    }

    fn constructs(&self) -> Result<Vec<Option<Construct>>, ProfileError> {
        let names = self.strings("kind")?;
        let by_name = |name: &str| Construct::ALL.iter().copied().find(|c| c.name() == name);
        let names = names.as_string::<i32>().iter();
        Ok(names.map(|name| name.and_then(by_name)).collect())
    }

    /// Each row's process, and what is known of the processes. The summary of a run has all of them; a foreign table's has none.
    fn processes(&self) -> Result<(Vec<u16>, Vec<ProcessId>), ProfileError> {
        let pid = self.numbers::<UInt32Type>("process")?;
        let number = self.numbers::<UInt16Type>("process_number")?;
        let mut processes = self.summary.processes.clone();
        for (&pid, &number) in pid.iter().zip(&number) {
            while processes.len() <= number as usize {
                processes.push(ProcessId {
                    pid,
                    mpi_rank: None,
                    ordinal: 0,
                });
            }
        }
        Ok((number, processes))
    }

    /// Each row's site, as its position in the summary's; `u32::MAX`: none.
    fn sites(&self) -> Result<Vec<u32>, ProfileError> {
        let sites = self.summary.sites.iter().zip(0..);
        let known: HashMap<(&str, &str), u32> = sites.map(|(s, at)| (s.key(), at)).collect();
        let (names, modules) = (self.strings("type")?, self.strings("module")?);
        let (names, modules) = (names.as_string::<i32>(), modules.as_string::<i32>());
        let site = |(name, module): (Option<&str>, Option<&str>)| {
            let known = known.get(&(module.unwrap_or(""), name?));
            known.copied()
        };
        let rows = names.iter().zip(modules.iter());
        Ok(rows.map(|row| site(row).unwrap_or(u32::MAX)).collect())
    }

    fn labels(&self) -> Result<(Vec<LabelId>, Labels), ProfileError> {
        let text = self.strings("label")?;
        let hash = get(self.batch, "label_hash", &DataType::FixedSizeBinary(16))?;
        let (text, hash) = (text.as_string::<i32>(), hash.as_fixed_size_binary());
        let (mut labels, mut components) = (Labels::default(), vec![]);
        let mut label = |row: usize| {
            if hash.is_null(row) {
                return Ok(LabelId::NONE);
            }
            if text.is_null(row) {
                let hash: [u8; 16] = hash.value(row).try_into().expect("16 bytes by its type");
                return Ok(labels.push_opaque(LabelHash(u128::from_be_bytes(hash))));
            }
            parse_into(text.value(row), &mut components)
                .map_err(|_| ProfileError::Column("label".to_owned()))?;
            Ok(labels.push(LabelId::NONE, &components))
        };
        let rows = 0..self.batch.num_rows();
        let ids = rows.map(&mut label).collect::<Result<_, ProfileError>>()?;
        Ok((ids, labels))
    }

    /// The events' columns, and the run that each was counted in.
    fn events(&self) -> Result<(Vec<EventColumn>, Vec<u16>), ProfileError> {
        let (mut events, mut origins) = (vec![], vec![]);
        for field in self.batch.schema_ref().fields() {
            let column = field.name();
            if is_fixed(column) {
                continue;
            }
            let event = event_of(column);
            let values = get(self.batch, column, &DataType::UInt64)?;
            let values = values.as_primitive::<UInt64Type>();
            events.push(EventColumn {
                name: event.to_owned(),
                present: values.nulls().map(|n| n.iter().collect()),
                values: values.iter().map(Option::unwrap_or_default).collect(),
            });
            let origin = self.numbers::<UInt16Type>(&format!("{ORIGIN_PREFIX}{event}"))?;
            // Without rows only the summary knows.
            let known = || self.summary.events.iter().find(|e| e.name == event)?.run;
            origins.push(origin.first().copied().or_else(known).unwrap_or(0));
        }
        Ok((events, origins))
    }
}
