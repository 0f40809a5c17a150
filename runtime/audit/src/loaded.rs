//! What the loader knows of a file that it has opened (link.h).

use core::ffi::{CStr, c_char};
use core::ptr;
use ompfuse_format::abi::RUNTIME_LIBRARY;

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;

/// Its beginning, which is documented.
#[repr(C)]
pub(crate) struct LinkMap {
    address: usize,
    /// What was looked for and found: the original, also where a copy was opened instead.
    pub(crate) name: *const c_char,
    dynamic: *const Dynamic,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

impl LinkMap {
    /// Whether it is a patched copy: one that needs the runtime library.
    ///
    /// # Safety
    /// The file is loaded.
    pub(crate) unsafe fn is_patched(&self) -> bool {
        let entries = |wanted: i64| {
            // SAFETY: the section ends with an entry of this kind.
            let all = (0..).map(|i| unsafe { ptr::read(self.dynamic.add(i)) });
            let all = all.take_while(|e| e.tag != DT_NULL);
            all.filter(move |e| e.tag == wanted).map(|e| e.value)
        };
        let Some(strings) = entries(DT_STRTAB).next() else {
            return false;
        };
        // The loader makes it an address, if it can write there.
        let strings = match strings < self.address {
            true => self.address + strings,
            false => strings,
        };
        entries(DT_NEEDED).any(|at| {
            // SAFETY: a string of the file's table.
            let name = unsafe { CStr::from_ptr((strings + at) as *const c_char) };
            name.to_bytes().ends_with(RUNTIME_LIBRARY.as_bytes())
        })
    }
}
