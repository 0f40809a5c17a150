//! The metrics of a report.

use super::families::{Family, Labels, place};
use super::text;
use ompfuse_account::Report;
use ompfuse_account::model::{Region, RegionThread};
use ompfuse_format::construct::OverheadClass;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the metrics of the regions that are wanted.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    report: &Report,
    is_wanted: impl Fn(&Region) -> bool,
) -> io::Result<()> {
    let text = text(families(report, is_wanted)).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

fn families(report: &Report, is_wanted: impl Fn(&Region) -> bool) -> Vec<Family> {
    let mut run = Family::run();
    run.add(
        vec![
            ("program", report.program.clone()),
            ("host", report.host.clone()),
        ],
        1,
    );
    let mut threads = Family::threads();
    threads.add(vec![], u64::from(report.threads));
    let mut lost = Family::lost();
    lost.add(
        vec![],
        report.runs.iter().map(|r| r.lost_records).sum::<u64>(),
    );
    let (mut time, mut wall) = (Family::region_time(), Family::region_wall());
    let (mut executions, mut units) = (Family::executions(), Family::units());
    let (mut events, mut overhead) = (Family::events(), Family::overhead());
    let mut places: BTreeMap<u32, Labels> = BTreeMap::new();
    for region in report.regions.iter().filter(|r| is_wanted(r)) {
        let labels = labels(report, region);
        executions.add(labels.clone(), region.executions);
        if let Some(wall_s) = region.wall_s {
            wall.add(labels.clone(), wall_s);
        }
        let mut add = |labels: Labels, [work_s, wait_s, runtime_s]: [f64; 3], xus: u64| {
            for (state, s) in [("work", work_s), ("wait", wait_s), ("runtime", runtime_s)] {
                time.add(with(&labels, "state", state), s);
            }
            if region.xus > 0 {
                units.add(labels, xus);
            }
        };
        for t in &region.per_thread {
            let times = [t.work_s, t.wait_s, t.runtime_s];
            add(of_thread(&labels, t), times, t.xus);
        }
        // Of a job only sums by rank are known.
        let ranks = region.ranks.iter().flat_map(|r| &r.per_rank);
        for r in ranks.filter(|_| region.per_thread.is_empty()) {
            let times = [r.work_s, r.wait_s, r.runtime_s];
            add(with(&labels, "rank", &r.rank.to_string()), times, r.xus);
        }
        add_events(&mut events, region, &labels);
        places.insert(region.id, labels);
    }
    for parallel in &report.overheads {
        let Some(labels) = places.get(&parallel.region) else {
            continue;
        };
        for class in OverheadClass::ALL {
            if let Some(seconds) = parallel.overhead.get(class) {
                overhead.add(with(labels, "class", class.name()), seconds);
            }
        }
    }
    let mut in_parts = Family::parallel_events();
    for counts in &report.region_counts {
        let Some(labels) = places.get(&counts.region) else {
            continue;
        };
        let mut labels = labels.clone();
        labels.extend(
            counts
                .process
                .map(|process| ("process", process.to_string())),
        );
        labels.push(("team_thread", counts.team_thread.to_string()));
        for (event, count) in &counts.events {
            in_parts.add(with(&labels, "event", event), count.count);
        }
    }
    vec![
        run, threads, lost, time, wall, executions, units, overhead, events, in_parts,
    ]
}

/// By thread where that is known of all of the region's counts, else of all its threads together.
fn add_events(events: &mut Family, region: &Region, labels: &Labels) {
    for (event, &count) in &region.events {
        let known = |thread: &RegionThread| thread.events.get(event)?.exclusive;
        let by_thread = region.per_thread.iter().map(known);
        let sum = by_thread.clone().flatten().reduce(u64::wrapping_add);
        if sum != Some(count) {
            events.add(with(labels, "event", event), count);
            continue;
        }
        for (thread, count) in region.per_thread.iter().zip(by_thread) {
            if let Some(count) = count {
                events.add(with(&of_thread(labels, thread), "event", event), count);
            }
        }
    }
}

fn labels(report: &Report, region: &Region) -> Labels {
    // The program may be what has launched the ranks.
    let modules = report.modules.iter();
    let mut of_region = modules.filter(|m| {
        let name = m.build_id.as_ref().unwrap_or(&m.path);
        Some(name) == region.module.as_ref()
    });
    let module = of_region.next().map(|m| m.path.as_str());
    place(
        region.construct,
        region.source.as_ref(),
        region.function.as_deref(),
        module,
        &region.name,
    )
}

fn of_thread(labels: &Labels, thread: &RegionThread) -> Labels {
    let mut labels = labels.clone();
    labels.extend(
        thread
            .process
            .map(|process| ("process", process.to_string())),
    );
    labels.extend(thread.mpi_rank.map(|rank| ("rank", rank.to_string())));
    labels.push(("thread", thread.thread.to_string()));
    labels
}

fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.push((name, value.to_owned()));
    labels
}
