//! What MPI tells of a call's arguments: sizes of datatypes, a communicator's ranks, the bytes that a status is about.
//!
//! Only local questions are asked, through MPI's profiling interface and only in calls that need MPI to be initialised: they
//! send no message, and no tool between the program and MPI sees them. Arguments that MPI ignores are not looked at: they may hold anything,
//! and MPI would report an error that the program doesn't make. Handles can be freed and used again, so no answer is kept.

use crate::libraries::{keep_loaded, library_of, look, open, symbol};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Functions and variables of MPI, in the order of [`NAMES`].
#[derive(Debug, Clone, Copy)]
enum Name {
    TypeSize,
    CommRank,
    CommSize,
    CommTestInter,
    GetCount,
    StatusToC,
    TypeToC,
    CommToC,
    World,
    NullType,
    InPlace,
    StatusIgnore,
    IgnoredStatus,
    MpichInPlace,
}

const NAMES: [&CStr; 14] = [
    c"PMPI_Type_size",
    c"PMPI_Comm_rank",
    c"PMPI_Comm_size",
    c"PMPI_Comm_test_inter",
    c"PMPI_Get_count",
    c"PMPI_Status_f2c",
    // Open MPI's handles are addresses of variables, and Fortran's are numbers; MPICH's are the same numbers in both.
    c"PMPI_Type_f2c",
    c"PMPI_Comm_f2c",
    c"ompi_mpi_comm_world",
    c"ompi_mpi_datatype_null",
    // Fortran's constants are addresses of variables: Open MPI's, the program's own where it has a copy.
    c"mpi_fortran_in_place_",
    c"mpi_fortran_status_ignore_",
    // Variables that hold such addresses.
    c"MPI_F_STATUS_IGNORE",
    c"MPIR_F_MPI_IN_PLACE",
];

static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];
/// The functions are known.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// MPICH's `MPI_COMM_WORLD` and `MPI_DATATYPE_NULL`, which are the same in all libraries with its binary interface.
const MPICH_WORLD: u64 = 0x4400_0000;
const MPICH_NULL_TYPE: u64 = 0x0c00_0000;

/// More than any status has: 20 or 24 bytes.
type Status = [u64; 8];

/// The library in which one call is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mpi {
    is_open_mpi: bool,
}

/// Looks for MPI, beside a module that calls it. `name`: the loader's for it, empty for the program.
pub(crate) fn find(name: &CStr) {
    if IS_READY.load(Ordering::Acquire) {
        return;
    }
    let own = match name.is_empty() {
        true => core::ptr::null_mut(),
        false => open(name.as_ptr()),
    };
    let place = |name: &CStr| match symbol(name) {
        0 => look(own, name),
        found => found,
    };
    let type_size = place(NAMES[0]);
    let is_known = type_size != 0 && has_known_handles(type_size);
    for (found, name) in FOUND.iter().zip(NAMES).filter(|_| is_known) {
        let at = place(name);
        if at != 0 {
            keep_loaded(at); // a library that was opened may be closed, and opened again elsewhere
        }
        found.store(at, Ordering::Relaxed);
    }
    let needed = &FOUND[..=Name::StatusToC as usize];
    let is_complete = needed.iter().all(|f| f.load(Ordering::Relaxed) != 0);
    IS_READY.store(is_complete, Ordering::Release);
    if !own.is_null() {
        // SAFETY: opened above; whoever loaded it has it open too.
        unsafe { libc::dlclose(own) };
    }
}

/// Whether handles are Open MPI's or MPICH's. Those of MPI 5's standard interface are not known here.
fn has_known_handles(function: usize) -> bool {
    let library = library_of(function);
    // SAFETY: the loader's string, as long as the library is loaded.
    let path = library.map(|l| unsafe { CStr::from_ptr(l.dli_fname) }.to_bytes());
    path.is_some_and(|path| !path.windows(11).any(|w| w == b"libmpi_abi."))
}

/// MPI, if it can be asked.
#[inline]
pub(crate) fn get() -> Option<Mpi> {
    IS_READY.load(Ordering::Acquire).then(|| Mpi {
        is_open_mpi: address(Name::World) != 0,
    })
}

#[inline]
fn address(name: Name) -> usize {
    FOUND[name as usize].load(Ordering::Relaxed)
}

/// The address in a variable of MPI's; 0 if there is no such variable.
fn held(name: Name) -> usize {
    match address(name) {
        0 => 0,
        // SAFETY: a variable of MPI's library that holds an address, set before MPI is initialised.
        at => unsafe { (at as *const usize).read() },
    }
}

/// Asks `int f(HANDLE, int *)`; `None`: the answer is an error.
fn ask(name: Name, handle: u64) -> Option<i32> {
    let function = address(name);
    let mut answer: c_int = 0;
    // SAFETY: MPI's function of this type; a handle is an address or a number of 32 bits, in a register either way.
    let status = unsafe {
        let function: unsafe extern "C" fn(u64, *mut c_int) -> c_int =
            core::mem::transmute::<usize, _>(function);
        function(handle, &mut answer)
    };
    (status == 0).then_some(answer)
}

impl Mpi {
    /// A handle as C has it. `to_c`: the function for those of Fortran.
    fn handle(self, to_c: Name, handle: u64, is_fortran: bool) -> u64 {
        if !is_fortran {
            return handle;
        }
        match (self.is_open_mpi, address(to_c)) {
            (true, 0) => 0,
            (true, function) => {
                // SAFETY: Open MPI's function, which answers with an address, null for what is no handle.
                unsafe {
                    let function: unsafe extern "C" fn(c_int) -> u64 =
                        core::mem::transmute::<usize, _>(function);
                    function(handle as c_int)
                }
            }
            (false, _) => handle,
        }
    }

    /// A datatype.
    pub(crate) fn datatype(self, handle: u64, is_fortran: bool) -> u64 {
        self.handle(Name::TypeToC, handle, is_fortran)
    }

    /// A communicator.
    pub(crate) fn communicator(self, handle: u64, is_fortran: bool) -> u64 {
        self.handle(Name::CommToC, handle, is_fortran)
    }

    /// Bytes of so many elements; `None` if that can't be known.
    pub(crate) fn bytes(self, count: i64, datatype: u64) -> Option<u64> {
        let count = u64::try_from(count).ok()?;
        if count == 0 {
            return Some(0); // whatever the datatype is
        }
        let is_null = match self.is_open_mpi {
            true => datatype == 0 || datatype == address(Name::NullType) as u64,
            false => u64::from(datatype as u32) == MPICH_NULL_TYPE || datatype as u32 == 0,
        };
        if is_null {
            return None;
        }
        let size = ask(Name::TypeSize, datatype)?;
        count.checked_mul(u64::try_from(size).ok()?)
    }

    /// Whether a communicator is that of all ranks.
    pub(crate) fn is_world(self, communicator: u64) -> bool {
        match self.is_open_mpi {
            true => communicator == address(Name::World) as u64,
            false => u64::from(communicator as u32) == MPICH_WORLD,
        }
    }

    /// The caller's rank in a communicator, and how many ranks it has; `None` if it joins two groups.
    pub(crate) fn rank_and_size(self, communicator: u64) -> Option<(u64, u64)> {
        if communicator == 0 || ask(Name::CommTestInter, communicator)? != 0 {
            return None;
        }
        let rank = ask(Name::CommRank, communicator)?;
        let size = ask(Name::CommSize, communicator)?;
        Some((u64::try_from(rank).ok()?, u64::try_from(size).ok()?))
    }

    /// Whether a buffer is `MPI_IN_PLACE`.
    pub(crate) fn is_in_place(self, buffer: u64, is_fortran: bool) -> Option<bool> {
        if !is_fortran {
            let constant = if self.is_open_mpi { 1 } else { u64::MAX };
            return Some(buffer == constant);
        }
        let constant = match self.is_open_mpi {
            true => address(Name::InPlace),
            false => held(Name::MpichInPlace),
        };
        (constant != 0).then_some(buffer == constant as u64)
    }

    /// What a status says that the call filled: the message's bytes, source and tag. `None`: the program ignores it, or the
    /// bytes are no whole number of elements.
    pub(crate) fn received(self, status: u64, datatype: u64, is_fortran: bool) -> Option<Received> {
        let ignored = match (is_fortran, self.is_open_mpi) {
            (false, true) => 0,
            (false, false) => 1,
            (true, _) => {
                if status == address(Name::StatusIgnore) as u64 {
                    return None;
                }
                held(Name::IgnoredStatus) as u64
            }
        };
        if status == ignored || status == 0 {
            return None;
        }
        let mut own: Status = [0; 8];
        let status = match is_fortran {
            false => status as *const Status,
            true => {
                let function = address(Name::StatusToC);
                // SAFETY: MPI's function of this type; the program's status is none that is ignored.
                unsafe {
                    let function: unsafe extern "C" fn(u64, *mut Status) -> c_int =
                        core::mem::transmute::<usize, _>(function);
                    if function(status, &mut own) != 0 {
                        return None;
                    }
                }
                &raw const own
            }
        };
        let mut count: c_int = -1;
        // SAFETY: MPI's function of this type; the call before has filled the status.
        let (asked, source, tag) = unsafe {
            let function: unsafe extern "C" fn(*const Status, u64, *mut c_int) -> c_int =
                core::mem::transmute::<usize, _>(address(Name::GetCount));
            let asked = function(status, datatype, &mut count);
            let first = if self.is_open_mpi { 0 } else { 2 };
            let words = status.cast::<i32>();
            (
                asked,
                words.add(first).read_unaligned(),
                words.add(first + 1).read_unaligned(),
            )
        };
        if asked != 0 {
            return None;
        }
        let bytes = self.bytes(i64::from(count), datatype)?; // MPI_UNDEFINED is negative
        Some(Received { bytes, source, tag })
    }
}

/// See [`Mpi::received`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    pub(crate) source: i32,
    pub(crate) tag: i32,
}
