//! The Open Trace Format 2, by its own library: a folder of files that Vampir and Scalasca read.
//!
//! Spans are regions that are entered and left, called as Score-P calls them. Beside them there are events of OpenMP's: a team is forked
//! and joined, a thread begins and ends to be in it, tasks are created, begin, are interrupted and end, locks are taken and given back.
//!
//! What was counted is a sum that grows when a span ends, by the span's own count. So the difference between entering and leaving a
//! span is what was counted in it and in everything nested in it, exactly; when in between it happened is not on record.

mod book;
mod regions;
mod thread;

use crate::trace::{OF_TASKS, View, each_of, origin, since};
use book::{Book, location};
use ompfuse_fuse::run::timeline::Timeline;
use ompfuse_otf2::{Archive, Error, Library, Origin};
use ompfuse_progress::Progress;
use std::io;
use std::path::Path;
use thread::Thread;

/// So many steps are written before somebody is asked whether to stop.
const STRETCH: usize = 1 << 12;

/// Writes a run into a folder, which is empty. Times are nanoseconds since the first thread's begin. `stop`: whether
/// to give up.
///
/// # Errors
/// Those of OTF2's library; of kind [`io::ErrorKind::Interrupted`] where it was given up.
pub fn write(
    library: Library,
    folder: &Path,
    timeline: &Timeline<'_>,
    view: &View<'_>,
    stop: &dyn Fn() -> bool,
    progress: Progress<'_>,
) -> io::Result<()> {
    timeline.read_tasks(progress.part(OF_TASKS));
    let progress = progress.part(1.0 - OF_TASKS);
    let header = timeline.header();
    let about = Origin {
        creator: concat!("ompfuse ", env!("CARGO_PKG_VERSION")),
        description: &header.program,
        machine: &header.host,
    };
    let mut archive = Archive::create(library, folder, about).map_err(refused)?;
    let mut book = Book::default();
    let begin = origin(timeline);
    let last = timeline
        .lanes()
        .iter()
        .map(|lane| since(begin, lane.end_ns));
    let last = last.max().unwrap_or(0);
    let length = view.end().map_or(last, |end| end.min(last));
    book.begin(&mut archive, timeline, (begin, length))
        .map_err(refused)?;
    let mut numbers = vec![];
    for (number, lane) in timeline.lanes().iter().enumerate() {
        let events = archive.events(location(lane)).map_err(refused)?;
        let mut thread = Thread::new(timeline, number, view.orders, &mut book, events);
        let mut steps = 0;
        each_of(timeline, number, view, progress, |step| {
            steps += 1;
            if steps % STRETCH == 0 && stop() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            thread.take(step).map_err(refused)
        })?;
        numbers.push(thread.end(view.end()).map_err(refused)?);
    }
    book.end(&mut archive, timeline, &numbers)
        .map_err(refused)?;
    let locations: Vec<u64> = timeline.lanes().iter().map(location).collect();
    archive.finish(&locations).map_err(refused)
}

fn refused(error: Error) -> io::Error {
    io::Error::other(error)
}
