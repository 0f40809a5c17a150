//! Forms that can't be treated as all others: calls through registers, runtimes without names, lies, later stripping.

use super::{BOTH, CLANG, GCC, ORDINARY, ordinary, recorded, run, script};
use ompfuse_tests::process;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{command, fixture, hostile, is_whole, table};
use std::path::Path;
use std::process::Command;

/// Code of the large model calls through registers only: all is listed, with its reason, and what can be patched is. Where
/// addresses are whole numbers, that is all of it.
#[test]
fn large_model() {
    const FIXED: &str = "-mcmodel=large -fno-PIE -no-pie";
    const FREE: &str = "-mcmodel=large -fPIE -pie";
    for (compiler, flags) in [(GCC, FIXED), (GCC, FREE), (CLANG, FIXED), (CLANG, FREE)] {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let text = format!("$CC {flags} $S/main.c $S/work.c -o program");
        let (Some(ordinary), Some(())) = (
            ordinary(compiler),
            script(folder.path(), compiler, &text, &[]),
        ) else {
            return;
        };
        let names = |scan: &Scan| {
            let mut names: Vec<_> = scan.sites.iter().filter_map(|s| s.entry.clone()).collect();
            names.sort();
            names
        };
        let program = folder.path().join("program");
        let scan = Scan::of(&program);
        assert_eq!(names(&scan), names(ordinary), "{flags}");
        let reasons = scan.sites.iter().filter(|s| s.outcome == "skipped");
        assert!(
            reasons.clone().all(|s| s.reason.is_some()),
            "{flags}: {:?}",
            scan.sites
        );
        let through = |s: &&ompfuse_tests::scan::Site| {
            let reason = s.reason.as_deref().unwrap_or_default();
            reason.starts_with("called through")
        };
        let left = scan.sites.iter().filter(through).count();
        assert!(
            left == 0 || flags.ends_with(" -pie"),
            "{flags}: {:?}",
            scan.sites
        );
        let original = run(&program, &[]);
        let patched = folder.path().join("patched");
        command::ok([Path::new("patch"), &program, Path::new("-o"), &patched]);
        assert_eq!(run(&patched, &[]).outcome(), original.outcome(), "{flags}");
    }
}

/// Headers and tables of other forms than the fixtures', with lies in them: done, or refused in one line.
#[test]
fn forms_that_lie() {
    let forms = [
        "$CC -fPIE -pie -Wl,-z,pack-relative-relocs,-z,now $S/main.c $S/work.c -o program",
        "$CC -fno-PIE -no-pie -Wl,--hash-style=sysv,-z,norelro,-z,noseparate-code $S/main.c $S/work.c -o program",
        "$CC -fPIE -pie -gz $S/main.c $S/work.c -o program; echo OVERLAY >> program",
        "$CC -fPIC -shared $S/work.c -o program",
        "$CC -c $S/main.c $S/work.c; gcc main.o work.o $(gcc -print-file-name=libgomp.a) -o program",
        "$CC -no-pie -Wl,-Tbss=0x200000 $S/main.c $S/work.c -o program",
    ];
    let seeds = if is_whole() { 30 } else { 10 };
    let (mut done, mut refused) = (0, 0);
    for text in forms {
        let folder = tempfile::tempdir().expect("there is room for a program");
        if script(folder.path(), GCC, text, &[]).is_none() {
            return;
        }
        let bytes = std::fs::read(folder.path().join("program")).expect("a build can be read");
        let (input, out) = (folder.path().join("input"), folder.path().join("out"));
        for seed in 0..seeds {
            std::fs::write(&input, hostile::mutated(&bytes, seed)).expect("a file can be written");
            let output = command::run([Path::new("patch"), &input, Path::new("-o"), &out]);
            let what = format!("{text}, mutation {seed}: {output:?}");
            assert!(matches!(output.status, 0 | 1), "{what}");
            if output.status == 1 {
                refused += 1;
                let errors = output.errors();
                assert!(
                    errors.lines().count() == 1 && errors.trim().len() > 10,
                    "{what}"
                );
                assert!(!out.exists(), "{what}");
            } else {
                done += 1;
                // What was written is what was promised.
                let verified = command::run([Path::new("verify"), &input, &out]);
                assert_eq!(verified.status, 0, "{what}: {verified:?}");
                std::fs::remove_file(&out).expect("it was written");
            }
        }
    }
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
}

#[test]
fn a_runtime_inside_that_lacks_names_is_refused() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let text = "$CC -c $S/main.c $S/work.c
        gcc main.o work.o $(gcc -print-file-name=libgomp.a) -o whole
        objcopy --strip-symbol=omp_get_num_threads whole incomplete
        strip -o nameless whole && rm whole main.o";
    if script(folder.path(), GCC, text, &[]).is_none() {
        return;
    }
    let forms = [
        (
            "nameless",
            "an OpenMP runtime is linked in, but without symbols its functions can't be found",
        ),
        (
            "incomplete",
            "an OpenMP runtime is linked in without its omp_get_num_threads",
        ),
    ];
    for (name, wanted) in forms {
        for refusing in ["scan", "patch"] {
            let output = command::run([Path::new(refusing), &folder.path().join(name)]);
            assert_eq!(output.status, 1, "{output:?}");
            assert!(output.errors().contains(wanted), "{output:?}");
            assert_eq!(output.errors().lines().count(), 1, "{output:?}");
        }
    }
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("a folder can be listed")
            .count(),
        3
    );
}

/// Nobody but the module itself knows where its runtime's functions are, those that tell teams apart included.
#[test]
fn leagues_of_a_runtime_inside() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let text = "$CC -O2 -fPIE -c $S/../teams/teams.c
        gcc -pie teams.o $(gcc -print-file-name=libgomp.a) -o program";
    if script(folder.path(), GCC, text, &[]).is_none() {
        return;
    }
    let (output, xus) = table::xus_of(&folder.path().join("program"), &[], 3);
    let ranges = xus.iter().filter(|x| x.construct == "range");
    let iterations: u64 = ranges.map(|x| x.number("iterations")).sum();
    let own = fixture::counts(&output.text());
    assert_eq!(Some(&iterations), own.get("iterations"));
}

/// LLVM's tools keep the layout of a file's segments. GNU's write the program headers where they always are, for which
/// there is no room: docs/limits.md says so, and such a file doesn't start.
#[test]
fn a_patched_program_can_be_stripped() {
    for compiler in BOTH {
        let folder = tempfile::tempdir().expect("there is room for a program");
        if script(folder.path(), compiler, ORDINARY, &["llvm-strip-19"]).is_none() {
            continue;
        }
        let program = folder.path().join("program");
        let original = run(&program, &[]);
        let patched = folder.path().join("patched");
        command::ok([Path::new("patch"), &program, Path::new("-o"), &patched]);
        let before = Scan::of(&patched);
        process::run(
            Command::new("llvm-strip-19")
                .arg("--strip-debug")
                .arg(&patched),
        )
        .ok("llvm-strip");
        assert_eq!(
            run(&patched, &[]).outcome(),
            original.outcome(),
            "{compiler}"
        );
        assert_eq!(Scan::of(&patched).sites, before.sites, "{compiler}");
        recorded(compiler, &patched, &[], &original);
        // Without the description there is nothing to name regions by.
        process::run(Command::new("llvm-strip-19").arg(&patched)).ok("llvm-strip");
        assert_eq!(
            run(&patched, &[]).outcome(),
            original.outcome(),
            "{compiler}"
        );
        let refused = command::run([Path::new("scan"), &patched]);
        assert!(
            refused.status == 1 && refused.errors().contains("was stripped"),
            "{refused:?}"
        );
    }
}
