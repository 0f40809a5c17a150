//! What tasks depend on, and what doacross loops wait for, as the runtimes' calls say it.

use super::sync;
use crate::entry::{self, Call};
use crate::thread::Thread;
use ompfuse_format::record::depend::{
    Access, DETACHED, FULFILS, NO_WAIT, OF_GROUP, OF_WAIT, Point, WAITS, WAITS_ONLY,
};

/// libgomp's list (`task.c`, `gomp_task_handle_depend`): a number of all, of those that are written, and addresses. Else 0, numbers of all, of those
/// that are written, of `mutexinoutset` and of those that are read, addresses, and then pointers to an address and its kind. It orders
/// `mutexinoutset` as `inout`, and so does this.
///
/// # Safety
/// `list` is the argument of such a call.
unsafe fn of_gomp(list: u64) -> impl Iterator<Item = u64> {
    // SAFETY: the caller's promise: as many words as the first ones say.
    let word = move |at: u64| unsafe { ((list + 8 * at) as *const u64).read_unaligned() };
    let is_plain = word(0) != 0;
    let (all, written, first) = match is_plain {
        true => (word(0), word(1), 2),
        false => (word(1), word(2) + word(3), 5),
    };
    let read = match is_plain {
        true => all.saturating_sub(written),
        false => word(4),
    };
    (0..all).map(move |at| {
        let entry = word(first + at);
        let access = |address, access| match (address, access) {
            (0, Access::Out) => Access::AllMemory.word(0),
            (address, access) => access.word(address),
        };
        if at < written {
            return access(entry, Access::Out);
        }
        if at < written + read {
            return access(entry, Access::In);
        }
        // SAFETY: as above: two words, `GOMP_DEPEND_*` is the second (gomp-constants.h).
        let [address, kind] = unsafe { (entry as *const [u64; 2]).read_unaligned() };
        let kind = match kind {
            1 => Access::In,
            5 => Access::InOutSet,
            _ => Access::Out,
        };
        access(address, kind)
    })
}

/// Bytes of KMPC's `kmp_depend_info` (`kmp.h`): an address, a length, and flags in a byte.
const KMP_DEPEND: u64 = 24;

/// KMPC's list of so many.
///
/// # Safety
/// These are arguments of such a call.
unsafe fn of_kmpc(count: u64, list: u64) -> impl Iterator<Item = u64> {
    let count = if list == 0 { 0 } else { count as u32 as i32 };
    (0..count.max(0) as u64).map(move |at| {
        let info = list + KMP_DEPEND * at;
        // SAFETY: the caller's promise.
        let (address, flags) = unsafe {
            let address = (info as *const u64).read_unaligned();
            (address, ((info + 16) as *const u8).read())
        };
        // `kmp_tasking`'s `in` 1, `out` 2, `mtx` 4, `set` 8, `all` 0x80.
        match flags {
            f if f & 0x80 != 0 => Access::AllMemory.word(0),
            f if f & 2 != 0 => Access::Out.word(address),
            f if f & 4 != 0 => Access::MutexInOutSet.word(address),
            f if f & 8 != 0 => Access::InOutSet.word(address),
            _ => Access::In.word(address),
        }
    })
}

/// What a task of libgomp's depends on.
///
/// # Safety
/// `list` is the argument of the call, whose flags say that there is one.
#[inline(never)]
pub(super) unsafe fn task(thread: &Thread, (node, site): (u64, u32), list: u64) {
    if list != 0 {
        // SAFETY: the caller's promise.
        thread.write_depend((0, node, site), unsafe { of_gomp(list) });
    }
}

/// A task of KMPC's that is handed over with lists. `args`: from which on they are.
#[inline(never)]
pub(super) fn kmpc_task(thread: &Thread, call: &Call, (node, site): (u64, u32)) {
    let [count, list, more, further] = [1, 2, 3, 4].map(|n| call.known_late(n).unwrap_or(0));
    // SAFETY: `__kmpc_omp_task_with_deps`'s arguments.
    let words = unsafe { of_kmpc(count, list).chain(of_kmpc(more, further)) };
    thread.write_depend((0, node, site), words);
}

/// A task that ends when this event is fulfilled.
#[cold]
#[inline(never)]
pub(super) fn detached(thread: &Thread, (node, site): (u64, u32), event: u64) {
    thread.write_depend((DETACHED, node, site), core::iter::once(event));
}

/// An event is fulfilled.
pub(super) fn fulfill(thread: &Thread, call: &Call) -> u64 {
    let point = Point {
        flags: FULFILS,
        vector: call.known_late(0).unwrap_or(0),
    };
    thread.write_point(entry::this(call.site()), &point);
    sync::service(thread, call)
}

/// A wait for tasks with dependences: before it waits. `args` has libgomp's list, or KMPC's two with their numbers, and whether it doesn't wait.
#[inline(always)]
pub(super) fn wait(thread: &Thread, call: &Call) {
    if call.known(0).is_some() {
        wait_for(thread, call);
    }
}

/// A taskgroup begins. Its end waits for the tasks that are created from now on.
pub(super) fn group(thread: &Thread, call: &Call) -> u64 {
    let (node, site) = (thread.innermost_node(), entry::region(call.site()));
    let words = [u64::from(site), thread.last()];
    thread.write_depend((OF_GROUP, node, site), words.into_iter());
    call.forward()
}

#[inline(never)]
fn wait_for(thread: &Thread, call: &Call) {
    let [first, list, more, further, no_wait] =
        [0, 1, 2, 3, 4].map(|n| call.known_late(n).unwrap_or(0));
    let site = entry::region(call.site());
    let node = thread.innermost_node();
    let no_wait = if no_wait as u32 != 0 { NO_WAIT } else { 0 };
    let of = (OF_WAIT | no_wait, node, site);
    // SAFETY: the arguments of such calls: libgomp's has one.
    unsafe {
        match call.known(1) {
            None if first == 0 => {}
            None => thread.write_depend((OF_WAIT | WAITS_ONLY, node, site), of_gomp(first)),
            Some(_) => {
                thread.write_depend(of, of_kmpc(first, list).chain(of_kmpc(more, further)));
            }
        }
    }
}

/// A point of a doacross loop that is come to, or waited for. `args = [vector]`: KMPC's has 64-bit numbers, libgomp's posts as well; its waits
/// have them as arguments.
pub(super) fn point(thread: &Thread, call: &Call, waits: bool) {
    let dimensions = thread.dimensions();
    if dimensions == 0 {
        return;
    }
    let mix =
        |hash: u64, number: u64| (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let vector = match call.known_late(0) {
        Some(at) => (0..dimensions).fold(0, |hash, n| {
            // SAFETY: as many numbers as the loop has dimensions.
            let number = unsafe { (at as *const u64).add(n).read_unaligned() };
            mix(hash, number)
        }),
        None => (0..dimensions).fold(0, |hash, n| mix(hash, call.arg(n))),
    };
    let flags = if waits { WAITS } else { 0 };
    thread.write_point(entry::this(call.site()), &Point { flags, vector });
}
