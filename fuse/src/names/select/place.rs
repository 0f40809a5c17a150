//! What is known of the code that a selector may choose.

use crate::table::Site;
use ompfuse_format::Construct;
use ompfuse_format::site::{Frame, SiteInfo};

/// A place in a program, as far as somebody knows it.
#[derive(Debug, Clone, Default)]
pub struct Place<'a> {
    /// Path or name of its module.
    pub module: &'a str,
    /// The construct.
    pub construct: Option<Construct>,
    /// Link-time address.
    pub address: Option<u64>,
    /// Path of the source file.
    pub file: Option<&'a str>,
    /// The line there.
    pub line: Option<u32>,
    /// The function that holds its code.
    pub function: Option<&'a str>,
    /// The functions that are inlined around it.
    pub frames: &'a [Frame],
    /// Other names: of the library's function that is called there, of the critical section, of callers that tell what it is.
    pub names: Vec<&'a str>,
    /// The function's length in bytes.
    pub size: Option<u64>,
    /// Functions that call it directly, as far as they are asked for.
    pub callers: &'a [&'a str],
}

impl<'a> Place<'a> {
    /// A site of a module.
    pub fn of_site(module: &'a str, site: &'a SiteInfo) -> Place<'a> {
        let mut names = Place::names_in(Some(site.construct), site.detail.as_deref());
        if site.construct.is_call() {
            names.extend(site.entry.as_deref()); // Fortran's name
        }
        Place {
            module,
            construct: Some(site.construct),
            address: Some(site.address.0),
            file: site.source.as_ref().map(|s| &*s.file),
            line: site.source.as_ref().map(|s| s.line),
            function: site.function.as_deref(),
            frames: site.frames.as_deref().unwrap_or_default(),
            names,
            ..Place::default()
        }
    }

    /// What units of this type are of.
    pub fn of_units(module: &'a str, site: &'a Site) -> Place<'a> {
        Place {
            module,
            construct: site.construct,
            address: site.address.map(|a| a.0),
            file: site.source.as_ref().map(|s| &*s.file),
            line: site.source.as_ref().map(|s| s.line),
            function: site.function.as_deref(),
            names: Place::names_in(site.construct, site.detail.as_deref()),
            ..Place::default()
        }
    }

    /// Its functions: that which holds its code, and those that are inlined around it.
    pub(super) fn functions(&self) -> impl Iterator<Item = &'a str> {
        let inlined = self.frames.iter().filter_map(|f| f.function.as_deref());
        self.function.into_iter().chain(inlined)
    }

    /// Its lines: its own, and those of the functions that are inlined around it.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&'a str, Option<u32>)> {
        let inlined = self.frames.iter().filter_map(|f| f.source.as_ref());
        let own = self.file.map(|file| (file, self.line));
        own.into_iter()
            .chain(inlined.map(|s| (&*s.file, Some(s.line))))
    }

    /// The names in a site's detail: of the critical section, or of the function that a call of another library is a call of, which stands
    /// before its group.
    pub fn names_in(construct: Option<Construct>, detail: Option<&'a str>) -> Vec<&'a str> {
        let (Some(construct), Some(detail)) = (construct, detail) else {
            return vec![];
        };
        let name = match construct {
            Construct::Critical => Some(detail),
            call if call.is_call() => detail.split_once(", ").map(|(function, _)| function),
            _ => None,
        };
        name.into_iter().collect()
    }
}
