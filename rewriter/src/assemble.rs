//! From a draft to a plan: places for everything that is added, then its bytes.

mod finish;

use crate::cutoff::{DEPTHS_ALIGN, DEPTHS_LEN, FRAME};
use crate::describe::{NOTE_LEN, SiteTable, WINDOW_LEN, count_table_len, relay_table_len};
use crate::draft::Draft;
use crate::dynamic::Needed;
use crate::layout::{Layout, Placed, Sizes};
use crate::model::{Action, LinkVa};
use crate::patch_error::PatchError;
use crate::plan::Chunk;
use crate::shadow_stack::unmarked;
use crate::stubs::{Redirect, STUB_LEN, UNREACHABLE, WAY_LEN, Way, redirected, stub, way, ways};
use crate::trampoline::{Anchors, Detour, Mark, Trampoline};
use crate::unwind::{Function, Row, eh_frame_len, table_len};
use gimli::UnwindContext;
use ompfuse_format::abi::{ModuleHeader, SLOT_CALL, SLOT_COUNT, SLOT_INLINE, SiteDesc};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Offset of the dynamic table in the data segment, where it has to move there.
const DYNAMIC_AT: u64 = (ModuleHeader::LEN as u64).next_multiple_of(16);

/// Offset of the site table in the read-only segment, behind the note.
const SITES_AT: u64 = NOTE_LEN.next_multiple_of(8);

/// Places of everything that is added and loaded.
struct Places {
    layout: Layout,
    note: Placed,
    /// Site and window table.
    tables: Placed,
    strings: Placed,
    eh_frame: Placed,
    eh_frame_hdr: Placed,
    /// The dynamic table, if it moves.
    dynamic: Placed,
    /// Offsets in the code segment of what changes arguments, behind the stubs; by position of the call.
    setters: BTreeMap<u32, u64>,
    /// Address of the tasks' depths, at the end of the data segment; 0: there are none.
    depths: u64,
    /// Addresses of the relays, which stand behind these.
    relays: Vec<LinkVa>,
    /// What the site table will hold.
    table: SiteTable,
    /// The ways, which the code begins with, and the number of each call's.
    ways: (Vec<Way>, Vec<u32>),
    /// Offsets of the trampolines in the code segment.
    trampolines: Vec<u64>,
    /// Unwind information; none when the original's can't be added to.
    functions: Vec<Function>,
}

impl Places {
    /// Address of the first stub.
    fn stubs_va(&self) -> u64 {
        self.layout.code.va + WAY_LEN * self.ways.0.len() as u64
    }
}

/// What changes elsewhere in the file: segments and sections (by index) with new places, edits, section names.
#[derive(Default)]
struct Changes {
    segments: Vec<(usize, Placed)>,
    sections: Vec<(usize, Placed)>,
    edits: Vec<Chunk>,
}

fn chunk(what: &'static str, offset: u64, bytes: Vec<u8>) -> Chunk {
    Chunk {
        what,
        offset,
        bytes,
    }
}

/// A draft with places for everything but its description.
pub(crate) struct Housed<'a> {
    draft: Draft<'a>,
    places: Places,
    changes: Changes,
    /// The code segment's bytes.
    code: Vec<u8>,
    detours: Vec<Detour>,
    /// The site table's bytes.
    sites: Vec<u8>,
}

impl<'a> Draft<'a> {
    /// Fixes every place that doesn't depend on the description, which stands behind them all.
    pub(crate) fn house(mut self) -> Result<Housed<'a>, PatchError> {
        let places = self.places()?;
        let mut changes = Changes::default();
        for (call, n) in self.calls.iter_mut().zip(0..) {
            call.stub = LinkVa(places.stubs_va() + STUB_LEN * u64::from(n));
            let setter = places.setters.get(&n);
            call.setter = setter.map(|at| LinkVa(places.layout.code.va + at));
        }
        let code = self.code(&places, &mut changes)?;
        if self.trampolines.iter().any(Trampoline::calls) {
            let bytes = unmarked(self.image).into_iter();
            let edits = bytes.map(|(at, byte)| chunk("shadow-stack mark", at, vec![byte]));
            changes.edits.extend(edits);
        }
        let detours = self.detours(&places);
        let (at, header) = (LinkVa(places.tables.va), LinkVa(places.layout.data.va));
        let sites = places.table.encode(at, header).map_err(self.too_far(at))?;
        Ok(Housed {
            draft: self,
            places,
            changes,
            code,
            detours,
            sites,
        })
    }

    fn places(&self) -> Result<Places, PatchError> {
        let table = SiteTable::new(&self.scan, &self.selected);
        let ways = ways(self.calls.iter().map(|call| self.way(call)));
        let mut code = WAY_LEN * ways.0.len() as u64 + STUB_LEN * self.calls.len() as u64;
        let mut setters = BTreeMap::new();
        // Control arrives at stubs as at functions, and so it does behind them.
        let mut rows = vec![(0u64, Row::entered())];
        for (&call, setter) in &self.setters {
            setters.insert(call, code);
            if let Some(frame) = setter.frame() {
                rows.extend(
                    Row::entered()
                        .deeper(FRAME)
                        .map(|r| (code + frame.start, r)),
                );
                rows.push((code + frame.end, Row::entered()));
            }
            code += setter.len();
        }
        let mut relays = Vec::new();
        for r in &self.relays {
            let start = code.next_multiple_of(16);
            relays.push(start);
            code = start + r.len();
        }
        let stubs_len = code;
        let mut trampolines = Vec::new();
        for t in &self.trampolines {
            let start = code.next_multiple_of(16);
            trampolines.push(start);
            code = start + t.len() as u64;
        }
        let functions = self.functions((stubs_len, &rows), &trampolines);
        let tables_len = table.len()
            + 8
            + WINDOW_LEN * self.trampolines.len() as u64
            + relay_table_len(&self.relays)
            + count_table_len(&self.scan.increments);
        let strings_at = SITES_AT + tables_len;
        let strings_len = self.needed.as_ref().map_or(0, |n| n.strings.len() as u64);
        let mut read_only = strings_at + strings_len;
        let (mut frames_at, mut frames_len, mut hdr_len) = (read_only, 0, 0);
        if let Some(frames) = self.frames.as_ref().filter(|_| !functions.is_empty()) {
            frames_at = read_only.next_multiple_of(8);
            frames_len = eh_frame_len(&functions);
            hdr_len = table_len(frames, &functions);
            read_only = frames_at + frames_len + hdr_len;
        }
        let moves = self.needed.as_ref().filter(|n| n.moves);
        let dynamic_len = moves.map_or(0, Needed::moved_len);
        let mut data = match dynamic_len {
            0 => ModuleHeader::LEN as u64,
            _ => DYNAMIC_AT + dynamic_len,
        };
        let has_depths = rows.len() > 1;
        if has_depths {
            data = data.next_multiple_of(DEPTHS_ALIGN) + DEPTHS_LEN;
        }
        let sites = self
            .selected
            .first()
            .map(|&id| self.scan.sites[id as usize].info.address.0);
        let sizes = Sizes {
            read_only,
            code,
            data,
        };
        let layout = Layout::new(self.image, sizes, LinkVa(sites.unwrap_or(0)))?;
        let part = |at, len| layout.read_only.part(at, len);
        Ok(Places {
            note: part(0, NOTE_LEN),
            tables: part(SITES_AT, tables_len),
            strings: part(strings_at, strings_len),
            eh_frame: part(frames_at, frames_len),
            eh_frame_hdr: part(frames_at + frames_len, hdr_len),
            dynamic: layout.data.part(DYNAMIC_AT, dynamic_len),
            setters,
            depths: match has_depths {
                true => layout.data.va + data - DEPTHS_LEN,
                false => 0,
            },
            relays: relays
                .into_iter()
                .map(|at| LinkVa(layout.code.va + at))
                .collect(),
            layout,
            table,
            ways,
            trampolines,
            functions,
        })
    }

    /// What a call has in common with others of its target.
    fn way(&self, call: &Redirect) -> Way {
        let slot = match &self.scan.sites[call.site as usize].action {
            Some(Action::Call { probe, .. } | Action::Inline(probe)) => probe.probe.slot(),
            None => SLOT_CALL,
        };
        (slot, call.target)
    }

    /// Unwind information for the added code, as far as the original's says enough.
    fn functions(&self, (stubs_len, rows): (u64, &[(u64, Row)]), starts: &[u64]) -> Vec<Function> {
        let Some(frames) = &self.frames else {
            return Vec::new();
        };
        let rows: Vec<(u32, Row)> = rows.iter().map(|(at, r)| (*at as u32, r.clone())).collect();
        let stubs = (stubs_len > 0).then(|| Function::new(0, stubs_len, &rows));
        let function = |context: &mut UnwindContext<usize>, (t, &start): (&Trampoline, &u64)| {
            // Most marks are those of a probe, with one origin.
            let mut last = None;
            let mut row = |m: &Mark| {
                if last.as_ref().is_none_or(|(origin, _)| *origin != m.origin) {
                    last = Some((m.origin, frames.row(m.origin, context)?));
                }
                Some((m.offset, last.as_ref()?.1.deeper(m.depth)?))
            };
            let rows: Option<Vec<_>> = t.marks().iter().map(&mut row).collect();
            Some(Function::new(start, t.len() as u64, &rows?))
        };
        let trampolines: Vec<Option<Function>> = self
            .trampolines
            .par_iter()
            .zip(starts)
            .map_init(UnwindContext::new, function)
            .collect();
        let trampolines = trampolines.into_iter().flatten();
        stubs.into_iter().chain(trampolines).collect()
    }

    /// The code segment's bytes, and the changes to the original's code.
    fn code(&self, places: &Places, changes: &mut Changes) -> Result<Vec<u8>, PatchError> {
        let layout = &places.layout;
        let slot = |n: usize| layout.data.va + (ModuleHeader::SLOTS_OFFSET + 8 * n) as u64;
        let mut code = vec![UNREACHABLE; layout.code.len as usize];
        let mut put = |offset: u64, bytes: &[u8]| {
            code[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        let way_at = |n: u32| layout.code.va + WAY_LEN * u64::from(n);
        let mut first = vec![LinkVa(0); places.ways.0.len()];
        for (call, &way) in self.calls.iter().zip(&places.ways.1).rev() {
            first[way as usize] = call.at;
        }
        for ((&(thunk, target), n), call) in places.ways.0.iter().zip(0..).zip(first) {
            let at = LinkVa(way_at(n));
            let bytes = way(at, slot(thunk), target).map_err(self.too_far(call))?;
            put(at.0 - layout.code.va, &bytes);
        }
        let sites: Vec<u32> = self.selected.iter().copied().collect();
        for ((call, &way), n) in self.calls.iter().zip(&places.ways.1).zip(0..) {
            let Ok(entry) = sites.binary_search(&call.site) else {
                continue;
            };
            let desc = places.tables.va + (SiteDesc::LEN * entry) as u64;
            let bytes = stub(call.stub, desc, way_at(way)).map_err(self.too_far(call.at))?;
            put(call.stub.0 - layout.code.va, &bytes);
            if let (Some(at), Some(setter)) = (call.setter, self.setters.get(&n)) {
                let bytes = setter.encode(at, call.stub, places.depths);
                put(
                    at.0 - layout.code.va,
                    &bytes.map_err(self.too_far(call.at))?,
                );
            }
            if !call.relayed && !self.inside.contains(&call.site) {
                let bytes = redirected(call).map_err(self.too_far(call.at))?;
                changes
                    .edits
                    .push(self.code_edit("call site", call.at, bytes)?);
            }
        }
        for (relay, &at) in self.relays.iter().zip(&places.relays) {
            let first = relay.loads.first().copied().unwrap_or(at);
            let bytes = relay.encode(at, places.stubs_va());
            put(at.0 - layout.code.va, &bytes.map_err(self.too_far(first))?);
            for &load in &relay.loads {
                let bytes = relay.load(self.image, load, at)?;
                changes.edits.push(self.code_edit("load", load, bytes)?);
            }
            for &read in &relay.reads {
                let bytes = crate::relay::RelayCode::read(self.image, read)?;
                changes.edits.push(self.code_edit("load", read.at, bytes)?);
            }
        }
        let anchors = Anchors {
            inline_slot: slot(SLOT_INLINE),
            count_slot: slot(SLOT_COUNT),
            sites: places.tables.va,
            stubs: places.stubs_va(),
        };
        let mut windows = Vec::with_capacity(self.trampolines.len());
        let mut islands = Vec::new();
        for (t, &start) in self.trampolines.iter().zip(&places.trampolines) {
            let at = LinkVa(layout.code.va + start);
            let too_far = self.too_far(t.window);
            put(start, &t.encode(at, &anchors).map_err(&too_far)?);
            windows.push((t.window, t.window_bytes(at).map_err(&too_far)?));
            islands.extend(t.island_bytes(at).map_err(&too_far)?);
        }
        for (at, bytes) in islands {
            // Every island lies in a window: `Draft::take_windows` has seen to that.
            let host = windows.partition_point(|(start, _)| *start <= at) - 1;
            let (start, host) = &mut windows[host];
            host[(at.0 - start.0) as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        for (start, bytes) in windows {
            changes.edits.push(self.code_edit("window", start, bytes)?);
        }
        Ok(code)
    }

    fn code_edit(
        &self,
        what: &'static str,
        at: LinkVa,
        bytes: Vec<u8>,
    ) -> Result<Chunk, PatchError> {
        let offset = self.image.code_offset(at, bytes.len() as u64);
        let offset = offset.ok_or_else(|| self.site_error(at, "it is not in this file's code"))?;
        Ok(chunk(what, offset, bytes))
    }

    fn detours(&self, places: &Places) -> Vec<Detour> {
        let detour = |(t, &start): (&Trampoline, &u64)| Detour {
            start: t.window,
            len: t.window_len,
            trampoline: LinkVa(places.layout.code.va + start),
            trampoline_len: t.len() as u32,
            sites: t.sites.clone(),
            island: t.island,
        };
        self.trampolines
            .iter()
            .zip(&places.trampolines)
            .map(detour)
            .collect()
    }
}
