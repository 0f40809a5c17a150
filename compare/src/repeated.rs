//! From the runs of one build to a side.

use super::gather::{Measured, MeasuredRegion};
use super::side::{Each, Origin, Quantity, SIDE_VERSION, Sample, Side, SideRegion};
use crate::functions::FunctionSamples;
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::{Caller, RegionKey};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// Runs that can't stand for one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideError {
    /// There are none.
    Empty,
    /// Two of them are of different builds.
    Builds {
        /// A run.
        one: String,
        /// A run of another build.
        other: String,
        /// File name of the module that differs.
        module: String,
    },
    /// Two of them had other teams.
    Threads {
        /// A run.
        one: String,
        /// A run with another number of threads.
        other: String,
    },
}

/// Runs of one build as a side. `name`: what the user calls it.
///
/// # Errors
/// [`SideError`] if they aren't repetitions of one another.
pub fn side(name: &str, runs: &[Measured]) -> Result<Side, SideError> {
    let mut runs: Vec<&Measured> = runs.iter().collect();
    let started = |run: &Measured| run.origin.started;
    // Those whose begin is not known keep their order.
    runs.sort_by(|x, y| {
        started(x)
            .partial_cmp(&started(y))
            .unwrap_or(Ordering::Equal)
    });
    let begun: Option<Vec<f64>> = runs.iter().map(|run| started(run)).collect();
    let begun = begun.unwrap_or_default();
    let first = runs.first().ok_or(SideError::Empty)?;
    for run in &runs {
        check(&first.origin, &run.origin)?;
    }
    // A region is known by its key: the build is the same one.
    let mut found: HashMap<&RegionKey, Vec<&MeasuredRegion>> = HashMap::new();
    for region in runs.iter().flat_map(|run| all_of(run)) {
        found.entry(&region.key).or_default().push(region);
    }
    let chains = chains(&found);
    let is_alone = |key: &RegionKey| key.is_part && chains[&key.whole()].len() == 1;
    let timed = timed(&runs);
    let mut order: Vec<(&RegionKey, f64)> = (found.keys().filter(|key| !is_alone(key)))
        .map(|&key| (key, timed.get(key).copied().unwrap_or(0.0)))
        .collect();
    order.sort_by(|a, b| {
        let parts_last = a.0.is_part.cmp(&b.0.is_part);
        let by_time = b.1.total_cmp(&a.1);
        parts_last.then(by_time).then_with(|| a.0.cmp(b.0))
    });
    let position: HashMap<&RegionKey, u32> = order
        .iter()
        .zip(0..)
        .map(|((key, _), at)| (*key, at))
        .collect();
    // The only part of a region is the region.
    let place = |key: &RegionKey| match is_alone(key) {
        true => position.get(&key.whole()).copied(),
        false => position.get(key).copied(),
    };
    let mut parents: HashMap<&RegionKey, u32> = HashMap::new();
    for run in &runs {
        for region in all_of(run) {
            let parent = region.parent.and_then(|at| all_of(run).nth(at));
            let Some((parent, at)) = parent.and_then(|p| Some((&p.key, place(&p.key)?))) else {
                continue;
            };
            // The only part of a region knows which part of another it is in.
            let whole = found.get_key_value(&region.key.whole());
            match whole.filter(|_| is_alone(&region.key)) {
                Some((whole, _)) if parent.is_part && !is_alone(parent) => {
                    parents.insert(whole, at);
                }
                Some(_) => {}
                None => drop(parents.entry(&region.key).or_insert(at)),
            }
        }
    }
    let whole = order.iter().filter(|(key, _)| !key.is_part);
    let all: f64 = whole.map(|(_, time)| time).sum();
    let regions = order.iter().map(|&(key, time)| {
        let same = &found[key];
        let is_equal = same.iter().all(|r| r.places == same[0].places);
        let places = same[0].places.filter(|_| is_equal);
        let callers = match (key.construct.is_fork(), chains.get(key).map(Vec::as_slice)) {
            (true, Some([only])) => only.to_vec(),
            _ => vec![],
        };
        SideRegion {
            key: key.clone(),
            parent: parents.get(key).copied(),
            places: places.map(|p| format!("{p:016x}")),
            barriers: same[0]
                .barriers
                .filter(|_| same.iter().all(|r| r.barriers == same[0].barriers)),
            doubt: same.iter().find_map(|r| r.doubt.clone()),
            share: if all > 0.0 { time / all } else { 0.0 },
            values: samples(same.iter().map(|r| &r.values)),
            uncounted: UncountedWork::sum(same.iter().map(|r| r.uncounted.as_ref())),
            functions: FunctionSamples::sum(same.iter().map(|r| r.functions.as_ref())),
            quantiles: mean_quantiles(same),
            callers,
            each: match same.len() == runs.len() {
                true => each(same.iter().map(|r| &r.values)),
                false => Each::new(),
            },
        }
    });
    let mut regions: Vec<SideRegion> = regions.collect();
    let wholes = regions.partition_point(|r| !r.key.is_part);
    Ok(Side {
        version: SIDE_VERSION,
        parts: regions.split_off(wholes),
        regions,
        origin: origin(name, &runs),
        interfaces: (runs.iter()).flat_map(|r| r.interfaces.clone()).collect(),
        total: samples(runs.iter().map(|r| &r.total)),
        uncounted: UncountedWork::sum(runs.iter().map(|r| r.uncounted.as_ref())),
        each: each(runs.iter().map(|r| &r.total)),
        begun,
    })
}

/// The regions of a run, and behind them their parts.
fn all_of(run: &Measured) -> impl Iterator<Item = &MeasuredRegion> {
    run.regions.iter().chain(&run.parts)
}

/// By region the chains of callers that its parts have.
fn chains<'k, V>(found: &HashMap<&'k RegionKey, V>) -> HashMap<RegionKey, Vec<&'k [Caller]>> {
    let mut chains: HashMap<RegionKey, Vec<&[Caller]>> = HashMap::new();
    for key in found.keys().filter(|key| key.is_part) {
        chains.entry(key.whole()).or_default().push(&key.callers);
    }
    chains
}

/// Mean time of each region in the runs that processors executed; in all runs if a simulator did.
fn timed<'r>(runs: &[&'r Measured]) -> HashMap<&'r RegionKey, f64> {
    let real = runs.iter().any(|r| !r.origin.simulated);
    let mut times: HashMap<&'r RegionKey, f64> = HashMap::new();
    for run in runs.iter().filter(|r| !(real && r.origin.simulated)) {
        for region in all_of(run) {
            *times.entry(&region.key).or_default() += region.time_s;
        }
    }
    times
}

/// Whether two runs are repetitions of one another.
fn check(a: &Origin, b: &Origin) -> Result<(), SideError> {
    let differs = |(build, file): (&String, &String)| {
        let other = b.modules.iter().find(|(_, f)| *f == file);
        other.is_some_and(|(other, _)| other != build && !b.modules.contains_key(build))
    };
    if let Some((_, file)) = a.modules.iter().find(|m| differs(*m)) {
        return Err(SideError::Builds {
            one: a.name.clone(),
            other: b.name.clone(),
            module: file.clone(),
        });
    }
    let alone = |x: &Origin, y: &Origin| {
        let mut own = x.modules.keys();
        !x.modules.is_empty() && own.all(|build| !y.modules.contains_key(build))
    };
    if alone(a, b) && alone(b, a) {
        return Err(SideError::Builds {
            one: a.name.clone(),
            other: b.name.clone(),
            module: b.program.clone(),
        });
    }
    if a.team != b.team {
        return Err(SideError::Threads {
            one: a.name.clone(),
            other: b.name.clone(),
        });
    }
    Ok(())
}

fn samples<'a>(
    runs: impl Iterator<Item = &'a BTreeMap<Quantity, f64>>,
) -> BTreeMap<Quantity, Sample> {
    let mut all: BTreeMap<&Quantity, Vec<f64>> = BTreeMap::new();
    for (quantity, &value) in runs.flatten() {
        all.entry(quantity).or_default().push(value);
    }
    all.into_iter()
        .filter_map(|(quantity, values)| Some((quantity.clone(), Sample::of(&values)?)))
        .collect()
}

/// Run by run what all of them measured.
fn each<'a>(runs: impl ExactSizeIterator<Item = &'a BTreeMap<Quantity, f64>>) -> Each {
    let count = runs.len();
    let mut each = Each::new();
    for (quantity, &value) in runs.flatten() {
        each.entry(quantity.clone()).or_default().push(value);
    }
    each.retain(|_, values| values.len() == count);
    each
}

/// The mean of each quantile: the distribution that is nearest to all of them on the line (their Wasserstein barycentre).
fn mean_quantiles(same: &[&MeasuredRegion]) -> Vec<f32> {
    let known = same.iter().map(|r| &r.quantiles).filter(|q| !q.is_empty());
    let known: Vec<&Vec<f32>> = known.collect();
    let steps = known.first().map_or(0, |q| q.len());
    let mean = |step: usize| known.iter().map(|q| q[step]).sum::<f32>() / known.len() as f32;
    (0..steps).map(mean).collect()
}

/// What the runs have in common, and what is wrong with any of them.
fn origin(name: &str, runs: &[&Measured]) -> Origin {
    let mut all = runs[0].origin.clone();
    name.clone_into(&mut all.name);
    let most = |a: Option<f64>, b: Option<f64>| if b > a { b } else { a };
    for run in &runs[1..] {
        let Origin {
            // The same of all, or of the first.
            name: _,
            program: _,
            args: _,
            args_hash: _,
            host_hash: _,
            host: _,
            processors: _,
            machine: _,
            commit: _,
            started: _,
            pace,
            damage: _, // of each, below
            threads,
            team,
            runs,
            events,
            simulated,
            is_steady,
            in_part,
            left_out,
            starved,
            probes,
            modules,
            unseen,
        } = &run.origin;
        all.threads = all.threads.max(*threads);
        all.team = all.team.max(*team);
        all.runs += runs;
        for (event, n) in events {
            *all.events.entry(event.clone()).or_default() += n;
        }
        all.simulated |= simulated;
        all.pace = all.pace.zip(*pace).map(|(a, b)| a.with(b));
        all.is_steady &= is_steady;
        all.in_part |= in_part;
        all.left_out = all.left_out.max(*left_out);
        all.starved = most(all.starved, *starved);
        all.probes = most(all.probes, *probes);
        all.modules.extend(modules.clone());
        for more in unseen {
            match all.unseen.iter_mut().find(|u| u.module == more.module) {
                Some(known) => known.lost = known.lost.max(more.lost),
                None => all.unseen.push(more.clone()),
            }
        }
    }
    all.damage = (runs.iter().filter(|r| !r.origin.damage.is_empty()))
        .map(|r| format!("{}: {}", r.origin.name, r.origin.damage.join("; ")))
        .collect();
    all
}
