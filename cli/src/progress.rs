//! What a person at a terminal sees while something takes long. Nothing of it appears anywhere else, and nothing is started for it
//! there: no thread that a limit of memory could refuse.

use indicatif::{ProgressBar, ProgressStyle};
use ompfuse_progress::Progress;
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

/// In so many steps a piece of work is divided.
const STEPS: u64 = 1 << 40;

type Tell = dyn Fn(f64) + Send + Sync;

/// See [`whole`]. Removes its line when it is dropped.
pub(crate) struct Whole {
    bar: Option<ProgressBar>,
    tell: Option<Box<Tell>>,
}

/// A bar for one piece of work, with the time that is left, if standard error is a terminal and no screen is on it.
pub(crate) fn whole(what: &'static str) -> Whole {
    let is_seen = std::io::stderr().is_terminal() && !crate::output::is_mute();
    let bar = is_seen.then(|| {
        SHOWN.fetch_add(1, Ordering::Relaxed);
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {eta} left")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    });
    let tell = bar
        .clone()
        .map(|bar| -> Box<Tell> { Box::new(move |share| bar.inc((share * STEPS as f64) as u64)) });
    Whole { bar, tell }
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
        self.bar.iter().for_each(|bar| bar.set_message(what));
    }

    /// Removes its line now.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.iter().find(|bar| !bar.is_finished()) {
            bar.finish_and_clear();
            SHOWN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Whole {
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
