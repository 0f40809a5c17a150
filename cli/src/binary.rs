//! The rewriter, as the commands use it.

use crate::atomic::Holes;
use crate::counted;
use crate::debug::{self, DebugArgs};
use crate::input::Input;
use crate::select::{self, CallArgs, FunctionArgs, SelectArgs, plain};
use anyhow::{Context, Result, bail};
use ompfuse_account::similar::did_you_mean;
use ompfuse_format::Construct;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::site::{BinaryInfo, Mechanism, Outcome, SelfDescription, SiteInfo};
use ompfuse_progress::Progress;
use ompfuse_rewriter::addresses;
use ompfuse_rewriter::debug::DebugFiles;
use ompfuse_rewriter::model::{Scan, Site};
use ompfuse_rewriter::plan::{self, PatchPlan, PlanOptions};
use ompfuse_rewriter::reproduce::reproduce_debugged;
use ompfuse_rewriter::scan::{ScanError, ScanOptions, Wish, scan_chosen, self_description};
use ompfuse_rewriter::verify::VerifyError;
use ompfuse_rewriter::{patch, verify, write};
use serde::Serialize;
use std::fs::File;
use std::path::Path;

/// A binary, examined.
pub(crate) enum Binary {
    /// As a compiler made it.
    Original(Box<Scan>),
    /// As ompfuse made it.
    Patched(Box<SelfDescription>),
}

impl Binary {
    /// What it is, or was made from.
    pub(crate) fn info(&self) -> &BinaryInfo {
        match self {
            Binary::Original(scan) => &scan.binary,
            Binary::Patched(description) => &description.binary,
        }
    }

    /// Its sites.
    pub(crate) fn sites(&self) -> Vec<&SiteInfo> {
        match self {
            Binary::Original(scan) => scan.sites.iter().map(|s| &s.info).collect(),
            Binary::Patched(description) => description.sites.iter().collect(),
        }
    }
}

/// What a file says of itself, if ompfuse made it.
pub(crate) fn description(path: &Path, bytes: &[u8]) -> Result<Option<SelfDescription>> {
    Ok(self_description(bytes, &path.to_string_lossy())?)
}

/// What is looked for in a file besides constructs.
#[derive(Clone, Copy)]
pub(crate) struct Besides<'a> {
    /// Functions of this file that are regions.
    pub(crate) functions: Option<&'a FunctionArgs>,
    /// Libraries whose calls are regions.
    pub(crate) calls: CallArgs,
}

/// What is found in a file. `scarce`: as if there were room for short jumps only.
pub(crate) fn scan(
    path: &Path,
    bytes: &Input,
    debug: &debug::Found,
    besides: Besides<'_>,
    scarce: bool,
    progress: Progress<'_>,
) -> Result<Scan> {
    let release = || bytes.release();
    let progress = progress.releasing(&release);
    let functions = besides.functions;
    let wanted = functions.filter(|f| !f.only_counts()).map(|f| f.wish());
    let looped = functions.map(|f| f.loops_wish());
    let counted = functions.map(|f| f.count_wish());
    let choice = ScanOptions {
        functions: wanted.as_ref().map(|w| w as &dyn Wish),
        count: (counted.as_ref().and_then(|c| c.as_wish()))
            .zip(functions.map(FunctionArgs::counted)),
        loops: looped.as_ref().and_then(|l| l.as_wish()),
        calls: besides.calls.families(),
        only_look: false,
        scarce,
    };
    let path = path.to_string_lossy();
    let found = scan_chosen(bytes, &path, debug.files(), choice, progress)?;
    debug.release();
    Ok(found)
}

/// Refuses a program in which no function has a name that `--functions` and `--loops`, or `--count`, give.
pub(crate) fn check_functions(
    scan: &Scan,
    wanted: Option<&FunctionArgs>,
    (file, bytes): (&Path, &[u8]),
) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let is_function = |s: &Site| s.info.construct == Construct::Function;
    if wanted.names_some() && !scan.sites.iter().any(is_function) {
        bail!(unmatched(file, bytes, wanted));
    }
    if counted::is_unmatched(scan.binary.counted.as_ref(), wanted) {
        bail!(unmatched_count(file, bytes, wanted));
    }
    Ok(())
}

/// What is said where `--functions` and `--loops` match nothing in a file.
pub(crate) fn unmatched(file: &Path, bytes: &[u8], wanted: &FunctionArgs) -> String {
    format!(
        "{}: {}",
        wanted.options(),
        no_match(file, bytes, wanted.texts())
    )
}

/// The same of `--count`.
fn unmatched_count(file: &Path, bytes: &[u8], wanted: &FunctionArgs) -> String {
    format!("--count: {}", no_match(file, bytes, wanted.count_texts()))
}

fn no_match<'t>(file: &Path, bytes: &[u8], texts: impl Iterator<Item = &'t str> + Clone) -> String {
    let patterns: Vec<String> = texts.clone().map(|text| format!("`{text}`")).collect();
    let known = addresses::functions(bytes, DebugFiles::default());
    let known: Vec<String> = known.into_iter().map(plain).collect();
    let is_construct = |text: &str| Construct::ALL.iter().any(|c| c.name() == text);
    let meant = texts.map(|text| match is_construct(text) {
        true => format!("; `{text}` is a construct: use --select {text}"),
        false => did_you_mean(text, &known),
    });
    let meant: Vec<String> = meant.collect();
    let file = file.display();
    format!(
        "no function in {file} matches {}{}; `ompfuse scan {file} --functions '*'` lists what there is",
        patterns.join(" or "),
        meant.concat()
    )
}

/// Whether a scan failed because nothing that is looked for is in the file (or because it is an OpenMP runtime).
pub(crate) fn has_nothing(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(
            ScanError::NoOpenMp { .. } | ScanError::NoFunctions { .. } | ScanError::Runtime { .. }
        )
    )
}

/// Which share of the time of a patch finding everything takes, and planning; the rest is written and read again.
pub(crate) const OF_SCAN: f64 = 0.65;
const OF_PLAN: f64 = 0.12;
const OF_WRITING: f64 = 0.05;
const OF_VERIFYING: f64 = 0.18;

/// Examines a file.
pub(crate) fn examine(
    path: &Path,
    bytes: &Input,
    (debug, functions, calls): (&DebugArgs, &FunctionArgs, CallArgs),
    scarce: bool,
    progress: Progress<'_>,
) -> Result<Binary> {
    Ok(match description(path, bytes)? {
        Some(description) => Binary::Patched(Box::new(description)),
        None => {
            let debug = debug.find(path, bytes);
            let own = functions.of(&path.to_string_lossy(), true);
            let besides = Besides {
                functions: own.as_ref(),
                calls,
            };
            let scan = scan(path, bytes, &debug, besides, scarce, progress)?;
            check_functions(&scan, own.as_ref(), (path, bytes))?;
            Binary::Original(Box::new(scan))
        }
    })
}

/// What is said of a file's constructs if none of its sites can have a probe; `None`: some can. Questions and settings need none, so
/// that nothing may be lost.
pub(crate) fn unprobed(scan: &Scan) -> Option<Coverage> {
    let none = scan.sites.iter().all(|site| site.action.is_none());
    none.then(|| Coverage::of(&scan.sites))
}

/// Plans a patch of the selected regions.
pub(crate) fn plan(
    bytes: &Input,
    scan: Scan,
    selection: &SelectArgs,
    dormant: bool,
) -> Result<PatchPlan> {
    let path = scan.binary.path.clone();
    if scan.sites.is_empty() {
        bail!("nothing to patch in {path}: no call of an OpenMP runtime was found");
    }
    if selection.leaves_out(&path) {
        bail!("nothing to patch in {path}: --select, --skip or --filter leave the whole file out");
    }
    let selected = match selection.is_empty() {
        true => None,
        false => {
            let chosen = select::selected(selection, &path, &scan.sites)?;
            let ids = (0..).zip(chosen).filter(|(_, chosen)| *chosen);
            Some(ids.map(|(id, _)| id).collect())
        }
    };
    let sites = scan.sites.len();
    let settings = select::set::settings(&selection.set, &path, &scan.sites, selected.as_ref())?;
    let options = PlanOptions {
        settings,
        dormant,
        selected,
        ..PlanOptions::default()
    };
    let release = || bytes.release();
    let released = Progress::default().releasing(&release);
    let plan = plan::plan_releasing(bytes, scan, &options, released)?;
    if plan.description.is_none() {
        bail!(
            "nothing to patch in {path}: none of its {sites} sites gets a probe{}",
            match selection.is_empty() {
                true => "",
                false => " (--select, --skip and --filter decide)",
            }
        );
    }
    Ok(plan)
}

/// So many bytes are copied before memory is given back.
const BETWEEN_RELEASES: usize = 4 << 20;

/// Carries a plan out into a new file, and reads that again: what isn't accepted is not left there. `progress`: of the whole
/// patch, which is planned by now.
pub(crate) fn write(
    original: &Input,
    plan: &PatchPlan,
    file: &mut File,
    progress: Progress<'_>,
) -> Result<()> {
    progress.advance(OF_PLAN);
    let mut holes = Holes::new(file);
    let written = progress.part(OF_WRITING);
    let mut read = 0;
    write::write_to(original, plan, |bytes| -> Result<()> {
        written.steps(bytes.len(), plan.len as usize);
        holes.write(bytes)?;
        read += bytes.len();
        if read >= BETWEEN_RELEASES {
            original.release();
            read = 0;
        }
        Ok(())
    })?;
    holes.finish()?;
    let written = Input::of(file)?;
    let passed = |share| {
        original.release();
        written.release();
        progress.advance(OF_VERIFYING * share);
    };
    passed(0.0);
    patch::accept(original, &written, plan, &passed)?;
    Ok(())
}

/// Which share of the time it takes to look at a patched file; the rest to make it again.
const OF_LOOKING: f64 = 0.2;

/// Compares a patched file with its original. Returns whether it could be made again, and compared byte by byte: if this
/// version of ompfuse made it.
pub(crate) fn verify(
    original: (&Path, &Input),
    patched: (&Path, &Input),
    description: &SelfDescription,
    debug: &DebugArgs,
    progress: Progress<'_>,
) -> Result<bool> {
    let passed = |share: f64| {
        original.1.release();
        patched.1.release();
        progress.advance(OF_LOOKING * share);
    };
    let rejected = || format!("{} is rejected", patched.0.display());
    match verify::verify_with(original.1, patched.1, None, Some(description), &passed) {
        Err(VerifyError::OtherOriginal { expected }) => bail!(
            "{} was not made from {}: its description names another original (SHA-256 {expected})",
            patched.0.display(),
            original.0.display(),
        ),
        judged => judged.with_context(rejected)?,
    };
    let library = PlanOptions::default().runtime_library;
    let release = || {
        original.1.release();
        patched.1.release();
    };
    let again = progress.part(1.0 - OF_LOOKING).releasing(&release);
    let debug = debug.find(original.0, original.1);
    let (files, old, new) = (debug.files(), original.1, patched.1);
    reproduce_debugged(old, new, description, &library, files, again).with_context(rejected)
}

/// Why a site has no probe, in a few words.
pub(crate) fn reason(site: &SiteInfo) -> &str {
    match (&site.reason, site.mechanism) {
        (_, Mechanism::Inline) if site.outcome == Outcome::Patchable => "not selected",
        (Some(reason), _) => reason,
        (None, Mechanism::Implied) => "told by another site's probe",
        (None, _) => "not selected",
    }
}

/// Numbers of sites by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) sites: usize,
    pub(crate) patched: usize,
    pub(crate) patchable: usize,
    pub(crate) skipped: usize,
    /// Sites that need no probe.
    pub(crate) services: usize,
    /// Those of the skipped ones that call what no table knows.
    pub(crate) unknown: usize,
}

impl Totals {
    /// Counts sites.
    pub(crate) fn count<'a>(sites: impl IntoIterator<Item = &'a SiteInfo>) -> Totals {
        let mut totals = Totals {
            sites: 0,
            patched: 0,
            patchable: 0,
            skipped: 0,
            services: 0,
            unknown: 0,
        };
        for site in sites {
            totals.sites += 1;
            match site.outcome {
                Outcome::Patched => totals.patched += 1,
                Outcome::Patchable => totals.patchable += 1,
                Outcome::Skipped => totals.skipped += 1,
                Outcome::Service => totals.services += 1,
            }
            let is_call = site.construct == Construct::Service && site.entry.is_some();
            totals.unknown += usize::from(is_call && site.outcome == Outcome::Skipped);
        }
        totals
    }
}
