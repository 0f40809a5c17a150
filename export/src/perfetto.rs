//! Perfetto's trace format: a track for each thread, below that of its process; a slice for each span, with its own time, label and
//! counts; arrows from a task's creation to its execution, and to it from those that it depends on; samples with their stacks.
//!
//! Each thread is a packet sequence of its own, whose names are interned as they are met. So nothing but names is kept.

mod messages;
mod samples;

use crate::trace::{
    LABEL_LIMIT, Names, Next, OF_TASKS, View, category, each_with_samples, is_stretch, origin,
    process_name, since, thread_name,
};
use messages::{
    DebugAnnotation, INSTANT, Interned, InternedData, NEEDS_STATE, ProcessDescriptor, SLICE_BEGIN,
    SLICE_END, STATE_CLEARED, ThreadDescriptor, Trace, TracePacket, TrackDescriptor, TrackEvent,
};
use ompfuse_fuse::run::timeline::{Lane, Span, Step, Timeline};
use ompfuse_progress::Progress;
use prost::Message;
use samples::{Known, Sampled, defaults};
use std::collections::HashMap;
use std::io::{self, Write};

/// What arguments are called, behind the events that are counted.
const OWN: &str = "own_ns";
const LABEL: &str = "label";

/// A further category.
const CRITICAL: &str = "critical path";

/// Flows between tasks that depend on each other. Numbers of creations are smaller.
const DEPENDENCE: u64 = 1 << 63;

/// Writes a run. Times are nanoseconds since the first thread's begin.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    timeline: &Timeline<'_>,
    view: &View<'_>,
    progress: Progress<'_>,
) -> io::Result<()> {
    timeline.read_tasks(progress.part(OF_TASKS));
    let progress = progress.part(1.0 - OF_TASKS);
    let mut packets = Packets {
        out,
        bytes: Vec::new(),
    };
    for (at, process) in timeline.processes().iter().enumerate() {
        let command = [&timeline.header().program].into_iter();
        packets.put(track(TrackDescriptor {
            uuid: Some(process_track(at)),
            process: Some(ProcessDescriptor {
                pid: Some(process.pid as i32),
                cmdline: command.chain(&timeline.header().args).cloned().collect(),
                process_name: Some(process_name(timeline, at)),
            }),
            ..TrackDescriptor::default()
        }))?;
    }
    for (number, lane) in timeline.lanes().iter().enumerate() {
        packets.put(track(TrackDescriptor {
            uuid: Some(thread_track(number)),
            parent_uuid: Some(process_track(lane.process as usize)),
            thread: Some(ThreadDescriptor {
                pid: Some(timeline.processes()[lane.process as usize].pid as i32),
                tid: Some(i64::from(lane.tid)),
                thread_name: Some(thread_name(lane)),
            }),
            ..TrackDescriptor::default()
        }))?;
    }
    let (origin, mut names) = (origin(timeline), Names::default());
    let mut sequence = Sequence::default();
    let mut sampled = view
        .samples
        .map(|s| Sampled::new(&timeline.header().program, s));
    each_with_samples(timeline, view, progress, |number, next| {
        if sequence.lane != Some(number) {
            sequence = Sequence {
                lane: Some(number),
                ..Sequence::default()
            };
            packets.put(TracePacket {
                sequence_flags: Some(STATE_CLEARED),
                interned_data: Some(argument_names(timeline)),
                trace_packet_defaults: view.samples.map(|s| defaults(s.period_ns())),
                ..packet(number)
            })?;
        }
        let step = match (next, &mut sampled) {
            (Next::Step(step), _) => step,
            (Next::Sample(sample, around), Some(sampled)) => {
                let lane = &timeline.lanes()[number];
                let pid = timeline.processes()[lane.process as usize].pid;
                let around = around.iter().map(|span| names.number(timeline, span).0);
                let around: Vec<usize> = around.collect();
                let around = around.into_iter().map(|name| names.get(name));
                let (event, new) = sampled.sample(&mut sequence, (pid, lane.tid), sample, around);
                return packets.put(TracePacket {
                    timestamp: Some(since(origin, sample.at_ns)),
                    sequence_flags: Some(NEEDS_STATE),
                    interned_data: (new != InternedData::default()).then_some(new),
                    perf_sample: Some(event),
                    ..packet(number)
                });
            }
            (Next::Sample(..), None) => return Ok(()),
        };
        let lane = &timeline.lanes()[number];
        let (span, at, kind) = match step {
            Step::Enter(span) if is_stretch(&span) => (span, span.begin_ns, SLICE_BEGIN),
            Step::Enter(_) => return Ok(()),
            Step::Leave(span, at) if is_stretch(&span) => (span, at, SLICE_END),
            Step::Leave(span, at) => (span, at, INSTANT),
        };
        let mut event = TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(thread_track(number)),
            ..TrackEvent::default()
        };
        let mut new = InternedData::default();
        if kind != SLICE_END {
            let (name, _) = names.number(timeline, &span);
            event.name_iid = Some(intern(
                &mut sequence.names,
                name,
                &mut new.event_names,
                || names.get(name).text.clone(),
            ));
            let ordered = view.orders.and_then(|orders| orders.of(lane, &span));
            let critical = ordered.filter(|o| o.is_critical).map(|_| CRITICAL);
            for category in [category(&span, lane)].into_iter().chain(critical) {
                let categories = &mut new.event_categories;
                let iid = intern(&mut sequence.categories, category, categories, || {
                    category.to_owned()
                });
                event.category_iids.push(iid);
            }
            let dependences = ordered
                .iter()
                .flat_map(|o| o.precedes.iter().chain(&o.depends));
            let dependences = dependences.map(|&number| DEPENDENCE | u64::from(number));
            event.flow_ids.extend(dependences);
            event.debug_annotations = annotations(timeline, lane, &span);
            event.flow_ids.extend(flow(timeline, lane, &span));
        }
        packets.put(TracePacket {
            timestamp: Some(since(origin, at)),
            sequence_flags: Some(NEEDS_STATE),
            interned_data: (new != InternedData::default()).then_some(new),
            track_event: Some(event),
            ..packet(number)
        })
    })
}

/// What one thread's packets have named so far.
#[derive(Default)]
struct Sequence {
    lane: Option<usize>,
    names: HashMap<usize, u64>,
    categories: HashMap<&'static str, u64>,
    sampled: Known,
}

/// The number of a name. What is met first is said to the reader.
fn intern<K: std::hash::Hash + Eq>(
    known: &mut HashMap<K, u64>,
    key: K,
    new: &mut Vec<Interned>,
    name: impl FnOnce() -> String,
) -> u64 {
    let next = known.len() as u64 + 1;
    let iid = *known.entry(key).or_insert(next);
    if iid == next {
        new.push(Interned {
            iid: Some(iid),
            name: Some(name()),
        });
    }
    iid
}

/// Numbers of arguments are fixed: the events in order, then own time and label.
fn argument_names(timeline: &Timeline<'_>) -> InternedData {
    let events = timeline.counted().iter().map(String::as_str);
    let names = (1..).zip(events.chain([OWN, LABEL]));
    let name = |(iid, name): (u64, &str)| Interned {
        iid: Some(iid),
        name: Some(name.to_owned()),
    };
    InternedData {
        debug_annotation_names: names.map(name).collect(),
        ..InternedData::default()
    }
}

fn annotations(timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>) -> Vec<DebugAnnotation> {
    let mut counts = vec![];
    timeline.counts(lane, span, &mut counts);
    let own = counts.len() as u64 + 1;
    let number = |(iid, value): (u64, Option<u64>)| {
        Some(DebugAnnotation {
            name_iid: Some(iid),
            uint_value: Some(value?),
            string_value: None,
        })
    };
    let numbers = (1..).zip(counts).chain([(own, span.own_ns)]);
    let label = span
        .is_unit()
        .then(|| timeline.label(lane, span, LABEL_LIMIT));
    let label = label.flatten().map(|label| DebugAnnotation {
        name_iid: Some(own + 1),
        uint_value: None,
        string_value: Some(label.to_string()),
    });
    numbers.filter_map(number).chain(label).collect()
}

/// What a task's creation and its execution have in common.
fn flow(timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>) -> Option<u64> {
    let task = timeline.task_name(lane, span)?;
    // Lanes are of all processes together. Numbers have at most 40 bits.
    Some((task.creator as u64 + 1) << 40 | task.number)
}

fn process_track(process: usize) -> u64 {
    process as u64 + 1
}

/// Processes are fewer than 2^16.
fn thread_track(lane: usize) -> u64 {
    (1 << 16) + lane as u64 + 1
}

/// An empty packet of a thread's sequence.
fn packet(lane: usize) -> TracePacket {
    TracePacket {
        // Number 1 has the tracks.
        trusted_packet_sequence_id: Some(lane as u32 + 2),
        ..TracePacket::default()
    }
}

fn track(descriptor: TrackDescriptor) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(1),
        track_descriptor: Some(descriptor),
        ..TracePacket::default()
    }
}

/// Where packets go. A trace with one packet, behind others, adds that packet to them.
struct Packets<'o> {
    out: &'o mut dyn Write,
    bytes: Vec<u8>,
}

impl Packets<'_> {
    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        self.bytes.clear();
        let trace = Trace {
            packet: vec![packet],
        };
        trace.encode(&mut self.bytes).map_err(io::Error::other)?;
        self.out.write_all(&self.bytes)
    }
}
