//! All trace formats on made-up runs.

use crate::{View, chrome, firefox, perfetto, speedscope};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use ompfuse_format::run::Exit;
use ompfuse_fuse::run::timeline::Timeline;
use ompfuse_fuse::testing::{BEGIN, FakeRun, FakeThread, listing};
use ompfuse_progress::Progress;
use serde_json::Value;

/// A run in all formats that are text.
fn written(run: &FakeRun) -> Vec<Value> {
    run.with_files(|files| {
        let timeline = Timeline::new(files, Progress::default()).unwrap();
        let mut trace = vec![];
        perfetto::write(&mut trace, &timeline, &View::default(), Progress::default()).unwrap();
        let formats = [chrome::write, speedscope::write, firefox::write];
        let text = formats.map(|write| {
            let mut out = vec![];
            write(&mut out, &timeline, &View::default(), Progress::default()).unwrap();
            serde_json::from_slice(&out).unwrap()
        });
        text.into()
    })
}

#[test]
fn a_listing_has_an_event_for_each_span() {
    let written = written(&listing(&["cycles"], false));
    let events = written[0]["traceEvents"].as_array().unwrap();
    let of = |name: &str| {
        let is_it = |e: &&Value| e["name"].as_str().is_some_and(|n| n.starts_with(name));
        events.iter().filter(is_it).count()
    };
    // Eight tasks in a loop; one for each thread in two parts. Two ranges, then four.
    assert_eq!((of("task prog.c"), of("range")), (8 + 4, 2 + 4));
    let task = events
        .iter()
        .find(|e| e["args"]["label"] == "0.1.3.1.5.0.1.7");
    let task = task.unwrap();
    assert_eq!(
        (task["name"].as_str(), task["cat"].as_str()),
        (Some("task prog.c:7"), Some("work"))
    );
    assert_eq!(task["args"]["own_ns"], 21);
    assert_eq!(task["args"]["cycles"], 42);
}

#[test]
fn a_killed_run_with_hostile_names_and_one_without_threads() {
    let mut thread = FakeThread::new(0, 0, BEGIN);
    for _ in 0..3 {
        thread.work(5);
        thread.wait(Construct::Barrier, 0, FakeThread::root(), 2);
    }
    thread.begin(
        Construct::Task,
        0,
        thread_node(),
        FakeThread::root(),
        Step::Ranked,
        1,
    );
    let mut run = FakeRun::new(&[(Construct::Barrier, 3)], &[]);
    run.header.program = "./\"</script>\n\u{1}".to_owned();
    run.header.modules[0].sites[0].source = None;
    run.header.modules[0].sites[0].function = Some("a\"b\\c\n".into());
    run.header.exit = Exit::Signal(9);
    run.process(77, BEGIN, vec![thread], false);
    let of_killed = written(&run);
    assert_eq!(
        of_killed[0]["otherData"]["program"],
        run.header.program.as_str()
    );
    let barriers = of_killed[0]["traceEvents"].as_array().unwrap();
    assert_eq!(barriers.iter().filter(|e| e["ph"] == "X").count(), 3);
    assert_eq!(
        of_killed[1]["profiles"][0]["events"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    let mut empty = FakeRun::new(&[], &[]);
    empty.process(77, BEGIN, vec![], true);
    let of_empty = written(&empty);
    assert_eq!(of_empty[1]["profiles"], Value::Array(vec![]));
}

fn thread_node() -> u64 {
    (1 << 40) + 9
}
