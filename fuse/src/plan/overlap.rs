//! Event sets that overlap.

use super::plan_lgl;

/// The events that can be counted at all, each once.
fn countable(events: &[String], slots: usize, compatible: impl Fn(&[&str]) -> bool) -> Vec<&str> {
    let mut list: Vec<&str> = vec![];
    for event in events {
        if slots > 0 && !list.contains(&event.as_str()) && compatible(&[event]) {
            list.push(event);
        }
    }
    list
}

/// Whether a set has room for one more event.
fn fits(set: &[&str], event: &str, slots: usize, compatible: impl Fn(&[&str]) -> bool) -> bool {
    let mut wanted = set.to_vec();
    wanted.push(event);
    set.len() < slots && compatible(&wanted)
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
    let mut left = countable(events, slots, &compatible);
    let fits = |set: &[&str], event: &str| fits(set, event, slots, &compatible);
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

/// What two events with this correlation tell about each other (the mutual information of normal distributions, in nats).
fn shared(correlation: f64) -> f64 {
    -0.5 * (1.0 - correlation.powi(2)).max(1e-6).ln()
}

/// The set that tells most about all events of `left`, which it is taken from. `fits`: whether a set has room for one more event.
fn first_set<'e>(
    left: &mut Vec<&'e str>,
    open: impl Fn(&str) -> f64,
    strength: impl Fn(&str, &str) -> f64,
    fits: impl Fn(&[&str], &str) -> bool,
) -> Vec<&'e str> {
    let all = left.clone();
    let mut first: Vec<&str> = vec![];
    // What is told about every event so far.
    let mut told = vec![0.0f64; all.len()];
    loop {
        let gain = |candidate: &str| -> f64 {
            all.iter()
                .zip(&told)
                .map(|(e, t)| open(e) * (strength(candidate, e) - t).max(0.0))
                .sum()
        };
        let candidates = left.iter().copied().filter(|e| fits(&first, e));
        let best = candidates
            .map(|e| (gain(e), e))
            .reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some((_, event)) = best else { break };
        for (e, t) in all.iter().zip(&mut told) {
            *t = t.max(strength(event, e));
        }
        first.push(event);
        left.retain(|e| *e != event);
    }
    first
}

/// An event of which labels leave less than this share of the variance open counts as fixed by them.
const FIXED: f64 = 1e-4;

/// Event sets for the joint strategy: the first set holds those events that tell most about what labels leave open of all
/// others, and every further set counts new events together with some of the first set's, which are those that tell most
/// about the new ones. So what XUs are matched by was always counted in the first run itself, and errors don't add up from run
/// to run. Events that labels fix are counted in sets of their own, beside nothing that could say more of them.
///
/// A set's share of overlap is `overlap` of its slots, at least one; the sets take fewer runs than those of [`plan_bc`]. An
/// event that can't be counted together with any of the first set is left out. `open`: what labels don't fix of an event, from
/// 0 to 1; other arguments as for [`plan_bc`].
pub fn plan_joint(
    events: &[String],
    slots: usize,
    overlap: usize,
    compatible: impl Fn(&[&str]) -> bool,
    correlation: impl Fn(&str, &str) -> f64,
    open: impl Fn(&str) -> f64,
) -> Vec<Vec<String>> {
    let mut left = countable(events, slots, &compatible);
    let fits = |set: &[&str], event: &str| fits(set, event, slots, &compatible);
    let strength = |a: &str, b: &str| {
        if a == b { 1.0 } else { correlation(a, b).abs() }
    };
    let first = first_set(&mut left, &open, strength, fits);
    let mut sets = vec![first.clone()];
    let overlap = overlap.clamp(1, slots.saturating_sub(1).max(1));
    let fixed: Vec<String> = left
        .iter()
        .filter(|e| open(e) < FIXED)
        .map(|&e| e.to_owned())
        .collect();
    left.retain(|e| open(e) >= FIXED);
    while !left.is_empty() {
        // The event that the first set tells most about begins, with what tells it.
        let best = left
            .iter()
            .flat_map(|new| first.iter().map(move |old| (*new, *old)))
            .filter(|(new, old)| fits(&[old], new))
            .map(|(new, old)| (strength(new, old), new, old))
            .reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some((_, new, old)) = best else { break };
        let (mut set, mut fresh) = (vec![old, new], vec![new]);
        left.retain(|e| *e != new);
        while set.len() < slots {
            let olds = set.len() - fresh.len();
            // Something new, as long as there is room for the overlap after it.
            let leaves_room = |e: &str| {
                let mut wanted = set.clone();
                wanted.push(e);
                let mut olds = olds;
                for old in &first {
                    if olds < overlap && !wanted.contains(old) && fits(&wanted, old) {
                        wanted.push(old);
                        olds += 1;
                    }
                }
                olds >= overlap.min(first.len())
            };
            let wants_new = left.iter().any(|e| fits(&set, e) && leaves_room(e));
            let pool = if wants_new { &left } else { &first };
            // The overlap last, when it is known what it has to tell.
            let score = |e: &str| -> f64 {
                if wants_new {
                    // What goes together most closely is counted together.
                    set.iter().map(|m| shared(strength(e, m))).sum()
                } else {
                    fresh.iter().map(|f| open(f) * strength(e, f)).sum()
                }
            };
            let best = pool
                .iter()
                .copied()
                .filter(|e| !set.contains(e) && fits(&set, e))
                .map(|e| (score(e), e))
                .reduce(|a, b| if b.0 > a.0 { b } else { a });
            let Some((_, event)) = best else { break };
            set.push(event);
            if wants_new {
                fresh.push(event);
                left.retain(|e| *e != event);
            }
        }
        sets.push(set);
    }
    let sets = sets.iter().filter(|set| !set.is_empty());
    let owned = |set: &Vec<&str>| set.iter().map(|&e| e.to_owned()).collect();
    sets.map(owned)
        .chain(plan_lgl(&fixed, slots, compatible))
        .collect()
}
