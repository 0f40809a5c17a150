//! A place for the thread-local variables of the libraries that a program starts with.
//!
//! glibc's loader keeps them beside each thread's own data, unless an auditing library is there: the place is measured before the
//! program's libraries are known then. What finds none is allocated when a thread first asks for it. An allocator with such a
//! variable asks for it in `malloc`, which the loader calls to allocate it, and so on until the stack is full. What must have
//! its place there (variables of the model "initial-exec") ends the process where there is none.
//!
//! So all of them ask for their place by a relocation, as the loader finds it in libraries of that model. There is spare room, for
//! libraries that are opened later; where that doesn't do, the process begins once more with as much as is needed.

use crate::again;
use crate::elf;
use crate::loaded::LinkMap;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Variables need no larger alignment to have a place.
const MAX_ALIGN: usize = 64;
/// For libraries that are opened later.
const LATER: usize = 2048;
/// What is asked for is a multiple of that.
const UNIT: usize = 4096;

/// The program has begun: what is opened from now on gets its variables as ever.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Bytes for all libraries up to now.
static NEEDED: AtomicUsize = AtomicUsize::new(0);

/// The program is about to begin.
pub(crate) fn has_started() {
    STARTED.store(true, Ordering::Relaxed);
}

/// A library was opened.
///
/// # Safety
/// It is loaded, and its relocations are still to come.
pub(crate) unsafe fn arrange(map: &LinkMap) {
    if STARTED.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the loader's string; the program itself, which has its place, has no name.
    let path = Path::new(OsStr::from_bytes(
        unsafe { CStr::from_ptr(map.name) }.to_bytes(),
    ));
    let Some(variables) = elf::thread_local(path) else {
        return;
    };
    let bytes = variables.size + variables.align;
    let needed = bytes + NEEDED.fetch_add(bytes, Ordering::Relaxed);
    let room = again::room();
    // What the loader spares without being asked is for libraries that are opened later.
    if needed > room {
        let wanted = (needed + LATER).next_multiple_of(UNIT);
        again::with_room(wanted);
        again::without_audit(format_args!(
            "there is no room for {}'s thread-local variables",
            path.display()
        ));
    }
    // SAFETY: the caller's promise.
    let is_static = variables.align <= MAX_ALIGN && unsafe { map.keep_variables_static() };
    if !is_static && elf::names(path, c"malloc") {
        again::without_audit(format_args!(
            "{} may be an allocator, and has thread-local variables that it couldn't use",
            path.display()
        ));
    }
}
