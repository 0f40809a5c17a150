use super::*;

/// A thread that has met these chains (innermost call first), of a program at this address.
fn thread(bias: u64, chains: &[&[u64]]) -> ThreadContexts {
    let mut contexts = ThreadContexts::default();
    let program = Arc::new(ContextObject {
        path: "/bin/p".to_owned(),
        build_id: None,
        python: None,
    });
    contexts.objects = vec![(bias, bias + 0x1000, bias, program)];
    for (number, chain) in (1..).zip(chains) {
        let addresses = chain.iter().map(|address| bias + address);
        contexts.add(number, ChainEnd::Whole, addresses);
    }
    contexts
}

fn chains(all: &Contexts) -> Vec<Vec<u64>> {
    let of = |number| all.frames_of(number).map(|f| f.address).collect();
    (1..=all.frames.len() as u32).map(of).collect()
}

#[test]
fn numbers_do_not_depend_on_who_met_what_first() {
    let (a, b, c): (&[u64], &[u64], &[u64]) = (&[3, 2, 1], &[9, 2, 1], &[2, 1]);
    let first = thread(0x10_0000, &[a, b]);
    let second = thread(0x10_0000, &[c, b]);
    let one = AllContexts::new([&first, &second].into_iter(), None);
    // Another process, elsewhere in memory, in another order.
    let other = thread(0x7f_0000, &[b, c, a]);
    let two = AllContexts::new([&other].into_iter(), None);
    assert_eq!(one.contexts, two.contexts);
    assert_eq!(one.contexts.frames.len(), 4);
    assert_eq!(
        chains(&one.contexts),
        [vec![1], vec![2, 1], vec![3, 2, 1], vec![9, 2, 1]]
    );
    let numbers = |all: &AllContexts, of: &ThreadContexts, n| all.number(of.chain(n));
    assert_eq!([1, 2].map(|n| numbers(&one, &first, n)), [3, 4]);
    assert_eq!([1, 2].map(|n| numbers(&one, &second, n)), [2, 4]);
    assert_eq!([1, 2, 3].map(|n| numbers(&two, &other, n)), [4, 2, 3]);
    assert_eq!(one.number(None), 0);
}

/// Two callers in turns, and a nested region that the second thread forks. All readers agree, which `FakeRun::read` checks.
#[test]
fn paths_differ_by_context() {
    use crate::summary::Summary;
    use crate::testing::{FakeRun, FakeThread};
    use ompfuse_format::Construct::{ImplicitTask, Parallel};
    use ompfuse_format::record::Step;
    let (one, two): (&[u64], &[u64]) = (&[0x30, 0x10], &[0x30, 0x20]);
    let mut run = FakeRun::new(&[(Parallel, 0x100), (Parallel, 0x200)], &[]);
    let mut master = FakeThread::new(0, 0, 1000);
    let mut worker = FakeThread::new(1, 0, 1000);
    for (nth, chain) in [one, two, one].into_iter().enumerate() {
        // The worker's numbers are its own.
        master.called_from(0, 1 + nth as u64 % 2, chain);
        let node = master.node();
        let rank = nth as i64 + 1;
        let root = FakeThread::root();
        master.record_node(Parallel, 0, node, root, Step::Ranked, rank);
        master.begin(Parallel, 0, node, root, Step::Ranked, rank);
        master.begin(ImplicitTask, 0, 0, node, Step::None, 0);
        master.work(100);
        worker.until(master.now - 100);
        worker.begin(ImplicitTask, 0, 0, node, Step::None, 1);
        worker.called_from(1, 7, &[0x50]);
        let inner = worker.node();
        worker.record_node(Parallel, 1, inner, node, Step::TidRanked, 1);
        worker.begin(Parallel, 1, inner, node, Step::TidRanked, 1);
        worker.begin(ImplicitTask, 1, 0, inner, Step::None, 0);
        worker.work(50);
        worker.end(0);
        worker.end(1);
        worker.work(50);
        worker.end(1);
        master.end(0);
        master.end(2);
        master.work(10);
    }
    worker.until(master.now);
    run.process(5, 1000, vec![master, worker], true);
    let run = run.read();
    assert_eq!(
        chains(&run.contexts),
        [
            vec![0x10],
            one.to_vec(),
            vec![0x20],
            two.to_vec(),
            vec![0x50]
        ]
    );
    let summary = Summary::of_run("r", &run);
    let forks = summary.paths.iter().filter_map(|p| {
        let executions = p.executions.as_ref()?.executions;
        Some((p.site?, p.context, executions))
    });
    let forks: Vec<_> = forks.collect();
    assert_eq!(forks, [(0, 2, 2), (1, 5, 2), (0, 4, 1), (1, 5, 1)]);
    // Where nobody asks for callers they are one.
    let flat = summary.parallel.iter().map(|p| (p.site, p.executions));
    assert_eq!(flat.collect::<Vec<_>>(), [(Some(0), 3), (Some(1), 3)]);
}

#[test]
fn contexts_of_another_run_are_found() {
    let few = AllContexts::new([&thread(0x10_0000, &[&[9, 2, 1]])].into_iter(), None);
    let many = thread(0x20_0000, &[&[9, 2, 1], &[5, 1], &[1]]);
    let many = AllContexts::new([&many].into_iter(), None);
    // 1, 2 above it, 9 above that; 5 is only in one of them.
    assert_eq!(many.contexts.numbers_of(&few.contexts), [1, 2, 3]);
    assert_eq!(few.contexts.numbers_of(&many.contexts), [1, 2, 3, 0]);
}

#[test]
fn code_in_no_file_has_its_own_address() {
    let mut contexts = thread(0x10_0000, &[]);
    contexts.objects.clear();
    contexts.add(1, ChainEnd::Unknown, [0x1234].into_iter());
    let all = AllContexts::new([&contexts].into_iter(), None).contexts;
    assert_eq!(all.objects, []);
    assert_eq!(
        (
            all.frames[0].object,
            all.frames[0].address,
            all.frames[0].cut
        ),
        (None, 0x1234, Some(Cut::Unknown))
    );
}
