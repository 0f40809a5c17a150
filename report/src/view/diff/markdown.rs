//! Markdown for the summary of a pull request.

use super::{LONE, Options, listed};
use crate::words;
use ompfuse_account::units::{percent, several};
use ompfuse_compare::gate::{Outcome, Verdict};
use ompfuse_compare::{Diff, Pair};
use std::fmt::Write;

/// The comparison in Markdown.
pub fn markdown(diff: &Diff, outcomes: &[Outcome], options: &Options) -> String {
    let mut out = format!("## ompfuse: {}\n\n", escaped(&words::verdict(diff)));
    let mut put =
        |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("writing into a string");
    for outcome in outcomes {
        let word = words::outcome_word(outcome);
        let mark = match outcome.verdict {
            Verdict::Passes => word.to_owned(),
            _ => format!("**{word}**"),
        };
        let text = words::outcome(outcome);
        put(format_args!(
            "- {mark} `{}`: {}\n",
            outcome.expression.as_str(),
            escaped(&text)
        ));
    }
    if !outcomes.is_empty() {
        put(format_args!("\n"));
    }
    for condition in &diff.conditions {
        put(format_args!(
            "> {}\n",
            escaped(&words::condition(condition))
        ));
    }
    if !diff.conditions.is_empty() {
        put(format_args!("\n"));
    }
    let (pairs, more) = listed(diff, options);
    if !pairs.is_empty() {
        put(format_args!(
            "| region | location | change | A | B | share of B | why |\n|---|---|--:|--:|--:|--:|---|\n"
        ));
    }
    for pair in &pairs {
        put(format_args!("{}\n", row(pair)));
    }
    if more > 0 {
        let more = several(more as u64, "more region");
        put(format_args!("\n{more} changed.\n"));
    }
    if !pairs.is_empty() {
        put(format_args!("\n<details><summary>Details</summary>\n\n"));
        for pair in &pairs {
            let place = escaped(&words::pair_place(pair));
            put(format_args!(
                "- {} {place}: {}\n",
                words::compare_kind(pair),
                escaped(&words::basis(pair))
            ));
            for change in pair.changes.iter().filter(|c| words::is_told(c)) {
                let quantity = escaped(&words::quantity(&change.quantity));
                let (both, by) = (words::both(change), words::changed(change));
                put(format_args!(
                    "  - {quantity}: {both} ({by}, {})\n",
                    words::certainty(change)
                ));
            }
        }
        put(format_args!("\n</details>\n"));
    }
    for (side, lone) in [("A", &diff.only_a), ("B", &diff.only_b)] {
        if !lone.is_empty() {
            put(format_args!("\n{}:\n\n", words::only_in(side, lone)));
            for one in lone.iter().take(LONE) {
                put(format_args!(
                    "- {} {}: {}\n",
                    one.key.construct.name(),
                    escaped(&words::compare_place(&one.key)),
                    escaped(&words::lone(one))
                ));
            }
        }
    }
    out
}

fn row(pair: &Pair) -> String {
    let headline = pair.headline();
    let cell = |text: Option<String>| text.unwrap_or_default();
    let side = |v: Option<f64>| {
        let change = headline?;
        v.map(|v| words::value(&change.quantity, v))
    };
    format!(
        "| {} | `{}` | {} | {} | {} | {} | {} |",
        words::compare_kind(pair),
        words::pair_place(pair)
            .replace('|', "\\|")
            .replace('`', "'"),
        cell(headline.map(words::changed)),
        cell(side(headline.and_then(|c| c.a))),
        cell(side(headline.and_then(|c| c.b))),
        percent(pair.share[1]),
        escaped(&words::causes(pair).join("; "))
    )
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '*' | '_' | '`' | '|' | '<' | '>' | '[' | ']' | '\\' | '#' | '@' | '~'
        ) {
            out.push('\\');
        }
        out.push(if c == '\n' { ' ' } else { c });
    }
    out
}
