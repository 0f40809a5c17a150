//! What is worth trying without the source, from a run: other values of its calls, and variables of the environment.

mod settings;
mod variables;

use crate::model::{Region, Report, RunInfo};
use ompfuse_format::Construct;
use ompfuse_format::run::Exit;
use ompfuse_fuse::summary::Summary;
use std::collections::BTreeSet;
pub use variables::{Variable, text};

/// Most settings that are tried.
pub const MOST: usize = 8;
/// Smaller losses are none worth telling, as a share of the time.
const LEAST: f64 = 0.02;

/// Something that may make the program faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Other values of calls.
    Setting(Setting),
    /// Variables of the environment, all at once.
    Variables(Vec<Variable>),
}

/// Other values of calls at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Path of the module; `None`: it is not known.
    module: Option<String>,
    /// The place in it, as a selector.
    place: String,
    /// The values, as `--set` takes them.
    values: String,
    /// Only the file tells whether its calls can have them.
    is_doubtful: bool,
}

impl Setting {
    /// The library that it is about; `None`: the program's own file. `is_own`: whether a path is that.
    fn library(&self, is_own: &dyn Fn(&str) -> bool) -> Option<&str> {
        let path = self.module.as_deref().filter(|path| !is_own(path))?;
        Some(name(path))
    }

    /// Whether only the file tells if its calls can have the values.
    pub fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Whether it is about a library.
    pub fn is_of_library(&self, is_own: &dyn Fn(&str) -> bool) -> bool {
        self.library(is_own).is_some()
    }

    /// As `--set` takes it.
    pub fn text(&self, is_own: &dyn Fn(&str) -> bool) -> String {
        let library = self.library(is_own);
        let library = library.map_or(String::new(), |name| format!("lib:{name}:"));
        format!("{library}{}: {}", self.place, self.values)
    }
}

/// What a run asks for: settings of the regions with the most time first, then variables that don't have these values yet.
pub fn proposals(report: &Report, summary: &Summary) -> Vec<Proposal> {
    let settings = settings::proposals(report, summary).into_iter();
    let settings = settings.map(|(_, setting)| Proposal::Setting(setting));
    let variables = variables::proposals(report, summary).into_iter();
    settings.chain(variables.map(Proposal::Variables)).collect()
}

/// The same in words, for a report: what can certainly be tried, where something is lost. `try` runs one program that ends well.
pub fn told(report: &Report, summary: &Summary) -> Vec<String> {
    let ends_well = |run: &RunInfo| run.exit == Some(Exit::Code(0));
    let is_one = report.mpi.is_none() && !report.runs.is_empty();
    if !is_one || !report.runs.iter().all(ends_well) {
        return vec![];
    }
    let is_own = |path: &str| name(path) == name(&report.program);
    let is_told =
        |(region, setting): &(u32, Setting)| !setting.is_doubtful && loses(report, *region);
    let settings = settings::proposals(report, summary).into_iter();
    let settings = settings.filter(is_told).map(|(_, s)| s.text(&is_own));
    let variables = variables::proposals(report, summary).into_iter();
    let variables = variables.map(|all| variables::text(&all));
    settings.take(MOST).chain(variables).collect()
}

/// Whether something worth telling is known to be lost in the parallel region around.
fn loses(report: &Report, region: u32) -> bool {
    let around = forks_around(report, &BTreeSet::from([region]));
    lost_in(report, &around).is_some_and(|lost| lost >= LEAST)
}

/// The parallel regions that these regions are, or are in.
pub fn forks_around(report: &Report, regions: &BTreeSet<u32>) -> BTreeSet<u32> {
    let is_fork = |r: &&Region| r.construct.is_some_and(Construct::is_fork);
    let forks: BTreeSet<u32> = report
        .regions
        .iter()
        .filter(is_fork)
        .map(|r| r.id)
        .collect();
    let paths = &report.call_paths;
    let mut found = BTreeSet::new();
    for path in paths {
        if !path.region.is_some_and(|id| regions.contains(&id)) {
            continue;
        }
        let mut here = Some(path);
        while let Some(path) = here {
            if let Some(id) = path.region.filter(|id| forks.contains(id)) {
                found.insert(id);
                break;
            }
            here = path.parent.and_then(|parent| paths.get(parent as usize));
        }
    }
    found
}

/// The share of the available time in which threads of these parallel regions did no work, whatever the reason. `None`: not known.
pub fn lost_in(report: &Report, regions: &BTreeSet<u32>) -> Option<f64> {
    let its = report
        .overheads
        .iter()
        .filter(|o| regions.contains(&o.region));
    let shares: Option<Vec<f64>> = its.map(|o| Some(o.of_program?.overheads)).collect();
    let sum: f64 = shares.filter(|s| !s.is_empty())?.iter().sum();
    Some(sum.min(1.0))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
