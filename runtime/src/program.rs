//! What the program itself asks for, through `include/ompfuse.h`: regions of its own, pauses, its counters.
//!
//! The header gives each module that includes it a variable, and a note that leads to it; here the variable gets the
//! address of [`FUNCTIONS`]. Every function may be called at any time, by any thread.

use crate::process::{current, event_names};
use crate::thread::{Detached, Frame, Thread};
use crate::{control, names, tls};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::MAX_COUNTERS;

/// `struct ompfuse_counts`.
#[repr(C)]
struct Counts {
    ticks: u64,
    set: u32,
    events: u32,
    names: *const c_char,
    values: [u64; MAX_COUNTERS],
}

/// `struct ompfuse_functions`.
#[repr(C)]
struct Functions {
    version: u64,
    region_begin: unsafe extern "C" fn(*const c_char),
    region_end: extern "C" fn(),
    pause: extern "C" fn(),
    resume: extern "C" fn(),
    read: unsafe extern "C" fn(*mut Counts) -> c_int,
}

static FUNCTIONS: Functions = Functions {
    version: 1,
    region_begin,
    region_end,
    pause,
    resume,
    read,
};

/// Name and type of the header's note.
const NOTE: (&[u8], u32) = (b"ompfuse.h\0", 1);

/// This thread, with what the program has jumped out of forgotten.
fn thread<'a>() -> Option<&'a Thread> {
    let thread = current()?;
    thread.recover(tls::stack_pointer());
    Some(thread)
}

unsafe extern "C" fn region_begin(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: the header asks for a string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let Some(thread) = thread() else { return };
    let Some(site) = names::site(name, |site, name| thread.write_name(site, name)) else {
        return;
    };
    let place = thread.place_ranked();
    let node = thread.new_node();
    let frame = Frame::new(Construct::UserRegion, site, node, place, 0, 1);
    if let Some(detached) = thread.detach(Detached::new(frame, None)) {
        thread.charge();
        thread.enter_here(&detached.frame);
    }
}

extern "C" fn region_end() {
    let Some(thread) = thread() else { return };
    // Not one that an OpenMP construct stands in, which has not ended.
    if let Some(detached) = thread.detached(Construct::UserRegion) {
        thread.leave(&detached.frame, 0);
        thread.reattach(detached);
    }
    thread.rest();
}

extern "C" fn pause() {
    control::pause(true);
}

extern "C" fn resume() {
    control::pause(false);
}

unsafe extern "C" fn read(counts: *mut Counts) -> c_int {
    let Some(thread) = thread() else { return 0 };
    let (Some(set), false) = (thread.event_set(), counts.is_null()) else {
        return 0;
    };
    thread.charge();
    thread.read_now();
    let values = thread.last_counts();
    thread.rest();
    let Some((names, events)) = event_names(set, thread.counted()) else {
        return 0;
    };
    // SAFETY: the header asks for room for one.
    unsafe {
        (*counts).ticks = thread.last();
        (*counts).set = set as u32;
        (*counts).events = events as u32;
        (*counts).names = names;
        (*counts).values = values;
    }
    1
}

/// Gives the functions to every module that asks for them. Says whether one did: from then on there may be regions with names.
pub(crate) fn connect() -> bool {
    let mut is_asked = false;
    // SAFETY: the callback has the right type and gets what outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut is_asked).cast()) };
    is_asked
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr hands a valid description, and back what `connect` gave.
    let (info, is_asked) = unsafe { (&*info, &mut *data.cast::<bool>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's description of the module's program headers.
    let headers =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let within = |address: u64, flags: u32| {
        headers.iter().any(|p| {
            let end = p.p_vaddr.saturating_add(p.p_memsz);
            p.p_type == libc::PT_LOAD
                && p.p_flags & flags != 0
                && (p.p_vaddr..end).contains(&address)
                && end - address >= 8
        })
    };
    for note in headers.iter().filter(|p| p.p_type == libc::PT_NOTE) {
        // A patched file's notes have moved; what is not in memory is none of the program's.
        if note.p_memsz == 0 || !within(note.p_vaddr, libc::PF_R) {
            continue;
        }
        let start = info.dlpi_addr + note.p_vaddr;
        // SAFETY: the segment is mapped from its address on with its length.
        let bytes =
            unsafe { core::slice::from_raw_parts(start as *const u8, note.p_memsz as usize) };
        for at in notes(bytes) {
            let field = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
            let Some(relative) = field.map(i64::from_le_bytes) else {
                continue;
            };
            let variable = (note.p_vaddr + at as u64).wrapping_add_signed(relative);
            if variable % 8 == 0 && within(variable, libc::PF_W) {
                let variable = (info.dlpi_addr + variable) as *mut *mut Functions;
                let functions = (&raw const FUNCTIONS).cast_mut();
                // SAFETY: an aligned word in the module's data, which the header's note names for this.
                unsafe { AtomicPtr::from_ptr(variable) }.store(functions, Ordering::Release);
                *is_asked = true;
            }
        }
    }
    0
}

/// Where the descriptions of the header's notes begin, among those of a segment.
fn notes(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut next = 0;
    core::iter::from_fn(move || {
        loop {
            let start = next;
            let word = |at: usize| {
                let word = bytes.get(start + at..start + at + 4)?;
                Some(u32::from_le_bytes(word.try_into().ok()?) as usize)
            };
            let (name_len, len, kind) = (word(0)?, word(4)?, word(8)?);
            let at = (start + 12).checked_add(name_len.checked_next_multiple_of(4)?)?;
            next = at.checked_add(len.checked_next_multiple_of(4)?)?;
            let name = bytes.get(start + 12..start + 12 + name_len)?;
            if (name, kind as u32, len) == (NOTE.0, NOTE.1, 8) {
                return Some(at);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_found_among_others() {
        let note = |name: &[u8], kind: u32, desc: &[u8]| {
            let mut bytes = Vec::new();
            for word in [name.len() as u32, desc.len() as u32, kind] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            for part in [name, desc] {
                bytes.extend_from_slice(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let gnu = note(b"GNU\0", 3, &[1; 20]);
        let ours = note(NOTE.0, 1, &[2; 8]);
        let all = [&gnu[..], &ours, &gnu, &note(NOTE.0, 2, &[3; 8]), &ours].concat();
        let found: Vec<usize> = notes(&all).collect();
        assert_eq!(found, [36 + 24, 36 + 32 + 36 + 32 + 24]);
        assert_eq!(notes(&all[..40]).count(), 0);
        assert_eq!(notes(&[0xff; 32]).count(), 0);
    }
}
