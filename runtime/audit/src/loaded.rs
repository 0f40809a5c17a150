//! What the loader knows of a file that it has opened (link.h).

use core::ffi::{CStr, c_char};
use ompfuse_format::abi::RUNTIME_LIBRARY;

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const DT_FLAGS: i64 = 30;
const DF_STATIC_TLS: usize = 0x10;

/// A thread-local variable's distance from the thread's own address.
const R_X86_64_TPOFF64: usize = 18;

/// An entry of a table of relocations.
#[repr(C)]
struct Relocation {
    offset: usize,
    kind: usize,
    addend: usize,
}

/// Its beginning, which is documented.
#[repr(C)]
pub(crate) struct LinkMap {
    address: usize,
    /// What was looked for and found: the original, also where a copy was opened instead.
    pub(crate) name: *const c_char,
    dynamic: *mut Dynamic,
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
        // SAFETY: the caller's promise.
        let entries = |wanted: i64| unsafe { self.entries(wanted) }.map(|(_, value)| value);
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

    /// The entries of a kind in the dynamic section: where their values are, and these.
    ///
    /// # Safety
    /// The file is loaded.
    unsafe fn entries(&self, wanted: i64) -> impl Iterator<Item = (*mut usize, usize)> {
        // SAFETY: the section ends with an entry of this kind.
        let all = (0..).map(|i| unsafe { self.dynamic.add(i) });
        // SAFETY: as above.
        let all = all.take_while(|&e| unsafe { (*e).tag } != DT_NULL);
        // SAFETY: as above.
        let all = all.filter(move |&e| unsafe { (*e).tag } == wanted);
        // SAFETY: as above.
        all.map(|e| unsafe { (&raw mut (*e).value, (*e).value) })
    }

    /// Has the loader keep the file's thread-local variables beside each thread's own data, as it does by itself for those whose
    /// distance from there the file asks for: one more relocation asks for it. False where that can't be.
    ///
    /// # Safety
    /// The file is loaded, has thread-local variables, and its relocations are still to come.
    pub(crate) unsafe fn keep_variables_static(&self) -> bool {
        // SAFETY: the caller's promise.
        let entry = |wanted: i64| unsafe { self.entries(wanted) }.next();
        if entry(DT_FLAGS).is_some_and(|(_, flags)| flags & DF_STATIC_TLS != 0) {
            return true; // it asks by itself
        }
        let tables = (entry(DT_RELA), entry(DT_RELASZ), entry(DT_STRTAB));
        let (Some((table, old)), Some((length, mut len)), Some((_, strings))) = tables else {
            return false;
        };
        // The loader has made addresses of what the section says, unless it can't write there.
        if old < self.address || strings < self.address {
            return false;
        }
        // Calls' relocations may be the table's last part; the loader knows that by where they are.
        if let (Some((_, calls)), Some((_, of_calls))) = (entry(DT_JMPREL), entry(DT_PLTRELSZ))
            && calls + of_calls == old + len
            && calls >= old
        {
            len -= of_calls;
        }
        let words = len.div_ceil(size_of::<usize>()) + size_of::<Relocation>() / size_of::<usize>();
        let new = Box::leak(vec![0usize; words + 1].into_boxed_slice());
        let distance = &raw mut new[words]; // what the relocation fills in, and nobody reads
        let added = Relocation {
            offset: (distance as usize).wrapping_sub(self.address),
            kind: R_X86_64_TPOFF64,
            addend: 0,
        };
        // SAFETY: the file's table, and memory of our own that has room for it and one entry more; the section can be written to,
        // since the loader has done so.
        unsafe {
            let to = new.as_mut_ptr().cast::<u8>();
            to.copy_from_nonoverlapping(old as *const u8, len);
            to.add(len).cast::<Relocation>().write_unaligned(added);
            table.write(to as usize);
            length.write(len + size_of::<Relocation>());
        }
        true
    }
}
