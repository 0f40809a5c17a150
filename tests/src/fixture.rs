//! The fixtures: their directives, and what their programs print.
//!
//! A directive is `//#Name[:only] text` in a comment, up to the end of the line:
//!
//! | directive | meaning |
//! |---|---|
//! | `Flags[:compiler] FLAGS` | behind the source on the compiler's command line; `{dir}` is the fixture's folder |
//! | `Variant NAME FLAGS` | one more build of it; without any there is one without a name |
//! | `Compiler NAMES` | only these compilers |
//! | `ExpectRegion[:compiler or variant] CONSTRUCTS` | `scan` finds these constructs on this line |
//! | `Labels[:variant] STABILITY WHY` | [`Stability`] |
//! | `Unrecorded[:compiler or variant] WHAT WHY` | `tasks`, `iterations`, `sections` or a construct: not recorded exactly, so not compared |
//! | `BenchSize N` | size argument for benchmarks |
//! | `Bench` | only a benchmark: no test uses it |

mod build;

pub use build::Build;

use crate::matrix::Compiler;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names of all directives.
const KNOWN: [&str; 8] = [
    "Flags",
    "Variant",
    "Compiler",
    "ExpectRegion",
    "Labels",
    "Unrecorded",
    "BenchSize",
    "Bench",
];

/// How stable the labels of a fixture's XUs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// Equal in every run, whatever the number of threads.
    Threads,
    /// Equal in every run with more than one thread.
    Teams,
    /// Equal in runs with the same number of threads.
    Runs,
    /// Different between runs, by the program's nature.
    None,
}

/// One `//#` line.
#[derive(Debug, Clone)]
struct Directive {
    line: u32,
    name: String,
    only: Option<String>,
    text: String,
}

/// A construct that `scan` has to find on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedRegion {
    /// Line of the source.
    pub line: u32,
    /// Name of the construct.
    pub construct: String,
}

/// A program of ours in `fixtures/`.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// Its name: that of the folder.
    pub name: String,
    /// Its source.
    pub source: PathBuf,
    directives: Vec<Directive>,
}

/// Names of all fixtures: the folders of `fixtures/` that hold a source of the same name, benchmarks apart.
pub fn names() -> Vec<String> {
    let root = crate::repository().join("fixtures");
    let mut names: Vec<String> = std::fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", root.display()))
        .map(|entry| {
            entry
                .expect("a folder can be listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| source_of(name).is_some() && !Fixture::open(name).is_benchmark())
        .collect();
    names.sort();
    names
}

fn source_of(name: &str) -> Option<PathBuf> {
    let folder = crate::repository().join("fixtures").join(name);
    ["c", "cpp", "f90"]
        .iter()
        .map(|e| folder.join(format!("{name}.{e}")))
        .find(|p| p.is_file())
}

/// The directives of a source.
fn directives(text: &str) -> Vec<Directive> {
    let parse = |(at, line): (usize, &str)| {
        // Fortran's comments begin with an exclamation mark.
        let (_, directive) = line.split_once("//#").or_else(|| line.split_once("!#"))?;
        let directive = directive.trim_end_matches("*/").trim();
        let (head, text) = directive
            .split_once(char::is_whitespace)
            .unwrap_or((directive, ""));
        let (name, only) = head
            .split_once(':')
            .map_or((head, None), |(n, o)| (n, Some(o.to_owned())));
        Some(Directive {
            line: at as u32 + 1,
            name: name.to_owned(),
            only,
            text: text.trim().to_owned(),
        })
    };
    text.lines().enumerate().filter_map(parse).collect()
}

impl Fixture {
    /// Reads a fixture.
    ///
    /// # Panics
    /// If there is none of this name, or if it has a directive that doesn't exist.
    pub fn open(name: &str) -> Fixture {
        let source = source_of(name).unwrap_or_else(|| panic!("no fixture {name}"));
        let text = std::fs::read_to_string(&source).expect("a fixture is text");
        let directives = directives(&text);
        for d in &directives {
            assert!(
                KNOWN.contains(&d.name.as_str()),
                "{name}, line {}: no directive {}",
                d.line,
                d.name
            );
        }
        Fixture {
            name: name.to_owned(),
            source,
            directives,
        }
    }

    fn named<'a>(&'a self, name: &'a str, only: &'a str) -> impl Iterator<Item = &'a Directive> {
        self.directives
            .iter()
            .filter(move |d| d.name == name && d.only.as_deref().is_none_or(|o| o == only))
    }

    /// The names and flags of its variants.
    pub fn variants(&self) -> Vec<(String, Vec<String>)> {
        let variants: Vec<_> = self
            .named("Variant", "")
            .map(|d| {
                let mut words = d.text.split_whitespace().map(str::to_owned);
                (words.next().expect("a variant has a name"), words.collect())
            })
            .collect();
        if variants.is_empty() {
            vec![(String::new(), Vec::new())]
        } else {
            variants
        }
    }

    /// Whether a compiler is meant to build it.
    pub fn is_for(&self, compiler: &str) -> bool {
        let mut only = self.named("Compiler", "").peekable();
        only.peek().is_none() || only.any(|d| d.text.split_whitespace().any(|c| c == compiler))
    }

    /// Whether a version of a compiler is meant to build it, and has its language.
    pub fn has_compiler(&self, compiler: &Compiler) -> bool {
        let extension = self.source.extension().unwrap_or_default();
        (self.is_for(compiler.family()) || self.is_for(&compiler.name))
            && !compiler.fixtures_without.contains(&self.name)
            && compiler.command(&extension.to_string_lossy()).is_some()
    }

    /// What `scan` has to find in a build of a variant by this compiler.
    pub fn expected_regions(&self, compiler: &str, variant: &str) -> Vec<ExpectedRegion> {
        let applies = |d: &&Directive| {
            d.only
                .as_deref()
                .is_none_or(|o| o == compiler || o == variant)
        };
        let expected = self.directives.iter().filter(|d| d.name == "ExpectRegion");
        expected
            .filter(applies)
            .flat_map(|d| {
                d.text.split_whitespace().map(|c| ExpectedRegion {
                    line: d.line,
                    construct: c.to_owned(),
                })
            })
            .collect()
    }

    /// How stable its labels are; a variant's own directive comes before the general one.
    pub fn stability(&self, variant: &str) -> Stability {
        let mut all: Vec<_> = self.named("Labels", variant).collect();
        all.sort_by_key(|d| d.only.is_none());
        let first = all
            .first()
            .unwrap_or_else(|| panic!("{} has no Labels directive", self.name));
        match first.text.split_whitespace().next() {
            Some("threads") => Stability::Threads,
            Some("teams") => Stability::Teams,
            Some("runs") => Stability::Runs,
            Some("none") => Stability::None,
            other => panic!("{}: labels can't be {other:?}", self.name),
        }
    }

    /// Whether `what` is recorded exactly, in a build of this variant by this compiler.
    pub fn is_recorded(&self, what: &str, compiler: &str, variant: &str) -> bool {
        let applies = |d: &&Directive| {
            d.only
                .as_deref()
                .is_none_or(|o| o == compiler || o == variant)
        };
        let mut missing = self
            .directives
            .iter()
            .filter(|d| d.name == "Unrecorded")
            .filter(applies);
        !missing.any(|d| d.text.split_whitespace().next() == Some(what))
    }

    /// Whether it is there to be measured only.
    pub fn is_benchmark(&self) -> bool {
        self.directives.iter().any(|d| d.name == "Bench")
    }

    /// Size argument for benchmarks.
    pub fn bench_size(&self) -> Option<&str> {
        self.directives
            .iter()
            .find(|d| d.name == "BenchSize")
            .map(|d| d.text.as_str())
    }
}

/// The numbers in the lines `NAME N` of a fixture's output (`tasks`, `iterations`, `sections`).
pub fn counts(stdout: &str) -> BTreeMap<String, u64> {
    stdout
        .lines()
        .filter_map(|line| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_with_their_lines() {
        let text = "/* why\n * //#Flags:clang -lm -DX=1,2\n */\n#pragma omp for //#ExpectRegion parallel loop\n";
        let read = directives(text);
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[0].line, read[0].name.as_str(), read[0].only.as_deref()),
            (2, "Flags", Some("clang"))
        );
        assert_eq!(read[0].text, "-lm -DX=1,2");
        assert_eq!((read[1].line, read[1].text.as_str()), (4, "parallel loop"));
    }

    #[test]
    fn counts_are_read_from_the_last_lines() {
        let read = counts("5 queens: 10 solutions\ntasks 7\niterations 0\nright\n");
        assert_eq!(read.get("tasks"), Some(&7));
        assert_eq!(read.get("iterations"), Some(&0));
        assert_eq!(read.len(), 2);
    }
}
