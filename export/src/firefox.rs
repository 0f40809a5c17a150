//! The Firefox Profiler's format, by the library that samply uses: a marker for each span, with its own time, label and counts, and each
//! sample's stack.
//!
//! The format has one column after the other, so the whole profile is in memory, unlike those of other formats.

use crate::stacks::Frames;
use crate::trace::{
    LABEL_LIMIT, Names, Next, View, category, each_with_samples, is_stretch, origin, process_name,
    since, thread_name,
};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Marker,
    MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTiming, MarkerTypeHandle, Profile,
    ReferenceTimestamp, RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, SamplingInterval,
    StringHandle, ThreadHandle, Timestamp,
};
use ompfuse_fuse::run::timeline::{Step, Timeline};
use ompfuse_progress::Progress;
use std::collections::HashMap;
use std::io::{self, Write};

/// A span as a marker.
struct SpanMarker<'m> {
    kind: MarkerTypeHandle,
    name: StringHandle,
    category: CategoryHandle,
    label: StringHandle,
    /// Own time in milliseconds, then the counts; not a number where one is not known, which is written as `null`.
    numbers: &'m [f64],
}

impl Marker for SpanMarker<'_> {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.kind
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.label
    }

    fn number_field_value(&self, field: u32) -> f64 {
        // Behind the label.
        let number = (field as usize).checked_sub(1);
        let number = number.and_then(|at| self.numbers.get(at));
        number.copied().unwrap_or(f64::NAN)
    }
}

/// Colours of what threads do.
const CATEGORIES: [(&str, CategoryColor); 7] = [
    ("work", CategoryColor::Blue),
    ("serial", CategoryColor::DarkGray),
    ("idle", CategoryColor::Transparent),
    ("synchronization", CategoryColor::Magenta),
    ("imbalance", CategoryColor::Yellow),
    ("limited parallelism", CategoryColor::Orange),
    ("management", CategoryColor::Brown),
];

/// Writes a run. Times are milliseconds since the first thread's begin.
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
    let origin = origin(timeline);
    let started = header.started * 1e3 + origin as f64 / 1e6;
    let mut profile = Profile::new(
        &header.program,
        ReferenceTimestamp::from_millis_since_unix_epoch(started),
        match view.samples {
            Some(samples) => SamplingInterval::from_nanos(samples.period_ns()),
            None => SamplingInterval::from_millis(1),
        },
    );
    let kind = profile.register_marker_type(schema(timeline));
    let categories: HashMap<&str, CategoryHandle> = CATEGORIES
        .into_iter()
        .map(|(name, colour)| (name, profile.add_category(name, colour)))
        .collect();
    let threads = threads(&mut profile, timeline, origin);
    let (mut names, mut handles) = (Names::default(), vec![]);
    let no_label = profile.intern_string("");
    let (mut counts, mut numbers) = (vec![], vec![]);
    let at = |ns| Timestamp::from_nanos_since_reference(since(origin, ns));
    let mut frames = view
        .samples
        .map(|s| (Frames::new(s.places()), s.period_ns()));
    each_with_samples(timeline, view, progress, |number, next| {
        let (span, end) = match (next, &mut frames) {
            (Next::Step(Step::Leave(span, end)), _) => (span, end),
            (Next::Sample(sample, around), Some((frames, period_ns))) => {
                let lane = &timeline.lanes()[number];
                let category = |span| categories[category(span, lane)];
                let mut stack: Vec<(String, CategoryHandle)> = vec![];
                for span in around {
                    let (name, is_new) = names.number(timeline, span);
                    let name = names.get(name).text.clone();
                    if is_new {
                        handles.push(profile.intern_string(&name));
                    }
                    stack.push((name, category(span)));
                }
                let inner = stack.last().map(|(_, category)| *category);
                for frame in frames.of(sample) {
                    let category = inner.unwrap_or(CategoryHandle::OTHER);
                    stack.push((frames.list()[frame].text(), category));
                }
                let stack = stack.into_iter().map(|(name, category)| FrameInfo {
                    frame: Frame::Label(profile.intern_string(&name)),
                    category_pair: category.into(),
                    flags: FrameFlags::empty(),
                });
                let stack: Vec<FrameInfo> = stack.collect();
                let stack = profile.intern_stack_frames(threads[number], stack.into_iter());
                let cpu = CpuDelta::from_nanos(*period_ns);
                profile.add_sample(threads[number], at(sample.at_ns), stack, cpu, 1);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let lane = &timeline.lanes()[number];
        let (name, is_new) = names.number(timeline, &span);
        if is_new {
            handles.push(profile.intern_string(&names.get(name).text));
        }
        let label = span
            .is_unit()
            .then(|| timeline.label(lane, &span, LABEL_LIMIT));
        let label = match label.flatten() {
            Some(label) => profile.intern_string(&label.to_string()),
            None => no_label,
        };
        timeline.counts(lane, &span, &mut counts);
        numbers.clear();
        numbers.push(span.own_ns.map_or(f64::NAN, |ns| ns as f64 / 1e6));
        numbers.extend(counts.iter().map(|c| c.map_or(f64::NAN, |c| c as f64)));
        let marker = SpanMarker {
            kind,
            name: handles[name],
            category: categories[category(&span, lane)],
            label,
            numbers: &numbers,
        };
        let timing = match is_stretch(&span) {
            true => MarkerTiming::Interval(at(span.begin_ns), at(end)),
            false => MarkerTiming::Instant(at(end)),
        };
        profile.add_marker(threads[number], timing, marker);
        Ok(())
    })?;
    serde_json::to_writer(out, &profile).map_err(|e| match e.io_error_kind() {
        Some(kind) => kind.into(),
        None => io::Error::other(e),
    })
}

fn threads(profile: &mut Profile, timeline: &Timeline<'_>, origin: i64) -> Vec<ThreadHandle> {
    let at = |ns| Timestamp::from_nanos_since_reference(since(origin, ns));
    let mut processes = vec![];
    for (number, process) in timeline.processes().iter().enumerate() {
        let name = process_name(timeline, number);
        let handle = profile.add_process(&name, process.pid, at(process.begin_ns));
        profile.set_process_end_time(handle, at(process.end_ns));
        processes.push(handle);
    }
    let mut threads = vec![];
    for lane in timeline.lanes() {
        let process = processes[lane.process as usize];
        let handle = profile.add_thread(process, lane.tid, at(lane.begin_ns), lane.thread == 0);
        profile.set_thread_name(handle, &thread_name(lane));
        profile.set_thread_end_time(handle, at(lane.end_ns));
        profile.set_thread_show_markers_in_timeline(handle, true);
        threads.push(handle);
    }
    threads
}

/// What markers say beside their names.
fn schema(timeline: &Timeline<'_>) -> RuntimeSchemaMarkerSchema {
    let field = |key: &str, label: &str, format| RuntimeSchemaMarkerField {
        key: key.to_owned(),
        label: label.to_owned(),
        format,
        flags: MarkerFieldFlags::SEARCHABLE,
    };
    let mut fields = vec![
        field("label", "Label", MarkerFieldFormat::String),
        field("own", "Own time", MarkerFieldFormat::Duration),
    ];
    for event in timeline.counted() {
        fields.push(field(event, event, MarkerFieldFormat::Integer));
    }
    RuntimeSchemaMarkerSchema {
        type_name: "ompfuse".to_owned(),
        description: Some("What a thread did in an OpenMP construct".to_owned()),
        locations: MarkerLocations::MARKER_CHART
            | MarkerLocations::MARKER_TABLE
            | MarkerLocations::TIMELINE_OVERVIEW,
        chart_label: Some("{marker.name}".to_owned()),
        tooltip_label: Some("{marker.name}".to_owned()),
        table_label: Some("{marker.name} {marker.data.label}".to_owned()),
        fields,
        graphs: vec![],
    }
}
