//! First pass over a process's records: what is known of all of them together, and the nodes.

use super::contexts::ThreadContexts;
use super::files::{ProcessFiles, ThreadBytes};
use super::health::{Health, Problem};
use super::locks::LockSums;
use super::messages::Messages;
use super::nodes::NodeSet;
use super::parts::PartSums;
use ompfuse_format::Construct;
use ompfuse_format::record::{
    self, HEADER_LEN, Interval, Node, Record, RecordError, Records, ThreadFile,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A thread's file after the first pass.
#[derive(Debug)]
pub(crate) struct Surveyed<'a> {
    /// The file's name, for messages.
    pub(super) name: String,
    pub(crate) file: ThreadFile<'a>,
    /// Those that are kept.
    pub(crate) nodes: Vec<Node>,
    /// Nodes that something happened in, if only those are to be kept.
    pub(crate) parents: NodeSet,
    /// Nodes in which the thread executed a construct that forks.
    pub(crate) forks_in: Vec<u64>,
    /// What the program calls regions of its own, by site.
    pub(crate) names: Vec<(u32, String)>,
    pub(crate) left_out: Vec<record::LeftOut>,
    pub(crate) parts: PartSums,
    pub(crate) locks: LockSums,
    pub(crate) messages: Messages,
    pub(crate) contexts: ThreadContexts,
    pub(crate) last_tsc: u64,
    /// The sites of its nodes, and of its intervals, as they are met.
    pub(crate) node_sites: Sites,
    pub(crate) sites: Sites,
    /// Whether it has a part of a parallel region.
    pub(crate) in_team: bool,
    /// Whether anything but its own code outside of everything, and short calls of the OpenMP library, is on record: a thread that only
    /// waits for others, or fulfils an event of theirs, has no part in the program's time.
    pub(crate) has_met: bool,
    pub(crate) error: Option<RecordError>,
}

/// Whether a thread with such an interval has a part in the program's time.
pub(super) fn is_met(construct: Construct) -> bool {
    !matches!(construct, Construct::Program | Construct::Service)
}

/// Sites of records in the order of their first, with the number of records: XUs, others.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) counts: Vec<(u32, [usize; 2])>,
    at: FxHashMap<u32, usize>,
    /// Neighbouring records are often alike.
    last: Option<usize>,
}

impl Sites {
    #[inline]
    pub(crate) fn add(&mut self, site: u32, is_xu: bool) {
        self.add_many(site, is_xu, 1);
    }

    #[inline]
    pub(crate) fn add_many(&mut self, site: u32, is_xu: bool, count: usize) {
        let at = match self.last {
            Some(last) if self.counts[last].0 == site => last,
            _ => *self.at.entry(site).or_insert_with(|| {
                self.counts.push((site, [0; 2]));
                self.counts.len() - 1
            }),
        };
        self.last = Some(at);
        self.counts[at].1[usize::from(!is_xu)] += count;
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

pub(crate) fn entry(i: &Interval<'_>) -> Node {
    Node {
        construct: i.construct,
        step: i.step,
        site: i.site,
        node: i.node,
        parent: i.parent,
        index: i.index,
    }
}

/// Records, with somebody told now and then of the bytes that were read, and at the end.
fn told<'a, 't>(
    mut records: Records<'a>,
    read: &'t (dyn Fn(usize) + Sync),
) -> impl Iterator<Item = Result<Record<'a>, RecordError>> + use<'a, 't> {
    const OFTEN: usize = 1 << 17;
    let (mut since, mut left) = (0, records.left());
    std::iter::from_fn(move || {
        let record = records.next();
        since += 1;
        if since == OFTEN || record.is_none() {
            read(left - records.left());
            (since, left) = (0, records.left());
        }
        record
    })
}

/// The nodes in a file, those of repeated mention again.
pub(super) fn nodes<'a>(
    file: &ThreadFile<'a>,
    is_wanted: impl Fn(u64, u32, Construct) -> bool,
    read: &(dyn Fn(usize) + Sync),
) -> Vec<Node> {
    let of_record = |record| match record {
        Ok(Record::Node(n)) => Some(n),
        Ok(Record::Interval(i)) => Some(entry(&i)),
        _ => None,
    };
    let is_wanted = |n: &Node| n.node != 0 && is_wanted(n.node, n.site, n.construct);
    told(file.records(), read)
        .filter_map(of_record)
        .filter(is_wanted)
        .collect()
}

impl<'a> Surveyed<'a> {
    /// Of no record yet.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Surveyed<'a>, RecordError> {
        let file = ThreadFile::parse(bytes)?;
        Ok(Surveyed {
            name: String::new(),
            file,
            nodes: vec![],
            // A record has 24 bytes at least.
            parents: NodeSet::new(bytes.len() / 24),
            forks_in: vec![],
            names: vec![],
            left_out: vec![],
            parts: PartSums::default(),
            locks: LockSums::default(),
            messages: Messages::default(),
            contexts: ThreadContexts::default(),
            last_tsc: file.header.tsc_end,
            node_sites: Sites::default(),
            sites: Sites::default(),
            in_team: false,
            has_met: false,
            error: None,
        })
    }

    /// Forgets what was found.
    pub(crate) fn begin(&mut self) {
        self.names.clear();
        self.left_out.clear();
        self.parts = PartSums::default();
        self.locks = LockSums::default();
        self.messages = Messages::default();
        self.contexts.clear();
        self.node_sites = Sites::default();
        self.sites = Sites::default();
        self.in_team = false;
        self.has_met = false;
        self.error = None;
    }

    /// Takes in an interval, but for its node.
    #[inline]
    pub(crate) fn add(&mut self, i: &Interval<'_>) {
        self.last_tsc = self.last_tsc.max(i.t1);
        self.in_team |= i.construct.is_part();
        self.has_met |= is_met(i.construct);
        self.sites.add(i.site, i.construct.is_xu());
        self.locks.add(i);
    }

    /// Takes in what is neither node nor interval.
    pub(crate) fn note(&mut self, record: Result<Record<'_>, RecordError>) {
        match record {
            Ok(Record::LeftOut(l)) => self.left_out.push(l),
            Ok(Record::Parts(p)) => {
                self.last_tsc = self.last_tsc.max(p.t1);
                self.parts.add(&p);
            }
            Ok(Record::Name(n)) => {
                let text = String::from_utf8_lossy(n.text).into_owned();
                self.names.push((n.site, text));
            }
            Ok(Record::Node(_) | Record::Interval(_)) => {}
            Ok(Record::Message(message)) => self.messages.add(&message),
            Ok(Record::Lock(lock)) => self.locks.note(&lock, &self.contexts),
            Ok(other) => self.contexts.note(&other),
            Err(error) => self.error = Some(error),
        }
    }
}

fn survey<'a>(
    bytes: &'a [u8],
    keep: Keep,
    read: &(dyn Fn(usize) + Sync),
) -> Result<Surveyed<'a>, RecordError> {
    let mut found = Surveyed::new(bytes)?;
    for record in told(found.file.records(), read) {
        let node = match record {
            Ok(Record::Node(n)) => {
                if n.construct.is_fork() {
                    found.contexts.keep_fork(&n);
                }
                n
            }
            Ok(Record::Interval(i)) => {
                found.add(&i);
                if keep == Keep::Inner && i.node == 0 && i.parent != 0 {
                    found.parents.insert(i.parent);
                }
                entry(&i)
            }
            other => {
                found.note(other);
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

/// The threads whose files can be read, in the order of their numbers, and what is wrong with the files.
pub(super) fn usable<'a>(
    process: &ProcessFiles<'a>,
    results: Vec<(&ThreadBytes<'a>, Result<Surveyed<'a>, RecordError>)>,
) -> (Vec<Surveyed<'a>>, Vec<Problem>) {
    let (mut threads, mut problems) = (Vec::new(), Vec::new());
    for (thread, result) in results {
        let error = match result {
            Ok(mut found) => {
                found.name.clone_from(&thread.name);
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
        problems.extend(error.map(|error| Problem::Malformed {
            file: thread.name.clone(),
            error: error.to_string(),
        }));
    }
    threads.sort_by_key(|p| p.file.header.index);
    (threads, problems)
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
            let found = survey(t.bytes, keep, read);
            (t, found)
        })
        .collect();
    let (mut threads, problems) = usable(process, results);
    health.problems.extend(problems);
    if keep == Keep::Inner {
        let expected = process.threads.iter().map(|t| t.bytes.len() / 24).sum();
        let mut inner = NodeSet::new(expected);
        for thread in &mut threads {
            inner.absorb(std::mem::take(&mut thread.parents));
        }
        let of_thread =
            |thread: &Surveyed<'a>| nodes(&thread.file, |n, _, _| inner.contains(n), &|_| read(0));
        let kept: Vec<Vec<Node>> = threads.par_iter().map(of_thread).collect();
        for (thread, nodes) in threads.iter_mut().zip(kept) {
            thread.nodes = nodes;
        }
    }
    threads
}
