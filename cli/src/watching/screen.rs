//! The table on a terminal.

use super::{Picture, Watching};
use anyhow::{Context, Result};
use ompfuse_report::view::table;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::{DefaultTerminal, Frame};
use std::time::{Duration, Instant};

/// Shows the table until the user has seen enough, or nothing is recorded any more. The last picture, since the begin, and
/// why it is the last one, if the user didn't end it.
pub(crate) fn show(
    mut watching: Watching,
    interval: Duration,
) -> Result<(Picture, Option<String>)> {
    let mut terminal = ratatui::try_init().context("cannot prepare the terminal")?;
    let ended = run(&mut terminal, &mut watching, interval);
    ratatui::restore();
    let ended = ended?;
    watching.look_back();
    Ok((watching.picture(None), ended))
}

fn run(
    terminal: &mut DefaultTerminal,
    watching: &mut Watching,
    interval: Duration,
) -> Result<Option<String>> {
    let mut total = false;
    let mut before = watching.sample();
    let mut picture = watching.picture(None);
    loop {
        let draw = terminal.draw(|frame| draw(frame, &picture, total));
        draw.context("cannot write to the terminal")?;
        let next = Instant::now() + interval;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            if !event::poll(left).context("cannot read from the terminal")? {
                break;
            }
            match event::read().context("cannot read from the terminal")? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(None),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(None);
                    }
                    KeyCode::Char('t') => {
                        total = !total;
                        break;
                    }
                    _ => {}
                },
                Event::Resize(..) => {
                    let draw = terminal.draw(|frame| self::draw(frame, &picture, total));
                    draw.context("cannot write to the terminal")?;
                }
                _ => {}
            }
        }
        if let Err(ended) = watching.look() {
            return Ok(Some(format!("{ended:#}")));
        }
        picture = watching.picture((!total).then_some(&before));
        before = watching.sample();
    }
}

fn draw(frame: &mut Frame<'_>, picture: &Picture, total: bool) {
    let layout = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [title, table, help] = layout.areas(frame.area());
    let about = if total {
        "since the begin"
    } else {
        "since the last picture"
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(
        Line::styled(format!("{} {about}", picture.title()), bold),
        title,
    );
    let (events, never) = picture.events();
    // One line is the heads'. Of thousands of regions only those are put into words that there is room for.
    let room = usize::from(table.height.saturating_sub(1));
    let shown = picture.regions.iter().take(room);
    let rows: Vec<Vec<String>> = shown.map(|r| Picture::cells(r, &events)).collect();
    let width = Some(usize::from(table.width));
    let plain = |_: usize, cell: &str| cell.to_owned();
    let columns = Picture::columns(&events);
    let fitted = table::fitted(&columns, rows, width, &plain, &|head| head.to_owned());
    let mut lines: Vec<Line<'_>> = fitted.text.lines().map(Line::from).collect();
    if let Some(heads) = lines.first_mut() {
        *heads = std::mem::take(heads).style(bold);
    }
    frame.render_widget(Text::from(lines), table);
    let is_event = |name: &&String| events.contains(&name.as_str());
    let left_out = fitted.left_out.iter().filter(is_event).count() + never.len();
    let keys = "q: end   t: since the begin, or the last picture";
    let regions = match picture.regions.len().saturating_sub(room) {
        0 => None,
        more => Some(format!("{more} more regions with less time")),
    };
    let events = (left_out > 0).then(|| format!("{left_out} more events"));
    let more: Vec<String> = regions.into_iter().chain(events).collect();
    let more = match more[..] {
        [] => String::new(),
        _ => format!("   {}: --once prints all", more.join(", ")),
    };
    let last = picture.damaged.first().cloned();
    let last = last.unwrap_or_else(|| format!("{keys}{more}"));
    frame.render_widget(Line::from(last), help);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_picture_without_regions_is_drawn() {
        let picture = Picture {
            processes: Vec::new(),
            threads: 3,
            seconds: 1.5,
            lost: 2,
            damaged: Vec::new(),
            regions: Vec::new(),
        };
        let mut terminal = Terminal::new(TestBackend::new(100, 5)).unwrap();
        terminal.draw(|frame| draw(frame, &picture, true)).unwrap();
        let text = format!("{}", terminal.backend());
        assert!(
            text.contains("3 threads · 1.5 s · 2 records lost since the begin"),
            "{text}"
        );
        assert!(text.contains("share") && text.contains("q: end"), "{text}");
    }

    /// A picture with so many regions, named f0, f1, ..., and these counts in each.
    fn picture(regions: u32, counts: &[(&str, u64)]) -> Picture {
        let events = counts.iter().map(|&(name, n)| (name.to_owned(), n));
        let region = |n: u32| crate::watching::Row {
            pid: 1,
            module: None,
            address: None,
            construct: Some("task"),
            function: Some(format!("f{n}")),
            source: None,
            entered: 0,
            xus: 1,
            rate_per_s: 1.0,
            share: 0.01,
            wait_share: 0.0,
            imbalance: 0.0,
            threads: 1,
            events: events.clone().collect(),
        };
        Picture {
            processes: Vec::new(),
            threads: 1,
            seconds: 1.0,
            lost: 0,
            damaged: Vec::new(),
            regions: (0..regions).map(region).collect(),
        }
    }

    #[test]
    fn events_without_room_or_counts_are_left_out_before_anything_else() {
        let counts = [
            ("cycles", 12_345_678),
            ("instructions", 12),
            ("major-faults", 0),
        ];
        let picture = picture(2, &counts);
        for (width, shown) in [(110, 2), (88, 1), (76, 0), (70, 0)] {
            let mut terminal = Terminal::new(TestBackend::new(width, 6)).unwrap();
            terminal.draw(|frame| draw(frame, &picture, true)).unwrap();
            let text = format!("{}", terminal.backend());
            assert!(text.contains("task") && text.contains("f1"), "{text}");
            let names = counts.iter().filter(|c| text.contains(c.0));
            assert_eq!(names.count(), shown, "{width}: {text}");
            assert_eq!(text.contains("12.3 M"), shown > 0, "{text}");
            assert!(
                text.contains(&format!("{} more events", 3 - shown)),
                "{text}"
            );
        }
        let text = picture.text();
        assert!(text.ends_with("never: major-faults\n"), "{text}");
    }

    #[test]
    fn regions_without_room_are_counted() {
        let picture = picture(10, &[("cycles", 12)]);
        for (height, shown) in [(7, 4), (13, 10), (14, 10)] {
            let mut terminal = Terminal::new(TestBackend::new(120, height)).unwrap();
            terminal.draw(|frame| draw(frame, &picture, true)).unwrap();
            let text = format!("{}", terminal.backend());
            let is_shown = |n: &u32| text.contains(&format!("  f{n} "));
            assert_eq!((0..10).filter(is_shown).count(), shown, "{text}");
            let said = text.contains(&format!("{} more regions", 10 - shown));
            assert_eq!(said, shown < 10, "{text}");
        }
    }
}
