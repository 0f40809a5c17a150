//! What constructs are called in other tools' formats, in one table.

use ompfuse_format::Construct;
use ompfuse_otf2::{Paradigm, Role};

/// What a construct is called elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The programming model that it belongs to.
    pub(crate) model: Model,
    /// Its name in OTF2, without a place. Empty: the program or the called function names it.
    pub(crate) name: &'static str,
    /// Its role in OTF2.
    pub(crate) role: Role,
    /// Its role in Cube, as Score-P calls it.
    pub(crate) cube_role: &'static str,
}

/// Programming models, each with its names: as a paradigm of OTF2 and of Cube, and as a group of TAU's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub(crate) otf2: Paradigm,
    pub(crate) cube: &'static str,
    pub(crate) tau: &'static str,
}

const fn model(otf2: Paradigm, cube: &'static str, tau: &'static str) -> Model {
    Model { otf2, cube, tau }
}

const MEASUREMENT: Model = model(Paradigm::MeasurementSystem, "measurement", "TAU_DEFAULT");
const USER: Model = model(Paradigm::User, "user", "TAU_USER");
pub(crate) const COMPILER: Model = model(Paradigm::Compiler, "compiler", "TAU_USER");
const OPENMP: Model = model(Paradigm::OpenMp, "openmp", "OpenMP");
const MPI: Model = model(Paradigm::Mpi, "mpi", "MPI");
const PTHREAD: Model = model(Paradigm::Pthread, "pthread", "PTHREAD");
const IO: Model = model(Paradigm::None, "io", "TAU_IO");
const CUDA: Model = model(Paradigm::Cuda, "cuda", "TAU_CUDA");
const HIP: Model = model(Paradigm::Hip, "hip", "TAU_HIP");
const OPENCL: Model = model(Paradigm::OpenCl, "opencl", "TAU_OPENCL");

/// The table. Names in OTF2 are those of Score-P, which begin with `!$omp`.
pub(crate) fn kind(construct: Construct) -> Kind {
    let (model, name, role, cube_role) = match construct {
        Construct::Program => (MEASUREMENT, "PROGRAM", Role::Function, "artificial"),
        Construct::Parallel => (OPENMP, "!$omp parallel", Role::Parallel, "parallel"),
        Construct::ImplicitTask => (OPENMP, "!$omp implicit task", Role::Function, "unknown"),
        Construct::Loop => (OPENMP, "!$omp for", Role::Loop, "loop"),
        Construct::Range => (OPENMP, "!$omp for range", Role::Code, "loop"),
        Construct::Sections => (OPENMP, "!$omp sections", Role::Sections, "sections"),
        Construct::Section => (OPENMP, "!$omp section", Role::Section, "section"),
        Construct::Single => (OPENMP, "!$omp single", Role::SingleBlock, "single"),
        Construct::Master => (OPENMP, "!$omp master", Role::Master, "master"),
        Construct::Critical => (OPENMP, "!$omp critical", Role::Critical, "critical"),
        Construct::Atomic => (OPENMP, "!$omp atomic", Role::Atomic, "atomic"),
        Construct::Ordered => (OPENMP, "!$omp ordered", Role::Ordered, "ordered"),
        Construct::Barrier => (OPENMP, "!$omp barrier", Role::Barrier, "barrier"),
        Construct::ImplicitBarrier => (
            OPENMP,
            "!$omp implicit barrier",
            Role::ImplicitBarrier,
            "implicit barrier",
        ),
        Construct::Task => (OPENMP, "!$omp task", Role::Task, "task"),
        Construct::TaskCreate => (OPENMP, "!$omp create task", Role::TaskCreate, "task create"),
        Construct::Taskwait => (OPENMP, "!$omp taskwait", Role::TaskWait, "taskwait"),
        Construct::Taskgroup => (OPENMP, "!$omp taskgroup", Role::TaskWait, "taskwait"),
        Construct::Taskyield => (OPENMP, "!$omp taskyield", Role::Code, "unknown"),
        Construct::Taskloop => (OPENMP, "!$omp taskloop", Role::TaskCreate, "loop"),
        Construct::Lock => (OPENMP, "omp_set_lock", Role::Wrapper, "unknown"),
        Construct::Flush => (OPENMP, "!$omp flush", Role::Flush, "flush"),
        Construct::Cancel => (OPENMP, "!$omp cancel", Role::Code, "unknown"),
        Construct::Teams => (OPENMP, "!$omp teams", Role::Parallel, "parallel"),
        Construct::Distribute => (OPENMP, "!$omp distribute", Role::Loop, "loop"),
        Construct::Scope => (OPENMP, "!$omp scope", Role::Workshare, "unknown"),
        Construct::Reduction => (OPENMP, "!$omp reduction", Role::Critical, "unknown"),
        Construct::Target => (OPENMP, "!$omp target", Role::Code, "unknown"),
        Construct::Dispatch => (OPENMP, "!$omp for dispatch", Role::Wrapper, "unknown"),
        Construct::Service => (OPENMP, "!$omp service", Role::Wrapper, "unknown"),
        Construct::Team => (OPENMP, "!$omp team", Role::Function, "unknown"),
        Construct::UserRegion => (USER, "", Role::Code, "user"),
        Construct::Mpi => (MPI, "", Role::Wrapper, "function"),
        Construct::Function => (COMPILER, "", Role::Function, "function"),
        Construct::NaturalLoop => (COMPILER, "natural loop", Role::Loop, "loop"),
        Construct::Pthread => (PTHREAD, "", Role::Wrapper, "wrapper"),
        Construct::Io => (IO, "", Role::FileIo, "file_io"),
        Construct::Cuda => (CUDA, "", Role::Wrapper, "wrapper"),
        Construct::Hip => (HIP, "", Role::Wrapper, "wrapper"),
        Construct::OpenCl => (OPENCL, "", Role::Wrapper, "wrapper"),
    };
    Kind {
        model,
        name,
        role,
        cube_role,
    }
}

/// The name in OTF2 of leaving what one thread at a time is in.
pub(crate) fn exit(construct: Construct) -> &'static str {
    match construct {
        Construct::Lock => "omp_unset_lock",
        Construct::Atomic => "!$omp atomic end",
        Construct::Ordered => "!$omp ordered end",
        Construct::Reduction => "!$omp reduction end",
        _ => "!$omp critical end",
    }
}
