//! Calling contexts: from threads' records to one tree of frames, which doesn't depend on who met what first.

mod met;
#[cfg(test)]
mod tests;

pub(crate) use met::{Chain, ProcessContexts, ThreadContexts};

use super::locks::LockSums;
use ompfuse_format::record::context::{self, ChainEnd};
use ompfuse_format::record::{Record, ThreadFile};
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

/// A file that calls were in: the program or a library; or a Python function.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContextObject {
    /// Its path: the original's, where a patched copy was loaded.
    pub path: String,
    /// Build id in hexadecimal, where it is known.
    pub build_id: Option<String>,
    /// Of a Python function: its name with the classes and functions around. The path is that of its source, and addresses are lines there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
}

impl ContextObject {
    /// What is known of a place in a Python function. Line 0 is not known.
    fn python_name(&self, line: u64) -> Option<FrameName> {
        let function = self.python.clone()?;
        Some(FrameName {
            function: Some(function),
            offset: None,
            file: Some(self.path.clone()),
            line: u32::try_from(line).ok().filter(|&line| line > 0),
        })
    }
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFrame {
    /// Position of the caller's frame, before this one's; `None`: the outermost that is known.
    pub parent: Option<u32>,
    /// Position in [`Contexts::objects`]; `None`: code in no file.
    pub object: Option<u32>,
    /// Where the call returns to: link-time address in the file, else as in the process. In a Python function: the line.
    pub address: u64,
    /// Of an outermost frame: why the chain ends there, if it is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What is known of the place.
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
    /// Bytes from the function's begin, which is known of some without symbol, too.
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
                let python = object.as_ref().and_then(|o| o.python_name(*address));
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
                        name: match python {
                            Some(name) => name,
                            None => name.cloned().unwrap_or_default(),
                        },
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
                if let Some(object) = object.as_ref().filter(|o| o.python.is_none()) {
                    let of_file = all.entry(ContextObject::clone(object)).or_default();
                    of_file.code.insert(*address);
                }
            }
        }
        all
    }
}
