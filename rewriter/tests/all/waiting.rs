//! Whoever waits is told of all of the work, in parts.

use crate::patch_support::Lab;
use ompfuse_progress::Progress;
use ompfuse_rewriter::debug::DebugFiles;
use ompfuse_rewriter::patch::accept;
use ompfuse_rewriter::plan::{PlanOptions, plan};
use ompfuse_rewriter::reproduce::reproduce;
use ompfuse_rewriter::scan::{ScanOptions, scan_chosen};
use ompfuse_rewriter::self_description;
use ompfuse_rewriter::verify::verify_with;
use ompfuse_rewriter::write::write;
use std::sync::Mutex;

const PROGRAM: &str = include_str!("patch_support/program.c");

/// Shares that somebody was told of: more than one, and the whole in all.
fn assert_whole(what: &str, shares: Vec<f64>) {
    let sum: f64 = shares.iter().sum();
    assert!(shares.len() > 1, "{what}: {shares:?}");
    assert!((sum - 1.0).abs() < 1e-9, "{what}: {sum} of {shares:?}");
}

#[test]
fn all_shares_together_are_the_whole() {
    let lab = Lab::new();
    let Some(path) = lab.compile("program", PROGRAM, "gcc -fopenmp") else {
        return;
    };
    let old = std::fs::read(path).unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |share| told.lock().unwrap().push(share);
    let progress = Progress::new(&tell);
    let taken = || std::mem::take(&mut *told.lock().unwrap());

    let (debug, options) = (DebugFiles::default(), ScanOptions::default());
    let scan = scan_chosen(&old, "program", debug, options, progress).unwrap();
    assert_whole("scan", taken());
    let options = PlanOptions::default();
    let plan = plan(&old, scan, &options).unwrap();
    let new = write(&old, &plan).unwrap();
    accept(&old, &new, &plan, &tell).unwrap();
    assert_whole("accept", taken());
    verify_with(&old, &new, None, None, &tell).unwrap();
    assert_whole("verify", taken());
    let description = self_description(&new, "patched").unwrap().unwrap();
    let library = options.runtime_library;
    assert!(reproduce(&old, &new, &description, &library, progress).unwrap());
    assert_whole("reproduce", taken());
    // Of a part, such a share.
    progress.part(0.5).part(0.5).steps(1, 2);
    assert_eq!(taken(), [0.125]);
}
