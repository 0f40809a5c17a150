//! What trace formats have in common: names of spans, and reading all threads one after the other.

mod orders;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use orders::Ordered;
pub use orders::Orders;
use view::Seen;
pub use view::View;

use ompfuse_format::Construct;
use ompfuse_format::construct::OverheadClass;
use ompfuse_fuse::names::readable;
use ompfuse_fuse::run::timeline::{Doing, Kind, Lane, Span, Step, Timeline};
use ompfuse_fuse::samples::Stack;
use ompfuse_progress::Progress;
use std::collections::HashMap;
use std::io;

/// Labels with more components than this are left out: their text would be longer than all else.
pub(crate) const LABEL_LIMIT: usize = 64;

/// What reading tasks takes of the time.
pub(crate) const OF_TASKS: f64 = 0.2;

/// So many steps are read before somebody is told.
const STRETCH: usize = 1 << 16;

/// What comes next on a thread.
#[derive(Debug)]
pub(crate) enum Next<'n, 'a> {
    /// A span begins or ends.
    Step(Step<'a>),
    /// A sample, and the stretches that it is in, the innermost last: at least one.
    Sample(&'n Stack, &'n [Span<'a>]),
}

/// Reads all threads, one after the other, with their samples.
pub(crate) fn each_with_samples<'a>(
    timeline: &Timeline<'a>,
    view: &View<'_>,
    progress: Progress<'_>,
    mut next: impl FnMut(usize, Next<'_, 'a>) -> io::Result<()>,
) -> io::Result<()> {
    (0..timeline.lanes().len())
        .try_for_each(|lane| next_of(timeline, lane, view, progress, |n| next(lane, n)))
}

/// Reads all threads, one after the other.
pub(crate) fn each<'a>(
    timeline: &Timeline<'a>,
    view: &View<'_>,
    progress: Progress<'_>,
    mut step: impl FnMut(usize, Step<'a>) -> io::Result<()>,
) -> io::Result<()> {
    (0..timeline.lanes().len())
        .try_for_each(|lane| each_of(timeline, lane, view, progress, |next| step(lane, next)))
}

/// Reads one thread.
pub(crate) fn each_of<'a>(
    timeline: &Timeline<'a>,
    lane: usize,
    view: &View<'_>,
    progress: Progress<'_>,
    mut step: impl FnMut(Step<'a>) -> io::Result<()>,
) -> io::Result<()> {
    let view = View {
        samples: None,
        ..*view
    };
    next_of(timeline, lane, &view, progress, |next| match next {
        Next::Step(next) => step(next),
        Next::Sample(..) => Ok(()),
    })
}

/// Reads one thread with its samples.
fn next_of<'a>(
    timeline: &Timeline<'a>,
    lane: usize,
    view: &View<'_>,
    progress: Progress<'_>,
    mut next: impl FnMut(Next<'_, 'a>) -> io::Result<()>,
) -> io::Result<()> {
    // Each interval begins and ends.
    let all = 2 * timeline.intervals() as usize;
    let mut read = 0;
    let mut steps = timeline.steps(lane).inspect(|_| {
        read += 1;
        if read == STRETCH {
            progress.steps(std::mem::take(&mut read), all.max(STRETCH));
            progress.release();
        }
    });
    let mut along = view.samples.map(|samples| samples.along(timeline, lane));
    let is_all = view.is_all();
    if is_all && along.is_none() {
        return steps.try_for_each(|step| next(Next::Step(step)));
    }
    let mut seen = Seen::new(timeline, view);
    for step in steps {
        if let Some(along) = &mut along {
            while let Some((open, sample)) = along.before(&step) {
                let mut around = match is_all {
                    true => open.to_vec(),
                    false => seen.at(sample.at_ns, open),
                };
                around.retain(is_stretch);
                if !around.is_empty() {
                    next(Next::Sample(&sample, &around))?;
                }
            }
            along.pass(&step);
        }
        match is_all {
            true => next(Next::Step(step))?,
            false if seen.take(step, &mut |step| next(Next::Step(step)))? => {}
            false => break,
        }
    }
    seen.end(&mut |step| next(Next::Step(step)))
}

/// Whether a span is a stretch of time. Fetching a loop's ranges is on record as one sum for each loop, and lasts as long as that.
pub(crate) fn is_stretch(span: &Span<'_>) -> bool {
    span.construct != Construct::Dispatch
}

/// When the earliest thread's recording began: times are counted from there, so that none is negative.
pub(crate) fn origin(timeline: &Timeline<'_>) -> i64 {
    let begins = timeline.lanes().iter().map(|lane| lane.begin_ns);
    begins.min().unwrap_or(0)
}

/// Since the [`origin`].
pub(crate) fn since(origin: i64, ns: i64) -> u64 {
    ns.saturating_sub(origin).max(0) as u64
}

/// What a process is called.
pub(crate) fn process_name(timeline: &Timeline<'_>, process: usize) -> String {
    let program = &timeline.header().program;
    match timeline.processes()[process].mpi_rank {
        // The program is what has launched the ranks.
        Some(rank) => format!("rank {rank}"),
        None => program.rsplit('/').next().unwrap_or(program).to_owned(),
    }
}

/// What a thread is called.
pub(crate) fn thread_name(lane: &Lane) -> String {
    match &lane.name {
        Some(name) => format!("{name} (thread {})", lane.thread),
        None => format!("thread {}", lane.thread),
    }
}

/// What a thread does in a span's own time, as a category. Classes are those of the construct alone.
pub(crate) fn category(span: &Span<'_>, lane: &Lane) -> &'static str {
    match span.doing(lane.is_root) {
        Doing::Work => "work",
        Doing::Serial => "serial",
        Doing::Idle => "idle",
        Doing::Lost(OverheadClass::Synchronization) => "synchronization",
        Doing::Lost(OverheadClass::Imbalance) => "imbalance",
        Doing::Lost(OverheadClass::LimitedParallelism) => "limited parallelism",
        Doing::Lost(OverheadClass::Management) => "management",
    }
}

/// Names of spans, each once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<(Kind, Construct, Option<u32>), usize>,
    list: Vec<Name>,
}

/// A name, with the place in the source where it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    /// What it is: the begin of the text.
    pub(crate) what: String,
    /// Where it is, if that is known: the end of the text.
    pub(crate) place: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
}

impl Names {
    /// The number of a span's name, and whether it is new.
    pub(crate) fn number(&mut self, timeline: &Timeline<'_>, span: &Span<'_>) -> (usize, bool) {
        let key = (span.kind, span.construct, span.site);
        let next = self.list.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.list.push(name(timeline, span));
        }
        (number, number == next)
    }

    pub(crate) fn get(&self, number: usize) -> &Name {
        &self.list[number]
    }

    pub(crate) fn list(&self) -> &[Name] {
        &self.list
    }
}

/// What a span is, and where: `range spmv.c:42`, `wait at end of parallel solve.c:61`.
fn name(timeline: &Timeline<'_>, span: &Span<'_>) -> Name {
    let construct = match span.construct {
        c if c.is_part() => "part of parallel",
        construct => construct.name(),
    };
    let what = match span.kind {
        Kind::Interval => construct.to_owned(),
        Kind::Enter => format!("wait to enter {construct}"),
        Kind::Exit => format!("leave {construct}"),
        Kind::Startup => format!("start of {construct}"),
        Kind::End => format!("wait at end of {construct}"),
        Kind::Shutdown => format!("end of {construct}"),
    };
    let site = span.site.map(|site| &timeline.sites()[site as usize]);
    let what = match site.and_then(|site| site.detail.as_deref()?.split_once(", ")) {
        Some((function, _)) if span.construct.is_call() => function.to_owned(),
        // A mutex of threads.
        Some((function, _)) if span.construct == Construct::Lock => match span.kind {
            Kind::Exit => format!("leave {function}"),
            _ => function.to_owned(),
        },
        _ => match site.and_then(|site| site.function.as_deref()) {
            Some(function) if span.construct == Construct::Function => {
                readable(function).into_owned()
            }
            _ => what,
        },
    };
    let source = site.and_then(|site| site.source.as_ref());
    let function = site.and_then(|site| site.function.as_deref());
    let place = match (source, function, site) {
        (Some(source), ..) => {
            let file = source.file.rsplit('/').next().unwrap_or(&source.file);
            Some(format!("{file}:{}", source.line))
        }
        (None, Some(function), Some(site)) if span.construct != Construct::Function => {
            Some(format!("{} {}", readable(function), site.name))
        }
        (None, _, Some(site)) => Some(site.name.clone()),
        (_, _, None) => None,
    };
    Name {
        text: match &place {
            Some(place) => format!("{what} {place}"),
            None => what.clone(),
        },
        what,
        place,
        file: source.map(|s| s.file.clone()),
        line: source.map(|s| s.line),
    }
}
