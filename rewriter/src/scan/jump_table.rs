//! Where an indirect jump leads: into the function through a table, or out of it.

use super::Module;
use super::decode::Decoded;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

/// More entries than this are no jump table.
const MAX_ENTRIES: u64 = 4096;

/// More addresses than this aren't taken for those that a table may have.
const MAX_TABLES: usize = 4;

/// How many instructions before the jump are looked at for its index and bound.
const WINDOW: usize = 24;

/// How many for the parts of a constant address: a table's is made where a function begins.
const FAR: usize = 512;

/// Where an indirect jump leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Indirect {
    /// To one of these addresses of the function.
    Table(Vec<u64>),
    /// To another function.
    Tail,
    /// Nobody knows.
    Unknown,
}

/// Form of a table's entries.
#[derive(Clone, Copy)]
enum Form {
    /// 4 bytes, relative to the table.
    Relative,
    /// 8 bytes, an address.
    Absolute,
}

/// Finds the targets of `jump`, the last of the decoded instructions of its block.
pub(crate) fn resolve(
    module: &Module<'_>,
    insns: &Decoded,
    jump: &Instruction,
    in_body: &dyn Fn(u64) -> bool,
) -> Indirect {
    let before: Vec<&Instruction> = insns.before(jump.ip()).take(WINDOW).collect();
    if reads_slot(module, insns, jump) {
        return Indirect::Tail;
    }
    if jump.op0_kind() == OpKind::Memory {
        return match memory_table(jump, &before, insns) {
            Some(tables) => read_all(module, &tables, Form::Absolute, bound(&before), in_body),
            None => Indirect::Tail,
        };
    }
    let register = jump.op0_register().full_register();
    let Some(at) = before.iter().position(|i| writes(i, register)) else {
        return Indirect::Unknown;
    };
    let def = before[at];
    match def.mnemonic() {
        Mnemonic::Add if def.op1_kind() == OpKind::Register => {
            let parts = [register, def.op1_register().full_register()];
            let tables = table_loads(&before[at + 1..], insns, &parts);
            read_all(module, &tables, Form::Relative, bound(&before), in_body)
        }
        Mnemonic::Mov if reads_slot(module, insns, def) => Indirect::Tail,
        Mnemonic::Mov if def.op1_kind() == OpKind::Memory => {
            match memory_table(def, &before[at + 1..], insns) {
                Some(tables) => read_all(module, &tables, Form::Absolute, bound(&before), in_body),
                None => Indirect::Tail,
            }
        }
        // An address itself.
        Mnemonic::Mov | Mnemonic::Lea => {
            let to = match def.op1_kind() {
                OpKind::Immediate64 => def.immediate64(),
                OpKind::Memory if def.is_ip_rel_memory_operand() => def.ip_rel_memory_address(),
                _ => return Indirect::Unknown,
            };
            match in_body(to) && !module.entries.stubs.contains(&to) {
                true => Indirect::Unknown,
                false => Indirect::Tail,
            }
        }
        _ => Indirect::Unknown,
    }
}

/// Address of the table in an operand `[table + index*8]`, or of those that it may be; `None` when nothing is indexed.
fn memory_table(i: &Instruction, before: &[&Instruction], insns: &Decoded) -> Option<Vec<u64>> {
    if i.is_ip_rel_memory_operand() || i.memory_index() == Register::None {
        return None;
    }
    if i.memory_base() == Register::None {
        return Some(vec![i.memory_displacement64()]);
    }
    let parts = [
        i.memory_base().full_register(),
        i.memory_index().full_register(),
    ];
    let mut tables = table_loads(before, insns, &parts);
    for table in &mut tables {
        *table = table.wrapping_add(i.memory_displacement64());
    }
    (!tables.is_empty()).then_some(tables)
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

fn writes(i: &Instruction, register: Register) -> bool {
    i.op_count() > 0
        && i.op0_kind() == OpKind::Register
        && i.op0_register().full_register() == register
        && !matches!(
            i.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
        )
}

fn is_table_load(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand()
}

/// The address that was loaded into one of these registers last before the jump; else all that the function loads into
/// them anywhere: the table is one of these.
fn table_loads(before: &[&Instruction], insns: &Decoded, registers: &[Register]) -> Vec<u64> {
    let loads =
        |i: &Instruction| is_table_load(i) && registers.contains(&i.op0_register().full_register());
    if let Some(load) = before.iter().find(|i| loads(i)) {
        return vec![load.ip_rel_memory_address()];
    }
    let found = insns.all().iter().filter(|i| loads(i));
    let mut found: Vec<u64> = found.map(Instruction::ip_rel_memory_address).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Number of entries, from the comparison that guards the jump.
fn bound(before: &[&Instruction]) -> Option<u64> {
    let at = before
        .iter()
        .position(|i| matches!(i.mnemonic(), Mnemonic::Ja | Mnemonic::Jae))?;
    let compare = before[at + 1..]
        .iter()
        .take(4)
        .find(|i| i.mnemonic() == Mnemonic::Cmp)?;
    let is_immediate =
        !matches!(compare.op1_kind(), OpKind::Register | OpKind::Memory) && compare.op_count() == 2;
    if !is_immediate {
        return None;
    }
    let last = compare.immediate(1);
    let count = if before[at].mnemonic() == Mnemonic::Ja {
        last.checked_add(1)?
    } else {
        last
    };
    (count <= MAX_ENTRIES).then_some(count)
}

/// The targets of all tables that it may be. More than are reached do no harm, fewer would.
fn read_all(
    module: &Module<'_>,
    tables: &[u64],
    form: Form,
    bound: Option<u64>,
    in_body: &dyn Fn(u64) -> bool,
) -> Indirect {
    if tables.len() > MAX_TABLES || (tables.len() > 1 && bound.is_none()) {
        return Indirect::Unknown;
    }
    let mut all = Vec::new();
    for &table in tables {
        match read(module, table, form, bound, in_body) {
            Indirect::Table(targets) => all.extend(targets),
            Indirect::Tail if tables.len() == 1 => return Indirect::Tail,
            _ => return Indirect::Unknown,
        }
    }
    all.sort_unstable();
    all.dedup();
    match all.is_empty() {
        true => Indirect::Unknown,
        false => Indirect::Table(all),
    }
}

fn read(
    module: &Module<'_>,
    table: u64,
    form: Form,
    bound: Option<u64>,
    in_body: &dyn Fn(u64) -> bool,
) -> Indirect {
    let mut targets = Vec::new();
    for n in 0..bound.unwrap_or(MAX_ENTRIES) {
        let target = match form {
            Form::Relative => module
                .image
                .u32(table.wrapping_add(4 * n))
                .map(|d| table.wrapping_add_signed(i64::from(d.cast_signed()))),
            Form::Absolute => module
                .dynamic
                .pointer(&module.image, table.wrapping_add(8 * n)),
        };
        match target {
            Some(t) if in_body(t) => targets.push(t),
            Some(t) if targets.is_empty() && module.functions.starts_at(t) => {
                return Indirect::Tail;
            }
            _ if bound.is_some() => return Indirect::Unknown,
            _ => break,
        }
    }
    targets.sort_unstable();
    targets.dedup();
    if targets.is_empty() {
        Indirect::Unknown
    } else {
        Indirect::Table(targets)
    }
}
