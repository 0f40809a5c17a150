//! What the process around us can tell: the OpenMP runtime's thread numbers, the processor.

use crate::{entry, tls};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use ompfuse_format::record::split_site;

/// Offset of rseq's `cpu_id` from the thread's TLS base; of a word that says "not known" if glibc has not registered it.
static RSEQ_CPU: AtomicUsize = AtomicUsize::new(0);
/// What is asked of an OpenMP runtime; the third only tells libomp (or Intel's) from libgomp.
const NAMES: [&CStr; 5] = [
    c"omp_get_thread_num",
    c"omp_get_num_threads",
    c"__kmpc_global_thread_num",
    c"omp_get_team_num",
    c"omp_get_num_teams",
];
/// These functions of each module's OpenMP runtime, by the module's number: a process may have several runtimes.
static OPENMP: [[AtomicUsize; NAMES.len()]; MODULES] =
    [const { [const { AtomicUsize::new(0) }; NAMES.len()] }; MODULES];
/// Module numbers in records have 8 bits.
const MODULES: usize = 256;

/// Address of a symbol in the process, 0 if there is none.
fn symbol(name: &CStr) -> usize {
    // SAFETY: dlsym only reads the name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// glibc 2.35 and later registers restartable sequences: the processor's number is one load away.
pub(crate) fn find_rseq() {
    RSEQ_CPU.store(tls::unknown(), Ordering::Relaxed);
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

/// Number of the processor that this thread runs on, `u16::MAX` if that can't be had cheaply. After [`find_rseq`].
#[inline(always)]
pub(crate) fn cpu() -> u16 {
    let offset = RSEQ_CPU.load(Ordering::Relaxed);
    // SAFETY: glibc keeps the area at this offset registered as long as the thread lives; negative numbers are no processor's.
    let cpu = unsafe { tls::word_at(offset) };
    cpu.min(u32::from(u16::MAX)) as u16
}

/// The functions of a runtime that is linked into a module, where a look-up by name doesn't find them.
pub(crate) fn use_openmp(module: u32, [number, size]: [usize; 2]) {
    let [_, _, libomp, team, teams] = NAMES.map(symbol);
    let functions = [number, size, libomp, team, teams];
    for (place, function) in OPENMP[module as usize % MODULES].iter().zip(functions) {
        place.store(function, Ordering::Relaxed);
    }
}

/// Finds the OpenMP runtime that a module's calls lead to: what every module sees comes first, then what it has brought
/// along, as the loader binds them. `name`: the loader's for it, empty for the program.
pub(crate) fn find_openmp(module: u32, name: &CStr) {
    // SAFETY: the name is a string or null; nothing is loaded that is not there already.
    let open = |name: *const core::ffi::c_char| unsafe {
        libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    };
    let own = if name.is_empty() {
        core::ptr::null()
    } else {
        name.as_ptr()
    };
    let handles = [open(core::ptr::null()), open(own)];
    // SAFETY: dlsym only reads the name.
    let look = |handle: *mut _, name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) as usize };
    let mut opened = handles.iter().filter(|h| !h.is_null());
    let handle = opened.find(|&&h| look(h, NAMES[0]) != 0).copied();
    for (place, name) in OPENMP[module as usize % MODULES].iter().zip(NAMES) {
        let function = handle.map_or_else(|| symbol(name), |h| look(h, name));
        place.store(function, Ordering::Relaxed);
    }
    keep_loaded(OPENMP[module as usize % MODULES][0].load(Ordering::Relaxed));
    for handle in handles.into_iter().filter(|h| !h.is_null()) {
        // SAFETY: opened above; whoever loaded it has it open too.
        unsafe { libc::dlclose(handle) };
    }
}

/// Keeps the library of a function loaded. A program that closes its OpenMP library unloads libgomp while libgomp's threads
/// are still on their way from the last barrier: they crash, seldom without us, and often at our pace.
fn keep_loaded(function: usize) {
    // SAFETY: all-zero is a valid value; dladdr fills it if the address is in a library.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for; the name is the loader's string. What is open once more is never closed.
    unsafe {
        if libc::dladdr(function as *const _, &mut info) != 0 && !info.dli_fname.is_null() {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(info.dli_fname, flags);
        }
    }
}

/// Asks the OpenMP runtime of a site's module.
fn ask(site: u32, which: usize) -> Option<i64> {
    let (module, _) = split_site(site);
    let function = OPENMP[module as usize % MODULES][which].load(Ordering::Relaxed);
    if function == 0 {
        return None;
    }
    // SAFETY: all of them are `int f(void)` in every OpenMP runtime.
    let function: unsafe extern "C" fn() -> c_int = unsafe { core::mem::transmute(function) };
    // SAFETY: callable at any time; the runtime is loaded as long as code of the module runs.
    Some(i64::from(unsafe { function() }))
}

/// Whether the OpenMP runtime of a site's module is libomp (or Intel's), which has libgomp's functions too.
pub(crate) fn has_libomp(site: u32) -> bool {
    let (module, _) = split_site(site);
    OPENMP[module as usize % MODULES][2].load(Ordering::Relaxed) != 0
}

/// What an inline probe asks of the OpenMP runtime: numbers as in [`NAMES`], and the answer where there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question(u64, i64);

impl Question {
    pub(crate) const THREAD_NUM: Question = Question(0, 0);
    pub(crate) const NUM_THREADS: Question = Question(1, 1);
    pub(crate) const TEAM_NUM: Question = Question(3, 0);
    pub(crate) const NUM_TEAMS: Question = Question(4, 1);

    /// Asks where any register of the program may be live.
    pub(crate) fn ask(self, site: u32) -> i64 {
        extern "C" fn answer(argument: u64) -> u64 {
            ask(argument as u32, (argument >> 32) as usize).map_or(u64::MAX, |n| n as u64)
        }
        match entry::protected(answer, self.0 << 32 | u64::from(site)) {
            u64::MAX => self.1,
            number => number as i64,
        }
    }
}

/// Thread number in the current team, for code of this site's module.
pub(crate) fn thread_num(site: u32) -> i64 {
    ask(site, 0).unwrap_or(0)
}

/// Size of the current team, for code of this site's module.
pub(crate) fn num_threads(site: u32) -> i64 {
    ask(site, 1).unwrap_or(1)
}

/// Number of the current team in its league, for code of this site's module.
pub(crate) fn team_num(site: u32) -> i64 {
    ask(site, 3).unwrap_or(0)
}

/// Size of the current league, for code of this site's module.
pub(crate) fn num_teams(site: u32) -> i64 {
    ask(site, 4).unwrap_or(1)
}
