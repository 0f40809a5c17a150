//! The records of a process that goes on recording.

use anyhow::{Context, Result};
use ompfuse_format::record::{HEADER_LEN, Record, Records, ThreadHeader, split_site};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The files of a process's threads. `key`: the process, as in the names of its files.
pub(crate) fn files(folder: &Path, key: &str) -> Result<Vec<PathBuf>> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let start = format!("{key}-");
    let is_its = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(&start) && name.ends_with(".rec")
    };
    let paths = listing.filter_map(|e| Some(e.ok()?.path()));
    Ok(paths.filter(is_its).collect())
}

/// What a program calls regions of its own, by now, by the number of the region's site.
pub(crate) fn user_regions(folder: &Path, key: &str) -> Result<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    for path in files(folder, key)? {
        let Some((header, bytes)) = fresh(&path, |_| 0) else {
            continue;
        };
        for record in Records::of(&header, &bytes).map_while(Result::ok) {
            if let Record::Name(name) = record {
                let text = String::from_utf8_lossy(name.text).into_owned();
                names.insert(split_site(name.site).1, text);
            }
        }
    }
    Ok(names)
}

/// The records of a thread behind an offset; the thread goes on writing meanwhile. `None`: there is no file to read.
pub(crate) fn fresh(
    path: &Path,
    from: impl Fn(&ThreadHeader) -> u64,
) -> Option<(ThreadHeader, Vec<u8>)> {
    let file = crate::input::open(path).ok()?;
    let header = || {
        let mut bytes = vec![0; HEADER_LEN];
        file.read_exact_at(&mut bytes, 0).ok()?;
        ThreadHeader::parse(&bytes).ok()
    };
    let read = |part: Range<u64>, fresh: &mut Vec<u8>| {
        // A damaged header may claim anything.
        if part.end > file.metadata().ok()?.len() {
            return None;
        }
        let (at, len) = (fresh.len(), usize::try_from(part.end - part.start).ok()?);
        fresh.resize(at + len, 0);
        file.read_exact_at(&mut fresh[at..], part.start).ok()
    };
    let mut fresh = Vec::new();
    for _ in 0..ATTEMPTS {
        let before = header()?;
        let [log, stage] = before.behind(from(&before) + fresh.len() as u64);
        // The log stays as it is: a thread that writes all the time is caught up with.
        read(log, &mut fresh)?;
        let in_log = fresh.len();
        read(stage, &mut fresh)?;
        let after = header()?;
        // What was read of the stage may be later records if it has been emptied since.
        if (after.flushed, after.stage) == (before.flushed, before.stage) {
            return Some((before, fresh));
        }
        fresh.truncate(in_log);
    }
    None // a thread that is faster than this command: next time
}

/// Copies what a thread has recorded by now, as if it had ended; nothing if there is nothing to read.
pub(crate) fn copy(path: &Path, to: &Path) -> Result<()> {
    let file = crate::input::open(path)?;
    let copy = std::fs::File::create(to)?;
    let header = || {
        let mut bytes = vec![0; HEADER_LEN];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let header = ThreadHeader::parse(&bytes).ok()?;
        Some((header, bytes))
    };
    let part = |part: Range<u64>| {
        let mut bytes = vec![0; BLOCK];
        for at in part.clone().step_by(BLOCK) {
            let len = (part.end - at).min(BLOCK as u64) as usize;
            file.read_exact_at(&mut bytes[..len], at)?;
            copy.write_all_at(&bytes[..len], at)?;
        }
        anyhow::Ok(part.end)
    };
    let mut copied = 0;
    for _ in 0..ATTEMPTS {
        let Some((before, bytes)) = header() else {
            return Ok(()); // it is about to begin
        };
        let [log, stage] = before.behind(0);
        copied = part(log.start.max(copied)..log.end.max(copied))?;
        part(stage)?;
        let sums = before.sums_at.saturating_add(before.sums_len);
        part(before.sums_at..sums)?;
        let is_it =
            |after: &ThreadHeader| (after.flushed, after.stage) == (before.flushed, before.stage);
        if header().is_some_and(|(after, _)| is_it(&after)) {
            copy.write_all_at(&bytes, 0)?;
            // Stage and sums may lie behind what was copied, without anything in them.
            copy.set_len(file.metadata()?.len())?;
            return Ok(());
        }
    }
    Ok(()) // a thread that is faster than this command
}

/// Bytes that are copied at once.
const BLOCK: usize = 1 << 20;

/// A thread's table of sums, which it goes on to add to. `None`: there is no file to read.
pub(crate) fn table(path: &Path, header: &ThreadHeader) -> Option<Vec<u8>> {
    let file = crate::input::open(path).ok()?;
    // A damaged header may claim anything.
    let end = header.sums_at.checked_add(header.sums_len)?;
    if end > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(header.sums_len).ok()?];
    file.read_exact_at(&mut bytes, header.sums_at).ok()?;
    Some(bytes)
}

/// How often a file is read again that has changed meanwhile.
const ATTEMPTS: usize = 100;
