//! Finding every OpenMP construct in a compiled program: bytes in, a [`Scan`] out.
//!
//! Ways into the runtime (`entries`) give candidates, found in the bytes at memory speed; only functions with a
//! candidate are decoded (`decode`), and values are propagated through them (`dataflow`) to know arguments, calls
//! through registers, and the shapes that compilers inline (`shapes`).

mod calls;
mod candidates;
mod cfg;
mod dataflow;
mod decode;
mod dom;
mod draft;
mod dynamic;
mod entries;
mod error;
mod functions;
mod ident;
mod image;
mod jump_table;
mod lsda;
mod no_return;
mod regions;
mod shapes;
mod source;
mod step;
mod value;
mod windows;

pub use error::ScanError;

use crate::model::{Action, LinkVa, Scan, Site, Window};
use cfg::Body;
use dataflow::Flow;
use draft::Draft;
use dynamic::{Dynamic, Symbol};
use entries::Entries;
use functions::Functions;
use image::{Image, Kind};
use no_return::NoReturn;
use object::elf;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{BinaryInfo, Edge, HexAddress, SelfDescription, SiteInfo};
use ompfuse_patterns::is_runtime_library;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Everything read from the file before code is looked at.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    image: Image<'a>,
    dynamic: Dynamic<'a>,
    symbols: Vec<Symbol<'a>>,
    functions: Functions,
    entries: Entries<'a>,
    no_return: RefCell<NoReturn>,
}

impl Module<'_> {
    /// Whether a call to this address never comes back.
    fn never_returns(&self, target: u64) -> bool {
        self.no_return.borrow_mut().check(self, target, 0)
    }

    /// The name of the variable at this address.
    fn object_name(&self, va: u64) -> Option<&str> {
        self.symbols
            .iter()
            .chain(&self.dynamic.symbols)
            .find(|s| s.defined && s.va == va && s.kind == elf::STT_OBJECT.0)
            .map(|s| s.name)
    }
}

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
    let image = Image::parse(bytes, path)?;
    if image.self_description().is_some() {
        return Err(ScanError::AlreadyPatched {
            path: path.to_owned(),
        });
    }
    let dynamic = Dynamic::parse(&image);
    let no_loader = !image.interpreter
        && (image.dynamic.is_none() || image.kind == Kind::Executable || dynamic.pie_flag);
    if no_loader {
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
    let entries = Entries::collect(&image, &dynamic, &symbols);
    if entries.callees.is_empty() {
        let path = path.to_owned();
        return Err(match entries::holds_nameless_runtime(&image) {
            true => ScanError::NamelessRuntime { path },
            false => ScanError::NoOpenMp { path },
        });
    }
    let functions = Functions::collect(&image, &[&symbols, &dynamic.symbols]);
    let binary = binary_info(&image, &dynamic, &symbols, &entries, path);
    let no_return = RefCell::default();
    let module = Module {
        image,
        dynamic,
        symbols,
        functions,
        entries,
        no_return,
    };
    let mut drafts = Vec::new();
    let bodies = bodies(&module, &mut drafts);
    let (body_of, drafts) = constructs(&module, &bodies, drafts);
    Ok(assemble(&module, &bodies, &body_of, drafts, binary))
}

/// Finds the sites of every function; with the number of each site's function.
fn constructs(
    module: &Module<'_>,
    bodies: &[Body],
    mut drafts: Vec<Draft>,
) -> (Vec<Option<usize>>, Vec<Draft>) {
    let mut body_of = vec![None; drafts.len()];
    let mut calls = Vec::new();
    for (i, body) in bodies.iter().enumerate() {
        let flow = Flow::compute(module, body);
        let before = drafts.len();
        calls::find(module, body, &flow, &mut drafts);
        body_of.resize(drafts.len(), Some(i));
        calls.push((flow, before..drafts.len()));
    }
    let mut outlined = BTreeMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        if let Some(va) = draft.outlined {
            outlined.entry(va).or_insert(i);
        }
    }
    for (i, (flow, own)) in calls.into_iter().enumerate() {
        let body = &bodies[i];
        let start = module.functions.get(body.function).start;
        regions::link(body, start, own.clone(), &outlined, &mut drafts);
        shapes::find(
            module,
            body,
            &flow,
            outlined.contains_key(&start),
            own,
            &mut drafts,
        );
        body_of.resize(drafts.len(), Some(i));
    }
    (body_of, drafts)
}

/// Adds windows and source lines, and numbers everything by address.
fn assemble(
    module: &Module<'_>,
    bodies: &[Body],
    body_of: &[Option<usize>],
    mut drafts: Vec<Draft>,
    binary: BinaryInfo,
) -> Scan {
    let placed = windows::place(module, bodies, body_of, &mut drafts);
    let debug = source::DebugSections::read(&module.image);
    let lines = source::Lines::read(&debug);
    let outlined = drafts
        .iter()
        .filter(|d| d.is_gomp())
        .filter_map(|d| d.outlined)
        .collect();
    let begun = lines.beginnings(&outlined);
    for draft in &mut drafts {
        // gcc's calls have the line of whatever stands before; the outlined function begins with the construct's.
        let begun = draft
            .outlined
            .filter(|_| draft.is_gomp())
            .and_then(|va| begun.get(&va).cloned());
        draft.source = begun
            .or_else(|| lines.at(draft.line_at))
            .or(draft.source.take());
    }
    let (ids, sites) = number(drafts);
    let windows = placed
        .into_iter()
        .map(|(range, members)| {
            let mut sites: Vec<u32> = members.into_iter().map(|d| ids[d]).collect();
            sites.sort_unstable();
            let len = (range.end - range.start) as u32;
            Window {
                start: LinkVa(range.start),
                len,
                sites,
            }
        })
        .collect();
    Scan {
        binary,
        sites,
        windows,
        queries: queries(module),
    }
}

/// The runtime's functions that tell thread number and team size, where they are linked in.
fn queries(module: &Module<'_>) -> Option<[LinkVa; 2]> {
    let symbols = module.symbols.iter().chain(&module.dynamic.symbols);
    let address = |name: &str| {
        let mut all = symbols.clone();
        let found = all.find(|s| {
            let own = s.defined && module.image.is_code(s.va);
            own && s.name.split('@').next() == Some(name)
        });
        found.map(|s| LinkVa(s.va))
    };
    Some([
        address("omp_get_thread_num")?,
        address("omp_get_num_threads")?,
    ])
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
    }
}

/// Decodes every function with a candidate. Candidates outside of functions become sites that can't be patched.
fn bodies(module: &Module<'_>, drafts: &mut Vec<Draft>) -> Vec<Body> {
    let mut by_function: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for va in candidates::find(&module.image, &module.entries) {
        match module.functions.at(va) {
            Some(index) => by_function.entry(index).or_default().push(va),
            None => {
                let mut draft = Draft::new(va, Construct::Service, Edge::Encloses);
                draft.skip("in no known function: where instructions begin is unknown");
                drafts.push(draft);
            }
        }
    }
    let mut out = Vec::new();
    let mut done = BTreeSet::new();
    // Moved parts last: most come with their function.
    let is_part = |i: &usize| module.functions.get(*i).fragment;
    let order = by_function.keys().copied().filter(|i| !is_part(i));
    for index in order.chain(by_function.keys().copied().filter(is_part)) {
        let f = module.functions.get(index);
        let internal = module.entries.contains_runtime
            && f.base_name().is_some_and(entries::is_runtime_internal);
        if internal || done.contains(&index) {
            continue;
        }
        let mut owner = index;
        if f.fragment
            && let Some(parent) = f.base_name().and_then(|n| module.functions.named(n))
        {
            owner = parent;
        }
        let own: Vec<u64> = by_function.get(&owner).cloned().unwrap_or_default();
        let mut body = Body::build(module, owner, &own);
        if !body.parts.contains(&index) {
            body = Body::build(module, index, &by_function[&index]);
            body.trouble
                .get_or_insert("it is a part of an unknown function");
        }
        done.extend(body.parts.iter().copied());
        out.push(body);
    }
    out.sort_by_key(|b| module.functions.get(b.function).start);
    out
}

/// Orders the sites by address and numbers them; also the number of each draft.
fn number(drafts: Vec<Draft>) -> (Vec<u32>, Vec<Site>) {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    let rank = |edge| match edge {
        Edge::End => 0,
        Edge::Next => 1,
        Edge::Begin | Edge::Encloses => 2,
    };
    // At one address ends come before begins, and inner constructs end before outer ones.
    order.sort_by_key(|&i| {
        let d = &drafts[i];
        let begun = d.region.map_or(0, |r| drafts[r].address);
        (d.address, rank(d.edge), std::cmp::Reverse(begun), i)
    });
    let mut ids = vec![0u32; drafts.len()];
    for (id, &i) in order.iter().enumerate() {
        ids[i] = id as u32;
    }
    let mut slots: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
    let sites = order
        .iter()
        .filter_map(|&i| Some((i, slots[i].take()?)))
        .map(|(i, mut d)| {
            if let Some(Action::Inline(probe)) = &mut d.action
                && probe.probe == Probe::InlineLoopAgain
            {
                probe.param = i64::from(ids[probe.param as usize]);
            }
            (i, d)
        })
        .map(|(i, d)| Site {
            info: SiteInfo {
                id: ids[i],
                address: HexAddress(d.address),
                function: d.function,
                construct: d.construct,
                edge: d.edge,
                region: ids[d.region.unwrap_or(i)],
                entry: d.entry,
                mechanism: d.mechanism,
                outlined: d.outlined.map(HexAddress),
                source: d.source,
                detail: d.detail,
                outcome: d.outcome,
                reason: d.reason,
            },
            action: d.action,
        })
        .collect();
    (ids, sites)
}
