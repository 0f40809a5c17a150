//! Tests of sums of a run that goes on.

use super::*;
use crate::testing::{BEGIN, FakeRun, FakeThread};
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
        disturbed: false,
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
    let split = Split {
        work: 40,
        wait: 9,
        runtime: 4,
    };
    assert_eq!((all.xus(), all.entered(), all.split()), (2, 1, split));
    assert_eq!(all.workers(), 2);
    assert_eq!(
        live.counts(all),
        BTreeMap::from([("a".into(), 10), ("b".into(), 10)])
    );
    assert!((live.imbalance((0, 6), all) - 0.5).abs() < 1e-9);
    let since = all.since(&before);
    assert_eq!((since.xus(), since.ticks(), live.threads()), (1, 43, 2));
    assert_eq!(since.workers(), 1);
    assert_eq!(live.imbalance((1, 6), &LiveRegion::default()), 0.0);
}

#[test]
fn who_has_nothing_to_do_counts() {
    let sites = [(Construct::Parallel, 3), (Construct::Loop, 5)];
    let mut threads = [0, 1].map(|index| FakeThread::new(index, 0, BEGIN));
    let parallel = threads[0].node();
    let root = FakeThread::root();
    threads[0].begin(Construct::Parallel, 0, parallel, root, Step::Ranked, 1);
    for (thread, ticks) in threads.iter_mut().zip([50, 0]) {
        thread.begin(Construct::ImplicitTask, 0, 0, parallel, Step::None, 0);
        if ticks > 0 {
            thread.begin(Construct::Range, 1, 0, parallel, Step::Range, 0);
            thread.work(ticks);
            thread.end(8);
        }
        thread.until(BEGIN + 60);
        thread.end(0);
    }
    threads[0].until(BEGIN + 70);
    threads[0].end(2);
    threads[1].until(BEGIN + 70);
    let mut run = FakeRun::new(&sites, &[]);
    run.process(7, BEGIN, threads.into(), true);
    // A finished run has the same, also as to who was there.
    run.read();
    let mut live = Live::default();
    let sets = BTreeMap::new();
    let records = |name: &str| &run.files.iter().find(|(n, _)| n == name).unwrap().1;
    for name in ["7-1.rec", "7-0.rec"] {
        let bytes = records(name);
        let header = ThreadHeader::parse(bytes).unwrap();
        let fresh = &bytes[HEADER_LEN..];
        live.read(0, &header, fresh, &sets, |site| site).unwrap();
    }
    let site = (0, 1);
    assert_eq!(live.imbalance(site, &live.regions[&site]), 1.0);
}

#[test]
fn damage_is_an_error() {
    let mut live = Live::default();
    let none = BTreeMap::new();
    let damaged = [2, 0, 9, 0, 0, 0, 0, 0];
    assert!(live.read(0, &header(0), &damaged, &none, |s| s).is_err());
}
