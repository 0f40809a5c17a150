//! ompP's report: columns by thread, call paths and properties, of programs that know their own times (`tests/sources/ompp.c`). What is
//! recorded lies within what the program measures in the same run, and is nearly all of it.

use crate::counting::Recorded;
use ompfuse_tests::{command, each};
use serde_json::Value;
use std::collections::BTreeMap;

/// Nanoseconds that adding up seconds may lose.
const ROUNDED: f64 = 5e-9;

/// The times that `exec_s` consists of.
const PARTS: [&str; 11] = [
    "startup_s",
    "enter_s",
    "body_s",
    "section_s",
    "single_s",
    "management_s",
    "waiting_s",
    "exit_barrier_s",
    "task_s",
    "exit_s",
    "shutdown_s",
];

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value[key].as_array();
    list.unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn number(value: &Value, key: &str) -> f64 {
    let number = value[key].as_f64();
    number.unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// The region of a construct in a function.
fn region<'r>(report: &'r Value, construct: &str, function: &str) -> &'r Value {
    let is_it = |r: &&Value| {
        let of = r["function"].as_str().unwrap_or_default();
        let name = of.split('.').next().unwrap_or_default();
        r["construct"] == construct && name == function
    };
    let mut found = list(report, "regions").iter().filter(is_it);
    let region = found.next();
    let region = region.unwrap_or_else(|| panic!("no {construct} in {function}: {report:#}"));
    assert!(found.next().is_none(), "several {construct} in {function}");
    region
}

/// A column of a region, by thread.
fn column(region: &Value, name: &str) -> Vec<f64> {
    let threads = list(region, "per_thread").iter();
    let times = threads.map(|t| &t["times"]).filter(|t| !t.is_null());
    times.map(|t| number(t, name)).collect()
}

fn sum(region: &Value, name: &str) -> f64 {
    number(&region["times"], name)
}

fn property<'r>(report: &'r Value, kind: &str, region: &Value) -> Option<&'r Value> {
    let mut properties = list(report, "properties").iter();
    properties.find(|p| p["kind"] == kind && p["region"] == region["id"])
}

/// A loss whose place and seconds are those of a region's column.
fn loses(report: &Value, kind: &str, region: &Value, seconds: f64, case: &str) {
    let property = property(report, kind, region);
    let property = property.unwrap_or_else(|| panic!("{case}: no {kind} of {region:#}"));
    let found = number(property, "seconds");
    assert!(
        (found - seconds).abs() < 0.02 * seconds,
        "{case}: {property} for {seconds}"
    );
    let severity = found / number(report, "available_s");
    assert!(
        (number(property, "severity") - severity).abs() < 1e-9,
        "{case}: {property}"
    );
}

/// The scale of the recorded clock is measured too.
const SCALE: f64 = 1.01;

/// Seconds of waits, by the program's own clock.
type Own = BTreeMap<String, Vec<f64>>;

/// A wait is recorded inside of what the program measures, which is little more on any machine: threads sleep, and read the clock at once.
fn within(found: f64, own: &[f64], case: &str) {
    let own: f64 = own.iter().sum();
    assert!(found < own * SCALE, "{case}: {found} of {own}");
    assert!(found > 0.7 * own, "{case}: {found} of {own}");
}

fn near(found: f64, wanted: f64, share: f64, case: &str) {
    assert!(
        (found - wanted).abs() <= share * wanted,
        "{case}: {found} instead of {wanted}"
    );
}

/// What a region takes is the sum of its parts, and all threads together the sum of the rows.
fn columns_add_up(report: &Value, case: &str) {
    for region in list(report, "regions") {
        let threads = list(region, "per_thread").iter();
        let rows: Vec<&Value> = threads
            .map(|t| &t["times"])
            .filter(|t| !t.is_null())
            .collect();
        assert!(!rows.is_empty(), "{case}: {region:#}");
        for times in rows.iter().copied().chain([&region["times"]]) {
            let Some(whole) = times["exec_s"].as_f64() else {
                assert_eq!(region["construct"], "taskloop", "{case}: {region:#}");
                continue;
            };
            let parts = PARTS.iter().filter_map(|part| times[part].as_f64());
            let parts: f64 = parts.sum();
            assert!(
                (whole - parts).abs() < ROUNDED,
                "{case}: {times} in {region:#}"
            );
        }
        for (name, total) in region["times"].as_object().expect("columns") {
            let total = total.as_f64().expect("a number");
            let rows: f64 = rows.iter().map(|row| number(row, name)).sum();
            assert!(
                (total - rows).abs() < ROUNDED,
                "{case}: {name} of {region:#}"
            );
        }
    }
}

/// Inclusive times are the exclusive ones with those of all that is below, for each thread and all together.
fn paths_add_up(report: &Value, case: &str) {
    let paths = list(report, "call_paths");
    let whole = number(report, "thread_time_s");
    assert!(
        (number(&paths[0], "inclusive_s") - whole).abs() < ROUNDED,
        "{case}"
    );
    let all: f64 = paths.iter().map(|p| number(p, "exclusive_s")).sum();
    assert!((all - whole).abs() < 1e-6, "{case}: {all} of {whole}");
    for (at, path) in paths.iter().enumerate() {
        let below: Vec<&Value> = paths.iter().filter(|p| p["parent"] == at).collect();
        let inner: f64 = below.iter().map(|p| number(p, "inclusive_s")).sum();
        let own = number(path, "exclusive_s");
        assert!(
            (own + inner - number(path, "inclusive_s")).abs() < 1e-6,
            "{case}: {path}"
        );
        for thread in list(path, "per_thread") {
            let same = |t: &&Value| {
                (&t["process"], &t["thread"]) == (&thread["process"], &thread["thread"])
            };
            let rows = below
                .iter()
                .flat_map(|p| list(p, "per_thread"))
                .filter(same);
            let inner: f64 = rows.map(|t| number(t, "inclusive_s")).sum();
            let own = number(thread, "exclusive_s");
            assert!(
                (own + inner - number(thread, "inclusive_s")).abs() < 1e-6,
                "{case}: {path}"
            );
        }
    }
    for region in list(report, "regions") {
        let on_paths = paths.iter().filter(|p| p["region"] == region["id"]);
        let own: f64 = on_paths.map(|p| number(p, "exclusive_s")).sum();
        assert!(
            (own - number(region, "time_s")).abs() < 1e-6,
            "{case}: {region:#}"
        );
    }
}

fn mutexes(report: &Value, own: &Own, case: &str) {
    let critical = region(report, "critical", "critical");
    within(sum(critical, "enter_s"), &own["critical"], case);
    // So it is for each thread: they enter one after the other.
    let [mut found, mut of_threads] = [column(critical, "enter_s"), own["critical"].clone()];
    found.sort_by(f64::total_cmp);
    of_threads.sort_by(f64::total_cmp);
    assert_eq!((found.len(), of_threads.len()), (4, 4), "{case}");
    for (waited, own) in found.iter().zip(&of_threads) {
        assert!(*waited < own * SCALE, "{case}: {found:?} of {of_threads:?}");
    }
    let waited = sum(critical, "enter_s");
    loses(
        report,
        "critical_section_contention",
        critical,
        waited,
        case,
    );
    let lock = region(report, "lock", "locked");
    within(sum(lock, "enter_s"), &own["locked"], case);
    near(
        sum(lock, "body_s"),
        number(&lock["mutex"], "held_s"),
        1e-6,
        case,
    );
    loses(report, "lock_contention", lock, sum(lock, "enter_s"), case);
}

fn work_sharing(report: &Value, own: &Own, case: &str) {
    let uneven = region(report, "loop", "imbalance");
    let waited = sum(uneven, "exit_barrier_s");
    within(waited, &own["imbalance"], case);
    loses(report, "imbalance_in_loop", uneven, waited, case);

    let sections = region(report, "sections", "uneven");
    let counts = column(sections, "section_count");
    assert_eq!(counts.iter().sum::<f64>(), 3.0, "{case}");
    let waited = sum(sections, "exit_barrier_s");
    within(waited, &own["uneven"], case);
    if counts.len() == 2 && counts.contains(&1.0) {
        loses(
            report,
            "uneven_section_distribution",
            sections,
            waited,
            case,
        );
    }
    let few = list(report, "regions").iter().find(|r| {
        let name = r["function"].as_str().unwrap_or_default();
        name.starts_with("few") && r["times"]["section_count"].is_number()
    });
    let sections = few.unwrap_or_else(|| panic!("{case}: {report:#}"));
    assert_eq!(sum(sections, "section_count"), 2.0, "{case}");
    let waited = sum(sections, "exit_barrier_s");
    loses(report, "not_enough_sections", sections, waited, case);
}

fn one_thread(report: &Value, own: &Own, case: &str) {
    let single = region(report, "single", "alone");
    assert_eq!(sum(single, "exec_count"), 4.0, "{case}");
    assert_eq!(sum(single, "single_count"), 1.0, "{case}");
    let waited = sum(single, "exit_barrier_s");
    within(waited, &own["alone"], case);
    loses(report, "unparallelized_in_single", single, waited, case);

    let mut alone = list(report, "properties").iter();
    let alone = alone.find(|p| p["kind"] == "unparallelized_in_master");
    let alone = alone.unwrap_or_else(|| panic!("{case}: {report:#}"));
    within(number(alone, "seconds"), &own["first"], case);
}

fn tasks(report: &Value, case: &str) {
    let flood = region(report, "task", "flood");
    assert_eq!(sum(flood, "exec_count"), 2000.0, "{case}");
    assert_eq!(sum(flood, "create_count"), 2000.0, "{case}");
    assert!(property(report, "task_creation", flood).is_some(), "{case}");

    let naps = region(report, "task", "meanwhile");
    let single = region(report, "single", "meanwhile");
    // What was executed while waiting is in no wait.
    let executed = sum(naps, "exec_s");
    let inside = sum(single, "task_s");
    assert!(inside > 0.2 * executed, "{case}: {inside} of {executed}");
    assert!(inside < 1.05 * executed, "{case}: {inside} of {executed}");
    // They are below the construct that created them.
    let paths = list(report, "call_paths");
    let path = paths.iter().find(|p| p["region"] == naps["id"]);
    let parent = path.and_then(|p| p["parent"].as_u64());
    let parent = parent.unwrap_or_else(|| panic!("{case}: no path of {naps:#}"));
    assert_eq!(paths[parent as usize]["region"], single["id"], "{case}");
}

fn nesting(report: &Value, case: &str) {
    let [inner, outer] = ["inner", "outer"].map(|name| region(report, "parallel", name));
    let paths = list(report, "call_paths");
    let on_paths: Vec<&Value> = paths
        .iter()
        .filter(|p| p["region"] == inner["id"])
        .collect();
    let around = |path: &Value| {
        let parent = path["parent"].as_u64().expect("it is in something");
        paths[parent as usize]["region"].clone()
    };
    assert_eq!(on_paths.len(), 2, "{case}");
    let (nested, plain): (Vec<_>, Vec<_>) = on_paths
        .into_iter()
        .partition(|path| around(path) == outer["id"]);
    let ([nested], [plain]) = (&nested[..], &plain[..]) else {
        panic!("{case}: {paths:#?}")
    };
    assert!(around(plain).is_null(), "{case}");
    assert_eq!(
        (&nested["executions"], &plain["executions"]),
        (&2.into(), &1.into()),
        "{case}"
    );
    let wall = |path: &Value| number(path, "wall_s");
    near(
        wall(nested) + wall(plain),
        number(inner, "wall_s"),
        1e-6,
        case,
    );
    let inclusive = number(nested, "inclusive_s") + number(plain, "inclusive_s");
    near(inclusive, number(inner, "inclusive_s"), 1e-6, case);
}

fn program(report: &Value, case: &str) {
    let serial = number(report, "serial_share");
    near(serial, 1.0 - number(report, "coverage"), 1e-9, case);
    near(number(report, "speedup_limit"), 1.0 / serial, 1e-9, case);
    let sum = |key: &str| -> f64 {
        let all = list(report, "overheads").iter();
        all.map(|o| number(&o["of_program"], key)).sum()
    };
    let classes = [
        "synchronization",
        "imbalance",
        "limited_parallelism",
        "management",
    ];
    let all = list(report, "overheads").iter();
    let parts = all.flat_map(|o| classes.map(|c| o["of_program"][c].as_f64().unwrap_or(0.0)));
    near(parts.sum(), sum("overheads"), 1e-6, case);
}

fn text(program: &Recorded, report: &Value, case: &str) {
    let folder = program.run_folder(4);
    let mut shown = command::with_threads(1);
    shown
        .args(["report", "--show", "per-thread,call-paths,properties"])
        .arg(folder);
    let shown = ompfuse_tests::process::run(shown.env("COLUMNS", "80"))
        .ok(case)
        .text();
    let longest = shown.lines().map(|l| l.chars().count()).max();
    assert!(longest <= Some(80), "{case}: {shown}");
    for wanted in ["Performance properties", "Call paths", "[program: ", "SUM"] {
        assert!(shown.contains(wanted), "{case}: no {wanted} in {shown}");
    }
    let critical = region(report, "critical", "critical");
    let title = format!("#{} critical", critical["id"]);
    let table = shown.split(&title).last().unwrap_or_default();
    let header: Vec<&str> = table
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    for wanted in ["thread", "enter", "body", "exit"] {
        assert!(header.contains(&wanted), "{case}: {header:?}");
    }
}

/// What the program says of its waits.
fn own(text: &str) -> Own {
    let mut own = Own::new();
    for line in text.lines() {
        let (name, ns) = line.split_once(' ').expect("two words");
        let ns: f64 = ns.parse().expect("a number");
        own.entry(name.to_owned()).or_default().push(ns / 1e9);
    }
    own
}

#[test]
fn times_are_those_that_the_program_measures() {
    let compilers = ["gcc", "clang-19"].map(|c| format!("{c} -O2"));
    let made = |c: &String| Recorded::compiled("ompp", c);
    for (case, recorded) in each(compilers, made) {
        let (output, report) = recorded.report(4, &[("OMP_WAIT_POLICY", "passive")]);
        let own = own(&output.ok(&case).text());
        columns_add_up(&report, &case);
        paths_add_up(&report, &case);
        mutexes(&report, &own, &case);
        work_sharing(&report, &own, &case);
        one_thread(&report, &own, &case);
        tasks(&report, &case);
        nesting(&report, &case);
        program(&report, &case);
        text(&recorded, &report, &case);
    }
}
