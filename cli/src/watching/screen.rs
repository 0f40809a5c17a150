//! The full-screen program: keys go to [`app`], [`draw`] shows its state.

mod app;
mod detail;
mod draw;
mod help;
mod reader;
mod tabs;

use super::history::History;
use super::{Picture, Sample, Watching};
use crate::output;
use anyhow::{Context, Result};
use app::{App, Over, Wish};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use reader::Reader;
use std::time::{Duration, Instant};

/// Shows what goes on until the user has seen enough, or nothing is recorded any more. The last picture, since the begin, and
/// why it is the last one, if the user didn't end it.
pub(crate) fn show(
    mut watching: Watching,
    interval: Duration,
) -> Result<(Picture, Option<String>)> {
    let mut terminal = ratatui::try_init().context("cannot prepare the terminal")?;
    // Notes would stand in the midst of the screen; what they say of events is in its first line.
    output::mute(true);
    let ended = run(&mut terminal, &mut watching, interval);
    output::mute(false);
    ratatui::restore();
    let ended = ended?;
    watching.look_back();
    Ok((watching.picture(None), ended))
}

/// A finished run.
pub(crate) struct Finished<'a> {
    /// The command.
    pub(crate) title: String,
    /// Its rows.
    pub(crate) picture: Picture,
    /// The text about a region, by number, for lines of this width.
    pub(crate) region: &'a dyn Fn(u32, usize) -> String,
    /// Likewise the tree of call paths.
    pub(crate) paths: &'a dyn Fn(usize) -> String,
}

/// Shows a finished run until the user has seen enough.
pub(crate) fn browse(finished: Finished<'_>) -> Result<()> {
    let mut terminal = ratatui::try_init().context("cannot prepare the terminal")?;
    output::mute(true);
    let ended = turn(&mut terminal, finished);
    output::mute(false);
    ratatui::restore();
    ended
}

fn turn(terminal: &mut DefaultTerminal, finished: Finished<'_>) -> Result<()> {
    let Finished {
        title,
        picture,
        region,
        paths,
    } = finished;
    let mut width = 0;
    let over = Over {
        title,
        paths: Reader::default(),
        open: None,
    };
    let mut app = App::finished(picture, over);
    let history = History::default();
    loop {
        let size = terminal.size().context("cannot ask the terminal")?;
        if let Some(over) = app.over.as_mut().filter(|_| width != size.width) {
            width = size.width;
            over.paths.replace(&paths(width.into()));
            if let Some((id, reader)) = &mut over.open {
                reader.replace(&region(*id, width.into()));
            }
        }
        let draw = terminal.draw(|frame| draw::draw(frame, &mut app, &history));
        draw.context("cannot write to the terminal")?;
        let wish = match event::read().context("cannot read from the terminal")? {
            Event::Key(key) if key.kind == KeyEventKind::Press => app.key(key),
            _ => None,
        };
        match (wish, &mut app.over) {
            (Some(Wish::Quit), _) => return Ok(()),
            (Some(Wish::Open(id)), Some(over)) => {
                over.open = Some((id, Reader::new("reading the units")));
                let draw = terminal.draw(|frame| draw::draw(frame, &mut app, &history));
                draw.context("cannot write to the terminal")?;
                let text = region(id, width.into());
                app.opened(&text);
            }
            _ => {}
        }
    }
}

/// What was looked at, and when.
struct Looks {
    before: Sample,
    history: History,
}

fn run(
    terminal: &mut DefaultTerminal,
    watching: &mut Watching,
    interval: Duration,
) -> Result<Option<String>> {
    let mut looks = Looks {
        before: watching.sample(),
        history: History::default(),
    };
    let mut app = App::new(
        watching.picture(None),
        watching.counted(),
        watching.is_held(),
    );
    loop {
        let next = Instant::now() + interval;
        loop {
            let draw = terminal.draw(|frame| draw::draw(frame, &mut app, &looks.history));
            draw.context("cannot write to the terminal")?;
            let left = next.saturating_duration_since(Instant::now());
            if !event::poll(left).context("cannot read from the terminal")? {
                break;
            }
            let wish = match event::read().context("cannot read from the terminal")? {
                Event::Key(key) if key.kind == KeyEventKind::Press => app.key(key),
                _ => None,
            };
            match wish {
                None => {}
                Some(Wish::Quit) => return Ok(None),
                Some(Wish::Look) => break,
                Some(wish) => {
                    app.done(change(watching, &wish).map_err(|error| format!("{error:#}")));
                    break;
                }
            }
        }
        if let Err(ended) = watching.look() {
            return Ok(Some(format!("{ended:#}")));
        }
        let now = watching.sample();
        looks.history.add(watching, &looks.before, &now);
        if !app.is_frozen() {
            let since = (!app.is_total()).then_some(&looks.before);
            app.update(
                watching.picture(since),
                watching.counted(),
                watching.is_held(),
            );
        }
        app.parts = match app.detailed() {
            Some(site) => watching.parts(site, (!app.is_total()).then_some(&looks.before)),
            None => Vec::new(),
        };
        looks.before = now;
    }
}

/// Does what a key asks for; the result is said.
fn change(watching: &Watching, wish: &Wish) -> Result<String> {
    match wish {
        Wish::Switch { row, on } => {
            watching.switch(row, *on)?;
            let word = if *on { "on" } else { "off" };
            let construct = row.construct.unwrap_or("region");
            Ok(format!(
                "{construct} {} is {word} from now on",
                row.location()
            ))
        }
        Wish::Events(list) => {
            watching.count(list)?;
            Ok(format!("counted from now on: {list}"))
        }
        Wish::Hold(held) => {
            watching.hold(*held)?;
            Ok(match held {
                true => "nothing is recorded until p is pressed again".to_owned(),
                false => "recording goes on".to_owned(),
            })
        }
        Wish::Quit | Wish::Look | Wish::Open(_) => Ok(String::new()),
    }
}
