//! What OpenMP looks like in machine code: the entry points of the runtimes, as data; and other libraries' functions that a process
//! waits in.
//!
//! The facts are in `data/*.toml`, one record per entry point; this crate embeds and indexes them. It knows nothing of
//! files or ELF. Inlined shapes are found by `ompfuse-rewriter` from the functions that have a [`Query`] here.
#![forbid(unsafe_code)]

pub mod calls;
mod handed;
mod settable;
mod threads;

pub use calls::{Families, Family};
pub use settable::Settable;
pub use threads::{Threaded, threaded};

use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::sync::{LazyLock, OnceLock};

/// A value that inlined shapes are built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// The thread's number in its team.
    ThreadNum,
    /// The team's size.
    NumThreads,
    /// The team's number in its league.
    TeamNum,
    /// The league's size.
    NumTeams,
}

/// The interface that an entry point belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Runtime {
    /// libgomp's, which libomp has too.
    Gomp,
    /// libomp's and Intel's.
    Kmpc,
    /// The OpenMP API, the same everywhere.
    Api,
    /// A library that is no OpenMP runtime.
    Other(Family),
}

/// An entry point of an OpenMP runtime, or another library's function in which a thread may wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, never reused.
    pub id: u32,
    /// The interface.
    pub runtime: Runtime,
    /// Symbol without version; with a `*` at the end it stands for all that begin so and have no record of their own.
    pub symbol: String,
    /// The construct that a call belongs to.
    pub construct: Construct,
    /// What a call does to it.
    pub edge: Edge,
    /// The probe for its call sites; `None`: known, but not patched.
    pub probe: Option<Probe>,
    /// Why its call sites need no probe, if they don't: it is a setting or a service, or other sites tell what it does.
    pub no_probe: Option<String>,
    /// Positions of the arguments that the probe reads, as in [`ompfuse_format::abi::SiteDesc::args`].
    pub args: [u8; 8],
    /// Number of integer arguments.
    pub nargs: u8,
    /// It takes more, as many as the construct around it says.
    pub variadic: bool,
    /// Width in bytes of loop bounds, 0 where that means nothing.
    pub width: u8,
    /// Whether loop bounds are unsigned.
    pub unsigned: bool,
    /// Position of the outlined function among the arguments.
    pub outlined_arg: Option<u8>,
    /// More about the construct: a schedule.
    pub detail: Option<String>,
    /// The value that it returns, if inlined shapes are built on it.
    pub query: Option<Query>,
    /// Positions of arguments that OpenMP leaves open.
    pub set: Settable,
}

/// The record of an entry in the data files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    id: u32,
    symbol: String,
    construct: Construct,
    edge: Edge,
    probe: Option<String>,
    no_probe: Option<String>,
    #[serde(default)]
    args: Vec<u8>,
    #[serde(default)]
    nargs: u8,
    #[serde(default)]
    variadic: bool,
    #[serde(default)]
    width: u8,
    #[serde(default)]
    unsigned: bool,
    outlined_arg: Option<u8>,
    detail: Option<String>,
    query: Option<Query>,
    #[serde(default)]
    set: Settable,
    #[serde(rename = "version")]
    _version: Option<String>,
}

#[derive(Deserialize)]
struct RawTable {
    entry: Vec<RawEntry>,
}

/// What is wrong with a data file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Not TOML, or not of the record's form.
    #[error("malformed pattern file: {0}")]
    Toml(#[from] toml::de::Error),
    /// A probe that `ompfuse-format` doesn't know.
    #[error("entry {symbol}: unknown probe {probe}")]
    UnknownProbe {
        /// The entry.
        symbol: String,
        /// The probe's name.
        probe: String,
    },
    /// More argument positions than a site has room for.
    #[error("entry {0}: more than 8 args")]
    TooManyArgs(String),
    /// Arguments of a function that has no record.
    #[error("arguments of {0}, which has no record")]
    UnknownFunction(String),
}

/// Reads one data file.
///
/// # Errors
/// [`PatternError`] says which record is wrong.
pub fn parse(text: &str, runtime: Runtime) -> Result<Vec<Entry>, PatternError> {
    let table: RawTable = toml::from_str(text)?;
    let all = table.entry.into_iter();
    all.map(|raw| entry(raw, runtime)).collect()
}

fn entry(raw: RawEntry, runtime: Runtime) -> Result<Entry, PatternError> {
    let probe = match &raw.probe {
        None => None,
        Some(name) => Some(
            Probe::ALL
                .iter()
                .copied()
                .find(|p| p.name() == name)
                .ok_or_else(|| PatternError::UnknownProbe {
                    symbol: raw.symbol.clone(),
                    probe: name.clone(),
                })?,
        ),
    };
    let mut args = [NO_ARG; 8];
    args.get_mut(..raw.args.len())
        .ok_or_else(|| PatternError::TooManyArgs(raw.symbol.clone()))?
        .copy_from_slice(&raw.args);
    Ok(Entry {
        id: raw.id,
        runtime,
        symbol: raw.symbol,
        construct: raw.construct,
        edge: raw.edge,
        probe,
        no_probe: raw.no_probe,
        args,
        nargs: raw.nargs,
        variadic: raw.variadic,
        width: raw.width,
        unsigned: raw.unsigned,
        outlined_arg: raw.outlined_arg,
        detail: raw.detail,
        query: raw.query,
        set: raw.set,
    })
}

/// A record of a data file. It is read when somebody asks for it: a program uses few of them, and reading all takes longer than scanning it.
struct Record {
    text: &'static str,
    runtime: Runtime,
    entry: OnceLock<Entry>,
}

impl Record {
    /// The records of a data file, by symbol.
    fn all(text: &'static str, runtime: Runtime) -> impl Iterator<Item = (&'static str, Record)> {
        text.split_inclusive("[[entry]]\n")
            .skip(1)
            .filter_map(move |text| {
                let (_, symbol) = text.split_once("\nsymbol = \"")?;
                let record = Record {
                    text: text.strip_suffix("[[entry]]\n").unwrap_or(text),
                    runtime,
                    entry: OnceLock::new(),
                };
                Some((symbol.split_once('"')?.0, record))
            })
    }

    fn entry(&self) -> &Entry {
        self.entry.get_or_init(|| {
            let raw: RawEntry = toml::from_str(self.text).expect("checked by a test");
            entry(raw, self.runtime).expect("checked by a test")
        })
    }
}

static RECORDS: LazyLock<FxHashMap<&'static str, Record>> = LazyLock::new(|| {
    FILES
        .into_iter()
        .flat_map(|(text, runtime)| Record::all(text, runtime))
        .collect()
});

/// The data files.
const FILES: [(&str, Runtime); 3] = [
    (include_str!("../data/gomp.toml"), Runtime::Gomp),
    (include_str!("../data/kmpc.toml"), Runtime::Kmpc),
    (include_str!("../data/omp.toml"), Runtime::Api),
];

/// Every known entry point of an OpenMP runtime.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let read = |(text, runtime)| parse(text, runtime).expect("checked by a test");
        FILES.into_iter().flat_map(read).collect()
    });
    &ENTRIES
}

/// Endings that Fortran's names of API functions have, for 4-byte and 8-byte integers.
const FORTRAN_ENDINGS: [&str; 2] = ["_8_", "_"];

/// The entry point with this symbol (without version), Fortran's names included.
pub fn lookup(symbol: &str) -> Option<&'static Entry> {
    let exact = |name: &str| RECORDS.get(name).map(Record::entry);
    exact(symbol).or_else(|| {
        let mut names = FORTRAN_ENDINGS
            .iter()
            .filter_map(|e| symbol.strip_suffix(e));
        names.find_map(exact).or_else(|| family(symbol))
    })
}

/// The record for a family of symbols that this one belongs to: the one with the longest beginning.
fn family(symbol: &str) -> Option<&'static Entry> {
    static FAMILIES: LazyLock<Vec<(&'static str, &'static Record)>> = LazyLock::new(|| {
        let beginning = |(symbol, r): (&&'static str, _)| Some((symbol.strip_suffix('*')?, r));
        RECORDS.iter().filter_map(beginning).collect()
    });
    FAMILIES
        .iter()
        .filter(|(beginning, _)| symbol.starts_with(beginning))
        .max_by_key(|(beginning, _)| beginning.len())
        .map(|(_, record)| record.entry())
}

/// Whether the symbol belongs to an OpenMP runtime by its name, known to the tables or not. A program's own functions may
/// have such a name, those of [`is_interface_symbol`] apart.
pub fn is_runtime_symbol(symbol: &str) -> bool {
    is_interface_symbol(symbol)
        || ["omp_", "ompx_", "ompc_", "kmp_", "kmpc_"]
            .iter()
            .any(|p| symbol.starts_with(p))
}

/// Whether the symbol is of the interface between compilers and runtimes.
pub fn is_interface_symbol(symbol: &str) -> bool {
    ["GOMP_", "GOACC_", "__kmpc_", "__tgt_"]
        .iter()
        .any(|p| symbol.starts_with(p))
}

/// Whether a shared library's name (`libgomp.so.1`, wheel builders' `libgomp-a34b3233.so.1.0.0`) is an OpenMP runtime's.
pub fn is_runtime_library(name: &str) -> bool {
    ["libgomp", "libomp", "libiomp5"].iter().any(|stem| {
        name.strip_prefix(stem)
            .is_some_and(|rest| rest.starts_with('.') || rest.starts_with('-'))
    })
}

/// Construct and detail of a KMPC `ident_t`'s flags and a static loop's schedule: clang's `sections` are loops over
/// section numbers, its implicit barriers carry a flag (`kmp.h`).
pub const IDENT_BARRIER_IMPLICIT: u32 = 0x40;
/// [`IDENT_BARRIER_IMPLICIT`]: the flag of `sections`.
pub const IDENT_WORK_SECTIONS: u32 = 0x400;

/// The construct whose end a KMPC barrier is, by the flags of its `ident_t` (`kmp.h`, KMP_IDENT_BARRIER_IMPL_*).
pub fn ended_by_barrier(flags: u32) -> Option<Construct> {
    match flags & 0x1c0 {
        0x40 => Some(Construct::Loop),
        0xc0 => Some(Construct::Sections),
        0x140 => Some(Construct::Single),
        _ => None,
    }
}

/// Name of a KMPC schedule number, modifiers removed (`kmp.h`, `enum sched_type`).
pub fn kmpc_schedule(number: u32) -> Option<&'static str> {
    Some(match number & 0x1fff_ffff {
        33 => "static, chunk",
        34 => "static",
        35 => "dynamic",
        36 => "guided",
        37 => "runtime",
        38 => "auto",
        65 => "static, chunk, ordered",
        66 => "static, ordered",
        67 => "dynamic, ordered",
        68 => "guided, ordered",
        69 => "runtime, ordered",
        70 => "auto, ordered",
        91 => "static, chunk, distribute",
        92 => "static, distribute",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn embedded_files_are_well_formed_and_unique() {
        let mut ids = HashSet::new();
        let mut symbols = HashSet::new();
        for e in entries().iter().chain(calls::functions()) {
            assert!(ids.insert(e.id), "id {} twice", e.id);
            assert!(symbols.insert(&e.symbol), "{} twice", e.symbol);
            let is_message = e.probe == Some(Probe::Message);
            let present = e.args.iter().filter(|&&a| a != NO_ARG);
            for &a in present.skip(usize::from(is_message)) {
                assert!(a < e.nargs, "{}: argument {a} of {}", e.symbol, e.nargs);
            }
            assert!(
                e.probe.is_none() || e.no_probe.is_none(),
                "{}: a probe and none",
                e.symbol
            );
            if let Some(Probe::LoopStart | Probe::DispatchInit | Probe::StaticInit) = e.probe {
                assert!(
                    e.width == 4 || e.width == 8,
                    "{}: width {}",
                    e.symbol,
                    e.width
                );
            }
        }
    }

    #[test]
    fn records_that_are_read_alone_are_those_of_the_whole_files() {
        let all = entries();
        assert_eq!(RECORDS.len(), all.len());
        for entry in all {
            assert_eq!(lookup(&entry.symbol), Some(entry));
        }
    }

    #[test]
    fn stack_arguments_are_where_the_abi_puts_them() {
        let ull = lookup("GOMP_loop_ull_dynamic_start").unwrap();
        assert_eq!(
            (&ull.args[..4], ull.nargs, ull.unsigned),
            (&[1, 3, 5, 6][..], 7, true)
        );
        let init = lookup("__kmpc_for_static_init_4").unwrap();
        assert_eq!(
            (&init.args[..7], init.width),
            (&[0, 2, 4, 5, 6, 7, 8][..], 4)
        );
        assert_eq!(lookup("GOMP_task").unwrap().nargs, 10);
        assert_eq!(
            lookup("omp_get_thread_num").unwrap().query,
            Some(Query::ThreadNum)
        );
        let dist = lookup("__kmpc_dist_for_static_init_4").unwrap();
        assert_eq!((dist.args, dist.nargs), ([0, 2, 4, 5, 7, 8, 9, 6], 10));
        let wait = lookup("GOMP_loop_doacross_static_start").unwrap();
        assert_eq!(wait.args[..4], [NO_ARG, NO_ARG, 3, 4]);
    }

    #[test]
    fn families_and_fortran_names() {
        let symbol = |name: &str| lookup(name).map(|e| e.symbol.as_str());
        assert_eq!(symbol("omp_set_lock_"), Some("omp_set_lock"));
        assert_eq!(
            symbol("omp_set_num_threads_8_"),
            Some("omp_set_num_threads")
        );
        assert_eq!(symbol("__kmpc_atomic_float8_add"), Some("__kmpc_atomic_*"));
        assert_eq!(symbol("__kmpc_atomic_start"), Some("__kmpc_atomic_start"));
        assert_eq!(symbol("__tgt_target_nowait_mapper"), Some("__tgt_target*"));
        assert_eq!(symbol("GOMP_of_tomorrow"), None);
        assert_eq!(symbol("omp_of_tomorrow_"), None);
    }

    #[test]
    fn wrong_records_are_errors() {
        let record = |rest: &str| {
            format!(
                "[[entry]]\nid = 1\nsymbol = \"f\"\nconstruct = \"loop\"\nedge = \"begin\"\n{rest}"
            )
        };
        assert!(matches!(
            parse(&record("probe = \"fly\""), Runtime::Gomp),
            Err(PatternError::UnknownProbe { .. })
        ));
        assert!(matches!(
            parse(&record("args = [0,0,0,0,0,0,0,0,0]"), Runtime::Gomp),
            Err(PatternError::TooManyArgs(_))
        ));
        assert!(matches!(
            parse(&record("colour = 1"), Runtime::Gomp),
            Err(PatternError::Toml(_))
        ));
    }

    #[test]
    fn runtime_libraries_by_name() {
        for name in [
            "libgomp.so.1",
            "libomp.so.5",
            "libiomp5.so",
            "libgomp-a34b3233.so.1.0.0",
        ] {
            assert!(is_runtime_library(name), "{name}");
        }
        assert!(!is_runtime_library("libgompertz.so"));
    }
}
