//! Circles in graphs.

use std::collections::{BTreeMap, BTreeSet};

/// By file those that it uses.
pub(crate) type Uses = BTreeMap<String, BTreeSet<String>>;

/// The largest set of files each of which leads to all others.
pub(crate) fn largest_circle(uses: &Uses) -> Vec<String> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|from| (from.as_str(), reached(uses, from)))
        .collect();
    let circle = |from: &str| -> Vec<String> {
        let there = reached[from]
            .iter()
            .filter(|to| reached[**to].contains(from));
        there.map(|to| (*to).to_owned()).collect()
    };
    let circles = uses.keys().map(|from| circle(from));
    let largest = circles.max_by_key(Vec::len).unwrap_or_default();
    match (largest.is_empty(), uses.keys().next()) {
        (true, Some(alone)) => vec![alone.clone()],
        _ => largest,
    }
}

/// What a file leads to, itself only if it lies in a circle.
fn reached<'a>(uses: &'a Uses, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let next = |from: &str| uses.get(from).into_iter().flatten().map(String::as_str);
    let mut open: Vec<&str> = next(from).collect();
    while let Some(to) = open.pop() {
        if reached.insert(to) {
            open.extend(next(to));
        }
    }
    reached
}

/// A circle of these arrows, its first end once more behind the last; `None`: there is none.
pub(crate) fn circle_in(arrows: &BTreeSet<(String, String)>) -> Option<Vec<String>> {
    let mut uses = Uses::new();
    for (from, to) in arrows {
        uses.entry(from.clone()).or_default().insert(to.clone());
        uses.entry(to.clone()).or_default();
    }
    let start = uses
        .keys()
        .find(|at| reached(&uses, at).contains(at.as_str()))?;
    let mut circle = vec![start.clone()];
    let mut at = start;
    loop {
        // The next one that leads back and is new, or the start.
        let back = |to: &&String| *to == start || reached(&uses, to).contains(start.as_str());
        let next = uses[at].iter().filter(back);
        at = (next.clone().find(|to| *to == start))
            .or_else(|| next.clone().find(|to| !circle.contains(to)))
            .or_else(|| next.clone().next())?;
        circle.push(at.clone());
        if at == start || circle.len() > uses.len() {
            return Some(circle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(text: &str) -> BTreeSet<(String, String)> {
        let arrows = text
            .split_whitespace()
            .map(|a| a.split_once('>').expect("an arrow"));
        arrows.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
    }

    #[test]
    fn circles_are_found() {
        assert_eq!(circle_in(&arrows("a>b a>c b>d c>d")), None);
        let circle = circle_in(&arrows("a>b b>c c>d d>b")).expect("a circle");
        assert_eq!(circle, ["b", "c", "d", "b"]);
        let mut uses = Uses::new();
        for (from, to) in arrows("a>b b>c c>d d>b e>f f>e") {
            uses.entry(to.clone()).or_default();
            uses.entry(from).or_default().insert(to);
        }
        assert_eq!(largest_circle(&uses), ["b", "c", "d"]);
    }
}
