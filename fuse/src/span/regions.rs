//! From the first records of a run to its analysis.

use super::gather::{Gathered, gather};
use super::graph::{Builder, Graph, Play, critical, play};
use super::idle::{self, Creations, Execution};
use super::loops::Loops;
use super::outlook::{Between, outlook};
use super::phases::{self, Waits};
use super::replay::{Guided, Schedule};
use super::result::{
    Analysis, Held, Idle, LoopAnalysis, LowerBound, NoTask, OnPath, RegionAnalysis, Turns,
    WaitedFor, Waiting,
};
use super::turns;
use crate::run::RunFiles;
use crate::run::clock::Clock;
use crate::run::nodes::NONE;
use crate::run::streaming::{Streaming, StreamingProcess};
use crate::summary::Summary;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_format::detail::{Detail, Kind};
use std::collections::{BTreeMap, HashMap};

/// Records of a process that are so many bytes are read for seconds already: fewer of them are looked at.
const LARGE: usize = 200 << 20;
const IF_LARGE: usize = 5;

/// See [`Analysis::of_files`].
pub(super) fn analyse(files: &RunFiles<'_>, summary: &Summary, most: usize) -> Analysis {
    let mut streaming = Streaming::new(files);
    let (events, _) = streaming.names();
    let column = |is: &dyn Fn(&str) -> bool| events.iter().position(|e| is(e));
    let columns = [
        column(&|e| e.starts_with("instructions")),
        column(&|e| e.contains("miss")),
    ];
    let name = |c: Option<usize>| c.map(|c| events[c].clone());
    let mut analysis = Analysis {
        is_whole: true,
        instructions: name(columns[0]),
        misses: name(columns[1]),
        ..Analysis::default()
    };
    let known: HashMap<(&str, &str), u32> = (0..)
        .zip(&summary.sites)
        .map(|(at, s)| (s.key(), at))
        .collect();
    let mut regions: BTreeMap<Option<u32>, RegionAnalysis> = BTreeMap::new();
    for process in &mut streaming.processes {
        let most = match process.bytes > LARGE {
            true => most / IF_LARGE,
            false => most,
        };
        let left = most.saturating_sub(analysis.intervals as usize);
        let gathered = gather(process, columns, left);
        analysis.is_whole &= gathered.is_whole;
        analysis.intervals += gathered.recs.len() as u64;
        let process = Process {
            places: places(process, &gathered, &known),
            clock: process.clock,
            creations: Creations::of(&gathered),
            gathered: &gathered,
            summary,
        };
        process.add_to(&mut regions);
    }
    analysis.regions = regions.into_values().collect();
    analysis
}

/// By record's site its position in the summary's sites.
pub(super) fn places(
    process: &StreamingProcess<'_, '_>,
    gathered: &Gathered,
    known: &HashMap<(&str, &str), u32>,
) -> HashMap<u32, u32> {
    let mut places = HashMap::new();
    for rec in &gathered.recs {
        if places.contains_key(&rec.site) {
            continue;
        }
        let key = process.sites.key(rec.site);
        let place = key.and_then(|(module, name)| known.get(&(module, name.as_str())).copied());
        places.insert(rec.site, place.unwrap_or(NONE));
    }
    places.retain(|_, at| *at != NONE);
    places
}

/// A process's records.
struct Process<'g> {
    gathered: &'g Gathered,
    summary: &'g Summary,
    places: HashMap<u32, u32>,
    clock: Clock,
    creations: Creations,
}

/// What is summed up of a region's place in ticks.
#[derive(Default)]
struct Ticks {
    executions: u64,
    wall: u64,
    team: u64,
    work: u64,
    span: u64,
    span_equal: u64,
    span_deferred: u64,
    predicted: Vec<Between>,
    modelled: u64,
    /// By record's site, time on the critical path and intervals of it.
    path: BTreeMap<u32, (u64, u64)>,
    dependent: u64,
    task_count: u64,
    tasks: u64,
    creating: u64,
    each: u64,
    is_nested: bool,
    assumes_equal: bool,
    by_number: bool,
    bounds: Vec<LowerBound>,
    held: BTreeMap<u32, u64>,
    /// Of this region and those inside, by site.
    waits: BTreeMap<u32, Waits>,
    idle: BTreeMap<u32, idle::Idle>,
    turns: BTreeMap<u32, turns::Turns>,
    loops: Loops,
}

impl Process<'_> {
    fn place(&self, site: u32) -> Option<u32> {
        self.places.get(&site).copied()
    }

    /// What the place's text says of a loop's schedule.
    fn schedule(&self, site: u32) -> Option<Schedule> {
        let site = self.summary.sites.get(self.place(site)? as usize)?;
        let detail = Detail(site.detail.as_deref()?);
        Some(match (detail.kind()?, detail.chunk()) {
            (Kind::Static, None) => Schedule::Static,
            (Kind::Static, Some(n)) => Schedule::StaticChunk(n),
            (Kind::Dynamic, n) => Schedule::Dynamic(n.unwrap_or(1)),
            (Kind::Guided, n) => Schedule::Guided(n.unwrap_or(1)),
            (Kind::Auto | Kind::Runtime, _) => return None,
        })
    }

    fn add_to(&self, regions: &mut BTreeMap<Option<u32>, RegionAnalysis>) {
        let gathered = self.gathered;
        let has_ended = gathered.recs.iter().any(|r| r.construct.is_fork());
        if !has_ended {
            return; // one long region, of which a part was read
        }
        let mut builder = Builder::new(gathered);
        // Intervals by outermost region, in their order.
        let mut of_region: Vec<(u32, u32)> = (0..)
            .zip(&gathered.recs)
            .map(|(at, rec)| (gathered.region_of(rec), at))
            .filter(|(region, _)| *region != NONE)
            .collect();
        of_region.sort_by_key(|&(region, _)| region);
        let mut by_site: BTreeMap<u32, Ticks> = BTreeMap::new();
        let mut recs: Vec<u32> = vec![];
        for these in of_region.chunk_by(|a, b| a.0 == b.0) {
            recs.clear();
            recs.extend(these.iter().map(|t| t.1));
            let node = these[0].0;
            let fork = recs
                .iter()
                .copied()
                .find(|&at| gathered.recs[at as usize].node == node);
            let Some(fork) = fork.filter(|&f| gathered.recs[f as usize].construct.is_fork()) else {
                continue; // its end was not read
            };
            let site = gathered.recs[fork as usize].site;
            let ticks = by_site.entry(site).or_default();
            self.execution(&recs, fork, &mut builder, ticks);
        }
        for (site, mut ticks) in by_site {
            let mut found: Vec<RegionAnalysis> = vec![];
            for (site, waits) in std::mem::take(&mut ticks.waits) {
                found.push(self.waits(waits, self.place(site)));
            }
            for (site, idle) in std::mem::take(&mut ticks.idle) {
                found.push(self.reasons(idle, self.place(site)));
            }
            found.push(self.finish(ticks, self.place(site)));
            for region in found {
                regions.entry(region.site).or_default().absorb(region);
            }
        }
    }

    fn execution(&self, recs: &[u32], fork: u32, builder: &mut Builder<'_>, ticks: &mut Ticks) {
        let gathered = self.gathered;
        let of_fork = gathered.recs[fork as usize];
        let team = of_fork.extent.max(1);
        let (mut work, mut tasks, mut parts) = (0, 0, 0);
        let mut creating: HashMap<u16, u64> = HashMap::new();
        let mut parts_of: HashMap<u32, Vec<u32>> = HashMap::new();
        let (mut forks, mut instances) = (vec![], vec![]);
        let mut own_code = 0;
        let (mut first, mut last) = (of_fork.t1, of_fork.t0);
        for &at in recs {
            let rec = &gathered.recs[at as usize];
            let is_work = rec.construct.charges_to() == Charge::Work;
            if is_work {
                work += rec.own;
            }
            let is_creation = rec.construct.is_creation();
            if is_creation {
                *creating.entry(rec.thread).or_default() += rec.own;
            }
            if (is_work || is_creation) && gathered.is_in_task(rec) {
                tasks += rec.own;
            }
            if rec.construct.is_part() && rec.parent == of_fork.node {
                parts += 1;
                own_code = own_code.max(rec.own);
                first = first.min(rec.t0);
            }
            if at != fork && !rec.construct.is_fork() {
                last = last.max(rec.t1);
            }
            match rec.construct {
                c if c.is_mutex() => {
                    ticks.bound(LowerBound::Locks);
                    *ticks.held.entry(rec.site).or_default() += rec.len().saturating_sub(rec.own);
                }
                Construct::Range if rec.extent > 1 => ticks.bound(LowerBound::WholeRanges),
                Construct::Task => instances.push(at),
                c if c.is_part() => parts_of.entry(rec.parent).or_default().push(at),
                c if c.is_fork() => {
                    forks.push(at);
                    ticks.is_nested |= at != fork;
                }
                _ => {}
            }
        }
        turns::add(gathered, recs, &mut ticks.turns);
        let guided = match self.summary.is_libgomp() {
            true => Guided::Libgomp,
            false => Guided::Libomp,
        };
        (ticks.loops).add(gathered, recs, team.min(1 << 16) as u32, guided);
        let schedule = |site| self.schedule(site);
        let mut graph = builder.region(of_fork.node, &schedule);
        graph.children_only = self.summary.is_libgomp();
        self.play(&graph, ticks, work);
        instances.sort_by_key(|&at| gathered.recs[at as usize].t0);
        let execution = Execution {
            gathered,
            graph: &graph,
            instances: &instances,
            creations: &self.creations,
        };
        idle::add(execution, &forks, &mut ticks.idle);
        for fork in forks {
            let rec = &gathered.recs[fork as usize];
            let parts = parts_of.get(&rec.node).map_or(&[][..], Vec::as_slice);
            let waits = ticks.waits.entry(rec.site).or_default();
            phases::add(gathered, fork, parts, &instances, waits);
        }
        ticks.executions += 1;
        ticks.task_count += instances.len() as u64;
        ticks.wall += of_fork.len();
        ticks.team = ticks.team.max(team);
        ticks.work += work;
        ticks.tasks += tasks;
        ticks.creating += creating.values().copied().max().unwrap_or(0);
        ticks.each += own_code;
        ticks.is_nested |= parts != team || of_fork.construct == Construct::Teams;
        // Forking and joining, which more threads don't make shorter.
        let around = first.saturating_sub(of_fork.t0) + of_fork.t1.saturating_sub(last);
        let outlook = match ticks.is_nested {
            true => None,
            false => outlook(&graph, team.min(1 << 16) as u32, around),
        };
        let Some(outlook) = outlook else {
            ticks.is_nested = true;
            return;
        };
        ticks.assumes_equal |= outlook.assumes_equal;
        ticks.by_number |= outlook.by_number;
        ticks.modelled = ticks.modelled.saturating_add(outlook.modelled);
        let slots = outlook.predicted.len();
        ticks.predicted.resize(slots, Between::default());
        for (sum, one) in ticks.predicted.iter_mut().zip(outlook.predicted) {
            sum.low = sum.low.saturating_add(one.low);
            sum.likely = sum.likely.saturating_add(one.likely);
            sum.high = sum.high.saturating_add(one.high);
        }
    }

    /// Span and critical path of an execution.
    fn play(&self, graph: &Graph, ticks: &mut Ticks, work: u64) {
        for (is, bound) in [
            (graph.has_gaps, LowerBound::LeftOut),
            (graph.is_open, LowerBound::TaskDependences),
            (graph.detached, LowerBound::Detached),
            (graph.excludes, LowerBound::Exclusions),
        ] {
            if is {
                ticks.bound(bound);
            }
        }
        let dependent = graph.strands.iter().filter(|s| s.preds.0 < s.preds.1);
        ticks.dependent += dependent.count() as u64;
        let unlimited = |equal| Play {
            unlimited: true,
            equal,
        };
        let played = (play(graph, unlimited(false)), play(graph, unlimited(true)));
        let (Some(pure), Some(equal)) = played else {
            ticks.bound(LowerBound::LeftOut);
            return;
        };
        ticks.span += pure.ticks.min(work);
        ticks.span_equal += equal.ticks.min(work);
        let deferred = graph.deferred().and_then(|g| play(&g, unlimited(false)));
        let deferred = deferred.map_or(pure.ticks, |d| d.ticks.min(pure.ticks));
        ticks.span_deferred += deferred.min(work);
        for (rec, on_path) in critical(self.gathered, graph, &pure) {
            let site = self.gathered.recs[rec as usize].site;
            let (all, units) = ticks.path.entry(site).or_default();
            (*all, *units) = (all.saturating_add(on_path), *units + 1);
        }
    }

    /// A place's sums.
    fn finish(&self, ticks: Ticks, site: Option<u32>) -> RegionAnalysis {
        let ns = |ticks: u64| self.clock.length(ticks);
        let held = ticks.held.iter().max_by_key(|(_, t)| **t);
        let held = held.and_then(|(site, t)| {
            Some(Held {
                site: self.place(*site)?,
                ns: ns(*t),
            })
        });
        let path = ticks.path.iter().filter_map(|(&site, &(on_path, units))| {
            let (site, ns) = (self.place(site)?, ns(on_path));
            Some(OnPath { site, ns, units })
        });
        let turns = ticks.turns.iter().filter_map(|(&site, waits)| {
            Some(Turns {
                site: self.place(site)?,
                of_loop: waits.of_loop.and_then(|site| self.place(site)),
                ns: ns(waits.waited),
                inside_ns: ns(waits.inside),
            })
        });
        let predicted = ticks.predicted.iter().filter(|_| !ticks.is_nested);
        RegionAnalysis {
            site,
            executions: ticks.executions,
            wall_ns: ns(ticks.wall),
            team: ticks.team,
            work_ns: ns(ticks.work),
            span_ns: ns(ticks.span),
            span_equal_ns: ns(ticks.span_equal),
            span_deferred_ns: ns(ticks.span_deferred),
            lower_bound: ticks.bounds,
            predicted_ns: predicted.clone().map(|p| ns(p.likely)).collect(),
            predicted_between_ns: predicted.map(|p| [ns(p.low), ns(p.high)]).collect(),
            path: path.collect(),
            modelled_ns: ns(ticks.modelled),
            assumes_equal: ticks.assumes_equal,
            by_number: ticks.by_number,
            held,
            waiting: vec![],
            idle: vec![],
            turns: turns.collect(),
            loops: self.loops(ticks.loops),
            dependent: ticks.dependent,
            task_count: ticks.task_count,
            tasks_ns: ns(ticks.tasks),
            creating_ns: ns(ticks.creating),
            each_ns: ns(ticks.each),
        }
    }

    /// Its loops.
    fn loops(&self, loops: Loops) -> Vec<LoopAnalysis> {
        let ns = |ticks: u64| self.clock.length(ticks);
        let mut list = vec![];
        for (site, mut stat) in loops.finish() {
            let Some(site) = self.place(site) else {
                continue;
            };
            stat.site = site;
            for t in [
                &mut stat.units_ns,
                &mut stat.slowest_ns,
                &mut stat.longest_first_ns,
                &mut stat.longest.ns,
                &mut stat.largest.ns,
            ] {
                *t = ns(*t);
            }
            stat.fetch_ns = stat.fetch_ns.map(ns);
            stat.candidates.iter_mut().for_each(|c| c.ns = ns(c.ns));
            list.push(stat);
        }
        list
    }

    /// What threads of a place's region waited for.
    fn waits(&self, waits: Waits, site: Option<u32>) -> RegionAnalysis {
        let ns = |ticks: u64| self.clock.length(ticks);
        let waiting = waits.into_iter().map(|((barrier, what), waited)| Waiting {
            barrier: barrier.and_then(|b| self.place(b)),
            waited_for: what
                .placed(|site| self.place(site))
                .unwrap_or(WaitedFor::Runtime),
            ns: ns(waited.ticks),
            times: waited.times,
            disturbed_ns: ns(waited.disturbed),
            several: waited.several,
        });
        RegionAnalysis {
            site,
            waiting: waiting.collect(),
            ..RegionAnalysis::default()
        }
    }

    /// Why threads of a place's region had no tasks.
    fn reasons(&self, mut idle: idle::Idle, site: Option<u32>) -> RegionAnalysis {
        let mut list = vec![];
        for ((at, why), reason) in idle.reasons {
            let Some(placed) = why.placed(|site| self.place(site)) else {
                continue;
            };
            let times = match why {
                NoTask::OneByOne { wait, tasks } => idle.single.remove(&(wait, tasks)),
                _ => None,
            };
            list.push(Idle {
                at: at.and_then(|at| self.place(at)),
                why: placed,
                ns: self.clock.length(reason.ticks),
                late_ns: self.clock.length(reason.late),
                disturbed_ns: self.clock.length(reason.disturbed),
                times: times.unwrap_or(0),
            });
        }
        RegionAnalysis {
            site,
            idle: list,
            ..RegionAnalysis::default()
        }
    }
}

impl Ticks {
    fn bound(&mut self, because: LowerBound) {
        if !self.bounds.contains(&because) {
            self.bounds.push(because);
        }
    }
}
