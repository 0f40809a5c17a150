//! From a run's or a foreign table's intervals to a [`Summary`].

use super::parallel::Instances;
use super::{EventOrigin, ModuleSummary, RegionStat, RunSummary, Summary, ThreadColumns};
use crate::run::shared::{COLUMNS, scaled};
use crate::run::{AtPlace, EventInfo, Health, NONE, Run, RunReader};
use crate::table::{COUNT, EventColumn, ROW, XuTable};
use ompfuse_format::Construct;
use ompfuse_format::run::RunModule;
use ompfuse_format::site::{Mechanism, Outcome};
use std::collections::{BTreeMap, HashMap, HashSet};

impl Summary {
    /// Of a run. `name`: what the user calls it.
    pub fn of_run(name: &str, run: &Run) -> Summary {
        let mut instances = Instances::of(run);
        instances.add(run);
        let mut summary = Summary::without_sums(name, run);
        summary.regions = regions(run, &summary.events);
        summary.parallel = instances.into_stats(run);
        summary
    }

    /// As [`Summary::of_run`], of a run that is read in parts of about `memory` bytes each, or what is needed for one place.
    pub fn of_parts(
        name: &str,
        reader: &mut RunReader<'_>,
        memory: u64,
        told: crate::Told<'_>,
    ) -> Summary {
        let is_frame = |c: Construct| c.is_fork() || c.is_part() || c == Construct::Program;
        let mut frame = reader.read(&|_, construct| is_frame(construct)).run;
        let mut instances = Instances::of(&frame);
        let (mut stats, mut xus, mut unlabelled) = (vec![], 0, 0);
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
            told(share(these) / share(&places).max(1.0));
            stats.extend(regions(&part, &events));
            instances.add(&part);
            xus += part.xus.len() as u64;
            unlabelled += part.health.unlabelled_xus;
        }
        frame.health.unlabelled_xus = unlabelled;
        let mut summary = Summary::without_sums(name, &frame);
        summary.regions = stats;
        summary.parallel = instances.into_stats(&frame);
        summary.runs[0].xus = xus;
        summary
    }

    /// But for the sums over regions.
    fn without_sums(name: &str, run: &Run) -> Summary {
        let header = &run.header;
        let run_summary = RunSummary {
            name: name.to_owned(),
            started: Some(header.started),
            duration_s: Some(header.duration_s),
            exit: Some(header.exit),
            events: run.events.clone(),
            processes: run.processes.clone(),
            xus: run.xus.len() as u64,
            health: run.health.clone(),
            switch_cost_ns: header.switch_cost_ns,
        };
        let events = origins(&run.events);
        Summary {
            program: header.program.clone(),
            args: header.args.clone(),
            host: header.host.clone(),
            cpus: header.cpus,
            kernel: header.kernel.clone(),
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
            processes: run.xus.processes.clone(),
            accounts: run.threads.clone(),
            left_out: run.left_out.clone(),
            matching: None,
        }
    }

    /// Of a foreign table: its XUs only. `name`: what the user calls it.
    pub fn of_table(name: &str, table: &XuTable) -> Summary {
        let mut sums = TableSums::default();
        sums.add(table);
        sums.finish(name, table)
    }
}

/// A foreign table's sums, as it is read piece by piece.
#[derive(Debug, Default)]
pub(crate) struct TableSums {
    groups: Groups,
    threads: HashSet<u32>,
    xus: u64,
}

impl TableSums {
    /// The next piece; sites keep their positions.
    pub(crate) fn add(&mut self, table: &XuTable) {
        for row in 0..table.len() {
            let key = Key {
                site: table.site[row],
                construct: table.construct[row],
                parallel: NONE,
            };
            let numbers = xu_numbers(table, row);
            let thread = table.thread[row];
            let group = self
                .groups
                .add(key, thread, numbers, (&table.events, &[]), row);
            group.single += 1;
        }
        self.threads.extend(&table.thread);
        self.xus += table.len() as u64;
    }

    /// The summary. `last`: the last piece, which has all sites. `name`: what the user calls it.
    pub(crate) fn finish(self, name: &str, last: &XuTable) -> Summary {
        let info = |e: &EventColumn| EventInfo {
            name: e.name.clone(),
            counted: true,
            reason: None,
            scaled: false,
        };
        let infos: Vec<EventInfo> = last.events.iter().map(info).collect();
        let events = origins(&infos);
        Summary {
            program: name.to_owned(),
            threads: self.threads.len() as u32,
            sites: last.sites.to_vec(),
            regions: self.groups.into_stats(&last.events, &[], &events),
            events,
            runs: vec![RunSummary {
                name: name.to_owned(),
                started: None,
                duration_s: None,
                exit: None,
                events: infos,
                processes: vec![],
                xus: self.xus,
                health: Health::default(),
                switch_cost_ns: None,
            }],
            ..Summary::default()
        }
    }
}

fn origins(infos: &[EventInfo]) -> Vec<EventOrigin> {
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

fn module(module: &RunModule) -> ModuleSummary {
    let mut skipped: BTreeMap<&str, u32> = BTreeMap::new();
    for site in module
        .sites
        .iter()
        .filter(|s| s.outcome == Outcome::Skipped)
    {
        *skipped
            .entry(site.reason.as_deref().unwrap_or("no reason given"))
            .or_default() += 1;
    }
    ModuleSummary {
        path: module.binary.path.clone(),
        build_id: module.binary.build_id.clone(),
        runtimes: module.binary.runtimes.clone(),
        patched: module
            .sites
            .iter()
            .filter(|s| s.outcome == Outcome::Patched && s.mechanism != Mechanism::Implied)
            .count() as u32,
        skipped: skipped
            .into_iter()
            .map(|(reason, n)| (reason.to_owned(), n))
            .collect(),
    }
}

/// What intervals are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    site: u32,
    construct: Option<Construct>,
    /// Site of the innermost enclosing parallel region.
    parallel: u32,
}

/// One interval's numbers.
struct Numbers {
    own_ns: u64,
    wall_ns: u64,
    extent: u64,
}

#[derive(Debug, Default)]
struct Group {
    instances: HashSet<(u16, u32, u128)>,
    /// Intervals that can't be told to be one instance.
    single: u64,
    threads: BTreeMap<u32, usize>,
    columns: ThreadColumns,
    counts: Vec<Option<u64>>,
}

#[derive(Debug, Default)]
struct Groups {
    index: HashMap<Key, usize>,
    groups: Vec<(Key, Group)>,
    /// Neighbouring rows are often alike.
    last: Option<(Key, usize)>,
}

impl Groups {
    fn add(
        &mut self,
        key: Key,
        thread: u32,
        numbers: Numbers,
        (events, made_of): (&[EventColumn], &[EventColumn]),
        row: usize,
    ) -> &mut Group {
        let at = match self.last {
            Some((last, at)) if last == key => at,
            _ => *self.index.entry(key).or_insert_with(|| {
                self.groups.push((
                    key,
                    Group {
                        counts: vec![Some(0); events.len() + made_of.len()],
                        ..Group::default()
                    },
                ));
                self.groups.len() - 1
            }),
        };
        self.last = Some((key, at));
        let group = &mut self.groups[at].1;
        group.add(thread, &numbers);
        for (total, column) in group.counts.iter_mut().zip(events.iter().chain(made_of)) {
            // What is not known of a part is not known of the whole.
            *total = total.and_then(|t| Some(t.wrapping_add(column.get(row)?)));
        }
        group
    }

    /// `columns`: the events of the groups' counts; `made_of`: what scaled ones were made of (see [`Run::xu_scaled`]); `events`: those
    /// of the summary, among which they are.
    fn into_stats(
        self,
        columns: &[EventColumn],
        made_of: &[EventColumn],
        events: &[EventOrigin],
    ) -> Vec<RegionStat> {
        let count = |group: &Group, event: &EventOrigin| {
            let is_it = |c: &EventColumn| c.name == event.name;
            let Some(raw) = made_of.iter().position(is_it) else {
                return columns.iter().position(is_it).and_then(|c| group.counts[c]);
            };
            // Of the whole region's times, also where some of its parts saw nothing of the event.
            let sums = &group.counts[columns.len() + raw..][..COLUMNS];
            let &[Some(value), Some(running), Some(enabled)] = sums else {
                return None;
            };
            scaled(value, running, enabled)
        };
        let mut groups = self.groups;
        groups.sort_by_key(|(key, _)| *key);
        groups
            .into_iter()
            .map(|(key, group)| RegionStat {
                site: (key.site != NONE).then_some(key.site),
                construct: key.construct,
                parallel: (key.parallel != NONE).then_some(key.parallel),
                instances: group.instances.len() as u64 + group.single,
                counts: events.iter().map(|e| count(&group, e)).collect(),
                threads: group.columns,
            })
            .collect()
    }
}

impl Group {
    fn add(&mut self, thread: u32, numbers: &Numbers) {
        let columns = &mut self.columns;
        let at = *self.threads.entry(thread).or_insert_with(|| {
            columns.thread.push(thread);
            for column in [
                &mut columns.count,
                &mut columns.own_ns,
                &mut columns.wall_ns,
                &mut columns.extent,
            ] {
                column.push(0);
            }
            columns.max_ns.push(0);
            columns.min_ns.push(u64::MAX);
            columns.thread.len() - 1
        });
        columns.count[at] += 1;
        columns.own_ns[at] += numbers.own_ns;
        columns.wall_ns[at] += numbers.wall_ns;
        columns.extent[at] = columns.extent[at].saturating_add(numbers.extent);
        columns.min_ns[at] = columns.min_ns[at].min(numbers.own_ns);
        columns.max_ns[at] = columns.max_ns[at].max(numbers.own_ns);
    }
}

fn xu_numbers(table: &XuTable, row: usize) -> Numbers {
    Numbers {
        own_ns: table.own_ns[row],
        wall_ns: length(table.t0_ns[row], table.t1_ns[row]),
        extent: table.iterations[row],
    }
}

/// From begin to end, 0 if they are out of order.
pub(super) fn length(begin: i64, end: i64) -> u64 {
    end.checked_sub(begin).unwrap_or(0).max(0) as u64
}

fn regions(run: &Run, events: &[EventOrigin]) -> Vec<RegionStat> {
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
    let parallel_site = |parent: u32| match run.nodes.parallel.get(parent as usize) {
        Some(&node) if node != NONE => run.nodes.site[node as usize],
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
        };
        let numbers = Numbers {
            own_ns: intervals.own_ns[row],
            wall_ns: length(intervals.t0_ns[row], intervals.t1_ns[row]),
            extent: intervals.extent[row],
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
        match run.node_label(intervals.node[row]) {
            Some(label) => {
                let hash = run.xus.labels.hash(label).0;
                group
                    .instances
                    .insert((intervals.process[row], intervals.parent[row], hash));
            }
            None => group.single += 1,
        }
    }
    groups.into_stats(&run.xus.events, &run.xu_scaled, events)
}
