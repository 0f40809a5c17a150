//! Tables of other recorders.

use super::{EventColumn, ProcessId, Site, XuTable};
use crate::label::{LabelId, Labels, parse_into};
use std::collections::HashMap;
use std::sync::Arc;

impl XuTable {
    /// Reads a foreign recorder's table: columns `type`, `label`, `thread`, `t0_ns`, `t1_ns`, then one per event; a
    /// column `row` is passed over, an empty count is "not counted". The exclusive time is `t1_ns - t0_ns`.
    ///
    /// # Errors
    /// [`TableError`] names the line and what is wrong with it.
    pub fn from_csv(bytes: &[u8]) -> Result<XuTable, TableError> {
        let mut reader = ::csv::ReaderBuilder::new()
            .trim(::csv::Trim::All)
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
            processes: vec![ProcessId {
                pid: 0,
                mpi_rank: None,
                ordinal: 0,
            }],
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
        let (mut components, mut record) = (vec![], ::csv::StringRecord::new());
        while reader.read_record(&mut record).map_err(TableError::csv)? {
            let line = record.position().map_or(0, ::csv::Position::line);
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
