//! The plan of a patch: every address, size and byte that it adds or changes.

use crate::describe::sha256;
use crate::draft::Draft;
use crate::image::Image;
use crate::layout::{HeaderTactic, Placed};
use crate::model::{LinkVa, Scan};
use crate::patch_error::PatchError;
use crate::stubs::Redirect;
use crate::trampoline::Detour;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::site::{SelfDescription, Setting};
use ompfuse_progress::Progress;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// What to patch, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOptions {
    /// Leave the runtime library out of the libraries that the binary loads.
    pub dormant: bool,
    /// How the binary names the runtime library.
    pub runtime_library: String,
    /// Sites to patch; `None` for all that can be. Those without an action are passed over.
    pub selected: Option<BTreeSet<u32>>,
    /// What calls hand over instead of what the program does, ascending: each of a selected site.
    pub settings: Vec<Setting>,
    /// Version of ompfuse, for the self-description.
    pub version: String,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            dormant: false,
            runtime_library: format!("$ORIGIN/{RUNTIME_LIBRARY}"),
            selected: None,
            settings: Vec::new(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// Bytes at a place in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chunk {
    /// What it is.
    pub what: &'static str,
    /// File offset.
    pub offset: u64,
    /// Its bytes, in hexadecimal digits.
    #[serde(serialize_with = "hexadecimal")]
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// The range in the file.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }
}

fn hexadecimal<S: serde::Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").map_err(serde::ser::Error::custom)?;
    }
    s.serialize_str(&digits)
}

/// Everything that [`crate::write::write`] does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatchPlan {
    /// The original's path, for messages.
    pub path: String,
    /// The original's length.
    pub original_len: u64,
    /// The patched file's length.
    pub len: u64,
    /// Where the program-header table goes.
    pub tactic: HeaderTactic,
    /// Call sites that are led to stubs, by site.
    pub calls: Vec<Redirect>,
    /// Windows that are replaced by jumps to trampolines, ascending.
    pub detours: Vec<Detour>,
    /// The new read-only, code and data segments; empty when nothing is patched.
    pub segments: Vec<Placed>,
    /// Changes within the original's length, ascending, disjoint.
    pub edits: Vec<Chunk>,
    /// What is added behind it, ascending, disjoint; zeros between.
    pub appended: Vec<Chunk>,
    /// What the file says of itself.
    pub description: Option<SelfDescription>,
}

impl PatchPlan {
    /// Whether the output is the input.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.appended.is_empty()
    }

    /// Sites that get a probe.
    pub fn patched(&self) -> BTreeSet<u32> {
        let calls = self.calls.iter().map(|c| c.site);
        calls
            .chain(self.detours.iter().flat_map(|d| d.sites.iter().copied()))
            .collect()
    }

    /// Ranges of zeros behind the original that needn't be written, ascending.
    pub fn holes(&self) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let mut at = self.original_len;
        for chunk in &self.appended {
            if chunk.offset > at {
                holes.push(at..chunk.offset);
            }
            at = chunk.range().end;
        }
        holes
    }

    fn unchanged(image: &Image<'_>) -> PatchPlan {
        PatchPlan {
            path: image.path.into(),
            original_len: image.bytes.len() as u64,
            len: image.bytes.len() as u64,
            tactic: HeaderTactic::Unchanged,
            calls: Vec::new(),
            detours: Vec::new(),
            segments: Vec::new(),
            edits: Vec::new(),
            appended: Vec::new(),
            description: None,
        }
    }
}

/// Plans the patch of a binary. Nothing selected: the output is the input. A scan that is given away needn't be copied.
pub fn plan<'s>(
    bytes: &[u8],
    scan: impl Into<Cow<'s, Scan>>,
    options: &PlanOptions,
) -> Result<PatchPlan, PatchError> {
    plan_releasing(bytes, scan, options, Progress::default())
}

/// As [`plan`], for whoever has the file's memory; tells nothing of how far it is.
pub fn plan_releasing<'s>(
    bytes: &[u8],
    scan: impl Into<Cow<'s, Scan>>,
    options: &PlanOptions,
    progress: Progress<'_>,
) -> Result<PatchPlan, PatchError> {
    let mut scan = scan.into();
    let path = scan.binary.path.clone();
    let image = Image::read(bytes, &path)?;
    if image.is_patched() {
        return Err(PatchError::AlreadyPatched { path });
    }
    let selected = selected(&image, &scan, options)?;
    if selected.is_empty() {
        return Ok(PatchPlan::unchanged(&image));
    }
    let mut attempt = Attempt {
        image: &image,
        options,
        selected,
        hash: None,
        progress,
    };
    if scan.counting.is_empty() {
        return attempt.plan(scan);
    }
    // A function whose constants have no place isn't counted; all else is patched.
    loop {
        match attempt.plan(Cow::Borrowed(&*scan)) {
            Err(PatchError::Site { at, what, .. }) if scan.to_mut().withdraw(at, &what) => {}
            planned => return planned,
        }
    }
}

/// What planning a scan once more needs.
struct Attempt<'x> {
    image: &'x Image<'x>,
    options: &'x PlanOptions,
    selected: BTreeSet<u32>,
    /// Of the original, once it is known.
    hash: Option<String>,
    progress: Progress<'x>,
}

impl Attempt<'_> {
    fn plan(&mut self, scan: Cow<'_, Scan>) -> Result<PatchPlan, PatchError> {
        let known = self.hash.take();
        let hashed =
            || known.unwrap_or_else(|| sha256(self.image.bytes, &|_| self.progress.release()));
        let selected = self.selected.clone();
        let housed = || Draft::new(self.image, scan, self.options, selected)?.house();
        let (hash, housed) = rayon::join(hashed, housed);
        self.hash = Some(hash.clone());
        housed?.finish(hash)
    }
}

/// The selected sites that have an action.
fn selected(
    image: &Image<'_>,
    scan: &Scan,
    options: &PlanOptions,
) -> Result<BTreeSet<u32>, PatchError> {
    let sites = scan.sites.len();
    if let Some(wanted) = &options.selected
        && let Some(&id) = wanted.iter().find(|&&id| id as usize >= sites)
    {
        return Err(PatchError::UnknownSite {
            path: image.path.into(),
            id,
            sites,
        });
    }
    let mut numbered = scan.sites.iter().zip(0..);
    if let Some((site, _)) = numbered.find(|(site, id)| site.info.id != *id) {
        return Err(PatchError::Site {
            path: image.path.into(),
            at: LinkVa(site.info.address.0),
            what: "its number isn't its place in the list".into(),
        });
    }
    let wanted = |id: u32| options.selected.as_ref().is_none_or(|s| s.contains(&id));
    let with_action = scan
        .sites
        .iter()
        .zip(0..)
        .filter(|(s, _)| s.action.is_some());
    Ok(with_action
        .map(|(_, id)| id)
        .filter(|&id| wanted(id))
        .collect())
}
