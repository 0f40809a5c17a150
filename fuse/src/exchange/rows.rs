//! Units as columns.

use crate::label::write_text;
use crate::profile::LABEL_LIMIT;
use crate::table::{Site, XuTable};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{ArrowError, Field, Schema};
use ompfuse_format::Construct;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::sync::Arc;

/// What an event's columns begin with.
pub(super) const COUNT: &str = "count:";
const RUN: &str = "run:";
pub(super) const UNIT: &str = "unit:";

/// Rows that are made columns at once.
const AT_ONCE: usize = 1 << 16;

/// The rows of a table in the order of type, rank and label.
pub fn order(xus: &XuTable) -> Vec<u32> {
    let mut rows = xus.labels.depth_first(&xus.label);
    let rank = |row: usize| {
        let process = xus.processes.get(xus.process[row] as usize);
        process.and_then(|p| p.mpi_rank)
    };
    let key = |row: &u32| {
        let row = *row as usize;
        let site = xus.sites.get(xus.site[row] as usize);
        (site.map(Site::key), rank(row))
    };
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
    rows
}

/// Where combined counts come from.
#[derive(Debug)]
pub(super) struct Origins {
    /// For each event its run.
    pub(super) runs: Vec<u16>,
    /// For each event the units, where it is not a matter of labels alone.
    pub(super) units: Option<Vec<Vec<i64>>>,
}

/// Writes these rows of a table as Parquet. `units`: what identifies each row of the table in its run.
///
/// # Errors
/// Those of `into`.
pub fn write(
    into: impl Write + Send,
    xus: &XuTable,
    rows: &[u32],
    units: &[i64],
) -> Result<(), ParquetError> {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1)?);
    let how = WriterProperties::builder().set_compression(zstd).build();
    let schema = of_rows(xus, &[], units, None)?.schema();
    let mut writer = ArrowWriter::try_new(into, schema, Some(how))?;
    for some in rows.chunks(AT_ONCE) {
        writer.write(&of_rows(xus, some, units, None)?)?;
    }
    writer.close()?;
    Ok(())
}

pub(super) fn of_rows(
    xus: &XuTable,
    rows: &[u32],
    units: &[i64],
    origins: Option<&Origins>,
) -> Result<RecordBatch, ArrowError> {
    let at = || rows.iter().map(|&row| row as usize);
    let mut columns: Vec<(String, ArrayRef)> = vec![];
    let mut put = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array));
    let i64s = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(at().map(value)))
    };
    let site = |row: usize| xus.sites.get(xus.site[row] as usize);
    let process = |row: usize| xus.processes.get(xus.process[row] as usize);
    let module = |row| site(row).map(|s| &*s.module).filter(|m| !m.is_empty());
    put("module", Arc::new(StringArray::from_iter(at().map(module))));
    let name = |row| site(row).map(|s| &*s.name);
    put("type", Arc::new(StringArray::from_iter(at().map(name))));
    let rank = |row| process(row).and_then(|p| p.mpi_rank).map(|r| r as i32);
    put("rank", Arc::new(Int32Array::from_iter(at().map(rank))));
    put("unit", i64s(&|row| units[row]));
    put("label", Arc::new(labels(xus, rows)));
    for (name, shift) in [("hash_high", 64), ("hash_low", 0)] {
        let half = |row| Some((xus.label_hash(row)?.0 >> shift) as u64 as i64);
        put(name, Arc::new(Int64Array::from_iter(at().map(half))));
    }
    let kind = |row: usize| xus.construct[row].map(Construct::name);
    put("kind", Arc::new(StringArray::from_iter(at().map(kind))));
    put(
        "process",
        i64s(&|row| process(row).map_or(0, |p| p.pid.into())),
    );
    put("process_number", i64s(&|row| xus.process[row].into()));
    let ordinal = |row| process(row).map_or(0, |p| p.ordinal.into());
    put("process_ordinal", i64s(&ordinal));
    put("thread", i64s(&|row| xus.thread[row].into()));
    let cpu = |row: usize| Some(xus.cpu[row].into()).filter(|_| xus.cpu[row] != u16::MAX);
    put("cpu", Arc::new(Int32Array::from_iter(at().map(cpu))));
    put("first", i64s(&|row| xus.first[row]));
    put("iterations", i64s(&|row| xus.iterations[row] as i64));
    put("start_ns", i64s(&|row| xus.t0_ns[row]));
    put("end_ns", i64s(&|row| xus.t1_ns[row]));
    put("own_ns", i64s(&|row| xus.own_ns[row] as i64));
    put("parts", i64s(&|row| xus.parts[row].into()));
    let disturbed = at().map(|row| xus.disturbed[row]);
    put("disturbed", Arc::new(BooleanArray::from_iter(disturbed)));
    if let Some(percent) = xus.confidence.as_ref().filter(|_| origins.is_some()) {
        let shares = at().map(|row| f32::from(percent[row]) / 100.0);
        put(
            "confidence",
            Arc::new(Float32Array::from_iter_values(shares)),
        );
    }
    for (number, event) in xus.events.iter().enumerate() {
        let counts = at().map(|row| event.get(row).map(|count| count as i64));
        let name = |prefix: &str| format!("{prefix}{}", event.name);
        put(&name(COUNT), Arc::new(Int64Array::from_iter(counts)));
        let Some(origins) = origins else { continue };
        let run = i32::from(origins.runs[number]);
        put(
            &name(RUN),
            Arc::new(Int32Array::from_value(run, rows.len())),
        );
        if let Some(units) = &origins.units {
            put(&name(UNIT), i64s(&|row| units[number][row]));
        }
    }
    let field = |(name, array): &(String, ArrayRef)| {
        Field::new(name, array.data_type().clone(), true) // engines keep no promise about nulls
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn labels(xus: &XuTable, rows: &[u32]) -> StringArray {
    let (mut components, mut text) = (vec![], String::new());
    let label = |&row: &u32| {
        let id = xus.label[row as usize];
        let is_known = id.is_some() && xus.labels.read(id, LABEL_LIMIT, &mut components);
        (is_known && !components.is_empty()).then(|| {
            write_text(&components, &mut text);
            text.clone()
        })
    };
    rows.iter().map(label).collect()
}
