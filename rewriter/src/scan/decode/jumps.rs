//! Where indirect jumps lead, as far as the function is known, and whether that is all.

use super::decoded::Flow;
use super::jump_table::{self, Indirect, Table};
use super::made;
use super::{Builder, UNKNOWN_JUMP};
use crate::scan::cfg::Exit;
use crate::thunk::{capture, returns, through, thunk};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// A function whose jump tables hold more addresses than this is no compiler's: each is a way through the function.
const MAX_TARGETS: usize = 1 << 18;

impl Builder<'_, '_> {
    /// Whether a table was followed of which nothing tells the length.
    pub(super) fn has_open_tables(&self) -> bool {
        self.tables.iter().any(|(_, table, _)| table.open)
    }

    /// The addresses that the function's instructions name, ascending: a table ends where something else begins.
    pub(super) fn named(&self) -> Vec<u64> {
        let mut named: Vec<u64> = self.decoded.all().iter().filter_map(made::named).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// Makes sure that branches found since change nothing of where indirect jumps lead: they may lead past a comparison or
    /// bring another table's address. What seems to be the end of a table must be one, since another one begins there.
    pub(super) fn check_tables(&mut self) {
        if self.tables.is_empty() && self.leaving.is_empty() {
            return;
        }
        self.decoded.learn();
        let named = self.decoded.all().iter().filter_map(made::named);
        let named: FxHashSet<u64> = named.collect();
        let ends_are_named = |table: &Table| table.ends.iter().all(|end| named.contains(end));
        let targets = self.decoded.targets();
        let is_proved = |(jump, table, known): &(Instruction, Table, usize)| {
            let asked = table.near.as_ref().is_none_or(|near| {
                let first = targets.partition_point(|(va, _)| *va < near.start);
                let inside = targets[first..].iter().take_while(|(va, _)| *va < near.end);
                inside.into_iter().any(|(_, flow)| flow >= known)
            });
            let same = |now: Indirect| {
                let Indirect::Table(now) = now else {
                    return false;
                };
                now.targets == table.targets && ends_are_named(&now)
            };
            ends_are_named(table) && (!asked || same(self.resolve(jump)))
        };
        let leaves = |(jump, known): &(Instruction, Indirect)| self.resolve(jump) == *known;
        if !self.tables.iter().all(is_proved) || !self.leaving.iter().all(leaves) {
            self.trouble.get_or_insert(UNKNOWN_JUMP);
        }
    }

    /// A jump to what a register or memory holds is a call of another function if its function hands out no address of its own,
    /// but by the jump tables that nothing else reads. A jump through a table of unknown origin leads to what is handed out.
    pub(super) fn check_leaving(&mut self) {
        let may_leave = (self.leaving.iter()).any(|(_, leaves)| *leaves == Indirect::MayLeave);
        let anys = self.tables.iter().filter(|(_, table, _)| table.any);
        let anys: Vec<&[u64]> = anys.map(|(_, table, _)| &table.targets[..]).collect();
        if !may_leave && anys.is_empty() {
            return;
        }
        let module = self.module;
        let is_inside = |&va: &u64| self.holds(va) && !module.functions.begins_at(va);
        let made = self.decoded.made().iter().copied().filter(is_inside);
        let own = self.own_targets();
        let pointers = module.pointers();
        let of_part = |&part: &usize| {
            let part = module.functions.get(part);
            let first = pointers.partition_point(|&va| va < part.start);
            let inside = pointers[first..].iter().take_while(|&&va| va < part.end);
            inside.copied().filter(|va| own.binary_search(va).is_err())
        };
        let is_known = |va: u64| !may_leave && anys.iter().all(|t| t.binary_search(&va).is_ok());
        let mut out = made.chain(self.parts.iter().flat_map(of_part));
        if !out.all(is_known) {
            self.trouble.get_or_insert(UNKNOWN_JUMP);
        }
    }

    /// Addresses in absolute tables that only the jumps through them name, ascending: they are handed out to nothing else.
    pub(super) fn own_targets(&self) -> Vec<u64> {
        let mut tables: Vec<&Table> = self.tables.iter().map(|(_, table, _)| table).collect();
        tables.retain(|table| !table.named.is_empty());
        let all = tables.iter().flat_map(|table| table.named.iter().cloned());
        let mut ranges: Vec<(Range<u64>, u64)> = all.filter(|(_, by)| *by != 0).collect();
        ranges.sort_unstable_by_key(|(range, by)| (range.start, range.end, *by));
        let readers: FxHashSet<u64> = ranges.iter().map(|(_, by)| *by).collect();
        let longest = ranges.iter().map(|(r, _)| r.end.wrapping_sub(r.start));
        let longest = longest.max().unwrap_or(0);
        // Tables that something else names too, by the address where they begin.
        let mut shared: FxHashSet<u64> = FxHashSet::default();
        let mut name = |va: u64| {
            let behind = ranges.partition_point(|(r, _)| r.start <= va);
            let near = ranges[..behind].iter().rev();
            let near = near.take_while(|(r, _)| va - r.start < longest);
            shared.extend(near.filter(|(r, _)| va < r.end).map(|(r, _)| r.start));
        };
        for insn in self.decoded.all() {
            if readers.contains(&insn.ip()) {
                continue;
            }
            (0..insn.op_count()).for_each(|op| match insn.op_kind(op) {
                OpKind::Memory => name(insn.memory_displacement64()),
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    name(insn.immediate(op));
                }
                _ => {}
            });
        }
        tables.retain(|table| {
            let is_own = |(r, by): &(Range<u64>, u64)| *by != 0 && !shared.contains(&r.start);
            table.named.iter().all(is_own)
        });
        let mut own: Vec<u64> = tables.iter().flat_map(|t| t.targets.clone()).collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    /// The register that a direct branch leads through to an address: a jump to a thunk, or the call in one that stands in the
    /// place of a jump.
    pub(super) fn through(&self, insn: &Instruction) -> Option<Register> {
        if insn.op0_kind() != OpKind::NearBranch64 {
            return None;
        }
        let (image, target) = (&self.module.image, insn.near_branch_target());
        match insn.flow_control() {
            FlowControl::UnconditionalBranch if !self.holds(target) => thunk(image, target),
            FlowControl::Call if self.holds(target) => capture(image, target),
            _ => None,
        }
    }

    /// Whether an instruction may call, or jump to, what a register or the stack holds, by way of a thunk.
    pub(super) fn leads_through(&self, insn: &Instruction) -> bool {
        let image = &self.module.image;
        through(image, insn).is_some() || returns(image, insn)
    }

    /// What a branch does that returns by way of a thunk: a jump to what was pushed right before it, or the function's end.
    pub(super) fn leaves_by_return(&mut self, insn: &Instruction, number: usize) -> Option<Flow> {
        if !returns(&self.module.image, insn) {
            return None;
        }
        let before = number.checked_sub(1).map(|n| self.decoded.insns[n]);
        let push = before.filter(|b| b.next_ip() == insn.ip() && b.mnemonic() == Mnemonic::Push);
        let slots = &self.module.dynamic.slots;
        let exit = match push.map(|p| (p.is_ip_rel_memory_operand(), p.ip_rel_memory_address())) {
            None => Exit::Return,
            Some((true, from)) if slots.iter().any(|slot| slot.0 == from) => Exit::TailIndirect,
            Some(_) => {
                self.trouble.get_or_insert(UNKNOWN_JUMP);
                Exit::Dead
            }
        };
        Some(Flow {
            exit: Some(exit),
            ..Flow::default()
        })
    }

    /// Where an indirect jump leads, as far as it is known now.
    pub(super) fn resolve(&self, jump: &Instruction) -> Indirect {
        let holds = |va| {
            let functions = &self.module.functions;
            self.holds(va) || functions.at(va).is_some_and(|i| functions.get(i).fragment)
        };
        let through = self.through(jump);
        jump_table::resolve(self.module, &self.decoded, jump, through, &holds)
    }

    pub(super) fn indirect(&mut self, insn: &Instruction) -> Flow {
        self.decoded.learn();
        let exit = match self.resolve(insn) {
            Indirect::Table(table) if self.entries + table.targets.len() <= MAX_TARGETS => {
                self.entries += table.targets.len();
                let mut targets = table.targets.clone();
                self.tables.push((*insn, table, self.decoded.flows.len()));
                targets.retain(|&t| self.stays(t, true));
                return Flow {
                    targets: targets.into(),
                    ..Flow::default()
                };
            }
            leaves @ (Indirect::Tail | Indirect::MayLeave) => {
                self.leaving.push((*insn, leaves));
                Exit::TailIndirect
            }
            Indirect::Table(_) | Indirect::Unknown => {
                self.trouble.get_or_insert(UNKNOWN_JUMP);
                Exit::Dead
            }
        };
        Flow {
            exit: Some(exit),
            ..Flow::default()
        }
    }
}
