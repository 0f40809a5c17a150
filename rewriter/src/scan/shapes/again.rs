//! Loops whose bounds the compiler computed before, for another loop of the same length or once for all rounds of a cycle.

use super::division::Division;
use super::loops::Shape;
use super::repeated::{self, REPEATED};
use super::{Analysis, NaturalLoop, def_use};
use crate::model::{Action, ProbeSpec};
use crate::scan::draft::Draft;
use ompfuse_format::abi::{MAX_FOLLOWERS, Probe};
use ompfuse_format::site::{Edge, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// A loop with the bounds of another.
pub(super) struct Sharer {
    /// The division whose results its bounds are.
    pub share: u64,
    /// Number of its draft.
    pub begin: usize,
    /// The block whose branch everything of the loop is behind; `None`: it begins at `places`.
    branch: Option<usize>,
    /// Where it begins, once for each copy of the barrier, or of the test, before it.
    places: Vec<u64>,
    /// Numbers of the drafts at the copies of its test, the first one's included; none where it begins behind barriers.
    pub tests: Vec<usize>,
    /// Headers of its cycles.
    headers: Vec<usize>,
}

impl Sharer {
    /// Where it begins, but for what [`Sharer::tests`] tell.
    pub(super) fn places(&self) -> &[u64] {
        &self.places
    }

    /// Adds its end.
    pub(super) fn add_end(&self, a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
        match self.branch {
            Some(branch) => a.add_end(self.begin, branch, branch, drafts),
            None => a.add_end_behind(self.begin, &self.places, &self.headers, drafts),
        }
        if let (Outcome::Skipped, Some(why)) = {
            let begin = &drafts[self.begin];
            (begin.outcome, begin.reason.clone())
        } {
            for &test in &self.tests {
                drafts[test].skip(why.clone());
            }
        }
    }
}

fn again(share: usize) -> ProbeSpec {
    ProbeSpec {
        param: share as i64, // a draft's number, replaced by the site's
        ..ProbeSpec::bare(Probe::InlineLoopAgain)
    }
}

/// Makes the division of draft `share` compute bounds only: its loop begins at the diverging branch of block `first`, which is
/// executed more often, or behind other constructs. The new begin.
pub(super) fn add_apart(
    a: &Analysis<'_, '_>,
    share: usize,
    first: usize,
    drafts: &mut Vec<Draft>,
) -> usize {
    let at = a.body.insns[a.decisions[&first].compare].ip();
    let mut draft = Draft::new(at, drafts[share].construct, Edge::Begin);
    draft.function = a.function();
    draft.detail.clone_from(&drafts[share].detail);
    draft.line_at = drafts[share].line_at;
    draft.inline(again(share));
    drafts.push(draft);
    let begin = drafts.len() - 1;
    let division = &mut drafts[share];
    division.region = Some(begin);
    division.edge = Edge::Next;
    division.detail = Some("static, bounds".into());
    if let Some(Action::Inline(spec)) = &mut division.action {
        spec.probe = Probe::InlineLoopShare;
    }
    begin
}

/// Whether a cycle leaves depending on a division's results.
pub(super) fn iterates(a: &Analysis<'_, '_>, cycle: &NaturalLoop, id: u64) -> bool {
    cycle.blocks.iter().any(|&b| {
        let decision = a.decisions.get(&b).filter(|_| a.leaves(b, cycle));
        decision
            .is_some_and(|d| d.values.0.division() == Some(id) || d.values.1.division() == Some(id))
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
pub(super) fn unswitched(
    a: &Analysis<'_, '_>,
    id: u64,
    first: usize,
    drafts: &[Draft],
) -> Option<&'static str> {
    let around = |inner: &&NaturalLoop| {
        a.cycles().iter().any(|outer| {
            outer.blocks.contains(&inner.header)
                && outer.header != inner.header
                && !outer.blocks.contains(&first)
                && a.dom.dominates(first, outer.header)
                && outer
                    .blocks
                    .iter()
                    .any(|&b| a.closing_in(b, drafts).is_some())
        })
    };
    let mut own = a.cycles().iter().filter(|c| iterates(a, c, id));
    own.any(|c| around(&c))
        .then_some("its test is hoisted out of a cycle that the loop is in")
}

/// Loops of the same length behind this one may be computed from the same division: they have its share. Those that can't be
/// followed are listed, without a probe.
pub(super) fn add_sharers(
    a: &Analysis<'_, '_>,
    shape: &Shape,
    drafts: &mut Vec<Draft>,
) -> Vec<Sharer> {
    let mut out = Vec::new();
    let address = drafts[shape.share].address;
    let id = a.flow.name(address);
    if id != address {
        return out; // the other division has them
    }
    let division = shape.over;
    let followed = shape.alone && drafts[shape.begin].action.is_some();
    let mut threaded = Vec::new();
    for (at, cycles) in groups(a, shape, id, division, drafts) {
        let branch = shape.others.iter().copied();
        let branch = branch.filter(|_| followed);
        match branch
            .clone()
            .find(|b| a.body.insns[a.decisions[b].compare].ip() == at)
        {
            Some(branch) => {
                let begin = add(a, shape, at, drafts);
                drafts[begin].inline(again(shape.share));
                if repeated::passes_by(a, id, &cycles, &[branch]) {
                    drafts[begin].skip(REPEATED);
                } else if def_use::iterates_beside(a, id, branch, &cycles, drafts) {
                    drafts[begin].skip("its iterations begin in front of its test");
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
                let tests = followed.then(|| a.tests_before(shape, division, &cycles, drafts));
                match tests.flatten().filter(|tests| !tests.is_empty()) {
                    Some(tests) => {
                        let sharer = tested(a, shape, &tests, &cycles, drafts);
                        let begins: Vec<usize> = tests.into_iter().collect();
                        if repeated::passes_by(a, id, &cycles, &begins) {
                            sharer.tests.iter().for_each(|&t| drafts[t].skip(REPEATED));
                        }
                        out.push(sharer);
                    }
                    None => threaded.push((at, cycles)),
                }
            }
        }
    }
    let mut why = "its bounds are those of a loop without probe";
    let mut found = BTreeSet::new();
    if followed && !threaded.is_empty() {
        let headers = threaded
            .iter()
            .flat_map(|(_, c)| c.iter().map(|c| c.header));
        let (sharers, reason) = threads(a, shape, id, &headers.collect(), drafts);
        found.extend(sharers.iter().flat_map(|s| s.headers.iter().copied()));
        out.extend(sharers);
        why = reason;
    }
    for (at, cycles) in threaded {
        if !cycles.iter().all(|c| found.contains(&c.header)) {
            let begin = add(a, shape, at, drafts);
            drafts[begin].skip(format!("it shares bounds with a loop at {id:#x}: {why}"));
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
    drafts: &mut Vec<Draft>,
) -> Sharer {
    let places = tests
        .iter()
        .map(|b| a.body.insns[a.decisions[b].compare].ip());
    let places: Vec<u64> = places.collect();
    let begin = drafts.len();
    for &at in &places {
        let test = add(a, shape, at, drafts);
        drafts[test].inline(again(shape.share));
        drafts[test].region = Some(begin).filter(|&b| b != test);
    }
    Sharer {
        share: a.flow.name(drafts[shape.share].address),
        begin,
        branch: None,
        places,
        tests: (begin..drafts.len()).collect(),
        headers: cycles.iter().map(|c| c.header).collect(),
    }
}

/// Makes a loop that begins behind barriers one without probe: nobody counts it.
pub(crate) fn forget(begin: usize, why: &str, drafts: &mut [Draft]) {
    for (i, draft) in drafts.iter_mut().enumerate() {
        if let Some(rare) = draft.own_rare() {
            rare.follows.retain(|&f| f != begin);
            rare.begins = rare.begins.filter(|b| b.0 != begin);
        }
        if i == begin || (draft.region == Some(begin) && draft.record.is_none()) {
            draft.skip(why.to_owned());
        }
    }
}

/// Adds the begin of a loop that has the bounds of another.
fn add(a: &Analysis<'_, '_>, shape: &Shape, at: u64, drafts: &mut Vec<Draft>) -> usize {
    let mut draft = Draft::new(at, drafts[shape.begin].construct, Edge::Begin);
    draft.function = a.function();
    draft.detail = Some("static".into());
    drafts.push(draft);
    drafts.len() - 1
}

/// Cycles that iterate over the division's results behind its first loop, by what begins a loop: a barrier, or a branch on
/// the results.
fn groups<'x>(
    a: &'x Analysis<'_, '_>,
    shape: &Shape,
    id: u64,
    division: usize,
    drafts: &[Draft],
) -> BTreeMap<u64, Vec<&'x NaturalLoop>> {
    let (first, branches) = (shape.origin, &shape.others);
    let extent = a.extent(first, drafts);
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
                match a.extent(block, drafts).contains(&cycle.header) {
                    true => at = a.body.insns[a.decisions[&block].compare].ip(),
                    false => over = None,
                }
                break;
            }
            if a.closing_in(block, drafts).is_some() {
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
    drafts: &mut Vec<Draft>,
) -> (Vec<Sharer>, &'static str) {
    const UNCLEAR: &str = "it has no test of its own, and other paths lead to it";
    let mut out = Vec::new();
    let succs = &a.body.blocks[shape.first].succs;
    let leads = |s: usize| {
        let side = a.side(shape.first, s);
        headers.iter().any(|h| side.contains(h))
    };
    let enters: Vec<usize> = succs.iter().copied().filter(|&s| leads(s)).collect();
    let &[enters] = &enters[..] else {
        return (out, UNCLEAR);
    };
    let passing = succs.iter().filter(|&&s| s != enters);
    let mut idle = Some(passing.map(|&s| a.body.blocks[s].start).collect::<Vec<_>>());
    let mut places = vec![a.body.blocks[enters].start];
    let mut before: Vec<u64> = Vec::new();
    let mut seen = BTreeSet::new();
    for round in 0.. {
        let reach = a.reach(&places, drafts);
        let here: Vec<usize> = headers.intersection(&reach.blocks).copied().collect();
        if round > 0 && !here.is_empty() {
            if !places
                .iter()
                .all(|&p| def_use::is_loop(a, p, id, &here, drafts))
            {
                return (out, UNCLEAR);
            }
            let cycles = a.cycles().iter().filter(|c| here.contains(&c.header));
            let cycles: Vec<&NaturalLoop> = cycles.collect();
            let begins = places.iter().filter_map(|&p| a.body.block_at(p));
            if repeated::passes_by(a, id, &cycles, &begins.collect::<Vec<_>>()) {
                return (out, REPEATED);
            }
            if drafts[shape.begin].rare().follows.len() == MAX_FOLLOWERS {
                return (out, "too many loops have the same bounds and one test");
            }
            let begin = add(a, shape, places[0], drafts);
            let barriers: Vec<usize> = before.iter().map(|ip| a.calls[ip]).collect();
            drafts[begin].imply(format!("begins behind the barrier at {:#x}", before[0]));
            for &barrier in &barriers {
                drafts[barrier].rare_mut().begins = Some((begin, shape.share));
            }
            drafts[begin].rare_mut().implied_by = barriers;
            drafts[shape.begin].rare_mut().follows.push(begin);
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
        let passed = idle.take().map(|idle| a.reach_at(&idle, drafts));
        let all_iterate = passed.as_ref().is_some_and(|p| p.calls.is_empty());
        let others = !all_iterate && reach.calls.iter().any(|&ip| !in_body(ip));
        if others || reach.asks {
            return (
                out,
                "it has no test of its own, and other code stands before it",
            );
        }
        let Some((barriers, behind)) = a.behind_barriers(&reach, drafts) else {
            break;
        };
        if behind.iter().any(|p| !seen.insert(*p)) {
            break;
        }
        (before, places) = (barriers, behind);
        idle = passed.and_then(|p| Some(a.behind_barriers(&p, drafts)?.1));
    }
    (out, UNCLEAR)
}
