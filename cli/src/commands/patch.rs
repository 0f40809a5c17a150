//! `ompfuse patch`.

use crate::binary::{self, Binary, Totals};
use crate::select::SelectArgs;
use crate::{atomic, embedded, input, output};
use anyhow::{Context, Result, bail};
use ompfuse_format::site::{Outcome, SiteInfo};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Write a patched copy of a program or library
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program or library
    binary: PathBuf,
    /// The patched copy (default: BINARY.ompfuse)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    selection: SelectArgs,
    /// Don't load the runtime library: the copy behaves as the original until `ompfuse record` runs it
    #[arg(long)]
    dormant: bool,
    #[command(flatten)]
    format: output::FormatArg,
}

#[derive(Serialize)]
struct Answer<'a> {
    output: &'a Path,
    runtime_library: Option<&'a Path>,
    coverage: Vec<Coverage>,
    totals: Totals,
}

/// What became of a construct's sites.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Coverage {
    construct: &'static str,
    #[serde(flatten)]
    totals: Totals,
    /// Why sites have no probe, and how many.
    reasons: BTreeMap<String, usize>,
}

pub(super) fn run(args: &Args) -> Result<()> {
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
    let scan = match binary::examine(&args.binary, &bytes)? {
        Binary::Original(scan) => scan,
        Binary::Patched(_) => bail!(
            "{} is patched already; give the original",
            args.binary.display()
        ),
    };
    let patched = binary::patch(&bytes, &scan, &args.selection, args.dormant)?;
    let folder = atomic::parent(&out);
    let library = if args.dormant {
        None
    } else {
        Some(embedded::place(folder)?)
    };
    // Not more than the original's owner allowed, and no set-user-id bits for what we made.
    atomic::write(&out, &patched.bytes, metadata.permissions().mode() & 0o777)?;
    let answer = Answer {
        output: &out,
        runtime_library: library.as_deref(),
        coverage: coverage(&patched.description.sites),
        totals: Totals::count(&patched.description.sites),
    };
    if args.format.is_json() {
        output::print_json(&answer)
    } else {
        output::print(&text(&answer))
    }
}

/// `BINARY.ompfuse`, beside it.
fn default_output(binary: &Path) -> PathBuf {
    let mut name = OsString::from(binary);
    name.push(".ompfuse");
    name.into()
}

/// Sites by construct, and the reasons of those without probe.
fn coverage(sites: &[SiteInfo]) -> Vec<Coverage> {
    let mut by_construct: BTreeMap<_, Vec<&SiteInfo>> = BTreeMap::new();
    for site in sites {
        by_construct.entry(site.construct).or_default().push(site);
    }
    let of_construct = |(construct, sites): (ompfuse_format::Construct, Vec<&SiteInfo>)| {
        let mut reasons = BTreeMap::new();
        for site in sites.iter().filter(|s| s.outcome != Outcome::Patched) {
            *reasons.entry(binary::reason(site).to_owned()).or_default() += 1;
        }
        Coverage {
            construct: construct.name(),
            totals: Totals::count(sites.iter().copied()),
            reasons,
        }
    };
    by_construct.into_iter().map(of_construct).collect()
}

fn text(answer: &Answer<'_>) -> String {
    let mut table = output::table(&["construct", "patched", "of", "without probe"]);
    for c in &answer.coverage {
        let reasons: Vec<_> = c
            .reasons
            .iter()
            .map(|(reason, n)| format!("{n}: {reason}"))
            .collect();
        table.add_row([
            c.construct.to_owned(),
            c.totals.patched.to_string(),
            c.totals.sites.to_string(),
            reasons.join("; "),
        ]);
    }
    let mut text = output::lines(&table);
    writeln!(
        text,
        "\n{} of {} sites patched",
        answer.totals.patched, answer.totals.sites
    )
    .expect("strings take everything");
    writeln!(text, "written: {}", answer.output.display()).expect("strings take everything");
    match answer.runtime_library {
        Some(library) => writeln!(text, "it needs {} beside it", library.display()),
        None => writeln!(text, "dormant: `ompfuse record` switches it on"),
    }
    .expect("strings take everything");
    text
}
