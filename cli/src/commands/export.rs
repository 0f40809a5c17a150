//! `ompfuse export`.

use crate::{atomic, load, output, progress};
use anyhow::{Context, Result};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::{Profile, XuTable};
use ompfuse_progress::Progress;
use std::io::Write;
use std::path::PathBuf;

/// Labels with more components than this are left empty: their text would be longer than all other columns together.
const LABEL_LIMIT: usize = 1024;

/// What reading takes of the time.
const OF_READING: f64 = 0.4;
/// So many rows are written before somebody is told.
const STRETCH: usize = 1 << 12;

/// Write the execution units of a profile or run in another format
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile, a run folder, or a folder of runs
    #[arg(value_name = "PROFILE|RUN")]
    input: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    to: Target,
    /// The file to write (default: standard output)
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Target {
    /// A table, one row per execution unit
    Csv,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let Target::Csv = args.to;
    let bar = progress::whole("exporting");
    let reading = bar.progress().part(OF_READING);
    let writing = bar.progress().part(1.0 - OF_READING);
    if let Some(path) = &args.output {
        load::check_output(path, std::slice::from_ref(&args.input))?;
    }
    let Profile { xus, summary, .. } = load::profile(&args.input, reading)?;
    load::tell_damage(&summary);
    match &args.output {
        Some(path) => atomic::write_with(path, 0o644, |file| {
            let mut buffered = std::io::BufWriter::new(file);
            csv(&xus, &mut buffered, writing)?;
            Ok(buffered.flush()?)
        }),
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            match csv(&xus, &mut out, writing).and_then(|()| out.flush()) {
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                    Err(output::ReaderGone.into())
                }
                result => result.context("cannot write to standard output"),
            }
        }
    }
}

/// One row per XU. An event that was not counted for an XU is left empty: that is not 0.
fn csv(xus: &XuTable, out: impl Write, progress: Progress<'_>) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let fixed = [
        "label",
        "type",
        "construct",
        "function",
        "function_demangled",
        "source_file",
        "source_line",
        "thread",
        "cpu",
        "iterations",
        "start_ns",
        "duration_ns",
    ];
    let events = xus.events.iter().map(|e| e.name.as_str());
    // Of MPI programs only.
    let has_ranks = xus.processes.iter().any(|p| p.mpi_rank.is_some());
    let rank = has_ranks.then_some("mpi_rank");
    // Of combined profiles only.
    let confidence = xus.confidence.as_ref().map(|_| "confidence");
    writer
        .write_record(
            fixed
                .into_iter()
                .chain(rank)
                .chain(confidence)
                .chain(events),
        )
        .map_err(io_error)?;
    for row in 0..xus.len() {
        if row % STRETCH == STRETCH - 1 {
            progress.steps(STRETCH, xus.len());
        }
        let site = xus.sites.get(xus.site[row] as usize);
        let source = site.and_then(|s| s.source.as_ref());
        let text = |s: Option<&str>| s.unwrap_or_default().to_owned();
        let cells = [
            xus.label_text(row, LABEL_LIMIT).unwrap_or_default(),
            text(site.map(|s| s.name.as_str())),
            text(xus.construct[row].map(|c| c.name())),
            text(site.and_then(|s| s.function.as_deref())),
            site.and_then(|s| s.function.as_deref())
                .map(|f| readable(f).into_owned())
                .unwrap_or_default(),
            text(source.map(|s| s.file.as_str())),
            source.map(|s| s.line.to_string()).unwrap_or_default(),
            xus.thread[row].to_string(),
            if xus.cpu[row] == u16::MAX {
                String::new()
            } else {
                xus.cpu[row].to_string()
            },
            xus.iterations[row].to_string(),
            xus.t0_ns[row].to_string(),
            xus.own_ns[row].to_string(),
        ];
        let counts = xus
            .events
            .iter()
            .map(|e| e.get(row).map(|c| c.to_string()).unwrap_or_default());
        let percent = xus.confidence.as_ref().map(|c| c[row]);
        let confidence = percent.map(|p| (f64::from(p) / 100.0).to_string());
        let process = xus.processes.get(xus.process[row] as usize);
        let rank = process.and_then(|p| p.mpi_rank);
        let rank = has_ranks.then(|| rank.map(|r| r.to_string()).unwrap_or_default());
        writer
            .write_record(
                cells
                    .into_iter()
                    .chain(rank)
                    .chain(confidence)
                    .chain(counts),
            )
            .map_err(io_error)?;
    }
    writer.flush()
}

/// The error of the file itself: the conversion that csv offers hides what kind it is.
fn io_error(error: csv::Error) -> std::io::Error {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => std::io::Error::other(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written() {
        let input = "type,label,thread,t0_ns,t1_ns,INS,\"a,b\"\n0x40,0.1,3,10,25,7,\n0x41,0.2,0,11,12,8,9\n";
        let xus = XuTable::from_csv(input.as_bytes()).unwrap();
        let mut out = Vec::new();
        csv(&xus, &mut out, Progress::default()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "label,type,construct,function,function_demangled,source_file,source_line,thread,cpu,iterations,start_ns,duration_ns,INS,\"a,b\"\n\
             0.1,0x40,,,,,,3,,0,10,15,7,\n0.2,0x41,,,,,,0,,0,11,1,8,9\n"
        );
    }
}
