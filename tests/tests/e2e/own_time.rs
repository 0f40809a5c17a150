//! A process's own time: from the end of our preparation until the program begins to exit, on record as readings of the clock that
//! the program reads itself. What recording does before and behind is in no thread's time.

use ompfuse_format::record::ThreadHeader;
use ompfuse_tests::{command, compile, table};
use serde_json::Value;
use std::path::Path;

/// Prints the clock in `main`'s first line and at its end, and the same where it ends otherwise.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <x86intrin.h>
#include <omp.h>
static unsigned long long begin;
static void say(void) { printf("%llu %llu\n", begin, (unsigned long long)__rdtsc()); fflush(stdout); }
static void region(void) {
    #pragma omp parallel
    { __asm__ volatile(""); }
}
int main(int argc, char **argv) {
    begin = __rdtsc();
    const char *how = argc > 1 ? argv[1] : "return";
    if (!strcmp(how, "fork") && fork() == 0) { begin = __rdtsc(); region(); say(); exit(0); }
    if (!strcmp(how, "fork")) { wait(NULL); region(); return 0; }
    region();
    if (!strcmp(how, "inside")) {
        #pragma omp parallel
        { if (omp_get_thread_num() == 0) { say(); exit(0); } }
    }
    say();
    if (!strcmp(how, "_exit")) _exit(0);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "exec")) execl("/bin/true", "true", (char *)NULL);
    return 0;
}
"#;

/// What a run has of a process.
struct Recorded {
    pid: u64,
    header: Value,
    end: Option<Value>,
    /// Begin, end, preparation and what was taken out, by thread.
    threads: Vec<[u64; 4]>,
}

impl Recorded {
    fn started(&self) -> u64 {
        number(&self.header["started"])
    }

    fn at_end(&self, key: &str) -> u64 {
        number(&self.end.as_ref().expect("an orderly end")[key])
    }
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// The processes of a run, in the order of their begin.
fn recorded(run: &Path) -> Vec<Recorded> {
    let names: Vec<String> = (std::fs::read_dir(run).expect("a run is a folder"))
        .map(|e| e.expect("a folder can be listed").file_name())
        .map(|name| name.into_string().expect("plain names"))
        .collect();
    let json = |name: &str| -> Option<Value> {
        let text = std::fs::read(run.join(name))
            .ok()
            .filter(|t| !t.is_empty())?;
        Some(serde_json::from_slice(&text).expect("JSON"))
    };
    let mut all: Vec<Recorded> = (names.iter())
        .filter_map(|name| name.strip_prefix("process-")?.strip_suffix(".json"))
        .filter(|key| !key.ends_with(".end"))
        .map(|key| {
            let header = json(&format!("process-{key}.json")).expect("a header");
            let prefix = format!("{key}-");
            let mut files: Vec<&String> = names
                .iter()
                .filter(|n| n.starts_with(&prefix) && n.ends_with(".rec"))
                .collect();
            files.sort();
            let thread = |name: &&String| {
                let bytes = std::fs::read(run.join(name)).expect("a file of records");
                let header = ThreadHeader::parse(&bytes).expect("a header");
                [
                    header.tsc_start,
                    header.tsc_end,
                    header.prepared_ticks,
                    header.ours_ticks,
                ]
            };
            Recorded {
                pid: number(&header["pid"]),
                end: json(&format!("process-{key}.end.json")),
                threads: files.iter().map(thread).collect(),
                header,
            }
        })
        .collect();
    all.sort_by_key(|p| number(&p.header["begin"]["tsc"]));
    all
}

/// Records the program. Returns its own readings, and what is on record.
fn run(patched: &Path, how: &str, threads: usize, flags: &[&str]) -> ([u64; 2], Vec<Recorded>) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let output = table::record(patched, &[how], threads, folder.path(), flags);
    let text = output.text();
    let readings: Vec<u64> = text
        .split_whitespace()
        .filter_map(|w| w.parse().ok())
        .collect();
    let readings = readings
        .try_into()
        .unwrap_or_else(|r| panic!("{how}: {r:?} in {output:?}"));
    (readings, recorded(&table::runs(folder.path())[0]))
}

fn each(check: impl Fn(&Path, &str)) {
    let programs = ["gcc -O2 -fopenmp", "clang-19 -O2 -fopenmp"];
    let compiled = |command: &&str| compile::compile(SOURCE, command);
    for (compiler, program) in ompfuse_tests::each(programs, compiled) {
        let patched = program.folder.path().join("patched");
        command::patch(&program.path, &patched);
        check(&patched, compiler);
    }
}

const MODES: [&[&str]; 3] = [&["--events", "none"], &table::ONE_EVENT, &["--units=sums"]];

#[test]
fn it_holds_all_of_main_and_none_of_our_files() {
    each(|patched, command| {
        for (threads, flags) in [1, 16].iter().flat_map(|t| MODES.map(|m| (*t, m))) {
            let what = format!("{command}, {threads} threads, {flags:?}");
            let ([begin, end], processes) = run(patched, "return", threads, flags);
            let [process] = &processes[..] else {
                panic!("{what}: {} processes", processes.len());
            };
            let [prepared, exiting] = ["prepared", "exiting"].map(|key| process.at_end(key));
            let completed = number(&process.end.as_ref().expect("an end")["end"]["tsc"]);
            let order = [process.started(), prepared, begin, end, exiting, completed];
            assert!(order.is_sorted(), "{what}: {order:?}");
            assert_eq!(process.threads.len(), threads, "{what}");
            // The first thread's time is the process's; the others have begun in between, and end when it does.
            let [start, ended, prepared_ticks, ours] = process.threads[0];
            let own = [prepared, exiting, prepared - process.started()];
            assert_eq!([start, ended, prepared_ticks], own, "{what}");
            // Further modules are initialised behind ours.
            assert!(ours < begin - prepared, "{what}: {ours}");
            for [start, ended, prepared_ticks, ours] in &process.threads[1..] {
                assert!((prepared..end).contains(start), "{what}");
                assert!(
                    *prepared_ticks > 0 && start - prepared_ticks >= begin,
                    "{what}"
                );
                assert_eq!((*ended, *ours), (exiting, 0), "{what}");
            }
        }
    });
}

/// Who exits inside of something goes on until the very end, without what completing the others' records takes.
#[test]
fn a_thread_that_exits_inside_of_a_region_does_not_pay_for_the_others() {
    each(|patched, command| {
        let ([_, end], processes) = run(patched, "inside", 16, &["--events", "none"]);
        let process = &processes[0];
        let exiting = process.at_end("exiting");
        assert!(end <= exiting, "{command}");
        let [start, ended, _, ours] = process.threads[0];
        assert!(ended > exiting, "{command}: {ended} at {exiting}");
        assert!(ours > 0 && ours < ended - start, "{command}: {ours}");
    });
}

/// Then it is not known when the program began to exit.
#[test]
fn it_is_unknown_of_who_ends_without_exit_handlers() {
    each(|patched, command| {
        for how in ["_exit", "abort", "exec"] {
            let ([begin, _], processes) = run(patched, how, 2, &["--events", "none"]);
            let [process] = &processes[..] else {
                panic!("{command}, {how}: {} processes", processes.len());
            };
            assert!(process.end.is_none(), "{command}, {how}");
            let [start, ended, prepared, _] = process.threads[0];
            assert_eq!(
                (ended, start - prepared),
                (0, process.started()),
                "{command}, {how}"
            );
            assert!(start <= begin, "{command}, {how}");
        }
    });
}

#[test]
fn the_child_of_a_fork_has_its_own() {
    each(|patched, command| {
        let ([begin, end], processes) = run(patched, "fork", 2, &["--events", "none"]);
        let [parent, child] = &processes[..] else {
            panic!("{command}: {} processes", processes.len());
        };
        assert_ne!(parent.pid, child.pid);
        let [prepared, exiting] = ["prepared", "exiting"].map(|key| child.at_end(key));
        let order = [
            parent.at_end("prepared"),
            child.started(),
            prepared,
            begin,
            end,
            exiting,
        ];
        assert!(order.is_sorted(), "{command}: {order:?}");
        assert!(exiting <= parent.at_end("exiting"), "{command}");
    });
}

/// Sleeps before `main`, in an exit handler, and in a destructor; a region is in `main`, and in the handler if it is told so. Prints the
/// nanoseconds of all sleeps together.
const AROUND: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static int in_handler;
static long slept;
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void nap(void) { long begun = now(); usleep(40000); slept += now() - begun; }
static void region(void) {
    #pragma omp parallel
    usleep(1000);
}
__attribute__((constructor)) static void before(void) { nap(); }
static void handler(void) { nap(); if (in_handler) { region(); nap(); } }
__attribute__((destructor)) static void last(void) { nap(); dprintf(1, "%ld 0\n", slept); }
int main(int argc, char **argv) {
    in_handler = argc > 1 && argv[1][0] == 'r';
    atexit(handler);
    region();
    return 0;
}
"#;

/// All of it is serial time of the program's, before and behind `main`.
#[test]
fn what_is_around_main_is_in_it() {
    let programs = ["gcc -O2 -fopenmp", "clang-19 -O2 -fopenmp"];
    for (compiler, program) in ompfuse_tests::each(programs, |c| compile::compile(AROUND, c)) {
        let patched = program.folder.path().join("patched");
        command::patch(&program.path, &patched);
        for (how, flags) in ["plain", "region"]
            .iter()
            .flat_map(|h| MODES.map(|m| (*h, m)))
        {
            let what = format!("{compiler}, {how}, {flags:?}");
            let out = tempfile::tempdir().expect("there is room for a recording");
            let output = table::record(&patched, &[how], 4, out.path(), flags);
            let text = output.text();
            let slept = text.split_whitespace().find_map(|w| w.parse::<u64>().ok());
            let slept = slept.unwrap_or_else(|| panic!("{what}: {output:?}"));
            let run = table::runs(out.path()).pop().expect("a run was recorded");
            let report = command::json([Path::new("report"), &run, Path::new("--format=json")]);
            let account = &report["account"];
            let own = number(&account["own_ns"]);
            let states = account["states"].as_array().expect("a list");
            let in_state = |name: &str| {
                let found = states.iter().find(|s| s["state"] == name);
                found.map_or(0, |s| number(&s["ns"]))
            };
            let serial = in_state("serial");
            assert!(
                (slept..=own).contains(&serial),
                "{what}: {slept} {serial} {own}"
            );
            // Three threads have nothing to do meanwhile.
            assert!(in_state("idle_serial") >= 3 * slept, "{what}: {account:#}");
            let parallel = (report["parallel_s"].as_f64()).expect("regions are on record");
            let all = serial as f64 + parallel * 1e9;
            assert!(
                (0.95..1.01).contains(&(all / own as f64)),
                "{what}: {account:#}"
            );
        }
    }
}

/// A library that is loaded while the program runs is prepared in nobody's time.
#[test]
fn what_a_later_library_takes_is_taken_out() {
    let library = r#"
        long work(long n) {
            long sum = 0;
            #pragma omp parallel for reduction(+ : sum)
            for (long i = 0; i < n; i++) sum += i;
            return sum;
        }"#;
    let program = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        #include <x86intrin.h>
        int main(int argc, char **argv) {
            long sum = 0;
            #pragma omp parallel for reduction(+ : sum)
            for (long i = 0; i < 64; i++) sum += i;
            unsigned long long begin = __rdtsc();
            void *library = dlopen(argv[1], RTLD_NOW);
            unsigned long long end = __rdtsc();
            sum += ((long (*)(long))dlsym(library, "work"))(64);
            printf("%llu %llu\n", begin, end);
            return sum != 2 * 2016;
        }"#;
    let compiler = "gcc -O2 -fopenmp";
    let (Some(library), Some(program)) = (
        compile::compile(library, &format!("{compiler} -shared -fPIC")),
        compile::compile(program, &format!("{compiler} -ldl")),
    ) else {
        return;
    };
    let patched = [&library, &program].map(|file| {
        let patched = file.folder.path().join("patched");
        command::patch(&file.path, &patched);
        patched
    });
    let library = patched[0]
        .to_str()
        .expect("temporary folders have plain names");
    // A thread may lose its processor in what the recording does elsewhere.
    let is_right = |_| {
        let ([begin, end], processes) = run(&patched[1], library, 2, &table::ONE_EVENT);
        let ours: Vec<u64> = processes[0].threads.iter().map(|t| t[3]).collect();
        assert!(ours[0] > 0, "{ours:?}");
        ours[0] < end - begin && ours[1] == 0
    };
    assert!((0..5).any(is_right), "more was taken out in five runs");
}

/// Processes that ran one after the other have no more threads at once than one of them.
#[test]
fn threads_at_once_are_those_of_processes_at_once() {
    let source = "int main(void) {\n#pragma omp parallel num_threads(2)\n\
                  for (volatile long i = 0; i < 60000000; i++) {}\nreturn 0; }";
    let program = compile::compile(source, "gcc -O1 -fopenmp").expect("gcc is there");
    let shown = program.path.display();
    for (script, wanted) in [
        (format!("{shown}; {shown}; {shown}"), [2, 1]),
        (format!("{shown} & {shown} & wait"), [4, 2]),
    ] {
        let out = tempfile::tempdir().expect("there is room for a recording");
        let recorded = table::record("sh".as_ref(), &["-c", &script], 2, out.path(), &[]);
        recorded.ok(&script);
        let run = table::runs(out.path()).pop().expect("a run was recorded");
        let report = command::json([Path::new("report"), &run, Path::new("--format=json")]);
        let running = &report["running"];
        let at_once = ["threads", "processes"].map(|k| number(&running[k]));
        assert_eq!(at_once, wanted, "{script}: {running:#}");
    }
}
