//! The state as cells of the terminal.

use super::super::history::History;
use super::app::{App, Typing};
use super::tabs::{self, Tab};
use super::{detail, help};
use ompfuse_report::view::table::{self, Column, front};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph};

/// Widths of the column with the last minute: at most a character for each second.
const SHORT: usize = 12;
const LONG: usize = 60;
/// Other columns of a wide screen.
const OTHERS: usize = 110;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App, history: &History) {
    // The table keeps half of the screen.
    let panel = match app.detailed() {
        Some(_) => detail::height(&app.parts).min(usize::from(frame.area().height / 2)),
        None => 0,
    };
    let layout = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(panel as u16),
        Constraint::Length(1),
    ]);
    let [title, tabs, table, panel, last] = layout.areas(frame.area());
    app.page = usize::from(table.height.saturating_sub(1)).max(1); // one line is the heads'
    app.scroll();
    let width = usize::from(title.width);
    frame.render_widget(Line::styled(front(&head(app), width), BOLD), title);
    frame.render_widget(tab_line(app, width), tabs);
    let left_out = match app.reader() {
        Some(reader) => {
            reader.page = usize::from(table.height);
            frame.render_widget(Text::from(reader.shown(width)), table);
            0
        }
        None => rows(frame, app, history, table),
    };
    if let Some(row) = app.detailed_row() {
        let lines = detail::lines(row, &app.parts, history, width);
        frame.render_widget(Text::from(lines), panel);
    }
    frame.render_widget(last_line(app, left_out, width), last);
    if app.help {
        help(frame, app);
    }
}

/// The whole: processes, threads, time, what is paused.
fn head(app: &App) -> String {
    if let Some(over) = &app.over {
        return format!("{}{}", over.title, app.picture.title());
    }
    let about = match app.is_total() {
        true => "since the begin",
        false => "since the last picture",
    };
    let mut text = match app.is_held {
        true => "PAUSED · ".to_owned(),
        false => String::new(),
    };
    if app.is_frozen() {
        text.push_str("picture held · ");
    }
    text + &format!("{} {about}", app.picture.title())
}

/// The tabs, and the events that are counted.
fn tab_line(app: &App, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, tab) in (1..).zip(app.tabs()) {
        let name = format!(" {number} {} ", tab.name());
        spans.push(match *tab == app.tab {
            true => Span::styled(name, SELECTED),
            false => Span::raw(name),
        });
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let counted = match app.over {
        Some(_) => String::new(),
        None => format!("  counting {}", app.counted),
    };
    spans.push(Span::styled(
        front(&counted, width.saturating_sub(used)),
        DIM,
    ));
    Line::from(spans)
}

/// The table; how many events had no room.
fn rows(frame: &mut Frame<'_>, app: &App, history: &History, area: Rect) -> usize {
    let width = usize::from(area.width);
    let mut columns = tabs::columns(app.tab, &app.picture);
    let (events, never) = app.picture.events();
    let minute = width.saturating_sub(OTHERS).clamp(SHORT, LONG);
    let threads = |pid: u32| -> Vec<u32> {
        let own = app.picture.per_thread.iter().filter(|t| t.pid == pid);
        own.map(|t| t.number).collect()
    };
    // Of thousands only those are put into words that there is room for.
    let visible = app.shown.iter().skip(app.first).take(app.page);
    let cells = visible.map(|&at| match app.tab {
        Tab::Regions => tabs::region(&app.picture.regions[at], &events, history, minute),
        Tab::Threads => tabs::thread(
            &app.picture.per_thread[at],
            &app.mostly(at),
            history,
            minute,
        ),
        Tab::Ranks => {
            let row = &app.picture.processes[at];
            tabs::process(row, &threads(row.pid), history, minute)
        }
        Tab::Events | Tab::CallPaths => tabs::event(&app.events[at], history, minute),
    });
    let mut cells: Vec<Vec<String>> = cells.collect();
    let order = app.order();
    let sorted = columns.get(order.column).map(Column::name);
    // Nobody has looked at what is over, minute by minute.
    let last = columns.iter().position(|c| c.name() == tabs::MINUTE);
    if let Some(at) = last.filter(|_| app.over.is_some()) {
        columns.remove(at);
        cells.iter_mut().for_each(|row| drop(row.remove(at)));
    }
    let plain = |_: usize, cell: &str| cell.to_owned();
    let fitted = table::fitted(&columns, cells, Some(width), &plain, &|head| {
        head.to_owned()
    });
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (number, line) in fitted.text.lines().enumerate() {
        lines.push(match number {
            0 => heads(line, sorted, order.reversed),
            n if app.first + n - 1 == app.selected => {
                Line::styled(format!("{line:<width$}"), SELECTED)
            }
            _ => Line::from(line.to_owned()),
        });
    }
    if app.shown.is_empty() {
        let nothing = match app.filter.is_empty() {
            true if app.over.is_some() => "nothing on record",
            true => "nothing yet",
            false => "nothing with this text; Esc shows all",
        };
        lines.push(Line::styled(nothing, DIM));
    }
    frame.render_widget(Text::from(lines), area);
    let is_event = |name: &&String| events.contains(&name.as_str());
    match app.tab {
        Tab::Regions => fitted.left_out.iter().filter(is_event).count() + never.len(),
        _ => 0,
    }
}

/// The columns' names, that which rows are sorted by underlined.
fn heads(line: &str, sorted: Option<&str>, reversed: bool) -> Line<'static> {
    let found = sorted.and_then(|name| Some((line.find(name)?, name.len())));
    let Some((at, len)) = found.filter(|(_, len)| *len > 0) else {
        return Line::styled(line.to_owned(), BOLD);
    };
    let mark = match reversed {
        true => BOLD.add_modifier(Modifier::UNDERLINED | Modifier::ITALIC),
        false => BOLD.add_modifier(Modifier::UNDERLINED),
    };
    Line::from(vec![
        Span::styled(line[..at].to_owned(), BOLD),
        Span::styled(line[at..at + len].to_owned(), mark),
        Span::styled(line[at + len..].to_owned(), BOLD),
    ])
}

/// What is typed or said, or which keys there are.
fn last_line(app: &mut App, left_out: usize, width: usize) -> Line<'static> {
    let typed = |what: &str, text: &str| Line::from(front(&format!("{what}{text}_"), width));
    match app.typing {
        Some(Typing::Filter) => return typed("/", &app.filter),
        Some(Typing::Events) => {
            return typed(
                "count these events (default: those at the begin): ",
                &app.typed,
            );
        }
        None => {}
    }
    if let Some((is_well, text)) = &app.said {
        let style = match is_well {
            true => Style::new().fg(Color::Green),
            false => Style::new().fg(Color::Red),
        };
        return Line::styled(front(text, width), style);
    }
    if let Some(damaged) = app.picture.damaged.first() {
        return Line::styled(front(damaged, width), Style::new().fg(Color::Red));
    }
    let is_open = app.over.as_ref().is_some_and(|over| over.open.is_some());
    if let Some(reader) = app.reader() {
        let keys = match is_open {
            true => "q back  ? help  / find  n next",
            false => "q quit  ? help  / find  n next",
        };
        let text = match reader.is_typing() {
            true => reader.state(),
            false => format!("{keys}  {}", reader.state()),
        };
        return Line::styled(front(&text, width), DIM);
    }
    let mut parts = vec!["q quit  ? help".to_owned()];
    let hidden = app.shown.len().saturating_sub(app.page);
    parts.extend((hidden > 0).then(|| format!("{} rows", app.shown.len())));
    parts.extend((left_out > 0).then(|| format!("{left_out} more events: 4")));
    parts.extend((!app.filter.is_empty()).then(|| format!("only with \"{}\"", app.filter)));
    let keys = match app.over {
        Some(_) => "/ filter  <> sort  Enter opens",
        None => "/ filter  <> sort  e off/on  p pause",
    };
    parts.push(keys.to_owned());
    Line::styled(front(&parts.join("  "), width), DIM)
}

/// The help in the middle of the screen.
fn help(frame: &mut Frame<'_>, app: &App) {
    let all = match app.over {
        Some(_) => help::finished(),
        None => help::live(),
    };
    let lines: Vec<Line<'_>> = all
        .iter()
        .map(|(name, about)| {
            Line::from(vec![
                Span::styled(format!(" {name:12}"), BOLD),
                Span::raw(*about),
            ])
        })
        .collect();
    let longest = lines.iter().map(Line::width).max().unwrap_or(0);
    let area = frame.area();
    let width = (longest as u16 + 3).min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let middle = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, middle);
    let block = Block::bordered().title(" any key goes back ");
    frame.render_widget(Paragraph::new(lines).block(block), middle);
}

#[cfg(test)]
mod tests;
