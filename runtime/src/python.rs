//! Python frames of a thread that is in C code, where a region is forked: code object and instruction of each.
//!
//! Since CPython 3.11 a Python function calls another one without a C frame, so return addresses can't tell them apart. The frames are read
//! through the thread's own state, which nobody else changes while the thread is in C, whether it holds the interpreter's lock or not. Where
//! that lies depends on the version ([`layout`]). Nothing is read on other threads than the process's first, whose states the interpreter
//! may free while they go on, in other versions, in builds without that lock, while there are sub-interpreters, and while the interpreter
//! ends.
//!
//! At a fork a frame is only a part of the context's hash. Names and lines ([`text`], [`lines`]) are read when a hash is new, and copied at once,
//! since code objects may be freed. A code object that has the place of a freed one has another hash: it consists of all that names it.

mod layout;
mod lines;
mod text;

use crate::tls;
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};
use layout::{Current, Layout, Version};

/// How the interpreter of this process is read; null if it isn't.
static LAYOUT: AtomicPtr<Layout> = AtomicPtr::new(core::ptr::null_mut());

/// Lines of one function that can be told; others are not known. A power of two: functions get as many addresses.
const LINES: u64 = 1 << 20;
/// No address of a process is so high: those of Python functions are.
const FUNCTIONS: u64 = 1 << 63;

/// Looks for an interpreter. After the search for objects is possible.
pub(crate) fn look() {
    if !LAYOUT.load(Ordering::Relaxed).is_null() {
        return;
    }
    if let Some(layout) = layout::find() {
        // Once per process: never freed, since a probe may look at it.
        LAYOUT.store(Box::into_raw(Box::new(layout)), Ordering::Release);
    }
}

/// The Python frames of a thread that is in C code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frames {
    layout: &'static Layout,
    innermost: usize,
}

/// A frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    layout: &'static Layout,
    /// Address of the code object.
    code: usize,
    /// Of the instruction.
    instruction: usize,
}

/// A word there.
///
/// # Safety
/// It is mapped.
#[inline(always)]
unsafe fn word(at: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (at as *const usize).read_unaligned() }
}

/// Frames of the calling thread, if it is inside of Python. `stack`: lowest address and length of its stack; `sp`: the stack pointer of whoever
/// is to be told apart.
#[inline(always)]
pub(crate) fn frames(stack: (usize, usize), sp: usize) -> Option<Frames> {
    // SAFETY: set by `look`, and never freed.
    let layout = unsafe { LAYOUT.load(Ordering::Acquire).as_ref() }?;
    frames_by(layout, stack, sp)
}

#[inline(never)]
fn frames_by(layout: &'static Layout, (low, len): (usize, usize), sp: usize) -> Option<Frames> {
    // SAFETY: functions of the interpreter that may be called without its lock: each returns a variable, the first one of the thread.
    let (state, main, head, ends) = unsafe {
        (
            (layout.this_thread)() as usize,
            (layout.main)() as usize,
            (layout.head)() as usize,
            (layout.is_finalizing)(),
        )
    };
    if ends != 0 || state == 0 || main == 0 || head != main {
        return None;
    }
    // SAFETY: the state of this thread, which has these words (`layout::find`) and lives until the thread or the interpreter ends.
    let (thread, interpreter, current) = unsafe {
        (
            word(state + layout.thread_id),
            word(state + layout.interpreter),
            word(state + layout.current.offset()),
        )
    };
    if thread != tls::base() || interpreter != main {
        return None;
    }
    let innermost = match layout.current {
        Current::Frame(_) => current,
        Current::OnStack(_, inside) => {
            // In C code that Python has called it is a variable of the function that interprets.
            let is_above = sp <= current && current < low.wrapping_add(len).wrapping_sub(24);
            if !is_above || !current.is_multiple_of(8) {
                return None;
            }
            // SAFETY: on this thread's stack, above the stack pointer.
            unsafe { word(current + inside) }
        }
    };
    (innermost != 0).then_some(Frames { layout, innermost })
}

impl Frames {
    /// Where the interpreter's own code is: its frames are told by these.
    #[inline(always)]
    pub(crate) fn interpreter(&self) -> Range<u64> {
        self.layout.code.clone()
    }

    /// The frames, innermost first.
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = Frame> {
        let layout = self.layout;
        let previous = move |&frame: &usize| {
            // SAFETY: a frame below which there are others is there as long as these.
            let previous = unsafe { word(frame + layout.previous) };
            (previous != 0).then_some(previous)
        };
        core::iter::successors(Some(self.innermost), previous).filter_map(move |frame| {
            // SAFETY: as above.
            let (owner, code, instruction) = unsafe {
                (
                    ((frame + layout.owner) as *const u8).read(),
                    word(frame + layout.executable),
                    word(frame + layout.instruction),
                )
            };
            // Others stand for C code, which has no code object.
            let is_code = owner < layout::OWNERS && code != 0 && code.is_multiple_of(8);
            // SAFETY: whatever a frame executes is an object; it holds it.
            let is_code = is_code && unsafe { word(code + layout::TYPE) } == layout.code_type;
            is_code.then_some(Frame {
                layout,
                code,
                instruction,
            })
        })
    }

    /// Puts at most so many frames into a hash. Returns it, and whether there are more.
    #[inline(never)]
    pub(crate) fn mix(self, mut hash: u64, most: usize) -> (u64, bool) {
        for (at, frame) in self.iter().enumerate() {
            if at == most {
                return (hash, true);
            }
            let own = (frame.function())
                .wrapping_add((frame.instruction as u64).wrapping_mul(FACTORS[0]));
            hash = (hash.rotate_left(5) ^ own).wrapping_mul(FACTORS[1]);
        }
        (hash ^ hash >> 32, false)
    }

    /// Tells of at most so many frames.
    pub(crate) fn each(self, most: usize, mut tell: impl FnMut(&Frame)) {
        self.iter().take(most).for_each(|frame| tell(&frame));
    }
}

/// Odd numbers: the words of a frame are multiplied by them side by side, and added.
const FACTORS: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
    0xff51_afd7_ed55_8ccd,
    0xc4ce_b9fe_1a85_ec53,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
];

impl Frame {
    /// A number for the function: of all that names it.
    #[inline(always)]
    fn function(&self) -> u64 {
        let (code, layout) = (self.code, self.layout);
        // SAFETY: a code object that a frame holds has these words, and holds the objects that they lead to.
        let (size, first, file, name, lines) = unsafe {
            (
                word(code + layout::SIZE),
                ((code + layout.first_line) as *const u32).read(),
                word(code + layout.file_name),
                word(code + layout.name),
                word(code + layout.lines),
            )
        };
        let version = match layout.version {
            // SAFETY: as above.
            Version::At(at) => u64::from(unsafe { ((code + at) as *const u32).read() }),
            // SAFETY: as above: texts, and an array of bytes with its length.
            Version::None => unsafe {
                text::end(file, layout)
                    ^ text::hash(name).rotate_left(21)
                    ^ word(lines + layout::SIZE) as u64
            },
        };
        let few = u64::from(first) | (size as u64) << 32;
        let words = [
            code as u64,
            file as u64,
            name as u64,
            lines as u64,
            few,
            version,
        ];
        let factors = FACTORS[2..].iter();
        let products = words
            .iter()
            .zip(factors)
            .map(|(word, by)| word.wrapping_mul(*by));
        products.fold(0, u64::wrapping_add)
    }

    /// The address that stands for the function: behind it there is one for each line.
    pub(crate) fn begin(&self) -> u64 {
        let hash = self.function();
        FUNCTIONS | (hash ^ hash >> 32) << LINES.trailing_zeros() & !FUNCTIONS
    }

    /// Behind its last address, and what is to be subtracted for a line.
    pub(crate) fn end(begin: u64) -> (u64, u64) {
        (begin + LINES, begin + 1)
    }

    /// The line that is executed; 0: not known.
    pub(crate) fn line(&self) -> u64 {
        let (code, layout) = (self.code, self.layout);
        // SAFETY: as in `function`; the table of lines is an array of bytes that the code object holds.
        let (first, table, units) = unsafe {
            let first = ((code + layout.first_line) as *const i32).read();
            let object = word(code + layout.lines);
            if object == 0 || word(object + layout::TYPE) != layout.bytes_type {
                return 0;
            }
            let len = word(object + layout::SIZE);
            let bytes = (object + layout::BYTES) as *const u8;
            (
                first,
                core::slice::from_raw_parts(bytes, len),
                word(code + layout::SIZE),
            )
        };
        // Of a frame that hasn't begun the instruction is one before the first.
        let at = self.instruction.wrapping_sub(code + layout.instructions) as isize
            / layout::UNIT as isize;
        let line = match at {
            at if at < 0 => first.max(0) as u64,
            at if at as usize >= units => return 0,
            at => lines::find(table, first, at as usize).map_or(0, u64::from),
        };
        if line < LINES - 2 { line } else { 0 }
    }

    /// Writes the source's file and the function's name with its classes and functions around, a zero byte between them; how long that is.
    /// 0: they can't be read.
    pub(crate) fn write_name(&self, out: &mut [u8]) -> usize {
        let (code, layout) = (self.code, self.layout);
        // SAFETY: as in `function`.
        let (file, name) = unsafe { (word(code + layout.file_name), word(code + layout.name)) };
        let is_text = |at: usize| {
            // SAFETY: as in `function`: objects.
            at != 0 && unsafe { word(at + layout::TYPE) } == layout.text_type
        };
        if !is_text(file) || !is_text(name) {
            return 0;
        }
        // The name is short: what is left is the file's.
        let mut short = [0; 200];
        // SAFETY: texts, held by the code object, which the frame holds.
        let (name, file_len) = unsafe {
            let len = text::write(name, layout, &mut short);
            let room = out.len().saturating_sub(len + 1);
            (
                short.get(..len).unwrap_or_default(),
                text::write(file, layout, out.get_mut(..room).unwrap_or_default()),
            )
        };
        let whole = file_len + 1 + name.len();
        let rest = out.get_mut(file_len..whole);
        let Some((between, rest)) = rest.and_then(<[u8]>::split_first_mut) else {
            return 0;
        };
        *between = 0;
        // A probe has no way to panic, which `copy_from_slice` could.
        rest.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        whole
    }
}

/// As the interpreter's functions return it.
type Truth = c_int;
