//! Samples of a program of which there are no records: a thread's stack tells what it was in.
//!
//! The innermost function that a compiler made of a construct's block, or the innermost call of the runtime for one, is the construct. Who is in
//! the runtime without a caller of the program's is a thread that has nothing to do. Loops whose iterations are divided without a call
//! are part of what is around them.

use super::asleep::StopPlace;
use super::asleep::stop_place;
use super::attribute::Sums;
use super::collected::{Away, Collected, OfFile, SampleAt};
use super::region::{Line, UNKNOWN};
use crate::run::places::{Code, SampledPlaces};
use ompfuse_format::Construct;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A thread of a program of which there are no records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadLines {
    /// Process.
    pub pid: u32,
    /// Kernel's thread number.
    pub tid: u32,
    /// Samples in the program's code and that of its libraries.
    pub work: u64,
    /// Samples in the OpenMP runtime, for a construct.
    pub runtime: u64,
    /// Samples in the OpenMP runtime, for none.
    pub idle: u64,
    /// Without processor in its own work, in nanoseconds.
    pub asleep_ns: u64,
    /// Without processor in the runtime, for a construct.
    pub waits_ns: u64,
    /// Without processor in the runtime, for none.
    pub idle_ns: u64,
    /// Without processor, and nobody has seen where.
    pub unseen_ns: u64,
    /// What it did when it was looked at last; `None`: nobody knows.
    pub last: Option<LastSeen>,
}

/// What a thread did when it was looked at last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastSeen {
    /// The construct: position in [`SampledPlaces::sites`](super::SampledPlaces::sites).
    pub site: Option<u32>,
    /// It was in the OpenMP runtime.
    pub is_runtime: bool,
    /// There it had nothing to do.
    pub is_idle: bool,
    /// The runtime's function that was called, where the construct isn't known.
    pub entry: Option<String>,
    /// It had no processor, for so many nanoseconds then; `None`: it had one.
    pub away_ns: Option<u64>,
    /// It had none when it was looked at first.
    pub is_from_begin: bool,
    /// The function of another library that the program has called there.
    pub through: Option<String>,
    /// Where.
    pub at: StopPlace,
}

/// What a stack tells.
struct Found {
    site: Option<u32>,
    is_runtime: bool,
    /// The runtime has called the program for a construct that isn't known: the last call of a function may be a jump.
    is_called: bool,
    /// Nobody has called the runtime for something.
    is_idle: bool,
    /// A function that compiled code calls, where nothing else is known.
    entry: Option<u32>,
}

impl Found {
    /// Whose sums it is in.
    fn region(&self) -> Option<u32> {
        self.site.or(self.is_called.then_some(UNKNOWN))
    }
}

/// How names of a runtime's functions begin that compiled code calls, or that call it. A last call in a function is a jump: then the
/// caller isn't in the stack.
const ENTRIES: [&str; 4] = ["GOMP_", "__kmpc_", INVOKES, "omp_"];
/// The function that calls a region's code.
const INVOKES: &str = "__kmp_invoke_microtask";

/// A process's end is seen so late at most.
const END_NS: u64 = 100_000_000;

/// What threads did, whether or not there are records, of processes that have ended.
pub(super) fn last_seen(collected: &Collected, places: &SampledPlaces) -> Vec<ThreadLines> {
    let mut sums = Sums::new(collected, places, false);
    sums.is_over = true;
    sums.add_by_stack(collected);
    sums.out.threads
}

/// Whether a file is the C library.
fn is_c_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libc.", "libc-", "libpthread", "ld-"]
        .iter()
        .any(|library| name.starts_with(library))
}

impl Sums<'_> {
    /// Of a run without any record.
    pub(super) fn add_by_stack(&mut self, collected: &Collected) {
        for (number, file) in collected.files.iter().enumerate() {
            let threads: BTreeSet<_> = file.threads.keys().chain(file.away.keys()).collect();
            for &(pid, tid) in threads {
                let samples = file.threads.get(&(pid, tid)).map_or(&[][..], |all| all);
                let away = file.away.get(&(pid, tid)).map_or(&[][..], |all| all);
                let mut thread = ThreadLines {
                    pid,
                    tid,
                    ..ThreadLines::default()
                };
                for sample in samples {
                    self.add_sample(number, sample, &mut thread);
                }
                for one in away.iter().filter(|a| !a.is_preempted) {
                    self.add_away(number, one, &mut thread);
                }
                thread.last = self.last(number, file, samples, away);
                self.out.threads.push(thread);
            }
        }
    }

    fn add_sample(&mut self, file: usize, sample: &SampleAt, thread: &mut ThreadLines) {
        let place = self.named.place(file, &sample.at);
        let code = place.and_then(|p| self.named.places.places.get(p as usize));
        let is_recording = code.is_some_and(|p| p.code == Code::Recording);
        let found = self.found(file, sample);
        if found.is_runtime && found.site.is_none() {
            if found.is_idle {
                thread.idle += 1;
                self.out.idle += 1;
            } else {
                thread.runtime += 1;
                self.out.unrecorded += 1;
            }
            return;
        }
        let work = self.work(file, sample, place);
        let region = self.regions.entry(found.region()).or_default();
        match (is_recording, found.is_runtime) {
            (true, _) => region.sums.recording += 1,
            (false, true) => {
                thread.runtime += 1;
                region.sums.runtime += 1;
            }
            (false, false) => {
                thread.work += 1;
                region.add(&work);
            }
        }
    }

    fn add_away(&mut self, file: usize, away: &Away, thread: &mut ThreadLines) {
        let Some(stop) = &away.stop else {
            thread.unseen_ns += away.ns;
            return;
        };
        let found = self.found(file, &stop.sample);
        if found.is_runtime && found.site.is_none() {
            match found.is_idle {
                true => thread.idle_ns += away.ns,
                false => thread.waits_ns += away.ns,
            }
            return;
        }
        let at = self.stop(file, away);
        let region = self.regions.entry(found.region()).or_default();
        if found.is_runtime {
            thread.waits_ns += away.ns;
            region.sums.waits_ns += away.ns;
        } else {
            thread.asleep_ns += away.ns;
            region.stops.add(away.ns, at);
        }
    }

    /// The construct that a stack is in, and whether its thread is in the runtime.
    fn found(&self, file: usize, sample: &SampleAt) -> Found {
        let callers = self.named.callers[file].get(sample.callers as usize);
        let calls = callers.map_or(&[][..], |callers| &callers.calls);
        let (mut is_runtime, mut entry, mut is_called) = (None, None, false);
        for code in std::iter::once(&sample.at).chain(calls) {
            let place = self.named.place(file, code);
            let known = place.and_then(|p| self.named.places.places.get(p as usize));
            let mark = self.named.mark(file, code);
            // Libraries are called by the program and by the runtime.
            let whose = match known {
                Some(place) if place.code == Code::Runtime => Some(true),
                Some(place) if place.object.is_none() || mark.is_some() => Some(false),
                _ => None,
            };
            let name = known.filter(|p| p.code == Code::Runtime);
            is_called |= is_runtime == Some(false) && name.is_some();
            let name = name.and_then(|p| p.function.as_deref());
            // What it has called may have jumped to another function.
            let is_body = is_runtime.is_none() && name == Some(INVOKES);
            let whose = if is_body { Some(false) } else { whose };
            is_runtime = is_runtime.or(whose);
            if name.is_some_and(|name| ENTRIES.iter().any(|e| name.starts_with(e))) {
                entry = entry.or(place);
            }
            let Some(mark) = mark else {
                continue;
            };
            let construct = |site: u32| self.named.places.sites.get(site as usize)?.construct;
            // Who has called the runtime, and isn't there, is in code that it calls: of a fork that is the region's. A call of another
            // library is all that is below it.
            let is_runtime = is_runtime == Some(true);
            let is = |site: u32, what: fn(Construct) -> bool| construct(site).is_some_and(what);
            let is_call = |site: u32| code != &sample.at && is(site, Construct::is_call);
            let is_fork = |site: u32| is(site, Construct::is_fork);
            let calls = mark.calls.filter(|&site| match is_called {
                true => is_fork(site),
                false => is_runtime || is_call(site) || mark.inside.is_none() && is_fork(site),
            });
            let inside = mark.inside.filter(|_| !is_called);
            if is_called && calls.is_none() {
                break;
            }
            if let Some(site) = calls.or(inside) {
                let is_runtime = is_runtime || calls.is_some_and(is_call);
                return Found {
                    site: Some(site),
                    is_runtime,
                    is_called,
                    is_idle: false,
                    entry: None,
                };
            }
        }
        let is_whole = callers.is_some_and(|callers| callers.is_whole);
        Found {
            site: None,
            is_runtime: is_runtime == Some(true),
            is_called,
            is_idle: is_runtime == Some(true) && is_whole && entry.is_none(),
            entry,
        }
    }

    /// The innermost line of the program in a stack, and what it calls, whoever records that.
    fn in_program(&self, file: usize, sample: &SampleAt) -> Line {
        let callers = self.named.callers[file].get(sample.callers as usize);
        let calls = callers.map_or(&[][..], |callers| &callers.calls);
        let mut callee = None;
        for code in std::iter::once(&sample.at).chain(calls) {
            let place = self.named.place(file, code);
            match self.named.known(place) {
                Some(known) if known.code != Code::User => {}
                Some(known) if known.object.is_some() => callee = place,
                Some(known) if known.has_name() => return (place, callee),
                _ => {}
            }
        }
        (self.named.place(file, &sample.at), None)
    }

    /// What a thread did last.
    fn last(
        &self,
        number: usize,
        file: &OfFile,
        samples: &[SampleAt],
        away: &[Away],
    ) -> Option<LastSeen> {
        let begin_ns = file.clocks.first().map_or(0, |pair| pair.raw_ns);
        let end_ns = file.clocks.last().map_or(0, |pair| pair.raw_ns);
        // Whoever is killed gets a processor once more, for its end.
        let sampled_ns = samples.last().map_or(0, |s| s.raw_ns);
        let is_end = |a: &&Away| {
            let until_ns = a.raw_ns.saturating_add(a.ns);
            self.is_over && sampled_ns < a.raw_ns && until_ns.saturating_add(END_NS) >= end_ns
        };
        let open = away.last().filter(|a| !a.is_preempted);
        let open = open.filter(|a| a.is_open || is_end(a));
        let (sample, call) = match open {
            Some(away) => {
                let stop = away.stop?;
                (stop.sample, Some(stop.call))
            }
            None => (*samples.last()?, None),
        };
        let found = self.found(number, &sample);
        let line = self.in_program(number, &sample);
        Some(LastSeen {
            site: found.site,
            is_runtime: found.is_runtime,
            is_idle: found.is_idle,
            entry: (found.entry)
                .and_then(|e| self.named.places.places.get(e as usize)?.function.clone()),
            away_ns: open.map(|away| away.ns),
            is_from_begin: open.is_some_and(|away| away.raw_ns <= begin_ns),
            through: line.1.and_then(|callee| {
                let known = self.named.known(Some(callee))?;
                // Of who has stopped there the system call says more.
                let is_plain = known.object.as_deref().is_some_and(is_c_library);
                let is_shorter = open.is_some() && is_plain;
                known.function.clone().filter(|_| !is_shorter)
            }),
            at: stop_place((line, call.flatten()), self.named.places),
        })
    }
}
