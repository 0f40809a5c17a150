//! Small tables as columns, written as text, Arrow or Parquet.

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Columns of equal length, and what is to be known of all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub(crate) columns: Vec<Column>,
    /// Keys and values; text has no place for them.
    pub(crate) facts: Vec<(&'static str, String)>,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// What it says.
    pub(crate) meaning: String,
    /// Of its numbers.
    pub(crate) unit: Option<&'static str>,
    /// The run that an event's counts come from.
    pub(crate) origin: Option<String>,
    pub(crate) values: Values,
}

/// The values of a column; what is not known is `None`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Text(Vec<Option<String>>),
    Count(Vec<Option<u64>>),
    Seconds(Vec<Option<f64>>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Count(values) => values.len(),
            Values::Seconds(values) => values.len(),
        }
    }

    /// Nothing where nothing is known.
    fn text(&self, row: usize) -> String {
        match self {
            Values::Text(values) => values[row].clone(),
            Values::Count(values) => values[row].map(|n| n.to_string()),
            Values::Seconds(values) => values[row].map(|s| s.to_string()),
        }
        .unwrap_or_default()
    }

    fn array(&self) -> ArrayRef {
        match self {
            Values::Text(values) => Arc::new(StringArray::from_iter(values)),
            Values::Count(values) => Arc::new(UInt64Array::from_iter(values.iter().copied())),
            Values::Seconds(values) => Arc::new(Float64Array::from_iter(values.iter().copied())),
        }
    }
}

impl Table {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }

    /// As text, comma-separated.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        let head = self.columns.iter().map(|c| &c.name);
        writer.write_record(head).map_err(crate::csv::io_error)?;
        for row in 0..self.rows() {
            let cells = self.columns.iter().map(|c| c.values.text(row));
            writer.write_record(cells).map_err(crate::csv::io_error)?;
        }
        writer.flush()
    }

    /// As a file of Arrow's IPC format.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_arrow(&self, out: &mut dyn Write) -> io::Result<()> {
        let batch = self.batch().map_err(arrow_error)?;
        let mut writer = FileWriter::try_new(out, &batch.schema()).map_err(arrow_error)?;
        writer.write(&batch).map_err(arrow_error)?;
        writer.finish().map_err(arrow_error)
    }

    /// As a Parquet file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_parquet(&self, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let batch = self.batch().map_err(arrow_error)?;
        let facts = self.facts.iter();
        let facts = facts.map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let write = || {
            let properties = WriterProperties::builder()
                .set_created_by(concat!("ompfuse ", env!("CARGO_PKG_VERSION")).to_owned())
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
                .set_key_value_metadata(Some(facts.collect()));
            let properties = Some(properties.build());
            let mut writer = ArrowWriter::try_new(out, batch.schema(), properties)?;
            writer.write(&batch)?;
            writer.close().map(drop)
        };
        write().map_err(parquet_error)
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let facts = self.facts.iter();
        let facts = facts.map(|(key, value)| ((*key).to_owned(), value.clone()));
        let fields: Vec<Field> = self.columns.iter().map(Column::field).collect();
        let schema = Schema::new_with_metadata(fields, facts.collect::<HashMap<_, _>>());
        let arrays = self.columns.iter().map(|c| c.values.array());
        RecordBatch::try_new(Arc::new(schema), arrays.collect())
    }
}

impl Column {
    fn field(&self) -> Field {
        let field = Field::new(&self.name, self.values.array().data_type().clone(), true);
        let entries = [
            ("description", Some(self.meaning.as_str())),
            ("unit", self.unit),
            ("origin", self.origin.as_deref()),
        ];
        let known = entries.into_iter();
        let known = known.filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
        field.with_metadata(known.collect::<HashMap<_, _>>())
    }
}

/// The error of the file itself, where it is one.
pub(crate) fn arrow_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        ArrowError::ExternalError(error) => outer(error),
        other => io::Error::other(other.to_string()),
    }
}

/// As [`arrow_error`].
pub(crate) fn parquet_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => outer(error),
        other => io::Error::other(other.to_string()),
    }
}

fn outer(error: Box<dyn std::error::Error + Send + Sync>) -> io::Error {
    match error.downcast::<io::Error>() {
        Ok(error) => *error,
        Err(other) => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_empty() {
        let column = |name: &str, values| Column {
            name: name.to_owned(),
            meaning: String::new(),
            unit: None,
            origin: None,
            values,
        };
        let table = Table {
            columns: vec![
                column("a,b", Values::Text(vec![Some("x\"y".to_owned()), None])),
                column("n", Values::Count(vec![None, Some(0)])),
                column("s", Values::Seconds(vec![Some(0.25), None])),
            ],
            facts: vec![],
        };
        let mut out = Vec::new();
        table.write_csv(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "\"a,b\",n,s\n\"x\"\"y\",,0.25\n,0,\n");
    }

    #[test]
    fn errors_of_files_stay_what_they_are() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let arrow = ArrowError::IoError("cannot".to_owned(), broken());
        assert_eq!(arrow_error(arrow).kind(), io::ErrorKind::BrokenPipe);
        let parquet = ParquetError::External(Box::new(broken()));
        assert_eq!(parquet_error(parquet).kind(), io::ErrorKind::BrokenPipe);
    }
}
