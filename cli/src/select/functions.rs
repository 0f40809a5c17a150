//! `--functions` and `--loops`: which functions are regions of their own, and whose loops are.

use ompfuse_format::Construct;
use ompfuse_format::event::exact;
use ompfuse_fuse::names::{Chooses, Place, Selector};
use ompfuse_rewriter::scan::{Known, Wanted, Wish};

/// The option, as several commands take it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FunctionArgs {
    /// Record these functions of the program as regions, too (may be repeated)
    ///
    /// S is a selector: a function (`solve`, `mesh::*`), a file (`lu.c`), an address, a library (`lib:libfoo*:solve`), `size:200..` (bytes
    /// of code), or `from:main_loop` (called directly from there).
    #[arg(long, value_name = "S", value_parser = functions)]
    pub(crate) functions: Vec<Selector>,
    /// Record the loops of these functions as regions, too, with their numbers of iterations (may be repeated)
    ///
    /// Selectors as for --functions. The function itself is recorded with them.
    #[arg(long, value_name = "S", value_parser = functions)]
    pub(crate) loops: Vec<Selector>,
    /// Have the program count the instructions that it executes, without a processor's counters (may be repeated)
    ///
    /// The event is `instructions:exact`, or what --events names of such events (`ompfuse events` lists them), per execution unit. All
    /// functions of recorded files are counted, or those that S chooses (as for --functions). The OpenMP runtime, the C library, and
    /// functions whose flow of control isn't known are not.
    #[arg(long, value_name = "S", value_parser = functions, num_args = 0..=1, require_equals = true, default_missing_value = EVERYTHING)]
    pub(crate) count: Vec<Selector>,
    /// What is counted, by number; empty: instructions. `--events` names them.
    #[arg(skip)]
    pub(crate) count_events: Vec<usize>,
}

/// Number of an event that patched code can count.
pub(super) fn exact_event(text: &str) -> Result<usize, String> {
    exact::number(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = exact::names(u32::MAX).collect();
        format!("known are {}", known.join(", "))
    })
}

/// `--count` without a name.
const EVERYTHING: &str = "*";

/// Whether it is about a file. `is_program`: it is the one that was named, not a library that it loads.
fn is_about(selector: &Selector, module: &str, is_program: bool) -> bool {
    match selector.library() {
        None => is_program,
        Some(_) => selector.is_about(module),
    }
}

/// A value of the options.
fn functions(text: &str) -> Result<Selector, String> {
    Selector::parse(text, Chooses::Functions)
}

impl FunctionArgs {
    /// What is wanted of a file; `None`: nothing. `is_program`: it is the one that was named, not a library that it loads.
    pub(crate) fn of(&self, module: &str, is_program: bool) -> Option<FunctionArgs> {
        let own = |all: &[Selector]| -> Vec<Selector> {
            let own = all.iter().filter(|p| is_about(p, module, is_program));
            own.cloned().collect()
        };
        let (functions, loops) = (own(&self.functions), own(&self.loops));
        // Without a name it is about every file.
        let count = self.count.iter();
        let count = count.filter(|p| p.text() == EVERYTHING || is_about(p, module, is_program));
        let count: Vec<Selector> = count.cloned().collect();
        let is_empty = functions.is_empty() && loops.is_empty() && count.is_empty();
        (!is_empty).then_some(FunctionArgs {
            functions,
            loops,
            count,
            count_events: self.count_events.clone(),
        })
    }

    /// Has an event counted, too: in all functions, if none are counted yet.
    pub(crate) fn count_event(&mut self, event: usize) {
        match self.count.is_empty() {
            true => self.count.extend(functions(EVERYTHING)),
            // What is counted where no event is named.
            false if self.count_events.is_empty() => self.count_events.push(0),
            false => {}
        }
        self.count_events.push(event);
    }

    /// The set of events that are counted, if any are.
    pub(crate) fn counted(&self) -> u32 {
        let named = self.count_events.iter().fold(0, |set, n| set | 1 << n);
        match (self.count.is_empty(), named) {
            (true, _) => 0,
            (false, 0) => 1,
            (false, named) => named,
        }
    }

    /// Whether nothing is wanted but that instructions are counted.
    pub(crate) fn only_counts(&self) -> bool {
        self.functions.is_empty() && self.loops.is_empty()
    }

    /// Which functions of its file are wanted.
    pub(crate) fn wish(&self) -> Chosen<'_> {
        Chosen(&self.functions)
    }

    /// Of which ones the loops are.
    pub(crate) fn loops_wish(&self) -> Chosen<'_> {
        Chosen(&self.loops)
    }

    /// Which ones are counted.
    pub(crate) fn count_wish(&self) -> Chosen<'_> {
        Chosen(&self.count)
    }

    /// Names of libraries with functions that are wanted, as globs.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &str> {
        let all = self.functions.iter().chain(&self.loops);
        let all = all.chain(&self.count);
        all.filter_map(Selector::library)
    }

    /// Whether nothing is wanted but that functions of a library that is named count.
    pub(crate) fn only_counts_library(&self) -> bool {
        self.only_counts() && self.count.iter().any(|p| p.library().is_some())
    }

    /// Whether functions are counted, and all patterns for that name some.
    pub(crate) fn counts_some(&self) -> bool {
        !self.count.is_empty() && self.count.iter().all(|p| p.text() != EVERYTHING)
    }

    /// Whether functions or loops are wanted, and all patterns for that name some.
    pub(crate) fn names_some(&self) -> bool {
        let mut all = self.functions.iter().chain(&self.loops);
        !self.only_counts() && all.all(|p| p.text() != EVERYTHING)
    }

    /// The options that say so.
    pub(crate) fn options(&self) -> &'static str {
        match (self.functions.is_empty(), self.loops.is_empty()) {
            (false, true) => "--functions",
            (true, false) => "--loops",
            _ => "--functions and --loops",
        }
    }

    /// The patterns of functions that are counted.
    pub(crate) fn count_texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.count.iter().map(Selector::text)
    }

    /// The other options' values.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        let all = self.functions.iter().chain(&self.loops);
        all.map(Selector::text)
    }

    /// The options as arguments of a command.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = String> {
        let functions = self.functions.iter().map(|p| ("functions", p));
        let loops = self.loops.iter().map(|p| ("loops", p));
        let count = self.count.iter().map(|p| ("count", p));
        let all = functions.chain(loops).chain(count);
        let all = all.map(|(option, p)| format!("--{option}={}", p.text()));
        let events = exact::names(self.counted()).map(|name| format!("--events={name}"));
        all.chain(events)
    }
}

/// What one of the two options chooses.
pub(crate) struct Chosen<'a>(&'a [Selector]);

impl Chosen<'_> {
    /// The same, if it chooses anything.
    pub(crate) fn as_wish(&self) -> Option<&dyn Wish> {
        (!self.0.is_empty()).then_some(self as &dyn Wish)
    }
}

impl Wish for Chosen<'_> {
    fn wanted(&self, function: &Known<'_>) -> Wanted {
        let place = Place {
            construct: Some(Construct::Function),
            address: Some(function.start),
            file: function.file,
            function: Some(function.name),
            size: Some(function.size),
            callers: function.callers,
            ..Place::default()
        };
        let mut fitting = self
            .0
            .iter()
            .filter(|selector| selector.matches_in_module(&place));
        match fitting.next() {
            None => Wanted::No,
            Some(first) if first.is_one_function() || fitting.any(Selector::is_one_function) => {
                Wanted::ByName
            }
            Some(_) => Wanted::ByPattern,
        }
    }

    fn needs_files(&self) -> bool {
        self.0.iter().any(Selector::needs_files)
    }

    fn asks_for_callees(&self, caller: &str) -> bool {
        self.0.iter().any(|s| s.asks_for_callees(caller))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(texts: &[&str]) -> FunctionArgs {
        let functions = texts.iter().map(|t| functions(t).unwrap()).collect();
        FunctionArgs {
            functions,
            ..FunctionArgs::default()
        }
    }

    fn known(name: &str) -> Known<'_> {
        Known {
            name,
            start: 0x1000,
            entry: 0x1000,
            size: 200,
            file: Some("/home/x/src/solve2.c"),
            callers: &["_ZN4mesh4stepEv"],
        }
    }

    #[test]
    fn functions_of_the_program_and_of_libraries() {
        let all = args(&["solve", "mesh::*", "lib:libfoo*:step"]);
        let own = all.of("/bin/lu.x", true).unwrap();
        assert_eq!(own.wish().wanted(&known("solve")), Wanted::ByName);
        assert_eq!(
            own.wish().wanted(&known("_ZN4mesh4stepEv")),
            Wanted::ByPattern
        );
        assert_eq!(own.wish().wanted(&known("step")), Wanted::No);
        let library = all.of("/lib/libfoo.so.1", false).unwrap();
        assert_eq!(library.wish().wanted(&known("step")), Wanted::ByName);
        assert_eq!(library.wish().wanted(&known("solve")), Wanted::No);
        assert!(all.of("/lib/libbar.so", false).is_none());
        assert_eq!(args(&["*", "f"]).wish().wanted(&known("f")), Wanted::ByName);
    }
}
