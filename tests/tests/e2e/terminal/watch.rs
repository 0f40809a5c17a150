//! `watch` on the whole screen of a terminal.

use super::widest;
use crate::control::steady::Steady;
use ompfuse_tests::command;
use ompfuse_tests::tmux::Tmux;

/// Watches a recording in a terminal of this size.
fn watch(steady: &Steady, columns: u32, rows: u32) -> Option<Tmux> {
    let command = command::path().display().to_string();
    let out = steady.out().display().to_string();
    let shell = format!("'{command}' watch '{out}' --every 0.2");
    Tmux::start(columns, rows, &[], &shell)
}

#[test]
fn a_program_is_watched_and_changed_from_the_screen() {
    let Some(steady) = Steady::new("gcc") else {
        return;
    };
    let mut dialogue = steady.record(2, &["--events", "page-faults"], &[]);
    dialogue.ask("50");
    for (columns, rows) in [(200, 50), (80, 24)] {
        let Some(screen) = watch(&steady, columns, rows) else {
            return;
        };
        screen.wait("steady.c:33");
        let first = screen.wait("q quit"); // the last line is drawn last
        assert!(
            first.contains("2 threads") && first.contains("counting page-faults"),
            "{first}"
        );
        assert!(
            first.contains("q quit") && widest(&first) <= columns as usize,
            "{first}"
        );
        assert!(
            first.contains("last minute") && first.contains("imbal."),
            "{first}"
        );
        screen.type_in("t");
        screen.wait("since the begin");
        screen.type_in("?");
        screen.wait("any key goes back");
        screen.wait("relative to the largest");
        screen.type_in("x2");
        let threads = screen.wait_for("threads", |s| s.contains("mostly in") && s.contains(":1 "));
        assert!(
            threads.contains(":0 ") && threads.contains(":1 "),
            "{threads}"
        );
        screen.type_in("3");
        screen.wait_for("a process", |s| s.contains("pid") && s.contains("seconds"));
        screen.type_in("4");
        screen.wait("page-faults   ");

        screen.type_in("1");
        screen.press("Enter");
        let detail = screen.wait("█ is");
        // A narrow screen ends the line behind it.
        assert!(detail.contains("of it waiting"), "{detail}");
        screen.press("Escape");

        // One region off, and on again, as ctl has it.
        screen.type_in("1/steady.c:33");
        screen.press("Enter");
        screen.wait("only with \"steady.c:33\"");
        screen.type_in("e");
        screen.wait_for("(off)", |s| s.contains("task (off)"));
        assert_eq!(steady.ctl(&[])["regions_off"], 1);
        screen.type_in("e");
        screen.wait_for("on", |s| !s.contains("(off)"));
        assert_eq!(steady.ctl(&[])["regions_off"], 0);
        screen.press("Escape");

        // Other events, pause, and on.
        screen.type_in("vtask-clock");
        screen.press("Enter");
        screen.wait("counting task-clock");
        screen.type_in("vnonsense");
        screen.press("Enter");
        screen.wait("there is no event `nonsense`");
        screen.type_in("p");
        screen.wait("PAUSED");
        assert_eq!(steady.ctl(&[])["held"], true);
        screen.type_in("p");
        screen.wait_for("recording", |s| !s.contains("PAUSED"));
        assert_eq!(steady.ctl(&[])["held"], false);
        screen.type_in("vdefault");
        screen.press("Enter");
        screen.wait("counting page-faults");

        // The last picture stays on the terminal.
        screen.type_in("q");
        let last = screen.wait("ended: 0");
        assert!(last.contains("steady.c:33") || rows < 30, "{last}");
    }
    steady.end(dialogue, 2, &["50"]);
}
