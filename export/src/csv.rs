//! A table as text, one row per execution unit.

use csv::Writer;
use ompfuse_format::Construct;
use ompfuse_fuse::XuTable;
use ompfuse_fuse::names::readable;
use ompfuse_progress::Progress;
use std::io::{self, Write};

/// Labels with more components than this are left empty: their text would be longer than all other columns together.
const LABEL_LIMIT: usize = 1024;

/// So many rows are written before somebody is told.
const STRETCH: usize = 1 << 12;

/// The columns that every table has. `docs/reference/columns.md` says what they mean.
const FIXED: [&str; 13] = [
    "label",
    "type",
    "function",
    "function_demangled",
    "source_file",
    "source_line",
    "thread",
    "cpu",
    "iterations",
    "start_ns",
    "own_ns",
    "kind",
    "region_construct",
];

/// What can be had beside that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A column `label_hex`: labels with their numbers in hexadecimal, as addresses are written.
    pub hex_labels: bool,
}

/// Writes the table. An event that was not counted for a unit is left empty: that is not 0.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    xus: &XuTable,
    options: Options,
    progress: Progress<'_>,
) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    // Of MPI programs only.
    let has_ranks = xus.processes.iter().any(|p| p.mpi_rank.is_some());
    // Of combined profiles only.
    let confidence = xus.confidence.as_ref().map(|_| "confidence");
    let events = xus.events.iter().map(|e| e.name.as_str());
    let hex = options.hex_labels.then_some("label_hex");
    let head = FIXED.into_iter().chain(hex);
    let head = head.chain(has_ranks.then_some("mpi_rank"));
    writer
        .write_record(head.chain(confidence).chain(events))
        .map_err(io_error)?;
    for row in 0..xus.len() {
        if row % STRETCH == STRETCH - 1 {
            progress.steps(STRETCH, xus.len());
        }
        let process = xus.processes.get(xus.process[row] as usize);
        let rank = process.and_then(|p| p.mpi_rank);
        let rank = has_ranks.then(|| text(rank));
        let percent = xus.confidence.as_ref().map(|c| c[row]);
        let confidence = percent.map(|p| (f64::from(p) / 100.0).to_string());
        let counts = xus.events.iter().map(|e| text(e.get(row)));
        let hex = options.hex_labels.then(|| text(hex_label(xus, row)));
        let cells = fixed(xus, row).into_iter().chain(hex).chain(rank);
        writer
            .write_record(cells.chain(confidence).chain(counts))
            .map_err(io_error)?;
    }
    writer.flush()
}

/// A unit's cells of the columns that every table has.
fn fixed(xus: &XuTable, row: usize) -> [String; FIXED.len()] {
    let site = xus.sites.get(xus.site[row] as usize);
    let function = site.and_then(|s| s.function.as_deref());
    let source = site.and_then(|s| s.source.as_ref());
    [
        xus.label_text(row, LABEL_LIMIT).unwrap_or_default(),
        text(site.map(|s| &s.name)),
        text(function),
        text(function.map(readable)),
        text(source.map(|s| &s.file)),
        text(source.map(|s| s.line)),
        xus.thread[row].to_string(),
        text(Some(xus.cpu[row]).filter(|&cpu| cpu != u16::MAX)),
        xus.iterations[row].to_string(),
        xus.t0_ns[row].to_string(),
        xus.own_ns[row].to_string(),
        text(xus.construct[row].map(Construct::name)),
        text(xus.region_construct(row).map(Construct::name)),
    ]
}

fn hex_label(xus: &XuTable, row: usize) -> Option<String> {
    let id = Some(xus.label[row]).filter(|id| id.is_some())?;
    let label = xus.labels.get(id, LABEL_LIMIT)?;
    let numbers = label.0.iter().map(|n| format!("{n:#x}"));
    Some(numbers.collect::<Vec<_>>().join("."))
}

/// Nothing where nothing is known.
fn text(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

/// The error of the file itself: the conversion that csv offers hides what kind it is.
pub(crate) fn io_error(error: csv::Error) -> io::Error {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => io::Error::other(text),
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
        write(&mut out, &xus, Options::default(), Progress::default()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "label,type,function,function_demangled,source_file,source_line,thread,cpu,iterations,start_ns,own_ns,kind,region_construct,INS,\"a,b\"\n\
             0.1,0x40,,,,,3,,0,10,15,,,7,\n0.2,0x41,,,,,0,,0,11,1,,,8,9\n"
        );
    }

    #[test]
    fn labels_can_be_hexadecimal() {
        let input = "type,label,thread,t0_ns,t1_ns\n0x12bc,0.1.4796.10,3,10,25\n";
        let xus = XuTable::from_csv(input.as_bytes()).unwrap();
        let mut out = Vec::new();
        let options = Options { hex_labels: true };
        write(&mut out, &xus, options, Progress::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, row) = text.trim().split_once('\n').unwrap();
        assert!(head.ends_with(",region_construct,label_hex"), "{head}");
        assert!(
            row.starts_with("0.1.4796.10,0x12bc,") && row.ends_with(",0x0.0x1.0x12bc.0xa"),
            "{row}"
        );
    }

    #[test]
    fn what_the_writer_says_is_handed_on() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let xus = XuTable::from_csv(b"type,label,thread,t0_ns,t1_ns\n0x40,0.1,3,10,25\n").unwrap();
        let error = write(&mut Full, &xus, Options::default(), Progress::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
