//! From files of samples to samples of threads, each in a file with machine code.

use super::memory::Memory;
use crate::run::RunFiles;
use ompfuse_format::samples::{
    Closed, Sample, SampleRecord, SamplesError, SamplesFile, SamplesHeader, Stop, Switch, TscPair,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A file of samples that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {error}")]
pub struct UnreadableSamples {
    /// Its name in the run's folder.
    pub file: String,
    /// Why.
    #[source]
    pub error: SamplesError,
}

/// Machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeAt {
    /// Position in [`OfFile::objects`]; `None`: it was in no file, or nobody knows in which.
    pub object: Option<u32>,
    /// The offset in that file, else the address.
    pub offset: u64,
}

/// Where a thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleAt {
    /// When: CLOCK_MONOTONIC_RAW in nanoseconds.
    pub raw_ns: u64,
    /// The instruction that was next.
    pub at: CodeAt,
    /// Position in [`OfFile::callers`].
    pub callers: u32,
}

/// What had called the code of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Callers {
    /// The calls, the innermost first: the last byte of each.
    pub calls: Vec<CodeAt>,
    /// Whether they reach the thread's begin.
    pub is_whole: bool,
}

/// Where a thread had stopped that had given its processor away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopAt {
    /// Where, and when it was looked at.
    pub sample: SampleAt,
    /// The number of its system call; `None`: it is in none.
    pub call: Option<u32>,
}

/// A time at which a thread had no processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Away {
    /// When it lost it: CLOCK_MONOTONIC_RAW in nanoseconds.
    pub raw_ns: u64,
    /// For how many nanoseconds.
    pub ns: u64,
    /// It would have gone on.
    pub is_preempted: bool,
    /// Where it was, if it was looked at.
    pub stop: Option<StopAt>,
    /// Nobody has seen it go on.
    pub is_open: bool,
}

/// A file of samples, read.
#[derive(Debug, Clone)]
pub struct OfFile {
    /// Its header.
    pub header: SamplesHeader,
    /// Files with machine code, by path.
    pub objects: Vec<String>,
    /// By process and thread, in the order of time.
    pub threads: BTreeMap<(u32, u32), Vec<SampleAt>>,
    /// Times without processor, likewise.
    pub away: BTreeMap<(u32, u32), Vec<Away>>,
    /// Each once.
    pub callers: Vec<Callers>,
    /// Both clocks, in order.
    pub clocks: Vec<TscPair>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// What wasn't recorded from some time on.
    pub closed: Vec<Closed>,
}

/// All samples of a run.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// By file: a job's ranks have one each.
    pub files: Vec<OfFile>,
}

impl Collected {
    /// Reads the files of samples of a run.
    ///
    /// # Errors
    /// If one of them is damaged, or of another version.
    pub fn read(files: &RunFiles<'_>) -> Result<Collected, UnreadableSamples> {
        let read = |file: &crate::run::ThreadBytes<'_>| {
            OfFile::read(file.bytes).map_err(|error| UnreadableSamples {
                file: file.name.clone(),
                error,
            })
        };
        let files = files.samples.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Collected { files })
    }

    /// What is to be named: offsets by file with machine code.
    pub fn wanted(&self) -> BTreeMap<&str, BTreeSet<u64>> {
        let mut wanted: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for file in &self.files {
            let mut want = |code: &CodeAt| {
                let object = code.object.and_then(|o| file.objects.get(o as usize));
                if let Some(path) = object {
                    wanted.entry(path).or_default().insert(code.offset);
                }
            };
            for sample in file.threads.values().flatten() {
                want(&sample.at);
            }
            let stops = file.away.values().flatten().filter_map(|a| a.stop);
            stops.for_each(|stop| want(&stop.sample.at));
            let calls = file.callers.iter().flat_map(|callers| &callers.calls);
            calls.for_each(&mut want);
        }
        wanted
    }

    /// The system calls that threads had stopped in.
    pub fn calls(&self) -> BTreeSet<u32> {
        let away = self.files.iter().flat_map(|file| file.away.values());
        away.flatten().filter_map(|a| a.stop?.call).collect()
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        let of_file = |file: &OfFile| file.threads.values().map(Vec::len).sum::<usize>();
        self.files.iter().map(of_file).sum::<usize>() as u64
    }

    /// Whether there are samples from begin to end: they were not ended, and at most one of a hundred records was lost.
    pub(super) fn are_all(&self) -> bool {
        let lost: u64 = self.files.iter().map(|file| file.lost).sum();
        self.files.iter().all(|file| file.closed.is_empty()) && lost * 100 <= self.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// When a record was made; those that tell nothing of a process are first.
fn time(record: &SampleRecord<'_>) -> u64 {
    match record {
        SampleRecord::Sample(s) => s.raw_ns,
        SampleRecord::Stop(stop) => stop.sample.raw_ns,
        SampleRecord::Mapping(m) => m.raw_ns,
        SampleRecord::Fork { raw_ns, .. } | SampleRecord::Exec { raw_ns, .. } => *raw_ns,
        _ => 0,
    }
}

/// What is known of stops, by thread and in the order of time.
type Stops = BTreeMap<(u32, u32), Vec<StopAt>>;

/// Times between losing a processor and getting one. `end_ns`: when it was looked at last.
fn away(switches: &mut [Switch], stops: &Stops, end_ns: u64) -> BTreeMap<(u32, u32), Vec<Away>> {
    switches.sort_by_key(|s| s.raw_ns); // those of several processors are in no order
    let mut lost: HashMap<(u32, u32), Switch> = HashMap::new();
    let mut away: BTreeMap<(u32, u32), Vec<Away>> = BTreeMap::new();
    let mut add = |thread: (u32, u32), out: Switch, until_ns: u64, is_open: bool| {
        let stops = stops.get(&thread).map_or(&[][..], |all| all);
        let first = stops.partition_point(|s| s.sample.raw_ns < out.raw_ns);
        let stop = stops.get(first).copied();
        away.entry(thread).or_default().push(Away {
            raw_ns: out.raw_ns,
            ns: until_ns.saturating_sub(out.raw_ns),
            is_preempted: out.is_preempted,
            stop: stop.filter(|s| s.sample.raw_ns <= until_ns && !out.is_preempted),
            is_open,
        });
    };
    for switch in switches {
        let thread = (switch.pid, switch.tid);
        if switch.is_out {
            lost.insert(thread, *switch);
        } else if let Some(out) = lost.remove(&thread) {
            add(thread, out, switch.raw_ns, false);
        }
    }
    for (thread, out) in lost {
        add(thread, out, end_ns, true);
    }
    away
}

/// The code of a sample, and of what had called it.
fn place(sample: &Sample, memory: &Memory) -> (CodeAt, Callers) {
    let code = |address: u64| {
        let (object, offset) = memory.find(sample.pid, address).unzip();
        CodeAt {
            object,
            offset: offset.unwrap_or(address),
        }
    };
    let mut addresses = sample.addresses.iter();
    let at = code(addresses.next().copied().unwrap_or_default());
    // A call is right before the place that it returns to.
    let calls = addresses.map(|address| code(address.wrapping_sub(1)));
    let callers = Callers {
        calls: calls.collect(),
        is_whole: sample.is_whole,
    };
    (at, callers)
}

impl OfFile {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// If it is damaged, or of another version.
    pub fn read(bytes: &[u8]) -> Result<OfFile, SamplesError> {
        let file = SamplesFile::parse(bytes)?;
        let mut records = file.records().collect::<Result<Vec<_>, _>>()?;
        records.sort_by_key(time); // those of several processors are in no order
        let mut memory = Memory::default();
        let mut known: HashMap<Callers, u32> = HashMap::new();
        let mut switches = vec![];
        let mut stops = Stops::new();
        let mut found = |s: &Sample, memory: &Memory| {
            let (at, callers) = place(s, memory);
            let next = known.len() as u32;
            SampleAt {
                raw_ns: s.raw_ns,
                at,
                callers: *known.entry(callers).or_insert(next),
            }
        };
        let mut out = OfFile {
            header: file.header,
            objects: vec![],
            threads: BTreeMap::new(),
            away: BTreeMap::new(),
            callers: vec![],
            clocks: vec![],
            lost: 0,
            closed: vec![],
        };
        for record in records {
            match record {
                SampleRecord::Sample(s) => {
                    let samples = out.threads.entry((s.pid, s.tid)).or_default();
                    samples.push(found(&s, &memory));
                }
                SampleRecord::Stop(Stop { sample: s, call }) => {
                    let sample = found(&s, &memory);
                    let stop = StopAt { sample, call };
                    stops.entry((s.pid, s.tid)).or_default().push(stop);
                }
                SampleRecord::Mapping(mapping) => memory.map(&mapping),
                SampleRecord::Fork { pid, parent, .. } => memory.fork(pid, parent),
                SampleRecord::Exec { pid, .. } => memory.clear(pid),
                SampleRecord::Clock(pair) => out.clocks.push(pair),
                SampleRecord::Lost { count, .. } => out.lost = out.lost.saturating_add(count),
                SampleRecord::Closed(closed) => out.closed.push(closed),
                SampleRecord::Switch(switch) => switches.push(switch),
            }
        }
        out.clocks.sort_by_key(|pair| pair.raw_ns);
        let end_ns = out.clocks.last().map_or(0, |pair| pair.raw_ns);
        out.away = away(&mut switches, &stops, end_ns);
        let mut callers: Vec<(Callers, u32)> = known.into_iter().collect();
        callers.sort_by_key(|(_, at)| *at);
        out.callers = callers.into_iter().map(|(callers, _)| callers).collect();
        out.objects = memory.objects().to_vec();
        Ok(out)
    }

    /// The time stamp counter at a time, from the readings of both clocks around it. `None`: the kernel's clock is another one, or there are
    /// no two readings.
    pub fn tsc(&self, raw_ns: u64) -> Option<u64> {
        if !self.header.has_tsc || self.clocks.len() < 2 {
            return None;
        }
        let behind = self.clocks.partition_point(|pair| pair.raw_ns <= raw_ns);
        let behind = behind.clamp(1, self.clocks.len() - 1);
        let (a, b) = (self.clocks[behind - 1], self.clocks[behind]);
        let ns = b.raw_ns.checked_sub(a.raw_ns).filter(|&ns| ns > 0)?;
        let ticks = b.tsc.checked_sub(a.tsc)?;
        let within = raw_ns.wrapping_sub(a.raw_ns).cast_signed() as f64;
        let ticks = within * (ticks as f64 / ns as f64);
        a.tsc.checked_add_signed(ticks as i64)
    }
}
