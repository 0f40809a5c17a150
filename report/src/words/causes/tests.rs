//! Sentences that no planted or drawn program reaches (`tests/sentences.py` lists them): what they say of made-up causes.

use super::*;
use crate::words;
use ompfuse_account::model::{FewerThreads, LockKind, Mutex, Running, Sharing, Silent};
use ompfuse_fuse::span::LowerBound;
use ompfuse_fuse::summary::ProcessorLimit;

/// What is said of a cause: the sentence, and what usually helps.
fn said(report: &Report, loss: LossKind, cause: Cause) -> String {
    let loss = Loss {
        loss,
        region: None,
        seconds: 1.0,
        share: 0.5,
        cause,
        behind: None,
    };
    let told = super::cause(report, &loss);
    let remedy = remedy(report, &loss).map(|r| format!("; try: {r}"));
    told + &remedy.unwrap_or_default()
}

/// A report with a region of each kind: number 5 is a loop, 3 are tasks.
fn report() -> Report {
    crate::tests::combined()
}

const LOOP: u32 = 5;
const TASKS: u32 = 3;

fn waiting(cause: Cause) -> String {
    said(&report(), LossKind::Waiting, cause)
}

#[test]
fn processes_that_wait_for_each_other() {
    let busiest = Some(BusiestRank {
        rank: 3,
        times_mean: 1.5,
    });
    let communication = |calls, call_s| Cause::Communication {
        at: LOOP,
        calls,
        call_s,
        busiest,
    };
    let late = Cause::LateSender {
        at: LOOP,
        receives: 20,
        late: 12,
        late_s: 0.25,
        busiest: None,
    };
    let call = |calls| Cause::Call {
        at: LOOP,
        calls,
        call_s: 0.5,
    };
    let at_rank = Cause::AtRank {
        rank: 2,
        cause: Box::new(Cause::Late),
    };
    let of = |loss, cause| said(&report(), loss, cause);
    let all = [
        of(LossKind::Communication, communication(40, 0.025)),
        of(LossKind::Communication, communication(40, 0.01)),
        of(LossKind::Communication, communication(1, 1.0)),
        of(LossKind::Communication, late),
        of(LossKind::Call, call(1)),
        of(LossKind::Call, call(2)),
        waiting(at_rank),
        of(
            LossKind::Serial,
            Cause::SerialPart {
                wall_s: Some(0.5),
                of_work: Some(0.25),
                function: Some((LOOP, 0.4)),
            },
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_the_records_do_not_tell() {
    let kinds = [LossKind::Runtime, LossKind::TaskWait, LossKind::Exclusion];
    let mut all: Vec<String> = kinds
        .map(|kind| said(&report(), kind, Cause::Unknown))
        .into();
    let mut sums = report();
    sums.runs[0].sums_only = true;
    all.push(said(&sums, LossKind::Waiting, Cause::Unknown));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn units_that_are_long_or_few() {
    let uneven = |first, iterations, is_sections| Cause::UnevenUnits {
        at: LOOP,
        is_sections,
        first,
        iterations,
        unit_s: 0.5,
        times_mean: 4.0,
        instructions_times_mean: None,
        misses_times_mean: None,
        misses_event: None,
        better: None,
        if_first: None,
    };
    let counted = |instructions, misses: Option<f64>| {
        let mut cause = uneven(Some(7), 1, false);
        if let Cause::UnevenUnits {
            instructions_times_mean,
            misses_times_mean,
            misses_event,
            ..
        } = &mut cause
        {
            *instructions_times_mean = Some(instructions);
            *misses_times_mean = misses;
            *misses_event = misses.map(|_| "cache-misses".to_owned());
        }
        cause
    };
    let few = |iterations| Cause::FewUnits {
        at: LOOP,
        is_sections: false,
        units: 2.0,
        iterations,
        threads: 4,
    };
    let ranges = Cause::CostlyRanges {
        at: LOOP,
        fetch_s: 2e-7,
        range_s: 1e-7,
        iterations: Some(1.0),
        ranges: Some(1000.0),
        is_ordered: false,
    };
    let all = [
        uneven(None, 1, true),
        uneven(None, 1, false),
        uneven(None, 8, false),
        counted(3.9, None),
        counted(1.1, Some(6.0)),
        counted(1.1, Some(1.2)),
        few(3.0),
        few(8.0),
        ranges,
        Cause::ManyBarriers {
            at: Some(LOOP),
            count: 12_000,
            wait_s: 3e-6,
        },
        Cause::ManyBarriers {
            at: None,
            count: 12_000,
            wait_s: 3e-6,
        },
    ];
    insta::assert_snapshot!(all.map(waiting).join("\n"));
}

#[test]
fn tasks_that_are_small_or_held_up() {
    let at = TASKS;
    let at_once = Cause::AtOnce {
        at,
        parallelism: None,
        in_yield: true,
    };
    let waits = |task_s| Cause::WaitsForTasks { at, task_s };
    let costly = |task_s| Cause::CostlyTasks {
        at,
        create_s: 4e-7,
        task_s,
        count: 90_000,
    };
    let few = Cause::FewTasks {
        at,
        parallelism: 1.5,
        mean_s: Some(1e-7),
        longest_s: None,
        began_late: false,
        iterations: None,
    };
    let dependences = Cause::Dependences {
        at,
        count: 16,
        parallelism: None,
        excludes: false,
    };
    let all = [
        Cause::SlowCreation { at, share: 0.75 },
        at_once,
        Cause::AwaitsEvent { at, count: 1 },
        Cause::AwaitsEvent { at, count: 3 },
        waits(1e-7),
        costly(5e-7),
        costly(5e-5),
        few,
        dependences,
    ];
    insta::assert_snapshot!(all.map(waiting).join("\n"));
}

#[test]
fn locks_of_which_one_is_wanted_most() {
    let mut report = report();
    let lock = |symbol: &str, enter_s| Lock {
        kind: LockKind::Lock,
        symbol: Some(symbol.to_owned()),
        offset: Some(0),
        member: None,
        module: None,
        address: None,
        process: None,
        regions: vec![LOOP],
        threads: 4,
        times: Mutex {
            entries: 10,
            enter_s,
            held_s: None,
            exit_s: None,
        },
    };
    report.locks = vec![lock("table", 0.9), lock("queue", 0.1)];
    let held = Cause::Held {
        at: LOOP,
        held_s: None,
        of_wall: Some(0.5),
        entries: 20,
        waits_at: None,
        is_holder: true,
    };
    insta::assert_snapshot!(said(&report, LossKind::Exclusion, held));
}

#[test]
fn reasons_for_no_prediction_and_for_lower_bounds() {
    let silent = [
        Silent::TaskDependences,
        Silent::Exclusions,
        Silent::Detached,
        Silent::LeftOut,
        Silent::EachThread,
        Silent::Uneven,
        Silent::ByThreads,
        Silent::Shape,
        Silent::SmallUnits,
        Silent::Memory,
        Silent::NoProcessor,
        Silent::OwnThreads,
        Silent::Model,
    ];
    let bounds = [
        LowerBound::TaskDependences,
        LowerBound::Locks,
        LowerBound::WholeRanges,
        LowerBound::LeftOut,
        LowerBound::Exclusions,
        LowerBound::Detached,
    ];
    let all = silent.map(why).into_iter().chain(bounds.map(lower_bound));
    insta::assert_snapshot!(all.collect::<Vec<_>>().join("\n"));
}

#[test]
fn processors_that_threads_have_not() {
    let running = |threads, processors, limit, sharing| Running {
        threads,
        processes: 2,
        processors,
        limit,
        stolen_s: None,
        stolen: None,
        used: Some(0.9),
        taken: Some(0.1),
        sharing,
        fewer: Some(FewerThreads::Processes),
        wanted_s: 4.0,
        not_running_s: 2.0,
        not_running: 0.5,
        worked_s: Some(4.0),
        without_processor_s: Some(2.0),
        queued_s: Some(2.0),
        asleep_s: Some(0.0),
        is_starved: true,
    };
    let own = Some(Sharing::Own);
    let two = Some(2.0);
    let all = [
        running(4, None, None, None),
        running(1, Some(0.5), Some(ProcessorLimit::Quota), own),
        running(4, two, Some(ProcessorLimit::Quota), own),
        running(4, two, Some(ProcessorLimit::Binding), own),
        running(4, two, Some(ProcessorLimit::Affinity), own),
        running(4, two, Some(ProcessorLimit::Binding), None),
        running(4, Some(1.0), None, None),
        running(1, Some(1.0), None, None),
        running(1, two, None, Some(Sharing::Others)),
    ];
    let mut report = report();
    let all = all.map(|running| {
        let (limit, sharing, taken) = (running.limit, running.sharing, running.taken);
        let (threads, processors) = (running.threads, running.processors);
        report.running = Some(running);
        let cause = Cause::NoProcessor {
            threads,
            processors,
            limit,
            sharing,
            taken,
        };
        said(&report, LossKind::Starvation, cause)
    });
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn programs_without_regions_or_with_unknown_parts() {
    let mut empty = report();
    empty.regions.clear();
    empty.threads = 0;
    empty.account = None;
    empty.program = "/usr/bin/solve".to_owned();
    empty.args = vec!["a b".to_owned()];
    let nothing = words::verdict::verdict(&empty).expect("it says that there is nothing");
    let mut all = vec![nothing.headline, nothing.hint.unwrap_or_default()];
    let mut efficiencies = report()
        .account
        .and_then(|a| a.efficiencies)
        .expect("two runs with a region");
    efficiencies.load_balance = None;
    efficiencies.mpi = Some(0.5);
    efficiencies.mpi_communication = None;
    efficiencies.mpi_load_balance = Some(0.7);
    efficiencies.mpi_load_balance_inside_nodes = Some(0.9);
    efficiencies.mpi_load_balance_between_nodes = Some(0.78);
    efficiencies.serialization = 0.0;
    all.push(words::verdict::efficiencies(&efficiencies));
    insta::assert_snapshot!(all.join("\n"));
}
