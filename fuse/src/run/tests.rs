//! Made-up runs, read.

mod processes;

use super::*;
use crate::testing::{BEGIN, FakeRun, FakeThread, LISTING_SITES, listing, listing_threads, module};
use ompfuse_format::record::{NO_SITE, Step, site_ref};
use ompfuse_format::run::{ClockPair, Exit, ProcessHeader};
use proptest::prelude::*;

fn label_texts(run: &Run) -> Vec<String> {
    (0..run.xus.len())
        .map(|row| {
            run.xus
                .label_text(row, 100)
                .unwrap_or_else(|| "-".to_owned())
        })
        .collect()
}

/// The 16 labels of Listing 1.1 (golden/d_labels.json), in depth-first order.
const LISTING_LABELS: [&str; 16] = [
    "0.1.3.0.0.16",
    "0.1.3.0.1.16",
    "0.1.3.1.5.0",
    "0.1.3.1.5.0.1.7",
    "0.1.3.1.5.0.2.7",
    "0.1.3.1.5.0.3.7",
    "0.1.3.1.5.0.4.7",
    "0.1.3.1.5.4",
    "0.1.3.1.5.4.1.7",
    "0.1.3.1.5.4.2.7",
    "0.1.3.1.5.4.3.7",
    "0.1.3.1.5.4.4.7",
    "0.1.3.2.11.0",
    "0.1.3.2.11.2",
    "0.1.3.2.11.4",
    "0.1.3.2.11.6",
];

#[test]
fn the_papers_listing_gets_the_papers_labels() {
    for swap in [false, true] {
        let run = listing(&["cycles"], swap).read();
        assert_eq!(run.health, Health::default());
        let order = run.xus.labels.depth_first(&run.xus.label);
        let texts = label_texts(&run);
        let sorted: Vec<&str> = order
            .iter()
            .map(|&row| texts[row as usize].as_str())
            .collect();
        assert_eq!(sorted, LISTING_LABELS);
    }
}

#[test]
fn parts_of_one_task_are_one_xu() {
    let run = listing(&["cycles"], false).read();
    let row = label_texts(&run)
        .iter()
        .position(|l| l == "0.1.3.0.1.16")
        .unwrap();
    let xus = &run.xus;
    assert_eq!((xus.parts[row], xus.own_ns[row]), (2, 17));
    assert_eq!(xus.event("cycles").unwrap().get(row), Some(34));
    assert_eq!(xus.t1_ns[row] - xus.t0_ns[row], 17);
    assert_eq!((xus.process[row], xus.thread[row], xus.cpu[row]), (0, 1, 1));
    assert_eq!(xus.sites[xus.site[row] as usize].name, "0x10");
}

#[test]
fn nothing_is_counted_twice_or_not_at_all() {
    let run = listing(&["cycles", "instructions"], false).read();
    assert_eq!(run.threads.len(), 2);
    for thread in &run.threads {
        assert_eq!(thread.balanced(), Some(true), "{thread:?}");
        assert_eq!(thread.counts.len(), 2);
        let own: u64 = (0..run.xus.len())
            .filter(|&row| run.xus.thread[row] == thread.index)
            .map(|row| run.xus.own_ns[row])
            .sum::<u64>()
            + (0..run.intervals.len())
                .filter(|&row| run.intervals.thread[row] == thread.index)
                .map(|row| run.intervals.own_ns[row])
                .sum::<u64>();
        assert_eq!(Some(own), thread.total_ns);
    }
    assert!(run.threads[0].root && !run.threads[1].root);
}

#[test]
fn an_event_without_a_column_is_not_counted() {
    let mut fake = listing(&["cycles", "branches"], false);
    let (_, json) = fake
        .files
        .iter_mut()
        .find(|f| f.0 == "process-77.json")
        .unwrap();
    let mut header: ProcessHeader = serde_json::from_slice(json).unwrap();
    header.events[0].column = None;
    header.events[0].reason = Some("no such counter; use --count".to_owned());
    header.events[1].column = Some(0);
    *json = serde_json::to_vec(&header).unwrap();
    let run = fake.read();
    assert_eq!(run.xus.events.len(), 1);
    assert_eq!(run.xus.events[0].name, "branches");
    let cycles = &run.events[0];
    assert_eq!(
        (cycles.counted, cycles.reason.as_deref()),
        (false, Some("no such counter; use --count"))
    );
}

#[test]
fn a_killed_process_keeps_what_it_recorded() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    fake.header.duration_s = 1e-6;
    fake.header.exit = Exit::Signal(9);
    let threads = listing_threads(0, false, BEGIN);
    fake.process(5, BEGIN, threads, false);
    // Threads that were just beginning: a file is there, its header isn't yet.
    fake.files.push(("5-8.rec".to_owned(), vec![]));
    fake.files.push(("5-9.rec".to_owned(), vec![0; 8192]));
    let run = fake.read();
    assert_eq!(run.xus.len(), 16);
    // Nodes are recorded when something refers to them, so the labels are whole.
    assert_eq!(run.health.unlabelled_xus, 0);
    let killed = Problem::Killed { pid: 5 };
    assert_eq!(
        run.health.problems,
        [Problem::EstimatedClock { pid: 5 }, killed]
    );
    assert_eq!(run.threads[0].balanced(), None);
}

/// A worker's `_exit`: nothing on record is without its end.
#[test]
fn a_process_that_ends_between_constructs_misses_none() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    fake.process(5, BEGIN, listing_threads(0, false, BEGIN), false);
    let health = fake.read().health;
    assert!(
        health.problems.contains(&Problem::Unfinished { pid: 5 }),
        "{health:?}"
    );
    assert!(!health.problems.iter().any(Problem::is_loss), "{health:?}");
}

#[test]
fn broken_files_are_named_and_the_rest_is_used() {
    let mut fake = listing(&["cycles"], false);
    fake.files
        .iter_mut()
        .find(|f| f.0 == "77-1.rec")
        .unwrap()
        .1
        .truncate(100);
    fake.files.push(("78-0.rec".to_owned(), vec![1; 5000]));
    fake.files
        .push(("process-79.json".to_owned(), b"{".to_vec()));
    fake.files.push(("notes.txt".to_owned(), b"mine".to_vec()));
    let run = fake.read();
    let malformed = |file: &str, error: &str| Problem::Malformed {
        file: file.to_owned(),
        error: error.to_owned(),
    };
    let process = Problem::NoProcess {
        file: "78-0.rec".to_owned(),
        process: "78".to_owned(),
    };
    assert_eq!(
        run.health.problems,
        [
            malformed(
                "process-79.json",
                "EOF while parsing an object at line 1 column 1"
            ),
            process,
            malformed("77-1.rec", "not a record file of ompfuse"),
        ]
    );
    assert_eq!(run.threads.len(), 1);
    assert!(run.health.unlabelled_xus == 0 && !run.xus.is_empty());
}

#[test]
fn without_the_parents_records_there_are_no_labels() {
    let mut fake = listing(&[], false);
    fake.files.retain(|f| f.0 != "77-0.rec");
    let run = fake.read();
    assert_eq!((run.xus.len(), run.health.unlabelled_xus), (8, 8));
    let combined = crate::combine_lgl(&[&run.xus, &run.xus]);
    assert!(combined.table.is_empty());
    assert!(
        combined
            .unmatched
            .iter()
            .all(|u| u.reason == crate::Reason::Unlabelled)
    );
}

#[test]
fn without_a_header_it_is_no_run() {
    let error = RunFiles::from_folder([("a", &b""[..])]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("no run.json: this is not a run folder")
    );
    let error = RunFiles::from_folder([("run.json", &b"[]"[..])]).unwrap_err();
    assert!(error.to_string().starts_with("run.json can't be read: "));
}

#[test]
fn lost_records_are_counted() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    let mut threads = listing_threads(0, false, BEGIN);
    threads[1].lost = 12;
    fake.process(5, BEGIN, threads, true);
    let run = fake.read();
    assert_eq!((run.health.lost_records, run.threads[1].lost), (12, 12));
    let lost = Problem::ThreadsLost { pid: 5, threads: 1 };
    assert!(run.health.problems.contains(&lost), "{:?}", run.health);
}

#[test]
fn a_range_needs_no_node_of_its_own() {
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    let mut thread = FakeThread::new(0, 0, BEGIN);
    let node = thread.node();
    thread.begin(
        Construct::Loop,
        site_ref(0, 1),
        node,
        FakeThread::root(),
        Step::Ranked,
        1,
    );
    thread.begin(Construct::Range, site_ref(0, 1), 0, node, Step::Range, 8);
    thread.work(5);
    thread.end(4);
    thread.begin(Construct::Range, NO_SITE, 0, 0, Step::Range, 8);
    thread.end(4);
    fake.process(5, BEGIN, vec![thread], true);
    let run = fake.read();
    assert_eq!(label_texts(&run), ["0.1.5.8", "-"]);
    assert_eq!((run.xus.first[0], run.xus.iterations[0]), (8, 4));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        which in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut fake = listing(&["cycles"], false);
        let bytes = &mut fake.files[which].1;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            // The header page is mostly padding: aim at its fields and at the records.
            let at = if (320..4096).contains(&at) { at % 320 } else { at };
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            let cut = cut.index(bytes.len());
            bytes.truncate(cut);
        }
        let run = fake.read_damaged();
        let summary = crate::Summary::of_run("run", &run);
        prop_assert!(summary.regions.len() < 100);
        let profile = crate::Profile::of_run("run", run);
        let again = crate::Profile::from_parquet(profile.to_parquet().unwrap()).unwrap();
        prop_assert_eq!(again.xus.len(), profile.xus.len());
    }
}

#[test]
fn what_was_not_counted_has_no_count() {
    let mut thread = FakeThread::new(0, 2, BEGIN);
    for rank in 1..=2 {
        let node = thread.node();
        thread.begin(
            Construct::Task,
            2,
            node,
            FakeThread::root(),
            Step::Ranked,
            rank,
        );
        if rank == 1 {
            thread.work(10);
        } else {
            thread.work_uncounted(10);
        }
        thread.end(0);
    }
    let mut fake = FakeRun::new(LISTING_SITES, &["cycles", "branches"]);
    fake.process(5, BEGIN, vec![thread], true);
    let run = fake.read();
    let cycles = run.xus.event("cycles").unwrap();
    assert_eq!([cycles.get(0), cycles.get(1)], [Some(20), None]);
    let problem = |event: &str| Problem::NotCounted {
        pid: 5,
        event: event.to_owned(),
        intervals: 1,
    };
    assert_eq!(
        run.health.problems,
        [problem("branches"), problem("cycles")]
    );
    assert_eq!(
        (
            run.threads[0].counts[0].total,
            run.threads[0].counts[0].gaps
        ),
        (None, 1)
    );
    assert_eq!(run.threads[0].balanced(), Some(true));
    // Of the tasks together it is not known either; of the time it is.
    let summary = crate::Summary::of_run("run", &run);
    let tasks = summary
        .regions
        .iter()
        .find(|r| r.construct == Some(Construct::Task))
        .unwrap();
    assert_eq!(
        (tasks.counts.as_slice(), tasks.own_ns()),
        (&[None, None][..], 20)
    );
}
