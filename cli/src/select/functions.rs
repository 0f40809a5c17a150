//! `--functions` and `--loops`: which functions are regions of their own, and whose loops are.

use super::pattern::{LIBRARY, file_name};
use ompfuse_format::event::exact;
use ompfuse_fuse::names::{is_called, is_path_end, matches_glob};
use ompfuse_rewriter::scan::{Known, Wanted, Wish};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The option, as several commands take it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FunctionArgs {
    /// Record these functions of the program as regions, too (may be repeated)
    ///
    /// A name as in the source (`solve`, `mesh::step`), a glob (`solve_*`, `*`), or an address (`0x401136`). Conditions may stand
    /// before the name, or alone: `file:src/solve*.c`, `size:200..` (bytes of code), `from:main_loop` (called directly from there).
    /// `lib:libfoo*:NAME` is about a library.
    #[arg(long, value_name = "NAME")]
    pub(crate) functions: Vec<FunctionPattern>,
    /// Record the loops of these functions as regions, too, with their numbers of iterations (may be repeated)
    ///
    /// Names as for --functions. The function itself is recorded with them.
    #[arg(long, value_name = "NAME")]
    pub(crate) loops: Vec<FunctionPattern>,
    /// Have the program count the instructions that it executes, without a processor's counters (may be repeated)
    ///
    /// The event is `instructions:exact`, per execution unit. All functions of recorded files are counted, or those with such names
    /// (as for --functions). The OpenMP runtime, the C library, and functions whose flow of control isn't known are not.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = EVERYTHING)]
    pub(crate) count: Vec<FunctionPattern>,
    /// What --count counts: names of events with `:exact`, separated by commas (default: instructions:exact)
    ///
    /// `ompfuse events` lists them. `--events` can name them, too.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = exact_event, requires = "count")]
    pub(crate) count_events: Vec<usize>,
}

/// Number of an event that patched code can count.
fn exact_event(text: &str) -> Result<usize, String> {
    exact::number(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = exact::names(u32::MAX).collect();
        format!("known are {}", known.join(", "))
    })
}

/// `--count` without a name.
const EVERYTHING: &str = "*";

/// One `--functions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionPattern {
    text: String,
    /// Name of a library's file, as a glob; `None`: the program itself.
    library: Option<String>,
    /// All of them hold.
    conditions: Vec<Condition>,
    name: String,
}

/// What a function is chosen by besides its name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// The end of its source file's path, as a glob.
    File(String),
    /// Its length in bytes.
    Size(RangeInclusive<u64>),
    /// The name of a function that calls it directly, as a glob.
    From(String),
}

impl FromStr for FunctionPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<FunctionPattern, String> {
        let (library, mut name) = match text.strip_prefix(LIBRARY).map(|rest| rest.split_once(':'))
        {
            None => (None, text),
            Some(Some((library, name))) => (Some(library), name),
            Some(None) => {
                return Err(
                    "no function behind lib:FILE; give one, as in lib:libfoo*:solve".to_owned(),
                );
            }
        };
        let mut conditions = Vec::new();
        while let Some((condition, rest)) = Condition::before(name)? {
            conditions.push(condition);
            name = rest;
        }
        if name.is_empty() || library.is_some_and(str::is_empty) {
            return Err("empty; give a function's name, or lib:FILE:NAME".to_owned());
        }
        Ok(FunctionPattern {
            text: text.to_owned(),
            library: library.map(str::to_owned),
            conditions,
            name: name.to_owned(),
        })
    }
}

impl Condition {
    /// The condition that a pattern begins with, and what is behind it: all names, if nothing is.
    fn before(text: &str) -> Result<Option<(Condition, &str)>, String> {
        let Some((kind, rest)) = text.split_once(':') else {
            return Ok(None);
        };
        let is_known = matches!(kind, "file" | "size" | "from");
        // `size::f` is a name.
        if !is_known || rest.starts_with(':') {
            return Ok(None);
        }
        let (value, rest) = split(rest).unwrap_or((rest, "*"));
        if value.is_empty() {
            return Err(format!("nothing behind {kind}:"));
        }
        let condition = match kind {
            "file" => Condition::File(value.to_owned()),
            "from" => Condition::From(value.to_owned()),
            _ => Condition::Size(sizes(value)?),
        };
        Ok(Some((condition, rest)))
    }

    fn holds(&self, function: &Known<'_>) -> bool {
        match self {
            Condition::File(glob) => function.file.is_some_and(|path| is_path_end(glob, path)),
            Condition::Size(range) => range.contains(&function.size),
            Condition::From(glob) => function.callers.iter().any(|name| is_called(glob, name)),
        }
    }
}

/// Splits a text at the first colon that belongs to no `::`.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    loop {
        at += text[at..].find(':')?;
        let colons = text[at..].bytes().take_while(|&b| b == b':').count();
        if colons == 1 {
            return Some((&text[..at], &text[at + 1..]));
        }
        at += colons;
    }
}

/// `200..`, `..999`, `200..999`: numbers of bytes, the ends included.
fn sizes(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = || {
        format!("size:{text} is no range of bytes; write size:200.., size:..999 or size:200..999")
    };
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, otherwise| match text {
        "" => Ok(otherwise),
        text => text.parse().map_err(|_| wrong()),
    };
    let range = number(from, 0)?..=number(to, u64::MAX)?;
    match text == ".." || range.is_empty() {
        true => Err(wrong()),
        false => Ok(range),
    }
}

impl FunctionPattern {
    fn is_glob(&self) -> bool {
        self.name.contains(['*', '?'])
    }

    fn is_about(&self, module: &str, is_program: bool) -> bool {
        match &self.library {
            None => is_program,
            Some(glob) => matches_glob(glob, file_name(module)),
        }
    }
}

impl FunctionArgs {
    /// What is wanted of a file; `None`: nothing. `is_program`: it is the one that was named, not a library that it loads.
    pub(crate) fn of(&self, module: &str, is_program: bool) -> Option<FunctionArgs> {
        let own = |all: &[FunctionPattern]| -> Vec<FunctionPattern> {
            let own = all.iter().filter(|p| p.is_about(module, is_program));
            own.cloned().collect()
        };
        let (functions, loops) = (own(&self.functions), own(&self.loops));
        // Without a name it is about every file.
        let count = self.count.iter();
        let count = count.filter(|p| p.text == EVERYTHING || p.is_about(module, is_program));
        let count: Vec<FunctionPattern> = count.cloned().collect();
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
            true => self.count.extend(FunctionPattern::from_str(EVERYTHING)),
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
        all.filter_map(|p| p.library.as_deref())
    }

    /// Whether nothing is wanted but that functions of a library that is named count.
    pub(crate) fn only_counts_library(&self) -> bool {
        self.only_counts() && self.count.iter().any(|p| p.library.is_some())
    }

    /// Whether functions are counted, and all patterns for that name some.
    pub(crate) fn counts_some(&self) -> bool {
        !self.count.is_empty() && self.count.iter().all(|p| p.text != EVERYTHING)
    }

    /// Whether functions or loops are wanted, and all patterns for that name some.
    pub(crate) fn names_some(&self) -> bool {
        let mut all = self.functions.iter().chain(&self.loops);
        !self.only_counts() && all.all(|p| p.text != EVERYTHING)
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
        self.count.iter().map(|p| p.text.as_str())
    }

    /// The other options' values.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        let all = self.functions.iter().chain(&self.loops);
        all.map(|p| p.text.as_str())
    }

    /// The options as arguments of a command.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = String> {
        let functions = self.functions.iter().map(|p| ("functions", p));
        let loops = self.loops.iter().map(|p| ("loops", p));
        let count = self.count.iter().map(|p| ("count", p));
        let all = functions.chain(loops).chain(count);
        let all = all.map(|(option, p)| format!("--{option}={}", p.text));
        let events = exact::names(self.counted()).map(|name| format!("--count-events={name}"));
        all.chain(events)
    }
}

/// What one of the two options chooses.
pub(crate) struct Chosen<'a>(&'a [FunctionPattern]);

impl Chosen<'_> {
    /// The same, if it chooses anything.
    pub(crate) fn as_wish(&self) -> Option<&dyn Wish> {
        (!self.0.is_empty()).then_some(self as &dyn Wish)
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter().flat_map(|p| &p.conditions)
    }
}

impl Wish for Chosen<'_> {
    fn wanted(&self, function: &Known<'_>) -> Wanted {
        let fits = |p: &&FunctionPattern| {
            is_called(&p.name, function.name) && p.conditions.iter().all(|c| c.holds(function))
        };
        let mut fitting = self.0.iter().filter(fits);
        match fitting.next() {
            None => Wanted::No,
            Some(first) if !first.is_glob() || fitting.any(|p| !p.is_glob()) => Wanted::ByName,
            Some(_) => Wanted::ByPattern,
        }
    }

    fn needs_files(&self) -> bool {
        let mut conditions = self.conditions();
        conditions.any(|c| matches!(c, Condition::File(_)))
    }

    fn asks_for_callees(&self, caller: &str) -> bool {
        let mut conditions = self.conditions();
        conditions.any(|c| matches!(c, Condition::From(glob) if is_called(glob, caller)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(texts: &[&str]) -> FunctionArgs {
        let functions = texts.iter().map(|t| t.parse().unwrap()).collect();
        FunctionArgs {
            functions,
            ..FunctionArgs::default()
        }
    }

    fn known(name: &str) -> Known<'_> {
        Known {
            name,
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

    #[test]
    fn all_conditions_hold() {
        let wanted = |text: &str| args(&[text]).wish().wanted(&known("f"));
        for fitting in [
            "file:src/solve*.c",
            "size:200..",
            "size:..200",
            "size:200..200:*",
            "from:mesh::step",
            "from:mesh::step:size:100..:file:solve2.c",
            "file:solve2.c:?",
        ] {
            assert_eq!(wanted(fitting), Wanted::ByPattern, "{fitting}");
        }
        assert_eq!(wanted("from:mesh::*:f"), Wanted::ByName);
        for other in [
            "file:olve2.c",
            "size:201..",
            "size:..199",
            "from:step",
            "from:mesh::step:size:..100",
            "file:solve2.c:g",
            "size::f",
        ] {
            assert_eq!(wanted(other), Wanted::No, "{other}");
        }
        assert_eq!(
            args(&["size::f"]).wish().wanted(&known("size::f")),
            Wanted::ByName
        );
        let library = args(&["lib:libfoo*:size:100..:from:mesh::step"]);
        assert!(library.of("/bin/lu.x", true).is_none());
        let library = library.of("/lib/libfoo.so", false).unwrap();
        assert_eq!(library.wish().wanted(&known("f")), Wanted::ByPattern);
        assert!(!library.wish().needs_files() && args(&["file:a.c"]).wish().needs_files());
        assert!(
            library.wish().asks_for_callees("mesh::step") && !library.wish().asks_for_callees("f")
        );
        for wrong in [
            "",
            "lib:libfoo",
            "lib:libfoo:",
            "lib::f",
            "size:200",
            "size:..",
            "size:9..8",
            "size:x..",
            "file:",
            "from:f:",
            "size:-1..",
        ] {
            assert!(wrong.parse::<FunctionPattern>().is_err(), "{wrong}");
        }
    }
}
