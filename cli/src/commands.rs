//! The commands, one module each. They are private: nothing below may use them.

mod baseline;
mod cache;
mod combine;
mod combine_groups;
mod completions;
mod ctl;
mod diff;
mod doctor;
mod evaluate;
mod events;
mod export;
mod headings;
mod history;
mod man;
mod partition;
mod patch;
mod patch_cached;
mod plan;
mod profile;
mod record;
mod report;
mod scan;
mod trial;
mod verify;
mod watch;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Profiles compiled OpenMP programs, construct by construct, without recompiling them
#[derive(Debug, Parser)]
#[command(name = "ompfuse", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// In the order of the help: first what a first hour needs, then the steps one by one, repositories, clusters, and the command itself.
#[derive(Debug, Subcommand)]
enum Command {
    Profile(profile::Args),
    Report(report::Args),
    Diff(diff::Args),
    Try(trial::Args),
    Export(export::Args),
    Watch(watch::Args),
    Ctl(ctl::Args),
    Doctor(doctor::Args),
    Events(events::Args),
    Scan(scan::Args),
    Patch(patch::Args),
    Verify(verify::Args),
    Record(record::Args),
    Plan(plan::Args),
    Combine(combine::Args),
    Evaluate(evaluate::Args),
    Baseline(baseline::Args),
    History(history::Args),
    Partition(partition::Args),
    CombineGroups(combine_groups::Args),
    Cache(cache::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    PatchCached(patch_cached::Args),
}

/// The whole command line.
fn command() -> clap::Command {
    headings::grouped(Cli::command())
}

impl Cli {
    /// What this process was given.
    pub(crate) fn given() -> Result<Cli, clap::Error> {
        let mut command = command();
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }

    /// Does what is asked for and returns the exit status.
    pub(crate) fn run(self) -> Result<u8> {
        let done = |()| 0;
        match self.command {
            Command::Profile(args) => profile::run(&args),
            Command::Scan(args) => scan::run(&args).map(done),
            Command::Patch(args) => patch::run(&args).map(done),
            Command::Verify(args) => verify::run(&args).map(done),
            Command::Events(args) => events::run(&args).map(done),
            Command::Plan(args) => plan::run(&args).map(done),
            Command::Record(args) => record::run(&args),
            Command::Combine(args) => combine::run(&args).map(done),
            Command::Partition(args) => partition::run(&args).map(done),
            Command::CombineGroups(args) => combine_groups::run(&args).map(done),
            Command::Evaluate(args) => evaluate::run(&args).map(done),
            Command::Diff(args) => diff::run(&args),
            Command::Baseline(args) => baseline::run(&args).map(done),
            Command::History(args) => history::run(&args),
            Command::Try(args) => trial::run(&args),
            Command::Report(args) => report::run(&args).map(done),
            Command::Export(args) => export::run(&args).map(done),
            Command::Watch(args) => watch::run(&args).map(done),
            Command::Ctl(args) => ctl::run(&args).map(done),
            Command::Doctor(args) => doctor::run(&args),
            Command::Cache(args) => cache::run(&args).map(done),
            Command::Completions(args) => completions::run(&args).map(done),
            Command::Man(args) => man::run(&args).map(done),
            Command::PatchCached(args) => patch_cached::run(&args).map(done),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
