//! What is known of a file before its code is looked at, and questions about single instructions of it.

use super::clock::Clock;
use super::dynamic::{Dynamic, Symbol};
use super::entries::Entries;
use super::functions::Functions;
use super::image::{Image, Kind};
use super::madvise::Madvise;
use super::rules::Rules;
use super::wish::Wanted;
use super::{clobbers, names, restartable, taken};
use iced_x86::{FlowControl, Instruction, OpKind};
use object::elf;
use ompfuse_progress::Progress;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// Everything read from the file before code is looked at.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    pub(super) image: Image<'a>,
    pub(super) dynamic: Dynamic<'a>,
    pub(super) symbols: Vec<Symbol<'a>>,
    pub(super) functions: Functions<'a>,
    pub(super) entries: Entries<'a>,
    pub(super) clobbers: clobbers::Clobbers,
    pub(super) objects: OnceLock<FxHashMap<u64, &'a str>>,
    /// There are variables of named critical sections.
    pub(super) criticals: OnceLock<bool>,
    /// See [`Module::pointers`].
    pub(super) pointers: OnceLock<Vec<u64>>,
    /// Restartable sequences.
    pub(super) sequences: Vec<Range<u64>>,
    pub(super) clock: Clock,
    /// Of looking at functions.
    pub(super) progress: Progress<'a>,
    pub(super) rules: Rules<'a>,
    pub(super) madvise: Madvise<'a>,
    /// See [`super::scan_scarce`].
    pub(super) scarce: bool,
    /// Of each function whether it is a region of its own; empty where none is.
    pub(super) wanted: Vec<Wanted>,
    /// The same of its loops.
    pub(super) looped: Vec<Wanted>,
}

impl Module<'_> {
    /// Whether a function is to be a region of its own.
    pub(super) fn is_wanted(&self, function: usize) -> bool {
        let wanted = self.wanted.get(function);
        wanted.is_some_and(|wanted| *wanted != Wanted::No) || self.is_looped(function)
    }

    /// Whether its loops are.
    pub(super) fn is_looped(&self, function: usize) -> bool {
        let looped = self.looped.get(function);
        looped.is_some_and(|wanted| *wanted != Wanted::No)
    }

    /// Whether these bytes must stay what and where they are: the loader writes there, or the kernel knows the place.
    pub(super) fn stays(&self, range: &Range<u64>) -> bool {
        self.dynamic.writes_in(range) || restartable::meets(&self.sequences, range)
    }

    /// The name of the variable at this address.
    pub(super) fn object_name(&self, va: u64) -> Option<&str> {
        let objects = self.objects.get_or_init(|| {
            let mut objects = FxHashMap::default();
            let all = self.symbols.iter().chain(&self.dynamic.symbols);
            for s in all.filter(|s| s.defined && s.kind == elf::STT_OBJECT.0) {
                objects.entry(s.va).or_insert(s.name);
            }
            objects
        });
        objects.get(&va).copied()
    }

    /// Addresses in the midst of functions that are in the file's data, ascending.
    pub(super) fn pointers(&self) -> &[u64] {
        self.pointers.get_or_init(|| taken::pointers(self))
    }

    /// The address of code that an instruction adds to the global offset table's: position-independent code of the large model has
    /// no other way to make its own addresses.
    pub(super) fn code_from_table(&self, insn: &Instruction) -> Option<u64> {
        if self.image.kind != Kind::Dynamic || insn.op1_kind() != OpKind::Immediate64 {
            return None;
        }
        let table = self.dynamic.table.or(self.entries.table);
        let va = table?.wrapping_add(insn.immediate64());
        self.image.is_code(va).then_some(va)
    }

    /// Whether the file has variables of named critical sections.
    pub(super) fn has_criticals(&self) -> bool {
        *self.criticals.get_or_init(|| {
            let mut all = self.symbols.iter().chain(&self.dynamic.symbols);
            all.any(|s| s.defined && s.name.starts_with(names::CRITICAL_PREFIX))
        })
    }

    /// Whether an instruction other than a plain one may call, or jump to, the runtime.
    pub(super) fn may_lead(&self, insn: &Instruction) -> bool {
        match insn.op0_kind() {
            OpKind::NearBranch64 => self.entries.is_target(insn.near_branch_target()),
            OpKind::Memory if insn.is_ip_rel_memory_operand() => self
                .entries
                .slots
                .contains_key(&insn.ip_rel_memory_address()),
            OpKind::Memory | OpKind::Register => matches!(
                insn.flow_control(),
                FlowControl::IndirectCall | FlowControl::IndirectBranch
            ),
            _ => false,
        }
    }
}
