//! The page's timeline, in a browser.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process, table};
use std::path::Path;
use std::process::Command;

#[test]
fn it_shows_every_unit_and_follows_mouse_keys_and_fingers() {
    let Some(driver) = crate::page::driver() else {
        return;
    };
    let Some(build) = Fixture::open("tasking")
        .ordinary_builds("gcc")
        .into_iter()
        .next()
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a run");
    let out = folder.path().join("out");
    table::record(&build.path, &[], 2, &out, &table::ONE_EVENT).ok("record");
    let run = &table::runs(&out)[0];
    let page = folder.path().join("page.html");
    command::ok([Path::new("report"), run, Path::new("--html"), &page]);
    let units: Vec<serde_json::Value> = (table::export(run).iter())
        .map(|x| serde_json::json!({"label": x.label, "own_ns": x.number("own_ns")}))
        .collect();
    let file = folder.path().join("units.json");
    let text = serde_json::to_vec(&units).expect("plain data");
    std::fs::write(&file, text).expect("there is room for a table");
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/page/timeline.cjs"));
    process::run(node.arg(driver.join("node_modules")).arg(&page).arg(&file)).ok("the timeline");
}
