//! The fixtures by themselves: right results in every build, with every number of threads.

use ompfuse_tests::fixture::{self, Fixture};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{recorded, some};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn run(program: &Path, threads: usize, args: &[&str]) -> Output {
    process::run(process::clean(&mut Command::new(program), threads).args(args))
}

/// Output without the line that may depend on the size of the team.
fn result(output: &Output) -> String {
    output
        .text()
        .lines()
        .filter(|l| !l.starts_with("tasks "))
        .collect::<Vec<_>>()
        .join("\n")
}

fn right_in_every_build(name: &str, compiler: &str) {
    let fixture = Fixture::open(name);
    let mut results: BTreeMap<String, String> = BTreeMap::new();
    let builds = fixture.builds(compiler).into_iter();
    for build in some(builds.filter(|b| !b.stripped)) {
        for &threads in build.numbers_of_threads() {
            let output = recorded::original(&build, threads).clone();
            let output = output.ok(&format!("{build}, {threads} threads"));
            assert!(output.text().ends_with("\nright\n"), "{build}: {output:?}");
            assert!(output.stderr.is_empty(), "{build}: {output:?}");
            let first = results
                .entry(build.variant.clone())
                .or_insert_with(|| result(&output));
            assert_eq!(*first, result(&output), "{build}, {threads} threads");
        }
    }
}

for_each_fixture!(super::right_in_every_build);

#[test]
fn every_fixture_is_tested() {
    let by = |compiler: &str| -> Vec<String> {
        let names = fixture::names().into_iter();
        names
            .filter(|n| Fixture::open(n).is_for(compiler))
            .collect()
    };
    let mut gcc = [BY_BOTH, BY_GCC].concat();
    gcc.sort_unstable();
    let mut clang = [BY_BOTH, BY_CLANG].concat();
    clang.sort_unstable();
    assert_eq!(
        by("gcc"),
        gcc,
        "the list in main.rs and the folders in fixtures/"
    );
    assert_eq!(
        by("clang"),
        clang,
        "the list in main.rs and the folders in fixtures/"
    );
}

#[test]
fn a_fixture_can_fail() {
    let fixture = Fixture::open("knapsack");
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| fixture.ordinary_builds(c))
    {
        let failing = run(&build.path, 2, &["fail"]);
        assert_eq!(failing.status, 3, "{build}: {failing:?}");
        assert_eq!(failing.errors(), "failing, as told\n");
        let nonsense = run(&build.path, 2, &["nonsense"]);
        assert_eq!(nonsense.status, 2, "{build}: {nonsense:?}");
    }
}
