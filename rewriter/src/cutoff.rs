//! `cutoff=DEPTH`: tasks in so many others are executed at once. Behind a call that creates tasks, code compares its thread's
//! depth, and hands over another function for the task: one for each depth, which keeps it while the task is executed.
//!
//! ```text
//! setter:   is it the function that the scan has seen? else -> stub
//!           eax = the thread's depth, 0 if it is in no task
//!           if (eax >= DEPTH and there is no copy function, dependence or event) if_clause = false
//!           function = enter_0 + 16 * eax
//!           -> stub
//! enter_N:  the thread's depth = N + 1; call the task's own function; the thread's depth = what it was
//! ```
//!
//! So nothing has to travel in the task's data, and arguments on the stack stay. libgomp executes a begun task on one thread, and what
//! that executes meanwhile ends before it goes on: depths nest as calls do.
//!
//! A thread's depth is in a table in the data segment, by the thread pointer (`fs:0`), which differs between threads that exist. A
//! thread has a slot while it is in a task. Where four others have those that it could have, its depth counts as 0.

use crate::image::PAGE;
use crate::model::{LinkVa, Site};
use crate::stubs::{Code64, JUMP_LEN, UNREACHABLE, setter};
use ompfuse_patterns::lookup;
use std::ops::Range;

/// The largest depth: each has its code.
pub(crate) const MOST_DEPTH: u32 = 64;

/// Length in bytes of the table: 256 cache lines of four slots, each of a thread pointer and a depth.
pub(crate) const DEPTHS_LEN: u64 = 0x4000;
/// Alignment of the table: the runtime library protects the page of the module's header when it is switched on.
pub(crate) const DEPTHS_ALIGN: u64 = PAGE;

/// Distance between the entries for each depth.
const ENTRY_LEN: u64 = 16;

/// What a task's own function finds on the stack below its return address.
pub(crate) const FRAME: u32 = 24;

/// A call that creates tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Creation {
    /// Their function.
    function: LinkVa,
    /// Deeper ones are executed at once, if that is set here. Else they only count.
    cutoff: Option<u32>,
    /// The largest cutoff in the file. What is deeper counts as this deep.
    deepest: u32,
}

/// What changes a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setter {
    /// Instructions that make them constants.
    Constants(Vec<u8>),
    /// A task's depth decides.
    Creation(Creation),
}

impl Setter {
    /// The code at its address, which leads to the stub, or what it can't reach. `depths`: address of the table of depths.
    pub(crate) fn encode(&self, at: LinkVa, stub: LinkVa, depths: u64) -> Result<Vec<u8>, LinkVa> {
        match self {
            Setter::Constants(changes) => setter(at, changes, stub),
            Setter::Creation(creation) => creation.emit(at.0, stub.0, depths).0.finish(),
        }
    }

    /// Length in bytes; it doesn't depend on addresses.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Setter::Constants(changes) => changes.len() as u64 + u64::from(JUMP_LEN),
            Setter::Creation(creation) => creation.emit(0, 0, 0).0.bytes.len() as u64,
        }
    }

    /// Where it has [`FRAME`] bytes on the stack, from its start.
    pub(crate) fn frame(&self) -> Option<Range<u64>> {
        match self {
            Setter::Constants(_) => None,
            Setter::Creation(creation) => Some(creation.emit(0, 0, 0).1),
        }
    }
}

/// Jumps in their short form to places that may come behind them.
struct Short<'c> {
    code: &'c mut Code64,
    jumps: Vec<(usize, Place)>,
    places: Vec<(Place, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Find,
    Found,
    Decide,
    Defer,
    Pass,
    Claim,
    Claimed,
    End,
}

const JE: u8 = 0x74;
const JNE: u8 = 0x75;
const JB: u8 = 0x72;
const JMP: u8 = 0xeb;

impl Short<'_> {
    fn new(code: &mut Code64) -> Short<'_> {
        Short {
            code,
            jumps: vec![],
            places: vec![],
        }
    }

    fn jump(&mut self, opcode: u8, to: Place) {
        self.code.raw(&[opcode, 0]);
        self.jumps.push((self.code.bytes.len(), to));
    }

    fn place(&mut self, place: Place) {
        self.places.push((place, self.code.bytes.len()));
    }

    fn finish(self) {
        for (end, to) in self.jumps {
            let target = self.places.iter().find(|(place, _)| *place == to);
            let distance = target.map_or(0, |(_, at)| *at as i64 - end as i64);
            debug_assert!(i8::try_from(distance).is_ok(), "a short jump to {to:?}");
            self.code.bytes[end - 1] = distance as u8;
        }
    }
}

impl Creation {
    /// `None`: the call creates no task of libgomp's, or its function isn't known.
    pub(crate) fn new(site: &Site, cutoff: Option<u32>, deepest: u32) -> Option<Creation> {
        let entry = site.info.entry.as_deref().and_then(lookup)?;
        entry.set.deferred?;
        Some(Creation {
            function: LinkVa(site.info.outlined?.0),
            cutoff,
            deepest,
        })
    }

    /// The code, and where it has its frame, from its start. `depths`: address of the table.
    fn emit(&self, at: u64, stub: u64, depths: u64) -> (Code64, Range<u64>) {
        let mut measured = Code64::new(LinkVa(0));
        self.head(&mut measured, 0, 0, 0);
        let entries = at + measured.here();
        let common = entries + ENTRY_LEN * (u64::from(self.deepest) + 1);
        let mut code = Code64::new(LinkVa(at));
        self.head(&mut code, stub, depths, entries);
        for depth in 0..=self.deepest {
            code.raw(&[0xf3, 0x0f, 0x1e, 0xfa, 0xb8]); // endbr64; mov eax, depth
            code.raw(&(depth + 1).min(self.deepest).to_le_bytes());
            code.relative(&[0xe9], common); // jmp common
            code.raw(&[UNREACHABLE; 2]);
        }
        let frame = self.common(&mut code, depths);
        (code, frame.start - at..frame.end - at)
    }

    /// From the call to the stub. rdi, rdx and r9d: the task's function, its copy function and the `if` clause; flags on the stack.
    fn head(&self, code: &mut Code64, stub: u64, depths: u64, entries: u64) {
        let mut s = Short::new(code);
        s.code.relative(&[0x48, 0x8d, 0x05], self.function.0); // lea rax, [function]
        s.code.raw(&[0x48, 0x39, 0xc7]); // cmp rdi, rax
        s.jump(JNE, Place::Pass);
        s.code.raw(&[0x64, 0x4c, 0x8b, 0x14, 0x25, 0, 0, 0, 0]); // mov r10, fs:[0]
        s.code.raw(&[0x4d, 0x69, 0xda, 0xb1, 0x79, 0x37, 0x9e]); // imul r11, r10, 0x9e3779b1
        s.code.raw(&[0x49, 0xc1, 0xeb, 34]); // shr r11, 34
        s.code.raw(&[0x41, 0x81, 0xe3, 0xc0, 0x3f, 0, 0]); // and r11d, 0x3fc0
        s.code.relative(&[0x48, 0x8d, 0x05], depths); // lea rax, [depths]
        s.code.raw(&[0x49, 0x01, 0xc3]); // add r11, rax
        s.place(Place::Find);
        s.code.raw(&[0x4d, 0x39, 0x13]); // cmp [r11], r10
        s.jump(JE, Place::Found);
        s.code.raw(&[0x49, 0x83, 0xc3, 0x10]); // add r11, 16
        s.code.raw(&[0x41, 0xf6, 0xc3, 0x3f]); // test r11b, 0x3f
        s.jump(JNE, Place::Find);
        s.code.raw(&[0x31, 0xc0]); // xor eax, eax
        s.jump(JMP, Place::Decide);
        s.place(Place::Found);
        s.code.raw(&[0x41, 0x8b, 0x43, 0x08]); // mov eax, [r11 + 8]
        s.place(Place::Decide);
        if let Some(cutoff) = self.cutoff {
            s.code.raw(&[0x83, 0xf8, cutoff as u8]); // cmp eax, cutoff
            s.jump(JB, Place::Defer);
            s.code.raw(&[0x48, 0x85, 0xd2]); // test rdx, rdx
            s.jump(JNE, Place::Defer);
            s.code.raw(&[0xf7, 0x44, 0x24, 0x08, 0x08, 0x20, 0, 0]); // test dword ptr [rsp + 8], depend | detach
            s.jump(JNE, Place::Defer);
            s.code.raw(&[0x45, 0x31, 0xc9]); // xor r9d, r9d
            if cutoff == self.deepest {
                s.jump(JMP, Place::Pass); // its depth counts as the one that is known
            }
        }
        s.place(Place::Defer);
        s.code.raw(&[0xc1, 0xe0, 4]); // shl eax, 4
        s.code.relative(&[0x48, 0x8d, 0x3d], entries); // lea rdi, [entries]
        s.code.raw(&[0x48, 0x01, 0xc7]); // add rdi, rax
        s.place(Place::Pass);
        s.code.relative(&[0xe9], stub); // jmp stub
        s.finish();
    }

    /// Executes the task's function, with eax as the thread's depth. rdi holds the task's data. Returns where the stack has its frame.
    fn common(&self, code: &mut Code64, depths: u64) -> Range<u64> {
        let mut s = Short::new(code);
        s.code.raw(&[0x64, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0]); // mov rcx, fs:[0]
        s.code.raw(&[0x48, 0x69, 0xd1, 0xb1, 0x79, 0x37, 0x9e]); // imul rdx, rcx, 0x9e3779b1
        s.code.raw(&[0x48, 0xc1, 0xea, 34]); // shr rdx, 34
        s.code.raw(&[0x81, 0xe2, 0xc0, 0x3f, 0, 0]); // and edx, 0x3fc0
        s.code.relative(&[0x48, 0x8d, 0x35], depths); // lea rsi, [depths]
        s.code.raw(&[0x48, 0x01, 0xf2]); // add rdx, rsi
        s.place(Place::Find);
        s.code.raw(&[0x48, 0x39, 0x0a]); // cmp [rdx], rcx
        s.jump(JE, Place::Found);
        s.code.raw(&[0x48, 0x83, 0xc2, 0x10]); // add rdx, 16
        s.code.raw(&[0xf6, 0xc2, 0x3f]); // test dl, 0x3f
        s.jump(JNE, Place::Find);
        s.code.raw(&[0x48, 0x83, 0xea, 0x40]); // sub rdx, 64
        s.code.raw(&[0x89, 0xc6]); // mov esi, eax
        s.place(Place::Claim);
        s.code.raw(&[0x31, 0xc0]); // xor eax, eax
        s.code.raw(&[0xf0, 0x48, 0x0f, 0xb1, 0x0a]); // lock cmpxchg [rdx], rcx
        s.jump(JE, Place::Claimed);
        s.code.raw(&[0x48, 0x83, 0xc2, 0x10]); // add rdx, 16
        s.code.raw(&[0xf6, 0xc2, 0x3f]); // test dl, 0x3f
        s.jump(JNE, Place::Claim);
        s.code.relative(&[0xe9], self.function.0); // jmp function
        s.place(Place::Claimed);
        s.code.raw(&[0x89, 0xf0]); // mov eax, esi
        s.place(Place::Found);
        s.code.raw(&[0x48, 0x83, 0xec, FRAME as u8]); // sub rsp, 24
        let start = s.code.here();
        s.code.raw(&[0x48, 0x89, 0x14, 0x24]); // mov [rsp], rdx
        s.code.raw(&[0x8b, 0x4a, 0x08]); // mov ecx, [rdx + 8]
        s.code.raw(&[0x89, 0x4c, 0x24, 0x08]); // mov [rsp + 8], ecx
        s.code.raw(&[0x89, 0x42, 0x08]); // mov [rdx + 8], eax
        s.code.relative(&[0xe8], self.function.0); // call function
        s.code.raw(&[0x48, 0x8b, 0x14, 0x24]); // mov rdx, [rsp]
        s.code.raw(&[0x8b, 0x44, 0x24, 0x08]); // mov eax, [rsp + 8]
        s.code.raw(&[0x48, 0x83, 0xc4, FRAME as u8]); // add rsp, 24
        let end = s.code.here();
        s.code.raw(&[0x89, 0x42, 0x08]); // mov [rdx + 8], eax
        s.code.raw(&[0x85, 0xc0]); // test eax, eax
        s.jump(JNE, Place::End);
        s.code.raw(&[0x48, 0xc7, 0x02, 0, 0, 0, 0]); // mov qword ptr [rdx], 0: the slot is free
        s.place(Place::End);
        s.code.raw(&[0xc3]); // ret
        s.finish();
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_of_one_file_have_code_of_known_places() {
        let creation = |cutoff, deepest| {
            Setter::Creation(Creation {
                function: LinkVa(0x1000),
                cutoff,
                deepest,
            })
        };
        for (cutoff, deepest) in [(None, 3), (Some(1), 1), (Some(2), 3), (Some(64), 64)] {
            let setter = creation(cutoff, deepest);
            let code = setter.encode(LinkVa(0x8000), LinkVa(0x7000), 0x20000);
            let code = code.unwrap();
            assert_eq!(code.len() as u64, setter.len());
            // endbr64; mov eax, depth
            let begin = [0xf3, 0x0f, 0x1e, 0xfa, 0xb8];
            let entries = code.windows(5).enumerate().filter(|(_, w)| *w == begin);
            let entries: Vec<usize> = entries.map(|(at, _)| at).collect();
            assert_eq!(entries.len() as u32, deepest + 1);
            assert!(entries.windows(2).all(|e| e[1] - e[0] == 16));
            // sub and add of rsp
            let frame = setter.frame().unwrap();
            let (start, end) = (frame.start as usize, frame.end as usize);
            assert_eq!(code[start - 4..start], [0x48, 0x83, 0xec, 24]);
            assert_eq!(code[end - 4..end], [0x48, 0x83, 0xc4, 24]);
        }
        let far = creation(None, 1).encode(LinkVa(0x1_0000_8000), LinkVa(0x1_0000_7000), 0);
        assert_eq!(far, Err(LinkVa(0x1000)));
    }
}
