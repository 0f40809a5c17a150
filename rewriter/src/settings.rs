//! What a call hands over instead of what the program does: its instruction leads to a few instructions that change arguments, and these
//! lead to its stub. So a file with settings needs no runtime library.
//!
//! Only arguments that OpenMP leaves open are changed ([`ompfuse_patterns::Settable`]). The words of arguments on the stack are the callee's
//! (System V ABI for x86-64, 3.2.2), and so are the flags and rax.

use crate::cutoff::{Creation, MOST_DEPTH, Setter};
use crate::model::Site;
use ompfuse_format::detail::{Detail, Kind};
use ompfuse_format::site::{Parameter, SCHEDULES, Setting, SiteInfo};
use ompfuse_patterns::lookup;

/// A change of one argument, or a condition for those that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is this.
    Is(u32),
    /// It is this if it was more.
    AtMost(u32),
    /// These bits are set.
    With(u32),
    /// These bits are not.
    Without(u32),
    /// What follows is done only if it is 0.
    OnlyIfZero,
    /// What follows is done only if none of these bits is set.
    OnlyWithout(u32),
    /// What follows is done only if it has 32 bits, with its sign.
    OnlyIfShort,
}

/// GOMP's flag for a taskloop whose number is a grain size (`GOMP_TASK_FLAG_GRAINSIZE` of libgomp's gomp-constants.h).
const GOMP_GRAINSIZE: u32 = 1 << 9;
/// The flag for the `strict` modifier: programs may rely on what each task gets.
const GOMP_STRICT: u32 = 1 << 14;
/// KMPC's words for the same, and for a number of tasks (`__kmpc_taskloop` in kmp_tasking.cpp).
const KMPC_GRAINSIZE: u32 = 1;
const KMPC_NUM_TASKS: u32 = 2;

/// The bits of KMPC's schedules that are not modifiers, and its numbers for [`SCHEDULES`] (`enum sched_type` in kmp.h).
const KMPC_SCHEDULE: u32 = (1 << 29) - 1;
const KMPC_SCHEDULES: [u32; SCHEDULES.len()] = [35, 36];

/// The largest chunk. Nothing is gained beyond it, and it is far from where a runtime's 32-bit sums of chunks and iterations could begin
/// again at 0.
pub const MOST_CHUNK: u32 = 1 << 20;

/// Conditions and changes by position, in their order; or why this can't be set at a call.
fn changes(
    site: &Site,
    parameter: Parameter,
    value: u32,
) -> Result<Vec<(u8, Change)>, &'static str> {
    let entry = site.info.entry.as_deref().and_then(lookup);
    let set = entry.map(|e| e.set).unwrap_or_default();
    match parameter {
        Parameter::Threads => {
            let at = set
                .threads
                .ok_or("the call hands over no number of threads")?;
            // Never a larger team: programs have room for as many threads as they ask for, or as omp_get_max_threads() says.
            match (value, site.asks_threads) {
                (1, _) => Ok(vec![(at, Change::Is(1))]),
                (_, Some(0)) => Err(
                    "the program asks for no number of threads there, so OMP_NUM_THREADS decides",
                ),
                (_, Some(asked)) if asked <= value => {
                    Err("the program asks for no more threads than that")
                }
                _ => Ok(vec![(at, Change::AtMost(value))]),
            }
        }
        Parameter::Chunk => {
            let at = set.chunk.ok_or("the call hands over no chunk");
            let at = open_schedule(&site.info).and(at)?;
            let is_short = set.step.map(|step| (step, Change::OnlyIfShort));
            Ok(is_short
                .into_iter()
                .chain([(at, Change::Is(value))])
                .collect())
        }
        Parameter::Schedule => {
            let at = set
                .schedule
                .ok_or("libgomp has other functions for another schedule");
            let at = open_schedule(&site.info).and(at)?;
            let mut numbers = SCHEDULES.iter().zip(KMPC_SCHEDULES);
            let number = numbers.find(|((_, schedule), _)| *schedule == value);
            let (_, number) = number.ok_or("there is no such schedule")?;
            // The modifiers stay: programs may rely on a monotonic one.
            Ok(vec![
                (at, Change::Without(KMPC_SCHEDULE)),
                (at, Change::With(number)),
            ])
        }
        Parameter::Grainsize | Parameter::NumTasks => {
            let at = set
                .grain
                .ok_or("it is no taskloop, or programs may rely on its strict grain")?;
            let is_size = parameter == Parameter::Grainsize;
            let mut all = vec![];
            all.extend(set.flags.map(|at| (at, Change::OnlyWithout(GOMP_STRICT))));
            all.extend(set.copier.map(|at| (at, Change::OnlyIfZero)));
            all.push((at, Change::Is(value)));
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
        Parameter::Cutoff => match Creation::new(site, Some(value), value) {
            Some(_) if site.copies => Err("a function copies the task's data"),
            Some(_) => Ok(vec![]),
            None => Err("only gcc's tasks whose function is known can be executed at once"),
        },
    }
}

/// Whether OpenMP leaves open which ranges a loop is divided into; if not, why.
fn open_schedule(site: &SiteInfo) -> Result<(), &'static str> {
    let schedule = Detail(site.detail.as_deref().unwrap_or(""));
    match schedule.kind() {
        Some(Kind::Static) => {
            Err("programs may rely on which thread gets what of a static schedule")
        }
        _ if schedule.is_ordered() => Err("iterations of an ordered loop may depend on its chunks"),
        Some(Kind::Runtime) => Err("its schedule is what OMP_SCHEDULE or omp_set_schedule() says"),
        Some(Kind::Dynamic | Kind::Guided) => Ok(()),
        Some(Kind::Auto) | None => Err("its schedule is not known to be dynamic or guided"),
    }
}

/// The largest value.
pub fn most(parameter: Parameter) -> u32 {
    match parameter {
        Parameter::Chunk => MOST_CHUNK,
        Parameter::Schedule => SCHEDULES[SCHEDULES.len() - 1].1,
        Parameter::Cutoff => MOST_DEPTH,
        _ => i32::MAX as u32,
    }
}

/// Whether a parameter can have this value at a call; if not, why.
///
/// # Errors
/// The reason, in words that follow the call's name.
pub fn check(site: &Site, parameter: Parameter, value: u32) -> Result<(), &'static str> {
    changes(site, parameter, value).map(drop)
}

/// What changes the arguments of one site's call; `None`: one of its settings can't be set there. `deepest`: the file's largest cutoff.
pub(crate) fn setter(site: &Site, settings: &[Setting], deepest: u32) -> Option<Setter> {
    if let [setting] = settings
        && setting.parameter == Parameter::Cutoff
    {
        let is_known = (1..=MOST_DEPTH).contains(&setting.value) && deepest <= MOST_DEPTH;
        let creation = Creation::new(site, Some(setting.value), deepest);
        let creation = creation.filter(|_| is_known && !site.copies);
        return creation.map(Setter::Creation);
    }
    code(site, settings).map(Setter::Constants)
}

/// The instructions that make arguments constants.
fn code(site: &Site, settings: &[Setting]) -> Option<Vec<u8>> {
    let sets = |parameter| settings.iter().any(|s| s.parameter == parameter);
    // A runtime may not be able to add up the program's own chunk with another schedule.
    let has_chunk = !sets(Parameter::Schedule) || sets(Parameter::Chunk);
    if !has_chunk || sets(Parameter::Cutoff) {
        return None;
    }
    let mut code = vec![];
    for setting in settings {
        let is_known = (1..=most(setting.parameter)).contains(&setting.value);
        let value = Some(setting.value).filter(|_| is_known)?;
        // From the last one on: a condition leads behind what follows it.
        let mut own = vec![];
        for (at, change) in changes(site, setting.parameter, value).ok()?.iter().rev() {
            own.splice(0..0, encode(*at, *change, own.len())?);
        }
        code.extend(own);
    }
    Some(code)
}

/// `mov`, `and` and `or` of an argument, which make the upper half of a register 0, or a condition. `behind`: bytes that follow.
/// rax holds no argument, as none of the functions has a varying number of them.
fn encode(at: u8, change: Change, behind: usize) -> Option<Vec<u8>> {
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
    let with = |opcode: &[u8], value: u32| {
        let mut code = vec![0x41; usize::from(is_new)];
        code.extend(opcode);
        code.extend(value.to_le_bytes());
        code
    };
    let behind = u8::try_from(behind).ok().filter(|&n| n < 0x80)?;
    let jne = [0x75, behind];
    Some(match change {
        Change::Is(value) => with(&[0xb8 + number], value),
        Change::With(bits) => with(&[0x81, 0xc8 + number], bits),
        Change::Without(bits) => with(&[0x81, 0xe0 + number], !bits),
        Change::AtMost(value) => {
            // cmp r32, value; jbe behind what follows
            let is = with(&[0xb8 + number], value);
            let compare = with(&[0x81, 0xf8 + number], value);
            [&compare[..], &[0x76, is.len() as u8], &is].concat()
        }
        Change::OnlyWithout(bits) => {
            // test r32, bits; jne
            [&with(&[0xf7, 0xc0 + number], bits)[..], &jne].concat()
        }
        Change::OnlyIfZero => {
            // test r64, r64; jne
            let prefix = if is_new { 0x4d } else { 0x48 };
            [&[prefix, 0x85, 0xc0 + 9 * number][..], &jne].concat()
        }
        Change::OnlyIfShort => {
            // movsxd rax, r32; cmp r64, rax; jne
            let (extend, compare) = if is_new { (0x49, 0x49) } else { (0x48, 0x48) };
            let code = [extend, 0x63, 0xc0 + number, compare, 0x39, 0xc0 + number];
            [&code[..], &jne].concat()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn text(at: u8, change: Change) -> String {
        let code = encode(at, change, 9).unwrap();
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
        let most = text(2, Change::AtMost(4));
        assert_eq!(most, "cmp edx,4; jbe short 000000000000000Dh; mov edx,4");
        let strict = text(5, Change::OnlyWithout(1 << 14));
        assert_eq!(strict, "test r9d,4000h; jne short 0000000000000012h");
        let copied = text(2, Change::OnlyIfZero);
        assert_eq!(copied, "test rdx,rdx; jne short 000000000000000Eh");
        let short = "movsxd rax,r9d; cmp r9,rax; jne short 0000000000000011h";
        assert_eq!(text(5, Change::OnlyIfShort), short);
        let short = "movsxd rax,ecx; cmp rcx,rax; jne short 0000000000000011h";
        assert_eq!(text(3, Change::OnlyIfShort), short);
    }
}
