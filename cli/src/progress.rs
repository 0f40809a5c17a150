//! What a person at a terminal sees while something takes long. Nothing of it appears anywhere else.

use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::time::Duration;

/// Removes its line when it is dropped.
pub(crate) struct Spinner(ProgressBar);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Spinner {
    /// Another thing goes on now.
    pub(crate) fn say(&self, what: &'static str) {
        self.0.set_message(what);
    }
}

/// A turning sign beside a word, if standard error is a terminal.
pub(crate) fn spinner(what: &'static str) -> Spinner {
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::hidden()
    };
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    Spinner(bar)
}

/// Says which run begins. While it goes on the terminal is the program's.
pub(crate) fn announce(run: usize, total: usize, events: &[String]) {
    if std::io::stderr().is_terminal() {
        let events = if events.is_empty() {
            "times only".to_owned()
        } else {
            events.join(",")
        };
        crate::output::note(format_args!("run {run} of {total}: {events}"));
    }
}
