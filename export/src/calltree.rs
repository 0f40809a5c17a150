//! The call-path profile, as profile formats have it in common: a tree of frames, threads in processes, metrics, and the values of each
//! frame itself.
//!
//! Frames are the program, the functions that lead to a parallel region, and regions. Equal paths are one node. All values are integers,
//! nanoseconds or numbers, so that sums are exact; formats with other units divide.

mod frames;
mod metrics;
mod sampled;
#[cfg(test)]
mod tests;

use frames::Frames;
pub use metrics::{Metric, Quantity, TIME, VISITS};
use metrics::{events, metrics, nanoseconds, values};
use ompfuse_account::Report;
use ompfuse_account::model::CallPathThread;
use ompfuse_report::words;
pub use sampled::{SampledStack, Samples};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A call-path profile.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTree {
    /// The program as the user named it.
    pub program: String,
    /// Host name; empty if not known.
    pub host: String,
    /// Wall-clock time in nanoseconds, if known.
    pub duration_ns: Option<u64>,
    /// The largest team of threads.
    pub team: u64,
    /// The processes, by rank and number.
    pub processes: Vec<Process>,
    /// The threads, by process.
    pub threads: Vec<Thread>,
    /// What nodes are of, each once.
    pub frames: Vec<Frame>,
    /// Depth first: each behind the one around it, the program first.
    pub nodes: Vec<Node>,
    /// What values are of.
    pub metrics: Vec<Metric>,
    /// Events that were not counted everywhere, so that they are no metrics.
    pub left_out: Vec<String>,
    /// Samples, if they were [added](CallTree::add_samples).
    pub samples: Option<Samples>,
    /// By position in the report's call paths the node, where its values are wanted.
    paths: Vec<Option<usize>>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number in the operating system.
    pub pid: Option<u32>,
    /// Its MPI rank.
    pub mpi_rank: Option<u32>,
    /// Its host; empty if not known.
    pub host: String,
}

impl Process {
    /// What it is called: `rank 3`, `process 4711`.
    pub fn name(&self) -> String {
        match (self.mpi_rank, self.pid) {
            (Some(rank), _) => format!("rank {rank}"),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "process".to_owned(),
        }
    }
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Position in [`CallTree::processes`].
    pub process: usize,
    /// Its number in the process.
    pub number: u32,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The program: code outside of all regions.
    Program,
    /// A function on the way to a parallel region. It has no values of its own.
    Function,
    /// A region, by its construct if that is known.
    Region(Option<ompfuse_format::Construct>),
}

/// A frame. No two have the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its name, one line.
    pub name: String,
    /// What it is.
    pub kind: FrameKind,
    /// The linkage name of the function that it is in, or that it is.
    pub function: Option<String>,
    /// Path of its source file.
    pub file: Option<String>,
    /// Its line there.
    pub line: Option<u32>,
    /// Path or name of the program or library that it is in.
    pub module: Option<String>,
    /// Build id of that.
    pub build_id: Option<String>,
    /// Link-time address.
    pub address: Option<u64>,
}

/// A frame on one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Position in [`CallTree::nodes`] of the one around it; `None`: it is the program.
    pub parent: Option<usize>,
    /// Position in [`CallTree::frames`].
    pub frame: usize,
    /// Its own values by position in [`CallTree::threads`], each in the order of [`CallTree::metrics`]. A thread that never came
    /// there is missing.
    pub own: BTreeMap<usize, Vec<u64>>,
}

impl CallTree {
    /// Of a report. `selected`: `id`s of the regions whose values are wanted, with those of all that is inside; `None`: all values.
    /// Returns `None` if the report has no call paths, or nothing is on record.
    pub fn new(report: &Report, selected: Option<&BTreeSet<u32>>) -> Option<CallTree> {
        let (events, left_out) = events(report);
        let (processes, threads) = places(report);
        if threads.is_empty() {
            return None;
        }
        let position: HashMap<Place, usize> = (threads.iter().enumerate())
            .map(|(at, (_, place))| (*place, at))
            .collect();
        let mut frames = Frames::new(report);
        let mut building = Building::default();
        // Of each call path where it leads to.
        let mut found: Vec<Found> = Vec::with_capacity(report.call_paths.len());
        for path in &report.call_paths {
            let around = path.parent.map(|parent| found[parent as usize]);
            let is_selected = |id| selected.is_some_and(|s| s.contains(&id));
            let mut node = around.map(|around| around.node);
            // A nested region's callers are in the region around it.
            let is_nested = around.is_some_and(|around| around.is_parallel);
            if let (false, Some(context)) = (is_nested, path.context) {
                for (function, file) in words::functions(&report.contexts, context) {
                    let frame = frames.function(&function, file);
                    node = Some(building.enter(node, frame));
                }
            }
            let frame = match path.parent {
                None => frames.program(),
                Some(_) => frames.region(path.region),
            };
            let here = Found {
                node: building.enter(node, frame),
                is_parallel: is_nested || path.wall_s.is_some(),
                is_wanted: selected.is_none()
                    || around.is_some_and(|around| around.is_wanted)
                    || path.region.is_some_and(is_selected),
            };
            found.push(here);
            for thread in path.per_thread.iter().filter(|_| here.is_wanted) {
                let at = position[&Place::of(thread)];
                building.add(here.node, at, &values(thread, &events));
            }
        }
        let mut tree = CallTree {
            program: report.program.clone(),
            host: report.host.clone(),
            duration_ns: report.duration_s.map(nanoseconds),
            team: team(report),
            processes,
            threads: threads.into_iter().map(|(thread, _)| thread).collect(),
            frames: frames.list(),
            nodes: building.nodes,
            metrics: metrics(&events),
            left_out,
            samples: None,
            paths: vec![],
        };
        let places = tree.arrange();
        let place = |found: &Found| places[found.node].filter(|_| found.is_wanted);
        tree.paths = found.iter().map(place).collect();
        Some(tree)
    }

    /// The metric of a name. Letter case, and what is between words, don't matter.
    pub fn metric(&self, name: &str) -> Option<usize> {
        let plain = |name: &str| name.to_lowercase().replace(['-', '_'], " ");
        let is_it = |m: &Metric| plain(&m.name) == plain(name);
        self.metrics.iter().position(is_it)
    }

    /// For each process the number that stands for it: its MPI rank where that is known of all, and one process is each rank; else its
    /// position.
    pub fn ranks(&self) -> Vec<u32> {
        let positions = || (0..).take(self.processes.len()).collect();
        self.mpi_ranks().unwrap_or_else(positions)
    }

    /// The processes' MPI ranks, if all have one, and no two the same.
    pub fn mpi_ranks(&self) -> Option<Vec<u32>> {
        let ranks: Vec<u32> = self.processes.iter().filter_map(|p| p.mpi_rank).collect();
        let different: BTreeSet<u32> = ranks.iter().copied().collect();
        (different.len() == self.processes.len()).then_some(ranks)
    }

    /// A node's own value, all threads together.
    pub fn own(&self, node: usize, metric: usize) -> u64 {
        self.nodes[node].own.values().map(|v| v[metric]).sum()
    }

    /// For each node the own values of a thread and what is below: `None` where the thread never came.
    pub fn inclusive(&self, thread: usize) -> Vec<Option<Vec<u64>>> {
        let own = self.nodes.iter().map(|n| n.own.get(&thread).cloned());
        let mut all: Vec<Option<Vec<u64>>> = own.collect();
        for at in (1..all.len()).rev() {
            let Some(parent) = self.nodes[at].parent else {
                continue;
            };
            let (before, behind) = all.split_at_mut(at);
            let Some(inner) = &behind[0] else { continue };
            let outer = before[parent].get_or_insert_with(|| vec![0; inner.len()]);
            outer
                .iter_mut()
                .zip(inner)
                .for_each(|(outer, inner)| *outer += inner);
        }
        all
    }

    /// The frames from the program to a node.
    pub fn path(&self, node: usize) -> Vec<&Frame> {
        let mut path: Vec<&Frame> = self.around(node).map(|n| self.frame(n)).collect();
        path.reverse();
        path
    }

    /// A node and those around it, innermost first.
    pub(crate) fn around(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |&at| self.nodes[at].parent)
    }

    /// A node's frame.
    pub fn frame(&self, node: usize) -> &Frame {
        &self.frames[self.nodes[node].frame]
    }

    /// Puts nodes into depth-first order, and leaves out those with no value on or below them. Returns where each is then.
    fn arrange(&mut self) -> Vec<Option<usize>> {
        let mut is_used: Vec<bool> = self.nodes.iter().map(|n| !n.own.is_empty()).collect();
        let mut below: Vec<Vec<usize>> = vec![vec![]; self.nodes.len()];
        if let Some(root) = is_used.first_mut() {
            *root = true;
        }
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let (true, Some(parent)) = (is_used[at], node.parent) {
                is_used[parent] = true;
                below[parent].push(at); // last first, as a stack wants them
            }
        }
        let mut nodes: Vec<Option<Node>> = std::mem::take(&mut self.nodes)
            .into_iter()
            .map(Some)
            .collect();
        let mut places = vec![None; nodes.len()];
        let mut rest = vec![(0, None)];
        while let Some((at, parent)) = rest.pop() {
            let Some(node) = nodes.get_mut(at).and_then(Option::take) else {
                continue;
            };
            let place = self.nodes.len();
            places[at] = Some(place);
            self.nodes.push(Node { parent, ..node });
            rest.extend(below[at].iter().map(|&inner| (inner, Some(place))));
        }
        places
    }
}

/// The largest team. Of a job only the most threads of a process are known.
fn team(report: &Report) -> u64 {
    let teams = report.overheads.iter().map(|o| o.team).max();
    let threads = report.account.as_ref().map(|a| a.threads);
    teams.or(threads).unwrap_or(1).max(1)
}

/// Where a call path leads to.
#[derive(Debug, Clone, Copy)]
struct Found {
    node: usize,
    /// Whether it is a parallel region, or in one.
    is_parallel: bool,
    /// Whether its values are wanted.
    is_wanted: bool,
}

/// Nodes while they are found.
#[derive(Default)]
struct Building {
    nodes: Vec<Node>,
    index: HashMap<(Option<usize>, usize), usize>,
}

impl Building {
    fn enter(&mut self, parent: Option<usize>, frame: usize) -> usize {
        let next = self.nodes.len();
        let node = *self.index.entry((parent, frame)).or_insert(next);
        if node == next {
            let own = BTreeMap::new();
            self.nodes.push(Node { parent, frame, own });
        }
        node
    }

    fn add(&mut self, node: usize, thread: usize, values: &[u64]) {
        if values.iter().all(|&v| v == 0) {
            return;
        }
        let own = self.nodes[node].own.entry(thread);
        let sums = own.or_insert_with(|| vec![0; values.len()]);
        sums.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value);
    }
}

/// Who a thread is: rank, process, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    mpi_rank: Option<u32>,
    pid: Option<u32>,
    thread: u32,
}

impl Place {
    fn of(thread: &CallPathThread) -> Place {
        Place {
            mpi_rank: thread.mpi_rank,
            pid: thread.process,
            thread: thread.thread,
        }
    }
}

fn places(report: &Report) -> (Vec<Process>, Vec<(Thread, Place)>) {
    let all = report.call_paths.iter().flat_map(|p| &p.per_thread);
    let all: BTreeSet<Place> = all.map(Place::of).collect();
    let ranks = report.mpi.iter().flat_map(|mpi| &mpi.ranks);
    let hosts: BTreeMap<u32, &String> = ranks
        .filter_map(|r| Some((r.rank, r.host.as_ref()?)))
        .collect();
    let (mut processes, mut threads) = (Vec::<Process>::new(), vec![]);
    for place in all {
        let host = place.mpi_rank.and_then(|rank| hosts.get(&rank));
        let process = Process {
            pid: place.pid,
            mpi_rank: place.mpi_rank,
            host: host.map_or_else(|| report.host.clone(), |&host| host.clone()),
        };
        if processes.last() != Some(&process) {
            processes.push(process);
        }
        let process = processes.len() - 1;
        let number = place.thread;
        threads.push((Thread { process, number }, place));
    }
    (processes, threads)
}
