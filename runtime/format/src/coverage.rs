//! What of a file's constructs is recorded. People wrote constructs; a construct has several sites.

use crate::construct::Construct;
use crate::site::{Outcome, SiteInfo, without_addresses};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// End of the reason why small things have no probe: it would take longer than they do. That is no loss.
const TRIFLE: &str = "; listed only";

/// The constructs of a file, by whether they have a probe. Questions to the runtime (`omp_get_thread_num`) and settings are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Those with a probe.
    pub with_probe: u32,
    /// Those that could have one: of a file that isn't patched, or that were not selected.
    pub patchable: u32,
    /// Those that can't have one, by reason.
    pub without_probe: BTreeMap<String, u32>,
    /// Atomic instructions, fences: a probe would take longer than they do.
    pub trifles: u32,
}

impl Coverage {
    /// Of these sites; `sites[i].id == i`.
    pub fn of(sites: &[impl AsRef<SiteInfo>]) -> Coverage {
        Coverage::of_those(sites, |_| true)
    }

    /// The same of constructs of some kind.
    pub fn of_those(
        sites: &[impl AsRef<SiteInfo>],
        is_wanted: impl Fn(Construct) -> bool,
    ) -> Coverage {
        let mut coverage = Coverage::default();
        let begins = sites.iter().map(AsRef::as_ref);
        for begin in begins.filter(|s| s.region == s.id && is_wanted(s.construct)) {
            match begin.outcome {
                Outcome::Patched => coverage.with_probe += 1,
                Outcome::Patchable => coverage.patchable += 1,
                Outcome::Skipped => {
                    let reason = begin.reason.as_deref().unwrap_or("no reason given");
                    match reason.ends_with(TRIFLE) {
                        true => coverage.trifles += 1,
                        false => {
                            let reason = without_addresses(reason);
                            *coverage.without_probe.entry(reason).or_default() += 1;
                        }
                    }
                }
                Outcome::Service => {}
            }
        }
        coverage
    }

    /// Takes in another file's.
    pub fn add(&mut self, other: &Coverage) {
        let Coverage {
            with_probe,
            patchable,
            without_probe,
            trifles,
        } = other;
        self.with_probe += with_probe;
        self.patchable += patchable;
        self.trifles += trifles;
        for (reason, number) in without_probe {
            *self.without_probe.entry(reason.clone()).or_default() += number;
        }
    }

    /// Constructs that can't have a probe, whatever the reason.
    pub fn lost(&self) -> u32 {
        self.without_probe.values().sum()
    }

    /// All but what is too small for a probe.
    pub fn constructs(&self) -> u32 {
        self.with_probe + self.patchable + self.lost()
    }

    /// The reasons with their numbers, in a line.
    pub fn reasons(&self) -> String {
        let reasons = self.without_probe.iter();
        let reasons: Vec<String> = reasons.map(|(why, n)| format!("{why} ({n})")).collect();
        reasons.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{Edge, HexAddress, Mechanism};

    #[test]
    fn constructs_are_counted_once_and_questions_never() {
        let site = |id: u32, region: u32, outcome: Outcome, reason: Option<&str>| SiteInfo {
            id,
            address: HexAddress(u64::from(id)),
            function: None,
            construct: match outcome {
                Outcome::Service => Construct::Service,
                _ => Construct::Loop,
            },
            edge: Edge::Begin,
            region,
            entry: None,
            mechanism: Mechanism::CallSite,
            outlined: None,
            source: None,
            frames: None,
            detail: None,
            outcome,
            reason: reason.map(Into::into),
        };
        let sites = [
            site(0, 0, Outcome::Patched, None),
            site(1, 0, Outcome::Patched, None),
            site(2, 2, Outcome::Service, None),
            site(3, 3, Outcome::Skipped, Some("no room at 0x12")),
            site(4, 4, Outcome::Skipped, Some("no room at 0x34")),
            site(5, 5, Outcome::Skipped, Some("too small; listed only")),
            site(6, 6, Outcome::Patchable, None),
        ];
        let coverage = Coverage::of(&sites);
        assert_eq!((coverage.with_probe, coverage.patchable), (1, 1));
        assert_eq!((coverage.lost(), coverage.trifles), (2, 1));
        assert_eq!(coverage.constructs(), 4);
        assert_eq!(coverage.reasons(), "no room (2)");
        let none = Coverage::of_those(&sites, |c| c == Construct::Task);
        assert_eq!(none, Coverage::default());
    }
}
