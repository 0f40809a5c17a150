//! Calling contexts as threads have met them.

use super::ContextObject;
use ompfuse_format::record::context::{self, ChainEnd, Language};
use ompfuse_format::record::sums::Entry;
use ompfuse_format::record::{Node, Record, ThreadFile};
use std::collections::HashMap;
use std::sync::Arc;

/// A chain of calls, innermost first, as a thread recorded it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Chain {
    pub(super) end: ChainEnd,
    /// Outermost first, so that neighbours in order have callers in common.
    pub(super) frames: Vec<(Option<Arc<ContextObject>>, u64)>,
}

/// What a thread's records have said so far.
#[derive(Debug, Default)]
pub(crate) struct ThreadContexts {
    pub(super) objects: Vec<(u64, u64, u64, Arc<ContextObject>)>,
    pub(super) chains: HashMap<u64, Arc<Chain>>,
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
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut parts = object.path.splitn(2, |&b| b == 0);
        let path = parts.next().unwrap_or_default();
        let function = parts.next().unwrap_or_default();
        let named = ContextObject {
            path: text(path),
            build_id: (!object.build_id.is_empty()).then(|| hex(object.build_id)),
            python: object.language.map(|Language::Python| text(function)),
        };
        let place = (object.begin, object.end, object.bias, Arc::new(named));
        self.objects.push(place);
    }

    fn context(&mut self, context: &context::Context<'_>) {
        self.add(context.number, context.end, context.addresses());
    }

    /// A chain of run-time addresses.
    pub(super) fn add(&mut self, number: u64, end: ChainEnd, addresses: impl Iterator<Item = u64>) {
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
    pub(in crate::run) fn file_of(&self, address: u64) -> Option<(&Arc<ContextObject>, u64)> {
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
