//! What spans are called in OTF2, and what roles they have: as Score-P does, whose names begin with `!$omp`.

use crate::kinds;
use crate::trace::Name;
use ompfuse_format::Construct;
use ompfuse_fuse::run::timeline::{Kind, Span};
use ompfuse_otf2::{Paradigm, Role};

/// A span's name without its place, its role and its paradigm. What the program names itself has no name here, nor has a
/// function or a call of another library.
pub(super) fn region(span: &Span<'_>) -> (&'static str, Role, Paradigm) {
    let kind = kinds::kind(span.construct);
    let (name, role) = match span.kind {
        Kind::Interval | Kind::Enter => (kind.name, kind.role),
        Kind::Exit => (kinds::exit(span.construct), kind.role),
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
    (name, role, kind.model.otf2)
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
