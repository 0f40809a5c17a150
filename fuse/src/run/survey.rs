//! First pass over a process's records: what is known of all of them together, and the nodes.

use super::files::{ProcessFiles, ThreadBytes};
use super::health::{Health, Problem};
use super::nodes::NodeSet;
use super::parts::PartSums;
use ompfuse_format::Construct;
use ompfuse_format::record::{self, HEADER_LEN, Interval, Node, Record, RecordError, ThreadFile};
use rayon::prelude::*;
use std::collections::HashMap;

/// A thread's file after the first pass.
#[derive(Debug)]
pub(super) struct Surveyed<'a> {
    pub(super) file: ThreadFile<'a>,
    /// Those that are kept.
    pub(super) nodes: Vec<Node>,
    /// Nodes that something happened in, if only those are to be kept.
    pub(super) parents: NodeSet,
    /// Nodes in which the thread executed a construct that forks.
    pub(super) forks_in: Vec<u64>,
    /// What the program calls regions of its own, by site.
    pub(super) names: Vec<(u32, String)>,
    pub(super) left_out: Vec<record::LeftOut>,
    pub(super) parts: PartSums,
    pub(super) last_tsc: u64,
    /// The sites of its nodes, and of its intervals, as they are met.
    pub(super) node_sites: Sites,
    pub(super) sites: Sites,
    /// Whether it has a part of a parallel region.
    pub(super) in_team: bool,
    pub(super) error: Option<RecordError>,
}

/// Sites of records in the order of their first, with the number of records: XUs, others.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub(super) counts: Vec<(u32, [usize; 2])>,
    at: HashMap<u32, usize>,
    /// Neighbouring records are often alike.
    last: Option<usize>,
}

impl Sites {
    #[inline]
    fn add(&mut self, site: u32, is_xu: bool) {
        let at = match self.last {
            Some(last) if self.counts[last].0 == site => last,
            _ => *self.at.entry(site).or_insert_with(|| {
                self.counts.push((site, [0; 2]));
                self.counts.len() - 1
            }),
        };
        self.last = Some(at);
        self.counts[at].1[usize::from(!is_xu)] += 1;
    }

    /// All XUs, and all others.
    pub(super) fn total(&self) -> [usize; 2] {
        let sum = |which: usize| self.counts.iter().map(|(_, c)| c[which]).sum();
        [sum(0), sum(1)]
    }
}

/// The nodes that are kept of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of them.
    All,
    /// Those that something happened in, and those that fork.
    Inner,
}

pub(super) fn entry(i: &Interval<'_>) -> Node {
    Node {
        construct: i.construct,
        step: i.step,
        site: i.site,
        node: i.node,
        parent: i.parent,
        index: i.index,
    }
}

/// The nodes in a file, those of repeated mention again.
pub(super) fn nodes<'a>(
    file: &ThreadFile<'a>,
    is_wanted: impl Fn(u64, u32, Construct) -> bool,
) -> Vec<Node> {
    let of_record = |record| match record {
        Ok(Record::Node(n)) => Some(n),
        Ok(Record::Interval(i)) => Some(entry(&i)),
        _ => None,
    };
    let is_wanted = |n: &Node| n.node != 0 && is_wanted(n.node, n.site, n.construct);
    file.records()
        .filter_map(of_record)
        .filter(is_wanted)
        .collect()
}

fn survey(bytes: &[u8], keep: Keep) -> Result<Surveyed<'_>, RecordError> {
    let file = ThreadFile::parse(bytes)?;
    let mut found = Surveyed {
        file,
        nodes: vec![],
        // A record has 24 bytes at least.
        parents: NodeSet::new(bytes.len() / 24),
        forks_in: vec![],
        names: vec![],
        left_out: vec![],
        parts: PartSums::default(),
        last_tsc: file.header.tsc_end,
        node_sites: Sites::default(),
        sites: Sites::default(),
        in_team: false,
        error: None,
    };
    for record in file.records() {
        let node = match record {
            Ok(Record::Node(n)) => n,
            Ok(Record::LeftOut(l)) => {
                found.left_out.push(l);
                continue;
            }
            Ok(Record::Parts(p)) => {
                found.last_tsc = found.last_tsc.max(p.t1);
                found.parts.add(&p);
                continue;
            }
            Ok(Record::Name(n)) => {
                let text = String::from_utf8_lossy(n.text).into_owned();
                found.names.push((n.site, text));
                continue;
            }
            Ok(Record::Interval(i)) => {
                found.last_tsc = found.last_tsc.max(i.t1);
                found.in_team |= i.construct.is_part();
                found.sites.add(i.site, i.construct.is_xu());
                if keep == Keep::Inner && i.node == 0 && i.parent != 0 {
                    found.parents.insert(i.parent);
                }
                entry(&i)
            }
            Err(error) => {
                found.error = Some(error);
                continue;
            }
        };
        if node.node == 0 {
            continue;
        }
        found.node_sites.add(node.site, false);
        if node.construct.is_fork() && found.forks_in.last() != Some(&node.parent) {
            found.forks_in.push(node.parent);
        }
        match keep {
            Keep::All => found.nodes.push(node),
            Keep::Inner => {
                if node.construct.is_fork() {
                    found.parents.insert(node.node);
                }
                if node.parent != 0 {
                    found.parents.insert(node.parent);
                }
            }
        }
    }
    Ok(found)
}

/// First pass over a process's threads. `read`: told of bytes that were.
pub(super) fn threads<'a>(
    process: &ProcessFiles<'a>,
    keep: Keep,
    health: &mut Health,
    read: &(dyn Fn(usize) + Sync),
) -> Vec<Surveyed<'a>> {
    let results: Vec<(&ThreadBytes<'a>, Result<Surveyed<'a>, RecordError>)> = process
        .threads
        .par_iter()
        .map(|t| {
            let found = survey(t.bytes, keep);
            read(t.bytes.len());
            (t, found)
        })
        .collect();
    let mut threads = Vec::new();
    for (thread, result) in results {
        let error = match result {
            Ok(found) => {
                let error = found.error.clone();
                threads.push(found);
                error
            }
            // The thread was just beginning when its process was ended, which is said of the process.
            Err(_)
                if process.end.is_none()
                    && thread.bytes.iter().take(HEADER_LEN).all(|&b| b == 0) =>
            {
                None
            }
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            health.problems.push(Problem::Malformed {
                file: thread.name.clone(),
                error: error.to_string(),
            });
        }
    }
    threads.sort_by_key(|p| p.file.header.index);
    if keep == Keep::Inner {
        let expected = process.threads.iter().map(|t| t.bytes.len() / 24).sum();
        let mut inner = NodeSet::new(expected);
        for thread in &mut threads {
            inner.absorb(std::mem::take(&mut thread.parents));
        }
        let of_thread = |thread: &Surveyed<'a>| nodes(&thread.file, |n, _, _| inner.contains(n));
        let kept: Vec<Vec<Node>> = threads.par_iter().map(of_thread).collect();
        for (thread, nodes) in threads.iter_mut().zip(kept) {
            thread.nodes = nodes;
        }
    }
    threads
}
