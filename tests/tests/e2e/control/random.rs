//! Random changes of a program that tells what it has executed: `fixtures/behaviour/changing.c`. Between its rounds it is known
//! what holds, so each unit is on record or not as it must be, with the right set's counts; while it is at work it is
//! known what has held before, and what will.

use super::steady::{COMPILERS, Steady};
use super::{counted, of, round};
use ompfuse_tests::table::{self, Xu};
use std::collections::{BTreeMap, BTreeSet};

/// The event sets that there are; the recording begins with the first.
const SETS: [&[&str]; 3] = [
    &["task-clock"],
    &["page-faults"],
    &["page-faults", "minor-faults"],
];
/// After so many steps some changes are made while the program is at work.
const STEPS: u64 = 5;
const BLOCKS: u64 = 5;
/// Rounds of a step, and of the work meanwhile.
const FEW: u64 = 2;
const MANY: u64 = 60;

/// What holds in a region.
#[derive(Debug, Clone, Copy, Default)]
struct Region {
    off: bool,
    own: Option<usize>,
}

/// What holds.
#[derive(Debug, Clone)]
struct Model {
    /// By address.
    regions: BTreeMap<String, Region>,
    /// Those of the regions that have none of their own, in turn.
    sets: Vec<usize>,
}

impl Model {
    /// What a unit may be counted with; nothing: it is not on record.
    fn expected(&self, region: &str) -> Vec<usize> {
        match self.regions[region] {
            Region { off: true, .. } => vec![],
            Region { own: Some(set), .. } => vec![set],
            Region { own: None, .. } => self.sets.clone(),
        }
    }

    /// Makes a change here and tells how it is asked for.
    fn change(&mut self, random: &mut Random, file: &str) -> Vec<String> {
        let regions: Vec<String> = self.regions.keys().cloned().collect();
        let region = regions[random.below(regions.len())].clone();
        let set = random.below(SETS.len());
        let names = |set: usize| SETS[set].join(",");
        let known = self.regions.get_mut(&region).expect("one of them");
        match random.below(8) {
            0 | 1 => {
                known.off = true;
                vec!["--disable".to_owned(), region]
            }
            2 | 3 => {
                known.off = false;
                vec!["--enable".to_owned(), region]
            }
            4 => {
                self.sets = vec![set];
                vec!["--events".to_owned(), names(set)]
            }
            5 => {
                let own = (random.below(3) > 0).then_some(set);
                known.own = own;
                let list = own.map_or("default".to_owned(), names);
                vec!["--events".into(), list, "--select".into(), region]
            }
            6 => {
                let other = (set + 1) % SETS.len();
                self.sets = vec![set, other];
                let mut words = vec!["--events".to_owned(), names(set)];
                words.extend(["--events".to_owned(), names(other)]);
                words.extend(["--rotate".to_owned(), "2".to_owned()]);
                words
            }
            _ => {
                self.regions
                    .values_mut()
                    .for_each(|r| *r = Region::default());
                let known = self.regions.get_mut(&region).expect("one of them");
                known.own = Some(set);
                let off = &regions[random.below(regions.len())];
                self.regions.get_mut(off).expect("one of them").off = true;
                self.sets = vec![1];
                let lines = format!(
                    "disable {off}\nevents {}\nevents {} on {region}\n",
                    names(1),
                    names(set)
                );
                std::fs::write(file, lines).expect("a file can be written");
                vec!["--reload".to_owned(), file.to_owned()]
            }
        }
    }
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn what_is_on_record_is_what_was_asked_for() {
    for compiler in COMPILERS {
        let Some(program) = Steady::built(compiler, "changing") else {
            continue;
        };
        // The units of every round, where nothing is changed.
        let rounds = BLOCKS * (STEPS * FEW + MANY);
        let mut all = program.record(2, &table::ONE_EVENT, &[]);
        let said = all.ask(&rounds.to_string());
        let (_, all) = program.end(all, 2, &[&rounds.to_string()]);
        as_the_program_says(&said, &all);

        let regions = all
            .iter()
            .map(|x| (x.columns["type"].clone(), Region::default()));
        let mut model = Model {
            regions: regions.collect(),
            sets: vec![0],
        };
        assert!(model.regions.len() >= 6, "{model:?}");
        let file = program.folder.path().join("changes");
        let file = file.to_str().expect("text");
        let mut random = Random(2026);
        let mut dialogue = program.record(2, &table::ONE_EVENT, &[]);
        let mut input = Vec::new();
        // What held in the rounds, and whether something was changed meanwhile.
        let mut held: Vec<Vec<Model>> = Vec::new();
        let ctl = |words: Vec<String>| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            program.ctl(&words);
        };
        for _ in 0..BLOCKS {
            for _ in 0..STEPS {
                ctl(model.change(&mut random, file));
                input.push(FEW.to_string());
                dialogue.ask(&input[input.len() - 1]);
                held.extend((0..FEW).map(|_| vec![model.clone()]));
            }
            input.push(MANY.to_string());
            let mut meanwhile = vec![model.clone()];
            dialogue.tell(&input[input.len() - 1]);
            for _ in 0..2 {
                ctl(model.change(&mut random, file));
                meanwhile.push(model.clone());
            }
            dialogue.hear();
            held.extend((0..MANY).map(|_| meanwhile.clone()));
        }
        let input: Vec<&str> = input.iter().map(String::as_str).collect();
        let (_, xus) = program.end(dialogue, 2, &input);
        assert_eq!(held.len() as u64, rounds);
        for (wanted, found) in by_round(&all, rounds).iter().zip(by_round(&xus, rounds)) {
            check(wanted, &found, &held[round(wanted[0]) as usize - 1]);
        }
    }
}

/// The units of each round.
fn by_round(xus: &[Xu], rounds: u64) -> Vec<Vec<&Xu>> {
    let mut by_round = vec![Vec::new(); rounds as usize];
    for xu in xus {
        by_round[round(xu) as usize - 1].push(xu);
    }
    by_round
}

/// Compares a round's units with those that there are where nothing is changed. `held`: all that has held in it.
fn check(wanted: &[&Xu], found: &[&Xu], held: &[Model]) {
    let by_label: BTreeMap<&str, &Xu> = found.iter().map(|x| (x.label.as_str(), *x)).collect();
    assert_eq!(by_label.len(), found.len(), "every label is there once");
    let labels: BTreeSet<&str> = wanted.iter().map(|x| x.label.as_str()).collect();
    let strange: Vec<_> = by_label.keys().filter(|l| !labels.contains(*l)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    for unit in wanted {
        let region = &unit.columns["type"];
        let expected: Vec<Vec<usize>> = held.iter().map(|m| m.expected(region)).collect();
        let what = || format!("{} of {region}: {held:?}", unit.label);
        match by_label.get(unit.label.as_str()) {
            None => assert!(expected.iter().any(Vec::is_empty), "lost: {}", what()),
            Some(found) => {
                assert!(expected.iter().any(|e| !e.is_empty()), "off: {}", what());
                assert_eq!(&found.columns["type"], region);
                // A region's new setting may meet the old common set for an instant.
                let own = held.iter().filter_map(|m| m.regions[region].own);
                let common = held.iter().flat_map(|m| m.sets.iter().copied());
                let mut possible: Vec<usize> = match held {
                    [one] => one.expected(region),
                    _ => own.chain(common).collect(),
                };
                possible.dedup();
                let names = counted(found);
                let is_set = possible.iter().any(|&set| SETS[set] == names);
                assert!(is_set, "{names:?} counted: {}", what());
                // Another set's counts would be nanoseconds.
                for faults in names.iter().filter(|n| n.ends_with("faults")) {
                    assert!(found.number(faults) < 100, "{found:?}");
                }
            }
        }
    }
}

/// What was recorded where nothing was changed is what the program has counted itself.
fn as_the_program_says(said: &str, xus: &[Xu]) {
    let words: Vec<&str> = said.split(' ').collect();
    let number = |name: &str| -> u64 {
        let at = words.iter().position(|w| *w == name).expect("it is told");
        words[at + 1].parse().expect("a number")
    };
    let is_looped = |x: &&Xu| x.construct == "task" && x.columns["iterations"] != "0";
    let looped: Vec<&Xu> = xus.iter().filter(is_looped).collect();
    let sum = |xus: &[&Xu]| -> u64 { xus.iter().map(|x| x.number("iterations")).sum() };
    let ranges: Vec<&Xu> = of(xus, "range").collect();
    assert_eq!(sum(&ranges), number("fixed") + number("chunked"));
    // clang at -O2 makes one unit of those that a thread executes.
    let sections = of(xus, "section").count() as u64;
    assert!((1..=number("section")).contains(&sections), "{sections}");
    let tasks = of(xus, "task").count() - looped.len();
    assert_eq!(tasks as u64, number("task"));
    assert_eq!(sum(&looped), number("looped"));
}
