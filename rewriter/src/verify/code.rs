//! Call sites, stubs, ways and windows, as capstone reads them: many at a time, on every processor.

use super::cursor::{Cursor, LEA_R10, mismatch};
use super::cutoff::check_depths;
use super::disassembler::{Disassembler, Insn, Reader};
use super::error::VerifyError;
use super::ledger::Ledger;
use super::relay::Key;
use super::tables::{SiteEntry, Tables};
use super::unwind::Place;
use super::view::View;
use crate::stubs::UNREACHABLE;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Sites that are checked together.
const PART: usize = 256;

/// They stand everywhere in the code: so many of them touch a part of it only.
const BETWEEN_RELEASES: usize = 8 * PART;

/// Windows that are checked together. There are few of them, far from each other.
const WINDOWS: usize = 64;

/// How much was checked.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub calls: usize,
    pub ways: usize,
    /// First address behind what changes arguments; 0: nothing does.
    pub setters_end: u64,
    pub probes: usize,
    pub displaced: usize,
    /// Some of these are calls.
    pub displaced_calls: bool,
    /// Places at which the unwinder has to find the caller's frame, ascending.
    pub places: Vec<Place>,
    /// Islands, with the places that control comes from.
    pub islands: Vec<(u64, u64)>,
}

/// The sites with a probe, by address; without those that relays lead to.
pub(super) struct Sorted<'a> {
    pub calls: Vec<&'a SiteEntry>,
    pub probes: Vec<&'a SiteEntry>,
}

impl<'a> Sorted<'a> {
    fn new(tables: &'a Tables<'_>) -> Result<Sorted<'a>, VerifyError> {
        let (mut probes, mut calls): (Vec<&SiteEntry>, Vec<_>) = tables
            .sites
            .iter()
            .filter(|s| !s.relayed)
            .partition(|s| s.inline);
        probes.sort_by_key(|s| s.address);
        calls.sort_by_key(|s| s.address);
        let mut pairs = calls.windows(2);
        match pairs.find(|pair| pair[0].address == pair[1].address) {
            Some(pair) => Err(site_error(pair[1], "it is listed twice")),
            None => Ok(Sorted { calls, probes }),
        }
    }

    /// Index of the call at an address.
    pub(super) fn call_at(&self, at: u64) -> Option<usize> {
        self.calls.binary_search_by_key(&at, |s| s.address).ok()
    }

    /// The probes before the instruction at an address.
    pub(super) fn probes_at(&self, at: u64) -> &[&'a SiteEntry] {
        let start = self.probes.partition_point(|s| s.address < at);
        let len = self.probes[start..].partition_point(|s| s.address == at);
        &self.probes[start..start + len]
    }
}

/// What a way does: slot, target, and whether that is a slot too.
type Way = (u64, u64, bool);

/// What was found in a part of the code.
#[derive(Default)]
pub(super) struct Findings {
    /// File ranges that were checked.
    entries: Vec<(u64, u64, &'static str)>,
    pub places: Vec<Place>,
    pub islands: Vec<(u64, u64)>,
    pub displaced: usize,
    pub setters_end: u64,
    /// Some of it compares tasks' depths.
    pub counts_depths: bool,
    pub displaced_calls: bool,
    /// Calls that were found in windows, by index.
    pub calls: Vec<usize>,
    /// Addresses whose probes were found.
    pub probes: Vec<u64>,
    /// Constants that were found.
    pub increments: usize,
    ways: BTreeSet<(u64, Way)>,
}

/// Checks every site with a probe, and that there is no other changed or added code.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables<'_>,
    ledger: &mut Ledger,
    passed: &(dyn Fn(f64) + Sync),
) -> Result<Counts, VerifyError> {
    let sites = Sorted::new(tables)?;
    let mut counts = Counts {
        calls: tables.sites.len() - sites.probes.len(),
        probes: sites.probes.len(),
        ..Counts::default()
    };
    let part = Part {
        old,
        new,
        tables,
        sites: &sites,
    };
    let mut all = Vec::new();
    let windows = tables.windows.len() as f64;
    all.extend(part.each(&tables.windows, WINDOWS, |checker, part| {
        part.iter().try_for_each(|window| checker.window(window))?;
        passed(0.5 * part.len() as f64 / windows);
        Ok(())
    })?);
    if tables.windows.is_empty() {
        passed(0.5);
    }
    all.extend(part.each(&[()], 1, |checker, _| checker.relays())?);
    let found: BTreeSet<u64> = all.iter().flat_map(|f| &f.probes).copied().collect();
    if let Some(lost) = sites.probes.iter().find(|s| !found.contains(&s.address)) {
        return Err(site_error(lost, "it has no trampoline"));
    }
    let increments: usize = all.iter().map(|f| f.increments).sum();
    if increments != tables.increments.len() {
        let what = "some of the constants that count instructions have no trampoline";
        return Err(VerifyError::damaged(what));
    }
    // What is left of the calls lies in no window.
    let inside: BTreeSet<usize> = all.iter().flat_map(|f| &f.calls).copied().collect();
    let outside: Vec<&SiteEntry> = (0..)
        .zip(&sites.calls)
        .filter(|(index, _)| !inside.contains(index))
        .map(|(_, &call)| call)
        .collect();
    for some in outside.chunks(BETWEEN_RELEASES) {
        all.extend(part.each(some, PART, |checker, part| {
            part.iter().try_for_each(|call| checker.call(call))
        })?);
        passed(0.5 * some.len() as f64 / outside.len() as f64);
    }
    if outside.is_empty() {
        passed(0.5);
    }
    let ways: BTreeSet<(u64, Way)> = all.iter().flat_map(|f| &f.ways).copied().collect();
    let ways: Vec<_> = ways.into_iter().collect();
    counts.ways = ways.len();
    all.extend(part.each(&ways, PART, |checker, part| {
        let mut ways = part.iter();
        ways.try_for_each(|&(at, way)| checker.way(at, way))
    })?);
    if all.iter().any(|f| f.counts_depths) {
        check_depths(new, tables, ledger)?;
    }
    ledger.expect(all.iter().map(|f| f.entries.len()).sum());
    let places = all.iter().map(|f| f.places.len()).sum();
    counts.places.reserve_exact(places);
    for findings in all {
        counts.displaced += findings.displaced;
        counts.setters_end = counts.setters_end.max(findings.setters_end);
        counts.displaced_calls |= findings.displaced_calls;
        counts.places.extend(findings.places);
        counts.islands.extend(findings.islands);
        for (offset, len, what) in findings.entries {
            ledger.enter(offset, len, what)?;
        }
    }
    counts.places.sort_unstable_by_key(|p| p.at);
    Ok(counts)
}

/// What is given to each part of the work.
#[derive(Clone, Copy)]
struct Part<'a, 'd> {
    old: &'a View<'d>,
    new: &'a View<'d>,
    tables: &'a Tables<'a>,
    sites: &'a Sorted<'a>,
}

impl<'a, 'd> Part<'a, 'd> {
    /// Checks all of the things, so many at a time; of several errors the first is told.
    fn each<T: Sync>(
        self,
        things: &[T],
        together: usize,
        check: impl Fn(&mut Checker<'a, '_, 'd>, &[T]) -> Result<(), VerifyError> + Sync,
    ) -> Result<Vec<Findings>, VerifyError> {
        let part = |part: &[T]| -> Result<Findings, VerifyError> {
            let disassembler = Disassembler::new()?;
            let mut checker = Checker {
                old: self.old,
                new: self.new,
                tables: self.tables,
                sites: self.sites,
                reader: disassembler.reader()?,
                relayed: BTreeMap::new(),
                found: Findings::default(),
            };
            check(&mut checker, part)?;
            Ok(checker.found)
        };
        let all: Vec<_> = things.par_chunks(together).map(part).collect();
        all.into_iter().collect()
    }
}

/// Checks one thing after the other.
pub(super) struct Checker<'a, 'c, 'd> {
    pub old: &'a View<'d>,
    pub new: &'a View<'d>,
    pub tables: &'a Tables<'a>,
    pub sites: &'a Sorted<'a>,
    reader: Reader<'c, 'd>,
    /// Sites that relays are still to lead to.
    pub relayed: BTreeMap<Key, SiteEntry>,
    pub found: Findings,
}

impl<'c, 'd> Checker<'_, 'c, 'd> {
    pub(super) fn original(&mut self, at: u64) -> Result<Insn, VerifyError> {
        let code = self.old.code_at(at);
        let insn = code.and_then(|code| self.reader.decode(code, at));
        insn.ok_or_else(|| mismatch(at, "an instruction of the original", "none"))
    }

    pub(super) fn cursor(&mut self, at: u64) -> Cursor<'_, 'c, 'd> {
        Cursor {
            reader: &mut self.reader,
            view: self.new,
            at,
        }
    }

    /// An instruction at its place leads to its stub.
    fn call(&mut self, site: &SiteEntry) -> Result<(), VerifyError> {
        let was = self.original(site.address)?;
        agrees(site, &was)?;
        let code = self.new.code_at(site.address);
        let is = code.and_then(|code| self.reader.decode(code, site.address));
        let is = is.ok_or_else(|| site_error(site, "it holds no instruction"))?;
        let head: &[u8] = match (site.tail, was.bytes().len()) {
            (true, _) => &[0xe9],
            (false, 6) => &[0x67, 0xe8],
            (false, _) => &[0xe8],
        };
        let form = is.bytes().len() == head.len() + 4 && is.bytes().starts_with(head);
        let Some(stub) = is.to.filter(|_| is.verb() == was.verb() && form) else {
            let verb = String::from_utf8_lossy(was.verb());
            return Err(mismatch(
                site.address,
                &format!("{verb} to a stub"),
                &is.text(),
            ));
        };
        // A call must end where it ended: its return address is the original's.
        if !site.tail && is.end() != was.end() {
            return Err(site_error(site, "its return address changed"));
        }
        if !self.is_filled(is.end()..was.end()) {
            return Err(site_error(site, "its instruction has another length"));
        }
        self.enter_code(self.old, site.address..was.end(), "a call site")?;
        let stub = self.setter(site, stub)?;
        self.stub(site, stub)
    }

    /// What an instruction left of the bytes of its predecessor is never executed.
    pub(super) fn is_filled(&self, rest: Range<u64>) -> bool {
        let len = rest.end.checked_sub(rest.start);
        let rest = len.and_then(|len| self.new.at_va(rest.start, len));
        rest.is_some_and(|r| r.iter().all(|&b| b == UNREACHABLE))
    }

    /// The stub is the documented one.
    pub(super) fn stub(&mut self, site: &SiteEntry, at: u64) -> Result<(), VerifyError> {
        let mut code = self.cursor(at);
        code.expect_at(&LEA_R10, "lea r10, [@]", site.desc)?;
        let jump = code.next()?;
        let end = code.at;
        let form = matches!(jump.bytes(), [0xe9, _, _, _, _]);
        let Some(way) = jump.to.filter(|_| form) else {
            return Err(mismatch(jump.at, "jmp to a way", &jump.text()));
        };
        let slot = self.tables.slot(site.probe.slot());
        let does = (slot, site.target, site.indirect);
        self.found.ways.insert((way, does));
        self.enter_added(at..end, "a stub")
    }

    /// The way is the documented one.
    fn way(&mut self, at: u64, (slot, target, indirect): Way) -> Result<(), VerifyError> {
        let mut code = self.cursor(at);
        code.load_slot(slot)?;
        if indirect {
            let to = code.at + 5;
            code.expect_short(&[0x74, 3], "je @", to)?;
        } else {
            code.expect_at(&[0x0f, 0x84], "je @", target)?;
        }
        code.expect(&[0x41, 0xff, 0xe3], "jmp r11")?;
        if indirect {
            code.expect_at(&[0xff, 0x25], "jmp qword ptr [@]", target)?;
        }
        let end = code.at;
        self.enter_added(at..end, "a way")
    }

    /// Added code that is entered like a function.
    pub(super) fn enter_added(
        &mut self,
        range: Range<u64>,
        what: &'static str,
    ) -> Result<(), VerifyError> {
        self.found.places.push(Place {
            at: range.start,
            origin: None,
            depth: 0,
        });
        self.enter_code(self.new, range, what)
    }

    pub(super) fn enter_code(
        &mut self,
        of: &View<'_>,
        range: Range<u64>,
        what: &'static str,
    ) -> Result<(), VerifyError> {
        let code = &self.tables.loads[1];
        let added = code.p_vaddr..code.p_vaddr + code.p_filesz;
        let is_added = added.contains(&range.start) && range.end <= added.end;
        let wants_added = std::ptr::eq(of, self.new);
        let len = range.end.checked_sub(range.start);
        let place = len.and_then(|len| Some((of.offset_of(range.start, len)?, len)));
        match place {
            Some((offset, len)) if is_added == wants_added => {
                self.found.entries.push((offset, len, what));
                Ok(())
            }
            _ => Err(VerifyError::damaged(format!(
                "{what} at {:#x} isn't where it belongs",
                range.start
            ))),
        }
    }
}

/// The site table says of the original's instruction what capstone says.
pub(super) fn agrees(site: &SiteEntry, was: &Insn) -> Result<(), VerifyError> {
    let verb: &[u8] = if site.tail { b"jmp" } else { b"call" };
    let target = if site.indirect { was.memory } else { was.to };
    if was.verb() != verb || target != Some(site.target) || site.indirect && was.to.is_some() {
        return Err(site_error(
            site,
            &format!(
                "the original's `{}` isn't what the site table says",
                was.text()
            ),
        ));
    }
    Ok(())
}

pub(super) fn site_error(site: &SiteEntry, what: &str) -> VerifyError {
    VerifyError::Site {
        site: site.id,
        at: site.address,
        what: what.into(),
    }
}
