//! Tables of other recorders as Parquet: the columns of a CSV table, of any integer and text types.

use super::csv::check_names;
use super::{EventColumn, ProcessId, Site, TableError, XuTable};
use crate::label::{LabelId, Labels, parse_into};
use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use std::collections::HashMap;
use std::sync::Arc;

/// Columns that are no events.
const FIXED: [&str; 6] = ["row", "type", "label", "thread", "t0_ns", "t1_ns"];

impl XuTable {
    /// Reads a foreign recorder's Parquet table; as [`XuTable::from_csv`], with a null for an empty field. Types can be texts
    /// or numbers.
    ///
    /// # Errors
    /// [`TableError`] names the column or row.
    pub fn from_parquet(bytes: bytes::Bytes) -> Result<XuTable, TableError> {
        let mut rows = ParquetRows::new(bytes, 1024)?;
        let batches = rows
            .reader
            .by_ref()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| broken(e.into()))?;
        let batch = concat_batches(&rows.schema, &batches).map_err(|e| broken(e.into()))?;
        drop(batches);
        rows.table(&batch)
    }
}

/// A foreign recorder's table, read piece by piece.
pub(crate) struct ParquetRows {
    reader: ParquetRecordBatchReader,
    schema: SchemaRef,
    /// The types so far.
    sites: Vec<Site>,
    site_index: HashMap<String, u32>,
    /// Rows so far.
    rows: usize,
}

impl ParquetRows {
    /// `limit`: rows in a piece.
    pub(crate) fn new(bytes: bytes::Bytes, limit: usize) -> Result<ParquetRows, TableError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(broken)?;
        let names = builder.schema().fields().iter().map(|f| f.name().as_str());
        check_names(names.filter(|name| !FIXED.contains(name)))?;
        Ok(ParquetRows {
            schema: Arc::clone(builder.schema()),
            reader: builder.with_batch_size(limit).build().map_err(broken)?,
            sites: vec![],
            site_index: HashMap::new(),
            rows: 0,
        })
    }

    /// The next rows; none at the end. The types of later pieces begin with those of earlier ones.
    pub(crate) fn read(&mut self) -> Result<XuTable, TableError> {
        let batch = match self.reader.next() {
            Some(batch) => batch.map_err(|e| broken(e.into()))?,
            None => RecordBatch::new_empty(Arc::clone(&self.schema)),
        };
        self.table(&batch)
    }

    fn table(&mut self, batch: &RecordBatch) -> Result<XuTable, TableError> {
        let before = self.rows;
        self.rows += batch.num_rows();
        let wrong = |column: &str, row: usize, text: &str| wrong(column, before + row, text);
        let column =
            |name: &'static str| batch.column_by_name(name).ok_or(TableError::Column(name));
        let whole = |name: &'static str| -> Result<Vec<i64>, TableError> {
            let values = integers(name, column(name)?)?;
            let mut whole = Vec::with_capacity(values.len());
            for (row, value) in values.into_iter().enumerate() {
                let value = value.and_then(|v| i64::try_from(v).ok());
                whole.push(value.ok_or_else(|| wrong(name, row, "null"))?);
            }
            Ok(whole)
        };
        let (t0_ns, t1_ns, threads) = (whole("t0_ns")?, whole("t1_ns")?, whole("thread")?);
        for (row, (begin, end)) in t0_ns.iter().zip(&t1_ns).enumerate() {
            if end < begin {
                return Err(wrong("t1_ns", row, &end.to_string()));
            }
        }
        let of_thread = |(row, &thread): (usize, &i64)| {
            u32::try_from(thread).map_err(|_| wrong("thread", row, &thread.to_string()))
        };
        let own_threads = threads.iter().enumerate().map(of_thread);
        let own_threads = own_threads.collect::<Result<Vec<u32>, _>>()?;
        let mut table = XuTable {
            processes: vec![ProcessId {
                pid: 0,
                mpi_rank: None,
                ordinal: 0,
            }],
            own_ns: t0_ns
                .iter()
                .zip(&t1_ns)
                .map(|(&a, &b)| b.saturating_sub(a).max(0) as u64)
                .collect(),
            t0_ns,
            t1_ns,
            thread: own_threads,
            ..XuTable::default()
        };
        for (row, name) in texts("type", column("type")?)?.into_iter().enumerate() {
            let name = name.ok_or_else(|| wrong("type", row, "null"))?;
            let at = *self.site_index.entry(name).or_insert_with_key(|name| {
                self.sites.push(Site::named(name.clone()));
                self.sites.len() as u32 - 1
            });
            table.site.push(at);
        }
        let (mut labels, mut components) = (Labels::default(), vec![]);
        for (row, text) in texts("label", column("label")?)?.into_iter().enumerate() {
            table.label.push(match text.filter(|t| !t.is_empty()) {
                None => LabelId::NONE,
                Some(text) => {
                    parse_into(&text, &mut components).map_err(|_| wrong("label", row, &text))?;
                    labels.push(LabelId::NONE, &components)
                }
            });
        }
        for (field, values) in self.schema.fields().iter().zip(batch.columns()) {
            let name = field.name();
            if FIXED.contains(&name.as_str()) {
                continue;
            }
            let mut event = EventColumn {
                name: name.clone(),
                values: vec![],
                present: None,
            };
            for (row, value) in integers(name, values)?.into_iter().enumerate() {
                let count =
                    value.map(|v| u64::try_from(v).map_err(|_| wrong(name, row, &v.to_string())));
                event.push(row, count.transpose()?);
            }
            table.events.push(event);
        }
        table.fill_unrecorded(labels);
        table.sites = Arc::new(self.sites.clone());
        Ok(table)
    }
}

fn broken(error: ::parquet::errors::ParquetError) -> TableError {
    TableError::Parquet(Box::new(error))
}

/// Rows count from 1, as lines of text do.
fn wrong(column: &str, row: usize, text: &str) -> TableError {
    TableError::Value {
        line: row as u64 + 1,
        column: column.to_owned(),
        text: text.to_owned(),
    }
}

/// Without its dictionary.
fn plain(column: &ArrayRef) -> ArrayRef {
    column
        .as_any_dictionary_opt()
        .and_then(|d| take(d.values(), d.keys(), None).ok())
        .unwrap_or_else(|| Arc::clone(column))
}

/// Whether a number can have been a whole one, or a gap.
fn is_whole(number: f64) -> bool {
    const EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    number.is_nan() || number.fract() == 0.0 && number.abs() <= EXACT
}

fn integers(name: &str, column: &ArrayRef) -> Result<Vec<Option<i128>>, TableError> {
    let column = plain(column);
    macro_rules! read {
        ($t:ty) => {
            column
                .as_primitive::<$t>()
                .iter()
                .map(|v| v.map(i128::from))
                .collect()
        };
    }
    Ok(match column.data_type() {
        DataType::Int8 => read!(Int8Type),
        DataType::Int16 => read!(Int16Type),
        DataType::Int32 => read!(Int32Type),
        DataType::Int64 => read!(Int64Type),
        DataType::UInt8 => read!(UInt8Type),
        DataType::UInt16 => read!(UInt16Type),
        DataType::UInt32 => read!(UInt32Type),
        DataType::UInt64 => read!(UInt64Type),
        // pandas has whole numbers with gaps as these; a gap is no number.
        DataType::Float64
            if column
                .as_primitive::<Float64Type>()
                .iter()
                .flatten()
                .all(is_whole) =>
        {
            let numbers = column.as_primitive::<Float64Type>().iter();
            let numbers = numbers.map(|v| v.filter(|v| !v.is_nan()));
            numbers.map(|v| v.map(|v| v as i128)).collect()
        }
        other => {
            return Err(TableError::Type {
                column: name.to_owned(),
                found: other.to_string(),
            });
        }
    })
}

fn texts(name: &str, column: &ArrayRef) -> Result<Vec<Option<String>>, TableError> {
    let column = plain(column);
    let owned = |v: Option<&str>| v.map(str::to_owned);
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().map(owned).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().map(owned).collect(),
        DataType::Utf8View => column.as_string_view().iter().map(owned).collect(),
        _ => integers(name, &column)?
            .into_iter()
            .map(|v| v.map(|v| v.to_string()))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::arrow::ArrowWriter;
    use ::parquet::basic::Compression;
    use ::parquet::file::properties::WriterProperties;
    use arrow_array::{
        Float64Array, Int32Array, Int64Array, LargeStringArray, StringArray, UInt64Array,
    };

    fn file(columns: Vec<(&str, ArrayRef)>) -> bytes::Bytes {
        compressed(columns, Compression::UNCOMPRESSED)
    }

    fn compressed(columns: Vec<(&str, ArrayRef)>, by: Compression) -> bytes::Bytes {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = vec![];
        let how = WriterProperties::builder().set_compression(by).build();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(how)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes.into()
    }

    fn columns(counts: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("type", Arc::new(Int32Array::from(vec![7, 8, 7]))),
            (
                "label",
                Arc::new(LargeStringArray::from(vec![Some("0.1"), None, Some("0.2")])),
            ),
            ("thread", Arc::new(Int32Array::from(vec![3, 0, 1]))),
            ("t0_ns", Arc::new(Int64Array::from(vec![10, 11, 5]))),
            ("t1_ns", Arc::new(Int64Array::from(vec![25, 12, 6]))),
            ("INS", counts),
        ]
    }

    #[test]
    fn the_same_table_as_text_and_as_parquet() {
        let csv =
            b"type,label,thread,t0_ns,t1_ns,INS\n7,0.1,3,10,25,5\n8,,0,11,12,\n7,0.2,1,5,6,9\n";
        let counts = UInt64Array::from(vec![Some(5), None, Some(9)]);
        let table = XuTable::from_parquet(file(columns(Arc::new(counts)))).unwrap();
        assert_eq!(table, XuTable::from_csv(csv).unwrap());
    }

    /// What pandas, polars, DuckDB and others compress with.
    #[test]
    fn tables_come_in_any_compression() {
        let counts: ArrayRef = Arc::new(UInt64Array::from(vec![Some(5), None, Some(9)]));
        let plain = XuTable::from_parquet(file(columns(Arc::clone(&counts)))).unwrap();
        for by in [
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
            Compression::LZ4_RAW,
            Compression::ZSTD(Default::default()),
        ] {
            let bytes = compressed(columns(Arc::clone(&counts)), by);
            assert_eq!(XuTable::from_parquet(bytes).unwrap(), plain, "{by}");
        }
    }

    /// pandas has a column of whole numbers with gaps as floating-point numbers.
    #[test]
    fn whole_numbers_can_be_floating_point_numbers() {
        let counts = UInt64Array::from(vec![Some(5), None, Some(9)]);
        let whole = XuTable::from_parquet(file(columns(Arc::new(counts)))).unwrap();
        for gap in [None, Some(f64::NAN)] {
            let counts = Float64Array::from(vec![Some(5.0), gap, Some(9.0)]);
            let table = XuTable::from_parquet(file(columns(Arc::new(counts)))).unwrap();
            assert_eq!(table, whole);
        }
        for wrong in [0.5, f64::INFINITY, 1e300] {
            let counts = Float64Array::from(vec![5.0, wrong, 9.0]);
            let error = XuTable::from_parquet(file(columns(Arc::new(counts)))).unwrap_err();
            assert!(matches!(error, TableError::Type { .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn errors_say_where() {
        let error = |columns| {
            XuTable::from_parquet(file(columns))
                .unwrap_err()
                .to_string()
        };
        let negative = error(columns(Arc::new(Int64Array::from(vec![5, -1, 9]))));
        assert_eq!(
            negative,
            "line 2: \"-1\" in column INS, where a count (a whole number from 0 on) or nothing belongs"
        );
        let text = error(columns(Arc::new(StringArray::from(vec!["a", "b", "c"]))));
        assert_eq!(text, "column INS holds Utf8, whole numbers are needed");
        let mut few = columns(Arc::new(Int64Array::from(vec![1, 2, 3])));
        few.remove(3);
        assert!(error(few).starts_with("column t0_ns is missing"));
        assert!(XuTable::from_parquet(bytes::Bytes::from_static(b"PAR1 no")).is_err());
    }
}
