//! From one run to what is compared of it.

mod callers;
mod kinds;
mod places;
mod ranks;
pub(crate) mod rows;
mod sums;
mod units;

pub use ranks::{RankRows, Ranks};
pub(crate) use units::median;
pub use units::{Unit, units};

use super::side::{Interface, Machine, Origin, Pace, Quantity, Unseen, hash};
use crate::functions::FunctionSamples;
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::account::Account;
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::{Class, Report};
use ompfuse_fuse::summary::Summary;
use ompfuse_fuse::table::XuTable;
use ompfuse_patterns::{Runtime, lookup};
use std::collections::BTreeMap;

const NS: f64 = 1e-9;

/// A run, or a profile that was combined of several.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Where it comes from.
    pub origin: Origin,
    /// See `Side::interfaces`.
    pub interfaces: BTreeMap<String, Interface>,
    /// The whole program.
    pub total: BTreeMap<Quantity, f64>,
    /// See `Side::uncounted`.
    pub uncounted: Option<UncountedWork>,
    /// Its regions.
    pub regions: Vec<MeasuredRegion>,
    /// The same by their callers, where these are known.
    pub parts: Vec<MeasuredRegion>,
}

/// A region in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRegion {
    /// What it is.
    pub key: RegionKey,
    /// The parallel region around it: its position in [`Measured::regions`], or behind these in [`Measured::parts`].
    pub parent: Option<usize>,
    /// See `SideRegion::places`.
    pub places: Option<u64>,
    /// See `SideRegion::barriers`.
    pub barriers: Option<u64>,
    /// Why it may be more than one construct.
    pub doubt: Option<String>,
    /// Own time of all threads in seconds, waits in a parallel region included.
    pub time_s: f64,
    /// What was measured.
    pub values: BTreeMap<Quantity, f64>,
    /// See `SideRegion::uncounted`.
    pub uncounted: Option<UncountedWork>,
    /// See `SideRegion::functions`.
    pub functions: Option<FunctionSamples>,
    /// See `SideRegion::quantiles`.
    pub quantiles: Vec<f32>,
}

/// What is compared of a run. `name`: what the user calls it. `table`: its execution units, if they are at hand.
pub fn measured(name: &str, summary: &Summary, table: Option<&XuTable>) -> Measured {
    let report = Report::new(summary);
    let origin = origin(name, summary, &report);
    let mut found = rows::rows(summary, &report);
    if let Some(table) = table {
        places::add(&mut found, summary, table);
        units::add_times(&mut found, summary, table);
    }
    let (parts, events) = (callers::parts(&found, summary), found.events.clone());
    let regions = rows::finished(found);
    let parts = parts.finished(&events, regions.len());
    finished(origin, interfaces(summary), &report, regions, parts, true)
}

/// All that is compared, with the sums over regions. `is_whole`: no region is missing in these.
fn finished(
    origin: Origin,
    interfaces: BTreeMap<String, Interface>,
    report: &Report,
    mut regions: Vec<MeasuredRegion>,
    mut parts: Vec<MeasuredRegion>,
    is_whole: bool,
) -> Measured {
    if origin.simulated {
        for region in regions.iter_mut().chain(&mut parts) {
            region.values.retain(|quantity, _| !quantity.is_time());
            region.quantiles.clear();
        }
    }
    let mut total = of_program(report);
    if is_whole {
        sum_up(&mut total, &regions, &origin);
    }
    if origin.simulated {
        total.retain(|quantity, _| !quantity.is_time());
    }
    Measured {
        origin,
        interfaces,
        total,
        uncounted: report.sampled.as_ref().and_then(|s| s.uncounted.clone()),
        regions,
        parts,
    }
}

/// What the report says of the whole program.
fn of_program(report: &Report) -> BTreeMap<Quantity, f64> {
    let mut total = BTreeMap::new();
    let mut put = |quantity, value: Option<f64>| value.map(|v| total.insert(quantity, v));
    let account = report.account.as_ref();
    put(Quantity::Wall, account.map(own_s).or(report.duration_s));
    if let Some(found) = account.and_then(|a| a.efficiencies) {
        put(Quantity::ParallelEfficiency, Some(found.parallel));
        put(Quantity::OpenmpEfficiency, Some(found.openmp));
        put(Quantity::Serialization, Some(found.serialization));
        put(Quantity::LoadBalance, found.load_balance);
        put(Quantity::Scheduling, found.scheduling);
        put(Quantity::MpiEfficiency, found.mpi);
    }
    put(Quantity::Time, Some(report.thread_time_s));
    for (class, quantity) in CLASSES {
        let known = (report.overheads.iter()).map(|o| o.overhead.get(class).unwrap_or(0.0));
        put(quantity, known.reduce(|a, b| a + b));
    }
    total
}

/// Adds what all regions have together, where that is not known yet.
fn sum_up(total: &mut BTreeMap<Quantity, f64>, regions: &[MeasuredRegion], origin: &Origin) {
    let all = |quantity: &Quantity, how: fn(f64, f64) -> f64| -> Option<f64> {
        let of_regions = regions.iter().filter_map(|r| r.values.get(quantity));
        of_regions.copied().reduce(how)
    };
    let mut put = |quantity: Quantity, how| {
        if let Some(value) = all(&quantity, how) {
            total.entry(quantity).or_insert(value);
        }
    };
    for quantity in [
        Quantity::Work,
        Quantity::Units,
        Quantity::Iterations,
        Quantity::DisturbedUnits,
    ] {
        put(quantity, |a, b| a + b);
    }
    for (_, quantity) in CLASSES {
        put(quantity, |a, b| a + b);
    }
    put(Quantity::MaxUnit, f64::max);
    for event in origin.events.keys() {
        let quantity = Quantity::Event(event.clone());
        // A sum that units are missing from is no sum.
        let lacks = |r: &MeasuredRegion| {
            let units = r.values.get(&Quantity::Units);
            units.is_some_and(|&n| n > 0.0) && !r.values.contains_key(&quantity)
        };
        if !regions.iter().any(lacks) {
            put(quantity, |a, b| a + b);
        }
    }
}

/// Own time in seconds: of several processes the longest.
pub(crate) fn own_s(account: &Account) -> f64 {
    let longest = account.processes.iter().map(|p| p.own_ns).max();
    longest.unwrap_or(account.own_ns) as f64 * NS
}

/// The classes of overhead as quantities.
const CLASSES: [(Class, Quantity); 4] = [
    (Class::Synchronization, Quantity::Synchronization),
    (Class::Imbalance, Quantity::ImbalanceTime),
    (Class::LimitedParallelism, Quantity::LimitedParallelism),
    (Class::Management, Quantity::Management),
];

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn origin(name: &str, summary: &Summary, report: &Report) -> Origin {
    let counted = summary.events.iter().filter(|e| e.run.is_some());
    let events: BTreeMap<String, u32> = counted.map(|e| (e.name.clone(), 1)).collect();
    let runs = &summary.runs;
    let damage = runs.iter().flat_map(|r| {
        let losses = ompfuse_account::damage::losses(&r.health);
        let killed = matches!(
            r.exit,
            Some(ompfuse_format::run::Exit::Signal(_) | ompfuse_format::run::Exit::Unknown)
        );
        let killed = killed.then(|| "the program did not end in an orderly way".to_owned());
        losses.into_iter().chain(killed)
    });
    let module = |build: &Option<String>, path: &str| match build {
        Some(id) => (id.clone(), file_name(path).to_owned()),
        None => (hash(path), file_name(path).to_owned()),
    };
    let unseen = summary.modules.iter().filter_map(|m| {
        let lost = m.coverage.lost();
        (lost > 0).then(|| Unseen {
            module: file_name(&m.path).to_owned(),
            lost,
        })
    });
    Origin {
        name: name.to_owned(),
        program: file_name(&summary.program).to_owned(),
        args: summary.args.clone(),
        args_hash: hash(&summary.args.join("\0")),
        host_hash: hash(&summary.host),
        host: summary.host.clone(),
        threads: summary.threads,
        team: summary.parallel.iter().map(|p| p.team).max().unwrap_or(1) as u32,
        processors: summary.processors,
        runs: 1,
        is_steady: summary.threads == 1 && runs.iter().all(|r| r.fixed_addresses),
        simulated: events.keys().any(|e| e.starts_with(SIMULATED)),
        events,
        left_out: 0,
        in_part: !summary.left_out.is_empty() || runs.iter().any(|r| r.recorded.is_some()),
        starved: (report.running.as_ref()).and_then(|r| r.is_starved.then_some(r.without_share())),
        probes: report.probes.as_ref().map(|p| p.share),
        modules: (summary.modules.iter())
            .map(|m| module(&m.build_id, &m.path))
            .collect(),
        damage: damage.collect(),
        unseen: unseen.collect(),
        started: runs.first().and_then(|r| r.started),
        pace: (runs.iter().filter_map(|r| Pace::of(r.pace_s?))).reduce(Pace::with),
        machine: Machine {
            processor: summary.processor.clone(),
            processors: summary.cpus,
            kernel: summary.kernel.clone(),
        },
        commit: None,
    }
}

/// The interface of each module that uses one alone.
fn interfaces(summary: &Summary) -> BTreeMap<String, Interface> {
    let of = |entry: &String| match lookup(entry)?.runtime {
        Runtime::Gomp => Some(Interface::Gomp),
        Runtime::Kmpc => Some(Interface::Kmpc),
        _ => None,
    };
    let known = summary.modules.iter().filter_map(|m| {
        let mut found = m.entries.iter().filter_map(of);
        let first = found.next()?;
        let is_alone = found.all(|other| other == first);
        is_alone.then(|| (file_name(&m.path).to_owned(), first))
    });
    known.collect()
}

/// What the names of the simulator's events begin with.
const SIMULATED: &str = "sim-";
