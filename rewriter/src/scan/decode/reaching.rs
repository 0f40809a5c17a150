//! Which instructions a register's value may come from, along all ways that are known while a function is decoded.

use super::decoded::{Decoded, Flow, Joins};
use crate::scan::flow::lift::{self, Effect, How};
use crate::scan::flow::uses;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Registers that a called function leaves as they were.
const KEPT: [Register; 7] = [
    Register::RBX,
    Register::RBP,
    Register::RSP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

impl Decoded {
    /// The instructions that last wrote a register before this address, on any way there; `None` where one of the ways
    /// comes from the function's beginning, or from a call that may have changed it.
    pub(crate) fn definitions(
        &self,
        va: u64,
        register: Register,
        joins: &Joins,
    ) -> Option<Vec<&Instruction>> {
        let mut info = InstructionInfoFactory::new();
        // Most registers are written right there.
        let mut at = va;
        while joins.range.contains(&at) && !joins.all.contains(&at) {
            let number = self.falls_to(at).filter(|&i| self.runs_on(i))?;
            let insn = &self.insns[number];
            match writes(insn, register, &mut info)? {
                true => return Some(vec![insn]),
                false => at = insn.ip(),
            }
        }
        joins.left.set(true);
        let ways = &self.ways;
        let begins = self.grid.ranges.first().map(|range| range.start);
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut work = vec![at];
        while let Some(at) = work.pop() {
            if !seen.insert(at) {
                continue;
            }
            self.spend(1);
            if self.is_spent() || begins == Some(at) {
                return None;
            }
            let falls = |i: &usize| !ways.ends.contains(&(*i as u32)) && self.runs_on(*i);
            let behind = self.falls_to(at).filter(falls);
            let sources = ways.to.get(&at).into_iter().flatten();
            let sources = sources.map(|&i| i as usize).chain(behind);
            let mut any = false;
            for number in sources {
                any = true;
                let insn = &self.insns[number];
                match writes(insn, register, &mut info) {
                    Some(true) => found.push(insn),
                    Some(false) => work.push(insn.ip()),
                    None => return None,
                }
            }
            if !any {
                return None;
            }
        }
        found.sort_unstable_by_key(|insn| insn.ip());
        found.dedup_by_key(|insn| insn.ip());
        Some(found)
    }

    /// The number of the instruction right before an address.
    fn falls_to(&self, va: u64) -> Option<usize> {
        let number = self.grid.insn_before(va.checked_sub(1)?)?;
        (self.insns[number].next_ip() == va).then_some(number)
    }

    /// Whether the next instruction may follow, as far as the instruction itself tells.
    fn runs_on(&self, number: usize) -> bool {
        !matches!(
            self.insns[number].flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        )
    }
}

/// Branches backwards.
#[derive(Default)]
pub(super) struct Ways {
    /// Numbers of the instructions that lead to an address.
    pub(super) to: BTreeMap<u64, SmallVec<[u32; 2]>>,
    /// Numbers of those that nothing follows.
    ends: FxHashSet<u32>,
    /// So many flows are in here.
    known: usize,
}

impl Ways {
    /// Takes in what was found since.
    pub(super) fn learn(&mut self, flows: &[Flow]) {
        for flow in &flows[self.known..] {
            for &target in flow.targets.iter().chain(&flow.pads) {
                self.to.entry(target).or_default().push(flow.insn);
            }
            if !flow.falls {
                self.ends.insert(flow.insn);
            }
        }
        self.known = flows.len();
    }
}

/// Whether an instruction writes a register; `None`: perhaps, or in part.
fn writes(
    insn: &Instruction,
    register: Register,
    info: &mut InstructionInfoFactory,
) -> Option<bool> {
    if matches!(
        insn.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    ) && !KEPT.contains(&register)
    {
        return None;
    }
    if let Some(known) = plainly_writes(insn, register) {
        return known;
    }
    let mut written = Some(false);
    for used in info.info(insn).used_registers() {
        if used.register().full_register() != register {
            continue;
        }
        match used.access() {
            OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess => {}
            OpAccess::Write | OpAccess::ReadWrite if used.register().size() >= 4 => {
                written = written.map(|_| true);
            }
            _ => written = None,
        }
    }
    written
}

/// As [`writes`], of the most frequent instructions.
fn plainly_writes(insn: &Instruction, register: Register) -> Option<Option<bool>> {
    if insn.is_jcc_short_or_near() {
        return Some(Some(false));
    }
    let Some(effect) = Effect::of(insn) else {
        let apart = uses::is_of_vectors(insn) && !uses::sets_rcx(insn);
        return apart.then_some(Some(false));
    };
    let to = lift::register(insn, effect.to).filter(|to| to.full_register() == register);
    Some(match (to, effect.how) {
        (None, _) => Some(false),
        (Some(_), How::Choose(_)) => None,
        (Some(to), _) => (to.size() >= 4).then_some(true),
    })
}
