//! Starts the command that patches a file, and waits for it.

use core::ffi::CStr;
use core::ptr::null;

/// Runs `COMMAND patch-cached FOLDER KEY PATH` with an empty environment. Its result is in the folder.
pub(crate) fn patch(command: &CStr, folder: &CStr, key: &CStr, path: &CStr) {
    let arguments = [
        command.as_ptr(),
        c"patch-cached".as_ptr(),
        folder.as_ptr(),
        key.as_ptr(),
        path.as_ptr(),
        null(),
    ];
    let environment = [null()];
    // No signal at its end: neither a handler nor a `wait` of the program notices this child. The calling thread sleeps
    // until the child has its own program; the child has its own copy of the memory.
    let flags = libc::CLONE_VFORK as libc::c_ulong;
    // SAFETY: as fork; the child does nothing but the two calls below, which are allowed there.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid == 0 {
        // SAFETY: both lists end with a null pointer, and their strings outlive the call.
        unsafe {
            libc::execve(command.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            libc::_exit(127);
        }
    }
    if pid < 0 {
        return;
    }
    let mut status = 0;
    // SAFETY: waits for the child made above; __WALL includes those that send no signal.
    while unsafe { libc::waitpid(pid as libc::pid_t, &mut status, libc::__WALL) } < 0 {
        // SAFETY: errno is this thread's own variable.
        if unsafe { *libc::__errno_location() } != libc::EINTR {
            break;
        }
    }
}
