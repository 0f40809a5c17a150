//! `ompfuse scan`.

use crate::binary::{self, Binary, Totals};
use crate::debug::DebugArgs;
use crate::{input, memory, output, progress};
use anyhow::Result;
use ompfuse_format::site::{BinaryInfo, Outcome, SiteInfo};
use ompfuse_fuse::names::readable;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::PathBuf;

/// Tell what OpenMP is in a program or library, and what of it can be patched
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program or library
    binary: PathBuf,
    #[command(flatten)]
    debug: DebugArgs,
    #[command(flatten)]
    output: output::FormatArg,
}

/// As documented in DESIGN.md section 9.
#[derive(Serialize)]
struct Answer<'a> {
    binary: BinaryInfo,
    /// The version of ompfuse that patched this file.
    patched_by: Option<&'a str>,
    sites: Vec<Listed<'a>>,
    totals: Totals,
}

/// A site, and its function as the source has it.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    site: &'a SiteInfo,
    function_demangled: Option<Cow<'a, str>>,
}

impl<'a> Listed<'a> {
    fn of(site: &'a SiteInfo) -> Listed<'a> {
        Listed {
            site,
            function_demangled: site.function.as_deref().map(readable),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    memory::give_back();
    let bytes = input::map(&args.binary)?;
    let bar = progress::whole("scanning");
    let binary = binary::examine(&args.binary, &bytes, &args.debug, bar.progress())?;
    drop(bar);
    let sites = binary.sites();
    // A patched file describes its original; the path is still that of the file at hand.
    let path = args.binary.to_string_lossy().into_owned();
    let mut answer = Answer {
        binary: BinaryInfo {
            path,
            ..binary.info().clone()
        },
        patched_by: match &binary {
            Binary::Original(_) => None,
            Binary::Patched(description) => Some(&description.version),
        },
        totals: Totals::count(sites.iter().copied()),
        sites: sites.into_iter().map(Listed::of).collect(),
    };
    if args.output.is_json() {
        let sites = std::mem::take(&mut answer.sites);
        output::print_json_list(&answer, "sites", &sites)
    } else {
        output::print(&text(&answer))
    }
}

fn text(answer: &Answer<'_>) -> String {
    let (binary, totals) = (&answer.binary, answer.totals);
    let stripped = if binary.stripped { ", stripped" } else { "" };
    let runtimes = if binary.runtimes.is_empty() {
        "no OpenMP runtime".into()
    } else {
        binary.runtimes.join(", ")
    };
    let mut text = format!("{}: {}{stripped}, {runtimes}\n", binary.path, binary.kind);
    if let Some(version) = answer.patched_by {
        writeln!(text, "patched by ompfuse {version}").expect("strings take everything");
    }
    if !answer.sites.is_empty() {
        let mut table = output::table(&[
            "site",
            "address",
            "construct",
            "",
            "function",
            "entry",
            "source",
            "outcome",
        ]);
        for listed in &answer.sites {
            table.add_row(row(listed.site));
        }
        text = format!("{text}\n{}\n", output::lines(&table));
    }
    let Totals {
        sites,
        patched,
        patchable,
        skipped,
        services,
        unknown,
    } = totals;
    write!(
        text,
        "{sites} sites: {patched} patched, {patchable} patchable, {skipped} skipped, {services} that need no probe"
    )
    .expect("strings take everything");
    if unknown > 0 {
        write!(
            text,
            "; {unknown} of the skipped ones call unknown entry points of an OpenMP runtime"
        )
        .expect("strings take everything");
    }
    text.push('\n');
    text
}

/// Address, construct, function, source and outcome of a site, with the reason why it has no probe.
pub(super) fn short_row(site: &SiteInfo) -> [String; 5] {
    let [_, address, construct, _, function, _, source, outcome] = row(site);
    let outcome = match (site.outcome, &site.reason) {
        (Outcome::Patchable, None) => binary::reason(site).to_owned(),
        _ => outcome,
    };
    [address, construct, function, source, outcome]
}

/// The construct; said so where other source code gives the same instructions.
fn construct(site: &SiteInfo) -> String {
    let name = site.construct.name();
    match site.detail.as_deref() {
        Some("or equivalent") => format!("{name} or equivalent"),
        _ => name.to_owned(),
    }
}

fn row(site: &SiteInfo) -> [String; 8] {
    let edge = format!("{:?}", site.edge).to_lowercase();
    [
        site.id.to_string(),
        site.address.to_string(),
        construct(site),
        if site.region == site.id {
            edge
        } else {
            format!("{edge} of {}", site.region)
        },
        site.function
            .as_deref()
            .map(|f| readable(f).into_owned())
            .unwrap_or_default(),
        site.entry
            .as_deref()
            .or(site.detail.as_deref())
            .unwrap_or_default()
            .to_owned(),
        site.source
            .as_ref()
            .map(|s| format!("{}:{}", base_name(&s.file), s.line))
            .unwrap_or_default(),
        outcome(site),
    ]
}

fn outcome(site: &SiteInfo) -> String {
    let (colour, word) = match site.outcome {
        Outcome::Patched => ("32", "patched"),
        Outcome::Patchable => ("32", "patchable"),
        Outcome::Skipped => ("33", "skipped"),
        Outcome::Service => ("2", "service"),
    };
    let word = if output::colour() {
        format!("\x1b[{colour}m{word}\x1b[0m")
    } else {
        word.to_owned()
    };
    site.reason
        .as_ref()
        .map_or(word.clone(), |reason| format!("{word}: {reason}"))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
