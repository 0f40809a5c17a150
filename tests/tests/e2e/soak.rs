//! Some programs drawn at random; `cargo bench -p ompfuse-tests --bench soak` takes any number of others.

use ompfuse_tests::skip;
use ompfuse_tests::soak::{Case, Verdict};

/// How many are tried.
const PROGRAMS: u64 = 4;
/// Programs that were recorded wrongly once: a comparison in a chunk was taken for another loop's, and a loop began anew in
/// each of its iterations (both gcc 12 -Os).
const FOUND: [u64; 2] = [31816, 51104];

#[test]
fn random_programs_do_what_their_originals_do() {
    let mut right = 0;
    for number in (1..=PROGRAMS).chain(FOUND) {
        let Some(case) = Case::draw(number) else {
            skip(&format!("random program {number}: its compiler is missing"));
            continue;
        };
        match case.judge() {
            Verdict::Right(_) => right += 1,
            // The runtimes have bugs of their own.
            Verdict::Useless(why) => eprintln!("{case}: {why}"),
            Verdict::Wrong(what) => panic!("{case}: {what}\n{}", case.source()),
        }
    }
    assert!(
        right * 2 > PROGRAMS,
        "{right} of {PROGRAMS} could be compared"
    );
}

/// Programs whose counts are compared: most take less than a second to step through.
const STEPPED: std::ops::Range<u64> = 1..9;

#[test]
fn random_programs_count_what_they_execute() {
    let mut right = 0;
    for case in STEPPED.filter_map(Case::draw) {
        match case.judge_counts() {
            Verdict::Right(_) => right += 1,
            Verdict::Useless(why) => eprintln!("{case}: {why}"),
            Verdict::Wrong(what) => panic!("{case}: {what}\n{}", case.source()),
        }
    }
    assert!(right > 0 || !ompfuse_tests::has("gcc"), "none was compared");
}
