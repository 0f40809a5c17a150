//! Where an interpreter keeps what is read, by its minor version.
//!
//! From 3.13 on the interpreter says it itself (`_Py_DebugOffsets`, which debuggers use). Of 3.11 and 3.12 a table does; of it
//! all is compared that the interpreter's types tell: sizes of code objects and frames, and places of the code objects' members.
//! A thread's state is compared at each fork: it names the thread.

use super::Truth;
use crate::unwind;
use core::ffi::{CStr, c_char, c_void};
use core::ops::Range;
use std::ffi::c_int;

/// Of every object: its type; of those with a variable size that.
pub(super) const TYPE: usize = 8;
pub(super) const SIZE: usize = 16;
/// Where an array of bytes has its first.
pub(super) const BYTES: usize = 32;
/// Bytes of an instruction, of which a code object's size is a multiple.
pub(super) const UNIT: usize = 2;
/// Frames with another owner aren't Python's.
pub(super) const OWNERS: u8 = 3;

/// Where a thread's state has its innermost frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Current {
    /// There.
    Frame(usize),
    /// It has a pointer to a variable on the stack, where the frame is there.
    OnStack(usize, usize),
}

impl Current {
    /// In the thread's state.
    #[inline(always)]
    pub(super) fn offset(self) -> usize {
        match self {
            Current::Frame(at) | Current::OnStack(at, _) => at,
        }
    }
}

/// What differs between code objects that have the same address one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Version {
    /// Each has a number, which is there.
    At(usize),
    /// It has none: its texts are looked at.
    None,
}

/// An interpreter. Offsets are in bytes.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) this_thread: unsafe extern "C" fn() -> *mut c_void,
    pub(super) main: unsafe extern "C" fn() -> *mut c_void,
    pub(super) head: unsafe extern "C" fn() -> *mut c_void,
    pub(super) is_finalizing: unsafe extern "C" fn() -> Truth,
    /// Its own code.
    pub(super) code: Range<u64>,
    pub(super) code_type: usize,
    pub(super) text_type: usize,
    pub(super) bytes_type: usize,
    // Of a thread's state.
    pub(super) interpreter: usize,
    pub(super) thread_id: usize,
    pub(super) current: Current,
    // Of a frame.
    pub(super) executable: usize,
    pub(super) previous: usize,
    pub(super) instruction: usize,
    pub(super) owner: usize,
    // Of a code object.
    pub(super) first_line: usize,
    pub(super) file_name: usize,
    pub(super) name: usize,
    pub(super) lines: usize,
    pub(super) version: Version,
    pub(super) instructions: usize,
    /// Bytes before the characters of a text of ASCII, and of another one.
    pub(super) texts: [usize; 2],
}

/// What the versions differ in, in the order of [`Layout`]; `frame`: the size of a frame's object without its variables.
struct Offsets {
    interpreter: usize,
    thread_id: usize,
    current: Current,
    executable: usize,
    previous: usize,
    instruction: usize,
    owner: usize,
    frame: usize,
    first_line: usize,
    file_name: usize,
    name: usize,
    lines: usize,
    version: Version,
    instructions: usize,
    texts: [usize; 2],
}

const OF_3_11: Offsets = Offsets {
    interpreter: 16,
    thread_id: 152,
    current: Current::OnStack(56, 8),
    executable: 32,
    previous: 48,
    instruction: 56,
    owner: 69,
    frame: 120,
    first_line: 72,
    file_name: 112,
    name: 128,
    lines: 136,
    version: Version::None,
    instructions: 184,
    texts: [48, 72],
};

const OF_3_12: Offsets = Offsets {
    thread_id: 136,
    current: Current::OnStack(56, 0),
    executable: 0,
    previous: 8,
    owner: 70,
    first_line: 68,
    version: Version::At(92),
    instructions: 192,
    texts: [40, 56],
    ..OF_3_11
};

/// Words of `_Py_DebugOffsets` of 3.13.
mod debug {
    pub(super) const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
    pub(super) const VERSION: usize = 1;
    pub(super) const FREE_THREADED: usize = 2;
    pub(super) const INTERPRETER: usize = 22;
    pub(super) const CURRENT_FRAME: usize = 23;
    pub(super) const THREAD_ID: usize = 24;
    pub(super) const PREVIOUS: usize = 29;
    pub(super) const EXECUTABLE: usize = 30;
    pub(super) const INSTRUCTION: usize = 31;
    pub(super) const OWNER: usize = 33;
    pub(super) const FILE_NAME: usize = 35;
    pub(super) const NAME: usize = 37;
    pub(super) const LINES: usize = 38;
    pub(super) const FIRST_LINE: usize = 39;
    pub(super) const INSTRUCTIONS: usize = 43;
    pub(super) const TYPE: usize = 45;
    pub(super) const BYTES: usize = 66;
    pub(super) const TEXT: usize = 70;
    pub(super) const WORDS: usize = 71;
}

/// The interpreter of this process; `None` if there is none, or none that can be read.
pub(super) fn find() -> Option<Layout> {
    if !is_loaded() {
        return None;
    }
    let version = symbol(c"Py_Version");
    let file = unwind::find(version as u64).filter(|file| is_interpreter(file.path()))?;
    // SAFETY: a constant of the interpreter's: `const unsigned long`.
    let version = unsafe { (version as *const u64).read() };
    let offsets = match version >> 16 {
        0x030b => OF_3_11,
        0x030c => OF_3_12,
        0x030d => of_3_13(version)?,
        _ => return None,
    };
    let [code_type, frame_type, text_type, bytes_type] = [
        c"PyCode_Type",
        c"PyFrame_Type",
        c"PyUnicode_Type",
        c"PyBytes_Type",
    ]
    .map(symbol);
    let types = [code_type, frame_type, text_type, bytes_type];
    if types.contains(&0) || !types.iter().all(|&at| is_type(at)) {
        return None;
    }
    // SAFETY: types, whose beginnings are the same in all versions.
    unsafe {
        let is_code = size(code_type) == (offsets.instructions, UNIT);
        let is_frame = size(frame_type) == (offsets.frame, 8);
        let members = [
            (c"co_firstlineno", offsets.first_line),
            (c"co_filename", offsets.file_name),
            (c"co_qualname", offsets.name),
            (c"co_linetable", offsets.lines),
        ];
        let is_same = |(name, at): (&CStr, usize)| member(code_type, name) == Some(at);
        if !is_code || !is_frame || !members.into_iter().all(is_same) {
            return None;
        }
    }
    let [this_thread, main, head] = [
        c"PyGILState_GetThisThreadState",
        c"PyInterpreterState_Main",
        c"PyInterpreterState_Head",
    ]
    .map(symbol);
    let is_finalizing = symbol(match version >> 16 {
        0x030b | 0x030c => c"_Py_IsFinalizing",
        _ => c"Py_IsFinalizing",
    });
    if this_thread == 0 || main == 0 || head == 0 {
        return None;
    }
    let is_own = |function: usize| (file.begin..file.end).contains(&function);
    if ![this_thread, main, head, is_finalizing]
        .into_iter()
        .all(is_own)
    {
        return None;
    }
    file.keep_loaded();
    // SAFETY: the interpreter's functions of these types.
    let (this_thread, main, head, is_finalizing) = unsafe {
        (
            core::mem::transmute::<usize, unsafe extern "C" fn() -> *mut c_void>(this_thread),
            core::mem::transmute::<usize, unsafe extern "C" fn() -> *mut c_void>(main),
            core::mem::transmute::<usize, unsafe extern "C" fn() -> *mut c_void>(head),
            core::mem::transmute::<usize, unsafe extern "C" fn() -> Truth>(is_finalizing),
        )
    };
    Some(Layout {
        this_thread,
        main,
        head,
        is_finalizing,
        code: file.begin as u64..file.end as u64,
        code_type,
        text_type,
        bytes_type,
        interpreter: offsets.interpreter,
        thread_id: offsets.thread_id,
        current: offsets.current,
        executable: offsets.executable,
        previous: offsets.previous,
        instruction: offsets.instruction,
        owner: offsets.owner,
        first_line: offsets.first_line,
        file_name: offsets.file_name,
        name: offsets.name,
        lines: offsets.lines,
        version: offsets.version,
        instructions: offsets.instructions,
        texts: offsets.texts,
    })
}

/// Whether a file by the name of an interpreter is loaded. Nothing else is asked for its symbols: a name that isn't found changes what `dlerror`
/// says.
fn is_loaded() -> bool {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the loader's description of a file, and its string.
        let name = unsafe {
            match (*info).dlpi_name.is_null() {
                true => &[],
                false => CStr::from_ptr((*info).dlpi_name).to_bytes(),
            }
        };
        let path = if name.is_empty() {
            unwind::program()
        } else {
            name
        };
        c_int::from(is_interpreter(path))
    }
    // SAFETY: the function fits, and leaves nothing behind.
    unsafe { libc::dl_iterate_phdr(Some(look), core::ptr::null_mut()) != 0 }
}

/// Whether it is a file of CPython's, by its name.
fn is_interpreter(path: &[u8]) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    name.starts_with(b"python3") || name.starts_with(b"libpython3")
}

/// Address of a symbol of the process, 0 if there is none.
fn symbol(name: &CStr) -> usize {
    // SAFETY: dlsym only reads the name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// What the interpreter says of itself.
fn of_3_13(version: u64) -> Option<Offsets> {
    let runtime = symbol(c"_PyRuntime");
    if runtime == 0 || !runtime.is_multiple_of(8) {
        return None;
    }
    // SAFETY: in this version the variable begins with these words, which are constants.
    let words = unsafe { &*(runtime as *const [u64; debug::WORDS]) };
    let is_known = words[0] == debug::COOKIE
        && words[debug::VERSION] == version
        && words[debug::FREE_THREADED] == 0
        && words[debug::TYPE] == TYPE as u64
        && words[debug::BYTES] == BYTES as u64
        && words[debug::TEXT] == OF_3_12.texts[0] as u64;
    let at = |word: usize| words[word] as usize;
    // No object here is so long.
    let is_small = (debug::INTERPRETER..debug::INSTRUCTIONS).all(|word| at(word) < 1 << 12);
    (is_known && is_small).then(|| Offsets {
        interpreter: at(debug::INTERPRETER),
        thread_id: at(debug::THREAD_ID),
        current: Current::Frame(at(debug::CURRENT_FRAME)),
        executable: at(debug::EXECUTABLE),
        previous: at(debug::PREVIOUS),
        instruction: at(debug::INSTRUCTION),
        owner: at(debug::OWNER),
        frame: 136,
        first_line: at(debug::FIRST_LINE),
        file_name: at(debug::FILE_NAME),
        name: at(debug::NAME),
        lines: at(debug::LINES),
        instructions: at(debug::INSTRUCTIONS),
        ..OF_3_12
    })
}

/// Whether a variable is a type, in a build whose objects begin as they do by default.
fn is_type(at: usize) -> bool {
    let of_types = symbol(c"PyType_Type");
    // SAFETY: a variable of the interpreter that is longer than this.
    of_types != 0 && at.is_multiple_of(8) && unsafe { super::word(at + TYPE) } == of_types
}

/// A type's sizes: of an object, and of each of its variable parts.
///
/// # Safety
/// It is a type.
unsafe fn size(of: usize) -> (usize, usize) {
    const BASIC: usize = 32;
    // SAFETY: the caller's promise.
    unsafe { (super::word(of + BASIC), super::word(of + BASIC + 8)) }
}

/// PyMemberDef.
#[repr(C)]
struct Member {
    name: *const c_char,
    kind: c_int,
    offset: isize,
    flags: c_int,
    doc: *const c_char,
}

/// Where objects of a type have a member.
///
/// # Safety
/// It is a type.
unsafe fn member(of: usize, name: &CStr) -> Option<usize> {
    const MEMBERS: usize = 240;
    // SAFETY: the caller's promise; the list ends with a member without a name.
    unsafe {
        let mut next = super::word(of + MEMBERS) as *const Member;
        while !next.is_null() && !(*next).name.is_null() {
            if CStr::from_ptr((*next).name) == name {
                return usize::try_from((*next).offset).ok();
            }
            next = next.add(1);
        }
    }
    None
}
