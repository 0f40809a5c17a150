//! What a person at a terminal sees while something takes long. Nothing of it appears anywhere else, and nothing is started for it
//! there: no thread that a limit of memory could refuse.

use indicatif::{ProgressBar, ProgressStyle};
use ompfuse_rewriter::progress::Progress;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bars on the terminal.
static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// What has to come before a message on standard error, so that it doesn't stand behind a bar, which is drawn again below.
pub(crate) fn make_way() -> &'static str {
    match SHOWN.load(Ordering::Relaxed) {
        0 => "",
        _ => "\r\x1b[K",
    }
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

/// As [`bar`], for one piece of work.
pub(crate) fn whole(what: &'static str) -> Whole {
    let bar = shares(what, STEPS);
    let tell = bar
        .0
        .clone()
        .map(|bar| -> Box<Tell> { Box::new(move |share| bar.inc((share * STEPS as f64) as u64)) });
    Whole { bar, tell }
}

/// In so many steps a piece of work is divided.
const STEPS: u64 = 1 << 40;

type Tell = dyn Fn(f64) + Send + Sync;

/// See [`whole`]. Removes its line when it is dropped.
pub(crate) struct Whole {
    bar: Bar,
    tell: Option<Box<Tell>>,
}

impl Whole {
    /// Moves the bar.
    pub(crate) fn progress(&self) -> Progress<'_> {
        match &self.tell {
            Some(tell) => Progress::new(tell),
            None => Progress::default(),
        }
    }

    /// Another thing goes on now.
    pub(crate) fn say(&self, what: &'static str) {
        self.bar.0.iter().for_each(|bar| bar.set_message(what));
    }
}

fn counted(what: &'static str, steps: u64, style: &str) -> Bar {
    Bar(std::io::stderr().is_terminal().then(|| {
        SHOWN.fetch_add(1, Ordering::Relaxed);
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
        if let Some(bar) = self.0.iter().find(|bar| !bar.is_finished()) {
            bar.finish_and_clear();
            SHOWN.fetch_sub(1, Ordering::Relaxed);
        }
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
        crate::output::remark(format_args!("run {run} of {total}: {events}{left}"));
    }
}
