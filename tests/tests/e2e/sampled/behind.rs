//! What the first cause of a report says of the lines behind it. Lines are found in the source by a mark.

use super::{is_allowed, number, program, record, source};
use ompfuse_tests::command;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

/// The line with the work.
fn hot() -> u64 {
    let text = std::fs::read_to_string(source("behind.c")).expect("the source");
    let line = text.lines().position(|line| line.contains("// HOT"));
    1 + line.expect("a mark") as u64
}

fn text(run: &Path) -> String {
    command::ok::<&OsStr>(["report".as_ref(), run.as_os_str()]).text()
}

/// The largest loss of a report whose cause is of a kind: what others do on the machine may be larger.
#[track_caller]
fn loss(run: &Path, kind: &str) -> Value {
    let report = command::report(run);
    let losses = report["losses"].as_array().expect("a list");
    let mut of_kind = losses.iter().filter(|l| {
        let is = l["cause"]["kind"].as_str();
        is.is_some_and(|is| is.starts_with(kind))
    });
    let first = of_kind.next();
    first
        .unwrap_or_else(|| panic!("{kind}: {losses:#?}"))
        .clone()
}

/// What the mark's line is called.
fn called() -> String {
    format!("most of it in hot, behind.c:{}", hot())
}

#[test]
fn causes_name_the_line_that_has_most_of_their_work() {
    if !is_allowed() {
        return;
    }
    for compiler in ["gcc -O1 -g -fopenmp", "clang-19 -O1 -g -fopenmp"] {
        let Some((folder, program)) = program("behind", compiler) else {
            continue;
        };
        let kinds = [
            ("serial", "serial_part"),
            ("uneven", "uneven"),
            ("critical", "held"),
        ];
        for (how, kind) in kinds {
            let out = folder.path().join(how);
            let run = record(&program, &[how, "2000000"], 2, &out, &["--sampling=1000"]);
            let loss = loss(&run, kind);
            let told = loss["told"].as_str().expect("a sentence");
            assert!(told.contains(&called()), "{compiler}, {how}: {told}");
            let behind = &loss["behind"];
            let most_in = &behind["most_in"];
            assert_eq!(
                (number(most_in, "line"), most_in["function"].as_str()),
                (hot(), Some("hot"))
            );
            assert!(
                2 * number(most_in, "samples") > number(behind, "samples"),
                "{behind}"
            );
            let text = text(&run);
            assert!(
                text.contains("Hottest lines: ompfuse report --lines"),
                "{text}"
            );
            if how != "serial" {
                is_on_page(&run, folder.path());
            }
        }
    }
}

/// The line has a bar and its text in the page's details of its region.
#[track_caller]
fn is_on_page(run: &Path, folder: &Path) {
    let page = folder.join("page.html");
    let words = [
        "report".as_ref(),
        run.as_os_str(),
        "--html".as_ref(),
        page.as_os_str(),
    ];
    command::ok::<&OsStr>(words);
    let page = std::fs::read_to_string(page).expect("a page");
    let line = format!("\"behind.c:{}\",\"hot\",null,\"for (long i", hot());
    assert!(page.contains("\"hot\":{") && page.contains(&line), "{line}");
}

#[test]
fn what_the_construct_says_is_not_said_again() {
    let Some((folder, program)) = program("behind", "gcc -O1 -g -fopenmp").filter(|_| is_allowed())
    else {
        return;
    };
    let record = |how: &str, n: &str, options: &[&str]| {
        record(
            &program,
            &[how, n],
            2,
            &folder.path().join(format!("{how}-{n}")),
            options,
        )
    };
    // The loop is its own hottest line.
    let run = record("own", "2000000", &["--sampling=1000"]);
    let loss = self::loss(&run, "uneven");
    assert!(number(&loss["behind"], "samples") > 10, "{loss:#}");
    assert!(loss["behind"]["most_in"].is_null(), "{loss:#}");
    // Too few samples say nothing, and what helps is said.
    let run = record("serial", "10000", &["--sampling=20"]);
    let text = text(&run);
    assert!(!text.contains("most of it in"), "{text}");
    let run = record("serial", "1000000", &["--sampling=20"]);
    let report = command::report(&run);
    let few = report["sampled"]["samples"].as_u64();
    let is_few = few.is_some_and(|n| (1..10).contains(&n));
    let text = self::text(&run);
    assert_eq!(
        is_few,
        text.contains("ompfuse record --sampling 1051"),
        "{few:?}: {text}"
    );
    // Without samples nothing is different.
    let run = record("uneven", "2000000", &["--sampling=off"]);
    let loss = self::loss(&run, "uneven");
    assert!(loss["behind"].is_null(), "{loss:#}");
    assert!(!self::text(&run).contains("--lines"));
}
