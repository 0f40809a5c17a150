//! Programs whose OpenMP code is in libraries, loaded at the start or later, or in programs that they start: recorded
//! without a change of any installed file.

mod installed;
mod namespaces;
mod refused;
mod runtimes;
mod variables;

use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, has, repository, table};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a source of `tests/plugins`; `None` where the compiler is missing.
fn compile(compiler: &str, source: &str, out: &Path, flags: &[&str]) -> Option<PathBuf> {
    if !has(compiler) {
        return None;
    }
    let folder = out.parent().expect("an output has a folder");
    std::fs::create_dir_all(folder).expect("a folder can be made");
    let mut command = Command::new(compiler);
    command
        .args(["-O2", "-g", "-o"])
        .arg(out)
        .arg(repository().join("tests/plugins").join(source))
        .args(flags);
    process::run(&mut command).ok(&format!("{command:?}"));
    Some(out.to_owned())
}

/// Runs a command as it is, and under `ompfuse record`, `times` times: the same output and status. Returns the last
/// recording's output.
#[track_caller]
fn record(folder: &Path, command: &[&str], env: &[(&str, &str)], times: usize) -> Output {
    let env = || env.iter().copied();
    let mut original = Command::new(command[0]);
    process::clean(&mut original, 2)
        .args(&command[1..])
        .envs(env());
    let original = process::run(&mut original);
    let again = || {
        let mut recorder = command::with_threads(2);
        recorder.arg("record").args(table::ONE_EVENT);
        recorder.arg("-o").arg(folder).arg("--").args(command);
        let recorded = process::run(recorder.envs(env()));
        assert_eq!(
            (recorded.status, recorded.text()),
            (original.status, original.text()),
            "{command:?}: {recorded:?}"
        );
        recorded
    };
    for _ in 1..times {
        again();
    }
    again()
}

#[track_caller]
fn report(folder: &Path) -> Value {
    let report = command::report(folder);
    assert_eq!(report["notes"], Value::Array(Vec::new()), "{report:#}");
    report
}

/// Executions of all regions of a kind in a module, named by the end of its path.
#[track_caller]
fn executions(report: &Value, module: &str, construct: &str) -> u64 {
    let list = |name: &str| report[name].as_array().expect("a list").clone();
    let named = |m: &&Value| m["path"].as_str().expect("a path").ends_with(module);
    let modules = list("modules");
    let found = modules.iter().find(named);
    let id = found.unwrap_or_else(|| panic!("no {module} in {modules:?}"))["build_id"].clone();
    let regions = list("regions");
    let wanted = regions
        .iter()
        .filter(|r| r["module"] == id && r["construct"] == construct);
    wanted
        .map(|r| r["executions"].as_u64().expect("a number"))
        .sum()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours is text")
}

/// A program of this name, and the library of `work.c`.
fn with_library(name: &str, folder: &Path) -> Option<[PathBuf; 2]> {
    let flags = ["-fopenmp", "-fPIC", "-shared"];
    let source = format!("{name}.c");
    Some([
        compile("gcc", &source, &folder.join(name), &["-pthread"])?,
        compile("gcc", "work.c", &folder.join("work.so"), &flags)?,
    ])
}

fn reopened(compiler: &str) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let Some(host) = compile("gcc", "host.c", &at("host"), &["-pthread"]) else {
        return;
    };
    let flags = ["-fopenmp", "-fPIC", "-shared"];
    let Some(library) = compile(compiler, "work.c", &at("work.so"), &flags) else {
        return;
    };
    let runtime = match compiler {
        "gcc" => "libgomp.so.1",
        _ => "/usr/lib/llvm-19/lib/libomp.so.5",
    };
    let env = [("KEEP_OPEN", runtime)];
    // More often than there are numbers for modules.
    for (mode, times, threads) in [("local", 300, 1), ("global", 50, 1), ("local", 50, 3)] {
        let out = at(&format!("{mode}-{threads}"));
        let (n, t) = (times.to_string(), threads.to_string());
        let args = [text(&host), text(&library), mode, &n, &t];
        let recorded = record(&out, &args, &env, 1);
        assert!(recorded.errors().contains("work.so: "), "{recorded:?}");
        let run = &table::runs(&out)[0];
        let files = std::fs::read_dir(run).expect("a run is a folder");
        let names = files.map(|f| f.expect("a file").file_name());
        let late = names.filter(|n| n.to_string_lossy().starts_with("module-"));
        assert_eq!(late.count(), 0, "the first module starts the recording");
        let calls = times * threads;
        assert_eq!(table::export(run).len(), 10 * calls, "{mode} {threads}");
        let report = report(run);
        let counted = executions(&report, "work.so", "parallel");
        assert_eq!(counted, calls as u64, "{report:#}");
    }
}

#[test]
fn reopened_gcc() {
    reopened("gcc");
}

#[test]
fn reopened_clang() {
    let clang = Matrix::get().compiler("clang").command("c");
    reopened(clang.expect("clang compiles C"));
}

/// libgomp is closed with its last user, and its threads run on: what is recorded must not crash more than the original.
#[test]
fn the_openmp_runtime_stays() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let Some([host, library]) = with_library("host", folder.path()) else {
        return;
    };
    let out = at("runs");
    let args = [text(&library), "local", "50", "1"];
    let recorded = table::record(&host, &args, 2, &out, &table::ONE_EVENT);
    let said = (recorded.status, recorded.text());
    assert_eq!(said, (3, "sum 2250\n".to_owned()), "{recorded:?}");
    assert_eq!(table::export(&table::runs(&out)[0]).len(), 500);
}

/// Libraries that look for others beside themselves, constructors, exceptions, and a program that is recording already.
#[test]
fn a_late_library_with_others_beside_it() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let (l, o) = (
        "-Wl,-rpath,$ORIGIN/../libs:$ORIGIN",
        "-Wl,--enable-new-dtags",
    );
    let shared = ["-fPIC", "-shared"];
    let parallel = ["-fopenmp", "-fPIC", "-shared"];
    let libs = format!("-L{}", text(&at("libs")));
    let plugins = format!("-L{}", text(&at("plugins")));
    let outer = [
        "-fopenmp", "-fPIC", "-shared", &libs, &plugins, "-lwork", "-lleaf", l, o,
    ];
    let built = [
        compile("gcc", "work.c", &at("libs/libwork.so"), &parallel),
        compile("gcc", "leaf.c", &at("plugins/libleaf.so"), &shared),
        compile("g++", "outer.cc", &at("plugins/outer.so"), &outer),
        compile("gcc", "main.c", &at("main"), &["-fopenmp"]),
    ];
    let [Some(_), Some(_), Some(outer), Some(main)] = built else {
        return;
    };
    let by_name = text(outer.parent().expect("it is in a folder")).to_owned();
    // By path, by a relative path through a link, and by name through the search path.
    std::os::unix::fs::symlink(&outer, at("plugins/link.so")).expect("a link can be made");
    for (which, wanted) in [(text(&outer), "path"), ("outer.so", "name")] {
        let out = at(wanted);
        let env = [("LD_LIBRARY_PATH", by_name.as_str())];
        let env = if wanted == "name" { &env[..] } else { &[] };
        let link = at("plugins/link.so");
        let args = [text(&main), which, text(&link), which];
        record(&out, &args, env, 2);
        for run in table::runs(&out) {
            let report = report(&run);
            assert_eq!(executions(&report, "/main", "parallel"), 1);
            assert_eq!(executions(&report, "/libwork.so", "parallel"), 3);
            // Opened three times: constructor, call and destructor.
            assert_eq!(executions(&report, "/outer.so", "parallel"), 9);
            assert_eq!(table::export(&run).len(), 4 + 3 * (6 + 7 + 6 + 5));
            let files = std::fs::read_dir(&run).expect("a run is a folder");
            let names = files.map(|f| f.expect("a file").file_name());
            let late = names.filter(|n| n.to_string_lossy().starts_with("module-"));
            assert_eq!(
                late.count(),
                2,
                "the libraries came after the process's header"
            );
        }
        // Labels tell modules apart in the same way in every run.
        let report = command::report(text(&out));
        assert_eq!(report["unmatched"], Value::Array(Vec::new()), "{report:#}");
    }
}

#[test]
fn a_script_and_what_it_starts() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let flags = ["-fopenmp", "-fPIC", "-shared"];
    let (Some(host), Some(library), Some(main), Some(audit)) = (
        compile("gcc", "host.c", &at("host"), &["-pthread"]),
        compile("gcc", "work.c", &at("work.so"), &flags),
        compile("gcc", "main.c", &at("main"), &["-fopenmp"]),
        compile("gcc", "audit.c", &at("audit.so"), &["-fPIC", "-shared"]),
    ) else {
        return;
    };
    let script = at("script");
    let lines = format!(
        "#!/bin/sh\necho $0 $1\n'{}' '{}' local 2 1\necho $?\nexec '{}'\n",
        text(&host),
        text(&library),
        text(&main)
    );
    std::fs::write(&script, lines).expect("a script can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("it can be made executable");
    let out = at("runs");
    let env = [("KEEP_OPEN", "libgomp.so.1"), ("LD_AUDIT", text(&audit))];
    let recorded = record(&out, &[text(&script), "x"], &env, 1);
    assert!(recorded.errors().contains("audited"), "{recorded:?}");
    let run = &table::runs(&out)[0];
    assert_eq!(table::export(run).len(), 20 + 4);
    let report = report(run);
    assert_eq!(executions(&report, "/work.so", "parallel"), 2);
    assert_eq!(executions(&report, "/main", "parallel"), 1);
}

/// Libraries are patched by a process of its own: the program sees nothing of it, neither a signal nor a child.
#[test]
fn no_child_is_seen() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let Some([parent, library]) = with_library("parent", folder.path()) else {
        return;
    };
    let said = record(&at("runs"), &[text(&parent), text(&library)], &[], 1).text();
    assert_eq!(said, "sum 45, 0 signals, 0 reaped, 0 left\n");
    assert_eq!(table::export(&at("runs")).len(), 10);
}

/// A selection is for everything that is loaded; a pattern of one module leaves the others alone.
#[test]
fn libraries_can_be_selected() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let Some([host, library]) = with_library("host", folder.path()) else {
        return;
    };
    let args = [text(&library), "local", "1", "1"];
    let recorded = |name: &str, selection: [&str; 2]| {
        let flags = [table::ONE_EVENT, selection].concat();
        table::record(&host, &args, 2, &at(name), &flags)
    };
    for (name, selection) in [
        ("a", ["--skip", "lib:other*"]),
        ("b", ["--select", "lib:work*"]),
        ("c", ["--select", "parallel"]),
    ] {
        let recorded = recorded(name, selection);
        assert_eq!(recorded.status, 3, "{selection:?}: {recorded:?}");
        let report = report(&at(name));
        assert_eq!(executions(&report, "/work.so", "parallel"), 1);
    }
    for (name, selection) in [
        ("d", ["--skip", "lib:work.so"]),
        ("e", ["--select", "lib:other*"]),
        ("f", ["--select", "nowhere"]),
    ] {
        let recorded = recorded(name, selection);
        let said = recorded.errors();
        assert!(
            said.contains("nothing was recorded"),
            "{selection:?}: {said}"
        );
    }
}

/// A program that only asks the runtime, or sets it, has nothing that could be patched: its libraries are recorded, whenever they come.
#[test]
fn a_program_with_questions_only() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let at = |name: &str| folder.path().join(name);
    let parallel = ["-fopenmp", "-fPIC", "-shared"];
    let (libs, path) = (format!("-L{}", text(folder.path())), "-Wl,-rpath,$ORIGIN");
    let linked = ["-fopenmp", &libs, "-lwork", path];
    let (Some(_), Some(asking), Some(linked), Some(alone)) = (
        compile("gcc", "work.c", &at("libwork.so"), &parallel),
        compile("gcc", "asking.c", &at("libasking.so"), &parallel),
        compile(
            "gcc",
            "asking.c",
            &at("linked"),
            &[&linked[..], &["-DLINKED"]].concat(),
        ),
        compile("gcc", "asking.c", &at("alone"), &["-fopenmp"]),
    ) else {
        return;
    };
    for (program, argument) in [(&linked, None), (&alone, Some(at("libwork.so")))] {
        let out = at(&format!("{}-runs", program.display()));
        let argument = argument.as_deref().map(text);
        let args: Vec<&str> = [text(program)].into_iter().chain(argument).collect();
        let said = record(&out, &args, &[], 1).errors();
        assert!(!said.contains("nothing"), "{said}");
        assert_eq!(executions(&report(&out), "libwork.so", "parallel"), 10);
        let bytes = |name: &str| {
            process::run(
                command::with_threads(2)
                    .arg(name)
                    .args(["-o", text(&at("p"))])
                    .arg("--")
                    .args(&args),
            )
        };
        assert_eq!(bytes("profile").status, 0);
    }
    // A library that only asks is no reason to say anything; with nothing else, nothing is recorded.
    let out = at("none");
    let recorded = table::record(&alone, &[text(&asking)], 2, &out, &table::ONE_EVENT);
    let said = recorded.errors();
    assert_eq!(recorded.status, 1, "{said}");
    assert!(said.contains("can have a probe (`ompfuse scan"), "{said}");
    assert!(!said.contains("libasking"), "{said}");
}

#[test]
fn nothing_to_record_is_said() {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let out = folder.path().join("runs");
    let recorded = table::record(Path::new("/bin/true"), &[], 2, &out, &table::ONE_EVENT);
    assert_eq!(recorded.status, 1, "{recorded:?}");
    let errors = recorded.errors();
    assert!(errors.contains("/bin/true"), "{errors}");
    assert!(errors.contains("calls an OpenMP runtime"), "{errors}");
}
