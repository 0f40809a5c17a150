//! Relays, and the changed instructions that lead to them, as capstone reads them.

use super::code::{Checker, site_error};
use super::cursor::{LEA_R10, canonical, mismatch};
use super::disassembler::Insn;
use super::error::VerifyError;
use super::tables::{RelayEntry, SiteEntry, number};
use super::unwind::Place;
use ompfuse_format::abi::SiteDesc;

/// What does nothing.
const NOPS: [&[u8]; 3] = [&[0x90], &[0x66, 0x90], &[0x0f, 0x1f, 0x00]];

/// `lea r11, [rip + ...]`.
const LEA_R11: [u8; 3] = [0x4c, 0x8d, 0x1d];

/// How a relay knows a site: a call by its return address, a jump by its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Behind(u64),
    Jump(u64),
}

impl Checker<'_, '_, '_> {
    /// Every relay; of the sites that they are for, each has one.
    pub(super) fn relays(&mut self) -> Result<(), VerifyError> {
        for site in self.tables.sites.iter().filter(|s| s.relayed) {
            let key = self.key(site)?;
            if self.relayed.insert(key, *site).is_some() {
                return Err(site_error(site, "it is listed twice"));
            }
        }
        for relay in &self.tables.relays {
            self.relay(relay)?;
        }
        match self.relayed.values().next() {
            None => Ok(()),
            Some(site) => Err(site_error(site, "no relay leads to it")),
        }
    }

    /// How its relay knows a site.
    fn key(&mut self, site: &SiteEntry) -> Result<Key, VerifyError> {
        let was = self.original(site.address)?;
        let verb: &[u8] = if site.tail { b"jmp" } else { b"call" };
        let by_thunk = match was.to {
            Some(to) => self.leads_on(to, was.verb(), site.tail)?,
            None => was.verb() == verb,
        };
        if !by_thunk || was.memory.is_some() {
            let what = format!(
                "the original's `{}` doesn't go through a register",
                was.text()
            );
            return Err(site_error(site, &what));
        }
        Ok(match site.tail {
            true => Key::Jump(was.at),
            false => Key::Behind(was.end()),
        })
    }

    /// Whether a direct call or jump leads to code that goes on to what a register holds (a thunk), and does what it should: come
    /// back to where the call was, or not.
    fn leads_on(&mut self, to: u64, verb: &[u8], tail: bool) -> Result<bool, VerifyError> {
        if verb == b"call" && self.takes_place(to)? {
            return Ok(tail);
        }
        if (verb == b"jmp") != tail {
            return Ok(false);
        }
        let mut first = self.original(to)?;
        if first.shape() == b"endbr64" {
            first = self.original(first.end())?;
        }
        if first.shape() == b"lfence" {
            let jump = self.original(first.end())?;
            return Ok(jump.verb() == b"jmp"
                && jump.address().is_none()
                && jump.bytes().len() <= 3);
        }
        match first.to.filter(|_| first.verb() == b"call") {
            Some(inner) => self.takes_place(inner),
            None => Ok(false),
        }
    }

    /// Whether the code at an address puts a register in the place of its return address, and returns to it.
    fn takes_place(&mut self, at: u64) -> Result<bool, VerifyError> {
        let store = self.original(at)?;
        // mov [rsp], r64
        let stores =
            matches!(store.bytes(), [0x48 | 0x4c, 0x89, modrm, 0x24] if modrm & 0xc7 == 0x04);
        Ok(stores && self.original(store.end())?.verb() == b"ret")
    }

    /// A relay tells its sites apart, and all that makes the address which they call makes that of the relay.
    fn relay(&mut self, entry: &RelayEntry) -> Result<(), VerifyError> {
        let start = entry.code.start;
        self.found.places.push(Place {
            at: start,
            origin: None,
            depth: 0,
        });
        let mut sites: Vec<SiteEntry> = Vec::new();
        let mut code = self.cursor(start);
        code.expect(&[0xf3, 0x0f, 0x1e, 0xfa], "endbr64")?;
        let mut at = code.at;
        let last = loop {
            let mut code = self.cursor(at);
            let insn = code.next()?;
            let is_lea = insn.bytes().starts_with(&LEA_R11) && insn.bytes().len() == 7;
            let Some(behind) = insn.memory.filter(|_| is_lea) else {
                break insn;
            };
            code.expect(&[0x4c, 0x39, 0x1c, 0x24], "cmp qword ptr [rsp], r11")?;
            let branch = code.next()?;
            at = code.at;
            let stub = branch
                .to
                .filter(|_| branch.verb() == b"je" && canonical(&branch));
            let stub =
                stub.ok_or_else(|| mismatch(branch.at, "a jump to a stub", &branch.text()))?;
            let site = self.relayed.remove(&Key::Behind(behind));
            let site = site.ok_or_else(|| mismatch(insn.at, "the end of a site", &insn.text()))?;
            self.stub(&site, stub)?;
            sites.push(site);
        };
        let jumps = last
            .to
            .filter(|_| last.verb() == b"jmp" && canonical(&last));
        let mut tail = None;
        if let Some(stub) = jumps
            && let Some(at) = self.site_of_stub(stub)
            && let Some(site) = self.relayed.remove(&Key::Jump(at))
        {
            tail = Some(stub);
            self.stub(&site, stub)?;
            sites.push(site);
        }
        let first = sites
            .first()
            .copied()
            .ok_or_else(|| mismatch(start, "a relay", "one without sites"))?;
        let target = (first.target, first.indirect);
        if let Some(other) = sites.iter().find(|s| (s.target, s.indirect) != target) {
            return Err(site_error(other, "its relay is another's"));
        }
        let passes = match (tail, target) {
            (Some(_), _) => true,
            (None, (to, false)) => jumps == Some(to),
            (None, (slot, true)) => {
                last.verb() == b"jmp"
                    && last.bytes().starts_with(&[0xff, 0x25])
                    && last.memory == Some(slot)
            }
        };
        if !passes || last.end() != entry.code.end || entry.loads.is_empty() {
            return Err(mismatch(
                last.at,
                "a jump to what is called, at the end",
                &last.text(),
            ));
        }
        self.enter_code(self.new, entry.code.clone(), "a relay")?;
        for &load in &entry.loads {
            self.load(load, start, target)?;
        }
        // What makes an address instead of a distance is of no use to code that still adds it to something.
        let mut reads = false;
        for &load in &entry.loads {
            let was = self.original(load)?;
            reads |= !(was.bytes().len() == 10 && matches!(was.bytes()[1], 0xb8..=0xbf));
        }
        if target.1 && !reads {
            return Err(mismatch(
                start,
                "a relay whose address something takes",
                "none",
            ));
        }
        Ok(())
    }

    /// The address of the site that a stub names.
    fn site_of_stub(&mut self, stub: u64) -> Option<u64> {
        let lea = self.cursor(stub).next().ok()?;
        let desc = lea.memory.filter(|_| lea.bytes().starts_with(&LEA_R10))?;
        let id = desc.checked_sub(self.tables.sites_va)? / SiteDesc::LEN as u64;
        Some(self.tables.sites.get(usize::try_from(id).ok()?)?.address)
    }

    /// The instruction in an original's place that takes its bytes together with some that do nothing.
    fn only(&mut self, was: &Insn) -> Result<Insn, VerifyError> {
        let mut code = self.cursor(was.at);
        let mut only = None;
        while code.at < was.end() {
            let insn = code.next()?;
            let does_nothing = NOPS.contains(&insn.bytes());
            if !does_nothing && only.replace(insn.clone()).is_some() || insn.end() > was.end() {
                return Err(mismatch(insn.at, "one instruction and `nop`", &insn.text()));
            }
        }
        only.ok_or_else(|| mismatch(was.at, "an instruction", "none"))
    }

    /// Whether an instruction takes the register that holds a distance in a table, instead of what is there: what makes the
    /// distance makes the relay's address.
    fn takes_distance(was: &Insn, is: &Insn) -> bool {
        let text = was.text();
        let table = text.strip_suffix(']').and_then(|t| {
            let (head, sum) = t.split_once("qword ptr [")?;
            Some((head, sum.split_once(" + ")?))
        });
        let is_register =
            |r: &str| r.starts_with('r') && r.bytes().all(|b| b.is_ascii_alphanumeric());
        let known = [&b"mov"[..], b"call", b"jmp"].contains(&was.verb());
        table.is_some_and(|(head, (a, b))| {
            let mut either = [a, b].into_iter();
            // A call's end is its return address.
            known
                && is.end() == was.end()
                && is_register(a)
                && is_register(b)
                && either.any(|r| is.text() == format!("{head}{r}"))
        })
    }

    /// An instruction that made the address of what is called makes the relay's, and nothing else of it changed.
    fn load(&mut self, at: u64, relay: u64, target: (u64, bool)) -> Result<(), VerifyError> {
        let was = self.original(at)?;
        let is = self.only(&was)?;
        let (old, new) = (was.bytes(), is.bytes());
        let (called, indirect) = target;
        let relative = old.len() == 7
            && new.len() == 7
            && matches!(old[0], 0x48 | 0x4c)
            && (old[0], old[2]) == (new[0], new[2])
            && was.memory == Some(called)
            && is.memory == Some(relay);
        let number = |bytes| number(bytes, 2, 8).unwrap_or(0);
        let right = match (old[1], indirect) {
            (0x8b, true) if was.memory.is_none() => Self::takes_distance(&was, &is),
            (0x8b, true) | (0x8d, false) => relative && new[1] == 0x8d,
            (0xb8..=0xbf, false) => {
                old.len() == 10
                    && new.len() == 10
                    && matches!(old[0], 0x48 | 0x49)
                    && old[..2] == new[..2]
                    && number(new).wrapping_sub(number(old)) == relay.wrapping_sub(called)
            }
            (0xb8..=0xbf, true) => {
                let register = (old[0] & 1) << 2 == new[0] & 4 && old[1] & 7 == new[2] >> 3 & 7;
                old.len() == 10
                    && new.len() == 7
                    && is.at == at
                    && matches!((old[0], new[0], new[1]), (0x48 | 0x49, 0x48 | 0x4c, 0x8d))
                    && register
                    && is.memory == Some(relay)
            }
            (_, true) => Self::takes_distance(&was, &is),
            _ => false,
        };
        if !right {
            let expected = format!("what makes {relay:#x} instead of {called:#x}");
            return Err(mismatch(at, &expected, &is.text()));
        }
        self.enter_code(self.old, at..was.end(), "a load")
    }
}
