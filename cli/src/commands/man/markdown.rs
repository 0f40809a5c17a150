//! The reference of all commands as a page, made of the help texts: `docs/reference/commands.md`.

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, ArgAction, Command};
use std::collections::HashMap;
use std::fmt::Write;

const ABOUT: &str = "\
# Commands

This page has each option in a sentence; `ompfuse help COMMAND` says more. An option that several commands have is described where it comes
first. [Selectors](selectors.md) have a page of their own.

Exit status: 0 done, 1 it could not be done, 2 wrong usage, 3 a `diff --fail-on` holds. `record` and `profile` hand on the program's
own status. `ompfuse man --markdown` prints this page.
";

/// What was told, and the command that it was told of.
#[derive(Default)]
struct Told {
    /// Options by name and help.
    options: HashMap<(String, String), String>,
    /// Lists of values, as they were written.
    values: HashMap<String, String>,
}

/// The page. `all`: the whole command line, built.
pub(super) fn page(all: &Command) -> String {
    let (mut out, mut told) = (ABOUT.to_owned(), Told::default());
    let commands = all.get_subcommands();
    let mut commands: Vec<&Command> = commands
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
        .collect();
    commands.sort_by_key(|c| c.get_display_order());
    for command in commands {
        section(&mut out, &mut told, command, "##", command.get_name());
    }
    out
}

/// A command, and those that it has. `mark`: of its heading.
fn section(out: &mut String, told: &mut Told, command: &Command, mark: &str, name: &str) {
    line(out, format_args!("\n{mark} {name}\n"));
    line(out, format_args!("{}.", full(command.get_about())));
    for (heading, arguments) in by_heading(command) {
        match heading {
            Some(heading) => line(out, format_args!("\n**{heading}**\n")),
            None => out.push('\n'),
        }
        let (known, new): (Vec<&Arg>, Vec<&Arg>) =
            (arguments.iter()).partition(|a| told.of(a).is_some());
        for argument in new {
            item(out, told, argument, name);
        }
        references(out, told, &known);
    }
    if let Some(examples) = command.get_after_help() {
        let text = examples.to_string();
        let (title, rest) = text.split_once('\n').unwrap_or(("", &text));
        let lines = rest.lines().take_while(|l| l.starts_with("  "));
        let lines: Vec<&str> = lines.map(str::trim).collect();
        line(
            out,
            format_args!("\n{title}\n\n```sh\n{}\n```", lines.join("\n")),
        );
    }
    let inner = command.get_subcommands();
    for inner in inner.filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let name = format!("{name} {}", inner.get_name());
        section(out, told, inner, &format!("{mark}#"), &name);
    }
}

/// Arguments and options as the help text has them: by heading, those without one first.
fn by_heading(command: &Command) -> Vec<(Option<&str>, Vec<&Arg>)> {
    let mut all: Vec<(Option<&str>, Vec<&Arg>)> = vec![];
    for argument in command.get_arguments() {
        let is_left_out = ["help", "version"].contains(&argument.get_id().as_str());
        if argument.is_hide_set() || is_left_out {
            continue;
        }
        let heading = argument.get_help_heading();
        match all.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => all.push((heading, vec![argument])),
        }
    }
    all.sort_by_key(|(heading, _)| heading.is_some());
    for (_, arguments) in &mut all {
        arguments.sort_by_key(|a| (!a.is_positional(), a.get_display_order()));
    }
    all
}

impl Told {
    /// The command that an option was told of. Arguments without a name are told anew.
    fn of(&self, argument: &Arg) -> Option<&str> {
        let key = (name(argument), help(argument));
        let known = argument.get_long().and(self.options.get(&key));
        known.map(String::as_str)
    }
}

/// Options that other commands have too, in a line for each of these commands.
fn references(out: &mut String, told: &Told, known: &[&Arg]) {
    let mut by_command: Vec<(&str, Vec<String>)> = vec![];
    for argument in known {
        let command = told.of(argument).unwrap_or_default();
        let option = format!("`--{}`", argument.get_long().unwrap_or_default());
        match by_command.iter_mut().find(|(of, _)| *of == command) {
            Some((_, options)) => options.push(option),
            None => by_command.push((command, vec![option])),
        }
    }
    for (command, options) in by_command {
        let (link, options) = (link(command), options.join(", "));
        line(out, format_args!("- As for {link}: {options}."));
    }
}

fn link(command: &str) -> String {
    format!("[`{command}`](#{})", command.replace(' ', "-"))
}

/// An option or argument: name, what it does, its values.
fn item(out: &mut String, told: &mut Told, argument: &Arg, command: &str) {
    let (name, text) = (name(argument), full(argument.get_help()));
    let stop = if text.ends_with('.') { "" } else { "." };
    line(out, format_args!("- `{name}`: {text}{stop}"));
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let defaults = argument.get_default_values();
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let defaults: Vec<_> = defaults.iter().map(|v| v.to_string_lossy()).collect();
        line(out, format_args!("\n  Default: `{}`.", defaults.join(" ")));
    }
    if takes_value {
        values(out, told, argument, command);
    }
    told.options
        .entry((name, help(argument)))
        .or_insert(command.to_owned());
}

/// The values that an option takes. Without helps they are a line. A list that was told of another command is not told again.
fn values(out: &mut String, told: &mut Told, argument: &Arg, command: &str) {
    let values = argument.get_possible_values();
    let values: Vec<_> = values.iter().filter(|v| !v.is_hide_set()).collect();
    if values.is_empty() {
        return;
    }
    let list = if values.iter().all(|v| v.get_help().is_none()) {
        let names: Vec<String> = values
            .iter()
            .map(|v| format!("`{}`", v.get_name()))
            .collect();
        format!("  Values: {}.\n", names.join(", "))
    } else {
        let item = |v: &&PossibleValue| format!("  - `{}`: {}\n", v.get_name(), full(v.get_help()));
        values.iter().map(item).collect()
    };
    match told.values.get(&list) {
        Some(known) => line(out, format_args!("\n  Values: as for {}.", link(known))),
        None => {
            line(out, format_args!("\n{}", list.trim_end_matches('\n')));
            told.values.insert(list, command.to_owned());
        }
    }
}

fn help(argument: &Arg) -> String {
    full(argument.get_long_help().or(argument.get_help()))
}

/// `-o, --output <DIR>`, or an argument's name.
fn name(argument: &Arg) -> String {
    let value = argument.get_value_names().map(|names| names.join(" "));
    let value = value.filter(|_| argument.get_action().takes_values());
    let (Some(long), short) = (argument.get_long(), argument.get_short()) else {
        return format!("<{}>", value.unwrap_or_default());
    };
    let short = short.map_or(String::new(), |s| format!("-{s}, "));
    let is_optional = argument.get_num_args().is_some_and(|n| n.min_values() == 0);
    let value = value.map_or(String::new(), |v| match is_optional {
        true => format!("[=<{v}>]"),
        false => format!(" <{v}>"),
    });
    format!("{short}--{long}{value}")
}

fn full(text: Option<&StyledStr>) -> String {
    text.map_or(String::new(), plain)
}

/// A text in Markdown: what a terminal shows as it is must not become emphasis or HTML.
fn plain(text: &StyledStr) -> String {
    let text = text.to_string();
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        let is_code = i % 2 == 1;
        if i > 0 {
            out.push('`');
        }
        for c in piece.chars() {
            if !is_code && "*<[_".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}
