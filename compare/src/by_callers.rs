//! Sides whose regions are parted by their callers, where nothing surer tells which region of the other side each one is.

use super::side::{Side, SideRegion};
use super::{matching, turns};
use ompfuse_account::model::key::RegionKey;
use std::collections::{HashMap, HashSet};

/// Both sides as they are compared: regions that neither an address nor a source line tells are there by their callers, and what single
/// runs measured is there if they make pairs.
pub fn by_callers(a: &Side, b: &Side) -> (Side, Side) {
    let sure = matching::sure(a, b);
    let mut both = (parted(a, &sure[0]), parted(b, &sure[1]));
    if turns::pairs(a, b).is_none() {
        turns::forget(&mut both.0);
        turns::forget(&mut both.1);
    }
    both
}

/// A side without its parts: in place of regions that are not `sure`, or among the regions no longer.
fn parted(side: &Side, sure: &[bool]) -> Side {
    let count = side.regions.len();
    let whole: HashMap<&RegionKey, usize> = side.regions.iter().map(|r| &r.key).zip(0..).collect();
    let of_part: Vec<Option<usize>> = (side.parts.iter())
        .map(|part| whole.get(&part.key.whole()).copied())
        .collect();
    let has_parts: HashSet<usize> = of_part.iter().copied().flatten().collect();
    let is_parted = |at: usize| -> bool {
        let region = &side.regions[at];
        let fits = |at: usize| !sure[at] && has_parts.contains(&at);
        // What is in a region is parted as the region is.
        let around = region.parent.map(|p| whole_of(p as usize, count, &of_part));
        fits(at) && (region.key.construct.is_fork() || around.flatten().is_some_and(fits))
    };
    let parted: Vec<bool> = (0..count).map(is_parted).collect();
    let is_kept = |at: usize| match at < count {
        true => !parted[at],
        false => of_part[at - count].is_some_and(|whole| parted[whole]),
    };
    let region = |at: usize| -> &SideRegion {
        match at < count {
            true => &side.regions[at],
            false => &side.parts[at - count],
        }
    };
    let mut order: Vec<usize> = (0..count + side.parts.len())
        .filter(|&at| is_kept(at))
        .collect();
    order.sort_by(|&x, &y| region(y).share.total_cmp(&region(x).share));
    let place: HashMap<usize, u32> = order.iter().copied().zip(0..).collect();
    let parent = |at: u32| -> Option<u32> {
        let at = at as usize;
        let whole = whole_of(at, count, &of_part)?;
        // In the first part of a region that is parted, if it is not known which one it is.
        let first = || (0..of_part.len()).find(|&part| of_part[part] == Some(whole));
        let other = match parted[whole] {
            true => count + first()?,
            false => whole,
        };
        place.get(&at).or_else(|| place.get(&other)).copied()
    };
    let regions = order.iter().map(|&at| {
        let mut made = region(at).clone();
        made.parent = made.parent.and_then(parent);
        let callers = std::mem::take(&mut made.callers);
        if at < count && !sure[at] {
            made.key.callers = callers;
        }
        made
    });
    let mut regions: Vec<SideRegion> = regions.collect();
    mark_shared(&mut regions);
    Side {
        version: side.version,
        origin: side.origin.clone(),
        interfaces: side.interfaces.clone(),
        total: side.total.clone(),
        uncounted: side.uncounted.clone(),
        regions,
        parts: vec![],
        each: side.each.clone(),
        begun: side.begun.clone(),
    }
}

/// Marks the functions that several others call: a wrapper around parallel regions tells of none of them what it is.
fn mark_shared(regions: &mut [SideRegion]) {
    let mut callers_of: HashMap<String, Option<String>> = HashMap::new();
    let mut shared: HashSet<String> = HashSet::new();
    for region in regions.iter() {
        let named = region.key.callers.iter();
        let mut named = named.filter_map(|c| c.function.as_deref());
        let mut caller = named.next();
        for function in named {
            let known = callers_of.entry(function.to_owned());
            let known = known.or_insert_with(|| caller.map(str::to_owned));
            if known.as_deref() != caller {
                shared.insert(function.to_owned());
            }
            caller = Some(function);
        }
    }
    let callers = regions.iter_mut().flat_map(|r| &mut r.key.callers);
    for caller in callers {
        caller.is_shared = caller.function.as_ref().is_some_and(|f| shared.contains(f));
    }
}

/// The region that a position among regions and parts belongs to.
fn whole_of(at: usize, regions: usize, of_part: &[Option<usize>]) -> Option<usize> {
    match at.checked_sub(regions) {
        None => Some(at),
        Some(part) => of_part.get(part).copied().flatten(),
    }
}
