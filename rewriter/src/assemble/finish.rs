//! The end of a plan: what is known when everything else has its place.

use super::{Changes, DYNAMIC_AT, Housed, Places, SITES_AT, chunk};
use crate::count::Increment;
use crate::describe::{
    count_table, description, encode, identity, note, relay_table, window_table,
};
use crate::draft::Draft;
use crate::dynamic::Needed;
use crate::image::{Image, Section};
use crate::layout::{HeaderTactic, Placed};
use crate::model::{LinkVa, Scan};
use crate::patch_error::PatchError;
use crate::plan::PatchPlan;
use crate::sections::{NewSection, section_table};
use crate::trampoline::Detour;
use crate::unwind::{debug_frame, eh_frame, table};
use ompfuse_format::abi::{ABI_VERSION, ModuleHeader, NoteDesc, OWN_FUNCTIONS};
use ompfuse_format::site::Counted;
use std::borrow::Cow;

/// Bytes, and where they are in the file.
type At = (u64, Vec<u8>);

impl Housed<'_> {
    /// Fixes every byte.
    pub(crate) fn finish(self, original_sha256: String) -> Result<PatchPlan, PatchError> {
        let Housed {
            mut draft,
            places,
            mut changes,
            code,
            detours,
            sites,
        } = self;
        let layout = places.layout;
        let own = draft.scan.own_functions;
        let increments = draft.scan.increments.clone();
        let json = description(
            original_sha256,
            std::mem::replace(&mut draft.scan, Cow::Owned(Scan::default())),
            &draft.selected,
            draft.options,
        );
        let text = encode(&json).map_err(|e| {
            draft
                .image
                .format_error(format!("its description can't be encoded: {e}"))
        })?;
        let text_at = Placed {
            offset: layout.data.end(),
            va: 0,
            len: text.len() as u64,
        };
        let identity = identity(&json.original_sha256, &sites);
        let read_only = draft.read_only(
            &places,
            text_at,
            sites,
            (&detours, &increments),
            &mut changes,
        )?;
        let counted = json.binary.counted.as_ref();
        let counted = counted.filter(|_| !increments.is_empty());
        let counts = counted.map_or(0, Counted::set);
        let data = draft.data(&places, (identity, counts), &own, &mut changes);

        let (new_sections, debug, end) = draft.new_sections(&places, text_at);
        let section_table = section_table(draft.image, &new_sections, &changes.sections, end);
        let segments = layout.segments(draft.image, places.note, &changes.segments);
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
        if let Some(at) = draft.image.overlay() {
            let end = appended.last().map_or(0, |c| c.range().end);
            let bytes = draft.image.bytes[at as usize..].to_vec();
            appended.push(chunk("appended data", end, bytes));
        }
        edits.sort_by_key(|e| e.offset);
        if let Some(pair) = edits.windows(2).find(|p| p[0].range().end > p[1].offset) {
            let what = format!("its {} and its {} overlap", pair[0].what, pair[1].what);
            return Err(draft.image.format_error(what));
        }
        Ok(PatchPlan {
            path: draft.image.path.into(),
            original_len: draft.image.bytes.len() as u64,
            len: appended.last().map_or(0, |c| c.range().end),
            tactic: layout.tactic,
            calls: draft.calls,
            detours,
            segments: vec![layout.read_only_segment(), layout.code, layout.data],
            edits,
            appended,
            description: Some(json),
        })
    }
}

impl Draft<'_> {
    /// The sections that are new; those of them with bytes of their own behind the description; and where all of it ends.
    fn new_sections(&self, places: &Places, text: Placed) -> (Vec<NewSection>, Option<At>, u64) {
        let layout = &places.layout;
        let mut sections = vec![
            NewSection::note(places.note),
            NewSection::read_only(places.tables),
            NewSection::code(layout.code),
            NewSection::data(layout.data.part(0, ModuleHeader::LEN as u64)),
            NewSection::description(text),
        ];
        if places.functions.is_empty() {
            return (sections, None, text.end());
        }
        sections.push(NewSection::eh_frame(places.eh_frame));
        if self.image.has_section(b".debug_frame") {
            return (sections, None, text.end());
        }
        let bytes = debug_frame(layout.code.va, &places.functions);
        let at = Placed {
            offset: text.end().next_multiple_of(8),
            va: 0,
            len: bytes.len() as u64,
        };
        sections.push(NewSection::debug_frame(at));
        (sections, Some((at.offset, bytes)), at.end())
    }

    /// The read-only segment's bytes.
    fn read_only(
        &self,
        places: &Places,
        text: Placed,
        sites: Vec<u8>,
        (detours, increments): (&[Detour], &[Increment]),
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
        out.extend(count_table(increments));
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
        (identity, counts): (u64, u32),
        own: &[Option<LinkVa>; OWN_FUNCTIONS.len()],
        changes: &mut Changes,
    ) -> Vec<u8> {
        let (header, sites) = (places.layout.data.va, places.tables.va);
        let mut out =
            ModuleHeader::encode(header, sites, (places.table.count(), counts), identity).to_vec();
        for ((slot, _), to) in OWN_FUNCTIONS.into_iter().zip(own) {
            if let Some(to) = to {
                let at = ModuleHeader::SLOTS_OFFSET + 8 * slot;
                out[at..at + 8].copy_from_slice(&to.0.wrapping_sub(header).to_le_bytes());
            }
        }
        if let Some(needed) = &self.needed {
            self.dynamic(places, needed, &mut out, changes);
        }
        out.resize(places.layout.data.len as usize, 0);
        out
    }

    /// The dynamic table with the new library, there or where it was.
    fn dynamic(&self, places: &Places, needed: &Needed, out: &mut Vec<u8>, changes: &mut Changes) {
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
    }
}

/// The section at an address.
fn section_at(image: &Image<'_>, va: u64) -> Option<usize> {
    let here = |s: &Section| s.va == va && s.occupies_file() && s.size > 0;
    image.sections.iter().position(here).filter(|_| va != 0)
}
