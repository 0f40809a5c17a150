//! Matches of parallel regions by who called them.
//!
//! A compiler may inline any function, so a chain of callers has gaps. Two chains agree if one alignment of their names leaves no gap
//! where both have a name: that would be one function in place of another. A chain that agrees with several others tells nothing,
//! unless counts do.

mod chain;

use super::{Quantity, SideRegion, Work, agree, sums_agree};
use crate::diff::{Basis, Confidence};
use chain::Chain;
use ompfuse_format::Construct;
use std::collections::BTreeMap;

/// Pairs of different chains that are looked at; with more of them only equal chains tell.
const MOST_PAIRS: usize = 40_000;

/// Module, kind and chain of regions.
type Key<'a> = (Option<&'a str>, Construct, Chain<'a>);

/// Regions with one key.
type Classes<'a> = BTreeMap<Key<'a>, Vec<usize>>;

/// Pairs what callers tell for itself.
pub(super) fn run(work: &mut Work<'_>) {
    let (mut a, mut b) = classes_of_both(work);
    // Equal chains first, unless counts speak against them: what is left has less to agree with.
    a.retain(|key, list| {
        let told = b.get(key).filter(|other| {
            !work.is_same_input || counts_agree(work, list, other).unwrap_or(!key.2.is_hidden)
        });
        if let Some(other) = told {
            settle(work, list, other, true, key.2.is_hidden);
            b.remove(key);
            return false;
        }
        true
    });
    if let Some(mut rest) = Rest::new(a, b) {
        rest.run(work);
    }
}

/// Compares as a sum what no other sign has told apart, if both sides together do the same. Whether there is any.
pub(super) fn groups(work: &mut Work<'_>) -> bool {
    let before = work.found.len();
    let (mut a, mut b) = classes_of_both(work);
    a.retain(|key, list| {
        let Some(other) = b.get(key) else {
            return true;
        };
        let is_comparable = list.len() == other.len() || list.len() == 1 || other.len() == 1;
        let is_group = is_comparable && sum_up(work, list, other);
        if is_group {
            b.remove(key);
        }
        !is_group
    });
    if let Some(rest) = Rest::new(a, b) {
        rest.copies(work);
    }
    work.found.len() > before
}

/// Makes these one match, if they do the same.
fn sum_up(work: &mut Work<'_>, a: &[usize], b: &[usize]) -> bool {
    let is_same = work.is_same_input && sums_agree(work, a, b);
    if is_same {
        let is_group = a.len() > 1 && b.len() > 1;
        let (a, b) = (a.to_vec(), b.to_vec());
        work.many(a, b, Basis::Callers, Confidence::Fair, is_group);
    }
    is_same
}

/// Whether the callers of two parallel regions speak against them being one. Those of other regions say nothing.
pub(super) fn differ(a: &SideRegion, b: &SideRegion) -> bool {
    if a.key.callers.is_empty() || b.key.callers.is_empty() || !a.key.construct.is_fork() {
        return false;
    }
    let chains = [a, b].map(|r| Chain::of(&r.key.callers));
    matches!(chains, [Some(a), Some(b)] if !a.agrees(&b))
}

/// What is free on both sides and has callers. Where both sides have lines, these have told all that they can: a region that a commit
/// adds isn't the one that it removes.
fn classes_of_both<'a>(work: &Work<'a>) -> (Classes<'a>, Classes<'a>) {
    let free: [Vec<usize>; 2] = [work.free_a().collect(), work.free_b().collect()];
    let (a, b) = (&work.a.regions, &work.b.regions);
    let has_lines = [a, b].map(|regions| regions.iter().any(|r| r.key.line.is_some()));
    let of_a = classes(work, a, &free[0], has_lines[1]);
    (of_a, classes(work, b, &free[1], has_lines[0]))
}

/// `has_lines`: whether the other side has any.
fn classes<'a>(
    work: &Work<'a>,
    regions: &'a [SideRegion],
    free: &[usize],
    has_lines: bool,
) -> Classes<'a> {
    let mut classes = Classes::new();
    for &at in free {
        let region = &regions[at];
        let is_in = region.key.construct.is_fork() && !(has_lines && region.key.line.is_some());
        if let Some(chain) = Chain::of(&region.key.callers).filter(|_| is_in) {
            let key = (work.module(region), region.key.construct, chain);
            classes.entry(key).or_default().push(at);
        }
    }
    classes
}

/// Whether both lists together do the same; `None` if that is not known.
fn counts_agree(work: &Work<'_>, a: &[usize], b: &[usize]) -> Option<bool> {
    let is_known = |regions: &[SideRegion], list: &[usize]| {
        let known = |&n: &usize| regions[n].constant(&Quantity::Executions).is_some();
        list.iter().all(known)
    };
    let known = is_known(&work.a.regions, a) && is_known(&work.b.regions, b);
    known.then(|| sums_agree(work, a, b))
}

/// Pairs what two lists with agreeing chains have. `is_equal`: the chains have the same names.
fn settle(work: &mut Work<'_>, a: &[usize], b: &[usize], is_equal: bool, is_hidden: bool) {
    let confidence = |counts: Option<bool>| match counts {
        Some(true) if is_equal && !is_hidden => Confidence::High,
        _ => Confidence::Fair,
    };
    let of = |regions: &[SideRegion], n: usize| {
        regions[n].constant(&Quantity::Executions).map(|n| n as u64)
    };
    // Several regions of one function are told apart by how often they are executed.
    let mut counted: BTreeMap<Option<u64>, [Vec<usize>; 2]> = BTreeMap::new();
    for &n in a {
        let count = of(&work.a.regions, n);
        counted.entry(count).or_default()[0].push(n);
    }
    for &n in b {
        let count = of(&work.b.regions, n);
        counted.entry(count).or_default()[1].push(n);
    }
    let mut rest: [Vec<usize>; 2] = Default::default();
    for (count, [a, b]) in counted {
        match (&a[..], &b[..], count) {
            (&[x], &[y], Some(_)) => work.pair(x, y, Basis::Callers, confidence(Some(true))),
            _ => {
                rest[0].extend(a);
                rest[1].extend(b);
            }
        }
    }
    let [a, b] = rest;
    if let (&[x], &[y]) = (&a[..], &b[..]) {
        let counts = agree(&work.a.regions[x], &work.b.regions[y]);
        work.pair(x, y, Basis::Callers, confidence(counts));
    }
}

/// What no equal chain has told.
struct Rest<'a> {
    a: Vec<(Key<'a>, Vec<usize>)>,
    b: Vec<(Key<'a>, Vec<usize>)>,
    /// For each of `a` those of `b` whose chains agree with its own, and the other way round.
    of_a: Vec<Vec<usize>>,
    of_b: Vec<Vec<usize>>,
}

impl<'a> Rest<'a> {
    /// `None` if there are too many.
    fn new(a: Classes<'a>, b: Classes<'a>) -> Option<Rest<'a>> {
        let (a, b): (Vec<_>, Vec<_>) = (a.into_iter().collect(), b.into_iter().collect());
        if a.len() * b.len() > MOST_PAIRS {
            return None;
        }
        let (mut of_a, mut of_b) = (vec![vec![]; a.len()], vec![vec![]; b.len()]);
        for (x, ((module, construct, chain), _)) in a.iter().enumerate() {
            for (y, ((of_module, of_construct, other), _)) in b.iter().enumerate() {
                let is_alike = (module, construct) == (of_module, of_construct);
                if is_alike && chain.agrees(other) {
                    of_a[x].push(y);
                    of_b[y].push(x);
                }
            }
        }
        Some(Rest { a, b, of_a, of_b })
    }

    /// Each match leaves less to agree with.
    fn run(&mut self, work: &mut Work<'_>) {
        while let Some((x, y)) = self.only_one(work) {
            let ((a, of_x), (b, of_y)) = (&self.a[x], &self.b[y]);
            let is_hidden = a.2.is_hidden || b.2.is_hidden;
            settle(work, of_x, of_y, a.2 == b.2, is_hidden);
            self.of_a[x].clear();
            self.of_b[y].clear();
            self.of_a.iter_mut().for_each(|l| l.retain(|&n| n != y));
            self.of_b.iter_mut().for_each(|l| l.retain(|&n| n != x));
        }
    }

    /// Two that agree with nothing else, or with nothing else that is executed as often.
    fn only_one(&self, work: &Work<'_>) -> Option<(usize, usize)> {
        let counts = |x: usize, y: usize| counts_agree(work, &self.a[x].1, &self.b[y].1);
        let fits = |x: usize, y: usize| match self.a[x].0.2 == self.b[y].0.2 {
            _ if !work.is_same_input => true,
            // Its callers may execute it more often in another version.
            true => counts(x, y) != Some(false) || !self.a[x].0.2.is_hidden,
            false => counts(x, y) == Some(true),
        };
        for (x, list) in self.of_a.iter().enumerate() {
            if let &[y] = &list[..]
                && self.of_b[y].len() == 1
                && fits(x, y)
            {
                return Some((x, y));
            }
        }
        if !work.is_same_input {
            return None;
        }
        for (x, list) in self.of_a.iter().enumerate() {
            let mut same = list.iter().filter(|&&y| counts(x, y) != Some(false));
            let (Some(&y), None) = (same.next(), same.next()) else {
                continue;
            };
            let others = self.of_b[y].iter();
            let rivals = others.filter(|&&x| counts(x, y) != Some(false)).count();
            if rivals == 1 && counts(x, y) == Some(true) {
                return Some((x, y));
            }
        }
        None
    }

    /// One that several of the other side agree with, and with nothing else, which together do what it does: a function was inlined in
    /// some of its callers.
    fn copies(&self, work: &mut Work<'_>) {
        let regions = |all: &[(Key<'_>, Vec<usize>)], list: &[usize]| -> Vec<usize> {
            list.iter()
                .flat_map(|&n| all[n].1.iter().copied())
                .collect()
        };
        let sides = [(&self.of_a, &self.of_b), (&self.of_b, &self.of_a)];
        for (side, (of, back)) in sides.into_iter().enumerate() {
            for (one, list) in of.iter().enumerate() {
                if list.len() < 2 || list.iter().any(|&n| back[n] != [one]) {
                    continue;
                }
                let (a, b) = match side {
                    0 => (self.a[one].1.clone(), regions(&self.b, list)),
                    _ => (regions(&self.a, list), self.b[one].1.clone()),
                };
                sum_up(work, &a, &b);
            }
        }
    }
}
