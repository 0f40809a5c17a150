//! A side with samples only: shares are compared, and nothing else.

use super::{Args, Format, Printed};
use crate::output::{self, Stream};
use crate::{lines, load, memory, pager};
use anyhow::{Result, bail};
use ompfuse_account::Report;
use ompfuse_account::sampled::compare::{Shares, SharesDiff, SharesOf, compare};
use ompfuse_progress::Progress;
use ompfuse_report::view::diff::Options;
use ompfuse_report::view::sampled::shares::{SharesJson, text};
use std::path::{Path, PathBuf};

/// Compares two sides, at least one of which has samples only. `None`: none has.
pub(super) fn shares(
    args: &Args,
    [a, b]: [&[PathBuf]; 2],
    progress: Progress<'_>,
) -> Result<Option<SharesDiff>> {
    let is_sampled =
        |path: &Path| load::first_run(path).is_some_and(|r| load::has_samples_only(&r));
    if !a.iter().chain(b).any(|path| is_sampled(path)) {
        return Ok(None);
    }
    let ([a], [b]) = (a, b) else {
        bail!("a side has samples only: name one run on each side");
    };
    let is_plain =
        |p: &Printed| p.file.is_none() && matches!(p.format, Format::Text | Format::Json);
    if !args.format.iter().all(is_plain) || !args.fail_on.is_empty() || args.html.is_some() {
        bail!(
            "a side has samples only: shares are compared as text or JSON, and no condition can be judged"
        );
    }
    let of = match is_sampled(a) && is_sampled(b) {
        true => SharesOf::Samples,
        false => SharesOf::Work,
    };
    let side = |path: &Path| {
        let name = load::name(path);
        let half = progress.part(0.5);
        if is_sampled(path) {
            let report = lines::sampled(path, None, half)?;
            return Ok(Shares::sampled(&name, &report, of));
        }
        let summary = load::summary(path, memory::available(), half)?;
        anyhow::Ok(Shares::recorded(&name, &Report::new(&summary)))
    };
    Ok(Some(compare(side(a)?, side(b)?, of)))
}

/// Prints such a comparison.
pub(super) fn print(args: &Args, diff: &SharesDiff) -> Result<()> {
    if args.format.iter().any(|p| matches!(p.format, Format::Json)) {
        return output::print_json(&SharesJson::new(diff));
    }
    let default = Options::default();
    let options = Options {
        top: args.top,
        width: Stream::Output.width().unwrap_or(default.width),
        colour: Stream::Output.colour(),
        ..default
    };
    pager::print(&text(diff, &options))
}
