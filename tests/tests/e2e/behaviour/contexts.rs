//! What a program keeps where probes come by: registers, and stacks of its own.

use super::Pair;
use ompfuse_tests::scan::Scan;

/// Probes in the middle of a function leave every register as it was: vectors, masks, the x87 stack, control words.
#[test]
fn masks_and_control_words() {
    let Some(pair) = Pair::new("registers", "gcc", &["-mgeneral-regs-only"]) else {
        return;
    };
    let sites = Scan::of(&pair.patched).sites;
    let inline = sites
        .iter()
        .filter(|s| s.outcome == "patched" && s.entry.is_none())
        .count();
    assert!(inline >= 4, "{inline} inline probes: {sites:?}");
    for threads in [1, 3] {
        pair.same_and_counted(&[], threads);
    }
}

/// Coroutines that are resumed by another thread than the one that left them.
#[test]
fn contexts_that_move_between_threads() {
    // clang keeps the number of a thread across the calls of a function, and libomp's locks go by it.
    if let Some(pair) = Pair::new("contexts", "gcc", &[]) {
        let report = pair.folder.path().join("moved");
        let report = report.to_str().expect("a temporary path is text");
        pair.same_and_counted(&["5", "locks", report], 2);
        pair.same_and_counted(&["5", "tasks", report], 2);
        // Which thread goes on is chance; that none ever moved in six runs is not.
        let moved = std::fs::read_to_string(report).unwrap_or_default();
        assert!(!moved.is_empty(), "{}: no context has moved", pair.what);
    }
}
