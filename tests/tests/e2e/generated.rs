//! What reports say of programs that are drawn at random (`tests/src/generated`): two of each kind, and as many advised.
//!
//! Their units sleep; the benchmark has those that compute. A busy machine can still make one late: what is wrong three times is wrong.

use ompfuse_tests::generated::{KINDS, Program};
use ompfuse_tests::planted::judge::Verdict;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first one; other numbers were drawn while the rules were made.
const FIRST: u64 = 40_000;
const PROGRAMS: u64 = 2 * KINDS.len() as u64;
/// Kinds that are listed as limits in docs/measurements/verdicts.md may be among them.
const MOST_WRONG: usize = 3;

#[test]
fn first_blocks_are_true() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let next = AtomicU64::new(FIRST);
    let (wrong, judged) = (Mutex::new(vec![]), AtomicU64::new(0));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= FIRST + PROGRAMS {
                return;
            }
            let program = Program::draw(number, folder.path());
            if program.drawn.computes {
                judged.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let mut last = None;
            for _ in 0..3 {
                let Some(judged) = program.judge() else {
                    return;
                };
                let is_wrong = matches!(judged.verdict, Verdict::Wrong(_));
                last = Some(judged);
                if !is_wrong {
                    last = None;
                    break;
                }
            }
            judged.fetch_add(1, Ordering::Relaxed);
            if let Some(judged) = last {
                let what = format!("{}: {:?} {:?}", program.name(), judged.verdict, judged.said);
                wrong.lock().expect("no panic").push(what);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.len() <= MOST_WRONG, "{}", wrong.join("\n"));
    let judged = judged.into_inner();
    assert!(judged == PROGRAMS || !ompfuse_tests::in_ci(), "{judged}");
}
