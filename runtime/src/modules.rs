//! The patched modules of the process, found through their notes: at the start, and whenever the loader initialises
//! another library.
//!
//! A library that is opened later tells us by itself. Its start-up code (`_init` of the C library's crti.o) calls
//! `__gmon_start__` if anybody defines it, before its constructors run. It is meant for gprof; in a program that is built
//! for that, the executable's own definition wins, and libraries opened later are not recorded.
//!
//! Nothing is done when a library is closed: records and frames hold numbers of sites, never their addresses. A library
//! that is opened again gets the number that it had.

use crate::imports::{self, Imports, Place};
use crate::{files, host, mpi, syscall, tls};
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use ompfuse_format::abi::{self, ModuleHeader, NoteDesc, SiteDesc};
use ompfuse_format::record::split_site;
use ompfuse_format::run::ModuleStatus;

/// Modules of a process; their numbers have 8 bits in records, the last of which stands for "none".
const MAX_MODULES: usize = 254;

/// What is known of a module: kept for ever, so that the number of a site leads to it at any time.
struct Known {
    status: ModuleStatus,
    /// As its header tells: another file under the same path is another module.
    identity: u64,
    /// Sites of constructs whose code counts nothing in a module that does, and their regions; ascending.
    uncounted: Vec<u32>,
    /// The set of events that its code counts.
    counts: u32,
}

/// By number; the first `COUNT` are set.
static KNOWN: [AtomicPtr<Known>; MAX_MODULES] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_MODULES];
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn known() -> impl Iterator<Item = &'static Known> {
    let set = KNOWN.iter().take(COUNT.load(Ordering::Acquire));
    // SAFETY: set before they are counted, and never freed.
    set.filter_map(|k| unsafe { k.load(Ordering::Acquire).as_ref() })
}

/// Every module that has been loaded up to now.
pub(crate) fn statuses() -> Vec<ModuleStatus> {
    known().map(|k| k.status.clone()).collect()
}

/// The events that the code of some module counts that has been loaded: a set of [`exact`](ompfuse_format::event::exact).
pub(crate) fn counted() -> u32 {
    COUNTED.load(Ordering::Relaxed)
}

/// See [`counted`].
static COUNTED: AtomicU32 = AtomicU32::new(0);

/// The events that the code of some module counts, and a construct's own doesn't. `site`: as records name it.
#[inline]
pub(crate) fn uncounted(site: u32) -> u32 {
    let all = counted();
    if all == 0 {
        return 0;
    }
    let (module, site) = split_site(site);
    let place = KNOWN
        .get(module as usize)
        .map(|k| k.load(Ordering::Acquire));
    // SAFETY: null or never freed.
    let known = place.and_then(|k| unsafe { k.as_ref() });
    known.map_or(0, |k| match k.uncounted.binary_search(&site) {
        Ok(_) => all,
        Err(_) => all & !k.counts,
    })
}

/// Sites with [`FLAG_UNCOUNTED`](abi::FLAG_UNCOUNTED), and their regions; ascending.
///
/// # Safety
/// The header is that of a loaded module.
unsafe fn flagged(header: *const ModuleHeader) -> Vec<u32> {
    // SAFETY: the caller's promise; the table is where the header says, and has so many entries.
    let all = unsafe {
        let field = &raw const (*header).sites_rel;
        let first = (field as *const u8).wrapping_offset((*header).sites_rel as isize);
        core::slice::from_raw_parts(first.cast::<SiteDesc>(), (*header).n_sites as usize)
    };
    let flagged = all.iter().filter(|s| s.flags & abi::FLAG_UNCOUNTED != 0);
    let mut sites: Vec<u32> = flagged.flat_map(|s| [s.site, s.region]).collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

/// A patched module that is not switched on yet.
pub(crate) struct Module {
    header: *mut ModuleHeader,
    /// The loader's name for it, for its own look-ups.
    name: std::ffi::CString,
    place: Option<Place>,
    pub(crate) status: ModuleStatus,
    /// It was not loaded before.
    pub(crate) new: bool,
}

impl Module {
    /// Numbers of sites with probes are below this.
    pub(crate) fn sites(&self) -> u32 {
        // SAFETY: the header of a loaded module; its table is where the header says, has so many entries, and they ascend.
        unsafe {
            let Some(last) = (*self.header).n_sites.checked_sub(1) else {
                return 0;
            };
            let field = &raw const (*self.header).sites_rel;
            let first = (field as *const u8).wrapping_offset((*self.header).sites_rel as isize);
            (*first.cast::<SiteDesc>().add(last as usize)).site + 1
        }
    }

    /// Writes the module's number and the thunks' addresses, by slot, then protects the page: nothing else may change them.
    pub(crate) fn switch_on(&self, thunks: [(usize, u64); 3]) {
        let page = (self.header as usize & !0xfff) as *const u8;
        // SAFETY: the rewriter gives the header pages of its own in a writable segment; stubs read a slot with one load
        // and treat 0 as "not there", so any moment is good.
        unsafe {
            let own = |slot: usize| {
                let relative = (*self.header).slots[slot] as usize;
                (relative != 0).then(|| (self.header as usize).wrapping_add(relative))
            };
            let functions = abi::OWN_FUNCTIONS.map(|(slot, _)| own(slot).unwrap_or(0));
            if functions[0] != 0 {
                host::use_openmp(self.status.module, functions);
            } else {
                let imports = self.place.as_ref().and_then(|p| Imports::of(p));
                host::find_openmp(self.status.module, &self.name, imports);
            }
            mpi::find(&self.name);
            // The look-up may have run constructors: of another copy of this library, which takes the module and protects
            // the page.
            if (&raw const (*self.header).slots[abi::SLOT_CALL]).read_volatile() != 0 {
                return;
            }
            (&raw mut (*self.header).module).write_volatile(self.status.module);
            let count = (abi::SLOT_COUNT, tls::count() as u64);
            for (slot, thunk) in thunks.into_iter().chain([count]) {
                (&raw mut (*self.header).slots[slot]).write_volatile(thunk);
            }
            syscall::protect(page, 4096);
        }
    }
}

/// Whether a module of another version was complained about.
static OTHER_TOLD: AtomicBool = AtomicBool::new(false);

/// A module as the loader tells it.
struct Seen {
    header: *mut ModuleHeader,
    name: std::ffi::CString,
    place: Option<Place>,
    bias: u64,
}

/// The patched modules that are loaded and not switched on. Those that are new have a number from now on.
pub(crate) fn find() -> Vec<Module> {
    let mut seen: Vec<Seen> = Vec::new();
    // SAFETY: the callback has the right type and gets the vector that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit_module), (&raw mut seen).cast()) };
    if seen.is_empty() {
        return Vec::new();
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let enter = |seen| enter(seen, &maps);
    seen.into_iter().filter_map(enter).collect()
}

/// Gives a module its number: the one that it had before, or the next.
fn enter(seen: Seen, maps: &str) -> Option<Module> {
    let path = match mapped_file(maps, seen.header as u64) {
        Some(path) => path.to_owned(),
        None => seen.name.to_string_lossy().into_owned(),
    };
    // SAFETY: a module's header, which its note leads to.
    let identity = unsafe { (*seen.header).identity };
    // SAFETY: likewise.
    let counts = unsafe { (*seen.header).counts };
    COUNTED.fetch_or(counts, Ordering::Relaxed);
    let again = known().find(|k| k.status.path == path && k.identity == identity);
    let number = again.map_or(COUNT.load(Ordering::Acquire), |k| k.status.module as usize);
    let place = KNOWN.get(number)?;
    let status = ModuleStatus {
        module: number as u32,
        path,
        bias: seen.bias,
    };
    if again.is_none() {
        let known = Box::new(Known {
            status: status.clone(),
            identity,
            // SAFETY: as above.
            uncounted: unsafe { flagged(seen.header) },
            counts,
        });
        place.store(Box::into_raw(known), Ordering::Release);
        COUNT.store(number + 1, Ordering::Release);
    }
    Some(Module {
        header: seen.header,
        name: seen.name,
        place: seen.place,
        status,
        new: again.is_none(),
    })
}

/// The file that is mapped at an address. The loader may know it under another name (the original's, if an auditing
/// library has replaced it).
fn mapped_file(maps: &str, address: u64) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        if !(number(start)?..number(end)?).contains(&address) {
            return None;
        }
        let path = line.get(line.find('/')?..)?;
        (!path.ends_with(" (deleted)")).then_some(path)
    })
}

unsafe extern "C" fn visit_module(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr hands a valid description, and back the pointer that `find` gave.
    let (info, seen) = unsafe { (&*info, &mut *data.cast::<Vec<Seen>>()) };
    let headers = imports::headers(info).iter();
    for note in headers.filter(|p| p.p_type == libc::PT_NOTE) {
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
        if desc.abi_version != abi::ABI_VERSION {
            if !OTHER_TOLD.swap(true, Ordering::Relaxed) {
                // SAFETY: the loader's string.
                let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
                let name = if name.is_empty() {
                    "the program"
                } else {
                    &name
                };
                files::complain(&format!(
                    "{name} was patched by another version of ompfuse (interface {}, not {}) and isn't recorded; patch \
                     the original again",
                    desc.abi_version,
                    abi::ABI_VERSION
                ));
            }
            continue;
        }
        let header = (info.dlpi_addr + desc.header_va) as *mut ModuleHeader;
        // SAFETY: `verify` has seen that the note leads to a header in a mapped segment; the magic is checked here.
        let wanted = unsafe {
            (*header).magic == abi::MODULE_MAGIC
                && (*header).abi_version == abi::ABI_VERSION
                && (*header).slots[abi::SLOT_CALL] == 0
        };
        if wanted {
            seen.push(Seen {
                header,
                // SAFETY: the loader's string.
                name: unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned(),
                place: Place::of(info),
                bias: info.dlpi_addr,
            });
        }
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
            return NoteDesc::from_bytes(bytes.get(desc_at..desc_at + desc_len)?);
        }
        bytes = bytes.get(end..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_address() {
        let maps = "7f00-7f80 r--p 00000000 fe:01 77                         /a b/x.so\n\
                    7f80-8000 rw-p 00000000 00:00 0 \n\
                    8000-9000 r--p 00000000 fe:01 78                         /y.so (deleted)\n";
        assert_eq!(mapped_file(maps, 0x7f10), Some("/a b/x.so"));
        assert_eq!(mapped_file(maps, 0x7f80), None);
        assert_eq!(mapped_file(maps, 0x8001), None);
        assert_eq!(mapped_file(maps, 0x9000), None);
    }
}
