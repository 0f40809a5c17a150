//! `ompfuse combine`.

mod engine;

use crate::load::{self, Source, by_type, pieces};
use crate::newest::or_newest;
use crate::strategy::{RELAX, Relax, SEED, Strategy};
use crate::{atomic, memory, output, progress};
use anyhow::{Context, Result, bail};
use ompfuse_fuse::{Profile, ProfileWriter, Reason, Summary};
use ompfuse_progress::Progress;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Combine runs into one profile: each execution unit has a count for every event
///
/// `ompfuse profile` combines its runs itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run folders, folders of runs, profiles, or tables of other recorders (default: the newest ompfuse-out*
    /// here)
    ///
    /// The first one gives the times. Tables are CSV or Parquet.
    #[arg(value_name = "RUN|TABLE")]
    inputs: Vec<PathBuf>,
    /// How execution units of different runs are matched
    #[arg(long, value_enum, default_value_t = Strategy::Default)]
    strategy: Strategy,
    /// How bc goes from one grid to the next, coarser one
    #[arg(long, value_enum, default_value_t = RELAX)]
    relax: Relax,
    /// Seed of the order in which bc-unlabelled pairs units of one cell
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// Combine units on many machines: spark, or spark:URL with the URL of a master
    ///
    /// The input is a folder of `ompfuse partition`, the output a folder of Parquet files with the columns of units for engines. Python needs
    /// pyspark, pyarrow and pandas; OMPFUSE_PYTHON names the interpreter that has them.
    #[arg(long, value_name = "ENGINE", value_parser = engine::parse)]
    engine: Option<engine::Engine>,
    #[command(flatten)]
    memory: memory::Arg,
    /// The profile to write (default: profile.parquet in the folder of runs, if that is the only input)
    #[arg(short, long, value_name = "PROFILE.parquet")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: output::FormatArg,
}

#[derive(Serialize)]
struct Answer<'a> {
    output: &'a Path,
    xus: usize,
    unmatched: u64,
    events: Vec<&'a str>,
}

impl Args {
    /// Where the profile goes.
    fn output(&self, inputs: &[PathBuf]) -> Result<PathBuf> {
        match (&self.output, inputs) {
            (Some(file), _) => Ok(file.clone()),
            (None, [folder]) if folder.is_dir() && !load::is_run(folder) => {
                Ok(folder.join(load::PROFILE_NAME))
            }
            (None, _) => Err(output::Usage(
                "the profile has no name: give it with -o PROFILE.parquet".to_owned(),
            )
            .into()),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    if let Some(engine) = &args.engine {
        return engine::run(args, engine);
    }
    let inputs = match &args.inputs[..] {
        [] => vec![or_newest(None)?],
        inputs => inputs.to_vec(),
    };
    let output = &args.output(&inputs)?;
    load::check_output(output, &inputs)?;
    let strategy = args.strategy.with(args.relax, args.seed);
    let bar = progress::whole("combining");
    let progress = bar.progress();
    let result = match (args.strategy, &inputs[..]) {
        (Strategy::Instances, [run]) => instances(run, output, progress)?,
        (Strategy::Instances, _) => bail!("--strategy instances takes one run"),
        (_, inputs) => {
            let memory = args.memory.bytes();
            let inputs = load::inputs(inputs)?;
            combine(inputs, strategy, memory, output, progress)?
        }
    };
    drop(bar);
    let summary = &result.summary;
    load::tell_damage(summary);
    if result.xus == 0 && is_unlabelled(summary) {
        output::note(
            "no execution unit has a label to be matched by: --strategy ctc goes by type and time, bc-unlabelled by behaviour",
        );
    }
    let matching = summary.matching.iter();
    let answer = Answer {
        output,
        xus: result.xus,
        unmatched: matching.flat_map(|m| &m.unmatched).map(|u| u.count).sum(),
        events: result.events.iter().map(String::as_str).collect(),
    };
    if args.format.is_json() {
        return output::print_json(&answer);
    }
    let Answer { xus, unmatched, .. } = answer;
    let unmatched = if unmatched > 0 {
        format!(" ({unmatched} could not be matched)")
    } else {
        String::new()
    };
    let events = match &answer.events[..] {
        [] => "no events".to_owned(),
        events => events.join(","),
    };
    output::print(&format!(
        "{}: {xus} execution units{unmatched}, {events}",
        output.display()
    ))
}

/// Whether nothing could be matched for want of labels.
fn is_unlabelled(summary: &Summary) -> bool {
    let unmatched = || summary.matching.iter().flat_map(|m| &m.unmatched);
    unmatched().next().is_some() && unmatched().all(|u| u.reason == Reason::Unlabelled)
}

/// A profile that was written.
pub(super) struct Written {
    pub(super) summary: Summary,
    xus: usize,
    events: Vec<String>,
}

/// What everything takes of the time before the profile is written.
const OF_COMBINING: f64 = 0.7;

/// Arranges and combines, with about so many bytes of memory, and writes. `wanted`: as for [`load::arranged`].
pub(super) fn combine(
    inputs: Vec<Source>,
    wanted: Option<ompfuse_fuse::Strategy>,
    memory: u64,
    output: &Path,
    progress: Progress<'_>,
) -> Result<Written> {
    let arranging = progress.part(OF_COMBINING * load::OF_ORDER);
    let combining = progress.part(OF_COMBINING * (1.0 - load::OF_ORDER));
    let (inputs, strategy) = load::arranged(inputs, wanted, memory, arranging)?;
    if by_type::fits(&inputs, memory)? {
        return written(
            load::combine(inputs, strategy, combining)?,
            output,
            progress,
        );
    }
    let (mut xus, mut events) = (0, vec![]);
    let mut summary = Summary::default();
    atomic::write_with(output, 0o600, |file| {
        let cannot = || format!("cannot encode {}", output.display());
        let mut writer = ProfileWriter::new(file);
        let mut write = |combined: &Profile| {
            xus += combined.xus.len();
            events = combined.xus.events.iter().map(|e| e.name.clone()).collect();
            writer.write(combined).with_context(cannot)
        };
        summary = match pieces::combine(&inputs, memory, &mut write, progress)? {
            Some(summary) => summary,
            None => by_type::combine(&inputs, strategy, memory, &mut write, progress)?,
        };
        load::analyse(&inputs, &mut summary)?;
        writer.finish(&summary).with_context(cannot)
    })?;
    Ok(Written {
        summary,
        xus,
        events,
    })
}

/// Combines the event sets of one run, and writes.
pub(super) fn instances(run: &Path, output: &Path, progress: Progress<'_>) -> Result<Written> {
    let profile = load::instances(run, progress.part(OF_COMBINING))?;
    written(profile, output, progress)
}

/// Writes a profile. `progress`: of all of it, which is combined by now.
fn written(profile: Profile, path: &Path, progress: Progress<'_>) -> Result<Written> {
    let writing = progress.part(1.0 - OF_COMBINING);
    let bytes = profile
        .to_parquet_watched(writing)
        .with_context(|| format!("cannot encode {}", path.display()))?;
    atomic::write(path, &bytes, 0o600)?;
    Ok(Written {
        xus: profile.xus.len(),
        events: profile.xus.events.iter().map(|e| e.name.clone()).collect(),
        summary: profile.summary,
    })
}
