//! speedscope's own format: a profile for each thread, of what is entered and left, and one of its samples. Its schema is
//! <https://www.speedscope.app/file-format-schema.json>.

use crate::stacks::Frames;
use crate::trace::{
    Names, Next, View, each_with_samples, is_stretch, origin, process_name, since, thread_name,
};
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
    let mut sampled = view
        .samples
        .map(|samples| (Frames::new(samples.places()), vec![]));
    let called = |number: usize| {
        let lane = &timeline.lanes()[number];
        let process = process_name(timeline, lane.process as usize);
        format!("{process}, {}", thread_name(lane))
    };
    // A thread that has recorded nothing has no profile.
    let head = |out: &mut dyn Write, number: usize| {
        let lane = &timeline.lanes()[number];
        let name = Value::from(called(number));
        let [begin, end] = [lane.begin_ns, lane.end_ns].map(|ns| since(origin, ns));
        write!(
            out,
            r#"{{"type":"evented","name":{name},"unit":"nanoseconds","startValue":{begin},"endValue":{end},"events":["#
        )
    };
    each_with_samples(timeline, view, progress, |number, next| {
        let step = match next {
            Next::Step(step) => step,
            Next::Sample(sample, around) => {
                if let Some((frames, stacks)) = &mut sampled {
                    let around = around.iter().map(|span| names.number(timeline, span).0);
                    let around: Vec<usize> = around.collect();
                    stacks.push((number, around, frames.of(sample)));
                }
                return Ok(());
            }
        };
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
    // Frames come behind what refers to them, so that nothing is kept but samples.
    let mut frames: Vec<Value> = names.list().iter().map(frame).collect();
    if let Some(((functions, stacks), samples)) = sampled.zip(view.samples) {
        let first = frames.len();
        for of_thread in stacks.chunk_by(|a, b| a.0 == b.0) {
            let stacks = of_thread.iter().map(|(_, around, functions)| {
                let functions = functions.iter().map(|at| first + at);
                around.iter().copied().chain(functions).collect()
            });
            let stacks: Vec<Vec<usize>> = stacks.collect();
            let period = samples.period_ns();
            let profile = json!({
                "type": "sampled",
                "name": format!("{}, samples", called(of_thread[0].0)),
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": period * stacks.len() as u64,
                "weights": vec![period; stacks.len()],
                "samples": stacks,
            });
            let separator = if last.is_some() { "," } else { "" };
            write!(out, "{separator}\n{profile}")?;
            last = Some(of_thread[0].0);
        }
        frames.extend(functions.list().iter().map(|f| {
            let place = (f.file.as_deref(), f.line);
            described(&f.name, place)
        }));
    }
    writeln!(out, "],\n\"shared\":{}}}", json!({ "frames": frames }))
}

fn frame(name: &crate::trace::Name) -> Value {
    described(&name.text, (name.file.as_deref(), name.line))
}

fn described(name: &str, (file, line): (Option<&str>, Option<u32>)) -> Value {
    let mut frame = Map::new();
    frame.insert("name".to_owned(), name.into());
    if let Some(file) = file {
        frame.insert("file".to_owned(), file.into());
    }
    if let Some(line) = line {
        frame.insert("line".to_owned(), line.into());
    }
    Value::Object(frame)
}
