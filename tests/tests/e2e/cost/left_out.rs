//! What isn't recorded costs no system call.

use super::{COMPILERS, FIB, counted, list, record};
use ompfuse_tests::{compile, each, table};
use serde_json::Value;

/// A loop of many short ranges; the program tells how many `read` calls its process has made meanwhile.
const RANGES: &str = r#"
#include <stdio.h>
static long reads(void) {
    char line[64];
    long n = -1;
    FILE *io = fopen("/proc/self/io", "r");
    while (io && fgets(line, sizeof line, io))
        sscanf(line, "syscr: %ld", &n);
    if (io)
        fclose(io);
    return n;
}
int main(void) {
    static double x[64];
    long before = reads();
    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 20000; i++)
        x[i & 63] += i;
    printf("ranges 20000 reads %ld %g\n", reads() - before, x[5]);
}
"#;

/// A unit that isn't recorded reads no counter; those that are have their counts, and every count is somebody's or said to be nobody's.
#[test]
fn what_is_left_out_needs_no_system_call() {
    for ((source, _), program) in each(
        [
            (FIB, COMPILERS[0]),
            (FIB, COMPILERS[1]),
            (RANGES, COMPILERS[0]),
            (RANGES, COMPILERS[1]),
        ],
        |(source, how)| compile::compile(source, how),
    ) {
        let run = |name: &str, flags: &[&str]| {
            let out = program.folder.path().join(name);
            let flags = [&table::ONE_EVENT[..], flags].concat();
            let (text, report) = record(&program.path, &["14"], &out, &flags);
            let words: Vec<&str> = text.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<f64>().expect("a number");
            for account in list(&report, "accounting") {
                assert_eq!(account["balanced"], true, "{name}: {account}");
            }
            let run = table::runs(&out).pop().expect("a run was recorded");
            let mut without = 0;
            let xus = table::export(&run);
            for xu in &xus {
                without += usize::from(xu.columns.get("task-clock").is_none_or(String::is_empty));
            }
            assert_eq!(without, 0, "{name}: units on record have their counts");
            // Calls per unit that was executed, and units on record.
            (number(3) / number(1), xus.len() as f64 / number(1), report)
        };
        let (all, on_record, report) = run("all", &[]);
        if counted(&report, "unit").is_empty() {
            ompfuse_tests::skip("perf events are refused here: nothing is counted per unit");
            continue;
        }
        assert!(all >= 2.0 && on_record == 1.0, "{all} calls for a unit");
        let (sampled, on_record, report) = run("sampled", &["--units", "every=64"]);
        assert!(on_record > 0.0 && on_record < 0.05, "{on_record}");
        assert!(sampled < all / 10.0, "{sampled} of {all} calls for a unit");
        let nobodys = |report: &Value| -> u64 {
            let of_thread = |a: &Value| a["unattributed_counts"]["task-clock"].as_u64();
            list(report, "accounting")
                .iter()
                .filter_map(of_thread)
                .sum()
        };
        assert!(nobodys(&report) > 0, "{report}");
        assert!(list(&report, "notes").iter().any(|n| {
            n.as_str()
                .is_some_and(|n| n.contains("task-clock") && n.contains("recorded units"))
        }));
        let (throttled, _, _) = run("throttled", &["--units", "cost=2"]);
        // It takes some hundred instances until fewer are recorded.
        let most = if source == RANGES { all / 2.0 } else { all };
        assert!(throttled < most, "{throttled} of {all} calls for a unit");
        // What turns out to be short was read at its begin.
        let (long, on_record, _) = run("long", &["--units", "longer=1s"]);
        assert!(on_record == 0.0 && long < all, "{long} of {all} calls");
        if source == RANGES {
            assert!(long < 0.6 * all, "{long} of {all} calls");
            let out = program.folder.path().join("said");
            let flags = ["--events", "task-clock", "--units", "longer=1ms"];
            let said = table::record(&program.path, &[], 2, &out, &flags).errors();
            assert!(said.contains("every=N and cost=PERCENT"), "{said}");
        }
    }
}
