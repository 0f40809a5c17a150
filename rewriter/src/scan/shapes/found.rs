//! What finders return. Sites are made of it here, and nowhere else.

use super::Analysis;
use super::ends::End;
use super::why::Why;
use crate::model::{ProbeSpec, Target};
use crate::scan::draft::Draft;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::Edge;

/// Where a probe is placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In front of the instruction.
    Inline(ProbeSpec),
    /// The same; also where else it may be, and the register that it reads there.
    InlineOr(ProbeSpec, (u64, u8)),
    /// At a call of so many bytes, which leads to the runtime function with a number.
    Call(ProbeSpec, u8, Target, u32),
    /// In front of the instruction, for a loop whose bounds are computed where another one of the list is.
    Again(usize),
    /// Nowhere: a loop begins behind barriers.
    Behind(Behind),
}

/// How a loop begins that has no test of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Behind {
    /// Calls of the barriers.
    pub barriers: Vec<u64>,
    /// Number of what computes its bounds in the list.
    pub share: usize,
    /// Number of the loop whose test is its test too.
    pub leader: usize,
}

/// A place where a construct, or a part of it, begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub construct: Construct,
    pub detail: &'static str,
    pub edge: Edge,
    pub at: u64,
    /// Address of the instruction with its source line.
    pub line_at: u64,
    /// Number of what begins the construct in the list; `None`: itself.
    pub of: Option<usize>,
    /// How it is recorded.
    pub place: Result<Place, Why>,
    /// Why it isn't recorded there after all.
    pub lost: Option<Why>,
    /// Where its further parts begin.
    pub next: Vec<(u64, ProbeSpec)>,
    pub end: Option<End>,
    /// See [`crate::scan::draft::Rare::cycles`].
    pub cycles: Option<Vec<Vec<u64>>>,
}

impl Found {
    /// A construct that begins at an address.
    pub(super) fn begin(
        construct: Construct,
        detail: &'static str,
        at: u64,
        place: Result<Place, Why>,
    ) -> Found {
        Found {
            construct,
            detail,
            edge: Edge::Begin,
            at,
            line_at: at,
            of: None,
            place,
            lost: None,
            next: Vec::new(),
            end: None,
            cycles: None,
        }
    }

    /// Why it isn't recorded.
    pub(super) fn why(&self) -> Option<Why> {
        self.lost.or(self.place.as_ref().err().copied())
    }

    /// Gives it its end; without one it isn't recorded.
    pub(super) fn ends(&mut self, end: End) {
        match end {
            End::Nowhere(endless) => self.lost = Some(Why::NoEnd(endless)),
            end => self.end = Some(end),
        }
    }

    /// Its site; `first`: the number of the list's first one.
    fn draft(&self, a: &Analysis<'_, '_>, first: usize) -> Draft {
        let mut draft = Draft::new(self.at, self.construct, self.edge);
        draft.function = a.function();
        draft.detail = Some(self.detail.into());
        draft.line_at = self.line_at;
        draft.region = self.of.map(|n| first + n);
        match &self.place {
            Ok(Place::Inline(probe)) => draft.inline(*probe),
            Ok(Place::InlineOr(probe, other)) => {
                draft.rare_mut().fallback = Some(*other);
                draft.inline(*probe);
            }
            Ok(Place::Call(probe, len, target, number)) => {
                draft.entry = Some(*number);
                draft.call(*len, false, *target, *probe);
            }
            Ok(Place::Again(share)) => draft.inline(ProbeSpec {
                param: (first + share) as i64, // replaced by the site's number
                ..ProbeSpec::bare(Probe::InlineLoopAgain)
            }),
            Ok(Place::Behind(Behind { barriers, .. })) => {
                draft.imply(format!("begins behind the barrier at {:#x}", barriers[0]));
                draft.rare_mut().implied_by = a.drafts_at(barriers);
            }
            Err(_) => {}
        }
        if self.cycles.is_some() {
            draft.rare_mut().cycles.clone_from(&self.cycles);
        }
        if let Some(why) = self.why() {
            draft.skip(why.told());
        }
        draft
    }
}

/// What shapes find.
pub(super) enum Find {
    Begin(Found),
    /// Where the next chunk begins of the loop that the call of a draft begins.
    Next(usize, u64),
    /// The end of the construct that the call of a draft begins.
    End(usize, End),
}

/// Makes sites of what was found.
pub(super) fn add(a: &Analysis<'_, '_>, all: Vec<Find>, drafts: &mut Vec<Draft>) {
    let mut begins = Vec::new();
    for find in all {
        match find {
            Find::Begin(found) => begins.push(found),
            Find::Next(begin, at) => add_chunks(a, begin, at, drafts),
            Find::End(begin, end) => add_end(a, begin, end, drafts),
        }
    }
    let first = drafts.len();
    drafts.extend(begins.iter().map(|found| found.draft(a, first)));
    for (n, found) in begins.into_iter().enumerate() {
        let begin = first + n;
        let why = found.why();
        let parts = drafts.len();
        for (at, probe) in found.next {
            let mut next = Draft::new(at, found.construct, Edge::Next);
            next.function = a.function();
            next.detail = Some(found.detail.into());
            next.region = Some(begin);
            next.inline(probe);
            drafts.push(next);
        }
        if let Some(end) = found.end {
            add_end(a, begin, end, drafts);
        }
        if let Some(why) = why {
            drafts[parts..].iter_mut().for_each(|d| d.skip(why.told()));
        } else if let Ok(Place::Behind(behind)) = found.place {
            for barrier in a.drafts_at(&behind.barriers) {
                drafts[barrier].rare_mut().begins = Some((begin, first + behind.share));
            }
            let leader = first + behind.leader;
            drafts[leader].rare_mut().follows.push(begin);
        }
    }
}

/// Adds the end of the construct that a draft begins.
fn add_end(a: &Analysis<'_, '_>, begin: usize, end: End, drafts: &mut Vec<Draft>) {
    let construct = drafts[begin].construct;
    let mut draft = Draft::new(0, construct, Edge::End);
    draft.function = a.function();
    draft.region = Some(drafts[begin].region.unwrap_or(begin));
    draft.detail.clone_from(&drafts[begin].detail);
    let at = |address: u64| {
        let mut draft = draft.clone();
        (draft.address, draft.line_at) = (address, address);
        draft
    };
    match end {
        End::Implied(places, by) => {
            let implied_by = a.drafts_at(&places);
            for &d in &implied_by {
                if construct != Construct::Master && drafts[d].construct == Construct::Barrier {
                    drafts[d].construct = Construct::ImplicitBarrier;
                    drafts[d].region.get_or_insert(begin);
                }
            }
            let Some(&first) = places.first() else { return };
            let mut draft = at(first);
            draft.imply(by.told());
            draft.rare_mut().implied_by = implied_by;
            drafts.push(draft);
        }
        End::Probes(places) => drafts.extend(places.into_iter().map(|address| {
            let mut draft = at(address);
            draft.inline(ProbeSpec::bare(Probe::InlineEnd));
            draft
        })),
        End::Nowhere(endless) => drafts[begin].skip(Why::NoEnd(endless).told()),
    }
}

/// Adds the places where the next chunk of a call's loop begins.
fn add_chunks(a: &Analysis<'_, '_>, begin: usize, at: u64, drafts: &mut Vec<Draft>) {
    drafts[begin].tell_chunks(true);
    let mut draft = Draft::new(at, drafts[begin].construct, Edge::Next);
    draft.function = a.function();
    draft.detail.clone_from(&drafts[begin].detail);
    draft.region = Some(begin);
    draft.inline(ProbeSpec::bare(Probe::InlineNextChunk));
    drafts.push(draft);
}
