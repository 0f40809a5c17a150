//! Of which program, build and ranks a run is.

use ompfuse_format::run::RunModule;
use ompfuse_fuse::Summary;
use std::collections::BTreeSet;
use std::path::Path;

/// Path and build id.
type Module = (String, Option<String>);

/// What an input tells of its program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The program as the user named it.
    program: String,
    /// Its patched modules: path and build id of the original.
    modules: Vec<Module>,
    /// The ranks that were recorded, of an MPI program.
    ranks: BTreeSet<u32>,
}

/// Why two inputs are no runs of one program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// No module is in both.
    Programs,
    /// A module was built anew: its path, and its build ids.
    Builds(String, [String; 2]),
    /// Each has other ranks.
    Ranks([u32; 2]),
}

impl Origin {
    /// Of a run's modules.
    pub(crate) fn new(program: &str, modules: &[RunModule]) -> Origin {
        let module = |m: &RunModule| (m.binary.path.clone(), m.binary.build_id.clone());
        Origin {
            program: program.to_owned(),
            modules: modules.iter().map(module).collect(),
            ranks: BTreeSet::new(),
        }
    }

    pub(crate) fn of_summary(summary: Summary) -> Origin {
        let ranks = summary.processes.iter().filter_map(|p| p.mpi_rank);
        Origin {
            ranks: ranks.collect(),
            program: summary.program,
            modules: (summary.modules.into_iter().map(|m| (m.path, m.build_id))).collect(),
        }
    }

    /// The same with the ranks that were recorded.
    pub(crate) fn of_ranks(self, ranks: BTreeSet<u32>) -> Origin {
        Origin { ranks, ..self }
    }

    /// Tables of other recorders, and runs without modules, don't tell it.
    pub(crate) fn is_known(&self) -> bool {
        !self.modules.is_empty()
    }

    /// `None` where the two may be of one program. Nothing is known of tables of other recorders, and of runs without modules.
    pub(crate) fn differs(&self, other: &Origin) -> Option<Difference> {
        if self.modules.is_empty() || other.modules.is_empty() {
            return None;
        }
        for (path, id) in &self.modules {
            let other = other.modules.iter().find(|(other, _)| other == path);
            if let (Some(id), Some((_, Some(other)))) = (id, other)
                && id != other
            {
                return Some(Difference::Builds(
                    path.clone(),
                    [id.clone(), other.clone()],
                ));
            }
        }
        // Programs that differ may load the same library.
        let programs = |all: &[Module]| {
            all.iter()
                .filter(|(path, _)| !is_library(path))
                .cloned()
                .collect()
        };
        let (own, others): (Vec<Module>, Vec<Module>) =
            (programs(&self.modules), programs(&other.modules));
        let has_common = match own.is_empty() || others.is_empty() {
            true => have_common(&self.modules, &other.modules),
            false => have_common(&own, &others),
        };
        if !has_common {
            return Some(Difference::Programs);
        }
        let ranks = self.ranks.first().zip(other.ranks.first());
        let apart = ranks.filter(|_| self.ranks.is_disjoint(&other.ranks));
        apart.map(|(one, two)| Difference::Ranks([*one, *two]))
    }

    /// The program and its build, for messages.
    pub(crate) fn describe(&self) -> String {
        let own = self
            .modules
            .iter()
            .find(|(path, _)| Path::new(path).file_name() == Path::new(&self.program).file_name());
        match own.or_else(|| self.modules.first()) {
            Some((path, Some(id))) => format!("{path} (build {})", short(id)),
            Some((path, None)) => path.clone(),
            None => self.program.clone(),
        }
    }
}

fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

fn have_common(one: &[Module], two: &[Module]) -> bool {
    one.iter().any(|(path, id)| {
        let is_same = |(other_path, other_id): &Module| match (id, other_id) {
            (Some(id), Some(other)) => id == other,
            _ => path == other_path,
        };
        two.iter().any(is_same)
    })
}

/// Enough of a build id to tell it by.
pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(modules: &[(&str, Option<&str>)], ranks: &[u32]) -> Origin {
        let module =
            |(path, id): &(&str, Option<&str>)| ((*path).to_owned(), id.map(str::to_owned));
        Origin {
            program: "./a".to_owned(),
            modules: modules.iter().map(module).collect(),
            ranks: ranks.iter().copied().collect(),
        }
    }

    #[test]
    fn programs_and_builds_are_told_apart() {
        let a = of(&[("/a", Some("1"))], &[]);
        let ids = ["1".to_owned(), "2".to_owned()];
        for (other, difference) in [
            (of(&[("/a", Some("1"))], &[]), None),
            (of(&[("/copy", Some("1"))], &[]), None),
            (of(&[], &[]), None),
            (of(&[("/l.so", Some("3")), ("/a", Some("1"))], &[]), None),
            (of(&[("/b", Some("2"))], &[]), Some(Difference::Programs)),
            (of(&[("/l.so", Some("3"))], &[]), Some(Difference::Programs)),
            (of(&[("/b", None)], &[]), Some(Difference::Programs)),
            (of(&[("/a", None)], &[]), None),
            (
                of(&[("/a", Some("2"))], &[]),
                Some(Difference::Builds("/a".to_owned(), ids)),
            ),
        ] {
            assert_eq!(a.differs(&other), difference, "{other:?}");
        }
    }

    #[test]
    fn ranks_are_no_repetitions() {
        let rank = |ranks: &[u32]| of(&[("/a", Some("1"))], ranks);
        assert_eq!(
            rank(&[0]).differs(&rank(&[1])),
            Some(Difference::Ranks([0, 1]))
        );
        assert_eq!(rank(&[0, 1]).differs(&rank(&[1, 0])), None);
        assert_eq!(rank(&[0, 1]).differs(&rank(&[1])), None);
        assert_eq!(rank(&[0]).differs(&rank(&[])), None);
    }

    #[test]
    fn a_library_in_common_makes_no_program() {
        let library = ("/l.so.1", Some("3"));
        let (a, b) = (("/a", Some("1")), ("/b", Some("2")));
        let both = of(&[a, library], &[]).differs(&of(&[b, library], &[]));
        assert_eq!(both, Some(Difference::Programs));
        assert_eq!(of(&[a, library], &[]).differs(&of(&[library], &[])), None);
    }
}
