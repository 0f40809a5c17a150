//! `ompfuse verify` rejects whatever isn't exactly what `ompfuse patch` made.
//!
//! `OMPFUSE_FLIPS=5000 cargo test --release -p ompfuse-tests damage::` tries more places.

mod lies;

use ompfuse_tests::command;
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::hostile::Random;
use ompfuse_tests::table;
use std::path::Path;

#[test]
fn one_flipped_bit_is_rejected() {
    let flips = std::env::var("OMPFUSE_FLIPS").ok();
    let flips: usize = flips.and_then(|f| f.parse().ok()).unwrap_or(60);
    let both = ["gcc", "clang"];
    for build in both
        .iter()
        .flat_map(|c| Fixture::open("sync").ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        let verify = || command::run([Path::new("verify"), &build.path, &patched]);
        assert_eq!(verify().status, 0, "{build}");
        let bytes = std::fs::read(&patched).expect("a patched program can be read");
        let original = std::fs::metadata(&build.path)
            .expect("a build is there")
            .len() as usize;
        let mut random = Random::new(11);
        for flip in 0..flips {
            let at = match flip % 2 {
                0 => random.below(bytes.len()),
                _ => original + random.below(bytes.len() - original),
            };
            let bit = 1 << random.below(8);
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            std::fs::write(&patched, &damaged).expect("a file can be written");
            let output = verify();
            let what = format!("{build}: bit {bit:#x} of byte {at:#x}: {output:?}");
            assert_eq!(output.status, 1, "{what}");
            assert_eq!(output.errors().lines().count(), 1, "{what}");
        }
    }
}

/// Two files that both are what they say, but not of each other.
#[test]
fn another_programs_copy_is_rejected() {
    let builds = Fixture::open("sync").ordinary_builds("gcc");
    let others = Fixture::open("knapsack").ordinary_builds("gcc");
    for (build, other) in builds.iter().zip(&others) {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(build, folder.path(), &[]);
        for (original, copy) in [
            (&other.path, &patched),
            (&build.path, &build.path),
            (&patched, &build.path),
        ] {
            let output = command::run([Path::new("verify"), original, copy]);
            assert_eq!(output.status, 1, "{output:?}");
            assert_eq!(output.errors().lines().count(), 1, "{output:?}");
        }
    }
}
