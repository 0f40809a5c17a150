//! What was found in several processes, or of several copies of one place of the source, added up.

use super::result::{
    Candidate, Idle, Largest, LoopAnalysis, NoTask, OnPath, RegionAnalysis, Turns, WaitedFor,
    Waiting,
};
use std::cmp::Reverse;

impl RegionAnalysis {
    /// Adds another one, of the same place.
    pub fn absorb(&mut self, other: RegionAnalysis) {
        let RegionAnalysis {
            site,
            executions,
            wall_ns,
            team,
            work_ns,
            span_ns,
            span_equal_ns,
            span_deferred_ns,
            lower_bound,
            predicted_ns,
            predicted_between_ns,
            path,
            modelled_ns,
            assumes_equal,
            by_number,
            held,
            waiting,
            idle,
            turns,
            loops,
            dependent,
            task_count,
            tasks_ns,
            creating_ns,
            each_ns,
        } = other;
        self.site = site;
        self.predict(executions, predicted_ns, predicted_between_ns);
        self.executions += executions;
        self.wall_ns += wall_ns;
        self.team = self.team.max(team);
        self.work_ns += work_ns;
        self.span_ns += span_ns;
        self.span_equal_ns += span_equal_ns;
        self.span_deferred_ns += span_deferred_ns;
        self.lower_bound.extend(lower_bound);
        self.lower_bound.sort_unstable();
        self.lower_bound.dedup();
        for more in path {
            let OnPath { site, ns, units } = more;
            match self.path.iter_mut().find(|p| p.site == site) {
                Some(known) => {
                    known.ns += ns;
                    known.units += units;
                }
                None => self.path.push(more),
            }
        }
        self.path.sort_by_key(|p| (Reverse(p.ns), p.site));
        self.modelled_ns += modelled_ns;
        self.assumes_equal |= assumes_equal;
        self.by_number |= by_number;
        // Of equal ones that at the first place.
        let order = |h: &super::Held| (h.ns, Reverse(h.site));
        self.held = self.held.into_iter().chain(held).max_by_key(order);
        waiting.into_iter().for_each(|w| self.wait(w));
        let order = |w: &Waiting| (Reverse(w.ns), w.barrier, w.waited_for);
        self.waiting.sort_by_key(order);
        idle.into_iter().for_each(|i| self.idle(i));
        self.idle.sort_by_key(|i| (Reverse(i.ns), i.at, i.why));
        for more in turns {
            let Turns {
                site,
                of_loop,
                ns,
                inside_ns,
            } = more;
            match self.turns.iter_mut().find(|t| t.site == site) {
                Some(known) => {
                    known.of_loop = least(known.of_loop, of_loop);
                    known.ns += ns;
                    known.inside_ns += inside_ns;
                }
                None => self.turns.push(more),
            }
        }
        self.turns.sort_by_key(|t| t.site);
        for more in loops {
            match self.loops.iter_mut().find(|l| l.site == more.site) {
                Some(known) => known.absorb(more),
                None => self.loops.push(more),
            }
        }
        self.loops.sort_by_key(|l| (Reverse(l.units_ns), l.site));
        self.dependent += dependent;
        self.task_count += task_count;
        self.tasks_ns += tasks_ns;
        self.creating_ns += creating_ns;
        self.each_ns += each_ns;
    }

    /// Adds what so many executions are predicted to take. What isn't known of some isn't known of all.
    fn predict(&mut self, executions: u64, likely: Vec<u64>, between: Vec<[u64; 2]>) {
        match (self.executions, executions) {
            (_, 0) => {}
            (0, _) => (self.predicted_ns, self.predicted_between_ns) = (likely, between),
            _ if self.predicted_ns.is_empty() || likely.is_empty() => {
                self.predicted_ns.clear();
                self.predicted_between_ns.clear();
            }
            _ => {
                for (sum, ns) in self.predicted_ns.iter_mut().zip(likely) {
                    *sum += ns;
                }
                for (sum, [low, high]) in self.predicted_between_ns.iter_mut().zip(between) {
                    *sum = [sum[0] + low, sum[1] + high];
                }
            }
        }
    }

    fn wait(&mut self, more: Waiting) {
        let Waiting {
            barrier,
            waited_for,
            ns,
            times,
            disturbed_ns,
            several,
        } = more;
        let same = |w: &&mut Waiting| (w.barrier, w.waited_for) == (barrier, waited_for);
        match self.waiting.iter_mut().find(same) {
            Some(known) => {
                known.ns += ns;
                known.times += times;
                known.disturbed_ns += disturbed_ns;
                known.several |= several;
            }
            None => self.waiting.push(more),
        }
    }

    fn idle(&mut self, more: Idle) {
        let Idle {
            at,
            why,
            ns,
            late_ns,
            disturbed_ns,
            times,
        } = more;
        let same = |i: &&mut Idle| (i.at, i.why) == (at, why);
        match self.idle.iter_mut().find(same) {
            Some(known) => {
                known.ns += ns;
                known.late_ns += late_ns;
                known.disturbed_ns += disturbed_ns;
                known.times += times;
            }
            None => self.idle.push(more),
        }
    }

    /// The same with other positions of its places. What has none there is left out, or not known.
    pub fn placed(self, place: impl Fn(u32) -> Option<u32>) -> RegionAnalysis {
        let mut all = RegionAnalysis::default();
        let at = |site: Option<u32>| site.and_then(&place);
        all.absorb(RegionAnalysis {
            site: at(self.site),
            path: (self.path.into_iter())
                .filter_map(|p| place(p.site).map(|site| OnPath { site, ..p }))
                .collect(),
            held: (self.held).and_then(|h| {
                Some(super::Held {
                    site: place(h.site)?,
                    ..h
                })
            }),
            waiting: (self.waiting.into_iter())
                .map(|w| Waiting {
                    barrier: at(w.barrier),
                    waited_for: w.waited_for.placed(&place).unwrap_or(WaitedFor::Runtime),
                    ..w
                })
                .collect(),
            idle: (self.idle.into_iter())
                .filter_map(|i| {
                    Some(Idle {
                        at: at(i.at),
                        why: i.why.placed(&place)?,
                        ..i
                    })
                })
                .collect(),
            turns: (self.turns.into_iter())
                .filter_map(|t| {
                    let of_loop = at(t.of_loop);
                    place(t.site).map(|site| Turns { site, of_loop, ..t })
                })
                .collect(),
            loops: (self.loops.into_iter())
                .filter_map(|l| place(l.site).map(|site| LoopAnalysis { site, ..l }))
                .collect(),
            ..self
        });
        all
    }
}

impl WaitedFor {
    /// The same with another position of its place; `None`: it has none there.
    pub(super) fn placed(self, place: impl Fn(u32) -> Option<u32>) -> Option<WaitedFor> {
        let place = |site: u32, of: fn(u32) -> WaitedFor| place(site).map(of);
        match self {
            WaitedFor::Units(s) => place(s, WaitedFor::Units),
            WaitedFor::Block(s) => place(s, WaitedFor::Block),
            WaitedFor::Tasks(s) => place(s, WaitedFor::Tasks),
            WaitedFor::Nested(s) => place(s, WaitedFor::Nested),
            WaitedFor::Entering(s) => place(s, WaitedFor::Entering),
            WaitedFor::Code | WaitedFor::Late | WaitedFor::Runtime => Some(self),
        }
    }
}

impl NoTask {
    /// As [`WaitedFor::placed`].
    pub(super) fn placed(self, place: impl Fn(u32) -> Option<u32>) -> Option<NoTask> {
        let one = |site: u32, of: fn(u32) -> NoTask| place(site).map(of);
        match self {
            NoTask::Untaken(s) => one(s, NoTask::Untaken),
            NoTask::NotItsOwn(s) => one(s, NoTask::NotItsOwn),
            NoTask::Dependent(s) => one(s, NoTask::Dependent),
            NoTask::Excluded(s) => one(s, NoTask::Excluded),
            NoTask::Event(s) => one(s, NoTask::Event),
            NoTask::AtOnce(s) => one(s, NoTask::AtOnce),
            NoTask::InYield(s) => one(s, NoTask::InYield),
            NoTask::Block(s) => one(s, NoTask::Block),
            NoTask::Creating(s) => one(s, NoTask::Creating),
            NoTask::Last(s) => one(s, NoTask::Last),
            NoTask::Code => Some(NoTask::Code),
            NoTask::OneByOne { wait, tasks } => Some(NoTask::OneByOne {
                wait: place(wait)?,
                tasks: place(tasks)?,
            }),
        }
    }
}

impl LoopAnalysis {
    /// Adds another one, of the same place.
    fn absorb(&mut self, other: LoopAnalysis) {
        let LoopAnalysis {
            site: _,
            is_sections,
            executions,
            with_few_units,
            units,
            iterations,
            units_ns,
            slowest_ns,
            longest,
            longest_first_ns,
            largest,
            counts,
            fetch_ns,
            candidates,
        } = other;
        self.is_sections &= is_sections;
        self.executions += executions;
        self.with_few_units += with_few_units;
        self.units += units;
        self.iterations += iterations;
        self.units_ns += units_ns;
        self.slowest_ns += slowest_ns;
        self.longest += longest;
        self.longest_first_ns += longest_first_ns;
        self.largest.absorb(largest);
        super::loops::add(&mut self.counts, counts);
        // What a fetch costs at least.
        self.fetch_ns = least(self.fetch_ns, fetch_ns);
        self.absorb_candidates(&candidates);
    }

    /// Other processes' loops may have had other chunks: their sums are no longer comparable.
    fn absorb_candidates(&mut self, others: &[Candidate]) {
        let is_same = |c: &Candidate, d: &Candidate| c.schedule == d.schedule;
        let both = self.candidates.iter().zip(others);
        if self.candidates.len() != others.len() || !both.clone().all(|(c, d)| is_same(c, d)) {
            self.candidates.clear();
        }
        for (known, more) in self.candidates.iter_mut().zip(others) {
            let Candidate {
                schedule: _,
                ns,
                assumes_equal,
            } = more;
            known.ns += ns;
            known.assumes_equal |= assumes_equal;
        }
    }
}

impl Largest {
    /// That of both. A unit that is the longest of both is it for the time of both.
    fn absorb(&mut self, other: Largest) {
        let Largest {
            first,
            iterations,
            ns,
        } = other;
        if first == self.first {
            self.ns += ns;
            self.iterations = self.iterations.max(iterations);
        } else if (ns, Reverse(first)) > (self.ns, Reverse(self.first)) {
            *self = other;
        }
    }
}

/// The least that is known.
fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::super::result::Longest;
    use super::*;

    /// A region at a site, whose threads wait at the site behind it for units of the loop behind that.
    fn region(site: u32, executions: u64, ns: u64) -> RegionAnalysis {
        let waiting = Waiting {
            barrier: Some(site + 2),
            waited_for: WaitedFor::Units(site + 4),
            ns,
            times: executions,
            disturbed_ns: 0,
            several: false,
        };
        let of_loop = LoopAnalysis {
            site: site + 4,
            executions,
            units_ns: 4 * ns,
            longest: Longest {
                ns,
                iterations: executions,
                counts: [None; 2],
            },
            largest: Largest {
                first: 3,
                iterations: 1,
                ns,
            },
            ..LoopAnalysis::default()
        };
        RegionAnalysis {
            site: Some(site),
            executions,
            predicted_ns: vec![ns],
            predicted_between_ns: vec![[ns, ns]],
            waiting: vec![waiting],
            loops: vec![of_loop],
            ..RegionAnalysis::default()
        }
    }

    #[test]
    fn copies_of_a_place_are_added_up() {
        let mut all = RegionAnalysis::default();
        for copy in [region(0, 1, 100), region(1, 2, 50)] {
            all.absorb(copy.placed(|site| Some(site / 2 * 2)));
        }
        assert_eq!((all.site, all.executions), (Some(0), 3));
        assert_eq!(all.predicted_ns, [150]);
        let [waiting] = all.waiting[..] else {
            panic!("{:?}", all.waiting);
        };
        assert_eq!(
            (waiting.barrier, waiting.waited_for),
            (Some(2), WaitedFor::Units(4))
        );
        assert_eq!((waiting.ns, waiting.times), (150, 3));
        let [of_loop] = &all.loops[..] else {
            panic!("{:?}", all.loops);
        };
        assert_eq!((of_loop.units_ns, of_loop.longest.ns), (600, 150));
        assert_eq!((of_loop.largest.first, of_loop.largest.ns), (3, 150));
    }

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_and_grouping_of_parts_makes_no_difference(
            parts in proptest::collection::vec((0u32..3, 1u64..5, 1u64..1000), 3..7),
            order in Just((0..7usize).collect::<Vec<_>>()).prop_shuffle(),
            cut in 1usize..3,
        ) {
            // Of one schedule: others' sums aren't comparable.
            let part = |&(site, executions, ns): &(u32, u64, u64)| RegionAnalysis {
                site: Some(0),
                held: Some(super::super::Held { site, ns }),
                ..region(site, executions, ns).placed(Some)
            };
            let sum = |some: &mut dyn Iterator<Item = RegionAnalysis>| {
                let mut all = RegionAnalysis::default();
                some.for_each(|one| all.absorb(one));
                all
            };
            let in_order = sum(&mut parts.iter().map(part));
            let shuffled = order.iter().filter_map(|&at| parts.get(at));
            prop_assert_eq!(&sum(&mut shuffled.map(part)), &in_order);
            let (some, others) = parts.split_at(cut);
            let groups = [sum(&mut some.iter().map(part)), sum(&mut others.iter().map(part))];
            prop_assert_eq!(&sum(&mut groups.into_iter()), &in_order);
        }
    }
}
