//! `--units`: which units are recorded, and what is kept of them.

use super::window::nanoseconds;
use ompfuse_format::record::sums;
use ompfuse_format::run::{ENV_MIN_DURATION, ENV_SAMPLE, ENV_SUMS, ENV_THROTTLE};

/// All of them, if nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Units {
    /// Sums in place of units, or beside them, as [`ENV_SUMS`] says it.
    sums: Option<u64>,
    /// One in so many.
    every: Option<u64>,
    /// None that is shorter than so many nanoseconds.
    longer: Option<u64>,
    /// As many as may be recorded in this percentage of the time.
    cost: Option<u64>,
}

impl Units {
    /// For clap.
    pub(super) fn parse(text: &str) -> Result<Units, String> {
        const KNOWN: &str = "there are all, sums, every=N, longer=TIME, cost=PERCENT";
        let number = |text: &str, most: u64, what: &str| match text.parse() {
            Ok(n) if (1..=most).contains(&n) => Ok(n),
            _ => Err(format!("{what} needs a number from 1 to {most}")),
        };
        let mut units = Units::default();
        for word in text.split(',') {
            let (place, value) = match word.split_once('=') {
                None if word == "all" => continue,
                None if word == "sums" => (&mut units.sums, sums::INSTEAD),
                // To compare the two in tests.
                None if word == "with-sums" => (&mut units.sums, sums::BESIDE),
                Some(("every", n)) => (&mut units.every, number(n, 1_000_000, "every=")?),
                Some(("longer", time)) => (&mut units.longer, nanoseconds(time)?),
                Some(("cost", n)) => (&mut units.cost, number(n, 100, "cost=")?),
                _ => return Err(KNOWN.to_owned()),
            };
            if place.replace(value).is_some() {
                return Err(format!("{word} is the second of its kind"));
            }
        }
        let is_all = (units.every, units.longer, units.cost) == (None, None, None);
        if units.sums.is_some() && !is_all {
            return Err("sums are of all units: every=, longer= and cost= leave some out".into());
        }
        Ok(units)
    }

    /// Whether sums are kept.
    pub(super) fn has_sums(self) -> bool {
        self.sums.is_some()
    }

    /// Whether short ones are left out.
    pub(super) fn is_by_length(self) -> bool {
        self.longer.is_some()
    }

    /// The share of the time that probes may take.
    pub(super) fn allowed_cost(self) -> Option<f64> {
        self.cost.map(|percent| percent as f64 / 100.0)
    }

    /// The same as variables of the environment.
    pub(super) fn variables(self) -> [(&'static str, Option<u64>); 4] {
        [
            (ENV_SAMPLE, self.every),
            (ENV_THROTTLE, self.cost),
            (ENV_MIN_DURATION, self.longer),
            (ENV_SUMS, self.sums),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined() {
        let both = Units::parse("every=3,longer=1us").unwrap();
        assert_eq!((both.every, both.longer), (Some(3), Some(1000)));
        assert_eq!(Units::parse("all"), Ok(Units::default()));
        assert!(Units::parse("sums").unwrap().has_sums());
        for wrong in [
            "",
            "every",
            "every=0",
            "cost=101",
            "sums,cost=5",
            "every=2,every=3",
        ] {
            assert!(Units::parse(wrong).is_err(), "{wrong}");
        }
    }
}
