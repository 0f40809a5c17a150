use super::*;
use proptest::prelude::*;

fn file(records: &[u8], counters: u32) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(HEADER_LEN as u32).to_le_bytes());
    bytes[28..32].copy_from_slice(&counters.to_le_bytes());
    bytes[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    bytes.extend_from_slice(records);
    bytes
}

#[test]
fn header_fields_lie_where_the_reader_looks() {
    use core::mem::offset_of;
    assert_eq!(offset_of!(ThreadHeader, pid), 16);
    assert_eq!(offset_of!(ThreadHeader, tid), 20);
    assert_eq!(offset_of!(ThreadHeader, index), 24);
    assert_eq!(offset_of!(ThreadHeader, counters), 28);
    assert_eq!(offset_of!(ThreadHeader, tsc_start), 32);
    assert_eq!(offset_of!(ThreadHeader, committed), 48);
    assert_eq!(offset_of!(ThreadHeader, counts_start), 64);
    assert_eq!(offset_of!(ThreadHeader, counts_end), 192);
    assert_eq!(offset_of!(ThreadHeader, unrecorded_ticks), 320);
    assert_eq!(offset_of!(ThreadHeader, flushed), 328);
    assert_eq!(offset_of!(ThreadHeader, stage), 336);
    assert_eq!(offset_of!(ThreadHeader, unattributed), 344);
    assert_eq!(offset_of!(ThreadHeader, reads_for_units), 472);
    assert!(size_of::<ThreadHeader>() <= HEADER_LEN);
}

#[test]
fn records_round_trip() {
    let node = Node {
        construct: Construct::Task,
        site: site_ref(1, 7),
        node: 1 << 40 | 3,
        parent: 1 << 40,
        step: Step::TidRanked,
        index: 5,
    };
    let mut bytes = vec![0; Node::LEN];
    encode_node(bytes.as_mut_slice().try_into().unwrap(), &node);
    bytes.extend_from_slice(&[KIND_PAD, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&[0xee; 8]);
    bytes.extend_from_slice(&[200, 0, 16, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]); // a kind of the future
    let head = IntervalHead {
        construct: Construct::Range,
        site: 9,
        node: 2 << 40,
        parent: 1,
        step: Step::Range,
        cpu: 1,
        index: -4,
        extent: 8,
        t0: 100,
        t1: 200,
        own_ticks: 90,
        disturbed: true,
    };
    let mut words = [0; 11];
    encode_interval(&head, 3, [11, 22].into_iter(), |at, value| {
        words[at] = value
    });
    words
        .iter()
        .for_each(|w| bytes.extend_from_slice(&w.to_le_bytes()));

    let bytes = file(&bytes, 2);
    let read: Vec<_> = ThreadFile::parse(&bytes)
        .unwrap()
        .records()
        .map(Result::unwrap)
        .collect();
    assert_eq!(read.len(), 2);
    assert_eq!(read[0], Record::Node(node));
    let Record::Interval(i) = read[1] else {
        panic!("{read:?}")
    };
    assert_eq!(
        (i.index, i.own_ticks, i.cpu, i.step, i.set),
        (-4, 90, 1, Step::Range, 3)
    );
    assert_eq!(i.counts.iter().collect::<Vec<_>>(), [11, 22]);
}

fn node(sequence: u64) -> [u8; Node::LEN] {
    let mut bytes = [0; Node::LEN];
    let node = Node {
        construct: Construct::Task,
        site: 1,
        node: sequence,
        parent: 0,
        step: Step::Ranked,
        index: 1,
    };
    encode_node(&mut bytes, &node);
    bytes
}

/// Two records in the log, one in a stage that has room for three; what lies behind it there is old.
#[test]
fn the_log_comes_before_the_stage() {
    let stage: Vec<u8> = [3, 8, 9].into_iter().flat_map(node).collect();
    let log = [1, 2].into_iter().flat_map(node);
    let mut bytes = file(&stage, 0);
    bytes.extend(log);
    let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(48, 3 * Node::LEN as u64);
    put(328, 2 * Node::LEN as u64);
    put(336, stage.len() as u64);
    let of = |bytes: &[u8]| {
        let records = ThreadFile::parse(bytes)?.records();
        let sequence = |r| match r {
            Ok(Record::Node(n)) => n.node,
            other => panic!("{other:?}"),
        };
        Ok(records.map(sequence).collect::<Vec<_>>())
    };
    assert_eq!(of(&bytes), Ok(vec![1, 2, 3]));
    bytes.pop();
    assert!(matches!(of(&bytes), Err(RecordError::Truncated { .. })));
    for version in [VERSION - 1, VERSION + 1] {
        bytes[8] = version as u8;
        assert_eq!(of(&bytes), Err(RecordError::Version(version)));
    }
}

#[test]
fn fresh_records_are_in_the_log_or_in_the_stage() {
    let header = |committed: u64, flushed: u64, stage: u64| {
        let mut bytes = file(&[], 0);
        for (at, word) in [(48, committed), (328, flushed), (336, stage)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        ThreadHeader::parse(&bytes).unwrap()
    };
    assert_eq!(header(80, 0, 0).behind(16), [4112..4176, 4096..4096]);
    assert_eq!(header(80, 0, 640).behind(16), [4736..4736, 4112..4176]);
    assert_eq!(header(80, 48, 640).behind(16), [4752..4784, 4096..4128]);
    assert_eq!(header(80, 48, 640).behind(64), [4784..4784, 4112..4128]);
    assert_eq!(header(80, 48, 640).behind(999), [4784..4784, 4128..4128]);
}

#[test]
fn names_round_trip() {
    for text in ["", "a", "12345678", "a longer name"] {
        let mut bytes = vec![0; Name::len_of(text.len())];
        let site = site_ref(USER_MODULE, 3);
        encode_name(site, text.as_bytes(), |at, word| {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        });
        let bytes = file(&bytes, 0);
        let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
        let text = text.as_bytes();
        assert_eq!(read, [Ok(Record::Name(Name { site, text }))]);
    }
}

#[test]
fn what_is_left_out_round_trips() {
    let inside = TeamPlace {
        site: 0,
        behind: false,
    };
    let behind = TeamPlace {
        site: u32::MAX,
        behind: true,
    };
    for team in [inside, behind, TeamPlace::OUTSIDE] {
        let left_out = LeftOut {
            construct: Construct::Task,
            site: site_ref(2, 5),
            count: 7 << 40,
            ticks: 9,
            one_in: 16,
            throttled: true,
            short: true,
            team,
        };
        let mut bytes = vec![0; LeftOut::LEN];
        encode_left_out(&left_out, |at, word| {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        });
        let bytes = file(&bytes, 0);
        let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
        assert_eq!(read, [Ok(Record::LeftOut(left_out))]);
    }
}

#[test]
fn what_is_cut_off_is_an_error() {
    let mut bytes = file(&[1, 0, 40, 0, 0, 0, 0, 0], 0);
    assert_eq!(
        ThreadFile::parse(&bytes).unwrap().records().next(),
        Some(Err(RecordError::Malformed(HEADER_LEN)))
    );
    bytes.pop();
    assert!(matches!(
        ThreadFile::parse(&bytes),
        Err(RecordError::Truncated { .. })
    ));
    assert_eq!(
        ThreadFile::parse(&bytes[..100]).unwrap_err(),
        RecordError::NotRecords
    );
}

/// Nodes of the same thread as the file's, of another one, and none.
fn some_node() -> impl Strategy<Value = u64> {
    let thread = prop_oneof![Just(4), 0u64..6];
    let sequence = prop_oneof![0u64..100, any::<u32>().prop_map(u64::from), 0u64..1 << 40];
    prop_oneof![Just(0), (thread, sequence).prop_map(|(t, s)| t << 40 | s)]
}

/// Small ones, and some that don't fit into half a word.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..100, Just(u64::from(u32::MAX)), any::<u64>()]
}

prop_compose! {
    fn interval()(
        node in some_node(), parent in some_node(), index in number(), extent in number(),
        end in number(), ticks in number(), own in number(), all_own: bool,
        cpu: u16, site: u32, step in 0u8..5, disturbed: bool,
    ) -> IntervalHead {
        let t1 = 77u64.wrapping_add(end);
        IntervalHead {
            construct: Construct::Range,
            site,
            node,
            parent,
            step: Step::from_number(step).unwrap(),
            cpu,
            index: index as i64,
            extent,
            t0: t1.wrapping_sub(ticks),
            t1,
            own_ticks: if all_own { ticks } else { own },
            disturbed,
        }
    }
}

/// The file of the thread with index 3, which began at 77.
fn file_of_fourth(words: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut bytes = file(&bytes, 0);
    bytes[24] = 3;
    bytes[32] = 77;
    bytes
}

#[test]
fn ordinary_records_are_short() {
    let origin = short::Origin::new(3, 77);
    let wait = IntervalHead {
        construct: Construct::Barrier,
        site: site_ref(1, 5),
        node: 0,
        parent: 4 << 40 | 12,
        step: Step::None,
        cpu: 2,
        index: 0,
        extent: 0,
        t0: 1000,
        t1: 1500,
        own_ticks: 500,
        disturbed: false,
    };
    let words = |i: &IntervalHead| short::interval(i, origin, 0, None, [].into_iter(), |_, _| ());
    assert_eq!(words(&wait), 3);
    let task = IntervalHead {
        construct: Construct::Task,
        node: 4 << 40 | 13,
        index: 1,
        ..wait
    };
    assert_eq!(words(&task), 4);
    let range = IntervalHead {
        extent: 100,
        own_ticks: 400,
        ..task
    };
    assert_eq!(words(&range), 5);
    let of_another_thread = IntervalHead {
        parent: 1 << 40,
        ..wait
    };
    assert_eq!(words(&of_another_thread), 4);
    let between_threads = IntervalHead {
        parent: 1 << 40,
        ..task
    };
    assert_eq!(words(&between_threads), 0);
    let looped = IntervalHead {
        construct: Construct::Loop,
        ..task
    };
    let only = IntervalHead {
        node: looped.node + 1,
        parent: looped.node,
        ..range
    };
    assert_eq!(
        short::with_range(&looped, &only, origin, 0, None, |_, _| ()),
        7
    );
    let long = IntervalHead {
        t1: 1 << 40,
        ..wait
    };
    assert_eq!(words(&long), 0);
}

proptest! {
    #[test]
    fn short_intervals_round_trip(head in interval(), set in 0u8..16, counts in proptest::collection::vec(any::<u64>(), 0..=MAX_COUNTERS)) {
        let origin = short::Origin::new(3, 77);
        let mut words = [0; short::INTERVAL_WORDS + MAX_COUNTERS + 1];
        let len = short::interval(&head, origin, set, None, counts.iter().copied(), |at, w| words[at] = w);
        if len == 0 {
            return Ok(());
        }
        prop_assert!(len <= short::INTERVAL_WORDS + counts.len());
        let bytes = file_of_fourth(&words[..len]);
        let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
        let [Ok(Record::Interval(i))] = read[..] else {
            panic!("{read:?}")
        };
        prop_assert_eq!(i.set, set);
        prop_assert_eq!(i.counts.iter().collect::<Vec<_>>(), counts);
        let Interval { construct, site, node, parent, step, cpu, index, extent, t0, t1, own_ticks, disturbed, .. } = i;
        prop_assert_eq!(
            IntervalHead { construct, site, node, parent, step, cpu, index, extent, t0, t1, own_ticks, disturbed },
            head
        );
    }

    #[test]
    fn fetches_are_an_interval_of_their_own(head in interval(), fetches in number(), ticks in number()) {
        let mut words = [0; short::INTERVAL_WORDS];
        let fetched = Some((fetches, ticks));
        let none = [].into_iter();
        let len = short::interval(&head, short::Origin::new(3, 77), 2, fetched, none, |at, w| words[at] = w);
        if len == 0 {
            return Ok(());
        }
        let bytes = file_of_fourth(&words[..len]);
        let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
        let [Ok(Record::Interval(own)), Ok(Record::Interval(i))] = read[..] else {
            panic!("{read:?}")
        };
        prop_assert_eq!((own.node, own.own_ticks, own.set), (head.node, head.own_ticks, 2));
        prop_assert_eq!((i.construct, i.site, i.parent), (Construct::Dispatch, head.site, head.node));
        prop_assert_eq!((i.node, i.index, i.extent, i.own_ticks, i.set), (0, 0, fetches, ticks, 2));
        prop_assert_eq!((i.t0, i.t1, i.cpu), (head.t0, head.t1, head.cpu));
    }

    #[test]
    fn a_loop_has_its_only_range_in_its_record(mut head in interval(), range in interval(), fetched in proptest::option::of((number(), number()))) {
        head.construct = Construct::Loop;
        let range = IntervalHead {
            construct: Construct::Range,
            site: head.site,
            node: head.node.wrapping_add(1),
            parent: head.node,
            step: Step::Range,
            cpu: head.cpu,
            t0: head.t1.wrapping_sub(range.t1.wrapping_sub(range.t0)),
            t1: head.t1,
            ..range
        };
        let mut words = [0; short::LOOP_WORDS];
        let len = short::with_range(&head, &range, short::Origin::new(3, 77), 2, fetched, |at, w| words[at] = w);
        if len == 0 {
            return Ok(());
        }
        let bytes = file_of_fourth(&words[..len]);
        let read = ThreadFile::parse(&bytes).unwrap().records();
        let read: Vec<_> = read
            .map(|r| match r {
                Ok(Record::Interval(Interval { construct, site, node, parent, step, cpu, index, extent, t0, t1, own_ticks, disturbed, set: 2, .. })) => {
                    IntervalHead { construct, site, node, parent, step, cpu, index, extent, t0, t1, own_ticks, disturbed }
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let all = [range, head].into_iter().chain(fetched.map(|f| short::dispatch(&head, f)));
        prop_assert_eq!(read, all.collect::<Vec<_>>());
    }

    #[test]
    fn short_nodes_round_trip(node in some_node(), parent in some_node(), index: i64, site: u32, step in 0u8..5) {
        let step = Step::from_number(step).unwrap();
        let node = Node { construct: Construct::Task, site, node, parent, step, index };
        if let Some(words) = short::node(&node, short::Origin::new(3, 77)) {
            let bytes = file_of_fourth(&words);
            let read: Vec<_> = ThreadFile::parse(&bytes).unwrap().records().collect();
            prop_assert_eq!(read, [Ok(Record::Node(node))]);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(records in proptest::collection::vec(any::<u8>(), 0..400), counters in 0u32..20) {
        let bytes = file(&records, counters);
        if let Ok(file) = ThreadFile::parse(&bytes) {
            for record in file.records() {
                if let Ok(Record::Interval(i)) = record {
                    prop_assert!(i.counts.iter().len() <= MAX_COUNTERS);
                }
            }
        }
    }
}

#[test]
fn sums_of_parts_round_trip_and_damaged_ones_are_malformed() {
    let sum = PartSum {
        construct: Construct::Parallel,
        site: site_ref(2, 5),
        member: 3,
        t0: 1000,
        t1: 9000,
        parts: 64,
        read: 4,
        ticks: 6000,
        read_ticks: 400,
        processor_ns: 120,
        wait_ticks: 17,
        counts: Counts(&[]),
    };
    let mut words = [0; 12];
    let len = encode_parts(&sum, [7, NOT_COUNTED].into_iter(), |at, value| {
        words[at] = value;
    });
    assert_eq!(8 * len, PartSum::LEN + 16);
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let whole = file(&bytes, 0);
    let mut read = ThreadFile::parse(&whole).unwrap().records();
    let Some(Ok(Record::Parts(found))) = read.next() else {
        panic!("no such record");
    };
    assert_eq!(found.counts.iter().collect::<Vec<_>>(), [7, NOT_COUNTED]);
    let without = PartSum {
        counts: Counts(&[]),
        ..found
    };
    assert_eq!((without, read.next()), (sum, None));
    bytes[2] = 72; // shorter than any
    let short = file(&bytes, 0);
    let mut read = ThreadFile::parse(&short).unwrap().records();
    assert!(matches!(read.next(), Some(Err(RecordError::Malformed(_)))));
}
