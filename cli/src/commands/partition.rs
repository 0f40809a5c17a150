//! `ompfuse partition`.

use crate::load::{self, Source, by_type};
use crate::output::Usage;
use crate::{atomic, input, memory, output, progress};
use anyhow::{Context, Result, bail, ensure};
use ompfuse_fuse::XuTable;
use ompfuse_fuse::evaluate::Sample;
use ompfuse_fuse::exchange::{
    self, Counted, MANIFEST_VERSION, Manifest, Part, PartSummary, bucket_of,
};
use ompfuse_fuse::profile::by_type::Scanned;
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Write the units of runs as Parquet for an engine that combines them on many machines
///
/// Units are partitioned by run and by bucket of types, and sorted by type, MPI rank and label. A folder of ranks' folders is one run.
/// What is there already is not written again, so the command can be repeated, and run on each node for its own ranks. Without a run it
/// gathers what nodes have written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse partition run-a run-b -o units                 # two runs with other events
  ompfuse partition job/7 --run 1 -o units               # one rank of the second run
  ompfuse partition -o units                             # writes the manifest of all")]
pub(crate) struct Args {
    /// Run folders, folders of runs, folders of a job's ranks, or tables of other recorders
    #[arg(value_name = "RUN|JOB|TABLE")]
    inputs: Vec<PathBuf>,
    /// The folder to write into
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Number of the first run, from 0; the others follow
    #[arg(long, value_name = "N", default_value_t = 0)]
    run: u16,
    /// Number of buckets that types are distributed over
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    buckets: u32,
    #[command(flatten)]
    memory: memory::Arg,
}

/// Where the parts' own files are.
const PARTS: &str = "parts";

/// The manifest of all parts.
const MANIFEST: &str = "manifest.json";

/// Where it is told what is known of parts beside their units.
const SUMMARIES: &str = "summaries";

/// Units of one of many parts by which a typical run is told, at most.
const OF_RANK: usize = 1 << 12;

/// The file with what is known of a part beside its units.
pub(super) fn summary_file(units: &Path, run: u16, part: u32) -> PathBuf {
    units
        .join(SUMMARIES)
        .join(format!("run-{run}-part-{part}.json"))
}

pub(super) fn run(args: &Args) -> Result<()> {
    let mut runs: Vec<Vec<Source>> = vec![];
    for input in &args.inputs {
        match load::ranks(input) {
            Some(ranks) => runs.push(load::inputs_of_ranks(&ranks)?),
            None => {
                let one = std::slice::from_ref(input);
                runs.extend(load::inputs(one)?.into_iter().map(|source| vec![source]));
            }
        }
    }
    let last = usize::from(args.run) + runs.len();
    if last > usize::from(u16::MAX) {
        return Err(Usage(format!("{last} runs are too many")).into());
    }
    let folder = args.output.join(PARTS);
    make_folder(&folder)?;
    let bar = progress::whole("partitioning");
    let all: usize = runs.iter().map(Vec::len).sum();
    let each = bar.progress().part(1.0 / all.max(1) as f64);
    for (run, sources) in (args.run..).zip(&runs) {
        for source in sources {
            partition(args, run, source, each)
                .with_context(|| format!("cannot partition {}", source.path().display()))?;
        }
    }
    drop(bar);
    let manifest = gathered(&args.output)?;
    let units = |p: &Part| p.groups.iter().map(|g| g.units).sum::<u64>();
    let units: u64 = manifest.parts.iter().map(units).sum();
    let runs: BTreeSet<u16> = manifest.parts.iter().map(|p| p.run).collect();
    output::print(&format!(
        "{}: {units} units of {} runs, in {} parts",
        args.output.display(),
        runs.len(),
        manifest.parts.len()
    ))
}

fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Writes the manifest of all parts that are there.
fn gathered(output: &Path) -> Result<Manifest> {
    let mut parts: Vec<Part> = vec![];
    for path in load::listed(&output.join(PARTS))? {
        if path.extension().is_some_and(|e| e == "json") {
            parts.push(part_in(&path)?);
        }
    }
    if parts.is_empty() {
        bail!(
            "{} has no part: name runs, or the folder that nodes have written into",
            output.display()
        );
    }
    let manifest = Manifest::of(parts);
    let json = serde_json::to_vec(&manifest).context("cannot encode the manifest")?;
    atomic::write(&output.join(MANIFEST), &json, 0o644)?;
    Ok(manifest)
}

fn part_in(path: &Path) -> Result<Part> {
    let cannot = || format!("cannot read {}", path.display());
    let text = input::text(path).with_context(cannot)?;
    serde_json::from_str(&text).with_context(cannot)
}

/// The rank that all processes of a run are of; 0 if there is no such one.
fn part_of(scanned: &Scanned) -> u32 {
    let processes = &scanned.summary().processes;
    let ranks: BTreeSet<Option<u32>> = processes.iter().map(|p| p.mpi_rank).collect();
    match ranks.first() {
        Some(Some(rank)) if ranks.len() == 1 => *rank,
        _ => 0,
    }
}

/// What reading the first time takes of a part's time.
const OF_FIRST: f64 = 0.4;

/// Writes a part, unless it is there.
fn partition(args: &Args, run: u16, source: &Source, progress: Progress<'_>) -> Result<()> {
    let path = source.path();
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let memory = args.memory.bytes();
    let scanned = by_type::scanned(source, memory, progress.part(OF_FIRST))?;
    let mut part = Part {
        version: MANIFEST_VERSION,
        run,
        part: part_of(&scanned),
        name: name.to_string_lossy().into_owned(),
        buckets: args.buckets,
        events: scanned.events().map(str::to_owned).collect(),
        groups: vec![],
    };
    let told = args
        .output
        .join(PARTS)
        .join(format!("run-{run}-part-{}.json", part.part));
    if told.is_file() {
        let found = Part {
            groups: vec![],
            ..part_in(&told)?
        };
        ensure!(
            found == part,
            "{} is of {}, or has other events or buckets; remove it, or name another folder",
            told.display(),
            found.name
        );
        return Ok(());
    }
    load::tell_damage(scanned.summary());
    let mut groups: Groups = BTreeMap::new();
    let mut sample = Sample::default();
    let mut each = |table: &XuTable, positions: &[u32]| {
        write_buckets(args, &part, table, positions)?;
        count(table, &mut groups);
        let number = |row: usize| u64::from(part.part) << 32 | u64::from(positions[row]);
        sample.add_numbered(table, number);
        Ok(())
    };
    let rest = progress.part(1.0 - OF_FIRST);
    by_type::by_bucket((source, &scanned), args.buckets, memory, &mut each, rest)?;
    let counted = |((module, name, rank), units)| Counted {
        module,
        name,
        rank,
        units,
    };
    part.groups = groups.into_iter().map(counted).collect();
    if part.groups.iter().any(|g| g.rank.is_some()) {
        sample.limit(OF_RANK);
    }
    let mut summary = scanned.summary().clone();
    load::analyse(std::slice::from_ref(source), &mut summary)?;
    let known = PartSummary { summary, sample };
    let json = serde_json::to_vec(&known).context("cannot encode a summary")?;
    let file = summary_file(&args.output, run, part.part);
    make_folder(file.parent().unwrap_or(&args.output))?;
    atomic::write(&file, &json, 0o644)?;
    // It comes last: whoever finds it finds the units.
    let json = serde_json::to_vec(&part).context("cannot encode a part")?;
    atomic::write(&told, &json, 0o644)
}

/// Module, type and rank, and the number of units.
type Groups = BTreeMap<(Option<String>, Option<String>, Option<u32>), u64>;

fn count(table: &XuTable, groups: &mut Groups) {
    let mut by_number: BTreeMap<(u32, Option<u32>), u64> = BTreeMap::new();
    for (&site, &process) in table.site.iter().zip(&table.process) {
        let process = table.processes.get(usize::from(process));
        let rank = process.and_then(|p| p.mpi_rank);
        *by_number.entry((site, rank)).or_default() += 1;
    }
    for ((site, rank), units) in by_number {
        let site = table.sites.get(site as usize);
        let module = site.map(|s| s.module.clone()).filter(|m| !m.is_empty());
        let name = site.map(|s| s.name.clone());
        *groups.entry((module, name, rank)).or_default() += units;
    }
}

/// Writes a file for each bucket that rows are in.
fn write_buckets(args: &Args, part: &Part, table: &XuTable, positions: &[u32]) -> Result<()> {
    let unit = |&position: &u32| i64::from(part.part) << 32 | i64::from(position);
    let units: Vec<i64> = positions.iter().map(unit).collect();
    let of_site: Vec<u32> = (table.sites.iter())
        .map(|site| bucket_of(&site.module, &site.name, args.buckets))
        .collect();
    let unknown = bucket_of("", "", args.buckets);
    let mut buckets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for row in exchange::order(table) {
        let site = table.site[row as usize] as usize;
        let bucket = of_site.get(site).copied().unwrap_or(unknown);
        buckets.entry(bucket).or_default().push(row);
    }
    for (bucket, rows) in buckets {
        let folder = format!("units/run={}/bucket={bucket}", part.run);
        let folder = args.output.join(folder);
        make_folder(&folder)?;
        let file = folder.join(format!("part-{}.parquet", part.part));
        atomic::write_with(&file, 0o644, |into| {
            exchange::write(into, table, &rows, &units)
                .with_context(|| format!("cannot write {}", file.display()))
        })?;
    }
    Ok(())
}
