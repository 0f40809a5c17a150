//! What spans are called in OTF2, and what roles they have: as Score-P does, whose names begin with `!$omp`.

use crate::trace::Name;
use ompfuse_format::Construct;
use ompfuse_fuse::run::timeline::{Kind, Span};
use ompfuse_otf2::{Paradigm, Role};

/// A span's name without its place, its role and its paradigm. What the program names itself has no name here, nor has a
/// function or a call of another library.
pub(super) fn region(span: &Span<'_>) -> (&'static str, Role, Paradigm) {
    let (name, role) = match span.kind {
        Kind::Interval => interval(span.construct),
        Kind::Enter => enter(span.construct),
        Kind::Exit => exit(span.construct),
        Kind::Startup if span.construct == Construct::Teams => {
            ("!$omp teams begin", Role::Artificial)
        }
        Kind::Startup => ("!$omp parallel begin", Role::Artificial),
        // Where the team waits for its last thread.
        Kind::End => ("!$omp implicit barrier", Role::ImplicitBarrier),
        Kind::Shutdown if span.construct == Construct::Teams => {
            ("!$omp teams end", Role::Artificial)
        }
        Kind::Shutdown => ("!$omp parallel end", Role::Artificial),
    };
    let paradigm = match span.construct {
        Construct::Program => Paradigm::MeasurementSystem,
        Construct::UserRegion => Paradigm::User,
        Construct::Function | Construct::NaturalLoop => Paradigm::Compiler,
        Construct::Mpi => Paradigm::Mpi,
        Construct::Pthread => Paradigm::Pthread,
        Construct::Io => Paradigm::None,
        Construct::Cuda => Paradigm::Cuda,
        Construct::Hip => Paradigm::Hip,
        _ => Paradigm::OpenMp,
    };
    (name, role, paradigm)
}

fn interval(construct: Construct) -> (&'static str, Role) {
    match construct {
        Construct::Program => ("PROGRAM", Role::Function),
        Construct::Parallel => ("!$omp parallel", Role::Parallel),
        Construct::Teams => ("!$omp teams", Role::Parallel),
        Construct::ImplicitTask => ("!$omp implicit task", Role::Function),
        Construct::Team => ("!$omp team", Role::Function),
        Construct::Loop => ("!$omp for", Role::Loop),
        Construct::Distribute => ("!$omp distribute", Role::Loop),
        Construct::Range => ("!$omp for range", Role::Code),
        Construct::Dispatch => ("!$omp for dispatch", Role::Wrapper),
        Construct::Sections => ("!$omp sections", Role::Sections),
        Construct::Section => ("!$omp section", Role::Section),
        Construct::Single => ("!$omp single", Role::SingleBlock),
        Construct::Master => ("!$omp master", Role::Master),
        Construct::Barrier => ("!$omp barrier", Role::Barrier),
        Construct::ImplicitBarrier => ("!$omp implicit barrier", Role::ImplicitBarrier),
        Construct::Task => ("!$omp task", Role::Task),
        Construct::TaskCreate => ("!$omp create task", Role::TaskCreate),
        Construct::Taskloop => ("!$omp taskloop", Role::TaskCreate),
        Construct::Taskwait => ("!$omp taskwait", Role::TaskWait),
        Construct::Taskgroup => ("!$omp taskgroup", Role::TaskWait),
        Construct::Taskyield => ("!$omp taskyield", Role::Code),
        Construct::Flush => ("!$omp flush", Role::Flush),
        Construct::Cancel => ("!$omp cancel", Role::Code),
        Construct::Scope => ("!$omp scope", Role::Workshare),
        Construct::Target => ("!$omp target", Role::Code),
        Construct::Service => ("!$omp service", Role::Wrapper),
        // Its name is the call's.
        Construct::Mpi | Construct::Pthread | Construct::Cuda | Construct::Hip => {
            ("", Role::Wrapper)
        }
        Construct::Io => ("", Role::FileIo),
        Construct::UserRegion => ("", Role::Code),
        Construct::Function => ("", Role::Function),
        Construct::NaturalLoop => ("natural loop", Role::Loop),
        Construct::Critical
        | Construct::Atomic
        | Construct::Ordered
        | Construct::Lock
        | Construct::Reduction => enter(construct),
    }
}

fn enter(construct: Construct) -> (&'static str, Role) {
    match construct {
        Construct::Lock => ("omp_set_lock", Role::Wrapper),
        Construct::Atomic => ("!$omp atomic", Role::Atomic),
        Construct::Ordered => ("!$omp ordered", Role::Ordered),
        Construct::Reduction => ("!$omp reduction", Role::Critical),
        _ => ("!$omp critical", Role::Critical),
    }
}

fn exit(construct: Construct) -> (&'static str, Role) {
    match construct {
        Construct::Lock => ("omp_unset_lock", Role::Wrapper),
        Construct::Atomic => ("!$omp atomic end", Role::Atomic),
        Construct::Ordered => ("!$omp ordered end", Role::Ordered),
        Construct::Reduction => ("!$omp reduction end", Role::Critical),
        _ => ("!$omp critical end", Role::Critical),
    }
}

/// Whether entering takes a lock. Atomic operations and reductions have none that a program could name.
pub(super) fn is_lock(construct: Construct) -> bool {
    matches!(
        construct,
        Construct::Critical | Construct::Lock | Construct::Ordered
    )
}

/// A region's name: `!$omp for @solve.c:42`.
pub(super) fn name(what: &str, name: &Name, program: &str, span: &Span<'_>) -> String {
    if span.construct == Construct::Program {
        return program.to_owned();
    }
    match span.construct {
        Construct::UserRegion => return name.text.clone(),
        Construct::Function => return name.what.clone(),
        _ => {}
    }
    // A mutex of threads has the name of the function that takes it, and OpenMP's locks have no such sign.
    let is_mutex = span.construct == Construct::Lock && name.what.contains('_');
    let what = match what.is_empty() || is_mutex {
        true => &name.what,
        false => what,
    };
    match &name.place {
        Some(place) => format!("{what} @{place}"),
        None => what.to_owned(),
    }
}
