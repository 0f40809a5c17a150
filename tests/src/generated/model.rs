//! What a generated program lost, by its own clocks: each phase's losses, with words for their causes and lines.
//!
//! In a phase a team's threads come to barriers, step by step. Who comes early waits for the one that comes last, because of the place at which
//! that one was longer than the mean, at work or waiting to enter it. What a thread waits to enter is lost by who holds it longest.

use super::writer::{BESIDE, Place, Writer};
use std::collections::BTreeMap;

/// A line of the program's clock, with times in seconds.
#[derive(Debug, Clone, Copy)]
struct Event {
    kind: char,
    place: usize,
    step: u64,
    thread: u32,
    begin: f64,
    end: f64,
    processor: f64,
}

/// A loss.
#[derive(Debug, Clone)]
pub struct Lost {
    /// Words for its cause.
    pub words: Vec<&'static str>,
    /// Lines that are right; none: it has no place.
    pub lines: Vec<u32>,
    /// Seconds, all threads together.
    pub seconds: f64,
    /// The place that is to blame, if one is.
    pub place: Option<usize>,
}

/// What is known of a place's units.
#[derive(Debug, Clone, Copy, Default)]
pub struct Units {
    /// How many.
    pub count: u64,
    /// Seconds of all.
    pub seconds: f64,
}

/// A run, by the program's own clocks.
#[derive(Debug, Clone)]
pub struct Known {
    /// From the first constructor to the last handler, in seconds.
    pub own: f64,
    /// The most threads in teams at once.
    pub threads: u64,
    /// Losses, the largest first.
    pub losses: Vec<Lost>,
    /// Seconds in which no thread was in a unit, all threads together.
    pub unused: f64,
    /// Seconds in units that the runtime may have executed.
    pub hidden: f64,
    /// Units by place.
    pub units: Vec<Units>,
    /// By phase: executions, and their seconds.
    pub phases: Vec<Units>,
}

type Key = (Vec<&'static str>, Vec<u32>, Option<usize>);

impl Known {
    /// Reads what the program wrote. `None`: it isn't there.
    pub fn read(program: &Writer, text: &str) -> Option<Known> {
        let events: Vec<Event> = text.lines().filter_map(event).collect();
        let own = events.iter().find(|e| e.kind == 'E')?.end;
        let threads = program.phases.iter().filter_map(|p| p.team).max();
        let threads = threads.unwrap_or(1).max(1);
        let length = |e: &Event| match program.computes {
            true => e.processor,
            false => e.end - e.begin,
        };
        let mut units = vec![Units::default(); program.places.len()];
        for event in events.iter().filter(|e| e.kind == 'U') {
            units[event.place].count += 1;
            units[event.place].seconds += length(event);
        }
        let mut lost: BTreeMap<Key, f64> = BTreeMap::new();
        let mut phases = vec![Units::default(); program.phases.len()];
        let mut inside = 0.0;
        for execution in events.iter().filter(|e| e.kind == 'P') {
            let number = execution.place;
            let wall = execution.end - execution.begin;
            phases[number].count += 1;
            phases[number].seconds += wall;
            let Some(team) = program.phases[number].team else {
                continue;
            };
            inside += wall;
            let its = events.iter().filter(|e| {
                matches!(e.kind, 'U' | 'W')
                    && program.places[e.place].phase == number
                    && e.begin >= execution.begin
                    && e.end <= execution.end
            });
            let its: Vec<Event> = its.copied().collect();
            let busy: f64 = its.iter().filter(|e| e.kind == 'U').map(length).sum();
            let mut add = |words: &[&'static str], lines: &[u32], place, seconds: f64| {
                let key = (words.to_vec(), lines.to_vec(), place);
                *lost.entry(key).or_default() += seconds;
            };
            let line = program.phases[number].line;
            if team < threads {
                add(
                    &["smaller-team"],
                    &[line],
                    None,
                    wall * (threads - team) as f64,
                );
            }
            match &program.phases[number].whole {
                Some((words, lines)) => {
                    add(words, lines, None, (wall * team as f64 - busy).max(0.0));
                }
                None => {
                    let told = steps(program, &its, (team, execution.begin), &length, &mut add);
                    // Threads that begin late, and are told late that all have come.
                    let rest = wall * team as f64 - busy - told;
                    add(&["fork", "late"], &[line], None, rest.max(0.0));
                }
            }
        }
        let of = |is: &dyn Fn(&Place) -> bool| -> f64 {
            let both = program.places.iter().zip(&units);
            both.filter(|(p, _)| is(p)).map(|(_, u)| u.seconds).sum()
        };
        let serial = (own - inside) * (threads - 1) as f64 - of(&|p| p.words == [BESIDE]);
        lost.insert((vec!["serial"], vec![], None), serial);
        let merged = merged(program, &units, lost);
        let busy = of(&|_| true);
        Some(Known {
            own,
            threads: threads as u64,
            losses: merged,
            unused: (own * threads as f64 - busy).max(0.0),
            hidden: of(&|p| p.is_hidden),
            units,
            phases,
        })
    }

    /// What all threads could have used, in seconds.
    pub fn available(&self) -> f64 {
        self.own * self.threads as f64
    }
}

fn event(line: &str) -> Option<Event> {
    let (_, values) = line.split_once("OWNCLOCK ")?;
    let mut words = values.split_whitespace();
    let kind = words.next()?.chars().next()?;
    let mut number = || words.next()?.parse::<f64>().ok();
    let (place, step, thread) = (number()?, number()?, number()?);
    Some(Event {
        kind,
        place: place as usize,
        step: step as u64,
        thread: thread as u32,
        begin: number()? * 1e-6,
        end: number()? * 1e-6,
        processor: number()? * 1e-6,
    })
}

/// Adds a loss: words for its cause, lines, place, seconds.
type Add<'a> = dyn FnMut(&[&'static str], &[u32], Option<usize>, f64) + 'a;

/// What is lost in an execution of a phase, step by step; tells how many seconds these are. `begin`: when it began.
fn steps(
    program: &Writer,
    events: &[Event],
    (team, begin): (usize, f64),
    length: &dyn Fn(&Event) -> f64,
    add: &mut Add<'_>,
) -> f64 {
    let mut told = 0.0;
    for wait in events.iter().filter(|e| e.kind == 'W') {
        let place = &program.places[wait.place];
        let waited = wait.end - wait.begin;
        told += waited;
        add(&place.words, &place.lines, Some(wait.place), waited);
    }
    let mut by_step: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
    for event in events {
        // A wait has no step of its own: there is one step then.
        by_step.entry(event.step).or_default().push(event);
    }
    let mut since = begin;
    for events in by_step.values() {
        let mut threads: BTreeMap<u32, (f64, BTreeMap<usize, f64>)> = BTreeMap::new();
        for event in events {
            let thread = threads
                .entry(event.thread)
                .or_insert((since, BTreeMap::new()));
            let took = match event.kind {
                'U' => length(event),
                _ => event.end - event.begin,
            };
            thread.0 = match program.computes {
                true => thread.0 + took,
                false => thread.0.max(event.end),
            };
            *thread.1.entry(event.place).or_default() += took;
        }
        let end = threads.values().map(|t| t.0).fold(since, f64::max);
        let idle = (team.saturating_sub(threads.len())) as f64 * (end - since);
        let waited = threads.values().map(|t| end - t.0).sum::<f64>() + idle;
        let Some((_, did)) = threads.values().max_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        let more = |place: usize| {
            let all = threads
                .values()
                .filter_map(|t| t.1.get(&place))
                .sum::<f64>();
            did[&place] - all / team as f64
        };
        let most = did
            .keys()
            .copied()
            .max_by(|&a, &b| more(a).total_cmp(&more(b)));
        if let Some(place) = most {
            let of = &program.places[place];
            told += waited;
            add(&of.words, &of.lines, Some(place), waited);
        }
        since = end;
    }
    told
}

/// Losses with the same words and lines together; of places that exclude each other, the one that is held longest is to blame.
fn merged(program: &Writer, units: &[Units], lost: BTreeMap<Key, f64>) -> Vec<Lost> {
    let mut all: Vec<Lost> = vec![];
    for ((words, lines, place), seconds) in lost {
        let blamed = place.and_then(|at| {
            let mutex = program.places[at].mutex?;
            let same = (0..units.len()).filter(|&p| program.places[p].mutex == Some(mutex));
            same.max_by(|&a, &b| units[a].seconds.total_cmp(&units[b].seconds))
        });
        let (words, lines, place) = match blamed {
            Some(at) => {
                let of = &program.places[at];
                (of.words.clone(), of.lines.clone(), Some(at))
            }
            None => (words, lines, place),
        };
        let same = |l: &&mut Lost| (&l.words, &l.lines) == (&words, &lines);
        match all.iter_mut().find(same) {
            Some(known) => known.seconds += seconds,
            None => all.push(Lost {
                words,
                lines,
                seconds,
                place,
            }),
        }
    }
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}
