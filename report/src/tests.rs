//! Reports of made-up runs (Listing 1.1 of [XU] on two threads; one tick is a nanosecond, the first counter advances by
//! two per tick).

use crate::view::json;
use crate::view::text::{SCREEN, Sections, TextOptions, render};
use ompfuse_account::model::Incomplete;
use ompfuse_account::{Class, Report};
use ompfuse_format::Construct;
use ompfuse_fuse::testing::{BEGIN, FakeRun, FakeThread, LISTING_SITES, listing, listing_threads};
use ompfuse_fuse::{Combiner, Profile, Strategy, Summary, XuTable};

mod causes;
mod ompp;

fn report_of(fake: &FakeRun) -> Report {
    Report::new(&Summary::of_run("run-0001", &fake.read()))
}

pub(crate) fn combined() -> Report {
    let mut combiner = Combiner::new(Strategy::Lgl);
    combiner.add(Profile::of_run(
        "run-0001",
        listing(&["cycles"], false).read(),
    ));
    combiner.add(Profile::of_run(
        "run-0002",
        listing(&["instructions"], true).read(),
    ));
    Report::new(&combiner.finish().unwrap().unwrap().summary)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn own_times_add_up_to_the_threads_times() {
    let report = report_of(&listing(&["cycles"], false));
    let regions: f64 = report.regions.iter().map(|r| r.time_s).sum();
    let serial = &report.serial;
    let outside = serial.program_s + serial.idle_s + serial.unknown_s;
    assert!(close(regions + outside, report.thread_time_s));
    let total: u64 = report
        .accounting
        .iter()
        .map(|t| t.total_ticks.unwrap())
        .sum();
    assert!(close(report.thread_time_s, total as f64 * 1e-9));
    assert!(
        report
            .accounting
            .iter()
            .all(|t| t.balanced == Some(true) && t.own_counts == t.total_counts)
    );
    let cycles: u64 = report.regions.iter().map(|r| r.events["cycles"]).sum();
    assert_eq!(cycles + serial.events["cycles"], 2 * total);
    assert_eq!((serial.program_s, serial.unknown_s), (140.0 * 1e-9, 0.0));
}

#[test]
fn regions_have_their_executions_and_xus() {
    let report = report_of(&listing(&[], false));
    let mut list: Vec<_> = report
        .regions
        .iter()
        .map(|r| {
            (
                r.address.unwrap().0,
                r.construct.unwrap().name(),
                r.executions,
                r.xus,
            )
        })
        .collect();
    list.sort_unstable();
    let expected = [
        (3, "parallel", 1, 0),
        (5, "loop", 1, 2),
        (7, "task", 8, 8),
        (10, "implicit-barrier", 2, 0),
        (11, "loop", 1, 4),
        (16, "task", 2, 2),
    ];
    assert_eq!(list, expected);
    let first = report
        .regions
        .iter()
        .find(|r| r.address.unwrap().0 == 11)
        .unwrap();
    assert_eq!(first.id, 5);
    assert!(close(first.xu_min_s.unwrap(), 30e-9) && close(first.xu_max_s.unwrap(), 36e-9));
    assert!(close(first.runtime_s, 4e-9));
    assert_eq!(first.spread.threads, 2);
    assert!(close(first.spread.mean_s, 66e-9) && close(first.spread.max_s, 66e-9));
}

#[test]
fn overheads_follow_ompp() {
    let report = report_of(&listing(&[], false));
    let [o] = &report.overheads[..] else {
        panic!("{:?}", report.overheads)
    };
    assert_eq!(
        (o.executions, o.team, o.nested, &o.incomplete_because[..]),
        (1, 2, 0, &[][..])
    );
    assert!(close(o.total_s, 2.0 * o.wall_s));
    assert_eq!(report.parallel_s, Some(o.wall_s));
    assert!(close(
        report.coverage.unwrap(),
        o.wall_s / report.lifetime_s.unwrap()
    ));
    let part = |what: &str| {
        o.parts
            .iter()
            .find(|p| p.what == what)
            .map(|p| (p.class, (p.seconds * 1e9).round()))
    };
    // Fork at 100: the master begins 10 later, the other 25.
    assert_eq!(part("startup"), Some((Class::Management, 35.0)));
    // The last thread ends 6 before the join.
    assert_eq!(part("shutdown"), Some((Class::Management, 12.0)));
    assert_eq!(part("task-create"), Some((Class::Management, 16.0)));
    assert_eq!(part("dispatch"), Some((Class::Management, 4.0)));
    assert_eq!(part("taskwait"), None);
    assert_eq!(o.overhead.synchronization_s, None);
    assert!(close(o.overhead.sum() + o.work_s.unwrap(), o.total_s));
}

#[test]
fn tasks_after_the_region_are_no_waiting() {
    // Two threads end their parts at 10 and 50; the first executes a task from 20 to 40 while it waits.
    let mut threads = [FakeThread::new(0, 0, BEGIN), FakeThread::new(1, 0, BEGIN)];
    let node = threads[0].node();
    threads[0].begin(
        Construct::Parallel,
        0,
        node,
        FakeThread::root(),
        ompfuse_format::record::Step::Ranked,
        1,
    );
    for (tid, thread) in threads.iter_mut().enumerate() {
        thread.begin(
            Construct::ImplicitTask,
            0,
            0,
            node,
            ompfuse_format::record::Step::None,
            0,
        );
        thread.work(10 + 40 * tid as u64);
        thread.end(tid as u64);
    }
    let task = threads[0].node();
    threads[0].work(10);
    threads[0].begin(
        Construct::Task,
        2,
        task,
        node,
        ompfuse_format::record::Step::TidRanked,
        0,
    );
    threads[0].work(20);
    threads[0].end(0);
    threads[0].work(15);
    threads[0].end(2);
    let mut fake = FakeRun::new(LISTING_SITES, &[]);
    fake.process(9, BEGIN, threads.into(), true);
    let report = report_of(&fake);
    let overhead = report.overheads[0].overhead;
    assert!(close(overhead.imbalance_s.unwrap(), 20e-9), "{overhead:?}");
    assert!(close(overhead.management_s.unwrap(), 10e-9));
}

#[test]
fn what_was_not_recorded_is_not_zero() {
    let mut fake = listing(&[], false);
    fake.files.retain(|f| f.0 != "77-1.rec");
    let report = report_of(&fake);
    let o = &report.overheads[0];
    assert_eq!(
        (o.work_s, o.parts.iter().any(|p| p.what == "startup")),
        (None, false)
    );
    let lacks = Incomplete::MissingParts {
        executions: 1,
        of: 1,
    };
    assert_eq!(o.incomplete_because, [lacks]);
}

#[test]
fn json_keeps_its_names() {
    let json: serde_json::Value = serde_json::from_str(&json::to_string(&combined())).unwrap();
    for name in [
        "program",
        "threads",
        "duration_s",
        "coverage",
        "regions",
        "overheads",
    ] {
        assert!(!json[name].is_null(), "{name}");
    }
    for name in [
        "id",
        "address",
        "construct",
        "function",
        "source",
        "executions",
        "xus",
        "per_thread",
        "events",
    ] {
        assert!(!json["regions"][0][name].is_null(), "{name}");
    }
    assert_eq!(json["regions"][0]["source"]["file"], "/src/prog.c");
    assert!(json["overheads"][0]["management_s"].is_number());
    assert!(json["overheads"][0]["synchronization_s"].is_null());
}

#[test]
fn a_report_that_is_read_back_is_the_same() {
    let mut lossy = listing(&[], false);
    lossy.files.retain(|f| f.0 != "77-1.rec");
    for report in [combined(), report_of(&lossy), with_everything_wrong()] {
        let written = json::to_string(&report);
        let read = json::read(&written).unwrap();
        assert_eq!(read, report);
        assert_eq!(json::to_string(&read), written);
    }
    for version in [1, 99] {
        let text = format!("{{\"version\": {version}}}");
        let told = json::read(&text).unwrap_err().to_string();
        let expected = format!("its version is {version}, and this ompfuse reads version");
        assert!(told.starts_with(&expected), "{told}");
    }
    let other = json::read("{\"regions\": []}").unwrap_err().to_string();
    assert!(other.contains("missing field `version`"), "{other}");
}

#[test]
fn json_has_all_of_the_model_and_sentences_beside() {
    /// All that `less` has is in `more`; what that has besides are texts or lists of them.
    fn is_in(less: &serde_json::Value, more: &serde_json::Value) {
        use serde_json::Value::{Array, Object};
        match (less, more) {
            (Object(less), Object(more)) => {
                less.iter()
                    .for_each(|(name, value)| is_in(value, &more[name]));
                for (name, beside) in more.iter().filter(|(name, _)| !less.contains_key(*name)) {
                    let is_words = |v: &serde_json::Value| v.is_string() || v.is_null();
                    let all = beside
                        .as_array()
                        .is_some_and(|list| list.iter().all(is_words));
                    assert!(all || is_words(beside), "{name}: {beside}");
                }
            }
            (Array(less), Array(more)) => {
                assert_eq!(less.len(), more.len());
                less.iter().zip(more).for_each(|(a, b)| is_in(a, b));
            }
            _ => assert_eq!(less, more),
        }
    }
    let report = with_everything_wrong();
    let model = serde_json::to_value(&report).unwrap();
    let printed: serde_json::Value = serde_json::from_str(&json::to_string(&report)).unwrap();
    is_in(&model, &printed);
    assert!(printed["unmatched"][0]["reason"].is_string());
    assert_eq!(printed["unmatched"][0]["kind"], "range");
    assert_eq!(printed["unmatched"][0]["region_construct"], "loop");
    assert_eq!(printed["notes"].as_array().map(Vec::is_empty), Some(false));
}

#[test]
fn text_of_one_run() {
    insta::assert_snapshot!(render(
        &report_of(&listing(&["cycles"], false)),
        TextOptions::default()
    ));
}

fn with_everything_wrong() -> Report {
    let mut one = listing(&["cycles"], false);
    let sites = &mut one.header.modules[0].sites;
    sites[5].outcome = ompfuse_format::site::Outcome::Skipped;
    sites[5].reason = Some("3 bytes free, 5 needed".into());
    sites[4].outcome = ompfuse_format::site::Outcome::Skipped;
    sites[4].reason = Some("a probe would cost more than the instruction; listed only".into());
    one.header.exit = ompfuse_format::run::Exit::Code(3);
    let mut two = FakeRun::new(LISTING_SITES, &["instructions"]);
    let mut threads = listing_threads(1, true, BEGIN);
    threads[0].lost = 3;
    // A range that the first run does not have.
    let node = threads[0].node();
    threads[0].begin(
        Construct::Range,
        3,
        node,
        1 << 40 | 1,
        ompfuse_format::record::Step::Range,
        77,
    );
    threads[0].work(5);
    threads[0].end(1);
    two.process(81, BEGIN, threads, false);
    let (_, json) = one
        .files
        .iter_mut()
        .find(|f| f.0 == "process-77.json")
        .unwrap();
    let mut header: ompfuse_format::run::ProcessHeader = serde_json::from_slice(json).unwrap();
    header.events.push(ompfuse_format::run::EventStatus {
        name: "cache-misses".to_owned(),
        column: None,
        reason: Some(
            "this machine offers no hardware counters (virtual machine): use `patch --count`"
                .to_owned(),
        ),
        shared: None,
    });
    *json = serde_json::to_vec(&header).unwrap();
    let mut combiner = Combiner::new(Strategy::Lgl);
    combiner.add(Profile::of_run("run-0001", one.read()));
    combiner.add(Profile::of_run("run-0002", two.read()));
    Report::new(&combiner.finish().unwrap().unwrap().summary)
}

#[test]
fn text_of_a_profile_with_everything_wrong() {
    insta::assert_snapshot!(render(
        &with_everything_wrong(),
        TextOptions {
            top: 3,
            show: Sections::ALL,
            ..TextOptions::default()
        }
    ));
}

#[test]
fn text_of_a_foreign_table() {
    let csv = "type,label,thread,t0_ns,t1_ns,INS\n7,0.1,0,0,1500,7\n7,0.2,1,0,2500,123456\n9,0.3,1,3,4,1\n";
    let table = XuTable::from_csv(csv.as_bytes()).unwrap();
    let report = Report::new(&Profile::of_table("runs.csv", table).summary);
    insta::assert_snapshot!(render(&report, TextOptions::default()));
}

#[test]
fn the_usual_text_fits_a_screen() {
    let mut report = with_everything_wrong();
    for width in [80, 100, 120] {
        let options = TextOptions {
            width,
            ..TextOptions::default()
        };
        let text = render(&report, options);
        assert!(text.lines().count() <= SCREEN, "{width}:\n{text}");
        // Whoever asks for more gets it.
        let show = Sections::ALL;
        let all = render(&report, TextOptions { show, ..options });
        assert!(all.lines().count() > SCREEN, "{width}:\n{all}");
    }
    // Fewer regions come before an end.
    let region = report.regions[0].clone();
    for id in 100..108 {
        report.regions.push(ompfuse_account::model::Region {
            id,
            ..region.clone()
        });
    }
    let text = render(&report, TextOptions::default());
    assert!(text.lines().count() <= SCREEN, "{text}");
    assert!(text.contains("more regions"), "{text}");
    // What was lost comes before all that only explains.
    report.shortcomings.truncate(1);
    let lost = &crate::words::notes(&report)[0];
    let start: String = lost.chars().take(30).collect();
    report.losses = vec![report.losses.first().cloned().expect("a loss"); 3];
    let events = report.events.clone();
    report.events.extend((0..30).flat_map(|_| events.clone()));
    let text = render(&report, TextOptions::default());
    assert!(text.lines().count() <= SCREEN, "{text}");
    assert!(
        text.contains("more lines") && text.contains(&start),
        "{text}"
    );
}

#[test]
fn lines_fit_and_colour_is_optional() {
    let report = combined();
    for width in [40, 60, 80, 100, 120] {
        let text = render(
            &report,
            TextOptions {
                width,
                show: Sections::ALL,
                ..TextOptions::default()
            },
        );
        let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} > {width}:\n{text}");
        assert!(!text.contains('\x1b'));
    }
    assert!(
        render(
            &report,
            TextOptions {
                colour: true,
                ..TextOptions::default()
            }
        )
        .contains("\x1b[36m█")
    );
}
