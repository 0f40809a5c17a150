//! The large matrix: every version of a compiler with every level and every set of flags. `scan` agrees with objdump and the
//! source, the patched program does what the original does, and what was recorded is what the program counted itself.
//!
//! A selection is tested in which every version meets every level and every set of flags;
//! all of it with `OMPFUSE_MATRIX=full cargo test --release -p ompfuse-tests -- matrix::` (half an hour on two cores;
//! `OMPFUSE_MATRIX=2/5` is the second fifth of it). That also has random settings for each build.

use crate::counts;
use crate::scan::complaints;
use crate::settings;
use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::matrix::{Compiler, Link, Matrix};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{is_whole, skip, table};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

/// Threads that the programs are run with: more than cores in continuous integration, and no power of two.
const THREADS: usize = 3;

/// At least so many builds of each version are selected.
const SELECTED: usize = 12;

/// One build of the matrix.
#[derive(Debug, Clone)]
struct Cell {
    fixture: String,
    variant: String,
    level: &'static str,
    set: &'static Link,
}

/// How much is tested.
enum Extent {
    Selection,
    /// This part of so many.
    Full(usize, usize),
}

fn extent() -> Extent {
    match std::env::var("OMPFUSE_MATRIX").as_deref() {
        Err(_) => Extent::Selection,
        Ok("full") => Extent::Full(1, 1),
        Ok(part) => {
            let (nth, of) = part.split_once('/').expect("full, or a part such as 2/5");
            let number = |text: &str| text.parse().expect("full, or a part such as 2/5");
            Extent::Full(number(nth), number(of))
        }
    }
}

/// The builds of a version, the `number`-th in the matrix.
fn cells(compiler: &'static Compiler, number: usize, extent: &Extent) -> Vec<Cell> {
    let matrix = Matrix::get();
    let own = |name: &String| {
        let fixture = Fixture::open(name);
        !fixture.is_benchmark() && fixture.has_compiler(compiler)
    };
    let has = |what: &str| !compiler.without.iter().any(|w| w == what);
    let levels: Vec<&String> = matrix.levels.iter().filter(|l| has(l)).collect();
    let sets: Vec<&Link> = matrix.sets.iter().filter(|s| has(&s.name)).collect();
    let combinations = levels.len() * sets.len();
    let fixtures: Vec<String> = fixture::names().into_iter().filter(own).collect();
    // Of a language with few fixtures, each is taken several times.
    let rounds = SELECTED.div_ceil(fixtures.len().max(1));
    let is_half = !is_whole() && fixtures.len() >= 2 * SELECTED - 2;
    let mut out = Vec::new();
    for (nth, fixture) in fixtures.into_iter().enumerate() {
        let variants = Fixture::open(&fixture).variants();
        let cell = |variant: usize, combination: usize| Cell {
            fixture: fixture.clone(),
            variant: variants[variant % variants.len()].0.clone(),
            level: levels[combination % levels.len()],
            set: sets[combination / levels.len() % sets.len()],
        };
        match extent {
            // Neighbours differ in level and flags, and versions: 7 has no divisor in common with the number of combinations, and
            // two sets of flags further each level meets others. Of many fixtures every other one is taken.
            Extent::Selection if is_half && (nth + number) % 2 == 1 => {}
            Extent::Selection => {
                let at = if is_half { nth / 2 } else { nth } + number;
                let next = 2 * levels.len() * number;
                out.extend((0..rounds).map(|r| cell(nth + number + r, at * 7 + next + r * 11)));
            }
            Extent::Full(part, of) => out.extend(
                (0..variants.len() * combinations)
                    .filter(|c| c % of == part - 1)
                    .map(|c| cell(c / combinations, c % combinations)),
            ),
        }
    }
    out
}

#[test]
fn the_selection_has_every_pair() {
    let matrix = Matrix::get();
    let mut both = BTreeSet::new();
    for (number, compiler) in matrix.versions.iter().enumerate() {
        let cells = cells(compiler, number, &Extent::Selection);
        let mut met: BTreeSet<&str> = cells.iter().map(|c| c.level).collect();
        met.extend(cells.iter().map(|c| c.set.name.as_str()));
        let all = matrix.levels.len() + matrix.sets.len();
        assert_eq!(met.len(), all - compiler.without.len(), "{}", compiler.name);
        both.extend(cells.iter().map(|c| (c.level, &c.set.name)));
    }
    assert_eq!(both.len(), matrix.levels.len() * matrix.sets.len());
}

fn run(program: &Path) -> Output {
    process::run(process::clean(&mut Command::new(program), THREADS))
}

/// Everything that is tested of one build.
fn check(build: &Build, extent: &Extent) {
    let scan = Scan::of(&build.path);
    let wrong = complaints(build, &scan);
    assert!(wrong.is_empty(), "{build}: {}", wrong.join("\n"));
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    let (original, now) = (run(&build.path), run(&patched));
    assert_eq!(now.outcome(), original.outcome(), "{build}");
    // Faster arithmetic than IEEE's may miss what a fixture compares with.
    if build.optimisation != "-Ofast" {
        assert_eq!(original.status, 0, "{build}: {original:?}");
    }
    counts::check(build, &patched, THREADS, &scan);
    if matches!(extent, Extent::Full(..)) {
        settings::random::check(build, &scan, original.stdout.len() as u64);
    }
}

fn all_of(name: &str) {
    let matrix = Matrix::get();
    let number = matrix.versions.iter().position(|c| c.name == name);
    let number = number.unwrap_or_else(|| panic!("no version {name} in matrix.toml"));
    let compiler = &matrix.versions[number];
    let extent = extent();
    let mut wrong = Vec::new();
    let (mut tested, mut lacking) = (0, BTreeSet::new());
    for cell in cells(compiler, number, &extent) {
        if let Some(what) = cell.set.lacks() {
            lacking.insert(format!("{}: this machine has no {what}", cell.set.name));
            continue;
        }
        let fixture = Fixture::open(&cell.fixture);
        let Some(build) = fixture.build(&cell.variant, compiler, cell.set, cell.level, false)
        else {
            lacking.insert(format!("{}: {name} is not installed", cell.fixture));
            continue;
        };
        tested += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&build, &extent))) {
            let text = panic.downcast_ref::<String>().cloned();
            wrong.push(text.unwrap_or_else(|| format!("{build}: failed")));
        }
        if matches!(extent, Extent::Full(..)) {
            // Thousands of programs: they aren't kept.
            let _ = std::fs::remove_dir_all(build.path.parent().expect("a build has a folder"));
        }
    }
    for what in lacking {
        skip(&what);
    }
    println!("{name}: {tested} builds");
    assert!(
        wrong.is_empty(),
        "{} of {tested} builds:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(
        tested > 0 || !ompfuse_tests::in_ci(),
        "{name} builds nothing"
    );
}

macro_rules! versions {
    ($($name:ident $text:literal;)*) => {
        $(#[test]
        fn $name() {
            all_of($text);
        })*

        #[test]
        fn every_version_is_tested() {
            let named: Vec<_> = Matrix::get().versions.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(named, [$($text),*]);
        }
    };
}

versions! {
    gcc_11 "gcc-11";
    gcc_12 "gcc-12";
    clang_14 "clang-14";
    clang_16 "clang-16";
    clang_19 "clang-19";
    flang_19 "flang-19";
}
