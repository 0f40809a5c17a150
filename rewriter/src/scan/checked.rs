//! Calls of the functions that gcc computes with where an overflow ends the program (`-ftrapv`): their sums and products are
//! the program's own arithmetic. They are in gcc's support library, which is linked in (its code is recognised, since nothing
//! needs its name any more) or imported.

use super::Module;
use super::image::Image;
use iced_x86::{FlowControl, Instruction, OpKind};

/// What such a function computes of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    Sum,
    Difference,
    Product,
    /// Of one argument.
    Negative,
}

/// The function of this name, for operands of 4 and 8 bytes.
pub(super) fn named(symbol: &str) -> Option<Checked> {
    match symbol.split('@').next().unwrap_or(symbol) {
        "__addvsi3" | "__addvdi3" => Some(Checked::Sum),
        "__subvsi3" | "__subvdi3" => Some(Checked::Difference),
        "__mulvsi3" | "__mulvdi3" => Some(Checked::Product),
        "__negvsi2" | "__negvdi2" => Some(Checked::Negative),
        _ => None,
    }
}

/// What the function that an instruction calls computes, if it is one of them.
pub(crate) fn called(module: &Module<'_>, insn: &Instruction) -> Option<Checked> {
    let entries = &module.entries;
    match (insn.flow_control(), insn.op0_kind()) {
        (FlowControl::Call, OpKind::NearBranch64) => {
            let target = insn.near_branch_target();
            let stub = entries.checked.get(&target).copied();
            stub.or_else(|| of_code(&module.image, target))
        }
        (FlowControl::IndirectCall, OpKind::Memory) if insn.is_ip_rel_memory_operand() => {
            let slot = insn.ip_rel_memory_address();
            entries.checked_slots.get(&slot).copied()
        }
        _ => None,
    }
}

/// What the function at an address computes: the first argument is moved, the second one added, and overflow is asked for.
fn of_code(image: &Image<'_>, target: u64) -> Option<Checked> {
    let code = image.rest(target)?;
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let (wide, code) = match code.strip_prefix(&[0x48]) {
        Some(code) => (&[0x48][..], code),
        None => (&[][..], code),
    };
    // mov eax, edi
    let code = code.strip_prefix(&[0x89, 0xf8])?.strip_prefix(wide)?;
    let operations: [(Checked, &[u8]); 4] = [
        (Checked::Sum, &[0x01, 0xf0]),
        (Checked::Difference, &[0x29, 0xf0]),
        (Checked::Product, &[0x0f, 0xaf, 0xc6]),
        (Checked::Negative, &[0xf7, 0xd8]),
    ];
    operations.into_iter().find_map(|(what, operation)| {
        let rest = code.strip_prefix(operation)?;
        let asks = rest.first() == Some(&0x70) || rest.starts_with(&[0x0f, 0x80]);
        asks.then_some(what)
    })
}

impl Checked {
    /// What it computes of two numbers.
    pub(crate) fn of(self, x: u64, y: u64) -> u64 {
        match self {
            Checked::Sum => x.wrapping_add(y),
            Checked::Difference => x.wrapping_sub(y),
            Checked::Product => x.wrapping_mul(y),
            Checked::Negative => x.wrapping_neg(),
        }
    }
}
