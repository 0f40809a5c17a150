use super::*;
use iced_x86::{Decoder, DecoderOptions};

fn decoded(code: &[u8]) -> Instruction {
    Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode()
}

fn of(code: &[u8]) -> Option<Effect> {
    Effect::of(&decoded(code))
}

/// The result of two numbers, with a carry.
fn value(code: &[u8], x: u64, y: u64) -> Option<u64> {
    let insn = decoded(code);
    let carry = Some(Flags::of_difference(0, 1, 8));
    let parts = [Some(x), Some(y)];
    Effect::of(&insn).and_then(|e| e.run(&insn, parts, carry).0)
}

#[test]
fn registers_that_are_cleared_depend_on_nothing() {
    for code in [&[0x31, 0xc0][..], &[0x48, 0x29, 0xc9]] {
        let effect = of(code).unwrap(); // xor eax, eax; sub rcx, rcx
        assert_eq!((effect.how, effect.a), (How::Copy, Part::Constant(0)));
        assert_eq!((effect.to, effect.sets), (Part::Operand(0), Sets::Result));
    }
    let borrow = of(&[0x19, 0xc0]).unwrap(); // sbb eax, eax
    assert_eq!([borrow.a, borrow.b], [Part::Constant(0); 2]);
}

#[test]
fn what_compares() {
    // test eax, eax is a comparison with 0; test eax, ecx is none.
    let zero = of(&[0x85, 0xc0]).unwrap();
    assert_eq!((zero.b, zero.to), (Part::Constant(0), Part::None));
    assert_eq!(zero.sets, Sets::Comparison);
    assert_eq!(of(&[0x85, 0xc8]).unwrap().sets, Sets::Result);
    // dec eax leaves the carry flag.
    let insn = decoded(&[0xff, 0xc8]);
    let before = Some(Flags::of_difference(0, 1, 4));
    let (_, after) = Effect::of(&insn)
        .unwrap()
        .run(&insn, [Some(1), Some(1)], before);
    let after = after.unwrap();
    assert_eq!(after.holds(ConditionCode::e), Some(true));
    assert_eq!(after.holds(ConditionCode::b), Some(true));
}

#[test]
fn results() {
    assert_eq!(value(&[0x48, 0x83, 0xd0, 5], 2, 5), Some(8)); // adc rax, 5
    assert_eq!(value(&[0x48, 0x83, 0xd8, 5], 9, 5), Some(3)); // sbb rax, 5
    assert_eq!(value(&[0x0f, 0xbe, 0xc1], 0x80, 0), Some(!0x7f)); // movsx eax, cl
    assert_eq!(value(&[0x48, 0x98], 0xffff_ffff, 0), Some(!0)); // cdqe
    assert_eq!(
        value(&[0xc1, 0xf8, 33], 0x8000_0000, 33),
        Some(!0x3fff_ffff)
    ); // sar eax, 33
    assert_eq!(value(&[0xd3, 0xe8], 0x1_0000_0000, 0), Some(0)); // shr eax, cl
    assert_eq!(value(&[0x0f, 0x42, 0xc1], 1, 2), Some(2)); // cmovb eax, ecx
    assert_eq!(value(&[0x0f, 0x92, 0xc0], 0, 0), Some(1)); // setb al
    assert_eq!(value(&[0x0f, 0x43, 0xc1], 1, 2), Some(1)); // cmovae eax, ecx
}

#[test]
fn what_has_another_effect_is_none() {
    for code in [
        &[0x48, 0xf7, 0xe1][..],   // mul rcx: two registers
        &[0x48, 0x91],             // xchg rax, rcx
        &[0x75, 0],                // jne: it has a condition, and no result
        &[0x48, 0x0f, 0xb1, 0x0f], // cmpxchg [rdi], rcx
        &[0x0f, 0x58, 0xc1],       // addps xmm0, xmm1
    ] {
        assert_eq!(of(code), None);
    }
    // Of bytes: al times cl into ax.
    let bytes = of(&[0xf6, 0xe1]).unwrap();
    assert_eq!(bytes.to, Part::Register(Register::AX));
}

#[test]
fn sums_with_constants() {
    let sums = [
        (&[0x48, 0x8d, 0x48, 0xff][..], Register::RAX, -1), // lea rcx, [rax - 1]
        (&[0x83, 0xe9, 0xff], Register::ECX, 1),            // sub ecx, -1
        (&[0xff, 0xc1], Register::ECX, 1),                  // inc ecx
        (&[0x89, 0xc1], Register::EAX, 0),                  // mov ecx, eax
    ];
    for (code, register, more) in sums {
        let insn = decoded(code);
        let (from, by) = Effect::of(&insn).unwrap().sum(&insn).unwrap();
        assert_eq!((super::register(&insn, from), by), (Some(register), more));
    }
    assert_eq!(added_to(&decoded(&[0xff, 0xc1]), Register::RCX), Some(1));
    assert_eq!(added_to(&decoded(&[0x89, 0xc1]), Register::RCX), None);
    let sum = decoded(&[0x01, 0xc1]); // add ecx, eax
    assert_eq!(Effect::of(&sum).unwrap().sum(&sum), None);
}
