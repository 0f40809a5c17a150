//! Sites while they are collected: references by draft number until addresses decide the final order.

use crate::model::{Action, ProbeSpec, Target};
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::{Edge, Frame, Mechanism, Outcome, Source, Text};
use ompfuse_patterns::{Entry, Runtime};
use std::borrow::Cow;
use std::sync::Arc;

/// A site that isn't numbered yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub address: u64,
    /// Number of the function that it is in.
    pub function: Option<u32>,
    pub construct: Construct,
    pub edge: Edge,
    /// Draft number of the site where the construct begins; `None`: itself.
    pub region: Option<usize>,
    /// Number of the runtime function that is called.
    pub entry: Option<u32>,
    pub mechanism: Mechanism,
    pub outlined: Option<u64>,
    pub source: Option<Source>,
    /// Where functions were inlined around it: these, the innermost first.
    pub frames: Option<Arc<[Frame]>>,
    /// The function's name in debug information.
    pub debug_name: Option<Text>,
    pub detail: Option<Cow<'static, str>>,
    pub outcome: Outcome,
    pub reason: Option<Cow<'static, str>>,
    pub action: Option<Action>,
    /// Address whose source line is the site's.
    pub line_at: u64,
    /// The runtime function's record.
    pub record: Option<&'static Entry>,
    /// It leaves its function.
    pub tail: bool,
    /// The construct that a barrier ends, as KMPC's flags tell.
    pub ends: Option<Construct>,
    /// The number of threads that a call asks for, if that is a constant.
    pub threads: Option<u32>,
    /// A function copies the data of the task that a call creates.
    pub copies: bool,
    /// What is known of few sites: all of them are in memory at the same time.
    rare: Option<Box<Rare>>,
}

/// What few sites have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rare {
    /// Address of the call whose result is the task that it handles.
    pub argument_of: Option<u64>,
    /// The sites that imply it, where sites do.
    pub implied_by: Vec<usize>,
    /// Loops that a thread passes with this one if it has no iterations.
    pub follows: Vec<usize>,
    /// The loop that begins behind this barrier, and the site that computes its bounds.
    pub begins: Option<(usize, usize)>,
    /// Another place for its inline probe, and the register that it reads there.
    pub fallback: Option<(u64, u8)>,
    /// Addresses of the instructions of each cycle of the loop that begins here, if it may be two loops in the source.
    pub cycles: Option<Vec<Vec<u64>>>,
    /// Dimensions of a doacross loop of GOMP, whose waits have as many arguments.
    pub dimensions: Option<u64>,
    /// The construct's line in the file that the code is from, where its runtime is told of it.
    pub line: Option<u32>,
}

/// What is told of `sections` whose sections have no probe each.
pub(crate) const ONE_UNIT: &str = "static; a thread's sections are one unit";

/// Of sites that have nothing of it.
static NOTHING: Rare = Rare {
    argument_of: None,
    implied_by: Vec::new(),
    follows: Vec::new(),
    begins: None,
    fallback: None,
    cycles: None,
    dimensions: None,
    line: None,
};

impl Draft {
    /// A site at an address, without probe yet.
    pub(crate) fn new(address: u64, construct: Construct, edge: Edge) -> Draft {
        Draft {
            address,
            function: None,
            construct,
            edge,
            region: None,
            entry: None,
            mechanism: Mechanism::None,
            outlined: None,
            source: None,
            frames: None,
            debug_name: None,
            detail: None,
            outcome: Outcome::Skipped,
            reason: None,
            action: None,
            line_at: address,
            record: None,
            tail: false,
            ends: None,
            threads: None,
            copies: false,
            rare: None,
        }
    }

    /// What few sites have.
    pub(crate) fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING)
    }

    /// What few sites have, to give it to this one too.
    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// What few sites have, if this one has some of it.
    pub(crate) fn own_rare(&mut self) -> Option<&mut Rare> {
        self.rare.as_deref_mut()
    }

    /// Makes it a site without probe.
    pub(crate) fn skip(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.mechanism = Mechanism::None;
        self.outcome = Outcome::Skipped;
        self.reason = Some(reason.into());
        self.action = None;
    }

    /// Makes it a site that is no part of a construct, or one with nothing to measure.
    pub(crate) fn serve(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.skip(reason);
        self.outcome = Outcome::Service;
    }

    /// Makes it a site that needs no probe of its own.
    pub(crate) fn imply(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.mechanism = Mechanism::Implied;
        self.outcome = Outcome::Patchable;
        self.reason = Some(reason.into());
        self.action = None;
    }

    /// Gives it a probe before the instruction at its address.
    pub(crate) fn inline(&mut self, probe: ProbeSpec) {
        self.mechanism = Mechanism::Inline;
        self.outcome = Outcome::Patchable;
        self.action = Some(Action::Inline(probe));
    }

    /// Gives it the probe of a retargeted call.
    pub(crate) fn call(&mut self, len: u8, tail: bool, target: Target, probe: ProbeSpec) {
        self.mechanism = match probe.probe {
            Probe::Parallel
            | Probe::ParallelLoop
            | Probe::ParallelReductions
            | Probe::ParallelSections
            | Probe::ParallelStart
            | Probe::Fork
            | Probe::ForkIf
            | Probe::TaskCreate
            | Probe::Taskloop
            | Probe::TaskAlloc => Mechanism::Closure,
            _ => Mechanism::CallSite,
        };
        self.outcome = Outcome::Patchable;
        self.action = Some(Action::Call {
            len,
            tail,
            relayed: false,
            target,
            probe,
        });
    }

    /// Says of the begin of a static loop of KMPC's whether its chunks have probes.
    pub(crate) fn tell_chunks(&mut self, chunks: bool) {
        if self.construct == Construct::Sections {
            self.detail = Some(if chunks { "static" } else { ONE_UNIT }.into());
        }
        if let Some(Action::Call { probe, .. }) = &mut self.action {
            probe.chunks = chunks;
        }
    }

    /// Whether it is a call of GOMP that hands over an outlined function.
    pub(crate) fn is_gomp(&self) -> bool {
        self.record.is_some_and(|e| e.runtime == Runtime::Gomp)
    }

    /// Whether it is a call that ends a loop of GOMP.
    pub(crate) fn is_loops_end(&self) -> bool {
        self.is_gomp() && self.edge == Edge::End && self.construct == Construct::Loop
    }

    /// Whether it begins a doacross loop of GOMP.
    pub(crate) fn is_doacross(&self) -> bool {
        let detail = self.record.and_then(|e| e.detail.as_deref());
        self.is_gomp() && detail.is_some_and(|d| d.ends_with("doacross"))
    }

    /// The probe that its action places.
    pub(crate) fn probe(&self) -> Option<Probe> {
        match self.action.as_ref()? {
            Action::Call { probe, .. } | Action::Inline(probe) => Some(probe.probe),
        }
    }
}
