//! `--set`: what a patched program hands over to the OpenMP runtime instead of what it was compiled with.

use super::{Selector, meant};
use crate::output::note;
use anyhow::{Result, bail};
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Outcome, Parameter, SCHEDULES, Setting, SiteInfo};
use ompfuse_rewriter::model::{Action, Site};
use ompfuse_rewriter::settings;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Regions, and what is set for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    /// As the user wrote it.
    pub(crate) text: String,
    pub(crate) regions: Selector,
    pub(crate) values: BTreeMap<Parameter, u32>,
}

impl Set {
    /// Another chunk.
    pub(crate) fn chunk(regions: &Selector, chunk: u32) -> Set {
        Set {
            text: format!("{}: chunk={chunk}", regions.text()),
            regions: regions.clone(),
            values: BTreeMap::from([(Parameter::Chunk, chunk)]),
        }
    }

    /// Whether a value is set with another one, or not at all.
    fn is_implied(&self, parameter: Parameter) -> bool {
        parameter == Parameter::Chunk && self.values.contains_key(&Parameter::Schedule)
    }

    /// Why a site can't have a value; `None`: it can.
    fn refusal(&self, site: &Site, parameter: Parameter) -> Option<String> {
        let schedule = Some(Parameter::Schedule).filter(|_| self.is_implied(parameter));
        let mut all = schedule.into_iter().chain([parameter]);
        unpatched(site).or_else(|| {
            all.find_map(|p| settings::check(site, p, self.values[&p]).err())
                .map(str::to_owned)
        })
    }
}

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Set, String> {
        let wrong = || "give regions and what is set, as in solve.c:31: chunk=64".to_owned();
        let (regions, values) = text.rsplit_once(':').ok_or_else(wrong)?;
        let mut all = BTreeMap::new();
        for value in values.split(',').map(str::trim) {
            let (parameter, number) = match value {
                "serial" => (Parameter::Threads, "1"),
                value => {
                    let (name, number) = value.split_once('=').ok_or_else(wrong)?;
                    let known = Parameter::ALL.iter().find(|p| p.name() == name.trim());
                    let names = Parameter::ALL.map(Parameter::name).join(", ");
                    let known = known
                        .ok_or_else(|| format!("{name:?} can't be set; {names} and serial can"))?;
                    (*known, number.trim())
                }
            };
            let number = match parameter {
                Parameter::Schedule => schedule(number)?,
                parameter => positive(number, parameter)?,
            };
            if all.insert(parameter, number).is_some() {
                return Err(format!("{} is set twice", parameter.name()));
            }
        }
        if all.contains_key(&Parameter::Grainsize) && all.contains_key(&Parameter::NumTasks) {
            return Err("a taskloop has a grainsize or num_tasks, not both".to_owned());
        }
        if all.contains_key(&Parameter::Schedule) {
            all.entry(Parameter::Chunk).or_insert(1); // as in the source: schedule(guided)
        }
        Ok(Set {
            text: text.to_owned(),
            regions: regions.trim().parse()?,
            values: all,
        })
    }
}

/// A schedule's number.
fn schedule(name: &str) -> Result<u32, String> {
    let found = SCHEDULES.iter().find(|s| s.0 == name);
    let found = found.ok_or_else(|| {
        let names = SCHEDULES.map(|s| s.0).join(" or ");
        format!("the schedule {name:?} can't be set; it may be {names}")
    })?;
    Ok(found.1)
}

fn positive(number: &str, parameter: Parameter) -> Result<u32, String> {
    let most = settings::most(parameter);
    let number: Option<u32> = number.parse().ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("{} needs a number from 1 to {most}", parameter.name()))
}

/// Whether a site is of a kind that has such a parameter.
fn has(parameter: Parameter, site: &SiteInfo) -> bool {
    let begins = matches!(site.edge, Edge::Begin | Edge::Encloses);
    begins
        && match parameter {
            Parameter::Threads => site.construct.is_fork(),
            // A region that is a loop at the same time has a schedule.
            Parameter::Chunk | Parameter::Schedule => {
                site.construct == Construct::Loop
                    || (site.construct.is_fork() && site.detail.is_some())
            }
            Parameter::Grainsize | Parameter::NumTasks => site.construct == Construct::Taskloop,
            Parameter::Cutoff => site.construct == Construct::Task,
        }
}

/// What a call can't hand over beside a parameter.
fn instead(parameter: Parameter) -> Option<Parameter> {
    match parameter {
        Parameter::Grainsize => Some(Parameter::NumTasks),
        Parameter::NumTasks => Some(Parameter::Grainsize),
        Parameter::Threads | Parameter::Chunk | Parameter::Schedule | Parameter::Cutoff => None,
    }
}

/// Why a site can't be set anything.
fn unpatched(site: &Site) -> Option<String> {
    match &site.action {
        Some(Action::Call { relayed: false, .. }) => None,
        Some(Action::Call { .. }) => Some("it is called through a register".to_owned()),
        Some(Action::Inline(_)) => Some("it is dealt out without a call".to_owned()),
        None => {
            let reason = site.info.reason.as_deref();
            let reason = reason.filter(|_| site.info.outcome == Outcome::Skipped);
            Some(reason.unwrap_or("it has no call").to_owned())
        }
    }
}

/// A call that is set is one with a probe.
const LEFT_OUT: &str = "--select, --skip or --filter leave it out";

/// Reasons, and at how many places each holds.
fn listed(reasons: &BTreeMap<String, u32>) -> String {
    let all = reasons.iter().map(|(reason, places)| match places {
        1 => reason.clone(),
        _ => format!("{reason} ({places})"),
    });
    all.collect::<Vec<_>>().join("; ")
}

/// What is set for a module's sites, ascending. What stays as it is among them is said with its reasons.
/// `selected`: the sites that get probes; `None`: all that can.
///
/// # Errors
/// Something can be set nowhere among its regions, with the reasons.
pub(crate) fn settings(
    sets: &[Set],
    module: &str,
    sites: &[Site],
    selected: Option<&BTreeSet<u32>>,
) -> Result<Vec<Setting>> {
    let infos: Vec<SiteInfo> = match sets.is_empty() {
        true => return Ok(vec![]),
        false => sites.iter().map(|s| s.info.clone()).collect(),
    };
    let mut all: BTreeMap<(u32, Parameter), u32> = BTreeMap::new();
    for set in sets.iter().filter(|set| set.regions.is_about(module)) {
        let is_meant = meant(&set.regions, module, &infos);
        let chosen = || sites.iter().zip(&is_meant).filter(|(_, meant)| **meant);
        if chosen().next().is_none() {
            bail!(
                "nothing in {module} matches {}; `ompfuse scan` lists what there is",
                set.regions
            );
        }
        for (&parameter, &value) in &set.values {
            let mut reasons = BTreeMap::new();
            let mut is_set = false;
            for (site, _) in chosen().filter(|(site, _)| has(parameter, &site.info)) {
                let is_left_out = selected.is_some_and(|ids| !ids.contains(&site.info.id));
                let left_out = is_left_out.then(|| LEFT_OUT.to_owned());
                match left_out.or_else(|| set.refusal(site, parameter)) {
                    None => {
                        if let Some(other) = instead(parameter) {
                            all.remove(&(site.info.id, other));
                        }
                        all.insert((site.info.id, parameter), value);
                        is_set = true;
                    }
                    Some(reason) => {
                        let called = site.info.entry.as_deref();
                        let called = called.unwrap_or_else(|| site.info.construct.name());
                        *reasons.entry(format!("{called}: {reason}")).or_default() += 1;
                    }
                }
            }
            let what = format!("{} of {} in {module}", parameter.name(), set.regions.text());
            match (is_set, reasons.is_empty()) {
                (false, true) => {
                    bail!("cannot set {what}: no construct there has such a value")
                }
                (false, false) => bail!("cannot set {what}: {}", listed(&reasons)),
                (true, false) if !set.is_implied(parameter) => {
                    note(format_args!(
                        "{what} stays at some places: {}",
                        listed(&reasons)
                    ));
                }
                (true, _) => {}
            }
        }
    }
    let setting = |((site, parameter), value)| Setting {
        site,
        parameter,
        value,
    };
    // Without conflicts: of several values for one site the last one counts.
    Ok(all.into_iter().map(setting).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed() {
        let set: Set = "solve.c:31: chunk=64, threads=2".parse().unwrap();
        assert_eq!(set.regions.text(), "solve.c:31");
        let values: Vec<(Parameter, u32)> = set.values.into_iter().collect();
        assert_eq!(values, [(Parameter::Threads, 2), (Parameter::Chunk, 64)]);
        let set: Set = "solve.c:31: schedule=guided".parse().unwrap();
        let values: Vec<(Parameter, u32)> = set.values.into_iter().collect();
        assert_eq!(values, [(Parameter::Schedule, 3), (Parameter::Chunk, 1)]);
        let set: Set = "mesh::relax:serial".parse().unwrap();
        assert_eq!(set.values[&Parameter::Threads], 1);
        for wrong in [
            "chunk=64",
            "solve.c:31",
            "a: chunk=0",
            "a: chunk=-1",
            "a: chunk=1048577",
            "a: threads=2147483648",
            "a: schedule=static",
            "a: chunk=1, chunk=2",
            "a: grainsize=1, num_tasks=2",
            "a: cutoff=0",
            "a: cutoff=65",
            ": chunk=1",
        ] {
            assert!(wrong.parse::<Set>().is_err(), "{wrong}");
        }
    }
}
