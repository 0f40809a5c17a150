//! Damage to the file: headers, segments, the dynamic table, unwind information, and what should be the original's.

use super::{CHANGED, Damage, flip, more, zero};
use crate::patch_damage::elf::{
    PT_DYNAMIC, PT_GNU_EH_FRAME, PT_INTERP, PT_LOAD, program_header, section, section_header,
    tag_value, word,
};
use crate::patch_damage::{Case, put};

pub(super) fn damages(case: &Case) -> Vec<Damage<'_>> {
    let new = &case.new;
    let frames = section(new, b".ompfuse.eh_frame");
    let frames_hdr = word(new, program_header(new, PT_GNU_EH_FRAME, 0) + 8);
    let entries = u32::from_le_bytes(new[frames_hdr + 8..frames_hdr + 12].try_into().unwrap());
    let dynamic = word(new, program_header(new, PT_DYNAMIC, 0) + 8);
    let tag = move |wanted: u64| {
        let mut all = (0..64).map(|n| dynamic + 16 * n);
        all.find(|&at| word(new, at) as u64 == wanted).unwrap()
    };
    let rela = section(new, b".rela.dyn");
    let load = |from_end| program_header(new, PT_LOAD, from_end);
    kinds! {
        "unwind table: an entry's function" more(frames_hdr + 12 + 8 * (entries as usize - 1), 1)
            => "the unwind information covers other code";
        "unwind table: an entry's rules" more(frames_hdr + 16 + 8 * (entries as usize - 1), 8) => "unwind information";
        "unwind table: one of the original's entries" more(frames_hdr + 16, 4) => "the table of unwind information";
        "unwind table: number of entries" more(frames_hdr + 8, -1) => "the table of unwind information is m";
        "unwind rules: length of the first" more(frames, 4) => "unwind information";
        "unwind rules: erased" zero(frames, 4) => "unwind information";
        "unwind rules: of a place" flip(case.rule_of_a_trampoline()) => "the unwind information at 0x";
        "header: where the program headers are" Box::new(|b| put(b, 32, &case.old[32..40])) => "goblin accepts";
        "header: number of program headers" Box::new(|b| put(b, 56, &case.old[56..58]))
            => "doesn't say that ompfuse patched it";
        "header: type" flip(0x10) => "byte 0x10 of the file changed";
        "header: entry point" flip(0x18) => "byte 0x18 of the file changed";
        "header: where the section headers are" flip(0x28) => "goblin accepts";
        "segment: added code is writable" more(load(1) + 4, 2) => "other rights than read, execute, write";
        "segment: added data is executable" more(load(0) + 4, 1) => "other rights than read, execute, write";
        "segment: added code elsewhere" more(load(1) + 16, 0x1000) => "the module header is damaged";
        "segment: added code with more memory" more(load(1) + 40, 0x1000) => "other rights";
        "segment: one of the original's is writable" flip(load(4) + 4) => "program header";
        "segment: one of the original's is longer" more(load(3) + 40, 8) => "program header";
        "segment: interpreter" flip(program_header(new, PT_INTERP, 0) + 8) => "program header";
        "segment: alignment of the added" more(load(2) + 48, 0x1000) => "is misplaced";
        "dynamic table: the added library's name" more(tag_value(&case.new, dynamic), 1)
            => "the dynamic table isn't the original's";
        "dynamic table: string table" more(tag(5) + 8, 8) => "dynamic string table";
        "dynamic table: length of the relocations" more(tag(8) + 8, -24) => "the dynamic table isn't the original's";
        "relocation: missing" zero(rela, 24) => CHANGED;
        "relocation: addend" flip(rela + 16) => CHANGED;
        "GOT: a slot" flip(section(new, b".got")) => CHANGED;
        "symbols: a name" flip(section(new, b".dynsym") + 24) => CHANGED;
        "section header: of the added code" flip(section_header(new, b".ompfuse.text") + 8)
            => "the header of section .ompfuse.text is damaged";
        "section header: of the original's" flip(section_header(new, b".text") + 8) => "isn't the original's";
        "section names" flip(section(new, b".shstrtab") + 1) => "the section names aren't the original's";
        "filler between segments" flip(case.plan.segments[1].offset as usize - 1) => CHANGED;
        "a byte of the original's code" flip(section(new, b".text")) => CHANGED;
        "one byte more" Box::new(|b| b.push(1)) => CHANGED;
        "one byte less" Box::new(|b| b.truncate(b.len() - 1)) => "goblin accepts";
        "half of it" Box::new(|b| b.truncate(b.len() / 2)) => "goblin accepts";
    }
}

impl Case {
    /// Offset of a byte that says how far a trampoline's stack pointer is from its caller's frame.
    fn rule_of_a_trampoline(&self) -> usize {
        let start = section(&self.new, b".ompfuse.eh_frame");
        let end = word(&self.new, program_header(&self.new, PT_GNU_EH_FRAME, 0) + 8);
        // DW_CFA_def_cfa of the stack pointer, with the red zone and what is pushed behind it (two bytes in LEB128).
        let bytes = &self.new[start..end];
        let mut rules = bytes.windows(4);
        let at = rules.position(|w| w[..2] == [0x0c, 7] && w[2] & 0x80 != 0 && w[3] == 1);
        start + at.expect("a trampoline's rules") + 2
    }
}
