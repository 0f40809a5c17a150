//! What is told once, and of which calls work tells nothing.

#[test]
fn what_may_lack_a_processor_or_not_has_no_known_cause() {
    use super::Lacking;
    let mut budget = [300_000_000, 500_000_000];
    // Of 400 ms, 300 certainly come of threads without a processor, and 100 may.
    let first = Lacking::of(0.4, &mut budget);
    assert!((first.sure_s - 0.3).abs() < 1e-6 && (first.perhaps_s - 0.1).abs() < 1e-6);
    // What is told once is not told again.
    let second = Lacking::of(0.4, &mut budget);
    assert!(second.sure_s == 0.0 && (second.perhaps_s - 0.1).abs() < 1e-6);
    let third = Lacking::of(0.4, &mut budget);
    assert_eq!((third.sure_s, third.perhaps_s), (0.0, 0.0));
}

#[test]
fn work_doesnt_explain_the_first_and_the_last_call_of_mpi() {
    use super::communication::waits_for_work;
    for (name, is_late_for_work) in [
        (Some("MPI_Init"), false),
        (Some("MPI_Init_thread"), false),
        (Some("MPI_Finalize"), false),
        (Some("MPI_Barrier"), true),
        (None, true),
    ] {
        assert_eq!(waits_for_work(name), is_late_for_work, "{name:?}");
    }
}
