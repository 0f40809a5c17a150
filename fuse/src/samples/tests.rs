use super::*;
use ompfuse_format::samples::{
    Mapping, Sample, SampleRecord, SamplesError, SamplesHeader, TscPair, encode_header,
    encode_record,
};
use std::collections::BTreeMap;

fn file(has_tsc: bool, records: &[SampleRecord<'_>]) -> Vec<u8> {
    let mut bytes = vec![];
    let header = SamplesHeader {
        pid: 1,
        period_ns: 1000,
        has_tsc,
    };
    encode_header(&header, &mut bytes);
    records.iter().for_each(|r| encode_record(r, &mut bytes));
    bytes
}

fn mapping(raw_ns: u64, pid: u32, begin: u64, path: &'static [u8]) -> SampleRecord<'static> {
    SampleRecord::Mapping(Mapping {
        raw_ns,
        pid,
        begin,
        size: 0x1000,
        offset: 0x2000,
        path,
    })
}

fn sample(raw_ns: u64, pid: u32, address: u64) -> SampleRecord<'static> {
    SampleRecord::Sample(Sample {
        raw_ns,
        pid,
        tid: pid,
        addresses: vec![address],
        is_whole: false,
    })
}

#[test]
fn samples_are_in_the_files_that_are_mapped_at_their_time() {
    let bytes = file(
        true,
        &[
            sample(15, 1, 0x1010), // of another processor: not in order
            mapping(10, 1, 0x1000, b"/a"),
            mapping(20, 1, 0x1800, b"/b"),
            sample(25, 1, 0x1010), // half of what it was in is gone
            sample(25, 1, 0x1900),
            mapping(26, 1, 0x9000, b"[vdso]"),
            sample(27, 1, 0x9010),
            mapping(28, 1, 0xa000, b"//anon"),
            sample(29, 1, 0xa010),
            SampleRecord::Fork {
                raw_ns: 30,
                pid: 2,
                parent: 1,
            },
            sample(31, 2, 0x1900),
            SampleRecord::Exec { raw_ns: 32, pid: 2 },
            sample(33, 2, 0x1900),
        ],
    );
    let read = OfFile::read(&bytes).unwrap();
    assert_eq!(read.objects, ["/a", "/b", "[code of 1]"]);
    assert_eq!(maker(&read.objects[2]), Some(1));
    let found = |pid| {
        let all = read.threads[&(pid, pid)].iter();
        let all = all.map(|s| (s.raw_ns, s.at.object, s.at.offset));
        all.collect::<Vec<_>>()
    };
    let of_first = [
        (15, Some(0), 0x2010),
        (25, None, 0x1010),
        (25, Some(1), 0x2100),
        (27, None, 0x9010),
        (29, Some(2), 0xa010),
    ];
    assert_eq!(found(1), of_first);
    assert_eq!(found(2), [(31, Some(1), 0x2100), (33, None, 0x1900)]);
    let collected = Collected { files: vec![read] };
    let wanted = collected.wanted();
    assert_eq!(wanted["/b"].iter().collect::<Vec<_>>(), [&0x2100]);
    assert_eq!((wanted.len(), collected.len()), (3, 7));
}

#[test]
fn times_are_between_two_readings_of_both_clocks() {
    let pair = |tsc, raw_ns| SampleRecord::Clock(TscPair { tsc, raw_ns });
    let pairs = [pair(1000, 100), pair(3000, 1100), pair(5200, 2200)];
    let read = OfFile::read(&file(true, &pairs)).unwrap();
    let expected = [
        (100, 1000),
        (600, 2000),
        (2200, 5200),
        (2300, 5400),
        (50, 900),
    ];
    for (raw_ns, tsc) in expected {
        assert_eq!(read.tsc(raw_ns), Some(tsc), "{raw_ns}");
    }
    let none = [file(false, &pairs), file(true, &pairs[..1])];
    for bytes in none {
        assert_eq!(OfFile::read(&bytes).unwrap().tsc(600), None);
    }
}

#[test]
fn damaged_files_are_errors() {
    let bytes = file(true, &[sample(1, 1, 1)]);
    let error = OfFile::read(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(error, SamplesError::Malformed(32));
    let error = UnreadableSamples {
        file: "7.samples".to_owned(),
        error,
    };
    assert_eq!(error.to_string(), "7.samples: malformed record at byte 32");
}

#[test]
fn each_place_is_there_once() {
    let place = |line| SampledPlace {
        line: Some(line),
        ..SampledPlace::default()
    };
    let mut places = SampledPlaces::default();
    places.add(
        "/a".to_owned(),
        [(1, place(7)), (2, place(7)), (3, place(8))].into_iter(),
        BTreeMap::new(),
    );
    places.add(
        "/b".to_owned(),
        [(1, place(8))].into_iter(),
        BTreeMap::new(),
    );
    assert_eq!(places.places, [place(7), place(8)]);
    assert_eq!(
        places.objects[0].offsets.values().collect::<Vec<_>>(),
        [&0, &0, &1]
    );
    assert_eq!(places.objects[1].offsets[&1], 1);
}
