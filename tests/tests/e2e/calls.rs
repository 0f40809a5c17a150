//! Calls of threads' and files' functions as regions (`--calls`), against a library that counts them (`tests/sources/callcount.c`).

use ompfuse_tests::{command, compile, each, process, repository, schema};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Waits of the C++ library's own: it calls for the program.
const CXX: &str = r#"
#include <condition_variable>
#include <fstream>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
std::mutex mutex;
std::condition_variable changed;
int turn = 0;
static void pass(int own) {
    std::unique_lock<std::mutex> lock(mutex);
    while (turn != own)
        changed.wait(lock);
    turn++;
    changed.notify_all();
    if (own == 2) throw std::runtime_error("two");
}
static void work(int own) {
    try { pass(own); } catch (const std::exception &e) { std::lock_guard<std::mutex> lock(mutex); turn += e.what()[0] == 't' ? 10 : 0; turn -= 10; }
}
int main(int argc, char **argv) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work, i);
    for (auto &t : threads) t.join();
    std::string file = std::string(argv[argc - 1]) + "/text", line;
    { std::ofstream out(file); for (int i = 0; i < 3000; i++) out << "line " << i << '\n'; }
    std::ifstream in(file), absent(file + "-absent");
    long sum = 0;
    while (std::getline(in, line)) sum += line.size();
    std::cout << turn << ' ' << sum << ' ' << absent.good() << std::endl;
}
"#;

/// A device that is none, and a program that waits for it, in a library of its own too.
const DEVICE: &str = r#"
int cudaDeviceSynchronize(void) { return 0; }
int cudaMemcpy2D(void *a, unsigned long b, const void *c, unsigned long d, unsigned long e, unsigned long f, int kind) { return (int)(b + d + e + f) + kind; }
int hipStreamSynchronize(void *stream) { return stream != 0; }
int clFinish(void *queue) { return queue != 0; }
"#;
const OF_DEVICE: &str = r#"
#include <stdio.h>
int cudaDeviceSynchronize(void), hipStreamSynchronize(void *), clFinish(void *);
int cudaMemcpy2D(void *, unsigned long, const void *, unsigned long, unsigned long, unsigned long, int);
#ifdef PART
__attribute__((noinline)) int wait_for(void *stream) { return hipStreamSynchronize(stream) + clFinish(stream); }
int waits(int times) { int sum = 0; for (int i = 0; i < times; i++) sum += wait_for(&sum); return sum; }
#else
int waits(int times);
int main(void) {
    int sum = 0;
    for (int i = 0; i < 5; i++) sum += cudaMemcpy2D(0, 1, 0, 2, 3, 4, 5) + cudaDeviceSynchronize();
    printf("%d %d\n", sum, waits(7));
    return 0;
}
#endif
"#;

/// A handler that comes again and again, in the midst of probes too.
const HANDLER: &str = r#"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static volatile long handled;
static void on_alarm(int signal) { close(-signal); handled++; }
int main(void) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 400000; i++) sched_yield();
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld\n", handled);
}
"#;

/// Calls by function, in a report.
fn recorded(report: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for region in report["regions"].as_array().expect("regions") {
        let kinds = ["mpi", "pthread", "io", "cuda", "hip", "opencl"];
        if kinds.iter().any(|k| region["construct"] == **k) {
            let detail = region["detail"].as_str().expect("a function");
            let (function, _) = detail.split_once(", ").expect("a group");
            let executions = region["executions"].as_u64().expect("a number");
            *all.entry(function.to_owned()).or_insert(0) += executions;
        }
    }
    all
}

/// Records a program and returns what it said and the report.
fn record(program: &Path, out: &Path, flags: &[&str], files: &Path) -> (String, Value) {
    let mut command = command::with_threads(2);
    command.args(["record", "--events", "none", "-o"]).arg(out);
    command.args(flags).arg("--").arg(program).arg(files);
    let said = process::run(&mut command).ok(&format!("{command:?}"));
    (said.text(), schema::checked(out))
}

#[test]
fn calls_are_those_that_a_preloaded_library_counts() {
    let waits = std::fs::read_to_string(repository().join("tests/sources/waits.c"));
    let waits = waits.expect("a source");
    let programs = [
        (waits.as_str(), "gcc -O1 -g -pthread"),
        (waits.as_str(), "clang-19 -O2 -fno-plt -no-pie -pthread"),
        (CXX, "g++ -O2 -pthread"),
    ];
    let made = |&(source, command): &(&str, &str)| compile::compile(source, command);
    for ((source, command), program) in each(programs, made) {
        let folder = program.folder.path();
        let [counting, counts, files] = ["libcount.so", "counts", "files"].map(|n| folder.join(n));
        let source_of_it = repository().join("tests/sources/callcount.c");
        assert!(compile::files(
            &[source_of_it],
            &counting,
            "gcc -O1 -shared -fPIC"
        ));
        std::fs::create_dir(&files).expect("there is room for files");
        let mut alone = Command::new(&program.path);
        process::clean(&mut alone, 2).arg(&files);
        alone.env("LD_PRELOAD", &counting).env("COUNTS", &counts);
        let output = process::run(&mut alone).ok(command).text();
        let text = std::fs::read_to_string(&counts).expect("calls were counted");
        let lines = text.lines().filter_map(|l| l.split_once(' '));
        let mut counted: BTreeMap<String, u64> = lines
            .map(|(name, calls)| (name.to_owned(), calls.parse().expect("a number")))
            .collect();
        if source != CXX {
            // Of the source: what is left by a jump or by cancellation never returns, one call goes by an address, and a child makes
            // one that the library counts in the child alone.
            for (name, unseen) in [("pthread_cond_wait", 1), ("read", 20 + 1)] {
                *counted.entry(name.to_owned()).or_default() -= unseen;
            }
        }
        counted.retain(|_, calls| *calls > 0);
        let (said, report) = record(
            &program.path,
            &folder.join("out"),
            &["--calls", "pthread,io"],
            &files,
        );
        assert_eq!(said, output, "{command}");
        let mut calls = recorded(&report);
        if source == CXX {
            // How often a thread looks whether it is its turn is up to chance, and so is who waits. Newer libraries of C++ flush
            // their streams at the end, when what was counted has been written.
            for name in ["pthread_cond_wait", "fflush"] {
                counted.remove(name);
                calls.remove(name);
            }
        }
        let known = calls.iter().filter(|(name, _)| counted.contains_key(*name));
        let known: BTreeMap<_, _> = known.map(|(n, c)| (n.clone(), *c)).collect();
        assert_eq!(known, counted, "{command}: {calls:?}");

        if source == CXX {
            continue; // its library makes all calls
        }
        let chosen = ["--calls", "io,pthread", "--select", "io", "--skip", "write"];
        let (said, report) = record(&program.path, &folder.join("some"), &chosen, &files);
        assert_eq!(said, output, "{command}");
        let some = recorded(&report);
        assert!(some.contains_key("fopen"), "{command}: {some:?}");
        let left_out = ["pthread_join", "write"].map(|n| some.get(n));
        assert_eq!(left_out, [None; 2], "{command}");
    }
}

/// A signal handler's calls, in the midst of probes too: what isn't recorded is said, and all else is.
#[test]
fn handlers_may_call_at_any_time() {
    let Some(program) = compile::compile(HANDLER, "gcc -O1") else {
        return;
    };
    let out = program.folder.path().join("out");
    let flags = ["--calls", "io,pthread"];
    let (said, report) = record(&program.path, &out, &flags, Path::new("none"));
    let handled: u64 = said.trim().parse().expect("a number");
    let calls = recorded(&report);
    let lost = report["runs"][0]["lost_records"]
        .as_u64()
        .expect("a number");
    let all = calls["close"] + calls["sched_yield"];
    // Two that come in a row are one loss.
    assert!(
        calls["sched_yield"] <= 400_000 && calls["close"] <= handled,
        "{calls:?}"
    );
    assert!(
        all + 2 * lost >= 400_000 + handled,
        "{calls:?}, {handled} handled, {lost} lost"
    );
    assert!(lost < handled / 10, "{lost} of {handled}");
}

/// Files without OpenMP are patched if their calls, or functions of theirs, are asked for. A patched file says what was asked.
#[test]
fn libraries_without_openmp_are_patched_where_asked_for() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let folder = folder.path();
    let command = "gcc -O1 -g -shared -fPIC";
    let Some(device) = compile::text(folder, "libdevice.so", DEVICE, command) else {
        return;
    };
    let source = folder.join("of_device.c");
    std::fs::write(&source, OF_DEVICE).expect("there is room for a source");
    let [library, program] = ["libwaits.so", "program"].map(|n| folder.join(n));
    let part = format!("{command} -DPART");
    let linked = format!("gcc -O1 -g -Wl,-rpath,{}", folder.display());
    assert!(compile::files(&[&source, &device], &library, &part));
    assert!(compile::files(
        &[&source, &library, &device],
        &program,
        &linked
    ));
    let alone = process::run(process::clean(&mut Command::new(&program), 1)).text();
    let of = |out: &str, flags: &[&str]| {
        let (said, report) = record(&program, &folder.join(out), flags, folder);
        assert_eq!(said, alone, "{flags:?}");
        report
    };
    let report = of("both", &["--calls", "cuda,hip,opencl"]);
    let calls = [
        ("clFinish", 7),
        ("cudaDeviceSynchronize", 5),
        ("cudaMemcpy2D", 5),
        ("hipStreamSynchronize", 7),
    ];
    let expected = calls.map(|(name, calls)| (name.to_owned(), calls));
    assert_eq!(recorded(&report), BTreeMap::from(expected));

    let report = of("functions", &["--functions", "lib:libwaits*:wait_for"]);
    let regions = report["regions"].as_array().expect("regions");
    let [function] = &regions[..] else {
        panic!("{regions:#?}");
    };
    assert_eq!(
        (&function["function"], &function["executions"]),
        (&"wait_for".into(), &7.into())
    );

    let patched = folder.join("patched");
    let said = command::ok([
        "patch".as_ref(),
        program.as_os_str(),
        "--calls".as_ref(),
        "cuda".as_ref(),
        "-o".as_ref(),
        patched.as_os_str(),
    ]);
    assert!(
        said.text().contains("2 of 2 constructs patched"),
        "{said:?}"
    );
    command::ok(["verify".as_ref(), program.as_os_str(), patched.as_os_str()]);
    let none = command::run(["scan".as_ref(), program.as_os_str()]);
    assert!(none.errors().contains("no OpenMP in it"), "{none:?}");
}
