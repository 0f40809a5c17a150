//! One account of time: text, page and JSON say the same, however a program was recorded. That it adds up is checked for every report
//! that any test reads as JSON ([`ompfuse_tests::account`]).

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, each, few, schema, table};
use std::path::Path;

/// A share as the first line has it.
fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn says_the_same(what: &str, run: &Path) {
    let report: serde_json::Value =
        serde_json::from_str(&schema::printed(run)).expect("JSON was asked for");
    let text = command::ok([Path::new("report"), run]).text();
    let page = run.with_extension("html");
    let arguments = [
        Path::new("report"),
        run,
        Path::new("--html"),
        page.as_path(),
    ];
    command::ok(arguments);
    let page = std::fs::read_to_string(&page).expect("the page was written");
    let first = text.lines().next().expect("a line");
    let share = report["lost_s"].as_f64().expect("seconds")
        / report["available_s"].as_f64().expect("seconds");
    if share >= 0.02 {
        assert!(
            first.contains(&percent(share)),
            "{what}: {share} in {first}"
        );
    }
    let [headline, ..] = first.split(" (").collect::<Vec<_>>()[..] else {
        panic!("{first}");
    };
    // Apostrophes have a name in pages.
    let headline = headline.replace('\'', "&#39;");
    let in_page = page.replace("&#x27;", "&#39;").replace('\'', "&#39;");
    assert!(
        in_page.contains(&headline),
        "{what}: no {headline} in the page"
    );
    if let Some(parallel) = report["account"]["efficiencies"]["parallel"].as_f64() {
        let efficiency = format!("parallel efficiency {parallel:.2}");
        for (view, is) in [("text", &text), ("page", &page)] {
            assert!(
                is.contains(&efficiency),
                "{what}: no {efficiency} in the {view}"
            );
        }
    }
    let lines = text.lines().count();
    // What is on record in part is told first.
    let most = if text.contains("recorded in part") {
        46
    } else {
        40
    };
    assert!(lines <= most, "{what}: {lines} lines:\n{text}");
}

#[test]
fn text_page_and_json_say_the_same() {
    let names = ["cg", "knapsack", "locks", "sections", "cancel", "teams"];
    let modes: [(&str, &[&str]); 4] = [
        ("records", &[]),
        ("sums", &["--units=sums"]),
        ("sampled", &["--units", "every=4"]),
        ("functions", &["--functions", "*"]),
    ];
    let builds = { few(&names, 2).into_iter() }
        .map(|name| few(&Fixture::open(name).ordinary_builds("gcc"), 1));
    for (build, _) in each(builds.flatten(), |_| Some(())) {
        let folder = tempfile::tempdir().expect("there is room for runs");
        for (mode, options) in modes {
            let out = folder.path().join(mode);
            let options = [&["--events", "none"], options].concat();
            table::record(&build.path, &[], 3, &out, &options).ok(mode);
            says_the_same(&format!("{build}, {mode}"), &table::runs(&out)[0]);
        }
    }
}
