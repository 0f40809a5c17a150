//! A finished run on the same screen: nothing changes, and there are texts to read.

use super::super::super::Picture;
use super::super::reader::Reader;
use super::App;
use super::Tab;
use ratatui::crossterm::event::KeyCode;

/// What a finished run has instead of changes.
pub(in super::super) struct Over {
    /// The command.
    pub(in super::super) title: String,
    /// The tree of call paths.
    pub(in super::super) paths: Reader,
    /// The region that is read about: its number and the text.
    pub(in super::super) open: Option<(u32, Reader)>,
}

impl App {
    /// Of a finished run.
    pub(in super::super) fn finished(picture: Picture, over: Over) -> App {
        App {
            over: Some(over),
            total: true,
            ..App::new(picture, String::new(), false)
        }
    }

    /// The tabs that there are.
    pub(in super::super) fn tabs(&self) -> &'static [Tab] {
        match self.over {
            Some(_) => &Tab::FINISHED,
            None => &Tab::LIVE,
        }
    }

    /// Fills the text that was opened.
    pub(in super::super) fn opened(&mut self, text: &str) {
        let open = self.over.as_mut().and_then(|over| over.open.as_mut());
        if let Some((_, reader)) = open {
            reader.replace(text);
        }
    }

    /// The text that is read at the moment.
    pub(in super::super) fn reader(&mut self) -> Option<&mut Reader> {
        let over = self.over.as_mut()?;
        match (&mut over.open, self.tab) {
            (Some((_, reader)), _) => Some(reader),
            (None, Tab::CallPaths) => Some(&mut over.paths),
            (None, _) => None,
        }
    }

    /// Whether a key was for a text that is read.
    pub(super) fn read(&mut self, code: KeyCode) -> bool {
        let Some(reader) = self.reader() else {
            return false;
        };
        if reader.key(code) {
            return true;
        }
        let is_back = matches!(code, KeyCode::Char('q') | KeyCode::Esc);
        let is_open = self.over.as_ref().is_some_and(|over| over.open.is_some());
        // As less has it, q ends the text.
        if let Some(over) = self.over.as_mut().filter(|_| is_back) {
            over.open = None;
        }
        let is_help = matches!(code, KeyCode::Char('?' | 'h') | KeyCode::F(1));
        is_open && !is_help
    }

    /// Number of the region that a row is about: of a thread the one with most of its time.
    pub(super) fn region_at(&self, at: usize) -> Option<u32> {
        let site = match self.tab {
            Tab::Regions => Some(self.picture.regions[at].site),
            Tab::Threads => self.picture.per_thread[at].mostly,
            Tab::Ranks | Tab::Events | Tab::CallPaths => None,
        };
        site.map(|(_, id)| id)
    }
}
