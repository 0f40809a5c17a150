//! The file that an address is in, and its unwind information, as the loader has mapped them.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

/// As in dlfcn.h, of glibc 2.35 and later.
#[repr(C)]
struct FoundByLoader {
    flags: u64,
    begin: *mut c_void,
    end: *mut c_void,
    link_map: *mut LinkMap,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

/// The beginning of link.h's.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
}

/// `_dl_find_object`: it takes no lock, and may be called at any time. 0 if there is none.
static FIND: AtomicUsize = AtomicUsize::new(0);
/// Where this library is.
static OWN: AtomicUsize = AtomicUsize::new(0);
/// The program's own path, which the loader doesn't have.
static PROGRAM: OnceLock<CString> = OnceLock::new();

/// A file that an address is in. It stays there as long as its code is being executed.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) bias: usize,
    name: *const c_char,
    /// The table that leads to the functions' unwind information (`.eh_frame_hdr`).
    table: usize,
}

/// Looks for what is needed. Returns whether chains can be followed in this process.
pub(crate) fn prepare() -> bool {
    // SAFETY: dlsym only reads the name.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    FIND.store(function as usize, Ordering::Relaxed);
    let Some(own) = find(prepare as *const () as u64) else {
        return false;
    };
    #[cfg(not(test))]
    OWN.store(own.begin, Ordering::Relaxed);
    let _ = own;
    PROGRAM.get_or_init(|| {
        let path = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        CString::new(path.into_os_string().into_vec()).unwrap_or_default()
    });
    true
}

/// The program's path.
pub(crate) fn program() -> &'static [u8] {
    PROGRAM.get().map_or(&[], |p| p.to_bytes())
}

/// In tests this library is the program, too.
#[cfg(test)]
pub(super) fn own_is_nobody() {
    OWN.store(0, Ordering::Relaxed);
}

/// The file that an address is in.
pub(crate) fn find(address: u64) -> Option<Found> {
    let function = FIND.load(Ordering::Relaxed);
    if function == 0 {
        return None;
    }
    // SAFETY: the loader's function of this type.
    let function: unsafe extern "C" fn(*mut c_void, *mut FoundByLoader) -> c_int =
        unsafe { core::mem::transmute(function) };
    // SAFETY: all-zero is a valid value; the function fills it if it returns 0, and then there is a link map.
    unsafe {
        let mut found: FoundByLoader = core::mem::zeroed();
        if function(address as *mut c_void, &mut found) != 0 || found.link_map.is_null() {
            return None;
        }
        Some(Found {
            begin: found.begin as usize,
            end: found.end as usize,
            bias: (*found.link_map).bias,
            name: (*found.link_map).name,
            table: found.eh_frame as usize,
        })
    }
}

/// How the table is encoded where it can be searched (LSB, .eh_frame_hdr): version 1, a distance of four bytes to the frames,
/// and a count of four. Its entries are two distances of four bytes from the table's begin.
const SEARCHABLE: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Bytes before its entries.
const TABLE_HEAD: usize = 12;
/// Longest unwind information of a function that is looked at.
const MAX_FUNCTION: usize = 1 << 20;

impl Found {
    /// Whether it is this library.
    pub(crate) fn is_own(&self) -> bool {
        self.begin == OWN.load(Ordering::Relaxed)
    }

    /// It stays where it is until the process ends.
    pub(crate) fn keep_loaded(&self) {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the loader's string; nothing is loaded that is not there already. An empty name is the program's.
        unsafe { libc::dlopen(self.name, flags) };
    }

    /// Its path, as the loader has it.
    pub(crate) fn path(&self) -> &[u8] {
        if self.name.is_null() {
            return &[];
        }
        // SAFETY: the loader's string, which stays as long as the file is loaded.
        let name = unsafe { CStr::from_ptr(self.name) };
        match name.is_empty() {
            true => PROGRAM.get().map_or(&[], |p| p.to_bytes()),
            false => name.to_bytes(),
        }
    }

    /// The unwind information of the function that an address is in, with that of its common part: the bytes of both and what is
    /// between them. The numbers say where in there it begins, and the address of the first byte.
    pub(super) fn function(&self, address: u64) -> Option<(&'static [u8], usize, u64)> {
        let table = self.table;
        if table == 0 {
            return None;
        }
        // SAFETY: every unwinder reads the table there, which begins with these.
        let (head, count) = unsafe {
            (
                (table as *const [u8; 4]).read_unaligned(),
                ((table + 8) as *const u32).read_unaligned() as usize,
            )
        };
        if head != SEARCHABLE {
            return None;
        }
        // SAFETY: entry `at` of so many; the table is mapped whole.
        let entry = |at: usize| unsafe {
            ((table + TABLE_HEAD + 8 * at) as *const [i32; 2]).read_unaligned()
        };
        let of = |distance: i32| table.wrapping_add_signed(distance as isize);
        // The last entry that doesn't begin behind the address.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match of(entry(middle)[0]) as u64 <= address {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let function = of(entry(low.checked_sub(1)?)[1]);
        // SAFETY: what the table leads to begins with a length, and the distance back to its common part; that begins with a length.
        let half = |at: usize| unsafe { (at as *const u32).read_unaligned() };
        let (len, back) = (half(function) as usize, half(function + 4) as usize);
        let common = (function + 4).checked_sub(back)?;
        let begin = common.min(function);
        let end = (function + 4 + len).max(common + 4 + half(common) as usize);
        if len > MAX_FUNCTION || back == 0 || half(common) as usize > MAX_FUNCTION {
            return None;
        }
        // SAFETY: both lie in one section, which is mapped whole.
        let bytes = unsafe { core::slice::from_raw_parts(begin as *const u8, end - begin) };
        Some((bytes, function - begin, begin as u64))
    }
}

/// The build id of a file, if its program headers are in its first page (those of patched files are elsewhere).
pub(crate) fn build_id(found: &Found) -> &'static [u8] {
    const PAGE: usize = 4096;
    let header = found.begin as *const libc::Elf64_Ehdr;
    // SAFETY: a file is mapped from a page's begin on; with this magic its ELF header lies there, and the rest of that page.
    let headers = unsafe {
        if (header.cast::<[u8; 4]>()).read() != *b"\x7fELF" {
            return &[];
        }
        let (at, count) = ((*header).e_phoff as usize, usize::from((*header).e_phnum));
        if at % 8 != 0 || at.saturating_add(count * size_of::<libc::Elf64_Phdr>()) > PAGE {
            return &[];
        }
        core::slice::from_raw_parts((found.begin + at) as *const libc::Elf64_Phdr, count)
    };
    let is_loaded = |note: &libc::Elf64_Phdr| {
        let end = |p: &libc::Elf64_Phdr| p.p_vaddr.saturating_add(p.p_filesz);
        let around = |p: &&libc::Elf64_Phdr| p.p_vaddr <= note.p_vaddr && end(note) <= end(p);
        let mut loaded = headers.iter().filter(|p| p.p_type == libc::PT_LOAD);
        loaded.any(|p| around(&p))
    };
    let notes = headers.iter().filter(|p| p.p_type == libc::PT_NOTE);
    for note in notes.filter(|note| is_loaded(note)) {
        let at = found.bias.wrapping_add(note.p_vaddr as usize);
        // SAFETY: a part of a loaded segment.
        let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, note.p_filesz as usize) };
        if let Some(id) = id_in(bytes) {
            return id;
        }
    }
    &[]
}

/// The build id among notes (namesz, descsz, type, name, description; elf.h, NT_GNU_BUILD_ID).
fn id_in(mut bytes: &'static [u8]) -> Option<&'static [u8]> {
    loop {
        let word =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (name, len, kind) = (word(0)?, word(4)?, word(8)?);
        let at = 12 + name.checked_next_multiple_of(4)?;
        if kind == 3 && bytes.get(12..16)? == b"GNU\0" {
            return bytes.get(at..at.checked_add(len)?);
        }
        bytes = bytes.get(at.checked_add(len.checked_next_multiple_of(4)?)?..)?;
    }
}
