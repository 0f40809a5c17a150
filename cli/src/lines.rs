//! The samples of a run.

use crate::load::{first_run, with_samples};
use crate::output::{self, Stream, note};
use crate::progress;
use crate::recording::Nothing;
use crate::select::Selector;
use anyhow::{Context, Result, bail};
use ompfuse_account::sampled::{SampledPool, SampledReport};
use ompfuse_format::run::Exit;
use ompfuse_fuse::names::Place;
use ompfuse_fuse::run::timeline::Timeline;
use ompfuse_fuse::samples::{Collected, Lines, SampledPlaces, last_of, lines, without_end};
use ompfuse_fuse::table::Site;
use ompfuse_progress::Progress;
use ompfuse_report::view::sampled as view;
use ompfuse_report::view::text::TextOptions;
use ompfuse_report::words::shell_words;
use std::path::Path;

/// The lines and functions of a run's regions. `wanted`: of these only.
pub(crate) fn sampled(
    input: &Path,
    wanted: Option<&Selector>,
    progress: Progress<'_>,
) -> Result<SampledReport> {
    let run = first_run(input);
    let run = run.with_context(|| {
        let input = input.display();
        format!("cannot tell lines of {input}: samples are in the folder of a run; name that")
    })?;
    let cannot = || format!("cannot tell lines of {}", run.display());
    with_samples(&run, |files| {
        let Some(sampling) = &files.header.sampling else {
            bail!("no samples were wanted; record it without --sampling off");
        };
        if let Some(reason) = &sampling.reason {
            bail!("there are no samples: {reason}");
        }
        let collected = Collected::read(files)?;
        let is_attached = files.header.attached_to.is_some();
        if !is_attached && collected.files.iter().any(|file| !file.header.has_tsc) {
            bail!("the kernel's clock isn't the time stamp counter, so samples have no region");
        }
        let nothing = SampledPlaces::default();
        let places = files.places.as_ref().unwrap_or(&nothing);
        let timeline = Timeline::new(files, progress)?;
        let killed = match files.header.exit {
            Exit::Code(0) => vec![], // it left from within
            _ => without_end(&timeline),
        };
        if collected.is_empty() && !is_attached && killed.is_empty() {
            bail!("the program was in no code of its own when it was looked at");
        }
        let mut lines = lines(&timeline, &collected, places, true);
        if !is_attached {
            lines.threads = last_of(&killed, &collected, places);
        }
        let sites = match timeline.lanes() {
            [] => &places.sites, // by stacks
            _ => timeline.sites(),
        };
        if let Some(wanted) = wanted {
            choose(&mut lines, sites, wanted)?;
        }
        let header = &files.header;
        Ok(SampledReport::new(header, sampling, &lines, sites, places))
    })
    .with_context(cannot)
}

/// Shows where a program was of which nothing was recorded, as far as samples tell: instead of a report.
pub(crate) fn show_instead(error: &anyhow::Error) {
    let Some(nothing) = error.downcast_ref::<Nothing>() else {
        return;
    };
    let bar = progress::whole("reading");
    let report = sampled(&nothing.run, None, bar.progress());
    drop(bar);
    // What was hardly sampled is no error: that nothing was recorded is.
    let has_lines = |report: &SampledReport| report.regions.iter().any(|r| !r.lines.is_empty());
    if let Ok(report) = report
        && has_lines(&report)
    {
        let default = TextOptions::default();
        let options = TextOptions {
            width: Stream::Error.width().unwrap_or(default.width),
            colour: Stream::Error.colour(),
            ..default
        };
        output::remark_aside(&view::text(&report, options));
        for pool in report.pools.iter().filter(|p| !p.functions.is_empty()) {
            let name = &pool.name;
            let functions = pool_functions(pool);
            note(format_args!(
                "to record each time that {name} gives its threads work: ompfuse profile {functions} -- {}",
                nothing.command
            ));
        }
    }
}

/// Options that record its functions.
fn pool_functions(pool: &SampledPool) -> String {
    let option = |file: &String, function: &String| {
        let selector = format!("lib:{file}:{function}");
        format!("--functions {}", shell_words([selector.as_str()]))
    };
    let all: Vec<String> = (pool.files.iter())
        .flat_map(|file| pool.functions.iter().map(move |f| option(file, f)))
        .collect();
    all.join(" ")
}

fn choose(lines: &mut Lines, sites: &[Site], wanted: &Selector) -> Result<()> {
    let is_wanted = |site: Option<u32>| {
        let site = site.and_then(|at| sites.get(at as usize));
        site.is_some_and(|site| wanted.matches(&Place::of_units(&site.module, site)))
    };
    lines.regions.retain(|region| is_wanted(region.site));
    match lines.regions.is_empty() {
        true => bail!("no region with samples is {wanted}"),
        false => Ok(()),
    }
}
