//! From functions to drafts: every function is looked at alone, several at a time, and forgotten; then what depends on
//! other functions is put right.

mod jobs;
mod merge;

pub(crate) use jobs::jobs;

use super::atomics::{self, Atomic};
use super::calls;
use super::candidates;
use super::cfg::Body;
use super::clock::Part;
use super::decode::{Pool, Scratch};
use super::draft::Draft;
use super::flow::dataflow::Flow;
use super::functions::Function;
use super::relays::{self, Relayed};
use super::windows;
use super::{Module, natural, regions, shapes, wanted};
use crate::place::Placed;
use ompfuse_patterns::Runtime;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// Everything that was found.
pub(crate) struct Whole {
    pub drafts: Vec<Draft>,
    /// By address.
    pub windows: Vec<Placed>,
    /// By the address of their first load.
    pub relays: Vec<Relayed>,
    /// Atomic instructions of the functions that were looked at, by these functions' addresses.
    pub atomics: FxHashMap<u64, Vec<Atomic>>,
}

/// A function to look at.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub function: usize,
    pub candidates: Vec<u64>,
    /// Its address is handed over as an outlined function.
    outlined: bool,
    /// Why no code of it may be changed, if that is known beforehand.
    trouble: Option<&'static str>,
    /// It is known that KMPC's interface doesn't hand it over.
    settled: bool,
}

/// What was found in a function. Drafts refer to each other by their numbers in the list.
struct Found {
    job: Job,
    parts: Vec<usize>,
    drafts: Vec<Draft>,
    windows: Vec<Placed>,
    relays: Vec<Relayed>,
    /// Its atomic instructions, if it is known where all its instructions are.
    atomics: Option<Vec<Atomic>>,
    /// Parts of the construct that hands the function over.
    combined: Vec<usize>,
    /// It would differ if `job.outlined` did.
    depends: bool,
    /// Inlined constructs weren't looked for, as it may be a function that KMPC's interface hands over.
    pending: bool,
}

impl Found {
    /// The function is wanted as a region, too.
    fn want(&mut self, module: &Module<'_>, body: &Body, barred: &BTreeSet<u64>) {
        self.depends = true;
        let around = (barred, &self.relays[..]);
        let (drafts, windows) = (&mut self.drafts, &mut self.windows);
        wanted::add(module, body, around, self.job.outlined, drafts, windows);
        if module.is_looped(self.job.function) {
            natural::add(module, body, around, drafts, windows);
        }
    }

    /// Of a function that is wanted, and gets no probes.
    fn refused(module: &Module<'_>, job: Job, why: &str) -> Found {
        Found {
            drafts: vec![wanted::refused(module, job.function, why.to_owned())],
            parts: Vec::new(),
            windows: Vec::new(),
            relays: Vec::new(),
            atomics: None,
            combined: Vec::new(),
            depends: false,
            pending: false,
            job,
        }
    }
}

/// Looks at every function with a candidate ([`super::candidates::find`]).
pub(crate) fn find_all(module: &Module<'_>, candidates: Vec<u64>) -> Whole {
    let (jobs, orphans) = jobs(module, candidates);
    let pool = Pool::default();
    let mut found = functions(module, &pool, jobs);
    found.sort_by_key(|f| module.functions.get(f.job.function).start);
    let repeated = share(&mut found);
    // By address of the outlined functions: whether KMPC's interface hands them over.
    let mut outlined: FxHashMap<u64, bool> = FxHashMap::default();
    for draft in found.iter().flat_map(|f| &f.drafts) {
        if let Some(va) = draft.outlined {
            *outlined.entry(va).or_insert(true) &= !draft.is_gomp();
        }
    }
    let none = BTreeSet::new();
    again(module, &pool, &mut found, &none, |f| {
        let handed = outlined.get(&module.functions.get(f.job.function).start);
        let is = handed.is_some();
        let unsettled = f.pending && handed != Some(&true);
        f.job.settled |= unsettled;
        let wrong = unsettled || f.depends && is != f.job.outlined;
        f.job.outlined = is;
        wrong || repeated.contains(&f.job.function)
    });
    let mut barred = BTreeSet::new();
    // Windows that were looked at already: their addresses are barred, if anything leads there.
    let mut known: FxHashSet<Range<u64>> = FxHashSet::default();
    loop {
        let mut windows: Vec<Range<u64>> = found
            .iter()
            .flat_map(|f| f.windows.iter().map(|w| w.range.clone()))
            .filter(|w| known.insert(w.clone()))
            .collect();
        windows.sort_by_key(|w| w.start);
        let foreign = windows::branches_into(module, &windows);
        let new: Vec<u64> = foreign.difference(&barred).copied().collect();
        if new.is_empty() {
            // What threads kept isn't needed any more, and everything found is about to be copied.
            drop(pool);
            return merge::merge(module, found, orphans);
        }
        barred.extend(&new);
        let inside = |part: &usize| {
            let f = module.functions.get(*part);
            new.iter().any(|va| (f.start..f.end).contains(va))
        };
        again(module, &pool, &mut found, &barred, |f| {
            f.parts.iter().any(inside)
        });
    }
}

/// Looks at functions, and at moved parts that didn't come with one.
fn functions(module: &Module<'_>, pool: &Pool, jobs: Vec<Job>) -> Vec<Found> {
    let own: FxHashMap<usize, Vec<u64>> = jobs
        .iter()
        .map(|j| (j.function, j.candidates.clone()))
        .collect();
    let is_part = |j: &Job| module.functions.get(j.function).fragment;
    let (parts, wholes): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(is_part);
    let len = |f: &Function<'_>| (f.end - f.start) as usize;
    let of = wholes
        .iter()
        .map(|j| len(module.functions.get(j.function)))
        .sum();
    let all: Vec<Found> = wholes
        .into_par_iter()
        .map_init(
            || pool.lend(),
            |lent, job| {
                module
                    .progress
                    .steps(len(module.functions.get(job.function)), of);
                look(module, lent.scratch(), &BTreeSet::new(), job)
            },
        )
        .collect();
    // A function that others jump into may be a moved part of one of them that nothing marks as one: they come first.
    let inner: FxHashSet<usize> = all
        .iter()
        .flat_map(|f| f.parts.iter().skip(1))
        .copied()
        .collect();
    let is_inner = |f: &Found| f.job.candidates.is_empty() && inner.contains(&f.job.function);
    let (last, first): (Vec<Found>, Vec<Found>) = all.into_iter().partition(is_inner);
    let mut done: FxHashSet<usize> = FxHashSet::default();
    let mut out = Vec::new();
    for found in first.into_iter().chain(last) {
        if found.job.candidates.is_empty() && found.parts.iter().any(|p| done.contains(p)) {
            // What belongs to a function with constructs stays with that.
            out.push(Found::refused(module, found.job, wanted::SHARED));
        } else if !done.contains(&found.job.function) {
            done.extend(&found.parts);
            out.push(found);
        }
    }
    let mut lent = pool.lend();
    for job in parts {
        if done.contains(&job.function) {
            continue;
        }
        let parent = module.functions.get(job.function).base_name();
        let parent = parent.and_then(|name| module.functions.named(name));
        let none = BTreeSet::new();
        let mut found = parent.map(|function| {
            let job = Job {
                function,
                candidates: own.get(&function).cloned().unwrap_or_default(),
                outlined: jobs::seems_outlined(module.functions.get(function)),
                trouble: None,
                settled: job.settled,
            };
            look(module, lent.scratch(), &none, job)
        });
        if found
            .as_ref()
            .is_none_or(|f| !f.parts.contains(&job.function))
        {
            let trouble = Some("it is a part of an unknown function");
            let job = Job { trouble, ..job };
            found = Some(look(module, lent.scratch(), &none, job));
        }
        if let Some(found) = found {
            done.extend(&found.parts);
            out.push(found);
        }
    }
    out
}

/// Looks at a function.
fn look(module: &Module<'_>, scratch: &mut Scratch, barred: &BTreeSet<u64>, job: Job) -> Found {
    let mut laps = module.clock.laps();
    let mut body = Body::build(module, scratch, job.function, &job.candidates);
    laps.end(Part::Decode);
    let function = module.functions.get(job.function);
    module.madvise.read(function.end - function.start);
    if let Some(trouble) = job.trouble {
        body.trouble.get_or_insert(trouble);
    }
    let mut found = Found {
        parts: std::mem::take(&mut body.parts),
        drafts: Vec::new(),
        windows: Vec::new(),
        relays: Vec::new(),
        atomics: atomics::of_body(module, &body),
        combined: Vec::new(),
        depends: false,
        pending: false,
        job,
    };
    laps.end(Part::Rest);
    let is_wanted = module.is_wanted(found.job.function);
    if let Some(at) = body.unknown {
        found.drafts = undecoded(module, &body, &found.job, at);
        if is_wanted {
            let why = format!("{}: it is left alone", unknown(&body, at));
            let draft = wanted::refused(module, found.job.function, why);
            found.drafts.push(draft);
        }
        scratch.recycle(body);
        return found;
    }
    if body.leads.is_empty() {
        if is_wanted {
            found.want(module, &body, barred);
        }
        scratch.recycle(body);
        return found;
    }
    let flow = OnceCell::new();
    let flow = || flow.get_or_init(|| Flow::compute(module, &body));
    let mut calls = calls::find(module, &body, flow);
    // A function is made by one compiler. Those that call KMPC's interface compute no construct themselves.
    if calls.queried && !calls.any_of(Runtime::Gomp) {
        let kmpc = calls.any_of(Runtime::Kmpc);
        found.pending = !kmpc && !found.job.settled;
        calls.queried = !kmpc && !found.pending;
    }
    found.drafts = calls.drafts;
    let drafts = &mut found.drafts;
    found.relays = relays::place(module, &body, flow, drafts);
    found.combined = regions::link(&body, 0..drafts.len(), drafts);
    laps.end(Part::Values);
    if shapes::possible(calls.queried, drafts) {
        let what = (found.job.outlined, calls.queried);
        found.depends = shapes::find(module, &body, flow(), what, drafts);
        laps.end(Part::Shapes);
        found.windows = windows::place(module, &body, barred, &found.relays, drafts);
    }
    if is_wanted {
        found.want(module, &body, barred);
    }
    scratch.recycle(body);
    let drafts = &mut found.drafts;
    // A question may be a part of a construct that the compiler computes itself.
    let named = drafts.iter().filter(|d| d.entry.is_some());
    let known: FxHashSet<u64> = named.map(|d| d.address).collect();
    drafts.extend(
        calls
            .services
            .into_iter()
            .filter(|d| !known.contains(&d.address)),
    );
    // Kept until all functions were looked at.
    drafts.shrink_to_fit();
    laps.end(Part::Rest);
    found
}

/// What isn't known of a function with an instruction at `at` that the decoder doesn't know.
fn unknown(body: &Body, at: u64) -> String {
    match body.unknown_by_table {
        true => format!(
            "it has a jump table of unknown length, which leads to {at:#x} where no instruction is"
        ),
        false => format!("the instruction at {at:#x} is unknown"),
    }
}

/// The sites of a function with an instruction that the decoder doesn't know, at `at`. What it does, and what comes behind it,
/// isn't known: the calls that bytes tell are listed, and none of them is changed.
fn undecoded(module: &Module<'_>, body: &Body, job: &Job, at: u64) -> Vec<Draft> {
    // Of other calls through registers nothing tells where they lead.
    let is_ours = |va: &u64| candidates::callee(&module.image, &module.entries, *va).is_some();
    let leads = body.leads.iter().map(|&lead| body.insns[lead].ip());
    let leads = leads.filter(is_ours);
    let inside = |va: &u64| {
        let insn = body.insns.partition_point(|insn| insn.ip() <= *va);
        let before = insn.checked_sub(1).map(|n| &body.insns[n]);
        before.is_some_and(|insn| insn.ip() < *va && *va < insn.next_ip())
    };
    let candidates = job.candidates.iter().copied().filter(|va| !inside(va));
    let places: BTreeSet<u64> = leads.chain(candidates).collect();
    let drafts = places.into_iter().map(|va| {
        let why = format!("{}: its function is left alone", unknown(body, at));
        let mut draft = calls::undecoded(module, va, why);
        draft.function = Some(job.function as u32);
        draft
    });
    drafts.collect()
}

/// Looks once more at the functions that `wanted` wants.
fn again(
    module: &Module<'_>,
    pool: &Pool,
    found: &mut [Found],
    barred: &BTreeSet<u64>,
    mut wanted: impl FnMut(&mut Found) -> bool,
) {
    let mut wanted: Vec<&mut Found> = found
        .iter_mut()
        .filter_map(|f| wanted(f).then_some(f))
        .collect();
    wanted.par_iter_mut().for_each_init(
        || pool.lend(),
        |lent, f| {
            **f = look(module, lent.scratch(), barred, f.job.clone());
        },
    );
}

/// Finds code that is in several functions, in which no code may be changed: the rules of one aren't those of the other.
/// Returns these functions.
fn share(found: &mut [Found]) -> FxHashSet<usize> {
    let mut owners: FxHashMap<usize, usize> = FxHashMap::default();
    let mut shared = FxHashSet::default();
    for f in found.iter() {
        for &part in &f.parts {
            if let Some(&other) = owners.get(&part) {
                shared.extend([other, f.job.function]);
            }
            owners.entry(part).or_insert(f.job.function);
        }
    }
    for f in found
        .iter_mut()
        .filter(|f| shared.contains(&f.job.function))
    {
        let trouble = "it has code in common with another function";
        f.job.trouble.get_or_insert(trouble);
    }
    shared
}
