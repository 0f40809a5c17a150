//! Runs made up for tests: threads that record as the runtime library does, without a program.
//!
//! A thread keeps a stack of open intervals; time and counts that pass belong to the innermost one, so that records are
//! exclusive by construction. One tick is one nanosecond; each counter advances by its own multiple of the ticks.

#[cfg(test)]
mod lanes;
mod listing;
#[cfg(test)]
mod live;
#[cfg(test)]
mod parts;
pub mod programs;

pub use listing::{LISTING_SITES, listing, listing_threads};

use crate::run::{Run, RunFiles};
use ompfuse_format::Construct;
use ompfuse_format::record::context::{
    Calls, ChainEnd, Object, encode_calls, encode_context, encode_object,
};
use ompfuse_format::record::depend::{Access, depend_head};
use ompfuse_format::record::{
    HEADER_LEN, Interval, IntervalHead, MAGIC, MAX_COUNTERS, NO_SITE, NOT_COUNTED, Node, Step,
    VERSION, encode_interval, encode_node,
};
use ompfuse_format::run::{
    ClockPair, EventStatus, Exit, ModuleStatus, ProcessEnd, ProcessHeader, RunHeader, RunModule,
};
use ompfuse_format::site::{BinaryInfo, Edge, HexAddress, Mechanism, Outcome, SiteInfo, Source};

/// Ticks per nanosecond is 1; the run begins at this tick.
pub const BEGIN: u64 = 1_000_000;

/// An open interval.
#[derive(Debug)]
struct Open {
    head: IntervalHead,
    counts: Vec<u64>,
}

/// A thread that records.
#[derive(Debug)]
pub struct FakeThread {
    index: u32,
    counters: usize,
    start: u64,
    /// The thread's clock.
    pub now: u64,
    counts: [u64; MAX_COUNTERS],
    sequence: u64,
    stack: Vec<Open>,
    records: Vec<u8>,
    /// Records that it could not write.
    pub lost: u64,
}

/// Stores a word of a record.
type Put<'p> = &'p mut dyn FnMut(usize, u64);

impl FakeThread {
    /// A thread that begins at a tick.
    pub fn new(index: u32, counters: usize, at: u64) -> FakeThread {
        let mut thread = FakeThread {
            index,
            counters,
            start: at,
            now: at,
            counts: [0; MAX_COUNTERS],
            sequence: 0,
            stack: vec![],
            records: vec![],
            lost: 0,
        };
        let node = thread.node();
        thread.record_node(Construct::Program, NO_SITE, node, 0, Step::Root, 0);
        thread.begin(Construct::Program, NO_SITE, node, 0, Step::Root, 0);
        thread
    }

    /// Root of the first thread.
    pub fn root() -> u64 {
        (1 << 40) + 1
    }

    /// A new node number.
    pub fn node(&mut self) -> u64 {
        self.sequence += 1;
        (u64::from(self.index) + 1) << 40 | self.sequence
    }

    /// Begins an interval. `node` 0: it has none.
    pub fn begin(
        &mut self,
        construct: Construct,
        site: u32,
        node: u64,
        parent: u64,
        step: Step,
        index: i64,
    ) {
        let head = IntervalHead {
            construct,
            site,
            node,
            parent,
            step,
            cpu: self.index as u16,
            index,
            extent: 0,
            t0: self.now,
            t1: 0,
            own_ticks: 0,
            disturbed: false,
        };
        self.stack.push(Open {
            head,
            counts: vec![0; self.counters],
        });
    }

    /// Time passes in the innermost interval.
    pub fn work(&mut self, ticks: u64) {
        self.now += ticks;
        let top = self.stack.last_mut().expect("an open interval");
        top.head.own_ticks += ticks;
        for (at, count) in top.counts.iter_mut().enumerate() {
            *count += ticks * (at as u64 + 2);
            self.counts[at] += ticks * (at as u64 + 2);
        }
    }

    /// Time passes that is not the innermost interval's but that of the one around: what a critical section holds.
    pub fn hold(&mut self, ticks: u64) {
        let top = self.stack.pop().expect("an open interval");
        self.work(ticks);
        self.stack.push(top);
    }

    /// Work during which the counters don't run.
    pub fn work_uncounted(&mut self, ticks: u64) {
        self.work(ticks);
        let top = self.stack.last_mut().expect("an open interval");
        top.counts.fill(NOT_COUNTED);
    }

    /// Time passes until a tick.
    pub fn until(&mut self, tick: u64) {
        self.work(tick.saturating_sub(self.now));
    }

    /// Ends the innermost interval and records it.
    pub fn end(&mut self, extent: u64) {
        let Open { mut head, counts } = self.stack.pop().expect("an open interval");
        head.t1 = self.now;
        head.extent = extent;
        let at = self.records.len();
        self.records
            .resize(at + Interval::LEN + 8 * counts.len(), 0);
        let words = &mut self.records[at..];
        encode_interval(&head, 0, counts.iter().copied(), |word, value| {
            words[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        });
    }

    /// Begins, spends time and ends: an interval without a node.
    pub fn wait(&mut self, construct: Construct, site: u32, parent: u64, ticks: u64) {
        self.begin(construct, site, 0, parent, Step::None, 0);
        self.work(ticks);
        self.end(0);
    }

    /// Records what a task depends on.
    pub fn depend(&mut self, node: u64, accesses: &[(u64, Access)]) {
        let words = accesses
            .iter()
            .map(|&(address, access)| access.word(address));
        let head = depend_head(0, node, accesses.len());
        for word in head.into_iter().chain(words) {
            self.records.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Records a node.
    pub fn record_node(
        &mut self,
        construct: Construct,
        site: u32,
        node: u64,
        parent: u64,
        step: Step,
        index: i64,
    ) {
        let mut bytes = [0; Node::LEN];
        encode_node(
            &mut bytes,
            &Node {
                construct,
                site,
                node,
                parent,
                step,
                index,
            },
        );
        self.records.extend_from_slice(&bytes);
    }

    /// The thread's next regions at a site are called from here: return addresses in the program, which is below 2^32, innermost first. The
    /// chain has this number on the thread.
    pub fn called_from(&mut self, site: u32, number: u64, chain: &[u64]) {
        let mut record = |words: usize, encode: &mut dyn FnMut(Put<'_>)| {
            let at = self.records.len();
            self.records.resize(at + 8 * words, 0);
            let bytes = &mut self.records[at..];
            encode(&mut |word, value: u64| {
                bytes[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
            });
        };
        let program = Object {
            language: None,
            begin: 0,
            end: 1 << 32,
            bias: 0,
            build_id: &[],
            path: b"/bin/prog",
        };
        let len = Object::len_of(0, program.path.len());
        record(len / 8, &mut |put| encode_object(&program, put));
        record(2 + chain.len(), &mut |put| {
            encode_context(number, ChainEnd::Whole, chain.len(), &mut *put);
            (2..).zip(chain).for_each(|(at, address)| put(at, *address));
        });
        let calls = Calls {
            construct: Construct::Parallel,
            site,
            context: number,
        };
        record(Calls::LEN / 8, &mut |put| encode_calls(&calls, put));
    }

    /// The record file. `orderly`: open intervals are ended and the header completed; otherwise the thread was killed.
    pub fn finish(mut self, pid: u32, orderly: bool) -> Vec<u8> {
        while orderly && !self.stack.is_empty() {
            self.end(0);
        }
        let mut bytes = vec![0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        let halves = [
            (8, VERSION),
            (12, HEADER_LEN as u32),
            (16, pid),
            (20, pid + self.index),
            (24, self.index),
        ];
        for (at, value) in halves.into_iter().chain([(28, self.counters as u32)]) {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let end = if orderly { self.now } else { 0 };
        let words = [
            (32, self.start),
            (40, end),
            (48, self.records.len() as u64),
            (56, self.lost),
        ];
        let counts_end = (0..MAX_COUNTERS).map(|c| (64 + 8 * (MAX_COUNTERS + c), self.counts[c]));
        for (at, value) in words.into_iter().chain(counts_end.filter(|_| orderly)) {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&self.records);
        bytes
    }
}

/// A run under construction: its files by name.
#[derive(Debug)]
pub struct FakeRun {
    /// The header; change it at will.
    pub header: RunHeader,
    /// Names and contents of the other files.
    pub files: Vec<(String, Vec<u8>)>,
}

impl FakeRun {
    /// A run of a program with these constructs, as (construct, address), in one module.
    pub fn new(sites: &[(Construct, u64)], events: &[&str]) -> FakeRun {
        let module = module("prog", "b1d", sites);
        FakeRun {
            header: RunHeader {
                version: "0".to_owned(),
                program: "./prog".to_owned(),
                args: vec!["100".to_owned()],
                host: "node7".to_owned(),
                cpus: 4,
                kernel: "6.1".to_owned(),
                processor: None,
                cache_bytes: Some(8 << 20),
                environment: vec![],
                events: events.iter().map(|&e| e.to_owned()).collect(),
                region_events: vec![],
                processors: None,
                quota: None,
                stolen_s: None,
                others_s: None,
                throttled_s: None,
                pace_s: None,
                started: 1.7e9,
                duration_s: 2e-6,
                exit: Exit::Code(0),
                switch_cost_ns: None,
                recorded: None,
                ranks: vec![],
                ended_at_bytes: None,
                sampling: None,
                attached_to: None,
                is_foreign: false,
                modules: vec![module],
                fixed_addresses: false,
                unpatched: vec![],
            },
            files: vec![],
        }
    }

    /// Adds a process that counted all events, with its threads, from a tick on.
    pub fn process(&mut self, pid: u32, begin: u64, threads: Vec<FakeThread>, orderly: bool) {
        let end = threads.iter().map(|t| t.now).max().unwrap_or(begin);
        let events = (0..).zip(&self.header.events);
        let header = ProcessHeader {
            version: "0".to_owned(),
            pid,
            mpi_rank: None,
            mpi_size: None,
            begin: ClockPair {
                tsc: begin,
                ns: begin + 5_000_000_000,
            },
            events: events
                .map(|(c, name)| EventStatus {
                    name: name.clone(),
                    column: Some(c),
                    reason: None,
                    shared: None,
                })
                .collect(),
            modules: (0..)
                .zip(&self.header.modules)
                .map(|(number, m)| ModuleStatus {
                    module: number,
                    path: m.patched.clone(),
                    bias: 0,
                })
                .collect(),
            min_duration_ns: None,
            sets: vec![],
            region_events: vec![],
            processors: None,
            started: begin,
        };
        let json = serde_json::to_vec(&header).expect("plain data");
        self.files.push((format!("process-{pid}.json"), json));
        if orderly {
            let end = ProcessEnd {
                end: ClockPair {
                    tsc: end,
                    ns: end + 5_000_000_000,
                },
                threads: threads.len() as u32,
                lost: threads.iter().map(|t| t.lost).sum(),
                threads_lost: threads.iter().map(|t| t.lost / 10).sum(),
                stopped: None,
                switches: None,
                cpu_ns: None,
                sized_teams: true,
                peak_bytes: Some(1 << 20),
                prepared: Some(begin),
                exiting: Some(end),
                handlers: None,
                bound: None,
            };
            self.files.push((
                format!("process-{pid}.end.json"),
                serde_json::to_vec(&end).expect("plain data"),
            ));
        }
        for thread in threads {
            let index = thread.index;
            self.files
                .push((format!("{pid}-{index}.rec"), thread.finish(pid, orderly)));
        }
    }

    /// Reads the files as a run, which what is read in parts has to agree with.
    pub fn read(&self) -> Run {
        self.with_files(|files| {
            let run = Run::read(files);
            #[cfg(test)]
            parts::agree(files, &run);
            #[cfg(test)]
            lanes::agree(files, &run);
            run
        })
    }

    /// Reads damaged files, whole and in parts. Records that contradict each other may come out differently in parts.
    #[cfg(test)]
    pub fn read_damaged(&self) -> Run {
        self.with_files(|files| {
            parts::read_all(files);
            lanes::read_all(files);
            Run::read(files)
        })
    }

    /// Hands on what is in the folder.
    pub fn with_files<T>(&self, then: impl FnOnce(&RunFiles<'_>) -> T) -> T {
        let header = serde_json::to_vec(&self.header).expect("plain data");
        let files = self
            .files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let files = files.chain([("run.json", header.as_slice())]);
        then(&RunFiles::from_folder(files).expect("a header"))
    }
}

/// A module with these constructs, each the begin of its own region.
pub fn module(path: &str, build_id: &str, sites: &[(Construct, u64)]) -> RunModule {
    let site = |(id, &(construct, address)): (u32, &(Construct, u64))| SiteInfo {
        id,
        address: HexAddress(address),
        function: Some("main".into()),
        construct,
        edge: Edge::Begin,
        region: id,
        entry: None,
        mechanism: Mechanism::CallSite,
        outlined: None,
        source: Some(Source {
            file: "/src/prog.c".to_owned(),
            line: address as u32,
        }),
        frames: None,
        detail: None,
        outcome: Outcome::Patched,
        reason: None,
    };
    RunModule {
        patched: format!("{path}.ompfuse"),
        binary: BinaryInfo {
            path: path.to_owned(),
            build_id: Some(build_id.to_owned()),
            kind: "pie".to_owned(),
            stripped: false,
            runtimes: vec!["libgomp.so.1".to_owned()],
            debug_files: None,
            loops_of: Vec::new(),
            settings: vec![],
            counted: None,
        },
        sites: (0..).zip(sites).map(site).collect(),
    }
}

/// A file of the golden data: inputs and expected outputs of the combination and the evaluation (`tests/data/`).
///
/// # Panics
/// If there is none of that name.
pub fn golden(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
