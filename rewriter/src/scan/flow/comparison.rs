//! The comparison that a conditional branch depends on.

use super::lift::{Effect, How, Part, Sets};
use super::uses::is_call;
use crate::scan::cfg::Body;
use iced_x86::Mnemonic;

/// The comparison whose flags the branch at the block's end reads, and what it does.
pub(crate) fn compare_before(body: &Body, block: usize) -> Option<(usize, Effect)> {
    let range = body.blocks[block].insns.clone();
    let last = range.end.checked_sub(1)?;
    let source = (range.start..last)
        .rev()
        .find(|&i| body.insns[i].rflags_modified() != 0 || is_call(&body.insns[i]))?;
    let equality = matches!(body.insns[last].mnemonic(), Mnemonic::Je | Mnemonic::Jne);
    let signed = matches!(
        body.insns[last].mnemonic(),
        Mnemonic::Jg | Mnemonic::Jge | Mnemonic::Jl | Mnemonic::Jle
    );
    let effect = Effect::of(&body.insns[source])?;
    // Compilers also compare with a constant by subtracting it, when the value isn't needed any more.
    let compares = effect.how == How::Subtract && effect.a == Part::Operand(0);
    let fits = match effect.sets {
        Sets::Comparison => effect.to == Part::None || equality,
        Sets::Order => equality || signed,
        _ => false,
    };
    (compares && fits).then_some((source, effect))
}
