//! Columns as units, one after the other.

use super::manifest::Group;
use super::rows::COUNT;
use super::{GroupBy, GroupError};
use crate::label::{LabelHash, LabelId, Labels, parse_into};
use crate::table::{EventColumn, ProcessId, Site, XuTable};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use ompfuse_format::Construct;
use std::collections::HashMap;
use std::sync::Arc;

/// A batch's columns.
pub(super) struct Columns {
    rows: usize,
    texts: Vec<(&'static str, StringArray)>,
    numbers: Vec<(&'static str, Int64Array)>,
    disturbed: BooleanArray,
    counts: HashMap<String, Int64Array>,
}

const TEXTS: [&str; 4] = ["module", "type", "label", "kind"];
const RUN: &str = "run";
const NUMBERS: [&str; 16] = [
    RUN,
    "rank",
    "unit",
    "hash_high",
    "hash_low",
    "process",
    "process_number",
    "process_ordinal",
    "thread",
    "cpu",
    "first",
    "iterations",
    "start_ns",
    "end_ns",
    "own_ns",
    "parts",
];

impl Columns {
    /// With the counts of these events. `has_run`: units of runs, not of a result.
    pub(super) fn new<'e>(
        batch: &RecordBatch,
        events: impl IntoIterator<Item = &'e String>,
        has_run: bool,
    ) -> Result<Columns, GroupError> {
        let column = |name: &str| column(batch, name);
        let number = |name: &str| number_column(batch, name);
        let text = |name: &'static str| -> Result<_, GroupError> {
            Ok((name, texts(name, column(name)?)?))
        };
        let marks = column("disturbed")?;
        let marks = marks
            .as_boolean_opt()
            .ok_or_else(|| wrong("disturbed", marks));
        let count = |event: &String| Ok((event.clone(), number(&format!("{COUNT}{event}"))?));
        Ok(Columns {
            rows: batch.num_rows(),
            texts: (TEXTS.into_iter().map(text)).collect::<Result<_, GroupError>>()?,
            numbers: (NUMBERS.into_iter())
                .filter(|name| has_run || *name != RUN)
                .map(|name| Ok((name, number(name)?)))
                .collect::<Result<_, GroupError>>()?,
            disturbed: marks?.clone(),
            counts: (events.into_iter().map(count)).collect::<Result<_, GroupError>>()?,
        })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn text(&self, name: &str, row: usize) -> Option<&str> {
        let (_, texts) = self.texts.iter().find(|(known, _)| *known == name)?;
        texts.is_valid(row).then(|| texts.value(row))
    }

    pub(super) fn number(&self, name: &str, row: usize) -> Option<i64> {
        let (_, numbers) = self.numbers.iter().find(|(known, _)| *known == name)?;
        numbers.is_valid(row).then(|| numbers.value(row))
    }

    pub(super) fn whole<T: TryFrom<i64>>(&self, name: &str, row: usize) -> Result<T, GroupError> {
        let number = self.number(name, row);
        let known = number.and_then(|n| T::try_from(n).ok());
        known.ok_or_else(|| GroupError::Value {
            column: name.to_owned(),
            value: number.map_or("null".to_owned(), |n| n.to_string()),
        })
    }

    fn rank(&self, row: usize) -> Option<u32> {
        let rank = self.number("rank", row)?;
        u32::try_from(rank).ok()
    }

    pub(super) fn run(&self, row: usize) -> Result<u16, GroupError> {
        self.whole(RUN, row)
    }

    /// Whether a row is of a group; it makes no text.
    pub(super) fn is_of(&self, row: usize, group: &Group, by: GroupBy) -> bool {
        self.text("type", row) == group.name.as_deref()
            && self.text("module", row) == group.module.as_deref()
            && (by == GroupBy::Type || self.rank(row) == group.rank)
    }

    pub(super) fn group(&self, row: usize, by: GroupBy) -> Group {
        Group {
            module: self.text("module", row).map(str::to_owned),
            name: self.text("type", row).map(str::to_owned),
            rank: self.rank(row).filter(|_| by == GroupBy::TypeAndRank),
        }
    }
}

fn wrong(column: &str, array: &ArrayRef) -> GroupError {
    GroupError::Type {
        column: column.to_owned(),
        found: array.data_type().to_string(),
    }
}

/// A column of numbers, as Spark, pyarrow and others have them.
fn numbers(name: &str, array: &ArrayRef) -> Result<Int64Array, GroupError> {
    if let Some(wide) = array.as_primitive_opt::<Int64Type>() {
        return Ok(wide.clone());
    }
    let narrow = array.as_primitive_opt::<Int32Type>();
    let narrow = narrow.ok_or_else(|| wrong(name, array))?;
    Ok(narrow.iter().map(|n| n.map(i64::from)).collect())
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef, GroupError> {
    let missing = || GroupError::Column(name.to_owned());
    batch.column_by_name(name).ok_or_else(missing)
}

/// The column of this name.
pub(super) fn number_column(batch: &RecordBatch, name: &str) -> Result<Int64Array, GroupError> {
    numbers(name, column(batch, name)?)
}

fn texts(name: &str, array: &ArrayRef) -> Result<StringArray, GroupError> {
    if let Some(texts) = array.as_string_opt::<i32>() {
        return Ok(texts.clone());
    }
    let long = array.as_string_opt::<i64>();
    let long = long.ok_or_else(|| wrong(name, array))?;
    Ok(long.iter().collect())
}

/// Processes, as they come.
#[derive(Debug, Default)]
pub(super) struct Processes {
    list: Vec<ProcessId>,
    /// Where they are, by part and number.
    places: HashMap<(i64, i64), u16>,
}

/// Units of one group and run, or of a result.
#[derive(Debug, Default)]
pub(super) struct Rows {
    table: XuTable,
    labels: Labels,
    units: Vec<i64>,
    processes: Processes,
}

impl Rows {
    /// With these events. `processes`: those that are known.
    pub(super) fn new<'e>(
        events: impl IntoIterator<Item = &'e String>,
        processes: Processes,
    ) -> Rows {
        let mut rows = Rows {
            processes,
            ..Rows::default()
        };
        let event = |name: &String| EventColumn {
            name: name.clone(),
            values: vec![],
            present: None,
        };
        rows.table.events = events.into_iter().map(event).collect();
        rows
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// Takes in a row. `site`: where its type is, if it is known.
    pub(super) fn push(
        &mut self,
        columns: &Columns,
        row: usize,
        site: u32,
    ) -> Result<(), GroupError> {
        let at = self.len();
        let unit: i64 = columns.whole("unit", row)?;
        let process = self.process(columns, row, unit)?;
        let label = self.label(columns, row)?;
        let table = &mut self.table;
        let is_known = columns.text("type", row).is_some();
        table.site.push(if is_known { site } else { u32::MAX });
        table.label.push(label);
        let kind = columns.text("kind", row);
        let named = |c: &Construct| Some(c.name()) == kind;
        table
            .construct
            .push(Construct::ALL.iter().copied().find(named));
        table.process.push(process);
        table.thread.push(columns.whole("thread", row)?);
        let cpu = columns
            .number("cpu", row)
            .and_then(|cpu| u16::try_from(cpu).ok());
        table.cpu.push(cpu.unwrap_or(u16::MAX));
        table.first.push(columns.whole("first", row)?);
        let unsigned = |name: &str| columns.whole::<i64>(name, row).map(|n| n as u64);
        table.iterations.push(unsigned("iterations")?);
        table.t0_ns.push(columns.whole("start_ns", row)?);
        table.t1_ns.push(columns.whole("end_ns", row)?);
        table.own_ns.push(unsigned("own_ns")?);
        table.parts.push(columns.whole("parts", row)?);
        let marks = &columns.disturbed;
        table
            .disturbed
            .push(marks.is_valid(row).then(|| marks.value(row)));
        for event in &mut table.events {
            let counts = columns.counts.get(&event.name);
            let count = counts.filter(|counts| counts.is_valid(row));
            event.push(at, count.map(|counts| counts.value(row) as u64));
        }
        self.units.push(unit);
        Ok(())
    }

    fn label(&mut self, columns: &Columns, row: usize) -> Result<LabelId, GroupError> {
        let (high, low) = (
            columns.number("hash_high", row),
            columns.number("hash_low", row),
        );
        let hash = high
            .zip(low)
            .map(|(high, low)| LabelHash(u128::from(high as u64) << 64 | u128::from(low as u64)));
        let Some(text) = columns.text("label", row) else {
            return Ok(hash.map_or(LabelId::NONE, |hash| self.labels.push_opaque(hash)));
        };
        let mut components = vec![];
        let wrong = || GroupError::Label(text.to_owned());
        parse_into(text, &mut components).map_err(|_| wrong())?;
        let id = self.labels.push(LabelId::NONE, &components);
        match Some(self.labels.hash(id)) == hash {
            true => Ok(id),
            false => Err(wrong()),
        }
    }

    fn process(&mut self, columns: &Columns, row: usize, unit: i64) -> Result<u16, GroupError> {
        let number = (unit >> 32, columns.whole("process_number", row)?);
        if let Some(&known) = self.processes.places.get(&number) {
            return Ok(known);
        }
        let position = self.processes.list.len();
        let position = u16::try_from(position).map_err(|_| GroupError::Processes)?;
        self.processes.list.push(ProcessId {
            pid: columns.whole("process", row)?,
            mpi_rank: columns.rank(row),
            ordinal: columns.whole("process_ordinal", row)?,
        });
        self.processes.places.insert(number, position);
        Ok(position)
    }

    /// The table as it is, with these sites, and the processes that are known now.
    pub(super) fn into_table(mut self, sites: Arc<Vec<Site>>) -> (XuTable, Processes) {
        self.table.labels = Arc::new(self.labels);
        self.table.sites = sites;
        self.table.processes.clone_from(&self.processes.list);
        (self.table, self.processes)
    }

    /// The table in the order of the run, and what identifies its rows.
    pub(super) fn finish(mut self, group: &Group) -> (XuTable, Vec<i64>) {
        let site = Site {
            module: group.module.clone().unwrap_or_default(),
            ..Site::named(group.name.clone().unwrap_or_default())
        };
        self.table.labels = Arc::new(self.labels);
        self.table.sites = Arc::new(vec![site]);
        self.table.processes = self.processes.list;
        let mut order: Vec<u32> = (0..self.units.len() as u32).collect();
        order.sort_by_key(|&row| self.units[row as usize]);
        let units = order.iter().map(|&row| self.units[row as usize]).collect();
        (self.table.gather(&order), units)
    }
}
