//! Whether two sides are builds of one program: refused only if nothing says so.

use super::{diff, recorded, text};
use ompfuse_tests::compile;
use serde_json::Value;

/// Two loops in a parallel region each, in functions that are called again and again.
const BEFORE: &str = "
#include <stdio.h>
static double a[40000];
__attribute__((noinline)) static void heavy(void) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < 40000; i++) a[i] = a[i] * 0.5 + i;
}
__attribute__((noinline)) static void steady(void) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < 30010; i++) a[i] += i;
}
int main(void) {
    for (int r = 0; r < 50; r++) { heavy(); steady(); }
    printf(\"%g\\n\", a[17]);
}
";

/// The same work in one parallel region: other lines, other functions, another structure.
const AFTER: &str = "
#include <stdio.h>
static double a[40000];


int main(void) {
    #pragma omp parallel
    for (int r = 0; r < 50; r++) {
        #pragma omp for schedule(static)
        for (int i = 0; i < 40000; i++) a[i] = a[i] * 0.5 + i;
        #pragma omp for schedule(static)
        for (int i = 0; i < 30010; i++) a[i] += i;
    }
    printf(\"%g\\n\", a[17]);
}
";

/// Another program: it counts to other numbers.
const OTHER: &str = "
#include <stdio.h>
static double b[40000];
int main(void) {
    for (int r = 0; r < 7; r++) {
        #pragma omp parallel
        {
            #pragma omp for schedule(dynamic, 10)
            for (int i = 0; i < 21000; i++) b[i] += i;
            #pragma omp single
            for (int t = 0; t < 9; t++) {
                #pragma omp task
                b[t] += 1;
            }
        }
    }
    printf(\"%g\\n\", b[17]);
}
";

#[test]
fn behaviour_tells_what_nothing_else_does() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    let record = |name: &str, source: &str| {
        let program = compile::compile(source, "gcc -O1 -s -fopenmp")?;
        Some(recorded(
            folder.path(),
            name,
            &program.path,
            &["--events", "none"],
        ))
    };
    let Some(before) = record("before", BEFORE) else {
        return;
    };
    let after = record("after", AFTER).expect("it compiles");
    let other = record("other", OTHER).expect("it compiles");
    let alike = diff([&before, &after], &["--format", "json"]).ok("one program");
    let alike: Value = serde_json::from_str(&text(&alike)).expect("JSON");
    assert!(alike["alike"].as_f64() >= Some(0.5), "{alike:#}");
    let pairs = alike["pairs"].as_array().expect("a list").iter();
    let loops = pairs.filter(|p| p["b"][0]["construct"] == "loop");
    let loops: Vec<&Value> = loops.collect();
    assert_eq!(loops.len(), 2, "{alike:#}");
    assert!(loops.iter().all(|p| p["basis"] == "behaviour"), "{alike:#}");

    let refused = diff([&before, &other], &[]);
    let said = refused.errors();
    assert_eq!(refused.status, 1, "{said}");
    assert!(
        said.contains("--anyway") && said.lines().count() == 1,
        "{said}"
    );
    let anyway = text(&diff([&before, &other], &["--anyway"]).ok("anyway"));
    assert!(
        anyway.contains("regions without a partner: these are not compared"),
        "{anyway}"
    );
}
