//! Calls of other libraries in which a thread may wait: which functions these are, by family.

use crate::{Entry, PatternError, Runtime, Settable, handed};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// Libraries whose calls are recorded alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// MPI.
    Mpi,
    /// Threads of POSIX and of C11.
    Pthread,
    /// Files and connections.
    Io,
    /// CUDA's runtime and driver.
    Cuda,
    /// HIP.
    Hip,
    /// OpenCL.
    OpenCl,
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 6] = [
        Family::Mpi,
        Family::Pthread,
        Family::Io,
        Family::Cuda,
        Family::Hip,
        Family::OpenCl,
    ];

    /// The kind of its calls, the most arguments that one of its functions has, and its data file.
    ///
    /// Of MPI the most are those of Fortran's `mpi_rget_accumulate`: functions with texts, whose lengths follow, have fewer.
    const fn facts(self) -> (Construct, u8, &'static str) {
        match self {
            Family::Mpi => (Construct::Mpi, 14, include_str!("../data/mpi.toml")),
            Family::Pthread => (Construct::Pthread, 6, include_str!("../data/pthread.toml")),
            Family::Io => (Construct::Io, 6, include_str!("../data/posix-io.toml")),
            Family::Cuda => (Construct::Cuda, 12, include_str!("../data/cuda.toml")),
            Family::Hip => (Construct::Hip, 12, include_str!("../data/hip.toml")),
            Family::OpenCl => (Construct::OpenCl, 14, include_str!("../data/opencl.toml")),
        }
    }

    /// The kind of its calls.
    pub const fn construct(self) -> Construct {
        self.facts().0
    }

    /// The name that users choose it by: that of its calls' kind.
    pub const fn name(self) -> &'static str {
        self.construct().name()
    }

    /// The family with this name.
    pub fn named(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|f| f.name() == name)
    }

    /// The family whose calls are of this kind.
    pub fn of(construct: Construct) -> Option<Family> {
        Family::ALL.into_iter().find(|f| f.construct() == construct)
    }
}

/// Some of the families. By default it is MPI alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Families(u8);

impl Families {
    /// None of them.
    pub const NONE: Families = Families(0);

    /// All of them.
    pub const ALL: Families = Families((1 << Family::ALL.len()) - 1);

    /// These and one more.
    #[must_use]
    pub const fn with(self, family: Family) -> Families {
        Families(self.0 | 1 << family as u8)
    }

    /// These, but not those.
    #[must_use]
    pub const fn without(self, those: Families) -> Families {
        Families(self.0 & !those.0)
    }

    /// Whether it is one of them.
    pub const fn has(self, family: Family) -> bool {
        self.0 & 1 << family as u8 != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |&f| self.has(f))
    }
}

impl Default for Families {
    fn default() -> Families {
        Families::NONE.with(Family::Mpi)
    }
}

impl FromIterator<Family> for Families {
    fn from_iter<I: IntoIterator<Item = Family>>(all: I) -> Families {
        all.into_iter().fold(Families::NONE, Families::with)
    }
}

/// A group of functions in a data file that are recorded alike, by name with their numbers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    name: String,
    /// What is done at a call, if it is more than to record it.
    probe: Option<String>,
    /// Whether the call begins or ends something.
    edge: Option<Edge>,
    /// Which argument is the lock.
    lock: Option<u8>,
    functions: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct RawGroups {
    group: Vec<RawGroup>,
}

/// Reads the data file of a family.
///
/// # Errors
/// [`PatternError::Toml`].
pub fn parse(text: &str, family: Family) -> Result<Vec<Entry>, PatternError> {
    let groups: RawGroups = toml::from_str(text)?;
    let entry = |group: &RawGroup, (symbol, id): (&String, &u32)| Entry {
        id: *id,
        runtime: Runtime::Other(family),
        construct: family.construct(),
        edge: group.edge.unwrap_or(Edge::Encloses),
        probe: match &group.probe {
            Some(name) => Probe::ALL.iter().copied().find(|p| p.name() == name),
            None => Some(Probe::Enclosed),
        },
        no_probe: None,
        args: {
            let mut args = [NO_ARG; 8];
            args[0] = group.lock.unwrap_or(NO_ARG);
            args
        },
        nargs: family.facts().1,
        variadic: false,
        width: 0,
        unsigned: false,
        outlined_arg: None,
        detail: Some(format!("{symbol}, {}", group.name)),
        query: None,
        set: Settable::default(),
        symbol: symbol.clone(),
    };
    let of_group = |g: &RawGroup| {
        let functions = g.functions.iter();
        functions.map(|f| entry(g, f)).collect::<Vec<_>>()
    };
    Ok(groups.group.iter().flat_map(of_group).collect())
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let parsed =
        |f: Family| parse(f.facts().2, f).expect("embedded pattern file, checked by a test");
    let mut all: Vec<Entry> = Family::ALL.into_iter().flat_map(parsed).collect();
    handed::add(include_str!("../data/mpi-arguments.toml"), &mut all).expect("likewise");
    all
});

/// The functions of all families.
pub fn functions() -> &'static [Entry] {
    &ENTRIES
}

impl Entry {
    /// The family, of a function of another library.
    pub fn family(&self) -> Option<Family> {
        match self.runtime {
            Runtime::Other(family) => Some(family),
            _ => None,
        }
    }
}

/// MPI's functions by their names in lower case, and all others by theirs.
static BY_NAME: LazyLock<FxHashMap<String, &'static Entry>> = LazyLock::new(|| {
    let name = |e: &Entry| match e.family() {
        Some(Family::Mpi) => e.symbol.to_ascii_lowercase(),
        _ => e.symbol.clone(),
    };
    ENTRIES.iter().map(|e| (name(e), e)).collect()
});

/// Endings of Fortran's names of MPI's functions: of `mpif.h` and `mpi` by several compilers, of `mpi_f08` by Open MPI and MPICH.
const MPI_ENDINGS: [&str; 4] = ["_f08ts_", "_f08_", "__", "_"];

/// The function with this symbol (without version), Fortran's names included, if it belongs to one of the families.
pub fn call(symbol: &str, families: Families) -> Option<&'static Entry> {
    let found = match symbol.get(..4) {
        Some(begin) if begin.eq_ignore_ascii_case("mpi_") => mpi(symbol),
        // MPI's have been asked for: the data needn't be read.
        _ if families.without(Families::default()) == Families::NONE => None,
        _ => BY_NAME.get(symbol).copied(),
    };
    found.filter(|e| e.family().is_some_and(|f| families.has(f)))
}

fn mpi(symbol: &str) -> Option<&'static Entry> {
    // All in lower or all in upper case are Fortran's.
    let name = symbol.to_ascii_lowercase();
    let endings = MPI_ENDINGS.iter().filter_map(|e| name.strip_suffix(e));
    let mut names = std::iter::once(&*name).chain(endings);
    let entry = names.find_map(|n| BY_NAME.get(n).copied())?;
    if entry.symbol == symbol {
        return Some(entry);
    }
    let is_f08 = name.ends_with("_f08_") || name.ends_with("_f08ts_");
    MPI_OF_FORTRAN[usize::from(is_f08)].get(&entry.id)
}

/// MPI's functions as Fortran calls them, by their numbers: those of `mpif.h` and `mpi`, those of `mpi_f08`.
static MPI_OF_FORTRAN: LazyLock<[HashMap<u32, Entry>; 2]> = LazyLock::new(|| {
    [false, true].map(|is_f08| {
        let all = ENTRIES.iter().filter(|e| e.family() == Some(Family::Mpi));
        all.map(|e| (e.id, handed::of_fortran(e, is_f08))).collect()
    })
});

/// The symbols that functions of some families have in compiled files, Fortran's included: what a file imports that calls one.
pub fn symbols(families: Families) -> impl Iterator<Item = (String, Family)> {
    let all = ENTRIES.iter().filter_map(|e| Some((e, e.family()?)));
    let chosen = all.filter(move |(_, family)| families.has(*family));
    chosen.flat_map(|(entry, family)| {
        let own = &entry.symbol;
        let mut names = vec![own.clone()];
        if family == Family::Mpi {
            let lower = own.to_ascii_lowercase();
            names.push(own.to_ascii_uppercase());
            names.extend(MPI_ENDINGS.map(|e| format!("{lower}{e}")));
            names.push(lower);
        }
        names.into_iter().map(move |name| (name, family))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_mpi_have_several_names() {
        let symbol = |name: &str| call(name, Families::default()).map(|e| e.symbol.as_str());
        let names = [
            "MPI_Allreduce",
            "MPI_ALLREDUCE",
            "mpi_allreduce",
            "mpi_allreduce_",
            "mpi_allreduce__",
            "mpi_allreduce_f08_",
            "mpi_allreduce_f08ts_",
        ];
        for name in names {
            assert_eq!(symbol(name), Some("MPI_Allreduce"), "{name}");
            let mut all = symbols(Families::default());
            assert!(all.any(|s| s == (name.to_owned(), Family::Mpi)), "{name}");
        }
        // Questions have no record, and others' functions have other names.
        for name in ["MPI_Comm_rank", "mpi_wtime_", "MPI_T_init_thread", "mpi"] {
            assert_eq!(symbol(name), None, "{name}");
        }
        assert_eq!(crate::lookup("mpi_send_"), None);
        let told = |name: &str| {
            let entry = call(name, Families::ALL);
            entry.map(|e| (e.probe, e.args[0], e.args[6], e.width))
        };
        let message = Some(Probe::Message);
        assert_eq!(told("MPI_Recv"), Some((message, 0x41, 6, 4)));
        assert_eq!(told("MPI_Recv_c"), Some((message, 0x41, 6, 8)));
        assert_eq!(told("mpi_recv_"), Some((message, 0xc1, 6, 4)));
        assert_eq!(told("mpi_recv_f08ts_"), Some((message, 0xc1, NO_ARG, 4)));
        let untold = Some((Some(Probe::Enclosed), NO_ARG, NO_ARG, 0));
        assert_eq!(told("mpi_gather_f08_"), untold);
        assert_eq!(told("MPI_Wait"), untold);
        let detail = call("MPI_Wait", Families::ALL).and_then(|e| e.detail.as_deref());
        assert_eq!(detail, Some("MPI_Wait, wait"));
    }

    #[test]
    fn families_are_chosen_by_name() {
        let io = Families::NONE.with(Family::Io);
        assert!(call("read", io).is_some() && call("read_", io).is_none());
        assert!(call("read", Families::default()).is_none() && call("MPI_Send", io).is_none());
        for family in Family::ALL {
            assert_eq!(Family::named(family.name()), Some(family));
            assert_eq!(Family::of(family.construct()), Some(family));
            let one = Families::from_iter([family]);
            assert_eq!(one.iter().collect::<Vec<_>>(), [family]);
            assert!(!Families::ALL.without(one).has(family));
            let mut of_it = symbols(one);
            assert!(of_it.all(|(s, f)| f == family && call(&s, one).is_some()));
        }
    }
}
