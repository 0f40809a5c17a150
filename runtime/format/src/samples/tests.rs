use super::*;
use proptest::prelude::*;

const HEADER: SamplesHeader = SamplesHeader {
    pid: 4711,
    period_ns: 1_000_000,
    has_tsc: true,
};

/// One of each kind.
fn all() -> Vec<SampleRecord<'static>> {
    let closed = |because| {
        SampleRecord::Closed(Closed {
            raw_ns: 11,
            because,
            amount: 100_000,
        })
    };
    let mapping = |path| {
        SampleRecord::Mapping(Mapping {
            raw_ns: 5,
            pid: 7,
            begin: 0x40_0000,
            size: 0x1000,
            offset: 0x2000,
            path,
        })
    };
    let stop = |call| {
        let sample = Sample {
            raw_ns: 4,
            pid: 7,
            tid: 8,
            addresses: vec![1, 2],
            is_whole: true,
        };
        SampleRecord::Stop(Stop { sample, call })
    };
    vec![
        SampleRecord::Clock(TscPair {
            tsc: u64::MAX,
            raw_ns: 2,
        }),
        SampleRecord::Sample(Sample {
            raw_ns: 3,
            pid: u32::MAX,
            tid: 8,
            addresses: vec![0x40_1234],
            is_whole: false,
        }),
        SampleRecord::Sample(Sample {
            raw_ns: 4,
            pid: 7,
            tid: 8,
            addresses: vec![1, 2, 3],
            is_whole: true,
        }),
        stop(Some(35)),
        stop(None),
        mapping(b"/a"),
        mapping(b"/1234567"),
        mapping(b"/12345678"),
        mapping(b""),
        SampleRecord::Fork {
            raw_ns: 6,
            pid: 9,
            parent: 7,
        },
        SampleRecord::Exec { raw_ns: 7, pid: 9 },
        SampleRecord::Switch(Switch {
            raw_ns: 8,
            pid: 7,
            tid: 8,
            is_out: true,
            is_preempted: true,
        }),
        SampleRecord::Lost {
            raw_ns: 10,
            count: 1 << 40,
        },
        closed(TooMuch::Switches),
        closed(TooMuch::Threads),
        closed(TooMuch::Events),
        closed(TooMuch::Bytes),
    ]
}

fn written(records: &[SampleRecord<'_>]) -> Vec<u8> {
    let mut bytes = vec![];
    encode_header(&HEADER, &mut bytes);
    records.iter().for_each(|r| encode_record(r, &mut bytes));
    bytes
}

#[test]
fn what_is_written_comes_back() {
    let bytes = written(&all());
    let file = SamplesFile::parse(&bytes).unwrap();
    assert_eq!(file.header, HEADER);
    let read: Vec<_> = file.records().map(Result::unwrap).collect();
    assert_eq!(read, all());
    assert_eq!(bytes.len() % 8, 0);
}

#[test]
fn long_stacks_are_cut_and_say_so() {
    let stack = SampleRecord::Sample(Sample {
        raw_ns: 1,
        pid: 2,
        tid: 3,
        addresses: (0..1000).collect(),
        is_whole: true,
    });
    let bytes = written(&[stack]);
    let read = SamplesFile::parse(&bytes).unwrap().records().next();
    let Some(Ok(SampleRecord::Sample(read))) = read else {
        panic!("{read:?}");
    };
    assert_eq!((read.addresses.len(), read.is_whole), (MAX_FRAMES, false));
}

#[test]
fn kinds_of_later_versions_are_skipped() {
    let mut bytes = written(&[]);
    bytes.extend_from_slice(&[200, 0, 16, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    encode_record(&SampleRecord::Exec { raw_ns: 7, pid: 9 }, &mut bytes);
    let records: Vec<_> = SamplesFile::parse(&bytes).unwrap().records().collect();
    assert_eq!(records, [Ok(SampleRecord::Exec { raw_ns: 7, pid: 9 })]);
}

#[test]
fn other_files_and_versions_are_refused() {
    let bytes = written(&all());
    let error = |bytes: &[u8]| SamplesFile::parse(bytes).unwrap_err();
    for len in 0..HEADER_LEN {
        assert_eq!(error(&bytes[..len]), SamplesError::NotSamples);
    }
    let mut other = bytes.clone();
    other[8] = 9;
    assert_eq!(error(&other), SamplesError::Version(9));
    assert!(error(&other).to_string().contains("version 9"));
    other = bytes;
    other[0] = b'x';
    assert_eq!(error(&other), SamplesError::NotSamples);
}

#[test]
fn a_file_that_was_cut_is_told() {
    let bytes = written(&all());
    let ends: Vec<usize> = (1..=all().len())
        .map(|n| written(&all()[..n]).len())
        .collect();
    for len in HEADER_LEN + 1..bytes.len() {
        let file = SamplesFile::parse(&bytes[..len]).unwrap();
        let last = file.records().last().unwrap();
        assert_eq!(last.is_ok(), ends.contains(&len), "{len}");
    }
}

#[test]
fn lengths_that_can_not_be_are_malformed() {
    for len in [0, 7, 12, 4096u16] {
        let mut bytes = written(&[SampleRecord::Exec { raw_ns: 7, pid: 9 }]);
        bytes[HEADER_LEN + 2..HEADER_LEN + 4].copy_from_slice(&len.to_le_bytes());
        let records: Vec<_> = SamplesFile::parse(&bytes).unwrap().records().collect();
        assert_eq!(records, [Err(SamplesError::Malformed(HEADER_LEN))], "{len}");
    }
}

proptest! {
    #[test]
    fn damaged_files_are_read_to_an_end(at in 0usize..600, value: u8) {
        let mut bytes = written(&all());
        let at = at % bytes.len();
        bytes[at] = value;
        if let Ok(file) = SamplesFile::parse(&bytes) {
            let records: Vec<_> = file.records().collect();
            let bad = records.iter().filter(|r| r.is_err()).count();
            prop_assert!(bad == 0 || (bad == 1 && records.last().unwrap().is_err()));
        }
    }
}

#[test]
fn the_time_stamp_counter_goes_on() {
    let first = tsc();
    assert!((0..1000).any(|_| tsc() > first));
}
