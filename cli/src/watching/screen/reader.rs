//! A text that is read on the screen: keys as in less.

use ompfuse_report::view::table::front;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

/// The text, and where in it the reader is.
#[derive(Debug, Default)]
pub(super) struct Reader {
    lines: Vec<String>,
    /// The first line on the screen, and how many there is room for.
    first: usize,
    pub(super) page: usize,
    /// What is looked for.
    wanted: String,
    typing: bool,
}

impl Reader {
    pub(super) fn new(text: &str) -> Reader {
        Reader {
            lines: text.lines().map(str::to_owned).collect(),
            page: 1,
            ..Reader::default()
        }
    }

    /// Another text, as far down as the reader was in the last one.
    pub(super) fn replace(&mut self, text: &str) {
        self.lines = text.lines().map(str::to_owned).collect();
        self.go(self.first);
    }

    /// Whether a text to look for is being typed: then all keys are its letters.
    pub(super) fn is_typing(&self) -> bool {
        self.typing
    }

    fn go(&mut self, to: usize) {
        self.first = to.min(self.lines.len().saturating_sub(self.page));
    }

    /// The next line with what is looked for, downwards or upwards; the first or last one behind the end.
    fn find(&mut self, down: bool) {
        let wanted = self.wanted.to_lowercase();
        let has = |at: &usize| self.lines[*at].to_lowercase().contains(&wanted);
        let all = 0..self.lines.len();
        let found = match down {
            true => all
                .clone()
                .skip(self.first + 1)
                .find(has)
                .or(all.clone().find(has)),
            false => all
                .clone()
                .take(self.first)
                .rev()
                .find(has)
                .or(all.rev().find(has)),
        };
        if let Some(at) = found.filter(|_| !wanted.is_empty()) {
            self.first = at; // even where less than a page is left
        }
    }

    /// What a key does; false: nothing.
    pub(super) fn key(&mut self, code: KeyCode) -> bool {
        if self.typing {
            match code {
                KeyCode::Char(c) => self.wanted.push(c),
                KeyCode::Backspace => drop(self.wanted.pop()),
                KeyCode::Enter => {
                    self.typing = false;
                    self.find(true);
                }
                KeyCode::Esc => self.typing = false,
                _ => {}
            }
            return true;
        }
        match code {
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => self.go(self.first + 1),
            KeyCode::Up | KeyCode::Char('k') => self.go(self.first.saturating_sub(1)),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.go(self.first + self.page),
            KeyCode::PageUp | KeyCode::Char('b') => self.go(self.first.saturating_sub(self.page)),
            KeyCode::Home | KeyCode::Char('g') => self.go(0),
            KeyCode::End | KeyCode::Char('G') => self.go(usize::MAX),
            KeyCode::Char('n') => self.find(true),
            KeyCode::Char('N') => self.find(false),
            KeyCode::Char('/') => {
                self.wanted.clear();
                self.typing = true;
            }
            _ => return false,
        }
        true
    }

    /// The lines on the screen; those with what is looked for stand out.
    pub(super) fn shown(&self, width: usize) -> Vec<Line<'static>> {
        let wanted = self.wanted.to_lowercase();
        let visible = self.lines.iter().skip(self.first).take(self.page);
        let line = |line: &String| {
            let is_found = !wanted.is_empty() && line.to_lowercase().contains(&wanted);
            let text = front(line, width);
            match is_found && !self.typing {
                true => Line::styled(text, Style::new().add_modifier(Modifier::UNDERLINED)),
                false => Line::from(text),
            }
        };
        visible.map(line).collect()
    }

    /// What is typed, or how much of the text has been seen.
    pub(super) fn state(&self) -> String {
        match self.typing {
            true => format!("/{}_", self.wanted),
            false => {
                let seen = (self.first + self.page).min(self.lines.len());
                format!("{seen} of {} lines", self.lines.len())
            }
        }
    }
}
