//! Programs of the soak: trees of constructs.

/// A program.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Functions of its own, each calling earlier ones only.
    pub(super) functions: Vec<Vec<Part>>,
    /// What `main` does.
    pub(super) main: Vec<Part>,
}

/// A statement or construct.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Number by which its variables are named.
    pub(super) id: usize,
    /// What it is.
    pub(super) form: Form,
    /// Clauses of its directive.
    pub(super) clauses: Vec<String>,
    /// What is in it: one list, of `sections` one for each.
    pub(super) bodies: Vec<Vec<Part>>,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// Arithmetic of some kind, added to the result.
    Work(usize),
    /// Its body several times.
    Repeat(usize),
    /// Its body if the inherited value is odd.
    When,
    /// An exception that is caught behind its body.
    Throw,
    /// A call of a function.
    Call(usize),
    /// `parallel`.
    Parallel,
    /// A loop of some kind.
    Loop(Kind, Range),
    /// `sections`; in one directive with `parallel`, if that is set.
    Sections(bool),
    /// `single`; the flag: its value is copied to the others.
    Single(bool),
    /// `master`.
    Master,
    /// A critical section.
    Critical,
    /// Between setting a lock and unsetting it.
    Lock,
    /// `barrier`.
    Barrier,
    /// `task`.
    Task,
    /// So many tasks that depend on each other.
    Chain(usize),
    /// So many tasks that take part in a reduction.
    Reducing(usize),
    /// `taskwait`.
    Taskwait,
    /// `taskgroup`.
    Taskgroup,
}

/// What divides a loop's iterations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// `for` in a team that exists.
    For,
    /// `parallel for`.
    ParallelFor,
    /// `for` with an ordered part.
    Ordered,
    /// `taskloop` with so many tasks.
    Taskloop(usize),
}

/// The iterations of a loop.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range {
    /// Type of the variable.
    pub(super) of: &'static str,
    /// Number of iterations.
    pub(super) count: usize,
    /// How the head is written.
    pub(super) style: usize,
    /// Iterations of a second loop that is collapsed with it.
    pub(super) inner: Option<usize>,
    /// A variable of the enclosing `parallel` is reduced.
    pub(super) reduces: bool,
    /// A variable of the enclosing `parallel` takes the last value.
    pub(super) lasts: bool,
}

/// Kinds of work that may be done anywhere; the next one is for places where a whole team comes by.
pub(super) const ANYWHERE: usize = 8;

impl Program {
    /// The same without one of its parts, or without a part's clauses; `None` behind the last of these changes.
    pub(super) fn smaller(&self, change: usize) -> Option<Program> {
        let mut program = self.clone();
        let mut left = change;
        let changed = program
            .functions
            .iter_mut()
            .any(|list| reduce(list, &mut left))
            || reduce(&mut program.main, &mut left);
        changed.then_some(program)
    }

    /// Number of parts.
    pub(super) fn size(&self) -> usize {
        fn size(list: &[Part]) -> usize {
            let inner = |p: &Part| p.bodies.iter().map(|b| size(b)).sum::<usize>();
            list.iter().map(|p| 1 + inner(p)).sum()
        }
        self.functions.iter().map(|f| size(f)).sum::<usize>() + size(&self.main)
    }
}

/// Makes the change numbered `left`, and says whether there was one.
fn reduce(list: &mut Vec<Part>, left: &mut usize) -> bool {
    for i in 0..list.len() {
        if *left == 0 {
            list.remove(i);
            return true;
        }
        *left -= 1;
        for clause in 0..list[i].clauses.len() {
            // Without its clause a loop isn't an ordered one; the number of a taskloop's tasks is counted with.
            let needed = ["ordered", "num_tasks"];
            if needed
                .iter()
                .any(|n| list[i].clauses[clause].starts_with(n))
            {
                continue;
            }
            if *left == 0 {
                list[i].clauses.remove(clause);
                return true;
            }
            *left -= 1;
        }
        for body in 0..list[i].bodies.len() {
            if reduce(&mut list[i].bodies[body], left) {
                return true;
            }
        }
    }
    false
}
