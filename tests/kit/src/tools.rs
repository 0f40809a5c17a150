//! Tools that a machine may lack, and loops that must try something.

use std::collections::HashMap;
use std::io::Write;
use std::panic::Location;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// Whether missing tools are failures.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|v| v == "true" || v == "1")
}

/// Says that something could not be tested, past libtest's capture.
///
/// # Panics
/// With `CI=true`: there, everything has to be tested.
#[track_caller]
pub fn skip(what: &str) {
    assert!(!in_ci(), "{what}; with CI=true that is a failure");
    mention(what);
}

/// Says that something could not be tested, which is no failure anywhere: what continuous integration often lacks, such as
/// counters of the processor or a perf that fits the kernel.
#[track_caller]
pub fn mention(what: &str) {
    // One write, so that lines of several tests don't mix.
    let line = format!("SKIPPED: {what} ({})\n", Location::caller());
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether a tool is installed. Where it isn't, the test goes on without what needs it, which is said.
///
/// # Panics
/// With `CI=true`, if it isn't.
#[track_caller]
pub fn has(tool: &str) -> bool {
    let has = version(tool).is_some();
    if !has {
        skip(&format!("{tool} is not installed"));
    }
    has
}

/// First line of what a tool says of its version, `None` if it is not installed.
pub fn version(tool: &str) -> Option<String> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Option<String>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().expect("no test panics with the lock held");
    known
        .entry(tool.to_owned())
        .or_insert_with(|| {
            let output = Command::new(tool).arg("--version").output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            output
                .status
                .success()
                .then(|| text.lines().next().unwrap_or_default().to_owned())
        })
        .clone()
}

/// A loop over what `make` makes of the items. Where it makes nothing (and said so, as [`crate::compile`] does),
/// the loop goes on with the next one.
///
/// # Panics
/// With `CI=true`, at the end of the loop, if `make` made nothing of any item. Elsewhere a machine may lack the compiler, which
/// was said.
#[track_caller]
pub fn each<I, T, F>(items: I, make: F) -> Each<I::IntoIter, F>
where
    I: IntoIterator,
    F: FnMut(&I::Item) -> Option<T>,
{
    Each {
        items: items.into_iter(),
        make,
        place: Location::caller(),
        tried: 0,
        made: 0,
    }
}

/// Whether everything is tested: `tests/run.sh whole`.
pub fn is_whole() -> bool {
    std::env::var("OMPFUSE_TESTS").is_ok_and(|what| what == "whole")
}

/// So many of a list, evenly spread; all of it where everything is tested.
pub fn few<T: Clone>(all: &[T], count: usize) -> Vec<T> {
    let last = all.len().saturating_sub(1);
    let count = if is_whole() {
        all.len()
    } else {
        count.min(all.len())
    };
    let steps = count.saturating_sub(1).max(1);
    (0..count)
        .map(|at| all[at * last / steps].clone())
        .collect()
}

/// A loop over all of something, such as the builds of a fixture.
///
/// # Panics
/// With `CI=true`, at the end of the loop, if there was nothing.
#[track_caller]
pub fn some<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    each(items, |_| Some(())).map(|(item, ())| item)
}

/// See [`each`].
pub struct Each<I, F> {
    items: I,
    make: F,
    place: &'static Location<'static>,
    tried: usize,
    made: usize,
}

impl<I, T, F> Iterator for Each<I, F>
where
    I: Iterator,
    F: FnMut(&I::Item) -> Option<T>,
{
    type Item = (I::Item, T);

    fn next(&mut self) -> Option<Self::Item> {
        for item in self.items.by_ref() {
            self.tried += 1;
            if let Some(made) = (self.make)(&item) {
                self.made += 1;
                return Some((item, made));
            }
        }
        assert!(
            self.made > 0 || !in_ci(),
            "{}: a loop over {} programs ran none of them; with CI=true that is a failure",
            self.place,
            self.tried
        );
        None
    }
}
