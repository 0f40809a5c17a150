//! What there is to tell, by name.

use ompfuse_format::Construct;
use ompfuse_format::site::Source;
use ompfuse_fuse::names::readable;

/// Names and values of a sample's labels.
pub type Labels = Vec<(&'static str, String)>;

/// What a family's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They only grow while a program runs.
    Counter,
    /// They are what is now.
    Gauge,
}

/// A sample's number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// How often, how many.
    Count(u64),
    /// How long.
    Seconds(f64),
}

impl From<u64> for Number {
    fn from(n: u64) -> Number {
        Number::Count(n)
    }
}

impl From<f64> for Number {
    fn from(s: f64) -> Number {
        Number::Seconds(s)
    }
}

/// Samples that tell the same of different things.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) in_seconds: bool,
    pub(super) samples: Vec<(Labels, Number)>,
}

impl Family {
    const fn new(name: &'static str, kind: Kind, help: &'static str) -> Family {
        Family {
            name,
            help,
            kind,
            in_seconds: false,
            samples: Vec::new(),
        }
    }

    const fn seconds(name: &'static str, kind: Kind, help: &'static str) -> Family {
        let mut family = Family::new(name, kind, help);
        family.in_seconds = true;
        family
    }

    /// Adds a sample.
    pub fn add(&mut self, labels: Labels, number: impl Into<Number>) {
        self.samples.push((labels, number.into()));
    }

    /// What is recorded. A gauge that is 1, as everywhere: readers of the older text form don't know OpenMetrics' own type for it.
    pub const fn run() -> Family {
        Family::new(
            "run_info",
            Kind::Gauge,
            "What was recorded: the labels tell.",
        )
    }

    /// Time by region, thread, and what the thread does.
    pub const fn region_time() -> Family {
        Family::seconds(
            "region_time",
            Kind::Counter,
            "Own time of a region on a thread, by what the thread does: work, wait, or runtime library.",
        )
    }

    /// Fork to join.
    pub const fn region_wall() -> Family {
        Family::seconds(
            "region_wall",
            Kind::Counter,
            "Fork to join of a parallel region, all executions.",
        )
    }

    /// Classes of overhead by parallel region.
    pub const fn overhead() -> Family {
        Family::seconds(
            "parallel_overhead",
            Kind::Counter,
            "Overheads of a parallel region by class, all threads together.",
        )
    }

    /// By region, teams counted once.
    pub const fn executions() -> Family {
        Family::new(
            "region_executions",
            Kind::Counter,
            "Executions of a region, by a team together; of a task construct the tasks.",
        )
    }

    /// By region, threads counted each.
    pub const fn entries() -> Family {
        Family::new(
            "region_entries",
            Kind::Counter,
            "How often threads entered a region; of a parallel region how often it was forked.",
        )
    }

    /// Execution units.
    pub const fn units() -> Family {
        Family::new(
            "region_units",
            Kind::Counter,
            "Execution units of a region: ranges, sections, tasks.",
        )
    }

    /// Counts by region.
    pub const fn events() -> Family {
        Family::new(
            "region_events",
            Kind::Counter,
            "Counts of an event in a region itself. One that was not counted is absent.",
        )
    }

    /// Counts by outermost parallel region.
    pub const fn parallel_events() -> Family {
        Family::new(
            "parallel_events",
            Kind::Counter,
            "Counts of an event in an outermost parallel region with all that it encloses, in the parts that were read.",
        )
    }

    /// Since the recording began.
    pub const fn recording() -> Family {
        Family::seconds(
            "recording",
            Kind::Gauge,
            "Time since the recording of a process began.",
        )
    }

    /// Threads.
    pub const fn threads() -> Family {
        Family::new("threads", Kind::Gauge, "Threads that have recorded.")
    }

    /// Records that could not be written.
    pub const fn lost() -> Family {
        Family::new(
            "lost_records",
            Kind::Counter,
            "Records that could not be written: what they tell is missing in all other numbers.",
        )
    }
}

/// The labels that tell which region it is. `module`: its file; `name`: its address, or what another recorder calls it.
pub fn place(
    construct: Option<Construct>,
    source: Option<&Source>,
    function: Option<&str>,
    module: Option<&str>,
    name: &str,
) -> Labels {
    let construct = construct.map_or("region", Construct::name);
    let function = function.map(readable);
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let at = match (source, &function) {
        (Some(source), _) => format!("{}:{}", base(&source.file), source.line),
        (None, Some(function)) => function.clone().into_owned(),
        (None, None) => name.to_owned(),
    };
    let known = [
        ("region", Some(format!("{construct} {at}"))),
        ("construct", Some(construct.to_owned())),
        ("function", function.map(String::from)),
        ("module", module.map(base)),
        ("address", Some(name.to_owned())),
    ];
    let known = known.into_iter();
    known
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}
