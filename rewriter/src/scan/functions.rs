//! Where functions begin and end: from symbols, and from unwind information for what symbols don't tell.

use super::dynamic::Symbol;
use super::image::Image;
use gimli::{BaseAddresses, CallFrameInstruction, EhFrame, EhFrameHdr, UnwindSection};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

/// Suffixes of the parts that compilers move away from a function.
const PART_MARK: &str = ".cold";

/// A function, or a part of one that lies elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub start: u64,
    pub end: u64,
    pub name: Option<&'a str>,
    /// Address of its exception table.
    pub lsda: Option<u64>,
    /// A part that another function jumps into (`.cold`).
    pub fragment: bool,
}

impl<'a> Function<'a> {
    /// The function's name without the mark of a moved part.
    pub(crate) fn base_name(&self) -> Option<&'a str> {
        let name = self.name?;
        Some(name.split_once(PART_MARK).map_or(name, |(base, _)| base))
    }
}

/// Every known function, ascending and without overlap of starts.
#[derive(Debug, Default)]
pub(crate) struct Functions<'a> {
    list: Vec<Function<'a>>,
    /// Where they begin: what is searched most.
    starts: Vec<u64>,
    /// The first of each name; few files ask.
    by_name: OnceLock<FxHashMap<&'a str, usize>>,
}

impl<'a> Functions<'a> {
    /// Collects functions from symbols and `.eh_frame`.
    pub(crate) fn collect(image: &Image<'_>, symbols: &[&[Symbol<'a>]]) -> Functions<'a> {
        let mut list = from_symbols(image, symbols);
        let covered: Vec<Range<u64>> = list.iter().map(|f| f.start..f.end).collect();
        for fde in from_eh_frame(image) {
            let at = covered.partition_point(|f| f.start <= fde.start);
            match at.checked_sub(1).map(|i| (i, &covered[i])) {
                Some((i, f)) if f.start == fde.start => {
                    list[i].end = f.end.max(fde.end);
                    list[i].lsda = fde.lsda;
                    list[i].fragment |= fde.fragment;
                }
                Some((_, f)) if fde.start < f.end => {}
                _ => list.push(fde),
            }
        }
        list.sort_by_key(|f| f.start);
        // A function without a size reaches to the next one; no function reaches into the next one.
        for i in 0..list.len() {
            let next = list.get(i + 1).map_or(u64::MAX, |f| f.start);
            let limit = image
                .load_at(list[i].start)
                .map_or(list[i].start, |l| l.va.saturating_add(l.file_size))
                .min(next);
            let f = &mut list[i];
            f.end = if f.end <= f.start {
                limit
            } else {
                f.end.min(limit)
            };
        }
        list.retain(|f| f.start < f.end);
        Functions {
            starts: list.iter().map(|f| f.start).collect(),
            list,
            by_name: OnceLock::new(),
        }
    }

    /// Adds functions that begin at these addresses, in no known one: each reaches to the next.
    pub(crate) fn add(&mut self, image: &Image<'_>, starts: &BTreeSet<u64>) {
        let new = starts.iter().filter_map(|&start| {
            let load = image.load_at(start)?;
            Some(Function {
                start,
                end: load.va.saturating_add(load.file_size),
                name: None,
                lsda: None,
                fragment: false,
            })
        });
        self.list.extend(new);
        self.list.sort_by_key(|f| f.start);
        self.list.dedup_by_key(|f| f.start);
        self.starts = self.list.iter().map(|f| f.start).collect();
        for (f, next) in self.list.iter_mut().zip(self.starts.iter().skip(1)) {
            f.end = f.end.min(*next);
        }
    }

    /// Cuts off what is behind a function's end.
    pub(crate) fn cut(&mut self, index: usize, end: u64) {
        let f = &mut self.list[index];
        f.end = f.end.min(end);
    }

    /// The function that holds this address.
    pub(crate) fn at(&self, va: u64) -> Option<usize> {
        let i = self
            .starts
            .partition_point(|&start| start <= va)
            .checked_sub(1)?;
        (va < self.list[i].end).then_some(i)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// The function with this number.
    pub(crate) fn get(&self, index: usize) -> &Function<'a> {
        &self.list[index]
    }

    /// The first function with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name = FxHashMap::default();
            for (i, f) in self.list.iter().enumerate() {
                if let Some(name) = f.name {
                    by_name.entry(name).or_insert(i);
                }
            }
            by_name
        });
        by_name.get(name).copied()
    }

    /// Whether a function begins here, not a part of one.
    pub(crate) fn begins_at(&self, va: u64) -> bool {
        let found = self.starts.binary_search(&va);
        found.is_ok_and(|i| !self.list[i].fragment)
    }

    /// Whether a function starts here.
    pub(crate) fn starts_at(&self, va: u64) -> bool {
        self.starts.binary_search(&va).is_ok()
    }
}

fn from_symbols<'a>(image: &Image<'_>, tables: &[&[Symbol<'a>]]) -> Vec<Function<'a>> {
    let all = tables.iter().copied().flatten();
    let mut named: Vec<_> = all
        .filter(|s| s.is_function() && !s.name.is_empty() && image.is_code(s.va))
        .map(|s| {
            let name = s.name.split('@').next().unwrap_or(s.name);
            // Of several names for one address: the global one, then the alphabetically first.
            (s.va, u8::from(s.binding == 0), name, s.size)
        })
        .collect();
    named.sort_unstable();
    let same = named.chunk_by(|a, b| a.0 == b.0);
    same.filter_map(|names| {
        let &(start, _, name, _) = names.first()?;
        let size = names.iter().map(|n| n.3).max()?;
        Some(Function {
            start,
            end: start.saturating_add(size),
            name: Some(name),
            lsda: None,
            fragment: name.contains(PART_MARK),
        })
    })
    .collect()
}

/// Functions of `.eh_frame`, ascending.
fn from_eh_frame<'a>(image: &Image<'_>) -> Vec<Function<'a>> {
    let Some((start, data)) = eh_frame(image) else {
        return Vec::new();
    };
    let mut bases = BaseAddresses::default().set_eh_frame(start);
    if let Some((hdr, _)) = image.eh_frame_hdr {
        bases = bases.set_eh_frame_hdr(hdr);
    }
    let mut section = EhFrame::new(data, gimli::LittleEndian);
    section.set_address_size(8);
    let mut out = Vec::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
            continue;
        };
        let (start, end) = (fde.initial_address(), fde.end_address());
        if !image.is_code(start) || end <= start {
            continue;
        }
        let lsda = match fde.lsda() {
            Some(gimli::Pointer::Direct(at)) => Some(at),
            Some(gimli::Pointer::Indirect(at)) => image.u64(at),
            None => None,
        };
        let fragment = begins_with_frame(&fde, &section, &bases);
        out.push(Function {
            start,
            end,
            name: None,
            lsda: lsda.filter(|&l| l != 0),
            fragment,
        });
    }
    out.sort_by_key(|f| f.start);
    out.dedup_by_key(|f| f.start);
    out
}

/// Whether a stack frame exists before the first instruction: then it is no function's beginning.
fn begins_with_frame<'a>(
    fde: &gimli::FrameDescriptionEntry<gimli::EndianSlice<'a, gimli::LittleEndian>>,
    section: &EhFrame<gimli::EndianSlice<'a, gimli::LittleEndian>>,
    bases: &BaseAddresses,
) -> bool {
    let mut instructions = fde.instructions(section, bases);
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            CallFrameInstruction::AdvanceLoc { .. } | CallFrameInstruction::SetLoc { .. } => {
                return false;
            }
            CallFrameInstruction::DefCfa { offset, .. }
            | CallFrameInstruction::DefCfaOffset { offset }
                if offset > 8 =>
            {
                return true;
            }
            CallFrameInstruction::DefCfaExpression { .. } => return true,
            _ => {}
        }
    }
    false
}

/// Address and bytes of `.eh_frame`: by section, else through the header that the loader's tables lead to.
fn eh_frame<'a>(image: &Image<'a>) -> Option<(u64, &'a [u8])> {
    let by_name = image
        .sections
        .iter()
        .find(|s| s.name == ".eh_frame" && s.va != 0);
    if let Some(section) = by_name
        && let Some(data) = image.section_data(section)
    {
        return Some((section.va, data));
    }
    let (va, size) = image.eh_frame_hdr?;
    let data = image.read(va, usize::try_from(size).ok()?)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(va);
    let header = EhFrameHdr::new(data, gimli::LittleEndian)
        .parse(&bases, 8)
        .ok()?;
    let start = match header.eh_frame_ptr() {
        gimli::Pointer::Direct(at) => at,
        gimli::Pointer::Indirect(at) => image.u64(at)?,
    };
    Some((start, image.rest(start)?))
}
