//! Who had the processors, on made-up evidence.

use super::*;

/// Four threads on two processors, for a second; this program used so much of them, and others so much at most.
fn running(threads: u64, used: f64, taken: Option<f64>) -> Running {
    let mut running = Running {
        threads,
        processes: 1,
        processors: Some(2.0),
        limit: None,
        stolen_s: None,
        stolen: None,
        used: Some(used),
        taken,
        sharing: None,
        fewer: None,
        wanted_s: 4.0,
        not_running_s: 2.0,
        not_running: 0.5,
        worked_s: Some(4.0),
        without_processor_s: Some(2.0),
        queued_s: Some(2.0),
        asleep_s: Some(0.0),
        is_starved: true,
    };
    running.sharing = sharing(&running);
    running
}

#[test]
fn own_threads_share_processors_only_if_nobody_else_had_them() {
    let own = running(4, 0.98, Some(0.02));
    assert_eq!(own.sharing, Some(Sharing::Own));
    let both = running(8, 0.8, Some(0.2));
    assert_eq!(both.sharing, Some(Sharing::Both));
    let others = running(4, 0.01, Some(0.99));
    assert_eq!(others.sharing, Some(Sharing::Others));
    // Idle processors, or others: it isn't known.
    let unknown = running(4, 0.5, None);
    assert_eq!(unknown.sharing, None);
}

#[test]
fn one_thread_shares_nothing_with_itself() {
    let mut one = running(1, 0.5, Some(0.5));
    one.processors = Some(1.0);
    assert_eq!(sharing(&one), Some(Sharing::Others));
    one.processors = Some(0.5);
    one.taken = Some(0.0);
    assert_eq!(sharing(&one), None);
    one.limit = Some(ProcessorLimit::Quota);
    assert_eq!(sharing(&one), Some(Sharing::Own));
}

#[test]
fn what_waits_can_hold_is_not_taken_from_work() {
    let times = Times {
        life: 1000,
        work: 400,
        around: 100,
        ran: 50,
        queued: 550,
        queued_most: 550,
        ..Times::default()
    };
    // 600 of its life are no work, and could hold all of it.
    assert_eq!(times.without(times.work), 0);
    assert_eq!(times.without(times.work + times.around), 50);
    let busy = Times {
        work: 900,
        ran: 300,
        queued: 600,
        queued_most: 600,
        ..times
    };
    assert_eq!(busy.without(busy.work), 500);
    assert_eq!((busy.asleep(), times.asleep()), (0, 0));
    let asleep = Times {
        queued: 20,
        queued_most: 20,
        ran: 5,
        ..times
    };
    assert_eq!(asleep.asleep(), 375);
    // Nothing is known of a thread that ended before.
    let ended = Times {
        life: MOST,
        queued: 0,
        queued_most: MOST,
        ran: 0,
        ..times
    };
    assert_eq!((ended.without(ended.work), ended.asleep()), (0, 0));
}

#[test]
fn the_variable_is_named_only_if_it_decides() {
    let deciding = Deciding {
        is_asked: false,
        said: Some(4),
        team: 4,
        at_once: 4,
    };
    assert!(deciding.is_variable());
    let is_asked = true;
    let others = [
        Deciding {
            is_asked,
            ..deciding
        },
        // Two is set, and there are four; or nobody knows; or teams are inside teams.
        Deciding {
            said: Some(2),
            ..deciding
        },
        Deciding {
            said: None,
            ..deciding
        },
        Deciding {
            at_once: 16,
            ..deciding
        },
    ];
    for other in others {
        assert!(!other.is_variable(), "{other:?}");
    }
}
