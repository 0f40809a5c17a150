//! Inline probes without room for a jump: a short jump leads to them, and instructions near by move for its sake.

use crate::{counts, executions};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::process;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{fixture, table};
use std::process::Command;

/// gcc's end of a `master` that two bytes end with: it is listed with what moves for it, and recorded.
#[test]
fn two_bytes_are_enough() {
    let fixture = Fixture::open("mg");
    let matrix = Matrix::get();
    let (gcc, pie) = (matrix.compiler("gcc"), matrix.link("pie"));
    let variant = &fixture.variants()[0].0;
    let Some(build) = fixture.build(variant, gcc, pie, "-O1", false) else {
        return;
    };
    let scan = Scan::of(&build.path);
    let short: Vec<_> = scan
        .sites
        .iter()
        .filter(|s| {
            s.reason
                .as_ref()
                .is_some_and(|r| r.starts_with("short jump"))
        })
        .collect();
    assert!(
        short.iter().any(|s| s.construct == "master"),
        "{build}: {:?}",
        scan.sites
    );
    assert!(short.iter().all(|s| s.outcome == "patchable"), "{short:?}");
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(&build, folder.path(), &[]);
    let out = folder.path().join("runs");
    table::record(&patched, &[], 2, &out, &table::ONE_EVENT).ok(&build.to_string());
    let counts = executions::reported(&table::runs(&out)[0]);
    assert!(counts["master"] > 100, "{build}: {counts:?}");
}

/// As if there were two bytes for every probe: nothing changes but where jumps lead.
#[test]
fn short_jumps_everywhere() {
    for name in ["cg", "loops", "mg", "shapes", "unwind"] {
        for build in Fixture::open(name).ordinary_builds("gcc") {
            let folder = tempfile::tempdir().expect("there is room for a patched program");
            let patched = table::patch(&build, folder.path(), &["--scarce"]);
            let scan = Scan::of(&patched);
            let inline =
                |s: &&ompfuse_tests::scan::Site| s.mechanism == "inline" && s.outcome == "patched";
            let usual = Scan::of(&build.path).sites;
            let usual = usual
                .iter()
                .filter(|s| s.mechanism == "inline" && s.outcome == "patchable")
                .count();
            let found = scan.sites.iter().filter(inline).count();
            assert!(2 * found >= usual, "{build}: {found} of {usual} probes");
            for threads in [1, 3] {
                counts::check(&build, &patched, threads, &scan);
            }
            let run = |path| process::run(process::clean(&mut Command::new(path), 3));
            let (before, after) = (run(&build.path), run(&patched));
            assert_eq!(after.outcome(), before.outcome(), "{build}");
            assert!(!fixture::counts(&after.text()).is_empty(), "{build}");
        }
    }
}
