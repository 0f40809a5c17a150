//! Samples with their stacks, as Perfetto has those of `perf`: constructs are frames, too.

use super::messages::{
    CPU_CLOCK, Callstack, Interned, InternedData, Mapping, PerfSample, PerfSampleDefaults,
    StackFrame, Timebase, TracePacketDefaults, USER_MODE,
};
use super::{Sequence, intern};
use crate::stacks::{Frame, Frames};
use crate::trace::Name;
use ompfuse_fuse::samples::{Stack, Stacks};
use std::collections::HashMap;

/// Addresses that a file with code may have. Where it was in memory is not on record: each file gets a stretch of its own, and each frame
/// a number in it, since readers tell frames apart by their addresses.
const STRETCH: u64 = 1 << 32;

/// What one thread's samples have named so far.
#[derive(Default)]
pub(super) struct Known {
    functions: HashMap<String, u64>,
    sources: HashMap<String, u64>,
    mappings: HashMap<String, u64>,
    frames: HashMap<Frame, u64>,
    stacks: HashMap<Vec<u64>, u64>,
}

/// What samples of a run are made of.
pub(super) struct Sampled<'s> {
    frames: Frames<'s>,
    program: &'s str,
}

/// How often samples are taken.
pub(super) fn defaults(period_ns: u64) -> TracePacketDefaults {
    TracePacketDefaults {
        perf_sample_defaults: Some(PerfSampleDefaults {
            timebase: Some(Timebase {
                period: Some(period_ns),
                counter: Some(CPU_CLOCK),
            }),
        }),
    }
}

impl<'s> Sampled<'s> {
    pub(super) fn new(program: &'s str, stacks: &Stacks<'s>) -> Sampled<'s> {
        Sampled {
            frames: Frames::new(stacks.places()),
            program,
        }
    }

    /// A sample of a thread, by the numbers of its process and itself, with what has to be said before. `around`: its constructs.
    pub(super) fn sample<'n>(
        &mut self,
        sequence: &mut Sequence,
        (pid, tid): (u32, u32),
        sample: &Stack,
        around: impl Iterator<Item = &'n Name>,
    ) -> (PerfSample, InternedData) {
        let (known, mut new) = (&mut sequence.sampled, InternedData::default());
        let construct = |name: &Name| Frame {
            name: name.text.clone(),
            file: name.file.clone(),
            line: name.line,
            object: None,
        };
        let mut stack: Vec<Frame> = around.map(construct).collect();
        let functions = self.frames.of(sample);
        let list = self.frames.list();
        stack.extend(functions.into_iter().map(|at| list[at].clone()));
        let stack: Vec<u64> = stack
            .into_iter()
            .map(|frame| known.frame(frame, self.program, &mut new))
            .collect();
        let next = known.stacks.len() as u64 + 1;
        let iid = *known.stacks.entry(stack).or_insert_with_key(|frames| {
            new.callstacks.push(Callstack {
                iid: Some(next),
                frame_ids: frames.clone(),
            });
            next
        });
        let sample = PerfSample {
            pid: Some(pid),
            tid: Some(tid),
            cpu_mode: Some(USER_MODE),
            callstack_iid: Some(iid),
        };
        (sample, new)
    }
}

impl Known {
    fn frame(&mut self, frame: Frame, program: &str, new: &mut InternedData) -> u64 {
        if let Some(&iid) = self.frames.get(&frame) {
            return iid;
        }
        let iid = self.frames.len() as u64 + 1;
        let text = |known: &mut HashMap<String, u64>, text: &str, new: &mut Vec<Interned>| {
            intern(known, text.to_owned(), new, || text.to_owned())
        };
        let object = frame.object.as_deref().unwrap_or(program);
        let mappings = self.mappings.len();
        let mapping = text(&mut self.mappings, object, &mut new.mapping_paths);
        if self.mappings.len() > mappings {
            new.mappings.push(Mapping {
                iid: Some(mapping),
                start: Some(mapping * STRETCH),
                end: Some((mapping + 1) * STRETCH),
                path_string_ids: vec![mapping],
            });
        }
        new.frames.push(StackFrame {
            iid: Some(iid),
            function_name_id: Some(text(
                &mut self.functions,
                &frame.name,
                &mut new.function_names,
            )),
            mapping_id: Some(mapping),
            rel_pc: Some(iid),
            source_path_iid: (frame.file.as_deref())
                .map(|file| text(&mut self.sources, file, &mut new.source_paths)),
            line_number: frame.line,
        });
        self.frames.insert(frame, iid);
        iid
    }
}
