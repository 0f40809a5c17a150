//! Chrome's trace event format, as JSON: a complete event (`X`) for each span, with its own time, label and counts as arguments.
//! Perfetto's page, speedscope and `chrome://tracing` read it.

use crate::trace::{
    LABEL_LIMIT, Names, View, category, each, is_stretch, origin, process_name, since, thread_name,
};
use ompfuse_fuse::run::timeline::{Lane, Span, Step, Timeline};
use ompfuse_progress::Progress;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

#[derive(Serialize)]
struct Event<'e> {
    name: &'e str,
    cat: &'e str,
    ph: &'e str,
    ts: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Box<RawValue>>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'e str>,
    args: Map<String, Value>,
}

/// Writes a run. Times are microseconds with three decimals since the first thread's begin.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    timeline: &Timeline<'_>,
    view: &View<'_>,
    progress: Progress<'_>,
) -> io::Result<()> {
    let header = timeline.header();
    let about = json!({
        "program": header.program,
        "recorder": concat!("ompfuse ", env!("CARGO_PKG_VERSION")),
        "started": header.started,
    });
    write!(
        out,
        r#"{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":["#
    )?;
    let mut separator = "\n";
    for event in metadata(timeline) {
        write!(out, "{separator}{event}")?;
        separator = ",\n";
    }
    let (origin, mut names) = (origin(timeline), Names::default());
    each(timeline, view, progress, |number, step| {
        let Step::Leave(span, at) = step else {
            return Ok(());
        };
        let lane = &timeline.lanes()[number];
        let (name, _) = names.number(timeline, &span);
        let begin = since(origin, span.begin_ns);
        let end = since(origin, at);
        let is_stretch = is_stretch(&span);
        let event = Event {
            name: &names.get(name).text,
            cat: category(&span, lane),
            ph: if is_stretch { "X" } else { "i" },
            ts: microseconds(if is_stretch { begin } else { end }),
            dur: is_stretch.then(|| microseconds(end - begin)),
            pid: timeline.processes()[lane.process as usize].pid,
            tid: lane.thread,
            s: (!is_stretch).then_some("t"),
            args: args(timeline, lane, &span),
        };
        write!(out, "{separator}")?;
        separator = ",\n";
        serde_json::to_writer(&mut *out, &event).map_err(io_error)
    })?;
    out.write_all(b"\n]}\n")
}

/// Names of processes and threads. A thread's number is its number in the process: the kernel uses its own again.
fn metadata(timeline: &Timeline<'_>) -> Vec<Value> {
    let mut events = vec![];
    for (at, process) in timeline.processes().iter().enumerate() {
        let name = process_name(timeline, at);
        events.push(
            json!({"ph": "M", "name": "process_name", "pid": process.pid, "args": {"name": name}}),
        );
        if let Some(rank) = process.mpi_rank {
            let order = json!({"sort_index": rank});
            events.push(
                json!({"ph": "M", "name": "process_sort_index", "pid": process.pid, "args": order}),
            );
        }
    }
    for lane in timeline.lanes() {
        let (pid, tid) = (timeline.processes()[lane.process as usize].pid, lane.thread);
        let name = json!({"name": format!("{} ({})", thread_name(lane), lane.tid)});
        events
            .push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": name}));
        let order = json!({"sort_index": tid});
        events.push(
            json!({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": order}),
        );
    }
    events
}

fn args(timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>) -> Map<String, Value> {
    let mut args = Map::new();
    if let Some(own) = span.own_ns {
        args.insert("own_ns".to_owned(), own.into());
    }
    if let Some(label) = timeline
        .label(lane, span, LABEL_LIMIT)
        .filter(|_| span.is_unit())
    {
        args.insert("label".to_owned(), label.to_string().into());
    }
    let mut counts = vec![];
    timeline.counts(lane, span, &mut counts);
    for (event, count) in timeline.counted().iter().zip(counts) {
        if let Some(count) = count {
            args.insert(event.clone(), count.into());
        }
    }
    args
}

/// Exactly, whatever the number.
fn microseconds(ns: u64) -> Box<RawValue> {
    let text = format!("{}.{:03}", ns / 1000, ns % 1000);
    RawValue::from_string(text).expect("a number")
}

fn io_error(error: serde_json::Error) -> io::Error {
    match error.io_error_kind() {
        Some(kind) => kind.into(),
        None => io::Error::other(error),
    }
}
