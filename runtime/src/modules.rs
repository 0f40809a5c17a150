//! The patched modules of the process, found through their notes.

use crate::{entry, host, syscall};
use core::ffi::{CStr, c_int, c_void};
use ompfuse_format::abi::{self, ModuleHeader, NoteDesc};
use ompfuse_format::run::ModuleStatus;

/// A patched module, found through its note.
pub(crate) struct Module {
    header: *mut ModuleHeader,
    pub(crate) status: ModuleStatus,
}

impl Module {
    /// Writes the module's number and the thunks' addresses, then protects the page: nothing else may change them.
    pub(crate) fn switch_on(&self) {
        let page = (self.header as usize & !0xfff) as *const u8;
        // SAFETY: the rewriter gives the header pages of its own in a writable segment; stubs read a slot with one load
        // and treat 0 as "not there", so any moment is good.
        unsafe {
            let own = |slot: usize| {
                let relative = (*self.header).slots[slot] as usize;
                (relative != 0).then(|| (self.header as usize).wrapping_add(relative))
            };
            host::ask_these(own(abi::SLOT_THREAD_NUM), own(abi::SLOT_NUM_THREADS));
            (&raw mut (*self.header).module).write_volatile(self.status.module);
            for (slot, thunk) in [
                (abi::SLOT_CALL, entry::call_thunk as *const () as u64),
                (abi::SLOT_TASK, entry::task_thunk as *const () as u64),
                (abi::SLOT_INLINE, entry::inline_thunk as *const () as u64),
            ] {
                (&raw mut (*self.header).slots[slot]).write_volatile(thunk);
            }
            syscall::protect(page, 4096);
        }
    }
}

/// Every patched module that is loaded.
pub(crate) fn find() -> Vec<Module> {
    let mut found: Vec<Module> = Vec::new();
    // SAFETY: the callback has the right type and gets the vector that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit_module), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit_module(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr hands a valid description, and back the pointer that find_modules gave.
    let (info, found) = unsafe { (&*info, &mut *data.cast::<Vec<Module>>()) };
    // SAFETY: the loader's description of the module's program headers.
    let phdrs =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for note in phdrs.iter().filter(|p| p.p_type == libc::PT_NOTE) {
        // SAFETY: the segment is mapped from its address on with its length.
        let bytes = unsafe {
            core::slice::from_raw_parts(
                (info.dlpi_addr + note.p_vaddr) as *const u8,
                note.p_memsz as usize,
            )
        };
        let Some(desc) = find_note(bytes) else {
            continue;
        };
        let header = (info.dlpi_addr + desc.header_va) as *mut ModuleHeader;
        // SAFETY: `verify` has seen that the note leads to a header in a mapped segment; the magic is checked here.
        let valid = unsafe {
            (*header).magic == abi::MODULE_MAGIC && (*header).abi_version == abi::ABI_VERSION
        };
        if !valid || found.len() >= 254 {
            continue;
        }
        // SAFETY: the loader's string.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }
            .to_string_lossy()
            .into_owned();
        let path = if name.is_empty() {
            std::fs::read_link("/proc/self/exe").map_or(name, |p| p.to_string_lossy().into_owned())
        } else {
            name
        };
        let status = ModuleStatus {
            module: found.len() as u32,
            path,
            bias: info.dlpi_addr,
        };
        found.push(Module { header, status });
    }
    0
}

/// Our note among those of a segment (namesz, descsz, type, then name and description, each padded to 4 bytes).
fn find_note(mut bytes: &[u8]) -> Option<NoteDesc> {
    loop {
        let word =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (name_len, desc_len, kind) = (word(0)?, word(4)?, word(8)?);
        let desc_at = 12 + name_len.checked_next_multiple_of(4)?;
        let end = desc_at.checked_add(desc_len.checked_next_multiple_of(4)?)?;
        if kind as u32 == abi::NOTE_TYPE && bytes.get(12..12 + name_len)? == abi::NOTE_NAME {
            return NoteDesc::from_bytes(bytes.get(desc_at..desc_at + desc_len)?)
                .filter(|d| d.abi_version == abi::ABI_VERSION);
        }
        bytes = bytes.get(end..)?;
    }
}
