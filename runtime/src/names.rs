//! Names that the program gives to regions of its own: each is a site of a module that no file belongs to.

use crate::syscall;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use ompfuse_format::record::{MAX_NAME, USER_MODULE, site_ref};

/// Places for names; a power of two. Further ones are not recorded.
pub(crate) const PLACES: usize = 4096;

/// A name, in memory that is never freed.
struct Name {
    len: usize,
    text: [u8; MAX_NAME],
    /// The process that has its record, by [`AGE`].
    written: AtomicU32,
}

static NAMES: [AtomicPtr<Name>; PLACES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; PLACES];
/// Counts the forks that led here, from 1.
static AGE: AtomicU32 = AtomicU32::new(1);

/// Which process this is, counted by forks: what was written elsewhere is not on its record.
pub(crate) fn age() -> u32 {
    AGE.load(Ordering::Relaxed)
}

/// The child of a fork has written nothing yet.
pub(crate) fn after_fork() {
    AGE.fetch_add(1, Ordering::Relaxed);
}

/// The site of a region with this name, of which as much as is kept is handed to `write` the first time. `None`: there are too many.
pub(crate) fn site(name: &[u8], write: impl FnOnce(u32, &[u8])) -> Option<u32> {
    let name = clipped(name);
    let start = hash(name);
    for nth in 0..PLACES {
        let at = start.wrapping_add(nth) % PLACES;
        let mut known = NAMES[at].load(Ordering::Acquire);
        if known.is_null() {
            let new = make(name)?;
            let null = core::ptr::null_mut();
            known = match NAMES[at].compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: made just now, known to nobody.
                    unsafe { syscall::unmap(new.cast(), size_of::<Name>()) };
                    other
                }
            };
        }
        // SAFETY: set above or by another thread, and never freed.
        let known = unsafe { &*known };
        if known.text.get(..known.len) != Some(name) {
            continue;
        }
        let site = site_ref(USER_MODULE, at as u32);
        let age = age();
        if known.written.load(Ordering::Relaxed) != age
            && known.written.swap(age, Ordering::AcqRel) != age
        {
            write(site, name);
        }
        return Some(site);
    }
    None
}

/// As much of a name as is kept: whole characters.
fn clipped(name: &[u8]) -> &[u8] {
    if name.len() <= MAX_NAME {
        return name;
    }
    let is_inside = |at: &usize| name.get(*at).is_some_and(|b| b & 0xc0 == 0x80);
    let mut end = MAX_NAME;
    while end > 0 && is_inside(&end) {
        end -= 1;
    }
    &name[..end]
}

/// FNV-1a.
fn hash(name: &[u8]) -> usize {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    (name.iter().fold(0xcbf2_9ce4_8422_2325, step) >> 16) as usize
}

fn make(name: &[u8]) -> Option<*mut Name> {
    let memory = syscall::map_memory(size_of::<Name>())?.cast::<Name>();
    // SAFETY: fresh zeroed pages, large and aligned enough; the name is at most as long as its field.
    unsafe {
        (&raw mut (*memory).len).write(name.len());
        let text = (&raw mut (*memory).text).cast::<u8>();
        text.copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_clipped_between_characters() {
        assert_eq!(clipped(b"abc"), b"abc");
        let long = "ä".repeat(MAX_NAME);
        let kept = clipped(long.as_bytes());
        assert!(core::str::from_utf8(kept).is_ok() && kept.len() > MAX_NAME - 2);
        let long = format!("x{long}");
        assert!(core::str::from_utf8(clipped(long.as_bytes())).is_ok());
    }
}
