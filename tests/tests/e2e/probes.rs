//! The machine code of the probes, as it was compiled: what can be reached from where control arrives, without the
//! functions that are meant to be slow, has no lock, division, system call, allocation or call for thread-local storage.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::table;
use std::collections::{BTreeMap, BTreeSet};

/// Where control arrives: the thunks' handlers, and the bodies that follow a region or a task into its thread.
const ENTRIES: [&str; 11] = [
    "arrival::handle_call",
    "arrival::handle_task",
    "arrival::handle_inline",
    "arrival::handle_inline_short",
    "parallel::gomp_enter",
    "parallel::kmpc_enter",
    "tasks::gomp_enter",
    "kmpc::kmpc_enter",
    "tasks::gomp_copy",
    "taskloop::enter",
    "taskloop::copy_header",
];

/// Functions of ours that probes call where something seldom happens, and what.
const SLOW: [(&str, &str); 31] = [
    (
        "make_tallies",
        "the first instance of anything, where one in so many is recorded",
    ),
    ("make_sums", "a thread's first part of a parallel region"),
    (
        "context::<impl ompfuse_runtime::thread::Thread>::renew_contexts",
        "the first fork after a library was loaded",
    ),
    (
        "context::<impl ompfuse_runtime::thread::Thread>::learn_context",
        "a chain of calls that the thread has not met",
    ),
    (
        "context::<impl ompfuse_runtime::thread::Thread>::write_calls",
        "a region is called from elsewhere than the last time",
    ),
    ("locks::find", "a lock that the process has not met"),
    (
        "unwind::look_up",
        "a return address that the thread has not met",
    ),
    (
        "meter::<impl ompfuse_runtime::thread::Thread>::read_at_begin",
        "a thread's part of an outermost parallel region, some where they are short",
    ),
    (
        "meter::<impl ompfuse_runtime::thread::Thread>::read_at_end",
        "the same",
    ),
    ("threads::begin_thread", "a thread's first probe"),
    ("buffer::Buffer::flush", "once per some thousand records"),
    (
        "counters::Counters::read_by_kernel",
        "events that need a system call",
    ),
    (
        "exact::Sums::read_foreign",
        "another thread finishes an idle one that counts instructions",
    ),
    (
        "protected::protected",
        "an inline probe where the frame doesn't know the thread's number",
    ),
    (
        "divide::divide_slowly",
        "an increment or a team that is no power of two",
    ),
    (
        "detached::new_detached",
        "the deepest serialised region so far",
    ),
    (
        "parallel::many_arguments",
        "a region with more than 64 shared variables",
    ),
    (
        "tasks::allocate",
        "a task with more than 16 KiB of arguments",
    ),
    ("tasks::release", "the same"),
    (
        "recover::<impl ompfuse_runtime::thread::Thread>::forget",
        "the program has jumped out of a construct",
    ),
    (
        "settings::<impl ompfuse_runtime::thread::Thread>::adopt",
        "what is recorded was changed",
    ),
    (
        "settings::<impl ompfuse_runtime::thread::Thread>::choose_specially",
        "regions are off, or sets take turns",
    ),
    (
        "settings::<impl ompfuse_runtime::thread::Thread>::is_off_specially",
        "the same",
    ),
    (
        "settings::<impl ompfuse_runtime::thread::Thread>::change_set",
        "another event set",
    ),
    (
        "state::<impl ompfuse_runtime::thread::Thread>::take",
        "an outermost construct begins, and nobody may close the thread's records meanwhile",
    ),
    (
        "table::<impl ompfuse_runtime::thread::Thread>::new_entry",
        "where sums are kept: the first of a kind, place and road",
    ),
    (
        "roads::<impl ompfuse_runtime::thread::Thread>::make_road",
        "the same: a road that no thread has met",
    ),
    (
        "sums::<impl ompfuse_runtime::thread::Thread>::is_first_of_team",
        "the same: a construct that each thread of a team meets by itself",
    ),
    (
        "team::<impl ompfuse_runtime::thread::Thread>::end_of_part",
        "the same: a thread's part of a region",
    ),
    (
        "team::TeamSums::begin_outermost",
        "the same: an outermost region",
    ),
    ("team::TeamSums::add_up", "the same: a region's join"),
];

/// Those of them that save all registers around what they do.
const SAVING: [&str; 2] = ["threads::begin_thread", "protected::protected"];

/// What may be called in other libraries: copies of memory, and what runs while an exception passes.
const IMPORTS: [&str; 5] = ["memcpy", "memmove", "memset", "bcmp", "_Unwind_Resume"];

/// The code of the runtime library.
struct Code {
    /// Address, length and name of the functions.
    functions: BTreeMap<u64, (u64, String)>,
    /// Name or address of what the loader puts into a slot.
    slots: BTreeMap<u64, Result<String, u64>>,
    /// Names by address of the linker's stubs (PLT).
    stubs: BTreeMap<u64, String>,
    text: Vec<u8>,
    base: u64,
}

/// `_ZN5crate6module4nameE` as `crate::module::name`; the hash at the end is left out.
fn demangle(symbol: &str) -> String {
    let Some(mut rest) = symbol.strip_prefix("_ZN") else {
        return symbol.to_owned();
    };
    let mut parts: Vec<String> = Vec::new();
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|&n| n > 0) {
        let Ok(len) = rest[..digits].parse::<usize>() else {
            break;
        };
        let Some(part) = rest.get(digits..digits + len) else {
            break;
        };
        parts.push(part.to_owned());
        rest = &rest[digits + len..];
    }
    parts.pop();
    let text = parts.join("::");
    [
        ("_$LT$", "<"),
        ("$LT$", "<"),
        ("$GT$", ">"),
        ("$u20$", " "),
        ("..", "::"),
    ]
    .iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}

impl Code {
    fn read(bytes: &[u8]) -> Code {
        let file = object::File::parse(bytes).expect("the library is an ELF file");
        let functions = file
            .symbols()
            .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
            .map(|s| (s.address(), (s.size(), demangle(s.name().unwrap_or("")))))
            .collect();
        let names: BTreeMap<usize, String> = file
            .dynamic_symbols()
            .map(|s| (s.index().0, s.name().unwrap_or("").to_owned()))
            .collect();
        let slots = file
            .dynamic_relocations()
            .expect("the library has relocations")
            .filter_map(|(at, relocation)| {
                let RelocationFlags::Elf { .. } = relocation.flags() else {
                    return None;
                };
                match relocation.target() {
                    RelocationTarget::Symbol(index) => Some((at, Ok(names.get(&index.0)?.clone()))),
                    _ => Some((at, Err(relocation.addend() as u64))),
                }
            })
            .collect();
        let slots: BTreeMap<u64, Result<String, u64>> = slots;
        let mut stubs = BTreeMap::new();
        for section in file
            .sections()
            .filter(|s| s.name().is_ok_and(|n| n.starts_with(".plt")))
        {
            let bytes = section.data().expect("the section is in the file");
            for instruction in
                Decoder::with_ip(64, bytes, section.address(), DecoderOptions::NONE).into_iter()
            {
                let slot = instruction.ip_rel_memory_address();
                if instruction.flow_control() == FlowControl::IndirectBranch
                    && let Some(Ok(import)) = slots.get(&slot)
                {
                    stubs.insert(instruction.ip(), import.clone());
                    stubs.insert(instruction.ip() - 4, import.clone()); // behind endbr64
                }
            }
        }
        let text = file.section_by_name(".text").expect("the library has code");
        Code {
            functions,
            slots,
            stubs,
            base: text.address(),
            text: text.data().expect("the section is in the file").to_vec(),
        }
    }

    fn instructions(&self, start: u64, len: u64) -> impl Iterator<Item = Instruction> + '_ {
        let at = (start - self.base) as usize;
        let bytes = &self.text[at..at + len as usize];
        Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter()
    }
}

impl Code {
    /// The vector registers that the inline thunk stores, and loads again in the end.
    fn saved(&self) -> BTreeSet<Register> {
        let is_thunk = |name: &str| name == "ompfuse_inline_thunk";
        let thunk = self.functions.iter().find(|(_, (_, name))| is_thunk(name));
        let (&start, (len, _)) = thunk.expect("the library has the thunk");
        let (mut stored, mut loaded) = (BTreeSet::new(), BTreeSet::new());
        for instruction in self.instructions(start, *len) {
            match (instruction.op0_register(), instruction.op1_register()) {
                (Register::None, register) if register.is_xmm() => stored.insert(register),
                (register, _) if register.is_xmm() => loaded.insert(register),
                _ => false,
            };
        }
        assert!(
            !stored.is_empty() && stored == loaded,
            "{stored:?} {loaded:?}"
        );
        stored
    }
}

/// What a walk finds.
struct Walk<'a> {
    code: &'a Code,
    /// Functions to look at, and seen ones.
    open: Vec<u64>,
    seen: BTreeSet<u64>,
    slow: BTreeSet<&'static str>,
    /// Functions that may be slow; on the way of an inline probe they too leave alone what isn't saved.
    lenient: BTreeSet<u64>,
    is_lenient: bool,
    wrong: Vec<String>,
    /// Whether all registers of the program are live: no vector instruction but those that leave the upper halves alone.
    is_inline: bool,
    /// Vector registers whose lower halves the inline thunk saves.
    saved: BTreeSet<Register>,
}

impl<'a> Walk<'a> {
    fn new(code: &'a Code, is_inline: bool) -> Walk<'a> {
        Walk {
            code,
            open: Vec::new(),
            seen: BTreeSet::new(),
            slow: BTreeSet::new(),
            lenient: BTreeSet::new(),
            is_lenient: false,
            wrong: Vec::new(),
            is_inline,
            saved: code.saved(),
        }
    }

    /// A function of another library is called.
    fn import(&mut self, from: &str, name: &str) {
        if self.is_inline || !IMPORTS.contains(&name) {
            self.wrong.push(format!("{from}: calls {name}"));
        }
    }

    /// Another function of ours is called.
    fn call(&mut self, from: &str, target: u64) {
        if let Some(import) = self.code.stubs.get(&target) {
            return self.import(from, import);
        }
        let Some((_, name)) = self.code.functions.get(&target) else {
            self.wrong
                .push(format!("{from}: calls {target:#x}, which is no function"));
            return;
        };
        if self.is_lenient {
            // Who panics ends the program, and needs no registers.
            let saves = name == "ompfuse_protected" || SAVING.iter().any(|s| is_function(name, s));
            let panics = name.contains("panic") || name.contains("_fail");
            if !saves && !panics && self.seen.insert(target) {
                self.lenient.insert(target);
                self.open.push(target);
            }
            return;
        }
        if let Some((slow, _)) = SLOW.iter().find(|(slow, _)| is_function(name, slow)) {
            self.slow.insert(slow);
            if self.is_inline && !SAVING.contains(slow) && self.seen.insert(target) {
                self.lenient.insert(target);
                self.open.push(target);
            }
        } else if name.contains("panicking")
            || name.contains("_fail")
            || name.contains("handle_error")
        {
            self.wrong.push(format!("{from}: may panic ({name})"));
        } else if self.seen.insert(target) {
            self.open.push(target);
        }
    }

    fn run(&mut self, entry: &str) {
        let found: Vec<u64> = self
            .code
            .functions
            .iter()
            .filter(|(_, (_, name))| is_function(name, entry))
            .map(|(&at, _)| at)
            .collect();
        // Of a handler there is one for every kind of probe.
        assert!(!found.is_empty(), "no function {entry}");
        self.seen.extend(&found);
        self.open.extend(&found);
        while let Some(start) = self.open.pop() {
            let (len, name) = &self.code.functions[&start];
            self.is_lenient = self.lenient.contains(&start);
            for instruction in self.code.instructions(start, *len) {
                self.look(name, start, start + len, &instruction);
            }
        }
    }

    fn look(&mut self, name: &str, start: u64, end: u64, instruction: &Instruction) {
        let complain =
            |what: &str| format!("{name}: {what} at {:#x}: {instruction:?}", instruction.ip());
        match instruction.mnemonic() {
            _ if self.is_lenient => {}
            Mnemonic::Div | Mnemonic::Idiv | Mnemonic::Fdiv => {
                self.wrong.push(complain("division"))
            }
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int => {
                self.wrong.push(complain("system call"))
            }
            Mnemonic::Cpuid
            | Mnemonic::Mfence
            | Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Fxsave64 => {
                self.wrong.push(complain("slow instruction"));
            }
            _ => {}
        }
        let has_memory =
            (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
        let is_exchange = instruction.mnemonic() == Mnemonic::Xchg && has_memory;
        if !self.is_lenient && (instruction.has_lock_prefix() || is_exchange) {
            self.wrong.push(complain("lock"));
        }
        if self.is_inline && is_foreign(instruction, &self.saved) {
            self.wrong.push(complain("register that isn't saved"));
        }
        match instruction.flow_control() {
            _ if has_memory && instruction.is_ip_rel_memory_operand() => {
                // A call, or a load of what is called later.
                match self.code.slots.get(&instruction.ip_rel_memory_address()) {
                    Some(Ok(import)) => self.import(&complain(""), import),
                    Some(Err(target)) if self.code.functions.contains_key(target) => {
                        self.call(name, *target);
                    }
                    _ => {}
                }
            }
            FlowControl::Call
            | FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
                if instruction.op0_kind() == OpKind::NearBranch64 =>
            {
                let target = instruction.near_branch_target();
                if instruction.flow_control() == FlowControl::Call
                    || !(start..end).contains(&target)
                {
                    self.call(name, target);
                }
            }
            // Through a register: the program's own function, or the OpenMP runtime's.
            FlowControl::IndirectCall if self.is_inline => {
                self.wrong.push(complain("call of something unknown"));
            }
            _ => {}
        }
    }
}

/// Whether a function's path ends like this; what the compiler made of one function keeps its name.
fn is_function(name: &str, end: &str) -> bool {
    name == end || name.ends_with(&format!("::{end}"))
}

/// Whether an instruction uses vector state that the inline thunk doesn't save.
fn is_foreign(instruction: &Instruction, saved: &BTreeSet<Register>) -> bool {
    let registers = (0..instruction.op_count())
        .filter(|&n| instruction.op_kind(n) == OpKind::Register)
        .map(|n| instruction.op_register(n));
    let is_wide = |r: Register| r.is_ymm() || r.is_zmm() || r.is_mm() || r.is_st() || r.is_k();
    let code = instruction.op_code();
    let is_unsaved = |r: Register| r.is_xmm() && !saved.contains(&r);
    registers.into_iter().any(|r| is_wide(r) || is_unsaved(r))
        || !matches!(code.encoding(), iced_x86::EncodingKind::Legacy)
        || format!("{:?}", instruction.mnemonic()).starts_with('F')
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Ldmxcsr | Mnemonic::Emms | Mnemonic::Fxrstor64
        )
}

#[test]
fn probes_are_cheap_as_compiled() {
    let build = Fixture::open("listing11")
        .ordinary_builds("gcc")
        .into_iter()
        .next()
        .expect("gcc builds it");
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    table::patch(&build, folder.path(), &[]);
    let bytes = std::fs::read(folder.path().join("libompfuse_runtime.so"))
        .expect("the library lies beside the program");
    let code = Code::read(&bytes);
    let mut wrong = Vec::new();
    let mut slow = BTreeSet::new();
    for entry in ENTRIES {
        let mut walk = Walk::new(&code, entry.starts_with("arrival::handle_inline"));
        walk.run(entry);
        slow.append(&mut walk.slow);
        wrong.extend(walk.wrong.into_iter().map(|w| format!("from {entry}: {w}")));
    }
    assert!(
        wrong.is_empty(),
        "{} complaints:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // A function that isn't found there any more doesn't belong on the list.
    let unused: Vec<_> = SLOW
        .iter()
        .filter(|(name, _)| !slow.contains(name))
        .collect();
    assert!(unused.is_empty(), "never called: {unused:?}");
}
