//! Performance properties, the most severe first.

use super::{Paint, TextOptions, titled};
use crate::view::table::wrap;
use crate::words::{in_sentence, location, property};
use ompfuse_account::model::{Property, Report};
use ompfuse_account::units::{percent, seconds};
use std::collections::BTreeMap;

/// Share of the available time from which on a property is shown.
const SHOWN: f64 = 0.01;
/// Most of them.
const MOST: usize = 8;

/// The section; nothing where no property is worth showing.
pub(super) fn properties(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let worth: Vec<(&Property, f64)> = (report.properties.iter())
        .filter_map(|p| Some((p, p.severity?)))
        .filter(|(_, severity)| *severity >= SHOWN)
        .collect();
    if worth.is_empty() {
        return None;
    }
    let places: BTreeMap<u32, String> = report
        .regions
        .iter()
        .map(|r| (r.id, in_sentence(&location(r))))
        .collect();
    let mut text = titled(
        "Performance properties",
        "shares of the available time; those below 1 % are left out",
        options,
    );
    let mut told = vec![];
    for (property, severity) in worth.iter().take(MOST) {
        let place = match property.region {
            Some(id) => {
                let at = places.get(&id).map_or("", String::as_str);
                format!("#{id} {at}")
            }
            None => "unknown place".to_owned(),
        };
        let name = property::name(property.kind);
        let head = format!(
            "{:>6}  {name}, {place}: {}",
            percent(*severity),
            seconds(property.seconds)
        );
        text.push_str(&wrap_at(&head, options.width, "        "));
        // Once is enough.
        if !told.contains(&property.kind) {
            told.push(property.kind);
            let advice = property::advice(property.kind);
            let line = wrap(advice, options.width.saturating_sub(8), "");
            for line in line.lines() {
                text.push_str(&paint.dim(&format!("        {line}")));
                text.push('\n');
            }
        }
    }
    if worth.len() > MOST {
        let rest = worth.len() - MOST;
        text.push_str(&paint.dim(&format!("{rest} more (--format json lists all)")));
        text.push('\n');
    }
    Some(text)
}

/// As [`wrap`], with the blanks at the begin kept.
fn wrap_at(text: &str, width: usize, indent: &str) -> String {
    let blanks = text.len() - text.trim_start().len();
    let wrapped = wrap(text.trim_start(), width.saturating_sub(blanks), indent);
    " ".repeat(blanks) + &wrapped
}
