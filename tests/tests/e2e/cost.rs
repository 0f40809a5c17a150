//! What is counted by default costs no system call per execution unit, and what is counted per parallel region and thread is what
//! the region did on that thread.

mod left_out;
mod processors;

use ompfuse_tests::{command, compile, each, few, process, table};
use serde_json::Value;
use std::path::Path;

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
    let report = command::report(&run);
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
        let both = command::report(&profile);
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
