//! From a draft to a plan: places for everything that is added, then its bytes.

use crate::describe::{
    NOTE_LEN, SiteTable, WINDOW_LEN, description, encode, identity, note, relay_table,
    relay_table_len, window_table,
};
use crate::draft::Draft;
use crate::dynamic::Needed;
use crate::image::{Image, Section};
use crate::layout::{HeaderTactic, Layout, Placed, Sizes};
use crate::model::{Action, LinkVa, Scan};
use crate::patch_error::PatchError;
use crate::plan::{Chunk, PatchPlan};
use crate::sections::{NewSection, section_table};
use crate::stubs::{Redirect, STUB_LEN, UNREACHABLE, WAY_LEN, Way, redirected, stub, way, ways};
use crate::trampoline::{Anchors, Detour, Mark, Trampoline};
use crate::unwind::{Function, debug_frame, eh_frame, eh_frame_len, table, table_len};
use ompfuse_format::abi::{
    ABI_VERSION, ModuleHeader, NoteDesc, SLOT_CALL, SLOT_INLINE, SLOT_NUM_THREADS, SLOT_THREAD_NUM,
    SiteDesc,
};
use std::borrow::Cow;

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
    /// Addresses of the relays, which stand behind the stubs.
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

impl Draft<'_> {
    /// Fixes every place and every byte.
    pub(crate) fn assemble(mut self, original_sha256: String) -> Result<PatchPlan, PatchError> {
        let places = self.places()?;
        let layout = places.layout;
        let mut changes = Changes::default();
        for (call, n) in self.calls.iter_mut().zip(0..) {
            call.stub = LinkVa(places.stubs_va() + STUB_LEN * n);
        }
        let code = self.code(&places, &mut changes)?;
        let detours = self.detours(&places);

        let queries = self.scan.queries;
        let json = description(
            original_sha256,
            std::mem::replace(&mut self.scan, Cow::Owned(Scan::default())),
            &self.selected,
            self.options,
        );
        let text = encode(&json).map_err(|e| {
            self.image
                .format_error(format!("its description can't be encoded: {e}"))
        })?;
        let text_at = Placed {
            offset: layout.data.end(),
            va: 0,
            len: text.len() as u64,
        };
        let (at, header) = (LinkVa(places.tables.va), LinkVa(layout.data.va));
        let sites = places.table.encode(at, header).map_err(self.too_far(at))?;
        let identity = identity(&json.original_sha256, &sites);
        let read_only = self.read_only(&places, text_at, sites, &detours, &mut changes)?;
        let data = self.data(&places, identity, queries, &mut changes);

        let mut end = text_at.end();
        let mut new_sections = vec![
            NewSection::note(places.note),
            NewSection::read_only(places.tables),
            NewSection::code(layout.code),
            NewSection::data(layout.data.part(0, ModuleHeader::LEN as u64)),
            NewSection::description(text_at),
        ];
        let mut debug = None;
        if !places.functions.is_empty() {
            new_sections.push(NewSection::eh_frame(places.eh_frame));
            if !self.image.has_section(b".debug_frame") {
                let offset = end.next_multiple_of(8);
                let bytes = debug_frame(layout.code.va, &places.functions);
                let at = Placed {
                    offset,
                    va: 0,
                    len: bytes.len() as u64,
                };
                new_sections.push(NewSection::debug_frame(at));
                debug = Some((offset, bytes));
                end = at.end();
            }
        }
        let section_table = section_table(self.image, &new_sections, &changes.sections, end);
        let segments = layout.segments(self.image, places.note, &changes.segments);
        let headers: Vec<u8> = segments.iter().flat_map(|s| s.to_bytes()).collect();

        let mut edits = changes.edits;
        let mut appended = Vec::new();
        let headers = chunk("program headers", layout.headers.offset, headers);
        match layout.tactic {
            HeaderTactic::Slack => edits.push(headers),
            _ => appended.push(headers),
        }
        appended.push(chunk("tables", layout.read_only.offset, read_only));
        appended.push(chunk("code", layout.code.offset, code));
        appended.push(chunk("data", layout.data.offset, data));
        appended.push(chunk("description", text_at.offset, text));
        let field = |what, at, bytes: &[u8]| chunk(what, at, bytes.to_vec());
        edits.push(field("e_phoff", 32, &layout.headers.offset.to_le_bytes()));
        edits.push(field("e_phnum", 56, &(segments.len() as u16).to_le_bytes()));
        if let Some(table) = section_table {
            edits.push(field("e_shoff", 40, &table.headers_offset.to_le_bytes()));
            edits.push(field("e_shnum", 60, &table.count.to_le_bytes()));
            appended.extend(debug.map(|(offset, bytes)| chunk("debug frames", offset, bytes)));
            appended.push(chunk("section names", table.names_offset, table.names));
            appended.push(chunk(
                "section headers",
                table.headers_offset,
                table.headers,
            ));
        }
        if let Some(at) = self.image.overlay() {
            let end = appended.last().map_or(0, |c| c.range().end);
            let bytes = self.image.bytes[at as usize..].to_vec();
            appended.push(chunk("appended data", end, bytes));
        }
        edits.sort_by_key(|e| e.offset);
        if let Some(pair) = edits.windows(2).find(|p| p[0].range().end > p[1].offset) {
            let what = format!("its {} and its {} overlap", pair[0].what, pair[1].what);
            return Err(self.image.format_error(what));
        }
        Ok(PatchPlan {
            path: self.image.path.into(),
            original_len: self.image.bytes.len() as u64,
            len: appended.last().map_or(0, |c| c.range().end),
            tactic: layout.tactic,
            calls: self.calls,
            detours,
            segments: vec![layout.read_only_segment(), layout.code, layout.data],
            edits,
            appended,
            description: Some(json),
        })
    }

    fn places(&self) -> Result<Places, PatchError> {
        let table = SiteTable::new(&self.scan, &self.selected);
        let ways = ways(self.calls.iter().map(|call| self.way(call)));
        let mut code = WAY_LEN * ways.0.len() as u64 + STUB_LEN * self.calls.len() as u64;
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
        let functions = self.functions(stubs_len, &trampolines);
        let tables_len = table.len()
            + 8
            + WINDOW_LEN * self.trampolines.len() as u64
            + relay_table_len(&self.relays);
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
        let data = match dynamic_len {
            0 => ModuleHeader::LEN as u64,
            _ => DYNAMIC_AT + dynamic_len,
        };
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
    fn functions(&self, stubs_len: u64, starts: &[u64]) -> Vec<Function> {
        let Some(frames) = &self.frames else {
            return Vec::new();
        };
        let stubs = (stubs_len > 0).then(|| Function::stubs(stubs_len));
        let trampolines = self
            .trampolines
            .iter()
            .zip(starts)
            .filter_map(|(t, &start)| {
                // Most marks are those of a probe, with one origin.
                let mut last = None;
                let mut row = |m: &Mark| {
                    if last.as_ref().is_none_or(|(origin, _)| *origin != m.origin) {
                        last = Some((m.origin, frames.row(m.origin)?));
                    }
                    Some((m.offset, last.as_ref()?.1.deeper(m.depth)?))
                };
                let rows: Option<Vec<_>> = t.marks().iter().map(&mut row).collect();
                Some(Function::new(start, t.len() as u64, &rows?))
            });
        stubs.into_iter().chain(trampolines).collect()
    }

    /// The read-only segment's bytes.
    fn read_only(
        &self,
        places: &Places,
        text: Placed,
        sites: Vec<u8>,
        detours: &[Detour],
        changes: &mut Changes,
    ) -> Result<Vec<u8>, PatchError> {
        let header = LinkVa(places.layout.data.va);
        let mut out = note(NoteDesc {
            abi_version: ABI_VERSION,
            reserved: 0,
            header_va: header.0,
            description_offset: text.offset,
            description_len: text.len,
        });
        out.resize(SITES_AT as usize, 0);
        out.extend(sites);
        out.extend(window_table(detours));
        out.extend(relay_table(&self.relays, &places.relays));
        if let Some(needed) = &self.needed {
            out.extend(&needed.strings);
            let section = section_at(self.image, needed.old_strings_va);
            changes
                .sections
                .extend(section.map(|i| (i, places.strings)));
        }
        if let Some(frames) = self
            .frames
            .as_ref()
            .filter(|_| !places.functions.is_empty())
        {
            let (hdr, code) = (places.eh_frame_hdr, places.layout.code.va);
            let (bytes, entries) = eh_frame(places.eh_frame.va, code, &places.functions);
            out.resize(
                (places.eh_frame.offset - places.layout.read_only.offset) as usize,
                0,
            );
            out.extend(bytes);
            out.extend(table(frames, hdr, &entries).map_err(self.too_far(LinkVa(hdr.va)))?);
            changes.segments.push((frames.segment, hdr));
            let section = section_at(self.image, frames.table_va);
            changes.sections.extend(section.map(|i| (i, hdr)));
        }
        Ok(out)
    }

    /// The data segment's bytes; and the change of the dynamic table, which may move there.
    fn data(
        &self,
        places: &Places,
        identity: u64,
        queries: Option<[LinkVa; 2]>,
        changes: &mut Changes,
    ) -> Vec<u8> {
        let (header, sites) = (places.layout.data.va, places.tables.va);
        let mut out = ModuleHeader::encode(header, sites, places.table.count(), identity).to_vec();
        if let Some(queries) = queries {
            for (slot, to) in [SLOT_THREAD_NUM, SLOT_NUM_THREADS].into_iter().zip(queries) {
                let at = ModuleHeader::SLOTS_OFFSET + 8 * slot;
                out[at..at + 8].copy_from_slice(&to.0.wrapping_sub(header).to_le_bytes());
            }
        }
        let Some(needed) = &self.needed else {
            return out;
        };
        if needed.moves {
            out.resize(DYNAMIC_AT as usize, 0);
            out.extend(needed.moved_table(places.strings.va));
            let segment = needed.segment();
            changes.segments.push((segment, places.dynamic));
            let section = section_at(self.image, self.image.segments[segment].va);
            changes
                .sections
                .extend(section.map(|i| (i, places.dynamic)));
        } else {
            let edits = needed.edits(places.strings.va).into_iter();
            changes
                .edits
                .extend(edits.map(|(offset, bytes)| chunk("dynamic table", offset, bytes)));
        }
        out
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
        for (call, &way) in self.calls.iter().zip(&places.ways.1) {
            let Ok(entry) = sites.binary_search(&call.site) else {
                continue;
            };
            let desc = places.tables.va + (SiteDesc::LEN * entry) as u64;
            let bytes = stub(call.stub, desc, way_at(way)).map_err(self.too_far(call.at))?;
            put(call.stub.0 - layout.code.va, &bytes);
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
        }
        let anchors = Anchors {
            inline_slot: slot(SLOT_INLINE),
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

/// The section at an address.
fn section_at(image: &Image<'_>, va: u64) -> Option<usize> {
    let here = |s: &Section| s.va == va && s.occupies_file() && s.size > 0;
    image.sections.iter().position(here).filter(|_| va != 0)
}
