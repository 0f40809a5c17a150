//! What processes do that run already: a picture for each interval, by samples.

use crate::output::{self, Stream};
use crate::{attached, interrupt};
use anyhow::Result;
use ompfuse_report::view::sampled as view;
use ompfuse_report::view::text::TextOptions;
use ratatui::crossterm::cursor::MoveTo;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, size};
use std::time::Duration;

/// Shows pictures until the processes end, or Ctrl-C; or one.
pub(crate) fn sampled(pids: &[u32], every: Duration, is_once: bool, is_json: bool) -> Result<()> {
    let hold = interrupt::hold();
    let options = TextOptions {
        width: Stream::Output
            .width()
            .unwrap_or(TextOptions::default().width),
        colour: Stream::Output.colour(),
        ..TextOptions::default()
    };
    loop {
        let report = attached::now(pids, None, every, &hold)?;
        if is_json {
            return output::print_json(&report);
        }
        let text = view::text(&report, options);
        if is_once {
            return output::print(&text);
        }
        let lines = size().map_or(usize::MAX, |(_, height)| usize::from(height).max(2) - 1);
        let first: Vec<&str> = text.lines().take(lines).collect();
        execute!(std::io::stdout(), Clear(ClearType::All), MoveTo(0, 0))?;
        output::print(&first.join("\n"))?;
        if hold.take().is_some() || !pids.iter().any(|&pid| attached::is_there(pid)) {
            return Ok(());
        }
    }
}
