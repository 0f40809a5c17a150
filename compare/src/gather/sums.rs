//! The numbers of a row, in a form that adds up: a rank leaves them, and its job is their sum.

use super::kinds::wait;
use super::{MeasuredRegion, NS, Quantity};
use crate::functions::FunctionSamples;
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::RegionKey;
use ompfuse_format::Construct;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sums of one construct.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Sums {
    /// Why it may be more than one construct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
    pub(super) own_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) work_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) wall_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) executions: u64,
    /// Waits at barriers inside of it, whoever has put them there.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) barriers: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) units: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) units_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) iterations: u64,
    /// The longest unit.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) max_ns: u64,
    /// Per event; `None`: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) counts: Vec<Option<u64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unit_counts: Vec<Option<u64>>,
    /// What of its work is in no count of instructions, by samples; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uncounted: Option<UncountedWork>,
    /// Its samples by function; `None`: there are none, or not of all ranks.
    #[serde(skip)]
    pub(super) functions: Option<FunctionSamples>,
    /// Some of it is not on record.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_part: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) classes: BTreeMap<Quantity, f64>,
    /// Team time of a parallel region in seconds, and its useful part if that is known.
    pub(super) team_s: (f64, Option<f64>),
    /// Work by thread, of the row itself and with all that is inside.
    pub(super) own: Workers,
    pub(super) whole: Workers,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The work of some threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub(super) struct Workers {
    threads: u64,
    ns: u64,
    most_ns: u64,
}

impl From<(u64, u64, u64)> for Workers {
    fn from((threads, ns, most_ns): (u64, u64, u64)) -> Workers {
        Workers {
            threads,
            ns,
            most_ns,
        }
    }
}

impl From<Workers> for (u64, u64, u64) {
    fn from(w: Workers) -> (u64, u64, u64) {
        (w.threads, w.ns, w.most_ns)
    }
}

impl FromIterator<u64> for Workers {
    fn from_iter<I: IntoIterator<Item = u64>>(work: I) -> Workers {
        work.into_iter().fold(Workers::default(), |mut all, ns| {
            all.add(&Workers::from((1, ns, ns)));
            all
        })
    }
}

impl Workers {
    fn add(&mut self, more: &Workers) {
        let Workers {
            threads,
            ns,
            most_ns,
        } = *more;
        self.threads += threads;
        self.ns += ns;
        self.most_ns = self.most_ns.max(most_ns);
    }

    /// `max / mean - 1`; 0 where nobody works.
    fn imbalance(&self) -> f64 {
        match self.ns {
            0 => 0.0,
            ns => self.most_ns as f64 * self.threads as f64 / ns as f64 - 1.0,
        }
    }
}

/// What is not known of a part is not known of the whole.
pub(super) fn add_counts(sums: &mut Vec<Option<u64>>, counts: &[Option<u64>]) {
    if sums.is_empty() {
        *sums = counts.to_vec();
        return;
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.zip(*count).map(|(a, b)| a + b);
    }
}

impl Sums {
    /// Adds another process's.
    pub(super) fn add(&mut self, more: &Sums) {
        let Sums {
            doubt,
            own_ns,
            work_ns,
            wall_ns,
            executions,
            barriers,
            units,
            units_ns,
            iterations,
            max_ns,
            counts,
            unit_counts,
            uncounted,
            functions,
            in_part,
            classes,
            team_s: (total_s, work_s),
            own,
            whole,
        } = more;
        self.doubt = self.doubt.take().or_else(|| doubt.clone());
        self.own_ns += own_ns;
        self.work_ns += work_ns;
        self.wall_ns += wall_ns;
        self.executions += executions;
        self.barriers += barriers;
        self.units += units;
        self.units_ns += units_ns;
        self.iterations += iterations;
        self.max_ns = self.max_ns.max(*max_ns);
        add_counts(&mut self.counts, counts);
        add_counts(&mut self.unit_counts, unit_counts);
        self.uncounted = UncountedWork::sum([self.uncounted.as_ref(), uncounted.as_ref()]);
        self.functions = FunctionSamples::sum([self.functions.as_ref(), functions.as_ref()]);
        self.in_part |= in_part;
        for (quantity, seconds) in classes {
            *self.classes.entry(quantity.clone()).or_default() += seconds;
        }
        self.team_s.1 = match (self.team_s.0 > 0.0, *total_s > 0.0) {
            (true, true) => self.team_s.1.zip(*work_s).map(|(a, b)| a + b),
            (false, true) => *work_s,
            (_, false) => self.team_s.1,
        };
        self.team_s.0 += total_s;
        self.own.add(own);
        self.whole.add(whole);
    }

    /// Without the counts of events that some process hasn't counted.
    pub(super) fn of_known(mut self, is_known: &[bool]) -> Sums {
        for counts in [&mut self.counts, &mut self.unit_counts] {
            for (count, is_known) in counts.iter_mut().zip(is_known) {
                *count = count.filter(|_| *is_known);
            }
        }
        self
    }

    /// As a value, without what only single units tell.
    pub(super) fn finished(
        self,
        key: RegionKey,
        events: &[String],
        parent: Option<usize>,
    ) -> MeasuredRegion {
        MeasuredRegion {
            parent,
            places: None,
            barriers: key.construct.is_fork().then_some(self.barriers),
            time_s: self.own_ns as f64 * NS,
            values: self.values(key.construct, events),
            uncounted: self.uncounted,
            functions: self.functions,
            quantiles: vec![],
            doubt: self.doubt,
            key,
        }
    }

    fn values(&self, construct: Construct, events: &[String]) -> BTreeMap<Quantity, f64> {
        let mut values = BTreeMap::new();
        let mut put = |quantity, value: f64| values.insert(quantity, value);
        if wait(construct).is_none() {
            put(Quantity::Time, self.own_ns as f64 * NS);
            put(Quantity::Work, self.work_ns as f64 * NS);
        }
        if construct.is_fork() {
            put(Quantity::Wall, self.wall_ns as f64 * NS);
        }
        for (quantity, &seconds) in &self.classes {
            put(quantity.clone(), seconds);
        }
        if let (total_s, Some(work_s)) = self.team_s
            && total_s > 0.0
        {
            put(Quantity::ParallelEfficiency, work_s / total_s);
        }
        // Where the construct itself has no record, its units stand for it.
        let executions = match self.executions {
            0 => self.units,
            n => n,
        };
        if executions > 0 && !self.in_part {
            put(Quantity::Executions, executions as f64);
        }
        let is_shared = construct == Construct::Parallel || construct.is_divided();
        if is_shared && self.work_ns > 0 && self.own.threads > 1 {
            put(Quantity::Imbalance, self.own.imbalance());
            put(Quantity::LoadBalance, 1.0 / (1.0 + self.whole.imbalance()));
        }
        if self.units > 0 && !self.in_part {
            put(Quantity::Units, self.units as f64);
            put(Quantity::MaxUnit, self.max_ns as f64 * NS);
            put(
                Quantity::MeanUnit,
                self.units_ns as f64 * NS / self.units as f64,
            );
        }
        if self.iterations > 0 && !self.in_part {
            put(Quantity::Iterations, self.iterations as f64);
        }
        for (at, event) in events.iter().enumerate() {
            if let Some(count) = self.counts.get(at).copied().flatten() {
                put(Quantity::Event(event.clone()), count as f64);
            }
            let of_units = self.unit_counts.get(at).copied().flatten();
            if let (Some(count), 1..) = (of_units, self.units) {
                let each = count as f64 / self.units as f64;
                put(Quantity::EventPerUnit(event.clone()), each);
            }
        }
        values
    }
}
