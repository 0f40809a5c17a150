//! Arguments that are changed before a stub, as capstone reads them.

use super::code::{Checker, site_error};
use super::cursor::mismatch;
use super::error::VerifyError;
use super::tables::SiteEntry;
use ompfuse_format::site::{Parameter, Setting, SiteInfo};
use ompfuse_patterns::lookup;

/// Arguments in registers, by position.
const REGISTERS: [&str; 6] = ["edi", "esi", "edx", "ecx", "r8d", "r9d"];
const WHOLE: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// As capstone writes numbers.
fn number(value: u32) -> String {
    match value {
        0..=9 => value.to_string(),
        _ => format!("{value:#x}"),
    }
}

/// An argument becomes this.
fn becomes(position: u8, value: u32) -> String {
    let at = usize::from(position);
    match REGISTERS.get(at) {
        Some(register) => format!("mov {register}, {}", number(value)),
        None => {
            let displacement = 8 * (at as u32 - 6 + 1);
            let place = number(displacement);
            format!("mov qword ptr [rsp + {place}], {}", number(value))
        }
    }
}

/// What a setting is in assembly; `@` stands for the address behind it. `None`: it can't be set there.
fn expected(site: &SiteInfo, setting: &Setting) -> Option<Vec<String>> {
    let set = lookup(site.entry.as_deref()?)?.set;
    let value = setting.value;
    let is_size = setting.parameter == Parameter::Grainsize;
    let mut all = vec![];
    match setting.parameter {
        Parameter::Threads if value == 1 => all.push(becomes(set.threads?, 1)),
        Parameter::Threads => {
            let register = REGISTERS.get(usize::from(set.threads?))?;
            all.push(format!("cmp {register}, {}", number(value)));
            all.push("jbe @".to_owned());
            all.push(becomes(set.threads?, value));
        }
        Parameter::Chunk => {
            if let Some(step) = set.step {
                let half = REGISTERS.get(usize::from(step))?;
                let whole = WHOLE.get(usize::from(step))?;
                all.push(format!("movsxd rax, {half}"));
                all.push(format!("cmp {whole}, rax"));
                all.push("jne @".to_owned());
            }
            all.push(becomes(set.chunk?, value));
        }
        Parameter::Schedule => {
            let register = REGISTERS.get(usize::from(set.schedule?))?;
            let kind = match value {
                2 => 35,
                3 => 36,
                _ => return None,
            };
            all.push(format!("and {register}, 0xe0000000"));
            all.push(format!("or {register}, {}", number(kind)));
        }
        Parameter::Cutoff => return None, // it is no change of one argument
        Parameter::Grainsize | Parameter::NumTasks => {
            let flags = match set.flags {
                Some(flags) => Some(REGISTERS.get(usize::from(flags))?),
                None => None,
            };
            if let Some(register) = flags {
                all.push(format!("test {register}, 0x4000"));
                all.push("jne @".to_owned());
            }
            if let Some(copier) = set.copier {
                let register = WHOLE.get(usize::from(copier))?;
                all.push(format!("test {register}, {register}"));
                all.push("jne @".to_owned());
            }
            all.push(becomes(set.grain?, value));
            if let Some(register) = flags {
                all.push(match is_size {
                    true => format!("or {register}, 0x200"),
                    false => format!("and {register}, 0xfffffdff"),
                });
            }
            if let Some(kind) = set.grain_kind {
                all.push(becomes(kind, if is_size { 1 } else { 2 }));
            }
        }
    }
    Some(all)
}

impl Checker<'_, '_, '_> {
    /// Follows a call's instruction over what changes its arguments, if the description says so. Returns the stub's address.
    pub(super) fn setter(&mut self, site: &SiteEntry, at: u64) -> Result<u64, VerifyError> {
        let description = &self.tables.description;
        let settings = &description.binary.settings;
        let own = settings
            .iter()
            .filter(|setting| setting.site == site.id && setting.parameter != Parameter::Cutoff);
        let info = description.sites.get(site.id as usize);
        let lines = own.map(|setting| expected(info?, setting));
        let Some(all) = lines.collect::<Option<Vec<_>>>() else {
            return Err(site_error(site, "it has a setting that it can't have"));
        };
        if all.is_empty() {
            return self.creation(site, at);
        }
        let mut code = self.cursor(at);
        for lines in all {
            let mut skips = vec![];
            for line in &lines {
                let insn = code.next()?;
                let is_here = match line.strip_suffix(" @") {
                    Some(verb) => {
                        skips.push((insn.at, insn.to));
                        insn.verb() == verb.as_bytes() && insn.bytes().len() == 2
                    }
                    None => insn.text() == *line,
                };
                if !is_here {
                    return Err(mismatch(insn.at, line, &insn.text()));
                }
            }
            let end = code.at;
            if let Some((at, _)) = skips.into_iter().find(|(_, to)| *to != Some(end)) {
                return Err(mismatch(at, "a jump behind the setting", "another one"));
            }
        }
        let jump = code.next()?;
        let end = code.at;
        let form = matches!(jump.bytes(), [0xe9, _, _, _, _]);
        let Some(stub) = jump.to.filter(|_| form) else {
            return Err(mismatch(jump.at, "jmp to a stub", &jump.text()));
        };
        self.found.setters_end = self.found.setters_end.max(end);
        self.enter_added(at..end, "changed arguments")?;
        Ok(stub)
    }
}
