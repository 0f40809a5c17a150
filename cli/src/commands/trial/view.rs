//! What came of it, for people.

use super::outputs::Judged;
use super::{Answer, Variant};
use crate::output;
use ompfuse_report::compare::statistics::paired::{ERROR, Paired};
use ompfuse_report::view::table::Column;

fn percent(share: f64) -> String {
    format!("{:+.1}%", 100.0 * share)
}

/// What is known of the time of a variant's parallel regions.
fn of_region(variant: &Variant) -> String {
    match (&variant.region_reason, variant.region_time) {
        (Some(reason), _) => format!("; its region's time isn't measured: {reason}"),
        (None, Some(found)) if !found.is_decided => {
            "; whether its region's time changed is undecided".to_owned()
        }
        (None, Some(found)) => format!(
            "; its region's time, recorded: {} ({} to {})",
            percent(found.change),
            percent(found.low),
            percent(found.high)
        ),
        (None, None) => String::new(),
    }
}

/// What helps most, in a line.
pub(super) fn verdict(answer: &Answer) -> String {
    let best = answer.best.map(|at| &answer.variants[at]);
    match best.and_then(|v| Some((v, v.time?, v.output?))) {
        None => "none of them is known to be faster".to_owned(),
        Some((best, found, judged)) => format!(
            "{} takes {:.1}% less time ({:.1} to {:.1}, {} turns, output {}){}",
            best.set.join(" + "),
            -100.0 * found.change,
            -100.0 * found.high,
            -100.0 * found.low,
            best.turns,
            judged.words(),
            of_region(best)
        ),
    }
}

pub(super) fn text(answer: &Answer) -> String {
    let columns = [
        Column::right("#"),
        Column::left("variant"),
        Column::right("time"),
        Column::left("interval").leaves(2),
        Column::right("turns").leaves(1),
        Column::right("lost there").leaves(3),
        Column::right("region's time").leaves(2),
        Column::left("output"),
    ];
    let told = |found: Option<Paired>| match found {
        Some(t) if t.is_decided => percent(t.change),
        Some(_) => "undecided".to_owned(),
        None => "-".to_owned(),
    };
    let row = |(at, v): (usize, &Variant)| {
        let found = v.time.filter(|_| v.reason.is_none());
        let interval = found.map_or(String::new(), |t| {
            format!("{} to {}", percent(t.low), percent(t.high))
        });
        let last = match (&v.reason, v.output) {
            (Some(reason), _) => reason.clone(),
            (None, judged) => judged.map_or("", Judged::words).to_owned(),
        };
        vec![
            (at + 1).to_string(),
            v.set.join(" + "),
            told(found),
            interval,
            v.turns.to_string(),
            v.lost
                .map_or("-".to_owned(), |share| format!("{:.1}%", 100.0 * share)),
            told(v.region_time),
            last,
        ]
    };
    let mut text = String::new();
    if let Some(seconds) = answer.original_s {
        text += &format!("the original takes {seconds:.3} s\n\n");
    }
    if answer.variants.is_empty() {
        return text
            + "nothing in the program's own file is known to be worth trying; --set names a variant\n";
    }
    let rows = answer.variants.iter().enumerate().map(row).collect();
    text += &output::table(&columns, rows);
    text += "\n";
    text += &format!("{}\n", verdict(answer));
    text += &format!(
        "{:.0}% of such decisions are wrong; the recorded run is in {}\n",
        100.0 * ERROR,
        answer.folder.display()
    );
    match (&answer.patched, answer.best) {
        (Some(out), _) => text += &format!("written: {}\n", out.display()),
        (None, Some(_)) => text += "--patch OUT writes the program with it\n",
        (None, None) => {}
    }
    text
}
