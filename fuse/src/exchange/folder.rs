//! A profile in several Parquet files: what an engine has written, as one table.

use super::groups::{Done, GroupError};
use super::manifest::Manifest;
use super::read::{Columns, Processes, Rows, number_column};
use super::rows::{COUNT, UNIT};
use crate::profile::{Profile, Strategy};
use crate::run::EventInfo;
use crate::summary::{EventOrigin, Matching, RunSummary, Summary, TableSums};
use crate::table::{self, ProcessId, Site, XuTable};
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

/// Version of what stands beside the files.
const VERSION: u32 = 1;

/// What is known of such a profile beside its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Folder {
    version: u32,
    /// The files, and the number of rows of each.
    files: BTreeMap<String, u64>,
    /// Each run was one part, so that the summary has all of it. Else its regions are the units', which readers add up.
    is_whole: bool,
    summary: Summary,
}

/// What is wrong with such a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Written by another version.
    #[error("its layout has version {0}, and this ompfuse reads version {VERSION}: combine again")]
    Version(u32),
    /// A file is not what was written.
    #[error("{file} is damaged: {source}")]
    Parquet {
        /// The file.
        file: String,
        /// Why.
        source: parquet::errors::ParquetError,
    },
    /// A file is another one.
    #[error("{file} has {found} units, and {expected} were written: it is damaged")]
    Count {
        /// The file.
        file: String,
        /// Its rows.
        found: u64,
        /// As they were written.
        expected: u64,
    },
    /// A column or value.
    #[error("{file}: {source}")]
    Rows {
        /// The file.
        file: String,
        /// Why.
        source: GroupError,
    },
}

impl Folder {
    /// Of what was combined, with the runs in this order. `of_parts`: what is known of a run's first part.
    pub fn new(
        manifest: &Manifest,
        order: &[u16],
        of_parts: Vec<Option<Summary>>,
        strategy: Strategy,
        (files, done): (BTreeMap<String, u64>, Done),
    ) -> Folder {
        let is_whole = manifest.is_whole() && of_parts.iter().all(Option::is_some);
        let mut summary = match is_whole {
            true => absorbed(of_parts.into_iter().flatten()),
            false => of_manifest(manifest, order, of_parts),
        };
        if order.len() > 1 {
            let known: HashMap<(&str, &str), &Site> =
                summary.sites.iter().map(|s| (s.key(), s)).collect();
            let mut unmatched = done.unmatched;
            for entry in &mut unmatched {
                if let Some(&site) = known.get(&entry.site.key()) {
                    entry.site = site.clone();
                }
            }
            summary.matching = Some(Matching {
                strategy: strategy.name().to_owned(),
                matched: done.combined,
                unmatched,
            });
        }
        Folder {
            version: VERSION,
            files,
            is_whole,
            summary,
        }
    }

    /// The names of its files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// All that a report needs; `None`: the units have to be added up.
    pub fn into_summary(self) -> Option<Summary> {
        self.is_whole.then_some(self.summary)
    }

    /// As far as it is known without the units.
    pub fn known(&self) -> &Summary {
        &self.summary
    }

    /// How much memory it takes, at most, to combine its units with others.
    pub fn need(&self) -> u64 {
        let rows: u64 = self.files.values().sum();
        let columns = self.summary.events.len() as u64;
        rows.saturating_mul(table::ROW + table::COUNT * columns)
    }
}

/// Each run was one part.
fn absorbed(runs: impl Iterator<Item = Summary>) -> Summary {
    let together = runs.reduce(|mut all, next| {
        let base = all.runs.len() as u16;
        all.absorb(next, base);
        all
    });
    together.unwrap_or_default()
}

/// Runs are many parts, of which one is known.
fn of_manifest(manifest: &Manifest, order: &[u16], of_parts: Vec<Option<Summary>>) -> Summary {
    let mut of_parts: Vec<Summary> = of_parts
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect();
    let run = |(&run, part): (&u16, &Summary)| {
        let parts = || manifest.parts.iter().filter(|p| p.run == run);
        let groups = parts().flat_map(|p| &p.groups);
        let name = parts().next().map_or("", |p| &p.name);
        let of_job = Path::new(name).ancestors().nth(2);
        let is_one = parts().count() == 1;
        let info = |name: &String| EventInfo {
            name: name.clone(),
            counted: true,
            reason: None,
            scaled: false,
        };
        let events = parts().next().into_iter().flat_map(|p| &p.events);
        RunSummary {
            name: match of_job.filter(|_| !is_one) {
                Some(folder) => folder.to_string_lossy().into_owned(),
                None => name.to_owned(),
            },
            started: part.runs.first().and_then(|r| r.started),
            events: events.map(info).collect(),
            xus: groups.map(|g| g.units).sum(),
            ..RunSummary::default()
        }
    };
    let runs: Vec<RunSummary> = order.iter().zip(&of_parts).map(run).collect();
    let mut events: Vec<EventOrigin> = vec![];
    for (run, counted) in (0..).zip(&runs) {
        for event in &counted.events {
            if !events.iter().any(|e| e.name == event.name) {
                events.push(EventOrigin {
                    name: event.name.clone(),
                    run: Some(run),
                    reason: None,
                    scaled: false,
                });
            }
        }
    }
    let first = match of_parts.is_empty() {
        true => Summary::default(),
        false => of_parts.swap_remove(0),
    };
    let mut sites = first.sites;
    let mut known: HashMap<(String, String), ()> = HashMap::new();
    for site in &sites {
        known.insert((site.module.clone(), site.name.clone()), ());
    }
    for group in manifest.parts.iter().flat_map(|p| &p.groups) {
        let Some(name) = &group.name else { continue };
        let module = group.module.clone().unwrap_or_default();
        if known.insert((module.clone(), name.clone()), ()).is_none() {
            sites.push(Site {
                module,
                ..Site::named(name.clone())
            });
        }
    }
    Summary {
        program: first.program,
        args: first.args,
        host: first.host,
        cpus: first.cpus,
        kernel: first.kernel,
        processor: first.processor,
        cache_bytes: first.cache_bytes,
        environment: first.environment,
        modules: first.modules,
        sites,
        events,
        runs,
        ..Summary::default()
    }
}

/// Rows, and for each event the units that the counts come from.
type Piece = (XuTable, Option<Vec<Vec<u32>>>);

/// Its rows, piece by piece.
pub struct FolderRows {
    folder: Folder,
    left: VecDeque<(String, Bytes)>,
    open: Option<(String, ParquetRecordBatchReader)>,
    /// Rows in a piece.
    limit: usize,
    events: Vec<String>,
    sites: Arc<Vec<Site>>,
    places: HashMap<(String, String), u32>,
    processes: Processes,
}

impl FolderRows {
    /// With the bytes of all files, in their order. `limit`: rows in a piece.
    ///
    /// # Errors
    /// [`FolderError`] if a file is not as it was written.
    pub fn new(folder: Folder, files: Vec<Bytes>, limit: usize) -> Result<FolderRows, FolderError> {
        if folder.version != VERSION {
            return Err(FolderError::Version(folder.version));
        }
        let mut events: Option<Vec<String>> = None;
        for ((file, &expected), bytes) in folder.files.iter().zip(&files) {
            let metadata = ArrowReaderMetadata::load(bytes, ArrowReaderOptions::new());
            let metadata = metadata.map_err(broken(file))?;
            let found = metadata.metadata().file_metadata().num_rows().max(0) as u64;
            if found != expected {
                return Err(FolderError::Count {
                    file: file.clone(),
                    found,
                    expected,
                });
            }
            events.get_or_insert_with(|| {
                let names = metadata.schema().fields().iter().map(|f| f.name());
                let names = names.filter_map(|name| name.strip_prefix(COUNT));
                names.map(str::to_owned).collect()
            });
        }
        let of_summary = || folder.summary.events.iter().map(|e| e.name.clone());
        let sites = Arc::new(folder.summary.sites.clone());
        let place = |(at, site): (u32, &Site)| ((site.module.clone(), site.name.clone()), at);
        Ok(FolderRows {
            events: events.unwrap_or_else(|| of_summary().collect()),
            places: (0..).zip(sites.iter()).map(place).collect(),
            sites,
            left: folder.files.keys().cloned().zip(files).collect(),
            folder,
            open: None,
            limit,
            processes: Processes::default(),
        })
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// [`FolderError`] says where a file is damaged.
    pub fn read(&mut self) -> Result<XuTable, FolderError> {
        Ok(self.next()?.0)
    }

    /// Also which units the counts come from, if each run was one part.
    fn next(&mut self) -> Result<Piece, FolderError> {
        loop {
            let next = self.open.as_mut().and_then(|(_, reader)| reader.next());
            if let (Some(batch), Some((file, _))) = (next, &self.open) {
                let file = file.clone();
                let batch = batch.map_err(|e| broken(&file)(e.into()))?;
                let read = self.table(&batch);
                return read.map_err(|source| FolderError::Rows { file, source });
            }
            let Some((file, bytes)) = self.left.pop_front() else {
                self.open = None;
                let empty = Rows::new(&self.events, std::mem::take(&mut self.processes));
                return Ok((self.finished(empty), None));
            };
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
                .and_then(|builder| builder.with_batch_size(self.limit).build());
            let reader = reader.map_err(broken(&file))?;
            self.open = Some((file, reader));
        }
    }

    fn finished(&mut self, rows: Rows) -> XuTable {
        let (mut table, processes) = rows.into_table(Arc::clone(&self.sites));
        self.processes = processes;
        if self.folder.is_whole {
            table.processes.clone_from(&self.folder.summary.processes);
        }
        table
    }

    fn table(&mut self, batch: &RecordBatch) -> Result<Piece, GroupError> {
        let columns = Columns::new(batch, &self.events, false)?;
        let mut rows = Rows::new(&self.events, std::mem::take(&mut self.processes));
        let mut last: Option<((String, String), u32)> = None;
        for row in 0..columns.rows() {
            let module = columns.text("module", row).unwrap_or_default();
            let name = columns.text("type", row).unwrap_or_default();
            let site = match &last {
                Some(((m, n), site)) if m == module && n == name => *site,
                _ => {
                    let key = (module.to_owned(), name.to_owned());
                    let site = self.places.get(&key).copied().unwrap_or(u32::MAX);
                    last = Some((key, site));
                    site
                }
            };
            rows.push(&columns, row, site)?;
        }
        let mut table = self.finished(rows);
        if self.folder.is_whole {
            numbered(&columns, &mut table)?;
        }
        if let Some(shares) = batch.column_by_name("confidence") {
            let shares = shares.as_primitive_opt::<Float32Type>();
            let shares = shares.ok_or_else(|| GroupError::Column("confidence".to_owned()))?;
            let percent = shares.values().iter().map(|s| (s * 100.0).round() as u8);
            table.confidence = Some(percent.collect());
        }
        let sources = match self.folder.is_whole {
            true => sources(batch, &self.events)?,
            false => None,
        };
        Ok((table, sources))
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`FolderRows::read`].
    pub fn profile(mut self, name: &str) -> Result<Profile, FolderError> {
        let mut sums = TableSums::default();
        let mut all: Option<Piece> = None;
        let (xus, sources) = loop {
            let (piece, sources) = self.next()?;
            if piece.is_empty() {
                break all.unwrap_or((piece, None));
            }
            if !self.folder.is_whole {
                sums.add(&piece);
            }
            match &mut all {
                None => all = Some((piece, sources)),
                Some((all, of_all)) => {
                    let rows: Vec<u32> = (0..piece.len() as u32).collect();
                    all.append(&piece, &rows);
                    for (all, some) in of_all.iter_mut().flatten().zip(sources.iter().flatten()) {
                        all.extend(some);
                    }
                }
            }
        };
        let (summary, origins) = self.into_known(sums, name, &xus);
        Ok(Profile {
            xus,
            origins,
            sources,
            summary,
        })
    }

    /// The summary and the runs that events come from. `sums`: of all pieces, unless runs were whole. `last`: what has all sites.
    pub(crate) fn into_known(
        self,
        sums: TableSums,
        name: &str,
        last: &XuTable,
    ) -> (Summary, Vec<u16>) {
        let known = self.folder.summary;
        let of_event = |name: &String| {
            let event = known.events.iter().find(|e| e.name == *name);
            event.and_then(|e| e.run).unwrap_or(0)
        };
        let origins: Vec<u16> = self.events.iter().map(of_event).collect();
        if self.folder.is_whole {
            return (known, origins);
        }
        let sums = sums.finish(name, last);
        let mut events = sums.events;
        for (event, &run) in events.iter_mut().zip(&origins) {
            event.run = Some(run);
        }
        let summary = Summary {
            threads: sums.threads,
            regions: sums.regions,
            events,
            ..known
        };
        (summary, origins)
    }

    /// Whether the summary needs no sums of units.
    pub(crate) fn is_whole(&self) -> bool {
        self.folder.is_whole
    }
}

fn broken(file: &str) -> impl Fn(parquet::errors::ParquetError) -> FolderError {
    let file = file.to_owned();
    move |source| FolderError::Parquet {
        file: file.clone(),
        source,
    }
}

/// Processes as the first run's summary has them.
fn numbered(columns: &Columns, table: &mut XuTable) -> Result<(), GroupError> {
    for row in 0..columns.rows() {
        let number: u16 = columns.whole("process_number", row)?;
        table.process[row] = number;
        // A foreign table's summary has none.
        while table.processes.len() <= usize::from(number) {
            table.processes.push(ProcessId {
                pid: columns.whole("process", row)?,
                mpi_rank: None,
                ordinal: 0,
            });
        }
    }
    Ok(())
}

/// Positions of the units in their runs, for each event.
fn sources(batch: &RecordBatch, events: &[String]) -> Result<Option<Vec<Vec<u32>>>, GroupError> {
    let name = |event: &String| format!("{UNIT}{event}");
    let has = |event: &String| batch.column_by_name(&name(event)).is_some();
    if !events.iter().any(has) {
        return Ok(None);
    }
    let positions = |event: &String| -> Result<Vec<u32>, GroupError> {
        let units = number_column(batch, &name(event))?;
        let position = |row: usize| match units.is_valid(row) {
            true => units.value(row) as u32, // the other half is the part
            false => 0,
        };
        Ok((0..units.len()).map(position).collect())
    };
    let all = events.iter().map(positions).collect::<Result<_, _>>()?;
    Ok(Some(all))
}
