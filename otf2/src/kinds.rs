//! Enumerations of the format, with its numbers (`OTF2_Definitions.h`, `OTF2_GeneralDefinitions.h` of version 3).

/// What a region is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "named as in the format")]
pub enum Role {
    Function = 1,
    Wrapper = 2,
    Loop = 3,
    Code = 4,
    Parallel = 5,
    Sections = 6,
    Section = 7,
    Workshare = 8,
    SingleBlock = 10,
    Master = 11,
    Critical = 12,
    Atomic = 14,
    Barrier = 15,
    ImplicitBarrier = 16,
    Flush = 17,
    Ordered = 18,
    Task = 20,
    TaskCreate = 21,
    TaskWait = 22,
    FileIo = 27,
    Artificial = 31,
}

/// The programming model that something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Paradigm {
    /// The program's own code, as its author names it.
    User = 1,
    /// Functions, as the compiler has them.
    Compiler = 2,
    /// OpenMP.
    OpenMp = 3,
    /// MPI.
    Mpi = 4,
    /// CUDA.
    Cuda = 5,
    /// Whoever has recorded the trace.
    MeasurementSystem = 6,
    /// POSIX threads.
    Pthread = 7,
    /// OpenCL.
    OpenCl = 19,
    /// No programming model.
    None = 22,
    /// HIP.
    Hip = 23,
}

/// What a programming model does with processes and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ParadigmClass {
    /// It has processes.
    Process = 0,
    /// It forks and joins threads.
    ThreadForkJoin = 1,
}

/// What a node of the system tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SystemDomain {
    /// The whole machine.
    Machine = 0,
    /// A host: what shares memory.
    SharedMemory = 1,
}
