//! Calling contexts: from threads' records to one tree of frames, which doesn't depend on who met what first.

use super::locks::LockSums;
use ompfuse_format::record::context::{self, ChainEnd};
use ompfuse_format::record::sums::Entry;
use ompfuse_format::record::{Node, Record, ThreadFile};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The calling contexts of a run: chains of calls, whose common outer part is there once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    /// The files that code was called in.
    pub objects: Vec<ContextObject>,
    /// A context's number is the position of its innermost frame plus 1; 0 is none.
    pub frames: Vec<ContextFrame>,
}

/// A file that calls were in: the program or a library.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContextObject {
    /// Its path: the original's, where a patched copy was loaded.
    pub path: String,
    /// Build id in hexadecimal, where it is known.
    pub build_id: Option<String>,
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFrame {
    /// Position of the caller's frame, before this one's; `None`: the outermost that is known.
    pub parent: Option<u32>,
    /// Position in [`Contexts::objects`]; `None`: code in no file.
    pub object: Option<u32>,
    /// Where the call returns to: link-time address in the file, else as in the process.
    pub address: u64,
    /// Of an outermost frame: why the chain ends there, if it is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What is known of the place.
    #[serde(default)]
    pub name: FrameName,
}

/// Why a chain of calls ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// No more calls were wanted.
    Depth,
    /// Code without unwind information, another stack, or a signal handler.
    Unknown,
}

/// What the file tells of an address in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameName {
    /// The function's symbol, as the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Bytes from the function's begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Source file of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What was found out of a run's files when it ended: a file of the run folder ([`NAMES_FILE`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextNames {
    /// The files, as the records name them.
    pub objects: Vec<NamedObject>,
}

/// Name of the file with [`ContextNames`].
pub const NAMES_FILE: &str = "contexts.json";

/// A file, and places in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedObject {
    /// Its path in the records.
    pub loaded: String,
    /// What it is.
    pub object: ContextObject,
    /// By address.
    pub names: BTreeMap<u64, FrameName>,
    /// Variables, by address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<u64, DataName>,
}

/// A variable's symbol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataName {
    /// As the file has it.
    pub symbol: String,
    /// Bytes from its begin.
    pub offset: u64,
    /// What is there, as it stands behind the variable's name in the source; `None`: nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// What is to be named in a file, by link-time address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Where calls return to.
    pub code: BTreeSet<u64>,
    /// Variables.
    pub data: BTreeSet<u64>,
}

/// A chain of calls, innermost first, as a thread recorded it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Chain {
    end: ChainEnd,
    /// Outermost first, so that neighbours in order have callers in common.
    frames: Vec<(Option<Arc<ContextObject>>, u64)>,
}

/// What a thread's records have said so far.
#[derive(Debug, Default)]
pub(crate) struct ThreadContexts {
    objects: Vec<(u64, u64, u64, Arc<ContextObject>)>,
    chains: HashMap<u64, Arc<Chain>>,
    /// By construct and site of regions the context's number.
    of_site: HashMap<(u8, u32), u64>,
    last: Option<((u8, u32), u64)>,
    /// Contexts' numbers of regions' nodes, where nodes are kept.
    pub(crate) of_nodes: Vec<(u64, u64)>,
}

impl ThreadContexts {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = ThreadContexts::default();
    }

    pub(crate) fn object(&mut self, object: &context::Object<'_>) {
        let hex = |id: &[u8]| id.iter().map(|b| format!("{b:02x}")).collect();
        let named = ContextObject {
            path: String::from_utf8_lossy(object.path).into_owned(),
            build_id: (!object.build_id.is_empty()).then(|| hex(object.build_id)),
        };
        let place = (object.begin, object.end, object.bias, Arc::new(named));
        self.objects.push(place);
    }

    fn context(&mut self, context: &context::Context<'_>) {
        self.add(context.number, context.end, context.addresses());
    }

    /// A chain of run-time addresses.
    fn add(&mut self, number: u64, end: ChainEnd, addresses: impl Iterator<Item = u64>) {
        let frame = |address: u64| {
            // The call is right before.
            match self.file_of(address.wrapping_sub(1)) {
                Some((object, call)) => (Some(Arc::clone(object)), call.wrapping_add(1)),
                None => (None, address),
            }
        };
        let mut frames: Vec<_> = addresses.map(frame).collect();
        frames.reverse();
        self.chains.insert(number, Arc::new(Chain { end, frames }));
    }

    /// The file that an address is in, and its link-time address there.
    pub(super) fn file_of(&self, address: u64) -> Option<(&Arc<ContextObject>, u64)> {
        let mut newest_first = self.objects.iter().rev();
        let (_, _, bias, object) =
            newest_first.find(|(begin, end, ..)| (*begin..*end).contains(&address))?;
        Some((object, address.wrapping_sub(*bias)))
    }

    /// Takes in the contexts of a table of sums, whose objects the records have told.
    pub(crate) fn note_sums(&mut self, file: &ThreadFile<'_>) {
        for entry in file.sums() {
            if let Entry::Context(c) = entry {
                self.add(u64::from(c.number), c.end, c.addresses());
            }
        }
    }

    /// What was called from where.
    pub(crate) fn calls(&mut self, calls: &context::Calls) {
        let key = (calls.construct as u8, calls.site);
        self.of_site.insert(key, calls.context);
        self.last = None;
    }

    /// Takes in a record, if it tells of contexts.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Object(object) => self.object(object),
            Record::Context(context) => self.context(context),
            Record::Calls(calls) => self.calls(calls),
            _ => {}
        }
    }

    /// The context's number of a region whose node is read now; 0: not known.
    #[inline]
    pub(crate) fn of_fork(&mut self, node: &Node) -> u64 {
        if self.of_site.is_empty() {
            return 0;
        }
        let key = (node.construct as u8, node.site);
        match self.last {
            Some((last, number)) if last == key => number,
            _ => {
                let number = self.of_site.get(&key).copied().unwrap_or(0);
                self.last = Some((key, number));
                number
            }
        }
    }

    /// As [`ThreadContexts::of_fork`], of a node that is kept.
    pub(crate) fn keep_fork(&mut self, node: &Node) {
        let number = self.of_fork(node);
        if number != 0 && node.node != 0 {
            self.of_nodes.push((node.node, number));
        }
    }

    /// A context by its number.
    pub(crate) fn chain(&self, number: u64) -> Option<&Arc<Chain>> {
        self.chains.get(&number)
    }
}

/// Numbers of a process's contexts while its records are read: equal chains of several threads have one.
#[derive(Debug, Default)]
pub(crate) struct ProcessContexts {
    numbers: HashMap<Arc<Chain>, u32>,
    chains: Vec<Arc<Chain>>,
    /// By thread and its own number.
    known: HashMap<(usize, u64), u32>,
}

impl ProcessContexts {
    /// Of a region whose node a thread has; 0: not known.
    #[inline]
    pub(crate) fn of(&mut self, thread: usize, node: &Node, found: &mut ThreadContexts) -> u32 {
        let own = found.of_fork(node);
        if own == 0 {
            return 0;
        }
        if let Some(&number) = self.known.get(&(thread, own)) {
            return number;
        }
        let number = found.chain(own).map_or(0, |chain| self.number(chain));
        self.known.insert((thread, own), number);
        number
    }

    /// The number here of a thread's context.
    fn number(&mut self, chain: &Arc<Chain>) -> u32 {
        *self.numbers.entry(Arc::clone(chain)).or_insert_with(|| {
            self.chains.push(Arc::clone(chain));
            self.chains.len() as u32
        })
    }

    /// By the number that a context has on all threads the one here.
    pub(crate) fn of_sums<'t>(
        &mut self,
        threads: impl Iterator<Item = (&'t ThreadContexts, ThreadFile<'t>)>,
    ) -> HashMap<u32, u32> {
        let mut known = HashMap::new();
        for (found, file) in threads {
            for entry in file.sums() {
                if let Entry::Context(c) = entry
                    && let Some(chain) = found.chain(u64::from(c.number))
                {
                    known.insert(c.number, self.number(chain));
                }
            }
        }
        known
    }

    /// A context by its number here.
    pub(crate) fn chain(&self, number: u32) -> Option<&Arc<Chain>> {
        self.chains.get(number.checked_sub(1)? as usize)
    }
}

/// All contexts of a run in order, and which chain is which.
#[derive(Debug, Default)]
pub(crate) struct AllContexts {
    pub(crate) contexts: Contexts,
    numbers: HashMap<Arc<Chain>, u32>,
}

impl AllContexts {
    /// Of all threads; with names, if there are any.
    pub(crate) fn new<'t>(
        threads: impl Iterator<Item = &'t ThreadContexts>,
        names: Option<&ContextNames>,
    ) -> AllContexts {
        let mut all = AllContexts::default();
        let chains: BTreeSet<&Arc<Chain>> = threads.flat_map(|t| t.chains.values()).collect();
        let names: HashMap<&str, &NamedObject> = names
            .iter()
            .flat_map(|n| &n.objects)
            .map(|o| (o.loaded.as_str(), o))
            .collect();
        let mut objects: HashMap<&ContextObject, u32> = HashMap::new();
        let mut frames: HashMap<(Option<u32>, ChainEnd, Option<u32>, u64), u32> = HashMap::new();
        for chain in chains {
            let mut parent = None;
            for (object, address) in &chain.frames {
                let named = object.as_ref().and_then(|o| names.get(o.path.as_str()));
                let object = object.as_deref().map(|object| {
                    *objects.entry(object).or_insert_with(|| {
                        let known = named.map(|n| n.object.clone());
                        (all.contexts.objects).push(known.unwrap_or_else(|| object.clone()));
                        all.contexts.objects.len() as u32 - 1
                    })
                });
                let key = (parent, chain.end, object, *address);
                let at = *frames.entry(key).or_insert_with(|| {
                    let name = named.and_then(|n| n.names.get(address));
                    all.contexts.frames.push(ContextFrame {
                        parent,
                        object,
                        address: *address,
                        cut: match chain.end {
                            _ if parent.is_some() => None,
                            ChainEnd::Whole => None,
                            ChainEnd::Depth => Some(Cut::Depth),
                            ChainEnd::Unknown => Some(Cut::Unknown),
                        },
                        name: name.cloned().unwrap_or_default(),
                    });
                    all.contexts.frames.len() as u32 - 1
                });
                parent = Some(at);
            }
            if let Some(at) = parent {
                all.numbers.insert(Arc::clone(chain), at + 1);
            }
        }
        all
    }

    /// The number of a chain in all of them.
    pub(crate) fn number(&self, chain: Option<&Arc<Chain>>) -> u32 {
        let number = chain.and_then(|chain| self.numbers.get(chain));
        number.copied().unwrap_or(0)
    }
}

impl Contexts {
    /// By position of a frame in other ones of the same program the number of the same calls in these; 0: they aren't in here.
    pub(crate) fn numbers_of(&self, other: &Contexts) -> Vec<u32> {
        type Step<'c> = (u32, Option<&'c ContextObject>, u64, Option<Cut>);
        fn step<'c>(all: &'c Contexts, frame: &ContextFrame, parent: u32) -> Step<'c> {
            let object = frame.object.and_then(|o| all.objects.get(o as usize));
            (parent, object, frame.address, frame.cut)
        }
        let own = (1..).zip(&self.frames);
        let own: HashMap<Step<'_>, u32> = own
            .map(|(number, f)| (step(self, f, f.parent.map_or(0, |p| p + 1)), number))
            .collect();
        let mut numbers: Vec<u32> = vec![];
        for frame in &other.frames {
            let parent = frame
                .parent
                .map(|p| numbers.get(p as usize).copied().unwrap_or(0));
            let number = match parent {
                Some(0) => None, // the caller isn't in here
                parent => own.get(&step(other, frame, parent.unwrap_or(0))).copied(),
            };
            numbers.push(number.unwrap_or(0));
        }
        numbers
    }

    /// The frames of a context, innermost first.
    pub fn frames_of(&self, context: u32) -> impl Iterator<Item = &ContextFrame> {
        let at = |at: u32| self.frames.get(at as usize);
        let innermost = context.checked_sub(1).and_then(at);
        // Of damaged ones a parent may come later.
        std::iter::successors(innermost, move |frame| at(frame.parent?)).take(context::MAX_DEPTH)
    }
}

impl crate::RunFiles<'_> {
    /// The addresses of calling contexts and locks, by the path of the file as the process had it: what is to be named.
    pub fn addresses(&self) -> BTreeMap<ContextObject, Addresses> {
        let mut all: BTreeMap<ContextObject, Addresses> = BTreeMap::new();
        let threads = self.processes.iter().flat_map(|p| &p.threads);
        for file in threads.filter_map(|t| ThreadFile::parse(t.bytes).ok()) {
            let mut contexts = ThreadContexts::default();
            let mut locks = LockSums::default();
            file.contexts().for_each(|record| match record {
                Record::Lock(lock) => locks.note(&lock, &contexts),
                record => contexts.note(&record),
            });
            contexts.note_sums(&file);
            for (object, address) in locks.variables() {
                all.entry(object.clone()).or_default().data.insert(address);
            }
            for (object, address) in contexts.chains.values().flat_map(|c| &c.frames) {
                if let Some(object) = object {
                    let of_file = all.entry((**object).clone()).or_default();
                    of_file.code.insert(*address);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that has met these chains (innermost call first), of a program at this address.
    fn thread(bias: u64, chains: &[&[u64]]) -> ThreadContexts {
        let mut contexts = ThreadContexts::default();
        let program = Arc::new(ContextObject {
            path: "/bin/p".to_owned(),
            build_id: None,
        });
        contexts.objects = vec![(bias, bias + 0x1000, bias, program)];
        for (number, chain) in (1..).zip(chains) {
            let addresses = chain.iter().map(|address| bias + address);
            contexts.add(number, ChainEnd::Whole, addresses);
        }
        contexts
    }

    fn chains(all: &Contexts) -> Vec<Vec<u64>> {
        let of = |number| all.frames_of(number).map(|f| f.address).collect();
        (1..=all.frames.len() as u32).map(of).collect()
    }

    #[test]
    fn numbers_do_not_depend_on_who_met_what_first() {
        let (a, b, c): (&[u64], &[u64], &[u64]) = (&[3, 2, 1], &[9, 2, 1], &[2, 1]);
        let first = thread(0x10_0000, &[a, b]);
        let second = thread(0x10_0000, &[c, b]);
        let one = AllContexts::new([&first, &second].into_iter(), None);
        // Another process, elsewhere in memory, in another order.
        let other = thread(0x7f_0000, &[b, c, a]);
        let two = AllContexts::new([&other].into_iter(), None);
        assert_eq!(one.contexts, two.contexts);
        assert_eq!(one.contexts.frames.len(), 4);
        assert_eq!(
            chains(&one.contexts),
            [vec![1], vec![2, 1], vec![3, 2, 1], vec![9, 2, 1]]
        );
        let numbers = |all: &AllContexts, of: &ThreadContexts, n| all.number(of.chain(n));
        assert_eq!([1, 2].map(|n| numbers(&one, &first, n)), [3, 4]);
        assert_eq!([1, 2].map(|n| numbers(&one, &second, n)), [2, 4]);
        assert_eq!([1, 2, 3].map(|n| numbers(&two, &other, n)), [4, 2, 3]);
        assert_eq!(one.number(None), 0);
    }

    /// Two callers in turns, and a nested region that the second thread forks. All readers agree, which `FakeRun::read` checks.
    #[test]
    fn paths_differ_by_context() {
        use crate::summary::Summary;
        use crate::testing::{FakeRun, FakeThread};
        use ompfuse_format::Construct::{ImplicitTask, Parallel};
        use ompfuse_format::record::Step;
        let (one, two): (&[u64], &[u64]) = (&[0x30, 0x10], &[0x30, 0x20]);
        let mut run = FakeRun::new(&[(Parallel, 0x100), (Parallel, 0x200)], &[]);
        let mut master = FakeThread::new(0, 0, 1000);
        let mut worker = FakeThread::new(1, 0, 1000);
        for (nth, chain) in [one, two, one].into_iter().enumerate() {
            // The worker's numbers are its own.
            master.called_from(0, 1 + nth as u64 % 2, chain);
            let node = master.node();
            let rank = nth as i64 + 1;
            let root = FakeThread::root();
            master.record_node(Parallel, 0, node, root, Step::Ranked, rank);
            master.begin(Parallel, 0, node, root, Step::Ranked, rank);
            master.begin(ImplicitTask, 0, 0, node, Step::None, 0);
            master.work(100);
            worker.until(master.now - 100);
            worker.begin(ImplicitTask, 0, 0, node, Step::None, 1);
            worker.called_from(1, 7, &[0x50]);
            let inner = worker.node();
            worker.record_node(Parallel, 1, inner, node, Step::TidRanked, 1);
            worker.begin(Parallel, 1, inner, node, Step::TidRanked, 1);
            worker.begin(ImplicitTask, 1, 0, inner, Step::None, 0);
            worker.work(50);
            worker.end(0);
            worker.end(1);
            worker.work(50);
            worker.end(1);
            master.end(0);
            master.end(2);
            master.work(10);
        }
        worker.until(master.now);
        run.process(5, 1000, vec![master, worker], true);
        let run = run.read();
        assert_eq!(
            chains(&run.contexts),
            [
                vec![0x10],
                one.to_vec(),
                vec![0x20],
                two.to_vec(),
                vec![0x50]
            ]
        );
        let summary = Summary::of_run("r", &run);
        let forks = summary.paths.iter().filter_map(|p| {
            let executions = p.executions.as_ref()?.executions;
            Some((p.site?, p.context, executions))
        });
        let forks: Vec<_> = forks.collect();
        assert_eq!(forks, [(0, 2, 2), (1, 5, 2), (0, 4, 1), (1, 5, 1)]);
        // Where nobody asks for callers they are one.
        let flat = summary.parallel.iter().map(|p| (p.site, p.executions));
        assert_eq!(flat.collect::<Vec<_>>(), [(Some(0), 3), (Some(1), 3)]);
    }

    #[test]
    fn contexts_of_another_run_are_found() {
        let few = AllContexts::new([&thread(0x10_0000, &[&[9, 2, 1]])].into_iter(), None);
        let many = thread(0x20_0000, &[&[9, 2, 1], &[5, 1], &[1]]);
        let many = AllContexts::new([&many].into_iter(), None);
        // 1, 2 above it, 9 above that; 5 is only in one of them.
        assert_eq!(many.contexts.numbers_of(&few.contexts), [1, 2, 3]);
        assert_eq!(few.contexts.numbers_of(&many.contexts), [1, 2, 3, 0]);
    }

    #[test]
    fn code_in_no_file_has_its_own_address() {
        let mut contexts = thread(0x10_0000, &[]);
        contexts.objects.clear();
        contexts.add(1, ChainEnd::Unknown, [0x1234].into_iter());
        let all = AllContexts::new([&contexts].into_iter(), None).contexts;
        assert_eq!(all.objects, []);
        assert_eq!(
            (
                all.frames[0].object,
                all.frames[0].address,
                all.frames[0].cut
            ),
            (None, 0x1234, Some(Cut::Unknown))
        );
    }
}
