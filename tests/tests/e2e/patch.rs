//! A patched program behaves as the original: with the runtime library and without, recorded and not.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, recorded, some, table};
use std::path::Path;
use std::process::Command;

fn run(program: &Path, threads: usize, args: &[&str]) -> Output {
    process::run(process::clean(&mut Command::new(program), threads).args(args))
}

/// Compares a recorded run, whose stderr may hold ompfuse's own lines too.
#[track_caller]
fn same_when_recorded(what: &str, recorded: &Output, original: &Output) {
    assert_eq!(
        (recorded.status, recorded.text()),
        (original.status, original.text()),
        "{what}: {recorded:?}"
    );
    for line in original.errors().lines() {
        assert!(
            recorded.errors().lines().any(|l| l == line),
            "{what}: {line:?} is missing in {recorded:?}"
        );
    }
}

fn behaves_as_before(name: &str, compiler: &str) {
    for build in some(Fixture::open(name).builds(compiler)) {
        let patched = recorded::patched(&build);
        for &threads in build.numbers_of_threads() {
            let what = format!("{build}, {threads} threads");
            let original = recorded::original(&build, threads);
            assert_eq!(original.status, 0, "{what}: {original:?}");
            let now = run(patched, threads, &[]);
            assert_eq!(now.outcome(), original.outcome(), "{what}");
            same_when_recorded(&what, &recorded::run(&build, threads).output, original);
        }
    }
}

for_each_fixture!(super::behaves_as_before);

/// So does one that stands alone, and one that fails. The code is the same: none of this depends on level and flags.
fn behaves_as_before_alone_and_failing(name: &str, compiler: &str) {
    for build in some(Fixture::open(name).ordinary_builds(compiler)) {
        let alone = tempfile::tempdir().expect("there is room for a patched program");
        let dormant = table::patch(&build, alone.path(), &["--dormant"]);
        let files = std::fs::read_dir(alone.path()).expect("a folder can be listed");
        assert_eq!(files.count(), 1, "{build}: a dormant program stands alone");
        let patched = recorded::patched(&build);
        let record = |program: &Path, threads: usize, args: &[&str]| {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            table::record(program, args, threads, folder.path(), &table::ONE_EVENT)
        };
        for &threads in build.numbers_of_threads() {
            let what = format!("{build}, {threads} threads");
            let original = recorded::original(&build, threads);
            let now = run(&dormant, threads, &[]);
            assert_eq!(now.outcome(), original.outcome(), "{what}, dormant");

            let original = run(&build.path, threads, &["fail"]);
            assert_eq!(original.status, 3, "{what}: {original:?}");
            for (how, program) in [("patched", patched), ("dormant", &dormant)] {
                let now = run(program, threads, &["fail"]);
                let what = format!("{what}, {how}, failing");
                assert_eq!(now.outcome(), original.outcome(), "{what}");
            }
            let what = format!("{what}, recorded, failing");
            same_when_recorded(&what, &record(patched, threads, &["fail"]), &original);
        }
        let threads = Matrix::get().ordinary_threads();
        let what = format!("{build}, dormant, recorded");
        let original = recorded::original(&build, threads);
        same_when_recorded(&what, &record(&dormant, threads, &[]), original);
    }
}

mod others {
    for_some_fixtures!(crate::patch::behaves_as_before_alone_and_failing;
        cg by gcc, knapsack by clang, locks by gcc, mg by gcc, sections by clang, taskobj by gcc, unwind by clang);
}

/// What `scan` says of the original is what `patch` did, and the file says so itself.
#[test]
fn a_patched_program_tells_what_was_done_to_it() {
    for name in ["knapsack", "mg"] {
        for build in ["gcc", "clang"]
            .iter()
            .flat_map(|c| Fixture::open(name).ordinary_builds(c))
        {
            let folder = tempfile::tempdir().expect("there is room for a patched program");
            let patched = table::patch(&build, folder.path(), &[]);
            let (before, after) = (Scan::of(&build.path), Scan::of(&patched));
            assert_eq!(before.sites.len(), after.sites.len(), "{build}");
            assert!(
                before.sites.iter().any(|s| s.outcome == "patchable"),
                "{build} has nothing to patch"
            );
            for (b, a) in before.sites.iter().zip(&after.sites) {
                assert_eq!(
                    (b.address, &b.construct),
                    (a.address, &a.construct),
                    "{build}"
                );
                let expected = match b.outcome.as_str() {
                    "patchable" => "patched",
                    same => same,
                };
                assert_eq!(
                    a.outcome, expected,
                    "{build}: {} at {:#x}",
                    a.construct, a.address
                );
            }
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_and_verifies() {
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| Fixture::open("cg").ordinary_builds(c))
    {
        let folders =
            [(); 2].map(|()| tempfile::tempdir().expect("there is room for a patched program"));
        let [one, two] = folders
            .each_ref()
            .map(|f| table::patch(&build, f.path(), &[]));
        let bytes = std::fs::read(&one).expect("a patched program can be read");
        assert!(
            bytes == std::fs::read(&two).expect("a patched program can be read"),
            "{build}"
        );
        command::ok([Path::new("verify"), &build.path, &one]);

        // A byte of the code that no plan covers.
        let mut bytes = bytes;
        let text = text_section(&build.path);
        bytes[text] ^= 0xff;
        std::fs::write(&two, bytes).expect("a patched program can be written");
        let refused = command::run([Path::new("verify"), &build.path, &two]);
        assert_eq!(refused.status, 1, "{build}: {refused:?}");
    }
}

/// File offset of `.text`, whose first bytes (`_start` or cold code) no probe touches.
fn text_section(path: &Path) -> usize {
    let output = process::run(
        Command::new("objdump")
            .args(["-h", "-j", ".text"])
            .arg(path),
    )
    .ok("objdump");
    let text = output.text();
    let line = text
        .lines()
        .find(|l| l.contains(" .text "))
        .expect("objdump lists .text");
    let offset = line
        .split_whitespace()
        .nth(5)
        .expect("objdump prints the file offset");
    usize::from_str_radix(offset, 16).expect("objdump prints hexadecimal offsets")
}

#[test]
fn selected_sites_are_patched_and_no_others() {
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| Fixture::open("knapsack").ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &["--skip", "taskwait"]);
        let (before, after) = (Scan::of(&build.path).sites, Scan::of(&patched).sites);
        assert!(after.iter().any(|s| s.construct == "taskwait"), "{build}");
        for (before, site) in before.iter().zip(&after) {
            let probe = site.construct != "taskwait" && before.outcome == "patchable";
            assert_eq!(site.outcome == "patched", probe, "{build}: {site:?}");
        }
        let original = run(&build.path, 2, &[]);
        assert_eq!(
            run(&patched, 2, &[]).outcome(),
            original.outcome(),
            "{build}"
        );
    }
}
