//! Executions of parallel regions while they go on: each becomes sums soon after its end, so that memory is what goes on at a time
//! needs, however many there are.

use super::super::growth::Around;
use super::super::parallel::{Executions, Instance, Part, ThreadKey};
use super::super::tree::Paths;
use super::coverage::Coverage;
use super::in_region::{AllSums, InRegion, What};
use crate::account::Peak;
use crate::run::whereabouts::RegionId;
use ompfuse_format::Construct;
use ompfuse_format::record::Interval;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Regions that have ended wait until so many others have: what threads record at the same moment may come in any order.
const WAITING: usize = 16;

/// Those that go on or have just ended; the first place is what is in no region.
#[derive(Debug)]
pub(super) struct Regions {
    list: Vec<Region>,
    /// Places that are free.
    free: Vec<u32>,
    /// Ended, in the order of their ends.
    ended: VecDeque<u32>,
    /// By thread: what it has forked and not joined, and what must have ended since it has forked another one.
    forked: Vec<Forked>,
    /// By path: sums that are empty, with all that they were made of.
    spare: HashMap<u32, Vec<InRegion>>,
    begun: u64,
    /// By path.
    pub(super) stats: BTreeMap<u32, Executions>,
    pub(super) sums: AllSums,
    /// By thread its begin and end, as far as they are known.
    spans: Vec<Option<(i64, i64)>>,
    /// Records came in an order that can't be.
    pub(super) is_disordered: bool,
    /// Threads in teams, and roots.
    pub(super) peak: Peak,
    /// What threads did around their parts, of executions that have become sums and were not looked at yet; `None`: nobody looks.
    pub(super) around: Option<Vec<Around>>,
}

#[derive(Debug, Default)]
struct Forked {
    open: Vec<RegionId>,
    over: Vec<RegionId>,
}

/// An execution.
#[derive(Debug)]
pub(super) struct Region {
    generation: u32,
    is_alive: bool,
    /// In the order of their begins.
    number: u64,
    construct: Construct,
    site: u32,
    path: u32,
    around: RegionId,
    thread: u32,
    /// The fork and its join are on record.
    is_recorded: bool,
    /// It is among those that have ended.
    has_ended: bool,
    /// How many that were forked in it are alive.
    inner: u32,
    instance: Instance,
    /// The end of what was executed after a thread's part.
    tail_until: i64,
    pub(super) sums: InRegion,
    /// Outermost regions on record that were executed in it.
    inside: Coverage,
}

impl Region {
    fn new(construct: Construct, (site, path): (u32, u32)) -> Region {
        Region {
            generation: 0,
            is_alive: true,
            number: 0,
            construct,
            site,
            path,
            around: RegionId::OUTSIDE,
            thread: 0,
            is_recorded: false,
            has_ended: false,
            inner: 0,
            instance: Instance::default(),
            tail_until: i64::MIN,
            sums: InRegion::default(),
            inside: Coverage::default(),
        }
    }
}

impl Regions {
    /// `spans`: begin and end of each thread that has ended in an orderly way.
    pub(super) fn new(spans: Vec<Option<(i64, i64)>>) -> Regions {
        Regions {
            list: vec![Region::new(Construct::Program, (u32::MAX, Paths::ROOT))],
            free: vec![],
            ended: VecDeque::new(),
            forked: spans.iter().map(|_| Forked::default()).collect(),
            spare: HashMap::new(),
            begun: 0,
            stats: BTreeMap::new(),
            sums: AllSums::default(),
            spans,
            is_disordered: false,
            peak: Peak::default(),
            around: None,
        }
    }

    #[inline]
    pub(super) fn is_alive(&self, id: RegionId) -> bool {
        let region = &self.list[id.slot as usize];
        region.generation == id.generation && region.is_alive
    }

    #[inline]
    pub(super) fn get(&mut self, id: RegionId) -> &mut Region {
        &mut self.list[id.slot as usize]
    }

    /// A construct that forks has been met by a thread. `place`: its site and path.
    pub(super) fn begin(
        &mut self,
        construct: Construct,
        place: (u32, u32),
        thread: u32,
        around: RegionId,
    ) -> RegionId {
        let slot = self.free.pop().unwrap_or(self.list.len() as u32);
        let generation = self.list.get(slot as usize).map_or(0, |r| r.generation + 1);
        let id = RegionId { slot, generation };
        self.begun += 1;
        let region = Region {
            generation,
            number: self.begun,
            around,
            thread,
            sums: self
                .spare
                .get_mut(&place.1)
                .and_then(Vec::pop)
                .unwrap_or_default(),
            ..Region::new(construct, place)
        };
        match self.list.get_mut(slot as usize) {
            Some(place) => *place = region,
            None => self.list.push(region),
        }
        self.list[around.slot as usize].inner += 1;
        // A thread is in one of several regions at a time: those before have ended, on record or not.
        let list = &self.list;
        if let Some(forked) = self.forked.get_mut(thread as usize) {
            let is_over = |r: &RegionId| list[r.slot as usize].around == around;
            forked
                .over
                .extend(forked.open.iter().copied().filter(is_over));
            forked.open.retain(|r| !is_over(r));
            forked.open.push(id);
        }
        id
    }

    /// A thread has recorded another interval: what it has forked before has ended by then.
    #[inline]
    pub(super) fn moved_on(&mut self, thread: usize) {
        if self.forked[thread].over.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.forked[thread].over) {
            if self.is_alive(id) && !self.list[id.slot as usize].is_recorded {
                self.end(id);
            }
        }
    }

    /// It may have ended before, since another one was forked behind it: the next one's node is read before the end of this one.
    fn end(&mut self, id: RegionId) {
        if std::mem::replace(&mut self.list[id.slot as usize].has_ended, true) {
            return;
        }
        self.ended.push_back(id.slot);
        if self.ended.len() > WAITING
            && let Some(slot) = self.ended.pop_front()
        {
            self.give_up(slot);
        }
    }

    /// A fork and its join: of a region, if it has a node.
    pub(super) fn join(
        &mut self,
        id: Option<RegionId>,
        (what, around): (What, RegionId),
        thread: u32,
        i: &Interval<'_>,
        (fork, join): (i64, i64),
    ) {
        // A region in a team of a league is not nested in another one.
        let nested = around != RegionId::OUTSIDE
            && self.list[around.slot as usize].construct == Construct::Parallel;
        let of = |instance: &mut Instance| {
            (instance.fork, instance.join) = (fork, join);
            (instance.team, instance.nested) = (i.extent, nested);
            (instance.site, instance.path) = (what.site, what.path);
            instance.master = (0, thread);
        };
        let Some(id) = id else {
            let mut instance = Instance {
                last: i64::MIN,
                ..Instance::default()
            };
            of(&mut instance);
            self.list[around.slot as usize].inside.add(fork, join);
            return self.add(&instance);
        };
        if let Some(forked) = self.forked.get_mut(thread as usize) {
            forked.open.retain(|r| *r != id);
        }
        let region = &mut self.list[id.slot as usize];
        if region.is_recorded || region.tail_until > join {
            self.is_disordered = true;
            return;
        }
        region.is_recorded = true;
        of(&mut region.instance);
        self.end(id);
    }

    /// A thread's part of a region has ended.
    pub(super) fn part(&mut self, id: RegionId, thread: u32, begin: i64, end: i64) {
        if id == RegionId::OUTSIDE {
            return;
        }
        let key: ThreadKey = (0, thread);
        let region = self.get(id);
        let instance = &mut region.instance;
        let is_first = instance.members == 0;
        instance.members += 1;
        instance.last = if is_first {
            end
        } else {
            instance.last.max(end)
        };
        match instance.parts.iter_mut().find(|p| p.thread == key) {
            // One thread may execute several teams of a league, one after the other.
            Some(part) => {
                (part.begin, part.end) = (part.begin.min(begin), part.end.max(end));
                part.tail_ns = 0; // it has begun before this end
            }
            None => instance.parts.push(Part::new(key, begin, end)),
        }
    }

    /// Something that a thread has executed in a region: maybe after its part.
    #[inline]
    pub(super) fn executed(&mut self, id: RegionId, thread: u32, span: (i64, i64), own_ns: u64) {
        let region = &mut self.list[id.slot as usize];
        if region.instance.parts.is_empty() {
            return;
        }
        let (begin, end) = span;
        let is_late = region.is_recorded && end > region.instance.join;
        let key: ThreadKey = (0, thread);
        let parts = &mut region.instance.parts;
        let part = parts.iter_mut().find(|p| p.thread == key);
        if let Some(part) = part.filter(|p| begin >= p.end && !is_late) {
            part.tail_ns = part.tail_ns.saturating_add(own_ns);
            region.tail_until = region.tail_until.max(end);
            region.instance.last = region.instance.last.max(end);
        }
    }

    /// What goes on has ended with the process. Returns the time in outermost regions on record.
    pub(super) fn finish(&mut self) -> Coverage {
        let mut alive: Vec<u32> = (1..self.list.len() as u32).collect();
        alive.retain(|&slot| self.list[slot as usize].is_alive);
        alive.sort_by_key(|&slot| self.list[slot as usize].number);
        // Inner ones first.
        for slot in alive.into_iter().rev() {
            self.give_up(slot);
        }
        let outside = &mut self.list[0];
        outside.sums.give(&mut self.sums, None);
        std::mem::take(&mut outside.inside)
    }

    /// An execution becomes sums.
    fn give_up(&mut self, slot: u32) {
        let region = &self.list[slot as usize];
        if !region.is_alive {
            return;
        }
        let generation = region.generation;
        let id = RegionId { slot, generation };
        if region.inner > 0 {
            self.give_up_inner(id);
        }
        let region = &mut self.list[slot as usize];
        region.is_alive = false;
        let (site, path) = (region.site, region.path);
        let (around, is_recorded) = (region.around, region.is_recorded);
        let mut inside = std::mem::take(&mut region.inside);
        let mut sums = std::mem::take(&mut region.sums);
        let instance = std::mem::take(&mut region.instance);
        let thread = region.thread;
        let busiest = match is_recorded && inside.ns() == 0 && instance.is_alone() {
            true => Some(sums.busiest()),
            false => None,
        };
        sums.give(&mut self.sums, is_recorded.then_some(site));
        self.spare.entry(path).or_default().push(sums);
        if is_recorded {
            inside = Coverage::default();
            inside.add(instance.fork, instance.join);
            self.add(&instance);
            if let (Some(busy_ns), Some(of_path)) = (busiest, self.stats.get_mut(&instance.path)) {
                of_path.add_busiest(&instance, busy_ns);
            }
        }
        match self.is_alive(around) {
            true => {
                let around = &mut self.list[around.slot as usize];
                around.inside.absorb(inside);
                around.inner -= 1;
            }
            // It is in another one, or in what was in none.
            false => self.is_disordered = true,
        }
        if let Some(forked) = self.forked.get_mut(thread as usize) {
            forked.open.retain(|r| *r != id);
        }
        self.free.push(slot);
    }

    /// What was forked in one that has ended has ended, too, though its join is not on record.
    fn give_up_inner(&mut self, id: RegionId) {
        let is_inner = |slot: &u32| {
            let region = &self.list[*slot as usize];
            region.is_alive && region.around == id
        };
        let inner: Vec<u32> = (1..self.list.len() as u32).filter(is_inner).collect();
        inner.into_iter().for_each(|slot| self.give_up(slot));
    }

    fn add(&mut self, instance: &Instance) {
        let beside = instance.threads() - 1;
        self.peak.add(instance.fork, instance.join, beside);
        if let Some(around) = &mut self.around {
            let spans = &self.spans;
            let span = |(_, thread): ThreadKey| spans.get(thread as usize).copied().flatten();
            instance.around(span, |part| around.push(part));
        }
        let executions = self.stats.entry(instance.path).or_default();
        let spans = &self.spans;
        executions.add(instance, |(_, thread)| {
            Some((thread, spans.get(thread as usize).copied().flatten()))
        });
    }
}
