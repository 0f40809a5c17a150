//! From the first records of a run to its analysis.

use super::gather::{Gathered, gather};
use super::graph::{Builder, Graph, Play, critical, play};
use super::idle::{self, Execution};
use super::loops::Loops;
use super::outlook::{Between, outlook};
use super::phases::{self, Waits};
use super::replay::{Guided, Schedule};
use super::result::{
    Analysis, Held, Idle, LowerBound, NoTask, OnPath, RegionAnalysis, WaitedFor, Waiting,
};
use crate::run::RunFiles;
use crate::run::clock::Clock;
use crate::run::nodes::NONE;
use crate::run::streaming::{Streaming, StreamingProcess};
use crate::summary::Summary;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
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
    loops: Loops,
}

impl Process<'_> {
    fn place(&self, site: u32) -> Option<u32> {
        self.places.get(&site).copied()
    }

    /// What the place's text says of a loop's schedule.
    fn schedule(&self, site: u32) -> Option<Schedule> {
        let site = self.summary.sites.get(self.place(site)? as usize)?;
        let detail = site.detail.as_deref()?;
        detail.rsplit([' ', ';']).find_map(|word| {
            let (kind, chunk) = word.split_once(',').unwrap_or((word, ""));
            let chunk = chunk.parse::<u64>().ok();
            Some(match (kind, chunk) {
                ("static", None) => Schedule::Static,
                ("static", Some(n)) => Schedule::StaticChunk(n),
                ("dynamic", n) => Schedule::Dynamic(n.unwrap_or(1)),
                ("guided", n) => Schedule::Guided(n.unwrap_or(1)),
                _ => return None,
            })
        })
    }

    /// Whether all code that calls an OpenMP runtime calls libgomp.
    fn is_libgomp(&self) -> bool {
        let mut runtimes = self.summary.modules.iter().flat_map(|m| &m.runtimes);
        runtimes.all(|name| name.starts_with("libgomp"))
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
            for (site, waits) in std::mem::take(&mut ticks.waits) {
                let place = self.place(site);
                self.add_waits(waits, place, regions.entry(place).or_default());
            }
            for (site, idle) in std::mem::take(&mut ticks.idle) {
                let place = self.place(site);
                self.add_idle(idle, regions.entry(place).or_default());
            }
            let place = self.place(site);
            let sums = regions.entry(place).or_default();
            self.finish(ticks, place, sums);
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
        let guided = match self.is_libgomp() {
            true => Guided::Libgomp,
            false => Guided::Libomp,
        };
        (ticks.loops).add(gathered, recs, team.min(1 << 16) as u32, guided);
        let schedule = |site| self.schedule(site);
        let mut graph = builder.region(of_fork.node, &schedule);
        graph.children_only = self.is_libgomp();
        self.play(&graph, ticks, work);
        instances.sort_by_key(|&at| gathered.recs[at as usize].t0);
        self.idle(&graph, &forks, &instances, ticks);
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

    /// Why threads of an execution, and of those inside it, had no tasks.
    fn idle(&self, graph: &Graph, forks: &[u32], instances: &[u32], ticks: &mut Ticks) {
        let recs = &self.gathered.recs;
        for (team, of) in (0..).zip(&graph.teams) {
            let part = of.members.first().map(|&m| graph.strands[m as usize].rec);
            let part = part.and_then(|rec| recs.get(rec as usize));
            let is_it = |fork: &&u32| part.is_some_and(|p| p.parent == recs[**fork as usize].node);
            let Some(&fork) = forks.iter().find(is_it) else {
                continue;
            };
            let execution = Execution {
                gathered: self.gathered,
                graph,
                team,
                fork,
                instances,
            };
            let idle = ticks.idle.entry(recs[fork as usize].site).or_default();
            idle::add(execution, idle);
        }
    }

    /// Adds a place's sums to those of other processes.
    fn finish(&self, ticks: Ticks, site: Option<u32>, region: &mut RegionAnalysis) {
        let ns = |ticks: u64| self.clock.length(ticks);
        let is_first = region.executions == 0;
        region.site = site;
        region.executions += ticks.executions;
        region.wall_ns += ns(ticks.wall);
        region.team = region.team.max(ticks.team);
        region.work_ns += ns(ticks.work);
        region.span_ns += ns(ticks.span);
        region.span_equal_ns += ns(ticks.span_equal);
        region.span_deferred_ns += ns(ticks.span_deferred);
        region.dependent += ticks.dependent;
        region.task_count += ticks.task_count;
        region.tasks_ns += ns(ticks.tasks);
        region.creating_ns += ns(ticks.creating);
        region.each_ns += ns(ticks.each);
        region.modelled_ns += ns(ticks.modelled);
        region.assumes_equal |= ticks.assumes_equal;
        region.by_number |= ticks.by_number;
        region.lower_bound.extend(&ticks.bounds);
        region.lower_bound.sort_unstable();
        region.lower_bound.dedup();
        let held = ticks.held.iter().max_by_key(|(_, t)| **t);
        let held = held.and_then(|(site, t)| {
            Some(Held {
                site: self.place(*site)?,
                ns: ns(*t),
            })
        });
        let is_more = |h: &Held| region.held.is_none_or(|known| known.ns < h.ns);
        if let Some(held) = held.filter(is_more) {
            region.held = Some(held);
        }
        self.predict(&ticks, is_first, region);
        self.follow_path(&ticks, region);
        self.add_loops(ticks.loops, region);
    }

    /// Adds what its executions are predicted to take.
    fn predict(&self, ticks: &Ticks, is_first: bool, region: &mut RegionAnalysis) {
        let ns = |ticks: u64| self.clock.length(ticks);
        let bounds = |p: &Between| [ns(p.low), ns(p.high)];
        match (is_first, ticks.is_nested || region.predicted_ns.is_empty()) {
            (true, _) if !ticks.is_nested => {
                region.predicted_ns = ticks.predicted.iter().map(|p| ns(p.likely)).collect();
                region.predicted_between_ns = ticks.predicted.iter().map(bounds).collect();
            }
            (false, false) => {
                for (sum, p) in region.predicted_ns.iter_mut().zip(&ticks.predicted) {
                    *sum += ns(p.likely);
                }
                for (sum, p) in region.predicted_between_ns.iter_mut().zip(&ticks.predicted) {
                    let more = bounds(p);
                    *sum = [sum[0] + more[0], sum[1] + more[1]];
                }
            }
            _ => {
                region.predicted_ns.clear();
                region.predicted_between_ns.clear();
            }
        }
    }

    /// Adds what is on its critical paths.
    fn follow_path(&self, ticks: &Ticks, region: &mut RegionAnalysis) {
        for (&site, &(on_path, units)) in &ticks.path {
            let Some(site) = self.place(site) else {
                continue;
            };
            let ns = self.clock.length(on_path);
            match region.path.iter_mut().find(|p| p.site == site) {
                Some(known) => (known.ns, known.units) = (known.ns + ns, known.units + units),
                None => region.path.push(OnPath { site, ns, units }),
            }
        }
        region
            .path
            .sort_by_key(|p| (std::cmp::Reverse(p.ns), p.site));
    }

    /// Adds its loops.
    fn add_loops(&self, loops: Loops, region: &mut RegionAnalysis) {
        let ns = |ticks: u64| self.clock.length(ticks);
        for (site, mut stat) in loops.finish() {
            let Some(site) = self.place(site) else {
                continue;
            };
            stat.site = site;
            for t in [
                &mut stat.units_ns,
                &mut stat.slowest_ns,
                &mut stat.longest_ns,
                &mut stat.longest_first_ns,
                &mut stat.largest.ns,
                &mut stat.largest.of_ns,
            ] {
                *t = ns(*t);
            }
            stat.fetch_ns = stat.fetch_ns.map(ns);
            stat.candidates.iter_mut().for_each(|c| c.ns = ns(c.ns));
            match region.loops.iter_mut().find(|l| l.site == site) {
                Some(known) => known.absorb(stat),
                None => region.loops.push(stat),
            }
        }
        region.loops.sort_by_key(|l| std::cmp::Reverse(l.units_ns));
    }

    /// Adds what threads of a place's region waited for.
    fn add_waits(&self, waits: Waits, site: Option<u32>, region: &mut RegionAnalysis) {
        region.site = site;
        let ns = |ticks: u64| self.clock.length(ticks);
        for ((barrier, waited_for), waited) in waits {
            let placed = Waiting {
                barrier: barrier.and_then(|b| self.place(b)),
                waited_for: self.placed(waited_for),
                ns: ns(waited.ticks),
                times: waited.times,
                disturbed_ns: ns(waited.disturbed),
            };
            let same =
                |w: &&mut Waiting| (w.barrier, w.waited_for) == (placed.barrier, placed.waited_for);
            match region.waiting.iter_mut().find(same) {
                Some(known) => {
                    known.ns += placed.ns;
                    known.times += placed.times;
                    known.disturbed_ns += placed.disturbed_ns;
                }
                None => region.waiting.push(placed),
            }
        }
        region.waiting.sort_by_key(|w| std::cmp::Reverse(w.ns));
    }

    /// Adds why its threads had no tasks.
    fn add_idle(&self, idle: idle::Idle, region: &mut RegionAnalysis) {
        for ((at, why), reason) in idle.reasons {
            let Some(placed) = self.placed_reason(why) else {
                continue;
            };
            let times = match why {
                NoTask::OneByOne { wait, tasks } => idle.single.get(&(wait, tasks)).copied(),
                _ => None,
            };
            let more = Idle {
                at: at.and_then(|at| self.place(at)),
                why: placed,
                ns: self.clock.length(reason.ticks),
                late_ns: self.clock.length(reason.late),
                disturbed_ns: self.clock.length(reason.disturbed),
                times: times.unwrap_or(0),
            };
            let same = |i: &&mut Idle| (i.at, i.why) == (more.at, more.why);
            match region.idle.iter_mut().find(same) {
                Some(known) => {
                    known.ns += more.ns;
                    known.late_ns += more.late_ns;
                    known.disturbed_ns += more.disturbed_ns;
                    known.times += more.times;
                }
                None => region.idle.push(more),
            }
        }
        region.idle.sort_by_key(|i| std::cmp::Reverse(i.ns));
    }

    fn placed_reason(&self, why: NoTask) -> Option<NoTask> {
        let place = |site: u32, of: fn(u32) -> NoTask| self.place(site).map(of);
        match why {
            NoTask::Untaken(s) => place(s, NoTask::Untaken),
            NoTask::NotItsOwn(s) => place(s, NoTask::NotItsOwn),
            NoTask::Dependent(s) => place(s, NoTask::Dependent),
            NoTask::Excluded(s) => place(s, NoTask::Excluded),
            NoTask::Event(s) => place(s, NoTask::Event),
            NoTask::AtOnce(s) => place(s, NoTask::AtOnce),
            NoTask::InYield(s) => place(s, NoTask::InYield),
            NoTask::Block(s) => place(s, NoTask::Block),
            NoTask::Creating(s) => place(s, NoTask::Creating),
            NoTask::Last(s) => place(s, NoTask::Last),
            NoTask::Code => Some(NoTask::Code),
            NoTask::OneByOne { wait, tasks } => Some(NoTask::OneByOne {
                wait: self.place(wait)?,
                tasks: self.place(tasks)?,
            }),
        }
    }

    fn placed(&self, waited_for: WaitedFor) -> WaitedFor {
        let place = |site: u32, of: fn(u32) -> WaitedFor| self.place(site).map(of);
        match waited_for {
            WaitedFor::Units(s) => place(s, WaitedFor::Units),
            WaitedFor::Block(s) => place(s, WaitedFor::Block),
            WaitedFor::Tasks(s) => place(s, WaitedFor::Tasks),
            WaitedFor::Nested(s) => place(s, WaitedFor::Nested),
            WaitedFor::Entering(s) => place(s, WaitedFor::Entering),
            plain => Some(plain),
        }
        .unwrap_or(WaitedFor::Runtime)
    }
}

impl Ticks {
    fn bound(&mut self, because: LowerBound) {
        if !self.bounds.contains(&because) {
            self.bounds.push(because);
        }
    }
}

impl super::LoopAnalysis {
    /// Takes over another process's.
    fn absorb(&mut self, other: super::LoopAnalysis) {
        self.executions += other.executions;
        self.with_few_units += other.with_few_units;
        self.units += other.units;
        self.iterations += other.iterations;
        self.units_ns += other.units_ns;
        self.slowest_ns += other.slowest_ns;
        self.longest_ns += other.longest_ns;
        self.longest_first_ns += other.longest_first_ns;
        if other.largest.ns > self.largest.ns {
            self.largest = other.largest;
        }
        for (all, more) in self.counts.iter_mut().zip(other.counts) {
            *all = all.zip(more).map(|(a, b)| a + b);
        }
        // Other processes' loops may have had other chunks: their sums are no longer comparable.
        let same = |c: &super::Candidate, d: &super::Candidate| c.schedule == d.schedule;
        let is_same = self.candidates.len() == other.candidates.len()
            && (self.candidates.iter().zip(&other.candidates)).all(|(c, d)| same(c, d));
        match is_same {
            true => {
                for (c, d) in self.candidates.iter_mut().zip(&other.candidates) {
                    c.ns += d.ns;
                    c.assumes_equal |= d.assumes_equal;
                }
            }
            false => self.candidates.clear(),
        }
    }
}
