//! `--calls`: which libraries' calls are regions.

use ompfuse_patterns::{Families, Family};
use std::str::FromStr;

/// The option, as several commands take it.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct CallArgs {
    /// Record calls of these libraries as regions, too: a list of `pthread`, `io`, `cuda`, `hip` and `opencl`, or `none`
    ///
    /// These are the calls in which a thread may wait: for locks, conditions and joins of POSIX threads; for files and connections;
    /// for a device. Calls of MPI are recorded without this option. `none` records no calls, those of MPI neither.
    #[arg(long, value_name = "LIST")]
    calls: Option<Chosen>,
}

/// A value of the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chosen(Families);

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Chosen, String> {
        if text == "none" {
            return Ok(Chosen(Families::NONE));
        }
        let all = text.split(',').map(|name| {
            Family::named(name).ok_or_else(|| {
                let names = Family::ALL.map(Family::name).join(", ");
                format!(
                    "unknown library `{name}`; known are {names}, or none alone (--select and --skip choose single functions)"
                )
            })
        });
        let named = all.collect::<Result<Vec<_>, _>>()?.into_iter();
        Ok(Chosen(named.fold(Families::default(), Families::with)))
    }
}

impl CallArgs {
    /// What is to be recorded.
    pub(crate) fn families(self) -> Families {
        self.calls.map_or_else(Families::default, |c| c.0)
    }

    /// The option's value, unless it is what holds without.
    pub(crate) fn text(self) -> Option<String> {
        let families = self.families();
        let names: Vec<_> = families.iter().map(Family::name).collect();
        (families != Families::default()).then(|| match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(","),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_adds_to_mpi() {
        let text = |text: &str| {
            let calls = Some(text.parse::<Chosen>()?);
            Ok::<_, String>(CallArgs { calls }.text())
        };
        assert_eq!(text("io,pthread"), Ok(Some("mpi,pthread,io".to_owned())));
        assert_eq!(text("mpi"), Ok(None));
        assert_eq!(text("none"), Ok(Some("none".to_owned())));
        assert_eq!(CallArgs::default().text(), None);
        for wrong in ["", "io,", "io,none", "posix"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }
}
