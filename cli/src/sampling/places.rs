//! Names for samples: after a run the files that code was in are looked at, and what they tell is kept in the run's folder. So reports
//! need no program or library.

use super::constructs::Constructs;
use super::files::Files;
use super::jit;
use crate::atomic;
use crate::debug::DebugArgs;
use crate::input;
use anyhow::Result;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::run::{AUDIT_LIBRARY, RunModule};
use ompfuse_format::samples::ENDING;
use ompfuse_fuse::RunFiles;
use ompfuse_fuse::names::{self, readable};
use ompfuse_fuse::samples::{Code, Collected, PLACES_FILE, SampledPlace, SampledPlaces, maker};
use ompfuse_rewriter::addresses::{self, CodePlace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syscalls::Sysno;

/// Libraries with an OpenMP runtime, as their names begin.
const RUNTIMES: [&str; 3] = ["libgomp", "libomp", "libiomp5"];
/// Functions of a runtime that is in the program itself, as their names begin.
const RUNTIME_FUNCTIONS: [&str; 5] = ["GOMP_", "gomp_", "__kmp", "omp_get_", "omp_set_"];

/// Where the names of a run's samples come from.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The patched files, whose originals are named.
    pub(crate) modules: &'a [RunModule],
    pub(crate) debug: &'a DebugArgs,
    /// The programs' files, where there are no records: stacks tell constructs.
    pub(crate) programs: &'a [String],
    pub(crate) files: &'a Files,
}

/// Whether a file is a library with an OpenMP runtime, by its name.
pub(crate) fn is_runtime(file: &str) -> bool {
    RUNTIMES.iter().any(|runtime| file.starts_with(runtime))
}

/// Names what a run's samples have.
pub(crate) fn name(run: &Path, names: Names<'_>) -> Result<()> {
    let mut files = vec![];
    for entry in std::fs::read_dir(run)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if [".json", ENDING].iter().any(|e| name.ends_with(e)) {
            files.push((name.into_owned(), input::map(&path)?));
        }
    }
    let bytes = files.iter().map(|(name, input)| (name.as_str(), &**input));
    let collected = Collected::read(&RunFiles::from_folder(bytes)?)?;
    let mut places = SampledPlaces::default();
    for (path, offsets) in collected.wanted() {
        of_file(path, &offsets, names, &mut places);
    }
    if places.objects.is_empty() {
        return Ok(());
    }
    let named = |call: u32| Some((call, Sysno::new(call as usize)?.name().to_owned()));
    places.calls = collected.calls().into_iter().filter_map(named).collect();
    let json = serde_json::to_vec(&places)?;
    atomic::write(&run.join(PLACES_FILE), &json, 0o600)
}

fn of_file(path: &str, offsets: &BTreeSet<u64>, names: Names<'_>, to: &mut SampledPlaces) {
    let add = |to: &mut SampledPlaces, named: Vec<SampledPlace>, marks| {
        to.add(path.to_owned(), offsets.iter().copied().zip(named), marks);
    };
    if let Some(pid) = maker(path) {
        return add(to, jit::names(pid, offsets, path), BTreeMap::new());
    }
    let module = names.modules.iter().find(|m| m.patched == path);
    let file = path.rsplit('/').next().unwrap_or(path);
    let code = match file {
        RUNTIME_LIBRARY | AUDIT_LIBRARY => Code::Recording,
        // This command, before it became the program.
        _ if std::env::current_exe().is_ok_and(|own| own == Path::new(path)) => Code::Recording,
        _ if is_runtime(file) => Code::Runtime,
        _ => Code::User,
    };
    let is_program = module.is_some() || names.programs.iter().any(|p| p == path);
    let mut unnamed = SampledPlace {
        code,
        object: (!is_program).then(|| path.to_owned()),
        ..SampledPlace::default()
    };
    let all: Vec<u64> = offsets.iter().copied().collect();
    // What can't be read has no names, nor has what isn't looked into.
    let bytes = match code {
        Code::User => names.files.open(path),
        // Its own functions say what it was called for.
        Code::Runtime if !names.programs.is_empty() => names.files.open(path),
        Code::Runtime | Code::Recording => None,
    };
    let Some(bytes) = bytes else {
        return add(to, vec![unnamed; all.len()], BTreeMap::new());
    };
    let original = module.map_or(path, |m| &m.binary.path);
    let separate = match names.files.is_foreign() {
        true => names.debug.find_by_id(&bytes),
        false => names.debug.find(Path::new(original), &bytes),
    };
    let places = addresses::places(&bytes, separate.files(), &all);
    // Of a run with records only its patched files have constructs.
    let may_have = !names.programs.is_empty() && (names.modules.is_empty() || module.is_some());
    let constructs = may_have
        .then(|| Constructs::read(path, &bytes, &separate))
        .flatten();
    let mut marks = BTreeMap::new();
    if let Some(mut constructs) = constructs {
        unnamed.object = None;
        for (offset, place) in all.iter().zip(&places) {
            marks.extend(constructs.mark(place, to).map(|mark| (*offset, mark)));
        }
    }
    let counted = module.and_then(|m| m.binary.counted.as_ref());
    let is_counted = |place: &CodePlace| {
        let covers = counted.zip(place.address).and_then(|(c, at)| c.covers(at));
        covers == Some(true)
    };
    let named = places.into_iter().map(|place| SampledPlace {
        is_counted: is_counted(&place),
        ..sampled(place, &unnamed)
    });
    add(to, named.collect(), marks);
}

fn sampled(place: CodePlace, unnamed: &SampledPlace) -> SampledPlace {
    let symbol = place.function.as_deref();
    let is_runtime = symbol.is_some_and(|s| RUNTIME_FUNCTIONS.iter().any(|r| s.starts_with(r)));
    let code = match () {
        () if place.is_added => Code::Recording,
        () if is_runtime => Code::Runtime,
        () => unnamed.code,
    };
    if code != Code::User {
        return SampledPlace {
            code,
            function: symbol.filter(|_| code == Code::Runtime).map(str::to_owned),
            ..unnamed.clone()
        };
    }
    let readable = |name: &str| readable(name).into_owned();
    let inner = place.frames.first();
    let is_inlined = place.frames.len() > 1;
    let of_frame = inner.and_then(|f| f.function.as_deref());
    // A symbol says which part or copy of a function it is.
    let function = match is_inlined {
        true => of_frame,
        false => symbol.or(of_frame),
    };
    let outer = place.frames.last().and_then(|f| f.function.as_deref());
    let source = inner.and_then(|f| f.source.as_ref());
    SampledPlace {
        function: function
            .map(readable)
            .or_else(|| place.begin.map(names::unnamed)),
        inlined_into: symbol.or(outer).filter(|_| is_inlined).map(readable),
        file: source.map(|s| s.file.clone()),
        line: source.map(|s| s.line),
        ..unnamed.clone()
    }
}
