//! From drafts to sites: their order, their numbers, and texts in place of references to functions.

use super::Module;
use super::draft::Draft;
use crate::model::{Action, Site};
use ompfuse_format::abi::{Probe, encode_followers};
use ompfuse_format::site::{Edge, HexAddress, SiteInfo, Text};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cmp::Reverse;

/// At least so many sites does a thread make at a time.
const SHARE: usize = 4096;

/// Orders the sites by address and numbers them; also the number of each draft.
pub(super) fn number(module: &Module<'_>, drafts: Vec<Draft>) -> (Vec<u32>, Vec<Site>) {
    let rank = |edge| match edge {
        Edge::End => 0u8,
        Edge::Next => 1,
        Edge::Begin | Edge::Encloses => 2,
    };
    // At one address ends come before begins, and inner constructs end before outer ones.
    let mut order: Vec<_> = drafts
        .iter()
        .zip(0u32..)
        .map(|(d, i)| {
            let begun = d.region.map_or(0, |r| drafts[r].address);
            (d.address, rank(d.edge), Reverse(begun), i)
        })
        .collect();
    // Most of it is in order, which a stable sort makes use of.
    order.sort();
    let mut ids = vec![0u32; drafts.len()];
    for (id, &(.., i)) in (0..).zip(&order) {
        ids[i as usize] = id;
    }
    let callees = module.entries.callees.iter();
    let entries: Vec<Text> = callees.map(|c| Text::from(c.symbol)).collect();
    let texts = || Texts {
        module,
        entries: &entries,
        function: None,
        fixed: FxHashMap::default(),
        made: FxHashSet::default(),
    };
    let sites = order
        .par_iter()
        .with_min_len(SHARE)
        .map_init(texts, |texts, &(.., i)| {
            site(&drafts[i as usize], i as usize, &ids, texts)
        })
        .collect();
    (ids, sites)
}

/// Texts of sites: of equal ones a thread makes one.
struct Texts<'m, 'a> {
    module: &'m Module<'a>,
    /// Of the runtime's functions.
    entries: &'m [Text],
    /// The last function's name: sites of a function stand together.
    function: Option<(u32, Option<Text>)>,
    /// Those that the program holds, by their places.
    fixed: FxHashMap<usize, Text>,
    made: FxHashSet<Text>,
}

impl Texts<'_, '_> {
    fn function(&mut self, number: u32) -> Option<Text> {
        match &self.function {
            Some((known, name)) if *known == number => name.clone(),
            _ => {
                let name = self.module.functions.get(number as usize).base_name();
                let name = name.map(Text::from);
                self.function = Some((number, name.clone()));
                name
            }
        }
    }

    fn text(&mut self, text: &Option<Cow<'static, str>>) -> Option<Text> {
        Some(match text.as_ref()? {
            Cow::Owned(text) => match self.made.get(text.as_str()) {
                Some(known) => known.clone(),
                None => {
                    let new = Text::from(text.as_str());
                    self.made.insert(new.clone());
                    new
                }
            },
            Cow::Borrowed(text) => match self.fixed.get(&text.as_ptr().addr()) {
                // One may begin as another does.
                Some(known) if **known == **text => known.clone(),
                _ => {
                    let new = Text::from(*text);
                    self.fixed.insert(text.as_ptr().addr(), new.clone());
                    new
                }
            },
        })
    }
}

/// The site that a draft, whose number is `i`, becomes.
fn site(draft: &Draft, i: usize, ids: &[u32], texts: &mut Texts<'_, '_>) -> Site {
    let mut action = draft.action.clone();
    if let Some(Action::Inline(probe)) = &mut action
        && probe.probe == Probe::InlineLoopAgain
    {
        probe.param = i64::from(ids[probe.param as usize]);
    }
    if let (Some(Action::Call { probe, .. }), Some((begin, share))) =
        (&mut action, draft.rare().begins)
    {
        probe.param = i64::from(ids[begin]);
        probe.second = i64::from(ids[share]) + 1;
    }
    if let Some(Action::Inline(probe)) = &mut action
        && !draft.rare().follows.is_empty()
    {
        let follows: Vec<u32> = draft.rare().follows.iter().map(|&f| ids[f]).collect();
        // As many as `shapes::again` allows, in one function: never too many or too far away.
        probe.second = encode_followers(ids[i], &follows).unwrap_or(0);
    }
    Site {
        info: SiteInfo {
            id: ids[i],
            address: HexAddress(draft.address),
            function: draft
                .function
                .and_then(|f| texts.function(f))
                .or_else(|| draft.debug_name.clone()),
            construct: draft.construct,
            edge: draft.edge,
            region: ids[draft.region.unwrap_or(i)],
            entry: draft.entry.map(|e| texts.entries[e as usize].clone()),
            mechanism: draft.mechanism,
            outlined: draft.outlined.map(HexAddress),
            source: draft.source.clone(),
            frames: draft.frames.clone(),
            detail: texts.text(&draft.detail),
            outcome: draft.outcome,
            reason: texts.text(&draft.reason),
        },
        action,
        asks_threads: draft.threads,
        copies: draft.copies,
    }
}
