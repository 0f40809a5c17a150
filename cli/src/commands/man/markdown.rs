//! The reference of all commands as a page, made of the help texts: `docs/reference/commands.md`.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};
use std::collections::HashMap;
use std::fmt::Write;

const ABOUT: &str = "\
# Commands

`ompfuse man --markdown` prints this page, which is made of the help texts. `ompfuse help COMMAND` shows the same in the terminal.

Exit status: 0 done, 1 it could not be done, 2 wrong usage, 3 a `diff --fail-on` holds. `record` and `profile` hand on the program's
own status. An option that several commands have is told in full where it comes first.
";

/// Options that were told in full, by name and help, and the command that they were told of.
type Told = HashMap<(String, String), String>;

/// The page. `all`: the whole command line, built.
pub(super) fn page(all: &Command) -> String {
    let (mut out, mut told) = (ABOUT.to_owned(), Told::new());
    let commands = all.get_subcommands();
    for command in commands.filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        section(&mut out, &mut told, command, "##", command.get_name());
    }
    out
}

/// A command, and those that it has. `mark`: of its heading.
fn section(out: &mut String, told: &mut Told, command: &Command, mark: &str, name: &str) {
    line(out, format_args!("\n{mark} {name}\n"));
    let about = command.get_long_about().or(command.get_about());
    line(out, format_args!("{}\n", full(about)));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    line(out, format_args!("```sh\n{usage}\n```"));
    for (heading, arguments) in by_heading(command) {
        match heading {
            Some(heading) => line(out, format_args!("\n**{heading}**\n")),
            None => out.push('\n'),
        }
        for argument in arguments {
            item(out, told, argument, name);
        }
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

/// An option or argument: name, what it does, its values. What was told of another command is told in short.
fn item(out: &mut String, told: &mut Told, argument: &Arg, command: &str) {
    let (name, help) = (
        name(argument),
        full(argument.get_long_help().or(argument.get_help())),
    );
    let paragraphs: Vec<&str> = help.split("\n\n").collect();
    let first = paragraphs[0].trim_end_matches('.');
    let known = told.get(&(name.clone(), help.clone()));
    if let Some(known) = known.filter(|_| paragraphs.len() > 1) {
        let anchor = known.replace(' ', "-");
        line(
            out,
            format_args!("- `{name}`: {first}; see [`{known}`](#{anchor})."),
        );
        return;
    }
    line(out, format_args!("- `{name}`: {first}."));
    for paragraph in &paragraphs[1..] {
        line(out, format_args!("\n  {}", paragraph.trim()));
    }
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let defaults = argument.get_default_values();
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let defaults: Vec<_> = defaults.iter().map(|v| v.to_string_lossy()).collect();
        line(out, format_args!("\n  Default: `{}`.", defaults.join(" ")));
    }
    let values = argument.get_possible_values();
    let values = values.iter().filter(|v| !v.is_hide_set());
    if takes_value {
        for (i, value) in values.enumerate() {
            let before = if i == 0 { "\n" } else { "" };
            match value.get_help() {
                Some(help) => line(
                    out,
                    format_args!("{before}  - `{}`: {}", value.get_name(), plain(help)),
                ),
                None => line(out, format_args!("{before}  - `{}`", value.get_name())),
            }
        }
    }
    told.entry((name, help)).or_insert(command.to_owned());
}

/// `-o, --output <DIR>`, or an argument's name.
fn name(argument: &Arg) -> String {
    let value = argument.get_value_names().map(|names| names.join(" "));
    let value = value.filter(|_| argument.get_action().takes_values());
    let (Some(long), short) = (argument.get_long(), argument.get_short()) else {
        return format!("<{}>", value.unwrap_or_default());
    };
    let short = short.map_or(String::new(), |s| format!("-{s}, "));
    let value = value.map_or(String::new(), |v| format!(" <{v}>"));
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
