//! Call sites, stubs, windows and trampolines, as capstone reads them.

use super::cursor::{Cursor, LEA_R10, canonical, mismatch, same_form};
use super::disassembler::{Disassembler, Insn};
use super::error::VerifyError;
use super::ledger::Ledger;
use super::relay::Key;
use super::tables::{SiteEntry, Tables, WindowEntry};
use super::unwind::Place;
use super::view::View;
use crate::stubs::UNREACHABLE;
use ompfuse_format::abi::{Probe, SLOT_INLINE, SiteDesc};
use std::collections::{BTreeMap, BTreeSet};

/// How much was checked.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub calls: usize,
    pub probes: usize,
    pub displaced: usize,
    /// Places at which the unwinder has to find the caller's frame.
    pub places: Vec<Place>,
}

/// Checks every site with a probe, and that there is no other changed or added code.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables,
    ledger: &mut Ledger,
) -> Result<Counts, VerifyError> {
    let mut checker = Checker {
        old,
        new,
        tables,
        ledger,
        disassembler: Disassembler::new()?,
        calls: BTreeMap::new(),
        relayed: BTreeMap::new(),
        probes: BTreeMap::new(),
        counts: Counts::default(),
    };
    checker.sort_sites()?;
    for window in &tables.windows {
        checker.window(window)?;
    }
    for relay in &tables.relays {
        checker.relay(relay)?;
    }
    if let Some(site) = checker.relayed.values().next() {
        return Err(site_error(site, "no relay leads to it"));
    }
    // What is left of the calls lies in no window.
    for call in std::mem::take(&mut checker.calls).into_values() {
        checker.call(call)?;
    }
    match checker.probes.values().flatten().next() {
        None => Ok(checker.counts),
        Some(&id) => {
            let at = tables.sites[id as usize].address;
            Err(VerifyError::Site {
                site: id,
                at,
                what: "it has no trampoline".into(),
            })
        }
    }
}

pub(super) struct Checker<'a, 'd> {
    pub(super) old: &'a View<'d>,
    pub(super) new: &'a View<'d>,
    pub(super) tables: &'a Tables,
    ledger: &'a mut Ledger,
    disassembler: Disassembler,
    /// Call sites that are still to be checked, by address.
    calls: BTreeMap<u64, SiteEntry>,
    /// Sites that relays are still to lead to.
    pub(super) relayed: BTreeMap<Key, SiteEntry>,
    /// Inline probes that are still to be found, by address.
    probes: BTreeMap<u64, BTreeSet<u32>>,
    pub(super) counts: Counts,
}

impl Checker<'_, '_> {
    fn sort_sites(&mut self) -> Result<(), VerifyError> {
        for site in &self.tables.sites {
            let twice = match site.probe {
                None => false,
                Some(_) if site.inline => {
                    self.counts.probes += 1;
                    !self.probes.entry(site.address).or_default().insert(site.id)
                }
                Some(_) => {
                    self.counts.calls += 1;
                    match site.relayed {
                        true => {
                            let key = self.key(site)?;
                            self.relayed.insert(key, *site).is_some()
                        }
                        false => self.calls.insert(site.address, *site).is_some(),
                    }
                }
            };
            if twice {
                return Err(site_error(site, "it is listed twice"));
            }
        }
        Ok(())
    }

    pub(super) fn original(&self, at: u64) -> Result<Insn, VerifyError> {
        let code = self.old.code_at(at);
        let insn = code.and_then(|code| self.disassembler.decode(code, at));
        insn.ok_or_else(|| mismatch(at, "an instruction of the original", "none"))
    }

    pub(super) fn cursor(&self, at: u64) -> Cursor<'_> {
        Cursor {
            disassembler: &self.disassembler,
            view: self.new,
            at,
        }
    }

    /// An instruction at its place leads to its stub.
    fn call(&mut self, site: SiteEntry) -> Result<(), VerifyError> {
        let was = self.original(site.address)?;
        agrees(&site, &was)?;
        let code = self.new.code_at(site.address);
        let is = code.and_then(|code| self.disassembler.decode(code, site.address));
        let is = is.ok_or_else(|| site_error(&site, "it holds no instruction"))?;
        let head: &[u8] = match (site.tail, was.bytes.len()) {
            (true, _) => &[0xe9],
            (false, 6) => &[0x67, 0xe8],
            (false, _) => &[0xe8],
        };
        let form = is.bytes.len() == head.len() + 4 && is.bytes.starts_with(head);
        let Some(stub) = is.to.filter(|_| is.verb == was.verb && form) else {
            return Err(mismatch(
                site.address,
                &format!("{} to a stub", was.verb),
                &is.text,
            ));
        };
        // A call must end where it ended: its return address is the original's.
        if !site.tail && is.end() != was.end() {
            return Err(site_error(&site, "its return address changed"));
        }
        let rest = was
            .end()
            .checked_sub(is.end())
            .and_then(|n| self.new.at_va(is.end(), n));
        if rest.is_none_or(|r| r.iter().any(|&b| b != UNREACHABLE)) {
            return Err(site_error(&site, "its instruction has another length"));
        }
        self.enter_code(self.old, site.address, was.end(), "a call site")?;
        self.stub(&site, stub)
    }

    /// The stub is the documented one.
    pub(super) fn stub(&mut self, site: &SiteEntry, at: u64) -> Result<(), VerifyError> {
        let slot = self.tables.slot(site.probe.map_or(0, Probe::slot));
        let mut code = self.cursor(at);
        code.load_slot(slot)?;
        if site.indirect {
            code.expect(&[0x74, 10], &format!("je {:#x}", code.at + 12))?;
        } else {
            code.expect(&[0x0f, 0x84], &format!("je {:#x}", site.target))?;
        }
        code.expect(&LEA_R10, &format!("lea r10, [{:#x}]", site.desc))?;
        code.expect(&[0x41, 0xff, 0xe3], "jmp r11")?;
        if site.indirect {
            code.expect(
                &[0xff, 0x25],
                &format!("jmp qword ptr [{:#x}]", site.target),
            )?;
        }
        let end = code.at;
        self.counts.places.push(Place {
            at,
            origin: None,
            depth: 0,
        });
        self.enter_code(self.new, at, end, "a stub")
    }

    /// The window leads to its trampoline, which does what the window did.
    fn window(&mut self, entry: &WindowEntry) -> Result<(), VerifyError> {
        let (window, trampoline) = (entry.window.clone(), entry.trampoline.clone());
        let mut jump = self.cursor(window.start);
        let jump = jump.expect(&[0xe9], &format!("jmp {:#x}", trampoline.start))?;
        let rest = window
            .end
            .checked_sub(jump.end())
            .and_then(|n| self.new.at_va(jump.end(), n));
        if rest.is_none_or(|r| r.iter().any(|&b| b != UNREACHABLE)) {
            return Err(mismatch(
                jump.end(),
                "int3 up to the window's end",
                "something else",
            ));
        }
        self.enter_code(self.old, window.start, window.end, "a window")?;
        self.enter_code(self.new, trampoline.start, trampoline.end, "a trampoline")?;
        let mut ended = false;
        let mut at = window.start;
        let mut to = trampoline.start;
        while at < window.end {
            let was = self.original(at)?;
            if was.end() > window.end {
                return Err(mismatch(at, "an instruction within its window", &was.text));
            }
            if ended {
                if !matches!(was.verb.as_str(), "nop" | "int3") {
                    return Err(mismatch(
                        at,
                        "padding behind the last instruction",
                        &was.text,
                    ));
                }
            } else {
                to = self.probes_before(at, to)?;
                (to, ended) = self.displaced(&was, to, window.end)?;
                self.counts.displaced += 1;
            }
            at = was.end();
        }
        if !ended {
            self.counts.places.push(Place {
                at: to,
                origin: Some(window.end),
                depth: 0,
            });
            to = self
                .cursor(to)
                .expect(&[0xe9], &format!("jmp {:#x}", window.end))?
                .end();
        }
        match to == trampoline.end {
            true => Ok(()),
            false => Err(mismatch(to, "the end of the trampoline", "more code")),
        }
    }

    /// Every probe of the instruction at `site`, once. Returns the address behind them.
    fn probes_before(&mut self, site: u64, mut to: u64) -> Result<u64, VerifyError> {
        let mut wanted = self.probes.remove(&site).unwrap_or_default();
        while !wanted.is_empty() {
            let slot = self.tables.slot(SLOT_INLINE);
            let mut code = self.cursor(to);
            let mut marks = vec![(to, 0)];
            code.expect(&[0x48, 0x8d, 0x64, 0x24, 0x80], "lea rsp, [rsp - 0x80]")?;
            marks.push((code.at, 128));
            code.expect(&[0x9c], "pushfq")?;
            marks.push((code.at, 136));
            code.expect(&[0x41, 0x53], "push r11")?;
            marks.push((code.at, 144));
            code.expect(&[0x41, 0x52], "push r10")?;
            marks.push((code.at, 152));
            code.load_slot(slot)?;
            code.expect(&[0x74, 10], &format!("je {:#x}", code.at + 12))?;
            let lea = code.next()?;
            let desc = lea.memory.unwrap_or(0);
            let id = desc.wrapping_sub(self.tables.sites_va) / SiteDesc::LEN as u64;
            let known = u32::try_from(id).ok().and_then(|id| wanted.take(&id));
            let entry = known.and_then(|id| self.tables.sites.get(id as usize));
            if !lea.bytes.starts_with(&LEA_R10) || entry.is_none_or(|e| e.desc != desc) {
                return Err(mismatch(
                    lea.at,
                    &format!("a probe of the site at {site:#x}"),
                    &lea.text,
                ));
            }
            code.expect(&[0x41, 0xff, 0xd3], "call r11")?;
            marks.push((code.at, 152));
            code.expect(&[0x41, 0x5a], "pop r10")?;
            marks.push((code.at, 144));
            code.expect(&[0x41, 0x5b], "pop r11")?;
            marks.push((code.at, 136));
            code.expect(&[0x9d], "popfq")?;
            marks.push((code.at, 128));
            code.expect(
                &[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0],
                "lea rsp, [rsp + 0x80]",
            )?;
            to = code.at;
            let place = |(at, depth)| Place {
                at,
                origin: Some(site),
                depth,
            };
            self.counts.places.extend(marks.into_iter().map(place));
        }
        Ok(to)
    }

    /// The instruction at `to` does what `was` did. Returns the address behind it, and whether control ends there.
    fn displaced(&mut self, was: &Insn, to: u64, end: u64) -> Result<(u64, bool), VerifyError> {
        let call = self.calls.remove(&was.at);
        if let Some(site) = &call {
            agrees(site, was)?;
        }
        let mut code = self.cursor(to);
        if was.verb == "call" {
            // A call returns to the original code, so that it must be the window's last instruction.
            if was.end() != end {
                return Err(mismatch(was.at, "a call at the window's end", &was.text));
            }
            code.expect(&[0x48, 0x8d, 0x64, 0x24, 0xf8], "lea rsp, [rsp - 8]")?;
            code.expect(&[0x41, 0x53], "push r11")?;
            code.expect(&[0x4c, 0x8d, 0x1d], &format!("lea r11, [{end:#x}]"))?;
            code.expect(
                &[0x4c, 0x89, 0x5c, 0x24, 0x08],
                "mov qword ptr [rsp + 8], r11",
            )?;
            code.expect(&[0x41, 0x5b], "pop r11")?;
        }
        let is = code.next()?;
        let behind = code.at;
        let depth = if was.verb == "call" { 8 } else { 0 };
        self.counts.places.push(Place {
            at: is.at,
            origin: Some(was.at),
            depth,
        });
        if let Some(site) = call {
            let stub = is.to.filter(|_| is.verb == "jmp" && canonical(&is));
            let stub = stub.ok_or_else(|| mismatch(is.at, "a jump to a stub", &is.text))?;
            self.stub(&site, stub)?;
            return Ok((behind, true));
        }
        let expected = match was.verb.as_str() {
            "call" => was.text.replacen("call", "jmp", 1),
            _ => was.text.clone(),
        };
        let form = match was.verb.as_str() {
            "call" if was.is_branch() => canonical(&is),
            // The form of an indirect jump for that of an indirect call: the text says all.
            "call" => is.bytes.len() == was.bytes.len(),
            _ => same_form(was, &is),
        };
        if is.text != expected || !form {
            return Err(mismatch(is.at, &expected, &is.text));
        }
        Ok((behind, was.ends() || was.verb == "call"))
    }

    pub(super) fn enter_code(
        &mut self,
        of: &View<'_>,
        start: u64,
        end: u64,
        what: &'static str,
    ) -> Result<(), VerifyError> {
        let added = self.tables.loads[1].p_vaddr
            ..self.tables.loads[1].p_vaddr + self.tables.loads[1].p_filesz;
        let is_added = added.contains(&start) && end <= added.end;
        let wants_added = matches!(what, "a stub" | "a trampoline" | "a relay");
        let len = end.checked_sub(start);
        let place = len.and_then(|len| Some((of.offset_of(start, len)?, len)));
        match place {
            Some((offset, len)) if is_added == wants_added => self.ledger.enter(offset, len, what),
            _ => Err(VerifyError::damaged(format!(
                "{what} at {start:#x} isn't where it belongs"
            ))),
        }
    }
}

/// The site table says of the original's instruction what capstone says.
fn agrees(site: &SiteEntry, was: &Insn) -> Result<(), VerifyError> {
    let verb = if site.tail { "jmp" } else { "call" };
    let target = if site.indirect { was.memory } else { was.to };
    if was.verb != verb || target != Some(site.target) || site.indirect && was.to.is_some() {
        return Err(site_error(
            site,
            &format!(
                "the original's `{}` isn't what the site table says",
                was.text
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
