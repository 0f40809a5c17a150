//! What finders return. Sites are made of it here, and nowhere else.

use super::Analysis;
use crate::model::{ProbeSpec, Target};
use crate::scan::draft::Draft;
use ompfuse_format::Construct;
use ompfuse_format::site::Edge;

/// Why a construct has no probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Uncompared,
    SeveralEnds,
    Unclear,
    InMemory,
    Forms,
    Irreducible,
}

impl Why {
    /// The same in words.
    fn told(self) -> &'static str {
        match self {
            Why::Uncompared => "its first chunk begins without a comparison",
            Why::SeveralEnds => "its chunks end in several places",
            Why::Unclear => "its comparison with the bound is of a form without probe",
            Why::InMemory => "its bound is in memory that no register leads to",
            Why::Forms => "it has other forms that its chunks may be executed in",
            Why::Irreducible => "its chunks' cycle is entered in several places",
        }
    }
}

/// Where a probe is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In front of the instruction.
    Inline(ProbeSpec),
    /// The same; also where else it may be, and the register that it reads there.
    InlineOr(ProbeSpec, (u64, u8)),
    /// At a call of so many bytes, which leads to the runtime function with a number.
    Call(ProbeSpec, u8, Target, u32),
}

/// A construct that was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub construct: Construct,
    pub detail: &'static str,
    /// Where it begins.
    pub at: u64,
    /// How its begin is recorded.
    pub place: Result<Place, Why>,
    /// Where its further parts begin.
    pub next: Vec<(u64, ProbeSpec)>,
    /// The block whose branch everything of it is behind; if there is one, its end is looked for.
    pub branch: Option<usize>,
}

/// Makes sites of what was found.
pub(super) fn add(a: &Analysis<'_, '_>, all: Vec<Found>, drafts: &mut Vec<Draft>) {
    for found in all {
        let draft = |at: u64, edge: Edge| {
            let mut draft = Draft::new(at, found.construct, edge);
            draft.function = a.function();
            draft.detail = Some(found.detail.into());
            draft
        };
        let begin = drafts.len();
        let mut first = draft(found.at, Edge::Begin);
        match found.place {
            Ok(Place::Inline(probe)) => first.inline(probe),
            Ok(Place::InlineOr(probe, other)) => {
                first.rare_mut().fallback = Some(other);
                first.inline(probe);
            }
            Ok(Place::Call(probe, len, target, number)) => {
                first.entry = Some(number);
                first.call(len, false, target, probe);
            }
            Err(why) => first.skip(why.told()),
        }
        drafts.push(first);
        for &(at, probe) in &found.next {
            let mut next = draft(at, Edge::Next);
            next.region = Some(begin);
            next.inline(probe);
            drafts.push(next);
        }
        if let Some(branch) = found.branch {
            a.add_end(begin, branch, branch, drafts);
        }
    }
}
