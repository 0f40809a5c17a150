//! Room for long jumps: a window of two to four bytes holds a short jump only, which leads to an *island*, a long jump
//! to the trampoline. That stands behind the jump of another window, one of at least ten bytes, whose instructions move to a
//! trampoline of their own for that purpose alone.

use super::window::{MAX_BACK, can_move, falls_through, passes};
use super::{Finder, Ground, Placed};
use crate::scan::cfg::Body;
use crate::unwind::Row;
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use std::ops::Range;

/// Bytes of a long jump.
const JUMP: u64 = 5;
/// Bytes of a short jump.
const SHORT: u64 = 2;
/// Bytes that hold a long jump and an island.
const ROOM: u64 = 2 * JUMP;
/// So far away may the first instruction be that makes room: what a short jump reaches, and a little more.
const NEAR: u64 = 160;

/// A window that has room for islands.
struct Host {
    range: Range<u64>,
    /// Where the next one may stand.
    free: u64,
}

/// Instructions that could make room.
struct Run {
    range: Range<u64>,
    /// Branches among them.
    branches: usize,
}

/// Gives each window that is too short for a long jump an island, and adds the windows that hold them. Otherwise the
/// numbers of windows for which there is none.
pub(super) fn make(finder: &Finder<'_>, windows: &mut Vec<Placed>) -> Vec<usize> {
    let mut lost = Vec::new();
    let is_narrow = |w: &Placed| w.range.end - w.range.start < JUMP;
    let wants = |w: &Placed| w.island.is_none() && (is_narrow(w) || finder.scarce);
    if !windows.iter().any(wants) {
        return lost;
    }
    let loops = Loops::of(finder.body);
    let islands: Vec<u64> = windows.iter().filter_map(|w| w.island).collect();
    // Those of the windows first, in the same order.
    let hosts = windows.iter().enumerate();
    let hosts = hosts.filter(|(_, w)| !wants(w) && !is_narrow(w));
    let (of_windows, mut hosts): (Vec<usize>, Vec<Host>) =
        { hosts.map(|(n, w)| (n, Host::of(w.range.clone(), &islands))) }.unzip();
    let own = hosts.len();
    let mut taken: Vec<Range<u64>> = windows.iter().map(|w| w.range.clone()).collect();
    for n in 0..windows.len() {
        if !wants(&windows[n]) {
            continue;
        }
        let mut range = windows[n].range.clone();
        for _ in 0..=MAX_BACK {
            let start = range.start;
            // What makes room for it may not lie in it.
            taken[n] = range.clone();
            let mut island = hosts.iter_mut().find_map(|h| h.take(finder.ground, start));
            if island.is_none()
                && let Some(run) = best(finder, &loops, &taken, start)
            {
                let mut host = Host::new(run.range.clone());
                island = host.take(finder.ground, start);
                hosts.push(host);
                taken.push(run.range);
            }
            if island.is_none() {
                let all = of_windows.iter().zip(&mut hosts[..own]);
                let is_near = |h: &Host| h.range.start.abs_diff(start) < NEAR;
                let mut near = all.filter(|(n, h)| windows[**n].may_grow && is_near(h));
                let grown = near.find_map(|(&number, host)| {
                    let (longer, island) = host.grown(finder, &taken, start)?;
                    Some((number, longer, island))
                });
                if let Some((number, longer, at)) = grown {
                    (taken[number], windows[number].range) = (longer.clone(), longer);
                    island = Some(at);
                }
            }
            if island.is_some() {
                (windows[n].island, windows[n].range) = (island, range);
                break;
            }
            // Where it begins earlier, unwinders may find what they find elsewhere in the function, too.
            let is_free = |longer: &Range<u64>| {
                let mut others = taken.iter().filter(|t| t.end <= range.start);
                is_narrow(&windows[n]) && others.all(|t| t.end <= longer.start)
            };
            match finder.longer(&range).filter(is_free) {
                Some(longer) => range = longer,
                None => break,
            }
        }
        if windows[n].island.is_none() {
            taken[n] = windows[n].range.clone();
            lost.extend(is_narrow(&windows[n]).then_some(n));
        }
    }
    if !lost.is_empty() {
        return lost;
    }
    windows.extend(hosts.drain(own..).map(|host| Placed {
        range: host.range,
        members: Vec::new(),
        island: None,
        may_grow: false,
    }));
    windows.sort_by_key(|w| w.range.start);
    lost
}

impl Host {
    fn new(range: Range<u64>) -> Host {
        let free = range.start + JUMP;
        Host { range, free }
    }

    /// The same, where some islands may stand already.
    fn of(range: Range<u64>, islands: &[u64]) -> Host {
        let mut host = Host::new(range);
        let own = islands.iter().filter(|at| host.range.contains(at));
        host.free = own.map(|at| at + JUMP).fold(host.free, u64::max);
        host
    }

    /// Takes the instructions behind the host, too, if that makes room for the island of a window: what the host is then, and the island.
    fn grown(
        &mut self,
        finder: &Finder<'_>,
        taken: &[Range<u64>],
        window: u64,
    ) -> Option<(Range<u64>, u64)> {
        let Range { start, end } = self.range;
        let wanted = self.free + JUMP;
        let last = finder.body.insn_at(start)?;
        let mut insns = finder.body.insns[last..]
            .iter()
            .take_while(|i| i.ip() < end);
        // Control must come to what is behind it from nowhere else.
        if !insns.all(passes) || finder.is_target(end) || finder.body.insn_at(end).is_none() {
            return None;
        }
        let run = run_of(finder, end, wanted.checked_sub(end)?)?;
        let longer = start..run.range.end;
        let is_free = |t: &Range<u64>| t.end <= end || longer.end <= t.start;
        let fits = taken.iter().all(is_free)
            && longer.end >= wanted
            && !finder.ground.stays(&run.range)
            && unwound(finder, &longer);
        let island = fits.then(|| place(finder.ground, self.free, longer.end, window))??;
        (self.free, self.range) = (island + JUMP, longer.clone());
        Some((longer, island))
    }

    /// Takes room for the island of a window.
    fn take(&mut self, ground: &dyn Ground, window: u64) -> Option<u64> {
        let island = place(ground, self.free, self.range.end, window)?;
        self.free = island + JUMP;
        Some(island)
    }
}

/// The first place in a range of bytes for the island of a window. The short jump must reach it. Unwinders go by the
/// original's rules there, and must find what they would where the window begins.
fn place(ground: &dyn Ground, from: u64, to: u64, window: u64) -> Option<u64> {
    let behind = window + SHORT;
    let last = to.checked_sub(JUMP)?;
    let first = from.max(behind.saturating_sub(128));
    let last = last.min(behind + 127);
    if first > last {
        return None;
    }
    let rows = ground.rows(&mut std::iter::once(window).chain(first..=last))?;
    let (here, there) = rows.split_first()?;
    let same = there.iter().position(|row| row == here)?;
    Some(first + same as u64)
}

/// The instructions that make room for the island of a window at the least cost: outside of loops that the window isn't in,
/// not where a function begins, without branches, near.
fn best(finder: &Finder<'_>, loops: &Loops, taken: &[Range<u64>], window: u64) -> Option<Run> {
    let insns = &finder.body.insns;
    let first = insns.partition_point(|i| i.ip() < window.saturating_sub(NEAR));
    let behind = insns.partition_point(|i| i.ip() < window + NEAR);
    let depth = loops.depth(window);
    let mut runs: Vec<_> = (first..behind)
        .filter_map(|i| run(finder, taken, i))
        .map(|run| {
            let Range { start, .. } = run.range;
            let deep = loops.depth(start);
            let begins = finder.ground.begins_function(start);
            let cost = (deep, begins, run.branches, start.abs_diff(window), start);
            (cost, run)
        })
        .filter(|((deep, ..), _)| *deep <= depth || finder.deep)
        .collect();
    runs.sort_by_key(|(cost, _)| *cost);
    let fits = |run: &Run| {
        let Range { start, end } = run.range;
        unwound(finder, &run.range) && place(finder.ground, start + JUMP, end, window).is_some()
    };
    runs.into_iter().map(|(_, run)| run).find(fits)
}

/// The instructions from this one on, if they can make room.
fn run(finder: &Finder<'_>, taken: &[Range<u64>], first: usize) -> Option<Run> {
    let run = run_of(finder, finder.body.insns.get(first)?.ip(), ROOM)?;
    let Range { start, end } = run.range;
    let is_free = taken.iter().all(|t| t.end <= start || end <= t.start);
    let stays = finder.ground.stays(&run.range);
    (end - start >= ROOM && is_free && !stays).then_some(run)
}

/// The instructions from an address on that can move without any need, as far as so many bytes are wanted.
fn run_of(finder: &Finder<'_>, start: u64, wanted: u64) -> Option<Run> {
    let insns = &finder.body.insns[finder.body.insn_at(start)?..];
    let mut run = Run {
        range: start..start,
        branches: 0,
    };
    for insn in insns {
        let end = run.range.end;
        let inner = insn.ip() != start;
        if insn.ip() != end
            || (inner && finder.is_target(end))
            || end - start >= wanted
            || !is_simple(insn)
            || finder.body.throws(insn)
            || finder.changed.contains(&end)
        {
            break;
        }
        run.range.end = insn.next_ip();
        run.branches += usize::from(insn.flow_control() != FlowControl::Next);
        if !passes(insn) {
            if !falls_through(insn) {
                run.range.end = finder.padding(start, run.range.end, wanted);
            }
            break;
        }
    }
    Some(run)
}

/// Whether an instruction can move without any need. Calls and indirect jumps can't, nor what control may come to by its address, or what is
/// there to be written over while the program runs (`-fpatchable-function-entry`, `-mnop-mcount`).
fn is_simple(insn: &Instruction) -> bool {
    let calls = matches!(
        insn.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::IndirectBranch
    );
    let is_mark = matches!(insn.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32);
    let odd = insn.is_ip_rel_memory_operand() && insn.memory_base() != Register::RIP;
    let is_room = insn.mnemonic() == Mnemonic::Nop;
    can_move(insn) && !calls && !is_mark && !is_room && !odd
}

/// Whether unwinders will find their way from the moved instructions as from the original ones.
fn unwound(finder: &Finder<'_>, range: &Range<u64>) -> bool {
    let insns = &finder.body.insns;
    let inside = insns[insns.partition_point(|i| i.ip() < range.start)..]
        .iter()
        .map(Instruction::ip)
        .take_while(|&ip| ip < range.end);
    let Some(rows) = finder.ground.rows(&mut { inside }) else {
        return false;
    };
    let kept = |row: &Option<Row>| row.as_ref().is_some_and(|r| r.deeper(0).is_some());
    rows.iter().all(Option::is_none) || rows.iter().all(kept)
}

/// The ranges of addresses that branches back span: loops, nearly.
struct Loops(Vec<Range<u64>>);

impl Loops {
    fn of(body: &Body) -> Loops {
        let back = body.insns.iter().filter(|i| {
            let branches = matches!(
                i.flow_control(),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            );
            branches
                && i.near_branch_target() <= i.ip()
                && body.block_at(i.near_branch_target()).is_some()
        });
        let mut spans: Vec<(u64, u64)> = back
            .map(|i| (i.near_branch_target(), i.next_ip()))
            .collect();
        // Of several branches to one place the last ends the loop.
        spans.sort_unstable_by_key(|&(to, from)| (to, std::cmp::Reverse(from)));
        spans.dedup_by_key(|span| span.0);
        Loops(spans.into_iter().map(|(to, from)| to..from).collect())
    }

    /// How many of them an address is in.
    fn depth(&self, va: u64) -> usize {
        self.0.iter().filter(|span| span.contains(&va)).count()
    }
}
