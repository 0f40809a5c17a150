//! What a person at a terminal sees while something takes long. Nothing of it appears anywhere else, and nothing is started for it
//! there: no thread that a limit of memory could refuse.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Removes its line when it is dropped.
pub(crate) struct Spinner(Option<ProgressBar>);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Spinner {
    /// Another thing goes on now.
    pub(crate) fn say(&self, what: &'static str) {
        self.0.iter().for_each(|bar| bar.set_message(what));
    }
}

/// A turning sign beside a word, if standard error is a terminal.
pub(crate) fn spinner(what: &'static str) -> Spinner {
    Spinner(std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }))
}

/// A bar with the time that is left, if standard error is a terminal.
pub(crate) fn bar(what: &'static str, steps: usize) -> Bar {
    counted(
        what,
        steps as u64,
        "{msg} {wide_bar} {pos} of {len}, {eta} left",
    )
}

/// As [`bar`], in steps whose number says nothing to anybody.
pub(crate) fn shares(what: &'static str, steps: u64) -> Bar {
    counted(what, steps, "{msg} {wide_bar} {percent} %, {eta} left")
}

fn counted(what: &'static str, steps: u64, style: &str) -> Bar {
    Bar(std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new(steps);
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }))
}

/// See [`bar`]. Removes its line when it is dropped.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    /// A step is done.
    pub(crate) fn step(&self) {
        self.advance(1);
    }

    /// So many steps are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.0.iter().for_each(|bar| bar.inc(steps));
    }

    /// Removes its line now.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
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
