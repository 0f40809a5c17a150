//! Tables of other recorders.

use super::{EventColumn, ProcessId, Site, XuTable};
use crate::label::{LabelId, Labels, parse_into};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl XuTable {
    /// Reads a foreign recorder's table: columns `type`, `label`, `thread`, `t0_ns`, `t1_ns`, then one per event; a
    /// column `row` is passed over, an empty count is "not counted". The exclusive time is `t1_ns - t0_ns`.
    ///
    /// # Errors
    /// [`TableError`] names the line and what is wrong with it.
    pub fn from_csv(bytes: &[u8]) -> Result<XuTable, TableError> {
        CsvRows::new(bytes)?.read(usize::MAX)
    }
}

/// A foreign recorder's table, read piece by piece.
pub(crate) struct CsvRows<R> {
    reader: ::csv::Reader<Bounded<R>>,
    header: ::csv::StringRecord,
    /// Positions of type, label, thread, begin and end.
    at: [usize; 5],
    /// Positions of the events.
    events: Vec<usize>,
    /// The types so far.
    sites: Vec<Site>,
    site_index: HashMap<String, u32>,
}

impl<R: std::io::Read> CsvRows<R> {
    pub(crate) fn new(bytes: R) -> Result<CsvRows<R>, TableError> {
        let mut reader = ::csv::ReaderBuilder::new()
            .trim(::csv::Trim::All)
            .from_reader(Bounded {
                inner: bytes,
                left: LONGEST,
            });
        let header = reader.headers().map_err(TableError::csv)?.clone();
        let find = |name: &'static str| {
            header
                .iter()
                .position(|c| c == name)
                .ok_or(TableError::Column(name))
        };
        let at = [
            find("type")?,
            find("label")?,
            find("thread")?,
            find("t0_ns")?,
            find("t1_ns")?,
        ];
        let is_event = |i: &usize| !at.contains(i) && &header[*i] != "row";
        let events: Vec<usize> = (0..header.len()).filter(is_event).collect();
        check_names(events.iter().map(|&i| &header[i]))?;
        Ok(CsvRows {
            events,
            reader,
            header,
            at,
            sites: vec![],
            site_index: HashMap::new(),
        })
    }

    /// The next rows, `limit` at most; none at the end. The types of later pieces begin with those of earlier ones.
    pub(crate) fn read(&mut self, limit: usize) -> Result<XuTable, TableError> {
        let [site, label, thread, t0, t1] = self.at;
        let header = &self.header;
        let mut table = XuTable {
            processes: vec![ProcessId {
                pid: 0,
                mpi_rank: None,
                ordinal: 0,
            }],
            ..XuTable::default()
        };
        let event = |&at: &usize| EventColumn {
            name: header[at].to_owned(),
            values: vec![],
            present: None,
        };
        table.events = self.events.iter().map(event).collect();
        let mut labels = Labels::default();
        let (mut components, mut record) = (vec![], ::csv::StringRecord::new());
        while table.len() < limit
            && self
                .reader
                .read_record(&mut record)
                .map_err(TableError::csv)?
        {
            self.reader.get_mut().left = LONGEST;
            let line = record.position().map_or(0, ::csv::Position::line);
            let wrong = |at: usize| TableError::Value {
                line,
                column: header[at].to_owned(),
                text: beginning(&record[at]),
            };
            let number = |at: usize| record[at].parse::<i64>().map_err(|_| wrong(at));
            let name = &record[site];
            let index = match self.site_index.get(name) {
                Some(&index) => index,
                None => {
                    let index = self.sites.len() as u32;
                    self.sites.push(Site::named(name));
                    self.site_index.insert(name.to_owned(), index);
                    index
                }
            };
            let text = &record[label];
            table.label.push(if text.is_empty() {
                LabelId::NONE
            } else {
                parse_into(text, &mut components).map_err(|_| wrong(label))?;
                labels.push(LabelId::NONE, &components)
            });
            let (begin, end) = (number(t0)?, number(t1)?);
            if end < begin {
                return Err(wrong(t1));
            }
            table.site.push(index);
            let of_thread = u32::try_from(number(thread)?);
            table.thread.push(of_thread.map_err(|_| wrong(thread))?);
            table.t0_ns.push(begin);
            table.t1_ns.push(end);
            table.own_ns.push(end.saturating_sub(begin).max(0) as u64);
            let row = table.label.len() - 1;
            for (column, &at) in table.events.iter_mut().zip(&self.events) {
                let text = &record[at];
                let value = if text.is_empty() {
                    None
                } else {
                    Some(text.parse::<u64>().map_err(|_| wrong(at))?)
                };
                column.push(row, value);
            }
        }
        table.fill_unrecorded(labels);
        table.sites = Arc::new(self.sites.clone());
        Ok(table)
    }
}

/// Most bytes of a row, quoted line breaks included.
const LONGEST: usize = 1 << 20;

/// Ends with an error where a row doesn't end: of what is no table, however large it is, no more is kept.
struct Bounded<R> {
    inner: R,
    /// Bytes that the row may still have.
    left: usize,
}

impl<R: std::io::Read> std::io::Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::Error::other("a row is longer than 1 MiB"));
        }
        let read = self.inner.read(into)?;
        self.left = self.left.saturating_sub(read);
        Ok(read)
    }
}

/// A value, or its beginning.
fn beginning(value: &str) -> String {
    const SHOWN: usize = 80;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
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
    /// An event's column has another one's name, a property's, or none.
    #[error("two columns are called {0:?}, or it is no name of an event")]
    Name(String),
    /// A value can't be read.
    #[error(
        "line {line}: {text:?} in column {column}, where {} belongs",
        belongs(column)
    )]
    Value {
        /// Line in the file, from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// The value.
        text: String,
    },
    /// A column of another type.
    #[error("column {column} holds {found}, whole numbers are needed")]
    Type {
        /// Name of the column.
        column: String,
        /// Its type.
        found: String,
    },
    /// It is no Parquet file, or a broken one.
    #[error("not a readable Parquet file: {0}")]
    Parquet(#[source] Box<::parquet::errors::ParquetError>),
    /// It is no CSV file.
    #[error("not a table of comma-separated values: {0}")]
    Csv(#[source] Box<::csv::Error>),
}

/// Whether each event has a name of its own.
pub(super) fn check_names<'n>(events: impl Iterator<Item = &'n str>) -> Result<(), TableError> {
    let mut known = HashSet::from(["", "type", "label", "thread", "t0_ns", "t1_ns"]);
    for name in events {
        if !known.insert(name) {
            return Err(TableError::Name(name.to_owned()));
        }
    }
    Ok(())
}

/// What a column holds.
fn belongs(column: &str) -> &'static str {
    match column {
        "type" => "a text or number",
        "label" => "a path of numbers (0.1.2) or nothing",
        "thread" => "a whole number from 0 on",
        "t0_ns" => "a whole number",
        "t1_ns" => "a whole number that is not before t0_ns",
        _ => "a count (a whole number from 0 on) or nothing",
    }
}

impl TableError {
    fn csv(error: ::csv::Error) -> TableError {
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
            "line 2: \"0.x\" in column label, where a path of numbers (0.1.2) or nothing belongs"
        );
        assert_eq!(
            text("type,label,thread,t0_ns,t1_ns,E\n1,0,0,0,0,-1\n"),
            "line 2: \"-1\" in column E, where a count (a whole number from 0 on) or nothing belongs"
        );
        for thread in ["-1", "4294967296"] {
            assert_eq!(
                text(&format!(
                    "type,label,thread,t0_ns,t1_ns\n1,0,{thread},0,0\n"
                )),
                format!(
                    "line 2: \"{thread}\" in column thread, where a whole number from 0 on belongs"
                )
            );
        }
        for twice in ["A,A", "A,", "thread"] {
            let error = text(&format!("type,label,thread,t0_ns,t1_ns,{twice}\n"));
            assert!(error.contains("are called"), "{twice}: {error}");
        }
        assert!(text("type,label,thread,t0_ns,t1_ns\n1,0\n").starts_with("not a table"));
    }

    #[test]
    fn rows_without_end() {
        let text = |csv: &str| XuTable::from_csv(csv.as_bytes()).unwrap_err().to_string();
        let head = "type,label,thread,t0_ns,t1_ns\n";
        let lines = "1,0.1,0,0,0\n".repeat(2 * LONGEST / 12);
        assert_eq!(
            XuTable::from_csv(format!("{head}{lines}").as_bytes())
                .unwrap()
                .len(),
            2 * LONGEST / 12
        );
        for endless in [
            "\0".repeat(2 * LONGEST),
            format!("{head}{}", ",".repeat(2 * LONGEST)),
            format!("{head}\"{lines}"),
        ] {
            let error = text(&endless);
            assert!(error.contains("a row is longer than 1 MiB"), "{error}");
        }
        let long = text(&format!("{head}1,{},0,0,0\n", "x".repeat(LONGEST / 2)));
        assert!(long.len() < 200 && long.contains("xxx..."), "{long}");
    }

    #[test]
    fn processes_one_after_the_other_are_told_apart() {
        let csv = "type,label,thread,t0_ns,t1_ns\n1,0.1,0,0,0\n1,0.1,0,0,0\n";
        let mut table = XuTable::from_csv(csv.as_bytes()).unwrap();
        assert_eq!(table.key(0), table.key(1));
        table.processes.push(ProcessId {
            pid: 9,
            mpi_rank: None,
            ordinal: 1,
        });
        table.process[1] = 1;
        assert_ne!(table.key(0), table.key(1));
        assert_eq!(table.label_hash(0), table.label_hash(1));
    }
}
