//! Where the directives of a source are and how far they reach, as the compiler's preprocessor leaves it.

use super::file_name;
use ompfuse_tests::fixture::Build;
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::process;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The statements that directives of each kind are for: first and last line, by file name and kind.
#[derive(Debug, Default)]
pub(super) struct Directives {
    extents: BTreeMap<(String, String), BTreeSet<(u64, u64)>>,
    /// Lines where a comment alone tells the kind: calls of the runtime in the source itself.
    calls: BTreeSet<(String, String, u64)>,
}

/// A line of preprocessed text with its place in the source.
struct Line<'a> {
    text: &'a str,
    file: String,
    number: u64,
}

impl Directives {
    /// Those of a fixture's build.
    pub(super) fn of_build(build: &Build) -> Directives {
        let fixture = &build.fixture;
        let versions = &Matrix::get().versions;
        let compiler = versions.iter().find(|v| v.name == build.version);
        let compiler = compiler.expect("the build is of a version in the matrix");
        let path = fixture.source.to_string_lossy();
        let source = file_name(&path);
        let mut found = match source.rsplit('.').next().unwrap_or_default() {
            "f90" => Directives::of_fortran(&fixture.source),
            extension => {
                let command = compiler.command(extension).expect("it was compiled");
                let args = fixture.arguments(&build.variant, compiler);
                Directives::of_c(command, &args.expect("the variant was built"))
            }
        };
        for expected in fixture.expected_regions(build.compiler, &build.variant) {
            let line = u64::from(expected.line);
            if !found.lines(source, &expected.construct).contains(&line) {
                let call = (source.to_owned(), expected.construct, line);
                found.calls.insert(call);
            }
        }
        found
    }

    /// What a C compiler's preprocessor makes of a source, `_Pragma` in macros included.
    pub(super) fn of_c(command: &str, args: &[String]) -> Directives {
        let mut preprocess = Command::new(command);
        preprocess.args(["-E", "-fopenmp"]).args(args);
        let text = process::run(&mut preprocess).ok("preprocessing").text();
        let mut lines: Vec<Line<'_>> = vec![];
        let (mut file, mut next) = (String::new(), 0);
        for text in text.lines() {
            let mark = text.strip_prefix("# ").and_then(|m| m.split_once(' '));
            if let Some((number, rest)) = mark.and_then(|(n, r)| Some((n.parse().ok()?, r))) {
                next = number;
                file = file_name(rest.split('"').nth(1).unwrap_or_default()).to_owned();
                continue;
            }
            lines.push(Line {
                text,
                file: file.clone(),
                number: next,
            });
            next += 1;
        }
        let mut found = Directives::default();
        for (at, line) in lines.iter().enumerate() {
            if let Some(text) = line.text.trim_start().strip_prefix("#pragma omp ") {
                // What stands alone is told by nothing behind it.
                if text.starts_with("ordered") && text.contains("depend") {
                    continue;
                }
                let rest = &lines[at + 1..];
                let end = statement(rest).filter(|&n| rest[n].file == line.file);
                let last = end.map_or(line.number, |n| rest[n].number);
                found.add(&line.file, (line.number, last), text);
            }
        }
        found
    }

    /// Those of a Fortran source: up to the next end of such a directive.
    fn of_fortran(path: &Path) -> Directives {
        let text = std::fs::read_to_string(path).expect("a source is text");
        let path = path.to_string_lossy();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let mut found = Directives::default();
        for (at, line) in lines.iter().enumerate() {
            let Some(text) = line
                .strip_prefix("!$omp ")
                .filter(|t| !t.starts_with("end "))
            else {
                continue;
            };
            let word = text.split([' ', '(']).next().unwrap_or_default();
            let end = format!("!$omp end {word}");
            let reach = lines[at..].iter().position(|l| l.starts_with(&end));
            let first = at as u64 + 1;
            let extent = (first, first + reach.unwrap_or(0) as u64);
            found.add(file_name(&path), extent, text);
        }
        found
    }

    fn add(&mut self, file: &str, extent: (u64, u64), directive: &str) {
        let head = directive.split(['(', '!']).next().unwrap_or_default();
        for word in head.split([' ', ',']) {
            let kind = match word {
                "for" | "do" => "loop",
                "masked" => "master",
                other => other,
            };
            let key = (file.to_owned(), kind.to_owned());
            self.extents.entry(key).or_default().insert(extent);
        }
    }

    /// Lines of the directives of a kind.
    pub(super) fn lines(&self, file: &str, kind: &str) -> BTreeSet<u64> {
        let key = (file.to_owned(), kind.to_owned());
        let extents = self.extents.get(&key);
        extents.into_iter().flatten().map(|e| e.0).collect()
    }

    /// Whether the source has directives of a kind.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.extents.keys().any(|(_, k)| k == kind)
    }

    /// Line of the innermost directive of a kind whose statement, or the directive itself, is on this line.
    pub(super) fn at(&self, kind: &str, file: &str, line: u64) -> Option<u64> {
        let key = (file.to_owned(), kind.to_owned());
        let around = self.extents.get(&key)?.iter().rev();
        let mut around = around.filter(|e| e.0 <= line && line <= e.1);
        around.next().map(|e| e.0)
    }

    /// Whether the source itself calls the runtime there.
    pub(super) fn is_call(&self, kind: &str, file: &str, line: u64) -> bool {
        let call = (file.to_owned(), kind.to_owned(), line);
        self.calls.contains(&call)
    }
}

/// Index of the line where the first statement ends.
fn statement(lines: &[Line<'_>]) -> Option<usize> {
    let mut cursor = Cursor {
        lines,
        line: 0,
        column: 0,
    };
    cursor.statement()?;
    Some(cursor.line)
}

/// A place in preprocessed text, after the character that was read last.
struct Cursor<'a> {
    lines: &'a [Line<'a>],
    line: usize,
    column: usize,
}

impl Cursor<'_> {
    fn rest(&self) -> Option<&str> {
        self.lines.get(self.line).map(|l| &l.text[self.column..])
    }

    /// Goes to the next character that is no blank and in no directive.
    fn skip(&mut self) -> Option<()> {
        loop {
            let rest = self.rest()?;
            let text = rest.trim_start();
            if text.is_empty() || text.starts_with('#') {
                (self.line, self.column) = (self.line + 1, 0);
                continue;
            }
            self.column += rest.len() - text.len();
            return Some(());
        }
    }

    /// Goes behind the next end character outside of brackets.
    fn until(&mut self, end: char) -> Option<()> {
        let mut depth = 0;
        loop {
            self.skip()?;
            let rest = self.rest()?;
            let c = rest.chars().next()?;
            let length = match c {
                '"' | '\'' => quoted(rest, c),
                _ => c.len_utf8(),
            };
            self.column += length;
            match c {
                '(' | '{' | '[' => depth += 1,
                ')' | '}' | ']' => depth -= 1,
                _ => {}
            }
            if c == end && depth == 0 {
                return Some(());
            }
        }
    }

    fn keyword(&mut self, word: &str) -> bool {
        let after = self.rest().and_then(|r| r.strip_prefix(word));
        let is_it =
            after.is_some_and(|a| !a.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        self.column += if is_it { word.len() } else { 0 };
        is_it
    }

    fn statement(&mut self) -> Option<()> {
        self.skip()?;
        if self.rest()?.starts_with('{') {
            return self.until('}');
        }
        if self.keyword("for") || self.keyword("while") || self.keyword("switch") {
            self.until(')')?;
            return self.statement();
        }
        if self.keyword("if") {
            self.until(')')?;
            self.statement()?;
            let (line, column) = (self.line, self.column);
            self.skip()?;
            if self.keyword("else") {
                return self.statement();
            }
            (self.line, self.column) = (line, column);
            return Some(());
        }
        self.until(';')
    }
}

/// Length of the string or character that a text begins with.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, c)| {
        let ends = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, c)| at + c.len_utf8())
}
