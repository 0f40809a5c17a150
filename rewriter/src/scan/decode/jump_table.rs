//! Where an indirect jump leads: into the function through a table, or out of it.

use super::entries::{Form, Tables};
use super::guard::{self, Limit};
use super::made::{is_table_load, made, may_write, reads_slot};
use super::{Decoded, Joins};
use crate::scan::Module;
use crate::scan::image::Kind;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// How many instructions before the jump are looked at for its index and bound.
const WINDOW: usize = 64;

/// Where an indirect jump leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Indirect {
    /// To an address of the function.
    Table(Table),
    /// To another function.
    Tail,
    /// To another function, if nothing holds an address in the midst of this one that the jump could take.
    MayLeave,
    /// Nobody knows.
    Unknown,
}

impl Indirect {
    /// Where a jump leads that may be either.
    fn or(self, other: Indirect) -> Indirect {
        match (self, other) {
            (Indirect::Tail, Indirect::Tail) => Indirect::Tail,
            (Indirect::Tail | Indirect::MayLeave, Indirect::Tail | Indirect::MayLeave) => {
                Indirect::MayLeave
            }
            (Indirect::Table(a), Indirect::Table(b)) => Indirect::Table(a.with(b)),
            _ => Indirect::Unknown,
        }
    }

    /// An address that the instruction reads from among others on the function's own stack was put there by the function.
    fn unless_own_stack(self, i: &Instruction) -> Indirect {
        let base = i.memory_base().full_register();
        let is_own = matches!(base, Register::RSP | Register::RBP);
        match self == Indirect::MayLeave && is_own && i.memory_index() != Register::None {
            true => Indirect::Unknown,
            false => self,
        }
    }
}

/// What is known of a jump through a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Addresses that it may lead to, ascending.
    pub targets: Vec<u64>,
    /// If tables end here, which is to be seen.
    pub ends: Vec<u64>,
    /// As long as no other branch leads to one of these addresses; `None`: to anywhere.
    pub near: Option<Range<u64>>,
    /// The bytes of tables that the jump, or the instruction at the second address that reads for it, names itself: nothing else
    /// need know of these.
    pub named: Vec<(Range<u64>, u64)>,
    /// The jump takes an address from a table of unknown origin, or form: all that is handed out is to be among the targets.
    pub any: bool,
    /// Nothing tells how many entries it has: they were read as long as they led into the function.
    pub open: bool,
}

impl Table {
    /// What two tables are together, one of which a jump uses.
    fn with(mut self, other: Table) -> Table {
        let Table {
            targets,
            ends,
            named,
            any,
            open,
            ..
        } = other;
        self.targets = ascending(self.targets.into_iter().chain(targets));
        self.ends = ascending(self.ends.into_iter().chain(ends));
        self.named.extend(named);
        self.any |= any;
        self.open |= open;
        self.near = None;
        self
    }
}

/// Instructions before an address, the nearest first, and where branches lead among them.
struct Sight<'i> {
    before: Vec<&'i Instruction>,
    joins: Joins,
}

impl<'i> Sight<'i> {
    fn of(insns: &'i Decoded, at: &Instruction) -> Sight<'i> {
        let before: Vec<&Instruction> = insns.before(at.ip()).take(WINDOW).collect();
        let from = before.last().map_or(at.ip(), |insn| insn.ip());
        let joins = insns.joins(from..at.next_ip());
        Sight { before, joins }
    }
}

/// How long a jump's table is: what is known, and what may be.
pub(super) type Length = (Option<Limit>, Option<u64>);

/// Looks for where one jump leads.
pub(super) struct Search<'x, 'a> {
    pub(super) module: &'x Module<'a>,
    pub(super) insns: &'x Decoded,
    pub(super) in_body: &'x dyn Fn(u64) -> bool,
}

/// Finds the targets of `jump`, the last of the decoded instructions of its block; `through`: the register that it takes the
/// address from, if it isn't one of its operand's.
pub(crate) fn resolve(
    module: &Module<'_>,
    insns: &Decoded,
    jump: &Instruction,
    through: Option<Register>,
    in_body: &dyn Fn(u64) -> bool,
) -> Indirect {
    if insns.is_spent() {
        return Indirect::Unknown;
    }
    insns.spend(WINDOW);
    let search = Search {
        module,
        insns,
        in_body,
    };
    let sight = Sight::of(insns, jump);
    let length = || {
        let joins = |va| sight.joins.all.contains(&va);
        match guard::limit(&sight.before, jump, through, joins) {
            Some(Limit::Exactly(count)) => (Some(Limit::Exactly(count)), None),
            other => (other, guard::guess(&sight.before)),
        }
    };
    if through.is_none() && jump.op0_kind() == OpKind::Memory {
        return match reads_slot(module, insns, jump) {
            true => Indirect::Tail,
            false => search.in_memory(jump, &sight.joins, length()),
        };
    }
    let register = through.unwrap_or(jump.op0_register()).full_register();
    let Some(writers) = insns.definitions(jump.ip(), register, &sight.joins) else {
        return Indirect::Unknown;
    };
    if let &[def] = writers.as_slice()
        && sight.joins.range.contains(&def.ip())
    {
        let at = sight.before.iter().position(|i| i.ip() == def.ip());
        let behind = at.map_or(&[][..], |at| &sight.before[at + 1..]);
        return search.made_by(def, behind, &sight.joins, length());
    }
    // Several jumps' that compilers made one of: each comparison is one of its own table's.
    let mut found: Option<Indirect> = None;
    for def in writers {
        let sight = Sight::of(insns, def);
        sight.joins.left.set(true);
        let this = search.made_by(def, &sight.before, &sight.joins, (None, None));
        found = Some(match found {
            Some(others) => others.or(this),
            None => this,
        });
    }
    found.unwrap_or(Indirect::Unknown)
}

impl Search<'_, '_> {
    /// Where a jump leads whose register this instruction writes; `behind`: those before it, the nearest first.
    fn made_by(
        &self,
        def: &Instruction,
        behind: &[&Instruction],
        joins: &Joins,
        length: Length,
    ) -> Indirect {
        let (module, insns) = (self.module, self.insns);
        match def.mnemonic() {
            Mnemonic::Add if def.op1_kind() == OpKind::Register => {
                let parts = [def.op0_register(), def.op1_register()].map(Register::full_register);
                let entry = behind.iter().position(|i| {
                    let part = i.op0_kind() == OpKind::Register
                        && parts.contains(&i.op0_register().full_register());
                    part && i.op1_kind() == OpKind::Memory && i.memory_size().size() == 4
                });
                match entry.and_then(|n| relative_tables(insns, def, parts, &behind[..=n], joins)) {
                    Some((tables, by)) => self.read_all(&tables, by, Form::Relative, length, joins),
                    None => Indirect::Unknown,
                }
            }
            Mnemonic::Mov if reads_slot(module, insns, def) => Indirect::Tail,
            Mnemonic::Mov if def.op1_kind() == OpKind::Memory => self.in_memory(def, joins, length),
            // An address itself.
            Mnemonic::Mov | Mnemonic::Lea => {
                let to = match def.op1_kind() {
                    OpKind::Immediate64 => def.immediate64(),
                    OpKind::Memory if def.is_ip_rel_memory_operand() => def.ip_rel_memory_address(),
                    _ => return Indirect::Unknown,
                };
                match (self.in_body)(to) && !module.entries.stubs.contains(&to) {
                    true => Indirect::Unknown,
                    false => Indirect::Tail,
                }
            }
            _ => Indirect::Unknown,
        }
    }

    /// Where a jump leads whose address this instruction reads.
    fn in_memory(&self, i: &Instruction, joins: &Joins, length: Length) -> Indirect {
        let module = self.module;
        if i.is_ip_rel_memory_operand() && module.dynamic.is_slot(i.ip_rel_memory_address()) {
            return Indirect::Tail;
        }
        let found = memory_table(module, i, self.insns, joins)
            .map(|tables| self.read_all(&tables, 0, Form::Absolute, length, joins));
        let mut found = found.unwrap_or(Indirect::MayLeave);
        let names = i.memory_base() == Register::None;
        if let (Indirect::Table(table), true) = (&mut found, names) {
            table.named.iter_mut().for_each(|(_, by)| *by = i.ip());
        } else if let Indirect::Table(table) = &mut found {
            table.named.clear();
        }
        found.unless_own_stack(i)
    }
}

/// Tables whose entry was read by the last of the instructions `before`, to be added to the table's address by `add`, which
/// has these two operands. The number says how far from such an address the entries begin.
fn relative_tables(
    insns: &Decoded,
    add: &Instruction,
    [a, b]: [Register; 2],
    before: &[&Instruction],
    joins: &Joins,
) -> Option<(Tables, u64)> {
    let (&entry, between) = before.split_last()?;
    let table = match entry.op0_register().full_register() == a {
        true => b,
        false => a,
    };
    let by = entry.memory_displacement64();
    let [base, index] = [entry.memory_base(), entry.memory_index()];
    let known = tables_in(insns, add.ip(), table, joins);
    // Nothing happens to the register between the two.
    let mut next = add.ip();
    let is_kept = before.iter().all(|i| {
        let behind = i.next_ip() == next && !joins.all.contains(&next);
        next = i.ip();
        behind
    }) && !between.iter().any(|i| may_write(i, table));
    let same = |register: Register| match &known {
        _ if register == table && is_kept => true,
        // The same address may have been loaded for both.
        Some(known) => tables_in(insns, entry.ip(), register, joins).as_ref() == Some(known),
        None => register == table,
    };
    let plain = index.is_gpr64() && entry.memory_index_scale() == 1;
    if !(base.is_gpr64() && same(base) || plain && same(index)) {
        return None;
    }
    let tables = match known {
        Some(tables) => Tables::Known(tables),
        None => Tables::OneOf(insns.loaded()),
    };
    Some((tables, by))
}

/// Addresses that a register may hold at an instruction, if all that it may hold are addresses.
fn tables_in(insns: &Decoded, at: u64, register: Register, joins: &Joins) -> Option<Vec<u64>> {
    let loads = insns.definitions(at, register, joins)?;
    let all = loads.iter().all(|i| is_table_load(i));
    all.then(|| distinct(loads.into_iter()))
}

/// The addresses that instructions load, ascending.
fn distinct<'i>(loads: impl Iterator<Item = &'i Instruction>) -> Vec<u64> {
    ascending(loads.map(Instruction::ip_rel_memory_address))
}

/// Address of the table in an operand `[table + index*8]`, or of those that it may be; `None` when nothing is indexed.
fn memory_table(
    module: &Module<'_>,
    i: &Instruction,
    insns: &Decoded,
    joins: &Joins,
) -> Option<Tables> {
    if i.is_ip_rel_memory_operand() || i.memory_index() == Register::None {
        return None;
    }
    if i.memory_base() == Register::None {
        return Some(Tables::Known(vec![i.memory_displacement64()]));
    }
    let absolute = module.image.kind == Kind::Executable;
    let at = |table: u64| table.wrapping_add(i.memory_displacement64());
    let parts = [i.memory_base(), i.memory_index()].map(Register::full_register);
    for part in parts {
        let loads = insns.definitions(i.ip(), part, joins);
        let tables: Option<Vec<u64>> =
            loads.and_then(|loads| loads.iter().map(|load| made(load, absolute)).collect());
        if let Some(tables) = tables.filter(|tables| !tables.is_empty()) {
            return Some(Tables::Known(ascending(tables.into_iter().map(at))));
        }
    }
    let tables = ascending(insns.made().iter().copied().map(at));
    (!tables.is_empty()).then_some(Tables::OneOf(tables))
}

fn ascending(addresses: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut found: Vec<u64> = addresses.collect();
    found.sort_unstable();
    found.dedup();
    found
}
