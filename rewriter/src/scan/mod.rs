//! Finding every OpenMP construct in a compiled program: bytes in, a [`Scan`] out.
//!
//! Ways into the runtime (`entries`) give candidates, found in the bytes at memory speed; only functions with a
//! candidate are decoded (`decode`). Most arguments stand right before their calls (`flow::nearby`); for the rest,
//! calls through registers, and the shapes that gcc inlines (`shapes`), values are propagated through whole functions
//! (`flow::dataflow`, over the instructions' effects in `flow::op`); functions that call KMPC's interface, or that it hands over, are
//! none of gcc's.

mod assemble;
mod atomics;
mod bytes;
mod calls;
mod candidates;
pub(crate) mod cfg;
mod clobbers;
mod clock;
mod counted;
mod decode;
mod discover;
mod draft;
mod dump;
mod dynamic;
mod entries;
mod error;
pub(crate) mod flow;
mod function;
mod functions;
mod graph;
mod grid;
mod ident;
mod image;
mod lsda;
mod madvise;
mod module;
mod names;
mod natural;
mod no_return;
mod numbering;
mod regions;
mod relays;
mod restartable;
mod rules;
mod search;
mod shapes;
pub(crate) mod source;
mod taken;
mod traced;
pub(crate) mod wanted;
mod windows;
mod wish;

pub use dump::{Code, code};
pub use error::ScanError;
pub use wish::{Known, Wanted, Wish};

use crate::debug::DebugFiles;
use crate::model::Scan;
use clock::Clock;
use dynamic::{Dynamic, Symbol};
use entries::Entries;
use functions::Functions;
use image::{Image, Kind};
use madvise::Madvise;
pub(crate) use module::Module;
use ompfuse_format::abi::OWN_FUNCTIONS;
use ompfuse_format::site::{BinaryInfo, SelfDescription};
use ompfuse_patterns::{Families, is_runtime_library, is_runtime_symbol};
use ompfuse_progress::Progress;
use rules::Rules;
use std::sync::OnceLock;
use std::time::Duration;

/// What a patched file says of itself; `None` for files that `ompfuse patch` didn't write.
///
/// # Errors
/// The file isn't readable as ELF, or its description isn't.
pub fn self_description(bytes: &[u8], path: &str) -> Result<Option<SelfDescription>, ScanError> {
    match Image::parse(bytes, path)?.self_description() {
        None => Ok(None),
        Some(Some(description)) => Ok(Some(description)),
        Some(None) => Err(ScanError::Undescribed {
            path: path.to_owned(),
        }),
    }
}

/// Finds every OpenMP construct in a program or shared library. `path` is for messages and the result only.
///
/// # Errors
/// The file can't be read as an x86-64 ELF program or library, or has nothing to do with OpenMP.
pub fn scan(bytes: &[u8], path: &str) -> Result<Scan, ScanError> {
    let (debug, options) = (DebugFiles::default(), ScanOptions::default());
    scan_chosen(bytes, path, debug, options, Progress::default())
}

/// As [`scan`], for somebody who waits, with options of what is looked for; what the file itself doesn't say of source lines is in other
/// files. A file that doesn't use OpenMP is no error if something else is looked for and found.
///
/// # Errors
/// As [`scan`].
pub fn scan_chosen(
    bytes: &[u8],
    path: &str,
    debug: DebugFiles<'_>,
    options: ScanOptions<'_>,
    progress: Progress<'_>,
) -> Result<Scan, ScanError> {
    Ok(scan_with(bytes, path, debug, options, Clock::default(), progress)?.0)
}

/// What is looked for besides constructs, and how.
#[derive(Clone, Copy, Default)]
pub struct ScanOptions<'x> {
    /// Functions that are wanted as regions of their own.
    pub functions: Option<&'x dyn Wish>,
    /// Functions whose loops are wanted as regions of their own.
    pub loops: Option<&'x dyn Wish>,
    /// Functions whose instructions are counted, and the set of events of [`exact`](ompfuse_format::event::exact).
    pub count: Option<(&'x dyn Wish, u32)>,
    /// Other libraries whose calls are looked for; MPI by default.
    pub calls: Families,
    /// Nothing is to be patched: what no loader can be asked for, or lacks functions that probes call, is scanned, too.
    pub only_look: bool,
    /// Every inline probe that can have a short jump has one, as if there were no more bytes: for tests of how room is made.
    pub scarce: bool,
}

/// As [`scan`]; also how long the parts of looking at functions took, on all threads together, by name.
///
/// # Errors
/// As [`scan`].
pub fn scan_timed(bytes: &[u8], path: &str) -> Result<(Scan, Times), ScanError> {
    let debug = DebugFiles::default();
    let (options, clock) = (ScanOptions::default(), Clock::running());
    scan_with(bytes, path, debug, options, clock, Progress::default())
}

/// What looking at functions is of a scan's time.
const OF_FUNCTIONS: f64 = 0.9;

/// Times by name.
pub type Times = Vec<(&'static str, Duration)>;

/// As [`scan`], with [`ScanOptions::scarce`].
///
/// # Errors
/// As [`scan`].
#[doc(hidden)]
pub fn scan_scarce(bytes: &[u8], path: &str) -> Result<Scan, ScanError> {
    let options = ScanOptions {
        scarce: true,
        ..ScanOptions::default()
    };
    scan_chosen(
        bytes,
        path,
        DebugFiles::default(),
        options,
        Progress::default(),
    )
}

fn scan_with(
    bytes: &[u8],
    path: &str,
    debug: DebugFiles<'_>,
    options: ScanOptions<'_>,
    clock: Clock,
    progress: Progress<'_>,
) -> Result<(Scan, Times), ScanError> {
    let Read {
        module,
        binary,
        candidates,
    } = read(bytes, path, debug, options, clock, progress)?;
    let mut whole = function::find_all(&module, candidates);
    let counted = match options.count {
        None => None,
        Some((wish, set)) => {
            let wanted = chosen(&module, wish, path, debug)?;
            Some(counted::add(&module, &wanted, set, &mut whole))
        }
    };
    let mut scan = assemble::assemble(&module, whole, binary, debug);
    if let Some(counted) = counted {
        counted.tell(&module, &mut scan);
    }
    progress.advance(1.0 - OF_FUNCTIONS);
    Ok((scan, module.clock.times()))
}

/// What is known before functions are looked at.
struct Read<'a> {
    module: Module<'a>,
    binary: BinaryInfo,
    /// Addresses of bytes that may be calls of the runtime, ascending.
    candidates: Vec<u64>,
}

fn read<'a>(
    bytes: &'a [u8],
    path: &str,
    debug: DebugFiles<'_>,
    options: ScanOptions<'_>,
    clock: Clock,
    progress: Progress<'a>,
) -> Result<Read<'a>, ScanError> {
    let image = Image::parse(bytes, path)?;
    if image.self_description().is_some() {
        return Err(ScanError::AlreadyPatched {
            path: path.to_owned(),
        });
    }
    let dynamic = Dynamic::parse(&image);
    let no_loader = !image.interpreter
        && (image.dynamic.is_none() || image.kind == Kind::Executable || dynamic.pie_flag);
    if no_loader && !options.only_look {
        return Err(ScanError::Static {
            path: path.to_owned(),
        });
    }
    if dynamic.soname.is_some_and(is_runtime_library) {
        return Err(ScanError::Runtime {
            path: path.to_owned(),
        });
    }
    let symbols = dynamic::static_symbols(&image);
    let (entries, functions) = rayon::join(
        || Entries::collect(&image, &dynamic, &symbols, options.calls),
        || Functions::collect(&image, &[&symbols, &dynamic.symbols]),
    );
    let is_wished = options.functions.is_some() || options.loops.is_some();
    if !entries.are_any() && !is_wished {
        let path = path.to_owned();
        return Err(match entries::holds_nameless_runtime(&image) {
            true => ScanError::NamelessRuntime { path },
            false => ScanError::NoOpenMp { path },
        });
    }
    let mut binary = binary_info(&image, &dynamic, &symbols, &entries, path);
    binary.debug_files = debug.identity();
    let sequences = restartable::sequences(&image, &dynamic);
    let mut module = Module {
        image,
        dynamic,
        symbols,
        functions,
        entries,
        clobbers: clobbers::Clobbers::default(),
        objects: OnceLock::new(),
        criticals: OnceLock::new(),
        pointers: OnceLock::new(),
        sequences,
        clock,
        progress: progress.part(OF_FUNCTIONS),
        rules: Rules::of(bytes),
        madvise: Madvise::new(progress),
        scarce: options.scarce,
        wanted: Vec::new(),
        looped: Vec::new(),
    };
    if let Some(function) = missing(&module).filter(|_| !options.only_look) {
        let path = path.to_owned();
        return Err(ScanError::IncompleteRuntime { path, function });
    }
    let candidates = candidates::find(&module.image, &module.entries);
    discover::extend(&mut module, &candidates);
    if let Some(wish) = options.functions {
        module.wanted = chosen(&module, wish, path, debug)?;
    }
    if let Some(wish) = options.loops {
        module.looped = chosen(&module, wish, path, debug)?;
        binary.loops_of = wanted::entries(&module, &module.looped);
    }
    if !module.entries.are_any() && !(0..module.functions.count()).any(|n| module.is_wanted(n)) {
        return Err(ScanError::NoFunctions {
            path: path.to_owned(),
        });
    }
    Ok(Read {
        module,
        binary,
        candidates,
    })
}

/// Of each function whether it is wanted.
fn chosen(
    module: &Module<'_>,
    wish: &dyn Wish,
    path: &str,
    debug: DebugFiles<'_>,
) -> Result<Vec<Wanted>, ScanError> {
    if !wish.needs_files() {
        return Ok(wanted::wanted(module, wish, None));
    }
    let sections = source::AllSections::read(module.image.bytes, debug);
    let lines = source::Lines::read(&sections);
    match lines.are_there() {
        true => Ok(wanted::wanted(module, wish, Some(&lines))),
        false => Err(ScanError::NoLines {
            path: path.to_owned(),
        }),
    }
}

/// What a runtime that is linked in lacks (`--gc-sections`), and no other runtime can tell: a module that defines some of the
/// interface's functions and imports others stands between a program and its runtime.
fn missing(module: &Module<'_>) -> Option<&'static str> {
    let imports = |s: &Symbol<'_>| !s.defined && is_runtime_symbol(s.name);
    if !module.entries.contains_runtime || module.dynamic.symbols.iter().any(imports) {
        return None;
    }
    let own = assemble::own_functions(module);
    let mut needed = OWN_FUNCTIONS.iter().zip(own).take(2);
    needed.find_map(|(&(_, name), at)| at.is_none().then_some(name))
}

fn binary_info(
    image: &Image<'_>,
    dynamic: &Dynamic<'_>,
    symbols: &[Symbol<'_>],
    entries: &Entries<'_>,
    path: &str,
) -> BinaryInfo {
    let is_program = dynamic.pie_flag || (image.interpreter && dynamic.soname.is_none());
    let kind = match image.kind {
        Kind::Executable => "executable",
        Kind::Dynamic if is_program => "pie",
        Kind::Dynamic => "library",
    };
    BinaryInfo {
        path: path.to_owned(),
        build_id: image.build_id(),
        kind: kind.to_owned(),
        stripped: symbols.is_empty(),
        runtimes: entries.runtimes(dynamic),
        debug_files: None,
        loops_of: Vec::new(),
        settings: Vec::new(),
        counted: None,
    }
}
