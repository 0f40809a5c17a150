//! Bytes that compilers make in front of jumps through tables.

use super::*;
use iced_x86::{Decoder, DecoderOptions};

const AT: u64 = 0x1000;

/// What the instructions before the last one, a jump, tell of its table.
fn limit_of(code: &[u8], joins: &[u64]) -> Option<Limit> {
    let all: Vec<Instruction> = Decoder::with_ip(64, code, AT, DecoderOptions::NONE)
        .iter()
        .collect();
    let (jump, before) = all.split_last().unwrap();
    let before: Vec<&Instruction> = before.iter().rev().collect();
    limit(&before, jump, None, |va| joins.contains(&va))
}

#[test]
fn comparisons_of_the_index() {
    // gcc 12 -O2: mov r12, r15; sar r12, 4; cmp r15, 0x40; ja; lea r15, [rip]; movsxd rbx, [r15 + 4 r12]; add rbx, r15; jmp rbx
    let shifted = [
        0x4d, 0x89, 0xfc, 0x49, 0xc1, 0xfc, 0x04, 0x49, 0x83, 0xff, 0x40, 0x77, 0x10, 0x4c, 0x8d,
        0x3d, 0, 0, 0, 0, 0x4b, 0x63, 0x1c, 0xa7, 0x4c, 0x01, 0xfb, 0xff, 0xe3,
    ];
    assert_eq!(limit_of(&shifted, &[]), Some(Limit::Exactly(5)));
    assert_eq!(limit_of(&shifted, &[AT]), Some(Limit::Exactly(5)));
    // Somebody comes past the comparison, or past the copy.
    for behind in [3, 7, 13, 20] {
        let found = limit_of(&shifted, &[AT + behind]);
        assert!(!matches!(found, Some(Limit::Exactly(_))), "{behind}");
    }
    // Half of what is shifted is compared: cmp r15d, 0x40.
    let mut half = shifted;
    half[7] = 0x41;
    assert!(!matches!(limit_of(&half, &[]), Some(Limit::Exactly(_))));
    // Another register is.
    let mut other = shifted;
    (other[7], other[9]) = (0x48, 0xff); // cmp rdi, 0x40
    assert!(!matches!(limit_of(&other, &[]), Some(Limit::Exactly(_))));
}

#[test]
fn forms_of_compilers() {
    // clang -O0: mov eax, [rbp - 8]; mov ecx, eax; mov [rbp - 16], rcx; sub eax, 5; ja; mov rax, [rbp - 16];
    // lea rcx, [rip]; movsxd rax, [rcx + 4 rax]; add rax, rcx; jmp rax
    let clang = [
        0x8b, 0x45, 0xf8, 0x89, 0xc1, 0x48, 0x89, 0x4d, 0xf0, 0x83, 0xe8, 0x05, 0x77, 0x10, 0x48,
        0x8b, 0x45, 0xf0, 0x48, 0x8d, 0x0d, 0, 0, 0, 0, 0x48, 0x63, 0x04, 0x81, 0x48, 0x01, 0xc8,
        0xff, 0xe0,
    ];
    assert_eq!(limit_of(&clang, &[]), Some(Limit::Exactly(6)));
    // gcc -O0: cmp dword [rbp - 4], 6; ja; mov eax, [rbp - 4]; lea rdx, [4 rax]; lea rax, [rip]; mov eax, [rdx + rax];
    // cdqe; lea rdx, [rip]; add rax, rdx; notrack jmp rax
    let gcc = [
        0x83, 0x7d, 0xfc, 0x06, 0x77, 0x10, 0x8b, 0x45, 0xfc, 0x48, 0x8d, 0x14, 0x85, 0, 0, 0, 0,
        0x48, 0x8d, 0x05, 0, 0, 0, 0, 0x8b, 0x04, 0x02, 0x48, 0x98, 0x48, 0x8d, 0x15, 0, 0, 0, 0,
        0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0,
    ];
    assert_eq!(limit_of(&gcc, &[]), Some(Limit::Exactly(7)));
    // The same with a store in between, which may change it: mov [rdi], eax.
    let mut changed = gcc[..6].to_vec();
    changed.extend([0x89, 0x07]);
    changed.extend(&gcc[6..]);
    assert!(!matches!(limit_of(&changed, &[]), Some(Limit::Exactly(_))));
    // and eax, 7; jmp [8 rax + 0x2000]
    let masked = [0x83, 0xe0, 0x07, 0xff, 0x24, 0xc5, 0, 0x20, 0, 0];
    assert_eq!(limit_of(&masked, &[]), Some(Limit::AtMost(8)));
    // movzx eax, byte [rdi]; cmp al, 9; jae; jmp [8 rax + 0x2000]
    let byte = [
        0x0f, 0xb6, 0x07, 0x3c, 0x09, 0x73, 0x10, 0xff, 0x24, 0xc5, 0, 0x20, 0, 0,
    ];
    assert_eq!(limit_of(&byte, &[]), Some(Limit::Exactly(9)));
    assert_eq!(limit_of(&byte, &[AT + 7]), None);
}
