//! Traces: what of a run they have, and how they are written.

use super::Args;
use crate::output::Usage;
use crate::select::Selector;
use crate::{atomic, interrupt, load, output, recording};
use anyhow::{Context, Result, bail};
use ompfuse_export::{Orders, View, chrome, firefox, otf2, perfetto, speedscope};
use ompfuse_format::Construct;
use ompfuse_format::run::RunModule;
use ompfuse_fuse::names::Place;
use ompfuse_fuse::run::timeline::{Span, Timeline};
use ompfuse_fuse::samples::Stacks;
use ompfuse_fuse::span::{MOST_DRAWN, drawn};
use ompfuse_otf2::Library;
use ompfuse_progress::Progress;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Perfetto,
    Chrome,
    Speedscope,
    Firefox,
    Otf2,
}

/// Writes a run into a file.
type ToFile = fn(&mut dyn Write, &Timeline<'_>, &View<'_>, Progress<'_>) -> io::Result<()>;

impl Form {
    /// Whether it has a place for dependences and the critical path.
    fn has_orders(self) -> bool {
        matches!(self, Form::Perfetto | Form::Otf2)
    }

    /// Whether it has a place for stacks.
    fn has_samples(self) -> bool {
        matches!(self, Form::Perfetto | Form::Speedscope | Form::Firefox)
    }

    /// `None`: it is a folder.
    fn file(self) -> Option<ToFile> {
        match self {
            Form::Perfetto => Some(perfetto::write),
            Form::Chrome => Some(chrome::write),
            Form::Speedscope => Some(speedscope::write),
            Form::Firefox => Some(firefox::write),
            Form::Otf2 => None,
        }
    }
}

/// A stretch of a run's time, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    from: u64,
    to: u64,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        let wrong = || "two times are needed, as 1s..2s, 1.5s.. or ..20ms".to_owned();
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let time = |text: &str, default| match text {
            "" => Ok(default),
            "0" | "0s" => Ok(0),
            text => recording::nanoseconds(text).map_err(|_| wrong()),
        };
        let window = Window {
            from: time(from, 0)?,
            to: time(to, i64::MAX as u64)?,
        };
        match window.from < window.to {
            true => Ok(window),
            false => Err("it ends before it begins".to_owned()),
        }
    }
}

pub(super) fn write(args: &Args, form: Form, progress: Progress<'_>) -> Result<()> {
    let folder = load::one_run(&args.input)?;
    let orders = form.has_orders().then(|| orders(&folder)).transpose()?;
    let orders = orders.flatten();
    if let Some(write) = form.file() {
        let write =
            |timeline: &Timeline<'_>, samples: Option<&Stacks<'_>>, progress: Progress<'_>| {
                tell_losses(&folder, timeline);
                let select = select(args, timeline)?;
                let view = View {
                    samples,
                    ..view(args, select.as_deref(), orders.as_ref())
                };
                args.write(|out| Ok(write(out, timeline, &view, progress)?))
            };
        return match form.has_samples() {
            true => load::timeline_with_samples(&folder, progress, write),
            false => load::timeline(&folder, progress, |t, progress| write(t, None, progress)),
        };
    }
    let Some(to) = &args.output else {
        return Err(Usage("--to otf2 writes a folder; name it with -o".to_owned()).into());
    };
    let library = Library::load().context("cannot write OTF2")?;
    atomic::check_folder(to)?;
    load::timeline(&folder, progress, |timeline, progress| {
        tell_losses(&folder, timeline);
        let select = select(args, timeline)?;
        let view = view(args, select.as_deref(), orders.as_ref());
        atomic::write_folder(to, |temporary| {
            let hold = interrupt::hold();
            library.on_error(Some(give_up(to.clone(), temporary.to_owned())));
            let stop = || hold.pending().is_some();
            let written = otf2::write(library, temporary, timeline, &view, &stop, progress);
            library.on_error(None);
            hold.check()?;
            Ok(written?)
        })
    })
}

/// What is done when OTF2's library meets an error, behind which it would crash: says it, leaves nothing behind, and ends this command.
fn give_up(to: PathBuf, temporary: PathBuf) -> Box<dyn Fn(&str) + Send> {
    Box::new(move |reason| {
        let _ = std::fs::remove_dir_all(&temporary);
        output::say(format_args!("cannot write {}: {reason}", to.display()));
        std::process::exit(1)
    })
}

/// What was lost is missing in the trace.
fn tell_losses(folder: &Path, timeline: &Timeline<'_>) {
    for problem in ompfuse_account::damage::losses(timeline.health()) {
        output::note(format_args!("{}: {problem}", folder.display()));
    }
}

/// Decides about spans.
type Choice<'c> = dyn Fn(&Timeline<'_>, &Span<'_>) -> bool + 'c;

fn view<'v>(args: &Args, select: Option<&'v Choice<'_>>, orders: Option<&'v Orders>) -> View<'v> {
    View {
        window: args.interval.map(|window| (window.from, window.to)),
        select,
        orders,
        samples: None,
    }
}

/// What orders the units of a run.
fn orders(folder: &Path) -> Result<Option<Orders>> {
    let graphs = load::with_files(folder, |files| Ok(drawn(files, &[])))?;
    if graphs.is_none() {
        output::note(format_args!(
            "{}: dependences and the critical path are left out: a process has more than {MOST_DRAWN} spans",
            folder.display()
        ));
    }
    Ok(graphs.map(|graphs| Orders::new(&graphs)))
}

/// What `--select` means in a run; `None`: everything.
fn select<'c>(args: &'c Args, timeline: &'c Timeline<'_>) -> Result<Option<Box<Choice<'c>>>> {
    if args.select.is_empty() {
        return Ok(None);
    }
    for pattern in &args.select {
        let sites = 0..timeline.sites().len() as u32;
        if !sites
            .into_iter()
            .any(|site| is_meant(pattern, timeline, site, None))
        {
            bail!(
                "nothing in {} matches {pattern}; `ompfuse report` lists what there is",
                args.input.display()
            );
        }
    }
    let known: RefCell<HashMap<(Option<u32>, Construct), bool>> = RefCell::default();
    Ok(Some(Box::new(move |timeline, span| {
        let Some(site) = span.site else {
            return false;
        };
        let key = (span.site, span.construct);
        *known.borrow_mut().entry(key).or_insert_with(|| {
            let mut patterns = args.select.iter();
            patterns.any(|pattern| is_meant(pattern, timeline, site, Some(span.construct)))
        })
    })))
}

/// Whether a place is meant, or something of this kind there.
fn is_meant(
    pattern: &Selector,
    timeline: &Timeline<'_>,
    site: u32,
    construct: Option<Construct>,
) -> bool {
    let site = &timeline.sites()[site as usize];
    let is_its = |module: &&RunModule| {
        module.binary.build_id.as_deref() == Some(&site.module) || module.binary.path == site.module
    };
    let module = timeline.header().modules.iter().find(is_its);
    let info = module
        .zip(site.id)
        .and_then(|(module, id)| Some((&module.binary.path, module.sites.get(id as usize)?)));
    match info {
        Some((path, info)) => {
            let place = Place::of_site(path, info);
            // Or everything of this kind, wherever it is.
            let is_kind = construct.is_some() && pattern.construct() == construct;
            pattern.matches(&place) || (is_kind && pattern.matches(&Place { construct, ..place }))
        }
        None => site
            .function
            .as_deref()
            .is_some_and(|name| pattern.matches_user(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        let window = |text: &str| text.parse::<Window>().map(|w| (w.from, w.to));
        assert_eq!(window("1s..2s"), Ok((1_000_000_000, 2_000_000_000)));
        assert_eq!(window("0..1ms"), Ok((0, 1_000_000)));
        assert_eq!(window("..1ms"), Ok((0, 1_000_000)));
        assert_eq!(window("1.5us.."), Ok((1_500, i64::MAX as u64)));
        for wrong in ["", "1s", "1..2", "2s..1s", "1s..1s", "-1s..2s"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
