//! Which events are counted together, in how many runs.

use crate::progress::{self, Whole};
use crate::strategy::Strategy;
use crate::{counters, load};
use anyhow::Result;
use clap::ValueEnum;
use ompfuse_format::event::is_hardware;
use ompfuse_format::record::MAX_COUNTERS;
use ompfuse_fuse::plan::Correlations;
use ompfuse_fuse::{Profile, with_first_again};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

/// Hardware events per set where it can't be found out: what any processor of the last ten years has.
const USUAL_SLOTS: usize = 4;

/// How events are distributed over runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SetArgs {
    /// How the runs are combined; joint and bc need event sets that overlap, so more runs
    ///
    /// The default is lgl. With --from given twice it is joint, and the first event set is counted five
    /// times, so that a typical run can be chosen. If --max-runs allows fewer runs, that set is counted four
    /// times, three times, or once.
    #[arg(long, value_enum, default_value_t = Strategy::Default)]
    pub(crate) strategy: Strategy,
    /// At most this many events in one run (default: as many hardware events as the processor has counters, all software
    /// events)
    #[arg(long, value_name = "N", value_parser = parse_slots)]
    pub(crate) slots: Option<usize>,
    /// At most this many runs
    ///
    /// Repeated event sets are left out first, then the last sets. Events that are left out are named.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: Option<u32>,
    /// Earlier run or profile: shows which events predict others, and how long a run takes (may be given twice)
    ///
    /// A second one with the same events also shows which events depend on the label alone.
    #[arg(long, value_name = "RUN|PROFILE")]
    pub(crate) from: Vec<PathBuf>,
}

/// What is known of the events before they are counted.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) correlations: Correlations,
    /// Mean length of the runs that tell it.
    pub(crate) seconds: Option<f64>,
}

fn parse_slots(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=MAX_COUNTERS) => Ok(n),
        _ => Err(format!("a number from 1 to {MAX_COUNTERS} is needed")),
    }
}

impl SetArgs {
    /// Whether earlier runs or a limit say how many runs there are.
    pub(crate) fn is_limited(&self) -> bool {
        !self.from.is_empty() || self.max_runs.is_some()
    }

    /// The event sets: one run each. More hardware events than this processor can count together are never in one. Software
    /// events are beside the fewest of them: a set that has some is read by the kernel, which costs ten times what the
    /// processor's own counters cost, and the first run's times are the profile's.
    pub(crate) fn plan(&self, events: &[&str]) -> Vec<Vec<String>> {
        let plan =
            |events: &[&str]| ompfuse_fuse::plan_lgl(&owned(events), self.slots(), compatible());
        let (hardware, software): (Vec<&str>, Vec<&str>) =
            events.iter().partition(|e| is_hardware(e));
        let mut sets = plan(&hardware);
        if sets.len() < 2 {
            return plan(events);
        }
        let mut places: Vec<(usize, Reverse<usize>)> = (0..)
            .zip(&sets)
            .map(|(at, set)| (set.len(), Reverse(at)))
            .collect();
        places.sort_unstable();
        let mut rest = Vec::new();
        for event in software {
            let has_room =
                |&&(_, Reverse(at)): &&(usize, Reverse<usize>)| sets[at].len() < self.slots();
            match places.iter().find(has_room) {
                Some(&(_, Reverse(at))) => sets[at].push(event.to_owned()),
                None => rest.push(event),
            }
        }
        sets.extend(plan(&rest));
        sets
    }

    /// What `--from` tells.
    pub(crate) fn known(&self) -> Result<Known> {
        let bar = (!self.from.is_empty()).then(|| progress::whole("reading"));
        let progress = bar.as_ref().map(Whole::progress).unwrap_or_default();
        let each = progress.part(1.0 / self.from.len() as f64);
        let given: Vec<Profile> = self
            .from
            .iter()
            .map(|p| load::profile(p, each))
            .collect::<Result<_>>()?;
        let correlations = match &given[..] {
            [] => Correlations::default(),
            [one] => Correlations::of(&one.xus),
            [one, other, ..] => Correlations::between(&one.xus, &other.xus),
        };
        let runs = given.iter().flat_map(|p| &p.summary.runs);
        let lengths: Vec<f64> = runs.filter_map(|r| r.duration_s).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        Ok(Known {
            correlations,
            seconds: (!lengths.is_empty()).then_some(mean),
        })
    }

    /// The event sets for the strategy.
    pub(crate) fn planned(&self, events: &[&str], known: &Correlations) -> Vec<Vec<String>> {
        match self.strategy {
            Strategy::Default if self.from.len() > 1 => {
                let most = self.max_runs.map_or(usize::MAX, |n| n as usize);
                with_first_again(self.plan_joint(events, known), most)
            }
            Strategy::Joint => self.plan_joint(events, known),
            Strategy::Bc | Strategy::BcUnlabelled => {
                let events = owned(&by_behaviour(events));
                let correlation = |a: &str, b: &str| known.get(a, b);
                ompfuse_fuse::plan_bc(&events, self.slots(), compatible(), correlation)
            }
            Strategy::Default | Strategy::Lgl | Strategy::Ctc | Strategy::Instances => {
                self.plan(events)
            }
        }
    }

    /// Event sets that share events with the first one, for the joint strategy; as for lgl where one set is enough, or a set
    /// is too small to share anything.
    fn plan_joint(&self, events: &[&str], known: &Correlations) -> Vec<Vec<String>> {
        let plain = self.plan(events);
        let hardware = events.iter().filter(|e| is_hardware(e)).count();
        let at_once = match hardware {
            0 => self.slots(),
            _ => self.slots().min(hardware_slots()),
        };
        if plain.len() < 2 || at_once < 2 {
            return plain;
        }
        let events = owned(&by_behaviour(events));
        ompfuse_fuse::plan_joint(
            &events,
            self.slots(),
            at_once / 2,
            compatible(),
            |a, b| known.get(a, b),
            |event| known.open(event),
        )
    }

    /// The sets that may be recorded, and those of the events that are in none of them.
    pub(crate) fn limited(
        &self,
        mut sets: Vec<Vec<String>>,
        events: &[&str],
    ) -> (Vec<Vec<String>>, Vec<String>) {
        sets.truncate(self.max_runs.map_or(usize::MAX, |n| n as usize));
        let is_left_out = |event: &&&str| !sets.iter().flatten().any(|e| e == **event);
        let left_out = events.iter().filter(is_left_out);
        let left_out = left_out.map(|&e| e.to_owned()).collect();
        (sets, left_out)
    }

    /// Why events are in none of so many sets.
    pub(crate) fn why_left_out(&self, sets: usize) -> String {
        match self.max_runs {
            Some(_) => format!("as --max-runs is {sets}"),
            None => format!(
                "as {} shares events between runs and they can be counted together with none (--strategy lgl shares nothing)",
                self.strategy
                    .to_possible_value()
                    .map_or_else(String::new, |v| v.get_name().to_owned())
            ),
        }
    }

    fn slots(&self) -> usize {
        self.slots.unwrap_or(MAX_COUNTERS)
    }
}

/// Data cache, instruction supply, branch and cycle events.
const BEHAVIOUR: &[&str] = &[
    "L1-dcache-load-misses",
    "L1-icache-load-misses",
    "cache-misses",
    "stalled-cycles-frontend",
    "branch-misses",
    "cycles",
    "instructions",
    "sim-l1d-misses",
    "sim-l1i-misses",
    "sim-branch-misses",
    "sim-instructions",
];

/// What tells most of an execution unit's behaviour comes first ([Fuse] section 3).
fn by_behaviour<'e>(events: &[&'e str]) -> Vec<&'e str> {
    let rank = |event: &&str| BEHAVIOUR.iter().position(|b| b == event);
    let mut events = events.to_vec();
    events.sort_by_key(|e| rank(e).unwrap_or(BEHAVIOUR.len()));
    events
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.to_owned()).collect()
}

/// Hardware events that one set can have.
fn hardware_slots() -> usize {
    match counters::hardware_slots() {
        0 => USUAL_SLOTS, // planning for another machine
        here => here,
    }
}

/// Whether events can be counted together on this processor: found by trying, where it has counters.
fn compatible() -> impl Fn(&[&str]) -> bool {
    let has_counters = counters::hardware_slots() > 0;
    let hardware = hardware_slots();
    let tried: RefCell<HashMap<Vec<String>, bool>> = RefCell::default();
    move |set| {
        let mut wanted: Vec<String> = set
            .iter()
            .filter(|e| is_hardware(e))
            .map(|&e| e.to_owned())
            .collect();
        wanted.sort_unstable();
        // Fixed counters take some events beside the others.
        if !has_counters || wanted.len() < 2 {
            return wanted.len() <= hardware;
        }
        let mut tried = tried.borrow_mut();
        *tried
            .entry(wanted)
            .or_insert_with_key(|wanted| counters::count_together(wanted, hardware))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(slots: Option<usize>) -> SetArgs {
        SetArgs {
            strategy: Strategy::Joint,
            slots,
            max_runs: None,
            from: vec![],
        }
    }

    #[test]
    fn sets_share_events_where_they_can() {
        let events = ["task-clock", "page-faults", "minor-faults", "major-faults"];
        let none = &Correlations::default();
        assert_eq!(sets(None).planned(&events, none), sets(None).plan(&events));
        assert_eq!(
            sets(Some(1)).planned(&events, none),
            sets(Some(1)).plan(&events)
        );
        let shared = sets(Some(2)).planned(&events, none);
        assert_eq!(shared.len(), 3);
        assert!(
            shared[1..]
                .iter()
                .all(|s| s.iter().any(|e| shared[0].contains(e)))
        );
        let two = SetArgs {
            max_runs: Some(2),
            ..sets(Some(2))
        };
        let (kept, left_out) = two.limited(shared.clone(), &events);
        assert_eq!((&kept[..], left_out.len()), (&shared[..2], 1));
        assert!(!kept.iter().flatten().any(|e| *e == left_out[0]));
    }

    #[test]
    fn software_events_are_beside_the_fewest_of_hardware() {
        let mut events = vec!["task-clock", "cycles", "page-faults"];
        let one = sets(None).plan(&events);
        assert_eq!(one, [events.clone()]);
        // More than any processor counts at once.
        let hardware = [
            "instructions",
            "branches",
            "branch-misses",
            "cache-misses",
            "cache-references",
        ];
        events.extend(hardware);
        let three = sets(Some(3)).plan(&events);
        let software = |set: &Vec<String>| set.iter().filter(|e| !is_hardware(e)).count();
        let counts: Vec<usize> = three.iter().map(software).collect();
        assert_eq!(counts.iter().sum::<usize>(), 2, "{three:?}");
        assert_eq!(counts[0], 0, "{three:?}");
        assert!(three.iter().all(|set| set.len() <= 3), "{three:?}");
        assert_eq!(three.iter().flatten().count(), events.len(), "{three:?}");
    }

    #[test]
    fn by_default_two_profiles_lead_to_shared_sets_and_a_choice_of_first_runs() {
        let events = ["task-clock", "page-faults", "minor-faults", "major-faults"];
        let none = &Correlations::default();
        let with = |profiles: usize, max_runs| SetArgs {
            strategy: Strategy::Default,
            max_runs,
            from: vec![PathBuf::from("A"); profiles],
            ..sets(Some(2))
        };
        for profiles in [0, 1] {
            let planned = with(profiles, None).planned(&events, none);
            assert_eq!(planned, sets(Some(2)).plan(&events));
        }
        let shared = sets(Some(2)).planned(&events, none);
        let planned = with(2, None).planned(&events, none);
        assert_eq!(planned[..3], shared);
        assert_eq!(planned[3..], vec![shared[0].clone(); 4]);
        for (most, again) in [(9, 4), (6, 3), (5, 2)] {
            let limited = with(2, Some(most)).planned(&events, none);
            assert_eq!(limited, planned[..3 + again]);
        }
        // Two runs of a set don't say which is typical.
        assert_eq!(with(2, Some(4)).planned(&events, none), shared);
        let two = with(2, Some(2));
        let (kept, left_out) = two.limited(two.planned(&events, none), &events);
        assert_eq!((&kept[..], left_out.len()), (&shared[..2], 1));
    }

    #[test]
    fn software_events_share_a_run_and_slots_limit_it() {
        let events = ["task-clock", "page-faults", "minor-faults"];
        assert_eq!(sets(None).plan(&events).len(), 1);
        assert_eq!(
            sets(Some(2)).plan(&events),
            [vec!["task-clock", "page-faults"], vec!["minor-faults"]]
        );
        assert!(
            parse_slots("0").is_err() && parse_slots("17").is_err() && parse_slots("16") == Ok(16)
        );
    }
}
