//! From the part of a stack that the kernel copied to the calls that led to a sample.
//!
//! It is done while the program runs, so that no contents of its memory are kept, only addresses of code. What the unwind information
//! of a file doesn't tell ends a stack, which is told as not whole then: nothing is guessed. (Crate `framehop` goes on by frame
//! pointers there, and doesn't say so.)

use super::files::Files;
use super::records::{Frame, Looked};
use crate::input::Input;
use ompfuse_format::samples::{MAX_FRAMES, Sample, SampleRecord};
use ompfuse_fuse::samples::Memory;
use ompfuse_rewriter::callers::{Base, CallerRule, CallerRules, Kept};
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of the code of all processes.
#[derive(Default)]
pub(super) struct Stacks {
    memory: Memory,
    files: Files,
    /// Files with machine code that a stack was in, with their rules if they have some, as the memory numbers them; `None`: they can't be
    /// read.
    objects: HashMap<u32, Option<Object>>,
    /// By file and place in it.
    rules: HashMap<(u32, u64), Option<CallerRule>>,
}

type Object = (Arc<Input>, Option<CallerRules>);

impl Stacks {
    pub(super) fn new(files: Files) -> Stacks {
        Stacks {
            files,
            ..Stacks::default()
        }
    }

    /// Takes in what a record says of a process's code.
    pub(super) fn note(&mut self, record: &SampleRecord<'_>) {
        match record {
            SampleRecord::Mapping(mapping) => {
                self.files.note(mapping);
                self.memory.map(mapping);
            }
            SampleRecord::Fork { pid, parent, .. } => self.memory.fork(*pid, *parent),
            SampleRecord::Exec { pid, .. } => self.memory.clear(*pid),
            _ => {}
        }
    }

    /// A sample, with the calls that led to it as far as they are certain.
    pub(super) fn sample(&mut self, looked: &Looked<'_>) -> Sample {
        let (addresses, is_whole) = self.walk(looked.pid, &looked.frame);
        Sample {
            raw_ns: looked.raw_ns,
            pid: looked.pid,
            tid: looked.tid,
            addresses,
            is_whole,
        }
    }

    /// The instruction, and return addresses; whether they reach the thread's begin.
    fn walk(&mut self, pid: u32, frame: &Frame<'_>) -> (Vec<u64>, bool) {
        let Frame { ip, sp, bp, stack } = *frame;
        let read = |at: u64| {
            let from = usize::try_from(at.checked_sub(sp)?).ok()?;
            let bytes = stack.get(from..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        let mut addresses = vec![ip];
        let (mut code, mut at, mut frame_pointer) = (ip, sp, bp);
        let caller = read(sp).filter(|&caller| self.has_called_unruled(pid, ip, caller));
        if let Some(caller) = caller {
            addresses.push(caller);
            (code, at) = (caller - 1, sp + 8);
        }
        let is_certain = caller.is_none();
        while addresses.len() < MAX_FRAMES {
            let up = match self.rule(pid, code) {
                None => return (addresses, false),
                Some(CallerRule::Last) => return (addresses, is_certain),
                Some(up) => up,
            };
            let Some((address, above, kept)) = climb(up, at, frame_pointer, &read) else {
                return (addresses, false);
            };
            if address == 0 {
                return (addresses, is_certain);
            }
            addresses.push(address);
            // The call is right before.
            (code, at, frame_pointer) = (address - 1, above, kept);
        }
        (addresses, false)
    }

    fn rule(&mut self, pid: u32, address: u64) -> Option<CallerRule> {
        let (object, offset) = self.memory.find(pid, address)?;
        if let Some(known) = self.rules.get(&(object, offset)) {
            return *known;
        }
        let found = self.object(object);
        let found = found.as_mut();
        let found = found.and_then(|(bytes, rules)| rules.as_mut()?.at(bytes, offset));
        self.rules.insert((object, offset), found);
        found
    }

    fn object(&mut self, object: u32) -> &mut Option<Object> {
        let path = self.memory.objects().get(object as usize);
        let known = self.objects.entry(object);
        known.or_insert_with(|| {
            let input = self.files.open(path?)?;
            let rules = CallerRules::read(&input);
            Some((input, rules))
        })
    }

    /// Whether code of a file has no rule (as in musl's C library), and what is on top of the stack follows a call: functions that call
    /// nothing have their return address there.
    fn has_called_unruled(&mut self, pid: u32, ip: u64, caller: u64) -> bool {
        if self.memory.find(pid, ip).is_none() || self.rule(pid, ip).is_some() {
            return false;
        }
        let Some((object, offset)) = self.memory.find(pid, caller) else {
            return false;
        };
        let known = self.object(object).as_ref();
        let before = known.and_then(|(bytes, _)| bytes.get(..usize::try_from(offset).ok()?));
        before.is_some_and(ends_with_call)
    }
}

/// Whether code ends with a call: a relative one, or of what a register or memory says.
fn ends_with_call(code: &[u8]) -> bool {
    let ends = |len: usize| code.len().checked_sub(len).and_then(|at| code.get(at..));
    let is_indirect = |len: usize| match ends(len) {
        Some([0xff, kind, more @ ..]) if kind >> 3 & 7 == 2 => {
            let has_more = kind & 7 == 4 && kind >> 6 != 3;
            let offset = match (kind >> 6, kind & 7, more.first()) {
                (0, 5, _) | (2, ..) => 4,
                (0, 4, Some(base)) if base & 7 == 5 => 4,
                (1, ..) => 1,
                _ => 0,
            };
            len == 2 + usize::from(has_more) + offset
        }
        _ => false,
    };
    matches!(ends(5), Some([0xe8, ..])) || (2..=7).any(is_indirect)
}

/// The return address, the stack pointer behind it, and the caller's frame pointer. `None`: they aren't known.
fn climb(
    rule: CallerRule,
    sp: u64,
    bp: u64,
    read: &impl Fn(u64) -> Option<u64>,
) -> Option<(u64, u64, u64)> {
    let CallerRule::Up { base, offset, kept } = rule else {
        return None;
    };
    let base = match base {
        Base::Sp => sp,
        Base::Bp => bp,
        Base::BehindBp(at) => read(bp.checked_add_signed(at)?)?,
    };
    let above = base.checked_add_signed(offset)?;
    // Strictly above the frame before, so that this ends.
    let return_at = above.checked_sub(8).filter(|at| *at >= sp)?;
    let kept = match kept {
        Kept::Same => bp,
        // What lies below the stack pointer was taken from the stack already: it is in its register again.
        Kept::At(at) => match above.checked_add_signed(at)? {
            below if below < sp => bp,
            at => read(at)?,
        },
        Kept::BehindBp(at) => read(bp.checked_add_signed(at)?)?,
    };
    Some((read(return_at)?, above, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn up(base: Base, offset: i64, kept: Kept) -> CallerRule {
        CallerRule::Up { base, offset, kept }
    }

    #[test]
    fn frames_lie_above_each_other() {
        let stack = [11, 22, 33, 44];
        let read = |at: u64| Some(stack[usize::try_from(at.checked_sub(1000)? / 8).ok()?.min(3)]);
        let of_stack = up(Base::Sp, 16, Kept::At(-16));
        assert_eq!(climb(of_stack, 1000, 7, &read), Some((22, 1016, 11)));
        let popped = up(Base::Sp, 8, Kept::At(-16));
        assert_eq!(climb(popped, 1000, 7, &read), Some((11, 1008, 7)));
        let of_frame = up(Base::Bp, 16, Kept::At(-16));
        assert_eq!(climb(of_frame, 1000, 1008, &read), Some((33, 1024, 22)));
        assert_eq!(climb(of_frame, 1000, 900, &read), None);
        assert_eq!(climb(CallerRule::Last, 1000, 1008, &read), None);
    }

    #[test]
    fn calls_are_told_from_what_else_is_before() {
        let calls: [&[u8]; 6] = [
            &[0x90, 0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x50, 8],
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],
        ];
        let others: [&[u8]; 4] = [&[], &[0xff, 0xe0], &[0xff, 0x15, 1, 2], &[0xe9, 1, 2, 3, 4]];
        assert!(calls.iter().all(|code| ends_with_call(code)));
        assert!(!others.iter().any(|code| ends_with_call(code)));
    }

    #[test]
    fn unknown_code_ends_a_stack() {
        let frame = Frame {
            ip: 5,
            sp: 8,
            bp: 0,
            stack: &[0; 64],
        };
        assert_eq!(Stacks::default().walk(1, &frame), (vec![5], false));
    }
}
