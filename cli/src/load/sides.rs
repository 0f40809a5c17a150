//! The sides of a comparison: runs, folders of runs, profiles, jobs, baselines.

use super::given::GZIP_MAGIC;
use super::kinds::ranks;
use super::{PROFILE_NAME, folder, job, name, runs};
use crate::input;
use crate::output::remark;
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use flate2::read::GzDecoder;
use ompfuse_account::units::several;
use ompfuse_compare::gather::{Measured, measured};
use ompfuse_compare::side::SIDE_VERSION;
use ompfuse_compare::{Quantity, Side, SideError, side_of};
use ompfuse_fuse::{Profile, Summary, XuTable};
use ompfuse_progress::Progress;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest baseline that is read, unpacked: damaged files may claim anything.
const LARGEST: u64 = 1 << 30;

/// Is given each run of a side with its execution units, if these are at hand.
pub(crate) type EachRun<'a> = &'a mut dyn FnMut(&Summary, XuTable);

/// What paths mean as one side: repetitions of one another, or one baseline. `what`: `A` or `B`, for messages.
pub(crate) fn side(
    what: &str,
    paths: &[PathBuf],
    each: EachRun<'_>,
    progress: Progress<'_>,
) -> Result<Side> {
    if let [path] = paths
        && let Some(side) = baseline(path)?
    {
        return Ok(side);
    }
    let sources = sources(paths)?;
    let share = progress.part(1.0 / sources.len().max(1) as f64);
    let mut found: Vec<Measured> = vec![];
    for source in &sources {
        found.push(source.measured(each, share)?);
    }
    let called: Vec<String> = paths.iter().map(|p| name(p)).collect();
    side_of(&called.join(" "), &found).map_err(|error| told(what, &error))
}

/// A run's own time in seconds, if it is known.
pub(crate) fn own_s(run: &Path) -> Result<Option<f64>> {
    let progress = Progress::new(&|_| ());
    let summary = super::profile_of(run, progress)?.summary;
    let found = measured(&name(run), &summary, None).total;
    Ok(found.get(&Quantity::Wall).copied())
}

/// One run, a profile, or a job with its ranks.
enum Source {
    Run(PathBuf),
    Profile(PathBuf),
    Job(PathBuf, Vec<PathBuf>),
}

impl Source {
    fn measured(&self, each: EachRun<'_>, progress: Progress<'_>) -> Result<Measured> {
        let (path, summary, table) = match self {
            Source::Run(path) => {
                let mut profile = super::profile_of(path, progress)?;
                super::add_samples(path, &mut profile.summary)?;
                (path, profile.summary, profile.xus)
            }
            Source::Profile(path) => {
                let profile = match folder::is_folder(path) {
                    true => folder::profile(path)?,
                    false => Profile::from_parquet(Bytes::from_owner(input::map(path)?))
                        .with_context(|| format!("cannot read {}", path.display()))?,
                };
                progress.advance(1.0);
                (path, profile.summary, profile.xus)
            }
            Source::Job(path, ranks) => return job::measured(path, ranks, progress),
        };
        let measured = measured(&name(path), &summary, Some(&table));
        each(&summary, table);
        Ok(measured)
    }
}

fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = vec![];
    for path in paths {
        let profile = path.join(PROFILE_NAME);
        if folder::is_folder(path) {
            sources.push(Source::Profile(path.clone()));
            continue;
        }
        if let Some(folders) = ranks(path) {
            let several = several(folders.len() as u64, "folder");
            remark(format_args!(
                "{}: {several} of ranks, taken for a job",
                path.display()
            ));
            sources.push(Source::Job(path.clone(), folders));
            continue;
        }
        if path.is_dir() {
            match runs(path) {
                Ok(runs) => sources.extend(runs.into_iter().map(Source::Run)),
                // Its runs were removed, the profile was kept.
                Err(_) if profile.is_file() => sources.push(Source::Profile(profile)),
                Err(error) => return Err(error),
            }
            continue;
        }
        ensure!(
            baseline(path)?.is_none(),
            "{} is a baseline, which is a side of its own; leave the other runs of this side out",
            path.display()
        );
        super::given::check(path)?;
        sources.push(Source::Profile(path.clone()));
    }
    Ok(sources)
}

/// The baseline in a file; `None`: it is something else.
fn baseline(path: &Path) -> Result<Option<Side>> {
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = input::map(path)?;
    read_baseline(&path.display().to_string(), &bytes)
}

/// The baseline in these bytes; `None`: they are something else. `shown`: what the user calls the file.
pub(super) fn read_baseline(shown: &str, bytes: &[u8]) -> Result<Option<Side>> {
    if !bytes.starts_with(GZIP_MAGIC) {
        return Ok(None);
    }
    let cannot = || format!("cannot read the baseline {shown}");
    let mut text = vec![];
    let mut unpacked = GzDecoder::new(bytes).take(LARGEST);
    unpacked.read_to_end(&mut text).with_context(cannot)?;
    let version = |text: &[u8]| -> Option<u64> {
        let value: serde_json::Value = serde_json::from_slice(text).ok()?;
        value.get("version")?.as_u64()
    };
    // Another version may read well and mean something else.
    if let Some(version) = version(&text).filter(|&v| v != u64::from(SIDE_VERSION)) {
        let newer = version > u64::from(SIDE_VERSION);
        let remedy = if newer { ", or update ompfuse" } else { "" };
        bail!(
            "{}: its version is {version}, and this ompfuse reads version {SIDE_VERSION}; make it again{remedy}",
            cannot()
        );
    }
    let side: Side = serde_json::from_slice(&text).with_context(cannot)?;
    Ok(Some(side))
}

fn told(what: &str, error: &SideError) -> anyhow::Error {
    match error {
        SideError::Empty => anyhow::anyhow!("side {what} has no run"),
        SideError::Builds { one, other, module } => anyhow::anyhow!(
            "the runs of side {what} are of different builds: {module} differs between {one} and {other}; compare these with \
             `ompfuse diff {one} {other}`"
        ),
        SideError::Threads { one, other } => anyhow::anyhow!(
            "the runs of side {what} had different numbers of threads: {one} and {other}; give each number as a side of its own"
        ),
    }
}
