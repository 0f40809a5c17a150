//! What the patched file says of itself: note, module header, site and window tables, self-description.

mod constants;
mod places;

use super::error::VerifyError;
use super::ledger::Ledger;
use super::view::View;
use crate::describe::{RELAY_LEN, WINDOW_LEN, decode, encodes, identity, sha256};
use goblin::elf::program_header::ProgramHeader;
use ompfuse_format::Construct;
use ompfuse_format::abi::{
    ABI_VERSION, Constants, FLAG_CHUNKS, FLAG_INDIRECT, FLAG_RELAYED, FLAG_TAIL, FLAG_UNCOUNTED,
    FLAG_UNSIGNED, MODULE_MAGIC, ModuleHeader, OWN_FUNCTIONS, Probe, SLOTS, SiteDesc,
};
use ompfuse_format::event::exact;
use ompfuse_format::site::{Mechanism, Outcome, SelfDescription, SiteInfo};
use places::{find_note, new_loads, own_functions};
use std::borrow::Cow;
use std::ops::Range;

/// A checked entry of the site table: a site with a probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct SiteEntry {
    pub id: u32,
    /// Address of the entry.
    pub desc: u64,
    /// Address of the site.
    pub address: u64,
    /// What `target_rel` leads to.
    pub target: u64,
    pub indirect: bool,
    pub tail: bool,
    /// It stays as it is, and a relay leads to its stub.
    pub relayed: bool,
    /// It has a trampoline rather than a stub.
    pub inline: bool,
    pub probe: Probe,
}

/// A window and its trampoline.
#[derive(Debug, Clone)]
pub(super) struct WindowEntry {
    pub window: Range<u64>,
    pub trampoline: Range<u64>,
    /// Where the jump to the trampoline stands, if not at the window's start.
    pub island: Option<u64>,
}

/// A constant that is added to a thread's count of instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct IncrementEntry {
    /// Address of the instruction that it belongs to.
    pub at: u64,
    /// 0: before it; 1: behind it, if it doesn't jump; 2: if it does.
    pub place: u64,
    /// For each event of [`exact::EVENTS`].
    pub amounts: [i32; exact::COUNT],
    /// x86 number of the register that is free there; none: it is saved.
    pub scratch: Option<u8>,
    pub term: Option<TermEntry>,
}

/// Multiples of a register that are added beside a constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct TermEntry {
    /// x86 numbers of the register, and of another one beside the scratch register.
    pub register: u8,
    pub spare: u8,
    /// How many of the two are kept on the stack.
    pub kept: usize,
    /// For each event.
    pub factors: [i64; exact::COUNT],
}

/// A relay, and what leads to it.
#[derive(Debug, Clone)]
pub(super) struct RelayEntry {
    pub code: Range<u64>,
    pub loads: Vec<u64>,
}

/// The tables.
#[derive(Debug)]
pub(super) struct Tables<'p> {
    /// The new segments: read-only, code, data.
    pub loads: [ProgramHeader; 3],
    pub note: ProgramHeader,
    pub header_va: u64,
    pub sites_va: u64,
    pub sites: Vec<SiteEntry>,
    pub windows: Vec<WindowEntry>,
    /// All islands, ascending.
    pub islands: Vec<u64>,
    pub relays: Vec<RelayEntry>,
    /// By address.
    pub increments: Vec<IncrementEntry>,
    /// How many the header says that there are.
    counts: u64,
    pub description: Cow<'p, SelfDescription>,
    text: Range<u64>,
    /// First address behind the site table and its constants.
    sites_end: u64,
    /// First address behind the table of constants.
    pub tables_end: u64,
    identity: u64,
}

/// Little-endian number at a place in bytes.
pub(super) fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(len)?)?;
    Some(raw.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

impl<'p> Tables<'p> {
    /// `planned`: the description that the file should have, if that is known.
    pub(super) fn read(
        old: &View<'_>,
        new: &View<'_>,
        planned: Option<&'p SelfDescription>,
        passed: &(dyn Fn(f64) + Sync),
    ) -> Result<Tables<'p>, VerifyError> {
        let damaged = |what: &str| VerifyError::damaged(what);
        let (note, desc) = find_note(new)?;
        if desc.abi_version != ABI_VERSION || desc.reserved != 0 {
            return Err(VerifyError::damaged(format!(
                "the note is of another version of the interface ({}, not {ABI_VERSION})",
                desc.abi_version
            )));
        }
        let loads = new_loads(old, new)?;
        let text_end = desc.description_offset.checked_add(desc.description_len);
        let text = desc.description_offset..text_end.unwrap_or(0);
        let json = new.at_offset(desc.description_offset, desc.description_len);
        let json = json.ok_or_else(|| damaged("the self-description lies outside the file"))?;
        let unreadable =
            |e| VerifyError::damaged(format!("the self-description can't be read: {e}"));
        let described = || match planned {
            None => Ok(Cow::Owned(decode(json).map_err(unreadable)?)),
            Some(planned) if encodes(json, planned).map_err(unreadable)? => {
                Ok(Cow::Borrowed(planned))
            }
            Some(_) => Err(VerifyError::NotThePlan {
                what: "the description",
                offset: desc.description_offset,
            }),
        };
        let (description, hash) = rayon::join(described, || sha256(old.bytes, passed));
        let description: Cow<'p, SelfDescription> = description?;
        if description.original_sha256 != hash {
            let expected = description.into_owned().original_sha256;
            return Err(VerifyError::OtherOriginal { expected });
        }
        let mut tables = Tables {
            loads,
            note,
            header_va: desc.header_va,
            sites_va: 0,
            sites: Vec::new(),
            windows: Vec::new(),
            islands: Vec::new(),
            relays: Vec::new(),
            increments: Vec::new(),
            counts: 0,
            description,
            text,
            sites_end: 0,
            tables_end: 0,
            identity: 0,
        };
        let n_sites = tables.read_header(old, new)?;
        tables.read_sites(new, n_sites)?;
        tables.read_relays(new)?;
        tables.read_increments(new)?;
        Ok(tables)
    }

    /// File range of the self-description.
    pub(super) fn text(&self) -> Range<u64> {
        self.text.clone()
    }

    /// File range of the added code.
    pub(super) fn code(&self) -> Range<u64> {
        let code = &self.loads[1];
        code.p_offset..code.p_offset + code.p_filesz
    }

    /// Address of a slot of the module header.
    pub(super) fn slot(&self, slot: usize) -> u64 {
        self.header_va + (ModuleHeader::SLOTS_OFFSET + 8 * slot) as u64
    }

    /// Accounts for the tables.
    pub(super) fn enter(&self, ledger: &mut Ledger) -> Result<(), VerifyError> {
        let [read_only, _, data] = &self.loads;
        ledger.enter(self.note.p_offset, self.note.p_filesz, "the note")?;
        let tables = read_only.p_offset + (self.sites_va - read_only.p_vaddr);
        ledger.enter(tables, self.tables_end - self.sites_va, "the site table")?;
        ledger.enter(data.p_offset, ModuleHeader::LEN as u64, "the module header")?;
        ledger.enter(
            self.text.start,
            self.text.end - self.text.start,
            "the self-description",
        )
    }

    fn read_header(&mut self, old: &View<'_>, new: &View<'_>) -> Result<usize, VerifyError> {
        let damaged = || VerifyError::damaged("the module header is damaged");
        let header = new
            .at_va(self.header_va, ModuleHeader::LEN as u64)
            .ok_or_else(damaged)?;
        let word = |at, len| number(header, at, len).ok_or_else(damaged);
        let slots = &header[ModuleHeader::SLOTS_OFFSET..][..8 * SLOTS];
        let rel_at = ModuleHeader::SITES_REL_OFFSET;
        let first = OWN_FUNCTIONS
            .map(|f| f.0)
            .into_iter()
            .min()
            .unwrap_or(SLOTS);
        let sound = self.header_va == self.loads[2].p_vaddr
            && header[..8] == MODULE_MAGIC
            && word(8, 4)? == u64::from(ABI_VERSION)
            && slots[..8 * first].iter().all(|&b| b == 0)
            && own_functions(old, self.header_va, slots)
            && word(rel_at - 8, 8)? == self.header_va
            && word(rel_at + 8, 4)? == 0;
        if !sound {
            return Err(damaged());
        }
        self.sites_va = (self.header_va + rel_at as u64).wrapping_add(word(rel_at, 8)?);
        self.identity = word(ModuleHeader::IDENTITY_OFFSET, 8)?;
        self.counts = word(ModuleHeader::COUNTS_OFFSET, 4)?;
        Ok(word(12, 4)? as usize)
    }

    fn read_sites(&mut self, new: &View<'_>, count: usize) -> Result<(), VerifyError> {
        let table = self.in_read_only(new, self.sites_va, (count * SiteDesc::LEN) as u64)?;
        let mut constants = self.sites_va + table.len() as u64;
        self.sites.reserve(count);
        for (raw, at) in table
            .chunks_exact(SiteDesc::LEN)
            .zip((self.sites_va..).step_by(SiteDesc::LEN))
        {
            let entry = self.site(new, raw, at, &mut constants)?;
            self.sites.push(entry);
        }
        let probed =
            |s: &&SiteInfo| s.outcome == Outcome::Patched && s.mechanism != Mechanism::Implied;
        let probed = self.description.sites.iter().filter(probed).map(|s| s.id);
        if !probed.eq(self.sites.iter().map(|s| s.id)) {
            return Err(VerifyError::damaged(
                "the self-description and the site table disagree about the sites with a probe",
            ));
        }
        self.read_windows(new, constants)
    }

    /// Decodes and checks an entry. `raw` has the right length; `constants`: where those of the next site that has some are.
    fn site(
        &self,
        new: &View<'_>,
        raw: &[u8],
        desc: u64,
        constants: &mut u64,
    ) -> Result<SiteEntry, VerifyError> {
        let word = |at, len| number(raw, at, len).unwrap_or(0);
        let relative = |at: usize| {
            let distance = word(at, 4) as u32 as i32;
            (desc + at as u64).wrapping_add_signed(i64::from(distance))
        };
        let id = word(8, 4) as u32;
        let info = self.description.sites.get(id as usize);
        let info = info.ok_or_else(|| {
            VerifyError::damaged(format!("the site table has an entry for site {id}"))
        })?;
        let error = |what: &str| VerifyError::Site {
            site: id,
            at: info.address.0,
            what: what.into(),
        };
        let [probe, construct, flags, sizes] = [raw[16], raw[17], raw[18], raw[19]];
        let identity = info.id == id
            && word(12, 4) == u64::from(info.region)
            && (info.region as usize) < self.description.sites.len()
            && Construct::from_number(construct) == Some(info.construct);
        if !identity {
            return Err(error(
                "its entry in the site table isn't that of the self-description",
            ));
        }
        if relative(SiteDesc::HEADER_REL_OFFSET) != self.header_va || sizes & 0xf > 8 {
            return Err(error("its entry in the site table is damaged"));
        }
        let probe = Probe::from_number(probe).ok_or_else(|| error("its probe is unknown"))?;
        let inline = info.mechanism == Mechanism::Inline || probe.is_inline();
        let allowed = match inline {
            true => FLAG_UNSIGNED | FLAG_CHUNKS,
            false => FLAG_UNSIGNED | FLAG_CHUNKS | FLAG_INDIRECT | FLAG_TAIL | FLAG_RELAYED,
        };
        let counted = self.description.binary.counted.as_ref();
        let is_uncounted = counted.is_some_and(|counted| counted.leaves_out(id));
        let other = is_uncounted != (flags & FLAG_UNCOUNTED != 0);
        let wild = inline && word(0, 4) != 0;
        if flags & !(allowed | FLAG_UNCOUNTED) != 0 || wild || other {
            return Err(error(
                "its entry in the site table holds what its probe doesn't have",
            ));
        }
        if word(SiteDesc::CONSTANTS_REL_OFFSET, 4) != 0 {
            let len = Constants::LEN as u64;
            let own = self.in_read_only(new, *constants, len)?;
            let here = relative(SiteDesc::CONSTANTS_REL_OFFSET) == *constants;
            if !here || own.iter().all(|&b| b == 0) {
                return Err(error("its constants are misplaced"));
            }
            *constants += len;
        }
        Ok(SiteEntry {
            id,
            desc,
            address: info.address.0,
            target: relative(0),
            indirect: flags & FLAG_INDIRECT != 0,
            tail: flags & FLAG_TAIL != 0,
            relayed: flags & FLAG_RELAYED != 0,
            inline,
            probe,
        })
    }

    /// `at`: behind the site table.
    fn read_windows(&mut self, new: &View<'_>, at: u64) -> Result<(), VerifyError> {
        let damaged = || VerifyError::damaged("the window table is damaged");
        self.sites_end = at;
        let count = number(self.in_read_only(new, at, 8)?, 0, 8).ok_or_else(damaged)?;
        let len = count.checked_mul(WINDOW_LEN).ok_or_else(damaged)?;
        let table = self.in_read_only(new, at + 8, len)?;
        self.tables_end = at + 8 + len;
        let mut behind = 0;
        for raw in table.chunks_exact(WINDOW_LEN as usize) {
            let word = |at, len| number(raw, at, len).ok_or_else(damaged);
            let range = |start: u64, len: u64| Some(start..start.checked_add(len)?);
            let window = range(word(0, 8)?, word(16, 4)?).ok_or_else(damaged)?;
            let trampoline = range(word(8, 8)?, word(20, 4)?).ok_or_else(damaged)?;
            if window.start < behind {
                return Err(damaged());
            }
            behind = window.end;
            let island = Some(word(24, 8)?).filter(|&at| at != 0);
            self.islands.extend(island);
            self.windows.push(WindowEntry {
                window,
                trampoline,
                island,
            });
        }
        self.islands.sort_unstable();
        Ok(())
    }

    fn read_relays(&mut self, new: &View<'_>) -> Result<(), VerifyError> {
        let damaged = || VerifyError::damaged("the relay table is damaged");
        let word = |raw: &[u8], at, len| number(raw, at, len).ok_or_else(damaged);
        let count = word(self.in_read_only(new, self.tables_end, 8)?, 0, 8)?;
        self.tables_end += 8;
        for _ in 0..count {
            let head = self.in_read_only(new, self.tables_end, RELAY_LEN)?;
            let start = word(head, 0, 8)?;
            let end = start.checked_add(word(head, 8, 4)?).ok_or_else(damaged)?;
            let len = 8 * word(head, 12, 4)?;
            let loads = self.in_read_only(new, self.tables_end + RELAY_LEN, len)?;
            let loads: Result<_, _> = loads.chunks_exact(8).map(|l| word(l, 0, 8)).collect();
            self.tables_end += RELAY_LEN + len;
            self.relays.push(RelayEntry {
                code: start..end,
                loads: loads?,
            });
        }
        Ok(())
    }

    /// The module's identity is that of the original and of the site table.
    pub(super) fn check_identity(&self, new: &View<'_>) -> Result<(), VerifyError> {
        let table = self.in_read_only(new, self.sites_va, self.sites_end - self.sites_va)?;
        match identity(&self.description.original_sha256, table) == self.identity {
            true => Ok(()),
            false => Err(VerifyError::damaged(
                "the module's identity isn't that of its site table",
            )),
        }
    }

    fn in_read_only<'d>(&self, new: &View<'d>, va: u64, len: u64) -> Result<&'d [u8], VerifyError> {
        let segment = &self.loads[0];
        let inside = va >= segment.p_vaddr && va - segment.p_vaddr <= segment.p_filesz;
        let bytes = new.at_va(va, len).filter(|_| inside);
        bytes.ok_or_else(|| VerifyError::damaged("a table lies outside the read-only segment"))
    }
}
