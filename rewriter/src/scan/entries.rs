//! Which addresses lead into the OpenMP runtime: stubs of the procedure linkage table, slots of the global offset
//! table, and the runtime's own functions where they are linked in. Also which lead nowhere back (`abort`).

mod stubs;

use super::bytes::part;
use super::dynamic::{Dynamic, Symbol};
use super::image::Image;
use super::names::is_no_return;
use super::search::Span;
use ompfuse_patterns::{
    Entry, Families, Query, Runtime, calls, is_interface_symbol, is_runtime_library,
    is_runtime_symbol, lookup,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;

/// Whether a runtime's texts are in the file: the names of variables that only runtimes read.
pub(crate) fn holds_nameless_runtime(image: &Image<'_>) -> bool {
    const TEXTS: [&[u8]; 2] = [b"GOMP_SPINCOUNT\0", b"KMP_BLOCKTIME\0"];
    let parts = image
        .loads
        .iter()
        .filter_map(|l| part(image.bytes, l.offset, l.file_size));
    parts.into_iter().any(|bytes| {
        let begins = |at: usize| TEXTS.iter().any(|t| bytes[at..].starts_with(t));
        let mut at = 0;
        // All begin with a letter that is rare enough to look for it first.
        while let Some(next) = bytes[at..].iter().position(|b| matches!(b, b'G' | b'K')) {
            at += next;
            if begins(at) {
                return true;
            }
            at += 1;
        }
        false
    })
}

/// A function of a runtime that the file can call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callee<'a> {
    pub symbol: &'a str,
    /// Its record; `None`: of a runtime by its name, but unknown.
    pub entry: Option<&'static Entry>,
}

impl Callee<'_> {
    /// The value that inlined shapes are built on, if this function returns one.
    pub(crate) fn query(&self) -> Option<Query> {
        self.entry.and_then(|e| e.query)
    }
}

/// Where the runtime is reached.
#[derive(Debug, Default)]
pub(crate) struct Entries<'a> {
    pub callees: Vec<Callee<'a>>,
    /// Stub or function address -> number in `callees`.
    pub targets: FxHashMap<u64, usize>,
    /// Slot address -> number in `callees`.
    pub slots: FxHashMap<u64, usize>,
    /// Where the last section of the global offset table begins: what code of the large model adds distances to.
    pub table: Option<u64>,
    /// Where stubs and functions of the runtime are.
    target_span: Option<Span>,
    /// Stubs and functions that don't return.
    pub no_return: FxHashSet<u64>,
    /// Slots of functions that don't return.
    pub no_return_slots: FxHashSet<u64>,
    /// Beginnings and jumps of all stubs, of the runtime or not: no code of the program.
    pub stubs: FxHashSet<u64>,
    /// The runtime's functions are linked in.
    pub contains_runtime: bool,
    /// Other libraries whose functions are looked for.
    families: Families,
}

/// A function of the runtime, or of another library that is looked for, by its symbol. The file's own functions are the program's,
/// whatever they are called, unless the name is one of the interface's or of the API's.
fn callee(symbol: &str, own: bool, families: Families) -> Option<Callee<'_>> {
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    if !own && let Some(entry) = calls::call(symbol, families) {
        let entry = Some(entry);
        return Some(Callee { symbol, entry });
    }
    // mold names its stubs and slots, `GOMP_parallel$plt`: they are found as any other linker's.
    if !is_runtime_symbol(symbol) || symbol.contains('$') {
        return None;
    }
    let entry = lookup(symbol);
    let is_ours = is_interface_symbol(symbol)
        || entry.is_some_and(|e| e.probe.is_some() || e.query.is_some());
    (!own || is_ours).then_some(Callee { symbol, entry })
}

/// The families that a library itself defines functions of. It is a part of them, as Fortran's interface to MPI is. What it calls of
/// them is inside of a call that is seen where it is made.
fn implemented(image: &Image<'_>, dynamic: &Dynamic<'_>, families: Families) -> Families {
    let is_program = dynamic.pie_flag || image.interpreter && dynamic.soname.is_none();
    if is_program {
        return Families::NONE;
    }
    let defined = dynamic.symbols.iter().filter(|s| s.is_function());
    let found = defined.filter_map(|s| calls::call(s.name, families)?.family());
    found.collect()
}

/// Of several names of one function the known, short one: `GOMP_loop_dynamic_next` has four more.
fn alias_rank<'a>(callee: &Callee<'a>) -> (bool, usize, &'a str) {
    (callee.entry.is_none(), callee.symbol.len(), callee.symbol)
}

impl<'a> Entries<'a> {
    /// Whether functions of this interface are reached to which outlined functions are handed over.
    pub(crate) fn hand_over(&self, runtime: Runtime) -> bool {
        let mut entries = self.callees.iter().filter_map(|c| c.entry);
        entries.any(|e| e.runtime == runtime && e.outlined_arg.is_some())
    }

    /// Whether anything is reached whose calls are sites.
    pub(crate) fn are_any(&self) -> bool {
        !self.callees.is_empty()
    }

    /// Collects the ways into the runtime, and into other libraries of some families.
    pub(crate) fn collect(
        image: &Image<'a>,
        dynamic: &Dynamic<'a>,
        symbols: &[Symbol<'a>],
        families: Families,
    ) -> Entries<'a> {
        let mut out = Entries {
            families: families.without(implemented(image, dynamic, families)),
            ..Entries::default()
        };
        let mut numbers: HashMap<&'a str, usize> = HashMap::new();
        for s in symbols.iter().chain(&dynamic.symbols) {
            if !s.defined || !image.is_code(s.va) {
                continue;
            }
            if let Some(number) = out.number(s.name, true, &mut numbers) {
                let this = out.callees[number];
                let better = |of: &usize| alias_rank(&this) < alias_rank(&out.callees[*of]);
                if out.targets.get(&s.va).is_none_or(better) {
                    out.targets.insert(s.va, number);
                }
                out.contains_runtime = true;
            }
        }
        for &(at, name) in &dynamic.slots {
            if is_no_return(name) {
                out.no_return_slots.insert(at);
            }
            let number = out.number(name, false, &mut numbers);
            // Who calls another library's function through a variable may have put another one there.
            let is_call = |n: &usize| out.callees[*n].entry.is_some_and(|e| e.family().is_some());
            let is_changed = |n: &usize| is_call(n) && dynamic.variables.binary_search(&at).is_ok();
            if let Some(number) = number.filter(|n| !is_changed(n)) {
                out.slots.insert(at, number);
            }
        }
        if out.contains_runtime {
            for &(at, value) in &dynamic.relative {
                if let Some(&number) = out.targets.get(&value) {
                    out.slots.insert(at, number);
                }
            }
        }
        let sections = image.sections.iter();
        let mut tables = sections.filter(|s| matches!(s.name, ".got" | ".got.plt") && s.va != 0);
        out.table = tables.next_back().map(|s| s.va);
        let all = dynamic.slots.iter().map(|s| s.0).collect();
        out.find_stubs(image, &all);
        out.find_pushing_stubs(image, &all);
        out.target_span = Span::of(out.targets.keys().copied());
        out
    }

    /// Whether an address leads into the runtime: the range of all such tells for most.
    pub(crate) fn is_target(&self, va: u64) -> bool {
        self.target_span.is_some_and(|span| span.holds(va)) && self.targets.contains_key(&va)
    }

    fn number(
        &mut self,
        symbol: &'a str,
        own: bool,
        numbers: &mut HashMap<&'a str, usize>,
    ) -> Option<usize> {
        let callee = callee(symbol, own, self.families)?;
        Some(*numbers.entry(callee.symbol).or_insert_with(|| {
            self.callees.push(callee);
            self.callees.len() - 1
        }))
    }

    /// The file's runtimes by their names: needed libraries, or what is linked in.
    pub(crate) fn runtimes(&self, dynamic: &Dynamic<'_>) -> Vec<String> {
        let mut out: Vec<String> = dynamic
            .needed
            .iter()
            .filter(|n| is_runtime_library(n))
            .map(|&n| n.to_owned())
            .collect();
        if self.contains_runtime {
            let kmpc = self
                .targets
                .values()
                .any(|&i| self.callees[i].symbol.starts_with("__kmpc"));
            out.push(
                if kmpc {
                    "libomp (linked in)"
                } else {
                    "libgomp (linked in)"
                }
                .to_owned(),
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_runtime_and_of_the_program() {
        let callee = |name, own| callee(name, own, Families::default());
        let known = |name| callee(name, false).map(|c| c.entry.is_some());
        assert!(
            callee("omp_get_thread_num_", false)
                .unwrap()
                .query()
                .is_some()
        );
        assert_eq!(known("omp_get_wtime"), Some(true));
        assert_eq!(known("omp_of_tomorrow"), Some(false));
        assert_eq!(known("GOMP_from_the_future"), Some(false));
        assert_eq!(known("printf"), None);
        assert_eq!((known("read"), known("mpi_send_")), (None, Some(true)));
        assert!(callee("MPI_Send", true).is_none());
        assert!(callee("omp_set_lock", true).is_some() && callee("__kmpc_x", true).is_some());
        // mold's stub.
        assert!(super::callee("GOMP_parallel$plt", true, Families::ALL).is_none());
        assert!(callee("omp_helper", true).is_none() && callee("kmp_search", true).is_none());
    }
}
