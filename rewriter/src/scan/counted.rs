//! Functions whose instructions are counted (`crate::count`). All functions of the file are looked at: what one of them reads behind a
//! call tells what others keep for it.

use super::cfg::Body;
use super::decode::{Pool, Scratch};
use super::function::Whole;
use super::relays::Relayed;
use super::wanted;
use super::wish::Wanted;
use super::{Module, names, windows};
use crate::count::live::{self, Live};
use crate::count::spots::{self, Placed};
use crate::count::{Increment, segments};
use crate::model::{Action, Counting, Scan};
use crate::place::{self, Finder};
use ompfuse_format::site::{Counted, HexAddress, Uncounted};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;

/// What was found.
pub(super) struct Found {
    /// By address.
    increments: Vec<Increment>,
    counting: Vec<Counting>,
    told: Counted,
    /// By function, with all of its parts: its number among those that count, or among those that can't.
    functions: FxHashMap<usize, Result<usize, usize>>,
}

impl Found {
    /// Says it in a scan.
    pub(super) fn tell(self, module: &Module<'_>, scan: &mut Scan) {
        let Found {
            mut told,
            functions,
            increments,
            mut counting,
        } = self;
        let sites = || scan.sites.iter().map(|site| &site.info);
        // Of the sites of a region one hands its code over, or none.
        let outlined = sites().filter_map(|s| Some((s.region, s.outlined?)));
        let outlined: FxHashMap<u32, HexAddress> = outlined.collect();
        for site in sites() {
            let code = outlined.get(&site.region).unwrap_or(&site.address);
            let function = module.functions.at(code.0);
            match function.and_then(|n| functions.get(&n)) {
                Some(&Ok(number)) => counting[number].told.sites.push(site.id),
                Some(&Err(refused)) => told.refused[refused].sites.push(site.id),
                None => told.left_out.push(site.id),
            }
        }
        scan.increments = increments;
        scan.counting = counting;
        scan.binary.counted = Some(told);
    }
}

/// A function, looked at alone.
struct Looked {
    function: usize,
    parts: Vec<usize>,
    instructions: usize,
    odd: live::Set,
    trouble: Option<String>,
}

/// A function that is counted, or why it isn't.
struct Function {
    looked: Looked,
    placed: Result<Placed, String>,
}

/// What all functions have in common.
struct Ground<'m, 'a> {
    module: &'m Module<'a>,
    pool: Pool,
    /// Sites by function: what decoding must cover.
    candidates: FxHashMap<usize, Vec<u64>>,
    /// Places where the sum must be exact: probes, and what is named elsewhere.
    cuts: BTreeSet<u64>,
    /// Instructions that relays change.
    changed: FxHashSet<u64>,
    /// Windows that are there, ascending.
    taken: Vec<place::Placed>,
    odd: live::Set,
    /// Events.
    set: u32,
}

/// Adds windows that count to those that there are. `set`: of events.
pub(super) fn add(module: &Module<'_>, wanted: &[Wanted], set: u32, whole: &mut Whole) -> Found {
    let mut ground = Ground::of(module, set, whole);
    let all: Vec<Looked> = (0..module.functions.count())
        .into_par_iter()
        .filter(|&n| is_code(module, n))
        .map(|n| ground.with(n, |body| look(module, n, body)))
        .collect();
    ground.odd = all.iter().fold(0, |set, looked| set | looked.odd);
    let mut claims: FxHashMap<usize, usize> = FxHashMap::default();
    for &part in all.iter().flat_map(|looked| &looked.parts) {
        *claims.entry(part).or_default() += 1;
    }
    let is_wanted = |looked: &Looked| {
        let wanted = wanted.get(looked.function);
        wanted.is_some_and(|wanted| *wanted != Wanted::No)
    };
    let mut functions: Vec<Function> = all
        .into_iter()
        .filter(is_wanted)
        .map(|mut looked| {
            if looked.parts.iter().any(|part| claims[part] > 1) {
                looked.trouble = Some(wanted::SHARED.into());
            }
            Function {
                placed: Err(String::new()),
                looked,
            }
        })
        .collect();
    let none = BTreeSet::new();
    functions
        .par_iter_mut()
        .for_each(|f| ground.place(f, &none));
    ground.bar(&mut functions);
    finish(module, functions, set, whole)
}

/// Whether a function is looked at: its code is the program's.
fn is_code(module: &Module<'_>, number: usize) -> bool {
    let function = module.functions.get(number);
    let is_runtimes = module.entries.contains_runtime
        && function.base_name().is_some_and(names::is_runtime_internal);
    !function.fragment && !is_runtimes && !wanted::is_linkers(module, function.start)
}

fn look(module: &Module<'_>, function: usize, body: &Body) -> Looked {
    let trouble = segments::trouble(body).or_else(|| calls_itself_inside(module, body));
    Looked {
        function,
        parts: body.parts.clone(),
        instructions: body.insns.len(),
        // Code that isn't known may read anything.
        odd: match (body.unknown, body.trouble) {
            (None, None) => Live::of(body, 0).odd,
            _ => live::ALL,
        },
        trouble,
    }
}

/// Code that a function calls in itself is no part of its flow of control.
fn calls_itself_inside(module: &Module<'_>, body: &Body) -> Option<String> {
    let is_inside = |va: u64| {
        let mut parts = body.parts.iter().map(|&part| module.functions.get(part));
        parts.any(|part| part.start < va && va < part.end)
    };
    let mut calls = body.insns.iter().filter(|insn| live::is_call(insn));
    let calls = calls.find(|insn| is_inside(insn.near_branch_target()))?;
    Some(format!("it calls code within itself at {:#x}", calls.ip()))
}

impl<'m, 'a> Ground<'m, 'a> {
    fn of(module: &'m Module<'a>, set: u32, whole: &Whole) -> Ground<'m, 'a> {
        let mut candidates: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
        for draft in &whole.drafts {
            if let Some(function) = draft.function {
                let of_function = candidates.entry(function as usize).or_default();
                of_function.push(draft.address);
            }
        }
        candidates.values_mut().for_each(|all| all.sort_unstable());
        let probes = whole.drafts.iter().filter_map(|draft| {
            matches!(draft.action, Some(Action::Inline(_))).then_some(draft.address)
        });
        let symbols = module.symbols.iter().chain(&module.dynamic.symbols);
        let symbols = symbols.filter(|s| s.defined).map(|s| s.va);
        let named = symbols.chain(module.pointers().iter().copied());
        let named = named.filter(|va| module.image.is_code(*va));
        Ground {
            module,
            pool: Pool::default(),
            candidates,
            cuts: probes.chain(named).collect(),
            changed: whole.relays.iter().flat_map(Relayed::changed).collect(),
            taken: whole.windows.clone(),
            odd: 0,
            set,
        }
    }

    /// Decodes a function for somebody.
    fn with<T>(&self, function: usize, look: impl FnOnce(&Body) -> T) -> T {
        let mut lent = self.pool.lend();
        let scratch: &mut Scratch = lent.scratch();
        let candidates = self.candidates.get(&function);
        let candidates = candidates.map_or(&[][..], Vec::as_slice);
        let body = Body::build(self.module, scratch, function, candidates);
        let known = self.module.functions.get(function);
        self.module.madvise.read(known.end - known.start);
        let out = look(&body);
        scratch.recycle(body);
        out
    }

    /// Finds places for a function's increments.
    fn place(&self, f: &mut Function, barred: &BTreeSet<u64>) {
        let function = f.looked.function;
        let refusal = wanted::untouchable(self.module, function).map(String::from);
        f.placed = match f.looked.trouble.clone().or(refusal) {
            Some(why) => Err(why),
            None => self.with(function, |body| self.place_in(body, barred)),
        };
    }

    fn place_in(&self, body: &Body, barred: &BTreeSet<u64>) -> Result<Placed, String> {
        let module = self.module;
        let (mut cuts, mut taken) = (BTreeSet::new(), Vec::new());
        for &part in &body.parts {
            let part = module.functions.get(part);
            cuts.extend(self.cuts.range(part.start..part.end));
            let first = self.taken.partition_point(|w| w.range.end <= part.start);
            let rest = self.taken[first..].iter();
            taken.extend(rest.take_while(|w| w.range.start < part.end).cloned());
        }
        taken.sort_by_key(|w| w.range.start);
        let changed = self
            .changed
            .iter()
            .filter(|va| body.insn_at(**va).is_some());
        let targets = body.targets.iter().chain(barred).copied();
        let targets = targets.chain(windows::made(module, body));
        let mut finder = Finder {
            ground: module,
            body,
            targets: targets.chain(cuts.iter().copied()).collect(),
            harmless: FxHashSet::default(),
            changed: changed.copied().collect(),
            scarce: false,
            deep: false,
        };
        let live = Live::of(body, self.odd);
        spots::place(&finder, &live, &cuts, &taken, self.set).or_else(|_| {
            // A loop that is somewhat slower is better than a function that isn't counted.
            finder.deep = true;
            spots::place(&finder, &live, &cuts, &taken, self.set)
        })
    }

    /// Places anew what something elsewhere in the file leads into.
    fn bar(&self, functions: &mut [Function]) {
        let mut barred = BTreeSet::new();
        let mut known: FxHashSet<Range<u64>> = FxHashSet::default();
        loop {
            let placed = functions.iter().filter_map(|f| f.placed.as_ref().ok());
            let mut new: Vec<Range<u64>> = placed
                .flat_map(|placed| placed.windows.iter().map(|w| w.range.clone()))
                .filter(|w| known.insert(w.clone()))
                .collect();
            new.sort_by_key(|w| w.start);
            let foreign = windows::branches_into(self.module, &new);
            let foreign: Vec<u64> = foreign.difference(&barred).copied().collect();
            if foreign.is_empty() {
                return;
            }
            barred.extend(&foreign);
            let is_hit = |f: &&mut Function| {
                let mut windows = f.placed.iter().flat_map(|placed| &placed.windows);
                windows.any(|w| foreign.iter().any(|va| w.range.contains(va)))
            };
            let hit: Vec<&mut Function> = functions.iter_mut().filter(is_hit).collect();
            hit.into_par_iter().for_each(|f| self.place(f, &barred));
        }
    }
}

/// Puts everything together.
fn finish(module: &Module<'_>, functions: Vec<Function>, set: u32, whole: &mut Whole) -> Found {
    let (mut increments, mut counting) = (Vec::new(), Vec::new());
    let mut told = Counted::of(set);
    let mut numbers = FxHashMap::default();
    let part = |&number: &usize| {
        let part = module.functions.get(number);
        (HexAddress(part.start), part.end - part.start)
    };
    for Function { looked, placed } in functions {
        let start = module.functions.get(looked.function).start;
        let number = match &placed {
            Ok(_) => Ok(counting.len()),
            Err(_) => Err(told.refused.len()),
        };
        let parts = looked.parts.iter().chain([&looked.function]);
        numbers.extend(parts.map(|&part| (part, number)));
        let of = |reason| Uncounted {
            address: HexAddress(wanted::entry(module, start)),
            name: wanted::name(module, looked.function).into_owned(),
            instructions: looked.instructions as u32,
            reason,
            sites: Vec::new(),
        };
        match placed {
            Ok(placed) => {
                let own = of(String::new());
                told.functions.push((own.address, own.instructions));
                let code: Vec<(HexAddress, u64)> = looked.parts.iter().map(part).collect();
                told.code.extend(&code);
                counting.push(Counting {
                    told: own,
                    code,
                    places: placed.increments.iter().map(|i| i.at).collect(),
                });
                increments.extend(placed.increments);
                whole.windows.extend(placed.windows);
            }
            Err(reason) => told.refused.push(of(reason)),
        }
    }
    whole.windows.sort_by_key(|w| w.range.start);
    increments.sort_by_key(Increment::order);
    told.code.sort_unstable();
    Found {
        increments,
        counting,
        told,
        functions: numbers,
    }
}
