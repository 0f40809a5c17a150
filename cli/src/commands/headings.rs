//! Headings of the options of commands that record: what a first hour needs comes first, in this order.

use clap::Command;

/// Without a heading.
const FIRST: [&str; 13] = [
    "output",
    "pid",
    "sampled",
    "threads",
    "events",
    "repeat",
    "select",
    "functions",
    "units",
    "show",
    "html",
    "format",
    "quiet",
];

/// All others, by name.
const HEADINGS: [(&str, &[&str]); 5] = [
    (
        "Which code is recorded",
        &[
            "skip",
            "filter",
            "loops",
            "calls",
            "debug-path",
            "dry-run",
            "set",
            "against",
            "turns",
        ],
    ),
    (
        "Which events are counted",
        &[
            "count",
            "region-events",
            "slots",
            "max-runs",
            "from",
            "strategy",
            "rotate",
            "simulate",
        ],
    ),
    (
        "How much is recorded",
        &["max-size", "sampling", "context-depth"],
    ),
    ("When it is recorded", &["delay", "for", "control"]),
    (
        "How it is reported",
        &["report", "weak", "redact", "memory"],
    ),
];

/// The whole command line, with headings.
pub(super) fn grouped(all: Command) -> Command {
    ["profile", "record"].into_iter().fold(all, |all, name| {
        all.mut_subcommand(name, |command| command.mut_args(placed))
    })
}

fn placed(option: clap::Arg) -> clap::Arg {
    let Some(name) = option.get_long().map(str::to_owned) else {
        return option;
    };
    if let Some(at) = FIRST.iter().position(|first| *first == name) {
        return option.display_order(at);
    }
    for (heading, names) in HEADINGS {
        if let Some(at) = names.iter().position(|known| *known == name) {
            return option.help_heading(heading).display_order(at);
        }
    }
    option
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_option_has_a_place() {
        let all = crate::commands::Cli::command();
        let known = HEADINGS.iter().flat_map(|(_, names)| *names);
        let known: BTreeSet<&str> = known.chain(&FIRST).copied().collect();
        let mut there = BTreeSet::new();
        for name in ["profile", "record"] {
            let command = all.find_subcommand(name).expect("it is there");
            let options = command.get_arguments().filter(|a| !a.is_hide_set());
            let names = options.filter_map(|a| a.get_long().map(str::to_owned));
            there.extend(names.filter(|n| n != "help"));
        }
        let there: BTreeSet<&str> = there.iter().map(String::as_str).collect();
        assert_eq!(known, there);
    }
}
