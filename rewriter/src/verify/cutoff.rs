//! Code that compares tasks' depths, as capstone reads it: what it does is told here once more.

use super::code::{Checker, site_error};
use super::cursor::{LEA_R10, mismatch};
use super::error::VerifyError;
use super::ledger::Ledger;
use super::tables::{SiteEntry, Tables};
use super::unwind::Place;
use super::view::View;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::Parameter;
use std::collections::BTreeMap;

/// Bytes of the table of depths, in pages of its own at the end of the data segment: that of the module's header may be protected.
const DEPTHS: u64 = 1 << 14;
const PAGE: u64 = 1 << 12;

/// From one depth's code to the next.
const STEP: u64 = 16;

/// The deepest cutoff.
const MOST: u32 = 64;

/// A line of a listing. `@` stands for an address.
enum Line {
    Plain(String),
    /// With this address.
    At(&'static str, u64),
    /// With the address of a label.
    To(&'static str, &'static str),
    Label(&'static str),
    /// The code for a depth, counted from 0.
    Entry(u32),
    /// `jmp` to the stub.
    Leave,
    /// From here on so many bytes more are on the stack.
    Deeper(i64),
}
use Line::{At, Deeper, Entry, Label, Leave, Plain, To};

fn plain(text: &str) -> Line {
    Plain(text.to_owned())
}

/// As capstone writes numbers.
fn number(value: u32) -> String {
    match value {
        0..=9 => value.to_string(),
        _ => format!("{value:#x}"),
    }
}

/// From the call to its stub. `own`: its cutoff; else it only counts.
fn head(function: u64, depths: u64, own: Option<u32>, deepest: u32) -> Vec<Line> {
    let mut lines = vec![
        At("lea rax, [@]", function),
        plain("cmp rdi, rax"),
        To("jne @", "pass"),
        plain("mov r10, qword ptr fs:[0]"),
        plain("imul r11, r10, -0x61c8864f"),
        plain("shr r11, 0x22"),
        plain("and r11d, 0x3fc0"),
        At("lea rax, [@]", depths),
        plain("add r11, rax"),
        Label("find"),
        plain("cmp qword ptr [r11], r10"),
        To("je @", "found"),
        plain("add r11, 0x10"),
        plain("test r11b, 0x3f"),
        To("jne @", "find"),
        plain("xor eax, eax"),
        To("jmp @", "decide"),
        Label("found"),
        plain("mov eax, dword ptr [r11 + 8]"),
        Label("decide"),
    ];
    if let Some(cutoff) = own {
        lines.extend([
            Plain(format!("cmp eax, {}", number(cutoff))),
            To("jb @", "defer"),
            plain("test rdx, rdx"),
            To("jne @", "defer"),
            plain("test dword ptr [rsp + 8], 0x2008"),
            To("jne @", "defer"),
            plain("xor r9d, r9d"),
        ]);
    }
    if own == Some(deepest) {
        lines.push(To("jmp @", "pass"));
    }
    lines.extend([
        Label("defer"),
        plain("shl eax, 4"),
        To("lea rdi, [@]", "entries"),
        plain("add rdi, rax"),
        Label("pass"),
        Leave,
        Label("entries"),
    ]);
    lines
}

/// A function for each depth of a task's creator, which executes the task's own in its depth.
fn bodies(function: u64, depths: u64, deepest: u32) -> Vec<Line> {
    let mut lines = vec![];
    for depth in 0..=deepest {
        lines.extend([
            Entry(depth),
            plain("endbr64"),
            Plain(format!("mov eax, {}", number(deepest.min(depth + 1)))),
            To("jmp @", "common"),
            plain("int3"),
            plain("int3"),
        ]);
    }
    lines.extend([
        Label("common"),
        plain("mov rcx, qword ptr fs:[0]"),
        plain("imul rdx, rcx, -0x61c8864f"),
        plain("shr rdx, 0x22"),
        plain("and edx, 0x3fc0"),
        At("lea rsi, [@]", depths),
        plain("add rdx, rsi"),
        Label("own"),
        plain("cmp qword ptr [rdx], rcx"),
        To("je @", "execute"),
        plain("add rdx, 0x10"),
        plain("test dl, 0x3f"),
        To("jne @", "own"),
        plain("sub rdx, 0x40"),
        plain("mov esi, eax"),
        Label("claim"),
        plain("xor eax, eax"),
        plain("lock cmpxchg qword ptr [rdx], rcx"),
        To("je @", "claimed"),
        plain("add rdx, 0x10"),
        plain("test dl, 0x3f"),
        To("jne @", "claim"),
        At("jmp @", function),
        Label("claimed"),
        plain("mov eax, esi"),
        Label("execute"),
        plain("sub rsp, 0x18"),
        Deeper(0x18),
        plain("mov qword ptr [rsp], rdx"),
        plain("mov ecx, dword ptr [rdx + 8]"),
        plain("mov dword ptr [rsp + 8], ecx"),
        plain("mov dword ptr [rdx + 8], eax"),
        At("call @", function),
        plain("mov rdx, qword ptr [rsp]"),
        plain("mov eax, dword ptr [rsp + 8]"),
        plain("add rsp, 0x18"),
        Deeper(0),
        plain("mov dword ptr [rdx + 8], eax"),
        plain("test eax, eax"),
        To("jne @", "end"),
        plain("mov qword ptr [rdx], 0"),
        Label("end"),
        plain("ret"),
    ]);
    lines
}

/// Address of the depths.
fn depths(tables: &Tables<'_>) -> Result<u64, VerifyError> {
    let data = &tables.loads[2];
    let skip = data.p_filesz.checked_sub(DEPTHS);
    let at = skip.and_then(|skip| data.p_vaddr.checked_add(skip));
    let at = at.filter(|at| at % PAGE == 0 && *at > tables.header_va);
    at.ok_or_else(|| VerifyError::damaged("the tasks' depths are misplaced"))
}

/// When the program begins, no thread is in a task.
pub(super) fn check_depths(
    new: &View<'_>,
    tables: &Tables<'_>,
    ledger: &mut Ledger,
) -> Result<(), VerifyError> {
    let at = depths(tables)?;
    let bytes = new.at_va(at, DEPTHS);
    let is_empty = bytes.is_some_and(|bytes| bytes.iter().all(|&b| b == 0));
    match new.offset_of(at, DEPTHS).filter(|_| is_empty) {
        Some(offset) => ledger.enter(offset, DEPTHS, "the tasks' depths"),
        None => Err(VerifyError::damaged("the tasks' depths are not empty")),
    }
}

impl Checker<'_, '_, '_> {
    /// Follows the instruction of a call that creates tasks over what compares their depths, if there is a cutoff in the file. Returns
    /// the stub's address.
    pub(super) fn creation(&mut self, site: &SiteEntry, at: u64) -> Result<u64, VerifyError> {
        let settings = self.tables.description.binary.settings.iter();
        let cutoffs = settings.filter(|s| s.parameter == Parameter::Cutoff);
        let Some(deepest) = cutoffs.clone().map(|s| s.value).max() else {
            return Ok(at);
        };
        let own = cutoffs.clone().find(|s| s.site == site.id);
        let own = own.map(|s| s.value);
        let is_creation = site.probe == Probe::TaskCreate;
        let first = self.cursor(at).next()?;
        if own.is_none() && (!is_creation || first.bytes().starts_with(&LEA_R10)) {
            return Ok(at);
        }
        let infos = &self.tables.description.sites;
        let function = infos.get(site.id as usize).and_then(|info| info.outlined);
        let is_known = deepest <= MOST && own != Some(0) && is_creation;
        let Some(function) = function.filter(|_| is_known) else {
            return Err(site_error(site, "it has a setting that it can't have"));
        };
        let depths = depths(self.tables)?;
        let mut lines = head(function.0, depths, own, deepest);
        lines.extend(bodies(function.0, depths, deepest));
        self.found.counts_depths = true;
        self.listing(at, &lines)
    }

    /// The code at an address is what is listed. Returns where it leaves for.
    fn listing(&mut self, start: u64, lines: &[Line]) -> Result<u64, VerifyError> {
        let mut code = self.cursor(start);
        let mut labels = BTreeMap::new();
        let mut uses = vec![];
        let mut places = vec![];
        let mut left = None;
        for line in lines {
            let here = code.at;
            let mut enter = |depth| {
                places.push(Place {
                    at: here,
                    origin: None,
                    depth,
                });
            };
            match line {
                Label(name) => {
                    labels.insert(*name, here);
                    enter(0);
                }
                Deeper(depth) => enter(*depth),
                Entry(depth) => {
                    let from = labels.get("entries").copied().unwrap_or(here);
                    if here != from + STEP * u64::from(*depth) {
                        return Err(mismatch(here, "the code for a depth", "other code"));
                    }
                    enter(0);
                }
                Leave => {
                    let jump = code.next()?;
                    let form = matches!(jump.bytes(), [0xe9, _, _, _, _]);
                    if !form {
                        return Err(mismatch(jump.at, "jmp to a stub", &jump.text()));
                    }
                    left = jump.to;
                }
                Plain(text) => {
                    let insn = code.next()?;
                    if insn.text() != *text {
                        return Err(mismatch(insn.at, text, &insn.text()));
                    }
                }
                At(shape, _) | To(shape, _) => {
                    let insn = code.next()?;
                    if insn.shape() != shape.as_bytes() {
                        return Err(mismatch(insn.at, shape, &insn.text()));
                    }
                    uses.push((insn, line));
                }
            }
        }
        let end = code.at;
        for (insn, line) in uses {
            let to = match line {
                At(_, to) => Some(*to),
                To(_, label) => labels.get(label).copied(),
                _ => None,
            };
            if to.is_none() || insn.address() != to {
                return Err(mismatch(insn.at, "another address", &insn.text()));
            }
        }
        self.found.places.extend(places);
        self.found.setters_end = self.found.setters_end.max(end);
        self.enter_added(start..end, "compared depths")?;
        left.ok_or_else(|| mismatch(start, "jmp to a stub", "none"))
    }
}
