//! Event sets: which events are counted together, in how few runs.

use crate::table::EventColumn;

/// Distributes events over the fewest sets that greedy first fit finds: each event, in the order given, goes to the
/// first set with a free slot that stays compatible with it ([Fuse] section 3). One run is needed per set. An event that
/// is not even compatible with itself alone is left out of every set; names given twice count once.
///
/// `slots`: counters that can be used at once. `compatible`: whether these events can be counted together; it is
/// asked with the set's events and the new one last.
pub fn plan_lgl(
    events: &[String],
    slots: usize,
    compatible: impl Fn(&[&str]) -> bool,
) -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<&str>> = Vec::new();
    for event in events {
        if sets.iter().flatten().any(|e| e == event) {
            continue;
        }
        let fits = |set: &mut Vec<&str>| {
            if set.len() >= slots {
                return false;
            }
            let mut wanted = set.clone();
            wanted.push(event);
            compatible(&wanted)
        };
        match sets.iter_mut().position(fits) {
            Some(at) => sets[at].push(event),
            None if slots > 0 && compatible(&[event]) => sets.push(vec![event]),
            None => {}
        }
    }
    sets.iter()
        .map(|set| set.iter().map(|&e| e.to_owned()).collect())
        .collect()
}

/// Overlapping event sets for BC ([Fuse] section 3): the first set is the largest compatible one in the order of
/// `events` (the caller puts data-cache, instruction-cache, branch and cycle events first); each further set counts new
/// events together with events of earlier sets, which are those most correlated with the new ones, about half and half. An
/// event that can't be counted together with any other is left out.
///
/// `slots` and `compatible` as for [`plan_lgl`]. `correlation`: of two events, from a first run; its sign does not matter.
pub fn plan_bc(
    events: &[String],
    slots: usize,
    compatible: impl Fn(&[&str]) -> bool,
    correlation: impl Fn(&str, &str) -> f64,
) -> Vec<Vec<String>> {
    let mut left: Vec<&str> = vec![];
    for event in events {
        if slots > 0 && !left.contains(&event.as_str()) && compatible(&[event]) {
            left.push(event);
        }
    }
    let fits = |set: &[&str], event: &str| {
        let mut wanted = set.to_vec();
        wanted.push(event);
        set.len() < slots && compatible(&wanted)
    };
    let mut sets: Vec<Vec<&str>> = vec![];
    let mut first = vec![];
    left.retain(|event| {
        let taken = fits(&first, event);
        if taken {
            first.push(*event);
        }
        !taken
    });
    let mut known = first.clone();
    sets.push(first);
    let strength = |a: &str, b: &str| correlation(a, b).abs();
    loop {
        // The pair that predicts best begins the set; ties go by the order of the events.
        let candidates = left
            .iter()
            .flat_map(|new| known.iter().map(move |old| (*new, *old)))
            .filter(|(new, old)| fits(&[old], new));
        let Some((new, old)) = candidates.reduce(|best, pair| {
            if strength(pair.0, pair.1) > strength(best.0, best.1) {
                pair
            } else {
                best
            }
        }) else {
            break;
        };
        let (mut set, mut fresh) = (vec![old, new], vec![new]);
        while set.len() < slots {
            // Alternately an event that the new ones depend on, and a new one that depends on the overlap.
            let overlap = set.len() - fresh.len();
            let wants_new = fresh.len() <= overlap;
            let best = |pool: &[&'_ str], against: &[&str]| {
                let score = |e: &str| against.iter().map(|a| strength(e, a)).fold(0.0, f64::max);
                pool.iter()
                    .copied()
                    .filter(|e| !set.contains(e) && fits(&set, e))
                    .map(|e| (score(e), e))
                    .reduce(|a, b| if b.0 > a.0 { b } else { a })
                    .map(|(_, e)| e.to_owned())
            };
            let new = best(&left, &set);
            let old = best(&known, &fresh);
            let (name, is_new) = match (wants_new, new, old) {
                (true, Some(new), _) | (false, Some(new), None) => (new, true),
                (false, _, Some(old)) | (true, None, Some(old)) => (old, false),
                (_, None, None) => break,
            };
            if !is_new && fresh.len() == left.len() && overlap >= slots / 2 {
                break; // nothing new is left to predict
            }
            let pool = if is_new { &left } else { &known };
            let event = pool
                .iter()
                .copied()
                .find(|e| *e == name)
                .expect("chosen from it");
            set.push(event);
            if is_new {
                fresh.push(event);
            }
        }
        left.retain(|e| !fresh.contains(e));
        known.extend(fresh);
        sets.push(set);
    }
    sets.retain(|set| !set.is_empty());
    sets.iter()
        .map(|set| set.iter().map(|&e| e.to_owned()).collect())
        .collect()
}

/// Pearson's correlation coefficient of two events over the XUs that have both counts; 0 where one is constant.
pub fn correlation(a: &EventColumn, b: &EventColumn) -> f64 {
    let rows = || {
        (0..a.values.len().min(b.values.len()))
            .filter_map(|row| Some((a.get(row)? as f64, b.get(row)? as f64)))
    };
    let n = rows().count() as f64;
    let (sum_a, sum_b) = rows().fold((0.0, 0.0), |s, (x, y)| (s.0 + x, s.1 + y));
    let (mean_a, mean_b) = (sum_a / n, sum_b / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in rows() {
        ab += (x - mean_a) * (y - mean_b);
        aa += (x - mean_a).powi(2);
        bb += (y - mean_b).powi(2);
    }
    if aa > 0.0 && bb > 0.0 {
        ab / (aa * bb).sqrt()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(list: &str) -> Vec<String> {
        list.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn first_fit() {
        let sets = plan_lgl(&names("a b c d e a"), 2, |_| true);
        assert_eq!(sets, [names("a b"), names("c d"), names("e")]);
    }

    #[test]
    fn what_excludes_each_other_is_separated() {
        let compatible =
            |set: &[&str]| !(set.contains(&"never") || set.contains(&"a") && set.contains(&"b"));
        let sets = plan_lgl(&names("a b never c"), 3, compatible);
        assert_eq!(sets, [names("a c"), names("b")]);
    }

    #[test]
    fn thirty_three_events_on_five_counters_take_seven_sets() {
        // As in [Fuse] Table 1, where every event is compatible with every other.
        let events: Vec<String> = (0..33).map(|i| format!("e{i}")).collect();
        assert_eq!(plan_lgl(&events, 5, |_| true).len(), 7);
    }

    #[test]
    fn overlap_is_what_predicts_the_new_events() {
        // a0 and b0 go with a and b.
        let correlation = |x: &str, y: &str| if x[..1] == y[..1] { -0.9 } else { 0.1 };
        let sets = plan_bc(&names("a b c a0 b0 c0"), 3, |_| true, correlation);
        assert_eq!(
            sets,
            [names("a b c"), names("a a0 b0"), names("c c0")].to_vec()
        );
    }

    #[test]
    fn correlation_is_pearsons() {
        let column = |values: &[u64]| EventColumn {
            name: String::new(),
            values: values.to_vec(),
            present: None,
        };
        let a = column(&[1, 2, 3, 4]);
        assert!((correlation(&a, &column(&[1, 2, 4, 3])) - 0.8).abs() < 1e-12);
        assert!((correlation(&a, &column(&[9, 7, 5, 3])) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&a, &column(&[5, 5, 5, 5])), 0.0);
        assert_eq!(correlation(&column(&[]), &column(&[])), 0.0);
    }

    proptest! {
        #[test]
        fn bc_sets_cover_everything_in_a_chain(n in 0usize..24, slots in 2usize..6, seed in any::<u64>(), clashes in proptest::collection::vec((0usize..24, 0usize..24), 0..20)) {
            let events: Vec<String> = (0..n).map(|i| i.to_string()).collect();
            let compatible = |set: &[&str]| !clashes.iter().any(|(a, b)| {
                a != b && set.contains(&a.to_string().as_str()) && set.contains(&b.to_string().as_str())
            });
            let correlation = |a: &str, b: &str| {
                let (a, b): (u64, u64) = (a.parse().unwrap(), b.parse().unwrap());
                ((seed ^ (a * b)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64
            };
            let sets = plan_bc(&events, slots, compatible, correlation);
            let mut known: Vec<&String> = vec![];
            for (at, set) in sets.iter().enumerate() {
                let names: Vec<&str> = set.iter().map(String::as_str).collect();
                prop_assert!(set.len() <= slots && compatible(&names));
                prop_assert!(at == 0 || set.iter().any(|e| known.contains(&e)));
                prop_assert!(set.iter().any(|e| !known.contains(&e)));
                known.extend(set);
            }
            if clashes.is_empty() {
                known.sort();
                known.dedup();
                prop_assert_eq!(known.len(), n);
            }
        }

        #[test]
        fn every_event_is_in_one_compatible_set(n in 0usize..30, slots in 1usize..6, clashes in proptest::collection::vec((0usize..30, 0usize..30), 0..40)) {
            let events: Vec<String> = (0..n).map(|i| i.to_string()).collect();
            let compatible = |set: &[&str]| !clashes.iter().any(|(a, b)| {
                a != b && set.contains(&a.to_string().as_str()) && set.contains(&b.to_string().as_str())
            });
            let sets = plan_lgl(&events, slots, compatible);
            let mut all: Vec<_> = sets.concat();
            all.sort();
            let mut expected = events.clone();
            expected.sort();
            prop_assert_eq!(all, expected);
            for set in &sets {
                let set: Vec<&str> = set.iter().map(String::as_str).collect();
                prop_assert!(set.len() <= slots && compatible(&set));
            }
        }
    }
}
