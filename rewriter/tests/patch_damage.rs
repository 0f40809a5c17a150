//! `verify` rejects what is not exactly what was planned, with the plan and without.

mod patch_support;

use ompfuse_rewriter::patch::{Patched, patch};
use ompfuse_rewriter::plan::{PatchPlan, PlanOptions, plan};
use ompfuse_rewriter::verify::{VerifyError, verify};
use patch_support::{Lab, scan};
use std::collections::BTreeSet;
use std::ops::Range;

const PROGRAM: &str = include_str!("patch_support/program.c");

struct Case {
    old: Vec<u8>,
    new: Vec<u8>,
    plan: PatchPlan,
}

fn case(flags: &str) -> Option<Case> {
    let lab = Lab::new();
    let original = lab.compile("program", PROGRAM, &format!("gcc -fopenmp -O2 {flags}"))?;
    let old = std::fs::read(&original).unwrap();
    let scan = scan(&original, true);
    // Call sites in windows are led elsewhere by the trampoline; keep some windows out, to have both forms.
    let left_out: BTreeSet<u32> = scan
        .windows
        .iter()
        .step_by(2)
        .flat_map(|w| w.sites.clone())
        .collect();
    let selected = (0..scan.sites.len() as u32)
        .filter(|id| !left_out.contains(id))
        .collect();
    let options = PlanOptions {
        selected: Some(selected),
        ..PlanOptions::default()
    };
    let Patched { bytes, plan, .. } = patch(&old, &scan, &options).unwrap();
    Some(Case {
        old,
        new: bytes,
        plan,
    })
}

impl Case {
    fn chunk(&self, what: &str) -> Range<usize> {
        let mut all = self.plan.edits.iter().chain(&self.plan.appended);
        let range = all.find(|c| c.what == what).unwrap().range();
        range.start as usize..range.end as usize
    }

    /// What `verify` says of the damaged file without a plan.
    fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> Result<(), VerifyError> {
        let mut bytes = self.new.clone();
        damage(&mut bytes);
        assert!(bytes != self.new);
        assert!(verify(&self.old, &bytes, Some(&self.plan)).is_err());
        verify(&self.old, &bytes, None).map(|_| ())
    }
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

fn add(bytes: &mut [u8], at: usize, n: i32) {
    let old = i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    put(bytes, at, &(old + n).to_le_bytes());
}

/// Kinds of damage, each with the words of the check that rejects it.
type Damage<'a> = (&'static str, Box<dyn Fn(&mut Vec<u8>) + 'a>, &'static str);

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
fn damages(case: &Case, direct: bool) -> Vec<Damage<'_>> {
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
    let n_sites = case.plan.description.as_ref().unwrap().sites.len();
    let own_site = sites + 64 * call.site as usize;
    let windows = sites + 64 * n_sites;
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
    let flip = |at: usize| -> Box<dyn Fn(&mut Vec<u8>)> { Box::new(move |b| b[at] ^= 1) };
    let more =
        |at: usize, n: i32| -> Box<dyn Fn(&mut Vec<u8>)> { Box::new(move |b| add(b, at, n)) };
    let zero = |at: usize, len: usize| -> Box<dyn Fn(&mut Vec<u8>)> {
        Box::new(move |b| b[at..at + len].fill(0))
    };
    let changed = "outside every planned range";
    let note = program_header(new, PT_NOTE, 0);
    let mut all: Vec<Damage<'_>> = vec![
        (
            "call: displacement off by one",
            more(call_end - 4, 1),
            "expected `mov r11",
        ),
        (
            "call: leads to another stub",
            more(call_end - 4, 32),
            "expected `",
        ),
        (
            "call: opcode",
            flip(call_end - 5),
            "expected `call to a stub`",
        ),
        ("call: the byte behind it", flip(neighbour), changed),
        (
            "stub: another slot",
            more(stub + 3, 8),
            "expected `mov r11, qword ptr [0x",
        ),
        (
            "stub: another site",
            more(stub + if direct { 19 } else { 15 }, 64),
            "expected `lea r10",
        ),
        (
            "stub: jumps elsewhere",
            flip(stub + if direct { 25 } else { 21 }),
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
            flip(trampoline + 5),
            "expected `pushfq",
        ),
        (
            "trampoline: another site",
            more(trampoline + 25, 64),
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
            "the note is of another version",
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
            more(sites + 64 + 32, 1),
            "site 1 at 0x",
        ),
        (
            "site table: address",
            more(own_site + 16, 1),
            "isn't that of the self-description",
        ),
        (
            "site table: region",
            more(own_site + 36, 1),
            "isn't that of the self-description",
        ),
        (
            "site table: construct",
            flip(own_site + 44),
            "isn't that of the self-description",
        ),
        (
            "site table: header",
            more(own_site + 8, 8),
            "its entry in the site table is damaged",
        ),
        (
            "site table: target",
            more(own_site, 8),
            "isn't what the site table says",
        ),
        (
            "site table: no such probe",
            Box::new(move |b| b[own_site + 41] = 0xee),
            "its probe is unknown",
        ),
        (
            "site table: no probe",
            zero(own_site + 40, 2),
            "disagree about its probe",
        ),
        (
            "site table: flags",
            flip(own_site + 42),
            "isn't what the site table says",
        ),
        (
            "window table: start",
            more(windows + 8, 1),
            "expected `jmp 0x",
        ),
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
            "the dynamic string table",
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
            more(header + 16 + 8 * 16 + 8, 64),
            "isn't that of the self-description",
        ),
        (
            "module header: number of sites",
            more(header + 12, -1),
            "differ in length",
        ),
        (
            "module header: number of the module",
            flip(header + 16 + 8 * 16 + 16),
            "the module header is damaged",
        ),
        (
            "self-description: no JSON",
            flip(text.start),
            "the self-description can't be read",
        ),
        (
            "self-description: a site's outcome",
            Box::new(move |b| replace(b, b"\"outcome\":\"patched\"", b"\"outcome\":\"skipped\"")),
            "disagree about its probe",
        ),
        (
            "self-description: the original's hash",
            Box::new(move |b| swap(b, b"\"original_sha256\":\"")),
            "made of another original",
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
            "stub: another original target",
            more(stub + 12, 16),
            "expected `je 0x",
        ));
    } else {
        all.push((
            "stub: another GOT slot",
            more(stub + 24, 8),
            "expected `jmp qword ptr [0x",
        ));
        all.push((
            "stub: the way past the thunk",
            flip(stub + 11),
            "expected `je 0x",
        ));
    }
    all
}

/// Offset of the value of the last `DT_NEEDED`.
fn tag_value(bytes: &[u8], dynamic: usize) -> usize {
    let entries = (0..64).map(|n| dynamic + 16 * n);
    let used = entries.take_while(|&at| word(bytes, at) != 0);
    used.filter(|&at| word(bytes, at) == 1).last().unwrap() + 8
}

fn find(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).rposition(|w| w == text).unwrap()
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let at = find(bytes, from);
    put(bytes, at, to);
}

/// Makes the digit behind a text another one.
fn swap(bytes: &mut [u8], text: &[u8]) {
    let at = find(bytes, text) + text.len();
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
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

#[test]
fn every_kind_of_damage_is_rejected_by_its_check() {
    for (flags, direct) in [("-no-pie", true), ("-no-pie -fno-plt", false), ("", true)] {
        let Some(case) = case(flags) else { return };
        let mut wrong = Vec::new();
        println!("{:<50} rejected by (gcc {flags})", "damage");
        for (kind, damage, words) in damages(&case, direct) {
            match case.damaged(|b| damage(b)) {
                Err(e) if e.to_string().contains(words) => println!("{kind:<50} {e}"),
                Err(e) => wrong.push(format!("{kind}: {e}, not {words:?}")),
                Ok(()) => wrong.push(format!("{kind}: accepted")),
            }
        }
        assert!(wrong.is_empty(), "gcc {flags}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn other_files_are_named() {
    let Some(case) = case("-no-pie") else { return };
    let mut other = case.old.clone();
    *other.last_mut().unwrap() ^= 1;
    let error = verify(&other, &case.new, None).unwrap_err();
    assert!(matches!(error, VerifyError::OtherOriginal { .. }));
    assert!(verify(&case.old, b"\x7fELF", None).is_err());
    assert!(verify(&case.new, &case.old, None).is_err());
    let tampered = verify(&case.old, &case.old, Some(&case.plan));
    assert!(tampered.is_err(), "the plan said to patch");
}

/// Bytes whose meaning `verify` can't judge without the plan: texts, and what a probe reads.
fn undecidable(case: &Case) -> Vec<Range<usize>> {
    let tables = case.chunk("tables");
    let sites = tables.start + 56..;
    let mut ranges = vec![case.chunk("description")];
    let sites_len = case.plan.description.as_ref().unwrap().sites.len();
    for site in 0..sites_len {
        let at = sites.start + 64 * site;
        ranges.extend([
            at + 24..at + 32,
            at + 40..at + 43,
            at + 45..at + 47,
            at + 48..at + 64,
        ]);
    }
    // The library's name; call-frame instructions that mean the same where it matters.
    ranges.push(sites.start + 64 * sites_len..tables.end);
    ranges.push(case.chunk("debug frames"));
    ranges
}

#[test]
fn every_flipped_bit_counts() {
    for flags in ["", "-no-pie -Wl,-z,noseparate-code -Wl,-z,norelro"] {
        let Some(case) = case(flags) else { return };
        let undecidable = undecidable(&case);
        // Densely where something was changed or added, thinly elsewhere.
        let mut state = 1u32;
        let mut random = move || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as usize
        };
        let mut places: Vec<usize> = (0..80).map(|_| random() % case.new.len()).collect();
        for chunk in case.plan.edits.iter().chain(&case.plan.appended) {
            let range = chunk.range();
            let count = if chunk.bytes.len() > 64 { 30 } else { 2 };
            places.extend((0..count).map(|_| range.start as usize + random() % chunk.bytes.len()));
        }
        let (mut missed, mut wrong) = (0, Vec::new());
        for at in places {
            let bit = 1 << (random() % 8);
            match case.damaged(|b| b[at] ^= bit) {
                Err(_) => {}
                Ok(()) if undecidable.iter().any(|r| r.contains(&at)) => missed += 1,
                Ok(()) => {
                    let mut chunks = case.plan.edits.iter().chain(&case.plan.appended);
                    let chunk = chunks.find(|c| c.range().contains(&(at as u64)));
                    let place = chunk.map(|c| (c.what, at as u64 - c.offset));
                    let around = &case.new[at.saturating_sub(8)..(at + 8).min(case.new.len())];
                    wrong.push(format!(
                        "bit {bit:#x} of byte {at:#x}: {place:?}, {around:02x?}"
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "went unnoticed:\n{}", wrong.join("\n"));
        println!("{missed} flips can't be judged without the plan");
    }
}

#[test]
fn patching_twice_is_refused() {
    let Some(case) = case("") else { return };
    let lab = Lab::new();
    let patched = lab.write("patched", &case.new);
    let error = plan(&case.new, &scan(&patched, false), &PlanOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot patch patched: it is patched already; start from the original"
    );
}
