//! Making a patched file once more, from its original and from what it says of itself: the same version gives the same
//! bytes. That settles what `verify` can't judge by looking: what a probe reads, and the texts.

use crate::debug::DebugFiles;
use crate::image::Image;
use crate::model::Scan;
use crate::patch_error::PatchError;
use crate::plan::{PatchPlan, PlanOptions, plan, plan_releasing};
use crate::scan::{Known, ScanError, ScanOptions, Wanted, Wish, scan_chosen, wanted};
use crate::write::write_to;
use object::elf::DT_NEEDED;
use ompfuse_format::Construct;
use ompfuse_format::site::{Outcome, SelfDescription, SiteInfo};
use ompfuse_patterns::{Families, Family};
use ompfuse_progress::Progress;
use std::collections::HashMap;
use thiserror::Error;

/// Why a file can't be made again, or is another one.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReproduceError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Patch(#[from] PatchError),
    #[error(
        "byte {offset:#x} ({what}) isn't what ompfuse {version} makes of the original; patch the original again"
    )]
    Other {
        offset: u64,
        what: &'static str,
        version: String,
    },
}

/// What the scan is of the time.
const OF_SCAN: f64 = 0.75;

/// Compares a patched file with what this version makes of the original, with the runtime library under this name (if it
/// isn't dormant). Returns `false` if another version made it, so
/// that there is nothing to compare with.
///
/// # Errors
/// The two differ, or the original can't be patched as the file says that it was.
pub fn reproduce(
    old: &[u8],
    new: &[u8],
    description: &SelfDescription,
    runtime_library: &str,
    progress: Progress<'_>,
) -> Result<bool, ReproduceError> {
    let debug = DebugFiles::default();
    reproduce_debugged(old, new, description, runtime_library, debug, progress)
}

/// As [`reproduce`], where debug information is in other files. Source lines that come from other files than these are not
/// compared.
///
/// # Errors
/// As [`reproduce`].
pub fn reproduce_debugged(
    old: &[u8],
    new: &[u8],
    description: &SelfDescription,
    runtime_library: &str,
    debug: DebugFiles<'_>,
    progress: Progress<'_>,
) -> Result<bool, ReproduceError> {
    let mut options = PlanOptions::default();
    if description.version != options.version {
        return Ok(false);
    }
    let path = &description.binary.path;
    options.runtime_library = runtime_library.into();
    options.settings.clone_from(&description.binary.settings);
    options.dormant = needed(old, path)? == needed(new, path)?;
    let patched = description.sites.iter().zip(0..);
    options.selected = Some(
        patched
            .filter(|(s, _)| s.outcome == Outcome::Patched)
            .map(|(_, id)| id)
            .collect(),
    );
    let chosen = Chosen::of(description);
    let choice = chosen.choice(false);
    let mut scan = scan_chosen(old, path, debug, choice, progress.part(OF_SCAN))?;
    take_lines(&mut scan, description);
    let plan = plan_releasing(old, scan, &options, progress)?;
    progress.advance(1.0 - OF_SCAN);
    match difference(old, new, &plan, progress) {
        None => Ok(true),
        Some(_) if is_scarce((old, new), description, debug, &options, &chosen) => Ok(true),
        Some(offset) => Err(ReproduceError::Other {
            offset,
            what: place(&plan, offset),
            version: options.version,
        }),
    }
}

/// What was looked for besides OpenMP's constructs.
struct Chosen {
    /// Functions that are regions, and those whose loops are, by the places of their first probes.
    wanted: Places,
    looped: Places,
    /// Functions whose instructions are counted, or were to be.
    counted: Option<(Places, u32)>,
    calls: Families,
}

struct Places(HashMap<u64, Wanted>);

impl Chosen {
    fn of(description: &SelfDescription) -> Chosen {
        let sites = description.sites.iter();
        let begins = sites.filter(|s| s.construct == Construct::Function && s.region == s.id);
        let wanted = |s: &SiteInfo| {
            let how = match s.reason.as_deref() {
                Some(wanted::SMALL | wanted::BODY) => Wanted::ByPattern,
                _ => Wanted::ByName,
            };
            (s.address.0, how)
        };
        let loops_of = description.binary.loops_of.iter();
        let sites = description.sites.iter();
        Chosen {
            wanted: Places(begins.map(wanted).collect()),
            looped: Places(loops_of.map(|at| (at.0, Wanted::ByPattern)).collect()),
            counted: description.binary.counted.as_ref().map(|counted| {
                let refused = counted.refused.iter().map(|f| f.address);
                let all = counted.functions.iter().map(|f| f.0).chain(refused);
                let places = Places(all.map(|at| (at.0, Wanted::ByName)).collect());
                (places, counted.set())
            }),
            calls: sites.filter_map(|s| Family::of(s.construct)).collect(),
        }
    }

    fn choice(&self, scarce: bool) -> ScanOptions<'_> {
        ScanOptions {
            functions: (!self.wanted.0.is_empty()).then_some(&self.wanted),
            loops: (!self.looped.0.is_empty()).then_some(&self.looped),
            count: (self.counted.as_ref()).map(|(places, set)| (places as &dyn Wish, *set)),
            calls: self.calls,
            only_look: false,
            scarce,
        }
    }
}

impl Wish for Places {
    fn wanted(&self, function: &Known<'_>) -> Wanted {
        self.0.get(&function.entry).copied().unwrap_or_default()
    }
}

/// Believes what a description says of source lines if it comes from other debug information than the scan had: files with
/// it may come and go.
fn take_lines(scan: &mut Scan, description: &SelfDescription) {
    if scan.binary.debug_files == description.binary.debug_files {
        return;
    }
    scan.binary
        .debug_files
        .clone_from(&description.binary.debug_files);
    for (site, told) in scan.sites.iter_mut().zip(&description.sites) {
        let info = &mut site.info;
        info.function.clone_from(&told.function);
        info.source.clone_from(&told.source);
        info.frames.clone_from(&told.frames);
        info.detail.clone_from(&told.detail);
    }
}

/// Whether a file that isn't the usual one was made as if there were room for short jumps only, which it doesn't say.
fn is_scarce(
    (old, new): (&[u8], &[u8]),
    description: &SelfDescription,
    debug: DebugFiles<'_>,
    options: &PlanOptions,
    chosen: &Chosen,
) -> bool {
    let choice = chosen.choice(true);
    let path = &description.binary.path;
    let scan = scan_chosen(old, path, debug, choice, Progress::default()).ok();
    let plan = scan.and_then(|mut scan| {
        take_lines(&mut scan, description);
        plan(old, scan, options).ok()
    });
    plan.is_some_and(|plan| difference(old, new, &plan, Progress::default()).is_none())
}

/// So many bytes of both files are compared before memory is given back.
const BETWEEN_RELEASES: usize = 4 << 20;

/// The first byte that isn't as planned.
fn difference(old: &[u8], new: &[u8], plan: &PatchPlan, progress: Progress<'_>) -> Option<u64> {
    let mut at = 0;
    let mut released = 0;
    let mut first = None;
    let compared = write_to(old, plan, |part| -> Result<(), PatchError> {
        let here = new.get(at..).unwrap_or_default();
        if first.is_none() && !here.starts_with(part) {
            let same = part.iter().zip(here).take_while(|(a, b)| a == b).count();
            first = Some((at + same) as u64);
        }
        at += part.len();
        if at - released >= BETWEEN_RELEASES {
            progress.release();
            released = at;
        }
        Ok(())
    });
    match compared {
        Ok(()) => first.or((at != new.len()).then_some(at as u64)),
        Err(_) => Some(0),
    }
}

/// What the plan has at an offset.
fn place(plan: &PatchPlan, offset: u64) -> &'static str {
    let mut chunks = plan.edits.iter().chain(&plan.appended);
    match chunks.find(|c| c.range().contains(&offset)) {
        Some(chunk) => chunk.what,
        None if offset < plan.original_len => "the original's",
        None => "filler",
    }
}

/// Number of libraries that a file needs.
fn needed(bytes: &[u8], path: &str) -> Result<usize, PatchError> {
    let image = Image::read(bytes, path)?;
    let entries = image.dynamic.iter().flat_map(|d| &d.entries);
    Ok(entries
        .take_while(|(tag, _)| *tag != 0)
        .filter(|(tag, _)| *tag == DT_NEEDED.0 as u64)
        .count())
}
