//! Which events can be counted.

use super::{Check, State};
use crate::counters::{self, EventCheck};
use crate::sampling;
use crate::simulate;
use ompfuse_format::event::exact;
use ompfuse_format::refused::{Guard, PARANOID_FILE, STATUS_FILE, lower_paranoid};

pub(super) fn all() -> Vec<Check> {
    let events = counters::check_all();
    let (hardware, software): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|e| e.kind == "hardware");
    vec![
        settings(),
        of_kind("software events", &software),
        with_slots(of_kind("hardware events", &hardware)),
        by_code(),
        samples(),
        simulator(),
    ]
}

/// The setting that holds processes back.
fn settings() -> Check {
    let read = |file: &str| std::fs::read_to_string(file).ok();
    let guard = Guard::parse(read(PARANOID_FILE).as_deref(), read(STATUS_FILE).as_deref());
    let name = "perf settings";
    let found = match guard.privileged {
        true => format!("{}, and this process may ignore it", guard.setting()),
        false => guard.setting(),
    };
    match guard.paranoid {
        None => Check::new(name, State::Limited, found)
            .means("this kernel has no perf events, or hides them: times are recorded, no counts"),
        Some(..=1) => Check::new(name, State::Ok, found).means("counts include the kernel's part"),
        Some(_) if guard.privileged => {
            Check::new(name, State::Ok, found).means("counts include the kernel's part")
        }
        Some(2) => Check::new(name, State::Limited, found)
            .means("counts are without what the kernel does for the program")
            .helps(lower_paranoid(1)),
        Some(_) => Check::new(name, State::Limited, found)
            .means("no event can be counted: times are recorded, no counts")
            .helps(lower_paranoid(1)),
    }
}

fn of_kind(name: &'static str, events: &[EventCheck]) -> Check {
    let open: Vec<&EventCheck> = events.iter().filter(|e| e.available).collect();
    let lacking = || events.iter().filter(|e| !e.available);
    let found = match open.len() {
        0 => format!("none of {} can be counted", events.len()),
        n if n == events.len() => format!("all {n} can be counted"),
        n => format!("{n} of {} can be counted", events.len()),
    };
    let state = match open.len() {
        0 => State::Missing,
        n if n == events.len() => State::Ok,
        _ => State::Limited,
    };
    let mut reasons: Vec<String> = Vec::new();
    for reason in lacking().filter_map(|e| e.reason.as_deref()) {
        if !reasons.iter().any(|r| r == reason) {
            reasons.push(reason.to_owned());
        }
    }
    let check = Check::new(name, state, found);
    match state {
        State::Ok => check.means("`ompfuse events` lists them"),
        _ => Check {
            meaning: reasons.join("; "),
            remedy: lacking().find_map(|e| e.remedy.clone()),
            ..check
        },
    }
}

/// With the number of counters that the processor has, where there are any.
fn with_slots(check: Check) -> Check {
    match counters::hardware_slots() {
        0 => check,
        slots => Check {
            found: format!("{}, {slots} at a time", check.found),
            ..check
        },
    }
}

fn by_code() -> Check {
    Check::new("exact counts", State::Ok, exact::NAME)
        .means("`--count` has a program count its own instructions, on any machine")
}

/// Whether a program can be sampled while it is recorded.
fn samples() -> Check {
    let name = "samples";
    let meaning =
        "`ompfuse report --lines` tells no lines and functions; nothing else needs samples";
    match sampling::refusal() {
        Some(refusal) => Check {
            remedy: refusal.remedy,
            ..Check::new(name, State::Missing, refusal.reason).means(meaning)
        },
        None if !sampling::has_tsc() => Check::new(
            name,
            State::Limited,
            "the kernel's clock is not the time stamp counter",
        )
        .means("samples belong to threads, not to regions: there are no lines"),
        None => Check::new(name, State::Ok, "the software clock can be sampled")
            .means("`ompfuse report --lines` tells lines and functions"),
    }
}

fn simulator() -> Check {
    let name = "simulated events";
    match simulate::check() {
        Ok(qemu) => Check::new(name, State::Ok, qemu.display().to_string())
            .means("`--simulate` counts a simulated processor's events, some 100 times slower"),
        Err(error) => {
            let why = format!("{error:#}");
            let why = why.strip_prefix("cannot simulate: ").unwrap_or(&why);
            let why = why.split("; ").next().unwrap_or(why).to_owned();
            Check::new(name, State::Missing, why)
                .means("`--simulate` does not work; nothing else needs it")
                .helps(simulate::REMEDY)
        }
    }
}
