//! The modules of a crate, and which of them use which, read from the text of their files.

use crate::graph::Uses;
use std::collections::{BTreeMap, BTreeSet};

/// A module's place below the crate's root.
type Name = Vec<String>;

/// A crate's files by the names of their modules.
pub(crate) struct Crate {
    modules: BTreeMap<Name, Module>,
    /// By module those that it uses, its ancestors apart.
    pub(crate) uses: Uses,
}

#[derive(Default)]
struct Module {
    children: Vec<String>,
    /// What `use` brings, by the name that it has here.
    names: BTreeMap<String, Name>,
    /// Of what all is brought.
    globs: Vec<Name>,
    /// All paths in the file.
    paths: BTreeSet<Name>,
}

impl Crate {
    /// `text`: that of the file with this path below the crate's `src`.
    pub(crate) fn read(text: &dyn Fn(&str) -> Option<String>) -> Crate {
        let mut read = Crate {
            modules: BTreeMap::new(),
            uses: Uses::new(),
        };
        let root = ["lib.rs", "main.rs"].into_iter().find_map(text);
        read.add(vec![], &root.expect("a crate has a root"), text);
        for (name, module) in &read.modules {
            let used = module.paths.iter().filter_map(|p| read.find(name, p, 0));
            let used = used
                .filter(|to| !name.starts_with(to))
                .map(|to| to.join("::"));
            read.uses.insert(name.join("::"), used.collect());
        }
        read
    }

    /// The arrows between the modules of the root.
    pub(crate) fn between_roots(&self) -> BTreeSet<(String, String)> {
        let first = |name: &str| name.split("::").next().unwrap_or_default().to_owned();
        let arrows = self
            .uses
            .iter()
            .flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
        let arrows = arrows.map(|(from, to)| (first(from), first(to)));
        let is_one = |(from, to): &(String, String)| !from.is_empty() && from != to;
        arrows.filter(is_one).collect()
    }

    fn add(&mut self, name: Name, source: &str, text: &dyn Fn(&str) -> Option<String>) {
        let tokens = without_tests(&tokens(source));
        let mut module = Module::default();
        for words in tokens.windows(3) {
            let ["mod", child, ";"] = [&words[0], &words[1], &words[2]].map(|w| &**w) else {
                continue;
            };
            let below = [&name[..], &[child.to_owned()]].concat();
            let path = below.join("/");
            let found = text(&format!("{path}.rs")).or_else(|| text(&format!("{path}/mod.rs")));
            if let Some(found) = found {
                module.children.push(child.to_owned());
                self.add(below, &found, text);
            }
        }
        module.read_paths(&tokens);
        self.modules.insert(name, module);
    }

    /// The module that defines what a path means in the module `at`; `None`: another crate, or a name of this file.
    fn find(&self, at: &[String], path: &[String], depth: usize) -> Option<Name> {
        let module = self.modules.get(at)?;
        let (first, behind) = path.split_first()?;
        if depth > 20 {
            return None;
        }
        let (mut found, mut rest) = match first.as_str() {
            "crate" => (vec![], behind),
            "self" => (at.to_vec(), behind),
            "super" => {
                let up = path.iter().take_while(|p| *p == "super").count();
                (at[..at.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            _ if module.children.contains(first) => (at.to_vec(), path),
            _ => return self.find_named(at, path, depth),
        };
        while let Some((next, behind)) = rest.split_first() {
            let within = self.modules.get(&found)?;
            if !within.children.contains(next) {
                // What is handed on is defined elsewhere.
                let is_other = found != at && within.names.contains_key(next);
                let elsewhere = is_other
                    .then(|| self.find(&found, rest, depth + 1))
                    .flatten();
                return elsewhere.or(Some(found));
            }
            found.push(next.clone());
            rest = behind;
        }
        Some(found)
    }

    /// As [`Crate::find`], of a path that begins with a name that a `use` brings.
    fn find_named(&self, at: &[String], path: &[String], depth: usize) -> Option<Name> {
        let module = &self.modules[at];
        if let Some(meant) = module.names.get(&path[0]) {
            let is_same = meant[0] == path[0];
            let whole = [&meant[..], &path[1..]].concat();
            return if is_same {
                None
            } else {
                self.find(at, &whole, depth + 1)
            };
        }
        let from = module.globs.iter().find_map(|glob| {
            let from = self.find(at, glob, depth + 1).filter(|from| *from != at)?;
            let has = &self.modules[&from];
            let is_there = has.children.contains(&path[0]) || has.names.contains_key(&path[0]);
            is_there.then_some(from)
        })?;
        self.find(&from, path, depth + 1)
    }
}

impl Module {
    fn read_paths(&mut self, tokens: &[String]) {
        let mut at = 0;
        while at < tokens.len() {
            let before = at.checked_sub(1).map_or(";", |b| &tokens[b]);
            if tokens[at] == "use" && [";", "}", "{", "]", "pub", ")"].contains(&before) {
                at = self.read_use(tokens, at + 1, &[]);
            } else if tokens[at] == "in" && before == "(" {
                at += tokens[at..].iter().take_while(|t| *t != ")").count();
            } else {
                let path = path_at(&tokens[at..]);
                at += (2 * path.len()).saturating_sub(1).max(1);
                if path.len() > 1 {
                    self.paths.insert(path);
                }
            }
        }
    }

    /// A tree of `use` behind this path. Returns where it ends.
    fn read_use(&mut self, tokens: &[String], mut at: usize, within: &[String]) -> usize {
        let mut path = within.to_vec();
        loop {
            match tokens.get(at).map_or(";", String::as_str) {
                "{" => {
                    at += 1;
                    while tokens.get(at).is_some_and(|t| t != "}") {
                        at = self.read_use(tokens, at, &path);
                        at += usize::from(tokens.get(at).is_some_and(|t| t == ","));
                    }
                    return at + 1;
                }
                "*" => {
                    self.paths.insert(path.clone());
                    self.globs.push(path);
                    return at + 1;
                }
                "::" => at += 1,
                ";" => return at + 1,
                word => {
                    path.push(word.to_owned());
                    at += 1;
                    if tokens.get(at).is_some_and(|t| t == "::") {
                        continue;
                    }
                    if word == "self" && path.len() > 1 {
                        path.pop();
                    }
                    let mut name = path.last().cloned().unwrap_or_default();
                    if tokens.get(at).is_some_and(|t| t == "as") {
                        name.clone_from(&tokens[at + 1]);
                        at += 2;
                    }
                    self.paths.insert(path.clone());
                    self.names.insert(name, path);
                    return at;
                }
            }
        }
    }
}

/// The path that these tokens begin with: names with `::` between.
fn path_at(tokens: &[String]) -> Name {
    let is_name = |t: &&String| t.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let mut path: Name = tokens
        .first()
        .filter(is_name)
        .cloned()
        .into_iter()
        .collect();
    while let ([separator, next, ..], false) = (
        &tokens[(2 * path.len()).saturating_sub(1).min(tokens.len())..],
        path.is_empty(),
    ) && separator == "::"
        && is_name(&next)
    {
        path.push(next.clone());
    }
    path
}

/// Names, `::` and single characters; comments, strings, characters and lifetimes are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(len) = string(rest) {
            len
        } else if first == '\'' {
            character(rest)
        } else if is_name(first) {
            let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            tokens.push(rest[..len].to_owned());
            len
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            tokens.extend((!first.is_whitespace()).then(|| first.to_string()));
            first.len_utf8()
        };
        rest = &rest[len..];
    }
    tokens
}

/// Length of the string that a text begins with.
fn string(text: &str) -> Option<usize> {
    let begin = text.len() - text.trim_start_matches(['b', 'c']).len();
    let behind = &text[begin.min(1)..];
    if let Some(raw) = behind.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let from = text.len() - body.len();
        return Some(
            body.find(&end)
                .map_or(text.len(), |at| from + at + end.len()),
        );
    }
    let body = behind.strip_prefix('"')?;
    let from = text.len() - body.len();
    let mut is_escaped = false;
    let end = body.bytes().position(|b| {
        let is_end = b == b'"' && !is_escaped;
        is_escaped = b == b'\\' && !is_escaped;
        is_end
    });
    Some(end.map_or(text.len(), |end| from + end + 1))
}

/// Length of the character or lifetime that a text begins with.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            text[from..]
                .find('\'')
                .map_or(text.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Without what is compiled for tests only.
fn without_tests(tokens: &[String]) -> Vec<String> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = vec![];
    let mut at = 0;
    while at < tokens.len() {
        let is_test = tokens[at..].iter().take(TEST.len()).eq(TEST.iter());
        if !is_test {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        // Up to the end of the item behind it.
        let mut depth = 0;
        at += TEST.len();
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                ";" if depth == 0 => break,
                _ => {}
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_read_from_the_text() {
        let files = [
            ("lib.rs", "mod a; mod b; pub mod c; #[cfg(test)] mod tests;"),
            // An ancestor, a comment and a text are no uses; what `b` hands on is `c`'s.
            (
                "a.rs",
                "use crate::b::{Handed, self as other}; // crate::c\nmod inner; const T: &str = \"crate::c\";",
            ),
            (
                "a/inner.rs",
                "use super::*; fn f<'a>(c: char) { other::g('\\'', crate::a::x) }",
            ),
            (
                "b.rs",
                "pub use crate::c::Handed; pub(in crate::a) fn g() {}",
            ),
            (
                "c.rs",
                "fn f() { crate::a::inner::f() } #[cfg(test)] mod tests { use crate::b; }",
            ),
            ("tests.rs", "use crate::a;"),
        ];
        let text = |path: &str| {
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned())
        };
        let found = Crate::read(&text);
        let uses: Vec<(&str, String)> = (found.uses.iter())
            .map(|(from, to)| (&from[..], to.iter().cloned().collect::<Vec<_>>().join(" ")))
            .collect();
        let expected = [
            ("", ""),
            ("a", "b c"),
            ("a::inner", "b"),
            ("b", "c"),
            ("c", "a::inner"),
        ];
        assert_eq!(uses, expected.map(|(from, to)| (from, to.to_owned())));
    }
}
