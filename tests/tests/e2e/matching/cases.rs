//! Cases that are easily matched wrong, with programs made for them.

use super::constructs::Places;
use super::directives::Directives;
use super::{diff, tally};
use ompfuse_tests::{compile, has, process, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that was recorded, in a folder of its own.
struct Run {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Run {
    /// Compiles a source as `flow.c` and records the program. `None`, and said so, without the compiler.
    fn of(source: &str, flags: &str) -> Option<Run> {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let program = compile::text(folder.path(), "flow", source, flags)?;
        record(&program, folder.path());
        Some(Run { folder, program })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// A copy under another name, without symbols if that is wanted, recorded again.
    fn copy(&self, name: &str, is_stripped: bool) -> Run {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let program = folder.path().join(name);
        let tool = if is_stripped { "strip" } else { "cp" };
        let mut copy = Command::new(tool);
        match is_stripped {
            true => copy.arg("-o").arg(&program).arg(&self.program),
            false => copy.arg(&self.program).arg(&program),
        };
        process::run(&mut copy).ok("copying");
        record(&program, folder.path());
        Run { folder, program }
    }
}

fn record(program: &Path, folder: &Path) {
    let out = folder.join("out");
    table::record(program, &[], 2, &out, &["--events", "none"]).ok("recording");
}

/// Loops three lines apart, `counts` iterations each, behind so many lines more.
fn loops(counts: &[u32], lines: usize) -> String {
    let mut text =
        String::from("static volatile long sum;\nstatic void work(int i) { sum += i; }\n");
    text.push_str("int main(void)\n{\n");
    text.push_str(&"    work(0);\n".repeat(lines));
    for count in counts {
        text.push_str("    #pragma omp parallel for schedule(dynamic, 1)\n");
        text.push_str(&format!(
            "    for (int i = 0; i < {count}; i++)\n        work(i);\n"
        ));
    }
    text + "    return 0;\n}\n"
}

/// Which loops of two such programs are paired: by their directives' order in the sources.
fn paired(a: &Run, b: &Run, kind: &str) -> Vec<(usize, usize)> {
    let diff = diff(&a.path(), &b.path());
    let order = |run: &Run, side: &str| -> BTreeMap<String, usize> {
        let source = run
            .folder
            .path()
            .join("flow.c")
            .to_string_lossy()
            .into_owned();
        let directives = Directives::of_c("gcc-12", &[source]);
        let regions = tally::regions(&diff, side);
        let places = Places::of(&run.program, true, &directives, &regions);
        let known = regions
            .iter()
            .filter(|r| r.0 == kind)
            .filter_map(|(k, at)| {
                let (_, _, line) = places.get(k, at)?;
                // Of three lines each, wherever they begin.
                Some((at.clone(), *line as usize))
            });
        let known: BTreeMap<String, usize> = known.collect();
        let lines = directives.lines("flow.c", kind);
        let nth = |line: usize| lines.iter().position(|l| *l as usize == line);
        let nth = |line: usize| nth(line).expect("a directive");
        known
            .into_iter()
            .map(|(at, line)| (at, nth(line)))
            .collect()
    };
    let (of_a, of_b) = (order(a, "a"), order(b, "b"));
    let mut found = vec![];
    for pair in diff["pairs"].as_array().expect("a list") {
        let of = |side: &str, order: &BTreeMap<String, usize>| -> Option<usize> {
            let key = &pair[side][0];
            let address = key["addresses"][0].as_str().expect("a text");
            (key["construct"] == kind).then(|| order[address])
        };
        if let (Some(a), Some(b)) = (of("a", &of_a), of("b", &of_b)) {
            assert!(pair["is_group"] == false, "{pair}");
            found.push((a, b));
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn lines_that_moved_by_the_distance_of_regions_mislead_nobody() {
    const FLAGS: &str = "gcc-12 -O1 -g -fopenmp";
    if !has("addr2line") {
        return;
    }
    let counted: Vec<u32> = (1..=8).map(|n| 10 * n).collect();
    for (counts, is_told) in [(counted, true), (vec![40; 8], false)] {
        let Some(a) = Run::of(&loops(&counts, 0), FLAGS) else {
            return;
        };
        let moved = Run::of(&loops(&counts, 3), FLAGS).expect("the compiler is there");
        let straight: Vec<(usize, usize)> = (0..8).map(|n| (n, n)).collect();
        for kind in ["parallel", "loop"] {
            assert_eq!(paired(&a, &moved, kind), straight, "{kind}, {counts:?}");
        }
        for removed in [0, 3, 7] {
            let mut less = counts.clone();
            less.remove(removed);
            let b = Run::of(&loops(&less, 3), FLAGS).expect("the compiler is there");
            let right: Vec<(usize, usize)> = (0..8)
                .filter(|n| *n != removed)
                .map(|n| (n, if n > removed { n - 1 } else { n }))
                .collect();
            for kind in ["parallel", "loop"] {
                let found = paired(&a, &b, kind);
                // Without different counts nobody can know which one is gone.
                match is_told {
                    true => assert_eq!(found, right, "{kind} {removed}"),
                    false => {
                        let all_right = found.iter().all(|p| right.contains(p));
                        assert!(all_right, "{kind} {removed}: {found:?}");
                    }
                }
            }
        }
    }
}

/// Pairs as numbers of regions on both sides, with their kind.
fn shape(diff: &Value) -> Vec<(String, usize, usize, bool)> {
    let count = |list: &Value| list.as_array().expect("a list").len();
    let pairs = diff["pairs"].as_array().expect("a list").iter();
    let mut found: Vec<(String, usize, usize, bool)> = pairs
        .map(|p| {
            let kind = p["a"][0]["construct"].as_str().expect("a text");
            (
                kind.to_owned(),
                count(&p["a"]),
                count(&p["b"]),
                p["is_group"] == true,
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_build_that_was_moved_is_matched_by_address() {
    for (flags, basis) in [
        ("gcc-12 -O2 -fopenmp", Some("address")),
        // Known by its path only: what is seen of it is the same, whatever it is called.
        ("gcc-12 -O2 -fopenmp -Wl,--build-id=none", None),
        ("gcc-12 -O2 -g -fopenmp -Wl,--build-id=none", Some("line")),
    ] {
        let Some(a) = Run::of(&loops(&[40, 40, 40], 0), flags) else {
            return;
        };
        let b = a.copy("renamed", false);
        let diff = diff(&a.path(), &b.path());
        let pairs = diff["pairs"].as_array().expect("a list");
        assert_eq!(pairs.len(), 6, "{flags}: {pairs:?}");
        for pair in pairs {
            assert_eq!(
                pair["a"][0]["addresses"], pair["b"][0]["addresses"],
                "{flags}"
            );
            let is_it = basis.is_none_or(|b| pair["basis"] == b);
            assert!(is_it, "{flags}: {}", pair["basis"]);
        }
        for lone in ["only_a", "only_b"] {
            assert_eq!(diff[lone].as_array().map(Vec::len), Some(0), "{flags}");
        }
    }
}

/// A lock in a short loop, which one build has four times.
const LOCKED: &str = "#include <omp.h>
static omp_lock_t lock;
static volatile long sum;
int main(void)
{
    omp_init_lock(&lock);
    #pragma omp parallel
    for (int k = 0; k < 200; k++) {
        #pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            omp_set_lock(&lock);
            sum += i;
            omp_unset_lock(&lock);
        }
    }
    return sum == 0;
}
";

#[test]
fn copies_of_a_lock_are_one_region() {
    let whole = ["gcc-12 -O0 -g -fopenmp", "gcc-12 -O2 -g -fopenmp"];
    let Some(rolled) = Run::of(LOCKED, whole[0]) else {
        return;
    };
    let unrolled = Run::of(LOCKED, whole[1]).expect("the compiler is there");
    let executions = |diff: &Value| -> (Value, Value) {
        let pairs = diff["pairs"].as_array().expect("a list");
        let lock = pairs.iter().find(|p| p["a"][0]["construct"] == "lock");
        let changes = lock.expect("the lock is matched")["changes"].as_array();
        let is_it = |c: &&Value| c["quantity"] == "executions";
        let change = changes.expect("a list").iter().find(is_it);
        let change = change.expect("executions are compared");
        (change["a"].clone(), change["b"].clone())
    };
    for stripped in [false, true] {
        let both = [&rolled, &unrolled].map(|r| r.copy("copy", stripped));
        let diff = diff(&both[0].path(), &both[1].path());
        let copies = if stripped { 4 } else { 1 };
        let lock = ("lock".to_owned(), 1, copies, false);
        assert!(
            shape(&diff).contains(&lock),
            "{stripped}: {:?}",
            shape(&diff)
        );
        assert_eq!(
            executions(&diff),
            (1600.0.into(), 1600.0.into()),
            "{stripped}"
        );
    }
}

/// Two constructs that do the same, side by side.
const TWINS: &str = "static volatile long first, second;
int main(void)
{
    #pragma omp parallel
    for (int k = 0; k < 100; k++) {
        #pragma omp critical
        first += k;
        #pragma omp critical
        second += k;
    }
    return first != second;
}
";

#[test]
fn twins_without_symbols_are_a_group() {
    let Some(gcc) = Run::of(TWINS, "gcc-12 -O2 -g -fopenmp") else {
        return;
    };
    let Some(clang) = Run::of(TWINS, "clang-19 -O2 -g -fopenmp") else {
        return;
    };
    // Debug information tells them apart.
    let told = shape(&diff(&gcc.path(), &clang.path()));
    let critical = ("critical".to_owned(), 1, 1, false);
    assert_eq!(
        told.iter().filter(|s| **s == critical).count(),
        2,
        "{told:?}"
    );
    let stripped = [&gcc, &clang].map(|r| r.copy("copy", true));
    let diff = diff(&stripped[0].path(), &stripped[1].path());
    let group = ("critical".to_owned(), 2, 2, true);
    assert!(shape(&diff).contains(&group), "{:?}", shape(&diff));
}

/// Two loops in functions that keep their names.
const NAMED: &str = "static double a[4096];
__attribute__((noinline)) static void fill(void) {
    #pragma omp parallel for
    for (int i = 0; i < 4096; i++) a[i] = i;
}
__attribute__((noinline)) static double sum(void) {
    double s = 0;
    #pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 4096; i++) s += a[i];
    return s;
}
int main(void) { fill(); return sum() < 1; }
";

#[test]
fn a_file_that_was_renamed_is_known_by_its_functions() {
    let Some(before) = Run::of(NAMED, "gcc -O2 -g -fopenmp") else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = compile::text(folder.path(), "stream", NAMED, "gcc -O2 -g -fopenmp");
    let program = program.expect("the compiler is there");
    record(&program, folder.path());
    let after = Run { folder, program };
    let diff = diff(&before.path(), &after.path());
    let one = |kind: &str| (kind.to_owned(), 1, 1, false);
    let found = shape(&diff);
    for kind in ["parallel", "loop"] {
        assert_eq!(
            found.iter().filter(|s| **s == one(kind)).count(),
            2,
            "{found:?}"
        );
    }
    assert_eq!(diff["matched"], serde_json::json!([1.0, 1.0]));
    for pair in diff["pairs"].as_array().expect("a list") {
        let name = |side: &str| pair[side][0]["file"].as_str().map(super::file_name);
        assert_eq!((name("a"), name("b")), (Some("flow.c"), Some("stream.c")));
        assert_eq!(pair["a"][0]["function"], pair["b"][0]["function"]);
    }
    let [a, b] = [&before, &after].map(Run::path);
    let text =
        ompfuse_tests::command::ok([Path::new("diff"), &a, &b, Path::new("--anyway")]).text();
    assert!(!text.contains("Only in"), "{text}");
}

/// A region that an optimiser copies to where its function is called.
const INLINED: &str = "double a[1 << 16];
void step(int k) {
    #pragma omp parallel for
    for (int i = 0; i < 1 << 16; i++) a[i] += k * 0.5 / (i + 1);
}
__attribute__((noinline)) void run(int n) { for (int k = 0; k < n; k++) step(k); }
int main(void) { step(1); run(40); return a[7] < 0; }
";

#[test]
fn copies_of_one_line_are_one_region() {
    let Some(one) = Run::of(INLINED, "gcc -O1 -g -fopenmp -fno-inline") else {
        return;
    };
    let several = Run::of(INLINED, "gcc -O3 -g -fopenmp").expect("the compiler is there");
    let diff = diff(&one.path(), &several.path());
    let pairs = diff["pairs"].as_array().expect("a list");
    let parallel = pairs.iter().find(|p| p["a"][0]["construct"] == "parallel");
    let parallel = parallel.expect("the region is matched");
    let copies = |side: &str| parallel[side].as_array().map(Vec::len);
    assert_eq!(copies("a"), Some(1));
    assert!(copies("b") > Some(1), "{parallel:#}");
    assert_eq!(diff["matched"], serde_json::json!([1.0, 1.0]));
    let changes = parallel["changes"].as_array().expect("a list").iter();
    let executions = changes.clone().find(|c| c["quantity"] == "executions");
    let executions = executions.expect("executions are compared");
    assert_eq!(
        (&executions["a"], &executions["b"]),
        (&41.0.into(), &41.0.into())
    );
}

/// A dynamic loop that has no iterations in two of its three executions.
const EMPTY: &str = "double a[100];
__attribute__((noinline)) void f(int n) {
    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2000; k++) a[i] += 1.0 / (k + 1);
}
int main(void) { f(0); f(100); f(0); return a[7] < 0; }
";

#[test]
fn a_loop_that_one_compiler_enters_without_iterations_is_the_same() {
    let Some(gcc) = Run::of(EMPTY, "gcc -O2 -g -fopenmp") else {
        return;
    };
    let Some(clang) = Run::of(EMPTY, "clang-19 -O2 -g -fopenmp") else {
        return;
    };
    let diff = diff(&gcc.path(), &clang.path());
    assert_eq!(diff["matched"], serde_json::json!([1.0, 1.0]), "{diff:#}");
    let pairs = diff["pairs"].as_array().expect("a list");
    let of = pairs.iter().find(|p| p["a"][0]["construct"] == "loop");
    let of = of.expect("the loop is matched")["changes"].as_array();
    let mut changes = of.expect("a list").iter();
    assert!(
        changes.all(|c| c["quantity"] != "executions"),
        "gcc entered it three times"
    );
}
