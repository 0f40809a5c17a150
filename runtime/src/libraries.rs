//! The loaded libraries: what is in them, and where they lie.

use crate::imports;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Range;

/// Address of a symbol in the process, 0 if there is none.
pub(crate) fn symbol(name: &CStr) -> usize {
    // SAFETY: dlsym only reads the name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// Address of a variable of this size.
pub(crate) fn variable(name: &CStr, size: usize) -> Option<usize> {
    // dlfcn.h; the crate of the C library has neither.
    const RTLD_DL_SYMENT: c_int = 1;
    unsafe extern "C" {
        fn dladdr1(
            at: *const c_void,
            info: *mut libc::Dl_info,
            more: *mut *mut c_void,
            what: c_int,
        ) -> c_int;
    }
    let address = symbol(name);
    let mut entry = core::ptr::null_mut();
    // SAFETY: all-zero is a valid value; dladdr1 fills it if the address is in a library, and finds the symbol's entry.
    let found = unsafe {
        let mut info = core::mem::zeroed();
        dladdr1(address as *const _, &mut info, &mut entry, RTLD_DL_SYMENT) != 0
    };
    // SAFETY: an entry of the loader's, if there is one.
    let entry = unsafe { entry.cast::<libc::Elf64_Sym>().as_ref() };
    (address != 0 && found && entry.is_some_and(|e| e.st_size == size as u64)).then_some(address)
}

/// A library that is loaded already; null: what every module sees.
pub(crate) fn open(name: *const c_char) -> *mut c_void {
    // SAFETY: the name is a string or null; nothing is loaded that is not there already.
    unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}

/// Where a library, or one that it needs, has a function; 0 if nowhere.
pub(crate) fn look(library: *mut c_void, name: &CStr) -> usize {
    if library.is_null() {
        return 0;
    }
    // SAFETY: dlsym only reads the name.
    unsafe { libc::dlsym(library, name.as_ptr()) as usize }
}

/// The library that an address is in.
pub(crate) fn library_of(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: all-zero is a valid value; dladdr fills it if the address is in a library.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for.
    let found = unsafe { libc::dladdr(address as *const _, &mut info) } != 0;
    (found && !info.dli_fname.is_null()).then_some(info)
}

/// Where the library of this address lies.
pub(crate) fn memory_of(address: usize) -> Option<Range<usize>> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr hands a valid description, and back what it was given.
        let (info, (address, found)) =
            unsafe { (&*info, &mut *data.cast::<(usize, Option<Range<usize>>)>()) };
        if let Some(memory) = imports::memory(info)
            && memory.contains(address)
        {
            *found = Some(memory);
        }
        0
    }
    let mut data: (usize, Option<Range<usize>>) = (address, None);
    // SAFETY: the callback has the right type and gets what outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut data).cast()) };
    data.1
}

/// Keeps the library of a function loaded. A program that closes its OpenMP library unloads libgomp while libgomp's threads
/// are still on their way from the last barrier: they crash, seldom without us, and often at our pace.
pub(crate) fn keep_loaded(function: usize) {
    if let Some(info) = library_of(function) {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name is the loader's string. What is open once more is never closed.
        unsafe { libc::dlopen(info.dli_fname, flags) };
    }
}
