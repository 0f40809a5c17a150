//! Call-path profiles.

use super::Args;
use super::tables::report;
use crate::output::Usage;
use crate::{atomic, load, output};
use anyhow::{Context, Result, bail, ensure};
use ompfuse_account::{Region, Report};
use ompfuse_export::calltree::{CallTree, TIME};
use ompfuse_export::{caliper, collapsed, cube, extrap, pprof, tau};
use ompfuse_progress::Progress;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Values of collapsed stacks that aren't exact.
const SAMPLES: &str = "samples";

/// What reading the report takes of the time, where samples are read behind it.
const OF_REPORT: f64 = 0.5;

/// Points that Extra-P wants at least.
const POINTS: usize = 5;

/// How a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Cube,
    Collapsed,
    Pprof,
    Tau,
    Caliper,
    ExtraP,
}

/// Writes a profile, or for Extra-P several.
pub(super) fn write(args: &Args, form: Form, progress: Progress<'_>) -> Result<()> {
    let one = || {
        ensure_one(&args.input)?;
        tree(args, &args.input, progress)
    };
    match form {
        Form::Cube => {
            let tree = one()?;
            args.write(|out| Ok(cube::write(out, &tree)?))
        }
        Form::Pprof => {
            let tree = sampled_tree(args, progress)?;
            args.write(|out| Ok(pprof::write(out, &tree)?))
        }
        Form::Caliper => {
            let tree = one()?;
            args.write(|out| Ok(caliper::write(out, &tree)?))
        }
        Form::Collapsed if args.metric.as_deref() == Some(SAMPLES) => {
            let tree = sampled_tree(args, progress)?;
            let Some(samples) = &tree.samples else {
                bail!(
                    "cannot export samples of {}: it has none, or none whose times can be compared with records; \
                     `ompfuse report --lines` says why",
                    args.input.display()
                );
            };
            args.write(|out| Ok(collapsed::write_samples(out, &tree, samples)?))
        }
        Form::Collapsed => {
            let tree = one()?;
            let metric = metric(args, &tree)?;
            args.write(|out| Ok(collapsed::write(out, &tree, metric)?))
        }
        Form::Tau => {
            let Some(folder) = &args.output else {
                return Err(Usage("a TAU profile is a folder: name it with -o".to_owned()).into());
            };
            atomic::check_folder(folder)?;
            let tree = one()?;
            atomic::write_folder(folder, |folder| write_tau(&tree, folder))
        }
        Form::ExtraP => write_models(args, progress),
    }
}

fn write_tau(tree: &CallTree, folder: &Path) -> Result<()> {
    tau::write(tree, |name, bytes| {
        let path = folder.join(name);
        std::fs::create_dir_all(atomic::parent(&path))?;
        std::fs::write(path, bytes)
    })?;
    Ok(())
}

/// The metric that is wanted.
fn metric(args: &Args, tree: &CallTree) -> Result<usize> {
    let Some(name) = &args.metric else {
        return Ok(TIME);
    };
    tree.metric(name).with_context(|| {
        let known: Vec<&str> = tree.metrics.iter().map(|m| &*m.name).collect();
        format!(
            "cannot export {name} of {}: it has no such metric; it has {}",
            args.input.display(),
            known.join(", ")
        )
    })
}

/// Writes what models of scaling are made from.
fn write_models(args: &Args, progress: Progress<'_>) -> Result<()> {
    let mut inputs: Vec<PathBuf> = vec![];
    for path in std::iter::once(&args.input).chain(&args.more) {
        match load::is_series(path) {
            true => inputs.extend(load::series::runs(path)),
            false => inputs.push(path.clone()),
        }
    }
    let each = progress.part(1.0 / inputs.len().max(1) as f64);
    let mut trees = vec![];
    let (jobs, others): (Vec<PathBuf>, Vec<PathBuf>) =
        (inputs.into_iter()).partition(|input| load::ranks(input).is_some());
    for input in load::single(&others)?.into_iter().chain(jobs) {
        trees.push(tree(args, &input, each)?);
    }
    let points: BTreeSet<_> = extrap::parameters(&trees).into_iter().collect();
    if points.len() < POINTS {
        let points = match points.len() {
            1 => "one number of threads".to_owned(),
            many => format!("{many} numbers of threads or processes"),
        };
        output::note(format_args!(
            "{points} for Extra-P, which wants {POINTS} at least; `ompfuse profile --threads 1,2,4,8,16` records them"
        ));
    }
    args.write(|out| Ok(extrap::write(out, &trees)?))
}

/// Refuses what has several numbers of threads.
fn ensure_one(input: &Path) -> Result<()> {
    ensure!(
        !load::is_series(input),
        "cannot export {}: it has runs with several numbers of threads; name one of its folders, or export --to extra-p",
        input.display()
    );
    Ok(())
}

/// What the report of an input has by path, with the samples of its first run.
fn sampled_tree(args: &Args, progress: Progress<'_>) -> Result<CallTree> {
    let input = &args.input;
    ensure_one(input)?;
    let reading = progress.part(OF_REPORT);
    let (report, mut tree) = report_and_tree(args, input, reading)?;
    // The report of a job has no threads.
    let run = load::first_run(input).filter(|_| load::ranks(input).is_none());
    if let Some(run) = run
        && load::has_samples(&run)?
    {
        let rest = progress.part(1.0 - OF_REPORT);
        load::timeline_with_samples(&run, rest, |timeline, samples, progress| {
            if let Some(samples) = samples {
                tree.add_samples(&report, timeline, samples, progress)?;
            }
            Ok(())
        })?;
    }
    Ok(tree)
}

/// What the report of an input has by path.
fn tree(args: &Args, input: &Path, progress: Progress<'_>) -> Result<CallTree> {
    Ok(report_and_tree(args, input, progress)?.1)
}

fn report_and_tree(
    args: &Args,
    input: &Path,
    progress: Progress<'_>,
) -> Result<(Report, CallTree)> {
    let report = report(args, input, progress)?;
    let is_meant = |region: &&Region| args.means(&report, region);
    let selected = (!args.select.is_empty()).then(|| {
        report
            .regions
            .iter()
            .filter(is_meant)
            .map(|r| r.id)
            .collect()
    });
    let Some(tree) = CallTree::new(&report, selected.as_ref()) else {
        let name = input.display();
        bail!(match report.thread_time_s > 0.0 {
            true if load::ranks(input).is_some() => format!(
                "cannot export {name}: the summary of a rank has no room for call paths; export the folders of ranks"
            ),
            true => format!(
                "cannot export {name}: it has no call paths, as tables of other recorders; export the run"
            ),
            false => format!("cannot export {name}: no thread was recorded"),
        });
    };
    if !tree.left_out.is_empty() {
        output::note(format_args!(
            "{}: left out, since not counted everywhere: {}",
            input.display(),
            tree.left_out.join(", ")
        ));
    }
    Ok((report, tree))
}
