//! Samples below the paths of a call-path profile.

use super::CallTree;
use crate::stacks::{Frame, Frames};
use crate::trace::{Next, View, each_with_samples};
use ompfuse_account::Report;
use ompfuse_fuse::run::timeline::{Lane, Timeline};
use ompfuse_fuse::samples::Stacks;
use ompfuse_fuse::summary::{PathStep, SpanPaths};
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, HashMap};
use std::io;

/// The samples of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// Functions, each with a line of it.
    pub frames: Vec<Frame>,
    /// Those that are alike are one.
    pub stacks: Vec<SampledStack>,
    /// Nanoseconds of processor time that a sample stands for.
    pub period_ns: u64,
}

/// Samples of a thread with one stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledStack {
    /// Position in [`CallTree::nodes`]: the construct.
    pub node: usize,
    /// Position in [`CallTree::threads`].
    pub thread: usize,
    /// Positions in [`Samples::frames`], the outermost first.
    pub frames: Vec<usize>,
    /// How many.
    pub samples: u64,
}

impl CallTree {
    /// Adds the samples of the run that the report's times are of. Those in no selected region, and those of threads and paths that aren't
    /// in the report, are left out.
    ///
    /// # Errors
    /// None of its own.
    pub fn add_samples(
        &mut self,
        report: &Report,
        timeline: &Timeline<'_>,
        stacks: &Stacks<'_>,
        progress: Progress<'_>,
    ) -> io::Result<()> {
        let lanes = timeline.lanes().iter();
        let threads: Vec<Option<usize>> =
            lanes.map(|lane| self.thread_of(timeline, lane)).collect();
        let ways = Ways::new(report, timeline);
        let mut paths = SpanPaths::new(timeline);
        let mut known: HashMap<u32, Option<usize>> = HashMap::new();
        let mut frames = Frames::new(stacks.places());
        let mut found: BTreeMap<(usize, usize, Vec<usize>), u64> = BTreeMap::new();
        let view = View {
            samples: Some(stacks),
            ..View::default()
        };
        each_with_samples(timeline, &view, progress, |number, next| {
            let Next::Sample(sample, [.., span]) = next else {
                return Ok(());
            };
            let path = paths.of(&timeline.lanes()[number], span);
            let node = *known.entry(path).or_insert_with(|| {
                let path = ways.follow(&paths.steps(path));
                self.paths.get(path).copied().flatten()
            });
            if let (Some(node), Some(thread)) = (node, threads[number]) {
                let key = (node, thread, frames.of(sample));
                *found.entry(key).or_default() += 1;
            }
            Ok(())
        })?;
        let stacks_found =
            found
                .into_iter()
                .map(|((node, thread, frames), samples)| SampledStack {
                    node,
                    thread,
                    frames,
                    samples,
                });
        self.samples = Some(Samples {
            stacks: stacks_found.collect(),
            frames: frames.into_list(),
            period_ns: stacks.period_ns(),
        });
        Ok(())
    }

    fn thread_of(&self, timeline: &Timeline<'_>, lane: &Lane) -> Option<usize> {
        let process = &timeline.processes()[lane.process as usize];
        self.threads.iter().position(|thread| {
            let of_tree = &self.processes[thread.process];
            let is_process = match of_tree.pid {
                Some(pid) => pid == process.pid,
                None => of_tree.mpi_rank == process.mpi_rank,
            };
            is_process && thread.number == lane.thread
        })
    }
}

/// Paths by the path around them and the region: the calling context of each, and its position.
type Inside = HashMap<(u32, Option<u32>), Vec<(Option<u32>, u32)>>;

/// The report's call paths by what leads to them.
struct Ways<'t> {
    timeline: &'t Timeline<'t>,
    /// By position in the run's sites the region's `id`.
    regions: Vec<Option<u32>>,
    inside: Inside,
    /// Numbers of calls.
    contexts: Vec<u32>,
}

impl<'t> Ways<'t> {
    fn new(report: &Report, timeline: &'t Timeline<'_>) -> Ways<'t> {
        let regions = report.regions.iter();
        let regions: HashMap<(&str, &str), u32> = regions
            .map(|r| ((r.module.as_deref().unwrap_or_default(), &*r.name), r.id))
            .collect();
        let sites = timeline.sites().iter();
        let mut inside = Inside::new();
        for (at, path) in (0..).zip(&report.call_paths) {
            if let Some(parent) = path.parent {
                let ways = inside.entry((parent, path.region)).or_default();
                ways.push((path.context, at));
            }
        }
        Ways {
            timeline,
            regions: sites.map(|s| regions.get(&s.key()).copied()).collect(),
            inside,
            contexts: report.contexts.iter().map(|call| call.id).collect(),
        }
    }

    /// Where steps lead to from the program: the last path that is known.
    fn follow(&self, steps: &[PathStep]) -> usize {
        let mut at = 0;
        for step in steps {
            let region = step.site.and_then(|site| self.regions[site as usize]);
            let ways = self.inside.get(&(at, region));
            let ways = ways.map_or(&[][..], |ways| ways);
            let context = self.context(step.context);
            let same = ways.iter().find(|(of_path, _)| *of_path == context);
            // Several that differ in the context only can't be told apart without it.
            let only = ways.first().filter(|_| ways.len() == 1);
            let Some((_, next)) = same.or(only) else {
                break;
            };
            at = *next;
        }
        at as usize
    }

    /// The report's number of a calling context: that of its innermost call outside of the OpenMP runtime.
    fn context(&self, number: u32) -> Option<u32> {
        let frames = &self.timeline.contexts().frames;
        let caller = |number: &u32| {
            let frame = frames.get((number.checked_sub(1)?) as usize)?;
            Some(frame.parent? + 1)
        };
        let mut calls = std::iter::successors(Some(number), caller);
        calls.find(|number| self.contexts.binary_search(number).is_ok())
    }
}
