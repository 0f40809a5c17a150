//! The sections about what is missing: units without a partner, events that were not counted, constructs without a probe.

use super::{Paint, TextOptions, laid_out};
use crate::view::table::{Column, wrap};
use crate::words::{self, place};
use ompfuse_account::model::{EventState, Report};
use ompfuse_account::units::count;
use ompfuse_format::Construct;

/// What could not be matched, and why.
pub(super) fn unmatched(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    if report.unmatched.is_empty() {
        return None;
    }
    let mut list: Vec<_> = report.unmatched.iter().collect();
    list.sort_by_key(|u| std::cmp::Reverse(u.count));
    let rows = list
        .iter()
        .take(options.top)
        .map(|u| {
            let place = place(u.source.as_ref(), u.function.as_deref(), &u.name);
            vec![
                count(u.count),
                u.kind.map_or("", Construct::name).to_owned(),
                place,
                format!("run {}", u.run),
                words::reason(u),
            ]
        })
        .collect();
    let columns = [
        Column::right("XUs"),
        Column::left("kind").leaves(1),
        Column::left("location").keeps_place(14),
        Column::left("of"),
        Column::left("why").keeps_front(30),
    ];
    let mut text = paint.bold("Not matched");
    text.push('\n');
    text.push_str(&laid_out(&columns, rows, options));
    if list.len() > options.top {
        text.push_str(&paint.dim(&format!("{} more kinds", list.len() - options.top)));
        text.push('\n');
    }
    Some(text)
}

/// Events that were not counted, with the remedy.
pub(super) fn missing_events(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    // Events with the same reason are one entry.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for EventState { name, reason, .. } in report.events.iter().filter(|e| e.run.is_none()) {
        let unsaid = match report.threads {
            0 => "no thread was recorded",
            _ => "no reason given",
        };
        let reason = reason.as_deref().unwrap_or(unsaid);
        match reasons.iter_mut().find(|r| r.0 == reason) {
            Some(known) => known.1.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    if reasons.is_empty() {
        return None;
    }
    let mut text = paint.bold("Not counted");
    text.push('\n');
    for (reason, names) in reasons {
        text.push_str(&wrap(
            &format!("{}: {reason}", names.join(", ")),
            options.width,
            "  ",
        ));
    }
    Some(text)
}

/// Constructs without a probe: what happens there is in the numbers of the code around them.
pub(super) fn skipped(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let mut text = paint.bold("Not seen");
    text.push('\n');
    let empty = text.len();
    let modules = report.modules.iter();
    let counted: Vec<_> = modules.map(|m| (&m.path, &m.constructs)).collect();
    for (path, constructs) in &counted {
        let lost = constructs.lost();
        if lost > 0 {
            let file = path.rsplit('/').next().unwrap_or(path);
            let line = format!(
                "{file}: {lost} of {} constructs have no probe: {}",
                constructs.constructs(),
                constructs.reasons()
            );
            text.push_str(&wrap(&line, options.width, "  "));
        }
    }
    let trifles: u32 = counted.iter().map(|(_, c)| c.trifles).sum();
    if trifles > 0 {
        let line = format!(
            "atomic instructions and fences: {trifles} have no probe, because it would take longer than they do"
        );
        text.push_str(&wrap(&line, options.width, "  "));
    }
    (text.len() > empty).then_some(text)
}

/// Losses and other shortcomings.
pub(super) fn notes(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let notes = words::notes(report);
    if notes.is_empty() {
        return None;
    }
    let mut text = paint.warn("Mind");
    text.push('\n');
    for note in notes {
        text.push_str(&wrap(&format!("- {note}"), options.width, "  "));
    }
    Some(text)
}
