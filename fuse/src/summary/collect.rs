//! From a run's or a foreign table's intervals to a [`Summary`].

use super::groups::{Groups, Key};
use super::parallel::{Instances, in_order};
use super::sums::{Numbers, length};
use super::table::xu_numbers;
use super::tree::{PathKind, Paths, Step, Tree};
use super::{EventOrigin, ModuleSummary, ProcessorLimit, RegionStat, RunSummary, Summary};
use crate::account::OwnTime;
use crate::run::{AtPlace, EventInfo, IntervalTable, NONE, NodeTable, ProcessInfo, Run, RunReader};
use crate::table::{COUNT, EventColumn, ROW};
use ompfuse_format::Construct;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::run::RunModule;
use ompfuse_format::site::{Mechanism, Outcome, without_addresses};
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

impl Summary {
    /// Of a run. `name`: what the user calls it.
    pub fn of_run(name: &str, run: &Run) -> Summary {
        let mut tree = NodePaths::new(&run.nodes);
        let mut instances = tree.instances(run);
        instances.add(run);
        let mut summary = Summary::without_sums(name, run);
        let (regions, kinds) = regions(run, &summary.events, &instances, &mut tree);
        summary.regions = regions;
        summary.add_paths(tree, kinds, instances, run);
        summary
    }

    /// Sums by path, and those over parallel regions.
    fn add_paths(
        &mut self,
        tree: NodePaths,
        kinds: HashMap<u32, Vec<PathKind>>,
        instances: Instances,
        run: &Run,
    ) {
        let paths = tree.paths;
        let site_of = |path: u32| paths.list()[path as usize].step.site;
        self.own = own_times(run, &instances.peaks(run));
        for (own, parallel_ns) in self.own.iter_mut().zip(super::parallel::by_process(run)) {
            own.parallel_ns = parallel_ns;
        }
        let (flat, executions) = in_order(instances.into_stats(run), site_of, run);
        self.parallel = flat;
        self.paths_folded = paths.folded > 0;
        let tree = Tree {
            paths,
            kinds,
            executions,
        };
        self.paths = tree.into_stats();
    }

    /// As [`Summary::of_run`], of a run that is read in parts of about `memory` bytes each, or what is needed for one place.
    pub fn of_parts(
        name: &str,
        reader: &mut RunReader<'_>,
        memory: u64,
        progress: Progress<'_>,
    ) -> Summary {
        let is_frame = |c: Construct| c.is_fork() || c.is_part() || c == Construct::Program;
        let mut frame = reader.read(&|_, construct| is_frame(construct)).run;
        let mut tree = NodePaths::new(&frame.nodes);
        let mut instances = tree.instances(&frame);
        let (mut stats, mut xus, mut unlabelled) = (vec![], 0, 0);
        let mut kinds: HashMap<u32, Vec<PathKind>> = HashMap::new();
        let events = origins(&frame.events);
        let counted = events.iter().filter(|e| e.run.is_some()).count() as u64;
        let row = ROW + COUNT * counted;
        let places = reader.places();
        let mut rest = &places[..];
        while !rest.is_empty() {
            let needs = rest.iter().scan(0, |sum: &mut u64, place| {
                *sum += row * (place.xus + place.intervals) as u64;
                Some(*sum)
            });
            let fit = needs.take_while(|&need| need <= memory).count().max(1);
            let (these, others) = rest.split_at(fit);
            rest = others;
            let sites: HashSet<u32> = these.iter().map(|p| p.site).collect();
            let part = reader.read(&|site, _| sites.contains(&site)).run;
            // Of other places than those before, and in order.
            let rows = |p: &AtPlace| p.xus + p.intervals;
            let share = |places: &[AtPlace]| places.iter().map(rows).sum::<usize>() as f64;
            progress.advance(share(these) / share(&places).max(1.0));
            let (of_part, on_paths) = regions(&part, &events, &instances, &mut tree);
            stats.extend(of_part);
            for (path, more) in on_paths {
                kinds.entry(path).or_default().extend(more);
            }
            instances.add(&part);
            xus += part.xus.len() as u64;
            unlabelled += part.health.unlabelled_xus;
        }
        frame.health.unlabelled_xus = unlabelled;
        let mut summary = Summary::without_sums(name, &frame);
        summary.regions = stats;
        summary.add_paths(tree, kinds, instances, &frame);
        summary.runs[0].xus = xus;
        summary
    }

    /// But for the sums over regions.
    pub(super) fn without_sums(name: &str, run: &Run) -> Summary {
        let header = &run.header;
        let processors = processors(run);
        let run_summary = RunSummary {
            name: name.to_owned(),
            started: Some(header.started),
            duration_s: Some(header.duration_s),
            pace_s: header.pace_s,
            fixed_addresses: header.fixed_addresses,
            exit: Some(header.exit),
            events: run.events.clone(),
            region_events: run.region_events.clone(),
            processes: run.processes.clone(),
            xus: run.xus.len() as u64,
            health: run.health.clone(),
            switch_cost_ns: header.switch_cost_ns,
            recorded: header.recorded.clone(),
            ranks: header.ranks.clone(),
            sums_only: false,
        };
        let events = origins(&run.events);
        Summary {
            program: header.program.clone(),
            args: header.args.clone(),
            host: header.host.clone(),
            cpus: header.cpus,
            kernel: header.kernel.clone(),
            processor: header.processor.clone(),
            cache_bytes: header.cache_bytes,
            environment: header.environment.clone(),
            threads: run.threads.len() as u32,
            duration_s: Some(header.duration_s),
            parallel_ns: super::parallel::parallel_ns(run),
            modules: header.modules.iter().map(module).collect(),
            sites: run.sites.to_vec(),
            regions: vec![],
            events,
            runs: vec![run_summary],
            parallel: vec![],
            contexts: run.contexts.clone(),
            paths: vec![],
            paths_folded: false,
            processes: run.xus.processes.clone(),
            accounts: run.threads.clone(),
            left_out: run.left_out.clone(),
            region_events: origins(&run.region_events),
            region_parts: run.region_parts.clone(),
            locks: run.locks.clone(),
            messages: run.messages.clone(),
            meetings: run.meetings.clone(),
            processors: processors.map(|(number, _)| number),
            limit: processors.and_then(|(_, limit)| limit),
            stolen_s: run.header.stolen_s,
            others_s: run.header.others_s,
            own: vec![],
            matching: None,
            analysis: None,
            sampled: None,
        }
    }
}

/// Own times of a run's processes. `threads`: by process the most at once.
pub(super) fn own_times(run: &Run, threads: &[u64]) -> Vec<OwnTime> {
    let of = |(at, process): (usize, &ProcessInfo)| {
        let roots = || {
            let its = run.threads.iter().filter(|t| t.process as usize == at);
            its.filter(|t| t.root)
        };
        // One that exits and then comes to another construct has a second record.
        let number = roots().map(|t| t.tid).collect::<BTreeSet<u32>>().len();
        // Several roots don't spend our time at the same moments.
        let ours = match number {
            1 => roots().map(|t| t.ours_ns).sum(),
            _ => 0,
        };
        let (begin, end) = process.own_span();
        let behind = roots().filter(|t| process.exiting_ns.is_some_and(|at| t.begin_ns >= at));
        let recorded: u64 = behind.filter_map(|t| t.total_ns).sum();
        OwnTime {
            own_ns: length(begin, end).saturating_sub(ours),
            threads: threads.get(at).copied().unwrap_or(1).max(1),
            parallel_ns: 0,
            handlers_ns: process.handlers_ns.saturating_sub(recorded),
            roots: number as u64,
            ended: process.exiting_ns.is_some(),
        }
    };
    run.processes.iter().enumerate().map(of).collect()
}

pub(super) fn origins(infos: &[EventInfo]) -> Vec<EventOrigin> {
    infos
        .iter()
        .map(|e| EventOrigin {
            name: e.name.clone(),
            run: e.counted.then_some(0),
            reason: e.reason.clone(),
            scaled: e.scaled,
        })
        .collect()
}

/// Processors that a run's program could use at once, and why not more: those of the command that started it, or fewer if its
/// processes had fewer. Where the OpenMP runtime binds threads to processors a process's first thread has only its own.
fn processors(run: &Run) -> Option<(f64, Option<ProcessorLimit>)> {
    const BINDING: [&str; 3] = ["OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"];
    let of_command = run.header.processors?;
    let is_set = |(name, value): &(String, String)| {
        BINDING.contains(&name.as_str()) && !value.eq_ignore_ascii_case("false")
    };
    let by_runtime = run.header.environment.iter().any(is_set);
    let of_processes = run.processes.iter().filter_map(|p| p.processors).max();
    let of_processes = of_processes.map(f64::from).filter(|_| !by_runtime);
    // A quota that nobody was stopped for gave as many processors as were wanted, and so it may be where that isn't known.
    let is_stopped = run.header.throttled_s.is_some_and(|s| s > 0.0);
    let quota = run.header.quota.filter(|_| is_stopped);
    let of_command = match run.header.quota {
        Some(quota) if !is_stopped && quota <= of_command => of_processes?,
        _ => of_command,
    };
    // Where several processes share a machine, each may be bound to a part of it.
    let of_threads = match &run.processes[..] {
        [process] => process.bound.map(f64::from),
        _ => None,
    };
    let all = of_command.min(of_processes.unwrap_or(f64::INFINITY));
    if let Some(bound) = of_threads.filter(|&bound| bound < all) {
        return Some((bound, Some(ProcessorLimit::Binding)));
    }
    let limit = match quota {
        Some(quota) if quota <= all => Some(ProcessorLimit::Quota),
        _ => (all < f64::from(run.header.cpus)).then_some(ProcessorLimit::Affinity),
    };
    Some((all, limit))
}

fn module(module: &RunModule) -> ModuleSummary {
    let mut skipped: BTreeMap<String, u32> = BTreeMap::new();
    for site in module
        .sites
        .iter()
        .filter(|s| s.outcome == Outcome::Skipped)
    {
        let reason = site.reason.as_deref().unwrap_or("no reason given");
        *skipped.entry(without_addresses(reason)).or_default() += 1;
    }
    let entries: BTreeSet<&str> = (module.sites.iter())
        .filter_map(|s| s.entry.as_deref())
        .collect();
    ModuleSummary {
        path: module.binary.path.clone(),
        build_id: module.binary.build_id.clone(),
        runtimes: module.binary.runtimes.clone(),
        entries: entries.into_iter().map(str::to_owned).collect(),
        patched: module
            .sites
            .iter()
            .filter(|s| s.outcome == Outcome::Patched && s.mechanism != Mechanism::Implied)
            .count() as u32,
        skipped: skipped.into_iter().collect(),
        coverage: Coverage::of(&module.sites),
        uncounted: (module.binary.counted.as_ref()).map_or_else(Vec::new, |c| c.refused.clone()),
    }
}

/// Paths of a run's nodes, and of what happens in them.
struct NodePaths {
    paths: Paths,
    of_node: Vec<u32>,
}

impl NodePaths {
    fn new(nodes: &NodeTable) -> NodePaths {
        let mut paths = Paths::default();
        let mut of_node = vec![NONE; nodes.len()];
        let mut climbed = vec![];
        for node in 0..nodes.len() {
            // Climb to the first whose path is known; a node that is met on the way again is its own parent, in damaged files.
            let mut at = node;
            while of_node.get(at) == Some(&NONE) {
                of_node[at] = Paths::ROOT;
                climbed.push(at);
                at = nodes.parent[at] as usize;
            }
            let mut path = of_node.get(at).copied().unwrap_or(Paths::ROOT);
            while let Some(at) = climbed.pop() {
                let what = (nodes.construct[at], nodes.site[at], nodes.context[at]);
                path = step(&mut paths, path, what);
                of_node[at] = path;
            }
        }
        NodePaths { paths, of_node }
    }

    /// The path of what happens in a node.
    fn around(&self, node: u32) -> u32 {
        let path = self.of_node.get(node as usize);
        path.copied().unwrap_or(Paths::ROOT)
    }

    fn instances(&mut self, run: &Run) -> Instances {
        let NodePaths { paths, of_node } = self;
        let around = |node: u32| of_node.get(node as usize).copied().unwrap_or(Paths::ROOT);
        Instances::of(run, around, paths)
    }

    /// The path of an interval that is no unit.
    fn of_interval(&mut self, intervals: &IntervalTable, row: usize) -> u32 {
        let construct = intervals.construct[row];
        let own = self.of_node.get(intervals.node[row] as usize);
        match own.filter(|_| construct.is_fork()) {
            // A region's has its context.
            Some(&own) => own,
            None => self.of(intervals.parent[row], construct, intervals.site[row]),
        }
    }

    /// The path of something that happens in a node.
    fn of(&mut self, parent: u32, construct: Construct, site: u32) -> u32 {
        let around = self.around(parent);
        step(&mut self.paths, around, (construct, site, 0))
    }
}

/// The path of something on another one: a kind, a site, and of a fork its context.
#[inline]
pub(super) fn step(paths: &mut Paths, around: u32, what: (Construct, u32, u32)) -> u32 {
    match what {
        (Construct::Program, ..) => Paths::ROOT,
        (construct, site, context) => paths.step(around, Step::of(construct, site, context)),
    }
}

/// Sums by place, and by path. `forks`: of the whole run, if this is a part of it.
fn regions(
    run: &Run,
    events: &[EventOrigin],
    forks: &Instances,
    tree: &mut NodePaths,
) -> (Vec<RegionStat>, HashMap<u32, Vec<PathKind>>) {
    // Threads by process and number to positions in `Run::threads`.
    let position: HashMap<(u16, u32), u32> = run
        .threads
        .iter()
        .enumerate()
        .map(|(at, t)| ((t.process, t.index), at as u32))
        .collect();
    let mut last = (0, 0, u32::MAX);
    let mut thread = |process: u16, index: u32| {
        if (last.0, last.1) != (process, index) || last.2 == u32::MAX {
            last = (
                process,
                index,
                position.get(&(process, index)).copied().unwrap_or(u32::MAX),
            );
        }
        last.2
    };
    let mut last = (NONE, false);
    let mut parallel_site = |parent: u32| match run.nodes.parallel.get(parent as usize) {
        Some(&node) if node != NONE => {
            if last.0 != node {
                last = (node, forks.has(node));
            }
            if last.1 {
                run.nodes.site[node as usize]
            } else {
                NONE
            }
        }
        _ => NONE,
    };
    let mut groups = Groups::default();
    let xus = &run.xus;
    for row in 0..xus.len() {
        let parallel = parallel_site(run.xu_parent[row]);
        let key = Key {
            site: xus.site[row],
            construct: xus.construct[row],
            parallel,
            path: match xus.construct[row] {
                Some(construct) => tree.of(run.xu_parent[row], construct, xus.site[row]),
                None => Paths::ROOT,
            },
        };
        let thread = thread(xus.process[row], xus.thread[row]);
        groups
            .add(
                key,
                thread,
                xu_numbers(xus, row),
                (&xus.events, &run.xu_scaled),
                row,
            )
            .single += 1;
    }
    let intervals = &run.intervals;
    for row in 0..intervals.len() {
        let key = Key {
            site: intervals.site[row],
            construct: Some(intervals.construct[row]),
            parallel: parallel_site(intervals.parent[row]),
            path: tree.of_interval(intervals, row),
        };
        let construct = intervals.construct[row];
        let is_call = construct.is_code();
        let wall = length(intervals.t0_ns[row], intervals.t1_ns[row]);
        let (own, extent) = (intervals.own_ns[row], intervals.extent[row]);
        let numbers = match is_call {
            true => Numbers::of_code(construct, own, wall, extent),
            false => Numbers { own, wall, extent },
        };
        let thread = thread(intervals.process[row], intervals.thread[row]);
        let group = groups.add(
            key,
            thread,
            numbers,
            (&intervals.events, &intervals.scaled),
            row,
        );
        // What each thread of a team meets by itself is one instance: its parent node and its label are the same.
        let is_shared = !is_call && !construct.is_block();
        let hash = match run.node_label(intervals.node[row]) {
            // All parts of a region are one: where its join isn't on record, they tell of it.
            _ if construct.is_part() => Some(0).filter(|_| intervals.parent[row] != NONE),
            label => label.map(|label| run.xus.labels.hash(label).0),
        };
        match hash.filter(|_| is_shared) {
            Some(hash) => {
                let parent = around_calls(run, intervals.parent[row]);
                group
                    .instances
                    .insert((intervals.process[row], parent, hash));
            }
            None => group.single += 1,
        }
    }
    groups.into_stats(&names(&run.xus.events), &names(&run.xu_scaled), events)
}

/// The node itself, or the one that functions and loops around it are in.
fn around_calls(run: &Run, node: u32) -> u32 {
    let mut at = node;
    let is_code = |at: u32| {
        run.nodes
            .construct
            .get(at as usize)
            .is_some_and(|c| c.is_code())
    };
    while is_code(at) {
        at = run.nodes.parent[at as usize];
    }
    at
}

pub(super) fn names(columns: &[EventColumn]) -> Vec<String> {
    columns.iter().map(|c| c.name.clone()).collect()
}
