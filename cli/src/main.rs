//! The `ompfuse` command: arguments, files, processes and progress. The work is done by the library crates.
#![deny(unsafe_code)] // exceptions are in `input` and `memory`

mod atomic;
mod attached;
mod binary;
mod cache;
mod commands;
mod contexts;
mod counted;
mod counters;
mod debug;
mod doctor;
mod embedded;
mod event_sets;
mod git;
mod going;
mod input;
mod interrupt;
mod launch;
mod libraries;
mod lines;
mod load;
mod loader;
mod memory;
mod newest;
mod output;
mod pace;
mod page;
mod pager;
mod privileges;
mod process;
mod processors;
mod program;
mod progress;
mod rank;
mod recording;
mod run_dir;
mod running;
mod sampling;
mod select;
mod simulate;
mod strategy;
mod watching;

use clap::error::ContextKind;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    if sampling::is_stage() {
        return ExitCode::from(sampling::execute()); // before anything is changed that the program would inherit
    }
    end_at_defects();
    match memory::is_stack_short() {
        true => memory::with_stack(command),
        false => command(),
    }
}

fn command() -> ExitCode {
    let cli = match commands::Cli::given() {
        Ok(cli) => cli,
        Err(error) => return refused(error),
    };
    let run = || {
        memory::prepare()?;
        interrupt::install()?;
        cli.run()
    };
    ExitCode::from(run().unwrap_or_else(|error| status_of(&error)))
}

/// Why a thread that is waited for has not panicked.
pub(crate) const NO_PANIC: &str = "a panic ends the command";

/// Makes a panic in any thread end the command: with one line and status 1, behind the program that it may have started.
fn end_at_defects() {
    let by_default = std::panic::take_hook();
    let is_told_by_default = std::env::var_os("RUST_BACKTRACE").is_some_and(|how| how == "full");
    std::panic::set_hook(Box::new(move |panic| {
        match is_told_by_default {
            true => by_default(panic),
            false => output::say(defect(panic)),
        }
        // Nobody watches it any more, but whoever waits for this command waits for its program.
        let _ = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        std::process::exit(1);
    }));
}

/// What is wrong with the arguments. A filter file's lines aren't among those: they are input like any other.
fn refused(mut error: clap::Error) -> ExitCode {
    // An option with a typo is no program, and nobody has one of that name.
    error.remove(ContextKind::Suggested);
    let invalid = error.get(ContextKind::InvalidSubcommand);
    if let Some(program) = invalid.map(ToString::to_string)
        && std::path::Path::new(&program).is_file()
    {
        output::note(format_args!(
            "{program} is a file, not a command of ompfuse; to profile it: ompfuse profile -- {program}"
        ));
        return ExitCode::from(2);
    }
    let is_file = error
        .get(ContextKind::InvalidArg)
        .is_some_and(|arg| arg.to_string().starts_with("--filter"));
    match error.source().filter(|_| is_file) {
        Some(cause) => {
            output::say(cause);
            ExitCode::FAILURE
        }
        None => error.exit(),
    }
}

/// One line for what must not happen, or what a library makes of having no memory. Not the standard library's with its backtrace:
/// that takes memory, and where there is none it waits for itself for ever.
fn defect(panic: &std::panic::PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string);
    format!(
        "cannot go on: {message} ({}); RUST_BACKTRACE=full tells more",
        place.unwrap_or_default()
    )
}

/// Says what went wrong, where that is of use, and returns the exit status.
pub(crate) fn status_of(error: &anyhow::Error) -> u8 {
    if error.is::<output::ReaderGone>() {
        return 0;
    }
    if error.is::<output::SaidAlready>() {
        return 1;
    }
    output::say(one_line(error));
    if error.is::<output::Usage>() {
        return 2;
    }
    error
        .downcast_ref::<interrupt::Interrupted>()
        .map_or(1, |i| 128 + i.0 as u8)
}

/// The error and its causes. A message may quote its cause already; then it isn't said twice.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |line, cause| match line.as_str() {
            "" => cause,
            said if said.contains(&cause) => line,
            said => format!("{said}: {cause}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_are_said_once() {
        assert_eq!(one_line(&anyhow!("c").context("b").context("a")), "a: b: c");
        assert_eq!(
            one_line(&anyhow!("no room").context("cannot write (no room)")),
            "cannot write (no room)"
        );
    }

    #[test]
    fn signals_and_lost_readers_have_their_status() {
        assert_eq!(status_of(&output::ReaderGone.into()), 0);
        assert_eq!(status_of(&interrupt::Interrupted(2).into()), 130);
        assert_eq!(status_of(&output::Usage("x".to_owned()).into()), 2);
        assert_eq!(status_of(&anyhow!("x")), 1);
    }
}
