//! In which order regions are listed.

use crate::view::html::rows::imbalance;
use crate::words::location;
use ompfuse_account::model::Region;
use std::cmp::Ordering;

/// What the list of regions is sorted by: largest first, places and numbers in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// Own time.
    #[default]
    Time,
    /// The program's code in it.
    Work,
    /// Waiting in it.
    Wait,
    /// The runtime library otherwise.
    Runtime,
    /// Own time with everything inside.
    Inclusive,
    /// Executions by a team.
    Executions,
    /// Execution units.
    Units,
    /// Mean own time of a unit.
    Mean,
    /// Own time of the longest unit.
    Max,
    /// How unevenly threads work.
    Imbalance,
    /// What its probes took of its time.
    Probes,
    /// Source file and line.
    Location,
    /// The number in the report, which follows addresses.
    Number,
}

impl Sort {
    /// All of them, by the names that the command line has.
    pub const ALL: [(&'static str, Sort); 13] = [
        ("time", Sort::Time),
        ("work", Sort::Work),
        ("wait", Sort::Wait),
        ("runtime", Sort::Runtime),
        ("inclusive", Sort::Inclusive),
        ("execs", Sort::Executions),
        ("xus", Sort::Units),
        ("avg", Sort::Mean),
        ("max", Sort::Max),
        ("imbalance", Sort::Imbalance),
        ("probes", Sort::Probes),
        ("location", Sort::Location),
        ("number", Sort::Number),
    ];

    /// Sorts regions; those that are equal in it by time.
    pub(super) fn apply(self, regions: &mut [Region]) {
        regions.sort_by(|a, b| {
            let by_time = b.time_s.total_cmp(&a.time_s).then(a.id.cmp(&b.id));
            self.compare(a, b).then(by_time)
        });
    }

    fn compare(self, a: &Region, b: &Region) -> Ordering {
        match self {
            Sort::Location => place(a).cmp(&place(b)),
            Sort::Number => a.id.cmp(&b.id),
            _ => self.number(b).total_cmp(&self.number(a)),
        }
    }

    /// What is not known comes last.
    fn number(self, region: &Region) -> f64 {
        let known = match self {
            Sort::Time | Sort::Location | Sort::Number => Some(region.time_s),
            Sort::Work => Some(region.work_s),
            Sort::Wait => Some(region.wait_s),
            Sort::Runtime => Some(region.runtime_s),
            Sort::Inclusive => region.inclusive_s,
            Sort::Executions => Some(region.executions as f64),
            Sort::Units => Some(region.xus as f64),
            Sort::Mean => region.xu_mean_s,
            Sort::Max => region.xu_max_s,
            Sort::Imbalance => imbalance(region),
            Sort::Probes => region.probes_share,
        };
        known.unwrap_or(-1.0)
    }
}

fn place(region: &Region) -> (Option<(&str, u32)>, String) {
    let source = region.source.as_ref();
    (source.map(|s| (s.file.as_str(), s.line)), location(region))
}
