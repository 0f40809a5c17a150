//! A run over time: `report --interval`.

use crate::series::{list, reported, run};
use crate::shares::{number, programs};
use ompfuse_tests::table;
use serde_json::Value;

const CLASSES: [&str; 4] = [
    "synchronization_s",
    "imbalance_s",
    "limited_parallelism_s",
    "management_s",
];

/// All intervals add up to the run's report, and each one's places to its time.
fn check(over_time: &Value, report: &Value, case: &str) {
    let equal = |a: f64, b: f64| (a - b).abs() <= 1e-6 + 1e-9 * b.abs();
    let intervals = list(over_time, "intervals");
    let sum = |key: &str| -> f64 { intervals.iter().filter_map(|i| i[key].as_f64()).sum() };
    for class in CLASSES {
        let of_regions = list(report, "overheads")
            .iter()
            .filter_map(|o| o[class].as_f64());
        let whole: f64 = of_regions.sum();
        assert!(
            equal(sum(class), whole),
            "{case}: {class}: {} of {whole}",
            sum(class)
        );
    }
    let regions = list(report, "regions");
    let work: f64 = regions.iter().map(|r| number(&r["work_s"])).sum();
    assert!(equal(sum("work_s"), work), "{case}: {work}");
    for (key, whole) in [
        ("serial_s", "program_s"),
        ("idle_s", "idle_s"),
        ("unknown_s", "unknown_s"),
    ] {
        let whole = number(&report["serial"][whole]);
        assert!(equal(sum(key), whole), "{case}: {key} {whole}");
    }
    assert!(
        equal(sum("thread_time_s"), number(&report["thread_time_s"])),
        "{case}"
    );
    for region in list(over_time, "regions") {
        let at = region["place"]["address"].as_str();
        let name = region["place"]["name"].as_str();
        let same = regions
            .iter()
            .find(|r| (r["address"].as_str(), r["name"].as_str()) == (at, name));
        let whole = number(&same.expect("it is in the report")["time_s"]);
        let parts: f64 = list(region, "interval_s").iter().map(number).sum();
        assert!(equal(parts, whole), "{case}: {region}");
    }
    let mut end = number(&intervals[0]["begin_s"]);
    for (at, interval) in intervals.iter().enumerate() {
        assert_eq!(number(&interval["begin_s"]), end, "{case}: {interval}");
        end = number(&interval["end_s"]);
        let of_regions = list(over_time, "regions")
            .iter()
            .map(|r| number(&r["interval_s"][at]));
        let outside =
            ["serial_s", "idle_s", "unknown_s", "other_s"].map(|key| number(&interval[key]));
        let all = of_regions.sum::<f64>() + outside.iter().sum::<f64>();
        let time = number(&interval["thread_time_s"]);
        assert!(equal(all, time), "{case}: {all} of {interval}");
    }
    let mut next = 0;
    for phase in list(over_time, "phases") {
        assert_eq!(phase["first"], next, "{case}: {phase}");
        next += phase["count"].as_u64().expect("a number");
    }
    assert_eq!(next, intervals.len() as u64, "{case}");
}

/// The lines of the phases' main constructs; `None`: code outside of all.
fn mains(over_time: &Value) -> Vec<Option<u64>> {
    let phases = list(over_time, "phases").iter();
    phases
        .map(|p| p["main"]["source"]["line"].as_u64())
        .collect()
}

/// The line behind that of a function's name in the source, from 1: that of its construct.
fn line_in(function: &str) -> u64 {
    let source = ompfuse_tests::repository().join("tests/sources/phases.c");
    let source = std::fs::read_to_string(source).expect("it is there");
    let begin = format!("{function}(void) {{");
    2 + source
        .lines()
        .position(|l| l.contains(&begin))
        .expect("it is in it") as u64
}

fn is_near(found: u64, line: u64) -> bool {
    found.abs_diff(line) <= 1
}

#[test]
fn three_phases_are_seen() {
    let (a, b) = (line_in("loop_a"), line_in("loop_b"));
    for (compiler, folder) in programs("phases") {
        let (folder, program) = (folder.path(), folder.path().join("phases"));
        let out = folder.join("out");
        table::record(&program, &["serial"], 2, &out, &["--events", "none"]).ok(compiler);
        let report = reported(folder, &["out"]);
        for length in ["20ms", "1ms"] {
            let over_time = reported(folder, &["--interval", length, "out"]);
            let case = format!("{compiler}, {length}");
            check(&over_time, &report, &case);
            let found = mains(&over_time);
            assert_eq!(found[0], None, "{case}: {found:?}");
            // On a busy machine the program may have to wait in serial code, which makes a phase of it.
            let mut lines: Vec<u64> = found.into_iter().flatten().collect();
            lines.dedup();
            let [first, second, third] = lines[..] else {
                panic!("{case}: {lines:?} in {:#}", over_time["phases"]);
            };
            let is_right = is_near(first, a) && is_near(second, b) && is_near(third, a);
            assert!(is_right, "{case}: {lines:?}");
            // Serial code is where it was, not all over the run.
            let serial = &list(&over_time, "phases")[0]["sums"]["serial_s"];
            let whole = number(&report["serial"]["program_s"]);
            assert!(number(serial) > 0.7 * whole, "{case}: {serial} of {whole}");
            let n = list(&over_time, "intervals").len();
            assert!(n <= 240, "{case}: {n}");
        }
        let each = reported(folder, &["--interval", "region:loop_b", "out"]);
        check(&each, &report, compiler);
        // 100 executions, and what came behind the last one.
        assert_eq!(list(&each, "intervals").len(), 101, "{compiler}");
        let text = run(folder, &["report", "--interval=20ms", "out"])
            .ok(compiler)
            .text();
        assert!(
            text.contains(" phases. ") && text.contains("Over time"),
            "{compiler}: {text}"
        );
        let long = text.lines().find(|l| l.chars().count() > 110);
        assert_eq!(long, None, "{compiler}");
    }
}

/// Tasks, nested regions, waits of all kinds, and what was left out.
#[test]
fn intervals_of_other_programs_add_up_too() {
    for (compiler, folder) in programs("steps") {
        let (folder, program) = (folder.path(), folder.path().join("steps"));
        let options: [&[&str]; 2] = [&[], &["--units", "every=3"]];
        for (n, options) in options.iter().enumerate() {
            let name = n.to_string();
            let flags = [&["--events", "none"], *options].concat();
            table::record(
                &program,
                &["tqsldxncmogepr"],
                3,
                &folder.join(&name),
                &flags,
            )
            .ok(compiler);
            let report = reported(folder, &[&name]);
            for length in ["100us", "10s"] {
                let case = format!("{compiler} {options:?} {length}");
                check(
                    &reported(folder, &["--interval", length, &name]),
                    &report,
                    &case,
                );
            }
        }
    }
}

#[test]
fn what_has_no_time_is_refused() {
    for (compiler, folder) in programs("phases") {
        let (folder, program) = (folder.path(), folder.path().join("phases"));
        for name in ["out", "other"] {
            table::record(&program, &[], 2, &folder.join(name), &["--events", "none"]).ok(compiler);
        }
        let refused = |status: i32, args: &[&str], word: &str| {
            let said = run(folder, &[&["report"], args].concat());
            assert_eq!(said.status, status, "{said:?}");
            assert!(said.errors().contains(word), "{word}: {said:?}");
            let lines = said.errors().lines().count();
            assert!(status == 2 || lines == 1, "{said:?}");
        };
        for wrong in ["5", "0s", "x", "region:"] {
            refused(2, &["--interval", wrong, "out"], "--interval");
        }
        refused(2, &["--interval", "1s", "out", "other"], "one run");
        refused(
            1,
            &["--interval", "region:no_such", "out"],
            "no parallel region",
        );
        run(folder, &["combine", "out", "-o", "p.parquet"]).ok(compiler);
        refused(1, &["--interval", "1s", "p.parquet"], "not a run's folder");
    }
}
