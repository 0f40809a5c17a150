//! Of several processes and modules.

use super::*;
use ompfuse_format::record::ThreadHeader;
use ompfuse_format::run::ProcessEnd;

#[test]
fn modules_are_told_apart_in_labels() {
    let mut fake = listing(&[], false);
    let alone = label_texts(&fake.read());
    let mut library = module("lib", "aaa", LISTING_SITES);
    library.binary.kind = "library".to_owned();
    fake.header.modules.push(library);
    assert_eq!(
        label_texts(&fake.read()),
        alone,
        "the program's stay as they are"
    );

    // The same sites, of a library that was loaded later and has another number in another run.
    let mut labels = Vec::new();
    for number in [0, 1] {
        let mut fake = listing(&[], false);
        fake.header.modules[0].binary.kind = "library".to_owned();
        let name = "process-77.json";
        let (_, json) = fake.files.iter_mut().find(|f| f.0 == name).unwrap();
        let mut header: ProcessHeader = serde_json::from_slice(json).unwrap();
        let status = header.modules.pop().unwrap();
        *json = serde_json::to_vec(&header).unwrap();
        let status = serde_json::to_vec(&status).unwrap();
        fake.files.push(("module-77-0.json".to_owned(), status));
        if number == 1 {
            fake.header
                .modules
                .push(module("other", "000", LISTING_SITES));
        }
        let run = fake.read();
        assert_eq!(run.health, Health::default());
        labels.push(label_texts(&run));
    }
    assert_eq!(labels[0], labels[1]);
    assert_ne!(labels[0], alone);
    assert_eq!(labels[0].len(), alone.len());
}

#[test]
fn an_unknown_module_is_a_problem_and_gives_no_labels() {
    let mut fake = listing(&[], false);
    fake.header.modules.clear();
    let run = fake.read();
    assert_eq!(run.health.unlabelled_xus, 16);
    assert!(run.health.unknown_sites > 16);
    assert!(matches!(
        run.health.problems[..],
        [Problem::UnknownModule { pid: 77, .. }]
    ));
    assert!(run.sites.is_empty());
}

#[test]
fn processes_one_after_the_other_differ_and_overlapping_ones_do_not() {
    let mut fake = listing(&[], false);
    fake.process(
        78,
        BEGIN + 10_000,
        listing_threads(0, false, BEGIN + 10_000),
        true,
    );
    let run = fake.read();
    assert_eq!(
        run.processes
            .iter()
            .map(|p| (p.pid, p.begin_ns))
            .collect::<Vec<_>>(),
        [(77, 0), (78, 10_000)]
    );
    let ordinals: Vec<u32> = run.xus.processes.iter().map(|p| p.ordinal).collect();
    assert_eq!(ordinals, [0, 1]);
    assert!(run.health.is_good());

    fake.process(
        79,
        BEGIN + 10_001,
        listing_threads(0, false, BEGIN + 10_001),
        true,
    );
    let run = fake.read();
    assert!(run.xus.processes.iter().all(|p| p.ordinal == 0));
    assert_eq!(
        run.health.problems,
        [Problem::OverlappingProcesses { count: 3 }]
    );

    // Of an MPI program each has a rank.
    for (pid, rank) in [(77, 2), (78, 0), (79, 1)] {
        let name = format!("process-{pid}.json");
        let (_, json) = fake.files.iter_mut().find(|f| f.0 == name).unwrap();
        let mut header: ompfuse_format::run::ProcessHeader = serde_json::from_slice(json).unwrap();
        header.mpi_rank = Some(rank);
        *json = serde_json::to_vec(&header).unwrap();
    }
    let run = fake.read();
    let ids = run.xus.processes.iter().map(|p| (p.mpi_rank, p.ordinal));
    assert_eq!(
        ids.collect::<Vec<_>>(),
        [(Some(2), 3 << 16), (Some(0), 1 << 16), (Some(1), 2 << 16)]
    );
    assert!(run.health.is_good());
}

#[test]
fn a_number_can_come_again() {
    // A process replaced its program: the same number, one after the other.
    let mut fake = listing(&[], false);
    let before = fake.files.len();
    let threads = listing_threads(0, false, BEGIN + 10_000);
    fake.process(77, BEGIN + 10_000, threads, true);
    for (name, _) in &mut fake.files[before..] {
        *name = name.replacen("77", "77.1", 1);
    }
    let run = fake.read();
    assert!(run.health.is_good());
    assert_eq!(run.xus.len(), 32);
    let profile = crate::Profile::of_run("run", run).in_label_order();
    let again = crate::Profile::from_parquet(profile.to_parquet().unwrap()).unwrap();
    let keys = |xus: &XuTable| (0..32).map(|row| xus.key(row)).collect::<Vec<_>>();
    assert_eq!(keys(&again.xus), keys(&profile.xus));
    assert_eq!(
        crate::combine_lgl(&[&again.xus, &profile.xus]).table.len(),
        32
    );
}

#[test]
fn a_process_that_only_says_why_it_has_no_records_is_a_problem() {
    let mut fake = listing(&[], false);
    let json = br#"{"end":{"tsc":1,"ns":2},"threads":0,"lost":0,"threads_lost":0,"sized_teams":false,"stopped":"a clone"}"#;
    fake.files
        .push(("process-78.end.json".to_owned(), json.to_vec()));
    let problems = fake.read().health.problems;
    assert!(
        matches!(&problems[..], [Problem::Stopped { pid: 78, reason }] if reason == "a clone"),
        "{problems:?}"
    );
}

#[test]
fn a_run_of_another_version_is_one_error() {
    let mut fake = listing(&[], false);
    let mut spoil = |how_many: usize| {
        let records = fake.files.iter_mut().filter(|f| f.0.ends_with(".rec"));
        let mut spoilt = 0;
        for (_, bytes) in records.take(how_many) {
            bytes[8] = 3;
            spoilt += 1;
        }
        let header = serde_json::to_vec(&fake.header).unwrap();
        let files = fake
            .files
            .iter()
            .map(|(name, bytes)| (&name[..], &bytes[..]));
        let files = files.chain([("run.json", &header[..])]);
        (spoilt, RunFiles::from_folder(files).map(|_| ()))
    };
    let (_, one) = spoil(1);
    assert!(one.is_ok(), "a damaged file: {one:?}");
    let (spoilt, all) = spoil(usize::MAX);
    assert!(spoilt > 1);
    assert_eq!(
        all.unwrap_err().to_string(),
        "its records have version 3, and this ompfuse reads version 4: read them with the ompfuse that recorded them"
    );
}

#[test]
fn clocks_are_relative_to_the_first_process() {
    let mut fake = listing(&[], false);
    let (_, json) = fake
        .files
        .iter_mut()
        .find(|f| f.0 == "process-77.end.json")
        .unwrap();
    let mut end: ompfuse_format::run::ProcessEnd = serde_json::from_slice(json).unwrap();
    let tsc = end.end.tsc;
    end.end = ClockPair {
        tsc,
        ns: BEGIN + 5_000_000_000 + 2 * (tsc - BEGIN),
    };
    *json = serde_json::to_vec(&end).unwrap();
    let run = fake.read();
    let fork = run
        .intervals
        .construct
        .iter()
        .position(|&c| c == Construct::Parallel)
        .unwrap();
    assert_eq!(run.intervals.t0_ns[fork], 200);
}

type Times = (i64, Option<i64>, Option<i64>, Option<(i64, i64)>);

/// A process's own time is known where it says when it was prepared and when it began to exit; never is it 0 for want of knowing.
#[test]
fn own_time_is_known_or_unknown() {
    let times = |fake: &FakeRun| {
        let run = fake.read();
        let of = &run.processes[0];
        (of.started_ns, of.prepared_ns, of.exiting_ns, of.own_time())
    };
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    let thread = || {
        let mut thread = FakeThread::new(0, 0, BEGIN + 40);
        thread.now = BEGIN + 90;
        thread
    };
    fake.process(77, BEGIN, vec![thread()], true);
    set(
        &mut fake,
        "process-77.json",
        |header: &mut ProcessHeader| {
            header.started = BEGIN + 10;
        },
    );
    set(&mut fake, "process-77.end.json", |end: &mut ProcessEnd| {
        (end.prepared, end.exiting) = (Some(BEGIN + 40), Some(BEGIN + 80));
    });
    let known = (10, Some(40), Some(80), Some((40, 80)));
    assert_eq!(times(&fake), known);

    // Killed: its first thread tells when it was prepared, if it was prepared with the process.
    fake.files.retain(|(name, _)| name != "process-77.end.json");
    // Without an end its clock is another one.
    let is_known = |(_, b, c, d): Times| [b.is_some(), c.is_some(), d.is_some()];
    assert_eq!(is_known(times(&fake)), [false, false, false]);
    let (_, bytes) = (fake.files.iter_mut())
        .find(|(name, _)| name == "77-0.rec")
        .unwrap();
    let at = std::mem::offset_of!(ThreadHeader, prepared_ticks);
    bytes[at..at + 8].copy_from_slice(&30u64.to_le_bytes());
    assert_eq!(is_known(times(&fake)), [true, false, false]);
}

/// What exit handlers and destructors take behind the records is the process's own, and not the recording's.
#[test]
fn handlers_are_in_the_own_time() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    let mut thread = FakeThread::new(0, 0, BEGIN + 40);
    thread.now = BEGIN + 90;
    fake.process(77, BEGIN, vec![thread], true);
    set(
        &mut fake,
        "process-77.json",
        |header: &mut ProcessHeader| header.started = BEGIN + 10,
    );
    let mut of = |handlers: Option<[u64; 2]>| {
        set(&mut fake, "process-77.end.json", |end: &mut ProcessEnd| {
            end.end.tsc = BEGIN + 400;
            end.end.ns = end.end.tsc + 5_000_000_000;
            (end.prepared, end.exiting) = (Some(BEGIN + 40), Some(BEGIN + 90));
            end.handlers = handlers;
        });
        let run = fake.read();
        let own = crate::Summary::of_run("run", &run).own[0];
        let until = run.processes[0].own_time().map(|(begin, end)| end - begin);
        assert_eq!(until, Some(own.own_ns as i64));
        (own.own_ns, own.handlers_ns, run.processes[0].recording_ns())
    };
    assert_eq!(of(None), (50, 0, Some(30 + 310)));
    let handlers = [BEGIN + 100, BEGIN + 380];
    assert_eq!(of(Some(handlers)), (50 + 280, 280, Some(30 + 30)));
    // What can't be is not believed.
    assert_eq!(of(Some([BEGIN + 100, BEGIN + 90])).0, 50);
    assert_eq!(of(Some([0, u64::MAX])).0, 50 + 310);
}

/// A thread that fulfils an event, and does nothing else that is on record, is no thread of the program.
#[test]
fn who_only_calls_the_library_is_no_root() {
    for construct in [Construct::Service, Construct::Io] {
        let mut fake = FakeRun::new(&[(Construct::Parallel, 0x10), (construct, 0x20)], &[]);
        let mut first = FakeThread::new(0, 0, BEGIN);
        let (region, root) = (first.node(), FakeThread::root());
        first.begin(Construct::Parallel, 0, region, root, Step::Ranked, 1);
        first.work(100);
        first.end(1);
        let mut other = FakeThread::new(1, 0, BEGIN + 10);
        other.wait(construct, 1, 0, 5);
        other.until(BEGIN + 100);
        fake.process(77, BEGIN, vec![first, other], true);
        let run = fake.read();
        let is_root = construct != Construct::Service;
        assert_eq!(run.threads[1].root, is_root, "{construct:?}");
        let own = crate::Summary::of_run("run", &run).own[0];
        assert_eq!(own.threads, 1 + u64::from(is_root), "{construct:?}");
    }
}

/// What recording took for itself is in no interval of a thread, and is told.
#[test]
fn what_recording_takes_for_itself_is_not_the_threads() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    let mut thread = FakeThread::new(0, 0, BEGIN + 40);
    thread.now = BEGIN + 90;
    fake.process(77, BEGIN, vec![thread], true);
    let account = |fake: &FakeRun| fake.read().threads[0].clone();
    let before = account(&fake);
    let (_, bytes) = (fake.files.iter_mut())
        .find(|(name, _)| name == "77-0.rec")
        .unwrap();
    let fields = [
        (std::mem::offset_of!(ThreadHeader, prepared_ticks), 3),
        (std::mem::offset_of!(ThreadHeader, ours_ticks), 20),
        (std::mem::offset_of!(ThreadHeader, completed_ticks), 7),
    ];
    for (at, value) in fields {
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
    }
    let after = account(&fake);
    assert_eq!((after.begin_ns, after.end_ns), (40, Some(90)));
    assert_eq!(
        (before.total_ticks, after.total_ticks),
        (Some(50), Some(30))
    );
    let ours = (after.prepared_ns, after.ours_ns, after.completed_ns);
    assert_eq!(ours, (3, 20, 7));
}

/// Changes a JSON file of a made-up run.
fn set<T: serde::Serialize + serde::de::DeserializeOwned>(
    fake: &mut FakeRun,
    name: &str,
    change: impl FnOnce(&mut T),
) {
    let mut files = fake.files.iter_mut();
    let (_, json) = files.find(|(n, _)| n == name).unwrap();
    let mut value: T = serde_json::from_slice(json).unwrap();
    change(&mut value);
    *json = serde_json::to_vec(&value).unwrap();
}
