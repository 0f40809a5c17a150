//! A profile's columns as Arrow arrays.

use super::columns::{ORIGIN_PREFIX, SOURCE_PREFIX, of_event};
use super::{LABEL_LIMIT, Profile, ProfileError};
use crate::label::write_text;
use crate::names::readable;
use crate::table::Site;
use arrow_array::builder::{FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int64Array, StringArray, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_buffer::NullBuffer;
use ompfuse_format::Construct;
use rayon::prelude::*;
use std::sync::Arc;

/// A column.
type Column = (String, ArrayRef, bool);

/// The columns, in the order of the file: name, values, whether some may be null.
pub(super) fn arrays(profile: &Profile) -> Result<Vec<Column>, ProfileError> {
    let xus = &profile.xus;
    let of_site = |text: fn(&Site) -> Option<String>| {
        let texts: Vec<Option<String>> = xus.sites.iter().map(text).collect();
        dictionary(&texts, xus.site.iter().map(|&site| site as usize))
    };
    let kinds = constructs(xus.construct.iter().copied())?;
    let region_constructs = constructs((0..xus.len()).map(|row| xus.region_construct(row)))?;
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
    let numbers = |wanted: fn(bool) -> bool| -> Int64Array {
        let rows = xus.construct.iter().zip(&xus.first);
        rows.map(|(c, &first)| (c.is_some() && wanted(is_range(c))).then_some(first))
            .collect()
    };
    let known_iterations = |&n: &u64| (n > 0).then_some(n);
    let mut columns: Vec<Column> = vec![
        column("label", labels(profile), true),
        column("label_hash", hashes(profile)?, true),
        column("type", of_site(|s| Some(s.name.clone()))?, true),
        column(
            "module",
            of_site(|s| Some(s.module.clone()).filter(|m| !m.is_empty()))?,
            true,
        ),
        column("kind", kinds, true),
        column("region_construct", region_constructs, true),
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
        column("first_iteration", numbers(|is_range| is_range), true),
        column("ordinal", numbers(|is_range| !is_range), true),
        column(
            "iterations",
            (xus.iterations.iter().map(known_iterations)).collect::<UInt64Array>(),
            true,
        ),
        column("start_ns", Int64Array::from(xus.t0_ns.clone()), false),
        column("end_ns", Int64Array::from(xus.t1_ns.clone()), false),
        column("own_ns", UInt64Array::from(xus.own_ns.clone()), false),
        column("parts", UInt32Array::from(xus.parts.clone()), false),
        column("disturbed", BooleanArray::from(xus.disturbed.clone()), true),
    ];
    if let Some(percent) = &xus.confidence {
        let shares = percent.iter().map(|&p| f32::from(p) / 100.0);
        columns.push(column(
            "confidence",
            Float32Array::from_iter_values(shares),
            true,
        ));
    }
    columns.extend(events(profile));
    Ok(columns)
}

/// Each event's counts, the run that they come from, and the rows there where that is not a matter of labels alone.
fn events(profile: &Profile) -> Vec<Column> {
    let xus = &profile.xus;
    let mut columns = vec![];
    for (at, (event, &origin)) in xus.events.iter().zip(&profile.origins).enumerate() {
        let nulls = event.present.as_ref().map(|p| NullBuffer::from(p.clone()));
        let values = UInt64Array::new(event.values.clone().into(), nulls);
        columns.push(column(of_event(&event.name), values, true));
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
    columns
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

/// Names of constructs.
fn constructs(
    of_rows: impl Iterator<Item = Option<Construct>>,
) -> Result<DictionaryArray<Int32Type>, ProfileError> {
    let names: Vec<Option<String>> = (Construct::ALL.iter())
        .map(|c| Some(c.name().to_owned()))
        .collect();
    let position = |construct: Construct| Construct::ALL.iter().position(|&c| c == construct);
    dictionary(
        &names,
        of_rows.map(|c| c.and_then(position).unwrap_or(usize::MAX)),
    )
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
