//! Real times of one build, drawn again in blocks of neighbours: histories without a change, with the noise that this machine has.
//!
//! `cargo test --profile tests -p ompfuse-tests --test e2e resampled -- --ignored --nocapture`, some five minutes.

use super::{commits, noise, recorded, run, unpacked};
use serde_json::Value;

/// Runs that are recorded.
const RUNS: usize = 80;
/// Neighbours that are drawn together: what they have in common stays.
const BLOCK: usize = 5;
/// Commits of a history.
const COMMITS: usize = 30;
const SERIES: usize = 200;

#[test]
#[ignore = "200 histories of real times take some minutes"]
fn real_times_without_a_change_show_none() {
    let Some(folder) = recorded() else { return };
    let record = [
        "record", "-q", "--events", "none", "--repeat", "80", "-o", "many", "--", "./one",
    ];
    run(&folder, &record).ok("record");
    let walls: Vec<f64> = (1..=RUNS)
        .map(|n| {
            let one = format!("many/run-{n:04}");
            run(&folder, &["baseline", &one, "-o", "one.json.gz"]).ok("baseline");
            let side = unpacked(&folder.path().join("one.json.gz"));
            side["total"]["wall"][1].as_f64().expect("a time")
        })
        .collect();
    let base = run(&folder, &["baseline", "runs", "-o", "b.json.gz"]);
    base.ok("baseline");
    let mut found = 0;
    for series in 0..SERIES {
        let name = format!("series-{series}");
        let begin = |block: usize| {
            let at = noise(series * COMMITS + block) * 0.5 + 0.5;
            (at * (RUNS - BLOCK) as f64) as usize
        };
        let wall = |n: usize| walls[begin(n / BLOCK) + n % BLOCK];
        commits(&folder, &name, COMMITS, &wall);
        let shown = run(
            &folder,
            &["history", &name, "--metric", "time", "--format", "json"],
        );
        let json: Value = serde_json::from_str(&shown.ok("history").text()).expect("JSON");
        let changes = json["series"][0]["curves"][0]["changes"].as_array();
        found += usize::from(!changes.expect("a list").is_empty());
        std::fs::remove_dir_all(folder.path().join(&name)).expect("the folder is ours");
    }
    let mean = walls.iter().sum::<f64>() / RUNS as f64;
    let squares: f64 = walls.iter().map(|w| (w / mean - 1.0).powi(2)).sum();
    let deviation = 100.0 * (squares / RUNS as f64).sqrt();
    println!("{found} of {SERIES} show a change; the times vary by {deviation:.1} %");
    // Of 200 with 1 % each, 6 or more have one in 100 cases.
    assert!(found <= 6, "{found} of {SERIES}");
}
