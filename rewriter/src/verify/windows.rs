//! Windows and their trampolines.

use super::code::{Checker, agrees};
use super::counts::{BEFORE, BEHIND, TAKEN};
use super::cursor::{LEA_R10, canonical, mismatch, same_form};
use super::disassembler::{Insn, text};
use super::error::VerifyError;
use super::tables::WindowEntry;
use super::unwind::Place;
use crate::stubs::JUMP_LEN;
use ompfuse_format::abi::SLOT_INLINE;
use std::ops::Range;

impl Checker<'_, '_, '_> {
    /// The window leads to its trampoline, which does what the window did.
    pub(super) fn window(&mut self, entry: &WindowEntry) -> Result<(), VerifyError> {
        let (window, trampoline) = (entry.window.clone(), entry.trampoline.clone());
        let mut jump = self.cursor(window.start);
        let jump = match entry.island {
            None => jump.expect_at(&[0xe9], "jmp @", trampoline.start)?,
            Some(island) => {
                let distance = island.wrapping_sub(window.start.wrapping_add(2));
                let jump = jump.expect_short(&[0xeb, distance as u8], "jmp @", island)?;
                self.island(entry, island)?;
                jump
            }
        };
        self.filled_up(jump.end()..window.end)?;
        self.enter_code(self.old, window.clone(), "a window")?;
        self.enter_code(self.new, trampoline.clone(), "a trampoline")?;
        let mut ended = false;
        let mut ends = Vec::new();
        let mut at = window.start;
        let mut to = trampoline.start;
        while at < window.end {
            let was = self.original(at)?;
            if was.end() > window.end {
                return Err(mismatch(
                    at,
                    "an instruction within its window",
                    &was.text(),
                ));
            }
            if ended {
                if !matches!(was.verb(), b"nop" | b"int3") {
                    return Err(mismatch(
                        at,
                        "padding behind the last instruction",
                        &was.text(),
                    ));
                }
            } else {
                to = self.probes_before(at, to)?;
                if let Some(entry) = self.increment_at(at, BEFORE) {
                    to = self.increment(entry, to)?;
                }
                let taken = self.increment_at(at, TAKEN);
                let jump = to;
                (to, ended) = self.displaced(&was, to, (window.end, taken.is_some()))?;
                if let Some(entry) = taken {
                    let leads = self.cursor(jump).next()?.to;
                    ends.push((entry, leads, was.to));
                }
                if let Some(entry) = self.increment_at(at, BEHIND) {
                    to = self.increment(entry, to)?;
                }
                self.found.displaced += 1;
            }
            at = was.end();
        }
        if !ended {
            self.found.places.push(Place {
                at: to,
                origin: Some(window.end),
                depth: 0,
            });
            let mut back = self.cursor(to);
            to = back.expect_at(&[0xe9], "jmp @", window.end)?.end();
        }
        for (entry, leads, target) in ends {
            if leads != Some(to) {
                let found = format!("{:#x}", leads.unwrap_or(0));
                return Err(mismatch(to, "where a counted jump leads", &found));
            }
            to = self.increment(entry, to)?;
            self.found.places.push(Place {
                at: to,
                origin: Some(entry.at),
                depth: 0,
            });
            let target = target.unwrap_or(0);
            to = self.cursor(to).expect_at(&[0xe9], "jmp @", target)?.end();
        }
        match to == trampoline.end {
            true => Ok(()),
            false => Err(mismatch(to, "the end of the trampoline", "more code")),
        }
    }

    /// The island lies in a window of its own, leads to the trampoline, and has the rules of where the window begins.
    fn island(&mut self, entry: &WindowEntry, island: u64) -> Result<(), VerifyError> {
        let before = self
            .tables
            .windows
            .partition_point(|w| w.window.start <= island);
        let host = before.checked_sub(1).map(|i| &self.tables.windows[i]);
        let behind = island.checked_add(u64::from(JUMP_LEN));
        let holds = |w: &WindowEntry| {
            let own = if w.island.is_some() { 2 } else { 5 };
            let is_other = w.window != entry.window;
            is_other && island - w.window.start >= own && behind <= Some(w.window.end)
        };
        if !host.is_some_and(holds) {
            return Err(mismatch(island, "an island in another window", "none"));
        }
        self.cursor(island)
            .expect_at(&[0xe9], "jmp @", entry.trampoline.start)?;
        self.found.islands.push((island, entry.window.start));
        Ok(())
    }

    /// Behind the jump there is nothing but islands, which belong to other windows and are checked with them.
    fn filled_up(&self, rest: Range<u64>) -> Result<(), VerifyError> {
        let first = self.tables.islands.partition_point(|&at| at < rest.start);
        let here = self.tables.islands[first..].iter();
        let mut at = rest.start;
        for &island in here.take_while(|&&island| island < rest.end) {
            if island < at {
                return Err(mismatch(island, "an island behind another", "an overlap"));
            }
            self.filled(at..island)?;
            at = island + u64::from(JUMP_LEN);
        }
        self.filled(at..rest.end)
    }

    fn filled(&self, rest: Range<u64>) -> Result<(), VerifyError> {
        match self.is_filled(rest.clone()) {
            true => Ok(()),
            false => Err(mismatch(
                rest.start,
                "int3 up to the window's end",
                "something else",
            )),
        }
    }

    /// Every probe of the instruction at `site`, once. Returns the address behind them.
    fn probes_before(&mut self, site: u64, mut to: u64) -> Result<u64, VerifyError> {
        let mut wanted = self.sites.probes_at(site).to_vec();
        if !wanted.is_empty() {
            self.found.probes.push(site);
        }
        let slot = self.tables.slot(SLOT_INLINE);
        while !wanted.is_empty() {
            let mut code = self.cursor(to);
            let mut marks = vec![(to, 0)];
            code.expect(&[0x48, 0x8d, 0x64, 0x24, 0x80], "lea rsp, [rsp - 0x80]")?;
            marks.push((code.at, 128));
            code.expect(&[0x41, 0x53], "push r11")?;
            marks.push((code.at, 136));
            code.expect(&[0x41, 0x52], "push r10")?;
            marks.push((code.at, 144));
            code.expect(&[0x50], "push rax")?;
            marks.push((code.at, 152));
            code.expect(&[0x9f], "lahf")?;
            code.expect(&[0x0f, 0x90, 0xc0], "seto al")?;
            code.expect(&[0x50], "push rax")?;
            marks.push((code.at, 160));
            code.load_slot(slot)?;
            let skip = code.at + 12;
            code.expect_short(&[0x74, 10], "je @", skip)?;
            let lea = code.next()?;
            let named = wanted.iter().position(|s| lea.memory == Some(s.desc));
            if !lea.bytes().starts_with(&LEA_R10) || named.is_none() {
                return Err(mismatch(
                    lea.at,
                    &format!("a probe of the site at {site:#x}"),
                    &lea.text(),
                ));
            }
            named.map(|n| wanted.swap_remove(n));
            code.expect(&[0x41, 0xff, 0xd3], "call r11")?;
            marks.push((code.at, 160));
            code.expect(&[0x58], "pop rax")?;
            marks.push((code.at, 152));
            code.expect(&[0x04, 0x7f], "add al, 0x7f")?;
            code.expect(&[0x9e], "sahf")?;
            code.expect(&[0x58], "pop rax")?;
            marks.push((code.at, 144));
            code.expect(&[0x41, 0x5a], "pop r10")?;
            marks.push((code.at, 136));
            code.expect(&[0x41, 0x5b], "pop r11")?;
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
            self.found.places.extend(marks.into_iter().map(place));
        }
        Ok(to)
    }

    /// The instruction at `to` does what `was` did. Returns the address behind it, and whether control ends there.
    /// `end`: of the window; `is_counted`: it is a conditional jump that leads somewhere else first.
    fn displaced(
        &mut self,
        was: &Insn,
        to: u64,
        (end, is_counted): (u64, bool),
    ) -> Result<(u64, bool), VerifyError> {
        let call = self.sites.call_at(was.at);
        let site = call.map(|index| self.sites.calls[index]);
        self.found.calls.extend(call);
        if let Some(site) = site {
            agrees(site, was)?;
        }
        let calls = was.verb() == b"call";
        self.found.displaced_calls |= calls;
        let mut code = self.cursor(to);
        if calls {
            // A call returns to the original code, so that it must be the window's last instruction.
            if was.end() != end {
                return Err(mismatch(was.at, "a call at the window's end", &was.text()));
            }
            code.expect(&[0x48, 0x8d, 0x64, 0x24, 0xf8], "lea rsp, [rsp - 8]")?;
            code.expect(&[0x41, 0x53], "push r11")?;
            code.expect_at(&[0x4c, 0x8d, 0x1d], "lea r11, [@]", end)?;
            code.expect(
                &[0x4c, 0x89, 0x5c, 0x24, 0x08],
                "mov qword ptr [rsp + 8], r11",
            )?;
            code.expect(&[0x41, 0x5b], "pop r11")?;
        }
        let is = code.next()?;
        let behind = code.at;
        self.found.places.push(Place {
            at: is.at,
            origin: Some(was.at),
            depth: if calls { 8 } else { 0 },
        });
        if let Some(site) = site {
            let stub = is.to.filter(|_| is.verb() == b"jmp" && canonical(&is));
            let stub = stub.ok_or_else(|| mismatch(is.at, "a jump to a stub", &is.text()))?;
            self.stub(site, stub)?;
            return Ok((behind, true));
        }
        let expected = match calls {
            true => jump_for(was.shape()),
            false => was.shape().to_vec(),
        };
        let form = match calls {
            true if was.is_branch() => canonical(&is),
            // The form of an indirect jump for that of an indirect call: the text says all.
            true => is.bytes().len() == was.bytes().len(),
            false => same_form(was, &is),
        };
        // Where a counted jump leads is looked at behind the way back.
        let is_jump = is_counted && canonical(&is) && is.verb() != b"jmp";
        let leads = is.to == was.to || is_jump;
        let same = is.shape() == expected && leads && is.memory == was.memory;
        if !same || !form {
            let expected = text(&expected, was.address());
            return Err(mismatch(is.at, &expected, &is.text()));
        }
        Ok((behind, was.ends() || calls))
    }
}

/// The text of the jump that leads where a call does.
fn jump_for(call: &[u8]) -> Vec<u8> {
    let name = b"call";
    let at = call.windows(name.len()).position(|w| w == name);
    let at = at.unwrap_or(call.len());
    let rest = call.get(at + name.len()..).unwrap_or_default();
    [&call[..at], b"jmp", rest].concat()
}
