//! What doesn't fit into memory, combined type by type (`ompfuse_fuse::profile::by_type`).

use super::Written;
use crate::load::{self, Source};
use crate::{atomic, input, interrupt, progress};
use anyhow::{Context, Result};
use bytes::Bytes;
use ompfuse_fuse::profile::by_type::{Passes, Scan, Scanned, Selected, Selection, need, passes};
use ompfuse_fuse::{ProfileWriter, Strategy, Summary};
use std::path::Path;

/// A number of bytes: `500M`, `4G`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; say for example 500M or 4G");
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << unit).ok_or_else(wrong)
}

/// Half of the memory that is available: of the machine's, and of what a control group allows.
pub(super) fn available() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read("/proc/meminfo")
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))
        .and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(u64::MAX, |kib| kib << 10);
    let group = read("/sys/fs/cgroup/memory.max");
    machine.min(group.trim().parse().unwrap_or(u64::MAX)) / 2
}

/// Whether everything fits into so many bytes for sure.
pub(super) fn fits(inputs: &[Source], memory: u64) -> Result<bool> {
    let of_file = |path: &Path| {
        let bytes = Bytes::from_owner(input::map(path)?);
        need(&bytes).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut sum = 0u64;
    for input in inputs {
        match input {
            Source::File(path) => sum = sum.saturating_add(of_file(path)?),
            Source::Run(folder) => {
                let cannot = || format!("cannot list {}", folder.display());
                for entry in std::fs::read_dir(folder).with_context(cannot)? {
                    let path = entry.with_context(cannot)?.path();
                    if path.extension().is_some_and(|e| e == "rec") {
                        sum = sum.saturating_add(of_file(&path)?);
                    }
                }
            }
        }
    }
    Ok(sum <= memory)
}

/// Combines and writes, with about so many bytes of memory, or what one type needs (and one run, where run folders are read).
pub(super) fn combine(
    inputs: &[Source],
    strategy: Strategy,
    memory: u64,
    output: &Path,
) -> Result<Written> {
    let scanned = {
        let bar = progress::bar("reading", inputs.len());
        let scan = |input| scan(input).inspect(|_| bar.step());
        inputs.iter().map(scan).collect::<Result<Vec<Scanned>>>()?
    };
    let passes = passes(&scanned, memory);
    let bar = progress::bar("combining", passes.len() * (inputs.len() + 1));
    let (mut state, mut xus, mut events) = (Passes::default(), 0, vec![]);
    let mut summary = Summary::default();
    atomic::write_with(output, 0o600, |file| {
        let cannot = || format!("cannot encode {}", output.display());
        let mut writer = ProfileWriter::new(file);
        for pass in &passes {
            let selected = inputs.iter().zip(&scanned).map(|(input, scanned)| {
                interrupt::hold().check()?;
                let profile = select(input, pass.of(scanned));
                bar.step();
                profile
            });
            let combined = state.combine(strategy, selected)?;
            let combined = combined.context("nothing to combine")?;
            xus += combined.xus.len();
            events = combined.xus.events.iter().map(|e| e.name.clone()).collect();
            writer.write(&combined).with_context(cannot)?;
            bar.step();
        }
        summary = std::mem::take(&mut state).into_summary();
        writer.finish(&summary).with_context(cannot)
    })?;
    Ok(Written {
        xus,
        events,
        matching: summary.matching,
    })
}

/// The first reading.
fn scan(input: &Source) -> Result<Scanned> {
    match input {
        Source::Run(folder) => {
            let run = load::read(folder)?;
            let mut scan = Scan::default();
            scan.add(&run.xus);
            let name = load::name(folder);
            let summary = Summary::of_run(&name, &run);
            let origins = vec![0; run.xus.events.len()];
            Ok(scan.finish(&name, Some((summary, origins))))
        }
        Source::File(path) => load::pieces(path)?
            .scan(&load::name(path))
            .with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The rows of a pass.
fn select(input: &Source, mut selection: Selection<'_>) -> Result<Selected> {
    match input {
        Source::Run(folder) => selection.add(&load::read(folder)?.xus),
        Source::File(path) => {
            let mut pieces = load::pieces(path)?;
            loop {
                let piece = pieces
                    .read()
                    .with_context(|| format!("cannot read {}", path.display()))?;
                if piece.is_empty() {
                    break;
                }
                selection.add(&piece);
            }
        }
    }
    Ok(selection.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("3k"), Ok(3 << 10));
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for bad in ["", "G", "-1", "1.5G", "4X", "99999999999T", "1é"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(available() > 1 << 20);
    }
}
