//! Which functions make a region slower, by the samples of two builds.

use super::{is_allowed, record, source};
use ompfuse_tests::{command, compile};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Three runs of a build.
fn runs(folder: &Path, name: &str, options: &str) -> Option<PathBuf> {
    let program = folder.join(name).join("changed");
    std::fs::create_dir(folder.join(name)).expect("there is room");
    let how = format!("gcc -O1 -g -fopenmp {options}");
    if !compile::files(&[source("changed.c")], &program, &how) {
        return None;
    }
    let out = folder.join(format!("runs-{name}"));
    for _ in 0..3 {
        record(&program, &[], 2, &out, &["--sampling=1000"]);
    }
    Some(out)
}

/// Functions that changed, of the pair of regions with the largest change.
fn changed(a: &Path, b: &Path) -> (bool, Vec<String>) {
    let (a, b) = (a.to_string_lossy(), b.to_string_lossy());
    let diff: Value = command::json(["diff", &*a, &*b, "--format=json"]);
    let pair = &diff["pairs"][0];
    let is_certain = pair["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|c| c["quantity"] == "time" && c["finding"] == "changed");
    let all = pair["functions"].as_array().into_iter().flatten();
    let name = |f: &Value| f["name"].as_str().expect("a name").to_owned();
    (is_certain, all.map(name).collect())
}

#[test]
fn a_region_that_changed_names_the_function_that_did() {
    let folder = tempfile::tempdir().expect("there is room");
    let builds = [("a", ""), ("again", ""), ("more", "-DMORE=4")];
    let all = builds.map(|(name, options)| runs(folder.path(), name, options));
    let [Some(a), Some(again), Some(more)] = all else {
        return;
    };
    if !is_allowed() {
        return;
    }
    // Beside other programs a change of the region may be uncertain. Then nothing is told of functions.
    let (is_certain, named) = changed(&a, &more);
    match is_certain {
        true => assert_eq!(named, ["other"]),
        false => assert!(named.is_empty(), "{named:?}"),
    }
    let (_, named) = changed(&a, &again);
    assert!(named.is_empty(), "{named:?}");
}
