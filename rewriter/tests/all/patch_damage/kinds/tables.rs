//! Damage to what the runtime library and `verify` read: the note, the tables of sites and windows, the module header, the
//! self-description.

use super::{Damage, call, flip, flip_high, more, zero};
use crate::patch_damage::Case;
use crate::patch_damage::elf::{PT_NOTE, program_header};

/// Of a file whose calls go through the PLT (`direct`), or through the GOT.
pub(super) fn damages(case: &Case, direct: bool) -> Vec<Damage<'_>> {
    let call = call(case, direct);
    let tables = case.chunk("tables").start;
    let sites = tables + 56;
    let patched = case.plan.patched();
    let own_site = sites + 32 * patched.iter().position(|&id| id == call.site).unwrap();
    let windows = sites + 32 * patched.len();
    let header = case.chunk("data").start;
    let text = case.chunk("description");
    let note = program_header(&case.new, PT_NOTE, 0);
    kinds! {
        "note: name" flip(tables + 12) => "doesn't say that ompfuse patched it";
        "note: type" flip(tables + 8) => "doesn't say that ompfuse patched it";
        "note: version" flip(tables + 20) => "the note is of another version of the interface (";
        "note: address of the header" more(tables + 28, 8) => "the module header is damaged";
        "note: its segment's flags" flip(note + 4) => "the note's program header is damaged";
        "note: its segment's length" more(note + 32, 4) => "doesn't say that ompfuse patched it";
        "site table: number" more(sites + 32 + 8, 1) => "isn't that of the self-description";
        "site table: no such number" Box::new(move |b| b[own_site + 11] = 0x7f) => "has an entry for site";
        "site table: an entry twice" Box::new(move |b| b.copy_within(sites + 8..sites + 16, sites + 40)) => "site table";
        "site table: region" more(own_site + 12, 1) => "isn't that of the self-description";
        "site table: construct" flip(own_site + 17) => "isn't that of the self-description";
        "site table: header" more(own_site + 4, 8) => "its entry in the site table is damaged";
        "site table: width" Box::new(move |b| b[own_site + 19] |= 0xf) => "its entry in the site table is damaged";
        "site table: number of arguments" flip_high(own_site + 19) => "the module's identity";
        "site table: what a probe reads" flip(own_site + 20) => "the module's identity";
        "site table: constants of a site that has none" more(own_site + 28, 8) => "its constants are misplaced";
        "site table: target" more(own_site, 8) => "isn't what the site table says";
        "site table: no such probe" Box::new(move |b| b[own_site + 16] = 0xee) => "its probe is unknown";
        "site table: no probe" zero(own_site + 16, 1) => "its probe is unknown";
        "site table: flags" flip(own_site + 18) => "isn't what the site table says";
        "window table: start" more(windows + 8, 1) => "code at 0x";
        "window table: trampoline" more(windows + 16, 1) => "expected `jmp 0x";
        "window table: length" more(windows + 24, 1) => "int3 up to the window's end";
        "window table: number" more(windows, 1) => "the window table is damaged";
        "module header: magic" flip(header) => "the module header is damaged";
        "module header: a slot that isn't empty" flip(header + 16) => "the module header is damaged";
        "module header: the runtime's own functions" flip(header + 16 + 8 * 14) => "the module header is damaged";
        "module header: where the sites are" more(header + 16 + 8 * 16 + 8, 32) => "site table";
        "module header: number of sites" more(header + 12, -1) => "disagree about the sites with a probe";
        "module header: identity" flip(header + 168) => "the module's identity";
        "module header: number of the module" flip(header + 16 + 8 * 16 + 16) => "the module header is damaged";
        "self-description: its beginning" flip(text.start) => "the self-description can't be read";
        "self-description: in the middle" flip(text.start + text.len() / 2) => "the self-description can't be read";
        "self-description: its checksum" flip(text.end - 1) => "the self-description can't be read";
    }
}
