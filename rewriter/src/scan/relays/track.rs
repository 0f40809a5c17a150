//! Where the addresses go that instructions make: on all paths, to everything that may use them.

use super::places::{ELSEWHERE, Origins, Places};
use super::step::Step;
use crate::model::Read;
use crate::scan::Module;
use crate::scan::cfg::Body;
use crate::scan::flow::dataflow::{Flow, slot};
use crate::scan::flow::slots::Slot;
use crate::scan::flow::uses::is_write;
use crate::scan::graph::settle;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// What an instruction that makes an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// What this slot holds: `mov r64, [rip + slot]`.
    Slot(u64),
    /// `lea r64, [rip + address]`.
    Address(u64),
    /// `movabs r64, number`: the address, or its distance from something that is added.
    Number(u64),
}

/// An instruction that makes an address.
#[derive(Debug)]
pub(super) struct Load {
    pub at: u64,
    pub end: u64,
    pub made: Made,
    /// Something else than a call, or nobody knows what, may use it.
    pub escapes: bool,
    /// The calls and jumps that may use it.
    pub calls: BTreeSet<u64>,
    /// The slot that it is the distance of, from what is added where it is read.
    pub table: Option<u64>,
    /// The instructions that read that slot.
    pub reads: BTreeSet<Read>,
}

/// Everything that was followed in a function.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    pub loads: Vec<Load>,
    /// By call or jump through a register or variable: what the address may come from.
    pub calls: FxHashMap<u64, Origins>,
    /// The jumps among them.
    pub tails: FxHashSet<u64>,
    /// The address itself, where it is a constant.
    pub constants: FxHashMap<u64, u64>,
    by_address: FxHashMap<u64, usize>,
    /// Slots that a call may have got as arguments, and what they held.
    pub(super) passed: FxHashMap<(u64, Slot), Origins>,
    /// Those that were read again behind the call: a callee owns its arguments, so that they were none.
    pub(super) kept: FxHashSet<(u64, Slot)>,
}

impl Tracks {
    /// Follows every address of a function that may be the runtime's.
    pub(super) fn follow(module: &Module<'_>, body: &Body, flow: &Flow) -> Tracks {
        let mut tracks = Tracks::default();
        let Some(&root) = body.roots.first() else {
            return tracks;
        };
        let mut info = InstructionInfoFactory::new();
        let written = written(module, body, flow);
        let step = |block: usize, places: &mut Places| {
            flow.visit(module, body, block, |_, insn, state| {
                let mut step = Step {
                    module,
                    body,
                    flow,
                    tracks: &mut tracks,
                    info: &mut info,
                    written: &written,
                    state,
                };
                step.run(places, insn);
            });
            body.following(block)
        };
        settle(
            BTreeMap::from([(root, Places::default())]),
            step,
            Places::joined,
        );
        for (at, origins) in std::mem::take(&mut tracks.passed) {
            if !tracks.kept.contains(&at) {
                tracks.escape(&origins);
            }
        }
        tracks
    }

    /// The instruction's number, if it makes an address that may be the runtime's.
    pub(super) fn load(&mut self, module: &Module<'_>, insn: &Instruction) -> Option<usize> {
        if let Some(&n) = self.by_address.get(&insn.ip()) {
            return Some(n);
        }
        let made = makes(module, insn)?;
        let n = self.loads.len();
        self.loads.push(Load {
            at: insn.ip(),
            end: insn.next_ip(),
            made,
            escapes: false,
            calls: BTreeSet::new(),
            table: None,
            reads: BTreeSet::new(),
        });
        self.by_address.insert(insn.ip(), n);
        Some(n)
    }

    /// Something else than a call may use what comes from these.
    pub(super) fn escape(&mut self, origins: &Origins) {
        for &n in origins.iter().filter(|&&n| n != ELSEWHERE) {
            self.loads[n].escapes = true;
        }
    }

    /// What comes from these is the distance of a slot that an instruction reads.
    pub(super) fn read(&mut self, origins: &Origins, slot: u64, read: Read) {
        for &n in origins.iter().filter(|&&n| n != ELSEWHERE) {
            let load = &mut self.loads[n];
            // One instruction for several slots: what it reads can't be put in its place.
            load.escapes |= load.table.is_some_and(|known| known != slot);
            load.table = Some(slot);
            load.reads.insert(read);
        }
    }

    /// Whether a number that is added to it changes the address as it should.
    pub(super) fn are_numbers(&self, origins: &Origins) -> bool {
        origins
            .iter()
            .all(|&n| n == ELSEWHERE || matches!(self.loads[n].made, Made::Number(_)))
    }
}

/// Places on the stack that a function writes.
fn written(module: &Module<'_>, body: &Body, flow: &Flow) -> FxHashSet<Slot> {
    let mut info = InstructionInfoFactory::new();
    let mut out = FxHashSet::default();
    for block in 0..body.blocks.len() {
        flow.visit(module, body, block, |_, insn, state| {
            let used = info.info(insn).used_memory();
            if !used.iter().any(|m| is_write(m.access())) {
                return;
            }
            let at = match insn.mnemonic() {
                Mnemonic::Push => state.regs.slot(4).and_then(|at| at.plus(-8)),
                _ => slot(state, insn),
            };
            let Some(at) = at else {
                return;
            };
            // Words that have bytes in common with it.
            let size = i64::try_from(insn.memory_size().size().max(8)).unwrap_or(64);
            out.extend((-7..size).filter_map(|n| at.plus(n)));
        });
    }
    out
}

/// What the instruction makes, if its bytes can be changed to make another address.
fn makes(module: &Module<'_>, insn: &Instruction) -> Option<Made> {
    use iced_x86::Code;
    let relative = insn.is_ip_rel_memory_operand()
        && insn.memory_base() == Register::RIP
        && insn.segment_prefix() == Register::None;
    match insn.code() {
        Code::Mov_r64_rm64 if relative && insn.len() == 7 => {
            let slot = insn.ip_rel_memory_address();
            let known = module.entries.slots.contains_key(&slot);
            known.then_some(Made::Slot(slot))
        }
        Code::Lea_r64_m if relative && insn.len() == 7 => {
            let va = insn.ip_rel_memory_address();
            let known = module.entries.targets.contains_key(&va);
            known.then_some(Made::Address(va))
        }
        Code::Mov_r64_imm64 if insn.len() == 10 => Some(Made::Number(insn.immediate64())),
        _ => None,
    }
}
