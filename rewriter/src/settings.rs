//! What a call hands over instead of what the program does: its instruction leads to a few instructions that change arguments, and these
//! lead to its stub. So a file with settings needs no runtime library.
//!
//! Only arguments that OpenMP leaves open are changed ([`ompfuse_patterns::Settable`]). The words of arguments on the stack are the callee's
//! (System V ABI for x86-64, 3.2.2), and so are the flags.

use ompfuse_format::site::{Parameter, Setting, SiteInfo};
use ompfuse_patterns::lookup;

/// A change of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is this.
    Is(u32),
    /// It is this unless it is 1.
    IsUnlessOne(u32),
    /// These bits are set.
    With(u32),
    /// These bits are not.
    Without(u32),
}

/// GOMP's flag for a taskloop whose number is a grain size (`GOMP_TASK_FLAG_GRAINSIZE` of libgomp's gomp-constants.h).
const GOMP_GRAINSIZE: u32 = 1 << 9;
/// KMPC's words for the same, and for a number of tasks (`__kmpc_taskloop` in kmp_tasking.cpp).
const KMPC_GRAINSIZE: u32 = 1;
const KMPC_NUM_TASKS: u32 = 2;

/// Position and change of each argument; or why this can't be set at a call.
pub(crate) fn changes(
    site: &SiteInfo,
    parameter: Parameter,
    value: u32,
) -> Result<Vec<(u8, Change)>, &'static str> {
    let entry = site.entry.as_deref().and_then(lookup);
    let set = entry.map(|e| e.set).unwrap_or_default();
    match parameter {
        Parameter::Threads => {
            let at = set
                .threads
                .ok_or("the call hands over no number of threads")?;
            let change = match value {
                1 => Change::Is(1),
                _ => Change::IsUnlessOne(value),
            };
            Ok(vec![(at, change)])
        }
        Parameter::Chunk => {
            let schedule = site.detail.as_deref().unwrap_or("");
            if schedule.starts_with("static") {
                return Err("programs may rely on which thread gets what of a static schedule");
            }
            let at = set.chunk.ok_or("the call hands over no chunk")?;
            let deals = schedule.starts_with("dynamic") || schedule.starts_with("guided");
            if schedule.contains("ordered") || schedule.contains("doacross") {
                return Err("iterations of an ordered loop may depend on its chunks");
            }
            match deals {
                true => Ok(vec![(at, Change::Is(value))]),
                false => Err("its schedule is not known to be dynamic or guided"),
            }
        }
        Parameter::Grainsize | Parameter::NumTasks => {
            let at = set.grain.ok_or("it is no taskloop")?;
            let is_size = parameter == Parameter::Grainsize;
            let mut all = vec![(at, Change::Is(value))];
            if let Some(flags) = set.flags {
                let change = match is_size {
                    true => Change::With(GOMP_GRAINSIZE),
                    false => Change::Without(GOMP_GRAINSIZE),
                };
                all.push((flags, change));
            }
            if let Some(kind) = set.grain_kind {
                let word = match is_size {
                    true => KMPC_GRAINSIZE,
                    false => KMPC_NUM_TASKS,
                };
                all.push((kind, Change::Is(word)));
            }
            Ok(all)
        }
    }
}

/// Whether a parameter can be set at a call; if not, why.
///
/// # Errors
/// The reason, in words that follow the call's name.
pub fn check(site: &SiteInfo, parameter: Parameter) -> Result<(), &'static str> {
    changes(site, parameter, 2).map(drop)
}

/// The instructions for one site's settings; `None`: one of them can't be set there.
pub(crate) fn code<'s>(
    site: &SiteInfo,
    settings: impl Iterator<Item = &'s Setting>,
) -> Option<Vec<u8>> {
    let mut code = vec![];
    for setting in settings {
        let value = Some(setting.value).filter(|&v| i32::try_from(v).is_ok_and(|v| v > 0))?;
        for (at, change) in changes(site, setting.parameter, value).ok()? {
            code.extend(encode(at, change)?);
        }
    }
    Some(code)
}

/// `mov r32, imm32`, `and r32, imm32` and `or r32, imm32` by argument; the upper half of the register becomes 0.
fn encode(at: u8, change: Change) -> Option<Vec<u8>> {
    // rdi, rsi, rdx, rcx, r8, r9: number and whether it is one of the new registers.
    const REGISTERS: [(u8, bool); 6] = [
        (7, false),
        (6, false),
        (2, false),
        (1, false),
        (0, true),
        (1, true),
    ];
    let Some(&(number, is_new)) = REGISTERS.get(usize::from(at)) else {
        // Behind the return address.
        let displacement = u8::try_from(8 + 8 * (u32::from(at) - 6)).ok()?;
        let Change::Is(value) = change else {
            return None;
        };
        let mut code = vec![0x48, 0xc7, 0x44, 0x24, displacement];
        code.extend(value.to_le_bytes());
        return Some(code).filter(|_| displacement < 0x80);
    };
    let mut code = vec![];
    let one = |code: &mut Vec<u8>, opcode: &[u8], value: u32| {
        if is_new {
            code.push(0x41);
        }
        code.extend(opcode);
        code.extend(value.to_le_bytes());
    };
    match change {
        Change::Is(value) => one(&mut code, &[0xb8 + number], value),
        Change::With(bits) => one(&mut code, &[0x81, 0xc8 + number], bits),
        Change::Without(bits) => one(&mut code, &[0x81, 0xe0 + number], !bits),
        Change::IsUnlessOne(value) => {
            // cmp r32, 1; je behind what follows
            code.extend(is_new.then_some(0x41));
            code.extend([0x83, 0xf8 + number, 1]);
            code.extend([0x74, 5 + u8::from(is_new)]);
            one(&mut code, &[0xb8 + number], value);
        }
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn text(at: u8, change: Change) -> String {
        let code = encode(at, change).unwrap();
        let mut formatter = IntelFormatter::new();
        let decoder = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE);
        let line = |instruction| {
            let mut line = String::new();
            formatter.format(&instruction, &mut line);
            line
        };
        decoder.into_iter().map(line).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn arguments_change_where_they_are() {
        assert_eq!(text(3, Change::Is(64)), "mov ecx,40h");
        assert_eq!(text(4, Change::Is(64)), "mov r8d,40h");
        assert_eq!(text(5, Change::With(512)), "or r9d,200h");
        assert_eq!(text(5, Change::Without(512)), "and r9d,0FFFFFDFFh");
        assert_eq!(text(6, Change::Is(64)), "mov qword ptr [rsp+8],40h");
        assert_eq!(text(9, Change::Is(3)), "mov qword ptr [rsp+20h],3");
        let unless = text(2, Change::IsUnlessOne(4));
        assert_eq!(unless, "cmp edx,1; je short 000000000000000Ah; mov edx,4");
    }
}
