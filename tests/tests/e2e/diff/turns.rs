//! Two builds, recorded in turns and compared by pairs.

use super::{diff, text};
use ompfuse_tests::{command, compile, process};
use serde_json::Value;
use std::path::Path;

/// Sleeps for so many milliseconds in a loop: that takes as long on a busy machine.
const SLEEPER: &str = "
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    #pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 4; i++) usleep(1000 * atoi(argv[1]));
    return argc > 2;
}
";

#[test]
fn builds_are_recorded_in_turns_until_it_is_decided() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let Some(program) = compile::compile(SLEEPER, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let program = program.path.to_str().expect("text").to_owned();
    let in_turns = |out: &Path, against: &str, own: &[&str]| {
        let mut record = command::with_threads(2);
        record.args([
            "record",
            "--events",
            "none",
            "--format",
            "json",
            "--against",
            against,
        ]);
        record.arg("-o").arg(out).arg("--").arg(&program).args(own);
        process::run(&mut record)
    };
    let out = folder.path().join("both");
    let output = in_turns(&out, &format!("'{program}' 30"), &["20"]).ok("turns");
    let told: Value = serde_json::from_str(&output.text()).expect("JSON");
    let own = &told["own_time"];
    assert_eq!(own["is_decided"], true, "{told:#}");
    let change = own["change"].as_f64().expect("a number");
    assert!((0.25..0.75).contains(&change), "{told:#}");
    let turns = told["turns"].as_u64().expect("a number") as usize;
    assert!((4..32).contains(&turns), "{turns}");
    for side in ["a", "b"] {
        let runs = ompfuse_tests::table::runs(&out.join(side));
        assert_eq!(runs.len(), turns);
    }
    let left: Vec<_> = std::fs::read_dir(&out).expect("it is there").collect();
    assert_eq!(left.len(), 2, "the first runs are not kept");
    let [a, b] = ["a", "b"].map(|side| out.join(side));
    let verdict = text(&diff([&a, &b], &[])).replace('\n', " ");
    assert!(verdict.contains("more wall time"), "{verdict}");
    assert!(
        verdict.contains(&format!(", in {turns} pairs).")),
        "{verdict}"
    );
    // One run less on a side: which are pairs is no longer certain.
    let runs = |side: &Path| ompfuse_tests::table::runs(side);
    let mut command = command::with_threads(2);
    command.arg("diff").arg("--a").args(&runs(&a)[1..]);
    command.arg("--b").args(runs(&b));
    let unpaired = text(&process::run(&mut command));
    assert!(!unpaired.contains(" pairs"), "{unpaired}");

    // A program that fails ends it, and a command that can't be found prevents it.
    let failed = in_turns(
        &folder.path().join("failed"),
        &format!("'{program}' 1 more"),
        &["1"],
    );
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(failed.errors().contains("no further turn"), "{failed:?}");
    for (against, said) in [
        ("no-such-command", "no-such-command"),
        ("'open", "no command"),
    ] {
        let out = folder.path().join("refused");
        let refused = in_turns(&out, against, &["1"]);
        assert!(
            refused.status != 0 && refused.errors().contains(said),
            "{refused:?}"
        );
        assert!(!out.exists(), "nothing is written");
    }
    let again = in_turns(&out, &format!("'{program}' 1"), &["1"]);
    assert!(again.errors().contains("name another folder"), "{again:?}");
}
