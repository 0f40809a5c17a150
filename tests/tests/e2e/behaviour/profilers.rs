//! `perf record -g` through patched code, by DWARF and by frame pointers.

use super::Pair;
use ompfuse_tests::process;
use ompfuse_tests::tools::{mention, version};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A missing perf is no failure, even in continuous integration: many kernels have none that fits.
fn no_perf(why: &str) {
    mention(&format!("perf: {why}"));
}

/// So many samples tell something.
const ENOUGH: usize = 20;

/// Of perf's samples in `spot` on the main thread, those whose call chain leads to a wanted function, and the others. On a busy machine one
/// recording has few.
fn sampled(
    pair: &Pair,
    program: &Path,
    recorded: bool,
    how: &str,
    wanted: impl Fn(&str) -> bool,
) -> Option<(usize, usize)> {
    let mut sums = (0, 0);
    for _ in 0..5 {
        let (led, lost) = recorded_once(pair, program, recorded, how, &wanted)?;
        sums = (sums.0 + led, sums.1 + lost);
        if sums.0 > ENOUGH {
            break;
        }
    }
    Some(sums)
}

fn recorded_once(
    pair: &Pair,
    program: &Path,
    recorded: bool,
    how: &str,
    wanted: impl Fn(&str) -> bool,
) -> Option<(usize, usize)> {
    let data = pair.folder.path().join("perf.data");
    let mut perf = Command::new("perf");
    process::clean(&mut perf, 2).args([
        "record",
        "-q",
        "-e",
        "cpu-clock:u",
        "-F",
        "500",
        "--call-graph",
        how,
        "-o",
    ]);
    perf.arg(&data).arg("--").arg(program).args(["10", "spin"]);
    let folder = tempfile::tempdir().expect("there is room for a recording");
    if recorded {
        perf.env("OMPFUSE_DIR", folder.path());
    }
    let output = process::run(&mut perf);
    if output.status != 0 || !data.exists() {
        no_perf(output.errors().lines().next().unwrap_or_default());
        return None;
    }
    let script = process::run(
        process::clean(&mut Command::new("perf"), 2)
            .args(["script", "-F", "pid,tid,ip,sym", "-i"])
            .arg(&data),
    )
    .ok("perf script");
    let mut seen: BTreeMap<bool, usize> = BTreeMap::new();
    for sample in script.text().split("\n\n") {
        let mut lines = sample.lines();
        let head = lines.next().unwrap_or_default().trim();
        let chain: Vec<&str> = lines.filter_map(|l| l.split_whitespace().nth(1)).collect();
        let main_thread = head
            .split_once('/')
            .is_some_and(|(pid, tid)| tid.trim_end_matches(':').trim() == pid);
        if main_thread && chain.first() == Some(&"spot") {
            *seen.entry(chain.iter().any(|f| wanted(f))).or_default() += 1;
        }
    }
    let count = |led| seen.get(&led).copied().unwrap_or(0);
    Some((count(true), count(false)))
}

#[test]
fn profilers_see_the_callers() {
    if version("perf").is_none() {
        return no_perf("not installed");
    }
    for pair in Pair::all("traces", &["-fno-omit-frame-pointer"]) {
        // libgomp and libomp have no frame pointers: only DWARF leads through them.
        for recorded in [false, true] {
            let wanted = |function: &str| function == "main";
            let samples = sampled(&pair, &pair.patched, recorded, "dwarf,8192", wanted);
            let Some((led, lost)) = samples else {
                return;
            };
            assert!(
                led > ENOUGH && lost * 20 <= led,
                "{}, recorded {recorded}: {led} lead to main, {lost} don't",
                pair.what
            );
        }
    }

    // By frame pointers as far as they lead in the original: to the region's body.
    for pair in Pair::all("traces", &["-fno-omit-frame-pointer"]) {
        for (program, recorded) in [
            (&pair.original, false),
            (&pair.patched, false),
            (&pair.patched, true),
        ] {
            let wanted = |function: &str| function.starts_with("constructs");
            let Some((led, lost)) = sampled(&pair, program, recorded, "fp", wanted) else {
                return;
            };
            assert!(
                led > ENOUGH && lost * 20 <= led,
                "{}, {program:?}, recorded {recorded}: {led} lead to the region, {lost} don't",
                pair.what
            );
        }
    }
}
