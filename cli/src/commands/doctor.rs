//! `ompfuse doctor`.

use crate::doctor::{self, Check, Diagnosis, State};
use crate::output::{self, Stream};
use anyhow::Result;
use ompfuse_report::view::table::wrap;

/// Check what can be recorded and counted on this machine, and show how to fix the rest
///
/// Each line is ok, limited or missing. The remedy is below it, after an arrow. The exit status is 1 if nothing can be
/// recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    format: output::FormatArg,
    /// Say what `profile -p` can tell of a process that runs already
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    let diagnosis = match args.pid {
        Some(pid) => doctor::diagnose_running(pid),
        None => doctor::diagnose(),
    };
    match args.format.is_json() {
        true => output::print_json(&diagnosis)?,
        false => output::print(&text(&diagnosis, args.pid))?,
    }
    Ok(u8::from(!diagnosis.can_record))
}

/// Width of the states, and of the names.
const STATES: usize = 9;
const NAMES: usize = 18;
/// Lines that are longer are hard to read.
const WIDEST: usize = 110;

fn text(diagnosis: &Diagnosis, pid: Option<u32>) -> String {
    let width = Stream::Output.width().unwrap_or(WIDEST).clamp(40, WIDEST);
    let colour = Stream::Output.colour();
    let mut text: String = diagnosis
        .checks
        .iter()
        .map(|c| one(c, width, colour))
        .collect();
    let of = |state| diagnosis.checks.iter().filter(|c| c.state == state).count();
    let sum = format!(
        "{} limited, {} missing",
        of(State::Limited),
        of(State::Missing)
    );
    let can = match (diagnosis.can_record, pid) {
        (true, None) => "Programs can be recorded here".to_owned(),
        (false, None) => "Nothing can be recorded here".to_owned(),
        (true, Some(pid)) => format!("`ompfuse profile -p {pid}` can look at it"),
        (false, Some(pid)) => format!("`ompfuse profile -p {pid}` can't look at it"),
    };
    text.push_str(&format!("\n{can}: {sum}.\n"));
    text
}

/// A check: its state and name, then what was found, what it means and what helps, each in its own lines.
fn one(check: &Check, width: usize, colour: bool) -> String {
    let indent = STATES + NAMES;
    let state = format!("{:STATES$}", check.state.name());
    let state = match check.state {
        _ if !colour => state,
        State::Ok => format!("\x1b[32m{state}\x1b[0m"),
        State::Limited => format!("\x1b[33m{state}\x1b[0m"),
        State::Missing => format!("\x1b[31m{state}\x1b[0m"),
    };
    let remedy = check.remedy.as_ref().map(|r| format!("→ {r}"));
    let parts = [
        Some(check.found.clone()),
        Some(check.meaning.clone()),
        remedy,
    ];
    let parts = parts.into_iter().flatten().filter(|p| !p.is_empty());
    // Where lines are short everything stands below the name.
    let is_narrow = width < indent + 40;
    let blanks = match is_narrow {
        true => " ".repeat(STATES),
        false => " ".repeat(indent),
    };
    let lines: Vec<String> = parts
        .flat_map(|part| {
            let wrapped = wrap(&part, width - blanks.len(), "  ");
            wrapped.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let mut text = String::new();
    let mut rest = lines.iter();
    match (is_narrow, rest.next()) {
        (false, Some(first)) => text.push_str(&format!("{state}{:NAMES$}{first}\n", check.name)),
        (_, first) => {
            text.push_str(&format!("{state}{}\n", check.name));
            text.extend(first.map(|line| format!("{blanks}{line}\n")));
        }
    }
    for line in rest {
        text.push_str(&format!("{blanks}{line}\n"));
    }
    text
}
