//! From files of samples to samples of threads, each in a file with machine code.

use crate::run::RunFiles;
use ompfuse_format::samples::{
    Closed, Mapping, SampleRecord, SamplesError, SamplesFile, SamplesHeader, Stack, TscPair,
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

/// Where a thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleAt {
    /// When: CLOCK_MONOTONIC_RAW in nanoseconds.
    pub raw_ns: u64,
    /// Position in [`OfFile::objects`]; `None`: the code was in no file, or nobody knows in which.
    pub object: Option<u32>,
    /// The offset in that file, else the address.
    pub offset: u64,
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
    /// Stacks, in the order of the file.
    pub stacks: Vec<Stack>,
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
            for sample in file.threads.values().flatten() {
                let object = sample.object.and_then(|o| file.objects.get(o as usize));
                if let Some(path) = object {
                    wanted.entry(path).or_default().insert(sample.offset);
                }
            }
        }
        wanted
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        let of_file = |file: &OfFile| file.threads.values().map(Vec::len).sum::<usize>();
        self.files.iter().map(of_file).sum::<usize>() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Code of a process.
#[derive(Debug, Clone, Copy)]
struct Mapped {
    size: u64,
    offset: u64,
    object: Option<u32>,
}

/// Code of all processes as time goes by.
#[derive(Debug, Default)]
struct Memory<'a> {
    /// By process, then by first address.
    processes: HashMap<u32, BTreeMap<u64, Mapped>>,
    numbers: HashMap<&'a [u8], u32>,
    objects: Vec<String>,
}

impl<'a> Memory<'a> {
    fn map(&mut self, mapping: &Mapping<'a>) {
        let is_file = mapping.path.starts_with(b"/") && !mapping.path.starts_with(b"//");
        let object = is_file.then(|| {
            *self.numbers.entry(mapping.path).or_insert_with(|| {
                let path = String::from_utf8_lossy(mapping.path).into_owned();
                self.objects.push(path);
                self.objects.len() as u32 - 1
            })
        });
        let end = mapping.begin.saturating_add(mapping.size);
        let all = self.processes.entry(mapping.pid).or_default();
        // What it lies over is gone.
        let covered = all.range(..end).rev();
        let covered = covered.take_while(|(begin, m)| begin.saturating_add(m.size) > mapping.begin);
        let covered: Vec<u64> = covered.map(|(&begin, _)| begin).collect();
        all.retain(|begin, _| !covered.contains(begin));
        let mapped = Mapped {
            size: mapping.size,
            offset: mapping.offset,
            object,
        };
        all.insert(mapping.begin, mapped);
    }

    fn find(&self, pid: u32, address: u64) -> Option<(u32, u64)> {
        let all = self.processes.get(&pid)?;
        let (begin, mapped) = all.range(..=address).next_back()?;
        let within = address - begin;
        let object = mapped.object.filter(|_| within < mapped.size)?;
        Some((object, mapped.offset.checked_add(within)?))
    }
}

/// When a record was made; those that tell nothing of a process are first.
fn time(record: &SampleRecord<'_>) -> u64 {
    match record {
        SampleRecord::Sample(s) => s.raw_ns,
        SampleRecord::Mapping(m) => m.raw_ns,
        SampleRecord::Fork { raw_ns, .. } | SampleRecord::Exec { raw_ns, .. } => *raw_ns,
        _ => 0,
    }
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
        let mut out = OfFile {
            header: file.header,
            objects: vec![],
            threads: BTreeMap::new(),
            stacks: vec![],
            clocks: vec![],
            lost: 0,
            closed: vec![],
        };
        for record in records {
            match record {
                SampleRecord::Sample(s) => {
                    let found = memory.find(s.pid, s.address);
                    let (object, offset) = found.unzip();
                    let sample = SampleAt {
                        raw_ns: s.raw_ns,
                        object,
                        offset: offset.unwrap_or(s.address),
                    };
                    out.threads.entry((s.pid, s.tid)).or_default().push(sample);
                }
                SampleRecord::Mapping(mapping) => memory.map(&mapping),
                SampleRecord::Fork { pid, parent, .. } => {
                    let of_parent = memory.processes.get(&parent).cloned();
                    memory.processes.insert(pid, of_parent.unwrap_or_default());
                }
                SampleRecord::Exec { pid, .. } => drop(memory.processes.remove(&pid)),
                SampleRecord::Clock(pair) => out.clocks.push(pair),
                SampleRecord::Stack(stack) => out.stacks.push(stack),
                SampleRecord::Lost { count, .. } => out.lost = out.lost.saturating_add(count),
                SampleRecord::Closed(closed) => out.closed.push(closed),
                SampleRecord::Switch(_) => {}
            }
        }
        out.objects = memory.objects;
        out.clocks.sort_by_key(|pair| pair.raw_ns);
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
