//! One test per form of instruction that is displaced.

use super::*;
use crate::count::Term;
use crate::image::tests::{CODE, tiny};
use crate::stubs::STUB_LEN;

const AT: u64 = 0x40_5000;
const ANCHORS: Anchors = Anchors {
    count_slot: 0x40_6028,
    inline_slot: 0x40_6020,
    sites: 0x40_4000,
    stubs: 0x40_5800,
};

/// The window over all of `code`.
fn window(code: &[u8]) -> Window {
    Window {
        start: LinkVa(CODE),
        len: code.len() as u32,
        sites: Vec::new(),
        island: None,
    }
}

/// The trampoline of a window over all of `code`.
fn displace(code: &[u8], calls: &[u64]) -> Result<Vec<u8>, String> {
    let file = tiny(code);
    let image = Image::read(&file, "tiny").unwrap();
    let window = window(code);
    let calls = calls.iter().map(|at| (LinkVa(CODE + at), 1)).collect();
    let trampoline =
        Trampoline::new(&image, &window, (&[], &[]), &calls).map_err(|e| e.to_string())?;
    Ok(trampoline.encode(LinkVa(AT), &ANCHORS).unwrap())
}

/// `head`, and a displacement that leads from the end of the instruction to `to`.
fn leads(at: u64, head: &[u8], to: u64) -> Vec<u8> {
    let end = at + head.len() as u64 + 4;
    [head, &(to.wrapping_sub(end) as i32).to_le_bytes()].concat()
}

fn back(code: &[u8], from: u64) -> Vec<u8> {
    leads(AT + from, &[0xe9], CODE + code.len() as u64)
}

#[test]
fn plain_instructions_are_copied() {
    let code = [0x48, 0x89, 0xd8, 0x99, 0xf7, 0xfb]; // mov rax, rbx; cdq; idiv ebx
    assert_eq!(
        displace(&code, &[]).unwrap(),
        [&code[..], &back(&code, 6)].concat()
    );
}

#[test]
fn addresses_relative_to_rip_lead_to_the_same_place() {
    // cmp dword ptr [rip + 0x10], 7
    let code = [0x83, 0x3d, 0x10, 0, 0, 0, 7];
    let to = CODE + 7 + 0x10;
    let moved = [
        &[0x83, 0x3d][..],
        &(to.wrapping_sub(AT + 7) as i32).to_le_bytes(),
        &[7],
    ]
    .concat();
    assert_eq!(
        displace(&code, &[]).unwrap(),
        [moved, back(&code, 7)].concat()
    );
}

#[test]
fn short_branches_become_long() {
    // jle +0x20; mov eax, ebx; nop
    let code = [0x7e, 0x20, 0x89, 0xd8, 0x90];
    let jle = leads(AT, &[0x0f, 0x8e], CODE + 0x22);
    let rest = [0x89, 0xd8, 0x90];
    assert_eq!(
        displace(&code, &[]).unwrap(),
        [jle, rest.to_vec(), back(&code, 9)].concat()
    );
    // jmp -0x10 and padding
    let code = [0xeb, 0xf0, 0x66, 0x90, 0xcc];
    assert_eq!(
        displace(&code, &[]).unwrap(),
        leads(AT, &[0xe9], CODE + 2 - 0x10)
    );
}

#[test]
fn returns_and_indirect_jumps_end_a_trampoline() {
    // pop rbx; ret; nop dword ptr [rax]
    let code = [0x5b, 0xc3, 0x0f, 0x1f, 0x00];
    assert_eq!(displace(&code, &[]).unwrap(), [0x5b, 0xc3]);
    // mov eax, ebx; jmp [rcx + 8]
    let code = [0x89, 0xd8, 0xff, 0x61, 0x08];
    assert_eq!(displace(&code, &[]).unwrap(), code);
}

#[test]
fn calls_return_to_the_original() {
    let push = |at: u64, to: u64| {
        let lea = leads(at + 7, &[0x4c, 0x8d, 0x1d], to);
        let store = [0x4c, 0x89, 0x5c, 0x24, 0x08, 0x41, 0x5b];
        [
            &[0x48, 0x8d, 0x64, 0x24, 0xf8, 0x41, 0x53][..],
            &lea,
            &store,
        ]
        .concat()
    };
    // call +0x100
    let code = [0xe8, 0, 1, 0, 0];
    let jump = leads(AT + 21, &[0xe9], CODE + 0x105);
    assert_eq!(
        displace(&code, &[]).unwrap(),
        [push(AT, CODE + 5), jump].concat()
    );
    // The same as a call site: to its stub.
    let jump = leads(AT + 21, &[0xe9], ANCHORS.stubs + STUB_LEN);
    assert_eq!(
        displace(&code, &[0]).unwrap(),
        [push(AT, CODE + 5), jump].concat()
    );
    // mov edi, eax; call [rip + 0x100]
    let code = [0x89, 0xc7, 0xff, 0x15, 0, 1, 0, 0];
    let jump = leads(AT + 23, &[0xff, 0x25], CODE + 0x108);
    let expected = [vec![0x89, 0xc7], push(AT + 2, CODE + 8), jump].concat();
    assert_eq!(displace(&code, &[]).unwrap(), expected);
    // mov edi, eax; call r12
    let code = [0x89, 0xc7, 0x41, 0xff, 0xd4];
    let expected = [
        vec![0x89, 0xc7],
        push(AT + 2, CODE + 5),
        vec![0x41, 0xff, 0xe4],
    ]
    .concat();
    assert_eq!(displace(&code, &[]).unwrap(), expected);
}

#[test]
fn what_cannot_move_is_refused() {
    let refused = |code: &[u8], why: &str| {
        let text = displace(code, &[]).unwrap_err();
        assert!(
            text.contains(why) && text.contains("--skip 0x400100"),
            "{text}"
        );
    };
    refused(&[0x90; 4], "4 bytes free, 5 needed");
    refused(&[0xe3, 0x10, 0x90, 0x90, 0x90], "no form that reaches far"); // jrcxz
    refused(
        &[0xe8, 0, 0, 0, 0, 0x90],
        "a call that doesn't end its window",
    );
    refused(
        &[0x90, 0xff, 0x54, 0x24, 0x08],
        "a call that can't be moved",
    ); // call [rsp + 8]
    refused(
        &[0x90, 0x90, 0x90, 0x90, 0x48],
        "no instruction at 0x400104",
    );
    refused(
        &[0xeb, 0x10, 0x89, 0xd8, 0x90],
        "the code at 0x400102 is no padding",
    );
    refused(
        &[0x67, 0x8b, 0x05, 0, 0, 0, 0],
        "an address that can't be moved",
    ); // [eip]
    refused(&[0xc7, 0xf8, 0, 0, 0, 0], "belongs to a transaction"); // xbegin
}

#[test]
fn probes_stand_before_their_instruction() {
    let code = [0x89, 0xd8, 0x99, 0xf7, 0xfb]; // mov eax, ebx; cdq; idiv ebx
    let file = tiny(&code);
    let image = Image::read(&file, "tiny").unwrap();
    let window = Window {
        start: LinkVa(CODE),
        len: 5,
        sites: vec![3],
        island: None,
    };
    let probes = [Placing {
        site: 5,
        entry: 3,
        at: LinkVa(CODE + 2),
    }];
    let trampoline = Trampoline::new(&image, &window, (&probes, &[]), &BTreeMap::new()).unwrap();
    let bytes = trampoline.encode(LinkVa(AT), &ANCHORS).unwrap();
    assert_eq!((bytes.len(), trampoline.len()), (5 + 54 + 5, 64));
    assert_eq!(bytes[..2], code[..2]);
    assert_eq!(
        bytes[2..12],
        [0x48, 0x8d, 0x64, 0x24, 0x80, 0x41, 0x53, 0x41, 0x52, 0x50]
    );
    assert_eq!(
        bytes[17..24],
        leads(AT + 17, &[0x4c, 0x8b, 0x1d], ANCHORS.inline_slot)
    );
    assert_eq!(
        bytes[29..36],
        leads(AT + 29, &[0x4c, 0x8d, 0x15], ANCHORS.sites + 3 * 32)
    );
    assert_eq!(bytes[56..59], code[2..]);
    let depths: Vec<_> = trampoline
        .marks()
        .iter()
        .map(|m| (m.offset, m.depth))
        .collect();
    assert_eq!(depths[0..3], [(0, 0), (2, 0), (7, 128)]);
    assert_eq!(
        trampoline.window_bytes(LinkVa(AT)).unwrap(),
        leads(CODE, &[0xe9], AT)
    );
    let wrong = [Placing {
        site: 0,
        entry: 3,
        at: LinkVa(CODE + 1),
    }];
    let text = Trampoline::new(&image, &window, (&wrong, &[]), &BTreeMap::new()).unwrap_err();
    assert!(
        text.to_string().contains("not the start of an instruction"),
        "{text}"
    );
}

/// A window with constants in it.
fn counted(code: &[u8], increments: &[Increment]) -> Result<Trampoline, String> {
    let file = tiny(code);
    let image = Image::read(&file, "tiny").unwrap();
    let window = window(code);
    let made = Trampoline::new(&image, &window, (&[], increments), &BTreeMap::new());
    made.map_err(|e| e.to_string())
}

fn increment(at: u64, place: Place, amount: i32, scratch: Option<u8>) -> Increment {
    Increment {
        at: CODE + at,
        place,
        amounts: [amount, 0, 0, 0, 0, 0],
        scratch,
        term: None,
    }
}

#[test]
fn constants_are_added_before_their_instruction() {
    let code = [0x89, 0xd8, 0x99, 0xf7, 0xfb]; // mov eax, ebx; cdq; idiv ebx
    let own = increment(2, Place::Before, 7, Some(8));
    let trampoline = counted(&code, &[own]).unwrap();
    let bytes = trampoline.encode(LinkVa(AT), &ANCHORS).unwrap();
    assert_eq!(bytes[..2], code[..2]);
    // mov r8, [slot]; test r8, r8; jz +6; add qword ptr fs:[r8], 7
    assert_eq!(
        bytes[2..9],
        leads(AT + 2, &[0x4c, 0x8b, 0x05], ANCHORS.count_slot)
    );
    assert_eq!(bytes[9..14], [0x4d, 0x85, 0xc0, 0x74, 5]);
    assert_eq!(bytes[14..19], [0x64, 0x49, 0x83, 0x00, 7]);
    assert_eq!(bytes[19..22], code[2..]);
    let saved = increment(2, Place::Before, -1000, None);
    let trampoline = counted(&code, &[saved]).unwrap();
    let bytes = trampoline.encode(LinkVa(AT), &ANCHORS).unwrap();
    assert_eq!(bytes[2..9], [0x48, 0x8d, 0x64, 0x24, 0x80, 0x51, 0x50]);
    assert_eq!(
        bytes[25..33],
        [0x64, 0x48, 0x81, 0x01, 0x18, 0xfc, 0xff, 0xff]
    );
    assert_eq!(bytes[33..38], [0x04, 127, 0x9e, 0x58, 0x59]);
    let depths = trampoline.marks();
    let depths: Vec<_> = depths.iter().map(|m| (m.offset, m.depth)).collect();
    let saves = [
        (2, 0),
        (7, 128),
        (8, 136),
        (9, 144),
        (37, 136),
        (38, 128),
        (46, 0),
    ];
    assert_eq!(depths[1..8], saves);
    let wrong = counted(&code, &[increment(1, Place::Before, 1, None)]).unwrap_err();
    assert!(wrong.contains("not the start of an instruction"), "{wrong}");
}

#[test]
fn multiples_of_a_register_are_added() {
    let code = [0x89, 0xd8, 0x99, 0xf7, 0xfb]; // mov eax, ebx; cdq; idiv ebx
    let own = |spare: u8, kept: u8, factor: i64| Increment {
        term: Some(Term {
            register: 13,
            spare,
            kept,
            factors: [0, factor, 0, 0, 0, 0],
        }),
        amounts: [3, 1000, 0, 0, 0, 0],
        ..increment(2, Place::Before, 0, Some(8))
    };
    let of = |increment: Increment| {
        let trampoline = counted(&code, &[increment]).unwrap();
        let bytes = trampoline.encode(LinkVa(AT), &ANCHORS).unwrap();
        assert_eq!(bytes.len(), trampoline.len());
        let depths = trampoline.marks();
        let depths: Vec<_> = depths.iter().map(|m| (m.offset, m.depth)).collect();
        (bytes, depths)
    };
    let (bytes, depths) = of(own(2, 0, 512));
    // add qword ptr fs:[r8], 3
    assert_eq!(bytes[14..19], [0x64, 0x49, 0x83, 0x00, 3]);
    // imul rdx, r13, 512; add rdx, 1000; add qword ptr fs:[r8 + 8], rdx
    assert_eq!(bytes[19..26], [0x49, 0x69, 0xd5, 0, 2, 0, 0]);
    assert_eq!(bytes[26..33], [0x48, 0x81, 0xc2, 0xe8, 3, 0, 0]);
    assert_eq!(bytes[33..38], [0x64, 0x49, 0x01, 0x50, 8]);
    assert_eq!(bytes[12..14], [0x74, 24]);
    assert_eq!(depths[1..3], [(2, 0), (38, 0)]);
    // lea rsp, [rsp - 128]; push r9; push r8; ...; mov r9, ...; imul r9, r13; ...; pop r8; pop r9; lea rsp, [rsp + 128]
    let (bytes, depths) = of(own(9, 2, 1 << 40));
    assert_eq!(
        bytes[2..11],
        [0x48, 0x8d, 0x64, 0x24, 0x80, 0x41, 0x51, 0x41, 0x50]
    );
    assert_eq!(bytes[28..38], [0x49, 0xb9, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(bytes[38..42], [0x4d, 0x0f, 0xaf, 0xcd]);
    assert_eq!(
        bytes[42..54],
        [0x49, 0x81, 0xc1, 0xe8, 3, 0, 0, 0x64, 0x4d, 0x01, 0x48, 8]
    );
    assert_eq!(bytes[54..58], [0x41, 0x58, 0x41, 0x59]);
    let kept = [
        (2, 0),
        (7, 128),
        (9, 136),
        (11, 144),
        (56, 136),
        (58, 128),
        (66, 0),
    ];
    assert_eq!(depths[1..8], kept);
}

#[test]
fn constants_are_added_on_both_ways_from_a_jump() {
    let code = [0x48, 0x39, 0xc8, 0x75, 0x10]; // cmp rax, rcx; jne +16
    let own = [
        increment(3, Place::Behind, 3, Some(2)),
        increment(3, Place::Taken, 4, Some(6)),
    ];
    let trampoline = counted(&code, &own).unwrap();
    let bytes = trampoline.encode(LinkVa(AT), &ANCHORS).unwrap();
    let end = AT + 9 + 17 + 5;
    assert_eq!(bytes[3..9], leads(AT + 3, &[0x0f, 0x85], end));
    assert_eq!(bytes[21..26], [0x64, 0x48, 0x83, 0x02, 3]);
    assert_eq!(bytes[26..31], back(&code, 26));
    assert_eq!(bytes[43..48], [0x64, 0x48, 0x83, 0x06, 4]);
    assert_eq!(bytes[48..], leads(AT + 48, &[0xe9], CODE + 5 + 16));
    assert_eq!(bytes.len(), trampoline.len());
    let last = trampoline.marks().pop().unwrap();
    assert_eq!((u64::from(last.offset), last.origin), (31, CODE + 3));
    // Not behind what is no conditional jump.
    let wrong = counted(&code, &[increment(0, Place::Taken, 1, None)]).unwrap_err();
    assert!(wrong.contains("no conditional jump"), "{wrong}");
}
