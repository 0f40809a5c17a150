//! Profiles that are larger than memory: types of XUs are combined one after the other.
//!
//! All strategies match XUs of one type with each other, so what is done for one type depends on no other. (That the label
//! strategy finds the same takes that a label belongs to one type, as recorded ones do: they contain the construct's address.)
//! The inputs are read as often as there are *passes*, piece by piece; each pass keeps the rows of as many types as fit into
//! memory, at least one, combines them, and hands out a profile of these types. There is nothing temporary on the disk.

mod pieces;

pub use pieces::{PieceError, Pieces, need};

use super::{Combiner, Profile, Strategy};
use crate::combine::{BcError, list_unmatched};
use crate::exchange::bucket_of;
use crate::run::{NONE, RunReader};
use crate::summary::{Matching, Summary, TableSums};
use crate::table::{COUNT, ROW, Site, XuTable};
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A type of XUs, the same in all inputs: module and name. XUs of unknown types are one.
type Type = Option<(String, String)>;

/// What is known of an input once it was read.
#[derive(Debug)]
pub struct Scanned {
    summary: Summary,
    origins: Vec<u16>,
    /// XUs of each type.
    types: BTreeMap<Type, u64>,
    /// Its columns, without rows.
    empty: XuTable,
}

impl Scanned {
    /// Of a run, which needs about `memory` bytes. `name`: what the user calls it.
    pub fn of_run(
        name: &str,
        reader: &mut RunReader<'_>,
        memory: u64,
        progress: Progress<'_>,
    ) -> Scanned {
        let summary = Summary::of_parts(name, reader, memory, progress);
        let empty = reader.read(&|_, _| false).run.xus;
        let mut types = BTreeMap::new();
        for place in reader.places().iter().filter(|p| p.xus > 0) {
            let of_type = (place.site != NONE).then(|| type_of(&empty.sites[place.site as usize]));
            *types.entry(of_type).or_default() += place.xus as u64;
        }
        Scanned {
            summary,
            origins: vec![0; empty.events.len()],
            types,
            empty,
        }
    }

    /// Names of the events that were counted.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.empty.events.iter().map(|e| e.name.as_str())
    }

    /// What is known of all of it, if nothing is combined with it.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

fn type_of(site: &Site) -> (String, String) {
    let (module, name) = site.key();
    (module.to_owned(), name.to_owned())
}

/// The first reading of an input, and what it needs to be read again.
#[derive(Debug, Default)]
pub struct Scan {
    sums: TableSums,
    counts: Vec<u64>,
    unknown: u64,
    empty: XuTable,
}

impl Scan {
    /// The next piece.
    pub fn add(&mut self, piece: &XuTable) {
        self.counts.resize(piece.sites.len(), 0);
        for &site in &piece.site {
            match self.counts.get_mut(site as usize) {
                Some(count) => *count += 1,
                None => self.unknown += 1,
            }
        }
        let known = std::mem::take(&mut self.empty.processes);
        self.empty = XuTable {
            labels: Arc::default(),
            ..piece.gather(&[])
        };
        if self.empty.processes.len() < known.len() {
            self.empty.processes = known;
        }
    }

    /// As [`Scan::add`], and also adds up what a foreign table's summary needs.
    pub fn add_with_sums(&mut self, piece: &XuTable) {
        self.sums.add(piece);
        self.add(piece);
    }

    /// All pieces were seen. `summary` and `origins`: those of a run or a profile; a foreign table called `name` has none.
    pub fn finish(self, name: &str, known: Option<(Summary, Vec<u16>)>) -> Scanned {
        let mut types = BTreeMap::from([(None, self.unknown)]);
        for (site, &count) in self.empty.sites.iter().zip(&self.counts) {
            *types.entry(Some(type_of(site))).or_default() += count;
        }
        types.retain(|_, &mut count| count > 0);
        let (summary, origins) = known.unwrap_or_else(|| {
            let origins = vec![0; self.empty.events.len()];
            (self.sums.finish(name, &self.empty), origins)
        });
        Scanned {
            summary,
            origins,
            types,
            empty: self.empty,
        }
    }
}

/// Types that are combined together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass(BTreeSet<Type>);

/// Distributes the inputs' types over passes that take about `memory` bytes each, or one type.
pub fn passes(inputs: &[Scanned], memory: u64) -> Vec<Pass> {
    let events: BTreeSet<&str> = inputs
        .iter()
        .flat_map(|i| &i.empty.events)
        .map(|e| e.name.as_str())
        .collect();
    let result = ROW + COUNT * events.len() as u64;
    let mut needs: BTreeMap<&Type, (u64, u64)> = BTreeMap::new();
    for input in inputs {
        let row = ROW + COUNT * input.empty.events.len() as u64;
        for (of_type, &count) in &input.types {
            let (bytes, most) = needs.entry(of_type).or_default();
            *bytes += count * row;
            *most = count.max(*most);
        }
    }
    let mut passes: Vec<Pass> = vec![];
    let mut left = 0;
    for (of_type, (bytes, most)) in needs {
        let need = bytes + most * result;
        if passes.is_empty() || need > left {
            passes.push(Pass(BTreeSet::new()));
            left = memory;
        }
        left = left.saturating_sub(need);
        if let Some(pass) = passes.last_mut() {
            pass.0.insert(of_type.clone());
        }
    }
    if passes.is_empty() {
        passes.push(Pass(BTreeSet::new()));
    }
    passes
}

/// Distributes an input's types over passes by bucket, so that a bucket is in one pass; likewise that take about `memory` bytes each, or
/// one bucket.
pub fn bucket_passes(input: &Scanned, buckets: u32, memory: u64) -> Vec<Pass> {
    let row = ROW + COUNT * input.empty.events.len() as u64;
    let mut by_bucket: BTreeMap<u32, (u64, Pass)> = BTreeMap::new();
    for (of_type, &count) in &input.types {
        let (module, name) = of_type.clone().unwrap_or_default();
        let bucket = by_bucket.entry(bucket_of(&module, &name, buckets));
        let (bytes, pass) = bucket.or_insert_with(|| (0, Pass(BTreeSet::new())));
        *bytes += 2 * count * row;
        pass.0.insert(of_type.clone());
    }
    let mut passes: Vec<Pass> = vec![];
    let mut left = 0;
    for (need, pass) in by_bucket.into_values() {
        match passes.last_mut().filter(|_| need <= left) {
            Some(last) => last.0.extend(pass.0),
            None => {
                passes.push(pass);
                left = memory;
            }
        }
        left = left.saturating_sub(need);
    }
    passes
}

/// One input's rows of a pass.
#[derive(Debug)]
pub struct Selection<'a> {
    pass: &'a Pass,
    input: &'a Scanned,
    table: XuTable,
    /// Where its rows are in the input, and how many of that were seen.
    positions: Vec<u32>,
    seen: u32,
}

impl Pass {
    /// Of an input.
    pub fn of<'a>(&'a self, input: &'a Scanned) -> Selection<'a> {
        Selection {
            pass: self,
            input,
            table: input.empty.clone(),
            positions: vec![],
            seen: 0,
        }
    }
}

impl Pass {
    /// Which of these sites are in it, and whether unknown ones are.
    fn wants(&self, sites: &[Site]) -> (Vec<bool>, bool) {
        let of_site = |site: &Site| self.0.contains(&Some(type_of(site)));
        (sites.iter().map(of_site).collect(), self.0.contains(&None))
    }
}

impl Selection<'_> {
    /// The rows of a run.
    pub fn of_run(self, reader: &mut RunReader<'_>) -> Selected {
        let (is_wanted, unknown) = self.pass.wants(&self.input.empty.sites);
        let part = reader.read(&|site, construct| {
            construct.is_xu() && is_wanted.get(site as usize).copied().unwrap_or(unknown)
        });
        Selection {
            table: part.run.xus,
            positions: part.positions,
            ..self
        }
        .finish()
    }

    /// The next piece.
    pub fn add(&mut self, piece: &XuTable) {
        let (is_wanted, unknown) = self.pass.wants(&piece.sites);
        let rows = (0..piece.len() as u32).filter(|&row| {
            let site = piece.site[row as usize] as usize;
            is_wanted.get(site).copied().unwrap_or(unknown)
        });
        let rows: Vec<u32> = rows.collect();
        self.table.append(piece, &rows);
        let seen = self.seen;
        self.positions.extend(rows.iter().map(|row| seen + row));
        self.seen += piece.len() as u32;
    }

    /// The profile of these rows; what is known beside them is that of the whole input.
    pub fn finish(self) -> Selected {
        let profile = Profile {
            xus: XuTable {
                sites: Arc::clone(&self.input.empty.sites),
                processes: self.input.empty.processes.clone(),
                ..self.table
            },
            origins: self.input.origins.clone(),
            sources: None,
            summary: self.input.summary.clone(),
        };
        Selected {
            profile,
            positions: self.positions,
        }
    }
}

/// An input's rows of a pass.
#[derive(Debug)]
pub struct Selected {
    profile: Profile,
    positions: Vec<u32>,
}

impl Selected {
    /// The rows, and where they are in the input.
    pub fn into_rows(self) -> (XuTable, Vec<u32>) {
        (self.profile.xus, self.positions)
    }
}

/// Puts the summaries of passes together.
#[derive(Debug, Default)]
pub struct Passes {
    summary: Option<Summary>,
}

impl Passes {
    /// Combines one pass. `selected` gives the inputs' rows, in order. The result is in label order.
    ///
    /// # Errors
    /// What `selected` returns, and [`BcError`].
    pub fn combine<E: From<BcError>>(
        &mut self,
        strategy: Strategy,
        selected: impl IntoIterator<Item = Result<Selected, E>>,
    ) -> Result<Option<Profile>, E> {
        let mut combiner = Combiner::new(strategy).with_sources();
        for selected in selected {
            let Selected { profile, positions } = selected?;
            combiner.add_rows(profile, positions);
        }
        let Some(profile) = combiner.finish()? else {
            return Ok(None);
        };
        match &mut self.summary {
            None => self.summary = Some(profile.summary.clone()),
            Some(summary) => {
                if let (Some(ours), Some(theirs)) =
                    (&mut summary.matching, profile.summary.matching.clone())
                {
                    merge(ours, theirs);
                }
            }
        }
        Ok(Some(if profile.is_in_label_order() {
            profile
        } else {
            profile.in_label_order()
        }))
    }

    /// The summary of all.
    pub fn into_summary(self) -> Summary {
        self.summary.unwrap_or_default()
    }
}

fn merge(ours: &mut Matching, theirs: Matching) {
    let Matching {
        strategy: _, // the same
        matched,
        unmatched,
    } = theirs;
    ours.matched += matched;
    ours.unmatched.extend(unmatched);
    ours.unmatched = list_unmatched(std::mem::take(&mut ours.unmatched));
}

#[cfg(test)]
mod tests;
