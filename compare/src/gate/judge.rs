//! Judging one expression.

mod places;
mod uncounted;

use super::outcome::{Doubt, Hit, Problem, Verdict};
use super::place::{Place, Values};
use super::{Comparison, Gate, Subject, select};
use crate::diff::{Diff, Lone};
use crate::side::{Quantity, Side, SideRegion};
use crate::statistics::{Compared, Noisy, TESTED_SHARE, difference, is_retried};
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::student::Quantiles;
use std::collections::HashMap;

/// Level of the test whether something changed at all.
const LEVEL: f64 = 0.01;

pub(super) struct Judge<'d> {
    diff: &'d Diff,
    a: &'d Side,
    b: &'d Side,
    regions: [HashMap<&'d RegionKey, &'d SideRegion>; 2],
    strict: bool,
    quantiles: Quantiles,
}

/// What is told of a place.
enum Judged {
    Hit(Hit),
    Doubt(Doubt),
}

impl<'d> Judge<'d> {
    pub(super) fn new(diff: &'d Diff, a: &'d Side, b: &'d Side, strict: bool) -> Judge<'d> {
        let by_key = |side: &'d Side| side.regions.iter().map(|r| (&r.key, r)).collect();
        Judge {
            diff,
            a,
            b,
            regions: [by_key(a), by_key(b)],
            strict,
            quantiles: Quantiles::default(),
        }
    }

    pub(super) fn verdict(&mut self, gate: &Gate) -> Result<Verdict, Problem> {
        for side in [self.a, self.b] {
            if !side.origin.damage.is_empty() {
                return Err(Problem::Damaged {
                    side: side.origin.name.clone(),
                    what: side.origin.damage.clone(),
                });
            }
        }
        let quantity = match &gate.subject {
            Subject::NewRegions => {
                let hits = self.new_regions(gate)?;
                return Ok(Verdict::of(hits, vec![]));
            }
            Subject::Change(quantity) | Subject::Value(quantity) => quantity,
        };
        let (places, mut hidden) = self.hidden(gate, quantity, self.places(gate, quantity)?);
        let (hits, doubts) = match &gate.subject {
            _ if places.is_empty() && !hidden.is_empty() => (vec![], vec![]),
            Subject::Value(_) => (self.by_value(gate, quantity, &places)?, vec![]),
            _ => self.by_change(gate, quantity, &places)?,
        };
        hidden.extend(doubts);
        // What holds, holds with more regions, too.
        if hits.is_empty() {
            self.none_is_gone(gate)?;
        }
        Ok(Verdict::of(hits, hidden))
    }

    /// An error if a region with much time is gone that the expression is about, or that may have lost its probe.
    fn none_is_gone(&self, gate: &Gate) -> Result<(), Problem> {
        let gone = self.diff.only_a.iter().filter(|l| l.share >= TESTED_SHARE);
        for lone in gone {
            if lone.may_be_unseen {
                return Err(Problem::LostProbe {
                    region: Box::new(lone.key.clone()),
                    share: lone.share,
                });
            }
            let selector = gate.selector.as_ref();
            if let Some(selector) = selector.filter(|s| select::matches(s, &lone.key)) {
                return Err(Problem::NoPartner {
                    selector: selector.text().to_owned(),
                    side: self.a.origin.name.clone(),
                    region: Box::new(lone.key.clone()),
                });
            }
        }
        Ok(())
    }

    fn new_regions(&self, gate: &Gate) -> Result<Vec<Hit>, Problem> {
        let (unsure, new): (Vec<&Lone>, Vec<&Lone>) =
            self.diff.only_b.iter().partition(|lone| !lone.is_certain());
        let holds = |n: usize| gate.comparison.holds(n as f64, gate.limit);
        match (holds(new.len()), holds(new.len() + unsure.len())) {
            (true, true) => {
                let hit = |lone: &&Lone| Hit {
                    region: Some(lone.key.clone()),
                    quantity: None,
                    a: None,
                    b: Some(new.len() as f64),
                    change: None,
                    p: None,
                };
                let mut hits: Vec<Hit> = new.iter().map(hit).collect();
                if hits.is_empty() {
                    hits.push(Hit {
                        region: None,
                        quantity: None,
                        a: None,
                        b: Some(0.0),
                        change: None,
                        p: None,
                    });
                }
                Ok(hits)
            }
            (false, false) => self.none_is_gone(gate).map(|()| vec![]),
            _ => Err(Problem::MayBeOld {
                region: Box::new(unsure[0].key.clone()),
                may_be_other: unsure[0].may_be_other,
            }),
        }
    }

    fn not_measured(&self, side: &Side, quantity: &Quantity, place: Option<&Place<'_>>) -> Problem {
        Problem::NotMeasured {
            side: side.origin.name.clone(),
            quantity: quantity.clone(),
            region: place.and_then(|p| p.region.cloned().map(Box::new)),
            events: side.origin.events.keys().cloned().collect(),
        }
    }

    fn by_value(
        &self,
        gate: &Gate,
        quantity: &Quantity,
        places: &[Place<'d>],
    ) -> Result<Vec<Hit>, Problem> {
        let mut hits = vec![];
        let mut is_known = false;
        for place in places {
            let quantity = select::meant(quantity, place.is_whole(), [&place.b, &place.b]);
            let Some(sample) = place.b.get(&quantity) else {
                continue;
            };
            is_known = true;
            let value = sample.typical();
            if gate.comparison.holds(value, gate.limit) {
                hits.push(Hit {
                    region: place.region.cloned(),
                    quantity: Some(quantity),
                    a: None,
                    b: Some(value),
                    change: None,
                    p: None,
                });
            }
        }
        if !is_known {
            return Err(self.not_measured(self.b, quantity, None));
        }
        hits.sort_by(|x, y| y.b.unwrap_or(0.0).total_cmp(&x.b.unwrap_or(0.0)));
        if matches!(gate.comparison, Comparison::Below | Comparison::AtMost) {
            hits.reverse();
        }
        Ok(hits)
    }

    fn by_change(
        &mut self,
        gate: &Gate,
        wanted: &Quantity,
        places: &[Place<'d>],
    ) -> Result<(Vec<Hit>, Vec<Doubt>), Problem> {
        let drafts = self.drafts(gate, wanted, places)?;
        if drafts.is_empty() {
            let has = |values: &Values| {
                let meant = select::meant(wanted, false, [values, values]);
                values.contains_key(&meant)
            };
            let side = if places.iter().any(|p| has(&p.a)) {
                self.b
            } else {
                self.a
            };
            let only = places.first().filter(|_| places.len() == 1);
            return Err(self.not_measured(side, wanted, only));
        }
        let tests = |draft: &Draft| {
            let of_total = matches!(draft.compared, Compared::Noisy(_));
            usize::from(of_total) + usize::from(draft.by_units.is_some())
        };
        let level = LEVEL / drafts.iter().map(tests).sum::<usize>().max(1) as f64;
        let (mut hits, mut doubts) = (vec![], vec![]);
        for draft in drafts {
            match self.judged(gate, draft, level) {
                Some(Judged::Hit(hit)) => hits.push(hit),
                Some(Judged::Doubt(doubt)) => doubts.push(doubt),
                None => {}
            }
        }
        hits.sort_by(|x, y| size(y).abs().total_cmp(&size(x).abs()));
        let visible = |doubt: &Doubt| doubt.could_see.map_or(f64::INFINITY, f64::abs);
        doubts.sort_by(|x, y| visible(y).total_cmp(&visible(x)));
        Ok((hits, doubts))
    }

    /// What was measured on both sides, at each place.
    fn drafts(
        &self,
        gate: &Gate,
        wanted: &Quantity,
        places: &[Place<'d>],
    ) -> Result<Vec<Draft>, Problem> {
        let mut drafts: Vec<Draft> = vec![];
        let mut one_run = None;
        for place in places {
            let quantity = select::meant(wanted, place.is_whole(), [&place.a, &place.b]);
            let (a, b) = match (place.a.get(&quantity), place.b.get(&quantity)) {
                (Some(a), Some(b)) => (a, b),
                (None, None) => continue,
                _ if !place.is_needed => continue,
                (None, _) => return Err(self.not_measured(self.a, &quantity, Some(place))),
                (_, None) => return Err(self.not_measured(self.b, &quantity, Some(place))),
            };
            let compared = place.compared(&quantity, a, b);
            let (mut is_unknown, mut is_noisy) = (false, false);
            match compared {
                // What one run tells of counts may be off by a little: that fails no gate by itself.
                Compared::Unknown if quantity.is_exact() => {
                    let is_told = quantity.is_told_by_one_run(place.is_steady);
                    let [a, b] = [a.typical(), b.typical()];
                    let change = difference(&quantity, Some(a), Some(b)).unwrap_or(f64::INFINITY);
                    let is_beyond = gate.comparison.holds(change, gate.limit);
                    is_unknown = !self.strict && !is_told && is_beyond;
                }
                Compared::Unknown => is_unknown = !self.strict,
                Compared::Noisy(_) => is_noisy = true,
                _ => (),
            }
            if (is_unknown || is_noisy) && !place.is_needed {
                continue;
            }
            if is_unknown {
                let side = if a.runs() < 2 { self.a } else { self.b };
                one_run.get_or_insert_with(|| Problem::OneRun {
                    side: side.origin.name.clone(),
                    quantity: quantity.clone(),
                });
            }
            let typical = match compared {
                Compared::Noisy(noisy) => [noisy.value(0), noisy.value(1)],
                _ => [a.typical(), b.typical()],
            };
            // `!=` means what it says; other limits are for growth that somebody could act on.
            let is_nothing = gate.comparison != Comparison::Differs
                && is_retried(&quantity, typical, &self.a.total);
            let hit = Hit {
                region: place.region.cloned(),
                a: Some(typical[0]),
                b: Some(typical[1]),
                change: match is_nothing {
                    true => Some(0.0),
                    false => difference(&quantity, Some(typical[0]), Some(typical[1])),
                },
                quantity: Some(quantity),
                p: None,
            };
            let is_time = matches!(wanted, Quantity::Time | Quantity::Work);
            let by_units = (is_time && is_noisy).then(|| place.by_units()).flatten();
            drafts.push(Draft {
                hit,
                compared,
                by_units,
            });
        }
        one_run.map_or(Ok(drafts), Err)
    }

    /// Whether a change is beyond the limit, or may be; `None`: it isn't. `level`: of each test.
    fn judged(&mut self, gate: &Gate, draft: Draft, level: f64) -> Option<Judged> {
        let Draft {
            mut hit,
            compared,
            by_units,
        } = draft;
        let is_beyond = gate.comparison.holds(size(&hit), gate.limit);
        if let Compared::Noisy(noisy) = compared {
            hit.p = Some(noisy.p());
            let is_known = self.strict || (is_beyond && self.is_certain(gate, &noisy, level));
            if !is_known {
                // A few instructions more are no change, so they are no doubt.
                let doubt = self.doubt(gate, &hit, &noisy, level).filter(|d| {
                    let size = d.could_see.map(|share| share.abs() * noisy.value(0));
                    !size.is_some_and(|s| is_retried(&d.quantity, [0.0, s], &self.a.total))
                })?;
                let units = by_units.filter(|(hit, noisy)| {
                    let is_beyond = gate.comparison.holds(size(hit), gate.limit);
                    is_beyond && self.is_certain(gate, noisy, level)
                });
                return Some(match units {
                    Some((hit, _)) => Judged::Hit(hit),
                    None => Judged::Doubt(doubt),
                });
            }
        }
        is_beyond.then_some(Judged::Hit(hit))
    }

    /// Why nothing is known of something that is not certain; `None` if it is known not to be beyond the limit.
    fn doubt(&mut self, gate: &Gate, hit: &Hit, noisy: &Noisy, level: f64) -> Option<Doubt> {
        let limit = gate.limit;
        let interval = noisy.interval(1.0 - level, &mut self.quantiles);
        // A change beyond the limit may be there, and one as large as the limit would not be seen.
        let (may_be, direction) = match gate.comparison {
            Comparison::Above | Comparison::AtLeast => {
                (interval.is_none_or(|i| i.high > limit), 1.0)
            }
            Comparison::Below | Comparison::AtMost => {
                (interval.is_none_or(|i| i.low < limit), -1.0)
            }
            Comparison::Differs => (true, 1.0),
        };
        let could_see = noisy.visible(direction, level, &mut self.quantiles);
        // The test is whether there is a change. Where the limit lies on the other side of none, the interval alone tells.
        let is_change = direction * limit >= 0.0;
        let is_seen = could_see.is_some_and(|visible| visible <= limit.abs());
        if !may_be || (is_change && is_seen) {
            return None;
        }
        let runs_needed = (is_change && limit != 0.0)
            .then(|| noisy.runs_to_see(limit, level, &mut self.quantiles))
            .flatten();
        Some(Doubt {
            region: hit.region.clone(),
            quantity: hit.quantity.clone()?,
            change: hit.change,
            could_see: could_see.map(|visible| direction * visible),
            runs_needed,
            uncounted: None,
        })
    }

    /// Whether there is a change in the direction of the comparison, at a level.
    fn is_certain(&mut self, gate: &Gate, noisy: &Noisy, level: f64) -> bool {
        let is_growth = match gate.comparison {
            Comparison::Above | Comparison::AtLeast => true,
            Comparison::Below | Comparison::AtMost => false,
            Comparison::Differs => return noisy.p() <= level,
        };
        // Where the limit lies on the other side of no change (`time>-5%`: it must get faster), it is the limit that counts.
        let is_beyond = if is_growth {
            gate.limit < 0.0
        } else {
            gate.limit > 0.0
        };
        if !is_beyond {
            return noisy.p() <= level;
        }
        let interval = noisy.interval(1.0 - level, &mut self.quantiles);
        interval.is_some_and(|i| match is_growth {
            true => i.low > gate.limit,
            false => i.high < gate.limit,
        })
    }
}

/// A place's change, before it is judged.
struct Draft {
    hit: Hit,
    compared: Compared,
    by_units: Option<(Hit, Noisy)>,
}

/// A hit's change; from 0 to anything it is without bounds.
fn size(hit: &Hit) -> f64 {
    let growth = || match (hit.a, hit.b) {
        (Some(a), Some(b)) if b > a => f64::INFINITY,
        (Some(a), Some(b)) if b < a => f64::NEG_INFINITY,
        _ => 0.0,
    };
    hit.change.unwrap_or_else(growth)
}
