//! What was found in several processes, or of several copies of one place of the source, added up.

use super::result::{
    Candidate, Idle, LoopAnalysis, NoTask, RegionAnalysis, Turns, WaitedFor, Waiting,
};

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
            match self.path.iter_mut().find(|p| p.site == more.site) {
                Some(known) => {
                    known.ns += more.ns;
                    known.units += more.units;
                }
                None => self.path.push(more),
            }
        }
        self.path.sort_by_key(|p| (std::cmp::Reverse(p.ns), p.site));
        self.modelled_ns += modelled_ns;
        self.assumes_equal |= assumes_equal;
        self.by_number |= by_number;
        let is_more = |h: &super::Held| self.held.is_none_or(|known| known.ns < h.ns);
        self.held = held.filter(is_more).or(self.held);
        waiting.into_iter().for_each(|w| self.wait(w));
        self.waiting.sort_by_key(|w| std::cmp::Reverse(w.ns));
        idle.into_iter().for_each(|i| self.idle(i));
        self.idle.sort_by_key(|i| std::cmp::Reverse(i.ns));
        for more in turns {
            match self.turns.iter_mut().find(|t| t.site == more.site) {
                Some(known) => {
                    known.of_loop = known.of_loop.or(more.of_loop);
                    known.ns += more.ns;
                    known.inside_ns += more.inside_ns;
                }
                None => self.turns.push(more),
            }
        }
        for more in loops {
            match self.loops.iter_mut().find(|l| l.site == more.site) {
                Some(known) => known.absorb(more),
                None => self.loops.push(more),
            }
        }
        self.loops.sort_by_key(|l| std::cmp::Reverse(l.units_ns));
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
        let same = |w: &&mut Waiting| (w.barrier, w.waited_for) == (more.barrier, more.waited_for);
        match self.waiting.iter_mut().find(same) {
            Some(known) => {
                known.ns += more.ns;
                known.times += more.times;
                known.disturbed_ns += more.disturbed_ns;
                known.several |= more.several;
            }
            None => self.waiting.push(more),
        }
    }

    fn idle(&mut self, more: Idle) {
        let same = |i: &&mut Idle| (i.at, i.why) == (more.at, more.why);
        match self.idle.iter_mut().find(same) {
            Some(known) => {
                known.ns += more.ns;
                known.late_ns += more.late_ns;
                known.disturbed_ns += more.disturbed_ns;
                known.times += more.times;
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
                .filter_map(|p| place(p.site).map(|site| super::OnPath { site, ..p }))
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
        self.longest_first_ns += other.longest_first_ns;
        self.executions += other.executions;
        self.with_few_units += other.with_few_units;
        self.units += other.units;
        self.iterations += other.iterations;
        self.units_ns += other.units_ns;
        self.slowest_ns += other.slowest_ns;
        self.longest += other.longest;
        if other.largest.first == self.largest.first {
            self.largest.ns += other.largest.ns;
            self.largest.iterations = self.largest.iterations.max(other.largest.iterations);
        } else if other.largest.ns > self.largest.ns {
            self.largest = other.largest;
        }
        super::loops::add(&mut self.counts, other.counts);
        // Other processes' loops may have had other chunks: their sums are no longer comparable.
        let same = |c: &Candidate, d: &Candidate| c.schedule == d.schedule;
        let is_same = self.candidates.len() == other.candidates.len()
            && (self.candidates.iter().zip(&other.candidates)).all(|(c, d)| same(c, d));
        match is_same {
            true => {
                for (c, d) in self.candidates.iter_mut().zip(&other.candidates) {
                    c.ns += d.ns;
                    c.assumes_equal |= d.assumes_equal;
                }
            }
            false => self.candidates.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::{Largest, Longest};
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
}
