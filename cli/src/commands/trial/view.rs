//! What came of it, for people.

use super::Answer;
use crate::output;
use ompfuse_account::model::{Tried, TriedVariant};
use ompfuse_account::paired::{ERROR, Paired};
use ompfuse_report::view::table::Column;
use ompfuse_report::words::{change, judged, shell_words, tried};
use std::path::Path;

/// Intervals that end above this change are not told.
const WIDE: f64 = 10.0;

pub(super) fn text(answer: &Answer) -> String {
    let columns = [
        Column::right("#"),
        Column::left("variant"),
        Column::right("time"),
        Column::left("interval").leaves(2),
        Column::right("predicted").leaves(4),
        Column::right("turns").leaves(1),
        Column::right("lost there").leaves(3),
        Column::right("region's time").leaves(2),
        Column::left("output"),
    ];
    let told = |found: Option<Paired>| match found {
        Some(t) if t.is_decided => change(t.change),
        Some(_) => "undecided".to_owned(),
        None => "-".to_owned(),
    };
    let row = |(at, v): (usize, &TriedVariant)| {
        let found = v.time.filter(|_| v.reason.is_none());
        // One that holds nearly everything says nothing.
        let interval = found.filter(|t| t.high < WIDE).map_or(String::new(), |t| {
            format!("{} to {}", change(t.low), change(t.high))
        });
        let last = match (&v.reason, v.output) {
            (Some(reason), _) => reason.clone(),
            (None, output) => output.map_or("", judged).to_owned(),
        };
        vec![
            (at + 1).to_string(),
            v.name(),
            told(found),
            interval,
            v.predicted.map_or("-".to_owned(), change),
            v.turns.to_string(),
            v.lost
                .map_or("-".to_owned(), |share| format!("{:.1}%", 100.0 * share)),
            told(v.region_time),
            last,
        ]
    };
    let told = &answer.tried;
    let mut text = String::new();
    if let Some(starved) = &answer.starved {
        text += &format!(
            "while it was recorded, {starved}; what is proposed and predicted depends on that\n"
        );
    }
    if let Some(seconds) = told.original_s {
        text += &format!("the original takes {seconds:.3} s\n\n");
    }
    if told.variants.is_empty() {
        return text + "nothing is known to be worth trying; --set names a variant\n";
    }
    let rows = told.variants.iter().enumerate().map(row).collect();
    text += &output::table(&columns, rows);
    text += &format!("\n{}\n", tried(told));
    text += &format!(
        "{:.0}% of such decisions are wrong; output: {}; the recorded run is in {}\n",
        100.0 * ERROR,
        compared(told),
        answer.folder.display()
    );
    text + &to_use(answer)
}

/// What the column of outputs is about.
fn compared(told: &Tried) -> String {
    match &told.compared_files[..] {
        [] => "exit status and standard output, no files".to_owned(),
        names => format!(
            "exit status, standard output, and files called {}",
            names.join(" or ")
        ),
    }
}

/// How the best is used.
fn to_use(answer: &Answer) -> String {
    let mut text = String::new();
    let (own, is_all) = &answer.own;
    let env = answer.tried.best().map_or(&[][..], |best| &best.env);
    if !env.is_empty() {
        let words = answer.command.iter().map(|word| word.to_string_lossy());
        let mut words: Vec<_> = words.collect();
        if let Some(out) = &answer.patched {
            // As a shell finds a file, not a command.
            let is_name = out.components().count() == 1;
            let out = if is_name {
                Path::new(".").join(out)
            } else {
                out.clone()
            };
            words[0] = out.to_string_lossy().into_owned().into();
        }
        let line = shell_words(words.iter().map(AsRef::as_ref));
        text += &format!("to use it: {} {line}\n", env.join(" "));
    }
    if answer.wanted.is_some() && answer.patched.is_none() {
        text += "nothing is written: no setting of the program's own file is known to help\n";
    }
    match (&answer.patched, answer.tried.best) {
        (Some(out), _) => text += &format!("written: {}\n", out.display()),
        (None, Some(_)) if !own.is_empty() => text += "--patch OUT writes the program with it\n",
        (None, _) => {}
    }
    if !is_all {
        text += "`ompfuse patch LIBRARY --dormant --set ...` writes a library with it\n";
    }
    text
}
