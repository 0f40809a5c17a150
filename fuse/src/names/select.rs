//! Selectors: how options choose code by name. All of them have this grammar; each takes what it has data for.
//!
//! ```text
//! SELECTOR  = "lib:" FILE | [ "lib:" FILE ":" ] PART
//! PART      = NAME | CONDITION [ ":" PART ]
//! CONDITION = "file:" PATH | "size:" [ BYTES ] ".." [ BYTES ] | "from:" FUNCTION
//! NAME      = CONSTRUCT | "0x" ADDRESS | PATH [ ":" LINE ] | "fn:" FUNCTION | "user:" REGION | FUNCTION
//! ```
//!
//! FILE, PATH, LINE, FUNCTION and REGION may have `*` and `?`.

mod place;
#[cfg(test)]
mod tests;

pub use place::Place;

use super::{is_called, is_path_end, matches_glob, quoted};
use ompfuse_format::Construct;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Prefix of the name of a file that is patched.
const LIBRARY: &str = "lib:";

/// Endings of source files: a name with one of them is no function's.
const SOURCES: [&str; 25] = [
    "C", "F", "F03", "F08", "F90", "F95", "c", "c++", "cc", "cpp", "cu", "cxx", "f", "f03", "f08",
    "f90", "f95", "for", "ftn", "h", "hh", "hpp", "hxx", "inc", "inl",
];

/// What an option chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chooses {
    /// Regions of one build.
    Regions,
    /// Functions, to be recorded or counted.
    Functions,
    /// Regions that two builds have.
    OfBuilds,
}

/// One selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    text: String,
    /// Where it stands, if that is a file: `FILE:LINE`.
    origin: Option<String>,
    /// Name of the module, as a glob; `None`: any.
    library: Option<String>,
    /// All of them hold.
    conditions: Vec<Condition>,
    name: Name,
}

/// What code is chosen by besides its name. Texts are globs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// The end of its source file's path, and its line; `None`: any.
    Source(String, Option<String>),
    /// The function's length in bytes.
    Size(RangeInclusive<u64>),
    /// The name of a function that calls it directly.
    From(String),
}

/// Texts are globs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Any,
    Construct(Construct),
    Address(u64),
    /// The constructs in a function, calls of a library's function, and critical sections of this name.
    In(String),
    /// A function that is a region itself.
    Itself(String),
    /// Both, and what is in a source file or module of this name.
    Either(String),
    /// A region that the program itself names, through ompfuse.h.
    User(String),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Selector, String> {
        Selector::parse(text, Chooses::Regions)
    }
}

impl Selector {
    /// Reads one.
    ///
    /// # Errors
    /// It means nothing, or nothing that this can choose; the error says why, and what to give.
    ///
    /// ```
    /// # use ompfuse_fuse::names::{Chooses, Selector};
    /// assert!(Selector::parse("size:200..:solve*", Chooses::Functions).is_ok());
    /// let error = Selector::parse("0x401136", Chooses::OfBuilds).unwrap_err();
    /// assert_eq!(error, "addresses differ between builds; give a function, FILE:LINE or FILE");
    /// ```
    pub fn parse(text: &str, what: Chooses) -> Result<Selector, String> {
        let (library, mut rest) = match text.strip_prefix(LIBRARY) {
            None => (None, Some(text)),
            Some(named) => match named.split_once(':') {
                Some((library, rest)) => (Some(library), Some(rest)),
                None => (Some(named), None),
            },
        };
        if library.is_some_and(str::is_empty) {
            return Err(missing(LIBRARY, "a library's file", "lib:libsolve*"));
        }
        let mut conditions = Vec::new();
        while let Some((condition, behind)) = rest.map_or(Ok(None), Condition::before)? {
            conditions.push(condition);
            rest = behind;
        }
        let selector = Selector {
            text: text.to_owned(),
            origin: None,
            library: library.map(str::to_owned),
            conditions,
            name: rest.map_or(Ok(Name::Any), |rest| Name::of(rest, what))?,
        };
        selector
            .refusal(what)
            .map_or(Ok(selector), |why| Err(why.to_owned()))
    }

    /// Why nothing can be chosen by it.
    fn refusal(&self, what: Chooses) -> Option<&'static str> {
        let of_functions = |c: &Condition| matches!(c, Condition::Size(_) | Condition::From(_));
        let has_line = |c: &Condition| matches!(c, Condition::Source(_, Some(_)));
        match what {
            Chooses::Functions if matches!(self.name, Name::User(_)) => {
                Some("this chooses functions, and user: is a region that the program names")
            }
            Chooses::Functions if self.conditions.iter().any(has_line) => Some(
                "this chooses whole functions; give a function, or FILE for all of its functions",
            ),
            Chooses::OfBuilds if matches!(self.name, Name::Address(_)) => {
                Some("addresses differ between builds; give a function, FILE:LINE or FILE")
            }
            Chooses::Regions | Chooses::OfBuilds if self.conditions.iter().any(of_functions) => {
                Some(
                    "this chooses regions; size: and from: choose functions, for --functions, --loops and --count=",
                )
            }
            _ => None,
        }
    }

    /// Reads one of regions, in a line of a file, `FILE:LINE`.
    ///
    /// # Errors
    /// As for [`Selector::parse`]; the error names the line.
    pub fn of_line(text: &str, origin: &str) -> Result<Selector, String> {
        let selector = Selector::from_str(text);
        let mut selector =
            selector.map_err(|what| format!("{origin}: `{}`: {what}", quoted(text)))?;
        selector.origin = Some(origin.to_owned());
        Ok(selector)
    }

    /// One that chooses nothing.
    pub fn nothing() -> Selector {
        Selector {
            text: format!("{LIBRARY}/"),
            origin: None,
            library: Some("/".to_owned()), // no file has that name
            conditions: vec![],
            name: Name::Any,
        }
    }

    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Name of the module, as a glob; `None`: any.
    pub fn library(&self) -> Option<&str> {
        self.library.as_deref()
    }

    /// Whether it is about this module, by its path.
    pub fn is_about(&self, module: &str) -> bool {
        let name = module.rsplit('/').next().unwrap_or(module);
        self.library().is_none_or(|glob| matches_glob(glob, name))
    }

    /// Whether it names this module and no other one.
    pub fn names(&self, module: &str) -> bool {
        self.is_about(module) && self.library().is_some_and(|l| !is_glob(l))
    }

    /// Whether it is chosen.
    pub fn matches(&self, place: &Place<'_>) -> bool {
        self.is_about(place.module) && self.matches_in_module(place)
    }

    /// Whether it is chosen, if its module is.
    pub fn matches_in_module(&self, place: &Place<'_>) -> bool {
        let is_function = place.construct == Some(Construct::Function);
        let mut names = place.functions().chain(place.names.iter().copied());
        let is_named = match &self.name {
            Name::Any => true,
            Name::Construct(c) => place.construct == Some(*c),
            Name::Address(a) => place.address == Some(*a),
            Name::In(glob) => !is_function && names.any(|name| is_called(glob, name)),
            Name::Itself(glob) => is_function && place.function.is_some_and(|f| is_called(glob, f)),
            Name::Either(glob) => {
                names.any(|name| is_called(glob, name))
                    || place.file.is_some_and(|file| is_path_end(glob, file))
                    || matches_glob(glob, place.module)
            }
            Name::User(glob) => {
                let is_user = place.construct == Some(Construct::UserRegion);
                is_user && place.function.is_some_and(|name| matches_glob(glob, name))
            }
        };
        is_named && self.conditions.iter().all(|c| c.holds(place))
    }

    /// Whether a region is chosen that the program calls by this name.
    pub fn matches_user(&self, name: &str) -> bool {
        match &self.name {
            Name::User(glob) => matches_glob(glob, name),
            _ => self.is_about_user(),
        }
    }

    /// Whether it may be about regions that the program names: they have no place in a file.
    pub fn is_about_user(&self) -> bool {
        let all = Name::Construct(Construct::UserRegion);
        let is_anywhere = self.library.is_none() && self.conditions.is_empty();
        is_anywhere && (self.name == all || matches!(self.name, Name::User(_)))
    }

    /// The construct that it names.
    pub fn construct(&self) -> Option<Construct> {
        match self.name {
            Name::Construct(construct) => Some(construct),
            _ => None,
        }
    }

    /// Whether it may be about functions that are regions themselves, or their loops.
    pub fn is_about_functions(&self) -> bool {
        matches!(self.name, Name::Itself(_)) || self.construct().is_some_and(Construct::is_code)
    }

    /// Whether everything in its modules is chosen.
    pub fn matches_all(&self) -> bool {
        self.name == Name::Any && self.conditions.is_empty()
    }

    /// Whether it names one site, not a kind of them.
    pub fn is_address(&self) -> bool {
        matches!(self.name, Name::Address(_))
    }

    /// Whether it names one function, not a kind of them.
    pub fn is_one_function(&self) -> bool {
        match &self.name {
            Name::Itself(name) => !is_glob(name),
            _ => self.is_address(),
        }
    }

    /// Whether it chooses by source files.
    pub fn needs_files(&self) -> bool {
        let is_file = |c: &Condition| matches!(c, Condition::Source(..));
        self.conditions.iter().any(is_file)
    }

    /// Whether it chooses functions because one of this name calls them.
    pub fn asks_for_callees(&self, caller: &str) -> bool {
        let asks = |c: &Condition| matches!(c, Condition::From(glob) if is_called(glob, caller));
        self.conditions.iter().any(asks)
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "`{}` ({origin})", quoted(&self.text)),
            None => write!(f, "`{}`", quoted(&self.text)),
        }
    }
}

impl Condition {
    /// The condition that a text begins with, and what is behind it.
    fn before(text: &str) -> Result<Option<(Condition, Option<&str>)>, String> {
        let Some((kind, rest)) = text.split_once(':') else {
            return Ok(is_source(text).then(|| (Condition::Source(text.to_owned(), None), None)));
        };
        let is_known = matches!(kind, "file" | "size" | "from");
        // `size::f` is a name.
        if !is_known || rest.starts_with(':') {
            return Ok(Condition::source(text).map(|source| (source, None)));
        }
        let (value, rest) = match split(rest) {
            Some((value, rest)) => (value, Some(rest)),
            None => (rest, None),
        };
        if value.is_empty() {
            return Err(format!("nothing behind {kind}:"));
        }
        Ok(Some(match (kind, rest) {
            ("file", Some(line)) if is_line(line) => {
                let line = Some(line.to_owned());
                (Condition::Source(value.to_owned(), line), None)
            }
            ("file", _) => (Condition::Source(value.to_owned(), None), rest),
            ("from", _) => (Condition::From(value.to_owned()), rest),
            _ => (Condition::Size(sizes(value)?), rest),
        }))
    }

    /// `FILE:LINE`, `FILE:*`, or `FILE`, if it ends as source files do.
    fn source(text: &str) -> Option<Condition> {
        let source = |file: &str, line: Option<&str>| {
            Some(Condition::Source(file.to_owned(), line.map(str::to_owned)))
        };
        match text.rsplit_once(':') {
            Some((file, "*")) if is_source(file) => source(file, None),
            Some((file, line))
                if is_source(file) && !line.is_empty() && line.chars().all(is_of_line) =>
            {
                source(file, Some(line))
            }
            Some((file, line)) if is_line(line) && !file.ends_with(':') => source(file, Some(line)),
            _ if is_source(text) => source(text, None),
            _ => None,
        }
    }

    fn holds(&self, place: &Place<'_>) -> bool {
        match self {
            Condition::Source(file, line) => place.sources().any(|(path, at)| {
                let is_line =
                    |glob: &String| at.is_some_and(|at| matches_glob(glob, &at.to_string()));
                line.as_ref().is_none_or(is_line) && is_path_end(file, path)
            }),
            Condition::Size(range) => place.size.is_some_and(|size| range.contains(&size)),
            Condition::From(glob) => place.callers.iter().any(|name| is_called(glob, name)),
        }
    }
}

impl Name {
    fn of(text: &str, what: Chooses) -> Result<Name, String> {
        if text.is_empty() {
            return Err(
                "empty; give a construct, a function, FILE:LINE, FILE, lib:FILE or an address"
                    .to_owned(),
            );
        }
        if let Some(digits) = text.strip_prefix("0x") {
            let address = u64::from_str_radix(digits, 16);
            return address
                .map(Name::Address)
                .map_err(|_| "no hexadecimal address".to_owned());
        }
        // A C++ function may be in a namespace that is called as a prefix.
        let behind = |prefix| {
            text.strip_prefix(prefix)
                .filter(|n: &&str| !n.starts_with(':'))
        };
        let construct = Construct::ALL.iter().find(|c| c.name() == text);
        Ok(match (what, behind("fn:"), behind("user:"), construct) {
            (_, Some(""), ..) => return Err(missing("fn:", "a function", "fn:solve*")),
            (_, _, Some(""), _) => return Err(missing("user:", "a region", "user:solve*")),
            (_, Some(name), ..) => Name::Itself(name.to_owned()),
            (_, _, Some(name), _) => Name::User(name.to_owned()),
            // A function may be called as a construct.
            (Chooses::Functions, ..) => Name::Itself(text.to_owned()),
            (_, _, _, Some(&construct)) => Name::Construct(construct),
            (Chooses::OfBuilds, ..) => Name::Either(text.to_owned()),
            (Chooses::Regions, ..) => Name::In(text.to_owned()),
        })
    }
}

fn missing(prefix: &str, what: &str, example: &str) -> String {
    format!("no name behind {prefix}; give that of {what}, as in {example}")
}

fn is_glob(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether a name is that of a source file, not of a function.
fn is_source(name: &str) -> bool {
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    ending.is_some_and(|(_, e)| SOURCES.contains(&e)) && !name.contains("::")
}

/// Whether that is a line's number, or a glob for such numbers.
fn is_line(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(is_of_line)
}

fn is_of_line(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '*' | '?')
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
