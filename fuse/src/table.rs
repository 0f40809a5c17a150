//! Tables of execution units: one row per XU, one column per property and per event.
//!
//! A table comes from a recorded run, from a profile, or from a CSV file of another recorder; combination strategies
//! work on tables and know nothing of where they come from.

use crate::label::{LabelHash, LabelId, Labels, parse_into};
use ompfuse_format::Construct;
use ompfuse_format::site::{HexAddress, Source};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
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
    /// What tells it apart from the others in the same run when XUs are matched: its position among processes that ran
    /// one after the other with the same modules. Processes that overlap in time share one number, since the order of
    /// their starts may differ between runs; a label that several of them have is ambiguous.
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

    /// The column with the rows at `rows`, in their order.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> EventColumn {
        EventColumn {
            name: self.name.clone(),
            values: gather(&self.values, rows),
            present: self.present.as_ref().map(|p| gather(p, rows)),
        }
    }
}

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
    /// Counts, exclusive.
    pub events: Vec<EventColumn>,
}

impl XuTable {
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

    /// The table with the rows at `rows`, in their order; it shares labels and sites with this one.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> XuTable {
        XuTable {
            labels: Arc::clone(&self.labels),
            sites: Arc::clone(&self.sites),
            processes: self.processes.clone(),
            label: gather(&self.label, rows),
            site: gather(&self.site, rows),
            construct: gather(&self.construct, rows),
            process: gather(&self.process, rows),
            thread: gather(&self.thread, rows),
            cpu: gather(&self.cpu, rows),
            first: gather(&self.first, rows),
            iterations: gather(&self.iterations, rows),
            t0_ns: gather(&self.t0_ns, rows),
            t1_ns: gather(&self.t1_ns, rows),
            own_ns: gather(&self.own_ns, rows),
            parts: gather(&self.parts, rows),
            events: self.events.par_iter().map(|e| e.gather(rows)).collect(),
        }
    }

    /// Reads a foreign recorder's table: columns `type`, `label`, `thread`, `t0_ns`, `t1_ns`, then one per event; a
    /// column `row` is passed over, an empty count is "not counted". The exclusive time is `t1_ns - t0_ns`.
    ///
    /// # Errors
    /// [`TableError`] names the line and what is wrong with it.
    pub fn from_csv(bytes: &[u8]) -> Result<XuTable, TableError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(bytes);
        let header = reader.headers().map_err(TableError::csv)?.clone();
        let find = |name: &'static str| {
            header
                .iter()
                .position(|c| c == name)
                .ok_or(TableError::Column(name))
        };
        let (site, label, thread) = (find("type")?, find("label")?, find("thread")?);
        let (t0, t1) = (find("t0_ns")?, find("t1_ns")?);
        let event_at: Vec<usize> = (0..header.len())
            .filter(|i| ![site, label, thread, t0, t1].contains(i) && &header[*i] != "row")
            .collect();

        let mut table = XuTable {
            processes: vec![ProcessId { pid: 0, ordinal: 0 }],
            ..XuTable::default()
        };
        table.events = event_at
            .iter()
            .map(|&i| EventColumn {
                name: header[i].to_owned(),
                values: vec![],
                present: None,
            })
            .collect();
        let (mut labels, mut sites, mut site_index) = (Labels::default(), vec![], HashMap::new());
        let (mut components, mut record) = (vec![], csv::StringRecord::new());
        while reader.read_record(&mut record).map_err(TableError::csv)? {
            let line = record.position().map_or(0, csv::Position::line);
            let number = |at: usize| {
                let text = &record[at];
                text.parse::<i64>().map_err(|_| TableError::Value {
                    line,
                    column: header[at].to_owned(),
                    text: text.to_owned(),
                })
            };
            let name = &record[site];
            let index = match site_index.get(name) {
                Some(&index) => index,
                None => {
                    let index = sites.len() as u32;
                    sites.push(Site::named(name));
                    site_index.insert(name.to_owned(), index);
                    index
                }
            };
            let text = &record[label];
            table.label.push(if text.is_empty() {
                LabelId::NONE
            } else {
                parse_into(text, &mut components).map_err(|_| TableError::Value {
                    line,
                    column: "label".to_owned(),
                    text: text.to_owned(),
                })?;
                labels.push(LabelId::NONE, &components)
            });
            let (begin, end) = (number(t0)?, number(t1)?);
            table.site.push(index);
            table.thread.push(number(thread)? as u32);
            table.t0_ns.push(begin);
            table.t1_ns.push(end);
            table.own_ns.push(end.saturating_sub(begin).max(0) as u64);
            let row = table.label.len() - 1;
            for (column, &at) in table.events.iter_mut().zip(&event_at) {
                let text = &record[at];
                let value = if text.is_empty() {
                    None
                } else {
                    Some(text.parse::<u64>().map_err(|_| TableError::Value {
                        line,
                        column: header[at].to_owned(),
                        text: text.to_owned(),
                    })?)
                };
                column.push(row, value);
            }
        }
        let rows = table.label.len();
        table.construct = vec![None; rows];
        table.process = vec![0; rows];
        table.cpu = vec![u16::MAX; rows];
        table.first = vec![0; rows];
        table.iterations = vec![0; rows];
        table.parts = vec![1; rows];
        table.labels = Arc::new(labels);
        table.sites = Arc::new(sites);
        Ok(table)
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

/// The elements at `rows`.
pub(crate) fn gather<T: Copy + Send + Sync>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| column[row as usize]).collect()
}

/// What is wrong with a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A column is missing.
    #[error(
        "column {0} is missing; a table has type, label, thread, t0_ns, t1_ns and one column per event"
    )]
    Column(&'static str),
    /// A value can't be read.
    #[error("line {line}: {text:?} in column {column} is not what belongs there")]
    Value {
        /// Line in the file, from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// The value.
        text: String,
    },
    /// It is no CSV file.
    #[error("not a table of comma-separated values: {0}")]
    Csv(#[source] Box<csv::Error>),
}

impl TableError {
    fn csv(error: csv::Error) -> TableError {
        TableError::Csv(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_table_is_read() {
        let csv = "type,label,thread,t0_ns,t1_ns,INS,MISS\nA,0.1,3,10,25,7,\nB,,0,11,12,8,9\nA,0.2,1,5,6,0,1\n";
        let table = XuTable::from_csv(csv.as_bytes()).unwrap();
        assert_eq!(table.len(), 3);
        assert_eq!(table.site, [0, 1, 0]);
        assert_eq!(table.label_text(0, 9).unwrap(), "0.1");
        assert_eq!(table.key(1), None);
        assert_eq!((table.own_ns[0], table.thread[0]), (15, 3));
        let miss = table.event("MISS").unwrap();
        assert_eq!(
            (0..3).map(|r| miss.get(r)).collect::<Vec<_>>(),
            [None, Some(9), Some(1)]
        );
        assert_eq!(table.event("INS").unwrap().present, None);
    }

    #[test]
    fn errors_say_where() {
        let text = |csv: &str| XuTable::from_csv(csv.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            text("type,label,thread,t0_ns\n"),
            "column t1_ns is missing; a table has type, label, thread, t0_ns, t1_ns and one column per event"
        );
        assert_eq!(
            text("type,label,thread,t0_ns,t1_ns\n1,0.x,0,0,0\n"),
            "line 2: \"0.x\" in column label is not what belongs there"
        );
        assert_eq!(
            text("type,label,thread,t0_ns,t1_ns,E\n1,0,0,0,0,-1\n"),
            "line 2: \"-1\" in column E is not what belongs there"
        );
        assert!(text("type,label,thread,t0_ns,t1_ns\n1,0\n").starts_with("not a table"));
    }

    #[test]
    fn processes_one_after_the_other_are_told_apart() {
        let csv = "type,label,thread,t0_ns,t1_ns\n1,0.1,0,0,0\n1,0.1,0,0,0\n";
        let mut table = XuTable::from_csv(csv.as_bytes()).unwrap();
        assert_eq!(table.key(0), table.key(1));
        table.processes.push(ProcessId { pid: 9, ordinal: 1 });
        table.process[1] = 1;
        assert_ne!(table.key(0), table.key(1));
        assert_eq!(table.label_hash(0), table.label_hash(1));
    }
}
