//! What a report says first, against programs that know it (`fixtures/planted`): the ones of them that the benchmark `planted` has
//! marked for this. Their units sleep, so a busy machine changes little.

use ompfuse_tests::planted::judge::Verdict;
use ompfuse_tests::planted::{Programs, cases};
use ompfuse_tests::{each, repository};
use std::collections::BTreeSet;

#[test]
fn first_lines_are_right() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let mut programs = Programs::new(folder.path());
    let marked: Vec<_> = cases().into_iter().filter(|c| c.has("ci")).collect();
    assert_eq!(marked.len(), 15, "{marked:?}");
    let mut wrong = vec![];
    for (case, judged) in each(marked, |case| programs.judge(case)) {
        if judged.verdict != Verdict::Right {
            wrong.push(format!("{}: {judged:?}", case.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The modes that a source lists at its end, as `{"name", function},`.
fn modes(source: &str) -> Vec<String> {
    let lines = source.lines().filter_map(|l| l.trim().strip_prefix("{\""));
    lines
        .filter_map(|l| Some(l.split_once('"')?.0.to_owned()))
        .collect()
}

#[test]
fn every_program_has_a_run() {
    let mut programs = BTreeSet::new();
    for name in ["waits", "tasks", "teams", "overheads", "calls", "ranks"] {
        let path = repository().join(format!("fixtures/planted/{name}.c"));
        let source = std::fs::read_to_string(&path).expect("a source");
        programs.extend(modes(&source).iter().map(|mode| format!("{name}/{mode}")));
    }
    let listed: BTreeSet<String> = cases().into_iter().map(|c| c.program).collect();
    assert_eq!(listed, programs, "cases.toml, and the modes in the sources");
    assert!(listed.len() >= 60, "{} programs", listed.len());
}
