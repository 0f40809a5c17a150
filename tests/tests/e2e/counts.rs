//! What was recorded against what the program counted itself: tasks, iterations, sections, and every tick.

use ompfuse_tests::fixture::{self, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::table;

fn nothing_is_missed_or_counted_twice(name: &str, compiler: &str) {
    let fixture = Fixture::open(name);
    for build in fixture.ordinary_builds(compiler) {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        for &threads in &Matrix::get().threads {
            let (output, xus) = table::xus_of(&patched, &[], threads);
            let own = fixture::counts(&output.text());
            let what = format!("{build}, {threads} threads");
            let count =
                |construct: &str| xus.iter().filter(|x| x.construct == construct).count() as u64;
            if build.records("tasks") {
                assert_eq!(Some(&count("task")), own.get("tasks"), "tasks of {what}");
            }
            if build.records("iterations") {
                let ranges = xus.iter().filter(|x| x.construct == "range");
                let sum = ranges.map(|x| x.number("iterations")).sum::<u64>();
                assert_eq!(Some(&sum), own.get("iterations"), "iterations of {what}");
            }
            if build.records("sections") {
                let wanted = own.get("sections").copied().unwrap_or(0);
                assert_eq!(count("section"), wanted, "sections of {what}");
            }
        }
    }
}

for_each_fixture!(super::nothing_is_missed_or_counted_twice);
