//! An interval whose place is known is added to the sums; execution units in parts when the last of them has come.

use super::{Collector, RECENT, Recent, of_column};
use crate::run::nodes::NodeSet;
use crate::run::whereabouts::{Known, RegionId, Whereabouts};
use crate::summary::stream::in_region::{At, What};
use crate::summary::sums::length;
use crate::summary::sums::{Numbers, is_first_part};
use ompfuse_format::Construct;
use ompfuse_format::record::{Interval, MAX_COUNTERS, Step};
use rustc_hash::FxHashMap;

/// Execution units: most are one interval.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) count: u64,
    pub(super) met: NodeSet,
    /// How many parts those have that have several, by node, as a reading before this one has found.
    pub(super) in_parts: FxHashMap<u64, u32>,
    /// Of some of these, the parts so far.
    pub(super) parts: FxHashMap<u64, Unit>,
    /// Those that this reading has found.
    pub(super) found: FxHashMap<u64, u32>,
}

/// A unit in parts.
#[derive(Debug)]
pub(super) struct Unit {
    /// Parts that are to come.
    left: u32,
    region: RegionId,
    what: What,
    thread: u32,
    begin: i64,
    end: i64,
    ticks: u64,
    extent: u64,
    counts: Vec<Option<u64>>,
}

impl<'a> Collector<'_, '_, 'a> {
    /// Adds up an interval. `parent`: where it happened; `None`: that isn't known.
    pub(super) fn sum_up(&mut self, thread: usize, i: &Interval<'a>, parent: Option<Whereabouts>) {
        let around = parent.unwrap_or(Whereabouts::NOWHERE);
        let site = self.process.sites.of(i.site).site;
        let own = match i.node {
            0 => None,
            node => match self.find(node) {
                Known::Here(is) => Some(is),
                _ => {
                    self.regions.is_disordered = true;
                    return;
                }
            },
        };
        let path = match own {
            // A region's has its context.
            Some(_) if i.construct.is_fork() => self.nodes.path(i.node),
            _ => self.path(i.parent, parent, (i.construct, site, 0)),
        };
        let what = What {
            site,
            construct: i.construct,
            path,
        };
        let (begin, end) = (self.clock.at(i.t0), self.clock.at(i.t1));
        if i.construct.is_xu() {
            let is_labelled = match own {
                Some(own) => own.labelled,
                None => around.labelled && i.construct != Construct::Task,
            };
            return self.unit(thread, i, what, around.region, (begin, end), is_labelled);
        }
        let numbers = Numbers::of(i, length(begin, end), |ticks| self.clock.length(ticks));
        let at = self.add(thread, i, what, around.region, &numbers);
        let region = self.regions.get(around.region);
        // What each thread of a team meets by itself is one instance, and so is the code outside of everything.
        let is_shared = match i.parent {
            0 => i.step == Step::Root,
            // Each call of a function is one, each execution of a loop, and each block, which one thread executes.
            _ => around.is_region && !i.construct.is_code() && !i.construct.is_block(),
        };
        match is_shared && own.is_some_and(|own| own.labelled) {
            // All parts of a region are one: where its join isn't on record, they tell of it.
            _ if i.construct.is_part() && around.is_region => {
                region.sums.count_shared(at, Step::None, 0);
            }
            true => region.sums.count_shared(at, i.step, i.index),
            false => region.sums.count(at),
        }
        let of_thread = thread as u32;
        match i.construct {
            c if c.is_fork() => {
                let id = own.map(|own| own.region);
                (self.regions).join(id, (what, around.region), of_thread, i, (begin, end));
            }
            c if c.is_part() => self.regions.part(around.region, of_thread, begin, end),
            Construct::Program => {
                let header = &self.process.threads[thread].found.file.header;
                // Workers' waits are made of these.
                let is_whole = (i.t0, i.t1) == (header.tsc_start, header.tsc_end);
                self.regions.is_disordered |= !is_whole;
                if self.process.threads[thread].is_root() {
                    self.regions.peak.add(begin, end, 1);
                }
            }
            _ => (self.regions).executed(around.region, of_thread, (begin, end), numbers.own),
        }
    }

    fn unit(
        &mut self,
        thread: usize,
        i: &Interval<'a>,
        what: What,
        around: RegionId,
        (begin, end): (i64, i64),
        is_labelled: bool,
    ) {
        let is_first = is_first_part(&mut self.units.met, i.node);
        self.units.count += u64::from(is_first);
        self.unlabelled += u64::from(is_first && !is_labelled);
        let numbers = Numbers::of(i, length(begin, end), |ticks| self.clock.length(ticks));
        let parts = match self.units.in_parts.is_empty() {
            true => None,
            false => self.units.in_parts.get(&i.node).copied(),
        };
        if let Some(parts) = parts {
            let counts = self.counts(i);
            let unit = self.units.parts.entry(i.node).or_insert_with(|| Unit {
                left: parts,
                region: around,
                what,
                thread: thread as u32,
                begin,
                end,
                ticks: 0,
                extent: numbers.extent,
                counts: vec![Some(0); counts.len()],
            });
            if begin < unit.begin {
                (unit.begin, unit.thread) = (begin, thread as u32);
            }
            unit.end = unit.end.max(end);
            unit.ticks = unit.ticks.wrapping_add(i.own_ticks);
            for (total, count) in unit.counts.iter_mut().zip(counts) {
                *total = total.and_then(|t| Some(t.wrapping_add(count?)));
            }
            unit.left = unit.left.saturating_sub(1);
            if unit.left == 0
                && let Some(unit) = self.units.parts.remove(&i.node)
            {
                self.add_unit(unit);
            }
            return;
        }
        if !is_first {
            *self.units.found.entry(i.node).or_insert(1) += 1;
        }
        let at = self.add(thread, i, what, around, &numbers);
        self.regions.get(around).sums.count(at);
        if i.construct == Construct::Task {
            (self.regions).executed(around, thread as u32, (begin, end), numbers.own);
        }
    }

    /// A unit whose parts have all come.
    fn add_unit(&mut self, unit: Unit) {
        if !self.regions.is_alive(unit.region) {
            self.regions.is_disordered = true;
            return;
        }
        let numbers = Numbers {
            own: self.clock.length(unit.ticks),
            wall: length(unit.begin, unit.end),
            extent: unit.extent,
        };
        let sums = &mut self.regions.get(unit.region).sums;
        let at = sums.find(unit.what, unit.thread, self.columns);
        sums.add(at, &numbers, |column| unit.counts[column]);
        sums.count(at);
        if unit.what.construct == Construct::Task {
            let span = (unit.begin, unit.end);
            (self.regions).executed(unit.region, unit.thread, span, numbers.own);
        }
    }

    /// An interval's counts, by column.
    fn counts(&self, i: &Interval<'_>) -> Vec<Option<u64>> {
        let counts: Vec<u64> = i.counts.iter().collect();
        let counters = self.process.counters(i.set);
        let count = |column: usize| of_column(&counts, counters, column);
        (0..self.columns).map(count).collect()
    }

    /// Adds an interval to the sums of a region.
    #[inline]
    fn add(
        &mut self,
        thread: usize,
        i: &Interval<'_>,
        what: What,
        region: RegionId,
        numbers: &Numbers,
    ) -> At {
        let sums = &mut self.regions.get(region).sums;
        let place = what.site as usize ^ what.construct as usize;
        let recent = &mut self.recent[thread][place % RECENT];
        let at = match recent {
            Some(known) if known.region == region && known.what == what => known.at,
            _ => {
                let at = sums.find(what, thread as u32, self.columns);
                *recent = Some(Recent { region, what, at });
                at
            }
        };
        if self.columns == 0 {
            sums.add(at, numbers, |_| None);
            return at;
        }
        let mut counts = [0; MAX_COUNTERS];
        let len = i.counts.iter().len();
        (counts.iter_mut().zip(i.counts.iter())).for_each(|(to, count)| *to = count);
        let counters = self.process.counters(i.set);
        sums.add(at, numbers, |column| {
            of_column(&counts[..len], counters, column)
        });
        at
    }
}
