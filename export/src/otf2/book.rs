//! Definitions: written as they are met, those of threads and teams at the end.

use super::regions;
use crate::trace::{LABEL_LIMIT, Names, Ordered, process_name, thread_name};
use ompfuse_fuse::run::timeline::{Lane, PatternKey, Span, Timeline};
use ompfuse_otf2::{
    Archive, Attribute, Clock, Error, Group, GroupKind, Paradigm, ParadigmClass, Region,
    SystemDomain, UNDEFINED,
};
use std::collections::HashMap;

/// Attributes of units.
const LABEL: u32 = 0;
const NUMBER: u32 = 1;
const ITERATIONS: u32 = 2;
const PRECEDES: u32 = 3;
const DEPENDS: u32 = 4;
const CRITICAL: u32 = 5;

/// What each of them is.
const ATTRIBUTES: [(&str, &str); 6] = [
    (
        "label",
        "the unit's identity in all runs; the attribute \"number\" stands for the *",
    ),
    ("number", "what stands for the * in the unit's label"),
    ("iterations", "how many iterations the unit executed"),
    (
        "precedes",
        "numbers of dependences: a unit with such a number in \"depends on\" waits for this one",
    ),
    (
        "depends on",
        "numbers of dependences: this unit waits for those with such a number in \"precedes\"",
    ),
    ("critical path", "1: the unit is on the critical path"),
];

/// The system tree's root; hosts follow.
const MACHINE: u32 = 0;

/// A team that events refer to.
#[derive(Debug)]
pub(super) struct KnownTeam {
    /// Its communicator.
    pub(super) comm: u32,
    /// Its lanes, by their number in it.
    pub(super) members: Vec<usize>,
}

/// What has an identifier already.
#[derive(Debug, Default)]
pub(super) struct Book {
    strings: HashMap<String, u32>,
    number_of_strings: u32,
    names: Names,
    patterns: HashMap<PatternKey, Option<u32>>,
    /// Metric classes, by the events that they have.
    classes: HashMap<u64, u32>,
    has_mpi: bool,
    /// By process, and by the number on record, else by place.
    locks: HashMap<(u16, Option<u32>, Option<u32>), u32>,
    /// By position in the timeline's.
    teams: HashMap<u32, KnownTeam>,
}

/// A thread's location, as Score-P numbers it.
pub(super) fn location(lane: &Lane) -> u64 {
    u64::from(lane.thread) << 32 | u64::from(lane.process)
}

impl Book {
    /// What events refer to everywhere. `length`: nanoseconds to the last event.
    pub(super) fn begin(
        &mut self,
        to: &mut Archive,
        timeline: &Timeline<'_>,
        (origin, length): (i64, u64),
    ) -> Result<(), Error> {
        let started = timeline.header().started * 1e9;
        to.clock(Clock {
            resolution: 1_000_000_000,
            offset: 0,
            length,
            realtime_ns: (started as u64).saturating_add_signed(origin),
        })?;
        let name = self.string(to, "OpenMP")?;
        to.paradigm(Paradigm::OpenMp, name, ParadigmClass::ThreadForkJoin)?;
        for (id, (name, about)) in (0..).zip(ATTRIBUTES) {
            let (name, about) = (self.string(to, name)?, self.string(to, about)?);
            match id {
                LABEL | PRECEDES | DEPENDS => to.text_attribute(id, name, about)?,
                _ => to.number_attribute(id, name, about)?,
            }
        }
        for (id, event) in (0..).zip(timeline.counted()) {
            let (name, none) = (self.string(to, event)?, self.string(to, "")?);
            to.metric(id, name, none, none)?;
        }
        Ok(())
    }

    /// A text's identifier.
    fn string(&mut self, to: &mut Archive, text: &str) -> Result<u32, Error> {
        if let Some(&id) = self.strings.get(text) {
            return Ok(id);
        }
        let id = self.string_once(to, text)?;
        self.strings.insert(text.to_owned(), id);
        Ok(id)
    }

    /// The same of a text that isn't asked for again.
    fn string_once(&mut self, to: &mut Archive, text: &str) -> Result<u32, Error> {
        let id = self.number_of_strings;
        self.number_of_strings += 1;
        to.string(id, text)?;
        Ok(id)
    }

    /// Says that there is MPI, once.
    fn mpi(&mut self, to: &mut Archive) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_mpi, true) {
            return Ok(());
        }
        let name = self.string(to, "MPI")?;
        to.paradigm(Paradigm::Mpi, name, ParadigmClass::Process)
    }

    /// A span's region.
    pub(super) fn region(
        &mut self,
        to: &mut Archive,
        timeline: &Timeline<'_>,
        span: &Span<'_>,
    ) -> Result<u32, Error> {
        let (number, is_new) = self.names.number(timeline, span);
        let id = number as u32;
        if is_new {
            let program = &timeline.header().program;
            let program = program.rsplit('/').next().unwrap_or(program);
            let (what, role, paradigm) = regions::region(span);
            if paradigm == Paradigm::Mpi {
                self.mpi(to)?;
            }
            let name = self.names.get(number).clone();
            let text = regions::name(what, &name, program, span);
            let text = self.string(to, &text)?;
            let file = match &name.file {
                Some(file) => self.string(to, file)?,
                None => UNDEFINED,
            };
            let region = Region {
                name: text,
                canonical: text,
                description: self.string(to, &name.text)?,
                role,
                paradigm,
                file,
                line: name.line.unwrap_or(0),
            };
            to.region(id, region)?;
        }
        Ok(id)
    }

    /// Adds what an event says of a unit beside its region.
    pub(super) fn attributes(
        &mut self,
        to: &mut Archive,
        timeline: &Timeline<'_>,
        lane: &Lane,
        span: &Span<'_>,
        list: &mut Vec<Attribute>,
    ) -> Result<(), Error> {
        if let Some(pattern) = timeline.label_pattern(lane, span) {
            let text = match self.patterns.get(&pattern.key) {
                Some(&known) => known,
                None => {
                    let text = timeline.pattern_text(lane, span, LABEL_LIMIT);
                    let id = text.map(|text| self.string_once(to, &text)).transpose()?;
                    self.patterns.insert(pattern.key, id);
                    id
                }
            };
            if let Some(text) = text {
                list.push(Attribute::Text(LABEL, text));
                list.push(Attribute::Number(NUMBER, pattern.number));
            }
        }
        if span.is_unit() && span.extent > 0 {
            list.push(Attribute::Number(ITERATIONS, span.extent));
        }
        Ok(())
    }

    /// The same of what orders units.
    pub(super) fn orders(
        &mut self,
        to: &mut Archive,
        ordered: &Ordered,
        list: &mut Vec<Attribute>,
    ) -> Result<(), Error> {
        let numbers = [(PRECEDES, &ordered.precedes), (DEPENDS, &ordered.depends)];
        for (attribute, numbers) in numbers.into_iter().filter(|(_, n)| !n.is_empty()) {
            let text: Vec<String> = numbers.iter().map(u32::to_string).collect();
            let text = self.string(to, &text.join(" "))?;
            list.push(Attribute::Text(attribute, text));
        }
        if ordered.is_critical {
            list.push(Attribute::Number(CRITICAL, 1));
        }
        Ok(())
    }

    /// The class of these events' metrics, a bit for each.
    pub(super) fn class(&mut self, to: &mut Archive, events: u64) -> Result<u32, Error> {
        if let Some(&id) = self.classes.get(&events) {
            return Ok(id);
        }
        let id = self.classes.len() as u32;
        let metrics: Vec<u32> = (0..64).filter(|event| events >> event & 1 != 0).collect();
        to.metric_class(id, &metrics)?;
        self.classes.insert(events, id);
        Ok(id)
    }

    /// The lock that a span is about. One whose address is not on record is told by its place.
    pub(super) fn lock(&mut self, lane: &Lane, span: &Span<'_>) -> u32 {
        let number = span.lock();
        let place = span.site.filter(|_| number.is_none());
        let next = self.locks.len() as u32;
        *self
            .locks
            .entry((lane.process, number, place))
            .or_insert(next)
    }

    /// A team, by its position in the timeline's.
    pub(super) fn team(&mut self, timeline: &Timeline<'_>, team: u32) -> &KnownTeam {
        let comm = self.teams.len() as u32;
        self.teams.entry(team).or_insert_with(|| KnownTeam {
            comm,
            members: timeline.team(team).members,
        })
    }

    /// Processes, threads with the numbers of their events, and teams.
    pub(super) fn end(
        mut self,
        to: &mut Archive,
        timeline: &Timeline<'_>,
        events: &[u64],
    ) -> Result<(), Error> {
        let hosts = self.hosts(to, timeline)?;
        for (at, &host) in hosts.iter().enumerate() {
            let process = match timeline.processes()[at].mpi_rank {
                Some(rank) => format!("MPI Rank {rank}"),
                None => process_name(timeline, at),
            };
            let name = self.string(to, &process)?;
            to.process(at as u32, name, host)?;
        }
        for (lane, &events) in timeline.lanes().iter().zip(events) {
            let name = self.string(to, &thread_name(lane))?;
            to.thread(location(lane), name, events, u32::from(lane.process))?;
        }
        self.communicators(to, timeline)
    }

    /// Hosts, and which one each process was executed on.
    fn hosts(&mut self, to: &mut Archive, timeline: &Timeline<'_>) -> Result<Vec<u32>, Error> {
        let header = timeline.header();
        let (name, class) = (self.string(to, "Linux")?, self.string(to, "machine")?);
        to.system_node(MACHINE, (name, class), UNDEFINED, SystemDomain::Machine)?;
        let class = self.string(to, "node")?;
        let mut known: Vec<&str> = vec![];
        let mut of_process = vec![];
        for process in timeline.processes() {
            let rank = |r: &&ompfuse_format::run::RankEnd| Some(r.rank) == process.mpi_rank;
            let told = header.ranks.iter().find(rank);
            let host = told.and_then(|r| r.host.as_deref()).unwrap_or(&header.host);
            let at = known.iter().position(|&k| k == host);
            let id = MACHINE + 1 + at.unwrap_or(known.len()) as u32;
            if at.is_none() {
                known.push(host);
                let name = self.string(to, host)?;
                to.system_node(id, (name, class), MACHINE, SystemDomain::SharedMemory)?;
            }
            of_process.push(id);
        }
        Ok(of_process)
    }

    fn communicators(&mut self, to: &mut Archive, timeline: &Timeline<'_>) -> Result<(), Error> {
        let all: Vec<u64> = timeline.lanes().iter().map(location).collect();
        let mut group = 0;
        let mut teams: Vec<KnownTeam> = std::mem::take(&mut self.teams).into_values().collect();
        teams.sort_unstable_by_key(|team| team.comm);
        let name = self.string(to, "OpenMP threads")?;
        let mut define = |to: &mut Archive, name, kind, paradigm, members: &[u64]| {
            group += 1;
            let of = Group {
                name,
                kind,
                paradigm,
                members,
            };
            to.group(group - 1, of).map(|()| group - 1)
        };
        define(to, name, GroupKind::CommLocations, Paradigm::OpenMp, &all)?;
        let comms = teams.len() as u32;
        for team in teams {
            let members: Vec<u64> = team.members.iter().map(|&lane| lane as u64).collect();
            let name = self.string(to, &format!("team of {}", members.len()))?;
            let id = define(to, name, GroupKind::Comm, Paradigm::OpenMp, &members)?;
            to.comm(team.comm, name, id)?;
        }
        let ranks = ranks(timeline);
        if ranks.is_empty() {
            return Ok(());
        }
        self.mpi(to)?;
        let name = self.string(to, "MPI")?;
        define(to, name, GroupKind::CommLocations, Paradigm::Mpi, &ranks)?;
        let members: Vec<u64> = (0..ranks.len() as u64).collect();
        let name = self.string(to, "MPI_COMM_WORLD")?;
        let id = define(to, name, GroupKind::Comm, Paradigm::Mpi, &members)?;
        to.comm(comms, name, id)
    }
}

/// Locations of the ranks' first threads, by rank.
fn ranks(timeline: &Timeline<'_>) -> Vec<u64> {
    let mut ranks: Vec<(u32, u64)> = vec![];
    for (at, process) in timeline.processes().iter().enumerate() {
        let mut lanes = timeline.lanes().iter();
        let first = lanes.find(|lane| usize::from(lane.process) == at);
        ranks.extend(process.mpi_rank.zip(first.map(location)));
    }
    ranks.sort_unstable();
    ranks.into_iter().map(|(_, location)| location).collect()
}
