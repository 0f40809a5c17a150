//! How long critical sections, locks and ordered blocks are waited for, held and released, against the program's own clock
//! (`tests/sources/held.c`), and which lock that was (`tests/sources/locks.c`).

use crate::counting::{Recorded, regions};
use ompfuse_tests::each;
use serde_json::Value;

/// A line of the program: name, entries, and nanoseconds held, and from before entering to behind leaving.
fn own(text: &str) -> Vec<(String, u64, f64, f64)> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        Some((name, number()?, number()? as f64, number()? as f64))
    };
    text.lines().filter_map(line).collect()
}

fn seconds(mutex: &Value, field: &str) -> f64 {
    let value = mutex[field].as_f64();
    value.unwrap_or_else(|| panic!("no {field} in {mutex}"))
}

/// The scale of the recorded clock is measured too.
const SCALE: f64 = 1.01;

fn check(command: &str, program: &Recorded, threads: usize) {
    let (output, report) = program.report(threads, &[]);
    let own = own(&output.ok(command).text());
    assert_eq!(own.len(), 4, "{command}");
    for (name, entries, own_held, own_total) in own {
        let found = match &*name {
            "door" => regions(&report, "lock"),
            "in_turn" => regions(&report, "ordered"),
            _ => regions(&report, "critical"),
        };
        let named = |r: &&Value| name == "in_turn" || r["detail"] == *name;
        let region = found.into_iter().find(named);
        let region = region.unwrap_or_else(|| panic!("{command}: no region {name}: {report:#}"));
        let what = format!(
            "{command}, {threads} threads, {name}: {own_held} of {own_total} ns; {region:#}"
        );
        let mutex = &region["mutex"];
        assert_eq!(mutex["entries"], entries, "{what}");
        let [enter, held, exit] = ["enter_s", "held_s", "exit_s"].map(|f| seconds(mutex, f));
        // The program reads its clock inside what is held, and around all three: whatever a busy machine does in between.
        assert!(held * 1e9 * SCALE > own_held, "held: {what}");
        let all = enter + held + exit;
        assert!(all * 1e9 < own_total * SCALE, "all: {what}");
        assert!(all * 1e9 > 0.7 * own_total, "all: {what}");
        let others = own_total * SCALE - own_held / SCALE;
        assert!((enter + exit) * 1e9 < others, "others: {what}");
        // By construction.
        let least = if name == "long_one" { 6e-4 } else { 2e-4 };
        assert!(held * SCALE > least * entries as f64, "{what}");
        assert!((enter - seconds(region, "wait_s")).abs() < 1e-6, "{what}");
        assert!((exit - seconds(region, "runtime_s")).abs() < 1e-6, "{what}");
        let rows = region["per_thread"].as_array().expect("threads");
        assert_eq!(rows.len(), threads, "{what}");
        for (field, all) in [("enter_s", enter), ("held_s", held), ("exit_s", exit)] {
            let sum: f64 = rows.iter().map(|r| seconds(&r["mutex"], field)).sum();
            assert!((sum - all).abs() < 1e-6, "{field}: {what}");
        }
    }
    let text = program.text(threads);
    assert!(text.contains("One thread at a time"), "{text}");
    let line = text.lines().find(|l| l.contains("long_one"));
    assert!(line.is_some_and(|l| l.contains("critical")), "{text}");
}

#[test]
fn held_times_are_those_that_the_program_measures() {
    let compilers = ["gcc", "clang-19"].map(|c| format!("{c} -O2"));
    let made = |c: &String| Recorded::compiled("held", c);
    for (command, program) in each(compilers, made) {
        for threads in [1, 4] {
            check(&command, &program, threads);
        }
    }
}

/// The lock with this name in a report.
fn lock<'r>(report: &'r Value, name: &str) -> &'r Value {
    let locks = report["locks"].as_array().expect("locks");
    let found = locks.iter().find(|l| l["name"] == name);
    found.unwrap_or_else(|| panic!("no lock {name}: {locks:#?}"))
}

/// Several locks at one place, and one lock at several, by the addresses that the program prints and `nm` knows.
#[test]
fn locks_are_told_apart_by_address() {
    let compilers = ["gcc", "clang-19"].map(|c| format!("{c} -O2 -fno-inline -no-pie"));
    let made = |c: &String| Recorded::compiled("locks", c);
    for (command, program) in each(compilers, made) {
        let (output, report) = program.report(2, &[]);
        let text = output.ok(&command).text();
        let printed: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
        assert_eq!(
            report["locks"].as_array().map(Vec::len),
            Some(6),
            "{command}"
        );
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let first = address(printed[0][2]).expect("an address");
        for line in &printed {
            let (own, at) = (line[0], address(line[2]).expect("an address"));
            let name = match own {
                "update" => "critical update".to_owned(),
                "unnamed" => "critical without a name".to_owned(),
                "allocated" => format!("memory at {at:#x}"),
                _ if at == first => "doors".to_owned(),
                _ => format!("doors+{:#x}", at - first),
            };
            let lock = lock(&report, &name);
            let what = format!("{command}: {own}: {lock:#}");
            assert_eq!(lock["entries"].to_string(), line[1], "{what}");
            let regions = lock["regions"].as_array().map(Vec::len);
            let places = if own.starts_with('u') { 2 } else { 1 };
            assert_eq!(regions, Some(places), "{what}");
            if !own.starts_with('u') {
                assert_eq!(lock["address"].as_u64(), Some(at), "{what}");
                assert_eq!(lock["kind"], "lock", "{what}");
            }
        }
        // The region's times are those of its locks together.
        let doors = lock(&report, "doors")["regions"][0].clone();
        let region = regions(&report, "lock")
            .into_iter()
            .find(|r| r["id"] == doors);
        let region = region.unwrap_or_else(|| panic!("{command}: no region {doors}"));
        let locks = report["locks"].as_array().expect("locks").iter();
        let of_region = locks.filter(|l| l["regions"][0] == doors);
        let of_region: Vec<&Value> = of_region.collect();
        assert_eq!(of_region.len(), 3, "{command}");
        for field in ["enter_s", "held_s", "exit_s"] {
            let sum: f64 = of_region.iter().map(|l| seconds(l, field)).sum();
            let all = seconds(&region["mutex"], field);
            assert!((sum - all).abs() < 1e-7, "{command}: {field}: {sum}, {all}");
        }
        let text = program.text(2);
        let line = text.lines().find(|l| l.contains("doors+"));
        assert!(line.is_some_and(|l| l.contains(" 20 ")), "{text}");
    }
}
