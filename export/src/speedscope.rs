//! speedscope's own format: a profile for each thread, of what is entered and left. Its schema is
//! <https://www.speedscope.app/file-format-schema.json>.

use crate::trace::{Names, View, each, is_stretch, origin, process_name, since, thread_name};
use ompfuse_fuse::run::timeline::{Step, Timeline};
use ompfuse_progress::Progress;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Writes a run. Times are nanoseconds since the first thread's begin. Labels and counts have no place in this format.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    timeline: &Timeline<'_>,
    view: &View<'_>,
    progress: Progress<'_>,
) -> io::Result<()> {
    let name = &timeline.header().program;
    let exporter = concat!("ompfuse@", env!("CARGO_PKG_VERSION"));
    write!(
        out,
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","name":{},"exporter":"{exporter}","profiles":["#,
        Value::from(name.as_str())
    )?;
    let (origin, mut names) = (origin(timeline), Names::default());
    let mut last = None;
    // A thread that has recorded nothing has no profile.
    let head = |out: &mut dyn Write, number: usize| {
        let lane = &timeline.lanes()[number];
        let process = process_name(timeline, lane.process as usize);
        let name = Value::from(format!("{process}, {}", thread_name(lane)));
        let [begin, end] = [lane.begin_ns, lane.end_ns].map(|ns| since(origin, ns));
        write!(
            out,
            r#"{{"type":"evented","name":{name},"unit":"nanoseconds","startValue":{begin},"endValue":{end},"events":["#
        )
    };
    each(timeline, view, progress, |number, step| {
        let (span, at, kind) = match step {
            Step::Enter(span) => (span, span.begin_ns, 'O'),
            Step::Leave(span, at) => (span, at, 'C'),
        };
        if !is_stretch(&span) {
            return Ok(());
        }
        let mut separator = ",";
        if last != Some(number) {
            out.write_all(if last.is_some() { b"]},\n" } else { b"\n" })?;
            head(out, number)?;
            (last, separator) = (Some(number), "");
        }
        let (frame, _) = names.number(timeline, &span);
        let at = since(origin, at);
        write!(
            out,
            "{separator}\n{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}"
        )
    })?;
    if last.is_some() {
        out.write_all(b"]}")?;
    }
    // Frames come behind what refers to them, so that nothing is kept.
    let frames: Vec<Value> = names.list().iter().map(frame).collect();
    writeln!(out, "],\n\"shared\":{}}}", json!({ "frames": frames }))
}

fn frame(name: &crate::trace::Name) -> Value {
    let mut frame = Map::new();
    frame.insert("name".to_owned(), name.text.clone().into());
    if let Some(file) = &name.file {
        frame.insert("file".to_owned(), file.clone().into());
    }
    if let Some(line) = name.line {
        frame.insert("line".to_owned(), line.into());
    }
    Value::Object(frame)
}
