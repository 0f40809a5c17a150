//! The state of the screen, and what keys do to it.

mod over;

pub(super) use over::Over;

use super::super::{Part, Picture, Row};
use super::tabs::{self, EventRow, Key, Tab};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Something that the screen can't do itself.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    Quit,
    /// A new picture at once.
    Look,
    /// The text about a region of a finished run.
    Open(u32),
    /// A region off or on.
    Switch {
        row: Box<Row>,
        on: bool,
    },
    /// Other events.
    Events(String),
    /// Recording paused or not.
    Hold(bool),
}

/// What is typed at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typing {
    Filter,
    Events,
}

/// How the rows of a tab are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) column: usize,
    pub(super) reversed: bool,
}

/// What identifies a row while numbers change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Id {
    Region((usize, u32)),
    Thread(u32),
    Process(u32),
    Event(String),
}

/// The state.
pub(super) struct App {
    pub(super) picture: Picture,
    pub(super) events: Vec<EventRow>,
    /// The events that are counted now.
    pub(super) counted: String,
    pub(super) is_held: bool,
    pub(super) tab: Tab,
    orders: [Order; 5],
    /// Of a finished run: nothing changes.
    pub(super) over: Option<Over>,
    pub(super) filter: String,
    pub(super) typing: Option<Typing>,
    /// What is typed as a list of events.
    pub(super) typed: String,
    /// Places of the tab's rows that are shown, in their order.
    pub(super) shown: Vec<usize>,
    /// Of those, the one that is selected, and the first on the screen.
    pub(super) selected: usize,
    pub(super) first: usize,
    /// Rows on the screen.
    pub(super) page: usize,
    pub(super) help: bool,
    /// Whether the selected region is shown with its threads, and these.
    details: bool,
    pub(super) parts: Vec<Part>,
    /// What has become of the last wish: whether it went well, and what is said.
    pub(super) said: Option<(bool, String)>,
    frozen: bool,
    total: bool,
}

impl App {
    pub(super) fn new(picture: Picture, counted: String, is_held: bool) -> App {
        let by = |column| Order {
            column,
            reversed: false,
        };
        let mut app = App {
            events: tabs::events(&picture),
            picture,
            counted,
            is_held,
            tab: Tab::Regions,
            orders: [by(0), by(0), by(0), by(1), by(0)],
            over: None,
            filter: String::new(),
            typing: None,
            typed: String::new(),
            shown: Vec::new(),
            selected: 0,
            first: 0,
            page: 1,
            help: false,
            details: false,
            parts: Vec::new(),
            said: None,
            frozen: false,
            total: false,
        };
        app.arrange();
        app
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Whether the numbers are about the time since the recording began.
    pub(super) fn is_total(&self) -> bool {
        self.total
    }

    pub(super) fn order(&self) -> Order {
        self.orders[self.tab as usize]
    }

    /// Takes in what is new. The same row stays selected.
    pub(super) fn update(&mut self, picture: Picture, counted: String, is_held: bool) {
        let selected = self.shown.get(self.selected).map(|&at| self.id(at));
        self.events = tabs::events(&picture);
        (self.picture, self.counted, self.is_held) = (picture, counted, is_held);
        self.arrange();
        let again = self
            .shown
            .iter()
            .position(|&at| Some(self.id(at)) == selected);
        if let Some(again) = again {
            self.selected = again;
        }
        self.scroll();
    }

    /// The region that is shown with its threads.
    pub(super) fn detailed(&self) -> Option<(usize, u32)> {
        Some(self.detailed_row()?.site)
    }

    /// The same, as a row.
    pub(super) fn detailed_row(&self) -> Option<&Row> {
        let at = self.shown.get(self.selected)?;
        let is_shown = self.details && self.tab == Tab::Regions;
        is_shown.then(|| &self.picture.regions[*at])
    }

    /// Says what has become of a wish.
    pub(super) fn done(&mut self, result: Result<String, String>) {
        self.said = Some(match result {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        });
    }

    fn id(&self, at: usize) -> Id {
        match self.tab {
            Tab::Regions => Id::Region(self.picture.regions[at].site),
            Tab::Threads => Id::Thread(self.picture.per_thread[at].number),
            Tab::Ranks => Id::Process(self.picture.processes[at].pid),
            Tab::Events | Tab::CallPaths => Id::Event(self.events[at].name.clone()),
        }
    }

    /// Where a thread spends most of its time.
    pub(super) fn mostly(&self, thread: usize) -> String {
        let site = self.picture.per_thread[thread].mostly;
        let row = self
            .picture
            .regions
            .iter()
            .find(|row| Some(row.site) == site);
        row.map_or_else(String::new, tabs::place)
    }

    /// What the filter is compared with.
    fn text(&self, at: usize) -> String {
        match self.tab {
            Tab::Regions => {
                let row = &self.picture.regions[at];
                let function = row.function.as_deref().unwrap_or_default();
                format!("{} {function}", tabs::place(row))
            }
            Tab::Threads => {
                let row = &self.picture.per_thread[at];
                format!("{}:{} {}", row.pid, row.thread, self.mostly(at))
            }
            Tab::Ranks => {
                let row = &self.picture.processes[at];
                format!("{} {}", row.pid, row.folder.display())
            }
            Tab::Events | Tab::CallPaths => {
                format!("{} {}", self.events[at].name, self.events[at].mostly)
            }
        }
    }

    fn key_of(&self, at: usize, events: &[&str]) -> Key {
        let column = self.order().column;
        match self.tab {
            Tab::Regions => tabs::key_of_region(&self.picture.regions[at], column, events),
            Tab::Threads => {
                tabs::key_of_thread(&self.picture.per_thread[at], column, &self.mostly(at))
            }
            Tab::Ranks => tabs::key_of_process(&self.picture.processes[at], column),
            Tab::Events | Tab::CallPaths => tabs::key_of_event(&self.events[at], column),
        }
    }

    /// Filters and sorts.
    fn arrange(&mut self) {
        let rows = match self.tab {
            Tab::Regions => self.picture.regions.len(),
            Tab::Threads => self.picture.per_thread.len(),
            Tab::Ranks => self.picture.processes.len(),
            Tab::Events => self.events.len(),
            Tab::CallPaths => 0, // a text
        };
        let wanted = self.filter.to_lowercase();
        let is_wanted =
            |at: &usize| wanted.is_empty() || self.text(*at).to_lowercase().contains(&wanted);
        let (events, _) = self.picture.events();
        let mut keys: Vec<(Key, usize)> = (0..rows)
            .filter(is_wanted)
            .map(|at| (self.key_of(at, &events), at))
            .collect();
        keys.sort_by(|a, b| a.0.compare(&b.0));
        if self.order().reversed {
            keys.reverse();
        }
        self.shown = keys.into_iter().map(|(_, at)| at).collect();
        self.scroll();
    }

    /// Keeps the selected row on the screen.
    pub(super) fn scroll(&mut self) {
        self.selected = self.selected.min(self.shown.len().saturating_sub(1));
        let last = self.shown.len().saturating_sub(self.page);
        self.first = self.first.min(last).min(self.selected);
        self.first = self
            .first
            .max((self.selected + 1).saturating_sub(self.page));
    }

    fn go(&mut self, tab: Tab) {
        self.tab = tab;
        (self.selected, self.first) = (0, 0);
        self.arrange();
    }

    fn step(&mut self, by: isize) {
        let tabs = self.tabs();
        let at = tabs.iter().position(|t| *t == self.tab).unwrap_or(0);
        let next = (at as isize + by).rem_euclid(tabs.len() as isize);
        self.go(tabs[next as usize]);
    }

    fn sort(&mut self, by: isize) {
        let columns = tabs::columns(self.tab, &self.picture);
        let order = &mut self.orders[self.tab as usize];
        let is_there = |at: usize| self.over.is_none() || columns[at].name() != tabs::MINUTE;
        loop {
            let next = (order.column as isize + by).rem_euclid(columns.len() as isize);
            order.column = next as usize;
            if is_there(order.column) {
                break;
            }
        }
        order.reversed = false;
        self.arrange();
    }

    fn select(&mut self, at: usize) {
        self.selected = at;
        self.scroll();
    }

    /// What a key does.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Wish::Quit);
        }
        if self.help {
            self.help = false;
            return None;
        }
        match self.typing {
            Some(typing) => self.type_in(typing, key.code),
            None => match self.read(key.code) {
                true => None,
                false => self.press(key.code),
            },
        }
    }

    fn press(&mut self, code: KeyCode) -> Option<Wish> {
        self.said = None;
        let before = self.detailed();
        let wish = self.pressed(code);
        // Another region is shown at once.
        let is_other = self.detailed() != before;
        wish.or_else(|| is_other.then_some(Wish::Look))
    }

    fn pressed(&mut self, code: KeyCode) -> Option<Wish> {
        match code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            // It ends what is there to be ended, and then the program.
            KeyCode::Esc if self.details => self.details = false,
            KeyCode::Esc if self.filter.is_empty() => return Some(Wish::Quit),
            KeyCode::Esc => {
                self.filter.clear();
                self.arrange();
            }
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = true,
            KeyCode::Tab | KeyCode::Right => self.step(1),
            KeyCode::BackTab | KeyCode::Left => self.step(-1),
            KeyCode::Char(digit @ '1'..='4') => {
                self.go(self.tabs()[digit as usize - '1' as usize]);
            }
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected + 1),
            KeyCode::Up | KeyCode::Char('k') => self.select(self.selected.saturating_sub(1)),
            KeyCode::PageDown => self.select(self.selected + self.page),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(self.page)),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX - 1),
            KeyCode::Char('<' | ',') => self.sort(-1),
            KeyCode::Char('>' | '.' | 's') => self.sort(1),
            KeyCode::Char('r') => {
                let order = &mut self.orders[self.tab as usize];
                order.reversed = !order.reversed;
                self.arrange();
            }
            KeyCode::Enter if self.over.is_some() => {
                let at = self.shown.get(self.selected).copied();
                return at.and_then(|at| self.region_at(at)).map(Wish::Open);
            }
            KeyCode::Enter => {
                self.details = !self.details || self.tab != Tab::Regions;
                self.tab = Tab::Regions;
                self.arrange();
            }
            KeyCode::Char('/') => self.typing = Some(Typing::Filter),
            // What is over doesn't change.
            _ if self.over.is_some() => {}
            KeyCode::Char('v') => self.typing = Some(Typing::Events),
            KeyCode::Char(' ') => {
                self.frozen = !self.frozen;
                return (!self.frozen).then_some(Wish::Look);
            }
            KeyCode::Char('t') => {
                self.total = !self.total;
                return Some(Wish::Look);
            }
            KeyCode::Char('p') => return Some(Wish::Hold(!self.is_held)),
            KeyCode::Char('e') => return self.switch(),
            _ => {}
        }
        None
    }

    fn switch(&mut self) -> Option<Wish> {
        let at = *self.shown.get(self.selected)?;
        if self.tab != Tab::Regions {
            self.done(Err(
                "only regions are switched off and on: press 1 first".to_owned()
            ));
            return None;
        }
        let row = self.picture.regions[at].clone();
        Some(Wish::Switch {
            on: row.off,
            row: Box::new(row),
        })
    }

    fn type_in(&mut self, typing: Typing, code: KeyCode) -> Option<Wish> {
        let text = match typing {
            Typing::Filter => &mut self.filter,
            Typing::Events => &mut self.typed,
        };
        match code {
            KeyCode::Char(c) => text.push(c),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Esc => {
                text.clear();
                self.typing = None;
            }
            KeyCode::Enter => {
                self.typing = None;
                let list = std::mem::take(&mut self.typed);
                if typing == Typing::Events && !list.trim().is_empty() {
                    return Some(Wish::Events(list.trim().to_owned()));
                }
            }
            _ => {}
        }
        if typing == Typing::Filter {
            self.arrange();
        }
        None
    }
}
