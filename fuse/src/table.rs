//! Tables of execution units: one row per XU, one column per property and per event.
//!
//! A table comes from a recorded run, from a profile, or from a CSV file of another recorder; combination strategies
//! work on tables and know nothing of where they come from.

mod csv;
mod gather;
mod parquet;

pub(crate) use self::csv::CsvRows;
pub use self::csv::TableError;
pub(crate) use self::gather::{gather, regather};
pub(crate) use self::parquet::ParquetRows;

use crate::label::{LabelHash, LabelId, Labels};
use ompfuse_format::Construct;
use ompfuse_format::site::{HexAddress, SiteInfo, Source};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Where XUs and other intervals come from in the program: the place where their construct begins. The type of an XU.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// Text of the type: the link-time address (`0x4011a6`), or what a foreign table says.
    pub name: String,
    /// Build id of the module, or its path where it has none; empty if not known.
    pub module: String,
    /// Index in the module's site table.
    pub id: Option<u32>,
    /// Link-time address.
    pub address: Option<HexAddress>,
    /// The construct that begins here.
    pub construct: Option<Construct>,
    /// Name of the function.
    pub function: Option<String>,
    /// Source line.
    pub source: Option<Source>,
    /// More about the construct (schedule, a critical section's name).
    pub detail: Option<String>,
}

impl Site {
    /// A place in a module.
    pub fn of(module: String, info: &SiteInfo) -> Site {
        Site {
            name: info.address.to_string(),
            module,
            id: Some(info.id),
            address: Some(info.address),
            construct: Some(info.construct),
            function: info.function.as_deref().map(str::to_owned),
            source: info.source.clone(),
            detail: info.detail.as_deref().map(str::to_owned),
        }
    }

    /// A site of which only the name is known.
    pub fn named(name: impl Into<String>) -> Site {
        Site {
            name: name.into(),
            module: String::new(),
            id: None,
            address: None,
            construct: None,
            function: None,
            source: None,
            detail: None,
        }
    }

    /// What identifies it in every run: module and name.
    pub fn key(&self) -> (&str, &str) {
        (&self.module, &self.name)
    }

    /// Key for ordering: module, then numeric value of the name where it is a number, then its text.
    pub fn sort_key(&self) -> (&str, u64, &str) {
        let number = match self.name.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => self.name.parse().ok(),
        };
        (&self.module, number.unwrap_or(u64::MAX), &self.name)
    }
}

/// A process of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number in the operating system.
    pub pid: u32,
    /// Its MPI rank, if it has one.
    pub mpi_rank: Option<u32>,
    /// What tells it apart from the others in the same run when XUs are matched: its position among processes that ran
    /// one after the other with the same modules. Processes that overlap in time share one number, since the order of
    /// their starts may differ between runs; a label that several of them have is ambiguous. MPI ranks are told apart
    /// by their rank in the upper half.
    pub ordinal: u32,
}

/// The counts of one event, a row per XU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventColumn {
    /// Name of the event.
    pub name: String,
    /// Counts; 0 where there is none.
    pub values: Vec<u64>,
    /// Which rows have a count; `None` if all have.
    pub present: Option<Vec<bool>>,
}

impl EventColumn {
    /// The count in a row; `None` if it was not counted.
    pub fn get(&self, row: usize) -> Option<u64> {
        self.present
            .as_ref()
            .is_none_or(|p| p[row])
            .then(|| self.values[row])
    }
}

/// Bytes that a row takes beside its counts while it is combined: columns, label, keys and indices of strategies.
pub(crate) const ROW: u64 = 320;
/// Bytes that a count takes: the column, and what it is copied to while it is matched or written.
pub(crate) const COUNT: u64 = 24;

/// Execution units. All columns have the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct XuTable {
    /// The labels that [`XuTable::label`] refers to.
    pub labels: Arc<Labels>,
    /// The types that [`XuTable::site`] refers to.
    pub sites: Arc<Vec<Site>>,
    /// The processes that [`XuTable::process`] refers to.
    pub processes: Vec<ProcessId>,
    /// Label.
    pub label: Vec<LabelId>,
    /// Type.
    pub site: Vec<u32>,
    /// Kind of XU: range, section or task; `None` in foreign tables.
    pub construct: Vec<Option<Construct>>,
    /// Process.
    pub process: Vec<u16>,
    /// Number of the thread in its process, by the order of first records. Of the first part, if there are several.
    pub thread: Vec<u32>,
    /// Logical processor at the end of the first part, `u16::MAX` if not known.
    pub cpu: Vec<u16>,
    /// Step index: a range's first iteration (logical, from 0), a task's rank.
    pub first: Vec<i64>,
    /// A range's number of iterations; 0 if not known.
    pub iterations: Vec<u64>,
    /// Begin in nanoseconds since the run's begin.
    pub t0_ns: Vec<i64>,
    /// End, likewise.
    pub t1_ns: Vec<i64>,
    /// Exclusive time in nanoseconds: the XU's own code, all parts together.
    pub own_ns: Vec<u64>,
    /// Number of parts that it was executed in.
    pub parts: Vec<u32>,
    /// Whether, in its own time, the kernel took the processor from its thread, moved it, or delivered a signal; of an XU in several
    /// parts in any of them. `None`: not known.
    pub disturbed: Vec<Option<bool>>,
    /// In a combined table: how sure it is, in percent, that the counts of other runs are what the first run's XU would have
    /// had. `None` where the strategy does not say (it is neither lgl nor joint), or nothing was combined.
    pub confidence: Option<Vec<u8>>,
    /// Counts, exclusive.
    pub events: Vec<EventColumn>,
}

impl XuTable {
    /// Fills the columns that only ompfuse's own records have, for as many XUs as there are labels.
    pub(crate) fn fill_unrecorded(&mut self, labels: Labels) {
        let rows = self.label.len();
        self.construct = vec![None; rows];
        self.process = vec![0; rows];
        self.cpu = vec![u16::MAX; rows];
        self.first = vec![0; rows];
        self.iterations = vec![0; rows];
        self.parts = vec![1; rows];
        self.disturbed = vec![None; rows];
        self.labels = Arc::new(labels);
    }

    /// Room for so many XUs more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.label.reserve(rows);
        self.site.reserve(rows);
        self.construct.reserve(rows);
        self.process.reserve(rows);
        self.thread.reserve(rows);
        self.cpu.reserve(rows);
        self.first.reserve(rows);
        self.iterations.reserve(rows);
        self.t0_ns.reserve(rows);
        self.t1_ns.reserve(rows);
        self.own_ns.reserve(rows);
        self.parts.reserve(rows);
        self.disturbed.reserve(rows);
    }

    /// Number of XUs.
    pub fn len(&self) -> usize {
        self.label.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.label.is_empty()
    }

    /// The column of an event.
    pub fn event(&self, name: &str) -> Option<&EventColumn> {
        self.events.iter().find(|e| e.name == name)
    }

    /// With the counts of these events only.
    #[must_use]
    pub fn only(&self, events: &[String]) -> XuTable {
        let shown = |name: &String| self.event(name).cloned();
        XuTable {
            events: events.iter().filter_map(shown).collect(),
            ..self.without_events()
        }
    }

    /// Everything but the counts.
    #[must_use]
    pub fn without_events(&self) -> XuTable {
        XuTable {
            labels: Arc::clone(&self.labels),
            sites: Arc::clone(&self.sites),
            processes: self.processes.clone(),
            label: self.label.clone(),
            site: self.site.clone(),
            construct: self.construct.clone(),
            process: self.process.clone(),
            thread: self.thread.clone(),
            cpu: self.cpu.clone(),
            first: self.first.clone(),
            iterations: self.iterations.clone(),
            t0_ns: self.t0_ns.clone(),
            t1_ns: self.t1_ns.clone(),
            own_ns: self.own_ns.clone(),
            parts: self.parts.clone(),
            disturbed: self.disturbed.clone(),
            confidence: self.confidence.clone(),
            events: vec![],
        }
    }

    /// What identifies the XU in every run; `None` without a label.
    pub fn key(&self, row: usize) -> Option<u128> {
        let label = self.label[row];
        if !label.is_some() {
            return None;
        }
        let hash = self.labels.hash(label);
        let ordinal = self
            .processes
            .get(self.process[row] as usize)
            .map_or(0, |p| p.ordinal);
        Some(if ordinal == 0 {
            hash.0
        } else {
            let mut bytes = [0; 20];
            bytes[..16].copy_from_slice(&hash.0.to_le_bytes());
            bytes[16..].copy_from_slice(&ordinal.to_le_bytes());
            xxh3_128(&bytes)
        })
    }

    /// The construct that the unit is a part of, as a report calls it: its region's, or the work-sharing half of a combined one.
    /// `None` in foreign tables.
    pub fn region_construct(&self, row: usize) -> Option<Construct> {
        let kind = self.construct[row]?;
        let site = self.sites.get(self.site[row] as usize);
        let scanned = site.and_then(|s| s.construct);
        Some(match (kind, scanned) {
            (Construct::Range, Some(c @ (Construct::Distribute | Construct::Taskloop))) => c,
            (Construct::Range, _) => Construct::Loop,
            (Construct::Section, _) => Construct::Sections,
            (Construct::Task, Some(Construct::Taskloop)) => Construct::Taskloop,
            (kind, _) => kind,
        })
    }

    /// The label's hash; `None` without a label.
    pub fn label_hash(&self, row: usize) -> Option<LabelHash> {
        self.label[row]
            .is_some()
            .then(|| self.labels.hash(self.label[row]))
    }

    /// The text of a label, `limit` components at most; `None` for a longer one or none.
    pub fn label_text(&self, row: usize, limit: usize) -> Option<String> {
        let id = self.label[row];
        id.is_some()
            .then(|| self.labels.get(id, limit))
            .flatten()
            .map(|l| l.to_string())
    }
}

impl XuTable {
    /// Appends rows of another piece of the same table: its sites and processes begin with this one's, its events are the same.
    pub(crate) fn append(&mut self, piece: &XuTable, rows: &[u32]) {
        let held = self.len();
        let labels = gather(&piece.label, rows);
        let labels = Arc::make_mut(&mut self.labels).take(&piece.labels, &labels);
        self.label.extend(labels);
        self.sites = Arc::clone(&piece.sites);
        if self.processes.len() < piece.processes.len() {
            self.processes.clone_from(&piece.processes);
        }
        self.site.extend(gather(&piece.site, rows));
        self.construct.extend(gather(&piece.construct, rows));
        self.process.extend(gather(&piece.process, rows));
        self.thread.extend(gather(&piece.thread, rows));
        self.cpu.extend(gather(&piece.cpu, rows));
        self.first.extend(gather(&piece.first, rows));
        self.iterations.extend(gather(&piece.iterations, rows));
        self.t0_ns.extend(gather(&piece.t0_ns, rows));
        self.t1_ns.extend(gather(&piece.t1_ns, rows));
        self.own_ns.extend(gather(&piece.own_ns, rows));
        self.parts.extend(gather(&piece.parts, rows));
        self.disturbed.extend(gather(&piece.disturbed, rows));
        if let Some(theirs) = &piece.confidence {
            let ours = self.confidence.get_or_insert_default();
            ours.extend(gather(theirs, rows));
        }
        for (ours, theirs) in self.events.iter_mut().zip(&piece.events) {
            ours.values.extend(gather(&theirs.values, rows));
            if ours.present.is_some() || theirs.present.is_some() {
                let ours = ours.present.get_or_insert_with(|| vec![true; held]);
                match &theirs.present {
                    Some(theirs) => ours.extend(gather(theirs, rows)),
                    None => ours.resize(held + rows.len(), true),
                }
            }
        }
    }
}

impl EventColumn {
    /// Adds a further part's count to a row; a part that was not counted makes the sum unknown.
    pub(crate) fn add(&mut self, row: usize, value: Option<u64>) {
        match value {
            Some(value) => self.values[row] = self.values[row].wrapping_add(value),
            None => {
                self.present
                    .get_or_insert_with(|| vec![true; self.values.len()])[row] = false
            }
        }
        if self.get(row).is_none() {
            self.values[row] = 0;
        }
    }

    /// Appends the count of row `row`, which is the next one.
    pub(crate) fn push(&mut self, row: usize, value: Option<u64>) {
        if value.is_none() && self.present.is_none() {
            self.present = Some(vec![true; row]);
        }
        self.values.push(value.unwrap_or(0));
        if let Some(present) = &mut self.present {
            present.push(value.is_some());
        }
    }
}
