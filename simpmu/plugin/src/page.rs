//! The page that the program maps: a file, written where the counts have changed.

use ompfuse_format::simulated::{MAGIC, PAGE_WORDS, index, slot_at};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Processes in a row, each the child of the one before, that can be counted.
const GENERATIONS: usize = 32;

/// The page of this process, and those of its parents, which a child has from them and must not write any more.
pub(crate) struct Pages {
    folder: PathBuf,
    pages: [OnceLock<Page>; GENERATIONS],
    generation: AtomicUsize,
}

struct Page {
    process: u32,
    /// `None`: it could not be made, and nothing is counted.
    file: Option<File>,
}

impl Pages {
    pub(crate) fn new(folder: PathBuf) -> Pages {
        Pages {
            folder,
            pages: [const { OnceLock::new() }; GENERATIONS],
            generation: AtomicUsize::new(0),
        }
    }

    /// Shows a thread's counts.
    pub(crate) fn publish(&self, slot: usize, counts: &[u64; index::COUNT]) {
        self.write(slot_at(slot) + 1, counts);
    }

    /// Shows whose slot it is.
    pub(crate) fn own(&self, slot: usize, owner: u64) {
        self.write(slot_at(slot), &[owner]);
    }

    fn write(&self, word: usize, words: &[u64]) {
        let mut bytes = [0; 8 * index::COUNT];
        let bytes = &mut bytes[..8 * words.len()];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        if let Some(file) = self.file() {
            // The file has its full length: only a full disk can refuse, and then the program reads old counts or none.
            let _ = file.write_all_at(bytes, 8 * word as u64);
        }
    }

    /// This process's page; made when it is asked for the first time. A process that is made by another has but one thread.
    fn file(&self) -> Option<&File> {
        let process = std::process::id();
        let generation = self.generation.load(Ordering::Acquire);
        let page = self
            .pages
            .get(generation)?
            .get_or_init(|| self.make(process));
        if page.process == process {
            return page.file.as_ref();
        }
        let page = self
            .pages
            .get(generation + 1)?
            .get_or_init(|| self.make(process));
        self.generation.store(generation + 1, Ordering::Release);
        page.file.as_ref()
    }

    fn make(&self, process: u32) -> Page {
        let make = || {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(self.folder.join(process.to_string()))?;
            file.set_len(8 * PAGE_WORDS as u64)?;
            file.write_all_at(&MAGIC.to_ne_bytes(), 0)?;
            Ok::<File, std::io::Error>(file)
        };
        Page {
            process,
            file: make().ok(),
        }
    }
}
