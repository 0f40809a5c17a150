//! Reading a hardware counter without a system call: `rdpmc`, where the kernel allows it (perf_event_open(2),
//! "perf_event_mmap_page").
//!
//! The kernel shows in a page per event which of the processor's counters holds it at the moment, and what to add. It
//! changes that whenever the thread is scheduled, with a sequence number around the change.

use crate::syscall;
use core::sync::atomic::{Ordering, compiler_fence};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// The bit `cap_user_rdpmc` of the page's capabilities.
const CAP_USER_RDPMC: u64 = 1 << 2;
const PAGE: usize = 4096;
/// How often a read that the kernel interrupts is tried again; interruptions are thousands of times longer than a read.
const ATTEMPTS: usize = 16;

/// The page of one event of the calling thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterPage(*const perf_event_mmap_page);

impl CounterPage {
    /// Maps an event's page; `None` if the kernel has none to give or does not allow `rdpmc`.
    pub(super) fn map(fd: i32) -> Option<CounterPage> {
        let page = syscall::map_file_read_only(fd, PAGE)?.cast::<perf_event_mmap_page>();
        // SAFETY: the kernel maps a whole page and keeps these fields in it.
        let allowed = unsafe {
            (&raw const (*page).__bindgen_anon_1.capabilities).read_volatile() & CAP_USER_RDPMC
        };
        if allowed == 0 {
            CounterPage(page).unmap();
            return None;
        }
        Some(CounterPage(page))
    }

    /// The event's count, by its own thread; `None` while no counter of the processor holds it.
    #[inline(always)]
    pub(super) fn read(self) -> Option<u64> {
        let page = self.0;
        for _ in 0..ATTEMPTS {
            // SAFETY: the page is mapped as long as self is used; its fields are aligned, and the kernel may change them
            // at any moment, hence volatile. `lock` tells whether it has.
            unsafe {
                let before = (&raw const (*page).lock).read_volatile();
                compiler_fence(Ordering::SeqCst);
                let index = (&raw const (*page).index).read_volatile();
                let offset = (&raw const (*page).offset).read_volatile();
                let width = (&raw const (*page).pmc_width).read_volatile();
                if index == 0 || width == 0 || width > 64 {
                    return None;
                }
                // Allowed as long as an event of the process is mapped; an index that has gone stale is one of the
                // processor's counters nevertheless.
                let raw = rdpmc(index - 1);
                compiler_fence(Ordering::SeqCst);
                let after = (&raw const (*page).lock).read_volatile();
                if before == after {
                    let unused = 64 - u32::from(width);
                    let signed = ((raw << unused) as i64) >> unused;
                    return Some(offset.wrapping_add(signed) as u64);
                }
            }
        }
        None
    }

    /// How long the event was enabled without being counted, in nanoseconds; as of the last time that the thread was
    /// scheduled.
    #[inline(always)]
    pub(super) fn gap(self) -> u64 {
        // SAFETY: as in `read`.
        unsafe {
            let enabled = (&raw const (*self.0).time_enabled).read_volatile();
            enabled.saturating_sub((&raw const (*self.0).time_running).read_volatile())
        }
    }

    /// Removes the mapping; it must not be read again.
    pub(super) fn unmap(self) {
        // SAFETY: made by `map`; the caller does not read it again.
        unsafe { syscall::unmap(self.0.cast_mut().cast(), PAGE) };
    }
}

/// The processor's counter of this number.
///
/// # Safety
/// The kernel must have allowed it (see [`CounterPage::map`]), otherwise it raises SIGSEGV.
#[inline(always)]
unsafe fn rdpmc(counter: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise; it changes nothing but the two registers.
    unsafe {
        core::arch::asm!("rdpmc", in("ecx") counter, out("eax") low, out("edx") high,
                         options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}
