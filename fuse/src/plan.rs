//! Event sets: which events are counted together, in how few runs.

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

    proptest! {
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
