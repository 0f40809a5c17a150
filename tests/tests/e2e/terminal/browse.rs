//! `report --browse`: a finished run on the screens of `watch`.

use super::widest;
use ompfuse_tests::tmux::Tmux;
use ompfuse_tests::{command, compile, process, table};
use std::process::Command;

const SOURCE: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static long count(long n) {
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 10) reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += i % 7;
    return sum;
}
int main(void) {
    long sum = 0;
    for (int i = 0; i < 3; i++) sum += count(1000);
#pragma omp parallel reduction(+ : sum)
#pragma omp critical
    sum += 1;
    printf("%ld\n", sum);
}
"#;

#[test]
fn a_finished_run_is_looked_through() {
    let Some(program) = compile::compile(SOURCE, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let out = program.folder.path().join("out");
    table::record(&program.path, &[], 2, &out, &["--events", "none"]).ok("record");
    let out = out.display().to_string();
    let shell = format!("'{}' report '{out}' --browse", command::path().display());
    for (columns, rows) in [(40, 20), (80, 24), (120, 50)] {
        let Some(screen) = Tmux::start(columns, rows, &[], &shell) else {
            return;
        };
        screen.wait("q quit");
        let first = screen.wait("critical");
        assert!(first.contains(".c:6") && first.contains("loop"), "{first}");
        assert!(widest(&first) <= columns as usize, "{first}");
        assert!(
            !first.contains("last minute") && !first.contains("since"),
            "{first}"
        );
        screen.type_in("?");
        let help = screen.wait("any key goes back");
        assert!(
            !help.contains("switch the selected") && !help.contains("pause"),
            "{help}"
        );
        screen.type_in("x");

        // A region: its units, and its lines, found as in less.
        screen.type_in("/loop");
        screen.press("Enter");
        screen.wait_for("only loops", |s| {
            !s.contains("critical") && !s.contains("/loop_")
        });
        screen.press("Enter");
        let region = screen.wait("own time");
        assert!(region.contains("loop program.c:6"), "{region}");
        assert!(widest(&region) <= columns as usize, "{region}");
        screen.type_in("/longest");
        screen.press("Enter");
        screen.wait_for("units", |s| s.to_lowercase().contains("longest"));
        screen.type_in("/omp parallel");
        screen.press("Enter");
        screen.wait_for("the source", |s| {
            s.contains("#pragma omp parallel") && !s.contains("parallel_")
        });
        screen.type_in("g");
        screen.wait("loop program.c:6");
        screen.type_in("q");
        screen.wait("q quit");
        screen.press("Escape"); // all rows again
        screen.wait("critical");

        screen.type_in("2");
        let threads = screen.wait_for("threads", |s| s.contains(":0 ") && s.contains(":1 "));
        assert!(threads.contains("mostly in"), "{threads}");
        screen.type_in("3");
        let paths = screen.wait("[progr");
        assert!(paths.contains("· par"), "{paths}");
        screen.type_in("4");
        screen.wait("nothing on record");
        // Nothing is paused or switched off.
        screen.type_in("1pet");
        let again = screen.wait("critical");
        assert!(
            !again.contains("PAUSED") && !again.contains("(off)"),
            "{again}"
        );
        screen.type_in("q");
        screen.wait("ended: 0");
    }
    // Without a terminal it is refused in one line.
    let refused = process::run(Command::new(command::path()).args(["report", &out, "--browse"]));
    assert_eq!(refused.status, 2, "{refused:?}");
    let errors = refused.errors();
    assert!(errors.contains("--browse needs a terminal"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
