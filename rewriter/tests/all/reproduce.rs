//! One flipped bit anywhere in a patched file, and it is rejected: by `verify`, or because the original doesn't give these
//! bytes again. `OMPFUSE_FLIPS=100000 cargo test --release -p ompfuse-rewriter --test all reproduce::` tries more places.

use crate::patch_support::Lab;
use ompfuse_progress::Progress;
use ompfuse_rewriter::patch::patch;
use ompfuse_rewriter::plan::PlanOptions;
use ompfuse_rewriter::reproduce::reproduce;
use ompfuse_rewriter::verify::verify;
use ompfuse_rewriter::{scan, scan_scarce, self_description};

const PROGRAM: &str = include_str!("patch_support/program.c");
const CLANG: &str = "clang-19 -fopenmp -L/usr/lib/llvm-19/lib";

/// An original and what was made of it.
fn case(command: &str, options: &PlanOptions) -> Option<(Vec<u8>, Vec<u8>)> {
    let lab = Lab::new();
    let path = lab.compile("program", PROGRAM, command)?;
    let old = std::fs::read(path).unwrap();
    let scan = scan(&old, "program").unwrap();
    let new = patch(&old, &scan, options).unwrap().bytes;
    Some((old, new))
}

/// Whether a patched file is accepted; by which check it isn't.
fn judged(old: &[u8], new: &[u8], library: &str) -> Result<(), &'static str> {
    verify(old, new, None).map_err(|_| "verify")?;
    let description = self_description(new, "patched").map_err(|_| "description")?;
    let description = description.ok_or("description")?;
    match reproduce(old, new, &description, library, Progress::default()) {
        Ok(true) => Ok(()),
        // Another version's file can't be compared.
        Ok(false) => Err("version"),
        Err(_) => Err("reproduction"),
    }
}

/// What has short jumps for tests is made again with them.
#[test]
fn files_with_short_jumps_are_made_again() {
    for command in ["gcc -fopenmp -O2 -g", "gcc -fopenmp -O3 -no-pie"] {
        let lab = Lab::new();
        let Some(path) = lab.compile("program", PROGRAM, command) else {
            continue;
        };
        let old = std::fs::read(path).unwrap();
        let options = PlanOptions::default();
        let new = |scan| patch(&old, &scan, &options).unwrap().bytes;
        let usual = new(scan(&old, "program").unwrap());
        let mut scarce = new(scan_scarce(&old, "program").unwrap());
        assert_ne!(usual, scarce, "{command}");
        let library = &options.runtime_library;
        assert_eq!(judged(&old, &scarce, library), Ok(()), "{command}");
        let last = scarce.len() - 1;
        scarce[last] ^= 1;
        assert!(judged(&old, &scarce, library).is_err(), "{command}");
    }
}

#[test]
fn patched_files_are_made_again() {
    let library = PlanOptions {
        runtime_library: "/opt/somewhere/libelse.so".into(),
        ..PlanOptions::default()
    };
    let dormant = PlanOptions {
        dormant: true,
        ..PlanOptions::default()
    };
    let some = PlanOptions {
        selected: Some([0, 3, 5].into()),
        ..PlanOptions::default()
    };
    for options in [PlanOptions::default(), library, dormant, some] {
        for command in ["gcc -fopenmp -O2 -g", "gcc -fopenmp -O2 -s -no-pie"] {
            let Some((old, new)) = case(command, &options) else {
                continue;
            };
            assert_eq!(
                judged(&old, &new, &options.runtime_library),
                Ok(()),
                "{command} {options:?}"
            );
        }
    }
}

#[test]
fn files_of_other_versions_are_told() {
    let options = PlanOptions {
        version: "0.0.1".into(),
        ..PlanOptions::default()
    };
    let Some((old, new)) = case("gcc -fopenmp -O2", &options) else {
        return;
    };
    assert_eq!(judged(&old, &new, &options.runtime_library), Err("version"));
}

#[test]
fn one_flipped_bit_anywhere() {
    let flips = std::env::var("OMPFUSE_FLIPS").ok();
    let flips: usize = flips.and_then(|f| f.parse().ok()).unwrap_or(100);
    for command in [
        "gcc -fopenmp -O2",
        "gcc -fopenmp -O3 -fno-plt -no-pie",
        &format!("{CLANG} -O2"),
    ] {
        let Some((old, new)) = case(command, &PlanOptions::default()) else {
            continue;
        };
        let mut state = 7u64;
        let mut random = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % limit
        };
        let mut caught = std::collections::BTreeMap::<_, usize>::new();
        for flip in 0..flips {
            // Half of them in what was added.
            let at = match flip % 2 {
                0 => random(new.len()),
                _ => old.len() + random(new.len() - old.len()),
            };
            let bit = 1 << random(8);
            let mut damaged = new.clone();
            damaged[at] ^= bit;
            let by = judged(&old, &damaged, &PlanOptions::default().runtime_library);
            assert!(
                by.is_err(),
                "{command}: bit {bit:#x} of byte {at:#x} is accepted"
            );
            *caught.entry(by.unwrap_err()).or_default() += 1;
        }
        println!("{command}: {caught:?}");
        assert!(caught["verify"] * 3 > flips, "{caught:?}");
    }
}
