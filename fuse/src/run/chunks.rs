//! The execution units of a run in pieces of so many, as they come in its files: what no memory would hold at once, and needs no
//! other reading.

use super::files::RunFiles;
use super::nodes::NONE;
use super::read::RunReader;
use super::shared;
use super::survey::{Surveyed, entry};
use super::units::{Units, Whose};
use crate::label::{LabelId, Labels};
use crate::table::XuTable;
use ompfuse_format::record::{Interval, MAX_COUNTERS, NOT_COUNTED, Record, Records, Step};
use ompfuse_progress::Progress;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A run that is read piece by piece.
#[derive(Debug)]
pub struct Chunks<'a> {
    reader: RunReader<'a>,
    /// Of the nodes that are kept; those of a piece's units come behind them.
    labels: Arc<Labels>,
    kept: usize,
    columns: Vec<String>,
    /// Where the next piece begins.
    process: usize,
    thread: usize,
    records: Option<Records<'a>>,
    /// Units in several parts, by process and node, with their rows in `late`. They come last, when all of their parts were met.
    in_parts: Vec<FxHashMap<u64, Option<usize>>>,
    late: Units,
    /// What their labels are made of.
    late_labels: Vec<(LabelId, Interval<'a>, Option<u64>)>,
    is_done: bool,
}

/// Nodes of units that have several parts, by process.
#[derive(Debug, Clone, Default)]
pub struct InParts(pub(crate) Vec<Vec<u64>>);

impl InParts {
    /// The nodes of each process, in the order of [`crate::run::timeline::Timeline::processes`].
    pub fn nodes(&self) -> impl Iterator<Item = &[u64]> {
        self.0.iter().map(Vec::as_slice)
    }
}

impl<'a> Chunks<'a> {
    /// Reads what all pieces need. `in_parts`: as a first reading has found it ([`crate::Summary::streamed`]).
    pub fn new(files: &RunFiles<'a>, in_parts: &InParts, progress: Progress<'_>) -> Chunks<'a> {
        let mut reader = RunReader::for_pieces(files, progress);
        let columns = shared::with_times(&reader.counted, &reader.shared);
        let labels = Arc::new(std::mem::take(&mut reader.labels));
        let of_process = |nodes: &Vec<u64>| nodes.iter().map(|&n| (n, None)).collect();
        Chunks {
            kept: labels.len(),
            labels,
            late: Units::new(&columns, 0),
            late_labels: vec![],
            columns,
            process: 0,
            thread: 0,
            records: None,
            in_parts: in_parts.0.iter().map(of_process).collect(),
            reader,
            is_done: false,
        }
    }

    /// Bytes of records that were not read yet.
    pub fn left(&self) -> usize {
        let bytes = |t: &Surveyed<'a>| t.file.records().left();
        let processes = self.reader.processes.get(self.process..);
        let threads = processes
            .unwrap_or_default()
            .iter()
            .flat_map(|p| &p.threads);
        let (now, others) = match &self.records {
            Some(records) => (records.left(), 1),
            None => (0, 0),
        };
        now + threads.skip(self.thread + others).map(bytes).sum::<usize>()
    }

    /// The next units: at most so many, but for those in several parts, which come together at the end. `None` after them. What was
    /// got before must be dropped by then, or all labels are copied.
    pub fn read(&mut self, rows: usize) -> Option<XuTable> {
        // The labels of the last piece.
        Arc::make_mut(&mut self.labels).truncate(self.kept);
        if self.is_done {
            let mut late = std::mem::replace(&mut self.late, Units::new(&self.columns, 0)).xus;
            let labels = Arc::make_mut(&mut self.labels);
            let of = |(parent, i, address): (LabelId, Interval<'a>, Option<u64>)| {
                label(labels, parent, &i, address)
            };
            late.label = self.late_labels.drain(..).map(of).collect();
            return (!late.is_empty()).then(|| self.table(late));
        }
        let mut units = Units::new(&self.columns, 0);
        while units.xus.label.len() < rows && !self.is_done {
            self.is_done = !self.read_thread(&mut units, rows);
        }
        Some(self.table(units.xus))
    }

    fn table(&self, mut xus: XuTable) -> XuTable {
        shared::scale(&mut xus.events, &self.reader.shared);
        XuTable {
            labels: Arc::clone(&self.labels),
            sites: Arc::clone(&self.reader.sites),
            processes: self.reader.ids.clone(),
            ..xus
        }
    }

    /// Reads on in a thread's file, to its end or until there are enough rows. False at the end of all.
    fn read_thread(&mut self, units: &mut Units, rows: usize) -> bool {
        let Some(process) = self.reader.processes.get(self.process) else {
            return false;
        };
        let Some(thread) = process.threads.get(self.thread) else {
            self.late.finish(&process.clock);
            (self.process, self.thread) = (self.process + 1, 0);
            return true;
        };
        let nothing = vec![None; self.columns.len()];
        let mut records = (self.records.take()).unwrap_or_else(|| thread.file.records());
        let labels = Arc::make_mut(&mut self.labels);
        let mut is_over = true;
        for record in records.by_ref() {
            let Ok(Record::Interval(i)) = record else {
                continue;
            };
            if !i.construct.is_xu() {
                continue;
            }
            let mut counts = [0; MAX_COUNTERS];
            let len = i.counts.iter().len();
            (counts.iter_mut().zip(i.counts.iter())).for_each(|(to, count)| *to = count);
            let known = |c: usize| (c < len && counts[c] != NOT_COUNTED).then_some(counts[c]);
            let counters = process.counters.get(&i.set).unwrap_or(&nothing);
            let values = counters.iter().map(|c| c.and_then(known));
            let header = &thread.file.header;
            let place = process.places.get(&i.site).copied().flatten();
            let mut whose = Whose {
                label: LabelId::NONE,
                site: place.map_or(NONE, |p| p.0),
                process: self.process as u16,
                thread: header.index,
                disturbed: (header.has_marks != 0).then_some(i.disturbed),
            };
            let in_parts = self
                .in_parts
                .get_mut(self.process)
                .filter(|p| !p.is_empty());
            let late = in_parts.and_then(|p| p.get_mut(&i.node));
            if let Some(Some(row)) = late {
                self.late.merge(*row, &process.clock, whose, &i, values);
                continue;
            }
            let parent = match i.parent {
                0 => LabelId::NONE,
                parent => match process.index.get(parent) {
                    Some(at) => self.reader.nodes.label[at as usize],
                    None => LabelId::NONE,
                },
            };
            let address = place.map(|p| p.1);
            if let Some(row) = late {
                *row = Some(self.late.push(&process.clock, whose, &i, values));
                self.late_labels.push((parent, i, address));
                continue;
            }
            whose.label = label(labels, parent, &i, address);
            units.push(&process.clock, whose, &i, values);
            if units.xus.label.len() >= rows {
                is_over = false;
                break;
            }
        }
        if is_over {
            self.thread += 1;
        } else {
            self.records = Some(records);
        }
        units.finish(&process.clock);
        true
    }
}

/// A unit's label, which continues its parent's.
fn label(labels: &mut Labels, parent: LabelId, i: &Interval<'_>, address: Option<u64>) -> LabelId {
    if !parent.is_some() {
        return LabelId::NONE;
    }
    let index = i.index as u64;
    if i.node == 0 {
        // Ranges that nothing refers to may have no node of their own.
        return match i.construct.is_share() {
            true => labels.push(parent, &[index]),
            false => LabelId::NONE,
        };
    }
    match (entry(i).step, address) {
        (Step::Root, _) => labels.push(LabelId::NONE, &[0]),
        (Step::Ranked, Some(address)) => labels.push(parent, &[index, address]),
        (Step::TidRanked, Some(address)) => labels.push(parent, &[0, index, address]),
        (Step::Ranked | Step::TidRanked, None) => LabelId::NONE,
        (Step::Range, _) => labels.push(parent, &[index]),
        (Step::None, _) => parent,
    }
}
