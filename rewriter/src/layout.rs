//! Where everything that is added goes, in the file and in memory.

use crate::image::{Image, PAGE, Segment, align_up};
use crate::model::LinkVa;
use crate::patch_error::PatchError;
use object::elf::{DF_1_PIE, DT_FLAGS_1, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR};
use serde::Serialize;

/// Where the program-header table goes.
///
/// Kernels before 5.18 tell a program the table's address as that of the first loaded segment plus `e_phoff`. So
/// in a program it must lie where addresses and file offsets differ by as much as in that segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HeaderTactic {
    /// Nothing is patched.
    Unchanged,
    /// In unused bytes behind the first loaded segment, which grows over them.
    Slack,
    /// In the new read-only segment, placed in the file (with a hole before it) at the offset that the rule demands.
    Congruent,
    /// In the new read-only segment, anywhere: a shared library is not subject to the rule.
    Anywhere,
    /// In the new read-only segment, which is the first: all new segments lie below the original's, because its
    /// arrays reach too far for branches to code behind them.
    Below,
}

/// A range of the file and of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// File offset.
    pub offset: u64,
    /// Link-time address.
    pub va: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Placed {
    /// A part of this range.
    pub(crate) fn part(&self, from: u64, len: u64) -> Placed {
        Placed {
            offset: self.offset + from,
            va: self.va + from,
            len,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Sizes of what is added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub read_only: u64,
    pub code: u64,
    pub data: u64,
}

impl Sizes {
    /// Pages for everything.
    fn total(&self, table_len: u64) -> Option<u64> {
        let read_only = align_up(self.read_only.checked_add(table_len)?, PAGE)?;
        let code = align_up(self.code, PAGE)?;
        read_only
            .checked_add(code)?
            .checked_add(align_up(self.data, PAGE)?)
    }
}

/// The places of what is added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub tactic: HeaderTactic,
    pub headers: Placed,
    /// Without the header table that may stand before it.
    pub read_only: Placed,
    pub code: Placed,
    pub data: Placed,
}

/// New entries of the program-header table: three loads and a note.
const NEW_HEADERS: usize = 4;

/// Branches and addresses reach this far; the margin is for what isn't counted in.
const REACH: u64 = (1 << 31) - 0x10_0000;

/// Below this address nothing can be mapped (`vm.mmap_min_addr`).
const LOWEST: u64 = 0x1_0000;

impl Layout {
    /// `site`: one of those that are patched, for the message.
    pub(crate) fn new(image: &Image<'_>, sizes: Sizes, site: LinkVa) -> Result<Layout, PatchError> {
        let too_large = || image.format_error("its addresses leave no room for more code");
        let table_len = ((image.segments.len() + NEW_HEADERS) * Segment::LEN) as u64;
        let top = image.top().ok_or_else(too_large)?;
        let tail = align_up(image.bytes.len() as u64, PAGE).ok_or_else(too_large)?;
        let total = sizes.total(table_len).ok_or_else(too_large)?;
        let slack = slack(image, table_len);
        let first = image.loads().next().ok_or_else(too_large)?;
        let far = (top - first.va).saturating_add(total) > REACH;
        let below = (first.va & !(PAGE - 1))
            .checked_sub(total)
            .filter(|&va| va >= LOWEST);
        let reads_itself = reads_own_headers(image);
        let (tactic, offset, va) =
            if let Some(va) = below.filter(|_| far && image.executable && !reads_itself) {
                (HeaderTactic::Below, tail, va)
            } else if slack.is_some() && !reads_itself {
                (HeaderTactic::Slack, tail, top)
            } else if is_library(image) && !reads_itself {
                (HeaderTactic::Anywhere, tail, top)
            } else {
                // Wrapping: only the sum has to be an offset behind the file.
                let shift = first.va.wrapping_sub(first.offset);
                let offset = Some(top.wrapping_sub(shift)).filter(|&o| o >= tail && o < 1 << 47);
                let offset = offset.unwrap_or(tail);
                (HeaderTactic::Congruent, offset, offset.wrapping_add(shift))
            };
        if tactic != HeaderTactic::Below && (far || va - first.va > REACH) {
            // Told here, because the file could have to be as long as the addresses reach.
            return Err(PatchError::TooFar {
                path: image.path.into(),
                at: site,
                to: LinkVa(va),
            });
        }
        let slack = slack.filter(|_| tactic == HeaderTactic::Slack);
        let skip = if slack.is_some() { 0 } else { table_len };
        let headers = slack.unwrap_or(Placed {
            offset,
            va,
            len: table_len,
        });
        let read_only = Placed {
            offset: offset + skip,
            va: va + skip,
            len: sizes.read_only,
        };
        let next = |before: &Placed, len| -> Option<Placed> {
            Some(Placed {
                offset: align_up(before.end(), PAGE)?,
                va: align_up(before.va + before.len, PAGE)?,
                len,
            })
        };
        let code = next(&read_only, sizes.code).ok_or_else(too_large)?;
        let data = next(&code, sizes.data).ok_or_else(too_large)?;
        Ok(Layout {
            tactic,
            headers,
            read_only,
            code,
            data,
        })
    }

    /// The new read-only segment as it is loaded.
    pub(crate) fn read_only_segment(&self) -> Placed {
        if self.tactic == HeaderTactic::Slack {
            return self.read_only;
        }
        Placed {
            len: self.headers.len + self.read_only.len,
            ..self.headers
        }
    }

    /// The new program-header table. `moved`: a segment (by index) with a new place.
    pub(crate) fn segments(
        &self,
        image: &Image<'_>,
        note: Placed,
        moved: &[(usize, Placed)],
    ) -> Vec<Segment> {
        let mut segments = image.segments.clone();
        for &(index, to) in moved {
            place(&mut segments[index], to);
        }
        if let Some(headers) = segments.iter_mut().find(|s| s.kind == PT_PHDR.0) {
            place(headers, self.headers);
        }
        if self.tactic == HeaderTactic::Slack
            && let Some(first) = segments.iter_mut().find(|s| s.is_load())
        {
            first.file_size = self.headers.end() - first.offset;
            first.mem_size = first.file_size;
        }
        let load = |at: Placed, flags: u32| {
            let mut segment = Segment {
                kind: PT_LOAD.0,
                flags,
                align: PAGE,
                ..EMPTY
            };
            place(&mut segment, at);
            segment
        };
        let place_for_loads = match self.tactic {
            HeaderTactic::Below => segments.iter().position(|s| s.is_load()),
            _ => segments.iter().rposition(|s| s.is_load()).map(|i| i + 1),
        };
        let at = place_for_loads.unwrap_or(0);
        let loads = [
            load(self.read_only_segment(), PF_R.0),
            load(self.code, PF_R.0 | PF_X.0),
            load(self.data, PF_R.0 | PF_W.0),
        ];
        segments.splice(at..at, loads);
        let mut entry = Segment {
            kind: PT_NOTE.0,
            flags: PF_R.0,
            align: 4,
            ..EMPTY
        };
        place(&mut entry, note);
        segments.push(entry);
        segments
    }
}

const EMPTY: Segment = Segment {
    kind: 0,
    flags: 0,
    offset: 0,
    va: 0,
    pa: 0,
    file_size: 0,
    mem_size: 0,
    align: 0,
};

fn place(segment: &mut Segment, at: Placed) {
    segment.offset = at.offset;
    segment.va = at.va;
    segment.pa = at.va;
    segment.file_size = at.len;
    segment.mem_size = at.len;
}

/// A shared library that can't be started as a program.
fn is_library(image: &Image<'_>) -> bool {
    let interpreter = image.segments.iter().any(|s| s.kind == PT_INTERP.0);
    let flags = image
        .dynamic
        .as_ref()
        .and_then(|d| d.get(DT_FLAGS_1.0 as u64));
    let pie = flags.is_some_and(|(_, f)| f & DF_1_PIE.0 != 0);
    !image.executable && !interpreter && !pie && image.dynamic.is_some()
}

/// Instrumented by clang for profiles. At its end such a program looks for its notes in memory at `e_phoff` and at the notes'
/// file offsets, behind its first segment. It crashes if these aren't where the addresses are.
fn reads_own_headers(image: &Image<'_>) -> bool {
    let names = image.sections.get(image.section_names);
    names
        .and_then(|s| image.at_offset(s.offset, s.size))
        .is_some_and(|names| memchr::memmem::find(names, b"\0__llvm_prf_").is_some())
}

/// Room for the header table behind the first loaded segment.
fn slack(image: &Image<'_>, len: u64) -> Option<Placed> {
    let first = image.loads().next()?;
    if first.file_size != first.mem_size {
        return None;
    }
    let old_end = first.offset.checked_add(first.file_size)?;
    let offset = align_up(old_end, 8)?;
    let end = offset + len;
    let va = first.va + (offset - first.offset);
    // The kernel maps whole pages: no other segment, in whatever order, may begin in one of ours.
    let memory_end = align_up(va + len, PAGE)?;
    if (image.loads()).any(|other| other.va > first.va && memory_end > other.va & !(PAGE - 1)) {
        return None;
    }
    let unused = image.at_offset(old_end, end - old_end)?;
    if unused.iter().any(|&b| b != 0) {
        return None;
    }
    let overlaps =
        |from: u64, size: u64| size > 0 && from < end && from.saturating_add(size) > old_end;
    let in_segment = image
        .segments
        .iter()
        .any(|s| overlaps(s.offset, s.file_size));
    let in_section = image
        .sections
        .iter()
        .any(|s| s.occupies_file() && overlaps(s.offset, s.size));
    let tables = [
        (image.phoff, image.segments.len() * Segment::LEN),
        (
            image.shoff,
            image.sections.len() * crate::image::Section::LEN,
        ),
    ];
    let in_table = tables
        .iter()
        .any(|&(from, size)| overlaps(from, size as u64));
    (!in_segment && !in_section && !in_table).then_some(Placed { offset, va, len })
}
