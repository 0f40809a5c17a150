//! `report --browse`.

use crate::page;
use crate::watching::{self, Finished, Picture};
use anyhow::Result;
use ompfuse_account::Report;
use ompfuse_report::TextOptions;
use ompfuse_report::view::text::call_paths;
use ompfuse_report::view::text::detail::{Beside, detail};
use ompfuse_report::words::shell_words;
use std::cell::OnceCell;
use std::path::Path;

/// Shows a report on the whole screen. `input`: where its records are, if they are at hand.
pub(super) fn browse(report: &Report, input: Option<&Path>, options: TextOptions) -> Result<()> {
    let options = TextOptions {
        colour: false, // the screen has its own
        ..options
    };
    // Of large runs they take a while, and not everybody wants them.
    let units = OnceCell::new();
    let read = || match input {
        Some(input) => page::units(report, input),
        None => Ok(None),
    };
    let sources = page::sources(report, input.and_then(crate::load::begun_at));
    let words = std::iter::once(&report.program).chain(&report.args);
    watching::browse(Finished {
        title: shell_words(words.map(String::as_str)),
        picture: Picture::of(report, options.by),
        region: &|id, width| {
            let options = TextOptions { width, ..options };
            let units = match units.get_or_init(read) {
                Ok(units) => units.as_ref(),
                Err(error) => return format!("{error:#}\n"),
            };
            let beside = Beside {
                units,
                sources: &sources,
            };
            detail(report, id, beside, options).unwrap_or_default()
        },
        paths: &|width| {
            let text = call_paths(report, TextOptions { width, ..options });
            text.unwrap_or_else(|| "there are no call paths on record\n".to_owned())
        },
    })
}
