//! What the process around us can tell: the OpenMP runtime's thread numbers, the processor.

use crate::tls;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Offset of rseq's `cpu_id` from the thread's TLS base, 0 if glibc has not registered it.
static RSEQ_CPU: AtomicUsize = AtomicUsize::new(0);
/// `omp_get_thread_num` and `omp_get_num_threads` of the process's OpenMP runtime.
static THREAD_NUM: AtomicUsize = AtomicUsize::new(0);
static NUM_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Address of a symbol in the process, 0 if there is none.
fn symbol(name: &CStr) -> usize {
    // SAFETY: dlsym only reads the name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// glibc 2.35 and later registers restartable sequences: the processor's number is one load away.
pub(crate) fn find_rseq() {
    let offset = symbol(c"__rseq_offset");
    let size = symbol(c"__rseq_size");
    if offset != 0 && size != 0 {
        // SAFETY: glibc's documented variables: ptrdiff_t and unsigned int.
        let (offset, size) = unsafe { (*(offset as *const isize), *(size as *const u32)) };
        if size > 0 {
            RSEQ_CPU.store((offset + 4) as usize, Ordering::Relaxed);
        }
    }
}

/// Number of the processor that this thread runs on, `u16::MAX` if that can't be had cheaply.
#[inline]
pub(crate) fn cpu() -> u16 {
    let offset = RSEQ_CPU.load(Ordering::Relaxed);
    if offset == 0 {
        return u16::MAX;
    }
    // SAFETY: glibc keeps the area at this offset registered as long as the thread lives.
    let cpu = unsafe { (tls::base().wrapping_add(offset) as *const i32).read_volatile() };
    u16::try_from(cpu).unwrap_or(u16::MAX)
}

/// Asks the OpenMP runtime; looked up when first needed, as it may be loaded late.
fn ask(cache: &AtomicUsize, name: &CStr) -> Option<i64> {
    let mut function = cache.load(Ordering::Relaxed);
    if function == 0 {
        function = symbol(name);
        if function == 0 {
            return None;
        }
        cache.store(function, Ordering::Relaxed);
    }
    // SAFETY: both functions are `int f(void)` in every OpenMP runtime.
    let function: unsafe extern "C" fn() -> c_int = unsafe { core::mem::transmute(function) };
    // SAFETY: callable at any time.
    Some(i64::from(unsafe { function() }))
}

/// Functions of a runtime that is linked into a patched module, where a look-up by name doesn't find them.
pub(crate) fn ask_these(thread_num: Option<usize>, num_threads: Option<usize>) {
    if let (Some(thread_num), Some(num_threads)) = (thread_num, num_threads) {
        THREAD_NUM.store(thread_num, Ordering::Relaxed);
        NUM_THREADS.store(num_threads, Ordering::Relaxed);
    }
}

/// Whether the process's OpenMP runtime is libomp (or Intel's), which has libgomp's functions too.
pub(crate) fn has_libomp() -> bool {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let mut function = KNOWN.load(Ordering::Relaxed);
    if function == 0 {
        function = symbol(c"__kmpc_global_thread_num").max(1);
        KNOWN.store(function, Ordering::Relaxed);
    }
    function > 1
}

/// Thread number in the current team.
pub(crate) fn thread_num() -> i64 {
    ask(&THREAD_NUM, c"omp_get_thread_num").unwrap_or(0)
}

/// Size of the current team.
pub(crate) fn num_threads() -> i64 {
    ask(&NUM_THREADS, c"omp_get_num_threads").unwrap_or(1)
}
