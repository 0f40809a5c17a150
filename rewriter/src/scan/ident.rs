//! KMPC's `ident_t`: what the compiler says of the place of a call.

use super::Module;
use ompfuse_format::site::Source;

/// Offset of the flags in an `ident_t`.
const FLAGS: u64 = 4;
/// Offset of the pointer to the text.
const PSOURCE: u64 = 16;

/// What flang names where a file's name belongs.
const NO_FILE: &str = "FIRModule";

/// A constant `ident_t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ident {
    pub flags: u32,
    pub place: Option<Place>,
}

/// The place that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Source(Source),
    /// A line of the file that the code is from. flang has no other place that is the construct's: its debug information gives
    /// the calls of several constructs one line.
    Line(u32),
}

impl Ident {
    /// Reads the structure at an address.
    pub(crate) fn read(module: &Module<'_>, va: u64) -> Option<Ident> {
        let flags = module.image.u32(va.checked_add(FLAGS)?)?;
        let place = va
            .checked_add(PSOURCE)
            .and_then(|at| module.dynamic.pointer(&module.image, at))
            .and_then(|text| module.image.str(text))
            .and_then(place);
        Some(Ident { flags, place })
    }
}

/// Reads `;file;function;line;column;;`.
fn place(text: &str) -> Option<Place> {
    let mut parts = text.strip_prefix(';')?.split(';');
    let (file, _function, line) = (parts.next()?, parts.next()?, parts.next()?);
    let line = line.parse().ok().filter(|&l| l > 0)?;
    match file {
        "" | "unknown" => None,
        NO_FILE => Some(Place::Line(line)),
        file => Some(Place::Source(Source {
            file: file.to_owned(),
            line,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(
            place(";a.c;main;7;1;;"),
            Some(Place::Source(Source {
                file: "a.c".into(),
                line: 7
            }))
        );
        assert_eq!(place(";FIRModule;work;13;11;;"), Some(Place::Line(13)));
        for none in [
            ";unknown;unknown;0;0;;",
            ";a.c;main;0;0;;",
            "a.c;main;7;1;;",
            "",
            ";a.c;f",
        ] {
            assert_eq!(place(none), None, "{none}");
        }
    }
}
