//! `ompfuse patch`.

use crate::binary::{self, Binary, Totals};
use crate::input::Input;
use crate::select::set::Set;
use crate::select::{CountingArgs, SelectArgs};
use crate::{atomic, counted, embedded, input, launch, memory, output, privileges, progress};
use anyhow::{Context, Result, bail};
use ompfuse_format::Construct;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::site::{Counted, Outcome, SiteInfo, without_addresses};
use ompfuse_progress::Progress;
use ompfuse_report::view::table::Column;
use ompfuse_rewriter::plan::PatchPlan;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Write a patched copy of a program or library, which records its OpenMP constructs
///
/// `ompfuse profile` and `record` do this by themselves. Patch by hand for programs that run elsewhere, or that look for files beside
/// themselves. Every copy is verified before it is kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program or library
    binary: PathBuf,
    /// The patched copy (default: BINARY.ompfuse)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    selected: CountingArgs,
    /// Don't load the runtime library: the copy behaves as the original until `ompfuse record` runs it
    #[arg(long, conflicts_with = "count")]
    dormant: bool,
    /// Write nothing; list what would be patched, and why the rest would not
    #[arg(long)]
    dry_run: bool,
    /// For tests: as if there were room for short jumps only
    #[arg(long, hide = true)]
    scarce: bool,
    #[command(flatten)]
    format: output::FormatArg,
}

#[derive(Serialize)]
struct Answer<'a> {
    output: &'a Path,
    /// Nothing was written.
    dry_run: bool,
    runtime_library: Option<&'a Path>,
    /// In a dry run: every site.
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<&'a [SiteInfo]>,
    coverage: Vec<OfConstruct>,
    totals: Totals,
    /// The same by constructs, of which each has several sites.
    constructs: Coverage,
    /// Functions that count their instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<counted::Coverage>,
}

/// What became of a construct's sites.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct OfConstruct {
    construct: &'static str,
    #[serde(flatten)]
    totals: Totals,
    constructs: Coverage,
    /// Why sites have no probe, and how many.
    reasons: BTreeMap<String, usize>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let made = make(args)?;
    let description = made.plan.description.as_ref();
    let counted = description.and_then(|d| d.binary.counted.as_ref());
    let mut answer = Answer::new(&made.out, sites(&made.plan), args.dry_run).with(counted);
    answer.runtime_library = made.library.as_deref();
    answer.print(&args.format)
}

/// Writes a program that hands over other values, and is what it was otherwise: it needs no runtime library.
pub(super) fn tuned(program: &Path, out: &Path, set: Vec<Set>) -> Result<()> {
    let select = set.iter().map(|set| set.regions.clone()).collect();
    let args = Args {
        binary: program.to_owned(),
        output: Some(out.to_owned()),
        selected: CountingArgs {
            selection: SelectArgs {
                set,
                select,
                ..SelectArgs::default()
            },
            events: vec![],
        },
        dormant: true,
        dry_run: false,
        scarce: false,
        format: output::FormatArg {
            format: output::Format::Text,
        },
    };
    make(&args).map(drop)
}

/// A patched copy, or what it would be.
struct Made {
    out: PathBuf,
    plan: PatchPlan,
    library: Option<PathBuf>,
}

fn make(args: &Args) -> Result<Made> {
    memory::give_back();
    let out = args
        .output
        .clone()
        .unwrap_or_else(|| default_output(&args.binary));
    let bytes = input::map(&args.binary)?;
    let metadata = args
        .binary
        .metadata()
        .with_context(|| format!("cannot examine {}", args.binary.display()))?;
    if out
        .metadata()
        .is_ok_and(|o| (o.dev(), o.ino()) == (metadata.dev(), metadata.ino()))
    {
        bail!(
            "the patched copy would replace {}; name another file with -o",
            args.binary.display()
        );
    }
    // Before the runtime library gets its place beside it.
    atomic::check(&out)?;
    privileges::refuse_to_patch(&args.binary, args.dormant)?;
    let bar = progress::whole("scanning");
    let progress = bar.progress();
    let selection = &args.selected.whole();
    let what = (&selection.debug, &selection.functions, selection.calls);
    let of_scan = progress.part(binary::OF_SCAN);
    let scan = match binary::examine(&args.binary, &bytes, what, args.scarce, of_scan)? {
        Binary::Original(scan) => scan,
        Binary::Patched(_) => bail!(
            "{} is patched already; give the original",
            args.binary.display()
        ),
    };
    bar.say("patching");
    let plan = binary::plan(&bytes, *scan, selection, args.dormant)?;
    bar.say("writing and verifying");
    let library = if args.dormant || args.dry_run {
        None
    } else {
        Some(embedded::place(atomic::parent(&out))?)
    };
    if args.dry_run {
        rehearse(&bytes, &plan, progress)?;
    } else {
        // Not more than the original's owner allowed, and no set-user-id bits for what we made.
        let mode = metadata.permissions().mode() & 0o777;
        atomic::write_with(&out, mode, |file| {
            binary::write(&bytes, &plan, file, progress)
        })?;
    }
    drop(bar);
    Ok(Made { out, plan, library })
}

/// Whether the patched file would be accepted.
fn rehearse(original: &Input, plan: &PatchPlan, progress: Progress<'_>) -> Result<()> {
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    binary::write(original, plan, &mut file, progress)
}

/// Every site, with what becomes of it.
fn sites(plan: &PatchPlan) -> &[SiteInfo] {
    plan.description.as_ref().map_or(&[], |d| &d.sites)
}

/// What recording a command would patch: nothing is written, nothing is run.
pub(super) fn dry_run(
    command: &OsStr,
    selection: &SelectArgs,
    format: &output::FormatArg,
) -> Result<()> {
    let found = launch::find(command)?;
    let bytes = input::map(&found)?;
    let bar = progress::whole("scanning");
    let progress = bar.progress();
    let planned;
    let described;
    let of_scan = progress.part(binary::OF_SCAN);
    let what = (&selection.debug, &selection.functions, selection.calls);
    let (sites, counted) = match binary::examine(&found, &bytes, what, false, of_scan)? {
        Binary::Patched(_) if !selection.is_empty() => bail!(
            "{} is patched already: --select, --skip and --filter need the original",
            found.display()
        ),
        Binary::Patched(description) => {
            described = description;
            (&described.sites[..], described.binary.counted.as_ref())
        }
        Binary::Original(scan) => {
            planned = binary::plan(&bytes, *scan, selection, false)?;
            rehearse(&bytes, &planned, progress)?;
            let description = planned.description.as_ref();
            (
                sites(&planned),
                description.and_then(|d| d.binary.counted.as_ref()),
            )
        }
    };
    drop(bar);
    Answer::new(&found, sites, true).with(counted).print(format)
}

impl<'a> Answer<'a> {
    fn new(output: &'a Path, sites: &'a [SiteInfo], dry_run: bool) -> Answer<'a> {
        Answer {
            output,
            dry_run,
            runtime_library: None,
            sites: dry_run.then_some(sites),
            coverage: coverage(sites),
            totals: Totals::count(sites),
            constructs: Coverage::of(sites),
            counted: None,
        }
    }

    /// The same, with what is said of functions that count their instructions.
    fn with(mut self, counted: Option<&Counted>) -> Answer<'a> {
        self.counted = counted.map(counted::Coverage::of);
        self
    }

    fn print(&self, format: &output::FormatArg) -> Result<()> {
        if format.is_json() {
            output::print_json(self)
        } else {
            output::print(&text(self))
        }
    }
}

/// `BINARY.ompfuse`, beside it.
fn default_output(binary: &Path) -> PathBuf {
    let mut name = OsString::from(binary);
    name.push(".ompfuse");
    name.into()
}

/// Sites by construct, and the reasons of those without probe.
fn coverage(sites: &[SiteInfo]) -> Vec<OfConstruct> {
    let mut by_construct: BTreeMap<_, Vec<&SiteInfo>> = BTreeMap::new();
    for site in sites.iter().filter(|s| s.outcome != Outcome::Service) {
        by_construct.entry(site.construct).or_default().push(site);
    }
    let of_construct = |(construct, of_it): (Construct, Vec<&SiteInfo>)| {
        let mut reasons = BTreeMap::new();
        for site in of_it.iter().filter(|s| s.outcome != Outcome::Patched) {
            *reasons
                .entry(without_addresses(binary::reason(site)))
                .or_default() += 1;
        }
        OfConstruct {
            construct: construct.name(),
            totals: Totals::count(of_it.iter().copied()),
            constructs: Coverage::of_those(sites, |c| c == construct),
            reasons,
        }
    };
    by_construct.into_iter().map(of_construct).collect()
}

fn text(answer: &Answer<'_>) -> String {
    let mut text = String::new();
    if let Some(sites) = answer.sites {
        let columns = [
            Column::left("address"),
            Column::left("construct"),
            Column::left("function").leaves(1).keeps_place(12),
            Column::left("source").keeps_place(12),
            Column::left("outcome").keeps_front(20),
        ];
        let rows = sites
            .iter()
            .map(|site| super::scan::short_row(site).to_vec());
        text = output::table(&columns, rows.collect()) + "\n";
    }
    let columns = [
        Column::left("construct"),
        Column::right("patched"),
        Column::right("of"),
        Column::left("without probe").keeps_front(20),
    ];
    let row = |of: &OfConstruct| {
        let constructs = &of.constructs;
        let mut why: Vec<String> = Vec::new();
        if constructs.patchable > 0 {
            why.push(format!("not selected ({})", constructs.patchable));
        }
        why.extend(Some(constructs.reasons()).filter(|r| !r.is_empty()));
        if constructs.trifles > 0 {
            why.push(format!("too small, listed only ({})", constructs.trifles));
        }
        let all = constructs.constructs() + constructs.trifles;
        let cells = [
            of.construct.to_owned(),
            constructs.with_probe.to_string(),
            all.to_string(),
            why.join("; "),
        ];
        (all > 0).then(|| cells.to_vec())
    };
    let rows = answer.coverage.iter().filter_map(row);
    text += &output::table(&columns, rows.collect());
    writeln!(
        text,
        "\n{} of {} constructs {}patched",
        answer.constructs.with_probe,
        answer.constructs.constructs(),
        if answer.dry_run { "would be " } else { "" }
    )
    .expect("strings take everything");
    text += &answer
        .counted
        .as_ref()
        .map_or(String::new(), counted::Coverage::lines);
    if answer.dry_run {
        writeln!(text, "dry run: nothing is written").expect("strings take everything");
        return text;
    }
    writeln!(text, "written: {}", answer.output.display()).expect("strings take everything");
    match answer.runtime_library {
        Some(library) => writeln!(text, "it needs {} beside it", library.display()),
        None => writeln!(text, "dormant: `ompfuse record` switches it on"),
    }
    .expect("strings take everything");
    text
}
