//! The scan of everything that was found.

use super::function::Whole;
use super::{Module, atomics, draft, numbering, source};
use crate::debug::DebugFiles;
use crate::model::{LinkVa, Relay, Scan, Window};
use ompfuse_format::abi::OWN_FUNCTIONS;
use ompfuse_format::site::BinaryInfo;

/// Adds source lines, and numbers everything by address.
pub(super) fn assemble(
    module: &Module<'_>,
    whole: Whole,
    binary: BinaryInfo,
    debug: DebugFiles<'_>,
) -> Scan {
    let Whole {
        mut drafts,
        windows: placed,
        relays,
        atomics,
    } = whole;
    atomics::add(module, &atomics, &mut drafts);
    let sections = source::AllSections::read(module.image.bytes, debug);
    source::place::find(&source::Lines::read(&sections), &mut drafts);
    tell_leftovers(module, &mut drafts);
    let (ids, sites) = numbering::number(module, drafts);
    let windows = placed
        .into_iter()
        .map(|placed| {
            let mut sites: Vec<u32> = placed.members.into_iter().map(|d| ids[d]).collect();
            sites.sort_unstable();
            Window {
                start: LinkVa(placed.range.start),
                len: (placed.range.end - placed.range.start) as u32,
                sites,
                island: placed.island.map(LinkVa),
            }
        })
        .collect();
    let relays = relays
        .into_iter()
        .map(|relay| Relay {
            target: relay.target,
            loads: relay.loads.into_iter().map(LinkVa).collect(),
            reads: relay.reads,
            sites: relay.members.into_iter().map(|d| ids[d]).collect(),
        })
        .collect();
    Scan {
        binary,
        sites,
        windows,
        relays,
        increments: Vec::new(),
        counting: Vec::new(),
        own_functions: own_functions(module),
    }
}

/// Says of the sites in code that BOLT has moved, and left where it was, that this is so. Functions that it has not moved have their
/// symbols there.
fn tell_leftovers(module: &Module<'_>, drafts: &mut [draft::Draft]) {
    let mut sections = module.image.sections.iter();
    let Some(left) = sections.find(|s| s.name == ".bolt.org.text") else {
        return;
    };
    let is_inside = |va: u64| va.wrapping_sub(left.va) < left.size;
    let is_left = |d: &&mut draft::Draft| {
        let function = d.function.map(|f| module.functions.get(f as usize));
        // A name of something in front, as mold gives its stubs, is none of this code.
        let is_named = function.is_some_and(|f| f.name.is_some() && is_inside(f.start));
        is_inside(d.address) && !is_named && d.reason.is_none()
    };
    let has_symbols = !module.symbols.is_empty();
    for draft in drafts.iter_mut().filter(is_left).filter(|_| has_symbols) {
        draft.reason = Some("BOLT has moved its function: nothing executes this copy".into());
    }
}

/// The runtime's functions that ours asks, where they are linked in.
pub(super) fn own_functions(module: &Module<'_>) -> [Option<LinkVa>; OWN_FUNCTIONS.len()] {
    if !module.entries.contains_runtime {
        return Default::default();
    }
    let symbols = module.symbols.iter().chain(&module.dynamic.symbols);
    OWN_FUNCTIONS.map(|(_, name)| {
        let mut all = symbols.clone();
        let found = all.find(|s| {
            let own = s.defined && module.image.is_code(s.va);
            own && s.name.split('@').next() == Some(name)
        });
        found.map(|s| LinkVa(s.va))
    })
}
