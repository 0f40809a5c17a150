//! A run while it goes on: sums per region of what its threads have recorded by now.
//!
//! [`Live::read`] takes what has come in a thread's file since the last time ([`Live::offset`]), so that every record is
//! looked at once.

use crate::spread;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_format::record::{
    Interval, NO_SITE, NOT_COUNTED, Record, RecordError, Records, ThreadHeader, USER_MODULE,
    split_site,
};
use std::collections::BTreeMap;

/// A region in the records: number of its process, and the record's site (that where its construct begins).
pub type RegionKey = (usize, u32);

/// Sums of a region.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveRegion {
    /// How often it was entered, by all threads together; a parallel region by whom it was forked.
    pub entered: u64,
    /// Execution units (their parts, where they have several).
    pub xus: u64,
    /// Ticks of work, by thread (see [`Charge`]).
    pub work: BTreeMap<usize, u64>,
    /// Ticks of waiting and in the OpenMP runtime.
    pub wait: u64,
    /// Own counts by event, of the intervals that have one.
    pub counts: BTreeMap<String, u64>,
}

impl LiveRegion {
    fn add(&mut self, thread: usize, i: &Interval<'_>, events: &[Option<String>]) {
        let construct = i.construct;
        let split = construct.split(i.own_ticks, i.extent);
        self.wait += split.wait + split.runtime;
        if construct.charges_to() == Charge::Work {
            *self.work.entry(thread).or_default() += split.work;
        }
        self.xus += u64::from(construct.is_xu());
        // A thread's part of a region is not another entry, nor is what goes on inside of one.
        let is_inside = matches!(construct, Construct::Dispatch | Construct::TaskCreate);
        let is_entry = !(construct.is_xu() || construct.is_part());
        self.entered += u64::from(is_entry && !is_inside && !construct.is_wait());
        for (name, count) in events.iter().zip(i.counts.iter()) {
            if let Some(name) = name
                && count != NOT_COUNTED
            {
                *self.counts.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// All of its own ticks.
    pub fn ticks(&self) -> u64 {
        self.wait + self.work.values().sum::<u64>()
    }

    /// See [`spread::imbalance`].
    pub fn imbalance(&self) -> f64 {
        let work: Vec<u64> = self.work.values().copied().collect();
        spread::imbalance(&work)
    }

    /// What came since an earlier state.
    #[must_use]
    pub fn since(&self, before: &LiveRegion) -> LiveRegion {
        let less =
            |now: u64, before: Option<&u64>| now.saturating_sub(before.copied().unwrap_or(0));
        LiveRegion {
            entered: self.entered.saturating_sub(before.entered),
            xus: self.xus.saturating_sub(before.xus),
            work: (self.work.iter())
                .map(|(&t, &ticks)| (t, less(ticks, before.work.get(&t))))
                .filter(|&(_, ticks)| ticks > 0)
                .collect(),
            wait: self.wait.saturating_sub(before.wait),
            counts: (self.counts.iter())
                .map(|(e, &n)| (e.clone(), less(n, before.counts.get(e))))
                .collect(),
        }
    }
}

/// A thread's file, as far as it has been read.
#[derive(Debug, Clone, Default)]
struct Tail {
    offset: u64,
    lost: u64,
    unrecorded: u64,
}

/// Sums over everything that has been read.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// The sums.
    pub regions: BTreeMap<RegionKey, LiveRegion>,
    /// What the program calls regions of its own.
    pub names: BTreeMap<RegionKey, String>,
    tails: BTreeMap<(usize, u32), (usize, Tail)>,
}

impl Live {
    /// Bytes of a thread's records that have been read.
    pub fn offset(&self, process: usize, header: &ThreadHeader) -> u64 {
        let tail = self.tails.get(&(process, header.index));
        tail.map_or(0, |(_, tail)| tail.offset)
    }

    /// Goes on with a thread's records: `fresh` are those behind [`Live::offset`], all of them. `sets`: by event set, the names
    /// of its counters. `region`: the site where the construct of a record's site begins.
    ///
    /// # Errors
    /// [`RecordError`] if they are damaged: what came before that is in the sums.
    pub fn read(
        &mut self,
        process: usize,
        header: &ThreadHeader,
        fresh: &[u8],
        sets: &BTreeMap<u8, Vec<Option<String>>>,
        region: impl Fn(u32) -> u32,
    ) -> Result<(), RecordError> {
        let number = self.tails.len();
        let key = (process, header.index);
        let (thread, tail) = self.tails.entry(key).or_insert((number, Tail::default()));
        (tail.lost, tail.unrecorded) = (header.lost, header.unrecorded_ticks);
        tail.offset += fresh.len() as u64;
        let none = Vec::new();
        for record in Records::of(header, fresh) {
            match record? {
                Record::Interval(i) if i.site != NO_SITE => {
                    let events = sets.get(&i.set).unwrap_or(&none);
                    let site = match split_site(i.site) {
                        (USER_MODULE, _) => i.site,
                        _ => region(i.site),
                    };
                    let sums = self.regions.entry((process, site)).or_default();
                    sums.add(*thread, &i, events);
                }
                Record::Name(n) => {
                    let text = String::from_utf8_lossy(n.text).into_owned();
                    self.names.insert((process, n.site), text);
                }
                Record::Interval(_) | Record::Node(_) | Record::LeftOut(_) | Record::Parts(_) => {}
            }
        }
        Ok(())
    }

    /// Threads that have recorded.
    pub fn threads(&self) -> usize {
        self.tails.len()
    }

    /// Records that could not be written.
    pub fn lost(&self) -> u64 {
        self.tails.values().map(|(_, t)| t.lost).sum()
    }

    /// Ticks in intervals that are not on record, because they were switched off.
    pub fn unrecorded_ticks(&self) -> u64 {
        self.tails.values().map(|(_, t)| t.unrecorded).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::record::{HEADER_LEN, IntervalHead, MAGIC, Step, VERSION, encode_interval};

    fn header(index: u32) -> ThreadHeader {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_LEN as u32).to_le_bytes());
        bytes[24..28].copy_from_slice(&index.to_le_bytes());
        ThreadHeader::parse(&bytes).unwrap()
    }

    fn interval(construct: Construct, own_ticks: u64, extent: u64, set: u8) -> Vec<u8> {
        let head = IntervalHead {
            construct,
            site: 7,
            node: 0,
            parent: 0,
            step: Step::None,
            cpu: 0,
            index: 0,
            extent,
            t0: 0,
            t1: own_ticks,
            own_ticks,
        };
        let mut bytes = Vec::new();
        let counts = [5].into_iter();
        encode_interval(&head, set, counts, |_, word| {
            bytes.extend(word.to_le_bytes())
        });
        bytes
    }

    #[test]
    fn every_record_is_read_once() {
        let name = |n: &str| vec![Some(n.to_owned())];
        let sets = BTreeMap::from([(0, name("a")), (1, name("b"))]);
        let mut live = Live::default();
        let read = |live: &mut Live, index, records: &[u8]| {
            live.read(0, &header(index), records, &sets, |_| 6).unwrap();
        };
        let first = interval(Construct::Range, 10, 0, 0);
        read(&mut live, 0, &first);
        assert_eq!(live.offset(0, &header(0)), first.len() as u64);
        let before = live.regions[&(0, 6)].clone();
        let mut records = interval(Construct::Critical, 9, 5, 1);
        records.extend(interval(Construct::Barrier, 4, 0, 0));
        read(&mut live, 0, &records);
        read(&mut live, 3, &interval(Construct::Range, 30, 0, 1));
        let all = &live.regions[&(0, 6)];
        assert_eq!((all.xus, all.entered, all.wait), (2, 1, 13));
        assert_eq!(all.work, BTreeMap::from([(0, 10), (1, 30)]));
        assert_eq!(
            all.counts,
            BTreeMap::from([("a".into(), 10), ("b".into(), 10)])
        );
        assert!((all.imbalance() - 0.5).abs() < 1e-9);
        let since = all.since(&before);
        assert_eq!((since.xus, since.ticks(), live.threads()), (1, 43, 2));
        assert_eq!(LiveRegion::default().imbalance(), 0.0);
    }

    #[test]
    fn damage_is_an_error() {
        let mut live = Live::default();
        let none = BTreeMap::new();
        let damaged = [2, 0, 9, 0, 0, 0, 0, 0];
        assert!(live.read(0, &header(0), &damaged, &none, |s| s).is_err());
    }
}
