//! Runs, profiles and foreign tables.

pub(crate) mod baselines;
pub(crate) mod by_type;
mod files;
mod folder;
mod given;
mod inputs;
pub(crate) mod job;
mod kinds;
mod order;
pub(crate) mod over_time;
pub(crate) mod pieces;
mod runs;
pub(crate) mod same;
pub(crate) mod series;
pub(crate) mod sides;
mod source;
mod table;
mod timeline;

pub(crate) use files::{listed, with_files, with_samples};
use files::{read_releasing, read_with};
pub(crate) use folder::FOLDER_FILE;
use inputs::sources;
pub(crate) use inputs::{inputs, inputs_of_ranks};
pub(crate) use kinds::{has_samples_only, is_run, is_series, ranks};
pub(crate) use order::arranged;
use runs::runs;
pub(crate) use source::Source;
pub(crate) use table::table;
pub(crate) use timeline::{has_samples, one_run, timeline, timeline_with_samples};

use crate::input;
use crate::memory;
use crate::output::note;
use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use ompfuse_account::model::UncountedWork;
use ompfuse_format::run::{RUN_FILE, RunHeader};
use ompfuse_fuse::profile::by_type::Pieces;
use ompfuse_fuse::run::InParts;
use ompfuse_fuse::samples::sampled_sums;
use ompfuse_fuse::span::Analysis;
use ompfuse_fuse::{
    Combiner, Profile, ProfileError, Run, RunFiles, Strategy, Summary, XuTable, combine_instances,
};
use ompfuse_progress::Progress;
use std::path::{Path, PathBuf};

/// Name of the profile in the output folder of `ompfuse profile`.
pub(crate) const PROFILE_NAME: &str = "profile.parquet";

/// First bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// Bytes of records that are read once more for the samples of a report, at most: that takes some 0.2 s.
const MOST_SAMPLED: usize = 32 << 20;
/// The same where it is to be known what is in no count of instructions.
const MOST_COUNTED: usize = 4 * MOST_SAMPLED;

/// What looking for the most typical run takes of the time, at most, and reading a run of that of adding it.
pub(crate) const OF_ORDER: f64 = 0.3;
const OF_READING: f64 = 0.6;

/// What a path means, as one profile: a run, all runs of a folder combined, a profile, a foreign table.
pub(crate) fn profile(path: &Path, progress: Progress<'_>) -> Result<Profile> {
    let inputs = inputs(&[profile_in(path)])?;
    let (inputs, strategy) = arranged(inputs, None, memory::available(), progress.part(OF_ORDER))?;
    combine(inputs, strategy, progress.part(1.0 - OF_ORDER))
}

/// As [`profile`], but without the execution units, of which there may be many millions. Needs about `memory` bytes.
pub(crate) fn summary(path: &Path, memory: u64, progress: Progress<'_>) -> Result<Summary> {
    let path = profile_in(path);
    if folder::is_folder(&path)
        && let Some(summary) = folder::known(&path)?.into_summary()
    {
        return Ok(summary);
    }
    if path.is_file() {
        let bytes = Bytes::from_owner(input::map(&path)?);
        if bytes.starts_with(PARQUET_MAGIC) {
            match Profile::summary_from_parquet(bytes) {
                Err(ProfileError::NoSummary) => {} // another recorder's table
                summary => {
                    return summary.with_context(|| format!("cannot read {}", path.display()));
                }
            }
        }
    }
    let inputs = inputs(&[path])?;
    if let [Source::Run(folder)] = &inputs[..]
        && let Some((mut summary, _)) = streamed(folder, progress)?
    {
        analyse(&inputs, &mut summary)?;
        return Ok(summary);
    }
    let (inputs, strategy) = arranged(inputs, None, memory, progress.part(OF_ORDER))?;
    let progress = progress.part(1.0 - OF_ORDER);
    if by_type::fits(&inputs, memory)? {
        return Ok(combine(inputs, strategy, progress)?.summary);
    }
    let mut summary = by_type::combine(&inputs, strategy, memory, &mut |_| Ok(()), progress)?;
    analyse(&inputs, &mut summary)?;
    Ok(summary)
}

/// Adds what single records of the first input tell: work, span, what threads waited for, where its samples are. Profiles have it
/// already.
pub(crate) fn analyse(inputs: &[Source], summary: &mut Summary) -> Result<()> {
    if let Some(Source::Run(folder)) = inputs.first() {
        with_samples(folder, |files| {
            summary.analysis = Some(Analysis::of_files(files, summary));
            let most = match counts(files) {
                true => MOST_COUNTED,
                false => MOST_SAMPLED,
            };
            summary.sampled = sampled_sums(files, Some(&summary.sites), most);
            Ok(())
        })?;
    }
    Ok(())
}

/// Whether functions of a run count their instructions.
fn counts(files: &RunFiles<'_>) -> bool {
    files
        .header
        .modules
        .iter()
        .any(|m| m.binary.counted.is_some())
}

/// How much of a run's work is in code that isn't counted; `None`: not known, or nothing is counted.
pub(crate) fn uncounted(run: &Path) -> Result<Option<UncountedWork>> {
    with_samples(run, |files| {
        let found = counts(files).then(|| sampled_sums(files, None, MOST_COUNTED));
        Ok(found
            .flatten()
            .as_ref()
            .and_then(ompfuse_account::uncounted))
    })
}

/// Adds where the samples of a run are, if its functions count their instructions: else comparisons don't need them.
pub(super) fn add_samples(run: &Path, summary: &mut Summary) -> Result<()> {
    with_samples(run, |files| {
        if counts(files) {
            summary.sampled = sampled_sums(files, Some(&summary.sites), usize::MAX);
        }
        Ok(())
    })
}

/// As [`analyse`], of one run.
pub(crate) fn analyse_run(folder: &Path, summary: &mut Summary) -> Result<()> {
    analyse(&[Source::Run(folder.to_owned())], summary)
}

/// The run that a path means, if it is one with records and without a profile beside it, and how many seconds it took.
pub(crate) fn one_with_records(path: &Path) -> Result<Option<(PathBuf, f64)>> {
    let path = profile_in(path);
    if path.is_file() {
        return Ok(None);
    }
    let inputs = inputs(&[path])?;
    let [Source::Run(folder)] = &inputs[..] else {
        return Ok(None);
    };
    let seconds = with_files(folder, |files| {
        let is_known = !files.has_sums_only();
        Ok(is_known.then_some(files.header.duration_s))
    })?;
    Ok(seconds.map(|s| (folder.clone(), s)))
}

/// What the threads of one run have summed up themselves.
pub(crate) fn sums(path: &Path) -> Result<Summary> {
    let folder = &one_run(path)?;
    with_files(folder, |files| {
        let summary = Summary::of_sums(&name(folder), files);
        summary.with_context(|| format!("cannot read the sums of {}", folder.display()))
    })
}

/// The sums of one run, whose records are read once and not kept, and the units that have several parts. `None`: they don't come in
/// the order of time.
fn streamed(folder: &Path, progress: Progress<'_>) -> Result<Option<(Summary, InParts)>> {
    read_releasing(folder, &[".json", ".rec"], |files, release| {
        Ok(Summary::streamed(
            &name(folder),
            files,
            progress.releasing(release),
        ))
    })
}

/// When the first run that a path means began, in seconds since 1970; of a profile that of its folder. `None`: nobody knows.
pub(crate) fn begun_at(path: &Path) -> Option<f64> {
    let run = first_run(path)?;
    let header = std::fs::read(run.join(RUN_FILE)).ok()?;
    let header: RunHeader = serde_json::from_slice(&header).ok()?;
    Some(header.started)
}

/// Hands on the execution units of the profile that a path means, piece by piece; false: it means runs.
pub(crate) fn units_of_profile(path: &Path, add: &mut dyn FnMut(&XuTable)) -> Result<bool> {
    let profile = profile_in(path);
    if profile.is_file() || folder::is_folder(&profile) {
        each_piece(&profile, add)?;
        return Ok(true);
    }
    Ok(false)
}

/// The units of a run that have several parts; `None`: its records don't come in the order of time.
pub(crate) fn in_parts(run: &Path) -> Result<Option<InParts>> {
    let found = streamed(run, Progress::default())?;
    Ok(found.map(|(_, in_parts)| in_parts))
}

/// The first run that a path means, or that a profile lies beside.
pub(crate) fn first_run(path: &Path) -> Option<PathBuf> {
    let folder = match path.is_dir() {
        true => path,
        false if path.file_name()? == PROFILE_NAME => path.parent()?,
        false => return None,
    };
    let mut runs = match is_run(folder) {
        true => vec![folder.to_owned()],
        false => listed(folder).ok()?,
    };
    runs.retain(|run| is_run(run));
    let repeated = || first_run(kinds::repetitions(folder)?.first()?);
    runs.into_iter().min().or_else(repeated)
}

/// The profile that `ompfuse profile` left in a folder, else the path itself.
fn profile_in(path: &Path) -> PathBuf {
    let profile = path.join(PROFILE_NAME);
    if profile.is_file() {
        profile
    } else {
        path.to_owned()
    }
}

/// The runs and files that paths mean, each for itself.
pub(crate) fn single(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let path = |source| match source {
        Source::Run(path) | Source::File(path) => path,
    };
    Ok(sources(paths)?.into_iter().map(path).collect())
}

/// Says what is missing or broken in the runs that a profile was made from.
pub(crate) fn tell_damage(summary: &Summary) {
    for run in &summary.runs {
        for problem in ompfuse_account::damage::losses(&run.health) {
            note(format_args!("{}: {problem}", run.name));
        }
    }
}

/// Refuses to write what would take the place of something that is read, or stand among a run's own files.
pub(crate) fn check_output(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    crate::atomic::check(output)?;
    let cannot = || format!("cannot write {}", output.display());
    let written = output.canonicalize().ok();
    for input in inputs {
        if written.is_some() && input.canonicalize().ok() == written {
            return Err(anyhow!("it is one of the inputs").context(cannot()));
        }
    }
    let folder = output.parent().filter(|p| !p.as_os_str().is_empty());
    if is_run(folder.unwrap_or(Path::new("."))) {
        return Err(
            anyhow!("its folder is a recorded run, which holds that run's files only")
                .context(cannot()),
        );
    }
    Ok(())
}

/// Combines the inputs. Each is read and handed over before the next, so that not all need to be in memory together.
pub(crate) fn combine(
    inputs: Vec<Source>,
    strategy: Strategy,
    progress: Progress<'_>,
) -> Result<Profile> {
    let mut combiner = Combiner::new(strategy).with_sources();
    let finish = Combiner::of_finish(strategy);
    let each = progress.part((1.0 - finish) / inputs.len() as f64);
    let first = inputs.first().and_then(|first| match first {
        Source::Run(folder) => Some(Source::Run(folder.clone())),
        Source::File(_) => None,
    });
    for input in inputs {
        combiner.add(match input {
            Source::Run(path) => profile_of(&path, each.part(OF_READING))?,
            Source::File(path) => {
                let profile = file(&path)?;
                each.advance(OF_READING);
                profile
            }
        });
        each.advance(1.0 - OF_READING);
    }
    let finished = combiner.finish_watched(progress.part(finish))?;
    let mut profile = finished.context("nothing to combine")?;
    analyse(first.as_slice(), &mut profile.summary)?;
    Ok(profile)
}

/// The event sets of one run, combined.
pub(crate) fn instances(path: &Path, progress: Progress<'_>) -> Result<Profile> {
    let folder = &one_run(path)?;
    let run = read(folder, progress.part(OF_READING))?;
    Ok(combine_instances(&name(folder), run))
}

/// A profile or a foreign table.
fn file(path: &Path) -> Result<Profile> {
    if folder::is_folder(path) {
        return folder::profile(path);
    }
    let bytes = input::map(path)?;
    let cannot = || format!("cannot read {}", path.display());
    if bytes.starts_with(PARQUET_MAGIC) || is_parquet(path) {
        let bytes = Bytes::from_owner(bytes);
        return match Profile::from_parquet(bytes.clone()) {
            Err(ProfileError::NoSummary) => Ok(Profile::of_table(
                &name(path),
                XuTable::from_parquet(bytes).with_context(cannot)?,
            )),
            profile => profile.with_context(cannot),
        };
    }
    Ok(Profile::of_table(
        &name(path),
        XuTable::from_csv(&bytes).with_context(cannot)?,
    ))
}

/// Whether a file is called one, whatever it holds.
fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "parquet")
}

/// The summary of a profile.
fn summary_of(path: &Path) -> Result<Summary> {
    if folder::is_folder(path) {
        return Ok(folder::known(path)?.known().clone());
    }
    let bytes = Bytes::from_owner(input::map(path)?);
    Ok(Profile::summary_from_parquet(bytes)?)
}

/// A profile or a foreign table, to be read piece by piece.
pub(crate) fn pieces(path: &Path) -> Result<Pieces> {
    if folder::is_folder(path) {
        return folder::pieces(path);
    }
    let bytes = Bytes::from_owner(input::map(path)?);
    Pieces::open(bytes).with_context(|| format!("cannot read {}", path.display()))
}

/// Hands on a profile or a foreign table, piece by piece.
fn each_piece(path: &Path, mut add: impl FnMut(&XuTable)) -> Result<()> {
    let mut pieces = pieces(path)?;
    loop {
        let piece = pieces
            .read()
            .with_context(|| format!("cannot read {}", path.display()))?;
        if piece.is_empty() {
            return Ok(());
        }
        add(&piece);
    }
}

/// What a path is called in summaries.
pub(crate) fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Reads a run.
pub(crate) fn read(folder: &Path, progress: Progress<'_>) -> Result<Run> {
    with_files(folder, |files| Ok(Run::read_watched(files, progress)))
}

/// A run by itself; one whose threads kept sums only has no units.
pub(crate) fn profile_of(folder: &Path, progress: Progress<'_>) -> Result<Profile> {
    with_files(folder, |files| {
        Profile::of_files(&name(folder), files, progress).with_context(|| {
            let folder = folder.display();
            format!("cannot read the sums of {folder}: a name of the program's is missing; record it again")
        })
    })
}
