//! Where in the call-path profile single spans are.

use super::collect::step;
use super::tree::Paths;
use crate::run::NONE;
use crate::run::timeline::{Lane, Span, Timeline};
use std::collections::HashMap;

/// A place on the way to a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathStep {
    /// Position in [`Timeline::sites`]; `None`: it isn't known.
    pub site: Option<u32>,
    /// As [`PathStat::context`](super::PathStat::context), a number of [`Timeline::contexts`].
    pub context: u32,
}

/// Finds the paths of a run's spans by the rules of [`PathStat`](super::PathStat)s: what a task executes is in the construct that created it.
#[derive(Debug)]
pub struct SpanPaths<'t, 'a> {
    timeline: &'t Timeline<'a>,
    paths: Paths,
    of_node: HashMap<u32, u32>,
}

impl<'t, 'a> SpanPaths<'t, 'a> {
    /// Nothing is looked at yet.
    pub fn new(timeline: &'t Timeline<'a>) -> SpanPaths<'t, 'a> {
        SpanPaths {
            timeline,
            paths: Paths::default(),
            of_node: HashMap::new(),
        }
    }

    /// The number of a span's path.
    pub fn of(&mut self, lane: &Lane, span: &Span<'_>) -> u32 {
        let node = match span.construct.is_fork() && span.node != 0 {
            true => span.node, // a region's has its context
            false => span.parent,
        };
        let around = self.of_node(self.timeline.node(lane, node).unwrap_or(NONE));
        let what = (span.construct, span.site.unwrap_or(NONE), 0);
        step(&mut self.paths, around, what)
    }

    fn of_node(&mut self, node: u32) -> u32 {
        let nodes = self.timeline.nodes();
        let (mut at, mut climbed) = (node, vec![]);
        // A node that is met on the way again is its own parent, in damaged files.
        while (at as usize) < nodes.len() && !self.of_node.contains_key(&at) {
            self.of_node.insert(at, Paths::ROOT);
            climbed.push(at);
            at = nodes.parent[at as usize];
        }
        let mut path = self.of_node.get(&at).copied().unwrap_or(Paths::ROOT);
        for at in climbed.into_iter().rev() {
            let row = at as usize;
            let what = (nodes.construct[row], nodes.site[row], nodes.context[row]);
            path = step(&mut self.paths, path, what);
            self.of_node.insert(at, path);
        }
        path
    }

    /// The places on a path, from the program inwards. Empty: it is the program's own code.
    pub fn steps(&self, path: u32) -> Vec<PathStep> {
        let list = self.paths.list();
        let mut steps = vec![];
        let mut at = path;
        while at != Paths::ROOT {
            let here = &list[at as usize];
            steps.push(PathStep {
                site: (here.step.site != NONE).then_some(here.step.site),
                context: here.step.context,
            });
            at = here.parent;
        }
        steps.reverse();
        steps
    }
}
