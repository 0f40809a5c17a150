//! Loops whose bounds the compiler computed before, for another loop of the same length or once for all rounds of a cycle.

use super::division::Division;
use super::ends::{End, Own};
use super::found::{Behind, Found, Place};
use super::loops::Shape;
use super::why::{Lost, Why};
use super::{Analysis, NaturalLoop, def_use, repeated};
use ompfuse_format::abi::{MAX_FOLLOWERS, Probe};
use ompfuse_format::site::Edge;
use std::collections::{BTreeMap, BTreeSet};

/// A loop with the bounds of another.
pub(super) struct Sharer {
    /// The division whose results its bounds are.
    pub share: u64,
    /// Its number.
    pub begin: usize,
    /// The block whose branch everything of the loop is behind; `None`: it begins at `places`.
    branch: Option<usize>,
    /// Where it begins, once for each copy of the barrier, or of the test, before it.
    places: Vec<u64>,
    /// Numbers of the copies of its test, the first one's included; none where it begins behind barriers.
    pub tests: Vec<usize>,
    /// Headers of its cycles.
    headers: Vec<usize>,
}

impl Sharer {
    /// Where it begins, but for what [`Sharer::tests`] tell.
    pub(super) fn places(&self) -> &[u64] {
        &self.places
    }

    /// Where it ends.
    pub(super) fn end(&self, a: &Analysis<'_, '_>, own: &Own) -> End {
        match self.branch {
            Some(branch) => a.end_of(branch, branch, own),
            None => a.end_behind(&self.places, &self.headers, own),
        }
    }
}

/// Makes the division with number `share` compute bounds only: its loop begins at the diverging branch of block `first`, which is
/// executed more often, or behind other constructs. The new begin.
pub(super) fn add_apart(
    a: &Analysis<'_, '_>,
    share: usize,
    first: usize,
    all: &mut Vec<Found>,
) -> usize {
    let begin = all.len();
    let division = &mut all[share];
    let at = a.body.insns[a.decisions[&first].compare].ip();
    let again = Ok(Place::Again(share));
    let mut found = Found::begin(division.construct, division.detail, at, again);
    found.line_at = division.line_at;
    division.of = Some(begin);
    division.edge = Edge::Next;
    division.detail = "static, bounds";
    if let Ok(Place::Inline(spec)) = &mut division.place {
        spec.probe = Probe::InlineLoopShare;
    }
    all.push(found);
    begin
}

/// Whether a cycle leaves depending on a division's results.
pub(super) fn iterates(a: &Analysis<'_, '_>, cycle: &NaturalLoop, id: u64) -> bool {
    cycle.blocks.iter().any(|&b| {
        let decision = a.decisions.get(&b).filter(|_| a.leaves(b, cycle));
        decision.is_some_and(|d| d.is_of(id))
    })
}

/// Whether a division's loop is tested, at the branch of block `first`, in each of its iterations too: a begin there would be
/// executed for each.
pub(super) fn tests_in_iterations(a: &Analysis<'_, '_>, division: &Division, first: usize) -> bool {
    let id = a.flow.name(division.insn.ip());
    let around = a.cycles().iter().filter(|c| c.blocks.contains(&first));
    let mut own = around
        .clone()
        .filter(|c| !c.blocks.contains(&division.block));
    if own.any(|c| iterates(a, c, id)) {
        return true;
    }
    // A cycle with two entries is none of these: from the branch back to it, without a new round of those around it.
    let mut passed: BTreeSet<usize> = around.map(|c| c.header).collect();
    passed.insert(division.block);
    let mut succs = a.body.blocks[first].succs.iter();
    !passed.contains(&first) && succs.any(|&s| a.leads_to(s, first, &passed))
}

/// Why the loop can't be followed, if the compiler put its test before a cycle in which it is executed again and again.
pub(super) fn unswitched(a: &Analysis<'_, '_>, id: u64, first: usize) -> Option<Why> {
    let around = |inner: &&NaturalLoop| {
        a.cycles().iter().any(|outer| {
            inner.is_inside(outer)
                && !outer.blocks.contains(&first)
                && a.dom.dominates(first, outer.header)
                && outer.blocks.iter().any(|&b| a.closing_in(b).is_some())
        })
    };
    let mut own = a.cycles().iter().filter(|c| iterates(a, c, id));
    own.any(|c| around(&c)).then_some(Why::HoistedTest)
}

/// Loops of the same length behind this one may be computed from the same division: they have its share. Those that can't be
/// followed are listed, without a probe.
pub(super) fn add_sharers(
    a: &Analysis<'_, '_>,
    shape: &Shape,
    all: &mut Vec<Found>,
) -> Vec<Sharer> {
    let mut out = Vec::new();
    let id = shape.id;
    if id != all[shape.share].at {
        return out; // the other division has them
    }
    let division = shape.over;
    let followed = shape.alone && all[shape.begin].why().is_none();
    let mut threaded = Vec::new();
    for (at, cycles) in groups(a, shape, id, division) {
        let branch = shape.others.iter().copied();
        let branch = branch.filter(|_| followed);
        match branch.clone().find(|&b| a.test_at(b) == Some(at)) {
            Some(branch) => {
                let begin = add(shape, at, Ok(Place::Again(shape.share)), all);
                if let Some(lost) = repeated::passes_by(a, id, &cycles, &[branch]) {
                    all[begin].lost = Some(Why::Again(lost));
                } else if def_use::iterates_beside(a, id, branch, &cycles) {
                    all[begin].lost = Some(Why::BeginsBeforeTest);
                }
                out.push(Sharer {
                    share: id,
                    begin,
                    branch: Some(branch),
                    places: Vec::new(),
                    tests: vec![begin],
                    headers: Vec::new(),
                });
            }
            None => {
                let tests = followed.then(|| a.tests_before(shape, division, &cycles));
                match tests.flatten().filter(|tests| !tests.is_empty()) {
                    Some(tests) => {
                        let sharer = tested(a, shape, &tests, &cycles, all);
                        let begins: Vec<usize> = tests.into_iter().collect();
                        if let Some(lost) = repeated::passes_by(a, id, &cycles, &begins) {
                            let lost = Some(Why::Again(lost));
                            sharer.tests.iter().for_each(|&t| all[t].lost = lost);
                        }
                        out.push(sharer);
                    }
                    None => threaded.push((at, cycles)),
                }
            }
        }
    }
    let mut lost = Lost::NoShare;
    let mut found = BTreeSet::new();
    if followed && !threaded.is_empty() {
        let headers = threaded
            .iter()
            .flat_map(|(_, c)| c.iter().map(|c| c.header));
        let (sharers, reason) = threads(a, shape, id, &headers.collect(), all);
        found.extend(sharers.iter().flat_map(|s| s.headers.iter().copied()));
        out.extend(sharers);
        lost = reason;
    }
    for (at, cycles) in threaded {
        if !cycles.iter().all(|c| found.contains(&c.header)) {
            add(shape, at, Err(Why::Shares(id, lost)), all);
        }
    }
    out
}

/// Adds a loop that begins at each of several copies of its test: the blocks `tests` end in them.
fn tested(
    a: &Analysis<'_, '_>,
    shape: &Shape,
    tests: &BTreeSet<usize>,
    cycles: &[&NaturalLoop],
    all: &mut Vec<Found>,
) -> Sharer {
    let places = tests.iter().filter_map(|&b| a.test_at(b));
    let places: Vec<u64> = places.collect();
    let begin = all.len();
    for &at in &places {
        let test = add(shape, at, Ok(Place::Again(shape.share)), all);
        all[test].of = Some(begin).filter(|&b| b != test);
    }
    Sharer {
        share: shape.id,
        begin,
        branch: None,
        places,
        tests: (begin..all.len()).collect(),
        headers: cycles.iter().map(|c| c.header).collect(),
    }
}

/// Adds the begin of a loop that has the bounds of another; its number.
fn add(shape: &Shape, at: u64, place: Result<Place, Why>, all: &mut Vec<Found>) -> usize {
    let construct = all[shape.begin].construct;
    all.push(Found::begin(construct, "static", at, place));
    all.len() - 1
}

/// Cycles that iterate over the division's results behind its first loop, by what begins a loop: a barrier, or a branch on
/// the results.
fn groups<'x>(
    a: &'x Analysis<'_, '_>,
    shape: &Shape,
    id: u64,
    division: usize,
) -> BTreeMap<u64, Vec<&'x NaturalLoop>> {
    let (first, branches) = (shape.origin, &shape.others);
    let extent = a.extent(first);
    let mut groups: BTreeMap<Option<usize>, (u64, Vec<&NaturalLoop>)> = BTreeMap::new();
    for cycle in a.cycles() {
        let behind = !extent.contains(&cycle.header)
            && !cycle.blocks.contains(&division)
            && !cycle.blocks.contains(&first)
            && a.dom.dominates(division, cycle.header);
        if !behind || !iterates(a, cycle, id) {
            continue;
        }
        let mut over = a.dom.parent(cycle.header);
        let mut at = a.body.blocks[cycle.header].start;
        while let Some(block) = over.filter(|&b| b != division && b != first) {
            if branches.contains(&block) && !cycle.blocks.contains(&block) {
                // Else it is another loop's: all that comes here has passed something that ended that one.
                match a.extent(block).contains(&cycle.header) {
                    true => at = a.test_at(block).unwrap_or(at),
                    false => over = None,
                }
                break;
            }
            if a.closing_in(block).is_some() {
                break;
            }
            over = a.dom.parent(block);
        }
        let group = groups.entry(over).or_insert((at, Vec::new()));
        group.0 = at.min(group.0);
        group.1.push(cycle);
    }
    groups.into_values().collect()
}

/// Loops without a test of their own: gcc has threaded theirs into the first loop's, so that threads without iterations are
/// on another path, which passes the same barriers. Each begins behind the barrier before it, or behind all copies of that
/// barrier. Threads without iterations count it before those barriers: nothing else that is counted may be there.
/// Also why the rest isn't found.
fn threads(
    a: &Analysis<'_, '_>,
    shape: &Shape,
    id: u64,
    headers: &BTreeSet<usize>,
    all: &mut Vec<Found>,
) -> (Vec<Sharer>, Lost) {
    let mut out = Vec::new();
    let succs = &a.body.blocks[shape.first].succs;
    let leads = |s: usize| {
        let side = a.side(shape.first, s);
        headers.iter().any(|h| side.contains(h))
    };
    let enters: Vec<usize> = succs.iter().copied().filter(|&s| leads(s)).collect();
    let &[enters] = &enters[..] else {
        return (out, Lost::OtherWays);
    };
    let passing = succs.iter().filter(|&&s| s != enters);
    let mut idle = Some(passing.map(|&s| a.body.blocks[s].start).collect::<Vec<_>>());
    let mut places = vec![a.body.blocks[enters].start];
    let mut before: Vec<u64> = Vec::new();
    let mut seen = BTreeSet::new();
    for round in 0.. {
        let reach = a.reach(&places);
        let here: Vec<usize> = headers.intersection(&reach.blocks).copied().collect();
        if round > 0 && !here.is_empty() {
            if !places.iter().all(|&p| def_use::is_loop(a, p, id, &here)) {
                return (out, Lost::OtherWays);
            }
            let cycles = a.cycles().iter().filter(|c| here.contains(&c.header));
            let cycles: Vec<&NaturalLoop> = cycles.collect();
            let begins = places.iter().filter_map(|&p| a.body.block_at(p));
            let begins: Vec<usize> = begins.collect();
            if let Some(lost) = repeated::passes_by(a, id, &cycles, &begins) {
                return (out, lost);
            }
            if out.len() == MAX_FOLLOWERS {
                return (out, Lost::TooMany);
            }
            let behind = Behind {
                barriers: before.clone(),
                share: shape.share,
                leader: shape.begin,
            };
            let begin = add(shape, places[0], Ok(Place::Behind(behind)), all);
            out.push(Sharer {
                share: id,
                begin,
                branch: None,
                places: places.clone(),
                tests: Vec::new(),
                headers: here.clone(),
            });
        }
        // The first loop's body, and those of the loops found, may call what they like.
        let in_body = |ip: u64| {
            let block = a.body.block_at(ip);
            a.cycles().iter().any(|c| {
                block.is_some_and(|b| c.blocks.contains(&b))
                    && !c.blocks.contains(&shape.first)
                    && iterates(a, c, id)
            })
        };
        // What is called on the way of threads with iterations alone is called by iterations: an unrolled cycle has some in front.
        let passed = idle.take().map(|idle| a.reach_at(&idle));
        let all_iterate = passed.as_ref().is_some_and(|p| p.calls.is_empty());
        let others = !all_iterate && reach.calls.iter().any(|&ip| !in_body(ip));
        if others || reach.asks {
            return (out, Lost::OthersBefore);
        }
        let Some((barriers, behind)) = a.behind_barriers(&reach) else {
            break;
        };
        if behind.iter().any(|p| !seen.insert(*p)) {
            break;
        }
        (before, places) = (barriers, behind);
        idle = passed.and_then(|p| Some(a.behind_barriers(&p)?.1));
    }
    (out, Lost::OtherWays)
}
