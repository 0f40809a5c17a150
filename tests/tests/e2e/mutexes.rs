//! How long critical sections, locks and ordered blocks are waited for, held and released, against the program's own clock
//! (`tests/sources/held.c`), and which lock that was (`tests/sources/locks.c`).

use crate::counting::{Recorded, regions};
use ompfuse_tests::{command, compile, each, process, schema};
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
        let mut doors = 0;
        for line in &printed {
            let (own, at) = (line[0], address(line[2]).expect("an address"));
            let name = match own {
                "update" => "critical update".to_owned(),
                "unnamed" => "critical without a name".to_owned(),
                "allocated" => format!("memory at {at:#x}"),
                _ => {
                    assert!(at >= first, "{own} at {at:#x}");
                    doors += 1;
                    format!("doors[{}]", doors - 1)
                }
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
        let doors = lock(&report, "doors[0]")["regions"][0].clone();
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
        // A cause may name it, too.
        let mut named = text.lines().filter(|l| l.contains("doors[1]"));
        assert!(named.any(|l| l.contains(" 20 ")), "{text}");
    }
}

/// Mutexes in structures in an array, one without contention beside them, a failed attempt, and a wait for a condition.
const BUCKETS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
struct bucket { long n; struct { int pad; pthread_mutex_t m; } inner; } table[2][3];
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static void *work(void *own) {
    for (int i = 0; i < 20; i++) {
        struct bucket *b = i % 4 ? &table[1][2] : &table[0][i % 3];
        pthread_mutex_lock(&b->inner.m);
        usleep(i % 4 ? 2000 : 10);
        b->n++;
        pthread_mutex_unlock(&b->inner.m);
    }
    pthread_mutex_lock(&other);
    if (own) { usleep(1000); turn = 1; pthread_cond_signal(&changed); }
    else while (!turn) pthread_cond_wait(&changed, &other);
    pthread_mutex_unlock(&other);
    return 0;
}
int main(void) {
    pthread_t threads[2];
    struct timespec soon = {0, 0};
    for (int i = 0; i < 6; i++) pthread_mutex_init(&table[i / 3][i % 3].inner.m, 0);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    pthread_mutex_lock(&other);
    printf("%d %d\n", pthread_mutex_trylock(&other), pthread_mutex_timedlock(&other, &soon));
    pthread_mutex_unlock(&other);
    for (int i = 0; i < 6; i++) printf("table[%d][%d].inner.m %ld\n", i / 3, i % 3, table[i / 3][i % 3].n);
}
"#;

#[test]
fn mutexes_of_threads_are_locks() {
    let compilers = ["gcc -O1 -g -pthread", "clang-19 -O2 -g -pthread -no-pie"];
    let made = |c: &&str| compile::compile(BUCKETS, c);
    for (command, program) in each(compilers, made) {
        let out = program.folder.path().join("out");
        let mut record = command::with_threads(2);
        record.args(["record", "--events", "none", "--calls", "pthread", "-o"]);
        let recorded = process::run(record.arg(&out).arg("--").arg(&program.path)).ok(command);
        let report = schema::checked(&out);
        let said = recorded.text();
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("16 110"), "EBUSY, ETIMEDOUT: {said}");
        for line in lines {
            let (name, entries) = line.split_once(' ').expect("a name and a number");
            match entries {
                "0" => assert!(!report["locks"].to_string().contains(name), "{report:#}"),
                _ => {
                    let lock = lock(&report, name);
                    assert_eq!(lock["entries"].to_string(), entries, "{command}: {lock:#}");
                }
            }
        }
        let hot = lock(&report, "table[1][2].inner.m");
        // What is inside sleeps for 30 times 2 ms, one thread at a time: the other one waits meanwhile for some of them.
        assert!(seconds(hot, "held_s") * SCALE > 0.06, "{command}: {hot:#}");
        assert!(seconds(hot, "enter_s") > 0.0, "{command}: {hot:#}");
        // The wait for the condition is no holding: twice a thread's, once main's, and the attempt with a limit.
        let other = lock(&report, "other");
        assert_eq!(other["entries"], 4, "{command}: {other:#}");
        let show = [
            "report".as_ref(),
            out.as_os_str(),
            "--show".as_ref(),
            "locks".as_ref(),
        ];
        let text = command::ok(show).text();
        assert!(text.contains("table[1][2].inner.m"), "{command}: {text}");
    }
}
