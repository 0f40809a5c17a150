//! Which file's code is where in processes, as time goes by.

use ompfuse_format::samples::Mapping;
use std::collections::{BTreeMap, HashMap};

/// What the kernel calls memory of no file.
const ANONYMOUS: &[u8] = b"//anon";

/// What stands for the path of code that a process has made itself. Its offsets are addresses.
fn made_by(pid: u32) -> String {
    format!("[code of {pid}]")
}

/// The process, if this stands for code that a process has made.
pub fn maker(object: &str) -> Option<u32> {
    let pid = object.strip_prefix("[code of ")?.strip_suffix(']')?;
    pid.parse().ok()
}

/// Code of a process.
#[derive(Debug, Clone, Copy)]
struct Mapped {
    size: u64,
    offset: u64,
    object: Option<u32>,
}

/// Code of all processes.
#[derive(Debug, Default)]
pub struct Memory {
    /// By process, then by first address.
    processes: HashMap<u32, BTreeMap<u64, Mapped>>,
    numbers: HashMap<Vec<u8>, u32>,
    objects: Vec<String>,
}

impl Memory {
    /// A process maps code.
    pub fn map(&mut self, mapping: &Mapping<'_>) {
        let is_file = mapping.path.starts_with(b"/") && !mapping.path.starts_with(b"//");
        let (object, offset) = if is_file {
            (Some(self.number(mapping.path)), mapping.offset)
        } else if mapping.path == ANONYMOUS {
            let made = made_by(mapping.pid);
            (Some(self.number(made.as_bytes())), mapping.begin)
        } else {
            (None, mapping.offset)
        };
        let end = mapping.begin.saturating_add(mapping.size);
        let all = self.processes.entry(mapping.pid).or_default();
        // What it lies over is gone.
        let covered = all.range(..end).rev();
        let covered = covered.take_while(|(begin, m)| begin.saturating_add(m.size) > mapping.begin);
        let covered: Vec<u64> = covered.map(|(&begin, _)| begin).collect();
        all.retain(|begin, _| !covered.contains(begin));
        let mapped = Mapped {
            size: mapping.size,
            offset,
            object,
        };
        all.insert(mapping.begin, mapped);
    }

    fn number(&mut self, path: &[u8]) -> u32 {
        if let Some(known) = self.numbers.get(path) {
            return *known;
        }
        let number = self.objects.len() as u32;
        let name = String::from_utf8_lossy(path).into_owned();
        self.objects.push(name);
        self.numbers.insert(path.to_owned(), number);
        number
    }

    /// A process begins as the copy of another one.
    pub fn fork(&mut self, pid: u32, parent: u32) {
        let of_parent = self.processes.get(&parent).cloned();
        self.processes.insert(pid, of_parent.unwrap_or_default());
    }

    /// What a process had mapped is gone.
    pub fn clear(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// In which file an address is (a position in [`Memory::objects`]), and where there.
    pub fn find(&self, pid: u32, address: u64) -> Option<(u32, u64)> {
        let all = self.processes.get(&pid)?;
        let (begin, mapped) = all.range(..=address).next_back()?;
        let within = address - begin;
        let object = mapped.object.filter(|_| within < mapped.size)?;
        Some((object, mapped.offset.checked_add(within)?))
    }

    /// The files, by path; code that a process has made itself is one, too ([`maker`]).
    pub fn objects(&self) -> &[String] {
        &self.objects
    }
}
