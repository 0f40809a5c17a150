//! What can be damaged in a patched file, and the words of the check that sees it.

use super::{Case, add, put};

/// Does the damage.
type Act<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;

/// A kind of damage, with the words of the check that rejects it.
pub(crate) type Damage<'a> = (&'static str, Act<'a>, &'static str);

/// The number in a patched file's header, or at any place.
fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Offset of the n-th program header of a type, from the end.
fn program_header(bytes: &[u8], kind: u32, from_end: usize) -> usize {
    let (at, count) = (
        word(bytes, 32),
        usize::from(bytes[56]) + 256 * usize::from(bytes[57]),
    );
    let mut found = (0..count)
        .rev()
        .map(|n| at + 56 * n)
        .filter(|&h| bytes[h..h + 4] == kind.to_le_bytes());
    found.nth(from_end).unwrap()
}

/// Offset of the section header with this name.
fn section_header(bytes: &[u8], name: &[u8]) -> usize {
    let (at, count) = (
        word(bytes, 40),
        usize::from(u16::from_le_bytes([bytes[60], bytes[61]])),
    );
    let names = usize::from(u16::from_le_bytes([bytes[62], bytes[63]]));
    let names = word(bytes, at + 64 * names + 24);
    let wanted = |h: &usize| {
        let name_at = names + u32::from_le_bytes(bytes[*h..*h + 4].try_into().unwrap()) as usize;
        bytes[name_at..].starts_with(name) && bytes[name_at + name.len()] == 0
    };
    (0..count).map(|n| at + 64 * n).find(wanted).unwrap()
}

/// Offset of the section's contents.
fn section(bytes: &[u8], name: &[u8]) -> usize {
    word(bytes, section_header(bytes, name) + 24)
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// What can be damaged in a patched file whose calls go through the PLT (`direct`), or through the GOT.
pub(crate) fn damages(case: &Case, direct: bool) -> Vec<Damage<'_>> {
    let new = &case.new;
    let call = case
        .plan
        .calls
        .iter()
        .find(|c| !c.tail && c.len == if direct { 5 } else { 6 });
    let call = call.expect("a call of that form");
    let at_call = case.plan.edits.iter().find(|e| {
        e.what == "call site"
            && e.bytes.len() as u32 == call.len
            && e.bytes[e.bytes.len() - 5] == 0xe8
    });
    let call_end = at_call.expect("an edited call").range().end as usize;
    let code = case.chunk("code").start;
    let stub = code + (call.stub.0 - case.plan.segments[1].va) as usize;
    let window = case.chunk("window").start;
    let trampoline = case.plan.detours[0].trampoline.0 - case.plan.segments[1].va;
    let trampoline = code + trampoline as usize;
    let tables = case.chunk("tables").start;
    let sites = tables + 56;
    let patched = case.plan.patched();
    let own_site = sites + 32 * patched.iter().position(|&id| id == call.site).unwrap();
    let windows = sites + 32 * patched.len();
    let way = i32::from_le_bytes(new[stub + 8..stub + 12].try_into().unwrap());
    let way = (stub + 12).wrapping_add_signed(way as isize);
    let header = case.chunk("data").start;
    let text = case.chunk("description");
    let frames = section(new, b".ompfuse.eh_frame");
    let frames_hdr = word(new, program_header(new, PT_GNU_EH_FRAME, 0) + 8);
    let entries = u32::from_le_bytes(new[frames_hdr + 8..frames_hdr + 12].try_into().unwrap());
    let dynamic = word(new, program_header(new, PT_DYNAMIC, 0) + 8);
    let tag = move |wanted: u64| {
        let mut all = (0..64).map(|n| dynamic + 16 * n);
        all.find(|&at| word(new, at) as u64 == wanted).unwrap()
    };
    let rela = section(new, b".rela.dyn");
    let edited = |at: u64| case.plan.edits.iter().any(|e| e.range().contains(&at));
    let neighbour = case.plan.edits.iter().filter(|e| e.what == "call site");
    let neighbour = neighbour
        .map(|e| e.range().end)
        .find(|&at| !edited(at))
        .unwrap() as usize;
    let load = |from_end| program_header(new, PT_LOAD, from_end);
    let flip = |at: usize| -> Act<'static> { Box::new(move |b| b[at] ^= 1) };
    let flip_high = |at: usize| -> Act<'static> { Box::new(move |b| b[at] ^= 0x40) };
    let more = |at: usize, n: i32| -> Act<'static> { Box::new(move |b| add(b, at, n)) };
    let zero =
        |at: usize, len: usize| -> Act<'static> { Box::new(move |b| b[at..at + len].fill(0)) };
    let changed = "outside every planned range";
    let note = program_header(new, PT_NOTE, 0);
    let mut all: Vec<Damage<'_>> = vec![
        (
            "call: displacement off by one",
            more(call_end - 4, 1),
            "expected `lea r10",
        ),
        (
            "call: leads to another stub",
            more(call_end - 4, 12),
            "expected `lea r10",
        ),
        (
            "call: opcode",
            flip(call_end - 5),
            "expected `call to a stub`",
        ),
        ("call: the byte behind it", flip(neighbour), changed),
        (
            "stub: another site",
            more(stub + 3, 32),
            "expected `lea r10",
        ),
        (
            "stub: another register",
            flip(stub + 2),
            "expected `lea r10",
        ),
        (
            "stub: calls its way",
            flip(stub + 7),
            "expected `jmp to a way`",
        ),
        ("stub: another way", more(stub + 8, 32), "expected `"),
        (
            "stub: into the middle of its way",
            more(stub + 8, 3),
            "expected `mov r11",
        ),
        (
            "way: another slot",
            more(way + 3, 8),
            "expected `mov r11, qword ptr [0x",
        ),
        (
            "way: tests another register",
            flip(way + 9),
            "expected `test r11, r11`",
        ),
        (
            "way: jumps elsewhere",
            flip(way + if direct { 16 } else { 12 }),
            "expected `jmp r11`",
        ),
        (
            "window: jump off by one",
            more(window + 1, -1),
            "expected `jmp 0x",
        ),
        ("window: its end", flip(window), "expected `jmp 0x"),
        (
            "trampoline: steps over the red zone",
            flip(trampoline + 4),
            "expected `lea rsp",
        ),
        (
            "trampoline: saves flags",
            flip(trampoline + 10),
            "expected `lahf",
        ),
        (
            "trampoline: another site",
            more(trampoline + 30, 32),
            "expected `a probe of the site",
        ),
        (
            "unwind table: an entry's function",
            more(frames_hdr + 12 + 8 * (entries as usize - 1), 1),
            "the unwind information covers other code",
        ),
        (
            "unwind table: an entry's rules",
            more(frames_hdr + 16 + 8 * (entries as usize - 1), 8),
            "unwind information",
        ),
        (
            "unwind table: one of the original's entries",
            more(frames_hdr + 16, 4),
            "the table of unwind information",
        ),
        (
            "unwind table: number of entries",
            more(frames_hdr + 8, -1),
            "the table of unwind information is m",
        ),
        (
            "unwind rules: length of the first",
            more(frames, 4),
            "unwind information",
        ),
        (
            "unwind rules: erased",
            zero(frames, 4),
            "unwind information",
        ),
        (
            "unwind rules: of a place",
            flip(case.rule_of_a_trampoline()),
            "the unwind information at 0x",
        ),
        (
            "header: where the program headers are",
            Box::new(|b| put(b, 32, &case.old[32..40])),
            "goblin accepts",
        ),
        (
            "header: number of program headers",
            Box::new(|b| put(b, 56, &case.old[56..58])),
            "doesn't say that ompfuse patched it",
        ),
        ("header: type", flip(0x10), "byte 0x10 of the file changed"),
        (
            "header: entry point",
            flip(0x18),
            "byte 0x18 of the file changed",
        ),
        (
            "header: where the section headers are",
            flip(0x28),
            "goblin accepts",
        ),
        (
            "segment: added code is writable",
            more(load(1) + 4, 2),
            "other rights than read, execute, write",
        ),
        (
            "segment: added data is executable",
            more(load(0) + 4, 1),
            "other rights than read, execute, write",
        ),
        (
            "segment: added code elsewhere",
            more(load(1) + 16, 0x1000),
            "the module header is damaged",
        ),
        (
            "segment: added code with more memory",
            more(load(1) + 40, 0x1000),
            "other rights",
        ),
        (
            "segment: one of the original's is writable",
            flip(load(4) + 4),
            "program header",
        ),
        (
            "segment: one of the original's is longer",
            more(load(3) + 40, 8),
            "program header",
        ),
        (
            "segment: interpreter",
            flip(program_header(new, PT_INTERP, 0) + 8),
            "program header",
        ),
        (
            "segment: alignment of the added",
            more(load(2) + 48, 0x1000),
            "is misplaced",
        ),
        (
            "note: name",
            flip(tables + 12),
            "doesn't say that ompfuse patched it",
        ),
        (
            "note: type",
            flip(tables + 8),
            "doesn't say that ompfuse patched it",
        ),
        (
            "note: version",
            flip(tables + 20),
            "the note is of another version of the interface (",
        ),
        (
            "note: address of the header",
            more(tables + 28, 8),
            "the module header is damaged",
        ),
        (
            "note: its segment's flags",
            flip(note + 4),
            "the note's program header is damaged",
        ),
        (
            "note: its segment's length",
            more(note + 32, 4),
            "doesn't say that ompfuse patched it",
        ),
        (
            "site table: number",
            more(sites + 32 + 8, 1),
            "isn't that of the self-description",
        ),
        (
            "site table: no such number",
            Box::new(move |b| b[own_site + 11] = 0x7f),
            "has an entry for site",
        ),
        (
            "site table: an entry twice",
            Box::new(move |b| b.copy_within(sites + 8..sites + 16, sites + 40)),
            "site table",
        ),
        (
            "site table: region",
            more(own_site + 12, 1),
            "isn't that of the self-description",
        ),
        (
            "site table: construct",
            flip(own_site + 17),
            "isn't that of the self-description",
        ),
        (
            "site table: header",
            more(own_site + 4, 8),
            "its entry in the site table is damaged",
        ),
        (
            "site table: width",
            Box::new(move |b| b[own_site + 19] |= 0xf),
            "its entry in the site table is damaged",
        ),
        (
            "site table: number of arguments",
            flip_high(own_site + 19),
            "the module's identity",
        ),
        (
            "site table: what a probe reads",
            flip(own_site + 20),
            "the module's identity",
        ),
        (
            "site table: constants of a site that has none",
            more(own_site + 28, 8),
            "its constants are misplaced",
        ),
        (
            "site table: target",
            more(own_site, 8),
            "isn't what the site table says",
        ),
        (
            "site table: no such probe",
            Box::new(move |b| b[own_site + 16] = 0xee),
            "its probe is unknown",
        ),
        (
            "site table: no probe",
            zero(own_site + 16, 1),
            "its probe is unknown",
        ),
        (
            "site table: flags",
            flip(own_site + 18),
            "isn't what the site table says",
        ),
        ("window table: start", more(windows + 8, 1), "code at 0x"),
        (
            "window table: trampoline",
            more(windows + 16, 1),
            "expected `jmp 0x",
        ),
        (
            "window table: length",
            more(windows + 24, 1),
            "int3 up to the window's end",
        ),
        (
            "window table: number",
            more(windows, 1),
            "the window table is damaged",
        ),
        (
            "module header: magic",
            flip(header),
            "the module header is damaged",
        ),
        (
            "module header: a slot that isn't empty",
            flip(header + 16),
            "the module header is damaged",
        ),
        (
            "module header: the runtime's own functions",
            flip(header + 16 + 8 * 14),
            "the module header is damaged",
        ),
        (
            "module header: where the sites are",
            more(header + 16 + 8 * 16 + 8, 32),
            "site table",
        ),
        (
            "module header: number of sites",
            more(header + 12, -1),
            "disagree about the sites with a probe",
        ),
        (
            "module header: identity",
            flip(header + 168),
            "the module's identity",
        ),
        (
            "module header: number of the module",
            flip(header + 16 + 8 * 16 + 16),
            "the module header is damaged",
        ),
        (
            "self-description: its beginning",
            flip(text.start),
            "the self-description can't be read",
        ),
        (
            "self-description: in the middle",
            flip(text.start + text.len() / 2),
            "the self-description can't be read",
        ),
        (
            "self-description: its checksum",
            flip(text.end - 1),
            "the self-description can't be read",
        ),
        (
            "dynamic table: the added library's name",
            more(tag_value(&case.new, dynamic), 1),
            "the dynamic table isn't the original's",
        ),
        (
            "dynamic table: string table",
            more(tag(5) + 8, 8),
            "dynamic string table",
        ),
        (
            "dynamic table: length of the relocations",
            more(tag(8) + 8, -24),
            "the dynamic table isn't the original's",
        ),
        ("relocation: missing", zero(rela, 24), changed),
        ("relocation: addend", flip(rela + 16), changed),
        ("GOT: a slot", flip(section(new, b".got")), changed),
        (
            "symbols: a name",
            flip(section(new, b".dynsym") + 24),
            changed,
        ),
        (
            "section header: of the added code",
            flip(section_header(new, b".ompfuse.text") + 8),
            "the header of section .ompfuse.text is damaged",
        ),
        (
            "section header: of the original's",
            flip(section_header(new, b".text") + 8),
            "isn't the original's",
        ),
        (
            "section names",
            flip(section(new, b".shstrtab") + 1),
            "the section names aren't the original's",
        ),
        (
            "filler between segments",
            flip(case.plan.segments[1].offset as usize - 1),
            changed,
        ),
        (
            "a byte of the original's code",
            flip(section(new, b".text")),
            changed,
        ),
        ("one byte more", Box::new(|b| b.push(1)), changed),
        (
            "one byte less",
            Box::new(|b| b.truncate(b.len() - 1)),
            "goblin accepts",
        ),
        (
            "half of it",
            Box::new(|b| b.truncate(b.len() / 2)),
            "goblin accepts",
        ),
    ];
    if direct {
        all.push((
            "way: another original target",
            more(way + 12, 16),
            "expected `je 0x",
        ));
    } else {
        all.push((
            "way: another GOT slot",
            more(way + 17, 8),
            "expected `jmp qword ptr [0x",
        ));
        all.push(("way: past the thunk", flip(way + 11), "expected `je 0x"));
    }
    all
}

/// Offset of the value of the last `DT_NEEDED`.
fn tag_value(bytes: &[u8], dynamic: usize) -> usize {
    let entries = (0..64).map(|n| dynamic + 16 * n);
    let used = entries.take_while(|&at| word(bytes, at) != 0);
    used.filter(|&at| word(bytes, at) == 1).last().unwrap() + 8
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
