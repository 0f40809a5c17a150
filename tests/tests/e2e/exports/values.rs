//! Values by path, rank and thread: those of the report's JSON, and those that were read.

use serde_json::Value;
use std::collections::BTreeMap;

/// The event that runs count.
const EVENT: &str = "task_clock";

/// Stands for a metric: so often the event is not known where there is time.
const UNKNOWN: &str = "unknown";

/// Own, and with what is inside.
pub(super) type Pair = (f64, f64);

/// By path, by rank and thread, by metric.
pub(super) type Values = BTreeMap<String, BTreeMap<String, BTreeMap<String, Pair>>>;

/// The report's. Paths are places in the source joined by `>`.
pub(super) fn expected(report: &Value) -> Values {
    let regions: BTreeMap<u64, &Value> = (report["regions"].as_array().expect("a list").iter())
        .map(|region| (region["id"].as_u64().expect("a number"), region))
        .collect();
    let mut names: Vec<String> = vec![];
    let mut values = Values::new();
    for path in report["call_paths"].as_array().expect("a list") {
        let name = match (path["parent"].as_u64(), path["region"].as_u64()) {
            (None, _) => "program".to_owned(),
            (Some(parent), region) => {
                let region = regions[&region.expect("all places are known")];
                let source = &region["source"];
                let place = match source["file"].as_str() {
                    _ if region["construct"] == "user-region" => "hostile".to_owned(),
                    Some(file) => format!(
                        "{}:{}",
                        file.rsplit('/').next().unwrap_or(file),
                        source["line"]
                    ),
                    None => panic!("no source: {region}"),
                };
                format!("{}>{place}", names[parent as usize])
            }
        };
        names.push(name.clone());
        for thread in path["per_thread"].as_array().expect("a list") {
            let rank = thread["mpi_rank"].as_u64().unwrap_or(0);
            let who = format!("{rank}/{}", thread["thread"]);
            let metrics = values
                .entry(name.clone())
                .or_default()
                .entry(who)
                .or_default();
            let mut add = |metric: &str, own: &Value, inside: &Value| {
                let pair = metrics.entry(metric.to_owned()).or_default();
                pair.0 += own.as_f64().unwrap_or(0.0);
                pair.1 += inside.as_f64().unwrap_or(0.0);
            };
            add("time", &thread["exclusive_s"], &thread["inclusive_s"]);
            add("visits", &thread["visits"], &Value::Null);
            add("idle", &thread["idle_s"], &Value::Null);
            for (class, seconds) in thread["classes"].as_object().into_iter().flatten() {
                add(class, seconds, &Value::Null);
            }
            let own = thread["exclusive_s"].as_f64();
            if own > Some(0.0) && !thread["events"]["task-clock"]["exclusive"].is_u64() {
                add(UNKNOWN, &1.into(), &Value::Null);
            }
            for (event, counts) in thread["events"].as_object().into_iter().flatten() {
                add(
                    &event.replace('-', "_"),
                    &counts["exclusive"],
                    &counts["inclusive"],
                );
            }
        }
    }
    values
}

/// All threads of a rank together.
fn by_rank(
    threads: &BTreeMap<String, BTreeMap<String, Pair>>,
) -> BTreeMap<String, BTreeMap<String, Pair>> {
    let mut ranks: BTreeMap<String, BTreeMap<String, Pair>> = BTreeMap::new();
    for (who, metrics) in threads {
        let rank = who.split('/').next().unwrap_or_default();
        let sums = ranks.entry(format!("{rank}/all")).or_default();
        for (metric, &(own, _)) in metrics {
            sums.entry(metric.clone()).or_default().0 += own;
        }
    }
    ranks
}

/// Compares what was read with the report's.
pub(super) fn compare(what: &str, format: &str, read: &Value, expected: &Values) {
    let unit = match format {
        "cube" | "caliper.cali" => 1.0,
        "tau" => 1e-6,
        _ => 1e-9,
    };
    // An event that is not known everywhere is left out.
    let is_there = |metric: &str| {
        let mut threads = read
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, threads)| threads);
        threads.any(|t| {
            t.as_object()
                .is_some_and(|t| t.values().any(|m| m.get(metric).is_some()))
        })
    };
    let mut all = expected.values().flat_map(BTreeMap::values);
    let is_left_out = all.any(|metrics| metrics.contains_key(UNKNOWN));
    let has_event = format == "collapsed" || is_there(EVENT);
    assert!(has_event || is_left_out, "{what} lacks counts");
    let value = |path: &str, who: &str, metric: &str, nth: usize| {
        read[path][who][metric][nth].as_f64().unwrap_or(0.0)
    };
    for (path, threads) in expected {
        if format == "collapsed" {
            let sum: f64 = threads.values().map(|metrics| metrics["time"].0).sum();
            let found = value(path, "all", "time", 0) * unit;
            assert!(
                (found - sum).abs() < 1e-9,
                "{what}: {path} has {found}, the report {sum}"
            );
            continue;
        }
        let ranks = by_rank(threads);
        let expected = if format == "caliper.cali" {
            &ranks
        } else {
            threads
        };
        for (who, metrics) in expected {
            for (metric, &(own, inside)) in metrics {
                if metric == UNKNOWN || (metric == EVENT && !has_event) {
                    continue;
                }
                let is_time = !["visits", EVENT].contains(&&**metric);
                let unit = if is_time { unit } else { 1.0 };
                // The program's are whole microseconds there.
                let rounding = match (format, is_time) {
                    ("tau", true) => 1.001e-6,
                    (_, true) => 1e-9,
                    (_, false) => 0.0,
                };
                let found = value(path, who, metric, 0) * unit;
                // That reader takes the lines of paths only for visits of the program.
                assert!(
                    (found - own).abs() <= rounding,
                    "{what}: {metric} of {path} on {who} is {found}, in the report {own}"
                );
                if inside > 0.0 {
                    let found = value(path, who, metric, 1) * unit;
                    assert!(
                        (found - inside).abs() <= rounding + 1e-9,
                        "{what}: {metric} in {path} on {who} is {found}, in the report {inside}"
                    );
                }
            }
        }
    }
    let paths = read.as_object().expect("values by path");
    let strange: Vec<&String> = paths
        .keys()
        .filter(|path| !expected.contains_key(*path))
        .collect();
    assert!(strange.is_empty(), "{what}: {strange:?}");
}
