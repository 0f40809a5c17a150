//! Where an indirect jump leads: into the function through a table, or out of it.

use super::entries::{Entries, Form, MAX_ENTRIES, is_end, may_be_part};
use super::guard::{self, Limit};
use super::{Decoded, Joins};
use crate::scan::Module;
use crate::scan::image::Kind;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Of more tables than this nobody knows which one it is.
const MAX_TABLES: usize = 16;

/// How many instructions before the jump are looked at for its index and bound.
const WINDOW: usize = 64;

/// How many for the parts of a constant address: a table's is made where a function begins.
const FAR: usize = 512;

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
type Length = (Option<Limit>, Option<u64>);

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

/// The address that an instruction makes; with `absolute` a number may be one.
pub(crate) fn made(i: &Instruction, absolute: bool) -> Option<u64> {
    match i.code() {
        _ if is_table_load(i) => Some(i.ip_rel_memory_address()),
        Code::Mov_r64_imm64 if absolute => Some(i.immediate64()),
        Code::Mov_r32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_rm32_imm32 if absolute => {
            Some(u64::from(i.immediate32()))
        }
        _ => None,
    }
}

/// Steps that a constant is followed back: compilers need three. Each may look for two others.
const DEEPEST: u32 = 5;

/// Whether an instruction reads the linker's slot of a symbol, where two registers' sum leads that hold constants: code of
/// the large model adds a slot's distance to a table's address. Of a jump table's entries one register holds the number.
fn reads_slot(module: &Module<'_>, insns: &Decoded, i: &Instruction) -> bool {
    let (base, index) = (i.memory_base(), i.memory_index());
    if !base.is_gpr64() || !index.is_gpr64() || i.memory_index_scale() != 1 {
        return false;
    }
    let before: Vec<&Instruction> = insns.before(i.ip()).take(FAR).collect();
    let sum = constant(&before, base, DEEPEST).zip(constant(&before, index, DEEPEST));
    sum.is_some_and(|(base, index)| {
        let at = base
            .wrapping_add(index)
            .wrapping_add(i.memory_displacement64());
        module.dynamic.is_slot(at)
    })
}

/// What a register holds behind these instructions, the last one first, if it is made of constants in so many steps.
fn constant(before: &[&Instruction], register: Register, steps: u32) -> Option<u64> {
    let steps = steps.checked_sub(1)?;
    let at = before.iter().position(|i| writes(i, register))?;
    let (def, rest) = (before[at], &before[at + 1..]);
    let from = |op: u32| {
        let is_register = def.op_kind(op) == OpKind::Register;
        is_register.then(|| constant(rest, def.op_register(op), steps))?
    };
    match def.code() {
        Code::Mov_r64_imm64 => Some(def.immediate64()),
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => from(1),
        Code::Lea_r64_m if def.is_ip_rel_memory_operand() => Some(def.ip_rel_memory_address()),
        Code::Add_r64_rm64 | Code::Add_rm64_r64 => Some(from(0)?.wrapping_add(from(1)?)),
        _ => None,
    }
}

/// Whether an instruction may write a register.
fn may_write(i: &Instruction, register: Register) -> bool {
    let simple = matches!(
        i.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Cdqe | Mnemonic::Lea | Mnemonic::And
    );
    !simple || writes(i, register) || (i.op_count() == 0 && register == Register::RAX)
}

fn writes(i: &Instruction, register: Register) -> bool {
    i.op_count() > 0
        && i.op0_kind() == OpKind::Register
        && i.op0_register().full_register() == register
        && !matches!(
            i.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
        )
}

/// The address that an instruction names: something begins there, so it isn't in the midst of a table.
pub(crate) fn named(i: &Instruction) -> Option<u64> {
    if is_table_load(i) {
        return Some(i.ip_rel_memory_address());
    }
    let indexed = i.memory_base() == Register::None && i.memory_index() != Register::None;
    indexed.then(|| i.memory_displacement64())
}

/// Whether an instruction makes an address.
pub(crate) fn is_table_load(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand()
}

/// Addresses of tables.
enum Tables {
    /// The jump's table is one of these.
    Known(Vec<u64>),
    /// It is one of these, which needn't all be tables: they are all the addresses that the function makes.
    OneOf(Vec<u64>),
}

impl Search<'_, '_> {
    /// The targets of all tables that it may be. More than are reached do no harm, fewer would.
    fn read_all(
        &self,
        tables: &Tables,
        by: u64,
        form: Form,
        (limit, guess): Length,
        joins: &Joins,
    ) -> Indirect {
        let (module, in_body) = (self.module, self.in_body);
        let (Tables::Known(found) | Tables::OneOf(found)) = tables;
        let mut all = Vec::new();
        let mut ends = Vec::new();
        let mut named = Vec::new();
        let mut exact = true;
        for &table in found {
            let begin = table.wrapping_add(by);
            let end_of = |count: u64| begin.wrapping_add(form.size().wrapping_mul(count));
            let guessed = guess
                .filter(|&count| count <= MAX_ENTRIES)
                .and_then(|count| {
                    let limit = Some(Limit::Exactly(count));
                    let Entries::Inside(targets, _) = self.read(table, by, form, limit) else {
                        return None;
                    };
                    let end = end_of(count);
                    let next = form.entry(module, table, end);
                    let more = |t| in_body(t) || is_end(t, in_body) || may_be_part(module, t);
                    let more = next.is_some_and(more);
                    Some((targets, count, more.then_some(end)))
                });
            if let Some((targets, count, end)) = guessed {
                all.extend(targets);
                ends.extend(end);
                named.push((begin..end_of(count), 0));
                continue;
            }
            match self.read(table, by, form, limit) {
                Entries::Inside(targets, count) => {
                    exact &= matches!(limit, Some(Limit::Exactly(_)));
                    all.extend(targets);
                    let end = end_of(count);
                    ends.extend((!exact && self.insns.is_bound(end)).then_some(end));
                    named.push((begin..end_of(count), 0));
                }
                Entries::Functions if found.len() == 1 => return Indirect::Tail,
                Entries::Nowhere if matches!(tables, Tables::OneOf(_)) => continue,
                _ => return Indirect::Unknown,
            }
        }
        all.sort_unstable();
        all.dedup();
        // None of the addresses is an absolute table's.
        let is_one_of = matches!(tables, Tables::OneOf(_));
        let absolute = matches!(form, Form::Absolute);
        match all.is_empty() || named.len() > MAX_TABLES {
            true if is_one_of && absolute && named.is_empty() => Indirect::MayLeave,
            true => Indirect::Unknown,
            false => {
                let is_near = !is_one_of && !joins.left.get();
                Indirect::Table(Table {
                    targets: all,
                    ends,
                    near: is_near.then(|| joins.range.clone()),
                    named,
                    // Addresses may be apart, among others in structures.
                    any: absolute && (is_one_of || !exact),
                    open: !exact,
                })
            }
        }
    }
}
