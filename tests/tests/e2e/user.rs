//! What a program says through `include/ompfuse.h`, and that it costs nothing where nobody listens.

use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::process;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, has, repository};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compilers with flags: another language, and optimisers that see the whole program.
const FORMS: [(&str, &[&str]); 5] = [
    ("gcc", &["-O2", "-std=c99", "-pedantic"]),
    ("gcc", &["-O2", "-flto", "-no-pie"]),
    ("g++", &["-O0", "-x", "c++"]),
    ("clang-19", &["-O2"]),
    ("clang++-19", &["-O2", "-x", "c++", "-s"]),
];

fn build(folder: &Path, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    if !has(compiler) {
        return None;
    }
    let program = folder.join("user");
    let mut compile = Command::new(compiler);
    compile
        .args(["-Wall", "-Wextra", "-Werror", "-fopenmp", "-I"])
        .arg(repository().join("include"));
    compile
        .args(flags)
        .arg(repository().join("fixtures/behaviour/user.c"));
    process::run(compile.arg("-o").arg(&program)).ok("the compiler");
    Some(program)
}

/// The labels of a run, which must be those of rounds 1, 2 and 4: the third was paused.
fn labels(xus: &[Xu], what: &str) -> BTreeSet<String> {
    let labels: BTreeSet<String> = xus.iter().map(|x| x.label.clone()).collect();
    let component = |at: usize| -> BTreeSet<&str> {
        labels.iter().filter_map(|l| l.split('.').nth(at)).collect()
    };
    assert_eq!(
        component(1),
        BTreeSet::from(["1", "2", "4"]),
        "{what}: {labels:?}"
    );
    assert_eq!(component(2).len(), 1, "{what}: {labels:?}");
    labels
}

#[test]
fn regions_pauses_and_counters() {
    const THREADS: usize = 2;
    for (compiler, flags) in FORMS {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let Some(program) = build(folder.path(), compiler, flags) else {
            continue;
        };
        let what = format!("{compiler} {flags:?}");
        let alone = process::run(process::clean(&mut Command::new(&program), THREADS)).ok(&what);
        assert_eq!(alone.errors(), "recording 0\n", "{what}");
        let patched = folder.path().join("patched");
        command::ok([Path::new("patch"), &program, Path::new("-o"), &patched]);
        let quiet = process::run(process::clean(&mut Command::new(&patched), THREADS));
        assert_eq!(quiet.outcome(), alone.outcome(), "{what}, patched");

        let out = folder.path().join("out");
        let flags = ["--events", "task-clock", "--repeat", "2"];
        let recorded = table::record(&program, &[], THREADS, &out, &flags);
        assert_eq!(
            (recorded.status, recorded.text()),
            (0, alone.text().repeat(2)),
            "{what}: {recorded:?}"
        );
        let says = "recording 1: 1 of task-clock, 1 1\n";
        assert_eq!(
            recorded.errors().matches(says).count(),
            2,
            "{what}: {recorded:?}"
        );
        let runs = table::runs(&out);
        let xus = table::export(&runs[0]);
        // Three rounds: a range per thread, and a task.
        assert_eq!(xus.len(), 3 * (THREADS + 1), "{what}");
        assert_eq!(
            labels(&xus, &what),
            labels(&table::export(&runs[1]), &what),
            "{what}"
        );

        let report = command::json([
            "report".as_ref(),
            runs[0].as_os_str(),
            "--format".as_ref(),
            "json".as_ref(),
        ]);
        let regions = report["regions"].as_array().expect("a list of regions");
        let of = |name: &str| {
            let is_it =
                |r: &&serde_json::Value| r["construct"] == "user-region" && r["name"] == name;
            let found: Vec<_> = regions.iter().filter(is_it).collect();
            assert_eq!(found.len(), 1, "{what}: {name} in {regions:?}");
            found[0]["executions"].as_u64()
        };
        assert_eq!(of("steps"), Some(3), "{what}");
        assert_eq!(of("part"), Some(3), "{what}");
        let accounts = report["accounting"].as_array().expect("a list of threads");
        assert!(
            accounts.iter().all(|a| a["balanced"] == true),
            "{what}: {accounts:?}"
        );
    }
}

/// Regions that the program names are switched one by one, and counted with events of their own.
#[test]
fn single_regions_are_switched() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let source = folder.path().join("named.c");
    let text = "#include <ompfuse.h>
        #include <stdio.h>
        int main(void) {
            int rounds, done = 0;
            puts(\"ready\");
            fflush(stdout);
            while (scanf(\"%d\", &rounds) == 1) {
                for (int r = 0; r < rounds; r++)
                    for (int n = 0; n < 2; n++) {
                        ompfuse_region_begin(n ? \"second\" : \"first\");
                        #pragma omp parallel
                        #pragma omp single
                        #pragma omp task shared(done)
                        done++;
                        ompfuse_region_end();
                    }
                printf(\"%d\\n\", done);
                fflush(stdout);
            }
            return 0;
        }";
    std::fs::write(&source, text).expect("a file can be written");
    let program = folder.path().join("named");
    let mut compile = Command::new("gcc");
    compile
        .args(["-O2", "-fopenmp", "-I"])
        .arg(repository().join("include"));
    process::run(compile.arg(&source).arg("-o").arg(&program)).ok("the compiler");
    let out = folder.path().join("out");
    let mut record = command::with_threads(2);
    record
        .args(["record", "--events", "task-clock", "-o"])
        .arg(&out);
    let mut dialogue = Dialogue::start(record.arg("--").arg(&program));
    let ctl = |args: &[&str]| {
        let all = ["ctl".as_ref(), out.as_os_str()];
        let args = args.iter().map(|a| std::ffi::OsStr::new(*a));
        command::run(all.into_iter().chain(args))
    };
    assert_eq!(dialogue.hear(), "ready");
    let early = ctl(&["--disable", "user:first"]);
    assert!(
        early.status == 1 && early.errors().contains("known once they have begun"),
        "{early:?}"
    );
    dialogue.ask("3");
    assert_eq!(ctl(&["--disable", "user:thirst"]).status, 1);
    let state = ctl(&["--disable", "user:f*", "--format", "json"]).ok("ctl");
    let state: serde_json::Value = serde_json::from_slice(&state.stdout).expect("JSON");
    assert_eq!(state["processes"][0]["user_regions_off"], 1, "{state}");
    dialogue.ask("5");
    let text = ctl(&["--disable", "user-region"]).ok("ctl").text();
    assert!(
        text.contains("2 of the program's own regions off"),
        "{text}"
    );
    dialogue.ask("7");
    ctl(&[
        "--enable",
        "user:first",
        "--events",
        "page-faults",
        "--select",
        "user:first",
    ])
    .ok("ctl");
    dialogue.ask("11");
    let output = dialogue.end().ok("the program");
    assert_eq!(output.text(), "ready\n6\n16\n30\n52\n");

    let run = &table::runs(&out)[0];
    let report = command::report(run);
    let regions = report["regions"].as_array().expect("a list of regions");
    let executions = |name: &str| {
        let region = regions.iter().find(|r| r["name"] == name);
        region.map_or(0, |r| r["executions"].as_u64().expect("a number"))
    };
    assert_eq!(executions("first"), 3 + 11, "{report}");
    assert_eq!(executions("second"), 3 + 5, "{report}");
    // What is inside of them is on record all the same, with its labels.
    let xus = table::export(run);
    assert_eq!(xus.len(), 2 * (3 + 5 + 7 + 11));
    let labels: BTreeSet<&str> = xus.iter().map(|x| x.label.as_str()).collect();
    assert_eq!(labels.len(), xus.len(), "{labels:?}");
    let accounts = report["accounting"].as_array().expect("a list of threads");
    assert!(
        accounts.iter().all(|a| a["balanced"] == true),
        "{accounts:?}"
    );
}

/// A library that is opened late, closed, and opened again has a variable of its own each time.
#[test]
fn regions_of_libraries() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let make = |name: &str, text: &str, flags: &[&str]| -> PathBuf {
        let source = folder.path().join(name).with_extension("c");
        std::fs::write(&source, text).expect("a file can be written");
        let out = folder.path().join(name);
        let mut compile = Command::new("gcc");
        compile
            .args(["-O2", "-fopenmp", "-I"])
            .arg(repository().join("include"))
            .args(flags);
        compile.arg(&source).arg("-o").arg(&out).arg("-ldl");
        process::run(&mut compile).ok("the compiler");
        out
    };
    let library = "#include <ompfuse.h>
        long work(long n) {
            long sum = 0;
            ompfuse_region_begin(\"late\");
            #pragma omp parallel for reduction(+ : sum) schedule(dynamic, 8)
            for (long i = 0; i < n; i++) sum += i;
            ompfuse_region_end();
            return sum;
        }";
    let library = make("libwork.so", library, &["-shared", "-fPIC"]);
    let program = "#include <dlfcn.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            long sum = argc;
            #pragma omp parallel for reduction(+ : sum)
            for (long i = 0; i < 10; i++) sum += i;
            for (int time = 0; time < 3; time++) {
                void *library = dlopen(argv[1], RTLD_NOW);
                sum += ((long (*)(long))dlsym(library, \"work\"))(64);
                dlclose(library);
            }
            printf(\"%ld\\n\", sum);
            return 0;
        }";
    let program = make("opens", program, &[]);
    let out = folder.path().join("out");
    let library = library.to_str().expect("text");
    table::record(&program, &[library], 2, &out, &table::ONE_EVENT).ok("record");
    let run = &table::runs(&out)[0];
    let report = command::report(run);
    let regions = report["regions"].as_array().expect("a list of regions");
    let late = regions.iter().find(|r| r["name"] == "late");
    let late = late.unwrap_or_else(|| panic!("no region in {regions:?}"));
    assert_eq!(
        (&late["construct"], &late["executions"]),
        (&"user-region".into(), &3.into())
    );
    let ranges = table::export(run);
    let inside = ranges.iter().filter(|x| x.label.split('.').count() > 6);
    let iterations: u64 = inside.map(|x| x.number("iterations")).sum();
    assert_eq!(iterations, 3 * 64);
}
