//! Sums by path: the same region inside of other regions stands apart (ompP's call-path profile).
//!
//! A path is the chain of constructs around something, from the program's own code inwards, as the records name them. What a task executes is
//! in the construct that created it, on whatever thread and in whatever wait it was executed. Kinds of intervals at one place (a loop, its
//! ranges, its end) are one step. A step that is on the path already leads back to where it was first met, so that recursion makes neither
//! depth nor size.

use super::{ParallelStat, ThreadColumns};
use crate::run::NONE;
use ompfuse_format::Construct;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Paths that are kept apart. Further ones become paths of two steps: the parallel region, and the place in it.
pub const MOST_PATHS: usize = 10_000;

/// Sums of one region on one path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStat {
    /// Position of the path around in [`super::Summary::paths`], before this one's; `None`: this is the program's own code.
    pub parent: Option<u32>,
    /// Position in [`super::Summary::sites`]; `None` for the program and for unknown places.
    pub site: Option<u32>,
    /// Calling context of a parallel region's fork; 0: not known, or no parallel region.
    pub context: u32,
    /// Sums by kind of interval, in the kinds' order.
    pub kinds: Vec<PathKind>,
    /// Of a parallel region: its executions on this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions: Option<ParallelStat>,
}

/// Sums over the intervals of one kind on one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathKind {
    /// The kind.
    pub construct: Construct,
    /// As [`super::RegionStat::instances`].
    pub instances: u64,
    /// Per thread.
    pub threads: ThreadColumns,
    /// Per event, in the order of [`super::Summary::events`]: own counts by thread, in the order of `threads`. A list is empty where nobody
    /// has counted the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Vec<Option<u64>>>,
}

/// A step inwards: a place, and for forks the calling context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Step {
    /// A place: its position in the sites or its number in the records; [`NONE`]: not known.
    pub(crate) site: u32,
    /// See [`PathStat::context`].
    pub(crate) context: u32,
    /// Whether it is a parallel (or teams) region.
    pub(crate) is_fork: bool,
}

impl Step {
    /// Of an interval or a node. `context`: of a fork.
    #[inline]
    pub(crate) fn of(construct: Construct, site: u32, context: u32) -> Step {
        Step {
            site,
            context,
            is_fork: construct.is_fork() || construct.is_part(),
        }
    }
}

/// Paths by number.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    list: Vec<Path>,
    index: HashMap<(u32, u32, u32), u32>,
    /// What was asked for last.
    last: Option<((u32, Step), u32)>,
    most: usize,
    /// Steps that lost the path around them, since there were too many.
    pub(crate) folded: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) parent: u32,
    pub(crate) step: Step,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths::new(MOST_PATHS)
    }
}

impl Paths {
    /// The path of the program's own code.
    pub(crate) const ROOT: u32 = 0;

    fn new(most: usize) -> Paths {
        let root = Path {
            parent: NONE,
            step: Step {
                site: NONE,
                context: 0,
                is_fork: false,
            },
        };
        Paths {
            list: vec![root],
            index: HashMap::new(),
            last: None,
            most,
            folded: 0,
        }
    }

    /// The paths, each behind the one around it.
    pub(crate) fn list(&self) -> &[Path] {
        &self.list
    }

    /// The path of something that happens on a path.
    #[inline]
    pub(crate) fn step(&mut self, parent: u32, step: Step) -> u32 {
        match self.last {
            Some((asked, path)) if asked == (parent, step) => path,
            _ => {
                let path = self.look_up(parent, step);
                self.last = Some(((parent, step), path));
                path
            }
        }
    }

    fn look_up(&mut self, parent: u32, step: Step) -> u32 {
        let key = (parent, step.site, step.context);
        if let Some(&path) = self.index.get(&key) {
            return path;
        }
        let path = self
            .around(parent)
            .find(|&p| self.list[p as usize].step.site == step.site);
        let path = path.unwrap_or_else(|| self.enter(parent, step));
        self.index.insert(key, path);
        path
    }

    /// A path and those around it, but for the program's.
    fn around(&self, path: u32) -> impl Iterator<Item = u32> {
        let above = |&path: &u32| Some(self.list[path as usize].parent);
        std::iter::successors(Some(path), above).take_while(|&path| path != Paths::ROOT)
    }

    fn enter(&mut self, parent: u32, step: Step) -> u32 {
        if self.list.len() < self.most {
            return self.push(parent, step);
        }
        let fork = self
            .around(parent)
            .find(|&p| self.list[p as usize].step.is_fork);
        let fork = fork.filter(|_| !step.is_fork);
        let flat = |step: Step| Step { context: 0, ..step };
        let below = match fork {
            Some(fork) => self.place(Paths::ROOT, flat(self.list[fork as usize].step)),
            None => Paths::ROOT,
        };
        self.folded += u64::from(below != parent || step.context != 0);
        self.place(below, flat(step))
    }

    /// Finds or adds a path, however many there are.
    fn place(&mut self, parent: u32, step: Step) -> u32 {
        let key = (parent, step.site, step.context);
        let known = self.index.get(&key).copied();
        known.unwrap_or_else(|| {
            let path = self.push(parent, step);
            self.index.insert(key, path);
            path
        })
    }

    fn push(&mut self, parent: u32, step: Step) -> u32 {
        self.list.push(Path { parent, step });
        self.list.len() as u32 - 1
    }
}

/// What is summed up, before it is in order.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) paths: Paths,
    pub(super) kinds: HashMap<u32, Vec<PathKind>>,
    pub(super) executions: HashMap<u32, ParallelStat>,
}

impl Tree {
    /// The paths with something on or below them, each behind the one around it and beside its siblings in the order of places.
    pub(super) fn into_stats(mut self) -> Vec<PathStat> {
        let paths = self.paths.list();
        let mut is_used = vec![false; paths.len()];
        for (at, path) in paths.iter().enumerate().rev() {
            let number = at as u32;
            is_used[at] |=
                self.kinds.contains_key(&number) || self.executions.contains_key(&number);
            if is_used[at] && path.parent != NONE {
                is_used[path.parent as usize] = true;
            }
        }
        let mut below: Vec<Vec<u32>> = vec![vec![]; paths.len()];
        for (number, path) in (0..).zip(paths).filter(|(at, _)| is_used[*at as usize]) {
            if path.parent != NONE {
                below[path.parent as usize].push(number);
            }
        }
        for list in &mut below {
            // The last comes first off the stack.
            list.sort_by_key(|&path| std::cmp::Reverse(paths[path as usize].step));
        }
        let mut stats = vec![];
        let mut rest = match is_used[0] {
            true => vec![(None, Paths::ROOT)],
            false => vec![],
        };
        while let Some((parent, path)) = rest.pop() {
            let at = stats.len() as u32;
            let step = paths[path as usize].step;
            let mut kinds = self.kinds.remove(&path).unwrap_or_default();
            kinds.sort_by_key(|k| k.construct);
            stats.push(PathStat {
                parent,
                site: (step.site != NONE).then_some(step.site),
                context: step.context,
                kinds,
                executions: self.executions.remove(&path),
            });
            rest.extend(below[path as usize].iter().map(|&inner| (Some(at), inner)));
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(site: u32) -> Step {
        Step::of(Construct::Task, site, 0)
    }

    fn fork(site: u32) -> Step {
        Step::of(Construct::Parallel, site, 0)
    }

    #[test]
    fn a_step_that_is_on_the_path_leads_back_to_it() {
        let mut paths = Paths::default();
        let region = paths.step(Paths::ROOT, fork(1));
        let a = paths.step(region, at(2));
        let b = paths.step(a, at(3));
        assert_eq!(paths.step(b, at(2)), a);
        assert_eq!(paths.step(b, at(3)), b);
        assert_eq!(paths.step(b, fork(1)), region);
        let unknown = paths.step(Paths::ROOT, at(NONE));
        assert!(unknown != Paths::ROOT && paths.step(unknown, at(NONE)) == unknown);
        assert_ne!(paths.step(region, at(3)), b);
        assert_eq!(paths.folded, 0);
    }

    #[test]
    fn too_many_paths_become_flat_ones() {
        let mut paths = Paths::new(4);
        let region = paths.step(Paths::ROOT, fork(1));
        let a = paths.step(region, at(2));
        let b = paths.step(a, at(3));
        let flat = paths.step(b, at(4));
        assert_eq!(paths.folded, 1);
        assert_eq!(paths.list()[flat as usize].parent, region);
        assert_eq!(paths.step(a, at(4)), flat);
        // Deep below other regions it is the same place of the same region.
        let inner = paths.step(b, fork(5));
        assert_eq!(paths.list()[inner as usize].parent, Paths::ROOT);
        let deep = paths.step(inner, at(4));
        assert_eq!(paths.list()[deep as usize].parent, inner);
        let mut path = inner;
        for site in 6..1000 {
            path = paths.step(path, at(site));
        }
        assert_eq!(paths.list()[path as usize].parent, inner);
    }

    #[test]
    fn paths_with_nothing_below_are_left_out_and_places_are_in_order() {
        let kind = || {
            vec![PathKind {
                construct: Construct::Task,
                instances: 1,
                threads: ThreadColumns::default(),
                counts: vec![],
            }]
        };
        let mut tree = Tree::default();
        let region = tree.paths.step(Paths::ROOT, fork(9));
        let inner = tree.paths.step(region, at(8));
        let empty = tree.paths.step(inner, at(7));
        let other = tree.paths.step(region, at(2));
        assert!(empty > inner);
        tree.kinds.insert(inner, kind());
        tree.kinds.insert(other, kind());
        let stats = tree.into_stats();
        let list: Vec<_> = stats.iter().map(|s| (s.parent, s.site)).collect();
        assert_eq!(
            list,
            [
                (None, None),
                (Some(0), Some(9)),
                (Some(1), Some(2)),
                (Some(1), Some(8))
            ]
        );
    }
}
