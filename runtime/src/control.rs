//! The control file, mapped over memory of this library: a probe finds what `ompfuse ctl` has written with one load from a
//! fixed place. Without a file that memory stays what it is, all zero: nothing is changed.

use crate::syscall;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use ompfuse_format::control::{self, HEADER_LEN, MAX_SETS, MODULES, OFF, OWN_SET, PAGE, SET_LEN};
use ompfuse_format::record::split_site;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Whole pages, so that a file can be mapped in their place.
#[repr(C, align(4096))]
struct Header(UnsafeCell<[u8; HEADER_LEN]>);

// SAFETY: shared with other processes anyway: it is read and written through atomics, texts as volatile bytes.
unsafe impl Sync for Header {}

static HEADER: Header = Header(UnsafeCell::new([0; HEADER_LEN]));
/// By module: a byte per site, whole pages; null without a table.
static TABLES: [AtomicPtr<AtomicU8>; MODULES] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MODULES];
/// Bytes of each table that are sites.
static SITES: [AtomicU32; MODULES] = [const { AtomicU32::new(0) }; MODULES];

#[inline(always)]
fn word(at: usize) -> &'static AtomicU32 {
    let place = HEADER.0.get().cast::<u8>().wrapping_add(at).cast::<u32>();
    // SAFETY: `at` is an offset of the format, inside and aligned; the memory is never unmapped, only replaced.
    unsafe { AtomicU32::from_ptr(place) }
}

/// Changes with every change of anything; odd while somebody is at it.
#[inline(always)]
pub(crate) fn generation() -> u64 {
    let place = HEADER.0.get().cast::<u8>();
    let place = place.wrapping_add(control::AT_GENERATION).cast::<u64>();
    // SAFETY: as in `word`.
    unsafe { AtomicU64::from_ptr(place) }.load(Ordering::Acquire)
}

/// What holds for every region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, zerocopy::FromZeros)]
pub(crate) struct Settings {
    /// Some regions are off or have a set of their own, or the program has paused the recording.
    pub(crate) special: bool,
    /// The program has paused the recording, the command holds it, or it has ended.
    pub(crate) paused: bool,
    /// It has ended: no execution unit is on record any more.
    pub(crate) ended: bool,
    /// Event set.
    pub(crate) set: usize,
    /// After how many instances the next set comes; 0: never.
    pub(crate) rotate: u32,
    /// The sets that take part, a bit each.
    pub(crate) rotating: u32,
}

/// The settings of one generation; `None` while they are being changed.
pub(crate) fn settings() -> Option<(u64, Settings)> {
    let before = generation();
    let load = |at| word(at).load(Ordering::Acquire);
    let ended = load(control::AT_ENDED) != 0;
    let settings = Settings {
        special: load(control::AT_SPECIAL) != 0,
        paused: ended || load(control::AT_PAUSED) != 0 || load(control::AT_HELD) != 0,
        ended,
        set: load(control::AT_SET) as usize % MAX_SETS,
        rotate: load(control::AT_ROTATE),
        rotating: load(control::AT_ROTATING) & ((1 << MAX_SETS) - 1),
    };
    (before & 1 == 0 && generation() == before).then_some((before, settings))
}

/// What is set for one region: whether it is off, and the number of its own event set.
#[inline]
pub(crate) fn of_site(site: u32) -> (bool, Option<usize>) {
    let (module, site) = split_site(site);
    let module = module as usize % MODULES;
    let table = TABLES[module].load(Ordering::Acquire);
    if table.is_null() || site >= SITES[module].load(Ordering::Relaxed) {
        return (false, None);
    }
    // SAFETY: the table has so many bytes and is never unmapped.
    let byte = unsafe { &*table.add(site as usize) }.load(Ordering::Relaxed);
    let own = usize::from(byte & OWN_SET);
    (
        byte & OFF != 0,
        own.checked_sub(1).filter(|&s| s < MAX_SETS),
    )
}

/// The names of an event set, as they stand there now.
pub(crate) fn set_names(set: usize) -> Option<String> {
    let field: Vec<u8> = bytes(control::at_set_names(set), SET_LEN);
    control::text(&field).map(str::to_owned)
}

/// A copy of a part of the header.
fn bytes(at: usize, len: usize) -> Vec<u8> {
    let place = HEADER.0.get().cast::<u8>();
    let byte = |i: usize| {
        // SAFETY: inside the header, whose memory is never unmapped; another process may write it, hence volatile.
        unsafe { place.add((at + i) % HEADER_LEN).read_volatile() }
    };
    (0..len).map(byte).collect()
}

/// The program pauses, or resumes, what is recorded in this process.
pub(crate) fn pause(on: bool) {
    let change = |paused: u32| match on {
        true => paused.checked_add(1),
        false => paused.checked_sub(1),
    };
    let (relaxed, order) = (Ordering::Relaxed, Ordering::AcqRel);
    if word(control::AT_PAUSED)
        .fetch_update(order, relaxed, change)
        .is_ok()
    {
        // The upper half: the command changes the lower one at any moment.
        word(control::AT_GENERATION + 4).fetch_add(1, order);
    }
}

/// Holds the recording, or not, as `is_wanted` says, which is asked again afterwards: the command changes what it says before it
/// looks for processes that it has to tell.
pub(crate) fn hold(is_wanted: impl Fn() -> bool) {
    loop {
        let wanted = u32::from(is_wanted());
        if word(control::AT_HELD).swap(wanted, Ordering::AcqRel) != wanted {
            word(control::AT_GENERATION + 4).fetch_add(1, Ordering::AcqRel);
        }
        if u32::from(is_wanted()) == wanted {
            return;
        }
    }
}

/// SIGUSR1 asks for a reload.
extern "C" fn on_signal(_: core::ffi::c_int) {
    word(control::AT_RELOADS).fetch_add(1, Ordering::AcqRel);
}

/// Takes SIGUSR1 if nobody else has: neither the program nor who started it, who may have had it ignored.
fn take_signal() -> bool {
    // SAFETY: all-zero is a valid sigaction; the handler stays loaded with this library, and does nothing but an addition.
    unsafe {
        let mut there: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(libc::SIGUSR1, core::ptr::null(), &mut there) != 0
            || there.sa_sigaction != libc::SIG_DFL
        {
            return false;
        }
        let mut ours: libc::sigaction = core::mem::zeroed();
        ours.sa_sigaction = on_signal as *const () as usize;
        ours.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &ours, core::ptr::null_mut()) == 0
    }
}

/// What a process starts with.
pub(crate) struct Start<'a> {
    /// The names of the event sets, the first one's included.
    pub(crate) sets: &'a [String],
    /// After how many instances the next one comes.
    pub(crate) rotate: u32,
    /// File that a signal reloads; without it no signal does.
    pub(crate) reload: Option<&'a str>,
}

/// Fills in what holds from the start. Nobody else sees the header yet.
pub(crate) fn prepare(start: &Start<'_>) {
    let store = |at, value| word(at).store(value, Ordering::Relaxed);
    let put = |at: usize, len, text: &str| {
        let mut field = vec![0; len];
        if control::put_text(&mut field, text.as_bytes()).is_some() {
            let place = HEADER.0.get().cast::<u8>().wrapping_add(at);
            // SAFETY: fields of the format lie inside; no other thread looks at them.
            unsafe { place.copy_from_nonoverlapping(field.as_ptr(), len) };
        }
    };
    let sets = &start.sets[..start.sets.len().min(MAX_SETS)];
    for (set, names) in sets.iter().enumerate() {
        put(control::at_set_names(set), SET_LEN, names);
    }
    store(control::AT_SETS, sets.len().max(1) as u32);
    if start.rotate > 0 && sets.len() > 1 {
        store(control::AT_ROTATE, start.rotate);
        store(control::AT_ROTATING, (1 << sets.len()) - 1);
        store(control::AT_SPECIAL, 1);
        store(control::AT_GENERATION, 2);
    }
    if let Some(file) = start.reload {
        put(control::AT_RELOAD_FILE, control::RELOAD_FILE_LEN, file);
        store(control::AT_SIGNAL, u32::from(take_signal()));
    }
}

/// Makes this process's control file, with what the memory holds, and maps it in the memory's place. After a fork the
/// memory is still the parent's file. False if there can't be one.
pub(crate) fn share(path: &Path) -> bool {
    let Ok(mut file) = crate::files::create(path) else {
        return false;
    };
    let mut header = bytes(0, HEADER_LEN);
    let mut set = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    set(0, &control::MAGIC);
    set(control::AT_VERSION, &control::VERSION.to_le_bytes());
    set(control::AT_PID, &std::process::id().to_le_bytes());
    set(control::AT_RELOADS, &[0; 4]);
    // Whoever was at it was at the parent's.
    header[control::AT_GENERATION] &= !1;
    let fd = file.as_raw_fd();
    let tables = || (0..MODULES).filter(|&m| !TABLES[m].load(Ordering::Acquire).is_null());
    let end = tables().map(|m| place(m) + len(m)).max().unwrap_or(0);
    let shared = syscall::allocate(fd, 0, end.max(HEADER_LEN) as u64)
        && file.write_all(&header).is_ok()
        && tables().all(|module| {
            let table = TABLES[module].load(Ordering::Acquire).cast::<u8>();
            // SAFETY: the table's pages, mapped for ever; a copy of bytes that others may change at any time.
            let bytes = unsafe { core::slice::from_raw_parts(table, len(module)) };
            file.write_all_at(bytes, place(module) as u64).is_ok()
        })
        // SAFETY: whole pages of our own, whose contents the file has.
        && unsafe { syscall::map_over(fd, 0, HEADER.0.get().cast(), HEADER_LEN) };
    if !shared {
        let _ = std::fs::remove_file(path);
        return false;
    }
    tables().all(|module| {
        let table = TABLES[module].load(Ordering::Acquire).cast();
        // SAFETY: as above.
        unsafe { syscall::map_over(fd, place(module) as u64, table, len(module)) }
    })
}

/// Bytes of a module's table, with padding.
fn len(module: usize) -> usize {
    (SITES[module].load(Ordering::Relaxed) as usize).next_multiple_of(PAGE)
}

/// Offset of a module's table in the file.
fn place(module: usize) -> usize {
    word(control::at_module(module)).load(Ordering::Acquire) as usize * PAGE
}

/// Adds a table for a module's sites. Without one its regions can't be switched; the program need not know.
pub(crate) fn add_module(path: &Path, module: u32, sites: u32) {
    let module = module as usize % MODULES;
    if sites == 0 || !TABLES[module].load(Ordering::Acquire).is_null() {
        return;
    }
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path);
    let Ok(file) = open else { return };
    let at = file
        .metadata()
        .map_or(0, |m| m.len())
        .next_multiple_of(PAGE as u64);
    let len = (sites as usize).next_multiple_of(PAGE);
    let sites = len as u32; // all of the pages
    if at < HEADER_LEN as u64 || !syscall::allocate(file.as_raw_fd(), at, len as u64) {
        return;
    }
    let Some(table) = syscall::map_file(file.as_raw_fd(), at, len) else {
        return;
    };
    SITES[module].store(sites, Ordering::Relaxed);
    TABLES[module].store(table.cast(), Ordering::Release);
    let entry = control::at_module(module);
    word(entry).store((at / PAGE as u64) as u32, Ordering::Release);
    word(entry + 4).store(sites, Ordering::Release);
}
