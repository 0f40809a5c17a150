//! What the process around us can tell: the OpenMP runtime's thread numbers, the processor.

use crate::imports::Imports;
use crate::libraries::{keep_loaded, library_of, look, memory_of, open, symbol};
use crate::{entry, tls};
use core::ffi::{CStr, c_int};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use ompfuse_format::record::split_site;

/// Offset of rseq's `cpu_id` from the thread's TLS base; of a word that says "not known" if glibc has not registered it.
static RSEQ_CPU: AtomicUsize = AtomicUsize::new(0);
/// What is asked of an OpenMP runtime, in the order of [`ompfuse_format::abi::OWN_FUNCTIONS`]; the third only tells libomp (or
/// Intel's) from libgomp.
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

/// Where the kernel finds this thread's description of a restartable sequence (`rseq_cs`), if glibc has registered the thread. After
/// [`find_rseq`].
pub(crate) fn rseq_sequence() -> Option<*mut u64> {
    let cpu = RSEQ_CPU.load(Ordering::Relaxed);
    // SAFETY: as in `cpu`.
    let number = unsafe { tls::word_at(cpu) };
    // Negative: not registered, or registering failed.
    (cpu != tls::unknown() && number as i32 >= 0).then(|| {
        // `cpu_id` is its second half word, `rseq_cs` its second word.
        (tls::base().wrapping_add(cpu) + 4) as *mut u64
    })
}

/// Number of the processor that this thread runs on, `u16::MAX` if that can't be had cheaply. After [`find_rseq`].
#[inline(always)]
pub(crate) fn cpu() -> u16 {
    let offset = RSEQ_CPU.load(Ordering::Relaxed);
    // SAFETY: glibc keeps the area at this offset registered as long as the thread lives; negative numbers are no processor's.
    let cpu = unsafe { tls::word_at(offset) };
    cpu.min(u32::from(u16::MAX)) as u16
}

/// The functions of a runtime that is linked into a module, where a look-up by name finds none, or another runtime's.
pub(crate) fn use_openmp(module: u32, functions: [usize; NAMES.len()]) {
    for (place, function) in OPENMP[module as usize % MODULES].iter().zip(functions) {
        place.store(function, Ordering::Relaxed);
    }
}

/// A module whose functions will be bound when they are called first, to one of two runtimes: to what it has brought along if
/// its opener wants that (RTLD_DEEPBIND), which nothing else tells.
struct Undecided {
    imports: Imports,
    /// Where its own runtime is, and what is asked of that.
    memory: Range<usize>,
    functions: [usize; NAMES.len()],
}

/// By the module's number; null where there is no question.
static UNDECIDED: [AtomicPtr<Undecided>; MODULES] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MODULES];

/// Finds the OpenMP runtime that a module's calls lead to, as the loader will bind them. It is the one that its functions are
/// bound to, else what every module sees first, then what it has brought along. `name`: the loader's for it, empty for the
/// program.
pub(crate) fn find_openmp(module: u32, name: &CStr, imports: Option<Imports>) {
    let own = if name.is_empty() {
        core::ptr::null()
    } else {
        name.as_ptr()
    };
    let handles = [open(core::ptr::null()), open(own)];
    let wanted = imports.as_ref().map_or(NAMES[0], |i| i.name.as_c_str());
    let bound = imports.as_ref().and_then(Imports::bound);
    let [seen, brought] = handles.map(|handle| look(handle, wanted));
    let first = [seen, brought].into_iter().find(|&f| f != 0);
    let functions = bound.or(first).and_then(all_of).unwrap_or_else(|| {
        let mut handles = handles.into_iter();
        let handle = handles.find(|&h| look(h, NAMES[0]) != 0);
        NAMES.map(|name| handle.map_or_else(|| symbol(name), |h| look(h, name)))
    });
    let index = module as usize % MODULES;
    for (place, function) in OPENMP[index].iter().zip(functions) {
        place.store(function, Ordering::Relaxed);
    }
    keep_loaded(functions[0]);
    let undecided = imports
        .filter(|_| bound.is_none() && seen != 0 && brought != 0 && seen != brought)
        .and_then(|imports| {
            Some(Undecided {
                imports,
                memory: memory_of(brought)?,
                functions: all_of(brought)?,
            })
        });
    let undecided = undecided.map_or(core::ptr::null_mut(), |u| {
        keep_loaded(u.functions[0]);
        Box::into_raw(Box::new(u)) // for ever: a probe may be looking at it
    });
    UNDECIDED[index].store(undecided, Ordering::Release);
    for handle in handles.into_iter().filter(|h| !h.is_null()) {
        // SAFETY: opened above; whoever loaded it has it open too.
        unsafe { libc::dlclose(handle) };
    }
}

/// What is asked of the runtime that has this function; `None` if that is no library with all that must be there.
fn all_of(function: usize) -> Option<[usize; NAMES.len()]> {
    let library = open(library_of(function)?.dli_fname);
    let functions = NAMES.map(|name| look(library, name));
    if !library.is_null() {
        // SAFETY: opened above; whoever loaded it has it open too.
        unsafe { libc::dlclose(library) };
    }
    (functions[0] != 0 && functions[1] != 0).then_some(functions)
}

/// Where the runtime that a module uses has the functions.
fn openmp(module: u32) -> &'static [AtomicUsize; NAMES.len()] {
    let index = module as usize % MODULES;
    // SAFETY: set by `find_openmp`, and never freed.
    if let Some(undecided) = unsafe { UNDECIDED[index].load(Ordering::Acquire).as_ref() } {
        undecided.decide(index);
    }
    &OPENMP[index]
}

impl Undecided {
    /// Once one of the functions is bound.
    #[cold]
    #[inline(never)]
    fn decide(&self, index: usize) {
        let Some(function) = self.imports.bound() else {
            return;
        };
        if self.memory.contains(&function) {
            for (place, &function) in OPENMP[index].iter().zip(&self.functions) {
                place.store(function, Ordering::Relaxed);
            }
        }
        UNDECIDED[index].store(core::ptr::null_mut(), Ordering::Release);
    }
}

/// Asks the OpenMP runtime of a site's module.
fn ask(site: u32, which: usize) -> Option<i64> {
    let (module, _) = split_site(site);
    let function = openmp(module)[which].load(Ordering::Relaxed);
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
    openmp(module)[2].load(Ordering::Relaxed) != 0
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

/// A call has said how many threads it wants, and more than one.
static IS_SIZED: AtomicBool = AtomicBool::new(false);

/// Whether a team's size comes from the program's source, so that no variable decides it. By gcc; clang's compiler has a call for that.
pub(crate) fn are_teams_sized() -> bool {
    IS_SIZED.load(Ordering::Relaxed)
}

/// A call asks for a team of more than one thread.
#[inline(always)]
pub(crate) fn note_sized_team() {
    IS_SIZED.store(true, Ordering::Relaxed);
}
