//! `ompfuse scan`.

use crate::binary::{self, Binary, Totals};
use crate::debug::DebugArgs;
use crate::input::{self, Input};
use crate::select::{CallArgs, FunctionArgs};
use crate::{counted, memory, output, progress};
use anyhow::{Result, bail};
use ompfuse_format::coverage::Coverage;
use ompfuse_format::site::{BinaryInfo, Outcome, SiteInfo};
use ompfuse_fuse::names::readable;
use ompfuse_report::view::table::{Column, wrap};
use ompfuse_rewriter::plan::{PlanOptions, plan};
use ompfuse_rewriter::scan::code;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::PathBuf;

/// List the OpenMP constructs of a program or library, and say which of them can be recorded
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program or library
    binary: PathBuf,
    #[command(flatten)]
    functions: FunctionArgs,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    debug: DebugArgs,
    #[command(flatten)]
    output: output::FormatArg,
    /// For developers: print as JSON what a stage hands to the next
    #[arg(long, value_name = "STAGE", hide = true)]
    dump: Option<Stage>,
}

/// A stage whose result can be printed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Stage {
    /// Functions that may hold constructs, as graphs of blocks
    Code,
    /// Sites, windows and relays
    Sites,
    /// What `patch` would write
    Plan,
}

/// The JSON object that `--format json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    binary: BinaryInfo,
    /// The version of ompfuse that patched this file.
    patched_by: Option<&'a str>,
    sites: Vec<Listed<'a>>,
    totals: Totals,
    /// The same by constructs.
    constructs: Coverage,
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
    let what = (&args.debug, &args.functions, args.calls);
    let binary = binary::examine(&args.binary, &bytes, what, false, bar.progress())?;
    drop(bar);
    if let Some(stage) = args.dump {
        return dump(args, &bytes, binary, stage);
    }
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
        constructs: Coverage::of(&sites),
        sites: sites.into_iter().map(Listed::of).collect(),
    };
    if args.output.is_json() {
        let sites = std::mem::take(&mut answer.sites);
        output::print_json_list(&answer, "sites", &sites)
    } else {
        output::print(&text(&answer))
    }
}

fn dump(args: &Args, bytes: &Input, binary: Binary, stage: Stage) -> Result<()> {
    let path = args.binary.to_string_lossy();
    let Binary::Original(scan) = binary else {
        bail!("{path} is patched already; give the original");
    };
    match stage {
        Stage::Code => output::print_json(&code(bytes, &path)?),
        Stage::Sites => output::print_json(&scan),
        Stage::Plan => {
            let plan = plan(bytes, *scan, &PlanOptions::default())?;
            output::print_json(&plan)
        }
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
    for setting in &binary.settings {
        let site = answer.sites.get(setting.site as usize);
        let place = site.and_then(|s| s.site.source.as_ref());
        let place = place.map_or_else(String::new, |s| format!(" ({}:{})", s.file, s.line));
        writeln!(text, "site {}{place} hands over {setting}", setting.site)
            .expect("strings take everything");
    }
    if !answer.sites.is_empty() {
        let columns = [
            Column::right("site").leaves(3),
            Column::left("address"),
            Column::left("construct"),
            Column::left("").leaves(2),
            Column::left("function").leaves(1).keeps_place(12),
            Column::left("entry").leaves(4),
            Column::left("source").keeps_place(12),
            Column::left("outcome").keeps_front(20),
        ];
        let rows = answer.sites.iter().map(|listed| row(listed.site).to_vec());
        let paint = |column: usize, cell: &str| match column {
            7 => painted(cell),
            _ => cell.to_owned(),
        };
        let table = output::styled_table(&columns, rows.collect(), &paint);
        text = format!("{text}\n{table}\n");
    }
    text += &wrapped(&summed_up(totals, &answer.constructs));
    if let Some(counted) = &binary.counted {
        for line in counted::Coverage::of(counted).lines().lines() {
            text += &wrapped(line);
        }
    }
    text
}

/// What there is in all.
fn summed_up(totals: Totals, constructs: &Coverage) -> String {
    let what = match (constructs.with_probe, constructs.patchable) {
        (0, can) => format!("{can} can be recorded"),
        (have, 0) => format!("{have} have a probe"),
        (have, can) => format!("{have} have a probe, {can} could have one"),
    };
    let mut text = format!(
        "{} constructs in {} sites: {what}",
        constructs.constructs(),
        totals.sites - totals.services - constructs.trifles as usize
    );
    if constructs.lost() > 0 {
        text += &format!(", {} can't ({})", constructs.lost(), constructs.reasons());
    }
    if constructs.trifles > 0 {
        text += &format!(
            "; atomic instructions and fences, listed only: {}",
            constructs.trifles
        );
    }
    if totals.services > 0 {
        text += &format!(
            "; questions and settings, which need no probe: {}",
            totals.services
        );
    }
    if totals.unknown > 0 {
        text += &format!(
            "; calls of unknown entry points of an OpenMP runtime: {}",
            totals.unknown
        );
    }
    text
}

/// A sentence in the lines of the terminal.
pub(super) fn wrapped(text: &str) -> String {
    let width = output::Stream::Output.width().unwrap_or(usize::MAX);
    wrap(text, width, "  ")
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
    let word = word(site.outcome);
    match &site.reason {
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Patched => "patched",
        Outcome::Patchable => "patchable",
        Outcome::Skipped => "skipped",
        Outcome::Service => "service",
    }
}

/// The text of an outcome with its word in colour, if there is any.
fn painted(cell: &str) -> String {
    let colours = [
        (Outcome::Patched, "32"),
        (Outcome::Patchable, "32"),
        (Outcome::Skipped, "33"),
        (Outcome::Service, "2"),
    ];
    let end = cell.find(':').unwrap_or(cell.len());
    let (said, rest) = cell.split_at(end);
    let colour = colours.iter().find(|(o, _)| word(*o) == said);
    match colour.filter(|_| output::Stream::Output.colour()) {
        Some((_, colour)) => format!("\x1b[{colour}m{said}\x1b[0m{rest}"),
        None => cell.to_owned(),
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
