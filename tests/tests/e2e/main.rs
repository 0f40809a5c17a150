//! End to end, through the command line only: compile the fixtures, scan, patch, run, record, combine, report.
//!
//! One binary, since every one more would be linked again. `OMPFUSE_BIN` names a command to test instead of the one
//! that is built; with `CI=true` nothing may be skipped.

/// One test per fixture and compiler: `$check(fixture, compiler)`. Of two compilers one is left to `tests/run.sh whole`.
macro_rules! for_each_fixture {
    ($check:path) => {
        for_each_fixture!(@ $check; [] [#[ignore = "tests/run.sh whole"]]);
    };
    (whole $check:path) => {
        for_each_fixture!(@ $check; [#[ignore = "tests/run.sh whole"]] [#[ignore = "tests/run.sh whole"]]);
    };
    (@ $check:path; $one:tt $other:tt) => {
        for_each_fixture!(@ $check; $one $other;
            gcc clang: cancel cholesky lifecycle locks mandelbrot mg ordered sections sync taskloop teams;
            clang gcc: cg knapsack listing11 loops nqueens rare shapes tasking taskobj unwind;
            gcc: oldabi stencil target;
            clang: kmpcalls);
    };
    (@ $check:path; $one:tt $other:tt; gcc clang: $($gcc_first:ident)*; clang gcc: $($clang_first:ident)*;
        gcc: $($gcc:ident)*; clang: $($clang:ident)*) => {
        $(mod $gcc_first {
            for_each_fixture!(@ $check, $gcc_first gcc $one);
            for_each_fixture!(@ $check, $gcc_first clang $other);
        })*
        $(mod $clang_first {
            for_each_fixture!(@ $check, $clang_first clang $one);
            for_each_fixture!(@ $check, $clang_first gcc $other);
        })*
        $(mod $gcc {
            for_each_fixture!(@ $check, $gcc gcc $one);
        })*
        $(mod $clang {
            for_each_fixture!(@ $check, $clang clang $one);
        })*
        /// The names above.
        #[allow(dead_code, reason = "one module checks them")]
        const BY_BOTH: &[&str] = &[$(stringify!($gcc_first),)* $(stringify!($clang_first)),*];
        /// Those for gcc only.
        #[allow(dead_code, reason = "one module checks them")]
        const BY_GCC: &[&str] = &[$(stringify!($gcc)),*];
        /// Those for clang only.
        #[allow(dead_code, reason = "one module checks them")]
        const BY_CLANG: &[&str] = &[$(stringify!($clang)),*];
    };
    (@ $check:path, $name:ident $compiler:ident [$(#[$attribute:meta])*]) => {
        #[test]
        $(#[$attribute])*
        fn $compiler() {
            $check(stringify!($name), stringify!($compiler));
        }
    };
}

/// The same of some fixtures, each by one compiler; of all where everything is tested (`tests/run.sh whole`).
macro_rules! for_some_fixtures {
    ($check:path; $($name:ident by $compiler:ident),*) => {
        $(#[test]
        fn $name() {
            $check(stringify!($name), stringify!($compiler));
        })*

        mod whole {
            for_each_fixture!(whole $check);
        }
    };
}

mod account;
mod accounting;
mod baselines;
mod behaviour;
mod besides;
mod blocks;
mod by_callers;
mod by_default;
mod by_time;
mod calls;
mod cancel;
mod causes;
mod columns;
mod combine;
mod contexts;
mod control;
mod cost;
mod counting;
mod counts;
mod creation;
mod damage;
mod diff;
mod disturbed;
mod divided;
mod documents;
mod elf_forms;
mod errors;
mod events;
mod executions;
mod few_tasks;
mod first_steps;
mod fixtures;
mod foreign;
mod fortran;
mod functions;
mod generated;
mod graphs;
mod hand_written;
mod history;
mod inflation;
mod inputs;
mod interposed;
mod killed;
mod labels;
mod larger_than_memory;
mod libomp;
mod libraries;
mod lifecycle;
mod lines;
mod matching;
mod matrix;
mod mutexes;
mod natural;
mod newer;
mod ompp;
mod ompt;
mod one_program;
mod over_time;
mod own_time;
mod patch;
mod pipeline;
mod planted;
mod prebuilt;
mod probe_time;
mod probes;
mod python;
mod reading;
mod repeated_input;
mod room;
mod sampled;
mod sampling;
mod scan;
mod select;
mod self_reported;
mod series;
mod settings;
mod shares;
mod simulated;
mod soak;
mod stripped;
mod summary;
mod taskcalls;
mod terminal;
mod truth;
mod undecoded;
mod unrecorded;
mod user;
mod volume;
mod waiting;

/// What other tools read, what a browser shows, and MPI: `tests/run.sh second`. Their files are here, as all others.
#[path = "."]
mod second {
    use super::control;

    pub(crate) mod exchange;
    pub(crate) mod exports;
    pub(crate) mod jobs;
    pub(crate) mod mpi;
    pub(crate) mod otf2;
    pub(crate) mod page;
    pub(crate) mod ranks;
    pub(crate) mod tables;
    pub(crate) mod timeline;
    pub(crate) mod traces;
}
use second::{page, ranks, traces};
