//! The key by which the C library knows that a thread records: it calls us when the thread ends.
//!
//! Keys are numbered, the lowest free number first, and a thread has the values of its keys in places that go by number. Where
//! a process has two C libraries (`dlmopen`), both have the same places: who sets a key in one of them may overwrite a value of
//! the other's. Programs get by with the numbers that they have, so ours takes none of them away: it is the last that a
//! thread has a place for from its begin. No function asks for a certain number; glibc's table of keys is at the disposal of
//! debuggers, under a name of its own (since 2.34). Whether it is what we think a key tells that is made as usual. Where it
//! isn't, that one stays ours.

use crate::libraries;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::pthread_key_t as Key;

/// PTHREAD_KEYS_MAX.
const KEYS: usize = 1024;
/// Keys for whose values a thread has places from its begin; for further ones the C library allocates memory.
const WITH_PLACE: usize = 32;
/// As many are tried.
const LAST: usize = 8;

type Destructor = unsafe extern "C" fn(*mut c_void);

/// What glibc knows of a key.
#[repr(C)]
struct Entry {
    /// Odd: the key is in use.
    sequence: AtomicUsize,
    destructor: AtomicUsize,
}

/// A key with this destructor; `None`: there is none left.
pub(super) fn make(destructor: Destructor) -> Option<Key> {
    let mut first = 0;
    // SAFETY: the destructor stays loaded with this library.
    if unsafe { libc::pthread_key_create(&mut first, Some(destructor)) } != 0 {
        return None;
    }
    let last = table(first, destructor).and_then(|table| {
        let last = take_last(table, first, destructor)?;
        // As if it had never been; deleting it would make its next user's values others than the original's.
        let entry = &table[first as usize];
        entry.destructor.store(0, Ordering::Relaxed);
        entry.sequence.fetch_sub(1, Ordering::Release);
        Some(last)
    });
    Some(last.unwrap_or(first))
}

/// glibc's table, if this key is in it as expected.
fn table(first: Key, destructor: Destructor) -> Option<&'static [Entry; KEYS]> {
    let address = libraries::variable(c"__pthread_keys", size_of::<[Entry; KEYS]>())?;
    // SAFETY: a variable of the C library of this size, which it changes by atomic instructions.
    let table = unsafe { &*(address as *const [Entry; KEYS]) };
    let entry = table.get(first as usize)?;
    let is_ours = entry.destructor.load(Ordering::Relaxed) == destructor as usize;
    (is_ours && !entry.sequence.load(Ordering::Relaxed).is_multiple_of(2)).then_some(table)
}

/// Takes the last free key behind the first one.
fn take_last(table: &[Entry; KEYS], first: Key, destructor: Destructor) -> Option<Key> {
    let range = (first as usize + 1).max(WITH_PLACE - LAST)..WITH_PLACE;
    range.rev().find_map(|number| {
        let entry = &table[number];
        let before = entry.sequence.load(Ordering::Relaxed);
        let taken = before.is_multiple_of(2)
            && entry
                .sequence
                .compare_exchange(before, before + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if !taken {
            return None;
        }
        entry
            .destructor
            .store(destructor as usize, Ordering::Release);
        let key = number as Key;
        if is_free(key) {
            return Some(key);
        }
        entry.destructor.store(0, Ordering::Relaxed);
        entry.sequence.store(before, Ordering::Release);
        None
    })
}

/// Whether a key that was just taken has no value (this library's, of another link namespace), and keeps one.
fn is_free(key: Key) -> bool {
    let value = &raw const *b"a value";
    // SAFETY: the value is only compared, and gone before the thread could end.
    unsafe {
        libc::pthread_getspecific(key).is_null()
            && libc::pthread_setspecific(key, value.cast()) == 0
            && core::ptr::eq(libc::pthread_getspecific(key).cast(), value)
            && libc::pthread_setspecific(key, core::ptr::null()) == 0
    }
}
