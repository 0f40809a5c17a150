//! Calls into an OpenMP runtime, as GNU objdump sees them: a reader of machine code that shares nothing with ompfuse.

use crate::process;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What objdump finds in a binary.
#[derive(Debug, Default)]
pub struct Calls {
    /// Runtime functions called or jumped to, by the instruction's address.
    pub direct: BTreeMap<u64, String>,
    /// Addresses of calls through a register or to memory that names no function.
    pub indirect: BTreeSet<u64>,
    /// Of these, the calls through a register into which its function loads one runtime function and nothing else.
    pub hoisted: BTreeMap<u64, String>,
}

/// Whether a symbol is of an OpenMP runtime.
pub fn is_runtime(symbol: &str) -> bool {
    ["GOMP_", "__kmpc_", "omp_", "__tgt_"]
        .iter()
        .any(|prefix| symbol.starts_with(prefix))
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Runs objdump twice: for the relocations, which name the functions, and for the instructions.
///
/// # Panics
/// If objdump fails.
pub fn calls(path: &Path) -> Calls {
    let objdump = |flags: &[&str]| {
        let mut command = Command::new("objdump");
        let output = process::run(command.args(flags).arg(path).env("LC_ALL", "C")).ok("objdump");
        String::from_utf8(output.stdout).expect("objdump writes text")
    };
    parse(&objdump(&["-R"]), &objdump(&["-d", "--no-show-raw-insn"]))
}

/// One instruction: address, mnemonic, operands (with objdump's comment).
fn instruction(line: &str) -> Option<(u64, &str, &str)> {
    let (address, rest) = line.trim_start().split_once(":\t")?;
    let rest = rest
        .trim()
        .trim_start_matches("bnd ")
        .trim_start_matches("notrack ");
    let (mnemonic, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((hex(address)?, mnemonic, operands.trim()))
}

/// The slot that `*0x1234(%rip)  # 5678 <...>` reads.
fn slot(operands: &str) -> Option<u64> {
    let (target, comment) = operands.split_once('#')?;
    if !target.trim_end().ends_with("(%rip)") {
        return None;
    }
    hex(comment.split_whitespace().next()?)
}

fn parse(relocations: &str, disassembly: &str) -> Calls {
    // 0000000000004018 R_X86_64_JUMP_SLOT  GOMP_parallel@GOMP_4.0
    let slots: BTreeMap<u64, String> = relocations
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (at, kind, symbol) = (words.next()?, words.next()?, words.next()?);
            let named = ["R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT", "R_X86_64_64"].contains(&kind);
            let symbol = symbol.split(['@', '+']).next()?.to_owned();
            (named && is_runtime(&symbol)).then_some((hex(at)?, symbol))
        })
        .collect();

    // A stub of the PLT is `[endbr64] jmp *slot`, at a multiple of 8 or 16.
    let mut stubs: BTreeMap<u64, &String> = BTreeMap::new();
    let mut in_plt = false;
    let mut landing = None;
    for line in disassembly.lines() {
        if let Some(section) = line.strip_prefix("Disassembly of section ") {
            in_plt = section.starts_with(".plt");
        }
        let Some((address, mnemonic, operands)) = instruction(line).filter(|_| in_plt) else {
            continue;
        };
        if mnemonic == "jmp"
            && let Some(symbol) = slot(operands).and_then(|s| slots.get(&s))
        {
            stubs.insert(landing.unwrap_or(address), symbol);
        }
        landing = (mnemonic == "endbr64").then_some(address);
    }

    let mut calls = Calls::default();
    let mut function = Function::default();
    for line in disassembly.lines() {
        if let Some(section) = line.strip_prefix("Disassembly of section ") {
            in_plt = section.starts_with(".plt");
        }
        if line.ends_with(">:") {
            std::mem::take(&mut function).finish(&mut calls);
        }
        let Some((address, mnemonic, operands)) = instruction(line).filter(|_| !in_plt) else {
            continue;
        };
        function.read(address, mnemonic, operands, &slots);
        if mnemonic != "call" && !mnemonic.starts_with('j') {
            continue;
        }
        if operands.starts_with('*') {
            match slot(operands) {
                Some(s) => {
                    if let Some(symbol) = slots.get(&s) {
                        calls.direct.insert(address, symbol.clone());
                    }
                }
                None => {
                    calls.indirect.insert(address);
                }
            }
        } else if let Some(symbol) = operands
            .split_whitespace()
            .next()
            .and_then(hex)
            .and_then(|t| stubs.get(&t))
        {
            calls.direct.insert(address, (*symbol).clone());
        }
    }
    function.finish(&mut calls);
    calls
}

/// What one function does with registers that hold addresses.
#[derive(Default)]
struct Function {
    /// What is written into a 64-bit register: runtime functions, and whether something else too.
    writes: BTreeMap<String, (BTreeSet<String>, bool)>,
    /// Calls through registers.
    calls: Vec<(u64, String)>,
}

impl Function {
    fn read(
        &mut self,
        address: u64,
        mnemonic: &str,
        operands: &str,
        slots: &BTreeMap<u64, String>,
    ) {
        if mnemonic == "call" || mnemonic == "jmp" {
            if let Some(register) = operands.strip_prefix("*%") {
                self.calls.push((address, register.to_owned()));
            }
            return;
        }
        // AT&T: the last operand is the one that is written. Saving and restoring leave what the function computes.
        let last = operands.rsplit(',').next().unwrap_or_default();
        let Some(register) = last
            .split_whitespace()
            .next()
            .and_then(|r| r.strip_prefix('%'))
        else {
            return;
        };
        let reads_only = ["cmp", "test", "push", "pop"];
        if reads_only.iter().any(|m| mnemonic.starts_with(m)) {
            return;
        }
        let entry = self.writes.entry(register.to_owned()).or_default();
        // `mov 0x2fcd(%rip),%rbx        # 4018 <...>`
        let loaded = operands
            .split_once(",%")
            .filter(|_| mnemonic == "mov")
            .and_then(|(from, to)| slot(&format!("{from} #{}", to.split_once('#')?.1)))
            .and_then(|s| slots.get(&s));
        match loaded {
            Some(symbol) => _ = entry.0.insert(symbol.clone()),
            None => entry.1 = true,
        }
    }

    fn finish(self, calls: &mut Calls) {
        for (address, register) in self.calls {
            if let Some((symbols, false)) = self.writes.get(&register)
                && symbols.len() == 1
            {
                calls
                    .hoisted
                    .extend(symbols.iter().map(|s| (address, s.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_by_plt_by_got_and_by_register_are_told_apart() {
        let relocations = "0000000000004018 R_X86_64_JUMP_SLOT  GOMP_barrier@GOMP_1.0\n\
                           0000000000003fd8 R_X86_64_GLOB_DAT  omp_get_thread_num@OMP_1.0\n\
                           0000000000004020 R_X86_64_JUMP_SLOT  printf@GLIBC_2.2.5\n";
        let disassembly = "Disassembly of section .plt.sec:\n\
            \x20   1040:\tendbr64\n\
            \x20   1044:\tbnd jmp *0x2fcd(%rip)        # 4018 <GOMP_barrier@GOMP_1.0>\n\
            \x20   1050:\tendbr64\n\
            \x20   1054:\tjmp    *0x2fc6(%rip)        # 4020 <printf@GLIBC_2.2.5>\n\
            Disassembly of section .text:\n\
            \x20   1200:\tcall   1040 <GOMP_barrier@plt>\n\
            \x20   1205:\tcall   1050 <printf@plt>\n\
            \x20   120a:\tcall   *0x2dc8(%rip)        # 3fd8 <omp_get_thread_num@OMP_1.0>\n\
            \x20   120f:\tmov    0x2dc2(%rip),%r14        # 3fd8 <omp_get_thread_num@OMP_1.0>\n\
            \x20   1210:\tcall   *%r14\n\
            \x20   1213:\tjmp    1040 <GOMP_barrier@plt>\n";
        let calls = parse(relocations, disassembly);
        let found: Vec<_> = calls.direct.iter().map(|(a, s)| (*a, s.as_str())).collect();
        assert_eq!(
            found,
            [
                (0x1200, "GOMP_barrier"),
                (0x120a, "omp_get_thread_num"),
                (0x1213, "GOMP_barrier")
            ]
        );
        assert_eq!(calls.indirect.into_iter().collect::<Vec<_>>(), [0x1210]);
        let hoisted: Vec<_> = calls.hoisted.into_iter().collect();
        assert_eq!(hoisted, [(0x1210, "omp_get_thread_num".to_owned())]);
    }
}
