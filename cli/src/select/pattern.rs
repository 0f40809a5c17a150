//! What a `--select` or `--skip` means.

use crate::input::quoted;
use ompfuse_format::Construct;
use ompfuse_format::site::{HexAddress, SiteInfo, Source};
use ompfuse_fuse::Site;
use ompfuse_fuse::names::{is_called, is_path_end, matches_glob};
use ompfuse_report::model::ModuleInfo;
use ompfuse_report::{Region, Report};
use std::path::Path;
use std::str::FromStr;

/// Prefix of the name of a file that is patched.
pub(super) const LIBRARY: &str = "lib:";

/// Prefix of the name of a region that the program names. A C++ function may be in a namespace of this name.
const USER: &str = "user:";

/// Prefix of the name of a function that is a region itself. A C++ function may be in a namespace of this name.
const NAMED: &str = "fn:";

/// Endings of source files: a name with one of them is no function's.
const SOURCES: [&str; 25] = [
    "C", "F", "F03", "F08", "F90", "F95", "c", "c++", "cc", "cpp", "cu", "cxx", "f", "f03", "f08",
    "f90", "f95", "for", "ftn", "h", "hh", "hpp", "hxx", "inc", "inl",
];

/// One `--select` or `--skip`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// As the user wrote it.
    pub(super) text: String,
    /// Where, if it stands in a file: `FILE:LINE`.
    pub(super) origin: Option<String>,
    /// Name of the module, as a glob; `None`: any.
    library: Option<String>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Any,
    Construct(Construct),
    Address(u64),
    /// Without a line: the whole file.
    Source {
        file: String,
        line: Option<u32>,
    },
    /// The constructs in a function, and calls of a library's function of this name.
    Function(String),
    /// A function that is a region itself.
    Named(String),
    /// A region that the program itself names, through ompfuse.h.
    User(String),
}

/// What a finished run knows of a place.
struct Place<'a> {
    /// Path or name of its module.
    file: &'a str,
    construct: Option<Construct>,
    address: Option<HexAddress>,
    source: Option<&'a Source>,
    function: Option<&'a str>,
    detail: Option<&'a str>,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        let (library, rest) = match text.strip_prefix(LIBRARY) {
            None => (None, Some(text)),
            Some(named) => match named.split_once(':') {
                Some((library, rest)) => (Some(library), Some(rest)),
                None => (Some(named), None),
            },
        };
        if library.is_some_and(str::is_empty) {
            return Err(
                "no name behind lib:; give that of a library's file, as in lib:libsolve*"
                    .to_owned(),
            );
        }
        Ok(Pattern {
            text: text.to_owned(),
            origin: None,
            library: library.map(str::to_owned),
            kind: rest.map_or(Ok(Kind::Any), kind)?,
        })
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    if text.is_empty() {
        return Err(
            "empty; give a construct, a function, FILE:LINE, FILE, lib:FILE or an address"
                .to_owned(),
        );
    }
    if let Some(digits) = text.strip_prefix("0x") {
        let address = u64::from_str_radix(digits, 16);
        return address
            .map(Kind::Address)
            .map_err(|_| "no hexadecimal address".to_owned());
    }
    if let Some(&construct) = Construct::ALL.iter().find(|c| c.name() == text) {
        return Ok(Kind::Construct(construct));
    }
    if let Some(name) = text.strip_prefix(NAMED).filter(|n| !n.starts_with(':')) {
        return match name {
            "" => Err("no name behind fn:; give that of a function, as in fn:solve*".to_owned()),
            _ => Ok(Kind::Named(name.to_owned())),
        };
    }
    if let Some(name) = text.strip_prefix(USER).filter(|n| !n.starts_with(':')) {
        return match name {
            "" => Err("no name behind user:; give that of a region, as in user:solve*".to_owned()),
            _ => Ok(Kind::User(name.to_owned())),
        };
    }
    let source = |file: &str, line| {
        let file = file.to_owned();
        Ok(Kind::Source { file, line })
    };
    match text.rsplit_once(':') {
        Some((file, "*")) if is_source(file) => source(file, None),
        Some((file, line)) if line.parse::<u32>().is_ok() => source(file, line.parse().ok()),
        _ if is_source(text) => source(text, None),
        _ => Ok(Kind::Function(text.to_owned())),
    }
}

/// Whether a name is that of a source file, not of a function.
fn is_source(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|e| e.to_str());
    ending.is_some_and(|e| SOURCES.contains(&e)) && !name.contains("::")
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "`{}` ({origin})", quoted(&self.text)),
            None => write!(f, "`{}`", quoted(&self.text)),
        }
    }
}

impl Pattern {
    /// Of no module.
    pub(crate) fn nothing() -> Pattern {
        Pattern {
            text: format!("{LIBRARY}/"),
            origin: None,
            library: Some("/".to_owned()), // no file has that name
            kind: Kind::Any,
        }
    }

    /// Of a line in a file, `FILE:LINE`; an error names it.
    pub(crate) fn of_line(text: &str, origin: &str) -> Result<Pattern, String> {
        let pattern = Pattern::from_str(text);
        let mut pattern =
            pattern.map_err(|what| format!("{origin}: `{}`: {what}", quoted(text)))?;
        pattern.origin = Some(origin.to_owned());
        Ok(pattern)
    }

    /// Whether it is about this module, by its path.
    pub(crate) fn is_about(&self, module: &str) -> bool {
        let matches = |glob: &String| matches_glob(glob, file_name(module));
        self.library.as_ref().is_none_or(matches)
    }

    /// Whether it names modules.
    pub(crate) fn names_modules(&self) -> bool {
        self.library.is_some()
    }

    /// Whether it names this module and no other one.
    pub(super) fn names(&self, module: &str) -> bool {
        let is_glob = |name: &String| name.contains(['*', '?']);
        self.is_about(module) && self.library.as_ref().is_some_and(|l| !is_glob(l))
    }

    /// Whether a site of its module is meant.
    pub(super) fn matches(&self, site: &SiteInfo) -> bool {
        match &self.kind {
            Kind::Any => true,
            Kind::Construct(c) => site.construct == *c,
            Kind::Address(a) => site.address.0 == *a,
            Kind::Source { file, line } => sources(site)
                .any(|s| line.is_none_or(|line| s.line == line) && is_path_end(file, &s.file)),
            Kind::Function(glob) => {
                let called = called(Some(site.construct), site.detail.as_deref());
                let entry = called.and(site.entry.as_deref()); // Fortran's name
                let mut names = functions(site).chain(called).chain(entry);
                !is_function(Some(site.construct)) && names.any(|f| is_called(glob, f))
            }
            Kind::Named(glob) => {
                let name = site.function.as_deref();
                is_function(Some(site.construct)) && name.is_some_and(|f| is_called(glob, f))
            }
            Kind::User(_) => false, // it has no place in a file
        }
    }

    /// Whether a site of a module is meant, which is at this path.
    pub(crate) fn means(&self, module: &str, site: &SiteInfo) -> bool {
        self.is_about(module) && self.matches(site)
    }

    /// Whether everything of this kind in a module is meant, which is at this path.
    pub(crate) fn means_all_of(&self, module: &str, construct: Option<Construct>) -> bool {
        matches!(self.kind, Kind::Construct(c) if Some(c) == construct) && self.is_about(module)
    }

    /// Whether a region of a report is meant.
    pub(crate) fn means_region(&self, report: &Report, region: &Region) -> bool {
        let name = region.module.as_deref();
        let is_its = |m: &&ModuleInfo| m.build_id.as_deref() == name || Some(&*m.path) == name;
        let module = report
            .modules
            .iter()
            .filter(|_| name.is_some())
            .find(is_its);
        let path = module.map(|m| &m.path).or(region.file.as_ref());
        self.means_place(&Place {
            file: path.unwrap_or(&report.program),
            construct: region.construct,
            address: region.address,
            source: region.source.as_ref(),
            function: region.function.as_deref(),
            detail: region.detail.as_deref(),
        })
    }

    /// Whether the units of a type are meant. `file`: the path or name of its module.
    pub(crate) fn means_units(&self, file: &str, site: &Site) -> bool {
        self.means_place(&Place {
            file,
            construct: site.construct,
            address: site.address,
            source: site.source.as_ref(),
            function: site.function.as_deref(),
            detail: site.detail.as_deref(),
        })
    }

    fn means_place(&self, place: &Place<'_>) -> bool {
        let is_user = place.construct == Some(Construct::UserRegion);
        let is_it = match &self.kind {
            Kind::Any => true,
            Kind::Construct(c) => place.construct == Some(*c),
            Kind::Address(a) => place.address.is_some_and(|at| at.0 == *a),
            Kind::Source { file, line } => place.source.is_some_and(|s| {
                line.is_none_or(|line| s.line == line) && is_path_end(file, &s.file)
            }),
            Kind::Function(glob) => {
                let called = called(place.construct, place.detail);
                let mut names = place.function.into_iter().chain(called);
                !is_function(place.construct) && names.any(|f| is_called(glob, f))
            }
            Kind::Named(glob) => {
                is_function(place.construct) && place.function.is_some_and(|f| is_called(glob, f))
            }
            Kind::User(glob) => is_user && place.function.is_some_and(|f| matches_glob(glob, f)),
        };
        is_it && self.is_about(place.file)
    }

    /// Whether a region is meant that the program calls by this name.
    pub(crate) fn matches_user(&self, name: &str) -> bool {
        match &self.kind {
            Kind::User(glob) => matches_glob(glob, name),
            _ => self.is_about_user(),
        }
    }

    /// Whether it may be about regions that the program names.
    pub(crate) fn is_about_user(&self) -> bool {
        let all = Kind::Construct(Construct::UserRegion);
        self.library.is_none() && (self.kind == all || matches!(self.kind, Kind::User(_)))
    }

    /// Whether it may be about functions that are regions themselves, or their loops.
    pub(super) fn is_about_functions(&self) -> bool {
        match self.kind {
            Kind::Construct(construct) => construct.is_code(),
            _ => matches!(self.kind, Kind::Named(_)),
        }
    }

    /// Whether everything in its modules is meant.
    pub(super) fn matches_all(&self) -> bool {
        self.kind == Kind::Any
    }

    /// Whether it names one site, not a kind of them.
    pub(super) fn is_address(&self) -> bool {
        matches!(self.kind, Kind::Address(_))
    }
}

/// The name of a module's file.
pub(super) fn file_name(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

/// Whether it is a function that is a region itself.
fn is_function(construct: Option<Construct>) -> bool {
    construct == Some(Construct::Function)
}

/// The function that a call of another library is a call of: what stands before its group.
fn called(construct: Option<Construct>, detail: Option<&str>) -> Option<&str> {
    let detail = detail.filter(|_| construct.is_some_and(Construct::is_call))?;
    detail.split_once(", ").map(|(function, _)| function)
}

/// The lines of a site: its own, and those of the functions that are inlined around it.
fn sources(site: &SiteInfo) -> impl Iterator<Item = &Source> {
    let frames = site.frames.iter().flat_map(|f| f.iter());
    site.source
        .iter()
        .chain(frames.filter_map(|f| f.source.as_ref()))
}

/// The functions that a site is in: that which holds its code, and those that are inlined around it.
fn functions(site: &SiteInfo) -> impl Iterator<Item = &str> {
    let frames = site.frames.iter().flat_map(|f| f.iter());
    let inlined = frames.filter_map(|f| f.function.as_deref());
    site.function.as_deref().into_iter().chain(inlined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let kind = |text: &str| text.parse::<Pattern>().unwrap().kind;
        let source = |file: &str, line| Kind::Source {
            file: file.to_owned(),
            line,
        };
        assert_eq!(kind("task"), Kind::Construct(Construct::Task));
        assert_eq!(kind("0x1a"), Kind::Address(0x1a));
        assert_eq!(kind("lu.c:12"), source("lu.c", Some(12)));
        assert_eq!(kind("src/lu.f90"), source("src/lu.f90", None));
        assert_eq!(kind("lu.c:*"), source("lu.c", None));
        for function in ["solve.part.0", "ns::f*", "*", "a.cold"] {
            assert_eq!(kind(function), Kind::Function(function.to_owned()));
        }
        assert_eq!(kind("user:solve*"), Kind::User("solve*".to_owned()));
        assert_eq!(kind("user::f"), Kind::Function("user::f".to_owned()));
        assert_eq!(kind("lib:libfoo*"), Kind::Any);
        assert_eq!(kind("lib:libfoo.so:0x1a"), Kind::Address(0x1a));
        for wrong in ["", "0xzz", "lib:", "lib::task", "lib:x:", "user:"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn modules() {
        let pattern: Pattern = "lib:libfoo*:task".parse().unwrap();
        assert!(pattern.is_about("/usr/lib/libfoo.so.1") && pattern.is_about("libfoo"));
        assert!(!pattern.is_about("/libfoo/x") && pattern.names_modules());
        let any: Pattern = "task".parse().unwrap();
        assert!(any.is_about("/usr/lib/libfoo.so.1") && !any.names_modules());
    }

    #[test]
    fn regions_that_the_program_names() {
        let means = |text: &str, name| text.parse::<Pattern>().unwrap().matches_user(name);
        assert!(means("user:st*", "step") && !means("user:st*", "rest"));
        assert!(means("user-region", "step") && !means("task", "task"));
        assert!(!means("step", "step") && !means("lib:x:user-region", "step"));
    }
}
