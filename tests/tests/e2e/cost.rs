//! What is counted by default costs no system call per execution unit, and what is counted per parallel region and thread is what
//! the region did on that thread.

use ompfuse_tests::{command, compile, each, few, process, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Recursive tasks without cut-off; the program tells how many `read` calls its process has made meanwhile, as the kernel counts
/// them, and how many tasks there were.
const FIB: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static long tasks;
static long fib(int n) {
    if (n < 2)
        return n;
    long a, b;
    #pragma omp task shared(a)
    {
        #pragma omp atomic
        tasks++;
        a = fib(n - 1);
    }
    #pragma omp task shared(b)
    {
        #pragma omp atomic
        tasks++;
        b = fib(n - 2);
    }
    #pragma omp taskwait
    return a + b;
}
static long reads(void) {
    char line[64];
    long n = -1;
    FILE *io = fopen("/proc/self/io", "r");
    while (io && fgets(line, sizeof line, io))
        sscanf(line, "syscr: %ld", &n);
    if (io)
        fclose(io);
    return n;
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 10;
    long before = reads(), result;
    #pragma omp parallel
    #pragma omp single
    result = fib(n);
    printf("tasks %ld reads %ld fib %ld\n", tasks, reads() - before, result);
}
"#;

/// Each thread has a number of page faults of its own in each of two regions, one of them in a nested team.
const FAULTS: &str = r#"
#include <omp.h>
#include <stdio.h>
#include <sys/mman.h>
enum { PAGE = 4096 };
static void touch(int pages) {
    char *at = mmap(0, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    for (int i = 0; i < pages; i++)
        at[(size_t)i * PAGE] = 1;
    munmap(at, (size_t)pages * PAGE);
}
int main(void) {
    omp_set_max_active_levels(2);
    #pragma omp parallel num_threads(2)
    touch(1000 * (omp_get_thread_num() + 1));
    #pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1)
            #pragma omp parallel num_threads(2)
            touch(3000);
    }
    puts("done");
}
"#;

/// One thread makes tasks and waits, in its part of the region, until the other one has executed half of them: in the barrier at the
/// region's end, behind its part. Prints the pages that each thread has touched.
const BEHIND: &str = r#"
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
enum { PAGE = 4096, PAGES = 500, ROUNDS = 8, TASKS = 40 };
static int touched[2], done;
static void touch(void) {
    for (int round = 0; round < ROUNDS; round++) {
        char *at = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(at, PAGES * PAGE, MADV_NOHUGEPAGE);
        for (int i = 0; i < PAGES; i++)
            at[i * PAGE] = 1;
        munmap(at, PAGES * PAGE);
    }
    touched[omp_get_thread_num()] += PAGES * ROUNDS;
    __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
}
int main(void) {
    #pragma omp parallel num_threads(2)
    #pragma omp single nowait
    {
        for (int i = 0; i < TASKS; i++)
            #pragma omp task
            touch();
        // libomp doesn't wake a thread that sleeps in the barrier already: not for ever.
        for (int i = 0; i < 300000 && __atomic_load_n(&done, __ATOMIC_SEQ_CST) < TASKS / 2; i++)
            sched_yield();
    }
    printf("%d %d\n", touched[0], touched[1]);
}
"#;

/// Page faults of a task of [`BEHIND`].
const TASK: u64 = 500 * 8;

/// Many short regions: with one thread they are short on any machine, however busy, since nobody is waited for.
const SHORT: &str = r#"
#include <stdio.h>
int main(void) {
    static double a[64];
    for (int step = 0; step < 20000; step++)
        #pragma omp parallel for
        for (int i = 0; i < 64; i++)
            a[i] += i;
    printf("%g\n", a[63]);
}
"#;

const COMPILERS: [&str; 2] = ["gcc -O2 -g -fopenmp", "clang-19 -O2 -g -fopenmp"];

/// Records a program with two threads; the run, and what the report says of it.
#[track_caller]
fn record(program: &Path, args: &[&str], out: &Path, flags: &[&str]) -> (String, Value) {
    record_with(2, program, args, out, flags)
}

#[track_caller]
fn record_with(
    threads: usize,
    program: &Path,
    args: &[&str],
    out: &Path,
    flags: &[&str],
) -> (String, Value) {
    let recorded = table::record(program, args, threads, out, flags).ok(&format!("{flags:?}"));
    let run = table::runs(out).pop().expect("a run was recorded");
    let json = [Path::new("--format"), Path::new("json")];
    let report = command::json([Path::new("report"), &run].into_iter().chain(json));
    (recorded.text(), report)
}

#[track_caller]
fn list<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    let list = value[key].as_array();
    list.unwrap_or_else(|| panic!("{key} is a list: {value}"))
}

/// The names of the events that were counted with this grain.
fn counted(report: &Value, grain: &str) -> Vec<String> {
    let events = list(report, "events").iter();
    let of_grain = events.filter(|e| e["grain"] == grain && !e["run"].is_null());
    of_grain
        .map(|e| e["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn by_default_tasks_need_no_system_call() {
    for (_, program) in each(COMPILERS, |how| compile::compile(FIB, how)) {
        let out = |name: &str| program.folder.path().join(name);
        let reads = |name: &str, n: &str, flags: &[&str]| {
            let (text, report) = record(&program.path, &[n], &out(name), flags);
            let words: Vec<&str> = text.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<i64>().expect("a number");
            let (tasks, reads) = (number(1), number(3));
            assert!(reads >= 0, "the kernel counts calls: {text}");
            (tasks, reads, report)
        };
        let (few, of_few, _) = reads("few", "10", &[]);
        let (many, of_many, report) = reads("many", "15", &[]);
        assert!(many > 10 * few, "{few} {many}");
        assert!(of_many < of_few + 100, "{of_few} and {of_many} calls");
        // Where an event is named there is a call at each boundary: so the number above tells something.
        if counted(&report, "region").iter().any(|e| e == "task-clock") {
            let (tasks, named, report) = reads("named", "15", &table::ONE_EVENT);
            assert!(named > 2 * tasks, "{named} calls for {tasks} tasks");
            assert_eq!(counted(&report, "unit"), ["task-clock"]);
            assert!(counted(&report, "region").is_empty(), "{report}");
        }
    }
}

/// What software events count is a region's on a thread: told by the records' header, the report, and a combined profile, and no
/// column of execution units.
#[test]
fn counts_of_regions_are_those_of_their_threads() {
    for (_, program) in each(COMPILERS, |how| compile::compile(FAULTS, how)) {
        let out = program.folder.path().join("runs");
        let (_, report) = record(
            &program.path,
            &[],
            &out,
            &["--region-events", "page-faults"],
        );
        if counted(&report, "region").is_empty() {
            ompfuse_tests::skip("perf events are refused here: no counts of regions");
            continue;
        }
        assert_eq!(counted(&report, "region"), ["page-faults"], "{report}");
        check_faults(&report, &["page-faults"]);
        let run = table::runs(&out).remove(0);
        let headers: Vec<_> = std::fs::read_dir(&run)
            .expect("a run is a folder")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
                name.starts_with("process-") && !name.ends_with(".end.json")
            })
            .collect();
        let header = std::fs::read_to_string(&headers[0]).expect("a header is text");
        let header: Value = serde_json::from_str(&header).expect("a header is JSON");
        assert_eq!(header["region_events"][0]["name"], "page-faults");
        assert!(!header["events"].to_string().contains("page-faults"));
        let show = ["report", "--show", "region-events"].map(Path::new);
        let text = command::ok(show.into_iter().chain([run.as_path()])).text();
        assert!(
            text.contains("Events per parallel region and thread"),
            "{text}"
        );
        // Another run counts another event, which belongs to the same threads of the same regions.
        let more = ["--region-events", "minor-faults", "--events", "none"];
        let (_, _) = record(&program.path, &[], &out, &more);
        let profile = program.folder.path().join("both.parquet");
        let mut combine = vec!["combine".into(), "-o".into(), profile.clone()];
        combine.extend(table::runs(&out));
        command::ok(combine);
        let json = [Path::new("--format"), Path::new("json")];
        let both = command::json([Path::new("report"), &profile].into_iter().chain(json));
        assert_eq!(counted(&both, "region"), ["page-faults", "minor-faults"]);
        check_faults(&both, &["page-faults", "minor-faults"]);
        for xu in table::export(&profile) {
            let names: Vec<_> = xu.columns.keys().collect();
            assert!(!names.iter().any(|n| n.contains("faults")), "{names:?}");
        }
    }
}

/// The program's page faults, and a few of the runtime's.
#[track_caller]
fn check_faults(report: &Value, events: &[&str]) {
    let mut found: Vec<(u64, u64, Vec<u64>)> = list(report, "region_counts")
        .iter()
        .map(|c| {
            assert_eq!(
                (&c["executed"], c["covered"].as_u64() > Some(0)),
                (&c["covered"], true)
            );
            let count = |event: &&str| c["events"][*event]["count"].as_u64().expect("a count");
            let number = |key: &str| c[key].as_u64().expect("a number");
            (
                number("region"),
                number("team_thread"),
                events.iter().map(count).collect(),
            )
        })
        .collect();
    found.sort();
    let regions: Vec<u64> = found.iter().map(|f| f.0).collect();
    assert_eq!(
        regions.len(),
        4,
        "two outermost regions, two threads: {found:?}"
    );
    assert!(regions[0] == regions[1] && regions[2] == regions[3] && regions[1] != regions[2]);
    let wanted = [(0, 1000), (1, 2000), (0, 0), (1, 6000)];
    for ((_, thread, counts), (of, pages)) in found.iter().zip(wanted) {
        assert_eq!(*thread, of, "{found:?}");
        for &count in counts {
            assert!((pages..pages + 300).contains(&count), "{found:?}");
        }
    }
}

#[test]
fn tasks_in_the_barrier_at_a_regions_end_are_the_regions() {
    for (_, program) in each(COMPILERS, |how| compile::compile(BEHIND, how)) {
        let out = program.folder.path().join("runs");
        let flags = ["--region-events", "page-faults"];
        let (text, report) = record(&program.path, &[], &out, &flags);
        if counted(&report, "region").is_empty() {
            ompfuse_tests::skip("perf events are refused here: no counts of regions");
            continue;
        }
        let touched: Vec<u64> = text
            .split_whitespace()
            .map(|n| n.parse().expect("a number"))
            .collect();
        assert!(
            touched.iter().any(|&pages| pages >= 20 * TASK),
            "{touched:?}"
        );
        let counts = list(&report, "region_counts");
        assert_eq!(counts.len(), 2, "one region, two threads: {counts:?}");
        for count in counts {
            let member = count["team_thread"].as_u64().expect("a number") as usize;
            let faults = count["events"]["page-faults"]["count"].as_u64();
            let faults = faults.expect("a count");
            // What one or two tasks at the very end did may not be read any more: reading takes a hundredth of the time. Tasks are
            // long, so that this is so where reading is slow.
            let (least, most) = (touched[member] * 4 / 5, touched[member] + 300);
            assert!(
                (least.saturating_sub(2 * TASK)..most).contains(&faults),
                "{member}: {faults} of {touched:?}"
            );
        }
    }
}

#[test]
fn of_short_regions_some_executions_are_read_and_all_are_counted() {
    for (_, program) in each(few(&COMPILERS, 1), |how| compile::compile(SHORT, how)) {
        for threads in [1, 2] {
            let out = program.folder.path().join("runs");
            let (text, report) = record_with(threads, &program.path, &[], &out, &[]);
            assert_eq!(text, "1.26e+06\n");
            let counts = list(&report, "region_counts");
            assert_eq!(counts.len(), threads, "{counts:?}");
            for count in counts {
                assert_eq!(count["executed"], 20_000, "{count}");
                let covered = count["covered"].as_u64().expect("a number");
                // Where threads wait for each other on a busy machine, all may be long enough.
                let most = if threads == 1 { 19_999 } else { 20_000 };
                assert!((1..=most).contains(&covered), "{count}");
                assert!(count["processor_s"].as_f64().is_some(), "{count}");
                for event in count["events"].as_object().expect("events").values() {
                    assert_eq!(event["covered"], count["covered"], "{count}");
                }
            }
        }
    }
}

/// The clocks of threads need no perf: they are there whatever is counted.
#[test]
fn processor_time_is_known_without_events() {
    for (_, program) in each(COMPILERS, |how| compile::compile(FAULTS, how)) {
        let out = program.folder.path().join("runs");
        let (_, report) = record(&program.path, &[], &out, &["--events", "none"]);
        let counts = list(&report, "region_counts");
        assert_eq!(counts.len(), 4, "{counts:?}");
        for count in counts {
            let [wall, processor] =
                ["covered_wall_s", "processor_s"].map(|key| count[key].as_f64().expect("a time"));
            assert!(processor > 0.0 && wall > 0.0, "{count}");
            // A nested team has two threads, and clocks are read some microseconds apart.
            assert!(processor < 2.0 * wall + 1e-3, "{count}");
        }
        assert!(counted(&report, "region").is_empty() && counted(&report, "unit").is_empty());
    }
}

/// A recorded program's reads without any event: nothing but its own.
#[test]
fn without_events_nothing_is_read() {
    for (_, program) in each(COMPILERS, |how| compile::compile(FIB, how)) {
        let plain = process::run(process::clean(
            &mut std::process::Command::new(&program.path),
            2,
        ));
        let plain = plain.ok("the program").text();
        let out = program.folder.path().join("runs");
        let (text, _) = record(&program.path, &["10"], &out, &["--events", "none"]);
        let reads = |text: &str| -> i64 {
            let number = text.split_whitespace().nth(3).and_then(|n| n.parse().ok());
            number.expect("a number")
        };
        assert!(reads(&text) <= reads(&plain) + 10, "{plain} {text}");
    }
}

/// Each thread computes the same; the program tells the wall time of its threads' parts, and their processor time.
const COMPUTE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    double wall = 0, processor = 0;
    #pragma omp parallel reduction(+ : wall, processor)
    {
        double w = now(CLOCK_MONOTONIC), p = now(CLOCK_THREAD_CPUTIME_ID);
        volatile double x = 1;
        for (long i = 0; i < rounds; i++)
            x = x * 0.999 + 1;
        processor += now(CLOCK_THREAD_CPUTIME_ID) - p;
        wall += now(CLOCK_MONOTONIC) - w;
    }
    printf("%.9f %.9f\n", wall, processor);
}
"#;

/// A text's words, wherever its lines end.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What part of the time in which threads work in regions they don't run is what the program itself finds.
const STARVED: &str = "threads had no processor for at least";

#[test]
fn missing_processors_are_said_and_others_are_not() {
    if !ompfuse_tests::has("taskset") {
        return;
    }
    for (_, program) in each(few(&COMPILERS, 1), |how| compile::compile(COMPUTE, how)) {
        let out = program.folder.path().join("runs");
        let run = |threads: &str, set: &[(&str, &str)], on: &[&str], rounds: &str| {
            let mut record = command::with_threads(2);
            record.env("OMP_NUM_THREADS", threads).envs(set.to_vec());
            record.args(["record", "--events", "none", "-o"]).arg(&out);
            record.arg("--").args(on).arg(&program.path).arg(rounds);
            let text = process::run(&mut record).ok("record").text();
            let times: Vec<f64> = (text.split_whitespace())
                .map(|t| t.parse().expect("a number"))
                .collect();
            let run = table::runs(&out).pop().expect("a run was recorded");
            let json = [Path::new("--format"), Path::new("json")];
            let report = command::json([Path::new("report"), &run].into_iter().chain(json));
            let text = command::ok([Path::new("report"), &run]).text();
            let own = 1.0 - times[1] / times[0];
            let said = report["running"]["not_running"].as_f64();
            let said = said.unwrap_or_else(|| panic!("nothing is known: {report}"));
            // A short part may be over before the program's own clock is read on a busy machine.
            assert!(
                times[0] < 0.05 || (said - own).abs() < 0.1,
                "{said} and {own}: {report}"
            );
            // Computing threads don't sleep: who was not running had no processor.
            let without = report["running"]["without_processor_s"].as_f64();
            let without = without.expect("the kernel tells it, and no thread ended before");
            let share = without / report["running"]["wanted_s"].as_f64().expect("seconds");
            // It is the least, since who waits may lack a processor, too.
            assert!(share <= said + 0.1, "{share} of {said}: {report}");
            assert_eq!(report["running"]["is_starved"], share >= 0.05, "{report}");
            assert_eq!(text.contains(STARVED), share >= 0.05, "{text}");
            (own, report, text)
        };
        let (own, report, text) = run("4", &[], &["taskset", "-c", "0"], "20000000");
        assert!(own > 0.5, "four threads on a processor: {own}");
        assert_eq!(
            report["running"]["processors"], 1.0,
            "{}",
            report["running"]
        );
        assert_eq!(report["running"]["threads"], 4, "{}", report["running"]);
        assert_eq!(
            report["running"]["limit"], "affinity",
            "{}",
            report["running"]
        );
        // In front of all tables.
        let first = text.split_once(STARVED).expect("it is said");
        assert!(!first.0.contains("threads went"), "{text}");
        assert!(text.contains("OMP_NUM_THREADS=1"), "{text}");
        let first = &list(&report, "losses")[0];
        assert_eq!(first["cause"]["kind"], "no_processor", "{first}");
        assert!(first["share"].as_f64() > Some(0.4), "{first}");
        // No test can make a quota or a hypervisor that takes time. Here the run's header tells of both.
        let folder = table::runs(&out).pop().expect("it was recorded");
        let header = folder.join("run.json");
        let text = std::fs::read_to_string(&header).expect("a header");
        let mut edited: Value = serde_json::from_str(&text).expect("JSON");
        edited["quota"] = 1.0.into();
        let seconds = edited["duration_s"].as_f64().expect("it ended");
        edited["stolen_s"] = (seconds * edited["cpus"].as_f64().expect("a number") / 4.0).into();
        std::fs::write(&header, edited.to_string()).expect("a header can be written");
        let text = command::ok([Path::new("report"), &folder]).text();
        for said in [
            "4 threads share 1 processor, the quota of the control group",
            "raise the quota",
            "the hypervisor took 25",
        ] {
            assert!(words(&text).contains(said), "{said}: {text}");
        }
        let beside = ["-c", "0", "sh", "-c", "while :; do :; done"];
        let beside = Command::new("taskset").args(beside).spawn();
        let mut beside = beside.expect("taskset is there");
        let (_, _, text) = run("1", &[], &["taskset", "-c", "0"], "20000000");
        beside.kill().and_then(|()| beside.wait()).expect("it runs");
        assert!(
            words(&text).contains("1 thread may use 1 processor, and other programs used it too"),
            "{text}"
        );
        let bound = [("OMP_PROC_BIND", "true"), ("OMP_PLACES", "{0}")];
        let (_, report, text) = run("2", &bound, &[], "20000000");
        assert_eq!(
            report["running"]["limit"], "binding",
            "{}",
            report["running"]
        );
        assert!(
            text.contains("2 threads are bound to 1 processor"),
            "{text}"
        );
        // On a busy machine it takes a while until two threads have their processors for so long.
        let undisturbed = (0..40).find_map(|_| {
            let (own, report, text) = run("2", &[], &[], "4000000");
            (own < 0.03 && report["running"]["not_running"].as_f64() < Some(0.03))
                .then_some((report, text))
        });
        let Some((report, text)) = undisturbed else {
            ompfuse_tests::tools::mention("this machine is too busy for two threads at once");
            continue;
        };
        assert_eq!(report["running"]["is_starved"], false);
        assert!(!text.contains(STARVED), "{text}");
    }
}

/// A loop of many short ranges; the program tells how many `read` calls its process has made meanwhile.
const RANGES: &str = r#"
#include <stdio.h>
static long reads(void) {
    char line[64];
    long n = -1;
    FILE *io = fopen("/proc/self/io", "r");
    while (io && fgets(line, sizeof line, io))
        sscanf(line, "syscr: %ld", &n);
    if (io)
        fclose(io);
    return n;
}
int main(void) {
    static double x[64];
    long before = reads();
    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 20000; i++)
        x[i & 63] += i;
    printf("ranges 20000 reads %ld %g\n", reads() - before, x[5]);
}
"#;

/// A unit that isn't recorded reads no counter; those that are have their counts, and every count is somebody's or said to be nobody's.
#[test]
fn what_is_left_out_needs_no_system_call() {
    for ((source, _), program) in each(
        [
            (FIB, COMPILERS[0]),
            (FIB, COMPILERS[1]),
            (RANGES, COMPILERS[0]),
            (RANGES, COMPILERS[1]),
        ],
        |(source, how)| compile::compile(source, how),
    ) {
        let run = |name: &str, flags: &[&str]| {
            let out = program.folder.path().join(name);
            let flags = [&table::ONE_EVENT[..], flags].concat();
            let (text, report) = record(&program.path, &["14"], &out, &flags);
            let words: Vec<&str> = text.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<f64>().expect("a number");
            for account in list(&report, "accounting") {
                assert_eq!(account["balanced"], true, "{name}: {account}");
            }
            let run = table::runs(&out).pop().expect("a run was recorded");
            let mut without = 0;
            let xus = table::export(&run);
            for xu in &xus {
                without += usize::from(xu.columns.get("task-clock").is_none_or(String::is_empty));
            }
            assert_eq!(without, 0, "{name}: units on record have their counts");
            // Calls per unit that was executed, and units on record.
            (number(3) / number(1), xus.len() as f64 / number(1), report)
        };
        let (all, on_record, report) = run("all", &[]);
        if counted(&report, "unit").is_empty() {
            ompfuse_tests::skip("perf events are refused here: nothing is counted per unit");
            continue;
        }
        assert!(all >= 2.0 && on_record == 1.0, "{all} calls for a unit");
        let (sampled, on_record, report) = run("sampled", &["--sample", "64"]);
        assert!(on_record > 0.0 && on_record < 0.05, "{on_record}");
        assert!(sampled < all / 10.0, "{sampled} of {all} calls for a unit");
        let nobodys = |report: &Value| -> u64 {
            let of_thread = |a: &Value| a["unattributed_counts"]["task-clock"].as_u64();
            list(report, "accounting")
                .iter()
                .filter_map(of_thread)
                .sum()
        };
        assert!(nobodys(&report) > 0, "{report}");
        assert!(list(&report, "notes").iter().any(|n| {
            n.as_str()
                .is_some_and(|n| n.contains("task-clock") && n.contains("recorded units"))
        }));
        let (throttled, _, _) = run("throttled", &["--throttle", "2"]);
        // It takes some hundred instances until fewer are recorded.
        let most = if source == RANGES { all / 2.0 } else { all };
        assert!(throttled < most, "{throttled} of {all} calls for a unit");
        // What turns out to be short was read at its begin.
        let (long, on_record, _) = run("long", &["--min-duration", "1s"]);
        assert!(on_record == 0.0 && long < all, "{long} of {all} calls");
        if source == RANGES {
            assert!(long < 0.6 * all, "{long} of {all} calls");
            let out = program.folder.path().join("said");
            let flags = ["--events", "task-clock", "--min-duration", "1ms"];
            let said = table::record(&program.path, &[], 2, &out, &flags).errors();
            assert!(said.contains("--sample N and --throttle PERCENT"), "{said}");
        }
    }
}
