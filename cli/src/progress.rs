//! What a person at a terminal sees while something takes long. Nothing of it appears anywhere else.

use indicatif::{ProgressBar, ProgressStyle};
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

/// A bar with the time that is left, if standard error is a terminal.
pub(crate) fn bar(what: &'static str, steps: usize) -> Bar {
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new(steps as u64)
    } else {
        ProgressBar::hidden()
    };
    let style = "{msg} {wide_bar} {pos} of {len}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    Bar(bar)
}

/// See [`bar`]. Removes its line when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A step is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Says which run begins, and how long it and those after it will take if they take as long as those before. While it goes on the terminal is the program's.
pub(crate) fn announce(run: usize, total: usize, events: &[String], left_s: Option<f64>) {
    if std::io::stderr().is_terminal() {
        let events = if events.is_empty() {
            "times only".to_owned()
        } else {
            events.join(",")
        };
        let left = left_s.map_or(String::new(), |s| format!("; about {s:.0} s to go"));
        crate::output::note(format_args!("run {run} of {total}: {events}{left}"));
    }
}
