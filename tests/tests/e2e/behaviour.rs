//! What programs do besides computing: jump out of frames, walk their stacks, take signals anywhere, be debugged and
//! profiled by others. The programs are in `fixtures/behaviour`.

mod begins;
mod contexts;
mod ends;
mod limits;
mod own_process;
mod profilers;

use ompfuse_tests::process::{self, Output};
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, fixture, has, repository, table};
use std::path::{Path, PathBuf};
use std::process::Command;

const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// A program and its patched copy.
struct Pair {
    folder: tempfile::TempDir,
    original: PathBuf,
    patched: PathBuf,
    what: String,
}

impl Pair {
    /// Builds and patches; `None`, and said so, without the compiler.
    fn new(name: &str, compiler: &str, flags: &[&str]) -> Option<Pair> {
        Pair::patched_with(&[], name, compiler, flags)
    }

    /// With short jumps to inline probes, wherever one can be.
    fn scarce(name: &str) -> Option<Pair> {
        Pair::patched_with(&["--scarce"], name, "gcc", &[])
    }

    /// Of a program without section headers.
    fn without_sections(
        options: &[&str],
        name: &str,
        compiler: &str,
        flags: &[&str],
    ) -> Option<Pair> {
        const STRIP: &str = "llvm-objcopy-19";
        if !has(STRIP) {
            return None;
        }
        Pair::made(options, name, compiler, flags, |original| {
            let mut strip = Command::new(STRIP);
            process::run(strip.arg("--strip-sections").arg(original)).ok(STRIP);
        })
    }

    fn patched_with(options: &[&str], name: &str, compiler: &str, flags: &[&str]) -> Option<Pair> {
        Pair::made(options, name, compiler, flags, |_| ())
    }

    /// `finish`: what is done with the program before it is patched.
    fn made(
        options: &[&str],
        name: &str,
        compiler: &str,
        flags: &[&str],
        finish: impl Fn(&Path),
    ) -> Option<Pair> {
        if !has(compiler) {
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room for a program");
        let kind = if compiler.contains("++") { "cc" } else { "c" };
        let source = repository().join(format!("fixtures/behaviour/{name}.{kind}"));
        let original = folder.path().join(name);
        let patched = folder.path().join("patched").join(name);
        std::fs::create_dir(folder.path().join("patched")).expect("a folder can be made");
        let mut compile = Command::new(compiler);
        compile
            .args(["-O2", "-g", "-fopenmp"])
            .args(flags)
            .arg(source)
            .arg("-o");
        process::run(compile.arg(&original)).ok("the compiler");
        finish(&original);
        let mut arguments = vec![Path::new("patch"), &original, Path::new("-o"), &patched];
        arguments.extend(options.iter().map(Path::new));
        command::ok(arguments);
        let what = format!("{name} ({compiler} {flags:?} {options:?})");
        Some(Pair {
            folder,
            original,
            patched,
            what,
        })
    }

    fn all(name: &str, flags: &[&str]) -> Vec<Pair> {
        COMPILERS
            .iter()
            .filter_map(|c| Pair::new(name, c, flags))
            .collect()
    }

    fn run(&self, args: &[&str], threads: usize) -> Output {
        process::run(process::clean(&mut Command::new(&self.original), threads).args(args))
    }

    fn run_patched(&self, args: &[&str], threads: usize) -> Output {
        process::run(process::clean(&mut Command::new(&self.patched), threads).args(args))
    }

    /// Original, patched and recorded runs say the same. The result is the run's folder.
    #[track_caller]
    fn same(&self, args: &[&str], threads: usize) -> (Output, tempfile::TempDir) {
        let what = format!("{} {args:?}, {threads} threads", self.what);
        let original = self.run(args, threads).ok(&what);
        assert_eq!(
            self.run_patched(args, threads).outcome(),
            original.outcome(),
            "{what}, patched"
        );
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let recorded = table::record(
            &self.patched,
            args,
            threads,
            folder.path(),
            &table::ONE_EVENT,
        );
        assert_eq!(
            (recorded.status, recorded.text()),
            (original.status, original.text()),
            "{what}, recorded: {recorded:?}"
        );
        (original, folder)
    }

    /// As [`Pair::same`]; and tasks and iterations are on record as often as the program says.
    #[track_caller]
    fn same_and_counted(&self, args: &[&str], threads: usize) {
        let (output, folder) = self.same(args, threads);
        let own = fixture::counts(&output.text());
        let xus = table::export(&table::runs(folder.path())[0]);
        let tasks = xus.iter().filter(|x| x.construct == "task").count() as u64;
        let ranges = xus.iter().filter(|x| x.construct == "range");
        let iterations = ranges.map(|x| x.number("iterations")).sum::<u64>();
        assert_eq!(
            (tasks, iterations),
            (own["tasks"], own["iterations"]),
            "{} {args:?}",
            self.what
        );
    }
}

/// What an inline probe's thunk doesn't save stays as it is: the widest registers of this processor.
#[test]
fn vector_registers_live_through_inline_probes() {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").expect("Linux tells of its processors");
    let has = |flag: &str| cpu.split_whitespace().any(|word| word == flag);
    let widths = [("16", "-msse2"), ("32", "-mavx2"), ("64", "-mavx512f")];
    for (width, flag) in widths.iter().filter(|(_, flag)| has(&flag[2..])) {
        let width = format!("-DWIDTH={width}");
        let Some(pair) = Pair::new("vectors", "gcc", &[&width, flag]) else {
            continue;
        };
        let sites = Scan::of(&pair.patched).sites;
        let inline = sites.iter().filter(|s| s.construct == "loop");
        assert!(inline.count() > 0, "{}: no loop", pair.what);
        for threads in [1, 3] {
            pair.same_and_counted(&[], threads);
        }
    }
}

/// Arguments on the stack are where the jump's function got them from its caller.
#[test]
fn jumps_to_functions_with_stack_arguments() {
    for flags in [&[][..], &["-fno-plt"]] {
        for pair in Pair::all("tail", flags) {
            let sites = Scan::of(&pair.patched).sites;
            let many = |s: &&ompfuse_tests::scan::Site| {
                let entry = s.entry.as_deref().unwrap_or_default();
                [
                    "GOMP_parallel_loop_dynamic",
                    "GOMP_task",
                    "__kmpc_for_static_init_4",
                ]
                .contains(&entry)
            };
            let patched = sites
                .iter()
                .filter(many)
                .filter(|s| s.outcome == "patched")
                .count();
            let wanted = if pair.what.contains("gcc") { 2 } else { 1 };
            assert_eq!(patched, wanted, "{}", pair.what);
            for threads in [1, 2, 4] {
                pair.same_and_counted(&[], threads);
            }
        }
    }
}

#[test]
fn jumps_within_bodies() {
    for pair in Pair::all("jumps", &[]) {
        for threads in [1, 2, 4] {
            pair.same_and_counted(&["100", "inside"], threads);
        }
    }
}

/// What is recorded of such a program is its business; that it goes on, and that later loops are on record, is ours.
#[test]
fn jumps_out_of_regions() {
    for pair in Pair::all("jumps", &[]) {
        for size in ["100", "1000"] {
            let (output, folder) = pair.same(&[size, "outside"], 1);
            let own = fixture::counts(&output.text());
            let xus = table::export(&table::runs(folder.path())[0]);
            let ranges = xus.iter().filter(|x| x.construct == "range");
            let iterations = ranges.map(|x| x.number("iterations")).sum::<u64>();
            assert_eq!(iterations, own["iterations"], "{}", pair.what);
        }
    }
}

/// libgomp itself doesn't survive that.
#[test]
fn threads_that_end_in_regions() {
    if let Some(pair) = Pair::new("jumps", "clang-19", &[]) {
        let (_, folder) = pair.same(&["50", "thread"], 2);
        assert_eq!(table::runs(folder.path()).len(), 1);
    }
}

#[test]
fn stack_traces_are_the_same() {
    for flags in [&[][..], &["-O0"], &["-fno-omit-frame-pointer", "-no-pie"]] {
        let scarce = Pair::scarce("traces").filter(|_| flags.is_empty());
        for pair in Pair::all("traces", flags).into_iter().chain(scarce) {
            let (output, _) = pair.same(&[], 2);
            let lines: Vec<_> = output.text().lines().map(str::to_owned).collect();
            assert!(
                lines.len() > 8 && lines[0].starts_with("region: "),
                "{lines:?}"
            );
            assert!(
                lines
                    .iter()
                    .filter(|l| l.contains(": "))
                    .all(|l| l.split(' ').count() > 2),
                "{lines:?}"
            );
        }
    }
}

/// Function names of gdb's `bt` in every call of `spot`.
fn debugged(program: &Path, recording: Option<&Path>) -> Vec<Vec<String>> {
    let mut gdb = Command::new("gdb");
    process::clean(&mut gdb, 2).args([
        "-nx",
        "-batch",
        "-ex",
        "set startup-with-shell off",
        "-ex",
        "set debuginfod enabled off",
    ]);
    if let Some(folder) = recording {
        gdb.arg("-ex")
            .arg(format!("set environment OMPFUSE_DIR {}", folder.display()));
    }
    gdb.args(["-ex", "break spot", "-ex", "run"]);
    for _ in 0..7 {
        gdb.args(["-ex", "bt", "-ex", "continue"]);
    }
    let output = process::run(gdb.arg(program)).ok("gdb");
    let mut traces: Vec<Vec<String>> = Vec::new();
    for line in output.text().lines().filter(|l| l.starts_with('#')) {
        if line.starts_with("#0") {
            traces.push(Vec::new());
        }
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest.trim());
        let name = match rest.split_once(" in ") {
            Some((address, name)) if address.starts_with("0x") => name,
            _ => rest,
        };
        let name = name.split(' ').next().unwrap_or_default();
        traces
            .last_mut()
            .expect("a trace begins with #0")
            .push(name.to_owned());
    }
    traces
}

#[test]
fn debuggers_see_the_same_stack() {
    if !has("gdb") {
        return;
    }
    let scarce = Pair::scarce("traces");
    for pair in Pair::all("traces", &[]).into_iter().chain(scarce) {
        let original = debugged(&pair.original, None);
        assert_eq!(original.len(), 7, "{}: {original:?}", pair.what);
        assert!(original[0].iter().any(|f| f == "main"), "{original:?}");
        assert_eq!(debugged(&pair.patched, None), original, "{}", pair.what);
        // While it is recorded, functions of the runtime library stand between; the others are there in their order.
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let recorded = debugged(&pair.patched, Some(folder.path()));
        assert!(
            std::fs::read_dir(folder.path())
                .expect("a folder can be listed")
                .count()
                > 1,
            "nothing was recorded"
        );
        assert_eq!(recorded.len(), original.len());
        for (recorded, original) in recorded.iter().zip(&original) {
            let mut rest = recorded.iter();
            let all = original
                .iter()
                .filter(|f| *f != "??")
                .all(|f| rest.any(|r| r == f));
            assert!(all, "{}: {recorded:?} instead of {original:?}", pair.what);
        }
    }
}

/// Interrupted at every place, on either stack, and with a stack walk from there.
#[test]
fn signals_arrive_anywhere() {
    let (mut all, mut added) = (0, 0);
    for (flags, ways) in [
        (&[][..], &["plain", "stack", "walk"][..]),
        (&["-O0"], &["walk"]),
    ] {
        let scarce = Pair::scarce("signals").filter(|_| flags.is_empty());
        for pair in Pair::all("signals", flags).into_iter().chain(scarce) {
            for how in ways {
                let report = pair.folder.path().join("report");
                let args = [
                    "20",
                    how,
                    report.to_str().expect("a temporary path is text"),
                ];
                let (_, folder) = pair.same(&args, 2);
                // The last of the three runs was the recorded one.
                let text = std::fs::read_to_string(&report).expect("the program reports");
                let counts = fixture::counts(&text);
                let what = format!("{} {how}: {counts:?}", pair.what);
                assert!(counts["signals"] > 100, "{what}");
                all += 1;
                added += counts["added"];
                if *how == "walk" {
                    assert!(counts["walks"] > 0, "{what}");
                    assert_eq!(counts["broken"], 0, "{what}");
                }
                assert!(!table::runs(folder.path()).is_empty(), "{what}");
            }
        }
    }
    // Where a signal arrives is chance: in one run none may meet a probe, in all of them some do.
    assert!(
        all == 0 || added > 0,
        "{added} signals in added code in {all} runs"
    );
}
