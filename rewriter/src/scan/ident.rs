//! KMPC's `ident_t`: what the compiler says of the place of a call.

use super::Module;
use ompfuse_format::site::Source;

/// Offset of the flags in an `ident_t`.
const FLAGS: u64 = 4;
/// Offset of the pointer to the text.
const PSOURCE: u64 = 16;

/// A constant `ident_t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ident {
    pub flags: u32,
    pub source: Option<Source>,
}

impl Ident {
    /// Reads the structure at an address.
    pub(crate) fn read(module: &Module<'_>, va: u64) -> Option<Ident> {
        let flags = module.image.u32(va.checked_add(FLAGS)?)?;
        let source = va
            .checked_add(PSOURCE)
            .and_then(|at| module.dynamic.pointer(&module.image, at))
            .and_then(|text| module.image.str(text))
            .and_then(source);
        Some(Ident { flags, source })
    }
}

/// Reads `;file;function;line;column;;`.
fn source(text: &str) -> Option<Source> {
    let mut parts = text.strip_prefix(';')?.split(';');
    let (file, _function, line) = (parts.next()?, parts.next()?, parts.next()?);
    let line = line.parse().ok().filter(|&l| l > 0)?;
    (!file.is_empty() && file != "unknown").then(|| Source {
        file: file.to_owned(),
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(
            source(";a.c;main;7;1;;"),
            Some(Source {
                file: "a.c".into(),
                line: 7
            })
        );
        for none in [
            ";unknown;unknown;0;0;;",
            ";a.c;main;0;0;;",
            "a.c;main;7;1;;",
            "",
            ";a.c;f",
        ] {
            assert_eq!(source(none), None, "{none}");
        }
    }
}
