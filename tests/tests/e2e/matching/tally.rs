//! Pairs of a comparison held against the truth.

use super::constructs::{Place, Places};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Shares of the regions' time, on the mean of both sides, and numbers of matches.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    /// Comparisons.
    pub(super) programs: usize,
    /// Regions on both sides.
    pub(super) regions: usize,
    /// Their time by what became of them, in shares summed over comparisons.
    pub(super) right: f64,
    pub(super) grouped: f64,
    pub(super) missed: f64,
    pub(super) alone: f64,
    pub(super) doubtful: f64,
    /// Regions by the same.
    pub(super) n_right: usize,
    pub(super) n_grouped: usize,
    pub(super) n_missed: usize,
    pub(super) n_alone: usize,
    pub(super) n_doubtful: usize,
    /// Wrong pairs and groups, in words.
    pub(super) wrong: Vec<String>,
    /// What has a partner in the source and got none, in words.
    pub(super) unmatched: Vec<String>,
    /// Regions of which the truth isn't known, in words; they count for nothing else.
    pub(super) unknown: Vec<String>,
    /// Barriers and `taskwait`: those matched, and those that seem to be added, removed or executed more or less often, in words. All
    /// of these are wrong, as both sides have one source.
    pub(super) n_waits: usize,
    pub(super) waits: Vec<String>,
}

/// Regions' kinds and addresses on one side of a comparison.
pub(super) fn regions(diff: &Value, side: &str) -> BTreeSet<(String, String)> {
    let pairs = diff["pairs"].as_array().expect("a list");
    let lone = diff[format!("only_{side}").as_str()]
        .as_array()
        .expect("a list");
    let keys = pairs
        .iter()
        .flat_map(|p| p[side].as_array().expect("a list"))
        .chain(lone.iter().map(|l| &l["key"]));
    keys.filter(|key| !is_wait(key))
        .flat_map(places_of)
        .collect()
}

/// Whether it is a barrier or a `taskwait`: it has no code behind it that tells the directive.
fn is_wait(key: &Value) -> bool {
    ["barrier", "taskwait"]
        .iter()
        .any(|kind| key["construct"] == *kind)
}

/// A key's kind and addresses.
fn places_of(key: &Value) -> Vec<(String, String)> {
    let kind = key["construct"].as_str().expect("a text");
    let addresses = key["addresses"].as_array().expect("a list");
    let place = |a: &Value| (kind.to_owned(), a.as_str().expect("a text").to_owned());
    addresses.iter().map(place).collect()
}

/// Directives that one compiler is given instead of another's, with `#ifdef`: file, line of gcc's, line of clang's.
const ALTERNATIVES: [(&str, u64, u64); 2] = [("sync.c", 341, 343), ("ordered.c", 217, 221)];

/// The place that stands for its alternatives too.
fn canonical(place: &Place) -> Place {
    let (kind, file, line) = place;
    let is_it = |a: &&(&str, u64, u64)| a.0 == file && a.2 == *line;
    let line = ALTERNATIVES.iter().find(is_it).map_or(*line, |a| a.1);
    (kind.clone(), file.clone(), line)
}

impl Tally {
    /// Adds a comparison. `sides`: the truth of each.
    pub(super) fn add(&mut self, what: &str, diff: &Value, sides: [&Places; 2]) {
        self.programs += 1;
        let mut all: [BTreeSet<Place>; 2] = [BTreeSet::new(), BTreeSet::new()];
        for (side, name) in ["a", "b"].into_iter().enumerate() {
            for (kind, address) in regions(diff, name) {
                match sides[side].get(&kind, &address) {
                    Some(place) => _ = all[side].insert(canonical(place)),
                    None => self
                        .unknown
                        .push(format!("{what}: {name} {kind} {address}")),
                }
            }
        }
        for pair in diff["pairs"].as_array().expect("a list") {
            if is_wait(&pair["a"][0]) {
                self.n_waits += 1;
                let mut changes = pair["changes"].as_array().expect("a list").iter();
                if changes.any(|c| c["finding"] == "changed") {
                    self.waits.push(format!("{what}: {}", pair["a"][0]));
                }
                continue;
            }
            let of = |side: usize, name: &str| -> (usize, BTreeSet<Place>, bool) {
                let keys = pair[name].as_array().expect("a list");
                let places: Vec<Option<&Place>> = (keys.iter().flat_map(places_of))
                    .map(|(kind, address)| sides[side].get(&kind, &address))
                    .collect();
                let is_known = places.iter().all(Option::is_some);
                (
                    keys.len(),
                    places.into_iter().flatten().map(canonical).collect(),
                    is_known,
                )
            };
            let (n_a, a, known_a) = of(0, "a");
            let (n_b, b, known_b) = of(1, "b");
            let share = |n: usize| pair["share"][n].as_f64().expect("a number") / 2.0;
            let time = share(0) + share(1);
            self.regions += n_a + n_b;
            let is_group = pair["is_group"] == true;
            // One region is one construct. Some are compared as a sum, and where gcc tells one line of several they are one row:
            // right if both sides have the same ones.
            let is_group = is_group || (n_a == 1 && n_b == 1 && a.len() > 1);
            let is_right = a == b && (is_group || a.len() == 1);
            if !known_a || !known_b {
                (self.doubtful, self.n_doubtful) =
                    (self.doubtful + time, self.n_doubtful + n_a + n_b);
                continue;
            }
            match (is_right, is_group) {
                (false, _) => self.wrong.push(
                    format!(
                        "{what}: {a:?} with {b:?}, {} {}, group {is_group}",
                        pair["basis"], pair["confidence"]
                    ) + &format!(
                        " {} {}",
                        pair["a"][0]["addresses"], pair["b"][0]["addresses"]
                    ),
                ),
                (true, true) => {
                    (self.grouped, self.n_grouped) =
                        (self.grouped + time, self.n_grouped + n_a + n_b)
                }
                (true, false) => {
                    (self.right, self.n_right) = (self.right + time, self.n_right + n_a + n_b)
                }
            }
        }
        self.add_lone(what, diff, sides, &all);
    }

    /// Adds what is on one side only. `all`: what there is on each.
    fn add_lone(
        &mut self,
        what: &str,
        diff: &Value,
        sides: [&Places; 2],
        all: &[BTreeSet<Place>; 2],
    ) {
        for (side, name) in ["only_a", "only_b"].into_iter().enumerate() {
            for lone in diff[name].as_array().expect("a list") {
                if is_wait(&lone["key"]) {
                    self.waits
                        .push(format!("{what}: only {name} {}", lone["key"]));
                    continue;
                }
                let time = lone["share"].as_f64().expect("a number") / 2.0;
                self.regions += 1;
                let mut places = places_of(&lone["key"]).into_iter();
                let is_known =
                    |(kind, address): &(String, String)| sides[side].get(kind, address).is_some();
                if !places_of(&lone["key"]).iter().all(is_known) {
                    (self.doubtful, self.n_doubtful) = (self.doubtful + time, self.n_doubtful + 1);
                    continue;
                }
                let has_partner = places.find_map(|(kind, address)| {
                    let place = sides[side].get(&kind, &address)?;
                    all[1 - side].contains(&canonical(place)).then_some(place)
                });
                if let Some(place) = has_partner {
                    (self.missed, self.n_missed) = (self.missed + time, self.n_missed + 1);
                    self.unmatched.push(format!(
                        "{what}: {name} {place:?} {}, {:.2}%",
                        lone["key"]["addresses"],
                        100.0 * time
                    ));
                } else {
                    (self.alone, self.n_alone) = (self.alone + time, self.n_alone + 1);
                }
            }
        }
    }

    /// Share of what is in no group and has a partner that is matched right: by time, by number.
    pub(super) fn quality(&self) -> [f64; 2] {
        let wrong = self.wrong_time();
        let share = |right: f64, all: f64| if all > 0.0 { right / all } else { 1.0 };
        let n = |n: usize| n as f64;
        let n_wrong = self.regions
            - self.n_right
            - self.n_grouped
            - self.n_missed
            - self.n_alone
            - self.n_doubtful;
        [
            share(self.right, self.right + self.missed + wrong),
            share(n(self.n_right), n(self.n_right + self.n_missed + n_wrong)),
        ]
    }

    /// Time of wrong pairs.
    fn wrong_time(&self) -> f64 {
        let known = self.right + self.grouped + self.missed + self.alone + self.doubtful;
        (self.programs as f64 - known).max(0.0)
    }
}

impl fmt::Display for Tally {
    /// A row of a Markdown table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.programs.max(1) as f64;
        let percent = |time: f64| format!("{:.1}", 100.0 * time / n);
        let [by_time, by_number] = self.quality();
        write!(
            f,
            "{} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1}",
            self.programs,
            self.regions,
            percent(self.right),
            percent(self.grouped),
            percent(self.missed),
            percent(self.alone),
            percent(self.doubtful),
            self.wrong.len(),
            100.0 * by_time,
            100.0 * by_number
        )
    }
}
