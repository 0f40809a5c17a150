//! Unwind information of the added code: at every place the rules are those of the original instruction that the
//! place stands for, with what a trampoline has pushed.

use super::code::Counts;
use super::error::VerifyError;
use super::ledger::Ledger;
use super::moves::{Move, Moves};
use super::sections::frames_start;
use super::tables::Tables;
use super::view::View;
use crate::stubs::{STUB_LEN, WAY_LEN};
use crate::unwind::{Cfa, Row, Rule, parse_table, read_row};
use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameOffset, EndianSlice, LittleEndian,
    UnwindContext, UnwindSection,
};
use goblin::elf::program_header::PT_GNU_EH_FRAME;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

type Bytes<'d> = EndianSlice<'d, LittleEndian>;

/// A place in added code, and what the unwinder has to find there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub at: u64,
    /// The original instruction that it stands for; none in a stub, which is entered like a function.
    pub origin: Option<u64>,
    /// What was pushed since.
    pub depth: i64,
}

/// `.eh_frame_hdr` as it is found.
struct Table<'d> {
    frames_va: u64,
    frames: Bytes<'d>,
    entries: Vec<(u64, u64)>,
}

fn damaged<T>(what: &str) -> Result<T, VerifyError> {
    Err(VerifyError::damaged(what))
}

fn table<'d>(view: &View<'d>) -> Option<(Table<'d>, Move)> {
    let header = view.header(PT_GNU_EH_FRAME)?;
    let (va, len) = (header.p_vaddr, header.p_filesz);
    let bytes = view.at_va(va, len)?;
    let (frames_va, entries) = parse_table(bytes, va)?;
    let frames = EndianSlice::new(view.loaded_from(frames_va)?, LittleEndian);
    let place = Move {
        from: 0,
        va,
        offset: header.p_offset,
        len,
    };
    Some((
        Table {
            frames_va,
            frames,
            entries,
        },
        place,
    ))
}

/// Where the table went, if it did.
pub(super) fn place(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables<'_>,
    moves: &Moves,
    ledger: &mut Ledger,
) -> Result<Option<Move>, VerifyError> {
    if old.header(PT_GNU_EH_FRAME) == new.header(PT_GNU_EH_FRAME) {
        return Ok(None);
    }
    let (Some((before, from)), Some((after, to))) = (table(old), table(new)) else {
        return damaged("the table of unwind information is damaged");
    };
    let start = frames_start(tables, moves);
    let read_only = &tables.loads[0];
    let end = to.va.checked_add(to.len);
    let last = read_only.p_vaddr.checked_add(read_only.p_filesz);
    let inside = start >= read_only.p_vaddr
        && start < to.va
        && end.is_some_and(|end| last.is_some_and(|last| end <= last));
    let len = 12 + 8 * after.entries.len() as u64;
    let frames_offset = to
        .va
        .checked_sub(start)
        .and_then(|len| to.offset.checked_sub(len));
    let Some(frames_offset) =
        frames_offset.filter(|_| inside && to.len == len && after.frames_va == before.frames_va)
    else {
        return damaged("the table of unwind information is misplaced");
    };
    let code = code_range(tables);
    let (added, kept): (Vec<_>, Vec<_>) = after.entries.iter().partition(|e| code.contains(&e.0));
    let ours = |e: &&(u64, u64)| e.1 >= start && e.1 < to.va;
    if kept != before.entries.iter().collect::<Vec<_>>() || !added.iter().all(ours) {
        return damaged("the table of unwind information isn't the original's with more entries");
    }
    ledger.enter(frames_offset, to.va - start, "the unwind information")?;
    ledger.enter(to.offset, to.len, "the table of unwind information")?;
    Ok(Some(Move {
        from: from.va,
        ..to
    }))
}

fn code_range(tables: &Tables<'_>) -> Range<u64> {
    let code = &tables.loads[1];
    code.p_vaddr..code.p_vaddr.saturating_add(code.p_filesz)
}

/// Checks the rules at each place; added code without rules is accepted, with wrong ones not.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables<'_>,
    moves: &Moves,
    debug: Option<&[u8]>,
    code: &Counts,
) -> Result<(), VerifyError> {
    islands(old, code)?;
    let Some(hdr) = &moves.frames else {
        return Ok(());
    };
    let stubs =
        code_range(tables).start + WAY_LEN * code.ways as u64 + STUB_LEN * code.calls as u64;
    // What changes arguments and relays stand behind the stubs, and control arrives at all of them in the same way.
    let stubs_end = tables
        .relays
        .iter()
        .map(|r| r.code.end)
        .fold(stubs.max(code.setters_end), u64::max);
    let Some((original, _)) = table(old) else {
        return damaged("the table of unwind information is damaged");
    };
    let start = frames_start(tables, moves);
    let Some(added) = new.at_va(start, hdr.va - start) else {
        return damaged("the unwind information lies outside the file");
    };
    let eh_frame = EhFrame::new(added, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(start);
    let rules = Rules::read(&eh_frame, &bases, EhFrame::cie_from_offset)?;
    let in_table = table(new).is_some_and(|(t, _)| {
        let ours = t
            .entries
            .iter()
            .filter(|e| code_range(tables).contains(&e.0));
        let entry = |(at, fde): (&u64, &usize)| (*at, start + *fde as u64);
        ours.copied().eq(rules.starts.iter().map(entry))
    });
    if !in_table || !rules.cover(tables, stubs_end) {
        return damaged("the unwind information covers other code than the added");
    }
    let debug_frame = DebugFrame::new(debug.unwrap_or_default(), LittleEndian);
    let no_bases = BaseAddresses::default();
    let mut sets = vec![(Lookup::EhFrame(&eh_frame, &bases), rules)];
    if debug.is_some() {
        let rules = Rules::read(&debug_frame, &no_bases, DebugFrame::cie_from_offset)?;
        if rules.ends != sets[0].1.ends {
            return damaged("the two forms of the unwind information cover different code");
        }
        sets.push((Lookup::DebugFrame(&debug_frame, &no_bases), rules));
    }
    for (lookup, rules) in &sets {
        let wrong: Vec<Option<u64>> = code
            .places
            .par_chunks(PLACES)
            .map(|places| first_wrong(places, lookup, rules, &original))
            .collect();
        if let Some(at) = wrong.into_iter().flatten().next() {
            return damaged(&format!("the unwind information at {at:#x} is wrong"));
        }
    }
    Ok(())
}

/// So many places are checked together.
const PLACES: usize = 1024;

/// The first place with other rules than those that follow from the original's.
fn first_wrong(
    places: &[Place],
    lookup: &Lookup<'_, '_>,
    rules: &Rules,
    original: &Table<'_>,
) -> Option<u64> {
    let mut expected = Expected {
        original,
        last: None,
    };
    let mut context = UnwindContext::new();
    // Many places are of one entry: its rows are made once.
    let mut of_entry = None;
    for place in places {
        let Some(fde) = rules.find(place.at) else {
            continue;
        };
        if of_entry.as_ref().is_none_or(|(entry, _)| *entry != fde) {
            of_entry = Some((fde, lookup.rows(fde, &mut context)));
        }
        let rows = of_entry.as_ref().and_then(|(_, rows)| rows.as_ref());
        let mut rows = rows.into_iter().flatten();
        let found = rows.find(|(range, _)| range.contains(&place.at));
        let found = found.map(|(_, row)| row);
        if found.is_none() || found != expected.at(place, &mut context).as_ref() {
            return Some(place.at);
        }
    }
    None
}

/// At an island the original's rules hold, of an instruction that has moved: they must be those of where control comes from.
fn islands(old: &View<'_>, code: &Counts) -> Result<(), VerifyError> {
    let Some((original, _)) = table(old).filter(|_| !code.islands.is_empty()) else {
        return Ok(());
    };
    let mut context = UnwindContext::new();
    for &(island, from) in &code.islands {
        if original.row(island, &mut context) != original.row(from, &mut context) {
            return damaged(&format!("the unwind information at {island:#x} is wrong"));
        }
    }
    Ok(())
}

/// What the original says, and what follows from it.
struct Expected<'a, 'd> {
    original: &'a Table<'d>,
    /// Most places are those of a probe, with one origin.
    last: Option<(u64, Option<Row>)>,
}

impl Expected<'_, '_> {
    fn at(&mut self, place: &Place, context: &mut UnwindContext<usize>) -> Option<Row> {
        let Some(origin) = place.origin else {
            return deeper(entered(), place.depth);
        };
        if self.last.as_ref().is_none_or(|(at, _)| *at != origin) {
            self.last = Some((origin, self.original.row(origin, context)));
        }
        let row = self.last.as_ref()?.1.clone();
        row.and_then(|row| deeper(row, place.depth))
    }
}

/// The rules at a function's first instruction.
fn entered() -> Row {
    Row {
        cfa: Cfa::Offset(7, 8),
        registers: vec![(16, Rule::Offset(-8))],
    }
}

fn deeper(mut row: Row, depth: i64) -> Option<Row> {
    if let Cfa::Offset(7, offset) = &mut row.cfa {
        *offset = offset.checked_add(depth)?;
    }
    Some(row)
}

impl Table<'_> {
    fn row(&self, at: u64, context: &mut UnwindContext<usize>) -> Option<Row> {
        let next = self.entries.partition_point(|(start, _)| *start <= at);
        let (_, fde) = self.entries.get(next.checked_sub(1)?)?;
        let bases = BaseAddresses::default().set_eh_frame(self.frames_va);
        let section = EhFrame::from(self.frames);
        let offset = EhFrameOffset(usize::try_from(fde.checked_sub(self.frames_va)?).ok()?);
        let fde = section
            .fde_from_offset(&bases, offset, EhFrame::cie_from_offset)
            .ok()
            .filter(|f| f.contains(at))?;
        let row = fde
            .unwind_info_for_address(&section, &bases, context, at)
            .ok()?;
        read_row(row, &section)
    }
}

/// The two forms of the same thing.
enum Lookup<'a, 'd> {
    EhFrame(&'a EhFrame<Bytes<'d>>, &'a BaseAddresses),
    DebugFrame(&'a DebugFrame<Bytes<'d>>, &'a BaseAddresses),
}

/// Rules with the addresses that they are for.
type Rows = Vec<(Range<u64>, Row)>;

impl Lookup<'_, '_> {
    /// The rules of the entry at this offset.
    fn rows(&self, fde: usize, context: &mut UnwindContext<usize>) -> Option<Rows> {
        match *self {
            Lookup::EhFrame(section, bases) => {
                let offset = EhFrameOffset(fde);
                let fde = section.fde_from_offset(bases, offset, EhFrame::cie_from_offset);
                rows(section, bases, &fde.ok()?, context)
            }
            Lookup::DebugFrame(section, bases) => {
                let offset = gimli::DebugFrameOffset(fde);
                let fde = section.fde_from_offset(bases, offset, DebugFrame::cie_from_offset);
                rows(section, bases, &fde.ok()?, context)
            }
        }
    }
}

fn rows<'d, S>(
    section: &S,
    bases: &BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<Bytes<'d>>,
    context: &mut UnwindContext<usize>,
) -> Option<Rows>
where
    S: UnwindSection<Bytes<'d>>,
{
    let mut table = fde.rows(section, bases, context).ok()?;
    let mut rows = Rows::new();
    while let Some(row) = table.next_row().ok()? {
        let range = row.start_address()..row.end_address();
        rows.push((range, read_row(row, section)?));
    }
    Some(rows)
}

/// Which code has rules: start, end and entry.
struct Rules {
    starts: BTreeMap<u64, usize>,
    ends: BTreeMap<u64, u64>,
}

impl Rules {
    fn read<'d, S>(
        section: &S,
        bases: &BaseAddresses,
        cie: impl FnMut(
            &S,
            &BaseAddresses,
            S::Offset,
        ) -> gimli::Result<gimli::CommonInformationEntry<Bytes<'d>>>
        + Copy,
    ) -> Result<Rules, VerifyError>
    where
        S: UnwindSection<Bytes<'d>>,
    {
        let error = |_| VerifyError::damaged("the added unwind information can't be read");
        let mut rules = Rules {
            starts: BTreeMap::new(),
            ends: BTreeMap::new(),
        };
        let mut entries = section.entries(bases);
        while let Some(entry) = entries.next().map_err(error)? {
            if let CieOrFde::Fde(partial) = entry {
                let fde = partial.parse(cie).map_err(error)?;
                rules.starts.insert(fde.initial_address(), fde.offset());
                rules.ends.insert(fde.initial_address(), fde.end_address());
            }
        }
        Ok(rules)
    }

    fn find(&self, at: u64) -> Option<usize> {
        let (start, fde) = self.starts.range(..=at).next_back()?;
        self.ends.get(start).filter(|end| at < **end).map(|_| *fde)
    }

    /// They are for stubs and relays together, and for whole trampolines.
    fn cover(&self, tables: &Tables<'_>, stubs_end: u64) -> bool {
        let code = code_range(tables);
        let trampolines: BTreeMap<u64, u64> = tables
            .windows
            .iter()
            .map(|w| (w.trampoline.start, w.trampoline.end))
            .collect();
        self.ends.iter().all(|(&start, &end)| {
            let is_stubs = start == code.start && end == stubs_end && stubs_end > start;
            is_stubs || trampolines.get(&start) == Some(&end)
        })
    }
}
