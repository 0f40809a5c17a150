//! Recordings of a part of the program's time: `--delay`, `--for`.

use crate::output::note;
use crate::running::held;
use anyhow::Result;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

/// When to record.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WindowArgs {
    /// Begin to record this long after the program's start (`500ms`, `5s`)
    ///
    /// Regions executed before are not recorded. `resume`: nothing is, until `ompfuse ctl DIR resume`.
    #[arg(long, value_name = "TIME|resume", value_parser = Delay::parse)]
    delay: Option<Delay>,
    /// Record for this long, and let the program run on to its end
    ///
    /// The time begins with the program's start, the end of --delay, or the first `ompfuse ctl DIR resume`.
    #[arg(long = "for", value_name = "TIME", value_parser = nanoseconds)]
    length: Option<u64>,
}

/// When a recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delay {
    /// After so many nanoseconds.
    Time(u64),
    /// When it is told to.
    Resume,
}

impl Delay {
    /// For clap.
    fn parse(text: &str) -> Result<Delay, String> {
        match text {
            "resume" => Ok(Delay::Resume),
            time => match nanoseconds(time) {
                Ok(ns) => Ok(Delay::Time(ns)),
                Err(error) => Err(format!("{error}; or resume")),
            },
        }
    }
}

impl WindowArgs {
    /// For how many nanoseconds.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// The options as they were given, for messages.
    fn options(&self) -> String {
        let time = |ns: u64| format!("{:?}", Duration::from_nanos(ns));
        let delay = self.delay.map(|delay| match delay {
            Delay::Time(ns) => format!("--delay {}", time(ns)),
            Delay::Resume => "--delay resume".to_owned(),
        });
        let length = self.length.map(|ns| format!("--for {}", time(ns)));
        let given: Vec<String> = [delay, length].into_iter().flatten().collect();
        given.join(" ")
    }
}

/// The window of one run.
pub(super) struct Window<'a> {
    args: &'a WindowArgs,
    run: &'a Path,
    /// CLOCK_MONOTONIC when the program is started.
    begin: u64,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// `--delay` is over.
    opened: bool,
    /// `--for` is over.
    closed: bool,
    /// Once is enough to say what is wrong.
    told: bool,
}

impl<'a> Window<'a> {
    /// Of a run that starts now.
    pub(super) fn open(args: &'a WindowArgs, run: &'a Path) -> Result<Window<'a>> {
        let is_held = args.delay.is_some();
        if is_held {
            held::mark(run, true)?;
        }
        Ok(Window {
            args,
            run,
            begin: held::monotonic_ns(),
            state: RefCell::new(State {
                opened: !is_held,
                ..State::default()
            }),
        })
    }

    /// Switches the recording on and off when it is time.
    pub(super) fn look(&self) {
        let mut state = self.state.borrow_mut();
        let now = held::monotonic_ns();
        if let Some(Delay::Time(delay)) = self.args.delay
            && !state.opened
            && now >= self.begin.saturating_add(delay)
        {
            state.opened = self.switch(false, &mut state.told);
        }
        let Some(length) = self.args.length.filter(|_| !state.closed) else {
            return;
        };
        let begun = match held::spans(self.run, self.begin, now) {
            None => Some(0.0),
            Some(spans) => spans.first().map(|s| s[0]),
        };
        let begun = begun.map(|s| self.begin + (s * 1e9) as u64);
        if begun.is_some_and(|begun| now >= begun.saturating_add(length)) {
            state.closed = self.switch(true, &mut state.told);
        }
    }

    /// Whether it worked; if not, it is tried again.
    fn switch(&self, held: bool, told: &mut bool) -> bool {
        let done = held::hold_run(self.run, held);
        if let Err(error) = &done
            && !std::mem::replace(told, true)
        {
            note(format_args!("{}: {error:#}", self.args.options()));
        }
        done.is_ok()
    }

    /// When it was recorded: in seconds from the program's start; `None`: at all times.
    pub(super) fn end(self) -> Option<Vec<[f64; 2]>> {
        let spans = held::spans(self.run, self.begin, held::monotonic_ns());
        if spans.as_ref().is_some_and(Vec::is_empty) {
            let why = match self.args.delay {
                Some(Delay::Time(_)) => "the program ended before that",
                _ => "nobody let it go on (`ompfuse ctl DIR resume`)",
            };
            note(format_args!(
                "no region was recorded in {} because of {}: {why}",
                self.run.display(),
                self.args.options()
            ));
        }
        spans
    }
}

/// A length of time in nanoseconds, from a number and a unit.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "min" => Some(60e9),
        "h" => Some(3600e9),
        _ => None,
    };
    let length = unit.zip(number.parse::<f64>().ok());
    match length.map(|(unit, number)| (unit * number).round()) {
        Some(ns) if (1.0..1e18).contains(&ns) => Ok(ns as u64),
        _ => Err("a number with a unit is needed: 500ns, 20us, 1ms, 1s, 5min, 2h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let good = [
            ("500ns", 500),
            ("20us", 20_000),
            ("1.5ms", 1_500_000),
            ("1s", 1_000_000_000),
            ("1.5min", 90_000_000_000),
            ("2h", 7_200_000_000_000),
        ];
        for (text, ns) in good {
            assert_eq!(nanoseconds(text), Ok(ns), "{text}");
        }
        for wrong in ["", "5", "us", "-1us", "0ns", "1m", "1e400s", "µs"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }
}
