//! Thread-local variables of libraries, which glibc's loader treats in another way where an auditing library is.

use super::{compile, record, text};
use ompfuse_tests::process;
use ompfuse_tests::{command, has, skip, table};
use std::path::Path;
use std::process::Command;

const LIBRARY: [&str; 2] = ["-fPIC", "-shared"];

/// Records a program with a library preloaded: in what the command starts, and for the command itself.
fn preloaded(folder: &Path, name: &str, library: &Path, main: &Path) {
    let at = |kind: &str| folder.join(format!("{name}-{kind}"));
    let preload = format!("LD_PRELOAD={}", text(library));
    for (kind, command, env) in [
        ("inner", vec!["env", &preload, text(main)], vec![]),
        (
            "outer",
            vec![text(main)],
            vec![("LD_PRELOAD", text(library))],
        ),
    ] {
        let said = record(&at(kind), &command, &env, 1);
        let errors = said.errors();
        assert!(!errors.contains("not recorded"), "{name} {kind}: {errors}");
        assert_eq!(table::export(&at(kind)).len(), 4, "{name} {kind}");
    }
}

/// An allocator with variables of its own, preloaded or linked; libraries with much of them; and both.
#[test]
fn allocators_and_large_ones() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let library = |source: &str| compile("gcc", source, &at(source).with_extension("so"), &LIBRARY);
    let (Some(main), Some(hook), Some(room), Some(big)) = (
        compile("gcc", "main.c", &at("main"), &["-fopenmp"]),
        library("hook.c"),
        library("room.c"),
        library("big.c"),
    ) else {
        return;
    };
    for (name, library) in [("hook", &hook), ("room", &room), ("big", &big)] {
        preloaded(folder.path(), name, library, &main);
    }
    let flags = ["-fopenmp", "-Wl,--no-as-needed", text(&hook), text(&big)];
    let Some(linked) = compile("gcc", "main.c", &at("linked"), &flags) else {
        return;
    };
    record(&at("linked-runs"), &[text(&linked)], &[], 1);
    assert_eq!(table::export(&at("linked-runs")).len(), 4);
}

/// The same where libraries are opened late: they are recorded, and find room for variables of their own.
#[test]
fn what_is_opened_later_is_recorded() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let parallel = ["-fopenmp", "-fPIC", "-shared"];
    let (Some(work), Some(host), Some(hook), Some(big)) = (
        compile("gcc", "work.c", &at("work.so"), &parallel),
        compile("gcc", "host.c", &at("host"), &["-pthread"]),
        compile("gcc", "hook.c", &at("hook.so"), &LIBRARY),
        compile("gcc", "big.c", &at("big.so"), &LIBRARY),
    ) else {
        return;
    };
    let preload = format!("{}:{}", text(&hook), text(&big));
    // Without the second the original crashes at times: libgomp is unloaded while its threads still run in it.
    let env = [
        ("LD_PRELOAD", preload.as_str()),
        ("KEEP_OPEN", "libgomp.so.1"),
    ];
    record(
        &at("runs"),
        &[text(&host), text(&work), "local", "1", "1"],
        &env,
        1,
    );
    assert_eq!(table::export(&at("runs")).len(), 10);
}

/// An allocator whose variables can't have a place beside a thread's own data: the program is recorded, what it opens is not, which
/// is said.
#[test]
fn an_allocator_that_gets_no_place() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let wide = ["-fPIC", "-shared", "-DALIGN=4096"];
    let (Some(main), Some(hook)) = (
        compile("gcc", "main.c", &at("main"), &["-fopenmp"]),
        compile("gcc", "hook.c", &at("hook.so"), &wide),
    ) else {
        return;
    };
    let preload = format!("LD_PRELOAD={}", text(&hook));
    let said = record(&at("runs"), &["env", &preload, text(&main)], &[], 1).errors();
    let lines: Vec<_> = said
        .lines()
        .filter(|l| l.contains("not recorded"))
        .collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("hook.so"), "{said}");
    assert_eq!(table::export(&at("runs")).len(), 4);
}

/// What is left of a recording's environment does no harm: processes that go on behind its end, or start others without the rest of it.
#[test]
fn behind_the_end() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let at = |name: &str| folder.path().join(name);
    let (Some(main), Some(hook), Some(big)) = (
        compile("gcc", "main.c", &at("main"), &["-fopenmp"]),
        compile("gcc", "hook.c", &at("hook.so"), &LIBRARY),
        compile("gcc", "big.c", &at("big.so"), &LIBRARY),
    ) else {
        return;
    };
    let mut recorder = command::with_threads(2);
    recorder
        .args(["record", "--events", "none", "-o"])
        .arg(at("runs"));
    let said =
        process::run(recorder.args(["--", "sh", "-c", "echo $LD_AUDIT; echo $OMPFUSE_LIBRARIES"]));
    let text = said.text();
    let [audit, libraries] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{said:?}");
    };
    for preload in [&hook, &big] {
        let mut program = Command::new(&main);
        process::clean(&mut program, 2)
            .env("LD_AUDIT", audit)
            .env("LD_PRELOAD", preload);
        assert_eq!(
            process::run(&mut program).outcome(),
            (0, "sum 6\n".into(), String::new())
        );
        program.env("OMPFUSE_LIBRARIES", libraries);
        assert_eq!(
            process::run(&mut program).outcome(),
            (0, "sum 6\n".into(), String::new())
        );
    }
}

/// What counts allocations is preloaded by a script.
#[test]
fn heaptrack() {
    if !has("heaptrack") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let Some(main) = compile("gcc", "main.c", &at("main"), &["-fopenmp"]) else {
        return;
    };
    let mut recorder = command::with_threads(2);
    recorder
        .args(["record", "--events", "none", "-o"])
        .arg(at("runs"));
    recorder.args([
        "--",
        "heaptrack",
        "-o",
        text(&at("allocations")),
        text(&main),
    ]);
    let said = process::run(&mut recorder).ok("heaptrack");
    assert!(said.text().contains("sum 6\n"), "{said:?}");
    assert_eq!(table::export(&at("runs")).len(), 4);
}

/// The user's settings of the C library are kept, where room is asked for and where not.
#[test]
fn settings_are_kept() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let (Some(main), Some(big)) = (
        compile("gcc", "main.c", &at("main"), &["-fopenmp"]),
        compile("gcc", "big.c", &at("big.so"), &LIBRARY),
    ) else {
        return;
    };
    for preload in ["", text(&big)] {
        let env = [
            ("GLIBC_TUNABLES", "glibc.malloc.perturb=1"),
            ("LD_PRELOAD", preload),
        ];
        let command = ["sh", "-c", "echo ${GLIBC_TUNABLES%%:*}; $0", text(&main)];
        let said = record(&at("kept"), &command, &env, 1).text();
        assert!(said.starts_with("glibc.malloc.perturb=1\n"), "{said}");
    }
}

/// Sanitizers find the thread-local variables of a process by the places that these have in an ordinary one. Those of clang up to version 16
/// ended every program with an auditing library.
#[test]
fn sanitizers() {
    const CLANG: &str = "-L/usr/lib/llvm-19/lib -Wl,-rpath,/usr/lib/llvm-19/lib";
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let parallel = ["-fopenmp", "-fPIC", "-shared"];
    let Some(work) = compile("gcc", "work.c", &at("work.so"), &parallel) else {
        return;
    };
    for (compiler, sanitizer, library) in [
        ("gcc", "address", "libasan.so"),
        ("gcc", "thread", "libtsan.so"),
        ("clang-16", "address", "lib/linux/libclang_rt.asan-x86_64.a"),
        ("clang-16", "memory", "lib/linux/libclang_rt.msan-x86_64.a"),
        ("clang-16", "leak", "lib/linux/libclang_rt.lsan-x86_64.a"),
    ] {
        if !has(compiler) {
            continue;
        }
        let mut asked = Command::new(compiler);
        asked.arg(format!("-print-file-name={library}"));
        let place = process::run(&mut asked).ok(compiler).text();
        if !Path::new(place.trim()).is_absolute() {
            skip(&format!("{compiler} has no {library}"));
            continue;
        }
        let name = format!("{compiler}-{sanitizer}");
        let option = format!("-fsanitize={sanitizer}");
        let mut flags = vec!["-fopenmp", &option];
        if compiler.starts_with("clang") {
            flags.extend(CLANG.split(' '));
        }
        let Some(main) = compile(compiler, "main.c", &at(&name), &flags) else {
            continue;
        };
        // ThreadSanitizer doesn't know how the OpenMP runtime's threads wait for each other.
        let env = [("TSAN_OPTIONS", "report_bugs=0")];
        let script = ["sh", "-c", "$0 && $0", text(&main)];
        record(&at(&format!("{name}-own")), &[text(&main)], &env, 1);
        record(&at(&format!("{name}-script")), &script, &env, 1);
        assert_eq!(
            table::export(&at(&format!("{name}-own"))).len(),
            4,
            "{name}"
        );
        assert_eq!(
            table::export(&at(&format!("{name}-script"))).len(),
            8,
            "{name}"
        );
    }
    // What such a program opens is recorded too.
    let flags = ["-pthread", "-fsanitize=address"];
    let Some(host) = compile("gcc", "host.c", &at("host"), &flags) else {
        return;
    };
    let env = [
        ("KEEP_OPEN", "libgomp.so.1"),
        ("ASAN_OPTIONS", "detect_leaks=0"),
    ];
    record(
        &at("opened"),
        &[text(&host), text(&work), "local", "1", "1"],
        &env,
        1,
    );
    assert_eq!(table::export(&at("opened")).len(), 10);
}
