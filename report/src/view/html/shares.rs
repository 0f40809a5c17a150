//! What the program's available time went to, as a bar with its legend.

use maud::{Markup, html};
use ompfuse_account::model::series::Stack;
use ompfuse_account::model::{Class, ProbeTime, Report, State};
use ompfuse_account::units::{percent, seconds};

/// Parts of the available time, in the order that they are shown in: states of the account, some of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The program's code outside of parallel regions.
    Serial,
    /// The program's code in parallel regions.
    Work,
    /// Calls of MPI.
    Communication,
    /// Recorded calls of other libraries.
    Call,
    /// A class of overhead.
    Lost(Class),
    /// Threads with nothing to do: meanwhile, or left out by a smaller team.
    Idle,
    /// Not known.
    Unknown,
}

impl Part {
    /// All of them.
    pub(super) const ALL: [Part; 10] = [
        Part::Serial,
        Part::Work,
        Part::Communication,
        Part::Call,
        Part::Lost(Class::Synchronization),
        Part::Lost(Class::Imbalance),
        Part::Lost(Class::LimitedParallelism),
        Part::Lost(Class::Management),
        Part::Idle,
        Part::Unknown,
    ];

    /// The part that a state belongs to.
    fn of(state: State) -> Part {
        match state {
            State::Useful => Part::Work,
            State::Serial => Part::Serial,
            State::Communication => Part::Communication,
            State::Call | State::Io => Part::Call,
            State::Synchronization => Part::Lost(Class::Synchronization),
            State::Imbalance => Part::Lost(Class::Imbalance),
            State::LimitedParallelism => Part::Lost(Class::LimitedParallelism),
            State::Management => Part::Lost(Class::Management),
            State::IdleSerial | State::IdleCommunication | State::IdleTeam => Part::Idle,
            State::Unknown => Part::Unknown,
        }
    }

    /// Its name in style sheets and scripts.
    pub(super) fn id(self) -> &'static str {
        match self {
            Part::Serial => "serial",
            Part::Work => "work",
            Part::Communication => "mpi",
            Part::Call => "call",
            Part::Lost(class) => class_id(class),
            Part::Idle => "idle",
            Part::Unknown => "unknown",
        }
    }
}

/// A class's name in style sheets and scripts.
pub(super) fn class_id(class: Class) -> &'static str {
    match class {
        Class::Synchronization => "sync",
        Class::Imbalance => "imbalance",
        Class::LimitedParallelism => "limited",
        Class::Management => "manage",
    }
}

/// The available time and its parts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shares {
    /// All of it, in seconds.
    pub(super) available_s: f64,
    /// The most threads at once.
    pub(super) threads: u64,
    /// Seconds of each part.
    pub(super) parts: Vec<(Part, f64)>,
}

impl Shares {
    /// Of a report; `None`: its time isn't known.
    pub(super) fn new(report: &Report) -> Option<Shares> {
        let account = report.account.as_ref().filter(|a| a.available_ns > 0)?;
        let seconds = |part: Part| {
            let states = account.states.iter().filter(|s| Part::of(s.state) == part);
            states.map(|s| s.ns).sum::<u64>() as f64 * 1e-9
        };
        let parts = Part::ALL.into_iter().map(|part| (part, seconds(part)));
        Some(Shares {
            available_s: account.available_ns as f64 * 1e-9,
            threads: account.threads,
            parts: parts.filter(|(_, seconds)| *seconds > 0.0).collect(),
        })
    }

    /// Of a point of a series. All of it was available with so many threads.
    pub(super) fn of_stack(stack: &Stack, available_s: f64, threads: u32) -> Shares {
        let mut parts = vec![(Part::Serial, stack.serial_s), (Part::Work, stack.work_s)];
        let lost = |class| Some((Part::Lost(class), stack.overhead.get(class)?));
        parts.extend(Class::ALL.into_iter().filter_map(lost));
        parts.push((Part::Communication, stack.communication_s));
        parts.push((Part::Call, stack.call_s));
        parts.push((Part::Idle, stack.serial_idle_s + stack.unused_s));
        parts.push((Part::Unknown, stack.unknown_s));
        parts.retain(|(_, seconds)| *seconds > 0.0);
        Shares {
            available_s,
            threads: threads.into(),
            parts,
        }
    }

    fn share(&self, seconds: f64) -> f64 {
        seconds / self.available_s
    }

    /// The bar alone.
    pub(super) fn segments(&self) -> Markup {
        let told: Vec<String> = (self.parts.iter())
            .map(|(part, s)| format!("{} {}", super::terms::name(*part), percent(self.share(*s))))
            .collect();
        html! {
            div.bar role="img" aria-label=(format!("Available time: {}", told.join(", "))) {
                @for (part, s) in &self.parts {
                    @let share = self.share(*s);
                    div class={ "seg " (part.id()) } style=(format!("width:{:.3}%", 100.0 * share))
                        title=(format!("{}: {} ({})", super::terms::name(*part), seconds(*s), percent(share))) {
                        span { (percent(share)) }
                    }
                }
            }
        }
    }

    /// The bar, with its legend below. `probes`: what probes took of it, estimated; as everywhere its share is of the processor time.
    pub(super) fn bar(&self, probes: Option<&ProbeTime>) -> Markup {
        html! {
            (self.segments())
            @if let Some(probes) = probes {
                @let s = probes.estimated_s.min(self.available_s);
                div.probes-bar aria-hidden="true" {
                    div style=(format!("width:{:.3}%", 100.0 * self.share(s))) {}
                }
            }
            ul.legend {
                @for (part, s) in &self.parts {
                    li title=(super::terms::about(*part)) data-part=(part.id()) {
                        span class={ "key " (part.id()) } {}
                        span.what { (super::terms::name(*part)) }
                        span.num { (percent(self.share(*s))) }
                        span.sub { (seconds(*s)) }
                    }
                }
                @if let Some(probes) = probes {
                    li title="What recording itself took, estimated. It is inside of the other parts. Its share is of the processor time." data-part="probes" {
                        span.key.probes {}
                        span.what { "Probes (inside)" }
                        span.num { "≈ " (percent(probes.share)) }
                        span.sub { (seconds(probes.estimated_s)) " of processor time" }
                    }
                }
            }
        }
    }
}
