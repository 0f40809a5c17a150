//! A library for `LD_AUDIT` (rtld-audit(7)): while a program is recorded, the dynamic linker asks it for every library,
//! and gets the path of a patched copy for those that are of interest: users of OpenMP above all. Programs that the recorded one starts are replaced too,
//! before their first instruction.
//!
//! * [`session`]: what the recording command has prepared, and what was decided before; [`interest`]: whether a
//!   file is patched at all, by a quick look into it ([`elf`]); [`loaded`]: whether what was opened is a copy; [`ask`]: the way to the command, which does the patching.
//! * [`variables`]: a place for thread-local variables, which the loader doesn't give where an auditing library is; [`again`]: the
//!   process begins once more.
//!
//! It has a link namespace and a C library of its own, apart from the program's. Nothing that it does may be noticed by the
//! program: no threads, no signals, no child that a `wait` of the program could see. Whatever fails, the original is used.

mod again;
mod ask;
mod elf;
mod interest;
mod loaded;
mod session;
mod variables;

use core::ffi::{CStr, c_char, c_int, c_long, c_uint};
use core::sync::atomic::{AtomicPtr, Ordering};
use loaded::LinkMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

/// Newest version of the auditing interface that this library knows.
const NEWEST: c_uint = 2;

static ARGV: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());
static ENVP: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn constructor(_argc: c_int, argv: *mut *const c_char, envp: *mut *const c_char) {
    ARGV.store(argv, Ordering::Relaxed);
    ENVP.store(envp, Ordering::Relaxed);
}

#[used]
// SAFETY: the section is the list of functions that the loader calls once, with the program's arguments and environment.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, *mut *const c_char, *mut *const c_char) = constructor;

/// The loader shakes hands. Also where nothing is recorded (any more): forgotten, this library would have changed all the same how the
/// loader treats thread-local variables.
// SAFETY: the name and type that rtld-audit(7) asks for.
#[unsafe(no_mangle)]
extern "C" fn la_version(version: c_uint) -> c_uint {
    if let Some(session) = session::get() {
        replace_program(session);
    }
    version.min(NEWEST)
}

/// The process goes on as the patched copy of its program, if that uses OpenMP. Nothing of it has run yet.
fn replace_program(session: &session::Session) {
    let (argv, envp) = (ARGV.load(Ordering::Relaxed), ENVP.load(Ordering::Relaxed));
    let Ok(program) = std::fs::read_link("/proc/self/exe") else {
        return;
    };
    let Ok(program) = CString::new(program.as_os_str().as_bytes()) else {
        return;
    };
    if let Some(patched) = session.decide(&program)
        && !argv.is_null()
        && !envp.is_null()
    {
        // SAFETY: the lists that the kernel gave to this process. Should it fail, the original goes on.
        unsafe { libc::execve(patched.as_ptr(), argv, envp) };
    }
}

/// The loader looks for a library. `flag` says where the name comes from; one without a slash is looked for in folders
/// first, and each candidate comes here again.
///
/// # Safety
/// Called by the loader, with a string.
// SAFETY: the name and type that rtld-audit(7) asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    _flag: c_uint,
) -> *const c_char {
    let look = || {
        let session = session::get()?;
        // SAFETY: the caller's promise.
        session.replace(unsafe { CStr::from_ptr(name) })
    };
    uncancelled(look).map_or(name, CStr::as_ptr)
}

/// The loader has opened a file. By a path, in another link namespace, it does so without asking for another one: that is told.
///
/// # Safety
/// Called by the loader, with what it knows of the file.
// SAFETY: the name and type that rtld-audit(7) asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objopen(
    map: *const LinkMap,
    namespace: c_long,
    _cookie: *mut usize,
) -> c_uint {
    const LM_ID_BASE: c_long = 0;
    // SAFETY: the caller's promise.
    let map = unsafe { &*map };
    if namespace == LM_ID_BASE {
        // SAFETY: as above; what is opened has no relocations yet.
        uncancelled(|| unsafe { variables::arrange(map) });
    } else if let Some(session) = session::get()
        // SAFETY: as above.
        && !unsafe { map.is_patched() }
    {
        // SAFETY: as above.
        uncancelled(|| session.note_apart(unsafe { CStr::from_ptr(map.name) }));
    }
    0 // nothing of how its functions are bound is to be told
}

/// The loader has all that the program starts with.
// SAFETY: the name and type that rtld-audit(7) asks for.
#[unsafe(no_mangle)]
extern "C" fn la_preinit(_cookie: *mut usize) {
    variables::has_started();
}

/// Does something in which this thread isn't cancelled: opening a library is no point where the program expects that, and nobody
/// would ever release the loader's lock.
fn uncancelled<R>(what: impl FnOnce() -> R) -> R {
    // pthread.h; the crate of the C library has neither.
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    }
    let mut state = 0;
    // SAFETY: a setting of this thread, whichever C library changes it; what it was is written to a local variable.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut state) };
    let result = what();
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(state, core::ptr::null_mut()) };
    result
}
