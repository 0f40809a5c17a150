//! Which rows constructs have.

use ompfuse_format::Construct;

/// What a row is that an interval belongs to; `None`: it has none (waits, services, code outside of constructs). `at`: what begins
/// at its site.
pub(super) fn kind(construct: Construct, at: Option<Construct>) -> Option<Construct> {
    use Construct as C;
    Some(match construct {
        C::Parallel | C::ImplicitTask => C::Parallel,
        C::Teams | C::Team => C::Teams,
        C::Loop | C::Range | C::Dispatch => match at {
            Some(kind @ (C::Taskloop | C::Distribute | C::Sections)) => kind,
            _ => C::Loop,
        },
        C::Sections | C::Section => C::Sections,
        C::Task | C::TaskCreate => match at {
            Some(C::Taskloop) => C::Taskloop,
            _ => C::Task,
        },
        C::Program | C::Service => return None,
        _ if construct.is_wait() => return None,
        C::Reduction | C::Flush | C::Cancel | C::Taskyield | C::Taskgroup => return None,
        other => other,
    })
}

/// The row of a wait that the source has: see [`super::super::side::Interface`].
pub(super) fn wait(construct: Construct) -> Option<Construct> {
    let is_written = matches!(construct, Construct::Barrier | Construct::Taskwait);
    is_written.then_some(construct)
}
