//! Labels: those of the paper, and equal in every run.

use ompfuse_tests::fixture::{Build, Fixture, Stability};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{recorded, some};
use std::collections::BTreeMap;

/// Figure 2 of Neill, Drebes and Pop: the labels of Listing 1.1 with line numbers for addresses, sorted as text.
const FIGURE_2: [&str; 16] = [
    "0.1.3.0.0.16",
    "0.1.3.0.1.16",
    "0.1.3.1.5.0",
    "0.1.3.1.5.0.1.7",
    "0.1.3.1.5.0.2.7",
    "0.1.3.1.5.0.3.7",
    "0.1.3.1.5.0.4.7",
    "0.1.3.1.5.4",
    "0.1.3.1.5.4.1.7",
    "0.1.3.1.5.4.2.7",
    "0.1.3.1.5.4.3.7",
    "0.1.3.1.5.4.4.7",
    "0.1.3.2.11.0",
    "0.1.3.2.11.2",
    "0.1.3.2.11.4",
    "0.1.3.2.11.6",
];

/// Lines by address, of a build with symbols.
fn lines_of(build: &Build) -> BTreeMap<u64, u32> {
    let expected = build
        .fixture
        .expected_regions(build.compiler, &build.variant);
    let regions = Scan::of(&build.path).regions(&expected, build.compiler);
    assert!(regions.missing.is_empty(), "{build}: {:?}", regions.missing);
    regions.lines
}

/// The labels with source lines for addresses, sorted.
fn with_lines(xus: &[Xu], lines: &BTreeMap<u64, u32>) -> Vec<String> {
    let mut labels: Vec<String> = xus
        .iter()
        .map(|x| table::with_lines(&x.label, lines))
        .collect();
    labels.sort();
    labels
}

/// The units of a run, of which there have to be some.
#[track_caller]
fn xus_of(run: &'static recorded::Run) -> &'static [Xu] {
    let xus = run.ok().xus();
    assert!(!xus.is_empty(), "no XUs: {:?}", run.output);
    xus
}

fn listing_gives_the_labels_of_the_paper(compiler: &str) {
    let mut lines = None;
    for build in some(Fixture::open("listing11").builds(compiler)) {
        // The build before a stripped one is the same with its debug information.
        if !build.stripped {
            lines = Some(lines_of(&build));
        }
        let lines = lines.as_ref().expect("a build with symbols comes first");
        // The program fixes its team: what the environment asks for makes no difference.
        for &threads in build.numbers_of_threads() {
            assert_eq!(
                with_lines(xus_of(recorded::run(&build, threads)), lines),
                FIGURE_2,
                "{build}"
            );
        }
    }
}

#[test]
fn listing11_gcc() {
    listing_gives_the_labels_of_the_paper("gcc");
}

#[test]
fn listing11_clang() {
    listing_gives_the_labels_of_the_paper("clang");
}

fn are_as_stable_as_promised(name: &str, compiler: &str) {
    let fixture = Fixture::open(name);
    for build in fixture.ordinary_builds(compiler) {
        let stability = fixture.stability(&build.variant);
        let mut first: Option<(usize, Vec<String>)> = None;
        for &threads in &Matrix::get().threads {
            // Whether there are sums beside the records makes no difference.
            let runs = [recorded::run, recorded::run_with_sums];
            let [one, two] = runs.map(|of| table::labels(xus_of(of(&build, threads))));
            let is_label =
                |l: &String| l.split('.').all(|c| c.parse::<u64>().is_ok()) && l.starts_with("0.");
            assert!(one.iter().all(is_label), "{build}: {one:?}");
            if stability == Stability::None {
                continue;
            }
            assert_same(&format!("{build}, {threads} threads, two runs"), &one, &two);
            let comparable = match stability {
                Stability::Threads => true,
                Stability::Teams => threads > 1,
                Stability::Runs | Stability::None => false,
            };
            if comparable {
                let (of, first) = first.get_or_insert_with(|| (threads, one.clone()));
                assert_same(
                    &format!("{build}, {threads} threads against {of}"),
                    &one,
                    first,
                );
            }
        }
    }
}

for_each_fixture!(super::are_as_stable_as_promised);

/// Compares sorted labels, and shows only what differs.
#[track_caller]
fn assert_same(what: &str, one: &[String], two: &[String]) {
    let mut difference: BTreeMap<&str, i64> = BTreeMap::new();
    for label in one {
        *difference.entry(label).or_default() += 1;
    }
    for label in two {
        *difference.entry(label).or_default() -= 1;
    }
    difference.retain(|_, n| *n != 0);
    let some: Vec<_> = difference.iter().take(10).collect();
    assert!(
        difference.is_empty(),
        "{what}: {} labels against {}, {} differ (more or fewer in the first): {some:?}",
        one.len(),
        two.len(),
        difference.len()
    );
}

/// One source has the same labels whichever compiler made the binary and however it optimised, since iterations are
/// counted from 0 and lines stand for addresses.
#[test]
fn compilers_agree() {
    for (name, variant) in [
        ("knapsack", ""),
        ("cg", "dynamic"),
        ("nqueens", ""),
        ("cholesky", "taskwait"),
        ("taskobj", ""),
    ] {
        let fixture = Fixture::open(name);
        let mut first: Option<(String, Vec<String>)> = None;
        for compiler in ["gcc", "clang"] {
            let builds = fixture.builds(compiler).into_iter();
            let is_it = |b: &Build| b.variant == variant && !b.stripped && b.link == "pie";
            for build in some(builds.filter(is_it)) {
                let run = recorded::run(&build, Matrix::get().ordinary_threads());
                let labels = with_lines(xus_of(run), &lines_of(&build));
                let (of, first) = first.get_or_insert_with(|| (build.to_string(), labels.clone()));
                assert_same(&format!("{build} against {of}"), &labels, first);
            }
        }
    }
}

/// Every XU has a label of its own.
#[test]
fn labels_are_unique() {
    for name in ["loops", "sync", "mg", "tasking", "taskloop"] {
        for build in ["gcc", "clang"]
            .iter()
            .flat_map(|c| Fixture::open(name).ordinary_builds(c))
        {
            // Where labels aren't stable, two of them may be equal too.
            if build.fixture.stability(&build.variant) == Stability::None {
                continue;
            }
            let [_, most] = Matrix::get().ends();
            let labels = table::labels(xus_of(recorded::run(&build, most)));
            let twice: Vec<_> = labels.windows(2).filter(|w| w[0] == w[1]).take(5).collect();
            assert!(twice.is_empty(), "{build}: {twice:?}");
        }
    }
}
