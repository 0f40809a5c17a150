//! Labels of spans.

use super::{Kind, Lane, Span, Timeline};
use crate::label::Label;
use ompfuse_format::record::{Interval, Step};

/// What labels of one parent and one place have in common; equal for those of which only a number differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatternKey {
    process: u16,
    parent: u64,
    site: u32,
    step: Step,
}

/// A unit's label, as what it has in common with others of its parent and its place, and its own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelPattern {
    /// What is in common; [`Timeline::pattern_text`] has it as text.
    pub key: PatternKey,
    /// What stands in place of the `*`.
    pub number: u64,
}

/// What a label adds to that of its parent.
#[derive(Debug, Clone, Copy)]
enum Suffix {
    Range(u64),
    Ranked(u64, u64),
    TidRanked(u64, u64),
    Nothing,
}

impl Timeline<'_> {
    /// A unit's or a construct's label; `None`: it has none, or it is longer than so many components.
    pub fn label(&self, lane: &Lane, span: &Span<'_>, most: usize) -> Option<Label> {
        let record = labelled(span)?;
        if record.step == Step::Root {
            return Some(Label(vec![0]));
        }
        let suffix: &[u64] = match self.suffix(lane, record)? {
            Suffix::Ranked(index, address) => &[index, address],
            Suffix::TidRanked(index, address) => &[0, index, address],
            Suffix::Range(index) => &[index],
            Suffix::Nothing => &[],
        };
        let mut label = self.label_of_parent(lane, record, most)?;
        label.0.extend_from_slice(suffix);
        Some(label).filter(|label| label.0.len() <= most)
    }

    /// The label of a unit without its number, and that number. `None`: it has no label.
    pub fn label_pattern(&self, lane: &Lane, span: &Span<'_>) -> Option<LabelPattern> {
        let record = labelled(span).filter(|_| span.is_unit())?;
        let number = match self.suffix(lane, record)? {
            Suffix::Ranked(number, _) | Suffix::TidRanked(number, _) | Suffix::Range(number) => {
                number
            }
            Suffix::Nothing => return None,
        };
        let key = PatternKey {
            process: lane.process,
            parent: record.parent,
            site: record.site,
            step: record.step,
        };
        Some(LabelPattern { key, number })
    }

    /// What units with this one's [`PatternKey`] have in common, with a `*` for the number. `None`: it is longer than so many
    /// components.
    pub fn pattern_text(&self, lane: &Lane, span: &Span<'_>, most: usize) -> Option<String> {
        let record = labelled(span)?;
        let suffix = match self.suffix(lane, record)? {
            Suffix::Ranked(_, address) => format!(".*.{address}"),
            Suffix::TidRanked(_, address) => format!(".0.*.{address}"),
            Suffix::Range(_) => ".*".to_owned(),
            Suffix::Nothing => return None,
        };
        let parent = self.label_of_parent(lane, record, most)?;
        Some(parent.to_string() + &suffix)
    }

    fn suffix(&self, lane: &Lane, record: &Interval<'_>) -> Option<Suffix> {
        let index = record.index as u64;
        let address = || Some(self.place(lane, record.site)?.1);
        Some(match record.step {
            Step::Ranked => Suffix::Ranked(index, address()?),
            Step::TidRanked => Suffix::TidRanked(index, address()?),
            Step::Range => Suffix::Range(index),
            Step::None | Step::Root => Suffix::Nothing,
        })
    }

    fn label_of_parent(&self, lane: &Lane, record: &Interval<'_>, most: usize) -> Option<Label> {
        let process = &self.reader.processes[lane.process as usize];
        let parent = process.index.get(record.parent)?;
        let id = self.reader.nodes.label[parent as usize];
        let id = Some(id).filter(|id| id.is_some())?;
        self.reader.labels.get(id, most)
    }
}

/// The record of what has a label.
fn labelled<'s>(span: &'s Span<'_>) -> Option<&'s Interval<'s>> {
    let record = span
        .record
        .as_ref()
        .filter(|_| span.kind == Kind::Interval)?;
    let has = record.node != 0 || record.construct.is_share();
    has.then_some(record)
}
