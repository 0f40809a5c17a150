//! A patched program behaves as the original: with the runtime library and without, recorded and not.

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, some, table};
use std::path::Path;
use std::process::Command;

fn run(program: &Path, threads: usize, args: &[&str]) -> Output {
    process::run(process::clean(&mut Command::new(program), threads).args(args))
}

/// Compares a recorded run, whose stderr may hold ompfuse's own lines too.
#[track_caller]
fn same_when_recorded(
    build: &Build,
    program: &Path,
    threads: usize,
    args: &[&str],
    original: &Output,
) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let recorded = table::record(program, args, threads, folder.path(), &table::ONE_EVENT);
    let what = format!("{build} recorded, {threads} threads, {args:?}");
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
        let ordinary = build.optimisation == "-O2" && build.link == "pie";
        let with_library = tempfile::tempdir().expect("there is room for a patched program");
        let without = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, with_library.path(), &[]);
        // The same code: whether the library is found doesn't depend on level and flags.
        let dormant = ordinary.then(|| table::patch(&build, without.path(), &["--dormant"]));
        if ordinary {
            let files = std::fs::read_dir(without.path()).expect("a folder can be listed");
            assert_eq!(files.count(), 1, "{build}: a dormant program stands alone");
        }

        for &threads in if ordinary {
            &Matrix::get().threads[..]
        } else {
            &[2]
        } {
            // How a failure ends doesn't depend on level and flags.
            let all_args: [&[&str]; 2] = [&[], &["fail"]];
            for &args in if ordinary {
                &all_args[..]
            } else {
                &all_args[..1]
            } {
                let original = run(&build.path, threads, args);
                assert_eq!(
                    original.status,
                    if args.is_empty() { 0 } else { 3 },
                    "{build}: {original:?}"
                );
                let programs = [("patched", Some(&patched)), ("dormant", dormant.as_ref())];
                for (how, program) in programs {
                    let Some(program) = program else { continue };
                    let now = run(program, threads, args);
                    let what = format!("{build} {how}, {threads} threads, {args:?}");
                    assert_eq!(now.outcome(), original.outcome(), "{what}");
                }
                if ordinary || args.is_empty() {
                    same_when_recorded(&build, &patched, threads, args, &original);
                }
            }
        }
        if let Some(dormant) = dormant.filter(|_| !build.stripped) {
            same_when_recorded(&build, &dormant, 2, &[], &run(&build.path, 2, &[]));
        }
    }
}

for_each_fixture!(super::behaves_as_before);

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
