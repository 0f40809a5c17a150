//! Where regions are called from.

use super::{TextOptions, laid_out, titled};
use crate::view::html::rows::{self, Caller};
use crate::view::table::{Column, wrap};
use crate::words::{in_sentence, kind, location};
use ompfuse_account::model::Report;
use ompfuse_account::units::{count, seconds};

/// Callers that are listed of a region.
const MOST: usize = 6;
/// Characters before a caller's name.
const INDENT: usize = 2;

/// The section; nothing without call paths.
pub(super) fn callers(report: &Report, options: TextOptions) -> Option<String> {
    let callers = rows::callers(report);
    if callers.is_empty() {
        return None;
    }
    let explanation = "incl.: own time with everything inside, all threads";
    let mut text = titled("Callers", explanation, options);
    for region in report.regions.iter().take(options.top) {
        let Some(of) = callers.get(&region.id) else {
            continue;
        };
        let head = format!(
            "#{} {}, {}",
            region.id,
            kind(region),
            in_sentence(&location(region))
        );
        text.push_str(&wrap(&head, options.width, "  "));
        text.push_str(&table(of, MOST, options));
    }
    Some(text)
}

/// The callers of a region.
pub(super) fn table(callers: &[Caller], most: usize, options: TextOptions) -> String {
    let row = |caller: &Caller| {
        vec![
            seconds(caller.inclusive_s),
            count(caller.executions),
            caller.text.clone(),
        ]
    };
    let rows = callers.iter().take(most).map(row).collect();
    let columns = [
        Column::right("incl."),
        Column::right("execs"),
        Column::left("from").keeps_place(20),
    ];
    let narrower = TextOptions {
        width: options.width - INDENT,
        ..options
    };
    let table = laid_out(&columns, rows, narrower);
    let mut text: String = (table.lines())
        .map(|line| format!("{}{line}\n", " ".repeat(INDENT)))
        .collect();
    if callers.len() > most {
        text.push_str(&format!("  {} more\n", callers.len() - most));
    }
    text
}
