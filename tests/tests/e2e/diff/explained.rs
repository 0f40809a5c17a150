//! What share of a change in time the counted instructions explain. Units sleep for most of their time, so their times are known on any machine.

use super::{diff, text};
use ompfuse_tests::{command, compile, process};
use std::path::Path;

/// Units of so many rounds and milliseconds: `argv[1]` and `argv[2]`.
const PROGRAM: &str = "
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long rounds = atol(argv[1]);
    int ms = atoi(argv[2]);
    #pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 4; i++) {
        for (long k = 0; k < rounds; k++) __asm__ volatile (\"\" : : \"r\"(k));
        usleep(1000 * ms);
    }
    return 0;
}
";

/// The share in percent that `diff` tells of a change from 100,000 rounds in 80 ms to this; `None`: it tells none.
fn share(program: &str, rounds: u64, ms: u64, folder: &Path) -> Option<f64> {
    let out = folder.join(format!("{rounds}-{ms}"));
    let mut record = command::with_threads(2);
    let against = format!("'{program}' {rounds} {ms}");
    record.args([
        "record", "-q", "--count", "--events", "none", "--turns", "5",
    ]);
    record.args(["--against", &against, "-o"]).arg(&out);
    process::run(record.args(["--", program, "100000", "80"])).ok("turns");
    let [a, b] = ["a", "b"].map(|side| out.join(side));
    let told = text(&diff([&a, &b], &[]));
    let told: Vec<&str> = told.split_whitespace().collect();
    let told = told.join(" ");
    let more = told.split("its code executes ").nth(1);
    let (_, share) = more
        .unwrap_or_else(|| panic!("{told}"))
        .split_once(" instructions")?;
    let share = share.strip_prefix(" (")?;
    let (share, _) =
        share.split_once(" of its change in time, if each takes as long as before)")?;
    Some(share.trim_end_matches([' ', '%']).parse().expect("a share"))
}

#[test]
fn counts_explain_their_share_of_a_change_in_time() {
    let Some(program) = compile::compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for runs");
    let program = program.path.to_str().expect("text");
    let share = |rounds, ms| share(program, rounds, ms, folder.path());
    // 2 and 1.2 times as many in 8 times the time: ln 2 / ln 8 = 33 %, and ln 1.2 / ln 8 = 9 %.
    let third = share(200_000, 640).expect("a share");
    assert!((25.0..45.0).contains(&third), "{third}");
    let little = share(120_000, 640).expect("a share");
    assert!((6.0..13.0).contains(&little), "{little}");
    // Ten times as many in twice the time: each takes less long, so no share is told.
    assert_eq!(share(1_000_000, 160), None);
}
